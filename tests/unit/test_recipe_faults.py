"""Recipes of every kind of input: every fault is a sentence, and what is written is read again."""

from pathlib import Path
from typing import Any

import pytest

import sixjars
from sixjars.recipe.files import values_of
from sixjars.runs.recipes import metrics_of, recipe_of

from .faults import check_fault, entries, faults_of

DOCUMENTS, TALK, NEWS = "document_classification", "conversation", "summarization"
POINTS, CAPTIONS = "pointing", "image_captioning"
FIELDS: dict[str, dict[str, Any]] = {
    DOCUMENTS: {"source": {"segments": "sentences"}, "label": {}},
    TALK: {"source": {"column": "turns", "segments": "turns"}, "target": {"column": "response"}},
    NEWS: {"source": {"column": "article"}, "target": {"column": "title"}},
    POINTS: {"points": {}, "order": {}},
    CAPTIONS: {"image": {}},
    "image_question_answering": {"image": {}, "question": {}, "label": {}},
    "video_classification": {"video": {}, "label": {}},
}
COPY = {"decoder": {"copying": True}}


def of(task: str, data: dict[str, Any] | None = None, **sections: Any) -> dict[str, Any]:
    return {"task": task, "data": {"train": "a.jsonl", **FIELDS[task], **(data or {})}, **sections}


def source(**settings: Any) -> dict[str, Any]:
    return {"source": {"column": "article", **settings}}


