"""The result of training: a folder with its scores, its history, and a predictor."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import final

from sixjars.evaluation.baselines.result import Baseline
from sixjars.evaluation.metrics import Score
from sixjars.kernels.backends import Device
from sixjars.learning.checkpoints import TrainingCost, read_cost
from sixjars.recipe.allowed_code import NOTHING, AllowedCode
from sixjars.runs.baselines.run_baselines import sentence_of
from sixjars.runs.folder.run_folder import history_of, open_run
from sixjars.runs.notebook import baseline_table, history_table, score_table
from sixjars.runs.prediction.predictor import Predictor
from sixjars.runs.training.trend import trend_of


@final
@dataclass(frozen=True)
class Run:
    """The result of a training.

    >>> Run(Path("runs/words"), (), 0, "", 0, 0, ()).history
    []
    """

    folder: Path
    scores: tuple[Score, ...]
    """Scores of the test set, or of the validation set where there is none."""
    examples: int
    """The number of examples that were scored."""
    where: str
    """The name of these examples."""
    skipped: int
    """Bad rows that were left out of the data."""
    dropped: int
    """Training rows that were not learned from: too long, or with a label not in the list."""
    missed: tuple[str, ...]
    """Sentences on scores that the recipe expected and did not get."""
    outside: AllowedCode = field(default=NOTHING, repr=False)
    """The components of yours that it was trained with."""
    why_dropped: str = ""
    """How many of the dropped rows were too long, and how many had a label not in the list."""
    baselines: tuple[Baseline, ...] = ()
    """Simple methods without a network, scored on the same rows."""

    @property
    def beside(self) -> str:
        """Compares the best baseline with this model, and says what to try if that is no better."""
        if not self.baselines:
            return ""
        run = open_run(self.folder, self.outside)
        return sentence_of(self.baselines, self.scores, run.recipe, trend_of(run))

    @property
    def history(self) -> list[dict[str, float]]:
        """A record for each validation, one an epoch unless the recipe differs: its scores."""
        return history_of(self.folder)

    @property
    def cost(self) -> TrainingCost | None:
        """The device and seconds of training, over all parts of the run; None for older runs."""
        return read_cost(self.folder)

    def __fspath__(self) -> str:
        """The folder: a run can be given to `load`, `evaluate`, `explain` and `pack`."""
        return str(self.folder)

    def predictor(self, *, device: Device = "auto") -> Predictor:
        """The trained model, ready to be used."""
        return Predictor(open_run(self.folder, self.outside), device=device)

    def _repr_html_(self) -> str:
        scores = score_table(self.scores, f"{self.folder}: {self.where}")
        return scores + baseline_table(self.baselines, self.beside) + history_table(self.history)
