"""What a static page shows of models without attention, and how small it is beside its weights."""

from pathlib import Path
from typing import Any

import pytest

import sixjars
from sixjars.serving.web import export_web
from tests.unit.browser import CHROMIUM, Browser
from tests.unit.web_pages import inputs_of, named, settled, shown, trained, typed, visited

needs_browser = pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium on this machine")
ROWS = "[...document.querySelectorAll('.outputs li')].map(one => one.textContent)"

ORDER = "document.querySelector('.outputs + .note').textContent"


def listed(outputs: list[sixjars.Prediction]) -> list[tuple[str, float]]:
    """Texts with their probabilities."""
    return [(one.text, one.probability) for one in outputs]


def read(rows: list[str]) -> list[tuple[str, Any]]:
    """The same from the rows of a page."""
    parts = [row.rpartition(" P = ") for row in rows]
    return [(text, pytest.approx(float(share), rel=6e-3)) for text, _, share in parts]


@needs_browser
def test_the_best_labels_are_listed(chromium: Browser, tmp_path: Path) -> None:
    run = trained("document_classification/sample_flat_initial", (), tmp_path / "run")
    predictor = sixjars.load(run, device="cpu")
    [text, *_] = [one["source"] for one in inputs_of(predictor)]
    with visited(chromium, export_web(run, tmp_path / "page")) as address:
        typed(chromium, text)
        [best] = predictor.nbest([text], nbest=5)
        assert listed(best) == read(chromium.ask(ROWS))
        assert len(best) == 5
        assert chromium.ask(ORDER) == "Ordered by probability."
        assert shown(chromium, "#answer").startswith(f"{best[0].text} P = ")
        assert ("list", "Outputs, the best first") in named(chromium)
        typed(chromium, " ")
        assert (chromium.ask(ROWS), shown(chromium, "#answer")) == ([], "")
        assert chromium.complaints(address) == []


@needs_browser
def test_hypotheses_of_a_beam_are_listed(chromium: Browser, tmp_path: Path) -> None:
    short = ["evaluation.search.max_length=6"]
    run = trained("language_model/sample_rnn", short, tmp_path / "run")
    with visited(chromium, export_web(run, tmp_path / "page")) as address:
        settled(chromium)
        assert chromium.ask(ROWS) == []  # one that is drawn
        chromium.ask("page.inputs.querySelector('select').value = 'beam'")
        typed(chromium, "the")
        [best] = sixjars.load(run, device="cpu").nbest(["the"], search="beam", nbest=3)
        assert listed(best) == read(chromium.ask(ROWS))
        assert chromium.ask(ORDER) == "Ordered by score: log probability / tokens."
        assert chromium.complaints(address) == []


@pytest.mark.parametrize(
    "recipe", ["language_model/sample_rnn", "document_classification/sample_flat_attention"]
)
def test_the_smallest_pages_are_at_most_a_tenth_larger_than_their_weights(
    recipe: str, tmp_path: Path
) -> None:
    few = ["data.sample.size=600", "learning.steps=2"]
    run = sixjars.train(recipe, few, out=tmp_path / "run").folder
    page = export_web(run, tmp_path / "page")
    whole = sum(path.stat().st_size for path in page.iterdir())
    assert whole <= 1.1 * (run / "model.safetensors").stat().st_size
