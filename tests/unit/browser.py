"""A headless Chromium that a test drives over a pipe, by the Chrome DevTools protocol; no library is needed."""

import json
import os
import select
import shutil
import subprocess
from pathlib import Path
from time import monotonic
from typing import Any, Self, final

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
CHROMIUM = next((found for name in NAMES if (found := shutil.which(name))), None)
OPTIONS = (
    "--headless --no-sandbox --disable-gpu --disable-dev-shm-usage --no-first-run --disable-sync "
    "--disable-background-networking --disable-component-update --disable-extensions --mute-audio"
).split()
MIDDLE = """(selector => {
    const element = document.querySelector(selector);
    element.scrollIntoView({block: "center"});
    const box = element.getBoundingClientRect();
    return [box.x + box.width / 2, box.y + box.height / 2];
})"""
PATIENCE = 60.0
"""Seconds for one answer."""


@final
class Browser:
    """One page of a browser: what it shows can be asked, and a mouse and keys used on it."""

    def __init__(self, folder: Path) -> None:
        assert CHROMIUM is not None
        read, theirs = os.pipe()
        mine, write = os.pipe()
        # A browser reads orders from 3 and answers to 4.
        shell = f'exec "$0" "$@" 3<&{mine} 4>&{theirs}'
        command = ["bash", "-c", shell, CHROMIUM, *OPTIONS, "--remote-debugging-pipe"]
        command.append(f"--user-data-dir={folder}")
        self.process = subprocess.Popen(
            command, pass_fds=(mine, theirs), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        os.close(mine)
        os.close(theirs)
        self.read, self.write = read, write
        self.rest, self.number, self.session = b"", 0, ""
        self.target = ""
        self.events: list[dict[str, Any]] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self.write)  # it ends where its orders end
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        os.close(self.read)

    def open(self, place: Path | str) -> None:
        """Show a file, or what is at an address, in a fresh tab; from then on its requests and messages are noted."""
        before, self.session = self.target, ""
        self.target = self.order("Target.createTarget", url="about:blank")["targetId"]
        if before:
            self.order("Target.closeTarget", targetId=before)
        attached = self.order("Target.attachToTarget", targetId=self.target, flatten=True)
        self.session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.order(f"{domain}.enable")
        self.events.clear()
        url = place if isinstance(place, str) else place.resolve().as_uri()
        self.order("Page.navigate", url=url)
        while not any(event["method"] == "Page.loadEventFired" for event in self.events):
            self._take()
        frame = "requestAnimationFrame"
        self.ask(f"new Promise((done) => {frame}(() => {frame}(() => done(true))))")  # drawn

    def order(self, method: str, **parameters: Any) -> Any:
        """Have something done, and its result."""
        self.number += 1
        own = {"id": self.number, "method": method, "params": parameters}
        own |= {"sessionId": self.session} if self.session else {}
        os.write(self.write, json.dumps(own).encode() + b"\0")
        while True:
            found = self._take()
            if found.get("id") == self.number:
                assert "error" not in found, found
                return found["result"]

    def _take(self) -> dict[str, Any]:
        """The next message; events are kept."""
        until = monotonic() + PATIENCE
        while b"\0" not in self.rest:
            ready, _, _ = select.select([self.read], [], [], max(until - monotonic(), 0.0))
            some = os.read(self.read, 1 << 16) if ready else b""
            assert some, "the browser does not answer"
            self.rest += some
        whole, _, self.rest = self.rest.partition(b"\0")
        message: dict[str, Any] = json.loads(whole)
        if "method" in message:
            self.events.append(message)
        return message

    def ask(self, expression: str) -> Any:
        """The value of an expression of JavaScript."""
        how = {"returnByValue": True, "awaitPromise": True}
        found = self.order("Runtime.evaluate", expression=expression, **how)
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def point(self, selector: str, kind: str = "mouseMoved") -> None:
        """Move the mouse onto something; with another kind, press or release it."""
        x, y = self.ask(f"{MIDDLE}({json.dumps(selector)})")
        pressed = {} if kind == "mouseMoved" else {"button": "left", "clickCount": 1}
        self.order("Input.dispatchMouseEvent", type=kind, x=x, y=y, **pressed)

    def click(self, selector: str) -> None:
        """A click."""
        for kind in ("mouseMoved", "mousePressed", "mouseReleased"):
            self.point(selector, kind)

    def press(self, key: str) -> None:
        """A key."""
        for kind in ("keyDown", "keyUp"):
            self.order("Input.dispatchKeyEvent", type=kind, key=key, code=key)

    def complaints(self, *own: str) -> list[str]:
        """Errors and warnings of the page, and whatever it tried to load that does not begin as its own files do."""
        self.ask("new Promise(done => setTimeout(done, 50))")  # whatever is on its way arrives
        found = []
        for event in self.events:
            method, told = event["method"], event["params"]
            if method == "Runtime.exceptionThrown":
                found.append(str(told["exceptionDetails"]))
            elif method == "Runtime.consoleAPICalled" or method == "Log.entryAdded":
                found.append(json.dumps(told))
            elif method == "Network.requestWillBeSent":
                url = told["request"]["url"]
                found += [] if url.startswith((*(own or ("file:",)), "data:")) else [url]
        return found
