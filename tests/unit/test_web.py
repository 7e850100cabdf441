"""A run as a page: in a real browser its answers are those of Python. Skipped where there is no browser."""

import gzip
import runpy
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import sixjars
from sixjars.errors import RunError
from sixjars.serving.web import export_web
from sixjars.serving.web.packing import packed
from sixjars.tasks import TASKS
from tests.unit.browser import CHROMIUM, Browser
from tests.unit.web_pages import (
    READY,
    answers,
    handed,
    header_of,
    inputs_of,
    named,
    shown,
    trained,
    typed,
    visited,
)

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium on this machine")

BEAM = {"kind": "beam", "width": 4, "nbest": 3}
SAMPLE = {"kind": "sample", "nbest": 2, "temperature": 0.9, "seed": 7}
SMALL = ("model.encoder.size=12", "model.decoder.size=12", "evaluation.search.max_length=9")
QUICK = ("document_classification/sample_attention", "data.source.segments=sentences")
DOCUMENTS = "document_classification/sample"
BOTH = "data.source.tokens={0} data.target.tokens={0}"
SLOW: dict[str, tuple[str, ...]] = {
    "copying": ("summarization/sample_copy", *SMALL, "model.decoder.conditional=true"),
    "additive": ("translation/sample_attention", *SMALL),
    "bpe": ("translation/sample_attention", *BOTH.format("bpe").split(), "data.source.size=90"),
    "unigram": ("entailment/sample_initial", *BOTH.format("unigram").split()),
    "characters": ("transliteration/sample_every_step", *SMALL),
    "conversation": ("conversation/sample_attention", "data.source.max_length=25"),
    "dot": ("translation/sample_dot", "evaluation.search.max_length=20"),
    "general": ("translation/sample_general",),
    "stacked": ("translation/sample_stacked", "model.decoder.cell=rnn", "model.encoder.cell=lstm"),
    "conditional": (
        "translation/sample_conditional",
        "model.decoder.layers=2",
        "model.decoder.cell=lstm",
    ),
    "copied state": (
        "dialog/sample_initial",
        *SMALL,
        "model.bridge.start=copy",
        "model.encoder.direction=backward",
    ),
    "tied": ("translation/sample_tied",),
    "frozen": ("translation/sample_vectors_frozen",),
    "language model": ("language_model/sample_lstm", "evaluation.search.max_length=15"),
    "labels": (f"{DOCUMENTS}_flat_attention",),
    "last": (
        f"{DOCUMENTS}_initial",
        "model.bridge.start=linear",
        "model.encoder.direction=both",
    ),
    "pair": ("sentence_pair/sample_attention",),
    "pair by words": ("sentence_pair/sample_words",),
    "bag": (f"{DOCUMENTS}_bag",),
    "wide and deep": (
        f"{DOCUMENTS}_bag",
        "model.encoder={kind: wide_deep, deep: {size: 12, direction: both}, ngrams: {buckets: 512}}",
    ),
    "joined sentences": (
        f"{DOCUMENTS}_initial",
        "model.bridge={kind: pooling, join_summary: true, scale: 20.0}",
    ),
    "pair without attention": ("sentence_pair/sample_plain",),
    "sorting": ("pointing/sample_sorting",),
    "location": ("translation/sample_location", *SMALL, "model.decoder.conditional=true"),
    "location of points": ("pointing/sample_sorting", "model.bridge={kind: location, radius: 1}"),
}
"""A recipe, and settings."""
RUNS = [
    pytest.param(QUICK, id="documents"),
    *(pytest.param(run, id=name, marks=pytest.mark.slow) for name, run in SLOW.items()),
]


@pytest.fixture
def browser(chromium: Browser) -> Browser:
    return chromium


