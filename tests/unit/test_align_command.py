"""`sixjars align`: links of parallel texts, and a sentence for every input that cannot be aligned."""

import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import sixjars
from sixjars.errors import DataError
from sixjars.runs.align import Alignment

ENGLISH = ["the house", "the book", "", "a book"]
GERMAN = ["das Haus", "das Buch", "", "ein Buch"]
LINKS = ["0-0 1-1", "0-0 1-1", "", "0-0 1-1"]


@pytest.fixture
def texts(tmp_path: Path) -> tuple[Path, Path]:
    for name, lines in (("en", ENGLISH), ("de", GERMAN)):
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines))
    return tmp_path / "en", tmp_path / "de"


def test_links_are_printed(call: Any, texts: tuple[Path, Path]) -> None:
    assert call("align", *texts).out.splitlines() == LINKS


def test_links_are_written(call: Any, texts: tuple[Path, Path], tmp_path: Path) -> None:
    said = call("align", *texts, "--out", tmp_path / "links")
    assert (said.code, said.out) == (0, "")
    assert (tmp_path / "links").read_text().split("\n") == [*LINKS, ""]
    again = call("align", *texts, "--out", tmp_path / "links")
    assert again.sentence == f"--out {tmp_path / 'links'} exists already; choose another name."


def test_a_table_has_both_texts(call: Any, tmp_path: Path) -> None:
    rows = [pair for pair in zip(ENGLISH, GERMAN, strict=True) if pair[0]]
    (tmp_path / "pairs.tsv").write_text("en\tde\n" + "".join("\t".join(row) + "\n" for row in rows))
    assert (
        call("align", tmp_path / "pairs.tsv", "--columns", "en,de").out.splitlines()
        == ["0-0 1-1"] * 3
    )
    numbered = tmp_path / "numbered.tsv"
    numbered.write_text("".join("\t".join(row) + "\n" for row in rows))
    assert call("align", numbered, "--columns", "2,1").out.splitlines() == ["0-0 1-1"] * 3
    assert call("align", numbered).sentence == (
        "Give two texts to align, or one table and two of its columns: --columns english,french."
    )


def test_rows_with_an_empty_cell_have_an_empty_line(call: Any, tmp_path: Path) -> None:
    """So that lines stay beside the rows of the table; another delimiter is found."""
    rows = [*zip(ENGLISH, GERMAN, strict=True), ("the book", "")]
    (tmp_path / "pairs.csv").write_text("en;de\n" + "".join(f"{one};{two}\n" for one, two in rows))
    said = call("align", tmp_path / "pairs.csv", "--columns", "en,de")
    assert said.out.split("\n") == [*LINKS, "", ""]
    assert said.err.splitlines() == [
        f"note: {tmp_path / 'pairs.csv'} has ';' between its columns, and is read that way; ',' was expected.",
        f"note: {tmp_path / 'pairs.csv'}: 2 rows with an empty cell; an empty line of links stands for each.",
    ]


@pytest.mark.parametrize(("name", "mark"), [("pairs.tsv", "\t"), ("pairs.csv", ",")])
def test_empty_lines_of_a_table_have_an_empty_line(
    name: str, mark: str, call: Any, tmp_path: Path
) -> None:
    lines = [f"{one}{mark}{two}" if one else "" for one, two in zip(ENGLISH, GERMAN, strict=True)]
    (tmp_path / name).write_text("\n".join(["en" + mark + "de", *lines, " ", ""]))
    said = call("align", tmp_path / name, "--columns", "en,de", "--out", tmp_path / "links")
    assert said.code == 0
    assert (tmp_path / "links").read_text().split("\n") == [*LINKS, "", ""]
    told = "2 rows with an empty cell; an empty line of links stands for each."
    assert f"note: {tmp_path / name}: {told}\n" in said.err


def test_a_header_that_is_read_as_a_pair_is_told(call: Any, tmp_path: Path) -> None:
    rows = [*zip(ENGLISH, GERMAN, strict=True)]
    table = tmp_path / "pairs.tsv"
    table.write_text("en\tde\n" + "".join(f"{one}\t{two}\n" for one, two in rows))
    said = call("align", table, "--columns", "2,1")
    assert len(said.out.splitlines()) == 5
    assert (
        f"note: {table}: the first line ('en', 'de') looks like a header, but is read as a pair, because columns are "
        "given by number; name them: --columns de,en.\n"
    ) in said.err
    assert "a header" not in call("align", table, "--columns", "de,en").err


def test_the_diagonal_can_be_left_out(call: Any, tmp_path: Path) -> None:
    draw = random.Random(0)
    rows = [draw.sample("abcdef", 3) for _ in range(30)]
    for name, step in (("a", 1), ("b", -1)):
        (tmp_path / name).write_text("".join(" ".join(row[::step]) + "\n" for row in rows))
    both = tmp_path / "a", tmp_path / "b"
    assert call("align", *both, "--diagonal", "0").out == "0-2 1-1 2-0\n" * 30
    assert call("align", *both).out != "0-2 1-1 2-0\n" * 30
    for wrong in ("nan", "-1.0", "100000.0"):
        sentence = f"diagonal must be from 0 to 14, but is {wrong}."
        assert call("align", *both, "--diagonal", wrong).sentence == sentence
        with pytest.raises(DataError, match=re.escape(sentence)):
            sixjars.align(["a"], ["b"], diagonal=float(wrong))
    assert list(sixjars.align(["a b", None], ["x y", "y"]).to_pharaoh()) == ["0-0 1-1", ""]  # type: ignore[list-item]


