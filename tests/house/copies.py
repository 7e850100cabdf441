"""A copy of the package and its contracts, in which the steps of a page are performed."""

import json
import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
RUNTIME = ROOT / "runtime" / "src"
CALLS = """
import contextlib, io, json, sys
from sixjars.cli import main
found = []
for words in json.loads(sys.argv[1]):
    sys.argv = ["sixjars", *words]
    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(io.StringIO()) as err:
        try:
            code = main() or 0
        except SystemExit as end:
            code = end.code or 0
    found.append([code, out.getvalue(), err.getvalue()])
print(json.dumps(found))
"""
"""Several commands in one process: the exit code of each, what it prints and what it tells."""


def blocks(text: str, language: str) -> list[str]:
    """The fenced blocks of a page in one language."""
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Folder:
    """A folder to work in, with the package from `source` and what it stands on."""

    folder: Path
    source: Path
    python: str

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        """What Python does here with some words."""
        own = {
            "PYTHONPATH": os.pathsep.join(map(str, (self.source, RUNTIME))),
            "SIXJARS_CACHE": str(self.folder / "cache"),
            "COLUMNS": "120",
        }
        surroundings = {**os.environ, **own}
        command = [self.python, *words]
        return subprocess.run(
            command, cwd=self.folder, env=surroundings, capture_output=True, text=True, check=False
        )

    def call(self, *commands: Sequence[str]) -> list[tuple[int, str, str]]:
        """The exit code of each command, what it prints and what it tells; all in one process."""
        done = self.run("-c", CALLS, json.dumps(commands))
        assert done.returncode == 0, done.stderr
        return [(code, out, err) for code, out, err in json.loads(done.stdout)]

    def write(self, name: str, text: str) -> None:
        """A file."""
        (self.folder / name).write_text(text, encoding="utf-8")

    def insert(self, name: str, block: str, table: str) -> None:
        """Put the imports of a block behind the last import of a module, and its entry first into a table."""
        lines = (self.folder / name).read_text(encoding="utf-8").splitlines()
        imports = [line for line in block.splitlines() if line.startswith("from ")]
        entry = [line for line in block.splitlines() if line.startswith("    ")]
        [opened] = [at for at, line in enumerate(lines) if line.startswith(f"{table}: ")]
        lines[opened + 1 : opened + 1] = entry
        last = max(at for at, line in enumerate(lines) if line.startswith("from sixjars."))
        self.write(name, "\n".join([*lines[: last + 1], *imports, *lines[last + 1 :]]) + "\n")


def copied(folder: Path, python: str) -> Folder:
    """The package, its contracts and how they are tested."""
    # compiled files stay valid, for times are copied too
    ignored = shutil.ignore_patterns("*.egg-info", "*.pyc.*")
    shutil.copytree(ROOT / "src", folder / "src", ignore=ignored)
    shutil.copytree(ROOT / "tests" / "contracts", folder / "tests" / "contracts", ignore=ignored)
    for name in ("conftest.py", "pyproject.toml"):
        shutil.copy(ROOT / name, folder / name)
    return Folder(folder, folder / "src", python)
