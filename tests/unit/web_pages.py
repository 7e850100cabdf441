"""Shared by the tests of the page that runs in a browser: small runs, a static host, and what the script answers."""

import gzip
import json
from base64 import b64encode
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from mimetypes import guess_type
from pathlib import Path
from threading import Thread
from typing import Any

import sixjars
from sixjars.runs.data.splits import raw_examples
from sixjars.runs.recipes import Blueprint
from tests.unit.browser import Browser

FEW = (
    "data.sample.size=48 data.sample.valid=4 data.sample.test=10 learning.batch_examples=16 "
    "learning.steps=24 learning.rate=0.02 learning.schedule=constant learning.validate_every=24"
).split()
READY = (
    "new Promise(done => {const wait = () => model ? done(true) : setTimeout(wait, 10); wait();})"
)
ASK = """(async (cases) => {
    const found = [];
    for (const [texts, search] of cases) {
        try { found.push(await model.predict(texts, {...model.search, ...search})); }
        catch (error) { found.push(error.message); }
    }
    return found;
})"""


class Quiet(SimpleHTTPRequestHandler):
    """Tells nothing."""

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing."""


@contextmanager
def hosted(folder: Path) -> Iterator[str]:
    """The address of a static host of a folder."""
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder))) as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/"
        finally:
            server.shutdown()
            thread.join()


@contextmanager
def visited(browser: Browser, page: Path) -> Iterator[str]:
    """The address of a page that a browser has opened, with its model."""
    with hosted(page) as address:
        browser.open(address)
        browser.ask(READY)
        yield address


def named(browser: Browser) -> set[tuple[str, str]]:
    """What a screen reader is told of the page: roles and names."""
    nodes = browser.order("Accessibility.getFullAXTree")["nodes"]
    told = [one for one in nodes if not one["ignored"]]
    return {(one["role"]["value"], one.get("name", {}).get("value", "")) for one in told}


def handed(browser: Browser, selector: str, file: Path) -> None:
    """Choose a file."""
    whole = browser.order("DOM.getDocument")["root"]["nodeId"]
    node = browser.order("DOM.querySelector", nodeId=whole, selector=selector)["nodeId"]
    browser.order("DOM.setFileInputFiles", nodeId=node, files=[str(file)])
    browser.ask("new Promise(done => setTimeout(done, 50))")


def trained(recipe: str, settings: Sequence[str], folder: Path) -> Path:
    """A run after a few large steps: its answers are poor, but certain enough to be the same everywhere."""
    sixjars.train(recipe, [*FEW, *settings], out=folder, device="cpu")
    return folder


def inputs_of(predictor: sixjars.Predictor) -> list[dict[str, str]]:
    """Those of the test set; of a language model, how some sentences begin."""
    fields = Blueprint.of(predictor.recipe).fields
    table = raw_examples(predictor.recipe, fields)["test"].table.to_pydict()
    cut = 12 if not predictor.fields.inputs else None
    rows = zip(*(table[name] for name in predictor.inputs), strict=True)
    return [dict(zip(predictor.inputs, (text[:cut] for text in row), strict=True)) for row in rows]


def answers(
    browser: Browser, inputs: Sequence[dict[str, str]], search: dict[str, Any]
) -> list[Any]:
    """What the script that is open answers: lists of predictions, or the message of an error."""
    cases = [[list(one.values()), search] for one in inputs]
    found: list[Any] = browser.ask(f"{ASK}({json.dumps(cases)})")
    return found


def header_of(page: Path) -> Any:
    """What a page holds besides its weights."""
    content = gzip.decompress((page / "model.bin").read_bytes())
    return json.loads(content[4 : 4 + int.from_bytes(content[:4], "little")])


def uri(path: Path) -> str:
    """A file as a data URI."""
    return f"data:{guess_type(path.name)[0]};base64,{b64encode(path.read_bytes()).decode()}"


def shown(browser: Browser, selector: str) -> Any:
    """The text of an element."""
    return browser.ask(f"document.querySelector({json.dumps(selector)}).textContent")


def typed(browser: Browser, text: str, box: int = 0) -> None:
    """Type a text, and wait until it is answered, or refused."""
    area = f"document.querySelectorAll('textarea')[{box}]"
    browser.ask(f"{area}.value = {json.dumps(text)}; {area}.dispatchEvent(new Event('input'))")
    settled(browser)


def settled(browser: Browser) -> None:
    """Wait until all that was typed is answered."""
    wait = "while (answered < asked) await new Promise(done => setTimeout(done, 5));"
    browser.ask(f"(async () => {{{wait}}})()")
