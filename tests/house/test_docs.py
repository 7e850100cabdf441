"""The pages keep their word: commands parse, recipes exist, links lead somewhere, the encoder page is performed."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from tests.house.copies import ROOT, Folder, blocks, copied

from sixjars.cli import app
from sixjars.recipe.files import packaged
from sixjars.tasks import TASKS

PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
ENCODER_PAGE = ROOT / "docs" / "add_an_encoder.md"
AVERAGE = "src/sixjars/model/encoders/average.py"
COMMANDS: Any = typer.main.get_command(app)


def commands(text: str) -> Iterator[list[str]]:
    """Every call of `sixjars` in the shell blocks of a page, wherever it stands in a pipe."""
    for block in blocks(text, "sh"):
        for line in block.replace("\\\n", " ").splitlines():
            call: list[str] = []
            lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
            lexer.whitespace_split = True
            words = iter([*lexer, ";"])
            for word in words:
                if set(word) <= set("<>"):
                    next(words)  # the file that is read or written
                elif set(word) <= set("|&;"):
                    if call[:1] == ["sixjars"]:
                        yield call[1:]
                    call = []
                else:
                    call.append(word)


def split(line: str) -> list[list[str]]:
    return list(commands(f"```sh\n{line}\n```\n"))


def parsed(words: list[str]) -> None:
    """Read the words as the command line would, without doing anything."""
    known = COMMANDS.commands
    if words and not words[0].startswith("-"):
        if words[0] not in known:
            raise KeyError(words[0])
        known[words[0]].make_context(words[0], words[1:])
    else:
        COMMANDS.make_context("sixjars", list(words))


def fault_of(words: list[str]) -> str | None:
    try:
        parsed(words)
    except typer.Exit:  # --help
        return None
    except Exception as error:  # noqa: BLE001 - whatever the parser says
        return f"sixjars {shlex.join(words)}: {error}"
    return None


def recipes_in(text: str) -> set[str]:
    """The names of recipes that a text mentions; those with a place-holder in them aside."""
    return set(
        re.findall(rf"(?:^|[\s`\"'(]|recipes/)((?:{'|'.join(TASKS)})/\w+)(?![\w/*<…-])", text)
    )


def test_the_pages_are_found() -> None:
    assert {ROOT / "CONTRIBUTING.md", ROOT / "docs" / "api.md", ENCODER_PAGE} <= set(PAGES)
    assert any(list(commands(page.read_text(encoding="utf-8"))) for page in PAGES)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_of_a_page_parse(page: Path) -> None:
    told = [fault_of(words) for words in commands(page.read_text(encoding="utf-8"))]
    assert [fault for fault in told if fault] == []


def test_commands_that_do_not_parse_are_seen() -> None:
    assert split("echo hi | sixjars predict runs/x --json > out; ls") == [
        ["predict", "runs/x", "--json"]
    ]
    assert split("cat 'sixjars train' && make test # sixjars train x") == []
    assert fault_of(["train", "x", "model.encoder.size=3", "--out", "y"]) is None
    assert fault_of(["train", "--help"]) is None
    assert fault_of(["trian", "x"]) == "sixjars trian x: 'trian'"
    assert "--outt" in (fault_of(["train", "x", "--outt", "y"]) or "")
    assert fault_of(["train"]) is not None


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_recipes_of_a_page_exist(page: Path) -> None:
    assert recipes_in(page.read_text(encoding="utf-8")) - set(packaged()) == set()


def test_mentions_of_recipes_are_seen() -> None:
    text = "`translation/sample_x`, recipes/dialog/a.yaml, translation/sample_*, runs/dialog/b, dialog/<data>"
    assert recipes_in(text) == {"translation/sample_x", "dialog/a"}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_of_a_page_lead_somewhere(page: Path) -> None:
    links = re.findall(r"\]\(([^)#\s]+)", page.read_text(encoding="utf-8"))
    inside = [link for link in links if not re.match(r"\w+:", link)]
    assert [link for link in inside if not (page.parent / link).exists()] == []


OF_CONTRIBUTORS = [
    ROOT / "CONTRIBUTING.md",
    *(ROOT / "docs" / name for name in ("add_an_encoder.md", "add_a_field.md", "architecture.md")),
    ROOT / "docs" / "how_it_is_fast.md",
]
MADE_LATER = {AVERAGE, "src/sixjars/data/fields/dna.py", "my_lab/dna.py", "fields/"}
STANDS_FOR = {"benchmarks/results/TOPIC.yaml"}
"""Files that the reader writes, a folder of a run; and a name that stands for others."""


@pytest.mark.parametrize("page", OF_CONTRIBUTORS, ids=lambda page: page.name)
def test_files_that_a_page_names_are_there(page: Path) -> None:
    """Those with a folder before them, from the root or from the package."""
    named = set(re.findall(r"`((?:[\w.]+/)+(?:\w+\.\w+)?)`", page.read_text(encoding="utf-8")))
    roots = (ROOT, ROOT / "src" / "sixjars", ROOT / "src" / "sixjars" / "model")
    missing = {name for name in named if not any((root / name).exists() for root in roots)}
    assert len(named) > 3
    assert missing <= MADE_LATER | STANDS_FOR


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory, warm_python: str) -> Folder:
    """A copy of the package and its contracts, in which the steps of the page were performed up to the second."""
    copy = copied(tmp_path_factory.mktemp("house"), warm_python)
    text = ENCODER_PAGE.read_text(encoding="utf-8")
    module, line, _ = blocks(text, "python")
    copy.write(AVERAGE, module)
    copy.insert("src/sixjars/model/encoders/__init__.py", line, "ENCODERS")
    [recipe] = blocks(text, "yaml")
    copy.write("average.yaml", recipe)
    return copy


EVERY = ("-m", "slow or not slow")  # the export of most encoders is tried in `make test-all` alone
CONTRACTS = (
    "-m",
    "pytest",
    "-q",
    "-p",
    "no:cacheprovider",
    *EVERY,
    "tests/contracts/test_encoders.py",
    "-k",
)


def test_the_page_trains(house: Folder) -> None:
    train, explain = list(commands(ENCODER_PAGE.read_text(encoding="utf-8")))
    assert "model.encoder.kind=average" in train
    few = ["data.sample.size=64", "data.sample.valid=8", "data.sample.test=8", "learning.steps=2"]
    trained, told = house.call([*train, *few, "evaluation.search.max_length=5"], explain)
    assert trained[0] == 0, trained
    assert "exact_match" in trained[1]
    assert "h_j = tanh(U_enc E_enc[x_j] + b_enc)" in told[1]
    assert "encoder.layer.weight" in told[1]


def test_the_page_keeps_its_promises(house: Folder) -> None:
    """Without the case one test fails and says why; with it all pass; without the mask padding is seen."""
    page = ENCODER_PAGE.read_text(encoding="utf-8")
    [cases] = re.findall(r"^In `(tests/\S+)`, to the table `CASES`", page, re.MULTILINE)
    without = house.run(*CONTRACTS, "every_encoder_has_a_case")
    assert "1 failed" in without.stdout, without.stdout
    assert "AverageEncoder" in without.stdout
    house.insert(cases, blocks(page, "python")[2], "CASES")
    kept = house.run(*CONTRACTS, "average or every_encoder_has_a_case")
    assert kept.returncode == 0, kept.stdout
    assert "14 passed" in kept.stdout
    code = blocks(page, "python")[0]
    house.write(AVERAGE, code.replace(" * real_BS1", ""))
    broken = house.run(*CONTRACTS, "average and padding")
    house.write(AVERAGE, code)
    assert "3 failed" in broken.stdout, broken.stdout


def test_the_page_is_well_written(house: Folder) -> None:
    for words in (["check"], ["format", "--check"]):
        done = house.run("-m", "ruff", *words, AVERAGE)
        assert done.returncode == 0, done.stdout
    example = house.run("-m", "pytest", "-q", "-p", "no:cacheprovider", AVERAGE)
    assert "1 passed" in example.stdout, example.stdout
