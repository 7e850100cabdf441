"""The commands of docs/results.md run in little: on stand-ins for the public data, which is not here, and on a CPU."""

import gzip
import re
import shlex
from pathlib import Path

import pytest
from tests.house.test_benchmarks import BENCHMARKS, ran
from tests.house.test_docs import commands
from tests.recipes.stand_ins import stand_in
from tests.recipes.test_real_recipes import smaller

from sixjars.cli import app
from sixjars.runs.recipes import read_recipe

PAGE = (Path(__file__).parents[2] / "docs" / "results.md").read_text(encoding="utf-8")
CALLS = list(commands(PAGE))
REAL = [call for call in CALLS if call[0] == "train"]
ALIGNED = [call for call in CALLS if call[0] == "align"]
MEASURED = [
    shlex.split(line)
    for block in re.findall(r"^```sh\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    for line in block.replace("\\\n", " ").splitlines()
    if line.startswith("python benchmarks/")
]
LITTLE = ["learning.steps=2", "evaluation.search.max_length=5"]


def without_device(call: list[str]) -> list[str]:
    """A call that runs where there is no GPU."""
    return call[: call.index("--device")] if "--device" in call else call


def test_there_are_all_kinds() -> None:
    assert len(REAL) > 18
    assert len(ALIGNED) == 1
    assert len(CALLS) == len(REAL) + len(ALIGNED)
    expected = ["benchmarks/hansards.py", "benchmarks/second_epoch.py"]
    assert [words[1] for words in MEASURED] == expected


@pytest.mark.parametrize("call", REAL, ids=lambda call: " ".join(call[1:2] + call[3:]))
def test_recipes_take_their_overrides(call: list[str]) -> None:
    _, name, folder, *others = without_device(call)
    recipe = read_recipe(name, [folder, *others])
    assert folder == f"data.folder={recipe.data.folder}"


@pytest.mark.slow
@pytest.mark.parametrize("call", REAL, ids=lambda call: " ".join(call[1:2] + call[3:]))
def test_they_train_on_a_stand_in(
    call: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    recipe = read_recipe(call[1])
    folder = Path(call[2].partition("=")[2])
    folder.parent.mkdir()
    stand_in(recipe, folder)
    app([*without_device(call), *LITTLE, *smaller(call[1])], standalone_mode=False)
    assert next(iter(recipe.expect)) in capsys.readouterr().out


def test_words_are_aligned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A few sentences in place of the Hansards."""
    monkeypatch.chdir(tmp_path)
    source = Path("SOURCE")
    source.mkdir()
    pairs = [
        "The aid of the country.\tL'aide du pays.",
        "The country.\tLe pays.",
        "The aid\tL'aide",
    ]
    for split in ("train", "valid"):
        (source / f"hansard36.{split}.en-fr.tsv.gz").write_bytes(
            gzip.compress("\n".join([*pairs, ""]).encode())
        )
    for name, text in {
        "e": "The aid",
        "f": "le aidé",
        "wa.nonullalign": "0001 1 1 P\n1 2 2 S",
    }.items():
        (source / f"dev.{name}").write_text(f"{text}\n", encoding="utf-8")
    [path] = [path for path in BENCHMARKS if path.name == "hansards.py"]
    ran(path, *MEASURED[0][2:])
    assert gzip.decompress(Path("data/hansards/train.fr.gz").read_bytes()).startswith(
        b"le aide de le pays .\n"
    )
    assert gzip.decompress(Path("data/hansards/long.en.gz").read_bytes()).endswith(
        b"the aid\nthe aid of the country . the country .\n"
    )
    assert Path("data/hansards/dev.fr").read_text() == "le aide\n"
    capsys.readouterr()
    app(ALIGNED[0], standalone_mode=False)
    assert [line.split()[:5] for line in capsys.readouterr().out.splitlines()] == [
        [how, "alignment", "error", "rate", "0.0000"]
        for how in ("forward", "backward", "grow-diag")
    ]


@pytest.mark.slow
@pytest.mark.parametrize("words", MEASURED[1:], ids=lambda words: words[2])
def test_the_second_epoch_is_measured(
    words: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    # the program names one of its own, and this brings the former back
    monkeypatch.setenv("SIXJARS_CACHE", "")
    [path] = [path for path in BENCHMARKS if path.name == Path(words[1]).name]
    stand_in(read_recipe("image_captioning/flickr8k_initial"), tmp_path / "photos")
    few = ["data.image.size=64", *(["data.sample.size=16"] if "/sample_" in words[2] else [])]
    ran(path, *(word.replace("FOLDER", str(tmp_path / "photos")) for word in words[2:]), *few)
    assert " times faster" in capsys.readouterr().out
