"""`sixjars align`: links of parallel texts, and a sentence for every input that cannot be aligned."""

import random
import re
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path

import pytest

import sixjars
from sixjars.errors import DataError
from sixjars.runs.align import Alignment
from tests.conftest import Call, Said

ENGLISH = ["the house", "the book", "", "a book"]
GERMAN = ["das Haus", "das Buch", "", "ein Buch"]
LINKS = ["0-0 1-1", "0-0 1-1", "", "0-0 1-1"]


Align = Callable[..., Said]


def lines_of(path: Path, lines: Iterable[str]) -> Path:
    path.write_text("".join(f"{line}\n" for line in lines))
    return path


@pytest.fixture
def texts(tmp_path: Path) -> tuple[Path, Path]:
    return lines_of(tmp_path / "en", ENGLISH), lines_of(tmp_path / "de", GERMAN)


@pytest.fixture
def align(call: Call, texts: tuple[Path, Path]) -> Align:
    """`sixjars align` of both texts."""
    return partial(call, "align", *texts)


def table_of(path: Path, mark: str, *more: tuple[str, str], header: bool = True) -> Path:
    """Both texts as a table, and rows after them."""
    rows = [*([("en", "de")] if header else []), *zip(ENGLISH, GERMAN, strict=True), *more]
    return lines_of(path, map(mark.join, rows))


def test_links_are_printed_or_written(align: Align, tmp_path: Path) -> None:
    assert align().out.splitlines() == LINKS
    said = align("--out", tmp_path / "links")
    assert (said.code, said.out) == (0, "")
    assert (tmp_path / "links").read_text().split("\n") == [*LINKS, ""]
    refused = f"--out {tmp_path / 'links'} exists already; choose another name."
    assert align("--out", tmp_path / "links").sentence == refused


def test_a_table_has_both_texts(call: Call, tmp_path: Path) -> None:
    named = table_of(tmp_path / "pairs.tsv", "\t")
    numbered = table_of(tmp_path / "numbered.tsv", "\t", header=False)
    for table, columns in ((named, "en,de"), (numbered, "2,1")):
        assert call("align", table, "--columns", columns).out.splitlines() == LINKS
    assert call("align", numbered).sentence == (
        "Give two texts to align, or one table and two of its columns: --columns english,french."
    )


EMPTY = "2 rows with an empty cell; an empty line of links stands for each."


def test_rows_with_an_empty_cell_have_an_empty_line(call: Call, tmp_path: Path) -> None:
    """So that lines stay beside the rows of the table; another delimiter is found."""
    table = table_of(tmp_path / "pairs.csv", ";", ("the book", ""))
    said = call("align", table, "--columns", "en,de")
    assert said.out.split("\n") == [*LINKS, "", ""]
    delimiter = "has ';' between its columns, and is read that way; ',' was expected."
    assert said.err.splitlines() == [f"note: {table} {delimiter}", f"note: {table}: {EMPTY}"]


@pytest.mark.parametrize(("name", "mark"), [("pairs.tsv", "\t"), ("pairs.csv", ",")])
def test_empty_lines_of_a_table_have_an_empty_line(
    name: str, mark: str, call: Call, tmp_path: Path
) -> None:
    lines = [f"{one}{mark}{two}" if one else "" for one, two in zip(ENGLISH, GERMAN, strict=True)]
    table = lines_of(tmp_path / name, ["en" + mark + "de", *lines, " "])
    said = call("align", table, "--columns", "en,de")
    assert (said.code, said.out.split("\n")) == (0, [*LINKS, "", ""])
    assert f"note: {table}: {EMPTY}\n" in said.err


def test_a_header_that_is_read_as_a_pair_is_told(call: Call, tmp_path: Path) -> None:
    table = table_of(tmp_path / "pairs.tsv", "\t")
    said = call("align", table, "--columns", "2,1")
    assert len(said.out.splitlines()) == 5
    assert (
        f"note: {table}: the first line ('en', 'de') looks like a header, but is read as a pair, because columns are "
        "given by number; name them: --columns de,en.\n"
    ) in said.err
    assert "a header" not in call("align", table, "--columns", "de,en").err


