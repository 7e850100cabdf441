"""For tests of learning, serving and the command line: trained runs, and other processes."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, final

import pytest
import yaml

import sixjars
from sixjars.data.tables import rows
from sixjars.data.text import files as text_files
from sixjars.progress import Reporter
from tests.conftest import Call as Call
from tests.conftest import Said as Said
from tests.conftest import once
from tests.unit.browser import Browser

TINY: dict[str, Any] = {
    "task": "transliteration",
    "data": {
        "sample": {"size": 64, "valid": 8, "test": 8},
        "source": {"tokens": "characters"},
        "target": {"tokens": "characters"},
    },
    "model": {
        "encoder": {"size": 8, "embedding": {"size": 6}},
        "bridge": {"kind": "attention", "size": 8},
        "decoder": {"size": 8, "embedding": {"size": 6}},
    },
    "learning": {"epochs": 2, "batch_examples": 16},
    "evaluation": {"search": {"max_length": 12}, "metrics": ["character_error_rate"]},
}

# Starts a process as a fork of one that has this toolkit imported, and can be killed: see warm.py.
SERVER = """
import atexit, json, os, signal, sys, traceback
import lightning_fabric
import sixjars.cli.show, sixjars.progress, sixjars.runs.prediction.predictor, sixjars.runs.evaluate
from sixjars.cli import main
from sixjars.progress import Reporter
from sixjars.runs import train

train.draw_curves = lambda run: None  # as in tests/conftest.py
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job is born deaf to it
for line in sys.stdin:
    order = json.loads(line)
    if "wait" in order:
        print(os.waitstatus_to_exitcode(os.waitpid(order["wait"], 0)[1]), flush=True)
        continue
    number = os.fork()
    if number == 0:
        break
    print(number, flush=True)
else:
    sys.exit(0)
for number, (path, mode) in enumerate([(os.devnull, os.O_RDONLY), (order["out"], 65), (order["err"], 65)]):
    os.dup2(os.open(path, mode, 0o644), number)
sys.stdin = open(0)
os.environ.update(order["env"])
sys.argv = [order["program"], *order["arguments"]]
exec(order["before"])
code = 1
try:
    main()
except SystemExit as ended:
    code = ended.code
except BaseException:
    traceback.print_exc()
atexit._run_exitfuncs()
sys.stdout.flush()
sys.stderr.flush()
os._exit(code)  # to free all that was forked would take a second
"""


Recipe = Callable[..., str]


@dataclass(frozen=True)
class Process:
    """A process that the server started."""

    number: int
    server: "Server"
    out: Path
    err: Path

    def kill(self, sort: signal.Signals) -> None:
        """Send a signal."""
        os.kill(self.number, sort)

    def wait(self) -> Said:
        """Until it ends."""
        code = int(self.server.ask({"wait": self.number}))
        return Said(code, self.out.read_text(), self.err.read_text())


class Server:
    """`sixjars` in processes of their own, quickly."""

    def __init__(self, folder: Path, python: str) -> None:
        self.folder = folder
        self.count = 0
        self.process = subprocess.Popen(
            [python, "-c", SERVER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def ask(self, order: dict[str, Any]) -> str:
        """Send one line, get one."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(order) + "\n")
        self.process.stdin.flush()
        return self.process.stdout.readline()

    def start(
        self, *arguments: object, before: str = "", env: dict[str, str] | None = None
    ) -> Process:
        """A process; `before` is code that it runs first, to break something."""
        self.count += 1
        out, err = (self.folder / f"{self.count}.{name}" for name in ("out", "err"))
        order = {
            "arguments": [str(argument) for argument in arguments],
            "program": str(Path(sys.executable).with_name("sixjars")),
            "before": before,
            "env": {"SIXJARS_CACHE": os.environ["SIXJARS_CACHE"], **(env or {})},
            "out": str(out),
            "err": str(err),
        }
        return Process(int(self.ask(order)), self, out, err)

    def run(self, *arguments: object, before: str = "") -> Said:
        """Start and wait."""
        return self.start(*arguments, before=before).wait()


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory, warm_python: str) -> Iterator[Server]:
    """One for all tests."""
    found = Server(tmp_path_factory.mktemp("processes"), warm_python)
    yield found
    assert found.process.stdin is not None
    assert found.process.stdout is not None
    found.process.stdin.close()
    found.process.wait()
    found.process.stdout.close()


def free_port() -> str:
    """A port that nobody listens on."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return str(found.getsockname()[1])


@pytest.fixture
def two(server: Server) -> Callable[..., list[Process]]:
    """Starts two processes of one training; `before` is code that each runs first."""

    def start(*arguments: object, before: tuple[str, str] = ("", "")) -> list[Process]:
        env = {
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": free_port(),
            "NODE_RANK": "0",
            "WORLD_SIZE": "2",
        }
        return [
            server.start(
                "train",
                *arguments,
                "--devices",
                2,
                before=code,
                env={**env, "LOCAL_RANK": str(rank)},
            )
            for rank, code in enumerate(before)
        ]

    return start


def merged(values: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    """Values with some changed, deep inside too; a change to `...` takes a key out."""
    result = dict(values)
    for key, change in changes.items():
        both = isinstance(change, dict) and isinstance(result.get(key), dict)
        result[key] = merged(result[key], change) if both else change
    return {key: value for key, value in result.items() if value is not ...}


def write_recipe(folder: Path, changes: dict[str, Any], name: str = "recipe.yaml") -> str:
    """The tiny recipe with changes, as a file."""
    path = folder / name
    path.write_text(yaml.safe_dump(merged(TINY, changes)))
    return str(path)


@pytest.fixture
def recipe(tmp_path: Path) -> Recipe:
    """The path of the tiny recipe with changes: `recipe(learning={"epochs": 1})`."""

    def make(name: str = "recipe.yaml", **changes: Any) -> str:
        return write_recipe(tmp_path, changes, name)

    return make


@pytest.fixture(scope="session")
def run_recipe(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The recipe of `run`."""
    changes = {"learning": {"epochs": 25, "rate": 0.03}}
    return write_recipe(tmp_path_factory.mktemp("recipe"), changes)


