"""`sixjars inspect --check`: the table, files of every kind, given outputs; and what it refuses."""

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

import sixjars
from tests.unit.conftest import Call, Said, recipe_from_file
from tests.unit.pages import read
from tests.unit.trained import one_step


@pytest.fixture(scope="module")
def words(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A translation run, of words."""
    folder = tmp_path_factory.mktemp("words")
    rows = [f"word{n % 4} and more {n}\twort{n % 3} und mehr" for n in range(40)]
    (folder / "pairs.tsv").write_text("\n".join(["en\tde", *rows, ""]))
    recipe = recipe_from_file(folder, folder / "pairs.tsv", {"learning": {"epochs": 1}})
    return sixjars.train(recipe, out=folder / "run", device="cpu").folder


Check = Callable[..., Said]


@pytest.fixture
def check(call: Call, words: Path) -> Check:
    return partial(call, "inspect", "--check", words, "--device", "cpu")


def file_of(folder: Path, *rows: str) -> Path:
    (folder / "more.tsv").write_text("\n".join(["en\tde", *rows, ""]))
    return folder / "more.tsv"


PAIRS = ("word1 and more\twort1 und mehr", "more and word2\tmehr und wort2", "and word3\tund wort3")


def test_the_terminal_shows_a_table_and_what_it_means(check: Check, tmp_path: Path) -> None:
    said = check("--data", file_of(tmp_path, *PAIRS, *PAIRS))
    assert said.code == 0
    lines = said.out.splitlines()
    assert lines[0].startswith("6 examples of ")
    assert lines[0].endswith("more.tsv; the model's own outputs (greedy search)")
    assert [line.split()[0] for line in lines[3:6]] == ["compared", "erasing", "gradients"]
    assert lines[-3].startswith("Weights and erasing order the input ")
    assert lines[-2].startswith("Weights and gradients order the input ")
    assert "does not prove" in lines[-1]
    assert said.err == "checking examples: 6 done\n"


def test_without_a_file_the_set_that_evaluate_scores_and_some_of_it(
    check: Check, words: Path
) -> None:
    said = check("--examples", "2")
    whole = sixjars.evaluate(words, device="cpu")
    assert said.out.startswith(f"2 of {whole.examples} examples of {whole.where};")
    drawn = f"2 of {whole.examples} examples were drawn; --examples N checks more."
    assert f"note: {drawn}\n" in said.err


def test_json_has_the_numbers(check: Check, words: Path, tmp_path: Path) -> None:
    data, file = file_of(tmp_path, *PAIRS), tmp_path / "new" / "a.json"
    assert check("--data", data, "--reference", "--out", file).err.endswith(f"wrote {file}\n")
    found = json.loads(file.read_text())
    again = sixjars.check_attention(words, data=data, reference=True, device="cpu")
    assert found == again.to_json()
    assert found["outputs"] == "the reference outputs (teacher forcing)"
    assert set(found["measures"]) == {"erasure", "gradient"}
    steps = [one["steps"] for one in found["measures"]["gradient"]["examples"]]
    assert steps == [4, 4, 3]  # <stop> is a step too


@pytest.mark.parametrize("ending", ["png", "svg", "pdf"])
@pytest.mark.usefixtures("unrendered")
def test_a_picture(check: Check, tmp_path: Path, ending: str) -> None:
    file = tmp_path / f"a.{ending}"
    said = check("--data", file_of(tmp_path, *PAIRS), "--out", file)
    assert said.err.endswith(f"wrote {file}\n")
    assert file.exists()


def test_the_picture_has_two_panels(words: Path, tmp_path: Path) -> None:
    found = sixjars.check_attention(words, data=file_of(tmp_path, *PAIRS), device="cpu")
    found.draw(tmp_path / "a.png")
    height, width = read(tmp_path / "a.png").shape[:2]
    assert 2 < width / height < 3


def test_examples_without_an_order_are_counted(check: Check, tmp_path: Path) -> None:
    said = check("--data", file_of(tmp_path, "word1\twort1", *PAIRS))
    lacks = "has one input position or no output, so nothing can be compared."
    assert f"note: 1 example {lacks}\n" in said.err


def refused(said: Said) -> str:
    assert said.code != 0
    assert said.out == ""
    return said.err.splitlines()[-1].removeprefix("sixjars: ")


def test_what_is_refused(call: Call, check: Check, words: Path, tmp_path: Path) -> None:
    data, page = file_of(tmp_path, "word1\twort1"), tmp_path / "a.html"
    assert refused(check("--data", data)) == (
        f"{data}: no example has two input positions and an output, so there is no order to compare."
    )
    alone = "--check measures a whole file: give --data FILE, and no inputs or options of one view."
    for more in (
        ["and"],
        ["--view", "lines"],
        ["--target", "a"],
        ["--search", "beam"],
        ["--pieces"],
    ):
        assert refused(check(*more)) == alone
    belong = "--data and --reference belong to --check; inputs to look at are --input FILE."
    for other in (["--data", data], ["--reference"]):
        assert refused(call("inspect", words, "word1", *other)) == belong
    written = "--check writes a picture (.png, .svg, .pdf) or numbers (.json)"
    assert refused(check("--out", page)) == f"{written}, but --out is {page}."
    assert refused(check("--data", tmp_path / "none.tsv")).endswith("does not exist.")
    with pytest.raises(sixjars.SixJarsError, match=r"^check at least one example, not 0\.$"):
        sixjars.check_attention(words, examples=0)


def test_a_run_without_attention(call: Call, tmp_path: Path) -> None:
    run = one_step("translation/sample_initial", tmp_path / "run")
    lacks = "has no attention, so there are no weights to check; its bridge is initial."
    assert refused(call("inspect", "--check", run)) == f"{run} {lacks}"
