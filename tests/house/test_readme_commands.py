"""Every `sixjars` command of README.md, docs/index.md, docs/data.md and docs/systems.md runs.

In order and in little, on made-up files of a reader. `make demo` is `sixjars demo`; `make test` is what runs this.
"""

import gzip
import io
import json
import re
import shlex
import sys
from pathlib import Path
from zipfile import ZipFile

import pytest
import yaml
from tests.house.copies import ROOT, blocks
from tests.house.test_doc_code import FEW, painted, written
from tests.house.test_docs import commands
from tests.recipes.stand_ins import lined

import sixjars
from sixjars.cli import app
from sixjars.cli.train import DEMO

TYPED = "a sentence of mine\n"
"""What `echo` gives to a pipe, and what is said in a chat."""
IN_LITTLE = {
    "train": ["learning.steps=2", "evaluation.search.max_length=5"],
    "sample": ["--size", "2"],  # the last --size counts
}
"""What is added to a command, so that it is quick."""
MAKERS = ("new", "--out", "--output", "--pictures")
"""The words before the name of a file or folder that a command makes."""
IMAGES = {
    "beach.jpg": "two dogs run along a beach",
    "street.jpg": "a red bus",
    "hill.jpg": "a man climbs a hill",
}
PHOTOS = [{"image": name, "captions": [caption] * 5} for name, caption in IMAGES.items()]


def write_photos() -> None:
    """The folder `photos`: images, their captions, and the same once more as the files of Flickr8k."""
    for name in [*(f"photos/{name}" for name in IMAGES), "holiday.jpg", "kitchen.jpg"]:
        painted(Path(name))
    lines = [json.dumps(row) for row in PHOTOS]
    Path("photos/captions.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    with gzip.open("photos/captions.jsonl.gz", "wt", encoding="utf-8") as file:
        for row in PHOTOS:
            split = "dev" if row["image"] == "hill.jpg" else "train"
            file.write(json.dumps({**row, "split": split}) + "\n")
    for part in [*(f"train.{number:02}" for number in range(6)), "dev"]:
        with ZipFile(f"photos/images.{part}.zip", "w") as archive:
            for name in IMAGES:
                if (part, name) == ("dev", "hill.jpg") or (
                    part == "train.00" and name != "hill.jpg"
                ):
                    archive.write(f"photos/{name}", name)


def write_files(page: str) -> None:
    """The files that a page speaks of, into the folder we are in."""
    write_photos()
    for clip in ("clips/one.mp4", "clips/two.mp4"):
        painted(Path(clip))
    for at in range(6):
        painted(Path(f"videos/{('wave', 'nod')[at % 2]}/{at}.mp4"))
    header = [] if page == "README.md" else ["en\tde"]
    rows = [f"sentence {at} of mine\tSatz {at} von mir" for at in range(20)]
    for name in ("pairs.tsv", "test.tsv"):
        Path(name).write_text("\n".join([*header, *rows]) + "\n", encoding="utf-8")
    for at, language in enumerate(("en", "de")):
        Path(f"corpus.{language}").write_text(
            "".join(row.split("\t")[at] + "\n" for row in rows), encoding="utf-8"
        )
    if page == "docs/data.md":
        written("data.md")  # it shows a pairs.tsv of its own
        Path("news.csv").write_text("en,year\nI am here,2019\n", encoding="utf-8")
    Path("documents.txt").write_text("a bridge was built in oslo .\n", encoding="utf-8")


ELSEWHERE = {"serve", "export"}
"""Commands that do not end, or take long; those of docs/serving.md and docs/export.md are run by tests of their own."""


def train_little(recipe: str, out: str) -> str:
    """A run that a page presumes, or that is compared."""
    sixjars.train(recipe, FEW, out=out)
    return out


def in_little(call: list[str]) -> list[str]:
    """A call that does the same with less. `compare` takes no overrides, so it gets runs in place of recipes."""
    if call[0] == "compare":
        return [
            "compare",
            *(train_little(recipe, f"runs/{Path(recipe).name}") for recipe in call[1:]),
        ]
    return [
        *call,
        *(FEW if call[0] == "train" and "/sample_" in call[1] else IN_LITTLE.get(call[0], [])),
    ]


@pytest.mark.usefixtures("unrendered")
@pytest.mark.parametrize("page", ["README.md", "docs/data.md", "docs/systems.md"])
def test_commands_run(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SIXJARS_CACHE", str(tmp_path / "cache"))  # a page prunes it
    write_files(page)
    text = (ROOT / page).read_text(encoding="utf-8")
    if "runs/answers" in text:
        train_little("image_question_answering/sample_attention", "runs/answers")
        train_little("video_classification/sample_attention", "runs/actions")
    calls = [call for call in commands(text) if call[0] not in ELSEWHERE]
    assert len(calls) > 15
    for call in calls:
        if call[0] == "new":
            Path(call[1]).unlink(missing_ok=True)  # a page begins anew with the same name
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(TYPED.encode())))
        capsys.readouterr()
        app(in_little(call), standalone_mode=False)
        made = [Path(call[at + 1]) for at, word in enumerate(call) if word in MAKERS]
        assert all(path.exists() for path in made), f"{call} makes no {made}"
        said = capsys.readouterr()
        assert made or said.out or (call[0] == "features" and said.err), f"{call} says nothing"


