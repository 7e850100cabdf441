"""The live page in a real browser: every kind of input is typed, dropped or drawn, and answered with attention."""

import json
from collections.abc import Iterator
from pathlib import Path
from time import monotonic, sleep
from typing import Any, final

import pytest

import sixjars
from sixjars.recipe.files import packaged
from sixjars.serving.pages import page, policy
from sixjars.tasks import TASKS
from tests.recipes.stand_ins import image, video
from tests.unit.browser import CHROMIUM, Browser
from tests.unit.serving import Server, serving

needs_browser = pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium on this machine")
FEW = ["data.sample.size=64", "data.sample.valid=8", "data.sample.test=8", "learning.steps=2"]
TYPE = """((selector, text) => {
    const found = document.querySelector(selector);
    found.value = text;
    found.dispatchEvent(new Event("input", {bubbles: true}));
})"""
GIVEN = {
    "source": "ghar",
    "target": "the",
    "sentence1": "some dogs are here",
    "sentence2": "no dog is here",
    "question": "what colour is it ?",
    "points": "0.1,0.9 0.5,0.2 0.7,0.7",
}
QUICK = ("transliteration", "conversation", "pointing", "image_captioning")
RECIPES = {
    task: next(name for name in packaged() if name.startswith(f"{task}/sample_")) for task in TASKS
}


@final
class Visitor:
    """Somebody with a browser on the page."""

    def __init__(self, browser: Browser, server: Server, folder: Path) -> None:
        self.browser, self.server, self.ask = browser, server, browser.ask
        self.files = {"image": folder / "cat.png", "video": folder / "clip.mp4"}
        self.files["image"].write_bytes(image("cat.png"))
        self.files["video"].write_bytes(video("clip.mp4"))
        browser.open(f"{server.address}/")
        self.until("page.models.length > 0 || !find('token').hidden")

    def until(self, true: str) -> None:
        until = monotonic() + 30
        while not self.ask(true) and monotonic() < until:
            sleep(0.02)
        assert self.ask(true), self.ask("find('error').textContent")

    def choose(self, name: str) -> None:
        self.ask(f"choose({json.dumps(name)}); document.body.dataset.state = ''")

    def type(self, name: str, text: str) -> None:
        self.ask(f"{TYPE}({json.dumps(f'[name={name}]')}, {json.dumps(text)})")

    def hand_over(self, file: Path) -> None:
        root = self.browser.order("DOM.getDocument")["root"]["nodeId"]
        chosen = self.browser.order("DOM.querySelector", nodeId=root, selector=".drop input")
        self.browser.order("DOM.setFileInputFiles", files=[str(file)], nodeId=chosen["nodeId"])

    def fill(self) -> dict[str, Any]:
        """Give the chosen model an input; returns what it was."""
        given: dict[str, Any] = {}
        for field in self.ask("page.model.inputs"):
            name, own = field["name"], field["settings"]
            if field["file"]:
                given[name] = self.files[field["kind"]]
                self.hand_over(given[name])
                continue
            given[name] = "0.4 0.1 0.9" if own.get("dimensions") == 1 else GIVEN[name]
            self.type(name, given[name])
            if own.get("segments") == "turns":
                self.ask("find('form').requestSubmit()")
                given[name] = f"> {given[name]}"
        return given

    def answer(self) -> str:
        """What is shown, when it is there."""
        self.until("document.body.dataset.state === 'done'")
        assert self.ask("find('error').textContent") == ""
        place = "document.querySelector('#answer .found, #answer .outputs li').firstChild"
        found: str = self.ask(f"{place}?.textContent ?? ''")
        assert self.ask("find('spoken').textContent").startswith(f"Answer: {found.strip()}")
        return found.strip()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("page")


@pytest.fixture(scope="module")
def visitor(chromium: Browser, folder: Path, run: Path) -> Iterator[Visitor]:
    """On the page of a run for each kind of input."""
    runs = {task: sixjars.train(RECIPES[task], FEW, out=folder / task).folder for task in QUICK[1:]}
    with serving({"transliteration": run, **runs}) as server:
        yield Visitor(chromium, server, folder)


