"""Word alignment of parallel texts: links are learned, written, and compared with true ones."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from typing import Any, NamedTuple, final

import pyarrow

from sixjars.data.alignment.aligner import DirectedLinks, aligned, pharaoh
from sixjars.data.alignment.links import read_links
from sixjars.data.alignment.symmetry import SYMMETRIZATIONS, USUAL, Symmetrization
from sixjars.data.annotations import Links, links_of
from sixjars.data.flat import as_array
from sixjars.data.tables import header_as_data, read
from sixjars.data.tables.delimited import lines_in
from sixjars.data.tables.dialect import refitted
from sixjars.data.tables.rows import RowFault
from sixjars.data.text.files import blocks_of
from sixjars.evaluation.metrics.attention import alignment_error_rate
from sixjars.evaluation.metrics.outcome import Outcome
from sixjars.progress import Reporter, listening, number_of, tell, usual_reporter
from sixjars.recipe.data import DIAGONAL, STEEPEST, TableSettings
from sixjars.recipe.sections import DataSettings
from sixjars.runs.output_file import check_writable, written_whole
from sixjars_runtime.containers import is_table, several_of
from sixjars_runtime.errors import DataError, unknown

Text = str | Path | Sequence[str]
"""A file with a sentence in each line, or the sentences."""


@final
class AlignmentScore(NamedTuple):
    """The quality of links, compared with those of people."""

    error_rate: float
    """Alignment error rate: 1 - (|A ∩ S| + |A ∩ P|) / (|A| + |S|), from 0 (best) to 1."""
    precision: float
    """|A ∩ P| / |A|: the share of the links that are at least possible."""
    recall: float
    """|A ∩ S| / |S|: the share of the sure links that were found."""
    lines: int
    """The number of lines that were compared."""


@final
@dataclass(frozen=True)
class Alignment:
    """The links of each line: pairs (word of the first text, word of the second), from 0.

    >>> alignment = align(["the book", "a book"], ["das Buch", "ein Buch"])
    >>> len(alignment), sorted(alignment[1])
    (2, [(0, 0), (1, 1)])
    """

    directions: DirectedLinks
    """The best link of each word, in both directions."""
    lines: int
    """Lines of the texts that were aligned; others were only learned from."""
    symmetrize: Symmetrization = USUAL
    """The way in which both directions become one."""

    def __len__(self) -> int:
        return self.lines

    def __getitem__(self, line: int) -> Links:
        return self.directions.links(range(self.lines)[line], self.symmetrize)

    def __iter__(self) -> Iterator[Links]:
        return (self[line] for line in range(self.lines))

    def to_pharaoh(self) -> Iterator[str]:
        """Each line as text: `0-0 1-2`."""
        return map(pharaoh, self)

    def save(self, path: str | Path) -> None:
        """Write a file with a line of links for each pair of sentences."""
        check_writable(Path(path))
        with written_whole(Path(path)) as beside, beside.open("w", encoding="utf-8") as file:
            file.writelines(f"{line}\n" for line in self.to_pharaoh())

    def score(self, gold: str | Path) -> AlignmentScore:
        """Compare with a file of true links, in either format of `read_links`.

        Lines without any there are left out. Och & Ney 2003, section 6,
        https://aclanthology.org/J03-1002/.
        """
        path = Path(gold)
        outcomes = []
        for line, text in enumerate(read_links(path, lines=self.lines)):
            if text is None:
                continue
            sizes = self.directions.sizes(line)
            try:
                sure, possible = links_of(text, sizes, ("first text", "second text"))
            except ValueError as error:
                raise DataError(f"{path}, sentence {line + 1}: {error}") from None
            outcomes.append(Outcome((), links=self[line], sure=sure, possible=possible))
        if not outcomes:
            raise DataError(f"{path} has no links to compare with.")
        return _compared(outcomes)


def _compared(outcomes: Sequence[Outcome]) -> AlignmentScore:
    predicted = sure = right = hit = 0
    for outcome in outcomes:
        links, must = outcome.links or frozenset(), outcome.sure or frozenset()
        may = outcome.possible or frozenset()
        predicted += len(links)
        sure += len(must)
        right += len(links & (must | may))
        hit += len(links & must)
    rate = alignment_error_rate(outcomes)
    return AlignmentScore(rate, right / max(predicted, 1), hit / max(sure, 1), len(outcomes))


def align(
    first: Text,
    second: Text | None = None,
    *,
    columns: Sequence[str | int] = (),
    also: tuple[Text, Text] | None = None,
    symmetrize: Symmetrization = USUAL,
    diagonal: float = DIAGONAL,
    reporter: Reporter | None = None,
) -> Alignment:
    """Learn which words of two parallel texts belong together, from the texts alone.

    Words are what stands between white space; capitals do not count. `first` alone is a table, of
    which `columns` names two. `also` are two more texts, which are learned from, but not aligned.
    `diagonal` is how strongly links near the diagonal are preferred at first: where the order of
    words differs strongly, 0.1 lets the texts decide, 0 is no preference. A row of a table with an
    empty cell has no links.

    >>> texts = ["the house", "the book", "", "a book"], ["das Haus", "das Buch", "", "ein Buch"]
    >>> list(align(*texts).to_pharaoh())
    ['0-0 1-1', '0-0 1-1', '', '0-0 1-1']
    """
    if symmetrize not in SYMMETRIZATIONS:
        raise DataError(unknown("symmetrize:", symmetrize, SYMMETRIZATIONS))
    if not 0 <= diagonal <= STEEPEST:
        raise DataError(f"diagonal must be from 0 to {STEEPEST:g}, but is {diagonal}.")
    reporter = reporter or usual_reporter()
    try:
        with listening(reporter):
            texts = _table(first, columns) if second is None else _parallel(first, second)
            sides = [texts] if also is None else [texts, _parallel(*also)]
            together = map(pyarrow.concat_arrays, zip(*sides, strict=True))
            directions = aligned(*together, diagonal=diagonal)
    finally:
        reporter.end()
    return Alignment(directions, len(texts[0]), symmetrize)


def _parallel(first: Text, second: Text) -> tuple[Any, Any]:
    """The lines of two texts, as `pyarrow` arrays; empty lines behind the shorter are left out."""
    sides = _lines(first), _lines(second)
    count = min(map(len, sides))
    if any((line.as_py() or "").strip() for lines in sides for line in lines[count:]):
        counts = []
        for text, lines in zip((first, second), sides, strict=True):
            name = text if isinstance(text, str | Path) else "the list"
            counts.append(f"{name} has {len(lines):,}")
        raise DataError(f"Texts to align must have equally many lines, but {', '.join(counts)}.")
    return sides[0][:count], sides[1][:count]


def _lines(text: Text) -> Any:
    if not isinstance(text, str | Path):
        if is_table(text) or isinstance(text, Mapping):
            kind = f"not a table ({type(text).__name__})."
            raise DataError(f"Give two texts to align, each a file or a list, {kind}")
        return as_array(several_of(text))
    blocks = [lines_in(number, block) for number, block in blocks_of(Path(text))]
    for block in blocks:
        for line in block if isinstance(block, list) else ():
            if isinstance(line, RowFault):
                raise DataError(f"{text}, line {line.line}: {line.sentence}")
    return pyarrow.concat_arrays(blocks)


def _table(file: Text, columns: Sequence[str | int]) -> tuple[Any, Any]:
    if not isinstance(file, str | Path) or len(columns) != 2:
        raise DataError(
            "Give two texts to align, or one table and two of its columns: "
            "--columns english,french."
        )
    names = dict(zip(("first", "second"), columns, strict=True))
    settings = DataSettings(train=str(file), **refitted(Path(file), columns, TableSettings()))
    table = read(str(file), names, settings=settings, empty=True).table
    _tell_of_header(Path(file), columns, settings)
    first, second = (table.column(name).combine_chunks() for name in names)
    pairs = zip(first.to_pylist(), second.to_pylist(), strict=True)
    if empty := sum(not (text.strip() and other.strip()) for text, other in pairs):
        rows = f"{number_of(empty, 'row')} with an empty cell"
        tell(f"{file}: {rows}; an empty line of links stands for each.")
    return first, second


def _tell_of_header(file: Path, columns: Sequence[str | int], table: TableSettings) -> None:
    """A note where columns are numbers, and the first line, read as a pair, looks like names."""
    if any(isinstance(key, str) for key in columns):
        return
    names = header_as_data(file, table)
    if names:
        named = quote(",".join(names[int(key) - 1].strip() for key in columns))
        tell(
            f"{file}: the first line ({', '.join(map(repr, names))}) looks like a header, but is "
            f"read as a pair, because columns are given by number; name them: --columns {named}."
        )