def test_the_demo_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As docs/index.md and the README say, twice, with a recipe that is as the demo's but for its sizes."""
    monkeypatch.chdir(tmp_path)
    Path("small.yaml").write_text(
        sixjars.read_recipe(DEMO, [*FEW, "expect={}"]).to_yaml(), encoding="utf-8"
    )
    monkeypatch.setattr("sixjars.cli.train.DEMO", "small.yaml")
    [call] = commands((ROOT / "docs" / "index.md").read_text(encoding="utf-8"))
    assert call == ["demo"]
    for _ in range(2):  # an earlier demo is replaced
        app(call, standalone_mode=False)
        said = capsys.readouterr().out
        assert "Sentences of the test set, which it never saw:" in said
        assert Path("sixjars-demo/attention.png").is_file()
    tried = shlex.split(said.rpartition("try:     sixjars ")[2])
    app(tried, standalone_mode=False)
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert re.search(r"^demo: .*\n\t\$\(BIN\)/sixjars demo$", makefile, re.MULTILINE)
    assert re.search(r"^test: .*\n\t.* -m pytest ", makefile, re.MULTILINE)


def test_python_of_the_readme_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """With the recipe that `new` writes, and two updates."""
    monkeypatch.chdir(tmp_path)
    write_files("README.md")
    recipe = sixjars.new("mine.yaml", task="translation", data="pairs.tsv")
    values = yaml.safe_load(recipe.read_text(encoding="utf-8"))
    values["learning"]["steps"] = 2
    recipe.write_text(yaml.safe_dump(values), encoding="utf-8")
    python = blocks((ROOT / "README.md").read_text(encoding="utf-8"), "python")
    assert len(python) == 1
    exec(compile(python[0], "README.md", "exec"), {"__name__": "readme"})  # noqa: S102
    assert Path("runs/mine").is_dir()
    assert capsys.readouterr().out


def test_labels_of_videos_and_texts_are_new_and_train_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As README says of `video` and `label`: few videos of noise, and few headlines; folds are few too."""
    monkeypatch.chdir(tmp_path)
    tasks = {"videos": "video_classification", "news": "document_classification"}
    for split, count in {"train": 12, "test": 2}.items():
        videos = [
            {"video": f"{split}{at}.mp4", "label": ("push", "hug")[at % 2]} for at in range(count)
        ]
        news = [
            {"text": f"the match number {at} was won", "label": ("World", "Sports")[at % 2]}
            for at in range(count)
        ]
        for folder, rows in {"videos": videos, "news": news}.items():
            Path(folder).mkdir(exist_ok=True)
            lined(Path(folder, f"{split}.jsonl"), rows)
        for row in videos:
            painted(Path("videos", row["video"]))
    few = [*IN_LITTLE["train"], "learning.folds=2"]
    small = {"videos": ["data.video.size=64", "data.video.frames=2"], "news": []}
    for name, task in tasks.items():
        for call in (
            ["new", f"{name}.yaml", "--task", task, "--data", f"{name}/train.jsonl"],
            [
                "train",
                f"{name}.yaml",
                "--out",
                f"runs/{name}",
                "--device",
                "cpu",
                *few,
                *small[name],
            ],
            ["evaluate", f"runs/{name}", "--data", f"{name}/test.jsonl"],
        ):
            app(call, standalone_mode=False)
            said = capsys.readouterr()
            assert "accuracy@1" in said.out if call[0] != "new" else Path(call[1]).is_file()
