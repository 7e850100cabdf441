"""A run that is incomplete, damaged or from a stranger: a sentence, no code, no memory filled."""

import json
import os
import pickle
import random
import shutil
import stat
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

import sixjars
from sixjars.errors import RunError
from sixjars.recipe.files import overridden
from sixjars.runs.folder.run_folder import open_run
from sixjars.runs.training.learning_curves import draw_curves
from sixjars_runtime.small_files import read_limited

from .faults import entries

Maker = Callable[..., Any]


def test_what_is_no_run(call: Any, tmp_path: Path, recipe: Maker) -> None:
    file, missing = Path(recipe("a.yaml")), tmp_path / "no"
    for command in ("predict", "evaluate"):
        assert call(command, missing).sentence == f"run folder {missing} does not exist."
        assert call(command, file).sentence == f"{file} is not a run folder: it has no recipe.yaml."
    for command in ("predict", "evaluate", "explain"):
        sentence = call(command, tmp_path).sentence
        assert sentence == f"{tmp_path} is not a run folder: it has no recipe.yaml."
    sentence = call("train", str(file), "--out", file).sentence
    assert sentence == f"{file} is a file, not a folder for a run."


def test_a_run_without_weights(call: Any, copy: Path) -> None:
    for name in ("model.safetensors", "checkpoints/last.safetensors", "log.jsonl"):
        (copy / name).unlink()
    message = (
        f"{copy} has no trained weights yet (model.safetensors); they come with the first "
        f"validation. Go on with: sixjars train {copy / 'recipe.yaml'} --out {copy} --resume"
    )
    for command in (["predict", copy, "a"], ["evaluate", copy]):
        said = call(*command)
        assert (said.code, said.out, said.err) == (2, "", f"sixjars: {message}\n")
    assert call("train", copy / "recipe.yaml", "--out", copy, "--resume").code == 0
    (copy / "model.safetensors").unlink()
    assert call("train", copy / "recipe.yaml", "--out", copy, "--resume").sentence == (
        f"{copy / 'model.safetensors'} is gone, and only training from the start would bring it "
        "back; begin a new run with another --out."
    )


