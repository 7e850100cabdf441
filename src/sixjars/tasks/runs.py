"""A run's folder: the resolved recipe, the vocabularies, the weights, the log, the scores, the seed and the versions.

    recipe.yaml  tokens/*.json  run.json  model.safetensors  log.jsonl  scores.json  checkpoints/

Enough to repeat the run, and to load it anywhere. Nothing in it is code, and loading it runs none.
"""

import json
import platform
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, final

from sixjars.data.cuts import Kept
from sixjars.data.labels import Labels
from sixjars.data.points import Places
from sixjars.data.text import Tokens
from sixjars.errors import RunError
from sixjars.learning.checkpoints import load_weights, write_whole
from sixjars.model.network import Network
from sixjars.recipe import Recipe
from sixjars.recipe.fields import LabelSettings, OrderSettings, TextSettings
from sixjars.recipe.reading import read_text, values_of
from sixjars.tasks.corpus import facts_of, seeing_of
from sixjars.tasks.fields import written_fields
from sixjars.tasks.parts import network_of
from sixjars.tasks.reading import recipe_of

KINDS: dict[type, type[Kept]] = {TextSettings: Tokens, LabelSettings: Labels, OrderSettings: Places}
"""What is kept of each kind of field."""
REMEMBERED = ("sixjars", "torch", "tokenizers", "lightning-fabric", "numpy")


@final
@dataclass(frozen=True)
class Run:
    """A folder that holds a run."""

    folder: Path
    recipe: Recipe

    @property
    def weights(self) -> Path:
        """The best weights (or the mean of the best)."""
        return self.folder / "model.safetensors"

    @property
    def has_tokens(self) -> bool:
        """Whether the vocabularies were kept already."""
        return all((self.folder / "tokens" / f"{name}.json").is_file() for name in written_fields(self.recipe))

    def tokens(self) -> dict[str, Kept]:
        """The vocabularies and the list of labels, as they were learned."""
        found: dict[str, Kept] = {}
        for name, settings in written_fields(self.recipe).items():
            path = self.folder / "tokens" / f"{name}.json"
            kind = KINDS[type(settings)]
            try:
                found[name] = kind.from_json(path.read_text(encoding="utf-8"))
            except FileNotFoundError:
                raise RunError(
                    f"{self.folder} has no vocabulary (tokens/{name}.json); it was damaged, or killed at its start."
                ) from None
            except (RunError, ValueError, OSError) as error:
                raise RunError(f"{path} is damaged: {str(error).rstrip('.')}.") from None
        return found

    def network(self, tokens: Mapping[str, Kept]) -> Network:
        """The trained network."""
        if not self.weights.is_file():
            raise RunError(
                f"{self.folder} has no trained weights yet (model.safetensors); they come with the first validation. "
                f"Go on with: sixjars train {self.folder / 'recipe.yaml'} --out {self.folder} --resume"
            )
        network = network_of(self.recipe.model, facts_of(self.recipe, tokens))
        load_weights(network, self.weights)
        return network.eval()

    def check_data(self, fingerprints: Mapping[str, str]) -> None:
        """Refuse data that is not what the run was begun with: it would mix what was learned with what is held out."""
        before = self._remembered("data", "its data")
        changed = [name for name, number in fingerprints.items() if before.get(name) != number]
        if changed:
            raise RunError(
                f"the data of {self.folder} has changed since it was begun (the {changed[0]} part). Bring it back as "
                "it was, or begin a new run; `evaluate --data FILE` scores any other file."
            )

    def check_backbones(self) -> None:
        """Refuse a backbone whose weights are not those that the run was trained with: it would see other things."""
        now = backbones_of(self.recipe)
        before = self._remembered("backbones", "its backbone") if now else {}
        for name, weights in now.items():
            if before.get(name) != weights:
                raise RunError(
                    f"the backbone that sees the {name} has other weights than when {self.folder} was trained. Install "
                    "the version that run.json names, or train anew."
                )

    def _remembered(self, fact: str, what: str) -> dict[str, str]:
        try:
            found: dict[str, str] = dict(json.loads((self.folder / "run.json").read_text(encoding="utf-8"))[fact])
        except (OSError, ValueError, KeyError, TypeError):
            raise RunError(f"{self.folder / 'run.json'} is missing or damaged, so {what} cannot be checked.") from None
        return found

    def write_scores(self, scores: Mapping[str, Any]) -> None:
        """Keep the final scores."""
        write_whole(self.folder / "scores.json", (json.dumps(scores, indent=2, ensure_ascii=False) + "\n").encode())


