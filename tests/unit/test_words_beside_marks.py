"""A known word beside punctuation is known: in torch, server, runtime and browser."""

from pathlib import Path
from typing import Any

import pytest
import yaml

import sixjars
import sixjars_runtime
from sixjars.serving.web import export_web
from tests.unit.browser import CHROMIUM, Browser
from tests.unit.serving import serving
from tests.unit.web_pages import READY, answers, hosted

TEXTS = {
    "<p>invoice</p>": ("<", "p", ">", "invoice", "<", "/", "p", ">"),
    "(invoice)": ("(", "invoice", ")"),
    '"invoice"': ('"', "invoice", '"'),
    "invoice": ("invoice",),
}
"""What is asked, and the tokens of the encoder; an unknown one would be `<unk:WORD>`."""
ROWS = ["pay the invoice now", "a ( b ) 'p' < c > d / e", 'he said "yes" and left']
"""In these the word is between spaces only, and most marks are elsewhere than in what is asked."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run whose answers do not matter."""
    folder = tmp_path_factory.mktemp("marks")
    rows = [f"{ROWS[n % 3]} {n % 5}\t{('bill', 'talk')[n % 2]}\n" for n in range(24)]
    (folder / "rows.tsv").write_text("text\tlabel\n" + "".join(rows), encoding="utf-8")
    size = {"size": 4, "embedding": {"size": 4}}
    recipe = {
        "task": "document_classification",
        "data": {"train": str(folder / "rows.tsv"), "valid": 0.2, "source": {"column": "text"}},
        "model": {
            "encoder": {"kind": "text", **size},
            "bridge": {"kind": "attention"},
            "decoder": {"size": 4},
        },
        "learning": {"steps": 1},
    }
    recipe["data"]["label"] = {"column": "label"}  # type: ignore[index]
    (folder / "recipe.yaml").write_text(yaml.safe_dump(recipe), encoding="utf-8")
    return sixjars.train(folder / "recipe.yaml", out=folder / "run", device="cpu").folder


def tokens_of(source: Any) -> tuple[str, ...]:
    assert not any("<unk" in token for token in source)
    return tuple(source)


def test_in_torch(folder: Path) -> None:
    predictor = sixjars.load(folder, device="cpu")
    found = predictor.predict(list(TEXTS))
    assert [tokens_of(one.source) for one in found] == list(TEXTS.values())
    assert [one.unknown_tokens for one in found] == [0, 0, 0, 0]
    known = [predictor.fields.inputs["source"].tokenizer.encode(text) for text in TEXTS]  # type: ignore[attr-defined]
    # one number wherever it stands
    assert set(known[0]) & set(known[1]) & set(known[2]) == set(known[3])


def test_in_the_runtime(folder: Path, tmp_path: Path) -> None:
    sixjars.export(folder, tmp_path / "exported")
    found = sixjars_runtime.load(tmp_path / "exported").predict(list(TEXTS))
    assert [tokens_of(one.source) for one in found] == list(TEXTS.values())


def test_in_the_server(folder: Path) -> None:
    with serving({"run": folder}) as server:
        _, _, found = server.ask("/v1/predict", {"inputs": list(TEXTS), "weights": True})
    outputs = [output for row in found["predictions"] for output in row["outputs"]]
    assert [tokens_of(output["source"]) for output in outputs] == list(TEXTS.values())


@pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium on this machine")
def test_in_the_browser(folder: Path, tmp_path: Path, chromium: Browser) -> None:
    export_web(folder, tmp_path / "page")
    with hosted(tmp_path / "page") as address:
        chromium.open(address)
        assert chromium.ask(READY)
        found = [
            one for [one] in answers(chromium, [{"source": text} for text in TEXTS], {"nbest": 1})
        ]
    assert [tokens_of(one["source"]) for one in found] == list(TEXTS.values())
    assert [one["unknownTokens"] for one in found] == [0, 0, 0, 0]
