"""The page about a new kind of field keeps its word: its steps are performed in a copy, and from a package outside."""

import re
import shlex
from pathlib import Path

import pytest
from tests.house.copies import ROOT, Folder, blocks, copied

from sixjars.data.bad_rows import LEAVE_ROWS_OUT

PAGE = (ROOT / "docs" / "add_a_field.md").read_text(encoding="utf-8")
FEW = ["learning.steps=2", "learning.batch_examples=8"]
MODULE, LINE, CASE, DATA = blocks(PAGE, "python")
RECIPE, OWN_LINE = blocks(PAGE, "yaml")
SHELL = "".join(blocks(PAGE, "sh")).splitlines()
COMMANDS = [shlex.split(line)[1:] for line in SHELL if line.startswith("sixjars ")]
DNA = "src/sixjars/data/fields/dna.py"


def with_data(folder: Folder, recipe: str, name: str) -> None:
    """The file and the recipe that the page trains with."""
    folder.write(name, recipe)
    assert folder.run("-c", DATA).returncode == 0


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory, warm_python: str) -> Folder:
    """A copy of the package and its contracts, in which the first two steps were performed."""
    copy = copied(tmp_path_factory.mktemp("house"), warm_python)
    copy.write(DNA, MODULE)
    copy.insert("src/sixjars/data/fields/__init__.py", LINE, "FIELDS")
    with_data(copy, RECIPE, "dna.yaml")
    return copy


def test_the_page_trains_and_tells_of_bad_rows(house: Folder) -> None:
    train, explain, predict, *_ = COMMANDS
    [told] = re.findall(r"`(dna\.tsv, line 7: .*?)`", PAGE.replace("\n", " "))
    lines = (house.folder / "dna.tsv").read_text(encoding="utf-8").splitlines()
    (house.folder / "bad").mkdir()
    house.write("bad/dna.tsv", "\n".join([*lines[:6], "ACX\trich", *lines[6:]]))
    bad = ["train", "dna.yaml", "data.folder=bad", "--out", "runs/bad", *FEW]
    trained, explained, found, refused, skipped = house.call(
        [*train, *FEW], explain, predict, bad, [*bad, "data.on_bad_row=skip"]
    )
    assert "accuracy@1" in trained[1], trained
    assert "x, the source: DNA, written with ACGT" in explained[1], explained
    assert '"source": ["G", "G", "C", "A", "T", "G", "C", "C"]' in found[1], found
    assert refused[2].strip().endswith(f"{told}{LEAVE_ROWS_OUT}"), refused
    assert "accuracy@1" in skipped[1], skipped


def test_the_page_keeps_the_contract(house: Folder) -> None:
    """Without the case one test fails and says why; with it all pass; a field that does not check is caught."""
    contracts = ("-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/contracts/test_fields.py")
    [cases] = re.findall(r"^In `(tests/\S+)`, to the table `CASES`", PAGE, re.MULTILINE)
    without = house.run(*contracts, "-k", "every_kind_of_field_has_a_case").stdout
    assert "1 failed" in without, without
    assert "DnaField" in without
    house.insert(cases, CASE, "CASES")
    kept = house.run(*contracts, DNA, "-k", "dna or every_kind_of_field_has_a_case").stdout
    assert re.search(r"^[2-9]\d passed", kept, re.MULTILINE), kept
    house.write(DNA, MODULE.replace("if letter not in BASES:", "if False:"))
    broken = house.run(*contracts, "-k", "dna and bad").stdout
    house.write(DNA, MODULE)
    assert "2 failed" in broken, broken
    for words in (["check"], ["format", "--check"]):
        done = house.run("-m", "ruff", *words, DNA).stdout
        assert "passed" in done or "already formatted" in done, done


@pytest.mark.slow
def test_a_field_from_outside_needs_permission_and_nothing_else(
    tmp_path: Path, warm_python: str
) -> None:
    """The package as it is, and the same file in a package beside it."""
    (tmp_path / "my_lab").mkdir()
    work = Folder(tmp_path, ROOT / "src", warm_python)
    work.write("my_lab/__init__.py", "")
    work.write("my_lab/dna.py", MODULE)
    own, count = re.subn(r"source: \{.*\}", OWN_LINE.strip(), RECIPE)
    assert count == 1
    with_data(work, own, "own.yaml")
    train, predict = (
        [word for word in words if word not in ("--allow", "my_lab")] for words in COMMANDS[-2:]
    )
    needs = (
        "my_lab.dna.DnaField is code from outside this toolkit. If you trust it, say --allow my_lab"
    )
    [refused] = work.call([*train, *FEW])
    assert needs in refused[2], refused
    assert not (tmp_path / "my_lab" / "__pycache__").exists()  # nothing of it was run
    trained, found, refused = work.call([*COMMANDS[-2], *FEW], COMMANDS[-1], predict)
    assert "accuracy@1" in trained[1], trained
    assert found[1].split()[0] in ("rich", "poor"), found
    assert needs in refused[2], refused
    program = """
import sixjars
from my_lab.dna import DnaField
sixjars.train("own.yaml", ["learning.steps=1"], out="runs/again", components=[DnaField])
print(sixjars.load("runs/again", components=[DnaField]).predict(["GGCATGCC", "AXG"])[1].error)
"""
    told = "input 2: the source has a 'X' in it, but DNA is written with ACGT.\n"
    assert work.run("-c", program).stdout == told
