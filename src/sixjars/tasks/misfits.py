"""Jars that do not fit each other, or not the task: what no jar can see alone."""

from collections.abc import Mapping
from typing import Any

from sixjars.data.samples import sample_named
from sixjars.errors import DataError
from sixjars.recipe import ModelSettings
from sixjars.recipe.jars import DataSettings
from sixjars.tasks.table import FOLLOWING, LOOKING, Task


def misfits(jars: Mapping[str, Any], task: Task) -> list[str]:
    """What the data, model and evaluation jars say against each other and against the task."""
    data, model = jars.get("data"), jars.get("model")
    faults = [] if data is None else _field_misfits(data, task) + _sample_misfits(data, task)
    faults += _smoothing_misfits(jars, task)
    if model is None:
        return faults
    encoder, bridge = model.encoder["kind"], model.bridge["kind"]
    if bridge in LOOKING and encoder == "none":
        faults.append(f"model.bridge: {bridge} has nothing to look at, because model.encoder is none. Use initial.")
    evaluation = jars.get("evaluation")
    if evaluation is not None and evaluation.search.coverage_penalty and bridge not in FOLLOWING:
        faults.append(f"evaluation.search.coverage_penalty: needs a bridge of kind attention, but it is {bridge}.")
    faults += _frozen_misfits(data, model) + _level_misfits(data, model) + _question_misfits(model, task)
    if model.decoder.get("copying"):
        faults += _copy_misfits(data, model)
    if _reads(encoder) != task.inputs:
        reads = " and ".join(task.inputs) or "no input"
        faults.append(f"model.encoder: kind {encoder!r} does not fit; {task.name} reads {reads}. Use {task.encoder}.")
    if model.decoder["kind"] != task.decoder:
        kind = model.decoder["kind"]
        faults.append(f"model.decoder: kind {kind!r} does not fit {task.name}. Use {task.decoder}.")
    return faults


def _smoothing_misfits(jars: Mapping[str, Any], task: Task) -> list[str]:
    """A share of the truth for what has no vocabulary to be spread over."""
    loss, label = jars.get("loss"), getattr(jars.get("data"), "label", None)
    if loss is None or not loss.smoothing:
        return []
    if task.output == "order":
        return ["loss.smoothing: a decoder that points has no vocabulary to spread the truth over; leave it out."]
    if label is not None and label.several:
        return ["loss.smoothing: where an example has several labels each is a yes or no of its own; leave it out."]
    if getattr(jars.get("model"), "decoder", {}).get("copying"):
        return ["loss.smoothing: a decoder that copies cannot write every word of every source; leave it out."]
    return []


def _question_misfits(model: ModelSettings, task: Task) -> list[str]:
    """A question that nobody would hear."""
    faults, bridge = [], model.bridge["kind"]
    if bridge == "pooling" and "question" in task.inputs:
        faults.append("model.bridge: pooling never hears the question; use attention, with summary: question.")
    if model.encoder.get("summary") == "question" and bridge != "attention":
        faults.append(f"model.encoder.summary: question needs a bridge of kind attention, but it is {bridge}.")
    return faults


def _reads(encoder: str) -> tuple[str, ...]:
    """What a kind of encoder reads of an example; one without positions reads nothing."""
    from sixjars.model.encoders import ENCODERS  # they need torch
    from sixjars.tasks.parts import inputs_of

    return inputs_of(encoder) if ENCODERS[encoder].attendable else ()


def _field_misfits(data: DataSettings, task: Task) -> list[str]:
    """Keys of the data jar that the task needs, or has no use for."""
    named = data.fields()
    missing = [name for name in task.fields if name not in named and name != "target"]
    extra = [name for name in named if name not in task.fields]
    truths = {"alignment": "source", "boxes": "image", "keys": "source"}
    extra += [key for key, read in truths.items() if getattr(data, key) is not None and read not in task.inputs]
    reads, says = " and ".join(task.inputs) or "no input", f"{'an' if task.output == 'order' else 'a'} {task.output}"
    return [f"data: key {name!r} is missing; {task.name} needs it." for name in missing] + [
        f"data: key {name!r} has no place here; {task.name} reads {reads} and says {says}." for name in extra
    ]


def _sample_misfits(data: DataSettings, task: Task) -> list[str]:
    """A made-up corpus that there is not."""
    try:
        sample_named(task.name, data.sample.kind if data.sample is not None else None)
    except DataError as error:
        return [f"data.sample.kind: {error}"]
    return []


def _frozen_misfits(data: DataSettings | None, model: ModelSettings) -> list[str]:
    """Words that should keep vectors that nobody gives them."""
    faults = []
    for field in ("source", "question", "target"):
        text = getattr(data, field, None)
        inside, embedding = embedding_of(model, field)
        if text is not None and text.vectors is None and not embedding.get("tuned", True):
            faults.append(
                f"model.{inside}.embedding.tuned: false keeps vectors as they are, but data.{field}.vectors names none."
            )
    return faults


def embedding_of(model: ModelSettings, field: str) -> tuple[str, Mapping[str, Any]]:
    """Which section of the model jar embeds the words of a field, and how.

    The decoder those of the target; else the encoder, or a part inside it that is called as the field, or `words`.
    """
    role = "decoder" if field == "target" else "encoder"
    section = getattr(model, role)
    inside = next((name for name in (field, "words") if name in section), None)
    found = section if inside is None else section[inside]
    return (role if inside is None else f"{role}.{inside}"), found.get("embedding") or {}


def _level_misfits(data: DataSettings | None, model: ModelSettings) -> list[str]:
    """Two levels where the text has one, or a bridge to two where the encoder has one."""
    faults = []
    encoder, bridge = model.encoder["kind"], model.bridge["kind"]
    if data is not None and data.source is not None and encoder == "hierarchy" and data.source.parts == "none":
        faults.append("data.source.parts: a hierarchy reads parts of a text; say sentences, lines or turns.")
    for field in ("question", "target"):
        text = getattr(data, field, None)
        if text is not None and text.parts != "none":
            faults.append(f"data.{field}.parts: only a source has parts; leave it out.")
    if bridge == "two_level" and encoder != "hierarchy":
        faults.append(f"model.bridge: two_level needs an encoder of kind hierarchy, but it is {encoder}.")
    return faults


COPIED = ("tokens", "split", "lowercase")
"""What both sides of a decoder that copies must have in common, so that their words are the same."""


def _copy_misfits(data: DataSettings | None, model: ModelSettings) -> list[str]:
    """Why words of the source cannot be copied, if they cannot."""
    faults = []
    if model.bridge["kind"] not in FOLLOWING:
        faults.append(f"model.decoder.copying: needs a bridge of kind attention, but it is {model.bridge['kind']}.")
    if data is None or data.target is None:
        return faults
    if data.source is None:
        return [*faults, "model.decoder.copying: there is no source to copy from."]
    if data.target.tokens not in ("words", "characters"):
        faults.append(
            f"model.decoder.copying: copies words or characters, but data.target.tokens is {data.target.tokens}."
        )
    differ = [key for key in COPIED if getattr(data.source, key) != getattr(data.target, key)]
    if differ:
        faults.append(f"model.decoder.copying: data.source and data.target must have the same {' and '.join(differ)}.")
    return faults
