"""Features that were extracted beforehand: from arrays to training, prediction and drawings."""

import json
import zipfile
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import torch
import yaml

import sixjars
from sixjars.data.media.arrays import read_array
from sixjars.data.media.files import MediaFiles
from sixjars.data.storage.features import rounded
from sixjars.errors import DataError, MissingExtra, RecipeError, RunError, ShapeError
from sixjars.model import visual
from sixjars.model.backbones.pretrained import BackboneExtractor
from sixjars.runs.data.prepare import extract_features
from sixjars_runtime.images import read_image

from .conftest import Call
from .faults import check_fault
from .test_backbone_runs import install

KINDS = ("cat", "dog", "fish")
ROWS = 30


def arrays(shape: tuple[int | None, ...], dtype: str = "float16") -> dict[str, np.ndarray]:
    """For each row an array whose first numbers tell the class; None is a size that differs."""
    rng, found = np.random.default_rng(0), {}
    for row in range(ROWS):
        array = rng.normal(size=[row % 3 + 2 if size is None else size for size in shape])
        array[..., row % 3] += 4
        found[str(row)] = array.astype(dtype)
    return found


def written(
    folder: Path, shape: tuple[int | None, ...], column: str = "image", ending: str = ".npy"
) -> Path:
    """A folder of arrays, and a table that names them beside a caption and a label."""
    (folder / "feat").mkdir()
    for name, array in arrays(shape).items():
        np.save(folder / "feat" / f"{name}.npy", array)
    rows = [f"feat/{row}{ending}\ta {KINDS[row % 3]}\t{KINDS[row % 3]}" for row in range(ROWS)]
    (folder / "rows.tsv").write_text("\n".join([f"{column}\tcaption\tlabel", *rows]) + "\n")
    return folder / "rows.tsv"


def values(folder: Path, bridge: str = "attention", **image: Any) -> dict[str, Any]:
    """A recipe for captions of features."""
    return {
        "task": "image_captioning",
        "data": {
            "folder": str(folder),
            "train": "rows.tsv",
            "valid": 0.2,
            "image": {"kind": "features", "column": "image", **image},
            "target": {"column": "caption"},
        },
        "model": {"bridge": {"kind": bridge}, "decoder": {"size": 8}},
        "learning": {"epochs": 2, "batch_examples": 8, "rate": 0.01},
        "evaluation": {"search": {"max_length": 3}, "metrics": ["exact_match"]},
    }


def losses(run: Any) -> list[float]:
    return [epoch["train_loss"] for epoch in run.history]


def video(folder: Path, **encoder: Any) -> dict[str, Any]:
    """The same for videos."""
    found = values(folder)
    data = found["data"]
    found["task"], data["video"] = "video_captioning", data.pop("image")
    found["model"]["encoder"] = {"size": 4, **encoder}
    return found


