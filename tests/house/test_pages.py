"""The pages for beginners: every command and snippet runs as it is printed, in order, in an empty folder.

A block `text` after commands is what they print; numbers may differ, `…` alone on a line stands for lines left out, and
long lines may be broken. A command that fails must be followed by its sentence. A block that is not run says why, in a
comment before it: `<!-- not run: reason -->`. Any other block is an excerpt of a file that is there by then.
The trainings of longer pages take minutes: `make test-all` runs them as printed. The fast suite makes two updates, and
from then on every command must run, but what a trained model prints is not compared.
"""

import re
import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest
from tests.house.test_doc_code import painted

from sixjars.cli import app
from sixjars.errors import SixJarsError

DOCS = Path(__file__).parents[2] / "docs"
FENCE = re.compile(
    r"^(?:<!-- not run: (?P<reason>[^\n]+) -->\n)?```(?P<language>\w+)(?: file=(?P<file>\S+))?\n(?P<body>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
OURS = 'python() {{ "{python}" "$@"; }}; sixjars() {{ python -m sixjars "$@"; }}'
"""So that a shell finds this Python and this package."""
SHORT = ("quickstart.md", "sharing.md", "scale.md", "faq.md")
SITUATIONS = ("labels", "pairs", "photographs", "conversations")
LONG = (*(f"situations/{name}.md" for name in SITUATIONS), "looking.md", "comparing.md", "web.md")


def like(text: str) -> str:
    """A text in which numbers and white space do not matter."""
    return re.sub(r"\d[\d.,]*", "#", " ".join(text.split()))


def missing_from(whole: str, shown: str) -> str:
    """The first passage of what is shown that the whole does not have, or not in this order."""
    rest = like(whole)
    for passage in re.split(r"^ *… *$", shown, flags=re.MULTILINE):
        if like(passage):
            _, found, rest = rest.partition(like(passage))
            if not found:
                return passage
    return ""


def few_of(words: list[str]) -> list[str]:
    """What makes a training short: few updates, and of synthetic data few rows."""
    if words[0] != "train":
        return []
    rows = (
        ["data.sample.size=400", "data.sample.valid=8", "data.sample.test=8"]
        if "/sample_" in words[1]
        else []
    )
    return ["learning.steps=2", "evaluation.search.max_length=5", *rows]


class Reader:
    """Somebody who does what a page says, in the folder they are in; in little, with two updates of each training."""

    def __init__(
        self,
        page: Path,
        capture: pytest.CaptureFixture[str],
        python: str,
        *,
        in_little: bool = False,
    ) -> None:
        self.page = page
        self.in_little, self.trained = in_little, False
        self.ours = OURS.format(python=python)
        self.capture = capture
        self.text = page.read_text(encoding="utf-8")
        self.printed = ""
        self.failed = ""
        self.namespace: dict[str, Any] = {"__name__": page.name}

    def follow(self) -> None:
        """Block after block."""
        for block in FENCE.finditer(self.text):
            if block["file"]:
                self.check_nothing_failed()
                Path(block["file"]).parent.mkdir(parents=True, exist_ok=True)
                Path(block["file"]).write_text(block["body"], encoding="utf-8")
            elif not block["reason"]:
                performed = {"sh": self.run, "text": self.compare, "python": self.execute}
                performed.get(block["language"], self.look_up)(block)
        self.check_nothing_failed()

    def check_nothing_failed(self) -> None:
        assert not self.failed, f"{self.page}: a command failed: {self.failed}"

    def run(self, block: re.Match[str]) -> None:
        """Commands of ours in this process, which is quick; others in a shell."""
        self.check_nothing_failed()
        self.printed = ""
        for line in block["body"].replace("\\\n", " ").splitlines():
            words = shlex.split(line, comments=True)
            self.check_nothing_failed()
            if words[:1] == ["sixjars"] and not set(words) & {"|", ">", "<"}:
                self.call(words[1:])
            elif words:
                done = subprocess.run(
                    ["bash", "-c", f"{self.ours}; set -e; {line}"],
                    capture_output=True,
                    text=True,
                    check=False,
                )
                self.printed += done.stdout + done.stderr
                assert done.returncode == 0, f"{line}: {done.stderr}"

    def call(self, words: list[str]) -> None:
        self.capture.readouterr()
        self.trained |= words[0] == "train"
        try:
            app([*words, *(few_of(words) if self.in_little else ())], standalone_mode=False)
        except SixJarsError as error:
            self.failed = f"sixjars: {error}"
        out, err = self.capture.readouterr()
        self.printed += f"{err}{out}{self.failed}\n"

    def compare(self, block: re.Match[str]) -> None:
        """Each passage is in what was printed, in this order."""
        missing = (
            "" if self.in_little and self.trained else missing_from(self.printed, block["body"])
        )
        assert not missing, (
            f"{self.page}: this is not printed:\n{missing}\nbut this is:\n{self.printed}"
        )
        self.failed = "" if like(self.failed) in like(block["body"]) else self.failed

    def look_up(self, block: re.Match[str]) -> None:
        """An excerpt is in one of the files that are there."""
        self.check_nothing_failed()
        if self.in_little and self.trained:
            return
        files = [
            path
            for path in Path().rglob("*")
            if path.suffix in {".yaml", ".csv", ".tsv", ".jsonl", ".md"}
        ]
        found = [
            path
            for path in files
            if not missing_from(path.read_text(encoding="utf-8"), block["body"])
        ]
        assert found, f"{self.page}: no file has this:\n{block['body']}"

    def execute(self, block: re.Match[str]) -> None:
        """All in one namespace; what it prints can be shown too."""
        self.check_nothing_failed()
        # so that a traceback names the page's own line
        before = self.text[: block.start("body")].count("\n")
        self.capture.readouterr()
        exec(compile("\n" * before + block["body"], str(self.page), "exec"), self.namespace)  # noqa: S102
        self.printed = self.capture.readouterr().out


@pytest.fixture(autouse=True)
def _empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SIXJARS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("COLUMNS", "200")


@pytest.mark.usefixtures("scored_baselines")
@pytest.mark.parametrize(
    "page", [*SHORT, *(pytest.param(page, marks=pytest.mark.slow) for page in LONG)]
)
def test_a_page_runs(page: str, capfd: pytest.CaptureFixture[str], warm_python: str) -> None:
    Reader(DOCS / page, capfd, warm_python).follow()


@pytest.mark.usefixtures("scored_baselines")
def test_the_page_on_baselines_runs(capfd: pytest.CaptureFixture[str], warm_python: str) -> None:
    Reader(DOCS / "bad_model.md", capfd, warm_python).follow()


@pytest.mark.usefixtures("unrendered")
@pytest.mark.parametrize("page", LONG)
def test_a_long_page_runs_in_little(
    page: str, capfd: pytest.CaptureFixture[str], warm_python: str
) -> None:
    reader = Reader(DOCS / page, capfd, warm_python, in_little=True)
    reader.follow()
    assert reader.trained


def test_labels_of_photographs_in_little() -> None:
    """The block of photographs.md that is not run as it is printed: with few images of noise, and few updates."""
    [block] = [
        found["body"]
        for found in FENCE.finditer(
            (DOCS / "situations/photographs.md").read_text(encoding="utf-8")
        )
        if found["reason"]
    ]
    for name in [
        *(f"animals/{label}/{at}.jpg" for label in ("cat", "dog") for at in range(4)),
        "new/one.jpg",
    ]:
        painted(Path(name))
    for line in block.splitlines():
        _, *words = shlex.split(line)
        few = (
            ["learning.steps=2", "learning.folds=2", "data.image.size=64"]
            if words[0] == "train"
            else []
        )
        app([*words, *few], standalone_mode=False)
