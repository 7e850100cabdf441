"""`sixjars new` on images and videos: columns, splits, places of files, and the formats of other datasets."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

import sixjars
from sixjars.errors import DataError
from sixjars.progress import Reporter
from sixjars.recipe.sections import Recipe
from sixjars.runs.data.prepare import generate_sample
from sixjars.runs.data.splits import Splits, splits_of
from sixjars.runs.recipes import Blueprint, read_recipe
from sixjars.starter.write import new
from sixjars.tasks import TASKS

VISUAL = [
    task.name for task in TASKS.values() if {slot.kind for slot in task.inputs} & {"image", "video"}
]
FEW = ["learning.steps=2", "learning.batch_examples=4", "evaluation.batch_examples=4"]


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A synthetic corpus of any task as files, in a folder of its name."""
    monkeypatch.setenv("SIXJARS_CACHE", str(tmp_path / "cache"))

    def write(task: str, size: int = 12) -> Path:
        generate_sample(task, tmp_path / task, size=size, seed=0, reporter=Reporter())
        return tmp_path / task

    return write


def splits(recipe: Recipe) -> Splits:
    return splits_of(Blueprint.of(recipe))


def rewritten(file: Path, rows: list[dict[str, Any]]) -> Path:
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return file


def rows_of(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


def started(folder: Path, task: str, data: Path) -> Recipe:
    new(folder / "new.yaml", task=task, data=data)
    recipe = read_recipe(str(folder / "new.yaml"))
    (folder / "new.yaml").unlink()
    return recipe


@pytest.mark.parametrize("task", VISUAL)
def test_images_and_videos_are_learned_from_as_they_are(
    task: str, made: Any, tmp_path: Path
) -> None:
    """With the pretrained backbone that it names, and with the one that it tells of."""
    size = 12 if "question" in task else 6  # several ask about one image, and five folds need five
    new(tmp_path / "new.yaml", task=task, data=made(task, size=size) / "train.jsonl")
    fewer = ["data.video.frames=2"] if "video" in task else []
    for number, backbone in enumerate(([], ["small", "null"])):
        inside = "model.encoder.image.backbone" if "question" in task else "model.encoder.backbone"
        changes = [
            f"{inside}.{key}={value}"
            for key, value in zip(("name", "layer"), backbone, strict=False)
        ]
        trained = sixjars.train(
            str(tmp_path / "new.yaml"), [*changes, *fewer, *FEW], out=tmp_path / f"run{number}"
        )
        assert [score.name for score in trained.scores] == list(TASKS[task].metrics)


def test_files_are_looked_for_near_the_data(made: Any, tmp_path: Path) -> None:
    folder = made("image_captioning")
    recipe = started(tmp_path, "image_captioning", folder / "train.jsonl")
    assert (
        recipe.data.folder,
        recipe.data.train,
        recipe.data.fields["image"].model_dump()["media"],
    ) == (
        str(folder),
        "train.jsonl",
        ".",
    )
    names = [row["image"] for row in rows_of(folder / "train.jsonl")]
    for number, name in enumerate(names):
        place = folder / ("one", "two")[number % 2]
        place.mkdir(exist_ok=True)
        (folder / name).rename(place / name)
    (folder / "neither").mkdir()
    shutil.make_archive(str(folder / "two"), "zip", folder / "two")
    shutil.rmtree(folder / "two")
    recipe = started(tmp_path, "image_captioning", folder / "train.jsonl")
    assert recipe.data.fields["image"].model_dump()["media"] == ("one", "two.zip")
    assert len(splits(recipe).train) + len(splits(recipe).valid) == len(names)
    shutil.rmtree(folder / "one")
    (folder / "two.zip").unlink()
    recipe = started(tmp_path, "image_captioning", folder / "train.jsonl")
    assert recipe.data.fields["image"].model_dump()["media"] == "."


def test_columns_of_images_are_known_by_name_by_ending_and_by_length(tmp_path: Path) -> None:
    def found(task: str, row: dict[str, Any], **another: Any) -> list[Any]:
        file = rewritten(tmp_path / "rows.jsonl", [row, row, {**row, **another}])
        return [settings.column for settings in started(tmp_path, task, file).data.fields.values()]

    caption = {"boxes": "2:0.1,0.1,0.4,0.3", "caption": "a cat", "id": 7, "file_name": "a.jpg"}
    assert found("image_captioning", caption) == ["file_name", "caption"]
    assert found("image_captioning", {"image": "a.jpg", "caption": "no", "captions": ["a"]}) == [
        "image",
        "captions",
    ]
    odd = {"split": "the longest of all", "note": "a", "what": ["a cat", "a dog"], "where": "a.PNG"}
    assert found("image_captioning", odd)[0] == "where"
    asked = {"said": "red", "asked": "what colour is it?", "image": "no ending"}
    other = {"said": "blue", "asked": "and what colour is that?", "image": "none either"}
    assert found("image_question_answering", asked, **other) == ["image", "asked", "said"]
    clip = {"number": 3, "clip": "a.mp4", "class": 7}
    assert found("video_classification", clip, **{"class": 8}) == ["clip", "class"]
    assert found("video_captioning", {"text": "it runs", "film": "a.mp4"}) == ["film", "text"]


def test_tables_of_images_have_a_header_where_their_first_line_names_no_file(
    tmp_path: Path,
) -> None:
    def found(name: str, lines: list[str]) -> list[Any]:
        (tmp_path / name).write_text("\n".join([*lines, ""]), encoding="utf-8")
        data = started(tmp_path, "image_captioning", tmp_path / name).data
        return [settings.column for settings in data.fields.values()]

    assert found("a.tsv", ["a cat\ta.jpg", "a dog\tb.jpg"]) == [2, 1]
    assert found("b.tsv", ["said\tpicture", "a cat\ta.jpg"]) == ["picture", "said"]
    assert found("c.csv", ["file,caption", 'a.jpg,"a cat, a dog"']) == ["file", "caption"]
    assert found("d.csv", ['"a cat,', 'a dog",b.jpg']) == [2, 1]


def test_several_captions_and_splits_in_one_file(made: Any, tmp_path: Path) -> None:
    """Both are found; rows that belong to no split stay out, and test rows are never learned from."""
    folder = made("image_captioning")
    rows = [
        {"image": row["image"], "captions": [row["caption"], "so"]}
        for row in rows_of(folder / "train.jsonl")
    ]
    for row, name in zip(rows, ["train"] * 6 + ["dev"] * 3 + ["test"] * 2 + ["other"], strict=True):
        row["split"] = name
    recipe = started(tmp_path, "image_captioning", rewritten(folder / "all.jsonl", rows))
    assert recipe.data.split is not None
    assert (recipe.data.split.train, recipe.data.split.valid, recipe.data.split.test) == (
        "train",
        "dev",
        "test",
    )
    corpus = splits(recipe)
    assert corpus.test is not None
    assert [len(dataset) for dataset in (corpus.train, corpus.valid, corpus.test)] == [12, 6, 4]
    unheld = [row for row in rows if row["split"] in ("train", "test")]
    recipe = started(tmp_path, "image_captioning", rewritten(folder / "two.jsonl", unheld))
    assert (recipe.data.split, recipe.data.filter) == (None, {"split": "train"})
    recipe = started(tmp_path, "image_captioning", rewritten(folder / "one.jsonl", rows[:6]))
    assert (recipe.data.split, recipe.data.filter) == (None, {})


def test_a_folder_for_each_label(made: Any, tmp_path: Path) -> None:
    folder, sorted_out = made("video_classification"), tmp_path / "sorted"
    for row in rows_of(folder / "train.jsonl"):
        (sorted_out / row["label"]).mkdir(parents=True, exist_ok=True)
        shutil.copy(folder / row["video"], sorted_out / row["label"])
    shutil.make_archive(str(sorted_out), "zip", sorted_out)
    for place in (sorted_out, tmp_path / "sorted.zip"):
        recipe = started(tmp_path, "video_classification", place)
        assert (recipe.data.format, recipe.data.train) == ("folders", str(place))
        corpus = splits(recipe.model_copy(update={"model": small_backbone(recipe)}))
        assert (
            recipe.learning.folds == 5
        )  # so few are cross-validated, and then all are learned from
        assert len(corpus.train) == len(corpus.valid) == 12
        assert set(corpus.train.targets) <= {path.name for path in sorted_out.iterdir()}
    with pytest.raises(
        DataError,
        match=r"sorted is a folder; video_captioning needs a file with video, captions in",
    ):
        started(tmp_path, "video_captioning", sorted_out)


def small_backbone(recipe: Recipe) -> Any:
    """The model of a recipe, with a backbone that needs no weights."""
    encoder = {
        **recipe.model.encoder,
        "backbone": {**recipe.model.encoder["backbone"], "name": "small"},
    }
    return recipe.model.model_copy(update={"encoder": encoder})


def test_captions_as_other_datasets_have_them(tmp_path: Path) -> None:
    (tmp_path / "pictures").mkdir()
    (tmp_path / "pictures" / "a.jpg").touch()
    images, captions = [{"id": 1, "file_name": "a.jpg"}], [{"image_id": 1, "caption": "a cat"}] * 3
    coco = tmp_path / "captions.json"
    tokens = tmp_path / "Flickr8k.token.txt"
    tokens.write_text("a.jpg#0\ta cat\na.jpg#1\ta dog\n", encoding="utf-8")
    for indent in (None, 2):
        coco.write_text(
            json.dumps({"images": images, "annotations": captions}, indent=indent), encoding="utf-8"
        )
        for file, form in ((coco, "coco"), (tokens, "flickr8k")):
            data = started(tmp_path, "image_captioning", file).data
            assert (data.format, data.train, data.fields["image"].model_dump()["media"]) == (
                form,
                file.name,
                "pictures",
            )
            assert (data.fields["image"].column, data.fields["target"].column) == (
                "image",
                "caption",
            )


def test_what_cannot_be_understood_is_one_sentence(tmp_path: Path) -> None:
    def sentence(task: str, data: Path) -> str:
        with pytest.raises(DataError) as caught:
            new(tmp_path / "new.yaml", task=task, data=data)
        assert not (tmp_path / "new.yaml").exists()
        return str(caught.value)

    folder, packed = tmp_path / "folder", tmp_path / "packed.zip"
    folder.mkdir()
    packed.touch()
    assert sentence("image_question_answering", folder) == (
        f"{folder} is a folder; image_question_answering needs a file with image, question, answer in each row."
    )
    assert sentence("dialog", packed) == (
        f"{packed} is a .zip file; dialog needs a file with utterance, response in each row."
    )
    empty = tmp_path / "empty.tsv"
    empty.touch()
    assert sentence("image_captioning", empty) == f"{empty} is empty."
    rows = rewritten(tmp_path / "rows.jsonl", [{"image": "a.jpg", "split": "train", "number": 3}])
    assert sentence("image_captioning", rows) == (
        f"{rows}: none of its columns ('image' (file names), 'split', 'number' (ids)) "
        "is left for the target that image_captioning needs."
    )
