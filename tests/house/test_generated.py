"""The pages that the code tells are up to date, whole and true: what they say of a key, a recipe confirms."""

import importlib.util
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sixjars.errors import RecipeError
from sixjars.evaluation.metrics import METRICS
from sixjars.model.bridges import BRIDGES
from sixjars.model.decoders import DECODERS
from sixjars.model.encoders import ENCODERS
from sixjars.recipe.files import flat, overridden, packaged
from sixjars.runs.recipes import recipe_of
from sixjars.tasks import TASKS, Task

ROOT = Path(__file__).parents[2]
Row = tuple[str, str, str, str]
NEEDED = {"data.train"}
"""What a recipe may leave out only if it says something else instead."""


def _script() -> Any:
    spec = importlib.util.spec_from_file_location("generate", ROOT / "docs" / "generate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


generate = _script()
# up to date, as a test below says
SETTINGS = (ROOT / "docs" / "settings.md").read_text(encoding="utf-8")


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


def component_of(heading: str) -> tuple[str, list[str]]:
    """The component that a heading is about, and the overrides that choose it."""
    found = re.match(r"`(\w+): {kind: (\w+)}`", heading)
    return ("", []) if found is None else (found[1], [f"model.{found[1]}.kind={found[2]}"])


def names(task: Task) -> list[str]:
    return [slot.name for slot in task.slots]


def task_under(heading: str) -> Task:
    """A task that has the component, or the field of the data."""
    role, chosen = component_of(heading)
    kinds = [override.partition("=")[2] for override in chosen]
    for task in [TASKS["translation"], *TASKS.values()]:
        if (role in ("encoder", "decoder") or "two_level" in kinds) and getattr(
            task, role
        ) in kinds:
            return task
        if any(f"`data.{name}`" in heading for name in names(task)):
            return task
    return TASKS["translation"]


def recipe_under(heading: str, *overrides: str) -> dict[str, Any]:
    """A small recipe that has the component of a heading, with overrides, every default filled in."""
    needs_labels = {"loss.class_weights=balanced", "model.encoder.ngrams.weigh_by=labels"}
    has_labels = not needs_labels.isdisjoint(overrides)
    task = TASKS["document_classification"] if has_labels else task_under(heading)
    files = heading in ("`data`", "`data.split`", "`data.alignment`")
    fields: dict[str, dict[str, Any]] = {
        name: {"column": at} if files else {} for at, name in enumerate(names(task), start=1)
    }
    below: dict[str, Any] = {key: {} for key in ("split", "alignment") if f"data.{key}" in heading}
    whence = {"train": "a.tsv", **below} if files else {"sample": {}}
    for kind in re.findall(r"`kind: (\w+)`", heading):
        fields[re.findall(r"`data\.(\w+)`", heading)[0]]["kind"] = kind
    if task.encoder == "hierarchy" and "model.encoder.ngrams.weigh_by=labels" not in overrides:
        fields["source"]["segments"] = "lines"
    values = {"task": task.name, "data": {**whence, **fields}}
    recipe = recipe_of(overridden(values, [*component_of(heading)[1], *overrides]), "a test")
    return flat(recipe.model_dump(mode="json"))


@pytest.mark.parametrize("name", generate.PAGES)
def test_a_page_is_up_to_date(name: str) -> None:
    kept = ROOT / name
    assert kept.is_file(), f"{name} is missing; run `make docs`"
    assert kept.read_text(encoding="utf-8") == generate.PAGES[name](), (
        f"{name} is out of date; run `make docs`"
    )


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
    """Compared with what runs would keep: of every task, with every component, from files and synthetic."""
    told = {key for _, (key, *_) in ROWS}
    kept = {
        key for heading in {heading for heading, _ in ROWS} for key in recipe_under(heading)
    } - {"task", "expect"}
    told_once = {
        re.sub(r"^data\.(question|target|sentence[12])\.", "data.source.", key) for key in kept
    }
    assert told_once - told == set()
    assert told - kept == {"evaluation.search"}


def test_every_kind_of_component_and_every_metric_is_listed() -> None:
    headings = set(re.findall(r"^### `(\w+: {.*})`$", SETTINGS, re.MULTILINE))
    wanted = {f"encoder: {{kind: {kind}}}" for kind in ENCODERS} | {
        f"decoder: {{kind: {kind}}}" for kind in DECODERS
    }
    wanted |= {f"bridge: {{kind: {kind}}}" for kind in BRIDGES}
    assert headings == wanted
    metrics = SETTINGS.partition("### Metrics")[2].partition("###")[0]
    assert set(re.findall(r"^\| `([\w@]+)` \|", metrics, re.MULTILINE)) == {
        "accuracy@k" if name == "accuracy@1" else name for name in METRICS
    }


FILLED_IN = {("learning.metric", "null"), ("learning.epochs", "null")}
"""Keys whose absence has a meaning that a recipe spells out: the first metric, ten epochs."""


@pytest.mark.parametrize(
    ("heading", "row"), ROWS, ids=[f"{key} of {heading}" for heading, (key, *_) in ROWS]
)
def test_a_row_tells_the_truth(heading: str, row: Row) -> None:
    """The default changes nothing, a value beyond a limit is refused, every word that is allowed is taken."""
    key, kinds, default, sentence = row
    assert sentence.strip("–")
    if re.fullmatch(r"`[^`]*`", default) and key not in NEEDED:
        assert recipe_under(heading, f"{key}={default.strip('`')}") == recipe_under(heading)
    for sign, told in re.findall(r"([≥><≤]) ([\d.,]+)", kinds):
        limit = float(told.replace(",", ""))
        over = {"≥": limit - 1, ">": limit, "<": limit, "≤": limit + 1}[sign]
        with pytest.raises(RecipeError, match=re.escape(key)):
            recipe_under(heading, f"{key}={int(over) if over.is_integer() else over}")
    for word in re.findall(r"`(\w+)`", kinds):
        if not key.endswith("kind"):
            listed = kinds.startswith("list of")
            given = f"{key}=[{word}]" if listed else f"{key}={word}"
            got = recipe_under(heading, given, *companions(heading, key, word))[key]
            meant = str(recipe_under(heading)[key]) if (key, word) in FILLED_IN else word
            assert str(got[0] if listed else got).lower() == {"null": "none"}.get(meant, meant)


def companions(heading: str, key: str, word: str) -> list[str]:
    """What else must be said for a word to be allowed."""
    if key.endswith("embedding.frozen"):
        texts = [slot.name for slot in task_under(heading).slots if slot.kind == "text"]
        return [f"data.{name}.vectors=words.txt" for name in texts]
    return {
        ("data.train", "null"): ["data.sample.size=9"],
        ("model.encoder.standardize", "true"): ["data.source.vectors=words.txt"],
        ("data.source.project_vectors", "true"): ["data.source.vectors=words.txt"],
        ("model.encoder.summary", "question"): ["model.bridge.kind=attention"],
        ("model.decoder.copying", "true"): ["model.bridge.kind=attention"],
        ("model.decoder.conditional", "true"): ["model.bridge.kind=attention"],
        ("model.decoder.tied", "true"): ["model.decoder.size=64"],
        ("evaluation.search.unknown", "replace"): ["model.bridge.kind=attention"],
    }.get((key, word), [])


def test_every_sentence_about_a_parameter_is_used() -> None:
    unused = [
        sentence for sentence in generate.MEANINGS.values() if f"| {sentence} |" not in SETTINGS
    ]
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


PRETRAINED = {"name": "efficientnet_lite0", "layer": "head"}
TUNED = {"frozen": False, "train_from": "head"}
SHORT: list[tuple[str, dict[str, Any], str]] = [
    ("language_model", {"decoder": {"cell": "rnn", "size": 9}}, "learned s_0 → initial → RNN 9"),
    (
        "translation",
        {"encoder": {"direction": "both", "layers": 2}, "decoder": {"tied": True, "size": 64}},
        "2 × GRU 128 bidirectional → additive attention → GRU 64, tied",
    ),
    ("image_captioning", {}, "small CNN → additive attention → GRU 128"),
    (
        "image_captioning",
        {"encoder": {"backbone": PRETRAINED}, "bridge": {"score": "general"}},
        "EfficientNet-Lite0 7×7 → general attention → GRU 128",
    ),
    (
        "image_captioning",
        {"encoder": {"backbone": {**PRETRAINED, **TUNED}}, "bridge": {"kind": "every_step"}},
        "EfficientNet-Lite0, fine-tuned → every step → GRU 128",
    ),
    (
        "image_question_answering",
        {
            "encoder": {"summary": "question"},
            "bridge": {"kind": "attention"},
            "decoder": {"size": 32},
        },
        "small CNN + GRU 128, queried by the question → additive attention → 32 hidden, label",
    ),
    (
        "video_classification",
        {
            "encoder": {"reads": "both", "cell": "lstm"},
            "bridge": {"kind": "pooling", "start": "copy"},
        },
        "LSTM 128 over frames and clips (small CNN) → attention pooling, s_0 = h_T → label",
    ),
    (
        "video_captioning",
        {"encoder": {"backbone": PRETRAINED}, "bridge": {"kind": "initial"}},
        "GRU 128 over frames (EfficientNet-Lite0) → initial → GRU 128",
    ),
    (
        "conversation",
        {
            "encoder": {"words": {"size": 9, "direction": "both"}},
            "decoder": {"copying": True, "conditional": True},
        },
        "words GRU 9 bidirectional, segments GRU 128 → two-level attention → GRU 128, copying, conditional",
    ),
    (
        "document_classification",
        {"encoder": {"pool": "attention"}, "bridge": {"start": "copy"}},
        "words GRU 128, segments GRU 128, attention pooling of words → attention pooling, s_0 = h_T → label",
    ),
    (
        "sentence_pair",
        {"encoder": {"sentence": {"direction": "both"}}},
        "GRU 128 bidirectional over each sentence → additive attention → 128 hidden, label",
    ),
    (
        "pointing",
        {"encoder": {"direction": "both"}, "decoder": {"visits": "some"}},
        "GRU 128 bidirectional → initial → GRU 128, pointer, of some points",
    ),
]


@pytest.mark.parametrize(("task", "model", "told"), SHORT, ids=[told for *_, told in SHORT])
def test_models_in_short(task: str, model: dict[str, Any], told: str) -> None:
    data: dict[str, Any] = {"sample": {}, **{name: {} for name in names(TASKS[task])}}
    if TASKS[task].encoder == "hierarchy":
        data["source"]["segments"] = "lines"
    assert (
        generate.model_in_short(recipe_of({"task": task, "data": data, "model": model}, "a test"))
        == told
    )


def test_a_header_is_read() -> None:
    text = "# Shows it.\n# Run     sixjars train x\n# Cost    1 min,\n#         2 GB\n# A remark.\n# Expect\ntask: x\n"
    told = generate.header_of(text)
    expected = {"shows": "Shows it.", "run": "sixjars train x", "cost": "1 min, 2 GB", "expect": ""}
    assert told == expected
