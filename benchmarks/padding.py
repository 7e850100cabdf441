"""How much of what a network reads is padding, where texts are in segments: over the batches of one epoch.

python benchmarks/padding.py document_classification/sample_attention

Three ways to lay out the segments of a batch: packed into a few rectangles by length, as training does; all in one
rectangle as wide as the longest segment; and a block of as many segments for every text as the one with the most has.
"""

import argparse
from collections.abc import Iterable

import numpy as np

from sixjars.data.batches import Batches
from sixjars.flow.values import Segments
from sixjars.runs.data.splits import splits_of
from sixjars.runs.recipes import Blueprint, read_recipe

WAYS = ("packed rectangles", "one rectangle", "one block")


def places(segments: Segments) -> tuple[int, int, int, int]:
    """Positions that are words, and the places that each of the ways needs for them."""
    lengths = np.concatenate([(pack >= 0).sum(dim=1).numpy() for pack in segments.packs])
    texts, most = segments.segment_index.shape
    longest = int(lengths.max())
    packed = sum(pack.numel() for pack in segments.packs)
    return (
        int(lengths.sum()),
        packed,
        int((segments.segment_index >= 0).sum()) * longest,
        texts * most * longest,
    )


def found_in(batches: Batches) -> Iterable[tuple[int, Segments]]:
    """The number of each batch of an epoch that has segments, and those."""
    for number, (rows,) in enumerate(batches.plan(epoch=0)):
        for padded in batches.collate(rows).inputs.values():
            if padded.segments is not None:
                yield number, padded.segments


def report(batches: Batches) -> list[str]:
    """What to print, a line each."""
    found = list(found_in(batches))
    if not found:
        return ["No text of this recipe is in segments."]
    words, *sums = np.array([places(segments) for _, segments in found]).sum(axis=0).tolist()
    rectangles = np.mean([len(segments.packs) for _, segments in found])
    lines = [
        f"{len({number for number, _ in found}):,} batches, {words:,} words, {rectangles:.1f} rectangles a batch"
    ]
    return lines + [
        f"{way:18} {1 - words / count:6.1%} padding" for way, count in zip(WAYS, sums, strict=True)
    ]


def main() -> None:
    """Print the share of padding of each way."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("recipe")
    parser.add_argument("overrides", nargs="*", metavar="KEY=VALUE")
    given = parser.parse_args()
    recipe = read_recipe(given.recipe, given.overrides)
    learning = recipe.learning
    batches = splits_of(Blueprint.of(recipe)).train.batches(
        batch_tokens=learning.batch_tokens,
        batch_examples=learning.batch_examples,
        seed=learning.seed,
        training=True,
    )
    print("\n".join(report(batches)))


if __name__ == "__main__":
    main()
