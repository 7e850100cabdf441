"""`sixjars inspect --check`: the table, files of every kind, given outputs; and what it refuses."""

import json
from pathlib import Path

import pytest

import sixjars
from tests.unit.conftest import Call, recipe_from_file
from tests.unit.pages import read


@pytest.fixture(scope="module")
def words(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A translation run, of words."""
    folder = tmp_path_factory.mktemp("words")
    rows = [f"word{n % 4} and more {n}\twort{n % 3} und mehr" for n in range(40)]
    (folder / "pairs.tsv").write_text("\n".join(["en\tde", *rows, ""]))
    recipe = recipe_from_file(folder, folder / "pairs.tsv", {"learning": {"epochs": 1}})
    return sixjars.train(recipe, out=folder / "run", device="cpu").folder


def file_of(folder: Path, *rows: str) -> Path:
    (folder / "more.tsv").write_text("\n".join(["en\tde", *rows, ""]))
    return folder / "more.tsv"


PAIRS = ("word1 and more\twort1 und mehr", "more and word2\tmehr und wort2", "and word3\tund wort3")


def test_the_terminal_shows_a_table_and_what_it_means(
    call: Call, words: Path, tmp_path: Path
) -> None:
    said = call(
        "inspect", "--check", words, "--data", file_of(tmp_path, *PAIRS, *PAIRS), "--device", "cpu"
    )
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
    call: Call, words: Path
) -> None:
    said = call("inspect", words, "--check", "--examples", "2", "--device", "cpu")
    whole = sixjars.evaluate(words, device="cpu")
    assert said.out.startswith(f"2 of {whole.examples} examples of {whole.where};")
    assert (
        f"note: 2 of {whole.examples} examples were drawn; --examples N checks more.\n" in said.err
    )


def test_json_has_the_numbers(call: Call, words: Path, tmp_path: Path) -> None:
    data, file = file_of(tmp_path, *PAIRS), tmp_path / "new" / "a.json"
    said = call(
        "inspect", "--check", words, "--data", data, "--reference", "--out", file, "--device", "cpu"
    )
    assert said.err.endswith(f"wrote {file}\n")
    found = json.loads(file.read_text())
    assert (
        found == sixjars.check_attention(words, data=data, reference=True, device="cpu").to_json()
    )
    assert found["outputs"] == "the reference outputs (teacher forcing)"
    assert set(found["measures"]) == {"erasure", "gradient"}
    steps = [one["steps"] for one in found["measures"]["gradient"]["examples"]]
    assert steps == [4, 4, 3]  # <stop> is a step too


@pytest.mark.parametrize("ending", ["png", "svg", "pdf"])
@pytest.mark.usefixtures("unrendered")
def test_a_picture(call: Call, words: Path, tmp_path: Path, ending: str) -> None:
    file = tmp_path / f"a.{ending}"
    said = call("inspect", "--check", words, "--data", file_of(tmp_path, *PAIRS), "--out", file)
    assert said.err.endswith(f"wrote {file}\n")
    assert file.exists()


def test_the_picture_has_two_panels(words: Path, tmp_path: Path) -> None:
    found = sixjars.check_attention(words, data=file_of(tmp_path, *PAIRS), device="cpu")
    found.draw(tmp_path / "a.png")
    height, width = read(tmp_path / "a.png").shape[:2]
    assert 2 < width / height < 3


def test_examples_without_an_order_are_counted(call: Call, words: Path, tmp_path: Path) -> None:
    said = call(
        "inspect",
        "--check",
        words,
        "--data",
        file_of(tmp_path, "word1\twort1", *PAIRS),
        "--device",
        "cpu",
    )
    assert (
        "note: 1 example has one input position or no output, so nothing can be compared.\n"
        in said.err
    )


def refused(call: Call, *arguments: object) -> str:
    said = call("inspect", *arguments)
    assert said.code != 0
    assert said.out == ""
    return said.err.splitlines()[-1]


def test_what_is_refused(call: Call, words: Path, tmp_path: Path) -> None:
    data = file_of(tmp_path, "word1\twort1")
    assert refused(call, "--check", words, "--data", data) == (
        f"sixjars: {data}: no example has two input positions and an output, so there is no order to compare."
    )
    for more in (
        ["word1 and more"],
        ["--view", "lines"],
        ["--target", "wort1"],
        ["--search", "beam"],
        ["--pieces"],
    ):
        assert refused(call, "--check", words, *more) == (
            "sixjars: --check measures a whole file: give --data FILE, and no inputs or options of one view."
        )
    for more in (["--data", str(data)], ["--reference"]):
        assert refused(call, words, "word1", *more) == (
            "sixjars: --data and --reference belong to --check; inputs to look at are --input FILE."
        )
    page = tmp_path / "a.html"
    assert refused(call, "--check", words, "--out", page) == (
        f"sixjars: --check writes a picture (.png, .svg, .pdf) or numbers (.json), but --out is {page}."
    )
    assert refused(call, "--check", words, "--data", tmp_path / "none.tsv").endswith(
        "does not exist."
    )
    with pytest.raises(sixjars.SixJarsError, match=r"^check at least one example, not 0\.$"):
        sixjars.check_attention(words, examples=0)


def test_a_run_without_attention(call: Call, tmp_path: Path) -> None:
    few = ["data.sample.size=16", "data.sample.valid=4", "data.sample.test=4", "learning.steps=1"]
    run = sixjars.train(
        "translation/sample_initial", few, out=tmp_path / "run", device="cpu"
    ).folder
    assert refused(call, "--check", run) == (
        f"sixjars: {run} has no attention, so there are no weights to check; its bridge is initial."
    )
