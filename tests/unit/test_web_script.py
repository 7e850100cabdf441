"""The script of a static page, for every recipe: it has all that it calls, and no function that nothing calls."""

import re
from collections import Counter
from pathlib import Path

import pytest

import sixjars
from sixjars.drawing.html.assets import MARK, kept
from sixjars.recipe.files import packaged
from sixjars.runs.recipes import read_recipe
from sixjars.serving.web.parts import features, parts_of, script, style

PACKAGE = Path(sixjars.__file__).parent
FOLDERS = ("serving/web/script", "serving/static", "drawing/html/static")
FILES = [path for folder in FOLDERS for path in PACKAGE.joinpath(folder).rglob("*.*s")]
DECLARED = re.compile(
    r"^(?:async )?(?:function|class|const|let) (\w+)|(?<=, )([A-Z][A-Z_]+) =", re.MULTILINE
)
METHOD = re.compile(r"^  (?:static )?(?:async )?(\w+)\(.*\) \{$", re.MULTILINE)
CALLED = re.compile(
    r"(?<![\w.`])(\w+)\(|(?<!\w)(?:new|extends) (\w+)|(?<![\w.\"])([A-Z][A-Z_]+)(?!\w)"
)
ASKED = re.compile(r"\.(\w+)\(")
OF_JAVASCRIPT = {"has", "keys", "of", "split"}
"""Methods that arrays, texts and maps have too."""
MORE = {
    "several labels": (
        "document_classification/sample_attention",
        ["data.label.multi_label=true", "evaluation.metrics=[labels_exact]"],
    ),
    "lower case": (
        "translation/sample_every_step",
        ["data.source.lowercase=true", "model.bridge.start=copy"],
    ),
    "sentences": (
        "document_classification/sample_flat_initial",
        ["data.source.segments=sentences"],
    ),
    "a conversation without hierarchy": ("dialog/sample_attention", ["data.source.segments=turns"]),
    "pooled sentences": (
        "document_classification/sample_initial",
        ["model.encoder.pool=attention"],
    ),
    "wide and deep": ("document_classification/sample_bag", ["model.encoder={kind: wide_deep}"]),
    "a bag without attention": (
        "document_classification/sample_bag",
        [
            "model.bridge={kind: initial, start: copy}",
            "model.decoder.size=16",
            "expect={}",
            "evaluation.metrics=[accuracy@1]",
        ],
    ),
    "words compared and pooled": ("sentence_pair/sample_words", ["model.bridge={kind: pooling}"]),
    "parts of words": (
        "entailment/sample_initial",
        ["data.source.tokens=bpe", "data.target.tokens=unigram"],
    ),
    "copying without hierarchy": ("translation/sample_attention", ["model.decoder.copying=true"]),
}
CASES = {**{name: (name, []) for name in packaged() if "/sample_" in name}, **MORE}


def page_of(recipe: str, settings: list[str]) -> tuple[str, str]:
    """The script of a page without comments, and its style."""
    read = read_recipe(recipe, settings)
    decoder, bridge = read.model.decoder["kind"], read.model.bridge["kind"]
    attends = bridge in ("attention", "location", "two_level", "pooling") or decoder == "pointer"
    has, parts = features(read, searches=decoder != "label", attends=attends), parts_of(read)
    return plain(script(parts, has).decode()), style(parts, has)


def plain(code: str) -> str:
    """Without comments, and without texts that hold no code."""
    return re.sub(r'"[^"\n]*"|(?m:(?:^|\s)//.*$)', "", code)


def found(pattern: re.Pattern[str], code: str) -> set[str]:
    """The names that a pattern finds."""
    return {name for match in pattern.finditer(code) for name in match.groups() if name}


EVERYTHING = plain("\n".join(path.read_text("utf-8") for path in FILES if path.suffix == ".js"))
ALL_DECLARED, ALL_METHODS = found(DECLARED, EVERYTHING), found(METHOD, EVERYTHING) - OF_JAVASCRIPT


@pytest.mark.parametrize("name", CASES)
def test_a_script_has_all_that_it_needs_and_no_more(name: str) -> None:
    code, looks = page_of(*CASES[name])
    own, methods = found(DECLARED, code), found(METHOD, code)
    assert found(CALLED, code) & ALL_DECLARED <= own | methods
    assert found(ASKED, code) & ALL_METHODS <= methods
    functions = {each for each in own if not each.isupper()}
    words = Counter(re.findall(r"\w+", code))
    assert {each for each in functions | methods if words[each] < 2} == set()
    assert not any(MARK.fullmatch(line) for line in (code + looks).splitlines(keepends=True))


def test_sections_end_and_name_features_that_there_are() -> None:
    views = PACKAGE.joinpath("serving/web/script/view").iterdir()
    known = {"inspect", *(f"view/{each.stem}" for each in views)}
    for recipe, settings in CASES.values():
        known |= features(read_recipe(recipe, settings), searches=True, attends=True, marked=True)
    for path in FILES:
        lines = path.read_text("utf-8").splitlines(keepends=True)
        marks = [mark for mark in map(MARK.fullmatch, lines) if mark is not None]
        assert {one for mark in marks for one in mark[2].split(", ")} <= known, path
        assert len(kept("".join(lines)).splitlines()) == len(lines) - len(marks)
        assert sum(mark[1] == "only" for mark in marks) * 2 == len(marks)


def test_a_section_that_ends_as_another_is_refused() -> None:
    with pytest.raises(ValueError, match="a section ends as copying, but began as tied"):
        kept("// only: tied\n// end: copying\n")


@pytest.mark.parametrize(
    "recipe", ["translation/sample_attention", "document_classification/sample_flat_attention"]
)
def test_a_script_for_words_of_an_older_version_has_all_that_it_needs(recipe: str) -> None:
    """The recipe does not tell; the page of a new run has nothing for them."""
    read = read_recipe(recipe)
    searches = read.model.decoder["kind"] != "label"
    has = [
        features(read, searches=searches, attends=True, marked=marked) for marked in (True, False)
    ]
    old, new = (plain(script(parts_of(read), own).decode()) for own in has)
    own, methods = found(DECLARED, old), found(METHOD, old)
    assert found(CALLED, old) & ALL_DECLARED <= own | methods
    assert found(ASKED, old) & ALL_METHODS <= methods
    assert [name in old for name in ("MARK", "learned.format")] == [True, True]
    assert [name in new for name in ("MARK", "learned.format")] == [False, False]
