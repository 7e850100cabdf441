"""A closed list of labels: how it is learned, what is not in it, how it is kept."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from sixjars.data.batches import Batches, EmptyColumn, IdColumn
from sixjars.data.fields.label import Labels
from sixjars.errors import DataError, RunError
from sixjars.evaluation.score import loss_of, outcomes_of, scores_of
from sixjars.flow.values import Padded
from sixjars.loss import token_loss
from sixjars.model.build import build
from sixjars.recipe import Recipe
from sixjars.recipe.sections import EvaluationSettings, LabelSettings
from sixjars.runs.data import corpus_of, facts_of
from sixjars.runs.recipes import recipe_of

SAID = ["dog", "cat", "ox", "cat", "dog", "ant", "cat", "Dog"]


def learned(texts: list[str], **settings: object) -> tuple[str, ...]:
    return Labels.trained(texts, LabelSettings(**settings), "data.label").names  # type: ignore[arg-type]


def test_the_most_frequent_come_first_and_equals_by_the_alphabet() -> None:
    assert learned(SAID) == ("cat", "dog", "Dog", "ant", "ox")


def test_the_order_of_the_rows_does_not_matter() -> None:
    assert learned(SAID[::-1]) == learned(SAID)


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
def test_settings_decide_which_are_kept(settings: dict[str, object], names: tuple[str, ...]) -> None:
    assert learned(SAID, **settings) == names


@pytest.mark.parametrize(
    ("texts", "settings", "told"),
    [
        (["cat"] * 5, {}, "data.label: two labels or more are needed to choose from, but there are 1: ['cat']."),
        (SAID, {"size": 1}, "data.label: two labels or more are needed to choose from, but there are 1: ['cat']."),
        (SAID, {"min_count": 9}, "data.label: two labels or more are needed to choose from, but there are 0: []."),
    ],
)
def test_too_few_to_choose_from(texts: list[str], settings: dict[str, object], told: str) -> None:
    with pytest.raises(DataError) as error:
        learned(texts, **settings)
    assert str(error.value) == told


def test_labels_are_made_regular_before_they_are_looked_up() -> None:
    labels = Labels(["ice  cream".replace("  ", " "), "soup"])
    assert labels.normal("  ice \t cream ") == "ice cream"
    assert labels.encode_many([" ice   cream", "Soup", "soup", ""]) == [[0], [], [1], []]
    assert Labels(["soup"], lowercase=True).encode_many(["SOUP"]) == [[0]]


@given(st.lists(st.text(st.characters(exclude_categories=["Z", "C"]), min_size=1), min_size=2, unique=True))
def test_numbers_and_names_are_each_other_s_opposite(names: list[str]) -> None:
    labels = Labels(names)
    assert labels.size == len(names)
    assert [labels.decode(found) for found in labels.encode_many(names)] == names
    assert labels.tokens(list(range(labels.size))) == names


@given(st.lists(st.text(), min_size=2, unique=True), st.booleans())
def test_what_is_kept_is_read_back(names: list[str], lowercase: bool) -> None:
    labels = Labels(names, lowercase=lowercase)
    again = Labels.from_json(labels.to_json())
    assert (again.names, again.lowercase) == (labels.names, labels.lowercase)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[1, 2]",
        "{}",
        '{"format": 1, "labels": ["a"]}',
        json.dumps({"format": 2, "lowercase": False, "labels": ["a", "b"]}),
        json.dumps({"format": 1, "lowercase": False, "labels": ["a", 5]}),
        json.dumps({"format": 1, "lowercase": False, "labels": 5}),
        json.dumps({"format": 1, "lowercase": False, "labels": "cats and dogs"}),
        Labels(["a", "b"]).to_json()[:-5],
    ],
)
def test_what_is_damaged_is_told_in_a_sentence(text: str) -> None:
    with pytest.raises(RunError, match=r"^The saved labels are damaged or of another version: .*\.$"):
        Labels.from_json(text)


def batches(labels: Labels, texts: list[str]) -> Batches:
    found = labels.encode_many(texts)
    flat = np.array([number for row in found for number in row], dtype=np.int32)
    offsets = np.cumsum([0, *(len(row) for row in found)]).astype(np.int64)
    return Batches({"source": EmptyColumn(len(texts))}, IdColumn((flat, offsets), narrowest=1), batch_examples=4)


def test_a_label_in_no_list_has_no_loss_and_is_not_counted() -> None:
    labels = Labels(["cat", "dog"])
    found = batches(labels, ["dog", "unicorn", "cat", "griffin"])
    rows = torch.tensor([0, 1, 2, 3])
    assert found.target_tokens(rows) == 2
    target = found.collate(rows).target
    assert target.mask.tolist() == [[True], [False], [True], [False]]
    scores = torch.randn(4, 1, 2)
    loss = token_loss(scores, target)
    assert loss[:, 0].tolist() == pytest.approx(
        [-float(scores[0, 0].log_softmax(0)[1]), 0, -float(scores[2, 0].log_softmax(0)[0]), 0]
    )


def test_a_batch_of_labels_in_no_list_is_a_batch_all_the_same() -> None:
    found = batches(Labels(["cat", "dog"]), ["unicorn"] * 3)
    target = found.collate(torch.tensor([0, 1, 2])).target
    assert isinstance(target, Padded)
    assert target.values.shape == (3, 1)
    assert found.target_tokens(torch.tensor([0, 1, 2])) == 0
    assert [rows.tolist() for rows in found.in_order(2)] == [[0, 1], [2]]
    assert float(token_loss(torch.randn(3, 1, 2), target).sum()) == 0


def answering(folder: Path) -> Recipe:
    """Twelve questions about one picture; one answer is rare and so in no list."""
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
    model = {"encoder": {"image": {"backbone": {"widths": [4]}}, "question": {"size": 4}}, "decoder": {"size": 4}}
    return recipe_of({"task": "image_question_answering", "data": data, "model": model}, "a test")


def test_a_rare_answer_is_never_chosen_not_learned_from_and_wrong(tmp_path: Path) -> None:
    made = answering(tmp_path)
    corpus = corpus_of(made)
    assert corpus.tokens["label"].tokens([0, 1]) == ["yes", "no"]
    assert corpus.tokens["label"].size == 2
    network = build(made.model, facts_of(made, corpus.tokens)).eval()
    assert corpus.train.batches().target_tokens(torch.arange(12)) == 11
    outcomes = outcomes_of(network, corpus.train, EvaluationSettings(), ["accuracy@1", "perplexity"])
    assert [outcome.references for outcome in outcomes[-2:]] == [("no",), ("never",)]
    assert {outcome.best for outcome in outcomes} <= {"yes", "no"}
    chances = [outcome.log_probability for outcome in outcomes[:-1] if outcome.log_probability is not None]
    assert len(chances) == 11
    assert loss_of(network, corpus.train, examples=5) == pytest.approx(-sum(chances) / 11, rel=1e-5)
    right = sum(outcome.best in outcome.references for outcome in outcomes)
    (found,) = scores_of(network, corpus.train, EvaluationSettings(), ["accuracy@1"])
    assert found.value == pytest.approx(right / 12)
    assert "search" not in found.signature
