"""The page about a new kind of field keeps its word: its steps are performed in a copy, and from a package outside."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "add_a_field.md").read_text(encoding="utf-8")
FEW = ["learning.steps=2", "learning.batch_examples=8"]


def blocks(language: str) -> list[str]:
    """The fenced blocks of the page in one language."""
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


MODULE, LINE, CASE, DATA = blocks("python")
RECIPE, OWN_LINE = blocks("yaml")
SHELL = "".join(blocks("sh")).splitlines()
COMMANDS = [shlex.split(line)[1:] for line in SHELL if line.startswith("sixjars ")]
CALLS = """
import contextlib, io, json, sys
from sixjars.cli import main
found = []
for words in json.loads(sys.argv[1]):
    sys.argv = ["sixjars", *words]
    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(io.StringIO()) as err:
        with contextlib.suppress(SystemExit):
            main()
    found.append([out.getvalue(), err.getvalue()])
print(json.dumps(found))
"""


def inserted(path: Path, block: str, table: str) -> None:
    """Put the import of a block behind the last import of a module, and its entry first into a table."""
    lines = path.read_text(encoding="utf-8").splitlines()
    imports = [line for line in block.splitlines() if line.startswith("from ")]
    entry = [line for line in block.splitlines() if line.startswith("    ")]
    [opened] = [at for at, line in enumerate(lines) if line.startswith(f"{table}: ")]
    lines[opened + 1 : opened + 1] = entry
    last = max(at for at, line in enumerate(lines) if line.startswith("from sixjars."))
    path.write_text("\n".join([*lines[: last + 1], *imports, *lines[last + 1 :]]) + "\n", encoding="utf-8")


def ran(folder: Path, source: Path, *words: str) -> str:
    """What Python prints in a folder, with the package from `source`."""
    own = {"PYTHONPATH": str(source), "SIXJARS_CACHE": str(folder / "cache"), "COLUMNS": "120"}
    surroundings = {**os.environ, **own}
    command = [sys.executable, *words]
    done = subprocess.run(command, cwd=folder, env=surroundings, capture_output=True, text=True, check=False)
    return done.stdout or done.stderr


def called(folder: Path, source: Path, *commands: list[str]) -> list[tuple[str, str]]:
    """What commands print and what they tell, all in one process."""
    found = ran(folder, source, "-c", CALLS, json.dumps(commands))
    assert found.startswith("["), found
    return [(out, err) for out, err in json.loads(found)]


def with_data(folder: Path, recipe: str, name: str) -> None:
    """The file and the recipe that the page trains with."""
    (folder / name).write_text(recipe, encoding="utf-8")
    subprocess.run([sys.executable, "-c", DATA], cwd=folder, check=True)


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the package and its contracts, in which the first two steps were performed."""
    copy = tmp_path_factory.mktemp("house")
    ignored = shutil.ignore_patterns("__pycache__", "*.egg-info")
    shutil.copytree(ROOT / "src", copy / "src", ignore=ignored)
    shutil.copytree(ROOT / "tests" / "contracts", copy / "tests" / "contracts", ignore=ignored)
    for name in ("conftest.py", "pyproject.toml"):
        shutil.copy(ROOT / name, copy / name)
    fields = copy / "src" / "sixjars" / "data" / "fields"
    (fields / "dna.py").write_text(MODULE, encoding="utf-8")
    inserted(fields / "__init__.py", LINE, "FIELDS")
    with_data(copy, RECIPE, "dna.yaml")
    return copy


def test_the_page_trains_and_tells_of_bad_rows(house: Path) -> None:
    train, explain, predict, *_ = COMMANDS
    [told] = re.findall(r"`(dna\.tsv, line 7: .*?)`", PAGE.replace("\n", " "))
    lines = (house / "dna.tsv").read_text(encoding="utf-8").splitlines()
    (house / "bad").mkdir()
    (house / "bad" / "dna.tsv").write_text("\n".join([*lines[:6], "ACX\trich", *lines[6:]]), encoding="utf-8")
    bad = ["train", "dna.yaml", "data.folder=bad", "--out", "runs/bad", *FEW]
    trained, explained, found, refused, skipped = called(
        house, house / "src", [*train, *FEW], explain, predict, bad, [*bad, "data.on_bad_row=skip"]
    )
    assert "accuracy@1" in trained[0], trained
    assert "x, the source: DNA, written with ACGT" in explained[0], explained
    assert '"source": ["G", "G", "C", "A", "T", "G", "C", "C"]' in found[0], found
    assert refused[1].strip().endswith(told), refused
    assert "accuracy@1" in skipped[0], skipped


def test_the_page_keeps_the_contract(house: Path) -> None:
    """Without the case one test fails and says why; with it all pass; a field that does not check is caught."""
    contracts = ("-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/contracts/test_fields.py")
    file = "src/sixjars/data/fields/dna.py"
    [cases] = re.findall(r"^In `(tests/\S+)`, to the table `CASES`", PAGE, re.MULTILINE)
    without = ran(house, house / "src", *contracts, "-k", "every_kind_of_field_has_a_case")
    assert "1 failed" in without, without
    assert "DnaField" in without
    inserted(house / cases, CASE, "CASES")
    kept = ran(house, house / "src", *contracts, file, "-k", "dna or every_kind_of_field_has_a_case")
    assert re.search(r"^[2-9]\d passed", kept, re.MULTILINE), kept
    (house / file).write_text(MODULE.replace("if letter not in BASES:", "if False:"), encoding="utf-8")
    broken = ran(house, house / "src", *contracts, "-k", "dna and bad")
    (house / file).write_text(MODULE, encoding="utf-8")
    assert "2 failed" in broken, broken
    for words in (["check"], ["format", "--check"]):
        done = ran(house, house / "src", "-m", "ruff", *words, file)
        assert "passed" in done or "already formatted" in done, done


@pytest.mark.slow
def test_a_field_from_outside_needs_permission_and_nothing_else(tmp_path: Path) -> None:
    """The package as it is, and the same file in a package beside it."""
    (tmp_path / "my_lab").mkdir()
    (tmp_path / "my_lab" / "__init__.py").touch()
    (tmp_path / "my_lab" / "dna.py").write_text(MODULE, encoding="utf-8")
    own, count = re.subn(r"source: \{.*\}", OWN_LINE.strip(), RECIPE)
    assert count == 1
    with_data(tmp_path, own, "own.yaml")
    train, predict = ([word for word in words if word not in ("--allow", "my_lab")] for words in COMMANDS[-2:])
    needs = "my_lab.dna.DnaField is code from outside this toolkit. If you trust it, say --allow my_lab"
    [refused] = called(tmp_path, ROOT / "src", [*train, *FEW])
    assert needs in refused[1], refused
    assert not (tmp_path / "my_lab" / "__pycache__").exists()  # nothing of it was run
    trained, found, refused = called(tmp_path, ROOT / "src", [*COMMANDS[-2], *FEW], COMMANDS[-1], predict)
    assert "accuracy@1" in trained[0], trained
    assert found[0].split()[0] in ("rich", "poor"), found
    assert needs in refused[1], refused
    program = """
import sixjars
from my_lab.dna import DnaField
sixjars.train("own.yaml", ["learning.steps=1"], out="runs/again", components=[DnaField])
print(sixjars.load("runs/again", components=[DnaField]).predict(["GGCATGCC", "AXG"])[1].error)
"""
    told = "input 2: the source has a 'X' in it, but DNA is written with ACGT.\n"
    assert ran(tmp_path, ROOT / "src", "-c", program) == told
