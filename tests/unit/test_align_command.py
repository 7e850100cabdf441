"""`sixjars align`: links of parallel texts, and a sentence for every input that cannot be aligned."""

import random
from pathlib import Path
from typing import Any

import pytest

import sixjars
from sixjars.errors import DataError

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
    assert call("align", tmp_path / "pairs.tsv", "--columns", "en,de").out.splitlines() == ["0-0 1-1"] * 3
    numbered = tmp_path / "numbered.tsv"
    numbered.write_text("".join("\t".join(row) + "\n" for row in rows))
    assert call("align", numbered, "--columns", "2,1").out.splitlines() == ["0-0 1-1"] * 3
    assert call("align", numbered).sentence == (
        "Give two texts to align, or one table and two of its columns: --columns english,french."
    )


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


def test_texts_of_different_length(call: Any, texts: tuple[Path, Path], tmp_path: Path) -> None:
    (tmp_path / "one").write_text("a\n")
    assert call("align", texts[0], tmp_path / "one").sentence == (
        f"Texts to align must have equally many lines, but {texts[0]} has 4, {tmp_path / 'one'} has 1."
    )
    with pytest.raises(DataError, match=r"^Texts to align must .*, but the list has 2, the list has 1\.$"):
        sixjars.align(["a", "b"], ["c"])


def test_files_that_cannot_be_read(call: Any, texts: tuple[Path, Path], tmp_path: Path) -> None:
    assert call("align", texts[0], tmp_path / "dee").sentence.startswith(f"{tmp_path / 'dee'} does not exist.")
    (tmp_path / "bad").write_bytes(b"fine\nb\xffd\n")
    assert call("align", tmp_path / "bad", tmp_path / "bad").sentence.startswith(f"{tmp_path / 'bad'}, line 2: byte 2")
    assert call("align", *texts, "--symmetrize", "grow").sentence.startswith("Invalid value for '--symmetrize'")
    with pytest.raises(DataError, match=r"^symmetrize: 'grow' is unknown\. Known: backward, forward, grow-diag,"):
        sixjars.align(["a"], ["b"], symmetrize="grow")  # type: ignore[arg-type]
    assert call("align", *texts, "--out", tmp_path / "en" / "links").sentence.startswith(str(tmp_path / "en"))


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
    found.save(tmp_path / "links")
    assert (tmp_path / "links").read_text().splitlines() == LINKS == list(found.to_pharaoh())