def same(found: list[dict[str, Any]], wanted: list[sixjars.Prediction]) -> None:
    """Equal texts and tokens; numbers to 1e-4."""
    assert [one["text"] for one in found] == [one.text for one in wanted]
    for one, other in zip(found, wanted, strict=True):
        assert (one["tokens"], one["finished"]) == (list(other.tokens), other.finished)
        assert (one["source"], one["segments"]) == (list(other.source), list(other.segments))
        assert [one["logProbability"], one["score"]] == pytest.approx(
            [other.log_probability, other.score], abs=1e-4
        )
        assert one["weights"] == [pytest.approx(list(row), abs=1e-4) for row in other.weights]
        assert one["copied"] == list(other.copied or [None] * len(other.tokens))
        assert (one["truncated"], one["unknownTokens"]) == (other.truncated, other.unknown_tokens)


def compared(browser: Browser, run: Path, page: Path, searches: list[dict[str, Any]]) -> None:
    """The answers of a page are those of Python, and it loads nothing but its own files."""
    predictor = sixjars.load(run, device="cpu")
    inputs = inputs_of(predictor)
    with visited(browser, export_web(run, page)) as address:
        for search in searches:
            how = {{"kind": "search"}.get(key, key): value for key, value in search.items()}
            alone = {**vars(predictor.recipe.evaluation.search), **search}["kind"] == "sample"
            # What is drawn depends on the place of an input among others, and a page has one input.
            portions = [[one] for one in inputs] if alone else [inputs]
            wanted = [found for portion in portions for found in predictor.nbest(portion, **how)]
            for found, one in zip(answers(browser, inputs, search), wanted, strict=True):
                same(found, one)
        assert browser.complaints(address) == []


@pytest.mark.parametrize("recipe", RUNS)
def test_answers_are_those_of_python(
    browser: Browser, recipe: tuple[str, ...], tmp_path: Path
) -> None:
    name, *settings = recipe
    run = trained(name, settings, tmp_path / "run")
    does_search = sixjars.load(run).network.decoder.searches
    searches = [{}, BEAM, SAMPLE] if does_search else [{}, {"nbest": 2}]
    compared(browser, run, tmp_path / "page", searches)


@pytest.mark.slow
def test_every_setting_of_search_is_that_of_python(browser: Browser, tmp_path: Path) -> None:
    run = trained("translation/sample_attention", ("model.encoder.size=16",), tmp_path / "run")
    searches: list[dict[str, Any]] = [
        {"kind": "beam", "coverage_penalty": 0.4, "length_penalty": 0.6, "nbest": 3},
        {"kind": "greedy", "coverage_penalty": 0.4, "no_repeat_ngram": 2, "min_length": 8},
        {"kind": "beam", "width": 3, "nbest": 3, "length_penalty": 0.0},
        {"kind": "beam", "no_repeat_ngram": 1, "min_length": 5, "max_length": 20},
        {"kind": "beam", "unknown": "allow", "max_length": 6, "nbest": 2},
        {"kind": "greedy", "unknown": "replace"},
        {"kind": "beam", "max_length": 3, "nbest": 5},
        {"kind": "sample", "top_k": 3, "temperature": 1.7, "seed": 12345678901, "nbest": 3},
        {"kind": "sample", "top_p": 0.7, "temperature": 1.5},
    ]
    compared(browser, run, tmp_path / "page", searches)


@pytest.mark.slow
def test_several_labels_are_those_of_python(browser: Browser, tmp_path: Path) -> None:
    rows = ["a b\tone, two", "a\tone", "b c\ttwo, Émile", "c\tÉmile", "a c\tone, Émile"] * 6
    content = "\n".join(["text\tlabel", *rows]) + "\n"
    (tmp_path / "rows.tsv").write_text(content, encoding="utf-8")
    recipe = {
        "task": "document_classification",
        "data": {
            **dict.fromkeys(("train", "valid", "test"), "rows.tsv"),
            "folder": str(tmp_path),
            "source": {"column": "text"},
            "label": {"column": "label", "multi_label": True},
        },
        "model": {
            "encoder": {"kind": "text", "size": 8},
            "bridge": {"kind": "pooling"},
            "decoder": {"size": 8},
        },
        "learning": {"steps": 60, "rate": 0.02, "batch_examples": 10},
    }
    sixjars.train(recipe, out=tmp_path / "run", device="cpu")
    compared(browser, tmp_path / "run", tmp_path / "page", [{}])


