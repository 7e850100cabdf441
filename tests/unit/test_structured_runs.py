"""`sixjars` with documents, conversations, names and points: files in, answers out."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from PIL import Image

import sixjars
from sixjars.errors import Interrupted

from .conftest import one_for_each_task
from .faults import entries
from .trained import assert_same

UNKNOWN = re.compile(
    r"note: [\d.]+ % of the input tokens are unknown to the run \(<unk>\); outputs may be poor\.\n"
)
WORDS = {"size": 6, "direction": "both", "embedding": {"size": 5}}
RECIPES: dict[str, dict[str, Any]] = {
    "document_classification": {
        "data": {"source": {"segments": "lines"}, "label": {}},
        "model": {
            "encoder": {"words": WORDS, "size": 6, "pool": "attention"},
            "decoder": {"size": 6},
        },
        "evaluation": {"metrics": ["accuracy@1", "rationale_sentence"]},
    },
    "conversation": {
        "data": {"source": {"segments": "turns"}},
        "model": {
            "encoder": {"words": WORDS, "size": 6},
            "bridge": {"size": 6},
            "decoder": {"size": 6},
        },
        "evaluation": {"search": {"max_length": 5}, "metrics": ["exact_match", "perplexity"]},
    },
    "summarization": {
        "data": {
            "sample": {"kind": "articles"},
            "source": {"segments": "lines", "split": "spaces", "min_count": 3},
            "target": {"split": "spaces", "min_count": 3},
        },
        "model": {
            "encoder": {"kind": "hierarchy", "words": WORDS, "size": 6},
            "bridge": {"kind": "two_level", "size": 6},
            "decoder": {"size": 6, "copying": True},
        },
        "loss": {"coverage": 0.1},
        "evaluation": {"search": {"max_length": 5}, "metrics": ["rouge1", "copied_words"]},
    },
    "pointing": {
        "data": {"points": {}, "order": {}},
        "model": {"encoder": {"size": 6, "embedding": 4}, "decoder": {"size": 6, "attention": 6}},
        "evaluation": {"metrics": ["exact_match", "valid_tours", "tour_length_ratio"]},
    },
}
Run = Callable[[str], Path]


def written(folder: Path, task: str, **data: Any) -> Path:
    """The small recipe of a task, on synthetic examples unless a file is named."""
    values = json.loads(json.dumps(RECIPES[task]))
    sample = {**values["data"].pop("sample", {}), "size": 48, "valid": 6, "test": 6}
    values["data"] |= data if "train" in data else {"sample": sample, **data}
    values |= {"task": task, "learning": {"steps": 4, "batch_examples": 16, "validate_every": 2}}
    path = folder / f"{task}.yaml"
    path.write_text(yaml.safe_dump(values))
    return path


def lined(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return one_for_each_task(tmp_path_factory, written)


ASKED: dict[str, list[Any]] = {
    "document_classification": ["the ribbons reached us", "nobody came"],
    "conversation": ["my name is Ann", "what is my name ?"],
    "summarization": ["Zed met Ur today .", "Ur was late ."],
    "pointing": [[0.1, 0.2], [0.5, 0.5], [0.9, 0.1]],
}
TEXTS = [task for task in ASKED if task != "pointing"]


@pytest.mark.parametrize("task", TEXTS)
def test_lines_lists_and_files_are_the_same_text(
    task: str, call: Any, run: Run, tmp_path: Path
) -> None:
    segments = ASKED[task]
    wanted = sixjars.load(run(task)).predict(["\n".join(segments)])[0]
    plain = call("predict", run(task), "\n".join(segments))
    assert plain.code == 0
    assert UNKNOWN.sub("", plain.err) == ""
    assert plain.out.startswith(wanted.text)
    (tmp_path / "asked.jsonl").write_text(json.dumps(segments) + "\n")
    for given in ((json.dumps(segments),), ("--input", tmp_path / "asked.jsonl")):
        assert call("predict", run(task), *given).out == plain.out
    assert call("predict", run(task), stdin=json.dumps(segments).encode()).out == plain.out
    answer = json.loads(call("predict", run(task), json.dumps(segments), "--json").out)
    assert answer["input"] == "\n".join(segments)
    assert answer["segments"] == sorted(answer["segments"])
    assert set(answer["segments"]) == {0, 1}
    assert len(answer["source"]) == len(answer["segments"]) == len(answer["weights"][0])
    assert sum(answer["weights"][0]) == pytest.approx(1.0, abs=1e-4)


def test_points_may_be_a_text_or_a_list(call: Any, run: Run, tmp_path: Path) -> None:
    text = "0.1,0.2 0.5,0.5 0.9,0.1"
    plain = call("predict", run("pointing"), text)
    assert sorted(plain.out.split()) == ["0", "1", "2"]
    (tmp_path / "asked.txt").write_text(f"{json.dumps(ASKED['pointing'])}\n{text}\n")
    assert call("predict", run("pointing"), json.dumps(ASKED["pointing"])).out == plain.out
    assert call("predict", run("pointing"), "--input", tmp_path / "asked.txt").out == plain.out * 2
    answer = json.loads(call("predict", run("pointing"), text, "--json").out)
    assert answer["source"] == text.split()
    assert answer["tokens"] == [*plain.out.split(), "<stop>"]
    assert answer["finished"]


UNUSABLE = """
conversation  []
    the source holds an empty list.
