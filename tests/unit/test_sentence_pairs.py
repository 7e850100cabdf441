"""Pairs of sentences: one vocabulary, two texts for each prediction, attention over one."""

import json
from pathlib import Path
from typing import Any

import pytest

import sixjars
from sixjars.model.build import build
from sixjars.recipe.files import overridden
from sixjars.runs.data.splits import splits_of
from sixjars.runs.recipes import Blueprint, read_recipe, recipe_of
from sixjars.runs.training.network import add_vectors

from .faults import entries, faults_of

ROWS = [
    ("a cat sleeps", "an animal rests", "entailment"),
    ("a cat sleeps", "nobody rests", "contradiction"),
    ("two dogs run", "they run in parks", "neutral"),
    ("two dogs run", "some animal moves", "entailment"),
] * 6
SMALL = {
    "encoder": {"sentence": {"size": 4, "direction": "both", "embedding": {"size": 3}}},
    "decoder": {"size": 5},
}
BOTH = "sentence1", "sentence2"
OBJECT = '{"premise": "...", "hypothesis": "..."}'


def values(**data: Any) -> dict[str, Any]:
    fields = {
        "sentence1": {"column": "premise"},
        "sentence2": {"column": "hypothesis"},
        "label": {},
    }
    return {
        "task": "sentence_pair",
        "data": {"train": "pairs.csv", "valid": "pairs.csv", **fields, **data},
        "model": SMALL,
        "learning": {"steps": 2, "batch_examples": 8},
    }


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SIXJARS_CACHE", str(tmp_path / "cache"))
    lines = ["premise,hypothesis,label", *(",".join(row) for row in ROWS)]
    Path("pairs.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")


@pytest.fixture
def run() -> Path:
    return sixjars.train(values(), out="run", device="cpu").folder


def test_both_sentences_have_one_vocabulary() -> None:
    found = splits_of(Blueprint.of(recipe_of(values(), "a test"))).fields
    one, two = (found.inputs[name].encoders()[name] for name in BOTH)
    text = "a cat rests nobody moves"
    assert one.encode([text]) == two.encode([text])
    assert 3 not in one.encode(["a cat two dogs rests nobody parks moves"])[0]  # <unk>


def test_a_row_of_the_data_is_an_input(run: Path) -> None:
    """Also by the names of its columns, with others beside them."""
    row = {"premise": "a cat rests", "hypothesis": "nobody moves", "label": "?"}
    by_field = {"sentence1": row["premise"], "sentence2": row["hypothesis"]}
    found, same = sixjars.load(run).predict([row, by_field])
    assert (found.error, found.text, found.score) == (None, same.text, same.score)


def test_word_vectors_are_those_of_both() -> None:
    Path("words.txt").write_text("cat 1 2 3\nrests 4 5 6\n", encoding="utf-8")
    columns = zip(BOTH, ("premise", "hypothesis"), strict=True)
    named = {name: {"column": column, "vectors": "words.txt"} for name, column in columns}
    blueprint = Blueprint.of(recipe_of(values(**named), "a test"))
    fields = splits_of(blueprint).fields
    facts = fields.facts()
    add_vectors(blueprint, fields, facts)
    network = build(blueprint.plan, facts)
    table: Any = network.encoder.get_parameter("sentence.embedding.table.weight")
    [[cat, rests]] = fields.inputs["sentence2"].encoders()["sentence2"].encode(["cat rests"])
    assert table[[cat, rests]].tolist() == [[1, 2, 3], [4, 5, 6]]


def test_a_vocabulary_grows_for_both_when_a_run_goes_on(run: Path) -> None:
    Path("more.csv").write_text(
        "premise,hypothesis,label\n" + "a bird flies,a bird moves,entailment\n" * 8
    )
    sixjars.train(
        values(train="more.csv", valid="more.csv"), from_run=run, out="more", device="cpu"
    )
    fields = sixjars.load("more", device="cpu").fields
    one, two = (fields.inputs[name].encoders()[name].encode(["a bird rests"]) for name in BOTH)
    assert one == two
    assert 3 not in one[0]


FAULTS = """
data.sentence2.tokens=characters  data.sentence2.min_count=2
    data.sentence1 and data.sentence2 have one vocabulary; give them the same tokens and min_count.
data.sentence2.kind=points
    data.sentence2: must be a text, as data.sentence1 is; they have one vocabulary.
data.sentence1.kind=points
    data.sentence1: must be a text, but is of kind points.
"""


@pytest.mark.parametrize(("overrides", "sentence"), entries(FAULTS))
def test_fields_that_cannot_have_one_vocabulary(overrides: str, sentence: str) -> None:
    assert sentence in faults_of(overridden(values(), overrides.split("  ")))


