"""Asking a run: order, batches, samples, attention, and `sixjars predict` around it."""

import json
import random
from pathlib import Path
from typing import Any

import pytest

import sixjars
from sixjars.errors import DataError
from sixjars.recipe.sections import SearchSettings
from sixjars.runs.predict import Predictor

LETTERS = "abdeghijklmnorstuv"
SAMPLE = SearchSettings(kind="sample", max_length=12, seed=3)


def words(count: int, longest: int = 9, seed: int = 0) -> list[str]:
    chance = random.Random(seed)
    return ["".join(chance.choices(LETTERS, k=chance.randint(1, longest))) for _ in range(count)]


@pytest.fixture
def predictor(run: Path) -> Predictor:
    return sixjars.load(run)


def lines(text: str) -> list[dict[str, Any]]:
    return [json.loads(line, parse_constant=pytest.fail) for line in text.splitlines()]


@pytest.mark.parametrize("search", [SearchSettings(max_length=8), SearchSettings(kind="beam", width=3, max_length=8)])
def test_the_same_alone_or_in_a_batch(search: SearchSettings, predictor: Predictor) -> None:
    texts = words(30)
    together = predictor.predict(texts, search=search)
    alone = [predictor.predict([text], search=search)[0] for text in texts]
    assert [found.text for found in together] == [found.text for found in alone]
    assert [found.score for found in together] == pytest.approx([found.score for found in alone], abs=1e-5)
    assert len({found.text for found in together}) > 1


def test_the_order_is_kept(predictor: Predictor) -> None:
    texts = words(2000, longest=25)
    found = predictor.predict(texts, search=SearchSettings(max_length=4))
    assert ["".join(answer.source) for answer in found] == texts


def test_pieces_and_weights(predictor: Predictor) -> None:
    for search in (
        SearchSettings(max_length=9),
        SearchSettings(kind="beam", width=4, nbest=4, max_length=9),
        SearchSettings(kind="sample", nbest=3, max_length=9),
    ):
        for found in predictor.nbest(["namaste", "a", "bhaarat"], search=search):
            assert len(found) == (1 if search.kind == "greedy" else search.nbest)
            ranks = [answer.log_probability if search.kind == "sample" else answer.score for answer in found]
            assert ranks == sorted(ranks, reverse=True)
            for answer in found:
                assert answer.finished == (answer.tokens[-1:] == ("<stop>",))
                assert answer.text == "".join(answer.tokens).removesuffix("<stop>").replace("␣", " ")
                assert len(answer.weights) == len(answer.tokens)
                assert all(len(row) == len(answer.source) for row in answer.weights)
                assert [sum(row) for row in answer.weights] == pytest.approx([1.0] * len(answer.tokens), abs=1e-5)


def test_samples_differ_from_row_to_row_and_batch_to_batch(predictor: Predictor) -> None:
    """128 rows are searched at once: 300 equal inputs are three batches, and no two are in step."""
    texts = ["namaste"] * 300
    drawn = [found.text for found in predictor.predict(texts, search=SAMPLE)]
    assert len(set(drawn)) > 290
    assert drawn[:128] != drawn[128:256]
    assert [found.text for found in predictor.predict(texts, search=SAMPLE)] == drawn
    other = SAMPLE.model_copy(update={"seed": 4})
    assert [found.text for found in predictor.predict(texts, search=other)] != drawn
    later = [found[0].text for found in predictor.nbest(texts[:128], search=SAMPLE, first=128)]
    assert later != drawn[:128]
    assert [found[0].text for found in predictor.nbest(texts[:128], search=SAMPLE, first=128)] == later


def test_samples_of_evaluation_differ_from_batch_to_batch(run: Path) -> None:
    from sixjars.evaluation.score import drawn_anew

    seeds = [drawn_anew(SAMPLE, number).seed for number in range(50)]
    assert len(set(seeds)) == 50
    assert drawn_anew(SAMPLE, 7) == drawn_anew(SAMPLE, 7)
    greedy = SearchSettings()
    assert drawn_anew(greedy, 7) is greedy


def test_a_language_model_goes_on_from_what_it_is_given(language_model: Path) -> None:
    predictor = sixjars.load(language_model)
    begun = predictor.predict(["the", "", "the  old   "])
    assert begun[0].text.startswith("the")
    assert begun[2].text.split()[:1] == ["the"]
    assert begun[1].text == predictor.predict([""])[0].text
    assert begun[0].source == ()
    assert set(begun[0].weights) <= {()}
    drawn = {found.text for found in predictor.predict([""] * 20, search=SAMPLE)}
    assert len(drawn) > 10
    with pytest.raises(DataError) as caught:
        predictor.predict(["", "the " * 30])
    assert str(caught.value) == (
        "input 2 has 30 tokens, but at most 12 are written (max_length), so nothing could follow."
    )


def test_what_cannot_be_asked(predictor: Predictor) -> None:
    assert predictor.predict([]) == []
    with pytest.raises(DataError) as caught:
        predictor.predict(["a", " \t"])
    assert str(caught.value) == "input 2 is empty; a transliteration model needs some text."
    with pytest.raises(DataError) as caught:
        predictor.nbest([""], first=1024)
    assert str(caught.value) == "input 1025 is empty; a transliteration model needs some text."
    with pytest.raises(DataError) as caught:
        predictor.predict("namaste")
    assert str(caught.value) == "give a list of texts, not one text."
    with pytest.raises(DataError, match="half a character"):
        predictor.predict(["a\udce9"])


