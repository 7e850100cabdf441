"""Asking a run: order, batches, samples, attention, and `sixjars predict` around it."""

import json
import random
import shutil
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml

import sixjars
from sixjars.data.text.tokenizer import TextTokenizer
from sixjars.errors import DataError
from sixjars.recipe.sections import SearchSettings
from sixjars.runs.prediction.predictor import Predictor

LETTERS = "abdeghijklmnorstuv"
SAMPLE = SearchSettings(kind="sample", max_length=12, seed=3)
ROUNDING = 1e-4
"""In 32 bits a product over another number of rows may be rounded otherwise at each step."""


def words(count: int, longest: int = 9, seed: int = 0) -> list[str]:
    chance = random.Random(seed)
    return ["".join(chance.choices(LETTERS, k=chance.randint(1, longest))) for _ in range(count)]


@pytest.fixture
def predictor(run: Path) -> Predictor:
    return sixjars.load(run)


def lines(text: str) -> list[dict[str, Any]]:
    return [json.loads(line, parse_constant=pytest.fail) for line in text.splitlines()]


@pytest.mark.parametrize(
    "search", [SearchSettings(max_length=8), SearchSettings(kind="beam", width=3, max_length=8)]
)
def test_the_same_alone_or_in_a_batch(search: SearchSettings, predictor: Predictor) -> None:
    texts = words(30)
    together = predictor.predict(texts, search=search)
    alone = [predictor.predict([text], search=search)[0] for text in texts]
    assert [found.text for found in together] == [found.text for found in alone]
    assert [found.score for found in together] == pytest.approx(
        [found.score for found in alone], abs=ROUNDING
    )
    assert len({found.text for found in together}) > 1


def test_the_order_is_kept(predictor: Predictor) -> None:
    texts = words(2000, longest=25)
    found = predictor.predict(texts, search=SearchSettings(max_length=4))
    assert ["".join(answer.source) for answer in found] == texts


def test_tokens_and_weights(predictor: Predictor) -> None:
    for search in (
        SearchSettings(max_length=9),
        SearchSettings(kind="beam", width=4, nbest=4, max_length=9),
        SearchSettings(kind="sample", nbest=3, max_length=9),
    ):
        for found in predictor.nbest(["namaste", "a", "bhaarat"], search=search):
            assert len(found) == (1 if search.kind == "greedy" else search.nbest)
            ranks = [
                answer.log_probability if search.kind == "sample" else answer.score
                for answer in found
            ]
            assert ranks == sorted(ranks, reverse=True)
            for answer in found:
                assert answer.finished == (answer.tokens[-1:] == ("<stop>",))
                assert answer.text == "".join(answer.tokens).removesuffix("<stop>").replace(
                    "␣", " "
                )
                assert len(answer.weights) == len(answer.tokens)
                assert all(len(row) == len(answer.source) for row in answer.weights)
                assert [sum(row) for row in answer.weights] == pytest.approx(
                    [1.0] * len(answer.tokens), abs=1e-5
                )


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
    assert [
        found[0].text for found in predictor.nbest(texts[:128], search=SAMPLE, first=128)
    ] == later


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
    short, long = predictor.predict(["", "the " * 30])
    assert (short.text, short.error) == (begun[1].text, None)
    assert long.error == (
        "input 2: has 30 tokens, but an output has at most 12 (max_length), so nothing could "
        "follow."
    )


def test_inputs_that_cannot_be_used(predictor: Predictor) -> None:
    assert predictor.predict([]) == []
    good, bad = predictor.predict(["a", " \t"])
    assert good == predictor.predict(["a"])[0]
    assert (bad.text, bad.error, bad.to_json()) == (
        "",
        "input 2: the source is empty.",
        {"text": "", "error": "input 2: the source is empty."},
    )
    [[late]] = predictor.nbest([""], first=1024)
    assert late.error == "input 1025: the source is empty."
    given: Any = [
        7,
        {"source": "a", "colour": "red"},
        {"source": 5},
        ["a", "b"],
        "ä\udce9",
        "a\ud800",
    ]
    assert [found.error for found in predictor.predict(given)] == [
        "input 1: the source must be a text, but is 7.",
        "input 2: must name source, but has source, colour.",
        "input 3: the source must be a text, but is 5.",
        "input 4: the source must be a text, but is ['a', 'b'].",
        "input 5: byte 3 of the source (0xe9) is not UTF-8; give it in UTF-8.",
        "input 6: the source is not UTF-8 text (it holds half a character).",
    ]
    with pytest.raises(DataError) as caught:
        predictor.nbest("namaste")
    assert str(caught.value) == "give a list of inputs, not one input."