def test_the_diagonal_can_be_left_out(call: Call, tmp_path: Path) -> None:
    draw = random.Random(0)
    rows = [draw.sample("abcdef", 3) for _ in range(30)]
    both = [
        lines_of(tmp_path / name, (" ".join(row[::step]) for row in rows))
        for name, step in (("a", 1), ("b", -1))
    ]
    assert call("align", *both, "--diagonal", "0").out == "0-2 1-1 2-0\n" * 30
    assert call("align", *both).out != "0-2 1-1 2-0\n" * 30
    for wrong in ("nan", "-1.0", "100000.0"):
        sentence = f"diagonal must be from 0 to 14, but is {wrong}."
        assert call("align", *both, "--diagonal", wrong).sentence == sentence
        with pytest.raises(DataError, match=re.escape(sentence)):
            sixjars.align(["a"], ["b"], diagonal=float(wrong))
    assert list(sixjars.align(["a b", None], ["x y", "y"]).to_pharaoh()) == ["0-0 1-1", ""]  # type: ignore[list-item]


def test_more_text_is_learned_from(call: Call, tmp_path: Path) -> None:
    """One pair alone teaches nothing about which of its words belong together, but for where they stand."""
    draw = random.Random(0)
    rows = [draw.sample("abcdefghijklmnop", 4) for _ in range(300)]
    texts = {"c": rows, "d": [[letter * 2 for letter in reversed(row)] for row in rows]}
    texts |= {"a": [["b", "a"]], "b": [["aa", "bb"]]}
    a, b, *others = (lines_of(tmp_path / name, map(" ".join, texts[name])) for name in "abcd")
    assert call("align", a, b).out == "0-0 1-1\n"
    assert call("align", a, b, "--also", *others).out == "0-1 1-0\n"


def test_empty_lines_at_the_end_of_one_text_are_nothing(call: Call, tmp_path: Path) -> None:
    longer = lines_of(tmp_path / "a", ["the house", "the book", "", ""])
    shorter = lines_of(tmp_path / "b", ["das Haus", "das Buch"])
    assert call("align", longer, shorter).out == "0-0 1-1\n0-0 1-1\n"
    assert len(list(sixjars.align(["a", "b"], ["c", "d", "", None]).to_pharaoh())) == 2  # type: ignore[list-item]


def test_texts_of_different_length(call: Call, texts: tuple[Path, Path], tmp_path: Path) -> None:
    one, must = lines_of(tmp_path / "one", "a"), "Texts to align must have equally many lines, but"
    assert call("align", texts[0], one).sentence == f"{must} {texts[0]} has 4, {one} has 1."
    with pytest.raises(DataError, match=rf"^{must} the list has 2, the list has 1\.$"):
        sixjars.align(["a", "b"], ["c"])


def test_files_that_cannot_be_read(call: Call, align: Align, tmp_path: Path) -> None:
    bad, gone, place = tmp_path / "bad", tmp_path / "dee", tmp_path / "en" / "links"
    bad.write_bytes(b"fine\nb\xffd\n")
    for said, begin in (
        (call("align", tmp_path / "en", gone), f"{gone} does not exist."),
        (call("align", bad, bad), f"{bad}, line 2: byte 2"),
        (align("--symmetrize", "grow"), "Invalid value for '--symmetrize'"),
        (align("--gold", gone), f"{gone} does not exist"),
        (
            align("--out", place),
            f"--out {place} cannot be written: {tmp_path / 'en'} is not a folder.",
        ),
    ):
        assert said.sentence.startswith(begin)
    unknown = r"^symmetrize: 'grow' is unknown\. Known: backward, forward, grow-diag,"
    with pytest.raises(DataError, match=unknown):
        sixjars.align(["a"], ["b"], symmetrize="grow")  # type: ignore[arg-type]


def test_what_stands_where_links_should_be_written_stays(align: Align, tmp_path: Path) -> None:
    """A folder is refused, a device is written to: neither is replaced by a file."""
    place = tmp_path / "folder"
    place.mkdir()
    (place / "mine").touch()
    folder = f"{place} is a folder; name a file in it."
    assert align("--out", place).sentence == f"--out {folder}"
    assert (place / "mine").exists()
    with pytest.raises(DataError, match=re.escape(folder)):
        sixjars.align(ENGLISH, GERMAN).save(place)
    (tmp_path / "null").symlink_to("/dev/null")
    assert align("--out", tmp_path / "null").code == 0
    assert (tmp_path / "null").is_char_device()


