"""Going on with a run: where it was stopped, or beyond the end that it had."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, final

from sixjars.learning.checkpoints import write_whole
from sixjars.recipe.files import flat
from sixjars.recipe.sections import Recipe
from sixjars.runs.folder import RunFolder, noted, resume_run

MAY_CHANGE: Final = (
    "evaluation",
    "learning.epochs",
    "learning.patience",
    "learning.save_seconds",
    "learning.steps",
)
"""Keys that say when training ends or how it is scored; what was learned so far does not depend on them."""


@final
@dataclass(frozen=True)
class Extension:
    """How the recipe of a run differs from the one in its folder."""

    moved: bool = False
    """Whether the end was ever put elsewhere than where it was when the run was begun."""
    changes: Mapping[str, tuple[Any, Any]] = field(default_factory=dict)
    """What was and what is, by key."""

    def keep(self, folder: Path, recipe: Recipe) -> None:
        """Note the changes in the folder, if there are any; a kill leaves a run that can be gone on with."""
        if self.changes:
            facts = json.loads((folder / "run.json").read_text(encoding="utf-8"))
            before = {key: was for key, (was, _) in self.changes.items()}
            facts["extended"] = [*facts.get("extended", []), before]
            write_whole(folder / "run.json", (json.dumps(facts, indent=2) + "\n").encode())
            write_whole(folder / "recipe.yaml", recipe.to_yaml().encode())

    def sentence(self, folder: Path) -> str:
        """For a person: what changes, or nothing."""
        told = [f"{key} was {was} and is {now}" for key, (was, now) in self.changes.items()]
        return f"{folder} goes on with changes: {'; '.join(told)}." if told else ""


def extension_of(run: RunFolder) -> Extension:
    """What changes in a run that goes on; one that was begun with another recipe is refused."""
    kept = resume_run(run.folder, run.recipe, run.outside, may_change=MAY_CHANGE)
    was, now = (flat(each.recipe.model_dump(mode="json")) for each in (kept, run))
    changes = {key: (value, now.get(key)) for key, value in was.items() if now.get(key) != value}
    return Extension(bool(changes) or noted(run.folder, "extended") is not None, changes)