def test_a_bad_input_spoils_only_its_own_answer(predictor: Predictor) -> None:
    texts = words(20)
    good = predictor.predict(texts)
    mixed: Any = [value for text in texts for value in (text, "")]
    assert predictor.predict(mixed)[::2] == good


def test_an_input_that_is_too_long_spoils_only_its_own_answer(run: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(run, tmp_path / "copy")
    recipe = yaml.safe_load((copy / "recipe.yaml").read_text(encoding="utf-8"))
    recipe["data"]["source"] |= {"on_long": "error", "max_length": 6}
    (copy / "recipe.yaml").write_text(yaml.safe_dump(recipe), encoding="utf-8")
    short, long = sixjars.load(copy).predict(["ghar", "namaste"])
    assert (short.text, short.error) == (sixjars.load(run).predict(["ghar"])[0].text, None)
    assert long.error == (
        "input 2: the source has 7 tokens, but data.source.max_length is 6; raise it, or say "
        "on_long: cut or drop."
    )


@pytest.mark.parametrize("kind", ["greedy", "beam", "sample"])
def test_an_answer_does_not_depend_on_its_company(kind: Any, predictor: Predictor) -> None:
    """Samples included: a draw depends on its place among all inputs, not on rows beside it."""
    search = SearchSettings(kind=kind, max_length=9, seed=3)
    texts, others = words(12), words(12, longest=25, seed=5)
    for company in (others, texts[::-1]):
        mixed = predictor.nbest(
            [value for pair in zip(texts, company, strict=True) for value in pair], search=search
        )
        for number, text in enumerate(texts):
            [[alone]] = predictor.nbest([text], search=search, first=2 * number)
            assert mixed[2 * number][0].tokens == alone.tokens
            assert mixed[2 * number][0].log_probability == pytest.approx(
                alone.log_probability, abs=ROUNDING
            )


@pytest.mark.parametrize("kind", ["greedy", "beam", "sample"])
def test_many_threads_get_what_one_gets(kind: Any, predictor: Predictor) -> None:
    search = SearchSettings(kind=kind, max_length=9)
    portions = [words(7, seed=number) for number in range(16)]
    wanted = [predictor.predict(texts, search=search) for texts in portions]
    with ThreadPoolExecutor(8) as threads:
        found: Any = list(
            threads.map(lambda texts: predictor.predict(texts, search=search), portions * 3)
        )
    assert found == wanted * 3


def test_prediction_leaves_the_process_as_it_was(predictor: Predictor) -> None:
    before = (
        torch.get_rng_state(),
        torch.is_grad_enabled(),
        torch.get_default_dtype(),
        warnings.filters[:],
    )
    for kind in ("greedy", "beam", "sample"):
        predictor.predict(words(5), search=SearchSettings(kind=kind, max_length=9))
    after = (
        torch.get_rng_state(),
        torch.is_grad_enabled(),
        torch.get_default_dtype(),
        warnings.filters[:],
    )
    assert torch.equal(before[0], after[0])
    assert before[1:] == after[1:]


def test_every_input_is_tokenized_once(
    predictor: Predictor, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[str] = []
    real = TextTokenizer.encode_many

    def counted(self: TextTokenizer, texts: Any, *more: Any, **named: Any) -> Any:
        seen.extend(texts)
        return real(self, texts, *more, **named)

    monkeypatch.setattr(TextTokenizer, "encode_many", counted)
    monkeypatch.setattr(TextTokenizer, "encode_flat", lambda *_: pytest.fail("by a table"))
    texts = list(dict.fromkeys(words(30)))
    predictor.predict(texts)
    assert sorted(seen) == sorted(texts)


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
    monkeypatch.setattr("sixjars.cli.streaming.AT_ONCE", 10)
    assert call("predict", run, stdin=stdin).out == whole
    drawn = call("predict", run, "--search", "sample", stdin=b"namaste\n" * 30).out.splitlines()
    assert len(set(drawn)) > 25
    assert (
        drawn
        == call("predict", run, "--search", "sample", stdin=b"namaste\n" * 30).out.splitlines()
    )
    other = call("predict", run, "--search", "sample", "--set", "seed=1", stdin=b"namaste\n" * 30)
    assert other.out.splitlines() != drawn


def test_a_file_is_read_in_portions_at_a_terminal_too(
    call: Any, run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "in.txt").write_text("\n".join(words(35)))
    portions: list[int] = []
    real = Predictor.nbest

    def counted(self: Predictor, inputs: Any, **more: Any) -> Any:
        portions.append(len(inputs))
        return real(self, inputs, **more)

    monkeypatch.setattr(Predictor, "nbest", counted)
    monkeypatch.setattr("sixjars.cli.inputs.at_terminal", lambda: True)
    call("predict", run, "--input", tmp_path / "in.txt")
    assert portions == [35]
    portions.clear()
    call("predict", run, stdin=b"ghar\nja\n")  # typed: each is answered before the next is read
    assert portions == [1, 1]


@pytest.mark.parametrize("search", ["greedy", "beam", "sample"])
def test_json(search: str, call: Any, run: Path) -> None:
    said = call("predict", run, "namaste", "ghar", "--json", "--search", search)
    found = lines(said.out)
    assert [answer["input"] for answer in found] == ["namaste", "ghar"]
    for answer in found:
        assert set(answer) == {
            *("input", "text", "score", "log_probability", "probability"),
            *("finished", "source", "tokens", "weights"),
        }
        assert answer["source"] == list(answer["input"])
        assert len(answer["weights"]) == len(answer["tokens"])
        assert [sum(row) for row in answer["weights"]] == pytest.approx(
            [1.0] * len(answer["tokens"]), abs=1e-4
        )
    plain = call("predict", run, "namaste", "ghar", "--search", search).out.splitlines()
    assert [answer["text"] for answer in found] == plain


def test_nbest(call: Any, run: Path, predictor: Predictor) -> None:
    said = call("predict", run, "namaste", "ghar", "--nbest", 7, "--json")
    found = lines(said.out)
    assert [answer["input"] for answer in found] == ["namaste"] * 7 + ["ghar"] * 7
    assert len({answer["text"] for answer in found[:7]}) == 7
    beam = SearchSettings(kind="beam", width=7, nbest=7, max_length=12)
    wanted = predictor.nbest(["namaste", "ghar"], search=beam)
    assert [answer["text"] for answer in found] == [
        answer.text for group in wanted for answer in group
    ]
    assert len(call("predict", run, "a", "--nbest", 3, "--search", "sample").out.splitlines()) == 3
    assert call("predict", run, "a", "--nbest", 1).out == call("predict", run, "a").out
    told = "greedy search finds one output, but nbest is 2; search with beam or sample."
    assert call("predict", run, "a", "--nbest", 2, "--search", "greedy").sentence == told


def test_settings_of_one_call(call: Any, run: Path) -> None:
    assert (
        len(
            lines(call("predict", run, "namaste", "--set", "max_length=3", "--json").out)[0][
                "tokens"
            ]
        )
        <= 3
    )
    both = call("predict", run, "a", "--set", "top_p=3", "--set", "temperature=0")
    assert both.err == (
        "sixjars: 2 faults in the command line:\n"
        "  - search.temperature: should be greater than or equal to 0.001, but is 0.\n"
        "  - search.top_p: should be less than or equal to 1, but is 3.\n"
    )
    said = call("predict", run, "a", "--set", "widht=3")
    told = "the command line: search: key 'widht' is unknown. Did you mean 'width'? Known: "
    assert said.sentence.startswith(told)
    told = "the command line: search.width: should be a valid integer, but is 'much'."
    assert call("predict", run, "a", "--set", "width=much", "--nbest", 2).sentence == told
    assert call("predict", run, "a", "--set", "temperature").sentence == (
        "the command line: override 'temperature' must look like KEY=VALUE, for example "
        "learning.rate=5e-4."
    )


def test_a_language_model_on_the_command_line(call: Any, language_model: Path) -> None:
    begun = call("predict", language_model, "the old").out
    assert begun.startswith("the")
    nothing = call("predict", language_model, stdin=b"").out
    assert (
        nothing
        == call("predict", language_model, "").out
        == call("predict", language_model, stdin=b"\n").out
    )
    assert nothing == call("predict", language_model, stdin=None).out
    found = lines(call("predict", language_model, "the", "--json", "--nbest", 2).out)
    assert all(answer["source"] == [] for answer in found)
    assert all(row == [] for answer in found for row in answer["weights"])


def test_the_path_of_a_file_is_not_classified_as_a_text(predictor: Predictor) -> None:
    path = Path("held.csv")
    told = "held.csv is the path of a file, but texts are read here: give a table, predict(pandas.read_csv('held.csv'))"
    asks: list[Any] = [predictor.predict, predictor.nbest]
    for ask in asks:
        with pytest.raises(DataError) as caught:
            ask(path)
        assert str(caught.value).startswith(told)
    [found, good] = predictor.predict([path, "ghar"])
    assert str(found.error).startswith(f"input 1: {told}")
    assert good.error is None
