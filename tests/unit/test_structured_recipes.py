"""Recipes of documents, conversations, copying and points: every fault is a sentence, what is written is read again."""

from pathlib import Path
from typing import Any

import pytest

import sixjars
from sixjars.errors import RecipeError
from sixjars.recipe.files import values_of
from sixjars.runs.recipes import metrics_of, recipe_of

DOCUMENTS, TALK, NEWS, POINTS = (
    "document_classification",
    "conversation",
    "summarization",
    "pointing",
)
FIELDS: dict[str, dict[str, Any]] = {
    DOCUMENTS: {"source": {"segments": "sentences"}, "label": {}},
    TALK: {"source": {"column": "turns", "segments": "turns"}, "target": {"column": "response"}},
    NEWS: {"source": {"column": "article"}, "target": {"column": "title"}},
    POINTS: {"points": {}, "order": {}},
}


def faults_of(values: dict[str, Any]) -> tuple[str, ...]:
    with pytest.raises(RecipeError) as caught:
        recipe_of(values, "test")
    return caught.value.faults


def of(task: str, data: dict[str, Any] | None = None, **sections: Any) -> dict[str, Any]:
    return {"task": task, "data": {"train": "a.jsonl", **FIELDS[task], **(data or {})}, **sections}


COPY = {"decoder": {"copying": True}}


def source(**settings: Any) -> dict[str, Any]:
    return {"source": {"column": "article", **settings}}


