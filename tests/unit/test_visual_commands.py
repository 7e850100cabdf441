"""`sixjars` with images and videos: files, folders, globs and questions in, drawings out."""

import json
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml
from PIL import Image

import sixjars
from sixjars.samples import sample_folder
from sixjars_runtime.images import IMAGE_ENDINGS

from .conftest import one_for_each_task

BACKBONE = {"name": "small", "widths": [4, 6]}
MODELS: dict[str, dict[str, Any]] = {
    "image_captioning": {"encoder": {"backbone": BACKBONE}, "bridge": {"kind": "attention"}},
    "image_question_answering": {
        "encoder": {"image": {"backbone": BACKBONE}},
        "bridge": {"kind": "attention"},
    },
    "video_captioning": {"encoder": {"backbone": BACKBONE}, "bridge": {"kind": "initial"}},
    "video_classification": {"encoder": {"backbone": BACKBONE}, "bridge": {"kind": "pooling"}},
}
FIELDS: dict[str, dict[str, Any]] = {
    "image_captioning": {"image": {"size": 16}},
    "image_question_answering": {"image": {"size": 16}, "question": {}, "label": {}},
    "video_captioning": {"video": {"size": 16, "frames": 3}},
    "video_classification": {"video": {"size": 16, "frames": 3}, "label": {}},
}
ENDINGS = " ".join(sorted(IMAGE_ENDINGS))
Run = Callable[[str], Path]


def recipe(task: str, **data: Any) -> dict[str, Any]:
    return {
        "task": task,
        "data": {**FIELDS[task], **data},
        "model": MODELS[task],
        "learning": {"steps": 2, "batch_examples": 16},
        "evaluation": {"search": {"max_length": 4}},
    }


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    def written(folder: Path, task: str) -> Path:
        values = recipe(task, sample={"size": 30, "valid": 4, "test": 8})
        (folder / "recipe.yaml").write_text(yaml.safe_dump(values))
        return folder / "recipe.yaml"

    return one_for_each_task(tmp_path_factory, written)


@pytest.fixture
def album(run: Run, tmp_path: Path) -> Path:
    """A folder of three images, one of them further down, and of what is none."""
    run("image_captioning")
    folder = tmp_path / "album"
    (folder / "holidays").mkdir(parents=True)
    found = sorted(sample_folder("image_captioning").glob("*.png"))[:3]
    for file, name in zip(found, ("b.png", "a.PNG", "holidays/c.png"), strict=True):
        shutil.copy(file, folder / name)
    (folder / "notes.txt").write_text("no image")
    return folder