def check_system(visitor: Visitor, task: str) -> None:
    """What is shown is what `predict` answers, and lights up where there is attention."""
    predictor = next(one.predictor for one in visitor.server.served if one.name == task)
    visitor.choose(task)
    given = visitor.fill()
    [wanted] = predictor.predict([given])
    assert visitor.answer() == wanted.text.strip()
    if predictor.has_attention and wanted.weights:
        visitor.ask("document.querySelector('#answer [data-t]:not(td)').focus()")
        assert visitor.ask("document.querySelector('#answer [role=tabpanel]').dataset.lit") == "t0"
    address = f"{visitor.server.address}/"
    assert visitor.browser.complaints(address, f"blob:{address}") == []


@needs_browser
@pytest.mark.parametrize("task", QUICK)
def test_an_input_is_answered_with_its_attention(visitor: Visitor, task: str) -> None:
    check_system(visitor, task)


@needs_browser
def test_several_outputs_of_a_beam(visitor: Visitor) -> None:
    visitor.choose("transliteration")
    visitor.ask("form = find('form').elements; form.kind.value = 'beam'; form.nbest.value = 3")
    visitor.fill()
    visitor.until("document.querySelectorAll('#answer [role=tab]').length === 3")
    visitor.browser.click("#answer [role=tab]:nth-child(2)")
    assert visitor.ask("document.querySelectorAll('#answer [role=tabpanel]')[1].hidden") is False


@needs_browser
def test_a_conversation_goes_on(visitor: Visitor) -> None:
    visitor.choose("conversation")
    turns = "[...document.querySelectorAll('.talk li')].map(one => one.textContent)"
    visitor.fill()
    visitor.answer()
    assert len(visitor.ask(turns)) == 2
    visitor.type("source", "and then")
    visitor.ask("document.querySelector('[name=source]').focus()")
    enter = {"key": "Enter", "code": "Enter", "text": "\r"}
    visitor.browser.order("Input.dispatchKeyEvent", type="keyDown", **enter)
    visitor.until(f"{turns}.length === 4")
    assert visitor.ask(turns)[2] == "and then"
    visitor.browser.click(".buttons button:nth-child(2)")
    assert len(visitor.ask(turns)) == 2
    visitor.until("find('status').textContent === 'There is no answer yet: say something.'")


@needs_browser
def test_points_are_clicked_dragged_and_moved_by_keys(visitor: Visitor) -> None:
    visitor.choose("pointing")
    text = "document.querySelector('[name=points]').value"
    assert len(visitor.ask(text).split()) == 8  # some to begin with
    visitor.browser.click(".buttons button:last-child")
    visitor.ask("scrollTo(0, 0)")
    plane = "document.querySelector('.plane').getBoundingClientRect()"
    box = visitor.ask(f"(b => [b.x, b.y, b.width])({plane})")

    def mouse(kind: str, x: float, y: float) -> None:
        x, y = (0.05 + 0.9 * share for share in (x, 1 - y))  # there is an edge around the plane
        how = {"x": box[0] + x * box[2], "y": box[1] + y * box[2], "button": "left"}
        visitor.browser.order("Input.dispatchMouseEvent", type=kind, clickCount=1, **how)

    for x, y in ((0.2, 0.8), (0.6, 0.9), (0.7, 0.6)):
        mouse("mousePressed", x, y)
        mouse("mouseReleased", x, y)
    assert len(visitor.ask(text).split()) == 3
    mouse("mousePressed", 0.2, 0.8)
    mouse("mouseMoved", 0.4, 0.7)
    mouse("mouseReleased", 0.4, 0.7)
    x, y = map(float, visitor.ask(text).split()[0].split(","))
    assert [x, y] == pytest.approx([0.4, 0.7], abs=0.02)
    visitor.browser.press("ArrowRight")
    assert float(visitor.ask(text).split(",")[0]) == pytest.approx(x + 0.02, abs=2e-3)
    visitor.answer()
    visitor.browser.press("Delete")
    assert len(visitor.ask(text).split()) == 2


@needs_browser
def test_what_is_wrong_is_told(visitor: Visitor) -> None:
    visitor.choose("image_captioning")
    visitor.files["image"].with_name("no.png").write_bytes(b"hello")
    visitor.hand_over(visitor.files["image"].with_name("no.png"))
    visitor.until("find('error').textContent.startsWith('the image: no.png is not an image')")
    assert visitor.ask("find('answer').textContent") == ""
    visitor.browser.events.clear()  # a broken preview may be told of too


