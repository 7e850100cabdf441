"""Images and videos on a static page: read and answered as in Python. Skipped where there is no browser."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import sixjars
from sixjars.errors import RunError
from sixjars.samples import materialise
from sixjars.samples.video_files import write_video
from sixjars.serving.web import export_web
from sixjars.serving.web.parts import SCRIPT
from sixjars_runtime.images import Fit, read_image
from sixjars_runtime.videos import read_video
from tests.unit.browser import CHROMIUM, Browser
from tests.unit.web_pages import (
    READY,
    handed,
    header_of,
    inputs_of,
    settled,
    shown,
    trained,
    uri,
    visited,
)

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium on this machine")
PIL = pytest.importorskip("PIL.Image")

FILE = """(address => {
    const [, type, content] = address.match(/^data:([^;]*);base64,(.*)$/s);
    return new File([Uint8Array.from(atob(content), letter => letter.charCodeAt(0))], "file", {type});
})"""
ASK = f"""(async (cases) => {{
    const found = [];
    for (const [given, search] of cases) {{
        const files = given.map(one => one.startsWith("data:") ? {FILE}(one) : one);
        found.push(await model.predict(files, {{...model.search, ...search}}));
    }}
    return found;
}})"""
SMALL = "data.image.size=32 model.encoder.backbone.widths=[4,8] evaluation.search.max_length=6"
FRAMES = "data.video.size=16 data.video.frames=4 model.encoder.backbone.widths=[4,8]"
CLIPS = f"{FRAMES} evaluation.search.max_length=6"
TUNED = "data.image.size=64 model.encoder.backbone.frozen=false"
RUNS: dict[str, tuple[str, str, float]] = {
    "captions": ("image_captioning/sample_attention", SMALL, 1e-4),
    "labels": (
        "image_classification/sample_attention",
        "data.image.fit=pad data.image.size=34",
        1e-4,
    ),
    "questions": ("image_question_answering/sample_plain", "", 1e-4),
    "pretrained": ("image_captioning/sample_pretrained", "data.image.size=64", 1e-4),
    "fine-tuned": ("image_captioning/sample_pretrained", TUNED, 1e-4),
    "frames": ("video_captioning/sample_attention", CLIPS, 5e-2),
    "clips": ("video_captioning/sample_both", CLIPS, 5e-2),
}
"""A recipe, settings, and how far log P and weights may lie from Python's: of videos a browser has other colours."""


@pytest.fixture
def reader(chromium: Browser, tmp_path: Path) -> Browser:
    """A browser with the parts of the script that read files."""
    names = ("tensors", "pixels", "visual", "field/image", "field/video")
    script = "\n".join(SCRIPT.joinpath(f"{name}.js").read_text("utf-8") for name in names)
    html = f'<meta charset="utf-8"><script>{script}</script>'
    (tmp_path / "page.html").write_text(html, encoding="utf-8")
    chromium.open(tmp_path / "page.html")
    return chromium


def squares(browser: Browser, kind: str, path: Path, **settings: Any) -> NDArray[np.uint8]:
    """What a field of the page reads of a file, (F, 3, H, W)."""
    field = json.dumps({"name": kind, "settings": {"max_pixels": 50_000_000, **settings}})
    found = browser.ask(
        f"(async () => {{const read = await new FIELD.{kind}({field}).encode({FILE}('{uri(path)}'));"
        "return read.frames.map(square => Array.from(square));})()"
    )
    side = settings["pixels"]
    return np.array(found, dtype=np.uint8).reshape(-1, 3, side, side)


def pixels_of(path: Path, size: int, fit: Fit) -> NDArray[np.uint8]:
    """What Python reads of an image."""
    with path.open("rb") as file:
        return read_image(file, "image", size=size, fit=fit, max_pixels=10**7)


@pytest.mark.parametrize("fit", ["crop", "pad", "stretch"])
@pytest.mark.parametrize(
    ("width", "height"),
    [(64, 64), (37, 90), (301, 200), (200, 301), (40, 60), (5, 3), (1, 40), (32, 32)],
)
def test_images_become_the_same_pixels(
    reader: Browser, tmp_path: Path, width: int, height: int, fit: Fit
) -> None:
    noise = np.random.default_rng(width).integers(0, 256, (height, width, 3), dtype=np.uint8)
    PIL.fromarray(noise).save(tmp_path / "image.png")
    for size in (32, 7):
        wanted = pixels_of(tmp_path / "image.png", size, fit)
        found = squares(reader, "image", tmp_path / "image.png", pixels=size, fit=fit)
        assert np.array_equal(found[0], wanted)


