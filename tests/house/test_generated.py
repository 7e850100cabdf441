"""The pages that the code tells are up to date, whole and true: what they say of a key, a recipe confirms."""

import importlib.util
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sixjars.errors import RecipeError
from sixjars.evaluation.metrics import METRICS
from sixjars.model.bridges import ATTENTIONS, BRIDGES
from sixjars.model.decoders import DECODERS
from sixjars.model.encoders import ENCODERS
from sixjars.recipe.reading import overridden, packaged
from sixjars.tasks.reading import recipe_of
from sixjars.tasks.runs import flat
from sixjars.tasks.table import TASKS

ROOT = Path(__file__).parents[2]
SMALL: dict[str, Any] = {"data": {"sample": {}, "source": {}, "target": {}}}
Row = tuple[str, str, str, str]
NEEDED = {"data.train", "data.source"}
"""What a recipe may leave out only if it says something else instead."""


def _script() -> Any:
    spec = importlib.util.spec_from_file_location("generate", ROOT / "docs" / "generate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


generate = _script()
SETTINGS: str = generate.settings_page()


def rows_of(page: str) -> Iterator[tuple[str, Row]]:
    """Every row about a key, after the heading that it stands under."""
    heading = ""
    for line in page.splitlines():
        if line.startswith("#"):
            heading = line.lstrip("# ")
        cells = [cell.replace("\\|", "|").strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        if len(cells) == 4 and re.match(r"`(data|model|loss|learning|evaluation)\b", cells[0]):
            key, kinds, default, sentence = cells
            yield heading, (key.strip("`"), kinds, default, sentence)


ROWS = list(rows_of(SETTINGS))


def recipe_under(heading: str, *overrides: str) -> dict[str, Any]:
    """A small recipe that has the part of a heading, with overrides, every default filled in."""
    if heading == "`data`":
        values: dict[str, Any] = {"task": "translation", "data": {"train": "a.tsv"}}
        values["data"] |= {"source": {"column": 1}, "target": {"column": 2}}
    else:
        values = {"task": "language_model" if "none" in heading else "translation", **SMALL}
        if "none" in heading:
            values = {**values, "data": {"sample": {}, "target": {}}}
    part = re.match(r"`(\w+): {(.*)}`", heading)
    named = [f"model.{part[1]}.{pair.replace(': ', '=')}" for pair in part[2].split(", ")] if part else []
    recipe = recipe_of(overridden(values, [*named, *overrides]), "a test")
    return flat(recipe.model_dump(mode="json"))


@pytest.mark.parametrize("name", generate.PAGES)
def test_a_page_is_up_to_date(name: str) -> None:
    kept = ROOT / name
    assert kept.is_file(), f"{name} is missing; run `make docs`"
    assert kept.read_text(encoding="utf-8") == generate.PAGES[name](), f"{name} is out of date; run `make docs`"


def test_check_writes_nothing_and_tells(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in generate.PAGES:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
    assert generate.main(["--root", str(tmp_path)]) == 0
    assert generate.main(["--root", str(tmp_path), "--check"]) == 0
    page = tmp_path / "docs" / "settings.md"
    page.write_text(page.read_text(encoding="utf-8") + "more\n", encoding="utf-8")
    capsys.readouterr()
    assert generate.main(["--root", str(tmp_path), "--check"]) == 1
    assert capsys.readouterr().err == "docs/settings.md is out of date; run `make docs`.\n"
    assert page.read_text(encoding="utf-8").endswith("more\n")
    assert generate.main(["--root", str(tmp_path)]) == 0
    assert page.read_text(encoding="utf-8") == SETTINGS


def test_every_key_of_a_recipe_has_its_row() -> None:
    """Compared with what a run would keep: one whose data are files and one whose data are made up."""
    told = {key for _, (key, *_) in ROWS}
    kept = {*recipe_under("`data`"), *recipe_under("`data.sample`")} - {"task", "expect"}
    assert {key for key in kept if key.replace("data.target.", "data.source.") not in told} == set()
    assert told - kept == {"data.source", "data.target", "evaluation.search"}


def test_every_kind_of_part_and_every_metric_is_told() -> None:
    headings = set(re.findall(r"^### `(\w+: {.*})`$", SETTINGS, re.MULTILINE))
    wanted = {f"encoder: {{kind: {kind}}}" for kind in ENCODERS} | {f"decoder: {{kind: {kind}}}" for kind in DECODERS}
    wanted |= {f"bridge: {{kind: {kind}}}" for kind in BRIDGES if kind != "attention"}
    wanted |= {f"bridge: {{kind: attention, score: {score}}}" for score in ATTENTIONS}
    assert headings == wanted
    metrics = SETTINGS.partition("### Metrics")[2].partition("###")[0]
    assert set(re.findall(r"^\| `([\w@]+)` \|", metrics, re.MULTILINE)) == {
        "accuracy@k" if name == "accuracy@1" else name for name in METRICS
    }


@pytest.mark.parametrize(("heading", "row"), ROWS, ids=[f"{key} of {heading}" for heading, (key, *_) in ROWS])
def test_a_row_tells_the_truth(heading: str, row: Row) -> None:
    """The default changes nothing, a value beyond a limit is refused, every word that is allowed is taken."""
    key, kinds, default, sentence = row
    assert sentence
    if re.fullmatch(r"`[^`]*`", default) and key not in NEEDED:
        assert recipe_under(heading, f"{key}={default.strip('`')}") == recipe_under(heading)
    for sign, limit in re.findall(r"([≥><≤]) ([\d.]+)(?!\^)", kinds):
        over = {"≥": float(limit) - 1, ">": float(limit), "<": float(limit), "≤": float(limit) + 1}[sign]
        with pytest.raises(RecipeError, match=re.escape(key)):
            recipe_under(heading, f"{key}={over:g}")
    for word in re.findall(r"`(\w+)`", kinds):
        if "score" not in key and not key.endswith("kind"):
            got = recipe_under(heading, f"{key}={word}", *companions(key, word))[key]
            assert str(got).lower() == {"null": "none"}.get(word, word)


def companions(key: str, word: str) -> list[str]:
    """What else must be said for a word to be allowed."""
    if (key, word) == ("data.train", "null"):
        return ["data.sample.size=9"]
    if key.endswith("embedding.tuned"):
        return ["data.source.vectors=words.txt", "data.target.vectors=words.txt"]
    return ["data.source=null", "task=language_model"] if (key, word) == ("data.source", "null") else []


def test_every_sentence_about_a_part_is_used() -> None:
    unused = [sentence for sentence in generate.MEANINGS.values() if f"| {sentence} |" not in SETTINGS]
    assert unused == []


def test_every_recipe_is_listed_once_with_what_it_says_of_itself() -> None:
    page: str = generate.recipes_page()
    linked = re.findall(r"\]\((\w+/\w+)\.yaml\)", page)
    assert sorted(linked) == sorted(packaged())
    sections = re.findall(r"^## \S+ `(\w+)`", page, re.MULTILINE)
    assert sections == list(TASKS)
    for name, path in packaged().items():
        first = path.read_text(encoding="utf-8").splitlines()[0]
        [line] = [line for line in page.splitlines() if f"]({name}.yaml)" in line]
        assert first.removeprefix("# ") in line


def test_a_header_is_read() -> None:
    text = "# Shows it.\n# Run     sixjars train x\n# Cost    1 min,\n#         2 GB\n# A remark.\n# Expect\ntask: x\n"
    told = generate.header_of(text)
    assert told == {"shows": "Shows it.", "run": "sixjars train x", "cost": "1 min, 2 GB", "expect": ""}