@needs_browser
def test_a_box_that_is_cleared_has_no_answer(visitor: Visitor) -> None:
    """Not for a screen reader either; and what is cut or unknown is told with the answer."""
    visitor.choose("transliteration")
    visitor.type("source", "ЖЖ")
    visitor.answer()
    unknown = "100 % of the input tokens are unknown to the run"
    assert visitor.ask("find('status').textContent").startswith(unknown)
    visitor.type("source", "")
    visitor.until("find('status').textContent.startsWith('There is no answer yet')")
    assert visitor.ask("find('spoken').textContent + find('answer').textContent") == ""


@needs_browser
def test_a_narrow_and_a_wide_page(visitor: Visitor) -> None:
    """Nothing is wider than a phone; on a projector letters are larger."""
    sizes = {}
    visitor.choose("transliteration")
    visitor.fill()
    visitor.answer()
    for width in (280, 1920):
        screen = {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": False}
        visitor.browser.order("Emulation.setDeviceMetricsOverride", **screen)
        assert visitor.ask("document.documentElement.scrollWidth <= innerWidth")
        sizes[width] = visitor.ask("parseFloat(getComputedStyle(document.body).fontSize)")
    visitor.browser.order("Emulation.clearDeviceMetricsOverride")
    assert sizes[1920] > 1.2 * sizes[280]


@needs_browser
def test_everything_has_a_name_for_screen_readers(visitor: Visitor) -> None:
    for task in QUICK:
        visitor.choose(task)
        nodes = visitor.browser.order("Accessibility.getFullAXTree")["nodes"]
        roles = {"textbox", "button", "combobox", "spinbutton", "link"}
        asked = [node for node in nodes if node.get("role", {}).get("value") in roles]
        names = [node.get("name", {}).get("value", "").strip() for node in asked]
        assert all(names), asked


def test_the_page_is_whole_and_runs_no_other_script() -> None:
    whole = page()
    assert "/* style */" not in whole
    assert whole.count("<script>") == 1
    rest = whole.replace("http://www.w3.org", "")
    assert not [word for word in ("src=", "http://", "https://", "@import") if word in rest]
    assert "script-src 'sha256-" in policy()
    assert "unsafe-inline'; script" not in policy()


@needs_browser
def test_a_token_is_asked_for(chromium: Browser, run: Path, tmp_path: Path) -> None:
    with serving({"hi": run}, token="s3cret") as server:
        visitor = Visitor(chromium, server, tmp_path)
        assert visitor.ask("find('form').hidden") is True
        assert visitor.ask("find('refused').textContent") == ""
        put = "find('token').querySelector('input').value = '{}'; find('token').requestSubmit()"
        visitor.ask(put.format("other"))
        visitor.until("find('refused').textContent === 'This token is wrong.'")
        visitor.ask(put.format("s3cret"))
        visitor.until("!find('form').hidden")
        visitor.choose("hi")
        visitor.fill()
        assert visitor.answer()


@needs_browser
def test_an_address_that_cannot_be_decoded(chromium: Browser, run: Path, tmp_path: Path) -> None:
    """Names a model as it stands, or none. A server that has ended is told of in a sentence."""
    with serving({"hi": run, "100%": run}) as server:
        visitor = Visitor(chromium, server, tmp_path)
        for part, wanted in (("100%", "100%"), ("100%25", "100%"), ("%", "hi")):
            chromium.open("about:blank")
            chromium.open(f"{server.address}/#{part}")
            visitor.until("page.model !== null")
            assert visitor.ask("page.model.name") == wanted
    visitor.type("source", "ghar")
    told = "The server does not answer; it may have ended. Start it"
    visitor.until(f"find('error').textContent.startsWith('{told}')")
    chromium.events.clear()  # the browser tells of it too


@needs_browser
@pytest.mark.slow
def test_every_system_has_its_input(chromium: Browser, tmp_path: Path) -> None:
    """The last: it leaves the browser, which all share, on the page of a server that has ended."""
    trained = {
        task: sixjars.train(name, FEW, out=tmp_path / task) for task, name in RECIPES.items()
    }
    with serving({task: run.folder for task, run in trained.items()}) as server:
        visitor = Visitor(chromium, server, tmp_path)
        for task in trained:
            check_system(visitor, task)
