"""The links of a training set that has none: learned once, and kept in the cache."""

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress

import numpy as np

from sixjars.data.alignment import model
from sixjars.data.alignment.aligner import ITERATIONS, DirectedLinks, aligned
from sixjars.data.alignment.pairs import WordIds
from sixjars.data.flat import as_array
from sixjars.data.storage.cache import cache_folder, disk_faults, made_whole, touch
from sixjars.recipe.data import DIAGONAL

_VERSION = 1  # of the aligner: a new one makes older links unread


def learned_links(
    sources: Sequence[str], targets: Sequence[str], *, diagonal: float = DIAGONAL
) -> DirectedLinks:
    """The links between the words of texts, made now or found in the cache.

    >>> sorted(learned_links(["a b", "b"], ["x y", "y"]).links(0))
    [(0, 0), (1, 1)]
    """
    first, second = as_array(sources), as_array(targets)
    words = WordIds.of(first), WordIds.of(second)
    sizes = len(words[1].ids), len(words[0].ids)
    path = cache_folder() / _key(diagonal, sources, targets)
    best = None
    with suppress(OSError, ValueError, EOFError):  # not there, or damaged
        best = np.load(path)
        touch(path)
    if best is None or best.dtype != np.int32 or best.shape != (sum(sizes),):
        directions = aligned(first, second, diagonal=diagonal)
        best = np.concatenate([directions.forward, directions.backward])
        with disk_faults("Learned alignments", path.parent), made_whole(path) as unfinished:
            with unfinished.open("wb") as file:
                np.save(file, best)
    return DirectedLinks(best[: sizes[0]], best[sizes[0] :], words[1].begins, words[0].begins)


def spaced(
    texts: Sequence[str], words: Callable[[Sequence[str]], list[list[int]]]
) -> Sequence[str]:
    """Put spaces between the units that links count: words as they are, or single characters.

    >>> spaced(["ab c"], lambda texts: [list(range(len(text))) for text in texts])
    ['a b _ c']
    """
    counts_characters = len(set(words(["ab"])[0])) == 2
    return [" ".join(text.replace(" ", "_")) for text in texts] if counts_characters else texts


def unspaced(words: Mapping[str, Sequence[Sequence[int]]]) -> Iterator[str]:
    """Warn where most texts of a field are one word; `words` is `Field.words` of each field.

    >>> len(list(unspaced({"source": [[0, 0], [0], [0, 1]], "target": [[0, 1]]})))
    1
    """
    sizes = {name: np.median([len(set(row)) for row in rows]) for name, rows in words.items()}
    if names := " and ".join(name for name, size in sizes.items() if size <= 1):
        yield (
            f"data.alignment: learn links the words between spaces, but most texts of {names} are "
            "one word; separate the words by spaces, or say tokens: characters for both sides."
        )


def _key(diagonal: float, *texts: Sequence[str]) -> str:
    """The file name of the links: a hash of all that they depend on."""
    constants = _VERSION, ITERATIONS, model.NULL, model.SPREAD, float(diagonal), *model.LIMITS
    digest = hashlib.sha256(f"alignment {constants}".encode())
    for side in texts:
        digest.update(f"\n{len(side)}\n".encode() + "\n".join(side).encode())
    return digest.hexdigest()
