"""What two runs are compared on: the same references, the same tokens, the annotations that a file has."""

from pathlib import Path
from typing import Any

import pytest

import sixjars
from sixjars.comparison.compare import compare
from sixjars.errors import DataError
from sixjars.progress import Reporter, listening
from tests.unit.conftest import Call, recipe_from_file

PAIRS = [f"word{n % 4} and{' more' * (n % 3)}\tWort{n % 3} und mehr\n" for n in range(24)]
FEW = ["data.sample.size=24", "data.sample.valid=4", "data.sample.test=12", "learning.steps=1"]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Runs whose targets are words, words in lower case, and characters."""
    folder = tmp_path_factory.mktemp("runs")
    (folder / "pairs.tsv").write_text("".join(["en\tde\n", *PAIRS]))
    targets: dict[str, dict[str, Any]] = {"words": {}, "lower": {"lowercase": True}}
    targets["characters"] = {"tokens": "characters"}
    found = {}
    for name, target in targets.items():
        changes = {
            "data": {"target": target},
            "learning": {"epochs": 1},
            "evaluation": {"metrics": ["exact_match", "perplexity"]},
        }
        recipe = recipe_from_file(folder, folder / "pairs.tsv", changes)
        found[name] = sixjars.train(recipe, out=folder / name, device="cpu").folder
    return found


def test_references_in_lower_case_are_others(runs: dict[str, Path], tmp_path: Path) -> None:
    with pytest.raises(DataError) as told:
        compare([runs["words"], runs["lower"]], out=tmp_path / "t.md", device="cpu")
    assert str(told.value) == (
        f"{runs['words']} and {runs['lower']} are scored against different references, for they normalize texts "
        "differently (lowercase); compare runs that have this setting alike."
    )


def test_probabilities_of_other_tokens_do_not_compare(
    runs: dict[str, Path], tmp_path: Path
) -> None:
    three = [runs["words"], runs["characters"], runs["words"]]
    found = compare(three, out=tmp_path / "t.md", metric="perplexity", device="cpu")
    _, other, again = ({one.score.name: one for one in run.scores} for run in found.contenders)
    assert other["exact_match"].difference is not None
    assert (other["perplexity"].difference, other["perplexity"].mark) == (None, "")
    assert again["perplexity"].difference is not None
    assert "characters" not in {one.name for one in found.differing}
    assert "different vocabularies" in (tmp_path / "t.md").read_text(encoding="utf-8")


def test_an_existing_table_is_not_written_over(
    call: Call, runs: dict[str, Path], tmp_path: Path
) -> None:
    two = (runs["words"], runs["characters"])
    data = tmp_path / "mine.csv"
    data.write_text("en,de\nword1 and,Wort1\nword2 and,Wort2\n")
    before = data.read_text()
    said = call("compare", *two, "--data", data, "--out", data)
    assert said.sentence == f"{data} is the data that is read; choose another name."
    other = tmp_path / "table.csv"
    other.write_text("mine")
    there = f"{other} exists already; choose another name."
    read: list[tuple[dict[str, Any], str]] = [({"out": other}, there)]
    read.append(({"data": data, "out": data}, said.sentence))
    assert call("compare", *two, "--out", other).sentence == there
    for options, sentence in read:
        with pytest.raises(DataError) as told:
            compare(two, device="cpu", **options)
        assert str(told.value) == sentence
    assert data.read_text() == before
    picture = tmp_path / "p.svg"
    picture.write_text("old")
    said = call("compare", *two, "--out", picture, "--device", "cpu")
    assert said.code == 0
    assert said.err.splitlines()[-1] == f"wrote {picture}"
    assert picture.read_text() != "old"
    both = tmp_path / "both"
    said = call("compare", *two, "--out", both, "--device", "cpu")
    names = "comparison.md", "by_length.png"
    assert said.err.splitlines()[-2:] == [f"wrote {both / name}" for name in names]


def test_an_input_is_shown_once(runs: dict[str, Path], tmp_path: Path) -> None:
    """With how many examples have it; also where its references differ."""
    rows = [(1, "Wort1"), (1, "Wort1"), (2, "Wort2"), (1, "und")]
    options: dict[str, Any] = {"metric": "character_error_rate", "device": "cpu"}
    options["data"] = [{"en": f"word{number} and", "de": german} for number, german in rows]
    two = [runs["words"], runs["characters"]]
    found = compare(two, out=tmp_path / "t.json", **options)
    times = {one.input: one.times for one in found.differing}
    assert times.items() <= {"word1 and": 3, "word2 and": 1}.items()
    assert times
    for better in (True, False):
        shown = [one.input for one in found.differing if (one.difference < 0) == better]
        assert len(shown) == len(set(shown))


def test_neither_a_run_nor_a_recipe(call: Call, runs: dict[str, Path]) -> None:
    folder = runs["words"].parent
    wrong = f"there is neither a run nor a recipe '{folder}/wrods'. Did you mean '{folder}/words'?"
    assert call("compare", runs["words"], folder / "wrods").sentence == wrong
    assert call("explain", folder / "wrods").sentence == wrong
    (folder / "wordy").mkdir()  # which is nearer, but no run
    assert call("explain", folder / "wordyy").sentence == wrong.replace("wrods", "wordyy")
    neither, listed = "there is neither a run nor a recipe", "`sixjars tasks` lists the recipes."
    assert call("explain", folder / "nope").sentence == f"{neither} '{folder}/nope'. {listed}"
    meant = "'translation/sample_atention'. Did you mean 'translation/sample_attention'?"
    assert call("explain", "translation/sample_atention").sentence == f"{neither} {meant}"
    assert call("compare", "x/y/z", "u/v/w").sentence == f"{neither} 'x/y/z'. {listed}"


class Noted(Reporter):
    """Keeps what it is told."""

    def __init__(self) -> None:
        self.said: list[str] = []

    def note(self, text: str) -> None:
        self.said.append(text)


def test_a_file_without_annotations_is_compared_by_the_other_metrics(tmp_path: Path) -> None:
    trained = sixjars.train("translation/sample_attention", FEW, out=tmp_path / "run", device="cpu")
    run, reporter, pairs = trained.folder, Noted(), tmp_path / "pairs.tsv"
    rows = "I am going home\tmein ghar ja raha hoon\nI am going\tmein ja raha hoon\n"
    pairs.write_text(f"english\thindi\n{rows}")
    with listening(reporter):
        found = compare([run, run], data=pairs, out=tmp_path / "t.md", device="cpu")
    assert "alignment_error_rate" not in [one.score.name for one in found.contenders[0].scores]
    assert "left out, for this data has no annotations: alignment_error_rate." in reporter.said
    with pytest.raises(DataError, match="alignment"):
        compare([run, run], data=pairs, metric="alignment_error_rate", out=tmp_path / "u.md")


def test_texts_that_are_empty_or_unknown(call: Call, runs: dict[str, Path], tmp_path: Path) -> None:
    two, file = (runs["words"], runs["characters"]), tmp_path / "mine.tsv"
    file.write_text("en\tde\n\tWort1\n")
    asked = ("compare", *two, "--data", file, "--device", "cpu", "--out")
    assert call(*asked, tmp_path / "a").sentence == f"{file}, line 2: column 'en' is empty."
    file.write_text("en\tde\nzzz yyy\tWort1\nxxx\tWort2\n")
    said = call(*asked, tmp_path / "b")
    assert said.code == 0
    unknown = [line for line in said.err.splitlines() if "unknown" in line]
    assert unknown == [
        f"note: 100 % of the input tokens are unknown to {run} (<unk>)." for run in two
    ]


def test_points_are_no_words(tmp_path: Path) -> None:
    run = sixjars.train("pointing/sample_sorting", FEW, out=tmp_path / "run", device="cpu").folder
    found = compare([run, run], out=tmp_path / "both", device="cpu")
    assert found.by == "length of the input (points)"