GOLD = "1 1 1 S\n1 2 2 P\n0004 1 2\n4 2 2 S\n"
"""Of lines 1 and 4, where the aligner has 0-0 and 1-1: of the four links one is wrong, and of three sure ones two are
found."""


@pytest.mark.parametrize("gold", [GOLD, "0-0 1?1\n0-0 1-1\n\n0-1 1-1\n"])
def test_links_are_scored(align: Align, tmp_path: Path, gold: str) -> None:
    (tmp_path / "gold").write_text(gold)
    right, sure, found, lines = (2 + 3, 3, 4, 2) if gold == GOLD else (4 + 5, 5, 6, 4)
    score = sixjars.align(ENGLISH, GERMAN).score(tmp_path / "gold")
    assert score.error_rate == pytest.approx(1 - right / (found + sure))
    assert (score.precision, score.recall) == pytest.approx((1 - 1 / found, 1 - 1 / sure))
    assert score.lines == lines
    said = align("--gold", tmp_path / "gold", "--symmetrize", "union").out.splitlines()
    assert [line.split()[0] for line in said] == ["forward", "backward", "union"]
    assert said[2].split(maxsplit=1)[1] == (
        f"alignment error rate {score.error_rate:.4f}  precision {score.precision:.4f}  recall {score.recall:.4f}"
        f"  ({lines} lines)"
    )


@pytest.mark.parametrize(
    ("gold", "sentence"),
    [
        ("1 1 1 S\n9 1 1\n", ", line 2: sentence 9 is not one of the 4 lines."),
        ("1 0 1 S\n", ", line 1: words are counted from 1 here, but '1 0 1 S' has a 0."),
        (
            "1 1 3 S\n",
            ", sentence 1: alignment 0-2 points outside the second text, which has 2 words (counted from 0).",
        ),
        ("0-0\n", " has links for 1 line, but there are 4."),
        ("0-0\n0\n\n0-0\n", ", sentence 2: alignment '0' must be pairs like `0-0 1-2`."),
        ("\n", " has no links to compare with."),
        ("\udcff\n", ", line 1: not UTF-8; is this a file of links?"),
    ],
)
def test_true_links_that_do_not_fit(align: Align, tmp_path: Path, gold: str, sentence: str) -> None:
    file = tmp_path / "gold"
    file.write_bytes(gold.encode(errors="surrogateescape"))
    assert align("--gold", file).sentence == f"{file}{sentence}"


def test_progress_is_shown(texts: tuple[Path, Path]) -> None:
    seen = set()

    class Told(sixjars.Reporter):
        def reading(self, what: str, *, rows: int, total: int | None = None) -> None:
            seen.add((what, total))

    import sixjars.progress as progress

    many = 600
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(progress, "_OFTEN", -1.0)
        sixjars.align(["the house"] * many, ["das haus"] * many, reporter=Told())
    assert ("aligning words", 5 * many) in seen


def test_in_python(tmp_path: Path) -> None:
    found = sixjars.align(ENGLISH, GERMAN)
    assert (len(found), sorted(found[-1]), sorted(list(found)[2])) == (4, [(0, 0), (1, 1)], [])
    with pytest.raises(IndexError):
        found[4]
    found.save(tmp_path / "new" / "links")
    assert (
        (tmp_path / "new" / "links").read_text().splitlines() == LINKS == list(found.to_pharaoh())
    )


def test_links_are_written_whole_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever reads the file while it is written, or after an end in between, has what was there before."""
    file, link, seen = tmp_path / "links", tmp_path / "link", list[str]()
    file.write_text("old\n")
    link.symlink_to(file)

    def interrupted(found: Alignment) -> Iterator[str]:
        yield "0-0"
        seen.append(file.read_text())
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Alignment, "to_pharaoh", interrupted)
        with pytest.raises(KeyboardInterrupt):
            sixjars.align(ENGLISH, GERMAN).save(file)
    assert seen == [file.read_text()] == ["old\n"]
    assert {path.name for path in tmp_path.iterdir()} == {"links", "link"}
    sixjars.align(ENGLISH, GERMAN).save(link)
    assert file.read_text().splitlines() == LINKS
    assert link.is_symlink()


@pytest.mark.parametrize("lines", [[], [""], ["", " "]])
def test_texts_without_words_have_no_links(lines: list[str]) -> None:
    """And nothing is divided by their number of words: a warning is an error here."""
    assert list(sixjars.align(lines, lines)) == [frozenset()] * len(lines)
