"""The JavaScript program of docs/export.md answers as `predict` does. Skipped without Node.js and onnxruntime-node.

`npm install --no-save --ignore-scripts onnxruntime-node` in this repository brings the package; so does a folder of
packages that NODE_PATH names.
"""

import json
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import sixjars
from tests.unit.web_pages import inputs_of, trained

ROOT = Path(__file__).parents[2]
NODE = shutil.which("node")
PACKAGE = "onnxruntime-node"
SMALL = ("model.encoder.size=12", "model.decoder.size=12", "evaluation.search.max_length=8")
GREEDY = {"whole": "greedy"}
CASES: dict[str, tuple[str, str, dict[str, Any]]] = {
    "characters": ("transliteration", "", {"whole": "beam", "width": 3}),
    "words": ("translation", "data.target.split=spaces data.source.max_length=6", GREEDY),
    "bpe": (
        "translation",
        "data.source.tokens=bpe data.source.size=90 data.target.tokens=unigram",
        GREEDY,
    ),
    "unigram": ("translation", "data.source.tokens=unigram data.source.lowercase=true", GREEDY),
}
"""How texts are split: the system, its settings, and those of the search."""
WILD = [
    "  I am\tgoing \x1c home ",
    "Hello, ▁ how_are you? (I don't know!)",
    "日本語 😀😀 e-mail: a@b.com",
    "ﬁne ½ café cafe\u0301 Σίσυφος ΟΔΥΣΣΕΥΣ İstanbul",
    "\u00a0she\u2003runs\u3000and\u2028runs, <stop> <unk> xyzzy",
]


def packages() -> Path | None:
    """The folder that the package is installed in, if it is."""
    if NODE is None:
        return None
    command = [NODE, "-e", f"console.log(require.resolve('{PACKAGE}'))"]
    found = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if found.returncode:
        return None
    parents = Path(found.stdout.strip()).parents
    return next(parent for parent in parents if parent.name == "node_modules")


PACKAGES = packages()
Answer = Callable[..., "subprocess.CompletedProcess[str]"]
pytestmark = pytest.mark.skipif(
    PACKAGES is None, reason=f"there is no Node.js with {PACKAGE} on this machine"
)


@pytest.fixture
def answer(tmp_path: Path) -> Answer:
    """The program of the page, in a folder that has the package."""
    page = (ROOT / "docs" / "export.md").read_text(encoding="utf-8")
    [program] = re.findall(r"^```js file=answer\.mjs\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    (tmp_path / "answer.mjs").write_text(program, encoding="utf-8")
    assert PACKAGES is not None
    (tmp_path / "node_modules").symlink_to(PACKAGES, target_is_directory=True)

    def run(folder: Path, *texts: str) -> "subprocess.CompletedProcess[str]":
        command = [str(NODE), "answer.mjs", str(folder), *texts]
        return subprocess.run(
            command, cwd=tmp_path, capture_output=True, text=True, encoding="utf-8", check=False
        )

    return run


@pytest.mark.parametrize("kind", CASES)
def test_the_program_of_the_page_answers_as_predict_does(
    kind: str, tmp_path: Path, answer: Answer
) -> None:
    task, settings, search = CASES[kind]
    run = trained(f"{task}/sample_attention", [*SMALL, *settings.split()], tmp_path / "run")
    sixjars.export(run, tmp_path / "whole", **search)
    predictor = sixjars.load(run, device="cpu")
    texts = [*(one["source"] for one in inputs_of(predictor)), *WILD]
    given = {"search" if key == "whole" else key: value for key, value in search.items()}
    wanted = predictor.predict(texts, **given)
    told = answer(tmp_path / "whole", *texts)
    assert told.returncode == 0, told.stderr
    found = [line.rpartition("\t") for line in told.stdout.split("\n")[:-1]]
    assert [text for text, _, _ in found] == [one.text for one in wanted]
    assert [float(number) for _, _, number in found] == pytest.approx(
        [one.log_probability for one in wanted], abs=1e-4
    )


def test_the_program_says_what_it_cannot_answer(tmp_path: Path, answer: Answer) -> None:
    copies = [*SMALL, "model.decoder.copying=true"]
    run = trained("translation/sample_attention", copies, tmp_path / "run")
    sixjars.export(run, tmp_path / "whole", whole="greedy")
    told = answer(tmp_path / "whole", "I am going home")
    sentence = "this program is for models that read one text, but this one reads source.values,"
    assert sentence in told.stderr
    about = {"format": 1, "kind": "file", "library": "tokenizer.json", "content": ""}
    (tmp_path / "whole/fields/source.json").write_text(json.dumps(about), encoding="utf-8")
    told = answer(tmp_path / "whole", "I am going home")
    assert "the tokenizer of source is a file; use the library that it is for" in told.stderr


def test_the_program_needs_texts(run: Path, tmp_path: Path, answer: Answer) -> None:
    sixjars.export(run, tmp_path / "whole", whole="greedy")
    for texts in ((), ("",), ("ghar", " \t")):
        told = answer(tmp_path / "whole", *texts)
        assert "give one text or more, none of them empty" in told.stderr
