"""Going on with a run: from where it stopped, or beyond the end that its recipe said."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, final

from sixjars.learning.checkpoints import write_whole
from sixjars.learning.loop import Trainer
from sixjars.recipe.allowed_code import NOTHING, AllowedCode
from sixjars.recipe.files import flat
from sixjars.recipe.sections import Recipe
from sixjars.runs.folder.run_folder import RunFolder, has_run, noted, open_run
from sixjars_runtime.errors import RunError

MAY_CHANGE: Final = (
    "evaluation",
    "learning.epochs",
    "learning.patience",
    "learning.save_seconds",
    "learning.steps",
)
"""Keys of when training ends or how it is scored, on which what was learned does not depend."""
NOTHING_LEFT = (
    "nothing is left to train; raise learning.epochs, or learning.patience where it stopped early."
)


@final
@dataclass(frozen=True)
class Extension:
    """The differences of a run's recipe from the one in its folder."""

    moved: bool = False
    """Whether the end was ever put elsewhere than where it was when the run was begun."""
    changes: Mapping[str, tuple[Any, Any]] = field(default_factory=dict)
    """The old and the new value of each key."""

    def keep(self, folder: Path, recipe: Recipe) -> None:
        """Note the changes in the folder, if any; a kill leaves a run that can be resumed."""
        if self.changes:
            facts = json.loads((folder / "run.json").read_text(encoding="utf-8"))
            before = {key: was for key, (was, _) in self.changes.items()}
            facts["extended"] = [*facts.get("extended", []), before]
            write_whole(folder / "run.json", (json.dumps(facts, indent=2) + "\n").encode())
            write_whole(folder / "recipe.yaml", recipe.to_yaml().encode())

    def sentence(self, folder: Path) -> str:
        """A sentence about the changes, or nothing."""
        changes = [f"{key} was {was} and is {now}" for key, (was, now) in self.changes.items()]
        return f"{folder} goes on with changes: {'; '.join(changes)}." if changes else ""

    def take_up(self, trainer: Trainer, run: RunFolder) -> None:
        """Go on where the run was left; where its recipe has changed, the folder then says so."""
        begins = not run.is_under_way
        trainer.resume(extended=self.moved)
        note = trainer.hooks.reporter.note
        if begins:
            before = "was stopped before its first save"
            note(f"{run.folder} {before}, so training starts at its beginning.")
        state = trainer.state
        if state.finished and not self.changes and run.weights.is_file():
            ended = f"has ended already (at step {state.step:,} of {trainer.total:,})"
            note(f"the training of {run.folder} {ended}, so it is only scored again.")
        if trainer.leads and self.changes:
            note(self.sentence(run.folder))
            self.keep(run.folder, run.recipe)
            if state.finished:
                note(NOTHING_LEFT)
        if not begins and not state.finished:
            note(f"resumes at step {state.step:,} of {trainer.total:,}, epoch {state.epoch + 1}.")


def extension_of(run: RunFolder) -> Extension:
    """The changes of a run that goes on; one that was begun with another recipe is refused."""
    kept = resume_run(run.folder, run.recipe, run.outside, may_change=MAY_CHANGE)
    _check_state(run)
    changes = _changes(kept.recipe, run.recipe)
    return Extension(bool(changes) or noted(run.folder, "extended") is not None, changes)


def _changes(
    kept: Recipe, now: Recipe, may_change: Sequence[str] = ()
) -> dict[str, tuple[Any, Any]]:
    """The old and the new value of each key of the old recipe that differs, but must not."""
    before, after = (flat(recipe.model_dump(mode="json")) for recipe in (kept, now))
    changes = {key: (was, after.get(key)) for key, was in before.items() if after.get(key) != was}
    for part in may_change:
        for key in [key for key in changes if key == part or key.startswith(f"{part}.")]:
            del changes[key]
    return changes


def _check_state(run: RunFolder) -> None:
    """Refuse a run with weights, but no state to go on from: a new beginning overwrites them.

    A kill between the first weights and the first state is no such case: there are no scores, and
    at most one line in the log, which is written before the weights. The same weights are then made
    again.
    """
    if run.is_under_way or not run.weights.is_file():
        return
    log = run.folder / "log.jsonl"
    validations = len(log.read_bytes().splitlines()) if log.is_file() else None
    if validations in (0, 1) and not (run.folder / "scores.json").exists():
        return
    raise RunError(
        f"{run.folder} holds a trained model (model.safetensors), but no training state to resume "
        "from (checkpoints/last.safetensors). Choose another folder with --out; to fine-tune this "
        f"model, also say --from {run.folder}."
    )


def resume_run(
    folder: Path, recipe: Recipe, outside: AllowedCode = NOTHING, *, may_change: Sequence[str] = ()
) -> RunFolder:
    """A run to go on with; apart from the keys that may change, its recipe must be the same."""
    if not has_run(folder):
        raise RunError(f"there is no run in {folder} to resume. Leave out --resume to begin one.")
    run = open_run(folder, outside)
    changes = _changes(run.recipe, recipe, may_change)
    changed = [f"{key} was {was!r} and is {now!r}" for key, (was, now) in changes.items()]
    if not changed:
        changed = [f"{key} is new" for key in _changes(recipe, run.recipe, may_change)]
    if changed:
        raise RunError(
            f"{folder} was begun with another recipe: {'; '.join(changed[:3])}. "
            f"Resume with the same one; {kept_recipe(folder)}."
        )
    return run


def kept_recipe(folder: Path) -> str:
    """A hint for somebody who resumes a run and has left out overrides."""
    return f"{folder / 'recipe.yaml'} is what it was begun with, overrides included"