def open_run(folder: Path) -> Run:
    """A run that exists."""
    if not folder.exists():
        raise RunError(f"run folder {folder} does not exist.")
    if not (folder / "recipe.yaml").is_file():
        raise RunError(f"{folder} is not a run folder: it has no recipe.yaml.")
    where = str(folder / "recipe.yaml")
    return Run(folder, recipe_of(values_of(read_text(folder / "recipe.yaml"), where), where))


def check_free(folder: Path) -> None:
    """Refuse a folder that a new run would spoil."""
    if folder.exists() and not folder.is_dir():
        raise RunError(f"{folder} is a file, not a folder for a run.")
    if (folder / "recipe.yaml").exists():
        raise RunError(f"{folder} already holds a run. Go on with --resume, or choose another folder with --out.")


def begin_run(folder: Path, recipe: Recipe, fingerprints: Mapping[str, str]) -> Run:
    """A new run in a folder that holds none."""
    check_free(folder)
    kept = {name: _version(name) for name in REMEMBERED}
    facts = {
        "seed": recipe.learning.seed,
        "data": dict(fingerprints),
        "backbones": backbones_of(recipe),
        "python": platform.python_version(),
        "versions": kept,
    }
    write_whole(folder / "run.json", (json.dumps(facts, indent=2) + "\n").encode())
    write_whole(folder / "recipe.yaml", recipe.to_yaml().encode())  # last: from now on it is a run
    return Run(folder, recipe)


def backbones_of(recipe: Recipe) -> dict[str, str]:
    """A number for the weights of each backbone that does not learn, by the field that it sees."""
    found = {name: seeing.weights for name, seeing in seeing_of(recipe).items()}
    return {name: weights for name, weights in found.items() if weights is not None}


def _version(package: str) -> str:
    """As installed; a library may also come inside another package (lightning-fabric inside lightning)."""
    try:
        return version(package)
    except PackageNotFoundError:
        return "of another package"


def resume_run(folder: Path, recipe: Recipe) -> Run:
    """A run to go on with: its recipe must be the one it was begun with."""
    if not (folder / "recipe.yaml").is_file():
        raise RunError(f"there is no run in {folder} to resume. Leave out --resume to begin one.")
    run = open_run(folder)
    before, now = run.recipe.model_dump(mode="json"), recipe.model_dump(mode="json")
    changed = [
        f"{key} was {was!r} and is {flat_now!r}"
        for key, was in flat(before).items()
        if (flat_now := flat(now).get(key)) != was
    ] or [f"{key} is new" for key in flat(now) if key not in flat(before)]
    if changed:
        raise RunError(f"{folder} was begun with another recipe: {'; '.join(changed[:3])}. Resume with the same one.")
    return run


def flat(values: Mapping[str, Any], above: str = "") -> dict[str, Any]:
    """Nested keys with dots between them.

    >>> flat({"learning": {"rate": 0.1}, "task": "dialog"})
    {'learning.rate': 0.1, 'task': 'dialog'}
    """
    result: dict[str, Any] = {}
    for key, value in values.items():
        name = f"{above}{key}"
        result |= flat(value, f"{name}.") if isinstance(value, Mapping) and value else {name: value}
    return result


def keep_tokens(run: Run, tokens: Mapping[str, Kept]) -> None:
    """Write the vocabularies into the run."""
    for name, kept in tokens.items():
        write_whole(run.folder / "tokens" / f"{name}.json", kept.to_json().encode())