@pytest.mark.parametrize("kind", ["alpha", "palette", "grey", "jpeg", "turned", "photo"])
def test_other_kinds_of_images_are_nearly_the_same(
    reader: Browser, tmp_path: Path, kind: str
) -> None:
    width, height = (1600, 1200) if kind == "photo" else (80, 60)
    across, down = np.meshgrid(np.arange(width), np.arange(height))
    waves = [128 + 100 * np.sin(across / 9), 128 + 100 * np.cos(down / 7)]
    smooth = np.stack([*waves, 2 * (across + down) % 256], axis=-1)
    image = PIL.fromarray(smooth.astype(np.uint8))
    path, how = tmp_path / ("image.jpg" if kind in ("jpeg", "turned", "photo") else "image.png"), {}
    if kind == "alpha":
        image.putalpha(PIL.fromarray((across * 3 % 256).astype(np.uint8)))
    elif kind == "palette":
        image = image.convert("P")
    elif kind == "grey":
        image = image.convert("L")
    elif kind == "turned":
        exif = image.getexif()
        exif[0x0112] = 6
        how = {"exif": exif}
    image.save(path, **how)
    [found] = squares(reader, "image", path, pixels=32, fit="crop").astype(int)
    apart = np.abs(found - pixels_of(path, 32, "crop"))
    # Python decodes a large JPEG at a fraction of its size.
    assert apart.max() <= (0 if kind in ("palette", "grey") else 12 if kind == "photo" else 2)
    assert apart.mean() < (1.5 if kind == "photo" else 0.2)


@pytest.mark.parametrize(
    ("frames", "rate"), [(6, None), (1, None), (40, None), (5, 4.0), (30, 10.0)]
)
def test_the_same_frames_of_videos_are_taken(
    reader: Browser, tmp_path: Path, frames: int, rate: float | None
) -> None:
    pytest.importorskip("av")
    # Each frame has a grey of its own, so that one tells which it is.
    shades = np.repeat(np.arange(20, 240, 11, dtype=np.uint8), 48 * 64 * 3).reshape(-1, 48, 64, 3)
    write_video(tmp_path / "video.mp4", shades, rate=8)
    how: dict[str, Any] = {"frames": frames, "rate": rate}
    with (tmp_path / "video.mp4").open("rb") as file:
        wanted = read_video(file, "video", size=16, fit="crop", max_pixels=10**6, **how)
    found = squares(reader, "video", tmp_path / "video.mp4", pixels=16, fit="crop", **how)
    assert found.shape == wanted.shape
    assert np.abs(found.astype(int) - wanted).max() <= 4


@pytest.mark.parametrize("kind", ["image", "video"])
def test_what_is_no_image_or_video_is_refused(reader: Browser, tmp_path: Path, kind: str) -> None:
    (tmp_path / "notes.txt").write_text("hello")
    what = {"image": "an image", "video": "a video"}[kind]
    formats = {"image": "PNG and JPEG", "video": "MP4 and WebM"}[kind]
    settings = "{frames: 2, rate: null, pixels: 8, max_pixels: 9}"
    read = f'new FIELD.{kind}({{name: "{kind}", settings: {settings}}}).encode({FILE}'

    def told(path: Path) -> Any:
        return reader.ask(f"{read}('{uri(path)}')).catch(error => error.message)")

    assert told(tmp_path / "notes.txt") == (
        f"the {kind} is not {what}, or of a kind that this browser cannot decode; {formats} can be read."
    )
    PIL.new("RGB", (4, 3)).save(tmp_path / "large.png")
    if kind == "image":
        large = "the image has 4 x 3 pixels, but this model reads at most 9."
        assert told(tmp_path / "large.png") == large


def asked(run: sixjars.Predictor, folder: Path) -> list[dict[str, str]]:
    """Some inputs of the test set, with files."""
    inputs = inputs_of(run)[:4]
    for name, field in run.inputs.items():
        if field.is_media:
            materialise(run.recipe.task, [one[name] for one in inputs], folder)
            inputs = [{**one, name: str(folder / one[name])} for one in inputs]
    return inputs


