"""Code inside the sentences of every page: commands run in little, Python calls fit, options and extras exist."""

import ast
import importlib
import inspect
import io
import re
import shlex
import shutil
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from tests.house.copies import blocks
from tests.house.test_doc_code import painted
from tests.house.test_docs import COMMANDS, PAGES, fault_of

import sixjars
from sixjars.cli import app
from sixjars.recipe.files import packaged

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
OF_USERS = [page for page in PAGES if page.name != "CHANGELOG.md"]
"""What changed may name what is gone."""
CODE = sorted(
    {
        " ".join(code.split())
        for page in OF_USERS
        for code in re.findall(
            r"`([^`]+)`",
            re.sub(
                r"^```.*?^```$",
                "",
                page.read_text(encoding="utf-8"),
                flags=re.MULTILINE | re.DOTALL,
            ),
        )
    }
)
CALLS = [shlex.split(code)[1:] for code in CODE if re.match(r"sixjars [-a-zA-Z]", code)]
NEEDS_MORE = {
    name
    for name, command in COMMANDS.commands.items()
    if any(one.required for one in command.params)
}
"""Commands that cannot be called without arguments; alone they are names."""
STANDS_FOR = {
    **{
        "RECIPE": "mine.yaml",
        "NAME": "mine.yaml",
        "RUN": "runs/mine",
        "FILE": "test.tsv",
        "FOLDER": ".",
    },
    "COMMAND": "train",
}
LITTLE = ["learning.steps=2", "evaluation.search.max_length=5"]
FEW = [*LITTLE, "data.sample.size=64", "data.sample.valid=8", "data.sample.test=8"]


def options(name: str) -> set[str]:
    return {option for one in COMMANDS.commands[name].params for option in one.opts}


def is_name(call: list[str]) -> bool:
    """Whether a call is no more than the name of a command; test_readme_commands runs the demo."""
    return len(call) == 1 and call[0] in {*NEEDS_MORE, "demo"}


def is_sample(call: list[str]) -> bool:
    """Whether a call trains a sample recipe as it is: tests/recipes trains each of them in little."""
    return (
        call[0] == "train"
        and "/sample_" in "".join(call[1:2])
        and call[2:] in ([], ["--out", "RUN"])
    )


RUN = [call for call in CALLS if not is_name(call) and not is_sample(call) and "…" not in call]


def test_commands_are_found_and_parse() -> None:
    assert len(RUN) > 20
    assert [fault for call in RUN if "COMMAND" not in call and (fault := fault_of(call))] == []
    assert {call[0] for call in CALLS if is_name(call)} <= set(COMMANDS.commands)
    assert {call[1] for call in CALLS if is_sample(call)} <= set(packaged())
    for call in CALLS:
        if "…" in call:
            assert {word for word in call if word.startswith("--")} <= options(call[0])


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of somebody who has all that the pages speak of."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("SIXJARS_CACHE", str(tmp_path / "cache"))
    rows = (
        "\n".join(["en\tde", *(f"sentence {at} of mine\tSatz {at} von mir" for at in range(20))])
        + "\n"
    )
    Path("corpora/mine").mkdir(parents=True)
    for name in ("pairs.tsv", "test.tsv", "corpora/mine/pairs.tsv"):
        Path(name).write_text(rows, encoding="utf-8")
    for name, text in {
        "english.txt": "two words\n",
        "german.txt": "zwei Worte\n",
        "gold.txt": "0-0 1-1\n",
    }.items():
        Path(name).write_text(text, encoding="utf-8")
    for at in range(6):
        painted(Path(f"photos/{('cat', 'dog')[at % 2]}/{at}.jpg"))
    sixjars.new("mine.yaml", task="translation", data="pairs.tsv")
    sixjars.new("photos.yaml", task="image_classification", data="photos")
    for name in ("mails.yaml", "own.yaml"):
        shutil.copy("mine.yaml", name)
    sixjars.train("mine.yaml", LITTLE, out="runs/mine")
    for name in ("a", "b", "x", "own", "other", "dates"):
        shutil.copytree("runs/mine", f"runs/{name}")
    sixjars.pack("runs/mine", "words.sixjars")
    return tmp_path


