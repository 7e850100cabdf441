"""A run's folder: recipe, vocabularies, weights, log, scores and versions.

    recipe.yaml  fields/*.json  run.json  model.safetensors  log.jsonl  cost.json  curves.png
    scores.json baselines.json  checkpoints/

Enough to repeat the run, and to load it anywhere. Nothing in it is code, and loading it runs none.
A folder from a stranger is read with care: files have limits, and sizes are compared with the
weights before anything is allocated.
"""

import json
import math
import os
import platform
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, final

import torch

from sixjars.data.dataset import Fields
from sixjars.flow.backend import Backend
from sixjars.kernels.backends import prediction_backend
from sixjars.learning.checkpoints import RunFiles, check_shapes, load_weights, write_whole
from sixjars.model.build import Network, Unfilled, build
from sixjars.model.reference import REFERENCE
from sixjars.progress import Reporter
from sixjars.recipe.allowed_code import NOTHING, AllowedCode
from sixjars.recipe.files import read_text, values_of
from sixjars.recipe.sections import Recipe
from sixjars.runs.folder.archive import is_packed, unpacked
from sixjars.runs.recipes import Blueprint, recipe_of
from sixjars.version import version_of
from sixjars_runtime.errors import RunError, SixJarsError, shown
from sixjars_runtime.small_files import read_limited

FORMAT: Final = 2
"""The version of the folder's format; changes when an older version could not read it."""
LEFT: Final = ("model.safetensors", "checkpoints/*.safetensors", "log.jsonl", "scores.json")
"""Files that a training writes after recipe.yaml; where one is alone, recipe.yaml was lost."""
RECORDED: Final = ("epoch", "step", "loss")
"""Keys of every line of the log."""
REMEMBERED = ("sixjars", "torch", "tokenizers", "lightning-fabric", "numpy")


@final
@dataclass(frozen=True)
class RunFolder:
    """A folder that holds a run."""

    folder: Path
    recipe: Recipe
    outside: AllowedCode = NOTHING

    @property
    def weights(self) -> Path:
        """The best weights (or the mean of the best)."""
        return self.folder / "model.safetensors"

    @property
    def is_under_way(self) -> bool:
        """Whether a state was saved that training can go on from."""
        return RunFiles(self.folder).last.is_file()

    def _kept(self, name: str) -> Path:
        return self.folder / "fields" / f"{name}.json"

    def has_fields(self, fields: Fields) -> bool:
        """Whether what the fields learned was kept already."""
        return all(self._kept(name).is_file() for name, field in fields.all.items() if field.learns)

    def restored(self, fields: Fields) -> Fields:
        """The fields with what they learned."""
        return fields.mapped(lambda field: self._restored(field) if field.learns else field)

    def _restored(self, field: Any) -> Any:
        path = self._kept(field.name)
        try:
            return field.restored(read_limited(path))
        except FileNotFoundError:
            lost = f"has no vocabulary (fields/{field.name}.json); it was damaged, or killed"
            raise RunError(f"{self.folder} {lost} at its start.") from None
        except (RunError, ValueError, OSError, RecursionError) as error:
            raise RunError(f"{path} is damaged: {str(error).rstrip('.')[:300]}.") from None

    def keep_fields(self, fields: Fields) -> None:
        """Write what the fields learned into the run."""
        for name, field in fields.all.items():
            if field.learns:
                write_whole(self._kept(name), field.to_json().encode())

    def network(
        self, blueprint: Blueprint, fields: Fields, backend: Backend = REFERENCE
    ) -> Network:
        """The trained network, computed by a backend."""
        if not self.weights.is_file():
            raise RunError(
                f"{self.folder} has no trained weights yet (model.safetensors); they come with the "
                f"first validation. Go on with: sixjars train {self.folder / 'recipe.yaml'} "
                f"--out {self.folder} --resume"
            )
        self.check_sizes(blueprint, fields)
        with Unfilled():  # all weights are those of the file
            network = build(blueprint.plan, fields.facts(), fresh=False, backend=backend)
        load_weights(network, self.weights)
        return network.eval()

    def loaded(
        self,
        device: torch.device,
        *,
        places: Sequence[Path] | None = None,
        reporter: Reporter | None = None,
    ) -> tuple[Blueprint, Fields, Network]:
        """The blueprint, the fields and the trained network, on a device."""
        blueprint = Blueprint.of(
            self.recipe, self.outside, device=device, places=places, reporter=reporter
        )
        self.check_backbones(blueprint.fingerprints)
        fields = self.restored(blueprint.fields)
        network = self.network(blueprint, fields, prediction_backend(device.type))
        return blueprint, fields, network.to(device)

    def check_sizes(self, blueprint: Blueprint, fields: Fields) -> None:
        """Refuse a recipe of other sizes than the weights, if there are any; allocate nothing."""
        with _sizes_that_fit(self.weights), torch.device("meta"), Unfilled():
            network = build(blueprint.plan, fields.facts(), fresh=False)
            if self.weights.is_file():
                check_shapes(network.state_dict(), self.weights)

    def check_data(self, fingerprints: Mapping[str, str]) -> None:
        """Refuse data that has changed since the run was begun: held-out rows may be learned."""
        from sixjars.runs.data.split_files import SPLITS

        before = self._remembered("data", "its data")
        changed = [name for name, number in fingerprints.items() if before.get(name) != number]
        if changed:
            raise RunError(
                f"the data of {self.folder} has changed since it was begun "
                f"(the {SPLITS[changed[0]]} set). Bring it back as it was, or begin a new run; "
                "`evaluate --data FILE` scores any other file."
            )

    def check_backbones(self, now: Mapping[str, str]) -> None:
        """Refuse a backbone with other weights than in training: its features would differ."""
        before = self._remembered("backbones", "its backbone") if now else {}
        for name, weights in now.items():
            if before.get(name) != weights:
                raise RunError(
                    f"the backbone of the {name} has other weights than when {self.folder} was "
                    "trained. Install the version that run.json names, or train anew."
                )

    def _remembered(self, fact: str, what: str) -> dict[str, str]:
        path = self.folder / "run.json"
        try:
            return dict(json.loads(read_limited(path))[fact])
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            raise RunError(f"{path} is missing or damaged, so {what} cannot be checked.") from None

    def write_scores(self, scores: Mapping[str, Any]) -> None:
        """Keep the final scores."""
        text = json.dumps(scores, indent=2, ensure_ascii=False) + "\n"
        write_whole(self.folder / "scores.json", text.encode())

    def history(self) -> list[dict[str, float]]:
        """One record for each validation, the first one first; none where the run has no log."""
        return history_of(self.folder)


