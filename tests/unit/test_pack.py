"""One file to share: what is in it, used as a folder is; a stranger's does no harm."""

import json
import shutil
import zipfile
from pathlib import Path
from typing import Any

import pytest

import sixjars
from sixjars.errors import RunError
from sixjars.runs.folder.archive import unpacked
from sixjars.runs.output_file import written_whole

FEW = [
    "data.sample.size=64",
    "data.sample.test=20",
    "learning.steps=2",
    "evaluation.search.max_length=5",
]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> sixjars.Run:
    return sixjars.train(
        "transliteration/sample_attention", FEW, out=tmp_path_factory.mktemp("pack") / "run"
    )


@pytest.fixture(scope="module")
def packed(run: sixjars.Run) -> Path:
    return sixjars.pack(run, run.folder.parent / "words.sixjars", licence="CC BY 4.0")


def test_it_is_used_as_the_folder_is(run: sixjars.Run, packed: Path) -> None:
    assert sixjars.load(packed).predict(["ghar", "a"]) == sixjars.load(run).predict(["ghar", "a"])
    assert sixjars.evaluate(packed).scores == sixjars.evaluate(run).scores
    assert sixjars.explain(packed) == sixjars.explain(run)


def test_what_is_in_it(run: sixjars.Run, packed: Path) -> None:
    with zipfile.ZipFile(packed) as archive:
        names = set(archive.namelist())
        card = archive.read("README.md").decode()
    kept = {"recipe.yaml", "run.json", "scores.json", "log.jsonl", "cost.json", "model.safetensors"}
    assert names == {"README.md", *kept, "fields/source.json", "fields/target.json"}
    weights = sum(one.numel() for one in run.predictor(device="cpu").network.state_dict().values())
    scores = json.loads((run.folder / "scores.json").read_text())["scores"]
    for line in (
        "CC BY 4.0",
        "- synthetic: 64 training examples, seed 0",
        "On 20 examples of the test set:",
        f"| exact_match | {scores['exact_match']['value']:.4f} |",
        f"- {weights:,} parameters in ",
    ):
        assert line in card


def test_the_command(call: Any, run: sixjars.Run, tmp_path: Path) -> None:
    file = tmp_path / "shared" / "x.sixjars"
    said = call("pack", run.folder, file)
    assert said.code == 0
    assert f"wrote {file} (" in said.err
    assert call("predict", file, "ghar").out == call("predict", run.folder, "ghar").out
    with zipfile.ZipFile(file) as archive:
        assert "Not stated: ask whoever made it" in archive.read("README.md").decode()
    sentence = call("pack", run.folder, file).sentence
    assert sentence == f"{file} is there already; remove it, or choose another name."
    told = f"a packed run ends in .sixjars, but the file is {tmp_path / 'x.zip'}."
    assert call("pack", run.folder, tmp_path / "x.zip").sentence == told
    told = f"run folder {tmp_path / 'no.sixjars'} does not exist."
    assert call("predict", tmp_path / "no.sixjars", "a").sentence == told


def test_a_run_without_weights(run: sixjars.Run, tmp_path: Path) -> None:
    for name in ("recipe.yaml", "run.json"):
        (tmp_path / name).write_text((run.folder / name).read_text())
    told = r"has no trained weights yet \(model\.safetensors\), so there is nothing to"
    with pytest.raises(RunError, match=told):
        sixjars.pack(tmp_path, tmp_path / "x.sixjars")


def test_a_run_whose_weights_are_damaged(run: sixjars.Run, tmp_path: Path) -> None:
    copy, out = tmp_path / "copy", tmp_path / "x.sixjars"
    shutil.copytree(run.folder, copy)
    for content in (
        b"",
        b"null",
        b"\xff" * 100,
        run.folder.joinpath("model.safetensors").read_bytes()[:900],
    ):
        (copy / "model.safetensors").write_bytes(content)
        with pytest.raises(RunError) as caught:
            sixjars.pack(copy, out)
        assert str(caught.value).startswith(f"{copy / 'model.safetensors'} is damaged: ")
        assert not out.exists()