@pytest.fixture(scope="module")
def translation(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page that translates, with words that need care in HTML."""
    folder = tmp_path_factory.mktemp("translation")
    rows = [("<b> a & b", "<i>uno</i> & dos"), ("a b", "uno dos"), ("b a", "dos uno")] * 8
    lines = ["words & more\ttarget", *map("\t".join, rows)]
    (folder / "rows.tsv").write_text("\n".join(lines) + "\n")
    words, size = {"tokens": "words", "split": "spaces"}, {"size": 8}
    fields = {
        "source": {"column": "words & more", **words},
        "target": {"column": "target", **words},
    }
    recipe = {
        "task": "translation",
        "data": {"train": "rows.tsv", "valid": "rows.tsv", "folder": str(folder), **fields},
        "model": {"bridge": {"kind": "attention", "size": 8}, "encoder": size, "decoder": size},
        "learning": {"steps": 60, "batch_examples": 8, "rate": 0.02},
        "evaluation": {"search": {"max_length": 8}},
    }
    sixjars.train(recipe, out=folder / "run", device="cpu")
    return export_web(folder / "run", folder / "page")


def test_one_types_and_sees_the_answer_and_what_it_attends_to(
    browser: Browser, translation: Path
) -> None:
    with visited(browser, translation) as address:
        assert shown(browser, "#status") == "There is no answer yet: type a text."
        assert shown(browser, "h1") == "translation"
        assert shown(browser, ".about") == TASKS["translation"].title
        assert (shown(browser, "#inputs label"), shown(browser, "textarea")) == ("words & more", "")
        typed(browser, "<b> a & b")
        assert shown(browser, "#answer").startswith("<i>uno</i> & dos P = ")
        # text stays text
        assert browser.ask("document.querySelectorAll('main i, td b').length") == 0
        rows = "[...document.querySelectorAll('.weights tbody tr')].map(r => [...r.cells].map(c => c.textContent))"
        [first, *_] = browser.ask(rows)
        browser.point('[data-t="0"]:not(td)')
        shares = "[...document.querySelectorAll('.heat thead [data-s]')].map(e => +e.style.getPropertyValue('--w'))"
        weights = [float(cell) for cell in first[1:]]
        relative = [weight / max(weights) for weight in weights]
        assert browser.ask(shares) == pytest.approx(relative, abs=2e-3)
        assert shown(browser, ".status").startswith("<i>uno</i> attends to ")
        browser.point('[data-s="1"]')
        assert shown(browser, ".status").startswith("a is attended to by ")
        typed(browser, "a zebra")
        assert shown(browser, "#status") == "1 of 2 tokens are unknown to the model."
        typed(browser, " ")
        assert (shown(browser, "#answer"), shown(browser, "#views")) == ("", "")
        browser.ask("model.inputs[0].settings.on_long = 'error'")
        typed(browser, "a " * 300)
        told = "There is no answer: the source is longer than data.source.max_length."
        assert (shown(browser, "#status"), shown(browser, "#views")) == (told, "")
        assert browser.complaints(address) == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("recipe", "texts"),
    {
        "translation/sample_attention": ["", " \n", "\x85", "word " * 300, "<unk> <stop>"],
        "pointing/sample_sorting": "|1 x|1,2|1e99|0x1|1,,2|nan|1e-3 +2 .5 4.".split("|"),
        "conversation/sample_attention": ["\n", "> a\n< b\n> c", "> a\nb", "a\n" * 300, "b " * 300],
    }.items(),
)
def test_inputs_that_are_hard_to_read(
    browser: Browser, recipe: str, texts: list[str], tmp_path: Path
) -> None:
    """What Python answers, the page does; what it refuses, the page refuses; texts in the same words."""
    run = trained(recipe, ("evaluation.search.max_length=9",), tmp_path / "run")
    predictor = sixjars.load(run, device="cpu")
    [name] = predictor.inputs
    with visited(browser, export_web(run, tmp_path / "page")):
        found = answers(browser, [{name: text} for text in texts], {})
    for one, wanted in zip(found, predictor.nbest(texts), strict=True):
        if wanted[0].error is None:
            same(one, wanted)
        else:
            sentence = wanted[0].error.partition(": ")[2]
            assert (one if recipe.startswith("pointing") else sentence) == one, sentence


def test_who_types_on_gets_the_last_answer_alone(browser: Browser, translation: Path) -> None:
    with visited(browser, translation):
        put = "page.inputs.querySelector('textarea').value = text; answer();"
        browser.ask(f"for (const text of ['a', 'a b', 'b']) {{ {put} }}")
        typed(browser, "b a")
        browser.ask("new Promise(done => setTimeout(done, 50))")
        assert shown(browser, "#answer").startswith("dos uno P = ")
        assert browser.ask("[asked, answered]") == [5, 5]


def test_hypotheses_of_a_beam_are_switched(browser: Browser, translation: Path) -> None:
    with visited(browser, translation):
        browser.ask("page.inputs.querySelector('select').value = 'beam'")
        typed(browser, "a b")
        visible = "[...document.querySelectorAll('[role=tabpanel]')].map(e => e.checkVisibility())"
        assert browser.ask(visible) == [True, False, False]
        browser.click("#tab-2")
        assert browser.ask(visible) == [False, False, True]
        second = "document.querySelector('#tab-2').getAttribute('aria-selected')"
        assert browser.ask(second) == "true"


def sizes(page: Path) -> list[list[int]]:
    """Of the tensors of a page."""
    return list(header_of(page)["tensors"].values())


def test_a_page_that_is_opened_as_a_file_is_handed_its_model(
    browser: Browser, translation: Path, tmp_path: Path
) -> None:
    browser.open(translation / "index.html")
    assert shown(browser, "#status").startswith("This page was opened as a file")
    broken, other = tmp_path / "broken.bin", tmp_path / "model.bin"
    content = (translation / "model.bin").read_bytes()
    broken.write_bytes(content[:-100])
    numbers = [np.zeros(int(np.prod(size)), np.float32) for size in sizes(translation)]
    other.write_bytes(packed({**header_of(translation), "page": "0"}, numbers))
    unreadable = "This file is not a model that `sixjars export --web` wrote, or not all of it."
    foreign = (
        "This file is the model of another page; open the model.bin that was exported with this"
    )
    for file, told in (
        (translation / "index.html", unreadable),
        (broken, unreadable),
        (other, f"{foreign} one."),
    ):
        handed(browser, "#file input", file)
        assert shown(browser, "#status") == told
        assert not browser.ask("Boolean(model)")
    handed(browser, "#file input", translation / "model.bin")
    browser.ask(READY)
    typed(browser, "b a")
    assert shown(browser, "#answer").startswith("dos uno P = ")
    assert browser.complaints() == []


def test_a_telephone_need_not_scroll_sideways(browser: Browser, translation: Path) -> None:
    with visited(browser, translation):
        how = {"width": 380, "height": 700, "deviceScaleFactor": 2, "mobile": True}
        browser.order("Emulation.setDeviceMetricsOverride", **how)
        typed(browser, "a b " * 12)
        wide = browser.ask("document.documentElement.scrollWidth")
        browser.order("Emulation.clearDeviceMetricsOverride")
    assert wide <= 380


def test_what_a_person_hears_of_the_page_has_names(browser: Browser, translation: Path) -> None:
    with visited(browser, translation):
        typed(browser, "a b")
        told = named(browser)
    roles = {role for role, _ in told}
    assert {"textbox", "combobox", "heading", "status", "figure", "columnheader"} <= roles
    nameless = {role for role, name in told if not name}
    assert nameless.isdisjoint({"textbox", "combobox", "button", "tab", "heading"})


def test_weights_are_stored_smaller_and_come_back_to_the_last_bit(translation: Path) -> None:
    network = sixjars.load(translation.parent / "run", device="cpu").network.state_dict()
    content = gzip.decompress((translation / "model.bin").read_bytes())
    count = sum(tensor.numel() for tensor in network.values())
    planes = np.frombuffer(content[-4 * count :], np.uint8).reshape(4, count)
    turned = planes.T.copy().view(">u4").astype("<u4").ravel()
    stored = (turned >> np.uint32(1) | turned << np.uint32(31)).view("<f4")
    weights = torch.cat([tensor.flatten() for tensor in network.values()]).numpy()
    assert np.array_equal(stored, weights)
    assert [list(tensor.shape) for tensor in network.values()] == sizes(translation)
    random = np.random.default_rng(0).normal(size=100_000).astype(np.float32)
    assert len(packed({}, [random])) < 0.86 * random.nbytes


def test_a_browser_that_cannot_decompress_says_so(browser: Browser, translation: Path) -> None:
    browser.open(translation / "index.html")
    browser.ask("delete globalThis.DecompressionStream")
    handed(browser, "#file input", translation / "model.bin")
    told = "This browser is too old to open the model: it has no DecompressionStream."
    assert shown(browser, "#status") == told


def test_the_script_has_only_what_the_model_needs(translation: Path, tmp_path: Path) -> None:
    """What comes on top of the weights is a page and a script; a model without attention has no views."""
    script, page = ((translation / name).read_text("utf-8") for name in ("script.js", "index.html"))
    assert len(script) + len(page) < 52_000
    parts = ["CELL.gru", "CELL.lstm", "SEARCH.beam"]
    parts += [f"function {name}" for name in ("livenView", "documentView", "tour")]
    assert [part in script for part in parts] == [True, False, True, True, False, False]
    assert "http" not in page.replace("http-equiv", "")
    run = trained("document_classification/sample_flat_initial", (), tmp_path / "run")
    other = export_web(run, tmp_path / "page")
    whole = (other / "script.js").read_text("utf-8") + (other / "index.html").read_text("utf-8")
    assert len(whole) < 28_000
    absent = ("function livenView", "function figure", ".heat", "SEARCH.beam")
    assert not any(part in whole for part in absent)


def test_what_the_browser_cannot_run_is_refused(tmp_path: Path) -> None:
    recipe = sixjars.read_recipe(
        "transliteration/sample_attention", ["data.source.tokens={file: letters.json}"]
    )
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "recipe.yaml").write_text(recipe.to_yaml(), encoding="utf-8")
    with pytest.raises(RunError) as refused:
        export_web(tmp_path / "run", tmp_path / "page")
    assert str(refused.value) == (
        "data.source.tokens is a file of your own, which cannot run in a browser yet; what can is bpe, characters, "
        "unigram, words."
    )
    assert not (tmp_path / "page").exists()


def test_a_folder_with_something_else_is_left_alone(translation: Path, tmp_path: Path) -> None:
    run = translation.parent / "run"
    assert export_web(run, translation) == translation  # once more is the same
    (tmp_path / "notes.txt").touch()
    with pytest.raises(RunError) as refused:
        export_web(run, tmp_path)
    wanted = f"{tmp_path} is there already and holds something else; choose an empty folder for the page."
    assert str(refused.value) == wanted


def test_names_of_files_stay_at_home(translation: Path) -> None:
    content = gzip.decompress((translation / "model.bin").read_bytes())
    assert str(translation.parent).encode() not in content


@pytest.mark.slow
def test_a_page_is_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The benchmark of docs/web.md."""
    run = trained("transliteration/sample_attention", SMALL, tmp_path / "run")
    monkeypatch.setattr(sys, "argv", ["web.py", str(run), "--inputs", "5"])
    runpy.run_path(str(Path(__file__).parents[2] / "benchmarks" / "web.py"), run_name="__main__")
    printed = capsys.readouterr().out
    for word in ("times the weights", "ready after", "greedy: ", "beam: "):
        assert word in printed