def history_of(folder: Path) -> list[dict[str, float]]:
    """The validations in the log of a folder, the first one first; none without a log."""
    path = folder / "log.jsonl"
    try:
        lines = read_limited(path).split("\n")[:-1]  # what a kill left of a line is none
    except FileNotFoundError:
        return []
    except (OSError, ValueError) as error:
        raise RunError(f"{path} cannot be read: {error}.") from None
    return [_record(line, f"{path}, line {number}") for number, line in enumerate(lines, 1)]


def best_of(
    records: Sequence[dict[str, float]], metric: str, *, better: Literal["higher", "lower"]
) -> dict[str, float]:
    """The best validation, as training keeps it."""
    return best_first(records, metric, better=better)[0]


def best_first(
    records: Sequence[dict[str, float]], metric: str, *, better: Literal["higher", "lower"]
) -> list[dict[str, float]]:
    """The validations as training ranks them: of equal scores the lower loss comes first.

    >>> records = [{"step": 1, "f": 1.0, "loss": 2.0}, {"step": 2, "f": 1.0, "loss": 1.0}]
    >>> best_first(records, "f", better="higher")[0]
    {'step': 2, 'f': 1.0, 'loss': 1.0}
    """
    sign = 1.0 if better == "lower" else -1.0
    return sorted(records, key=lambda record: (sign * record[metric], record["loss"]))


def first_score(records: Sequence[dict[str, float]]) -> str | None:
    """The first metric besides the losses, where there is one."""
    others = {*RECORDED, "rate", "train_loss"}
    for name in records[0]:
        if name not in others and all(name in record for record in records):
            return name
    return None


def _record(line: str, where: str) -> dict[str, float]:
    """The validation of a line of the log, which somebody may have changed."""
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        raise RunError(f"{where} is damaged: it is no JSON.") from None
    if not isinstance(record, dict) or not all(
        type(value) in (int, float) for value in record.values()
    ):
        raise RunError(f"{where} is damaged: it must be numbers by name, but is {shown(record)}.")
    if lacks := [name for name in RECORDED if not math.isfinite(record.get(name, math.nan))]:
        raise RunError(f"{where} is damaged: {lacks[0]} is missing, or no finite number.")
    return record


