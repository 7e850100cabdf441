"""For all tests: `sixjars` in this process, a quick Python, and trainings that draw nothing."""

import fcntl
import io
import os
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache, wraps
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import pytest

from tests.warm import Warm


@dataclass(frozen=True)
class Said:
    """What a command left."""

    code: int
    out: str
    err: str

    @property
    def complaints(self) -> list[str]:
        """What is no progress: no epoch, no fact before training, no note on few examples."""
        usual = r"epoch |[a-z]+ {2,}|note: the validation set has "
        return [line for line in self.err.splitlines() if not re.match(usual, line)]

    @property
    def sentence(self) -> str:
        """The one sentence of a command that failed."""
        assert self.code not in (0, None), self
        assert self.out == "", self
        lines = self.complaints
        assert len(lines) == 1, self
        assert lines[0].startswith("sixjars: "), self
        assert lines[0].endswith((".", "?", "--help")), self
        return lines[0].removeprefix("sixjars: ")


Call = Callable[..., Said]
BASELINES = (("train", "_baselines"), ("evaluate", "kept_baselines"))
"""Where baselines are scored beside a run."""


@pytest.fixture
def call(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Call:
    """`sixjars ARGUMENTS` in this process."""
    from sixjars.cli import main

    def run(*arguments: object, stdin: bytes | None = b"") -> Said:
        capfd.readouterr()
        monkeypatch.setattr(sys, "argv", ["sixjars", *map(str, arguments)])
        monkeypatch.setattr(
            sys, "stdin", None if stdin is None else io.TextIOWrapper(io.BytesIO(stdin))
        )
        with pytest.raises(SystemExit) as ended:
            main()
        out, err = capfd.readouterr()
        assert isinstance(ended.value.code, int)
        return Said(ended.value.code, out, err)

    return run


@pytest.fixture(scope="session")
def warm_python(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A program in place of `python`: a process that has the libraries imported already."""
    warm = Warm(tmp_path_factory.mktemp("warm"))
    yield warm.python
    warm.stop()


@pytest.fixture(scope="session", autouse=True)
def _quick_trainings() -> Iterator[None]:
    """Half of a training of two steps is its picture, the same data again, and the disk.

    And half of a command that is refused is to build the tree of all commands, the same each time.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from typer.main import get_command

    from sixjars.runs.training.learning_curves import draw_curves
    from sixjars.samples import generate
    from sixjars.starter import training_time as budget

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sixjars.runs.train.draw_curves", wraps(draw_curves)(lambda run: None))
        with_baselines()
        for place, name in BASELINES:  # which tests of them ask for
            patch.setattr(f"sixjars.runs.{place}.{name}", lambda *given, **more: ())
        patch.setattr(os, "fsync", lambda file: None)
        patch.setattr(FigureCanvasAgg, "print_png", barely_compressed(FigureCanvasAgg.print_png))
        patch.setattr("sixjars.samples.generate", lru_cache(50)(generate))
        patch.setattr("typer.main.get_command", lru_cache(get_command))
        patch.setattr(
            "sixjars.starter.training_time.measure_of", vars(budget)["budget_of"], raising=False
        )
        # it takes seconds
        patch.setattr("sixjars.starter.training_time.budget_of", lambda file: None)
        patch.setattr("lightning_fabric.utilities.registry.entry_points", lru_cache(entry_points))
        yield


def barely_compressed(write: Callable[..., None]) -> Callable[..., None]:
    """How matplotlib writes PNG, with the same pixels: for small files in a quarter of the time."""

    @wraps(write)
    def quick(canvas: Any, file: Any, *, metadata: Any = None, pil_kwargs: Any = None) -> None:
        write(
            canvas, file, metadata=metadata, pil_kwargs={"compress_level": 1, **(pil_kwargs or {})}
        )

    return quick


def once(factory: pytest.TempPathFactory, name: str, train: Callable[[Path], object]) -> Path:
    """The folder of a run that is trained once for all workers: whoever comes second waits."""
    own = factory.getbasetemp()
    shared = own.parent if "PYTEST_XDIST_WORKER" in os.environ else own
    with (shared / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (shared / name).exists():
            train(shared / f"{name}.new")
            (shared / f"{name}.new").rename(shared / name)
    return shared / name


@pytest.fixture(scope="session")
def learned(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run of the one whole training in the fast suite. Tests only read it."""
    import sixjars

    easy = [
        "data.sample.size=3000",
        "data.sample.longest=8",
        "learning.rate=8e-3",
        "evaluation.search.max_length=20",
    ]
    return once(
        tmp_path_factory,
        "learned",
        lambda out: sixjars.train("transliteration/sample_attention", easy, out=out),
    )


@pytest.fixture
def drawn_curves(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the picture of the learning curves."""
    from sixjars.runs.training.learning_curves import draw_curves

    monkeypatch.setattr("sixjars.runs.train.draw_curves", draw_curves)


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> None:
    """`new` says how long training will take."""
    from sixjars.starter import training_time as budget

    monkeypatch.setattr(budget, "budget_of", vars(budget)["measure_of"])


@lru_cache
def with_baselines() -> dict[tuple[str, str], Any]:
    """What scores the baselines, as it was before the tests began."""
    return {
        (place, name): getattr(import_module(f"sixjars.runs.{place}"), name)
        for place, name in BASELINES
    }


@pytest.fixture
def scored_baselines(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the baselines beside a run."""
    for (place, name), function in with_baselines().items():
        monkeypatch.setattr(f"sixjars.runs.{place}.{name}", function)


@pytest.fixture
def unrendered(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pictures are laid out, but the file is empty, where a test asks only whether it is there."""
    from matplotlib.figure import Figure

    monkeypatch.setattr(Figure, "savefig", lambda figure, path, **more: Path(path).touch())


@pytest.fixture
def quick_trials(monkeypatch: pytest.MonkeyPatch, warm_python: str) -> None:
    """Trials of `tune --jobs 2` are processes that need no start."""
    from sixjars.tuning import trial_process

    code = "import os; os.getppid = lambda: {parent}; from sixjars.tuning.trial_process import main; main()"
    monkeypatch.setattr(
        trial_process, "ONE_OF", [warm_python, "-c", code.format(parent=os.getpid())]
    )