def lined(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.fixture
def caption(call: Any, run: Run) -> Callable[..., Any]:
    """`sixjars predict` with the model that captions images."""
    return partial(call, "predict", run("image_captioning"))


@pytest.fixture
def video(run: Run) -> Path:
    run("video_classification")
    return next(sample_folder("video_classification").glob("*.mp4"))


def test_files_come_with_their_names(caption: Any, run: Run, album: Path, tmp_path: Path) -> None:
    """Given as arguments, in a file, or on stdin."""
    given = [str(album / "b.png"), str(album / "holidays" / "c.png")]
    wanted = [found.text for found in sixjars.load(run("image_captioning")).predict(given)]
    said = caption(*given)
    assert (said.code, said.err) == (0, "")
    lines = [f"{name}\t{text}" for name, text in zip(given, wanted, strict=True)]
    assert said.out.splitlines() == lines
    (tmp_path / "names.txt").write_text("\n".join(given))
    assert caption("--input", tmp_path / "names.txt").out == said.out
    assert caption(stdin="\n".join(given).encode()).out == said.out


def test_folders_and_globs_mean_the_images_in_them(caption: Any, album: Path) -> None:
    def named(*given: object) -> list[str]:
        lines = caption(*given).out.splitlines()
        return [Path(line.split("\t")[0]).relative_to(album).as_posix() for line in lines]

    assert named(album) == ["a.PNG", "b.png", "holidays/c.png"]
    assert named(album / "*.png") == ["a.PNG", "b.png"]
    assert named(album / "**" / "*.png") == ["a.PNG", "b.png", "holidays/c.png"]
    assert named(album / "holidays", album / "b.png") == ["holidays/c.png", "b.png"]
    for name in ("._b.png", ".hidden/b.png", "__MACOSX/b.png"):  # of a folder these are left out
        (album / name).parent.mkdir(exist_ok=True)
        shutil.copy(album / "b.png", album / name)
    assert named(album) == ["a.PNG", "b.png", "holidays/c.png"]
    odd = album / "one[1].png"
    shutil.copy(album / "b.png", odd)
    assert named(odd) == ["one[1].png"]  # a file with the name of a glob is a file


def test_a_damaged_image_of_a_folder_is_skipped(caption: Any, album: Path) -> None:
    for name in ("d.png", "e.png"):
        (album / name).write_bytes((album / "b.png").read_bytes()[:40])
    said = caption(album)
    assert said.code == 0
    expected = [True, True, False, False, True]
    assert [bool(line.partition("\t")[2]) for line in said.out.splitlines()] == expected
    assert len(said.err.splitlines()) == 1
    told = "note: 2 of 5 inputs were skipped, and their answers are empty: the image: "
    assert said.err.startswith(told)
    assert said.err.endswith(" (input 3 and input 4).\n")
    assert caption(album, "--strict").code == 1


def test_every_question_is_asked_about_every_image(call: Any, run: Run, album: Path) -> None:
    answerer, questions = run("image_question_answering"), ["what is it ?", "how many are there ?"]
    asked = [word for text in questions for word in ("--question", text)]
    given = [str(album / "b.png"), str(album / "a.PNG")]
    said = call("predict", answerer, *given, *asked)
    rows = [line.split("\t") for line in said.out.splitlines()]
    assert [row[:2] for row in rows] == [[name, text] for name in given for text in questions]
    wanted = sixjars.load(answerer).predict([{"image": row[0], "question": row[1]} for row in rows])
    answers = [[found.text, f"{found.probability:.3f}"] for found in wanted]
    assert [row[2:] for row in rows] == answers
    said = call("predict", answerer, given[0], *asked, "--json")
    told = [json.loads(line) for line in said.out.splitlines()]
    inputs = [{"image": given[0], "question": text} for text in questions]
    assert [line["input"] for line in told] == inputs
    assert all(line["layout"] == ["grid", 4, 4] and len(line["weights"][0]) == 16 for line in told)


def test_the_most_probable_labels(call: Any, run: Run, video: Path) -> None:
    predict = partial(call, "predict", run("video_classification"), video)
    rows = [line.split("\t") for line in predict("--nbest", 3).out.splitlines()]
    assert len({label for _, label, _ in rows}) == 3
    chances = [float(chance) for *_, chance in rows]
    assert chances == sorted(chances, reverse=True)
    label = "this run chooses a label; there is nothing to search."
    for options in (("--search", "beam"), ("--set", "width=3")):
        assert predict(*options).sentence == f"{label} With nbest it gives the most probable."


def test_what_is_wrong_is_one_sentence(call: Any, run: Run, album: Path, tmp_path: Path) -> None:
    captioner, answerer, plain = (
        run(task) for task in ("image_captioning", "image_question_answering", "video_captioning")
    )
    (tmp_path / "empty").mkdir()
    image, drawn = album / "b.png", tmp_path / "drawn"
    video = next(sample_folder("video_captioning").glob("*.mp4"))
    none = f"holds no image file (known endings: {ENDINGS})."
    for arguments, told in (
        ((answerer, image), "a question is needed; ask it with --question."),
        ((answerer, image, "--question", " "), "input 1: the question is empty."),
        (
            (captioner, image, "--question", "why ?"),
            "--question is for images that are asked about; image_captioning takes none.",
        ),
        ((captioner, "z.png"), "input 1: the image file z.png does not exist."),
        ((captioner, tmp_path / "empty"), f"{tmp_path / 'empty'} {none}"),
        ((captioner, album / "*.jpg"), f"{album / '*.jpg'} {none}"),
        (
            (plain, video, "--pictures", drawn),
            f"--pictures draws attention, but {plain} has none; its bridge is of another kind: "
            "train again with 'model.bridge={kind: attention}'.",
        ),
    ):
        assert call("predict", *arguments).sentence == told
    assert call("predict", captioner, album / "notes.txt").sentence == (
        f"input 1: the image: {album / 'notes.txt'} is not an image, or damaged from its first "
        "bytes; JPEG, "
        "PNG, WEBP, GIF, BMP, TIFF, PPM, AVIF, JPEG2000 can be read."
    )
    assert call("predict", run("video_classification"), image, "--nbest", 1).code != 0
    assert not drawn.exists()


def test_attention_is_drawn(call: Any, run: Run, album: Path, video: Path, tmp_path: Path) -> None:
    """A PNG file for each answer, of more than one shade."""
    for task, arguments, wanted in (
        ("image_captioning", (album,), ["1-a.png", "2-b.png", "3-c.png"]),
        ("image_captioning", (album / "b.png", "--nbest", 2), ["1-b-1.png", "1-b-2.png"]),
        ("image_question_answering", (album / "b.png", "--question", "what is it ?"), ["1-b.png"]),
        ("video_classification", (video,), [f"1-{video.stem.replace('_', '-')}.png"]),
    ):
        drawn = tmp_path / f"{task}-{len(wanted)}"
        assert call("predict", run(task), *arguments, "--pictures", drawn).code == 0
        assert sorted(path.name for path in drawn.iterdir()) == wanted
        for path in drawn.iterdir():
            with Image.open(path) as image:
                assert image.format == "PNG"
                assert len(set(image.convert("L").tobytes())) > 20


def test_labels_are_scored_one_by_one(call: Any, run: Run) -> None:
    said = call("evaluate", run("video_classification"))
    assert said.code == 0
    assert "predicted →" in said.out
    told = json.loads(call("evaluate", run("video_classification"), "--json").out)
    assert sum(row["count"] for row in told["classes"]) == told["examples"] == 8
    assert sum(sum(row) for row in told["confusion"]["counts"]) == 8


def test_another_file_is_scored_with_the_images_beside_it(call: Any, run: Run, album: Path) -> None:
    """Or with those of the synthetic corpus, which its rows may name too."""
    captioner = run("image_captioning")
    painted = next(sample_folder("image_captioning").glob("*.png")).name
    rows = [{"image": name, "caption": "a cat"} for name in ("b.png", "holidays/c.png", painted)]
    data = ("--data", lined(album / "mine.jsonl", rows))
    said = call("evaluate", captioner, *data, "--metrics", "exact_match", "--json")
    assert said.code == 0, said
    assert json.loads(said.out)["examples"] == 3
    lined(album / "mine.jsonl", [{"image": "z.png", "caption": "a cat"}])
    report = ("report", captioner, "--out", album / "page.html")
    for asked in (("evaluate", captioner), report, ("compare", captioner, captioner)):
        assert "line 1: the image: There is no file 'z.png' in " in call(*asked, *data).sentence


def test_own_images_are_learned_from(
    call: Any, album: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SIXJARS_CACHE", str(tmp_path / "cache"))
    rows = [
        {"image": name, "said": text}
        for name in ("b.png", "a.PNG", "holidays/c.png")
        for text in ("a cat", "so")
    ]
    lined(album / "rows.jsonl", rows)
    files: dict[str, Any] = {"folder": str(album), "train": "rows.jsonl", "valid": 0.34}
    values = recipe("image_captioning", **files, target={"column": "said"})
    (tmp_path / "mine.yaml").write_text(yaml.safe_dump(values))
    said = call("train", tmp_path / "mine.yaml", "--out", tmp_path / "mine")
    assert said.code == 0, said
    assert said.err.splitlines()[:4] == [
        "hashing media files: 2 done",
        "pixels of image files: 2 done",
        "hashing media files: 1 done",
        "pixels of image files: 1 done",
    ]
    again = call("train", tmp_path / "mine.yaml", "--out", tmp_path / "again")
    assert "pixels of image files" not in again.err
    found = sixjars.load(tmp_path / "mine").predict([str(album / "b.png")])
    assert set(found[0].text.split()) <= {"a", "cat", "so", "<unk>"}


def test_a_list_of_labels_that_is_damaged_or_gone(
    call: Any, run: Run, video: Path, tmp_path: Path
) -> None:
    broken = shutil.copytree(run("video_classification"), tmp_path / "broken")
    kept = broken / "fields" / "label.json"
    kept.write_text(kept.read_text().replace('"labels"', '"lables"'))
    told = f"{kept} is damaged: The saved labels are damaged or of another version: 'labels'."
    assert call("predict", broken, video).sentence == told
    kept.unlink()
    assert call("predict", broken, video).sentence == (
        f"{broken} has no vocabulary (fields/label.json); it was damaged, or killed at its start."
    )


def test_captions_are_compared_by_the_length_of_the_reference(
    call: Any, run: Run, tmp_path: Path
) -> None:
    name = run("image_captioning")
    said = call("compare", name, name, "--out", tmp_path / "compare", "--metric", "exact_match")
    assert "exact_match by the length of the reference (words):" in said.out
    assert "do not differ significantly (0.000; 95 % interval 0.000 to 0.000, p = 1)." in said.out


def test_videos_with_labels_have_no_length(call: Any, run: Run, tmp_path: Path) -> None:
    name = run("video_classification")
    assert "by the length" not in call("compare", name, name, "--out", tmp_path / "compare").out
    assert not (tmp_path / "compare" / "by_length.png").exists()
    said = call("compare", name, name, "--out", tmp_path / "p.png")
    assert said.sentence == (
        f"{tmp_path / 'p.png'} would be empty: nothing has a length here; write the table to a "
        "FILE.md instead."
    )