@contextmanager
def _sizes_that_fit(path: Path) -> Iterator[None]:
    """Make a sentence of whatever torch raises for sizes that no machine can have."""
    try:
        yield
    except SixJarsError:
        raise
    except Exception as error:
        reason = str(error).splitlines()[0][:200] if str(error) else type(error).__name__
        raise RunError(
            f"the recipe beside {path} asks for sizes that cannot be built: {reason}."
        ) from error


def open_run(folder: str | os.PathLike[str], outside: AllowedCode = NOTHING) -> RunFolder:
    """A run that exists: a folder, or the one file of a packed run."""
    if not isinstance(folder, str | os.PathLike):
        raise RunError(f"a run is given by its folder or its file, but this is {shown(folder)}.")
    folder = Path(folder)
    if not folder.is_dir() and is_packed(folder):
        return open_run(unpacked(folder), outside)
    if not folder.exists():
        raise RunError(f"run folder {folder} does not exist.")
    recipe = folder / "recipe.yaml"
    if not recipe.is_file():
        raise RunError(f"{folder} is not a run folder: it has no recipe.yaml.")
    _check_format(folder)
    values = values_of(read_text(recipe), str(recipe))
    return RunFolder(folder, recipe_of(values, str(recipe), outside, kept=True), outside)


def _check_format(folder: Path) -> None:
    """Refuse what another version of this toolkit wrote in another form."""
    try:
        version = json.loads(read_limited(folder / "run.json")).get("format", 1)
    except (OSError, ValueError, AttributeError, RecursionError, RunError):
        return  # whoever needs what is in it will say so
    if version != FORMAT:
        newer = isinstance(version, int) and version > FORMAT
        remedy = "Train it anew, or use the version that run.json names"
        remedy = "Upgrade sixjars" if newer else remedy
        has = f"has format {str(version)[:20]}, but this version of sixjars reads {FORMAT}"
        raise RunError(f"{folder} {has}. {remedy}.")


def check_free(folder: Path) -> None:
    """Refuse a folder that a new run would spoil."""
    if folder.exists() and not folder.is_dir():
        raise RunError(f"{folder} is a file, not a folder for a run.")
    if (folder / "recipe.yaml").exists():
        remedy = "Go on with --resume, or choose another folder with --out."
        raise RunError(f"{folder} already holds a run. {remedy}")
    left = [str(path.relative_to(folder)) for name in LEFT for path in sorted(folder.glob(name))]
    if left:
        raise RunError(
            f"{folder} holds {left[0]} of a run, but no recipe.yaml, so it is neither resumed nor "
            "overwritten. Bring recipe.yaml back, or choose another folder with --out."
        )


def has_run(folder: Path) -> bool:
    """Whether a run was begun in a folder."""
    return (folder / "recipe.yaml").is_file()


def was_begun(folder: Path) -> bool:
    """Whether something there can be resumed: a run, or the first fold of a cross-validation."""
    return has_run(folder) or has_run(folder / "folds" / "1")


def noted(folder: Path, fact: str) -> Any:
    """A fact that a run notes about itself; None where that is missing or damaged."""
    try:
        return json.loads(read_limited(folder / "run.json")).get(fact)
    except (OSError, ValueError, AttributeError, RecursionError, RunError):
        return None


def begin_run(
    run: RunFolder,
    fingerprints: Mapping[str, str],
    backbones: Mapping[str, str],
    origin: Mapping[str, str] | None = None,
) -> None:
    """Begin a run in a folder that holds none; `origin` is where its first weights come from."""
    check_free(run.folder)
    facts = {
        "format": FORMAT,
        "seed": run.recipe.learning.seed,
        "data": dict(fingerprints),
        "backbones": dict(backbones),
        "python": platform.python_version(),
        "versions": {name: version_of(name) for name in REMEMBERED},
        **({} if origin is None else {"from": dict(origin)}),
    }
    write_whole(run.folder / "run.json", (json.dumps(facts, indent=2) + "\n").encode())
    # Last: from now on it is a run.
    write_whole(run.folder / "recipe.yaml", run.recipe.to_yaml().encode())
