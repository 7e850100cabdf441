"""The code of the pages runs: Python in one namespace, recipes on the files beside them, commands in little."""

import re
import shlex
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
import pytest
import yaml
from PIL import Image

from sixjars.cli import app
from sixjars.data.annotations import ANNOTATIONS
from sixjars.evaluation.score import true_boxes, true_rationales
from sixjars.model.build import build
from sixjars.recipe.files import packaged
from sixjars.runs.data.splits import splits_of
from sixjars.runs.recipes import Blueprint, recipe_of
from sixjars.runs.training.network import add_vectors
from sixjars.samples import sample_named
from sixjars.samples.video_files import write_video
from sixjars.tasks import TASKS

DOCS = Path(__file__).parents[2] / "docs"
FENCE = re.compile(
    r"^```(?P<language>\w+)(?: file=(?P<file>\S+))?\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL
)
WITH_PYTHON = ("python.md", "data.md")
SAMPLE = {"sample": {"size": 20, "valid": 5, "test": 5}, "source": {}, "target": {}}
"""Data for a recipe that shows another section."""
FEW = [
    *("data.sample.size=24", "data.sample.valid=4", "data.sample.test=4"),
    *("learning.steps=2", "evaluation.search.max_length=8"),
]


def fences(page: str) -> list[re.Match[str]]:
    """The fenced blocks of a page, in order."""
    return list(FENCE.finditer((DOCS / page).read_text(encoding="utf-8")))


def written(page: str) -> None:
    """Write the files that a page shows into the folder we are in, and the images and videos that those name."""
    for block in fences(page):
        if block["file"]:
            Path(block["file"]).write_text(block["body"], encoding="utf-8")
            for name in re.findall(r"[\w/]+\.(?:jpg|png|mp4|npy)", block["body"]):
                painted(Path(name))


def painted(path: Path) -> None:
    """An image, a video or an array of noise, another one for each name."""
    path.parent.mkdir(parents=True, exist_ok=True)
    noise = np.random.default_rng(crc32(path.name.encode()))
    frames_FHWC = noise.integers(0, 256, (12, 48, 64, 3)).astype(np.uint8)
    if path.suffix == ".npy":
        np.save(path, noise.normal(size=(noise.integers(2, 5), 8)))
    elif path.suffix == ".mp4":
        write_video(path, frames_FHWC, rate=8)
    else:
        Image.fromarray(frames_FHWC[0]).save(path)


@pytest.mark.usefixtures("unrendered")
@pytest.mark.parametrize("page", WITH_PYTHON)
def test_python_blocks_run(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SIXJARS_CACHE", str(tmp_path / "cache"))  # a page may empty it
    written(page)
    text = (DOCS / page).read_text(encoding="utf-8")
    blocks = [block for block in fences(page) if block["language"] == "python"]
    assert len(blocks) > 2
    namespace: dict[str, Any] = {"__name__": page}
    for block in blocks:
        # so that a traceback names the page's own line
        before = text[: block.start("body")].count("\n")
        exec(compile("\n" * before + block["body"], str(DOCS / page), "exec"), namespace)  # noqa: S102
    # commands that use what was trained above; those of data.md are about files of the reader
    if page == "python.md":
        for call in calls(page):
            app(call, standalone_mode=False)


def test_only_pages_that_are_run_have_python() -> None:
    others = (
        {path.name for path in DOCS.glob("*.md")}
        - set(WITH_PYTHON)
        - {"api.md", "add_a_field.md", "add_an_encoder.md"}
        - {"quickstart.md", "sharing.md", "comparing.md", "faq.md", "bad_model.md"}  # in test_pages
        - {"export.md"}  # in test_export_page
        - {"serving.md"}  # in test_serving_docs
    )
    assert [
        name
        for name in sorted(others)
        if any(block["language"] == "python" for block in fences(name))
    ] == []


YAML = [
    (page, block)
    for page in ("data.md", "systems.md")
    for block in fences(page)
    if block["language"] == "yaml"
]


@pytest.mark.parametrize(
    ("page", "block"), YAML, ids=[f"{page}-{at}" for at, (page, _) in enumerate(YAML)]
)
def test_recipes_of_a_page_read_their_data(
    page: str, block: re.Match[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the files that the page shows: examples are found, the network can be built, nothing is left over."""
    monkeypatch.chdir(tmp_path)
    written(page)
    values = {"task": "translation", "data": SAMPLE, **yaml.safe_load(block["body"])}
    recipe = recipe_of(values, page)
    if str(recipe.data.train).startswith("hf:"):
        return  # nothing is downloaded in a test
    blueprint = Blueprint.of(recipe)
    splits = splits_of(blueprint)
    facts = splits.fields.facts()
    add_vectors(blueprint, splits.fields, facts)
    network = build(blueprint.plan, facts)
    assert len(splits.train) + len(splits.valid) > 1
    assert (splits.skipped > 0) == (recipe.data.on_bad_row == "skip")
    sample = recipe.data.sample
    if sample is not None:
        truths: set[str] = set(sample_named(recipe.task, sample.kind).truths)
    else:
        truths = {name for name in ANNOTATIONS if getattr(recipe.data, name) is not None}
    assert (splits.train.alignments is None) == (
        "alignment" not in truths or splits.train.diagonal is not None
    )
    assert (true_boxes(splits.train) is None) == ("boxes" not in truths)
    assert (true_rationales(splits.train) is None) == ("rationale" not in truths)
    source = recipe.data.fields.get("source")
    assert (facts.get("source", {}).get("vectors") is None) == (
        getattr(source, "vectors", None) is None
    )
    assert network.decoder.equations()
    if recipe.data.filter:
        everything = splits_of(
            Blueprint.of(recipe_of({**values, "data": {**values["data"], "filter": {}}}, page))
        )
        assert len(everything.train) > len(splits.train)


def test_every_file_that_a_page_shows_is_read() -> None:
    shown = {block["file"] for block in fences("data.md") if block["file"]}
    recipes = " ".join(block["body"] for page, block in YAML if page == "data.md")
    assert len(shown) > 7
    assert {name for name in shown if name not in recipes} == set()


def calls(page: str) -> list[list[str]]:
    """The calls of `sixjars` in the shell blocks of a page."""
    blocks = [block["body"] for block in fences(page) if block["language"] == "sh"]
    return [
        shlex.split(line)[1:]
        for block in blocks
        for line in block.splitlines()
        if line.startswith("sixjars ")
    ]


def test_every_system_is_trained_and_used() -> None:
    trained = {call[1].split("/")[0] for call in calls("systems.md") if call[0] == "train"}
    used = {call[1] for call in calls("systems.md") if call[0] == "predict"}
    assert trained == set(TASKS)
    assert used == {call[-1] for call in calls("systems.md") if call[0] == "train"}
    text = (DOCS / "systems.md").read_text(encoding="utf-8")
    assert [name for name in packaged() if not re.search(rf"{name}(?!\w)", text)] == []
