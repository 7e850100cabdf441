"""Synthetic corpora for every task: no download, any size, true alignments and bounding boxes.

Each module draws the rows of one task, or of two that share their videos; the table `SAMPLES` lists
them all. The name of an image or a video describes it completely: rows hold names, and
`materialise` paints the files.
"""

import tempfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any
from zlib import crc32

from sixjars.progress import Reporter
from sixjars.samples import (
    articles,
    conversations,
    dialog,
    documents,
    entailment,
    language_model,
    motions,
    points,
    quantities,
    questions,
    scenes,
    summarization,
    tours,
    translation,
    transliteration,
)
from sixjars.samples.sample import Corpus, Row
from sixjars.tasks import TASKS
from sixjars.version import version_of
from sixjars_runtime.errors import DataError, unknown

if TYPE_CHECKING:
    from sixjars.data.storage.cache import Examples
    from sixjars.recipe.sections import Recipe

__all__ = [
    "SAMPLES",
    "Corpus",
    "Row",
    "generate",
    "materialise",
    "sample_named",
    "vectors",
]

SAMPLES: dict[str, Corpus] = {
    "conversation": conversations.conversation,
    "dialog": dialog.dialog,
    "document_classification": documents.document,
    "entailment": entailment.entailment,
    "image_captioning": scenes.captioned,
    "image_classification": scenes.classified,
    "image_question_answering": questions.question,
    "language_model": language_model.sentence,
    "pointing": tours.tour,
    "pointing/tours": tours.tour,
    "pointing/hull": points.hulls,
    "pointing/sorting": points.sorting,
    "sentence_pair": quantities.quantified,
    "summarization": summarization.news,
    "summarization/articles": articles.article,
    "translation": translation.translation,
    "transliteration": transliteration.transliteration,
    "video_captioning": motions.captioned,
    "video_classification": motions.classified,
}
"""The corpora by task, or by `task/kind`; the task alone is the first of its kinds."""

SPLITS = ("test", "valid", *["train"] * 8)
"""Of ten sources, the split that each is in."""
PATIENCE = 5_000
"""Draws in a row without a new row after which there are no more."""
SPREAD = 0.3
"""The distance of word vectors to the centre of their category, whose norm is about 1."""


def generate(
    task: str,
    *,
    size: int,
    valid: int,
    test: int,
    seed: int = 0,
    longest: int | None = None,
    kind: str | None = None,
) -> dict[str, list[Row]]:
    """A corpus in three splits, the same in every process; `kind` where a task has several.

    The first input of a row (a source text, or the name of an image or a video) decides its split,
    whatever the seed. So no source is in two splits, and a larger training set leaves the other two
    as they were. The splits of a language model are independent draws instead, duplicates included:
    its true perplexity holds for such draws.

    >>> generate("translation", size=2, valid=1, test=1)["train"][0]["hindi"]
    'mein ghar ja raha hoon'
    """
    sample = sample_named(task, kind)
    limit = _limit(sample, longest)
    counts = {"train": size, "valid": valid, "test": test}
    for name, count in counts.items():
        if count < 0:
            raise DataError(
                f"The {name} split of the {task} sample must have 0 rows or more, "
                f"but {count} are asked for."
            )
    splits = {name: _rows(sample, name, count, limit, seed) for name, count in counts.items()}
    if sample.solve is None:
        return splits
    return {name: sample.solve(rows) for name, rows in splits.items()}


def vectors(task: str, *, size: int, seed: int = 0) -> list[tuple[str, list[float]]]:
    """Synthetic word vectors for the source words of a task: words of the same category lie close.

    >>> [word for word, _ in vectors("transliteration", size=8)][:5]
    ['a', 'i', 'u', 'e', 'o']
    """
    sample = sample_named(task)
    if size < 1:
        raise DataError(f"A word vector must have 1 dimension or more, but {size} are asked for.")
    if sample.categories is None:
        raise DataError(f"The {task} sample has no word vectors. Remove `vectors: sample`.")
    rng = Random(f"vectors {task} {seed}")
    word_vectors: dict[str, list[float]] = {}
    for words in sample.categories().values():
        centre = [rng.gauss(0.0, size**-0.5) for _ in range(size)]
        for word in words:
            vector = [middle + rng.gauss(0.0, SPREAD * size**-0.5) for middle in centre]
            word_vectors.setdefault(word, vector)
    return list(word_vectors.items())


def materialise(
    task: str, names: Iterable[str], folder: Path, reporter: Reporter | None = None
) -> None:
    """Paint the images or videos of these names into a folder, unless they are there.

    Two processes may do this at the same time: a file appears whole or not at all.
    """
    sample = sample_named(task)
    if sample.paint is None:
        raise DataError(
            f"The {task} sample has no images or videos to paint; its rows are all there is."
        )
    missing = [name for name in dict.fromkeys(names) if not (folder / name).exists()]
    if not missing:
        return
    try:
        folder.mkdir(parents=True, exist_ok=True)
        options: dict[str, Any] = {"prefix": ".painting-", "ignore_cleanup_errors": True}
        with tempfile.TemporaryDirectory(dir=folder, **options) as painting:
            for done, name in enumerate(missing, start=1):
                whole = Path(painting) / name
                whole.write_bytes(sample.paint(name))
                whole.replace(folder / name)
                if reporter is not None:
                    reporter.preparing("drawing synthetic files", done=done, total=len(missing))
    except OSError as error:
        raise DataError(
            f"Synthetic files cannot be written to {folder}: {error.strerror or error}; "
            "make room, or name a folder that can be written."
        ) from error


