"""The peers: how each is installed, and how it trains and decodes, by its own code."""

import atexit
import logging
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from types import SimpleNamespace
from typing import Any, final

import torch

from .cases import FIRST_WORD, Case

PACKAGES = {
    "joeynmt": [
        "joeynmt==2.3.0",
        *("importlib_metadata<9", "zipp", "subword-nmt", "sentencepiece"),
        *(
            "tensorboard",
            "protobuf",
            "absl-py",
            "grpcio",
            "markdown",
            "werkzeug",
            "markupsafe",
            "six",
        ),
    ]
}
"""What each peer imports and this project does not bring. They are installed without their own requirements, which
name other versions of torch and numpy: all contestants run on the same ones."""


def installed(name: str, folder: Path) -> bool:
    """Whether a peer is in its folder, now at the latest; where there is no network it must be there already."""
    if (folder / name).is_dir():
        return True
    command = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--no-deps",
        "--target",
        str(folder),
        *PACKAGES[name],
    ]
    return subprocess.run(command, check=False).returncode == 0


@final
class JoeyNMT:
    """Kreutzer, Bastings & Riezler 2019 (https://aclanthology.org/D19-3019): its own manager of training and search.

    Its attention layer stands behind the recurrent one (Luong's input feeding), so a step has the same products but for
    one: the context goes through a layer of 3H × H and is then read by the next step as H features, not as 2H.
    """

    def prepare(self, case: Case) -> Callable[[], object] | None:
        """A step of its `TrainManager` with clipping and Adam, or its `search`."""
        if case.bridge != "additive" or case.precision == "int8":
            return None
        torch.manual_seed(0)
        logging.disable(logging.INFO)
        autocast: dict[str, Any] = {
            "device_type": case.device,
            "enabled": case.precision in {"bf16", "fp16"},
        }
        autocast["dtype"] = torch.float16 if case.precision == "fp16" else torch.bfloat16
        return (self._training if case.measurement == "training" else self._search)(case, autocast)

    def _training(self, case: Case, autocast: dict[str, Any]) -> Callable[[], object]:
        from joeynmt.config import parse_train_args
        from joeynmt.training import TrainManager

        asked = {
            "optimizer": "adam",
            "learning_rate": 1e-3,
            "clip_grad_norm": 1.0,
            "normalization": "tokens",
        }
        asked |= {
            "scheduling": "exponential",
            "batch_size": case.batch,
        }  # between epochs, so never here
        folder = mkdtemp()
        atexit.register(rmtree, folder, ignore_errors=True)
        manager = TrainManager(
            rank=0,
            model=self._model(case),
            model_dir=Path(folder),
            device=torch.device(case.device),
            n_gpu=int(case.device == "cuda"),
            autocast=autocast,
            train_args=parse_train_args(asked),
        )
        scaler = manager.scaler if case.precision == "fp16" else None  # bf16 needs none
        manager.scaler = scaler
        batch = self._batch(case)

        def update() -> object:
            loss = manager._train_step(batch)
            manager.clip_grad_fun(parameters=manager.model.parameters())
            if scaler is None:
                manager.optimizer.step()
            else:
                scaler.step(manager.optimizer)
                scaler.update()
            manager.model.zero_grad()
            return loss

        return update

    def _search(self, case: Case, autocast: dict[str, Any]) -> Callable[[], object]:
        from joeynmt.search import search

        model, batch = self._model(case).eval(), self._batch(case)
        length = {"max_output_length": case.tokens, "min_output_length": case.tokens}

        def found() -> None:
            with torch.autocast(
                **autocast
            ):  # its beam search makes the first state outside its own, and would fail
                for _ in range(case.batches):
                    search(
                        model=model,
                        batch=batch,
                        beam_size=case.beam,
                        beam_alpha=1.0,
                        generate_unk=False,
                        autocast=autocast,
                        **length,
                    )

        return found

    def _model(self, case: Case) -> Any:
        from joeynmt.model import build_model

        sizes, words = case.sizes, self._words(case.sizes.vocabulary)
        layer = {"type": "recurrent", "rnn_type": "gru", "hidden_size": sizes.hidden}
        layer["embeddings"] = {"embedding_dim": sizes.embedding}
        decoder = {**layer, "attention": "bahdanau", "init_hidden": "bridge"}
        model = build_model(
            {"encoder": {**layer, "bidirectional": True}, "decoder": decoder}, words, words
        )
        model.loss_function = ("crossentropy", 0.0)
        return model.to(case.device)

    @cache  # noqa: B019 - there is one of this class in a process, and a large vocabulary takes it seconds
    def _words(self, count: int) -> Any:
        from joeynmt.config import _check_special_symbols
        from joeynmt.vocabulary import Vocabulary

        words = [f"w{number}" for number in range(FIRST_WORD, count)]
        return Vocabulary(words, SimpleNamespace(**_check_special_symbols({})))

    def _batch(self, case: Case) -> Any:
        """On the device already, with the target's beginning and end."""
        from joeynmt.batch import Batch

        ids = torch.from_numpy(case.ids())
        source = torch.nn.functional.pad(ids, (0, 1), value=3)
        return Batch(
            src=source,
            src_length=torch.full((case.batch,), case.length),
            src_prompt_mask=None,
            trg=torch.nn.functional.pad(source, (1, 0), value=2),
            trg_prompt_mask=None,
            indices=torch.arange(case.batch),
            device=torch.device(case.device),
            pad_index=1,
            eos_index=3,
        )