FAULTS = """
document_classification data.source={}
    data.source.segments: must be sentences, lines or turns, for an encoder of kind hierarchy
    reads a text in segments; say which (segments: sentences), or take another encoder
    (model.encoder: {kind: text}).
document_classification data.source.segments=words
    data.source.segments: should be 'none', 'sentences', 'lines' or 'turns', but is 'words'.
conversation data.target.segments=lines
    data.target.segments: only a source has segments; remove it.
image_question_answering data.question.segments=lines
    data.question.segments: only a source has segments; remove it.
document_classification model.encoder.words.sise=3
    model.encoder.words: key 'sise' is unknown. Did you mean 'size'? Known: cell, direction,
    dropout, embedding, layers, size.
document_classification model.encoder.pool=mean
    model.encoder.pool: should be 'last' or 'attention', but is 'mean'.
document_classification model.encoder.words.embedding.frozen=true
    model.encoder.words.embedding.frozen: true keeps pretrained vectors as they are, but
    data.source.vectors names none.
summarization model.bridge.kind=two_level
    model.bridge: two_level needs an encoder of kind hierarchy, but it is text.
pointing model.bridge.kind=two_level
    model.bridge: two_level needs an encoder of kind hierarchy, but it is points.
document_classification model.bridge.kind=location
    model.bridge: location needs a decoder that outputs several tokens, but it is label; use
    attention.
summarization model.decoder.copying=true  model.bridge.kind=every_step
    model.decoder.copying: needs a bridge of kind attention, location or two_level, but it is
    every_step.
summarization model.decoder.copying=true  model.bridge.kind=pooling
    model.decoder.copying: needs a bridge of kind attention, location or two_level, but it is
    pooling.
summarization model.decoder.conditional=true  model.bridge.kind=every_step
    model.decoder.conditional: needs a bridge of kind attention, location or two_level, but it
    is every_step.
summarization data.source.tokens=bpe  data.target.tokens=bpe  model.decoder.copying=true
    model.decoder.copying: copies words or characters, but data.target.tokens is bpe.
summarization data.source.tokens=characters  model.decoder.copying=true
    model.decoder.copying: data.source and data.target must have the same tokens.
summarization data.source.split=spaces  data.source.lowercase=true  model.decoder.copying=true
    model.decoder.copying: data.source and data.target must have the same split and lowercase.
document_classification model.decoder.copying=true
    model.decoder: key 'copying' is one of kind sequence, but the kind is label; remove it, or
    replace the section: 'model.decoder={kind: label}'.
summarization model.bridge.kind=initial  loss.coverage=0.5
    loss.coverage: needs a bridge of kind attention, location or two_level, but it is initial.
summarization model.bridge.kind=pooling  loss.coverage=0.5
    loss.coverage: needs a bridge of kind attention, location or two_level, but it is pooling.
summarization data.source.tokens=charakters
    data.source.tokens: should be 'words', 'characters', 'bpe' or 'unigram', but is 'charakters'.
    Did you mean 'characters'?
summarization data.source.tokens={file: a, fiel: x}
    data.source.tokens: key 'fiel' is unknown. Did you mean 'file'? Known: file.
summarization data.source.tokens={file: 3}
    data.source.tokens.file: should be a valid string, but is 3.
summarization loss.coverage=-1
    loss.coverage: should be greater than or equal to 0, but is -1.
conversation model.bridge.kind=initial  evaluation.search.coverage_penalty=0.2
    evaluation.search.coverage_penalty: needs a bridge of kind attention, location or two_level,
    but it is initial.
summarization evaluation.search={min_length: 9, max_length: 9}
    evaluation.search: 'min_length' is 9, but 'max_length' is 9.
pointing loss.smoothing=0.1
    loss.smoothing: a pointer has no vocabulary to spread the probability over; remove it.
document_classification data.label.multi_label=true  loss.smoothing=0.1
    loss.smoothing: with multi_label each label is a yes or no of its own; remove it.
pointing data.train=null  data.sample.kind=tour
    data.sample.kind: kind of the pointing sample 'tour' is unknown. Did you mean 'tours'?
    Known: hull, sorting, tours.
conversation data.train=null  data.sample.kind=long
    data.sample.kind: The conversation sample is of one kind, but kind 'long' is asked for.
    Remove `kind`.
document_classification evaluation.metrics=[rationale_sentence]
    evaluation.metrics: rationale_sentence needs true rationales, but data.rationale names no
    column.
document_classification data.rationale=where  model.bridge.kind=initial  expect.rationale_word=0.5
    expect: rationale_word needs a bridge of kind attention, pooling or two_level, but it is
    initial.
conversation data.train=null  data.sample={}  learning.metric=rationale_word_near
    learning.metric: rationale_word_near needs true rationales, but the synthetic corpus of
    conversation has none.
pointing data.rationale=where
    data: key 'rationale' has no place here; pointing reads points and outputs an order.
pointing data={train: a, order: {}}
    data: key 'points' is missing; pointing needs it.
summarization data.points={}
    data: key 'points' has no place here; summarization reads source and outputs a target.
pointing data.points.dimensions=0
    data.points.dimensions: should be greater than or equal to 1, but is 0.
pointing data.points.column=order
    data: 'points' and 'order' are both column 'order'; name two columns.
pointing model.encoder.kind=text
    model.encoder: kind 'text' does not fit; pointing reads points and outputs an order. Use
    points.
pointing model.decoder.kind=sequence
    model.decoder: kind 'sequence' does not fit pointing. Use pointer.
summarization model.decoder.kind=pointer
    model.decoder: kind 'pointer' does not fit summarization. Use sequence.
pointing model.decoder.visits=most
    model.decoder.visits: should be 'all' or 'some', but is 'most'.
conversation data.speakers=who
    data: 'speakers' belongs to `format: dialogs`, but the format is table.
conversation data.format=dialog
    data.format: should be 'table', 'coco', 'flickr8k', 'folders' or 'dialogs', but is 'dialog'.
    Did you mean 'dialogs'?
conversation data.target.column=turns
    data: 'source' and 'target' are both column 'turns'; name two columns.
document_classification data.label.multi_label="yes"
    data.label.multi_label: should be a valid boolean, but is 'yes'.
image_captioning data={sample: {}}
    data: key 'image' is missing; image_captioning needs it.
video_classification data={train: a, label: {}}
    data: key 'video' is missing; video_classification needs it.
image_question_answering data.target.column=said
    data: key 'target' has no place here; image_question_answering reads image and question and
    outputs a label.
video_classification data.boxes=b
    data: key 'boxes' has no place here; video_classification reads video and outputs a label.
image_captioning data.alignment=a
    data: key 'alignment' has no place here; image_captioning reads image and outputs a target.
image_captioning data.image.column=text
    data: 'image' and 'target' are both column 'text'; name two columns.
image_captioning data.image.fit=squash
    data.image.fit: should be 'crop', 'pad' or 'stretch', but is 'squash'.
video_classification data.video.frames=0
    data.video.frames: should be greater than or equal to 1, but is 0.
image_question_answering data.label.tokens=words
    data.label: key 'tokens' is unknown. Known: column, kind, lowercase, min_count, multi_label,
    size.
image_captioning model.encoder.kind=text
    model.encoder: kind 'text' does not fit; image_captioning reads image and outputs a target.
    Use image.
video_classification model.decoder.kind=sequence
    model.decoder: kind 'sequence' does not fit video_classification. Use label.
image_captioning model.encoder.backbone.sise=3
    model.encoder.backbone: key 'sise' is unknown. Known: frozen, layer, name, train_from,
    widths.
image_question_answering model.encoder.question.embedding.frozen=true
    model.encoder.question.embedding.frozen: true keeps pretrained vectors as they are, but
    data.question.vectors names none.
image_captioning model.bridge.kind=pooling  evaluation.search.coverage_penalty=1
    evaluation.search.coverage_penalty: needs a bridge of kind attention, location or two_level,
    but it is pooling.
image_captioning evaluation.metrics=[object_focus]
    evaluation.metrics: object_focus needs true boxes, but data.boxes names no column.
image_captioning data.boxes=b  model.bridge.kind=initial  expect.object_focus=2
    expect: object_focus needs a bridge of kind attention, location or two_level, but it is
    initial.
video_classification data.train=null  data.sample={}  model.bridge.kind=attention  loss.guide=1
    loss.guide: needs an output of words, each with its own attention, but video_classification
    outputs a label; remove it.
image_question_answering model.bridge.kind=pooling
    model.bridge: pooling ignores the summary, which alone holds the question; use attention,
    with summary: question.
image_question_answering model.encoder.summary=question
    model.encoder.summary: question needs a bridge of kind attention, but it is initial.
"""