def sample_named(task: str, kind: str | None = None) -> Corpus:
    """The synthetic corpus of a task, or the one of that kind where it has several."""
    if task not in SAMPLES:
        raise DataError(unknown("sample", task, [name for name in SAMPLES if "/" not in name]))
    if kind is None:
        return SAMPLES[task]
    kinds = [name.removeprefix(f"{task}/") for name in SAMPLES if name.startswith(f"{task}/")]
    if not kinds:
        raise DataError(
            f"The {task} sample is of one kind, but kind {kind!r} is asked for. Remove `kind`."
        )
    if kind not in kinds:
        raise DataError(unknown(f"kind of the {task} sample", kind, kinds))
    return SAMPLES[f"{task}/{kind}"]


def _limit(sample: Corpus, longest: int | None) -> int:
    """The greatest length of a source, in tokens."""
    if sample.longest is None:
        if longest is not None:
            media = f"{sample.media}s have no length in words"
            reason = media if sample.media else "its true perplexity holds for whole draws"
            raise DataError(
                f"The {sample.task} sample takes no 'longest' (got {longest}): {reason}. Remove it."
            )
        return 0
    limit = sample.longest if longest is None else longest
    fault = f"{sample.shortest} {sample.tokens} or more" if limit < sample.shortest else ""
    if sample.most is not None and limit > sample.most:
        fault = f"{sample.most} {sample.tokens} or fewer"
    if fault:
        raise DataError(f"'longest' of the {sample.task} sample must be {fault}, but is {limit}.")
    return limit


def _rows(sample: Corpus, name: str, count: int, limit: int, seed: int) -> list[Row]:
    """The rows of one split, before `solve`."""
    rng = Random(f"{sample.task} {name} {seed}")
    if not sample.inputs:
        return [sample.draw(rng, limit) for _ in range(count)]
    rows: dict[tuple[str, ...], Row] = {}
    if sample.headline and count and name == "train":
        rows[sample.inputs_of(sample.headline)] = sample.headline
    missed = 0
    for row in _drawn(sample, rng, limit):
        if len(rows) >= count:
            break
        inputs = sample.inputs_of(row)
        is_new = inputs not in rows and _split_of(sample, inputs[0]) == name
        missed = 0 if is_new else missed + 1
        if is_new:
            rows[inputs] = row
        if missed > PATIENCE:
            least = f"The {name} split of the {sample.task} sample has no more than {len(rows)}"
            within = f" with at most {limit} {sample.tokens}" if sample.longest else ""
            longer = ", or for a greater 'longest'" if sample.longest else ""
            raise DataError(
                f"{least} different rows{within}, but {count} are asked for. Ask for fewer{longer}."
            )
    return list(rows.values())


def _drawn(sample: Corpus, rng: Random, limit: int) -> Iterator[Row]:
    """Endless rows; those about the same image one after another."""
    while True:
        row = sample.draw(rng, limit)
        yield row
        for _ in range(sample.each - 1):
            assert sample.again is not None
            yield sample.again(rng, row)


def _split_of(sample: Corpus, source: str) -> str:
    """The one split that this source text, image or video can be in."""
    if sample.headline and source == sample.headline[sample.inputs[0]]:
        return "train"
    return SPLITS[crc32(source.encode()) % len(SPLITS)]


def sample_examples(recipe: "Recipe", splits: Mapping[str, str]) -> "dict[str, Examples]":
    """The examples of a recipe's synthetic corpus; `splits` has the name of each in messages."""
    # imports torch, which drawing a corpus does not need
    from sixjars.data.storage.cache import Examples

    sample = recipe.data.sample
    assert sample is not None
    keys = ("size", "valid", "test", "seed", "longest", "kind")
    options: dict[str, Any] = {key: getattr(sample, key) for key in keys}
    examples = {}
    for name, rows in generate(recipe.task, **options).items():
        values = {
            field: [row[column] for row in rows] for field, column in sample_columns(recipe).items()
        }
        examples[name] = Examples.of(values, where=f"the {splits[name]} set of the sample")
    return examples


def sample_columns(recipe: "Recipe") -> dict[str, str]:
    """The columns of the synthetic corpus, by field."""
    assert recipe.data.sample is not None
    sample = sample_named(recipe.task, recipe.data.sample.kind)
    task = TASKS[recipe.task]
    columns = {slot.name: column for slot, column in zip(task.inputs, sample.inputs, strict=True)}
    columns[task.output.name] = sample.target
    return columns | {truth: truth for truth in sample.truths}


def sample_folder(task: str) -> Path:
    """The folder of a synthetic corpus for this version; others may draw other files."""
    from sixjars.data.storage.cache import cache_folder

    return cache_folder() / "samples" / version_of() / task
