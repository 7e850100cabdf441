"""`sixjars inspect`: the terminal, files of every kind, given outputs, alignments; and what it refuses."""

import errno
import json
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sixjars
from sixjars.runs.prediction.teacher_forcing import forced_predictions
from tests.unit.conftest import Call, Said, recipe_from_file
from tests.unit.pages import read
from tests.unit.trained import one_step

Inspect = Callable[..., Said]


@pytest.fixture(scope="module")
def words(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A translation run, of words."""
    folder = tmp_path_factory.mktemp("words")
    rows = [f"word{n % 4} and more\twort{n % 3} und mehr" for n in range(12)]
    (folder / "pairs.tsv").write_text("\n".join(["en\tde", *rows, ""]))
    recipe = recipe_from_file(folder, folder / "pairs.tsv", {"learning": {"epochs": 1}})
    return sixjars.train(recipe, out=folder / "run", device="cpu").folder


@pytest.fixture
def inspect(call: Call, words: Path) -> Inspect:
    return partial(call, "inspect", words)


@pytest.fixture
def align(inspect: Inspect, tmp_path: Path) -> Inspect:
    """The alignments of a file, by its name and content."""

    def aligned(name: str, content: str, *options: object) -> Said:
        (tmp_path / name).write_text(content)
        return inspect("--input", tmp_path / name, "--view", "pharaoh", *options)

    return aligned


def views(said: Said) -> list[Any]:
    return [json.loads(line) for line in said.out.splitlines()]


def test_the_terminal_shows_a_heat_map(inspect: Inspect) -> None:
    said = inspect("word1 and more")
    assert said.code == 0
    assert said.out.startswith("word1 and more → ")
    head = next(line for line in said.out.splitlines() if "word1  and  more" in line)
    assert head
    assert "<stop>" in said.out or "max_length" not in said.err


def test_a_file_of_data_is_not_written_over(align: Inspect, tmp_path: Path) -> None:
    pairs = tmp_path / "pairs.tsv"
    said = align("pairs.tsv", "en\tde\nword1 and more\twort1 und mehr\n", "--out", pairs)
    assert said.sentence == f"--out {pairs} exists already; choose another name."
    assert pairs.read_text().startswith("en\tde\n")


def test_a_cut_input_is_told(inspect: Inspect) -> None:
    said = inspect(" ".join(["word1"] * 300))
    longer = "because it is longer than the run reads (max_length)."
    assert f"note: the input was cut, {longer}" in said.err


@pytest.mark.parametrize("ending", ["png", "svg", "pdf"])
@pytest.mark.usefixtures("unrendered")
def test_a_picture(inspect: Inspect, tmp_path: Path, ending: str) -> None:
    file = tmp_path / "new" / f"a.{ending}"
    said = inspect("word1 and more", "--out", file, "--view", "lines")
    assert said.err == f"wrote {file}\n"
    assert file.exists()


def test_the_picture_grows_with_its_input(inspect: Inspect, tmp_path: Path) -> None:
    sizes = []
    for count in (3, 30, 100):
        file = tmp_path / f"{count}.png"
        inspect("word1 " * count, "--target", "wort1 und mehr", "--out", file)
        sizes.append(read(file).shape[:2])
    assert sizes[0][1] < sizes[1][1]
    assert sizes[2][1] < sizes[1][1] * 1.2  # it goes on below
    assert sizes[2][0] > 2 * sizes[1][0]


def test_json_has_the_weights_of_the_prediction(
    inspect: Inspect, words: Path, tmp_path: Path
) -> None:
    kept = sixjars.load(words, device="cpu").predict("word1 and more")
    [view] = views(inspect("word1 and more", "--view", "json"))
    assert np.allclose(view["outputs"][0]["weights"], kept.weights)
    file = tmp_path / "a.json"
    inspect("word1 and more", "more and word1", "--out", file)
    sources = [view["source"] for view in json.loads(file.read_text())]
    assert sources == [["word1", "and", "more"], ["more", "and", "word1"]]


def test_a_page_has_all_inputs_and_all_hypotheses(inspect: Inspect, tmp_path: Path) -> None:
    file = tmp_path / "a.html"
    settings = ("--search", "beam", "--set", "width=3")
    said = inspect("word1 <script>", "and more", "--out", file, *settings)
    assert said.code == 0
    text = file.read_text(encoding="utf-8")
    assert text.count('class="view"') == 2
    assert text.count('<button type="button" role="tab"') == 6
    assert "word1 <script>" not in text


def test_a_given_output_is_forced(inspect: Inspect, words: Path) -> None:
    def forced(target: str) -> Any:
        [view] = views(inspect("word1 and more", "--target", target, "--view", "json"))
        assert view["forced"] is True
        return view["outputs"][0]

    assert forced("wort2 und mehr")["tokens"] == ["wort2", "und", "mehr", "<stop>"]
    scored = sixjars.load(words, device="cpu").predict("word1 and more", search="greedy")
    steps = len(scored.tokens) - (scored.tokens[-1] == "<stop>")
    again = forced(scored.text)["weights"]
    assert np.allclose(again[:steps], scored.weights[:steps], atol=1e-5)


def test_alignments_of_a_pair_and_of_a_file(
    inspect: Inspect, align: Inspect, tmp_path: Path
) -> None:
    said = inspect("word1 and more", "--target", "wort2 und mehr", "--view", "pharaoh")
    links = [tuple(map(int, link.split("-"))) for link in said.out.split()]
    assert {word for _, word in links} == {0, 1, 2}
    assert {place for place, _ in links} <= {0, 1, 2}
    pairs = "de\ten\nwort2 und mehr\tword1 and more\nwort1\tword3\n\tword3\n"
    lines = align("pairs.tsv", pairs)
    assert lines.out.splitlines() == [said.out.strip(), "0-0", ""]
    empty = "note: 1 of 3 pairs with an empty text; an empty line stands for each."
    assert (lines.code, lines.err) == (0, f"{empty}\n")
    file = tmp_path / "links.txt"
    written = f"wrote {file}: a line of links for each of 3 pairs"
    assert align("pairs.tsv", pairs, "--out", file).err.splitlines() == [written, empty]
    assert file.read_text() == lines.out


def test_a_pair_that_cannot_be_used_has_an_empty_line(align: Inspect) -> None:
    pairs = '{"en": "", "de": "und"}\n{"en": "and", "de": "und"}\n{"en": 7\n'
    said = align("pairs.jsonl", pairs)
    assert (said.code, said.out.split("\n")) == (0, ["", "0-0", "", ""])
    empty, skipped = said.err.splitlines()
    assert empty == "note: 1 of 3 pairs with an empty text; an empty line stands for each."
    assert skipped.startswith("note: 1 of 3 pairs was skipped, and its line is empty: is not JSON")
    assert skipped.endswith(" (input 3).")
    assert align("pairs.jsonl", pairs, "--strict").code == 1
    few = align("pairs.jsonl", pairs, "--examples", "2")
    assert (few.code, few.out.split("\n")) == (0, ["", "0-0", ""])
    assert align("pairs.jsonl", '{"en": "", "de": ""}\n').out == "\n"


def test_another_delimiter_is_found_by_the_names_of_columns(align: Inspect, tmp_path: Path) -> None:
    assert align("pairs.tsv", "en;de\nand, more;und\n").out.endswith("-0\n")
    lacks = "has no column 'en', which this run reads; it has 'english', 'german'."
    sentence = align("pairs.tsv", "english;german\nand;und\n").sentence
    assert sentence == f"{tmp_path / 'pairs.tsv'} {lacks}"


def test_a_page_has_no_more_inputs_than_can_be_read(
    inspect: Inspect, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sixjars.cli.inspect.MOST", 2)
    (tmp_path / "in.txt").write_text("word1\nand\nmore\n")
    lines = ("--input", tmp_path / "in.txt")
    said = inspect(*lines, "--out", tmp_path / "few.html")
    shown = "note: the first 2 inputs are shown, of 3; --examples N shows more."
    assert said.err.splitlines()[0] == shown
    assert (tmp_path / "few.html").read_text().count("<figure") == 2
    inspect(*lines, "--examples", "3", "--out", tmp_path / "all.html")
    assert (tmp_path / "all.html").read_text().count("<figure") == 3
    assert len(inspect(*lines, "--view", "json").out.splitlines()) == 3
    assert len(inspect(*lines, "--view", "json", "--examples", "1").out.splitlines()) == 1


def test_hypotheses_say_what_they_are_ordered_by(inspect: Inspect, tmp_path: Path) -> None:
    beam = ("word1 and more", "--search", "beam", "--set", "width=3")
    lines = inspect(*beam).out.splitlines()
    assert lines[-2] == "Ordered by score: log probability / tokens."
    scores = [float(line.split("(score ")[1].rstrip(")")) for line in lines if "(score " in line]
    assert len(scores) == 3
    assert scores == sorted(scores, reverse=True)
    inspect(*beam, "--set", "length_penalty=0", "--out", tmp_path / "a.html")
    assert "Ordered by score: log probability.<" in (tmp_path / "a.html").read_text()
    drawn = inspect("and", "--search", "sample", "--nbest", "2").out
    assert "In the order in which they were drawn; score: log probability / tokens." in drawn
    assert "score" not in inspect("and").out


def test_labels_are_ordered_by_probability_and_an_unknown_one_is_told(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = one_step("document_classification/sample_attention", tmp_path / "run", size=60)
    said = call("inspect", run, "a text", "--nbest", "3").out
    assert said.count("(probability ") == 3
    assert "Ordered by probability." in said
    forced = ("inspect", run, "a text", "--target", "weathr")
    similar = "input 1: the label 'weathr' is unknown. Did you mean 'weather'?"
    assert call(*forced).sentence.startswith(f"{similar} Known: ")
    monkeypatch.setattr("sixjars.runs.prediction.teacher_forcing.MOST_LABELS", 2)
    assert call(*forced).sentence == f"{similar} The run knows 6."


def test_a_file_of_inputs_and_lines_of_stdin(inspect: Inspect, tmp_path: Path) -> None:
    file = tmp_path / "in.txt"
    file.write_text("word1\nmore and\n")
    sources = [view["source"] for view in views(inspect("--input", file, "--view", "json"))]
    assert sources == [["word1"], ["more", "and"]]
    assert views(inspect("--view", "json", stdin=b"word1\n"))[0]["source"] == ["word1"]


def test_forced_predictions_keep_their_order_and_their_faults(words: Path) -> None:
    predictor = sixjars.load(words, device="cpu")
    inputs, outputs = ["word1 and more", "", "and"], ["wort1 und", "mehr", "mehr"]
    found = forced_predictions(predictor, inputs, outputs)
    assert [one.text for one in found] == ["wort1 und", "", "mehr"]
    assert found[1].error == "input 2: the source is empty."
    assert found[0].inputs == {"source": "word1 and more"}
    assert found[2].log_probability < 0


REFUSED: dict[str, tuple[list[str], str]] = {
    "an empty text": ([""], "input 1: the source is empty."),
    "a view that does not fit": (
        ["and", "--target", "und mehr", "--view", "tour"],
        "this model cannot be shown as tour; it gives heatmap, lines, document, pharaoh or json.",
    ),
    "an ending": (
        ["and", "--out", "a.gif"],
        "--out a.gif should end in .png, .svg, .pdf, .html or .json.",
    ),
    "JSON as a page": (
        ["and", "--out", "a.html", "--view", "json"],
        "--view json is written to a .json file, but --out is a.html.",
    ),
    "alignments as a page": (
        ["and", "--target", "und", "--view", "pharaoh", "--out", "a.html"],
        "--view pharaoh is written as lines of text, but --out is a.html; name a .txt file.",
    ),
    "alignments of nothing": (
        ["and", "--view", "pharaoh"],
        "--view pharaoh aligns an input with a given output: add --target TEXT, or --input FILE with the columns en "
        "and de.",
    ),
    "two inputs and one target": (
        ["and", "more", "--target", "und"],
        "--target is the output of one input, but 2 are given.",
    ),
    "two inputs on one picture": (
        ["and", "more", "--out", "a.png"],
        "a picture shows one input, but 2 are given: name an .html file, or draw them into a folder with sixjars "
        "predict --pictures FOLDER.",
    ),
    "texts and a file": (["and", "--input", "x.txt"], "give texts or --input, not both."),
    "a file that cannot be written": (
        ["and", "--out", "file/a.html"],
        "--out file/a.html cannot be written: {folder}/file is not a folder.",
    ),
    "a folder": (["and", "--out", "b.html"], "--out b.html is a folder; name a file in it."),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_refused_is_one_sentence(
    case: str, inspect: Inspect, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").touch()
    (tmp_path / "b.html").mkdir()
    arguments, sentence = REFUSED[case]
    assert inspect(*arguments).sentence == sentence.replace("{folder}", str(tmp_path))


def test_a_file_that_may_not_be_written_is_refused_first(
    inspect: Inspect, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def refused(dir: Path) -> None:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), dir)

    monkeypatch.setattr("sixjars.runs.output_file.TemporaryFile", refused)
    file = tmp_path / "a.png"
    sentence = inspect("and", "--out", file).sentence
    assert sentence == f"--out {file} cannot be written: Permission denied."


def test_nobody_waits_for_somebody_to_type(
    inspect: Inspect, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sixjars.cli.inputs.at_terminal", lambda: True)
    assert inspect().sentence == "give texts, --input FILE or lines on standard input."


def test_a_run_without_attention_says_so(call: Call, language_model: Path, tmp_path: Path) -> None:
    plain = one_step("translation/sample_initial", tmp_path / "plain")
    other = "its bridge is of another kind: train again with 'model.bridge={kind: attention}'."
    none = "no model of language_model has attention."
    for run, why in ((plain, other), (language_model, none)):
        no_view = "has no attention, so it gives no view (sixjars report shows the rest)"
        assert call("inspect", run, "I am going").sentence == f"{run} {no_view}; {why}"


def test_unknown_words_alone_are_noted(inspect: Inspect) -> None:
    said = inspect("zzz yyy", "--target", "und mehr")
    assert said.code == 0
    unknown = "100 % of the input tokens are unknown to the run (<unk>); outputs may be poor."
    assert said.err == f"note: {unknown}\n"
    assert "<unk:zzz>  <unk:yyy>" in said.out


def test_unknown_words_of_a_target_are_noted(inspect: Inspect) -> None:
    said = inspect("and more", "--target", "und Quark")
    assert said.err == "note: 1 of the 2 output tokens is unknown to the run: <unk:Quark>.\n"
    assert "<unk:Quark> " in said.out


def test_one_bad_input_among_good_ones_is_noted(inspect: Inspect) -> None:
    said = inspect("and", "", "--view", "json")
    assert said.code == 0
    assert len(said.out.splitlines()) == 1
    assert said.err == "note: 1 of 2 inputs was skipped: the source is empty (input 2).\n"
    strict = inspect("and", "", "--view", "json", "--strict")
    assert (strict.code, strict.err) == (1, said.err)


def test_pieces_are_joined_unless_they_are_asked_for(
    call: Call, from_file: Callable[..., str], pairs: Callable[..., Path], tmp_path: Path
) -> None:
    changes = {"data": {"source": {"tokens": "characters"}}, "learning": {"steps": 1}}
    run = sixjars.train(from_file(pairs(), **changes), out=tmp_path / "run", device="cpu").folder
    asked = ("inspect", run, "word1 and", "--target", "wort1 und", "--view", "json")
    [whole], [parts] = (views(call(*asked, *more)) for more in ((), ("--pieces",)))
    assert whole["source"] == ["word1", "and"]
    assert parts["source"] == list("word1␣and")
    first = np.array(parts["outputs"][0]["weights"])
    joined = np.stack([first[:, :5].sum(1), first[:, 5:].sum(1)], axis=1)
    assert np.allclose(whole["outputs"][0]["weights"], joined)


def test_a_missing_image_is_one_sentence(call: Call, tmp_path: Path) -> None:
    run = one_step("image_captioning/sample_attention", tmp_path / "run", size=12)
    missing = "input 1: the image file nowhere.jpg does not exist."
    assert call("inspect", run, "nowhere.jpg").sentence == missing
    train, _, _ = sixjars.generate_sample("image_captioning", tmp_path / "scenes", size=1)
    photo = tmp_path / "scenes" / json.loads(train.read_text().splitlines()[0])["image"]
    page = tmp_path / "a.html"
    assert call("inspect", run, photo, "--out", page).code == 0
    assert 'data-view="image"' in page.read_text()
    text = call("inspect", run, photo).out
    assert "█" in text
    refused = call("inspect", run, photo, "--view", "heatmap").sentence
    assert refused == "this model cannot be shown as heatmap; it gives image or json."