@pytest.mark.parametrize(("asked", "sentence"), entries(FAULTS))
def test_faults(asked: str, sentence: str) -> None:
    task, _, overrides = asked.partition(" ")
    check_fault(of(task), overrides, sentence)


def test_nothing_can_be_copied_from_nothing() -> None:
    values = {"task": "language_model", "data": {"train": "a.txt"}, "model": COPY}
    assert faults_of(values) == (
        "model.decoder.copying: needs a bridge of kind attention, location or two_level, but it is "
        "initial.",
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
    keys = [fault.split(":")[0] for fault in faults_of(values)]
    assert keys == ["loss.smoothing", "model.bridge", "model.decoder.copying", "evaluation.metrics"]


@pytest.mark.parametrize("task", FIELDS)
def test_what_is_written_is_read_again(task: str) -> None:
    recipe = recipe_of(of(task), "test")
    assert recipe_of(values_of(recipe.to_yaml(), "test"), "test") == recipe


def test_the_usual_components() -> None:
    kinds = {
        DOCUMENTS: ["hierarchy", "pooling", "label"],
        TALK: ["hierarchy", "two_level", "sequence"],
        NEWS: ["text", "attention", "sequence"],
        POINTS: ["points", "initial", "pointer"],
    }
    for task, usual in kinds.items():
        model = recipe_of(of(task), "test").model
        assert [part["kind"] for part in (model.encoder, model.bridge, model.decoder)] == usual


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


def test_multiple_labels_have_metrics_of_their_own() -> None:
    found = recipe_of(of(DOCUMENTS, {"label": {"column": "y", "multi_label": True}}), "test")
    names = [metric.name for metric in metrics_of(found)]
    assert names == ["labels_micro_f1", "labels_macro_f1", "labels_exact"]


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
    metrics = {"metrics": ["perplexity", "macro_f1", "micro_f1"]}
    values = of(DOCUMENTS, {"label": {"multi_label": True}}, evaluation=metrics)
    one_class = "takes each set of labels for a class of its own; use labels"
    assert faults_of(values) == (
        "evaluation.metrics: perplexity tells how surprising one label is, but an example may have "
        "several; use labels_micro_f1.",
        f"evaluation.metrics: macro_f1 {one_class}_macro_f1.",
        f"evaluation.metrics: micro_f1 {one_class}_micro_f1.",
    )


def test_a_word_is_a_backbone_and_a_target_may_be_left_out() -> None:
    model = {"encoder": {"backbone": "efficientnet_lite0"}}
    recipe = recipe_of(of(CAPTIONS, model=model), "test")
    assert recipe.model.encoder["backbone"]["name"] == "efficientnet_lite0"
    assert recipe.data.fields["target"].column == "text"
    assert recipe_of(values_of(recipe.to_yaml(), "test"), "test") == recipe