@pytest.mark.parametrize(
    ("values", "message"),
    [
        # Segments
        (
            of(DOCUMENTS, {"source": {}}),
            "data.source.segments: must be sentences, lines or turns, for an encoder of kind hierarchy reads a text in "
            "segments; say which (segments: sentences), or take another encoder (model.encoder: {kind: text}).",
        ),
        (
            of(DOCUMENTS, {"source": {"segments": "words"}}),
            "data.source.segments: should be 'none', 'sentences', 'lines' or 'turns', but is 'words'.",
        ),
        (
            of(TALK, {"target": {"column": "response", "segments": "lines"}}),
            "data.target.segments: only a source has segments; remove it.",
        ),
        (
            {
                "task": "image_question_answering",
                "data": {
                    "train": "a.jsonl",
                    "image": {},
                    "question": {"segments": "lines"},
                    "label": {},
                },
            },
            "data.question.segments: only a source has segments; remove it.",
        ),
        (
            of(DOCUMENTS, model={"encoder": {"words": {"sise": 3}}}),
            "model.encoder.words: key 'sise' is unknown. Did you mean 'size'?",
        ),
        (
            of(DOCUMENTS, model={"encoder": {"pool": "mean"}}),
            "model.encoder.pool: should be 'last' or 'attention', but is 'mean'.",
        ),
        (
            of(DOCUMENTS, model={"encoder": {"words": {"embedding": {"frozen": True}}}}),
            "model.encoder.words.embedding.frozen: true keeps pretrained vectors as they are, but data.source.",
        ),
        # Two levels
        (
            of(NEWS, model={"bridge": {"kind": "two_level"}}),
            "model.bridge: two_level needs an encoder of kind hierarchy, but it is text.",
        ),
        (
            of(POINTS, model={"bridge": {"kind": "two_level"}}),
            "model.bridge: two_level needs an encoder of kind hierarchy, but it is points.",
        ),
        # Where attention was
        (
            of(DOCUMENTS, model={"bridge": {"kind": "location"}}),
            "model.bridge: location needs a decoder that outputs several tokens, but it is label; use attention.",
        ),
        # Copying
        (
            of(NEWS, model={**COPY, "bridge": {"kind": "every_step"}}),
            "model.decoder.copying: needs a bridge of kind attention, location or two_level, but it is every_step.",
        ),
        (
            of(NEWS, model={**COPY, "bridge": {"kind": "pooling"}}),
            "model.decoder.copying: needs a bridge of kind attention, location or two_level, but it is pooling.",
        ),
        (
            of(NEWS, model={"decoder": {"conditional": True}, "bridge": {"kind": "every_step"}}),
            "model.decoder.conditional: needs a bridge of kind attention, location or two_level, but it is every_step.",
        ),
        (
            of(
                NEWS,
                {**source(tokens="bpe"), "target": {"column": "title", "tokens": "bpe"}},
                model=COPY,
            ),
            "model.decoder.copying: copies words or characters, but data.target.tokens is bpe.",
        ),
        (
            of(NEWS, source(tokens="characters"), model=COPY),
            "model.decoder.copying: data.source and data.target must have the same tokens.",
        ),
        (
            of(NEWS, source(split="spaces", lowercase=True), model=COPY),
            "model.decoder.copying: data.source and data.target must have the same split and lowercase.",
        ),
        (
            of(DOCUMENTS, model=COPY),
            "model.decoder: key 'copying' is one of kind sequence, but the kind is label;",
        ),
        # Coverage
        (
            of(NEWS, model={"bridge": {"kind": "initial"}}, loss={"coverage": 0.5}),
            "loss.coverage: needs a bridge of kind attention, location or two_level, but it is initial.",
        ),
        (
            of(NEWS, model={"bridge": {"kind": "pooling"}}, loss={"coverage": 0.5}),
            "loss.coverage: needs a bridge of kind attention, location or two_level, but it is pooling.",
        ),
        (
            of(NEWS, loss={"coverage": -1}),
            "loss.coverage: should be greater than or equal to 0, but is -1.",
        ),
        (
            of(
                TALK,
                model={"bridge": {"kind": "initial"}},
                evaluation={"search": {"coverage_penalty": 0.2}},
            ),
            "evaluation.search.coverage_penalty: needs a bridge of kind attention, location or two_level, "
            "but it is initial.",
        ),
        # Smoothing
        (
            of(POINTS, loss={"smoothing": 0.1}),
            "loss.smoothing: a pointer has no vocabulary to spread the probability over; remove it.",
        ),
        (
            of(DOCUMENTS, {"label": {"multi_label": True}}, loss={"smoothing": 0.1}),
            "loss.smoothing: with multi_label each label is a yes or no of its own; remove it.",
        ),
        # Synthetic corpora
        (
            of(POINTS, {"train": None, "sample": {"kind": "tour"}}),
            "data.sample.kind: kind of the pointing sample 'tour' is unknown. Did you mean 'tours'?",
        ),
        (
            of(TALK, {"train": None, "sample": {"kind": "long"}}),
            "data.sample.kind: The conversation sample is of one kind, but kind 'long' is asked for. Remove `kind`.",
        ),
        # Rationales
        (
            of(DOCUMENTS, evaluation={"metrics": ["rationale_sentence"]}),
            "evaluation.metrics: rationale_sentence needs true rationales, but data.rationale names no column.",
        ),
        (
            of(
                DOCUMENTS,
                {"rationale": "where"},
                model={"bridge": {"kind": "initial"}},
                expect={"rationale_word": 0.5},
            ),
            "expect: rationale_word needs a bridge of kind attention, pooling or two_level, but it is initial.",
        ),
        (
            of(TALK, {"train": None, "sample": {}}, learning={"metric": "rationale_word_near"}),
            "learning.metric: rationale_word_near needs true rationales, but the synthetic corpus of conversation",
        ),
        (
            of(POINTS, {"rationale": "where"}),
            "data: key 'rationale' has no place here; pointing reads points and outputs an order.",
        ),
        # Points
        (
            {"task": POINTS, "data": {"train": "a", "order": {}}},
            "data: key 'points' is missing; pointing needs it.",
        ),
        (
            of(NEWS, {"points": {}}),
            "data: key 'points' has no place here; summarization reads source and outputs a target.",
        ),
        (
            of(POINTS, {"points": {"dimensions": 0}}),
            "data.points.dimensions: should be greater than or equal to 1, but is 0.",
        ),
        (
            of(POINTS, {"points": {"column": "order"}}),
            "data: 'points' and 'order' are both column 'order'; name two columns.",
        ),
        (
            of(POINTS, model={"encoder": {"kind": "text"}}),
            "model.encoder: kind 'text' does not fit; pointing reads points and outputs an order. Use",
        ),
        (
            of(POINTS, model={"decoder": {"kind": "sequence"}}),
            "model.decoder: kind 'sequence' does not fit pointing. Use pointer.",
        ),
        (
            of(NEWS, model={"decoder": {"kind": "pointer"}}),
            "model.decoder: kind 'pointer' does not fit summarization. Use sequence.",
        ),
        (
            of(POINTS, model={"decoder": {"visits": "most"}}),
            "model.decoder.visits: should be 'all' or 'some', but is 'most'.",
        ),
        # Conversations
        (
            of(TALK, {"format": "dialog"}),
            "data.format: should be 'table', 'coco', 'flickr8k', 'folders' or 'dialogs', but is 'dialog'.",
        ),
        (
            of(TALK, {"target": {"column": "turns"}}),
            "data: 'source' and 'target' are both column 'turns'; name two columns.",
        ),
        (
            of(DOCUMENTS, {"label": {"multi_label": "yes"}}),
            "data.label.multi_label: should be a valid boolean, but is 'yes'.",
        ),
    ],
)
def test_faults(values: dict[str, Any], message: str) -> None:
    (found,) = faults_of(values)
    assert found.startswith(message)
    assert found.endswith((".", "?"))


