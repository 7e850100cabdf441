"""Loggers of losses and scores, by Fabric: TensorBoard, CSV, Weights & Biases, MLflow."""

import warnings
from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sixjars_runtime.errors import MissingExtra

if TYPE_CHECKING:
    from lightning_fabric.loggers.logger import Logger

KINDS = {
    "csv": ("lightning_fabric.loggers", "CSVLogger", ()),
    "tensorboard": ("lightning_fabric.loggers", "TensorBoardLogger", ("tensorboard",)),
    "wandb": ("pytorch_lightning.loggers", "WandbLogger", ("wandb", "pytorch_lightning")),
    "mlflow": ("pytorch_lightning.loggers", "MLFlowLogger", ("mlflow", "pytorch_lightning")),
}
"""The package and class of each, and the libraries that it needs."""


def loggers_for(names: Sequence[str], folder: Path) -> "list[Logger]":
    """The loggers of a run; their files go into its folder `logs` at the first entry.

    >>> loggers_for([], Path("runs/x"))
    []
    """
    logs, run, project = str(folder / "logs"), folder.name, "sixjars"
    options: dict[str, dict[str, Any]] = {
        "csv": {"root_dir": logs, "name": "csv", "flush_logs_every_n_steps": 1},
        "tensorboard": {"root_dir": logs, "name": "tensorboard"},
        "wandb": {"project": project, "name": run, "save_dir": logs},
        "mlflow": {"experiment_name": project, "run_name": run, "save_dir": f"{logs}/mlflow"},
    }
    loggers = []
    for name in dict.fromkeys(names):
        package, kind, libraries = KINDS[name]
        for library in libraries:
            if find_spec(library) is None:
                raise MissingExtra(library, name)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            loggers.append(getattr(import_module(package), kind)(**options[name]))
    return loggers
