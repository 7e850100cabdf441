"""Small promises that a careful reader once found broken."""

from io import StringIO
from pathlib import Path

import numpy as np
import pytest
import torch
from rich.console import Console

from sixjars.cli.inputs import files_of
from sixjars.data.batches import Batches, EmptyColumn, IdColumn
from sixjars.data.media.videos import read_video, write_video
from sixjars.errors import DataError, RecipeError
from sixjars.progress import ConsoleProgress
from sixjars.runs.data import corpus_of
from sixjars.runs.recipes import recipe_of

PICTURES = {"image": {"size": 16}, "question": {}, "label": {"column": "answer"}, "sample": {"size": 9}}


@pytest.mark.parametrize(
    ("model", "sentence"),
    [
        ({"bridge": {"kind": "pooling"}}, "pooling never hears the question; use attention, with summary: question."),
        (
            {"encoder": {"summary": "question"}},
            "question needs a bridge of kind attention, but it is initial.",
        ),
    ],
)
def test_a_model_that_ignores_an_input_is_refused(model: dict[str, object], sentence: str) -> None:
    with pytest.raises(RecipeError) as error:
        recipe_of({"task": "image_question_answering", "data": PICTURES, "model": model}, "a test")
    assert sentence in str(error.value)


def test_unlisted_labels_are_not_trained_on() -> None:
    labels = IdColumn((np.array([1, 0, 1], dtype=np.int32), np.array([0, 1, 1, 2, 3])), narrowest=1)
    batches = Batches({"source": EmptyColumn(4)}, labels, batch_examples=2)
    planned = torch.cat([rows for group in batches.plan(epoch=0) for rows in group])
    assert sorted(planned.tolist()) == [0, 2, 3]
    assert sorted(torch.cat(batches.in_order(2)).tolist()) == [0, 1, 2, 3]


def test_parts_of_a_split_differ() -> None:
    split = {"train": "a", "valid": "a"}
    with pytest.raises(RecipeError, match=r"the parts must have different values, but have \['a', 'a'\]"):
        recipe_of({"task": "translation", "data": {"train": "x.jsonl", "source": {}, "split": split}}, "a test")


def test_labels_of_which_none_was_learned_are_told(tmp_path: Path) -> None:
    for name, label in (("train", "Yes"), ("train", "No"), ("valid", "yes")):
        film = tmp_path / f"{name}{label}.mp4"
        write_video(film, np.zeros((3, 16, 16, 3), dtype=np.uint8), rate=3.0)
        with (tmp_path / f"{name}.tsv").open("a") as rows:
            rows.write(f"{film.name}\t{label}\n")
    data: dict[str, object] = {"folder": str(tmp_path), "train": "train.tsv", "valid": "valid.tsv"}
    data |= {"video": {"column": 1, "size": 16, "frames": 2}, "label": {"column": 2}}
    recipe = recipe_of({"task": "video_classification", "data": data}, "a test")
    with pytest.raises(DataError, match=r"none of its labels \('yes', ...\) is among those that were learned"):
        corpus_of(recipe)


def test_titles_that_are_not_utf_8_are_no_fault(tmp_path: Path) -> None:
    import av

    path = tmp_path / "titled.avi"
    with av.open(str(path), "w") as container:
        container.metadata["title"] = "Stra__e"
        stream = container.add_stream("mpeg4", rate=5)
        stream.width = stream.height = 16
        frame = av.VideoFrame.from_ndarray(np.zeros((16, 16, 3), dtype=np.uint8), format="rgb24")
        container.mux(stream.encode(frame))
        container.mux(stream.encode())
    path.write_bytes(path.read_bytes().replace(b"Stra__e", b"Stra\xdf e"))
    with path.open("rb") as file:
        assert read_video(file, "titled.avi", size=8, fit="crop", max_pixels=10**6, frames=4, rate=None).shape[0] == 1


def test_hidden_files_of_a_folder_are_left_out(tmp_path: Path) -> None:
    for name in ("a.jpg", "._a.jpg", "__MACOSX/b.jpg"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    assert files_of(str(tmp_path), "image") == [str(tmp_path / "a.jpg")]


def test_a_bar_that_was_not_finished_goes_away_at_the_end() -> None:
    told = ConsoleProgress(Console(force_terminal=True, file=StringIO()))
    told.prepared("seeing", done=1, total=2)
    assert told.preparing is not None
    bar = told.preparing[0]
    told.end()
    assert bar.finished is False
    assert not bar.live.is_started