def test_attention_is_over_the_second_sentence(run: Path) -> None:
    prediction = sixjars.load(run, device="cpu").predict(
        {"sentence1": "a cat sleeps", "sentence2": "nobody rests"}
    )
    assert prediction.source == ("nobody", "rests")
    [weights] = prediction.weights
    assert sum(weights) == pytest.approx(1.0)
    sixjars.draw("attention.png", sixjars.load(run, device="cpu"), prediction)
    assert Path("attention.png").stat().st_size > 1000


def test_a_prediction_needs_both(run: Path) -> None:
    predictor = sixjars.load(run, device="cpu")
    told = "input 1: must be a dict of sentence1 and sentence2, but is 'a cat sleeps'."
    assert predictor.predict(["a cat sleeps"])[0].error == told
    told = "input 1: must name sentence1 and sentence2, but has sentence1."
    assert predictor.predict([{"sentence1": "a cat sleeps"}])[0].error == told


def test_explain_names_both(run: Path) -> None:
    lines = [line for section in sixjars.explain(str(run)).sections for line in section.lines]
    assert "P(y | x_1, x_2) = softmax(V_out s_1 + b_out)" in lines
    assert any(line.startswith("x_2, the sentence2: words") for line in lines)


# The command line


def test_two_texts_are_one_input(run: Path, call: Any) -> None:
    said = call("predict", run, "a cat sleeps", "nobody rests", "two dogs run", "an animal rests")
    assert said.code == 0
    assert len(said.out.splitlines()) == 2
    label, probability = said.out.splitlines()[0].split("\t")
    assert label in {"entailment", "neutral", "contradiction"}
    assert 0 < float(probability) <= 1
    one = json.dumps({"premise": "a cat sleeps", "hypothesis": "nobody rests"})
    assert call("predict", run, one).out.splitlines() == said.out.splitlines()[:1]
    assert (
        call("predict", run, "a cat sleeps\tnobody rests").out.splitlines()
        == said.out.splitlines()[:1]
    )


def test_one_text_is_not_enough(run: Path, call: Any) -> None:
    said = call("predict", run, "a cat sleeps")
    assert (said.code, said.out) == (2, "")
    assert said.err == (
        "sixjars: sentence_pair reads sentence1 and sentence2: give 2 texts for each input, not 1; "
        f"or an object each: {OBJECT}.\n"
    )
    assert call("predict", run, '["a cat sleeps", "nobody rests"]').err == said.err


def test_lines_have_a_tab_between_both(run: Path, call: Any) -> None:
    Path("lines.txt").write_text("a cat sleeps\tnobody rests\nno tab\n", encoding="utf-8")
    said = call("predict", run, "--input", "lines.txt")
    assert said.code == 0
    assert [bool(line) for line in said.out.splitlines()] == [True, False]
    told = f"must be sentence1 and sentence2 with a tab between them, or {OBJECT} (input 2)."
    assert told in said.err


def test_a_file_with_columns(run: Path, call: Any) -> None:
    said = call("predict", run, "--input", "pairs.csv", "--output", "answers.csv")
    assert said.code == 0
    first, *rows = Path("answers.csv").read_text(encoding="utf-8").splitlines()
    assert first.startswith("premise,hypothesis,label,")
    assert len(rows) == len(ROWS)


def test_a_starter_recipe_has_one_vocabulary_too() -> None:
    """And words compared with words."""
    sixjars.new("mine.yaml", task="sentence_pair", data="pairs.csv")
    recipe = read_recipe("mine.yaml")
    expected = ["words", "words"]
    assert [getattr(recipe.data.fields[name], "tokens", None) for name in BOTH] == expected
    assert recipe.model.encoder["compare"] == "words"


# Names of tasks


def test_text_classification_is_another_name(call: Any, tmp_path: Path) -> None:
    named = read_recipe("text_classification/sample_attention")
    assert named == read_recipe("document_classification/sample_attention")
    Path("texts.csv").write_text(
        "text,label\n" + "it was good,good\nit was bad,bad\n" * 12, encoding="utf-8"
    )
    sixjars.new("mine.yaml", task="text_classification", data="texts.csv")
    assert "task: document_classification" in Path("mine.yaml").read_text(encoding="utf-8")
    plain = {"task": "text_classification", "data": {"sample": {}, "source": {"segments": "lines"}}}
    assert recipe_of(plain, "a test").task == "document_classification"
    assert sixjars.generate_sample("text_classification", tmp_path / "made", size=10)
    told = call("tasks").out
    assert (
        "S12 document_classification  a document in, its class out (also: text_classification)"
        in told
    )
    listed = {task["name"]: task["also"] for task in json.loads(call("tasks", "--json").out)}
    assert listed["document_classification"] == ["text_classification"]


def test_entailment_says_that_it_writes(call: Any) -> None:
    told = call("tasks").out
    assert "S3  entailment        writes a hypothesis that follows from a premise" in told
