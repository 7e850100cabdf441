"""What a static page opens with: an example where one may be published, points to drag, or what is to be typed."""

from functools import partial
from pathlib import Path
from typing import Any

import PIL.Image
import pytest

import sixjars
from sixjars.cli import app
from sixjars.errors import DataError
from sixjars.serving.web import export_web
from tests.unit.browser import CHROMIUM, MIDDLE, Browser
from tests.unit.test_web import BEAM, SAMPLE, SMALL, compared
from tests.unit.web_pages import header_of, settled, shown, trained, typed, visited

needs_browser = pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium on this machine")
POINTS = "document.querySelector('textarea').value.split(' ')"


@pytest.fixture(scope="module")
def hull(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run on synthetic points."""
    folder = tmp_path_factory.mktemp("hull") / "run"
    return trained("pointing/sample_hull", (*SMALL, "model.decoder.cell=lstm"), folder)


def example(page: Path) -> Any:
    """What a page opens with."""
    return header_of(page)["example"]


def test_synthetic_data_has_an_example_that_was_not_trained_on(hull: Path, tmp_path: Path) -> None:
    found = example(export_web(hull, tmp_path / "page"))
    drawn = sixjars.read_recipe("pointing/sample_hull").data.sample
    assert drawn is not None
    rows = sixjars.samples.generate("pointing", size=48, valid=0, test=1, kind="hull")
    assert found == {"points": rows["test"][0]["points"]}
    assert found["points"] not in [row["points"] for row in rows["train"]]


def test_an_example_may_be_given(
    hull: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    call = ["export", str(hull), str(tmp_path / "page"), "--example", "0.1,0.2 0.3,0.4"]
    app([*call, "--web"], standalone_mode=False)
    assert example(tmp_path / "page") == {"points": "0.1,0.2 0.3,0.4"}
    page = tmp_path / "page"
    how = f"serve it: python -m http.server -d {page}; or open index.html, which asks for the model"
    assert capfd.readouterr().err == f"wrote {page}; {how}\n"
    with pytest.raises(DataError) as refused:
        app(call, standalone_mode=False)
    assert str(refused.value) == "--example is what a page opens with; say --web too."


def test_an_example_that_cannot_be_used_is_refused(hull: Path, tmp_path: Path) -> None:
    with pytest.raises(DataError) as refused:
        export_web(hull, tmp_path / "page", "hello")
    wanted = "the example cannot be used: the points: 'hello' of point 'hello' is not a number; write points like"
    assert str(refused.value) == f"{wanted} 0.12,0.7 0.3,0.25."
    assert not (tmp_path / "page").exists()


def test_an_example_that_is_a_broken_image_is_refused(tmp_path: Path) -> None:
    sizes = ["model.decoder.size=12", "data.image.size=16"]
    sizes.append("model.encoder.backbone={name: small, widths: [4, 6]}")
    run = trained("image_captioning/sample_attention", sizes, tmp_path / "run")
    broken = tmp_path / "broken.jpg"
    PIL.Image.effect_noise((64, 64), 50).save(broken)
    broken.write_bytes(broken.read_bytes()[:-500])
    with pytest.raises(DataError) as refused:
        export_web(run, tmp_path / "page", str(broken))
    wanted = f"the example cannot be used: the image: {broken} is broken or cut off: image file is truncated"
    assert str(refused.value).startswith(wanted)
    assert "on_bad_row" not in str(refused.value)
    assert not (tmp_path / "page").exists()


@pytest.mark.slow
@needs_browser
def test_two_inputs_have_a_tab_between_them(chromium: Browser, tmp_path: Path) -> None:
    run = trained("sentence_pair/sample_attention", (), tmp_path / "run")
    with pytest.raises(DataError) as refused:
        export_web(run, tmp_path / "page", "two toys")
    wanted = "the example cannot be used: must name sentence1 and sentence2, but has sentence1."
    assert str(refused.value) == wanted
    page = export_web(run, tmp_path / "page", "two toys\tno toys")
    assert example(page)["sentence2"] == "no toys"
    with visited(chromium, tmp_path / "page"):
        settled(chromium)
        typed_in = chromium.ask("[...document.querySelectorAll('textarea')].map(e => e.value)")
        assert typed_in == ["two toys", "no toys"]
        assert " P = " in shown(chromium, "#answer")


@needs_browser
def test_answers_are_those_of_python(chromium: Browser, hull: Path, tmp_path: Path) -> None:
    compared(chromium, hull, tmp_path / "page", [{}, BEAM, SAMPLE])


@needs_browser
def test_points_are_there_at_once_and_are_clicked_and_dragged(
    chromium: Browser, hull: Path, tmp_path: Path
) -> None:
    with visited(chromium, export_web(hull, tmp_path / "page")) as address:
        settled(chromium)
        given = example(tmp_path / "page")["points"].split()
        assert chromium.ask(POINTS) == given
        assert chromium.ask("document.querySelectorAll('.plane circle').length") == len(given)
        assert " P = " in shown(chromium, "#answer")
        mouse = partial(chromium.order, "Input.dispatchMouseEvent", button="left", clickCount=1)
        x, y = chromium.ask(f"{MIDDLE}('.plane [data-at=\"1\"]')")
        mouse(type="mousePressed", x=x, y=y)
        for step in (10, 20, 30):
            mouse(type="mouseMoved", x=x - step, y=y)
        mouse(type="mouseReleased", x=x - 30, y=y)
        settled(chromium)
        first, moved, *others = chromium.ask(POINTS)
        assert float(first.split(",")[0]) == pytest.approx(float(given[0].split(",")[0]), abs=1e-3)
        assert len(others) == len(given) - 2
        assert float(moved.split(",")[0]) < float(given[1].split(",")[0]) - 0.03
        assert float(moved.split(",")[1]) == pytest.approx(float(given[1].split(",")[1]), abs=5e-3)
        order = [int(place) for place in shown(chromium, "#answer").partition(" P")[0].split()]
        corners = "document.querySelector('.plane polygon').getAttribute('points').split(' ').filter(Boolean).length"
        assert chromium.ask(corners) == len(order)  # the answer is drawn where one drags
        best = "document.querySelectorAll('#views [role=tabpanel]:not([hidden]) .left-out').length"
        assert chromium.ask(best) == len(given) - len(set(order))
        chromium.click(".buttons button:last-child")
        settled(chromium)
        told = "There is no answer yet: click into the plane to set points."
        assert shown(chromium, "#status") == told
        typed(chromium, "0.5,")
        told = "There is no answer: the points: '' of point '0.5,' is not a number"
        assert shown(chromium, "#status").startswith(told)
        typed(chromium, "2,2 4,3 3,9")  # outside of the unit square
        assert chromium.ask("document.querySelectorAll('.plane circle').length") == 3
        assert chromium.complaints(address) == []


@pytest.mark.slow
@needs_browser
def test_a_conversation_goes_on(chromium: Browser, tmp_path: Path) -> None:
    short = ["evaluation.search.max_length=9"]
    run = trained("conversation/sample_attention", short, tmp_path / "run")
    turns = "[...document.querySelectorAll('.talk li')].map(one => one.textContent)"
    with visited(chromium, export_web(run, tmp_path / "page", "hello\nhi\nwho are you")):
        settled(chromium)
        *begun, _ = chromium.ask(turns)
        assert begun == ["hello", "hi", "who are you"]
        chromium.ask("document.querySelector('textarea').value = 'and then'")
        chromium.click(".buttons button:first-child")
        settled(chromium)
        assert len(chromium.ask(turns)) == 6
        chromium.click(".buttons button:nth-child(2)")
        assert len(chromium.ask(turns)) == 4
        chromium.click(".buttons button:last-child")
        settled(chromium)
        assert (shown(chromium, ".talk"), shown(chromium, "#answer")) == ("", "")
        assert shown(chromium, "#status") == "There is no answer yet: say something."


@pytest.mark.slow
@needs_browser
def test_of_other_data_points_are_random_and_no_row_is_shown(
    chromium: Browser, tmp_path: Path
) -> None:
    rows = sixjars.samples.generate("pointing", size=30, valid=0, test=0, kind="hull")["train"]
    lines = [f"{row['points']}\t{row['order']}" for row in rows]
    (tmp_path / "rows.tsv").write_text("\n".join(["places\torder", *lines]) + "\n")
    data = {"train": "rows.tsv", "valid": 0.2, "folder": str(tmp_path)}
    recipe = {
        "task": "pointing",
        "data": {**data, "points": {"column": "places"}},
        "model": {"encoder": {"size": 8}, "decoder": {"size": 8, "visits": "some"}},
        "learning": {"steps": 5},
    }
    sixjars.train(recipe, out=tmp_path / "run", device="cpu")
    assert example(export_web(tmp_path / "run", tmp_path / "page")) == {}
    with visited(chromium, tmp_path / "page"):
        settled(chromium)
        found = chromium.ask(POINTS)
        assert shown(chromium, "#inputs label").startswith("places: x,y")
    assert len(found) == 8
    assert " ".join(found) not in [row["points"] for row in rows]
