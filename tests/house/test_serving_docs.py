"""docs/serving.md: its commands and its Python run as printed, against a server on a port that is free."""

import json
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from tests.house.test_pages import DOCS, FENCE, Reader
from tests.recipes.stand_ins import image
from tests.unit.serving import Server, serving
from tests.unit.test_visual_commands import recipe

import sixjars
from sixjars.cli import app
from sixjars.serving.server.settings import ServerSettings

PAGE = DOCS / "serving.md"
ADDRESS = "http://127.0.0.1:8000"
pytestmark = pytest.mark.skipif(
    shutil.which("curl") is None, reason="there is no curl on this machine"
)


class Visitor(Reader):
    """Somebody who leaves a server running while they go on."""

    server: Server | None = None

    def local(self, text: str) -> str:
        return text if self.server is None else text.replace(ADDRESS, self.server.address)

    def run(self, block: re.Match[str]) -> None:
        """Start a server, ask it, or do what else is printed."""
        for line in block["body"].splitlines():
            words = shlex.split(line)
            if words[:2] == ["sixjars", "serve"] and "--host" not in words:
                [folder] = words[2:]
                self.leaving = serving({Path(folder).name: Path(folder)})
                self.server = self.leaving.__enter__()
            elif words[0] == "curl":
                self.printed = asked(self.local(line))
            else:
                self.call(words[1:])

    def execute(self, block: re.Match[str]) -> None:
        """Python, which asks the server."""
        code = self.local(block["body"])
        exec(compile(code, str(self.page), "exec"), self.namespace)  # noqa: S102


def asked(line: str) -> str:
    """What a server answers to a command with curl."""
    done = subprocess.run(
        ["bash", "-c", line], capture_output=True, text=True, check=True, timeout=60
    )
    assert "detail" not in json.loads(done.stdout), done.stdout
    return done.stdout


@pytest.fixture
def reader(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    warm_python: str,
) -> Iterator[Visitor]:
    monkeypatch.chdir(tmp_path)
    made = Visitor(PAGE, capfd, warm_python, in_little=True)
    yield made
    if made.server is not None:
        made.leaving.__exit__(None, None, None)


def test_the_page_runs(reader: Visitor) -> None:
    reader.follow()
    assert reader.trained
    assert reader.server is not None


def test_uploads_of_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The blocks that are not run as printed: with runs that read images, one at a time, then both."""
    monkeypatch.chdir(tmp_path)
    blocks = [
        block["body"]
        for block in FENCE.finditer(PAGE.read_text(encoding="utf-8"))
        if block["reason"]
    ]
    alone, (serve, *lines) = (block.splitlines() for block in blocks)
    for name in ("cat.jpg", "dog.jpg"):
        Path(name).write_bytes(image("a.png"))
    runs = dict(word.split("=") for word in shlex.split(serve)[2:])
    for task, folder in zip(
        ("image_captioning", "image_question_answering"), runs.values(), strict=True
    ):
        Path("recipe.yaml").write_text(
            yaml.safe_dump(recipe(task, sample={"size": 30, "valid": 4, "test": 8}))
        )
        sixjars.train("recipe.yaml", out=folder)
    served = {name: Path(folder) for name, folder in runs.items()}
    for names, line in [
        *zip([[name] for name in runs], alone, strict=True),
        *((list(runs), line) for line in lines),
    ]:
        with serving({name: served[name] for name in names}) as server:
            found = json.loads(asked(line.replace(ADDRESS, server.address)))
        assert all(row["outputs"] for row in found["predictions"])
        assert len(names) == 1 or f'"model": "{found["model"]}"' in line


def test_options_of_the_page_are_those_of_the_command() -> None:
    listed = set(re.findall(r"`--([a-z-]+)`", PAGE.read_text(encoding="utf-8")))
    settings = {name.replace("_", "-") for name in ServerSettings.__dataclass_fields__}
    assert settings - listed - {"host", "port"} == set()
    assert any(
        command.callback is not None and command.callback.__name__ == "serve"
        for command in app.registered_commands
    )