@pytest.mark.parametrize("shape", [(None, 6), (2, 3, 6)])
def test_the_same_road_in_training_scoring_and_prediction(
    shape: tuple[int | None, ...], tmp_path: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    written(tmp_path, shape)
    trained = sixjars.train(values(tmp_path), out="run")
    run = trained.folder
    assert sixjars.evaluate(run).scores == trained.scores
    assert sixjars.evaluate(run, data="rows.tsv").examples == ROWS
    said = call("predict", run, "feat/9.npy", "feat/10.npy", "--json", "--pictures", "pictures")
    first, second = map(json.loads, said.out.splitlines())
    count = 6 if len(shape) == 3 else 2
    assert first["source"] == [str(number) for number in range(1, count + 1)]
    assert len(first["weights"][0]) == count
    assert first["layout"] == (["grid", 2, 3] if len(shape) == 3 else ["regions"])
    expected = [True, True]
    assert [path.stat().st_size > 1000 for path in sorted(Path("pictures").iterdir())] == expected
    assert call("predict", run, "--input", "rows.tsv", "--output", "out.tsv").code == 0
    answers = [line.split("\t")[-1] for line in Path("out.tsv").read_text().splitlines()]
    assert answers[10:12] == [first["text"], second["text"]]
    whole = sixjars.load(run).predict(["feat"])[0]
    assert whole.error == "input 1: the image file feat is a folder."
    assert len(call("predict", run, "feat").out.splitlines()) == ROWS


@pytest.mark.parametrize("kind", ["npz", "zip", "h5"])
def test_an_archive_with_a_key_for_each_row(kind: str, tmp_path: Path) -> None:
    """The numbers are those of the single files, in prediction too."""
    written(tmp_path, (None, 6), ending="")
    table = (tmp_path / "rows.tsv").read_text()
    from_files = sixjars.train(values(tmp_path), out=tmp_path / "files")
    (tmp_path / "rows.tsv").write_text(table.replace("feat/", ""))
    whole, archive = arrays((None, 6)), tmp_path / f"feats.{kind}"
    if kind == "npz":
        np.savez_compressed(archive, **whole)  # type: ignore[arg-type]
    elif kind == "zip":
        with zipfile.ZipFile(archive, "w") as packed:
            for name in whole:
                packed.write(tmp_path / "feat" / f"{name}.npy", f"{name}.npy")
    else:
        with h5py.File(archive, "w") as file:
            for name, array in whole.items():
                file[name] = array
    run = sixjars.train(values(tmp_path, media=archive.name), out=tmp_path / kind)
    assert losses(run) == losses(from_files)
    assert run.scores == from_files.scores
    if kind != "zip":  # which is for files, that have to be at hand again
        found, gone = sixjars.load(run.folder).predict(["9", "gone"])
        [alone] = sixjars.load(from_files.folder).predict([str(tmp_path / "feat" / "9.npy")])
        assert found.text == alone.text
        assert gone.error == "input 2: the image file gone does not exist."


def test_frames_of_videos(tmp_path: Path, call: Call) -> None:
    written(tmp_path, (None, 6))
    run = sixjars.train(video(tmp_path), out=tmp_path / "run").folder
    pictures = tmp_path / "pictures"
    said = call("predict", run, tmp_path / "feat" / "10.npy", "--json", "--pictures", pictures)
    found = json.loads(said.out)
    assert found["layout"] == ["frames"]
    assert found["source"] == ["1", "2", "3"]
    assert len(list(pictures.iterdir())) == 1
    assert "v_j: 6 numbers each (features given by the data)" in str(sixjars.explain(run))


@pytest.mark.parametrize("bridge", ["attention", "initial"])
def test_training_is_as_from_images_with_a_frozen_backbone(
    bridge: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From its vectors to the last digit; from the mean of cells of 16 bits, nearly."""
    install(monkeypatch, 0.01)
    sixjars.generate_sample("image_captioning", tmp_path, size=40)
    files = {"folder": str(tmp_path), "train": "train.jsonl", "valid": "valid.jsonl"}
    data = {**files, "target": {"column": "caption"}}
    recipe = values(tmp_path, bridge) | {"data": {**data, "image": {"column": "image", "size": 16}}}
    recipe["model"] |= {"encoder": {"backbone": {"name": "efficientnet_lite0"}}}
    extractor = BackboneExtractor(
        16, "efficientnet_lite0", None, True, torch.device("cpu"), visual.backbone_named
    )
    (tmp_path / "feats").mkdir()
    for path in [*tmp_path.rglob("*.jpg"), *tmp_path.rglob("*.png")]:
        with path.open("rb") as file:
            pixels = read_image(file, path.name, size=16, fit="crop", max_pixels=10**6)
        # as they are stored for training
        numbers = rounded(extractor(torch.from_numpy(pixels)[None])[0].numpy())
        cells_HWC = numbers[:12].reshape(3, 2, 2).transpose(1, 2, 0)
        kept = cells_HWC if bridge == "attention" else numbers[12:]
        np.save(tmp_path / "feats" / f"{path.name}.npy", kept)
    # .npy may be left out of names
    features = {"kind": "features", "column": "image", "media": "feats"}
    given = values(tmp_path, bridge) | {"data": {**data, "image": features}}
    first = losses(sixjars.train(recipe, out=tmp_path / "images"))
    second = losses(sixjars.train(given, out=tmp_path / "features"))
    assert first == (second if bridge == "initial" else pytest.approx(second, rel=1e-3))


@pytest.mark.parametrize(
    "dtype", ["float16", "float32", "float64", "int64", "uint8", "bool", ">f4"]
)
def test_all_real_numbers_become_32_bits(dtype: str, tmp_path: Path) -> None:
    array = np.asfortranarray(np.arange(6).reshape(2, 3) % 2).astype(dtype)
    np.save(tmp_path / "one.npy", array)
    with (tmp_path / "one.npy").open("rb") as file:
        found = read_array(file, "one.npy", max_numbers=6)
    assert found.dtype == np.float32
    assert found.tolist() == [[0, 1, 0], [1, 0, 1]]


PICKLED = np.array([{}])
SPOILED: list[tuple[Any, str]] = [
    (np.zeros((2, 5)), "29.npy has vectors of 5 numbers, but feat/0.npy has vectors of 6 numbers;"),
    (np.full((1, 6), 1e300), "29.npy has 1e+300 at [0, 0], which is no finite"),
    (np.float32(1), "29.npy has the shape (), but features are (C), (N, C)"),
    (np.zeros((0, 6)), "29.npy is empty: its shape is (0, 6)."),
    (np.zeros((9, 6)), "29.npy has 54 numbers, but 'max_numbers' is 50; raise"),
    (np.array([["a"]]), "29.npy holds <U1, but features are real numbers."),
    (PICKLED, "29.npy holds pickled Python objects,"),
    ("cut", "29.npy is cut off or damaged; write it again."),
    (b"\x93NUMPY\x01", "29.npy is not a .npy file of numbers, or is damaged"),
    (b"PK\x03\x04", "29.npy is an archive of arrays; name it in 'media', and its arrays in the"),
    ("gone", "There is no file 'feat/29.npy' in ~; 'media' names the folders"),
]


@pytest.mark.parametrize(("content", "sentence"), SPOILED)
def test_a_bad_file_is_a_sentence(content: Any, sentence: str, tmp_path: Path) -> None:
    written(tmp_path, (None, 6))
    file = tmp_path / "feat" / f"{ROWS - 1}.npy"
    if isinstance(content, str):
        kept = file.read_bytes()[:-1]
        file.unlink() if content == "gone" else file.write_bytes(kept)
    elif isinstance(content, bytes):
        file.write_bytes(content)
    else:
        np.save(file, content, allow_pickle=content is PICKLED)
    with pytest.raises(DataError) as error:
        sixjars.train(values(tmp_path, max_numbers=50), out=tmp_path / "run")
    said = str(error.value).replace(str(tmp_path), "~")
    assert said.startswith("~/rows.tsv, line 31: the image: ")
    assert sentence in said


def test_archives_are_guarded(tmp_path: Path) -> None:
    """An array that would fill the memory, or that lies in another file, is not unpacked."""
    np.savez_compressed(tmp_path / "a.npz", big=np.zeros(10_000))
    with h5py.File(tmp_path / "b.h5", "w") as file:
        file["big"] = np.zeros(10_000)
        file["name"] = ["a text"]
        file["far"] = h5py.ExternalLink("c.h5", "big")
        layout = h5py.VirtualLayout(shape=(4,), dtype="f4")
        layout[:] = h5py.VirtualSource("c.h5", "small", shape=(4,))
        file.create_virtual_dataset("virtual", layout)
    with h5py.File(tmp_path / "c.h5", "w") as file:
        file["big"], file["small"] = np.zeros(10), np.zeros(4)
    for place, name, told in (
        ("a.npz", "big", "big.npy in ~/a.npz unpacks to 80,128 bytes, but 1,000 are the most; "),
        ("b.h5", "big", "big in ~/b.h5 unpacks to 80,000 bytes, but 1,000 are the most; "),
        ("b.h5", "virtual", "virtual in ~/b.h5 has its numbers in another file, which is not "),
        ("b.h5", "name", "name in ~/b.h5 holds texts or objects, but features are numbers."),
    ):
        found = MediaFiles([tmp_path / place], memory=tmp_path, endings=[".npy"], largest=1000)
        with pytest.raises(DataError) as error:
            found.open(name)
        assert str(error.value).replace(str(tmp_path), "~").startswith(told)
    assert not found.has("far")
    (tmp_path / "d.h5").write_text("no")
    with pytest.raises(DataError, match=r"d\.h5 is not an HDF5 file, or is damaged or cut off\.$"):
        MediaFiles([tmp_path / "d.h5"], memory=tmp_path)


def test_groups_of_an_hdf5_file_are_as_folders(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["train/1"] = np.zeros(2)
    found = MediaFiles([tmp_path / "a.h5"], memory=tmp_path)
    assert found.has("train/1")
    with pytest.raises(DataError, match=r"^train is a folder in .*a\.h5, not a file\.$"):
        found.open("train")


def test_without_h5py_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.h5").write_bytes(b"")
    monkeypatch.setitem(__import__("sys").modules, "h5py", None)
    told = r"^h5py is not installed\. Run: pip install 'sixjars\[hdf5\]'$"
    with pytest.raises(MissingExtra, match=told):
        MediaFiles([tmp_path / "a.h5"], memory=tmp_path)


def test_the_validation_set_has_the_shape_of_the_training_set(tmp_path: Path) -> None:
    written(tmp_path, (None, 6))
    np.save(tmp_path / "other.npy", np.zeros((2, 5)))
    (tmp_path / "valid.tsv").write_text("image\tcaption\nother.npy\ta cat\n")
    recipe = values(tmp_path)
    recipe["data"]["valid"] = "valid.tsv"
    with pytest.raises(DataError) as error:
        sixjars.train(recipe, out=tmp_path / "run")
    assert str(error.value) == (
        f"{tmp_path / 'valid.tsv'}, line 2: the image: other.npy has vectors of 5 numbers, but the "
        "training set has vectors of 6 numbers; all must have the same. Mend or remove it, or "
        "train with data.on_bad_row=skip, which leaves such files out."
    )
    (tmp_path / "valid.tsv").write_text("image\tcaption\nother.npy\ta cat\nfeat/0.npy\ta cat\n")
    recipe["data"]["on_bad_row"] = "skip"
    assert sixjars.train(recipe, out=tmp_path / "run").skipped == 1


def test_what_does_not_fit_is_a_sentence(tmp_path: Path) -> None:
    written(tmp_path, (6,))
    recipe = values(tmp_path)
    told = r"^attention has nothing to attend to: an encoder of kind 'image' has no "
    with pytest.raises(ShapeError, match=told):
        sixjars.train(recipe, out=tmp_path / "run")
    check_fault(
        recipe,
        "model.encoder.backbone.name=efficientnet_lite0",
        "model.encoder.backbone.name: data.image gives features, so no backbone computes them; "
        "remove it.",
    )
    with pytest.raises(ShapeError) as misfit:
        sixjars.train(video(tmp_path), out=tmp_path / "run2")
    assert str(misfit.value) == (
        "a file of features has one vector of 6 numbers, but a video needs (T, C), a vector for "
        "each frame."
    )


def test_there_are_no_cells_and_nothing_to_extract(tmp_path: Path) -> None:
    written(tmp_path, (None, 6))
    told = r"^model\.encoder\.reads: clips needs the cells of each frame, but the fea"
    with pytest.raises(ShapeError, match=told):
        sixjars.train(video(tmp_path, reads="clips"), out=tmp_path / "run")
    told = "no field of this image_captioning is of images or videos, so there is "
    with pytest.raises(RecipeError, match=told):
        extract_features(sixjars.read_recipe(values(tmp_path)))


def test_a_damaged_shape_in_a_run(tmp_path: Path) -> None:
    written(tmp_path, (None, 6))
    run = sixjars.train(values(tmp_path), out=tmp_path / "run").folder
    [kept] = [path for path in run.rglob("*image*") if path.is_file()]
    for wrong in ("{", '{"channels": "x", "positions": []}', '{"channels": 6}'):
        kept.write_text(wrong)
        told = r" is damaged: The saved shape of the features is damaged: "
        with pytest.raises(RunError, match=told):
            sixjars.load(run)


def started(call: Call, task: str, data: Path) -> tuple[str, dict[str, Any]]:
    """The text and the values of a starter recipe, which is trained on."""
    file = data.with_name("mine.yaml")
    file.unlink(missing_ok=True)
    assert call("new", file, "--task", task, "--data", data).code == 0
    found = yaml.safe_load(file.read_text())
    assert sixjars.train(found, ["learning.steps=1"], out=data.with_name(task)).scores
    return file.read_text(), found


def test_new_chooses_no_attention_for_single_vectors(tmp_path: Path, call: Call) -> None:
    _, found = started(call, "image_captioning", written(tmp_path, (6,)))
    assert found["model"]["bridge"] == {"kind": "initial"}


def test_new_recognises_a_column_of_arrays(tmp_path: Path, call: Call) -> None:
    data = written(tmp_path, (None, 6))
    text, found = started(call, "image_captioning", data)
    assert found["data"]["image"] == {"kind": "features", "column": "image", "media": "."}
    assert found["model"]["encoder"] == {"kind": "image", "dropout": 0.3}
    assert "pretrained" not in text
    data.write_text(data.read_text().replace("image", "video", 1))
    _, found = started(call, "video_captioning", data)
    assert found["data"]["video"] == {"kind": "features", "column": "video", "media": "."}