def test_text_of_the_recipe_stays_text_in_the_card(run: sixjars.Run, tmp_path: Path) -> None:
    file = sixjars.pack(run, tmp_path / "x.sixjars", licence="<img src=x>\n# [free](http://x)")
    with zipfile.ZipFile(file) as archive:
        card = archive.read("README.md").decode()
    assert "img src=x # free (http://x)" in card
    assert "<img" not in card


# strangers


def written(
    tmp_path: Path, entries: list[tuple[str, bytes]], how: int = zipfile.ZIP_STORED
) -> Path:
    path = tmp_path / "bad.sixjars"
    with zipfile.ZipFile(path, "w", how) as archive:
        for name, content in entries:
            archive.writestr(name, content)
    return path


@pytest.mark.parametrize(
    "name",
    [
        "../evil.json",
        "/etc/evil",
        "fields/../../x.json",
        "fields/a/b.json",
        "model.py",
        "fields/",
        "C:\\x.json",
    ],
)
def test_other_names_are_refused(name: str, tmp_path: Path) -> None:
    path = written(tmp_path, [("recipe.yaml", b""), (name, b"x")])
    with pytest.raises(RunError, match="has no place in it"):
        sixjars.load(path)
    assert [one.name for one in tmp_path.iterdir()] == ["bad.sixjars"]


def test_bombs_are_refused(tmp_path: Path) -> None:
    path = written(tmp_path, [("log.jsonl", b"\0" * 10_000_000)], zipfile.ZIP_DEFLATED)
    assert path.stat().st_size < 100_000
    told = r"log\.jsonl is compressed or encrypted, as no packed run is\.$"
    with pytest.raises(RunError, match=told):
        sixjars.load(path)
    path = written(tmp_path, [(f"fields/f{at}.json", b"{}") for at in range(51)])
    with pytest.raises(RunError, match="it has 51 entries, or two of one name"):
        sixjars.load(path)


def test_entries_that_lie_about_their_size(tmp_path: Path) -> None:
    path = written(tmp_path, [("log.jsonl", b"abcd" * 10), ("run.json", b"{}")])
    content = path.read_bytes()
    path.write_bytes(content.replace((40).to_bytes(4, "little"), (400_000).to_bytes(4, "little")))
    with pytest.raises(RunError, match="its entries are larger than the file"):
        sixjars.load(path)


def test_two_entries_of_one_name(tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match="Duplicate name"):
        path = written(tmp_path, [("run.json", b"{}"), ("run.json", b"[]")])
    with pytest.raises(RunError, match="or two of one name"):
        sixjars.load(path)


@pytest.mark.parametrize("cut", [0, 3, 100, -10])
def test_damaged_files(cut: int, packed: Path, tmp_path: Path) -> None:
    path = tmp_path / "bad.sixjars"
    path.write_bytes(packed.read_bytes()[:cut])
    with pytest.raises(RunError, match=r"is not a packed run, or damaged: "):
        sixjars.load(path)


def test_a_changed_byte_is_noticed(packed: Path, tmp_path: Path) -> None:
    content = bytearray(packed.read_bytes())
    content[content.index(b'"format"') + 1] ^= 1
    path = tmp_path / "bad.sixjars"
    path.write_bytes(content)
    with pytest.raises(RunError, match=r"damaged: Bad CRC-32 for file"):
        unpacked(path)


def test_an_empty_archive_is_no_run(tmp_path: Path) -> None:
    with pytest.raises(RunError, match=r"is not a run folder: it has no recipe\.yaml\.$"):
        sixjars.load(written(tmp_path, [("README.md", b"hello")]))


@pytest.mark.parametrize("wrong", [3, None, b"run"])
def test_what_is_no_path(wrong: Any) -> None:
    for use in (sixjars.load, sixjars.evaluate):
        told = r"^a run is given by its folder or its file, but this is "
        with pytest.raises(RunError, match=told):
            use(wrong)


def test_an_error_names_the_file_that_was_given(tmp_path: Path) -> None:
    with (
        pytest.raises(FileNotFoundError) as caught,
        written_whole(tmp_path / "x.sixjars") as beside,
    ):
        beside.open()  # as where a file system takes no files
    assert caught.value.filename == str(tmp_path / "x.sixjars")