def in_little(call: list[str], number: int) -> list[str]:
    """The same with names of what there is, with less to do, and with a result of its own."""
    words = [STANDS_FOR.get(word, word.replace("FOLDER", ".")) for word in call]
    if call == ["features", "RECIPE"]:
        return ["features", "photos.yaml"]
    if call[0] == "new":
        return ["new", f"{number}.yaml", *words[2:]]
    if call[0] not in ("train", "tune"):
        return words
    little = FEW if "/sample_" in call[1] else LITTLE
    return [
        *words,
        *little,
        "--out",
        f"runs/{number}",
        *(["--trials", "2"] if call[0] == "tune" else []),
    ]


def test_commands_run(
    desk: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for number, call in enumerate(RUN):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"sentence 3 of mine\n")))
        app(in_little(call, number), standalone_mode=False)
        said = capsys.readouterr()
        assert said.out or said.err, f"{call} says nothing"
    assert (desk / "mine.sixjars").is_file()


def test_options_that_are_named_exist() -> None:
    known = set().union(*map(options, COMMANDS.commands))
    named = {
        word
        for code in CODE
        if code.startswith("--")
        for word in code.split()
        if word.startswith("--")
    }
    assert len(named) > 10
    assert named - known == set()


def test_python_that_is_named_exists_and_fits() -> None:
    named = [code for code in CODE if re.fullmatch(r"sixjars(\.\w+)+(\(.*\))?", code)]
    assert len(named) > 10
    for code in named:
        path, _, arguments = code.partition("(")
        above, _, last = path.rpartition(".")
        found: Any = getattr(importlib.import_module(above), last, None) or importlib.import_module(
            path
        )
        if arguments:
            call = ast.parse(code, mode="eval").body
            assert isinstance(call, ast.Call)
            inspect.signature(found).bind(
                *call.args, **{str(one.arg): one.value for one in call.keywords}
            )


def test_targets_exist() -> None:
    """Those in blocks of commands too; what each does is run by other tests (contracts, generated pages, the site)."""
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    lines = [
        line
        for page in OF_USERS
        for one in blocks(page.read_text(encoding="utf-8"), "sh")
        for line in one.splitlines()
    ]
    targets = {code.split()[1] for code in [*CODE, *lines] if code.startswith("make ")}
    assert len(targets) > 5
    assert [
        target
        for target in targets
        if not re.search(rf"^{re.escape(target)}:", makefile, re.MULTILINE)
    ] == []


def test_what_pip_installs_exists() -> None:
    installs = [
        what for code in CODE if code.startswith("pip install ") for what in shlex.split(code)[2:]
    ]
    assert len(installs) > 5
    runtime = tomllib.loads((ROOT / "runtime" / "pyproject.toml").read_text(encoding="utf-8"))[
        "project"
    ]
    projects = {
        PROJECT["name"]: PROJECT,
        ".": PROJECT,
        runtime["name"]: runtime,
        "./runtime": runtime,
    }
    for what in installs:
        found = re.fullmatch(r"(?P<name>[\w./-]+)(\[(?P<extras>[\w,]+)\])?", what)
        assert found, what
        extras = set(filter(None, (found["extras"] or "").split(",")))
        assert extras <= set(projects[found["name"]]["optional-dependencies"]), what
    quickstart = (ROOT / "docs" / "quickstart.md").read_text(encoding="utf-8")
    assert f"```sh\npip install {PROJECT['name']}\n```" in quickstart


def test_programs_take_their_options() -> None:
    programs = [code.split()[1:] for code in CODE if code.startswith("python benchmarks/")]
    assert len(programs) > 2
    for program, *rest in programs:
        text = (ROOT / program).read_text(encoding="utf-8")
        assert [word for word in rest if word.startswith("--") and f'"{word}"' not in text] == []