@pytest.mark.parametrize(
    "name", [pytest.param(one, marks=() if one == "captions" else pytest.mark.slow) for one in RUNS]
)
def test_answers_are_those_of_python(chromium: Browser, tmp_path: Path, name: str) -> None:
    recipe, settings, near = RUNS[name]
    predictor = sixjars.load(trained(recipe, settings.split(), tmp_path / "run"), device="cpu")
    inputs = asked(predictor, tmp_path / "files")
    searches: list[dict[str, Any]] = [{"nbest": 2}]
    if predictor.network.decoder.searches:
        searches = [{}, {"kind": "beam", "width": 3, "nbest": 2}]
    with visited(chromium, export_web(tmp_path / "run", tmp_path / "page")) as address:
        settled(chromium)
        assert " P = " in shown(chromium, "#answer")  # of the example
        tiles = "document.querySelectorAll('.view .tile, .view .strip img').length"
        assert chromium.ask(tiles) > 0 or name == "questions"
        for search in searches:
            how = {{"kind": "search"}.get(key, key): value for key, value in search.items()}
            wanted = predictor.nbest(inputs, **how)
            cases = [[[given(value) for value in one.values()], search] for one in inputs]
            for found, few in zip(chromium.ask(f"{ASK}({json.dumps(cases)})"), wanted, strict=True):
                same(found, few, near)
        assert chromium.complaints(address, "blob:") == []


def given(value: str) -> str:
    """A text, or the content of a file."""
    return uri(Path(value)) if Path(value).is_file() else value


def same(found: list[dict[str, Any]], wanted: list[sixjars.Prediction], near: float) -> None:
    assert [one["text"] for one in found] == [one.text for one in wanted]
    for one, other in zip(found, wanted, strict=True):
        assert (one["tokens"], one["source"]) == (list(other.tokens), list(other.source))
        assert one["logProbability"] == pytest.approx(other.log_probability, abs=near)
        assert one["weights"] == [pytest.approx(list(row), abs=near) for row in other.weights]


def test_a_file_is_chosen_and_its_attention_shown(chromium: Browser, tmp_path: Path) -> None:
    run = trained("image_captioning/sample_attention", SMALL.split(), tmp_path / "run")
    chosen, other = tmp_path / "chosen.png", tmp_path / "notes.txt"
    PIL.new("RGB", (90, 60), "red").save(chosen)
    other.write_text("hello")
    page = export_web(run, tmp_path / "page", str(chosen))
    assert header_of(page)["example"] == {"image": uri(chosen)}
    chromium.open(page / "index.html")  # as a file, where a person hands over the model
    handed(chromium, "#file input", page / "model.bin")
    chromium.ask(READY)
    settled(chromium)
    [best] = sixjars.load(run, device="cpu").nbest([str(chosen)])[0]
    assert shown(chromium, "#answer").startswith(f"{best.text} P = ")
    tiles = "[...document.querySelectorAll('.tile p span')].map(one => one.textContent)"
    assert chromium.ask(tiles) == list(best.tokens)
    ratio = "getComputedStyle(document.querySelector('.large')).aspectRatio"
    assert chromium.ask(ratio) == "1.5 / 1"
    chromium.point('.tile[data-t="1"]')
    most = int(np.argmax(best.weights[1]))
    told = f"{best.tokens[1]} attends to row {most // 8 + 1}, column {most % 8 + 1} ("
    assert shown(chromium, ".status").startswith(told)
    assert chromium.ask("document.querySelector('.large').classList.contains('chosen')")
    handed(chromium, ".drop input", other)
    settled(chromium)
    told = "There is no answer: the image is not an image, or of a kind"
    assert shown(chromium, "#status").startswith(told)
    assert shown(chromium, "#answer") == ""


def test_networks_of_other_libraries_are_refused(tmp_path: Path) -> None:
    change = ["model.encoder.backbone.layer=null"]
    recipe = sixjars.read_recipe("image_captioning/sample_pretrained", change)
    text = recipe.to_yaml().replace("name: efficientnet_lite0", "name: torchvision/resnet18")
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "recipe.yaml").write_text(text, encoding="utf-8")
    with pytest.raises(RunError) as refused:
        export_web(tmp_path / "run", tmp_path / "page")
    told = "model.encoder.backbone.name is torchvision/resnet18, which cannot run in a browser yet; what can is"
    assert str(refused.value) == f"{told} efficientnet_lite0, small."


def test_a_page_of_texts_reads_no_files(tmp_path: Path) -> None:
    run = trained("document_classification/sample_flat_initial", (), tmp_path / "run")
    script = (export_web(run, tmp_path / "page") / "script.js").read_text("utf-8")
    absent = ("function convolved", "function fileControl", "FIELD.image")
    assert not any(part in script for part in absent)
