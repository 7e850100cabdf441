"""The model of a starter recipe: its components, with sizes chosen from the user's data."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from statistics import median
from typing import Any

from sixjars.data.field import Equipment
from sixjars.data.fields import FIELDS
from sixjars.data.text.wordllama import WIDTH
from sixjars.model.bridges import BRIDGES
from sixjars.model.build import TABLES
from sixjars.model.decoders import DECODERS
from sixjars.model.encoders import ENCODERS
from sixjars.recipe.files import inline
from sixjars.starter.data_facts import DataFacts, field_of
from sixjars.starter.data_notes import labels_of
from sixjars.starter.text_settings import TextChoice
from sixjars.tasks import Slot, Task
from sixjars_runtime.errors import DataError
from sixjars_runtime.text.segments import segments_of

FEW_SEGMENTS = 3
"""Segments of a usual document, of which no more are read as one text."""
BACKBONE = """\
# a pretrained network, frozen (pip install 'sixjars[vision]'); \
or small, which learns from your files alone; or one
  # that you have installed: torchvision/resnet50, timm/NAME, transformers/NAME"""
MANY_ROWS = 10_000
"""Labelled texts from which pairs of words are so many that they are told apart better, and
overfitted sooner."""
MOST_EVIDENCE = 64
"""Size of the evidence of a bag of words, for however many classes."""


def by_rows(rows: int, *choices: Any) -> Any:
    """The choice for fewer than 500 rows, 5,000, 50,000, or more."""
    return choices[sum(rows >= limit for limit in (500, 5_000, 50_000))]


def encoder_of(task: Task, facts: DataFacts) -> str:
    """The kind of encoder that a starter recipe of this task has."""
    return task.starter or (task.flat if is_flat(task, facts) else task.encoder)


def is_flat(task: Task, facts: DataFacts) -> bool:
    """Whether documents are read as one text: the encoder has no segments, or they have few."""
    if task.starter and not ENCODERS[task.starter].has_segments:
        return True
    if not task.flat or "segments" in facts.settings.get(task.inputs[0].name, {}):
        return False
    texts = facts.texts.get(task.inputs[0].name, ())
    counts = [len(segments_of(text, task.segments)) for text in texts]
    return bool(counts) and median(counts) <= FEW_SEGMENTS


def model_lines(
    task: Task, facts: DataFacts, sections: Mapping[str, Any], places: Sequence[Path]
) -> list[str]:
    """The lines of the model section; `places` are where images, videos or their features are."""
    with_features = [slot for slot in task.inputs if "kind" in facts.settings.get(slot.name, {})]
    encoder = sections["encoder"]
    if with_features:
        encoder = _without_backbone(encoder)
    learned = "" if task.inputs else " # the summary vector is learned"
    lines = [f"encoder: {inline(encoder)}{learned}"]
    if len(task.inputs) > 1:  # too much for one line
        lines = ["encoder:", *(f"  {key}: {inline(value)}" for key, value in encoder.items())]
    single = any(_is_one_vector(slot, facts, places) for slot in with_features)
    bridges = [kind for kind in task.bridges if not (single and BRIDGES[kind].has_attention)]
    chosen = sections.get("bridge") or {"kind": bridges[0]}
    others = ", or ".join(inline({"kind": kind}) for kind in bridges if kind != chosen["kind"])
    bridge = f"bridge: {inline(chosen)}" + (f" # or {others}" if others else "")
    backbone = [BACKBONE] if places and not with_features else []
    return [*backbone, *lines, bridge, f"decoder: {inline(sections['decoder'])}"]


def sections_of(
    task: Task, facts: DataFacts, rows: int, text: TextChoice
) -> dict[str, dict[str, Any]]:
    """The settings of each component that the data suggest, and of `learning` by the encoder."""
    size = by_rows(rows, 128, 128, 256, 512)
    labels = not DECODERS[task.decoder].searches
    dropout = 0.3 if rows < 50_000 else 0.1

    def suggested(role: str, kind: str) -> dict[str, Any]:
        return {"kind": kind, **TABLES[role][kind].suggest(size, dropout, labels=labels)}

    kind = encoder_of(task, facts)
    encoder, decoder = suggested("encoder", kind), suggested("decoder", task.decoder)
    if text.vectors:
        encoder = _with_vectors(encoder, frozen=ENCODERS[kind].keeps_vectors)
        encoder |= ENCODERS[kind].for_vectors
    if "ngrams" in encoder and facts.texts:
        field = field_of(task.output, facts.settings.get(task.output.name))
        classes = len(set(labels_of(field, facts.texts[task.output.name])))
        encoder["ngrams"] |= _evidence(classes, rows, encoder["ngrams"]["size"])
    if facts.texts:
        decoder |= FIELDS[task.output.kind].decoder_options(facts.texts)
    if text.tied and "embedding" in decoder and not decoder.get("copying"):
        # The output layer and the embedding are one matrix: 3 points of BLEU on 20,000 pairs of
        # Tatoeba.
        decoder |= {"tied": True, "embedding": {**decoder["embedding"], "size": decoder["size"]}}
        if text.vectors and BRIDGES[task.bridge].follows_state:
            decoder["conditional"] = True
    companions = ENCODERS[kind].companions(encoder)
    decoder |= companions.get("decoder", {})
    return {**companions, "encoder": encoder, "decoder": decoder}


def _evidence(classes: int, rows: int, usual: int) -> dict[str, Any]:
    """The settings of the evidence, whose size is the rank of a linear classifier.

    With many rows the rank is no more than the classes.
    On 20,000 movie reviews a rank of 4 was as good as 16, more pairs kept apart and more of them
    left out in training added half a point each; on 5,000 news 16 was a point better than 4.
    """
    if rows < MANY_ROWS:
        return {"size": min(MOST_EVIDENCE, max(usual, classes))}
    return {"size": min(MOST_EVIDENCE, max(4, classes)), "buckets": 2**20, "dropout": 0.7}


def _with_vectors(section: Mapping[str, Any], *, frozen: bool) -> dict[str, Any]:
    """An encoder's settings with embeddings as wide as the pretrained vectors, and as frozen."""
    sized: dict[str, Any] = {}
    for key, value in section.items():
        is_inner = isinstance(value, Mapping)
        sized[key] = _with_vectors(value, frozen=frozen) if is_inner else value
    if "embedding" in sized:
        sized["embedding"] |= {"size": WIDTH, "frozen": True} if frozen else {"size": WIDTH}
    return sized


def _is_one_vector(slot: Slot, facts: DataFacts, places: Sequence[Path]) -> bool:
    """Whether the features of an image are one vector, so that attention has nothing to choose."""
    field = field_of(slot, facts.settings[slot.name]).equipped(Equipment(places=tuple(places)))
    with suppress(DataError):  # of which training will tell
        return not field.learned(facts.texts[slot.name]).facts()["feature_shape"].positions
    return False


def _without_backbone(section: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of an encoder to which features are given."""
    kept = {}
    for key, value in section.items():
        if key != "backbone":
            kept[key] = _without_backbone(value) if isinstance(value, Mapping) else value
    return kept