def test_texts_of_the_command_line(call: Any, run: Path, predictor: Predictor) -> None:
    wanted = [found.text for found in predictor.predict(["namaste", "ghar"])]
    said = call("predict", run, "namaste", "ghar")
    assert (said.code, said.err) == (0, "")
    assert said.out.splitlines() == wanted


def test_the_same_from_a_file_and_from_stdin(call: Any, run: Path, tmp_path: Path) -> None:
    texts = words(40)
    (tmp_path / "in.txt").write_bytes("\r\n".join(texts).encode("utf-8-sig"))
    argued = call("predict", run, *texts).out
    assert call("predict", run, "--input", tmp_path / "in.txt").out == argued
    assert call("predict", run, stdin="\n".join(texts).encode()).out == argued
    said = call("predict", run, "--input", tmp_path / "in.txt", "--output", tmp_path / "out.txt")
    assert (said.code, said.out, said.err) == (0, "", "")
    assert (tmp_path / "out.txt").read_text() == argued


def test_more_than_one_portion(call: Any, run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stdin = "\n".join(words(35)).encode()
    whole = call("predict", run, stdin=stdin).out
    monkeypatch.setattr("sixjars.cli.predict.AT_ONCE", 10)
    assert call("predict", run, stdin=stdin).out == whole
    drawn = call("predict", run, "--search", "sample", stdin=b"namaste\n" * 30).out.splitlines()
    assert len(set(drawn)) > 25
    assert drawn == call("predict", run, "--search", "sample", stdin=b"namaste\n" * 30).out.splitlines()
    other = call("predict", run, "--search", "sample", "--set", "seed=1", stdin=b"namaste\n" * 30)
    assert other.out.splitlines() != drawn


@pytest.mark.parametrize("search", ["greedy", "beam", "sample"])
def test_json(search: str, call: Any, run: Path) -> None:
    said = call("predict", run, "namaste", "ghar", "--json", "--search", search)
    found = lines(said.out)
    assert [answer["input"] for answer in found] == ["namaste", "ghar"]
    for answer in found:
        assert set(answer) == {
            *("input", "text", "score", "log_probability"),
            *("finished", "source", "pieces", "weights"),
        }
        assert answer["source"] == list(answer["input"])
        assert len(answer["weights"]) == len(answer["pieces"])
        assert [sum(row) for row in answer["weights"]] == pytest.approx([1.0] * len(answer["pieces"]), abs=1e-4)
    plain = call("predict", run, "namaste", "ghar", "--search", search).out.splitlines()
    assert [answer["text"] for answer in found] == plain


def test_nbest(call: Any, run: Path, predictor: Predictor) -> None:
    said = call("predict", run, "namaste", "ghar", "--nbest", 7, "--json")
    found = lines(said.out)
    assert [answer["input"] for answer in found] == ["namaste"] * 7 + ["ghar"] * 7
    assert len({answer["text"] for answer in found[:7]}) == 7
    beam = SearchSettings(kind="beam", width=7, nbest=7, max_length=12)
    wanted = predictor.nbest(["namaste", "ghar"], search=beam)
    assert [answer["text"] for answer in found] == [answer.text for group in wanted for answer in group]
    assert len(call("predict", run, "a", "--nbest", 3, "--search", "sample").out.splitlines()) == 3
    assert call("predict", run, "a", "--nbest", 1).out == call("predict", run, "a").out
    assert call("predict", run, "a", "--nbest", 2, "--search", "greedy").sentence == (
        "greedy search finds one output, but --nbest is 2; use --search beam or sample."
    )


def test_settings_of_one_call(call: Any, run: Path) -> None:
    assert len(lines(call("predict", run, "namaste", "--set", "max_length=3", "--json").out)[0]["pieces"]) <= 3
    both = call("predict", run, "a", "--set", "top_p=3", "--set", "temperature=0")
    assert both.err == (
        "sixjars: 2 faults in the command line:\n"
        "  - search.temperature: should be greater than 0, but is 0.\n"
        "  - search.top_p: should be less than or equal to 1, but is 3.\n"
    )
    said = call("predict", run, "a", "--set", "widht=3")
    assert said.sentence.startswith("the command line: search: key 'widht' is unknown. Did you mean 'width'? Known: ")
    assert call("predict", run, "a", "--set", "width=much", "--nbest", 2).sentence == (
        "the command line: search.width: should be a valid integer, but is 'much'."
    )
    assert call("predict", run, "a", "--set", "temperature").sentence == (
        "the command line: override 'temperature' must look like KEY=VALUE, for example learning.rate=5e-4."
    )


def test_a_language_model_on_the_command_line(call: Any, language_model: Path) -> None:
    begun = call("predict", language_model, "the old").out
    assert begun.startswith("the")
    nothing = call("predict", language_model, stdin=b"").out
    assert nothing == call("predict", language_model, "").out == call("predict", language_model, stdin=b"\n").out
    assert nothing == call("predict", language_model, stdin=None).out
    found = lines(call("predict", language_model, "the", "--json", "--nbest", 2).out)
    assert all(answer["source"] == [] for answer in found)
    assert all(row == [] for answer in found for row in answer["weights"])