def test_more_text_is_learned_from(call: Any, tmp_path: Path) -> None:
    """One pair alone teaches nothing about which of its words belong together, but for where they stand."""
    draw = random.Random(0)
    rows = [draw.sample("abcdefghijklmnop", 4) for _ in range(300)]
    texts = {"c": rows, "d": [[letter * 2 for letter in reversed(row)] for row in rows]}
    for name, lines in {"a": [["b", "a"]], "b": [["aa", "bb"]], **texts}.items():
        (tmp_path / name).write_text("".join(" ".join(line) + "\n" for line in lines))
    a, b, *others = (tmp_path / name for name in "abcd")
    assert call("align", a, b).out == "0-0 1-1\n"
    assert call("align", a, b, "--also", *others).out == "0-1 1-0\n"


def test_empty_lines_at_the_end_of_one_text_are_nothing(call: Any, tmp_path: Path) -> None:
    (tmp_path / "a").write_text("the house\nthe book\n\n\n")
    (tmp_path / "b").write_text("das Haus\ndas Buch\n")
    assert call("align", tmp_path / "a", tmp_path / "b").out == "0-0 1-1\n0-0 1-1\n"
    assert len(list(sixjars.align(["a", "b"], ["c", "d", "", None]).to_pharaoh())) == 2  # type: ignore[list-item]


def test_texts_of_different_length(call: Any, texts: tuple[Path, Path], tmp_path: Path) -> None:
    (tmp_path / "one").write_text("a\n")
    assert call("align", texts[0], tmp_path / "one").sentence == (
        f"Texts to align must have equally many lines, but {texts[0]} has 4, {tmp_path / 'one'} has 1."
    )
    with pytest.raises(
        DataError, match=r"^Texts to align must .*, but the list has 2, the list has 1\.$"
    ):
        sixjars.align(["a", "b"], ["c"])


def test_files_that_cannot_be_read(call: Any, texts: tuple[Path, Path], tmp_path: Path) -> None:
    assert call("align", texts[0], tmp_path / "dee").sentence.startswith(
        f"{tmp_path / 'dee'} does not exist."
    )
    (tmp_path / "bad").write_bytes(b"fine\nb\xffd\n")
    assert call("align", tmp_path / "bad", tmp_path / "bad").sentence.startswith(
        f"{tmp_path / 'bad'}, line 2: byte 2"
    )
    assert call("align", *texts, "--symmetrize", "grow").sentence.startswith(
        "Invalid value for '--symmetrize'"
    )
    with pytest.raises(
        DataError, match=r"^symmetrize: 'grow' is unknown\. Known: backward, forward, grow-diag,"
    ):
        sixjars.align(["a"], ["b"], symmetrize="grow")  # type: ignore[arg-type]
    place = tmp_path / "en" / "links"
    assert call("align", *texts, "--out", place).sentence == (
        f"--out {place} cannot be written: {tmp_path / 'en'} is not a folder."
    )


def test_what_stands_where_links_should_be_written_stays(
    call: Any, texts: tuple[Path, Path], tmp_path: Path
) -> None:
    """A folder is refused, a device is written to: neither is replaced by a file."""
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "mine").touch()
    place = tmp_path / "folder"
    assert (
        call("align", *texts, "--out", place).sentence
        == f"--out {place} is a folder; name a file in it."
    )
    assert (place / "mine").exists()
    with pytest.raises(DataError, match=r"folder is a folder; name a file in it\.$"):
        sixjars.align(*texts).save(place)
    (tmp_path / "null").symlink_to("/dev/null")
    assert call("align", *texts, "--out", tmp_path / "null").code == 0
    assert (tmp_path / "null").is_char_device()


GOLD = "1 1 1 S\n1 2 2 P\n0004 1 2\n4 2 2 S\n"
"""Of lines 1 and 4, where the aligner has 0-0 and 1-1: of the four links one is wrong, and of three sure ones two are
found."""


@pytest.mark.parametrize("gold", [GOLD, "0-0 1?1\n0-0 1-1\n\n0-1 1-1\n"])
def test_links_are_scored(call: Any, texts: tuple[Path, Path], tmp_path: Path, gold: str) -> None:
    (tmp_path / "gold").write_text(gold)
    numbered = gold == GOLD
    right, sure, found, lines = (2 + 3, 3, 4, 2) if numbered else (4 + 5, 5, 6, 4)
    score = sixjars.align(*texts).score(tmp_path / "gold")
    assert score.error_rate == pytest.approx(1 - right / (found + sure))
    assert (score.precision, score.recall) == pytest.approx((1 - 1 / found, 1 - 1 / sure))
    assert score.lines == lines
    said = call(
        "align", *texts, "--gold", tmp_path / "gold", "--symmetrize", "union"
    ).out.splitlines()
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
def test_true_links_that_do_not_fit(
    call: Any, texts: tuple[Path, Path], tmp_path: Path, gold: str, sentence: str
) -> None:
    (tmp_path / "gold").write_bytes(gold.encode(errors="surrogateescape"))
    assert (
        call("align", *texts, "--gold", tmp_path / "gold").sentence
        == f"{tmp_path / 'gold'}{sentence}"
    )


def test_true_links_that_are_not_there(call: Any, texts: tuple[Path, Path], tmp_path: Path) -> None:
    assert call("align", *texts, "--gold", tmp_path / "none").sentence.startswith(
        f"{tmp_path / 'none'} does not exist"
    )


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