conversation  ["a", null]
    the source holds a list with null in it; it may hold texts alone.
conversation  ["", " "]
    the source is empty.
document_classification  \x20
    the source is empty.
pointing  []
    the points: there is no point; write at least one, like 0.12,0.7 0.3,0.25.
pointing  [0.1]
    a point has 1 coordinate, but data.points.dimensions is 2.
pointing  0.1,0.2,0.3
    a point has 3 coordinates, but data.points.dimensions is 2.
pointing  0.1,x
    the points: 'x' of point '0.1,x' is not a number; write points like
pointing  [[0.1, true]]
    the points must be a list of points like [[0.12, 0.7], [0.3, 0.25]]
"""


@pytest.mark.parametrize(("what", "told"), entries(UNUSABLE))
def test_inputs_that_cannot_be_used(what: str, told: str, call: Any, run: Run) -> None:
    task, _, given = what.partition("  ")
    assert call("predict", run(task), given).sentence.startswith(f"input 1: {told}")


@pytest.mark.parametrize("given", ["[so it begins", "[" * 100_000, '{"a": 1}'])
def test_a_text_may_begin_like_a_list(given: str, call: Any, run: Run) -> None:
    said = call("predict", run("document_classification"), given)
    cut = "note: input 1 was cut, because it is longer than the run reads (max_length).\n"
    assert (said.code, UNKNOWN.sub("", said.err)) == (0, cut if len(given) > 200 else "")


@pytest.mark.parametrize("task", ASKED)
def test_attention_is_drawn(task: str, call: Any, run: Run, tmp_path: Path) -> None:
    asked = json.dumps(ASKED[task])
    assert call("predict", run(task), asked, asked, "--pictures", tmp_path / "drawn").code == 0
    first, second = sorted((tmp_path / "drawn").iterdir())
    assert (first.name[:2], second.name[:2]) == ("1-", "2-")
    with Image.open(first) as image:
        assert len(set(image.convert("L").tobytes())) > 20


def test_no_limit_cuts_an_order_short(call: Any, run: Run, tmp_path: Path) -> None:
    asked = " ".join(f"0.{n},0.5" for n in range(1, 10))
    drawn = tmp_path / "drawn"
    said = call("predict", run("pointing"), asked, "--set", "max_length=3", "--pictures", drawn)
    assert (said.code, sorted(said.out.split())) == (0, [str(place) for place in range(9)])
    assert [path.name[:2] for path in drawn.iterdir()] == ["1-"]


def test_numbers_that_no_plane_holds_have_a_heat_map(call: Any, tmp_path: Path) -> None:
    rows = [{"points": [[n, 1, 2], [2, 3, n]], "order": [1, 0]} for n in range(9)]
    data, trained, drawn = lined(tmp_path / "a.jsonl", rows), tmp_path / "run", tmp_path / "drawn"
    recipe = written(tmp_path, "pointing", train=str(data), valid=0.3, points={"dimensions": 3})
    assert call("train", recipe, "--out", trained).code == 0
    assert call("predict", trained, "[[1, 2, 3], [4, 5, 6]]").out.strip() in ("0 1", "1 0")
    assert call("predict", trained, "[[1, 2, 3]]", "--pictures", drawn).code == 0
    assert [path.suffix for path in drawn.iterdir()] == [".png"]


def test_names_are_copied(run: Run) -> None:
    """A word of no vocabulary can be written, and stands at the position that is attended to."""
    predictor = sixjars.load(run("summarization"))
    asked = "qqq www\neee qqq"
    beam = predictor.recipe.evaluation.search.model_copy(update={"kind": "beam"})
    [found] = predictor.nbest([asked], search=beam)
    assert set(found[0].text.split()) & set(asked.split())
    assert found[0].source == ("qqq", "www", "eee", "qqq")


# Conversations


def test_a_conversation_is_held(call: Any, run: Run) -> None:
    talk = "hello\n/help\n\nwhat is my name ?\n/back\n/what\n/quit\nnot heard\n"
    said = call("predict", run("conversation"), "--chat", stdin=talk.encode())
    assert said.code == 0
    first, second = (line.removeprefix("it>  ") for line in said.out.splitlines())
    predictor = sixjars.load(run("conversation"))
    assert predictor.predict(["hello"])[0].text == first
    assert predictor.predict([f"hello\n{first}\nwhat is my name ?"])[0].text == second
    assert "Taken back: what is my name ?" in said.err
    assert "command '/what' is unknown. Known: /back, /help, /new, /quit." in said.err
    assert said.err.splitlines()[-1] == "Goodbye."


def test_models_that_hold_no_conversation(call: Any, run: Run, tmp_path: Path) -> None:
    for task in ("document_classification", "pointing"):
        told = f"--chat needs a model that answers a text with a text; {task} does not."
        assert call("predict", run(task), "--chat", stdin=b"hello\n").sentence == told
    for more in (["hello"], ["--json"], ["--pictures", tmp_path], ["--input", tmp_path / "a"]):
        assert call("predict", run("conversation"), "--chat", *more).sentence == (
            "--chat reads and writes a conversation; give it no texts, files, pictures or --json."
        )


def test_whole_conversations_are_learned_from(call: Any, tmp_path: Path) -> None:
    """Every turn but the first is an example; all of one conversation are held out together."""
    rows = [
        {"turns": ["hello", f"hello {n}", "who are you", f"I am {n}"], "who": list("abab")}
        for n in range(8)
    ]
    data = lined(tmp_path / "a.jsonl", rows)
    columns = {"source": {"column": "turns", "segments": "turns"}, "target": {"column": "turns"}}
    more: dict[str, Any] = {"format": "dialogs", "speakers": "who", "valid": 0.25}
    recipe = written(tmp_path, "conversation", train=str(data), **columns, **more)
    assert call("train", recipe, "--out", tmp_path / "run").code == 0
    assert json.loads(call("evaluate", tmp_path / "run", "--json").out)["examples"] == 6
    turns = [{"turns": ["hello", "hello"], "who": ["a", "b"]}, {"turns": ["a"], "who": ["a"]}]
    other = ("--data", lined(tmp_path / "b.jsonl", turns), "--json")
    assert json.loads(call("evaluate", tmp_path / "run", *other).out)["examples"] == 1


# Scores


@pytest.mark.parametrize("task", ASKED)
def test_another_file_is_scored(task: str, call: Any, run: Run, tmp_path: Path) -> None:
    """In the columns of the synthetic corpus, lists and texts alike."""
    read, said = {
        "document_classification": ("document", "topic"),
        "conversation": ("turns", "response"),
        "summarization": ("article", "summary"),
        "pointing": ("points", "order"),
    }[task]
    answer = {"pointing": "0 1 2", "document_classification": "music"}.get(task, "a b")
    segments = ASKED[task]
    joined = "\n".join(map(str, segments))
    if task == "pointing":
        joined = " ".join(f"{x},{y}" for x, y in segments)
    rows: list[dict[str, Any]] = [{read: text, said: answer} for text in (segments, joined)]
    file = lined(tmp_path / "mine.jsonl", rows)
    options = ("--data", file, "--metrics", "exact_match", "--json")
    told = json.loads(call("evaluate", run(task), *options).out)
    assert told["examples"] == 2
    assert told["scores"]["exact_match"]["value"] in (0.0, 1.0)  # both are the same text
    assert ("classes" in told) == (task == "document_classification")


@pytest.mark.parametrize("task", ASKED)
def test_training_goes_on_where_it_stopped(
    task: str, call: Any, run: Run, tired: Any, tmp_path: Path
) -> None:
    recipe, begun = written(tmp_path, task), tmp_path / "begun"
    with pytest.raises(Interrupted):
        sixjars.train(recipe, out=begun, reporter=tired(2))
    assert not (begun / "scores.json").exists()
    assert call("train", recipe, "--out", begun, "--resume").code == 0
    assert_same(begun, run(task), "model.safetensors", "scores.json")