def test_nothing_can_be_copied_from_nothing() -> None:
    values = {"task": "language_model", "data": {"train": "a.txt"}, "model": COPY}
    assert faults_of(values) == (
        "model.decoder.copying: needs a bridge of kind attention, location or two_level, but it is initial.",
        "model.decoder.copying: there is no source text to copy from.",
    )


def test_all_faults_are_told_at_once() -> None:
    values = of(
        NEWS,
        source(tokens="bpe"),
        model={"decoder": {"copying": True}, "bridge": {"kind": "two_level"}},
        loss={"smoothing": 2},
        evaluation={"metrics": ["rationale_word"]},
    )
    found = faults_of(values)
    assert [fault.split(":")[0] for fault in found] == [
        "loss.smoothing",
        "model.bridge",
        "model.decoder.copying",
        "evaluation.metrics",
    ]


@pytest.mark.parametrize("task", FIELDS)
def test_what_is_written_is_read_again(task: str) -> None:
    found = recipe_of(of(task), "test")
    assert recipe_of(values_of(found.to_yaml(), "test"), "test") == found


def test_the_usual_components() -> None:
    kinds = {
        task: [
            getattr(recipe_of(of(task), "test").model, role)["kind"]
            for role in ("encoder", "bridge", "decoder")
        ]
        for task in FIELDS
    }
    assert kinds == {
        DOCUMENTS: ["hierarchy", "pooling", "label"],
        TALK: ["hierarchy", "two_level", "sequence"],
        NEWS: ["text", "attention", "sequence"],
        POINTS: ["points", "initial", "pointer"],
    }


def test_whole_conversations_are_one_column_twice() -> None:
    values = of(TALK, {"format": "dialogs", "speakers": "who", "target": {"column": "turns"}})
    found = recipe_of(values, "test")
    assert (found.data.format, found.data.speakers) == ("dialogs", "who")


def test_a_flat_encoder_may_read_a_text_in_segments() -> None:
    """The segments are then only known to metrics and drawings."""
    found = recipe_of(of(DOCUMENTS, model={"encoder": {"kind": "text"}}), "test")
    assert found.model.encoder["kind"] == "text"
    assert recipe_of(
        of(NEWS, source(segments="lines"), model={"encoder": {"kind": "hierarchy"}}), "test"
    )


def test_speakers_without_whole_conversations() -> None:
    with pytest.raises(
        RecipeError, match="'speakers' belongs to `format: dialogs`, but the format is table"
    ):
        recipe_of(of(TALK, {"speakers": "who"}), "test")


def test_multiple_labels_have_metrics_of_their_own() -> None:
    found = recipe_of(of(DOCUMENTS, {"label": {"column": "y", "multi_label": True}}), "test")
    assert [metric.name for metric in metrics_of(found)] == [
        "labels_micro_f1",
        "labels_macro_f1",
        "labels_exact",
    ]


def test_a_run_that_was_trained_with_a_metric_of_one_label_opens(tmp_path: Path) -> None:
    """Before they were refused, recipes had such metrics; what was learned is as good as ever."""
    few = ["data.sample.size=16", "data.sample.valid=4", "data.sample.test=4", "learning.steps=1"]
    fits = ["data.label.multi_label=true", "evaluation.metrics=[labels_macro_f1]"]
    run = sixjars.train(
        "document_classification/sample_attention", [*few, *fits], out=tmp_path / "run"
    ).folder
    kept = run / "recipe.yaml"
    assert "labels_macro_f1" in kept.read_text()
    kept.write_text(kept.read_text().replace("labels_macro_f1", "macro_f1"))
    assert sixjars.load(run).predict(['["one sentence", "another"]'])[0].error is None
    assert sixjars.evaluate(run).scores[0].name == "macro_f1"


def test_metrics_of_one_label_are_not_for_multiple_labels() -> None:
    names = ["perplexity", "macro_f1", "micro_f1"]
    values = of(DOCUMENTS, {"label": {"multi_label": True}}, evaluation={"metrics": names})
    assert faults_of(values) == (
        "evaluation.metrics: perplexity tells how surprising one label is, but an example may have several; use "
        "labels_micro_f1.",
        "evaluation.metrics: macro_f1 takes each set of labels for a class of its own; use labels_macro_f1.",
        "evaluation.metrics: micro_f1 takes each set of labels for a class of its own; use labels_micro_f1.",
    )
