"""Each measured figure of README and docs is in a kept table (benchmarks/results): a change in one place fails.

Tables between `<!-- table: TOPIC/TABLE -->` and `<!-- end -->` are written by `make docs`, and test_generated compares
them. A sentence with a figure has a comment before its paragraph, `<!-- figures: TOPIC/TABLE/ROW; … -->`, that names
the rows (or whole tables) which have its figures. What looks like a figure and is none is in ALLOWED, with the reason.
"""

import importlib.util
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from sixjars.recipe.files import packaged
from sixjars.runs.recipes import read_recipe

ROOT = Path(__file__).parents[2]


def _module() -> Any:
    path = ROOT / "benchmarks" / "kept.py"
    spec = importlib.util.spec_from_file_location("kept", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


kept = _module()
TOPICS = kept.topics()
WRITTEN = {"docs/settings.md"}
"""Pages that the code writes whole; another test compares them."""
PAGES = {
    path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8")
    for path in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
}
TABLE = re.compile(r"<!-- table: (\w+)/(\w+) -->\n.*?<!-- end -->", re.DOTALL)
SOURCES = re.compile(r"^ *<!-- figures: (.+?) -->\n?", re.MULTILINE)
NOT_PROSE = re.compile(
    r"^ *```.*?^ *```$|`[^`]*`|\]\([^)]*\)|https?://\S+|<!-- (?!figures)[^>]*-->",
    re.MULTILINE | re.DOTALL,
)
DECIMAL = r"(?<![\w.-])\d[\d,]*\.\d+(?:e-?\d+)?(?!\d|\.\d)"
WITH_UNIT = r"(?<![\w.])\d[\d,]*(?= ?%| (?:ms|s|seconds?|minutes?|hours?|[KMG]B|times)\b)"
FIGURE = re.compile(f"{DECIMAL}|{WITH_UNIT}")
ALLOWED = (
    ("*", r"Python 3\.\d+", "the version of Python that is needed"),
    ("*", r"Apache-2\.0", "the licence"),
    (
        "*",
        r"95 ?%(?= (?:of these scores|bootstrap|interval))",
        "the level of a confidence interval",
    ),
    ("*", r"!\[[^]]*", "what a picture shows, in words"),
    ("*", r"(?:onnxruntime-node|fairseq|pymarian) \d+\.\d+", "the version of another package"),
    ("docs/bad_model.md", r"or 2 seconds where|about 1 GB of memory", "limits of the program"),
    (
        "docs/comparing.md",
        r"1,000 times, as many|Below 0\.05|0\.002 is the least",
        "how the bootstrap is computed",
    ),
    (
        "docs/data.md",
        r"5 % are held out|over 5 %|waits 0\.2 seconds|until 5 GB|than 20 GB",
        "defaults",
    ),
    ("docs/data.md", r"0\.5 for half", "an example of a setting"),
    ("docs/data.md", r"MIT, 19 MB", "the size of a package"),
    ("docs/data.md", r"standard deviation of 0\.4", "a constant of the program"),
    ("docs/faq.md", r"0\.1 to 50 million|3 times (?:more|less)", "advice"),
    ("docs/notebooks/own_data.md", r"5 % of the training file", "a setting of this recipe"),
    ("docs/python.md", r"every 30 seconds", "a constant of the program"),
    ("docs/results.md", r"3 % of them held out", "a setting of these recipes"),
    ("docs/results.md", r"10 to 100 times", "how many documents others have"),
    ("docs/scale.md", r"within 30 seconds", "a time limit of the program"),
    (
        "docs/serving.md",
        r"16 times what|to 200 MB",
        "a limit of the server, and the size of an input",
    ),
    ("docs/troubleshooting.md", r"3 times (?:more|less)|newest 5 GB", "advice"),
    ("docs/web.md", r"1\.5 on average", "a bound that tests/unit/test_web_media.py checks"),
)
"""Page, what is left out of it, and why it is no measured figure."""


def blocks_of(text: str) -> Iterator[tuple[list[str], str]]:
    """The paragraphs of a page without tables that are written and code, each with the tables that it names."""
    sources: list[str] = []
    for block in re.split(r"\n\s*\n", NOT_PROSE.sub("·", TABLE.sub("", text))):
        for names in SOURCES.findall(block):
            sources += [name.strip() for name in names.split(";")]
        prose = " ".join(SOURCES.sub("", block).split())
        if prose:
            yield sources, prose
            sources = []


def unknown_figures(name: str, text: str) -> list[str]:
    """What a page says that no table named there has."""
    faults = []
    for sources, prose in blocks_of(text):
        for page, pattern, _ in ALLOWED:
            prose = re.sub(pattern, "", prose) if page in ("*", name) else prose
        known = (
            set().union(*(kept.figures_of(TOPICS, source) for source in sources))
            if sources
            else set()
        )
        where = (
            f"in {', '.join(sources)}"
            if sources
            else "in a kept table: no `<!-- figures: … -->` names one"
        )
        faults += [
            f"{name}: {figure} is not {where} ({prose[:60]}…)"
            for figure in FIGURE.findall(prose)
            if figure.replace(",", "") not in known
        ]
    return faults


@pytest.mark.parametrize("name", [name for name in PAGES if name not in WRITTEN])
def test_the_figures_of_a_page_are_kept(name: str) -> None:
    assert unknown_figures(name, PAGES[name]) == []


def test_a_figure_that_is_changed_in_one_place_is_found() -> None:
    page = "<!-- figures: multi30k/conditioning/additive attention -->\nIt reaches {} BLEU.\n\nIt takes 3 ms.\n"
    unnamed = "page: 3 is not in a kept table: no `<!-- figures: … -->` names one (It takes 3 ms.…)"
    assert unknown_figures("page", page.format("35.2")) == [unnamed]
    assert unknown_figures("page", page.format("36.3"))[0].startswith(
        "page: 36.3 is not in multi30k/conditioning/additive attention (It reaches 36.3 BLEU"
    )
    # 23.0 is a figure of the same table, but of another row.
    assert len(unknown_figures("page", page.format("23.0"))) == 2


def test_what_a_paragraph_names_has_one_of_its_figures() -> None:
    for name, text in PAGES.items():
        for sources, prose in blocks_of(text):
            said = kept.figures(prose)
            assert [
                (name, source) for source in sources if not kept.figures_of(TOPICS, source) & said
            ] == []


def test_what_is_allowed_is_there() -> None:
    """So that the list holds nothing that was changed long ago."""
    prose = {
        name: "\n\n".join(block for _, block in blocks_of(text)) for name, text in PAGES.items()
    }
    for page, pattern, reason in ALLOWED:
        assert reason
        texts = prose.values() if page == "*" else [prose[page]]
        assert any(re.search(pattern, text) for text in texts), (page, pattern)


def recipe_of(facts: Any) -> str | None:
    """The packaged recipe that a command trains."""
    trained = re.match(r"sixjars train (\w+/\w+)", facts.command or "")
    return trained[1] if trained else None


def rows() -> Iterator[tuple[str, Any, Any]]:
    for name, topic in TOPICS.items():
        for key, table in topic.tables.items():
            for row in table.rows:
                yield f"{name}/{key}/{table.name(row)}", row, topic.facts(table, row)


def test_commands_of_kept_rows_name_what_there_is() -> None:
    for name, _, facts in rows():
        recipe = recipe_of(facts)
        assert recipe is None or recipe in packaged(), name
        scripts = re.findall(r"benchmarks/\w+\.py", facts.command or "")
        assert [script for script in scripts if not (ROOT / script).is_file()] == [], name


def test_rows_say_whether_the_scored_set_chose() -> None:
    """Where a recipe has no test set, its validation set chooses and is scored; elsewhere two sets are named."""
    compared = 0
    for name, _, facts in rows():
        recipe = recipe_of(facts)
        if recipe is None or "/sample_" in recipe or facts.chosen == kept.NONE:
            continue
        data = read_recipe(recipe).data
        alone = data.test is None and (data.split is None or data.split.test is None)
        assert (facts.chosen == facts.scored) == alone, name
        compared += 1
    assert compared > 30


def flat(text: str) -> str:
    return " ".join(text.replace("\\\n", " ").split())


def test_a_page_has_the_commands_of_its_tables() -> None:
    for page, text in PAGES.items():
        for name, key in TABLE.findall(text):
            topic = TOPICS[name]
            facts = [topic.facts(topic.tables[key], row) for row in topic.tables[key].rows]
            missing = {
                fact.command for fact in facts if fact.command and fact.command not in flat(text)
            }
            assert missing == set(), (page, name, key)


def test_every_kept_table_is_shown_or_named() -> None:
    shown = {f"{name}/{key}" for text in PAGES.values() for name, key in TABLE.findall(text)}
    named = {
        "/".join(source.split("/")[:2])
        for text in PAGES.values()
        for sources, _ in blocks_of(text)
        for source in sources
    }
    recipes = {"samples/scores"}  # which the lines `Expect` of the recipes say
    kept_tables = {f"{name}/{key}" for name, topic in TOPICS.items() for key in topic.tables}
    assert kept_tables - shown - named == recipes


@pytest.mark.parametrize("name", packaged())
def test_what_a_recipe_expects_is_its_floor_or_kept(name: str) -> None:
    """Of the comment `Expect`: each figure is a floor of the recipe, or in a kept row whose command trains it."""
    text = packaged()[name].read_text(encoding="utf-8")
    [comment] = re.findall(r"^# Expect +(.*(?:\n#    .*)*)", text, re.MULTILINE)
    said = kept.figures(" ".join(re.findall(rf"{DECIMAL}|about \d+(?![\d.])", comment)))
    floors = {f"{value:g}" for value in read_recipe(name).expect.values()}
    measured = set().union(
        *(kept.figures(" ".join(row.cells)) for _, row, facts in rows() if recipe_of(facts) == name)
    )
    assert {
        figure for figure in said if figure not in measured and f"{float(figure):g}" not in floors
    } == set()


TOPIC = """
machine: a machine
seeds: 0
chosen: dev
scored: test
tables:
  main:
    kind: score
    command: sixjars train x
    columns: [model, BLEU]
    rows:
      - [plain, 23.0]
      - {cells: [attention, "**35.20**"], scored: dev, note: Twice.}
      - {cells: [others, 40], source: "https://example.org"}
"""


def test_splits_that_all_rows_share_stand_below() -> None:
    whole = TOPIC.replace(", scored: dev", "").partition("      - {cells: [others")[0]
    topic = kept.read(whole)
    [table] = topic.tables.values()
    assert kept.markdown(topic, table) == (
        "| model | BLEU |\n| --- | ---: |\n| plain | 23.0 |\n| attention | **35.20** |\n\n"
        "Seed 0; a machine. Chosen by dev. Scored on test. Twice.\n"
    )
    [table] = (topic := kept.read(whole.replace("scored: test", "scored: dev"))).tables.values()
    assert "Chosen by and scored on dev: optimistic." in kept.markdown(topic, table)


def test_a_topic_keeps_what_is_written() -> None:
    topic = kept.read(TOPIC)
    [table] = topic.tables.values()
    assert kept.markdown(topic, table) == (
        "| model | BLEU | chosen by | scored |\n| --- | ---: | --- | --- |\n| plain | 23.0 | dev | test |\n"
        "| attention | **35.20** | the scored set: optimistic | dev |\n| others | 40 | – | – |\n\n"
        "Seed 0; a machine. Twice.\n"
    )
    assert kept.figures_of({"x": topic}, "x/main/attention") == {"35.20"}
    assert kept.figures_of({"x": topic}, "x/main") == {"23.0", "35.20", "40"}
    with pytest.raises(KeyError, match="x/main/nobody"):
        kept.figures_of({"x": topic}, "x/main/nobody")


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        (("chosen: dev\n", ""), "main: 'plain' does not say its chosen"),
        (("machine: a machine\nseeds: 0\n", ""), "'plain' does not say its machine, seeds"),
        (("    command: sixjars train x\n", ""), "'plain' does not say its command"),
        (("[plain, 23.0]", "[plain]"), "'plain' has 1 cells, but there are 2 columns"),
        (("[plain, 23.0]", "[attention, 23.0]"), "'attention' names two rows"),
        (("seeds: 0", "seed: 0"), "seed\n  Extra inputs are not permitted"),
        (("seeds: 0", "date: yesterday"), "date\n  String should match pattern"),
    ],
)
def test_a_row_that_does_not_say_where_it_comes_from_is_refused(
    change: tuple[str, str], fault: str
) -> None:
    assert change[0] in TOPIC
    with pytest.raises(ValueError, match=re.escape(fault)):
        kept.read(TOPIC.replace(*change))


def test_topics_are_listed_and_printed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["kept.py"])
    kept.main()
    assert "multi30k/conditioning: 4 rows\n" in capsys.readouterr().out
    monkeypatch.setattr(sys, "argv", ["kept.py", "padding"])
    kept.main()
    assert capsys.readouterr().out.startswith("padding/shares\n\n| data | packed by length |")


def test_files_of_topics_are_plain_yaml() -> None:
    for path in sorted(kept.RESULTS.glob("*.yaml")):
        assert isinstance(yaml.safe_load(path.read_text(encoding="utf-8")), dict), path.name
