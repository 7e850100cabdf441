"""A run is scored on parallel files, as it is trained on them."""

from pathlib import Path
from typing import Any

import pytest

import sixjars
from sixjars.errors import DataError
from tests.unit.trained import one_step

ENGLISH = [
    f"the {size} {thing}"
    for size in ("small", "red", "old", "new")
    for thing in ("cat", "dog", "house", "tree")
]
GERMAN = [line.replace("the", "das").replace("house", "Haus") for line in ENGLISH]
FEW = ["learning.steps=3", "evaluation.search.max_length=5", "evaluation.metrics=[chrf]"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two parallel files, the same as a table, and a run that was trained on the files."""
    made = tmp_path_factory.mktemp("parallel")
    (made / "c.en").write_text("\n".join(ENGLISH) + "\n")
    (made / "c.de").write_bytes("\r\n".join(GERMAN).encode())
    (made / "c.tsv").write_text(
        "en\tde\n" + "".join(f"{a}\t{b}\n" for a, b in zip(ENGLISH, GERMAN, strict=True))
    )
    train(made, made / "run", {"train": {"en": "c.en", "de": "c.de"}})
    return made


def train(folder: Path, out: Path, data: dict[str, Any], *, turned: bool = False) -> None:
    source, target = ("de", "en") if turned else ("en", "de")
    data = {"folder": str(folder), "valid": 0.3, **data}
    data |= {"source": {"column": source}, "target": {"column": target}}
    recipe = {"task": "translation", "data": data}
    sixjars.train(recipe, FEW, out=out)


def test_parallel_files_are_scored_as_a_table_is(folder: Path) -> None:
    files = [folder / "c.en", folder / "c.de"]
    found = sixjars.evaluate(folder / "run", data=files)
    assert (found.examples, found.where) == (len(ENGLISH), f"{files[0]} + {files[1]}")
    assert found.scores == sixjars.evaluate(folder / "run", data=str(folder / "c.tsv")).scores


def test_the_command_takes_them_one_after_the_other(folder: Path, call: Any) -> None:
    data = ("--data", folder / "c.en", "--data", folder / "c.de")
    found = call("evaluate", folder / "run", *data)
    assert f"16 examples of {folder / 'c.en'} + {folder / 'c.de'}\n" in found.out
    assert "the run was trained on rows of this file" in found.err
    report = folder / "report.html"
    call("report", folder / "run", *data, "--out", report)
    assert f"--data {folder / 'c.en'} --data {folder / 'c.de'}" in report.read_text(
        encoding="utf-8"
    )


@pytest.mark.parametrize("data", [{"train": {"en": "c.en", "de": "c.de"}}, {"train": "c.tsv"}])
def test_their_order_is_that_of_training(
    data: dict[str, Any], folder: Path, tmp_path: Path
) -> None:
    """Of parallel files that of the files, however turned; of a table, inputs come first."""
    train(folder, tmp_path / "run", data, turned=True)
    names = ["c.de", "c.en"] if data["train"] == "c.tsv" else ["c.en", "c.de"]
    found = next(sixjars.evaluate(tmp_path / "run", data=[folder / name for name in names]).each())
    assert (found["input"], found["references"]) == (GERMAN[0], [ENGLISH[0]])


def test_too_many_files_are_refused(folder: Path) -> None:
    with pytest.raises(DataError) as caught:
        sixjars.evaluate(folder / "run", data=["a", "b", "c"])
    assert str(caught.value) == (
        "several files are parallel lines, a file for each of source, target, in this order, but "
        "3 are given: a, b, c."
    )


def test_one_of_them_alone_is_told_of(folder: Path) -> None:
    with pytest.raises(DataError) as caught:
        sixjars.evaluate(folder / "run", data=folder / "c.en")
    told = f"{folder / 'c.en'}: ending '.en' is unknown. Known: .csv, "
    assert str(caught.value).startswith(told)
    assert str(caught.value).endswith(
        " The run was trained on parallel files; to score it on others, name them one after the "
        "other: --data FILE "
        "--data FILE (in Python: data=['FILE', 'FILE'])."
    )


def test_a_report_is_not_written_over_one_of_them(folder: Path) -> None:
    page = folder / "c.html"
    page.write_text("the red cat\n")
    with pytest.raises(DataError, match=r"c\.html is the data that is read; choose another name\."):
        sixjars.report(folder / "run", data=[folder / "c.en", page], out=page)


def test_fields_of_one_column_and_annotations_of_a_sample(folder: Path, tmp_path: Path) -> None:
    run = one_step("translation/sample_attention", tmp_path / "run")
    files = [folder / "c.en", folder / "c.de"]
    assert sixjars.evaluate(run, data=files, metrics=["chrf"]).examples == len(ENGLISH)
    with pytest.raises(DataError) as caught:
        sixjars.evaluate(run, data=files, metrics=["alignment_error_rate"])
    assert str(caught.value) == (
        "parallel files have no column for the alignment of this run; score it on a table, or "
        "name metrics without."
    )