def damaged(content: bytes, how: str) -> bytes:
    half, noise = content[: len(content) // 2], random.Random(0).randbytes(2000)
    return {"cut": half, "empty": b"", "noise": noise, "tail": content[:-1]}[how]


@pytest.mark.parametrize("how", ["cut", "empty", "noise", "tail"])
def test_damaged_weights(how: str, call: Any, copy: Path) -> None:
    path = copy / "model.safetensors"
    path.write_bytes(damaged(path.read_bytes(), how))
    for command in (["predict", copy, "a"], ["evaluate", copy]):
        assert call(*command).sentence.startswith(f"{path} is damaged: ")


def test_weights_of_another_model(
    call: Any, copy: Path, language_model: Path, recipe: Maker, tmp_path: Path
) -> None:
    path = copy / "model.safetensors"
    shutil.copy(language_model / "model.safetensors", path)
    misfit = f"{path} does not fit the recipe beside it: "
    assert call("predict", copy, "a").sentence.startswith(misfit)
    other = sixjars.train(recipe(model={"encoder": {"size": 9}}), out=tmp_path / "other")
    shutil.copy(other.folder / "model.safetensors", path)
    told = f"{misfit}decoder.bridge.first.project.weight is (8, 9), but should be (8, 8)."
    assert call("predict", copy, "a").sentence == told


@pytest.mark.parametrize("how", ["cut", "empty", "noise"])
@pytest.mark.parametrize("field", ["source", "target"])
def test_damaged_vocabulary(field: str, how: str, call: Any, copy: Path) -> None:
    path = copy / "fields" / f"{field}.json"
    path.write_bytes(damaged(path.read_bytes(), how))
    for command in (["predict", copy, "a"], ["evaluate", copy], ["explain", copy]):
        assert call(*command).sentence.startswith(f"{path} is damaged: ")
    path.unlink()
    assert call("predict", copy, "a").sentence == (
        f"{copy} has no vocabulary (fields/{field}.json); it was damaged, or killed at its start."
    )


@pytest.mark.parametrize("how", ["cut", "empty", "noise"])
def test_damaged_recipe(how: str, call: Any, copy: Path, run_recipe: str) -> None:
    path = copy / "recipe.yaml"
    path.write_bytes(damaged(path.read_bytes(), how))
    resumed = ["train", run_recipe, "--out", copy, "--resume"]
    for command in (["predict", copy, "a"], ["evaluate", copy], resumed):
        said = call(*command)
        assert said.code == 2
        # half a recipe may still be one, but then its sizes are not those of the weights
        assert str(copy) in said.err
        assert said.err.startswith("sixjars: ")
        assert "Traceback" not in said.err


def test_a_damaged_training_state(call: Any, copy: Path, run_recipe: str) -> None:
    path = copy / "checkpoints" / "last.safetensors"
    before = call("predict", copy, "namaste").out
    path.write_bytes(damaged(path.read_bytes(), "cut"))
    said = call("train", run_recipe, "--out", copy, "--resume")
    assert said.sentence.startswith(f"{path} is damaged: ")
    assert call("predict", copy, "namaste").out == before


class Bomb:
    """Unpickled, it touches a file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return subprocess.call, (["touch", str(self.path)],)


def test_a_hostile_run_runs_nothing(call: Any, copy: Path, run_recipe: str, tmp_path: Path) -> None:
    touched = tmp_path / "touched"
    hostile = {
        "model.safetensors": pickle.dumps(Bomb(touched)),
        "checkpoints/last.safetensors": pickle.dumps(Bomb(touched)),
        "fields/source.json": pickle.dumps(Bomb(touched)),
        "recipe.yaml": f"task: !!python/object/apply:os.system ['touch {touched}']\n".encode(),
    }
    for name, content in hostile.items():
        kept = (copy / name).read_bytes()
        (copy / name).write_bytes(content)
        for command in (["predict", copy, "a"], ["evaluate", copy], ["explain", copy]):
            call(*command)
        said = call("train", run_recipe, "--out", copy, "--resume")
        assert said.code == 2 or name == "model.safetensors", said
        (copy / name).write_bytes(kept)
    changed(copy, "model.encoder.kind=os.system")
    said = call("predict", copy, "a")
    assert said.code == 2
    told = "model.encoder.kind: os.system is code from outside this toolkit. If you trust it, say "
    assert f"{told}--allow os" in said.err
    assert not touched.exists()


def changed(copy: Path, override: str) -> None:
    """The recipe of a run with another value."""
    values = yaml.safe_load((copy / "recipe.yaml").read_text())
    (copy / "recipe.yaml").write_text(yaml.safe_dump(overridden(values, [override])))


USES = (["predict", "a"], ["evaluate"], ["explain"])


LIMITS = [
    ("model.encoder.size", 10**18, "less than or equal to 1000000"),
    ("model.encoder.layers", 10**6, "less than or equal to 100"),
    ("model.decoder.embedding.size", 10**18, "less than or equal to 1000000"),
    ("model.bridge.size", 10**18, "less than or equal to 1000000"),
    ("evaluation.search.width", 10**18, "less than or equal to 10000"),
    ("evaluation.search.max_length", 10**18, "less than or equal to 20000"),
    ("evaluation.search.length_penalty", 1000, "less than or equal to 5"),
    ("evaluation.search.coverage_penalty", 1e30, "less than or equal to 100"),
    ("evaluation.search.temperature", 1e-320, "greater than or equal to 0.001"),
    ("evaluation.search.top_p", 1e-320, "greater than or equal to 0.000001"),
    ("data.source.max_length", 10**20, "less than 9223372036854775808"),
    ("learning.steps", 10**20, "less than 9223372036854775808"),
]


@pytest.mark.parametrize(("key", "value", "limit"), LIMITS)
def test_sizes_that_nothing_has(key: str, value: float, limit: str, call: Any, copy: Path) -> None:
    changed(copy, f"{key}={value}")
    for command, *more in USES:
        said = call(command, copy, *more).sentence
        assert said.startswith(f"{copy / 'recipe.yaml'}: {key}: should be {limit}, but is ")


def test_what_was_checked_when_a_run_was_begun_is_not_checked_to_load_it(
    call: Any, copy: Path, tmp_path: Path
) -> None:
    """Metrics, synthetic corpora and what sections need of each other; who uses them refuses them."""
    before = call("predict", copy, "namaste").out
    changed(copy, "evaluation.metrics=[bogus]")
    assert call("predict", copy, "namaste").out == before
    assert "'bogus'" in call("evaluate", copy).sentence
    recipe, out = copy / "recipe.yaml", tmp_path / "other"
    for command in (["train", recipe, "--out", out], ["train", recipe, "--out", copy, "--resume"]):
        said = call(*command)
        assert said.code == 2
        assert "evaluation.metrics: metric 'bogus' is unknown." in said.err
    assert not out.exists()


PARTS = ("encoder", "bridge", "decoder", "decoder.embedding")


@pytest.mark.parametrize(
    "override", ["encoder.layers=100", *(f"{part}.size=1000000" for part in PARTS)]
)
def test_sizes_are_compared_with_the_weights_before_anything_is_allocated(
    override: str, call: Any, copy: Path
) -> None:
    """A million hidden units would be 12 terabytes."""
    changed(copy, f"model.{override}")
    misfit = f"{copy / 'model.safetensors'} does not fit the recipe beside it: "
    for command, *more in USES:
        assert call(command, copy, *more).sentence.startswith(misfit)


@pytest.mark.parametrize("name", ["run.json", "fields/source.json", "fields/target.json"])
def test_a_file_of_a_run_that_never_ends_or_is_nested_without_end(
    name: str, call: Any, copy: Path
) -> None:
    path = copy / name
    path.write_text("[" * 100_000)
    said = [call(command, copy, *more) for command, *more in USES]
    path.unlink()
    path.symlink_to("/dev/zero")
    said += [call(command, copy, *more) for command, *more in USES]
    path.unlink()
    os.mkfifo(path)
    said += [call(command, copy, *more) for command, *more in USES]
    for one in said:
        if one.code or name != "run.json":  # not every use needs what was remembered of the data
            assert one.sentence.startswith((f"{path} is ", f"{copy} has "))


def test_files_of_a_run_have_a_limit(
    call: Any, copy: Path, run_recipe: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sixjars_runtime.small_files.read_limited.__defaults__", (100,))
    file = copy / "fields" / "source.json"
    told = f"{file} is damaged: {file} is larger than 100 bytes."
    assert call("predict", copy, "a").sentence == told
    assert call("train", run_recipe, "--out", copy, "--resume").code == 2


def test_files_that_say_nothing_true_of_their_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As those of the system, which seem plain and empty, but never end, or wait for a writer."""
    path = tmp_path / "file.json"
    path.write_text('{"a": 1}')
    assert read_limited(path, 8) == '{"a": 1}'
    with pytest.raises(RunError, match="is larger than 7 bytes"):
        read_limited(path, 7)
    monkeypatch.setattr(stat, "S_ISREG", lambda mode: True)
    path.unlink()
    os.mkfifo(path)
    assert read_limited(path) == ""
    path.unlink()
    path.symlink_to("/dev/zero")
    with pytest.raises(RunError, match="is larger than 1,000 bytes"):
        read_limited(path, 1000)


def test_a_vocabulary_whose_numbers_the_embedding_does_not_have(call: Any, copy: Path) -> None:
    path = copy / "fields" / "source.json"
    values = json.loads(path.read_text())
    values["tokens"] += [f"token{number}" for number in range(1000)]
    path.write_text(json.dumps(values))
    said = call("predict", copy, "a").sentence
    assert said.startswith(f"{copy / 'model.safetensors'} does not fit the recipe beside it: ")
    assert said.endswith("encoder.embedding.table.weight is (25, 6), but should be (1025, 6).")


def test_a_run_of_another_format(call: Any, copy: Path, run_recipe: str) -> None:
    path = copy / "run.json"
    kept = json.loads(path.read_text())
    assert kept["format"] == 2
    for found, remedy in (
        (1, "Train it anew, or use the version that run.json names."),
        (3, "Upgrade sixjars."),
        ("x" * 1000, "Train it anew, or use the version that run.json names."),
    ):
        path.write_text(json.dumps({**kept, "format": found}))
        told = f"{copy} has format {str(found)[:20]}, but this version of sixjars reads 2. {remedy}"
        assert call("predict", copy, "a").sentence == told
        assert call("train", run_recipe, "--out", copy, "--resume").sentence == told
    del kept["format"]
    path.write_text(json.dumps(kept))
    told = f"{copy} has format 1, but this version of sixjars reads 2."
    assert call("evaluate", copy).sentence.startswith(told)


LINES = """
[1]
    it must be numbers by name, but is [1].
{"epoch": 1, "step": [2], "loss": 1}
    it must be numbers by name, but is {'epoch': 1, 'loss': 1
{"epoch": 1
    it is no JSON.
{"epoch": 1, "loss": 2.0}
    step is missing, or no finite number.
{"epoch": NaN, "step": 1, "loss": 2.0}
    epoch is missing, or no finite number.
"""


@pytest.mark.parametrize(("line", "fault"), [("[" * 100_000, "it is no JSON."), *entries(LINES)])
def test_a_damaged_log(
    line: str, fault: str, call: Any, copy: Path, run_recipe: str, tmp_path: Path
) -> None:
    path = copy / "log.jsonl"
    path.write_text(path.read_text().splitlines()[0] + f"\n{line}\n")
    message = f"{path}, line 2 is damaged: {fault}"
    assert call("report", copy, "--out", tmp_path / "report.html").sentence.startswith(message)
    assert call("train", run_recipe, "--out", copy, "--resume").sentence.startswith(message)


@pytest.mark.parametrize("lost", ["nothing", "train_loss", "character_error_rate"])
def test_a_log_that_lacks_values_has_no_curves(lost: str, copy: Path) -> None:
    *lines, last = (json.loads(line) for line in (copy / "log.jsonl").read_text().splitlines())
    last.pop(lost, None)  # somebody took it out
    (copy / "log.jsonl").write_text("".join(f"{json.dumps(record)}\n" for record in [*lines, last]))
    draw_curves(open_run(copy))
    assert (copy / "curves.png").exists() == (lost == "nothing")


def test_a_run_without_a_log_or_with_half_a_line_is_reported(
    call: Any, copy: Path, tmp_path: Path
) -> None:
    path, out = copy / "log.jsonl", tmp_path / "report.html"
    path.write_text(path.read_text() + '{"epoch": 3, "st')
    assert call("report", copy, "--out", out).code == 0
    path.unlink()
    assert call("report", copy, "--out", out).code == 0
    assert "not known; the run has no log" in out.read_text()
    values = json.loads((copy / "run.json").read_text())
    (copy / "run.json").write_text(json.dumps(values | {"versions": ["torch"]}))
    assert call("report", copy, "--out", out).code == 0
