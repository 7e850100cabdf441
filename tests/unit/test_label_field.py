"""A closed list of labels: how it is learned, what is not in it, how it is kept."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

import sixjars
import sixjars_runtime
from sixjars.data.dataset import Dataset, Fields
from sixjars.data.fields.label import LabelField, LabelSettings
from sixjars.data.storage.cache import Examples
from sixjars.errors import DataError, RecipeError, RunError
from sixjars.evaluation.metrics import metric_named
from sixjars.evaluation.score import judged
from sixjars.loss import class_weights, token_loss
from sixjars.recipe.sections import EvaluationSettings, LossSettings, Recipe
from sixjars.runs.data.splits import splits_of
from sixjars.runs.recipes import Blueprint, recipe_of
from sixjars.runs.training.network import fresh_network

TEXTS = ["dog", "cat", "ox", "cat", "dog", "ant", "cat", "Dog"]


def field(*names: str, **settings: object) -> LabelField:
    return LabelField("label", LabelSettings(**settings), names)  # type: ignore[arg-type]


def learned(texts: list[str], **settings: object) -> tuple[str, ...]:
    return field(**settings).learned(texts).names


def test_the_most_frequent_come_first_and_equals_by_the_alphabet() -> None:
    assert learned(TEXTS) == ("cat", "dog", "Dog", "ant", "ox")


def test_the_order_of_the_rows_does_not_matter() -> None:
    assert learned(TEXTS[::-1]) == learned(TEXTS)


@pytest.mark.parametrize(
    ("settings", "names"),
    [
        ({"size": 2}, ("cat", "dog")),
        ({"size": 99}, ("cat", "dog", "Dog", "ant", "ox")),
        ({"min_count": 2}, ("cat", "dog")),
        ({"lowercase": True}, ("cat", "dog", "ant", "ox")),
        ({"lowercase": True, "min_count": 3}, ("cat", "dog")),
        ({"min_count": 2, "size": 2, "lowercase": True}, ("cat", "dog")),
    ],
)
def test_settings_decide_which_are_kept(
    settings: dict[str, object], names: tuple[str, ...]
) -> None:
    assert learned(TEXTS, **settings) == names


@pytest.mark.parametrize(
    ("texts", "settings", "told"),
    [
        (["cat"] * 5, {}, "but the training set has 1: ['cat']."),
        (TEXTS, {"size": 1}, "but the training set has 1: ['cat']."),
        (TEXTS, {"min_count": 9}, "but the training set has 0: []."),
    ],
)
def test_too_few_to_choose_from(texts: list[str], settings: dict[str, object], told: str) -> None:
    with pytest.raises(DataError) as error:
        learned(texts, **settings)
    assert str(error.value) == f"data.label: two labels or more are needed to choose from, {told}"


def test_labels_are_normalized_before_they_are_looked_up() -> None:
    labels = field("ice cream", "soup")
    assert labels.normalize("  ice \t cream ") == "ice cream"
    assert labels.encode([" ice   cream", "Soup", "soup", ""]) == [[0], [], [1], []]
    assert field("soup", lowercase=True).encode(["SOUP"]) == [[0]]


@given(
    st.lists(
        st.text(st.characters(exclude_categories=["Z", "C"]), min_size=1), min_size=2, unique=True
    )
)
def test_numbers_and_names_are_each_other_s_opposite(names: list[str]) -> None:
    labels = field(*names)
    assert labels.facts() == {"classes": len(names), "multi_label": False}
    assert [labels.decode(found) for found in labels.encode(names)] == names
    assert labels.tokens(list(range(len(names)))) == names


@given(st.lists(st.text(), min_size=2, unique=True), st.booleans())
def test_what_is_kept_is_read_back(names: list[str], lowercase: bool) -> None:
    labels = field(*names, lowercase=lowercase)
    again = field(lowercase=lowercase).restored(labels.to_json())
    assert (again.names, again.settings) == (labels.names, labels.settings)


@pytest.mark.parametrize(
    "text",
    [
        *("", "[1, 2]", "{}", '{"format": 1, "labels": ["a"]}', "[" * 100_000),
        *('{"format": 3, "labels": ["a", "b"]}', field("a", "b").to_json()[:-5]),
        *(
            json.dumps({"format": 2, "labels": labels})
            for labels in (["a", 5], ["a", "a"], 5, "cats and dogs")
        ),
    ],
)
def test_what_is_damaged_is_told_in_a_sentence(text: str) -> None:
    told = r"^The saved labels are damaged or of another version: .*\.$"
    with pytest.raises(RunError, match=told):
        field().restored(text)


def test_several_labels_of_an_example() -> None:
    several = field(multi_label=True).learned(["wheat, grain", "wheat", "corn,wheat ,, corn"])
    assert several.names == ("wheat", "corn", "grain")
    assert several.encode(["grain, oat, wheat", "oat", "", "corn, corn"]) == [[2, 0], [], [], [1]]
    assert several.normalize(" wheat ,corn") == "corn, wheat"
    assert several.decode([0, 1]) == "corn, wheat"
    assert several.text_of(["grain", "wheat"]) == "grain, wheat"
    assert (several.lists, several.facts()["multi_label"]) == ("value", True)


def test_a_truth_value_is_the_label_that_a_file_would_have() -> None:
    assert [field().text_of(value) for value in (True, 3, "x")] == ["true", "3", "x"]


def dataset(labels: LabelField, texts: list[str]) -> Dataset:
    return Dataset.in_memory(Examples.of({"label": texts}, where="a test"), Fields({}, labels))


def test_a_label_in_no_list_has_no_loss_and_is_not_counted() -> None:
    found = dataset(field("cat", "dog"), ["dog", "unicorn", "cat", "griffin"])
    assert (found.usable.tolist(), found.dropped) == ([True, False, True, False], 2)
    assert sorted(
        torch.cat([rows for [rows] in found.batches(training=True).plan(epoch=0)]).tolist()
    ) == [0, 2]
    rows, batches = torch.tensor([0, 1, 2, 3]), found.batches()
    assert batches.target_tokens(rows) == 2
    target = batches.collate(rows).target
    assert target.mask.tolist() == [[True], [False], [True], [False]]
    logits = torch.randn(4, 1, 2)
    loss = token_loss(logits, target)
    assert loss[:, 0].tolist() == pytest.approx(
        [-float(logits[0, 0].log_softmax(0)[1]), 0, -float(logits[2, 0].log_softmax(0)[0]), 0]
    )


def test_a_batch_of_labels_in_no_list_is_a_batch_all_the_same() -> None:
    found = dataset(field("cat", "dog"), ["unicorn"] * 3).batches()
    target = found.collate(torch.tensor([0, 1, 2])).target
    assert target.values.shape == (3, 1)
    assert found.target_tokens(torch.tensor([0, 1, 2])) == 0
    assert [rows.tolist() for rows in found.in_order(2)] == [[0, 1], [2]]
    assert float(token_loss(torch.randn(3, 1, 2), target).sum()) == 0


def test_nothing_can_be_learned_from_unknown_labels_alone() -> None:
    with pytest.raises(DataError) as error:
        _ = dataset(field("cat", "dog"), ["unicorn", "griffin", "unicorn"]).usable
    assert str(error.value) == (
        "a test: none of its labels ('unicorn', 'griffin', ...) is among those that were learned."
    )


def answering(folder: Path) -> Recipe:
    """Twelve questions about one image; one answer is rare and so in no list."""
    Image.new("RGB", (8, 8), "red").save(folder / "red.png")
    answers = ["yes"] * 6 + ["no"] * 5 + ["never"]
    rows = [f"red.png\tis it {number} ?\t{answer}\n" for number, answer in enumerate(answers)]
    (folder / "rows.tsv").write_text("image\tquestion\tanswer\n" + "".join(rows))
    data = {
        "folder": str(folder),
        "train": "rows.tsv",
        "valid": "rows.tsv",
        "image": {"size": 8},
        "question": {"column": "question"},
        "label": {"column": "answer", "min_count": 2},
    }
    model = {
        "encoder": {"image": {"backbone": {"widths": [4]}}, "question": {"size": 4}},
        "decoder": {"size": 4},
    }
    return recipe_of({"task": "image_question_answering", "data": data, "model": model}, "a test")


def test_a_rare_answer_is_never_chosen_not_learned_from_and_wrong(tmp_path: Path) -> None:
    blueprint = Blueprint.of(answering(tmp_path))
    splits = splits_of(blueprint)
    output = splits.fields.output
    assert isinstance(output, LabelField)
    assert (output.names, splits.train.dropped) == (("yes", "no"), 1)
    network = fresh_network(blueprint, splits)
    metrics = [metric_named("accuracy@1"), metric_named("perplexity")]
    settings = EvaluationSettings(batch_examples=5)
    found = judged(network, splits.train, settings, metrics, with_loss=True)
    outcomes = found.outcomes[1]
    assert [outcome.references for outcome in outcomes[-2:]] == [("no",), ("never",)]
    best = [outcome.candidates[0] for outcome in outcomes]
    assert set(best) <= {"yes", "no"}
    chances = [outcome.log_probability or 0.0 for outcome in outcomes[:-1]]
    counted = splits.train.batches().target_tokens(torch.arange(12))
    assert (len(chances), outcomes[-1].tokens, counted) == (11, 0, 11)
    assert found.loss == pytest.approx(-sum(chances) / 11, rel=1e-5)
    [accuracy] = found.scores(metrics[:1])
    right = sum(one in outcome.references for one, outcome in zip(best, outcomes, strict=True))
    assert accuracy.value == pytest.approx(right / 12)
    assert "search" not in accuracy.signature


def test_labels_that_differ_in_case_are_one_with_its_usual_spelling() -> None:
    found = field(lowercase=True).learned(["spam", "Spam", "HAM", "Spam", "ham", "SPAM", "NASA"])
    # of equally frequent spellings, the first that was seen
    assert found.names == ("Spam", "HAM", "NASA")
    assert field(lowercase=True).learned(["ham", "HAM", "x"]).names == ("ham", "x")
    assert found.encode(["SPAM", "Ham", "nasa", "Other"]) == [[0], [1], [2], []]
    expected = ["Spam", "HAM", "other one"]
    assert [found.normalize(text) for text in ("  sPAM ", "ham", "Other  One")] == expected
    assert found.decode([2]) == "NASA"
    again = field(lowercase=True).restored(found.to_json())
    assert again.names == found.names
    assert again.encode(["nAsA"]) == [[2]]


def test_several_labels_that_differ_in_case_are_one() -> None:
    found = field(lowercase=True, multi_label=True).learned(
        ["Wheat, corn", "Wheat, wheat", "CORN", "corn"]
    )
    assert set(found.names) == {"Wheat", "corn"}
    assert found.normalize("CORN,wheat , Corn") == "Wheat, corn"
    assert found.encode(["WHEAT, oat, corn"]) == [list(map(found.names.index, ["Wheat", "corn"]))]


def test_a_run_from_before_keeps_its_lowercased_labels() -> None:
    """Its names were lowercased; what is learned besides comes behind them."""
    old = field(lowercase=True).restored('{"format": 2, "labels": ["spam", "ham"]}')
    assert old.encode(["SPAM", "Ham"]) == [[0], [1]]
    assert old.normalize("Spam") == "spam"
    assert old.learned(["Spam", "HAM", "News", "news", "News"]).names == ("spam", "ham", "News")


def test_weights_of_labels_may_be_in_any_case() -> None:
    found = field(lowercase=True).learned(["Spam", "ham", "Spam"])
    counts = {"Spam": 2, "ham": 1}
    for label in ("Spam", "spam", "SPAM"):
        weights = class_weights(LossSettings(class_weights={label: 5.0}), counts, found.normalize)
        assert weights.tolist() == [5.0, 1.0]
    for named, told in (
        ({"Spam": 5.0, "spam": 2.0}, "'Spam' is there twice, for its case does not count"),
        ({"Spa": 5.0}, "Did you mean 'Spam'"),
    ):
        with pytest.raises(RecipeError, match=told):
            class_weights(LossSettings(class_weights=named), counts, found.normalize)


ROWS = [
    {"text": f"{word} {number}", "label": label}
    for number in range(4)
    for word, labels in (
        ("buy", ("Spam", "SPAM", "Spam", "spam")),
        ("hello", ("Ham", "ham", "ham", "ham")),
    )
    for label in [labels[number]]
]


def spam_recipe(**data: object) -> dict[str, Any]:
    return {
        "task": "document_classification",
        "data": {"source": {"column": "text"}, "label": {"lowercase": True, **data}},
        "model": {"encoder": {"kind": "text", "embedding": {"size": 8}, "size": 8}},
        "loss": {"class_weights": {"spam": 2}},
        "learning": {"steps": 40, "rate": 0.05, "precision": "32"},
        "evaluation": {"metrics": ["micro_f1", "macro_f1"]},
    }


def test_outputs_and_scores_have_the_usual_spelling(tmp_path: Path) -> None:
    split = {"train": ROWS, "valid": ROWS}
    run = sixjars.train(spam_recipe(), data=split, out=tmp_path / "run", device="cpu")
    assert [score.value for score in run.scores] == [1.0, 1.0]
    expected = ["Spam", "ham"]
    assert [found.text for found in run.predictor().predict(["buy 1", "hello 2"])] == expected
    gold = [{**row, "label": row["label"].upper()} for row in ROWS]
    assert [score.value for score in sixjars.evaluate(run, data=gold).scores] == [1.0, 1.0]
    split["train"] = gold
    second = sixjars.train(spam_recipe(), data=split, out=tmp_path / "two", device="cpu")
    assert second.predictor().predict("buy 1").text == "SPAM"
    found = sixjars.compare([run.folder, second.folder], data=gold, out=tmp_path / "both")
    scores = [one.score.value for contender in found.contenders for one in contender.scores]
    assert scores == [1.0] * 4
    folder = tmp_path / "exported"
    sixjars.export(run, folder)
    exported = sixjars_runtime.load(folder).predict(["buy 1", "hello 2"])
    assert [prediction.text for prediction in exported] == expected


def test_labels_of_a_text_that_are_not_in_the_list() -> None:
    several = LabelField("label", LabelSettings(multi_label=True)).learned(["wheat, grain"])
    assert several.unknown("grain, corn, Wheat") == ["corn", "Wheat"]
    assert LabelField("label", LabelSettings(lowercase=True)).learned("ab").unknown("A") == []


def test_why_rows_are_left_out() -> None:
    def why(texts: list[str], **settings: Any) -> str:
        field = LabelField("label", LabelSettings(**settings)).learned(texts)
        return dataset(field, texts).why_dropped

    most, odd = ["a", "b"] * 4, [f"odd{n}" for n in range(7)]
    begin = "because their labels have"
    assert why([*most, *odd], min_count=2) == (
        f"{begin} 1 row (data.label.min_count): 'odd0', 'odd1', 'odd2', 'odd3', 'odd4' and 2 more"
    )
    told = f"{begin} fewer than 3 rows (data.label.min_count): 'c'"
    assert why([*most, "c", "c"], min_count=3) == told
    told = "because its label is not in the list (data.label.min_count, size): 'c'"
    assert why([*most, "c"], size=2) == told
    assert why(most) == ""