@pytest.fixture(scope="session")
def run(run_recipe: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A trained transliteration run. Tests read it, and copy it if they want to break it."""
    return once(tmp_path_factory, "run", lambda out: sixjars.train(run_recipe, out=out))


@pytest.fixture
def copy(run: Path, tmp_path: Path) -> Path:
    """That run, to break."""
    shutil.copytree(run, tmp_path / "copy")
    return tmp_path / "copy"


def contents(folder: Path) -> dict[str, bytes]:
    """Every file of a run, hidden ones included."""
    files = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def wait_for(path: Path) -> None:
    """Until another process has written a file."""
    end = time.monotonic() + 60
    while not path.exists():
        assert time.monotonic() < end, f"{path} never came"
        time.sleep(0.005)


def one_for_each_task(
    factory: pytest.TempPathFactory, written: Callable[[Path, str], object]
) -> Callable[[str], Path]:
    """A run of each task, made when it is first asked for; `written` writes its recipe."""

    @lru_cache
    def find(task: str) -> Path:
        folder = factory.mktemp(task)
        return sixjars.train(str(written(folder, task)), out=folder / "run").folder

    return find


@pytest.fixture(scope="session")
def exported(run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tiny transliteration run, exported."""

    return once(tmp_path_factory, "exported", lambda out: sixjars.export(run, out))


@pytest.fixture(scope="session")
def language_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A trained language model."""
    folder = tmp_path_factory.mktemp("language_model")
    model = {"encoder": {"size": ..., "embedding": ...}, "bridge": {"kind": "initial", "size": ...}}
    changes = {
        "task": "language_model",
        "data": {"source": ..., "target": {"tokens": "words"}},
        "model": model,
        "evaluation": {"metrics": ["perplexity"]},
    }
    recipe = write_recipe(folder, changes)
    return once(tmp_path_factory, "language_model_run", lambda out: sixjars.train(recipe, out=out))


@pytest.fixture(scope="session")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """One browser for all tests; whoever opens a page closes the one before."""
    with Browser(tmp_path_factory.mktemp("chromium")) as made:
        yield made


@pytest.fixture
def pairs(tmp_path: Path) -> Callable[..., Path]:
    """A file of 12 pairs, `en` and `de`; further lines may follow."""

    def make(
        name: str = "pairs.tsv", *, more: Sequence[bytes] = (), header: bytes = b"en\tde"
    ) -> Path:
        rows = [f"word{n % 4} and more\twort{n % 3} und mehr".encode() for n in range(12)]
        path = tmp_path / name
        path.write_bytes(b"\n".join([header, *rows, *more]) + b"\n")
        return path

    return make


def recipe_from_file(folder: Path, path: Path, changes: dict[str, Any]) -> str:
    """The tiny recipe with changes, for a file with columns `en` and `de`."""
    data = {
        "sample": ...,
        "train": str(path),
        "valid": 0.25,
        "source": {"tokens": "words", "column": "en"},
        "target": {"tokens": "words", "column": "de"},
    }
    both = merged({"task": "translation", "data": data}, changes)
    both["data"]["sample"] = ...
    return write_recipe(folder, both, "from_file.yaml")


@pytest.fixture
def from_file(tmp_path: Path) -> Callable[..., str]:
    """A recipe that reads a file with columns `en` and `de`."""

    def make(path: Path, **changes: Any) -> str:
        return recipe_from_file(tmp_path, path, changes)

    return make


@final
class Tired(Reporter):
    """A reporter that presses Ctrl-C after some updates."""

    def __init__(self, after: int) -> None:
        self.after = after

    def stepped(self, *, step: int, loss: float, tokens_per_second: float) -> None:
        self.after -= 1
        if self.after == 0:
            signal.raise_signal(signal.SIGINT)


@pytest.fixture
def tired() -> Callable[[int], Reporter]:
    """Whoever stops a training after so many updates: `tired(2)`."""
    return Tired


@pytest.fixture
def heeds_ctrl_c() -> Iterator[None]:
    """Ctrl-C interrupts, though the tests may run as a background job, born deaf to it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture(params=[2, 1 << 14], ids=["a few at once", "all at once"])
def block(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files are read so many rows, or about so many bytes, at once."""
    monkeypatch.setattr(rows, "AT_ONCE", request.param)
    monkeypatch.setattr(text_files, "FIRST", request.param)
    monkeypatch.setattr(text_files, "BLOCK", request.param)
