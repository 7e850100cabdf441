"""A file that is no text is called what it is, whoever is given it as text."""

import gzip
import io
import zipfile
from pathlib import Path

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest
from PIL import Image

from sixjars.data.text.files import lines_of
from sixjars.errors import DataError
from sixjars.starter.write import new
from tests.conftest import Call


def image(kind: str) -> bytes:
    out = io.BytesIO()
    Image.fromarray(np.random.default_rng(0).integers(0, 256, (40, 60, 3)).astype(np.uint8)).save(
        out, kind
    )
    return out.getvalue()


def zipped() -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("xl/workbook.xml", "<workbook/>")
    return out.getvalue()


def parquet() -> bytes:
    out = io.BytesIO()
    pyarrow.parquet.write_table(pyarrow.table({"a": ["b"]}), out)
    return out.getvalue()


FILES = {
    "an image (PNG)": image("PNG"),
    "an image (JPEG)": image("JPEG"),
    "an image (GIF)": image("GIF"),
    "an image, a video or a sound (RIFF)": image("WEBP"),
    "a PDF file": b"%PDF-1.4\n%\xe2\xe3\xcf\xd3\n1 0 obj\n",
    "a ZIP archive, as .xlsx, .docx and .ods files are": zipped(),
    "an old Excel or Word file (.xls, .doc)": b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(40),
    "packed with gzip, whose files end in .gz": gzip.compress(b"text,label\n"),
    "a Parquet file, whose name ends in .parquet": parquet(),
    "a database (SQLite)": b"SQLite format 3\0" + bytes(40),
    "a binary file": b"\x7fELF\x02\x01\0\0\xff\xfe\n",
}


@pytest.mark.parametrize("kind", FILES)
@pytest.mark.parametrize("ending", ["csv", "tsv", "txt", "jsonl", "en"])
def test_new_says_what_it_is(kind: str, ending: str, tmp_path: Path) -> None:
    (tmp_path / f"a.{ending}").write_bytes(FILES[kind])
    with pytest.raises(DataError) as caught:
        new(tmp_path / "new.yaml", task="translation", data=tmp_path / f"a.{ending}")
    assert str(caught.value) == (
        f"{tmp_path / f'a.{ending}'} is {kind}, not text; give a text file in UTF-8, such as .txt, .csv or .jsonl."
    )


def test_predict_says_it_too(call: Call, run: Path, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(image("PNG"))
    said = call("predict", run, "--input", tmp_path / "a.txt")
    assert said.sentence.startswith(f"{tmp_path / 'a.txt'} is an image (PNG), not text; ")


@pytest.mark.parametrize(
    "text",
    [
        b"RIFF is a word\n",
        "GIF89a für Bilder\n".encode("cp1252"),
        b"PAR1\n",
        b"a\0b\n",
        "eins\tzwei\n".encode("utf-16"),
        "eins\tzwei\n".encode("utf-16-le"),
    ],
)
def test_texts_stay_texts(text: bytes, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(text)
    assert len(list(lines_of(tmp_path / "a.txt"))) == 1
