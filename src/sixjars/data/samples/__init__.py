"""Made-up corpora, one for each system that reads or writes text: no download, any size, true alignments.

Each file draws rows for one system; this table is the whole registry.
"""

from random import Random
from zlib import crc32

from sixjars.data.samples import (
    dialog,
    entailment,
    language_model,
    summarization,
    translation,
    transliteration,
)
from sixjars.data.samples.sample import Row, Sample
from sixjars.errors import DataError, unknown

__all__ = ["SAMPLES", "Row", "Sample", "make", "vectors"]

SAMPLES: dict[str, Sample] = {
    "dialog": dialog.SAMPLE,
    "entailment": entailment.SAMPLE,
    "language_model": language_model.SAMPLE,
    "summarization": summarization.SAMPLE,
    "translation": translation.SAMPLE,
    "transliteration": transliteration.SAMPLE,
}

SHARES = {"test": 1, "valid": 1, "train": 8}
"""How many of ten source texts can only ever be in this part."""
PATIENCE = 5_000
"""So many draws one after another without a new row mean that there are no more."""
SPREAD = 0.3
"""How far a word's vector lies from the middle of its category, which is 1 from the origin."""


def make(
    task: str, *, size: int, valid: int, test: int, seed: int = 0, longest: int | None = None
) -> dict[str, list[Row]]:
    """A corpus in three parts, the same in every process for the same arguments.

    A source text belongs to one part by its letters alone, whatever the seed. So no source is in two
    parts, and a larger training part leaves the other two as they were. A language model's parts are
    independent draws instead: its true perplexity holds for draws, repeats included.

    >>> make("translation", size=2, valid=1, test=1)["train"][0]["hindi"]
    'mein ghar ja raha hoon'
    """
    sample = _named(task)
    limit = _limit(sample, longest)
    counts = {"train": size, "valid": valid, "test": test}
    for name, count in counts.items():
        if count < 0:
            raise DataError(
                f"The {name} part of the {task} sample must have 0 rows or more, but {count} are asked for."
            )
    return {name: _part(sample, name, count, limit, seed) for name, count in counts.items()}


def vectors(task: str, *, size: int, seed: int = 0) -> list[tuple[str, list[float]]]:
    """Made-up word vectors for a task's source words: words of the same category lie close.

    >>> [word for word, _ in vectors("transliteration", size=8)][:5]
    ['a', 'i', 'u', 'e', 'o']
    """
    sample = _named(task)
    if size < 1:
        raise DataError(f"A word vector must have 1 number or more, but {size} are asked for.")
    rng = Random(f"vectors {task} {seed}")
    made: dict[str, list[float]] = {}
    for words in sample.categories.values():
        centre = [rng.gauss(0.0, size**-0.5) for _ in range(size)]
        for word in words:
            near = [middle + rng.gauss(0.0, SPREAD * size**-0.5) for middle in centre]
            made.setdefault(word, near)
    return list(made.items())


def _named(task: str) -> Sample:
    if task not in SAMPLES:
        raise DataError(unknown("sample", task, list(SAMPLES)))
    return SAMPLES[task]


def _limit(sample: Sample, longest: int | None) -> int:
    if sample.longest is None:
        if longest is not None:
            raise DataError(
                f"The {sample.task} sample takes no 'longest' (got {longest}): "
                "its true perplexity holds for whole draws. Remove it."
            )
        return 0
    if longest is None:
        return sample.longest
    if longest < sample.shortest:
        raise DataError(
            f"'longest' of the {sample.task} sample must be {sample.shortest} {sample.tokens} or more, "
            f"but is {longest}."
        )
    return longest


def _part(sample: Sample, name: str, count: int, limit: int, seed: int) -> list[Row]:
    rng = Random(f"{sample.task} {name} {seed}")
    if sample.source is None:
        return [sample.draw(rng, limit) for _ in range(count)]
    rows: dict[str, Row] = {}
    if sample.headline and count and name == "train":
        rows[sample.headline[sample.source]] = sample.headline
    missed = 0
    while len(rows) < count:
        row = sample.draw(rng, limit)
        source = row[sample.source]
        missed += 1
        if source not in rows and _belongs(sample, source) == name:
            rows[source] = row
            missed = 0
        if missed > PATIENCE:
            raise DataError(
                f"The {name} part of the {sample.task} sample has no more than {len(rows)} different rows "
                f"with at most {limit} {sample.tokens}, but {count} are asked for. "
                "Ask for fewer, or for a greater 'longest'."
            )
    return list(rows.values())


def _belongs(sample: Sample, source: str) -> str:
    """The one part that this source text can be in."""
    if sample.headline and sample.source and source == sample.headline[sample.source]:
        return "train"
    number = crc32(source.encode()) % sum(SHARES.values())
    for name, share in SHARES.items():
        if number < share:
            return name
        number -= share
    raise AssertionError("the shares cover every number")
