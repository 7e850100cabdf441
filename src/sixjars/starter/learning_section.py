"""The learning section of a starter recipe: batch size, updates, early stopping.

Training is planned in updates, not in epochs: how many a model needs depends far less on the rows
than a number of epochs does. The plan is an upper bound; early stopping ends most trainings before.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

from sixjars.data.fields import FIELDS
from sixjars.model.decoders import DECODERS
from sixjars.model.encoders import ENCODERS
from sixjars.recipe.files import inline
from sixjars.runs.data.split_files import LEAST, USUAL
from sixjars.starter.data_facts import DataFacts, is_media
from sixjars.tasks import Slot, Task

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
BY_LOSS = (
    "# `metric: loss` chooses the checkpoint: on about {rows} validation rows, "
    "the other metrics are mostly noise"
)
PLAN = "# at most so many updates (steps); ends when {patience} validations have not improved"


def learning_lines(
    task: Task,
    facts: DataFacts,
    rows: int,
    *,
    folds: int | None = None,
    suited: Mapping[str, Any] | None = None,
) -> str:
    """The `learning:` line under its comments, for so many rows, cross-validated in `folds`.

    `suited` are the keys that the model needs.
    """
    planned = {**learning_of(task, facts, rows, folds=folds), **(suited or {})}
    comments = [PLAN.format(patience=planned["patience"])]
    if planned.get("metric") == "loss" and not folds:
        comments.append(BY_LOSS.format(rows=_validation_rows(facts, rows)))
    return "\n".join([*comments, f"learning: {inline(planned)}"])


def learning_of(
    task: Task, facts: DataFacts, rows: int, *, folds: int | None = None
) -> dict[str, Any]:
    """The learning section of a starter recipe as plain values."""
    labels = not DECODERS[task.decoder].searches
    batch = _label_batch(rows) if labels else _batch(task, facts, rows)
    steps = label_updates(rows, batch["batch_examples"]) if labels else text_updates(rows)
    several = facts.settings.get(task.output.name, {}).get("multi_label")
    noisy = labels and not several and _validation_rows(facts, rows) < STEADY
    return {
        "optimizer": "adam",
        "rate": 0.001,
        **({} if labels else {"schedule": "plateau"}),  # labels end before a lower rate would help
        **batch,
        "steps": steps,
        "validate_every": rounded(steps / VALIDATIONS),
        "patience": _patience(task, labels=labels),
        "average": 3,
        **({"folds": folds} if folds else {}),
        **({"metric": "loss"} if noisy or folds else {}),
    }


def _patience(task: Task, *, labels: bool) -> int:
    if not labels:
        return TEXT_PATIENCE
    recurs = ENCODERS[task.starter or task.encoder].recurs
    return RECURRENT_PATIENCE if recurs else LABEL_PATIENCE


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


def _label_batch(rows: int) -> dict[str, int]:
    """Small batches: with few rows many noisy updates are better than few exact ones."""
    limits = (100, 500, 50_000, 500_000)
    return {"batch_examples": (8, 16, 32, 64, 256)[sum(rows >= limit for limit in limits)]}


def _batch(task: Task, facts: DataFacts, rows: int) -> dict[str, int]:
    """The batch of a model that outputs a sequence: in tokens if all is text, else in examples."""
    texts = [slot for slot in task.slots if FIELDS[slot.kind].holds == "tokens"]
    if task.output not in texts or any(is_media(slot) for slot in task.inputs):
        return {"batch_examples": (8, 32, 64, 128)[_size(rows)]}
    room = ROWS_OF_A_BATCH * usual_length(texts, facts, task.tokens)
    least = (250, 1_000, 1_000, 2_500, 6_000)[_size(rows) + (rows >= 500_000)]
    return {"batch_tokens": rounded(min(max(least, room), MOST_TOKENS))}


def _size(rows: int) -> int:
    return sum(rows >= limit for limit in (500, 5_000, 50_000))


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


def _validation_rows(facts: DataFacts, rows: int) -> int:
    """About how many rows the validation set has, as `data.valid` says or by default."""
    share = SPLIT_SHARE if "valid" in facts.splits else USUAL
    return min(max(round(share * rows), LEAST), max(rows // 3, 1))
