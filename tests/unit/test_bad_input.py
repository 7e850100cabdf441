"""Whatever is wrong on the user's side: one sentence on stderr, an exit code, no traceback, and nothing is lost."""

import errno
import os
import pickle
import random
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml

import sixjars

Maker = Callable[..., Any]


@pytest.fixture
def copy(run: Path, tmp_path: Path) -> Path:
    """A trained run, to break."""
    shutil.copytree(run, tmp_path / "copy")
    return tmp_path / "copy"


def train(call: Any, name: str, *more: object, out: Path) -> Any:
    return call("train", name, *more, "--out", out)


# recipes


def test_no_such_recipe(call: Any, tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text("")
    assert call("train", tmp_path / "mien.yaml").sentence == (
        f"recipe file {tmp_path / 'mien.yaml'} does not exist. Did you mean '{tmp_path / 'mine.yaml'}'?"
    )
    assert call("train", "translation/sample_atention").sentence == (
        "recipe 'translation/sample_atention' is unknown. Did you mean 'translation/sample_attention'? "
        "A recipe is a .yaml file or a name that `sixjars tasks` lists."
    )
    assert call("explain", "nothing.yaml").sentence == "recipe file nothing.yaml does not exist."


def test_six_faults_at_once(call: Any, recipe: Maker, tmp_path: Path) -> None:
    name = recipe(
        task="transliterate",
        data={"source": {"tokens": "charakters"}},
        model={"encoder": {"cell": "grru"}, "bridge": {"kind": "atention"}},
        learning={"rate": "fast"},
        evaluation={"metrics": ["exact_mach"]},
    )
    said = train(call, name, out=tmp_path / "run")
    lines = said.err.splitlines()
    assert said.code == 2
    assert said.out == ""
    assert lines[0] == f"sixjars: 6 faults in {name}:"
    assert [line[:4] for line in lines[1:]] == ["  - "] * 6
    for nearest in ("transliteration", "characters", "gru", "attention", "exact_match"):
        assert f"Did you mean '{nearest}'?" in said.err
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("learning.raet=1", "learning: key 'raet' is unknown. Did you mean 'rate'? Known: accumulate, "),
        ("learning.rate=-1", "learning.rate: should be greater than 0, but is -1."),
        ("model.encoder.size=big", "model.encoder.size: should be a valid integer, but is 'big'."),
        ("model.bridge.kind=initail", "model.bridge: kind 'initail' is unknown. Did you mean 'initial'? Known: "),
        ("loss.guide=1", ""),
    ],
)
def test_overrides(override: str, message: str, call: Any, recipe: Maker, tmp_path: Path) -> None:
    name = recipe()
    if message:
        sentence = train(call, name, override, out=tmp_path / "run").sentence
        assert sentence.startswith(f"{name}: {message}")
    else:
        bridge = recipe("initial.yaml", model={"bridge": {"kind": "initial", "size": ...}})
        assert train(call, bridge, override, out=tmp_path / "run").sentence == (
            f"{bridge}: loss.guide: needs a bridge of kind attention, but it is initial."
        )
    assert not (tmp_path / "run").exists()


def test_a_guide_or_a_metric_without_alignments(
    call: Any, pairs: Maker, from_file: Maker, tmp_path: Path, run: Path, language_model: Path
) -> None:
    name = from_file(pairs(), loss={"guide": 0.5}, evaluation={"metrics": ["alignment_error_rate"]})
    assert train(call, name, out=tmp_path / "run").err == (
        f"sixjars: 2 faults in {name}:\n"
        "  - loss.guide: needs true alignments, but data.alignment names no column.\n"
        "  - evaluation.metrics: alignment_error_rate needs true alignments, but data.alignment names no column.\n"
    )
    said = call("evaluate", language_model, "--metrics", "alignment_error_rate, perplexty")
    assert said.err.splitlines()[0] == "sixjars: 3 faults in the command line:"
    assert "  - --metrics: metric 'perplexty' is unknown. Did you mean 'perplexity'? Known: " in said.err
    assert call("evaluate", run, "--metrics", "alignment_error_rate").code == 0


def test_what_this_machine_cannot_do(call: Any, recipe: Maker, run: Path, tmp_path: Path) -> None:
    if torch.cuda.is_available():
        pytest.skip("this machine has a GPU")
    nothing = "the command line: --device cuda was asked for, but torch sees no CUDA device here."
    assert train(call, recipe(), "--device", "cuda", out=tmp_path / "run").sentence == nothing
    assert call("predict", run, "a", "--device", "cuda").sentence == nothing
    assert call("evaluate", run, "--device", "cuda").sentence == nothing
    assert train(call, recipe(), "learning.precision=fp16", out=tmp_path / "run").sentence == (
        "this recipe: learning.precision: fp16 needs a CUDA device; use bf16 or 32 on a CPU."
    )
    assert train(call, recipe(), "model.encoder.size=100000000", out=tmp_path / "huge").sentence == (
        "there is not enough memory for this; make batches or sizes smaller."
    )
    assert not (tmp_path / "run").exists()


# data


def test_no_such_data(call: Any, from_file: Maker, pairs: Maker, run: Path, tmp_path: Path) -> None:
    missing = tmp_path / "missing.tsv"
    assert train(call, from_file(missing), out=tmp_path / "run").sentence == f"{missing} does not exist."
    assert call("evaluate", run, "--data", missing).sentence == f"{missing} does not exist."
    wrong = train(call, from_file(pairs("pairs.xls")), out=tmp_path / "run2")
    assert wrong.sentence.startswith(f"{tmp_path / 'pairs.xls'}: ending '.xls' is unknown.")


ROWS: dict[str, tuple[bytes, str]] = {
    "too few columns": (b"alone", "line 14: "),
    "an empty column": (b"a\t ", "line 14: column 'de' is empty."),
    "not UTF-8": (b"a\tb\xff", "line 14: "),
}


@pytest.mark.parametrize("kind", ROWS)
def test_a_bad_row(kind: str, call: Any, from_file: Maker, pairs: Maker, tmp_path: Path) -> None:
    row, message = ROWS[kind]
    path = pairs(more=[row, b"good words\tgute worte"])
    said = train(call, from_file(path), out=tmp_path / "run")
    assert said.sentence.startswith(f"{path}, {message}")
    skipping = from_file(path, data={"on_bad_row": "skip"})
    said = train(call, skipping, out=tmp_path / "skipped")
    assert said.code == 0, said
    assert "1 bad rows of the data were skipped" in said.out
    said = call("evaluate", tmp_path / "skipped", "--data", path)
    assert said.out.splitlines()[0] == f"13 examples of {path}, 1 bad rows skipped"
    said = call("evaluate", tmp_path / "skipped", "--data", path, "--json")
    assert yaml.safe_load(said.out)["skipped"] == 1


def test_no_rows(call: Any, from_file: Maker, run: Path, tmp_path: Path) -> None:
    path = tmp_path / "a.tsv"
    for content in (b"", b"en\tde\n"):
        path.write_bytes(content)
        said = train(call, from_file(path), out=tmp_path / f"run{len(content)}")
        assert said.sentence.startswith(str(path))
    path.write_bytes(b"roman\tdevanagari\n")
    assert call("evaluate", run, "--data", path).sentence == f"{path} has no rows."
    path.write_bytes(b"en\tde\na\tb\n")
    assert train(call, from_file(path), out=tmp_path / "one").sentence == (
        f"data.valid: a fraction of 0.25 leaves nothing to train on; {path} has 1 inputs."
    )


def test_no_word_is_left(call: Any, from_file: Maker, pairs: Maker, tmp_path: Path) -> None:
    name = from_file(pairs(), data={"target": {"min_count": 1000}})
    assert train(call, name, out=tmp_path / "run").sentence == (
        "data.target: no token is left for the vocabulary with min_count 1000 and size 20000; "
        "lower min_count or raise size."
    )


def test_alignments_that_point_nowhere(call: Any, from_file: Maker, tmp_path: Path) -> None:
    path = tmp_path / "a.tsv"
    for links, message in (("0-9", "alignment 0-9 points outside the target"), ("0:0", "alignment '0:0' must be")):
        path.write_text("en\tde\tlinks\n" + "".join(f"a{n} b\tc d\t{links}\n" for n in range(8)))
        name = from_file(path, data={"alignment": "links"}, loss={"guide": 1})
        said = train(call, name, out=tmp_path / links.replace(":", "_"))
        assert said.sentence.startswith(f"{path}, line ")
        assert message in said.sentence


# texts


def test_empty_or_undecodable_text(call: Any, run: Path, tmp_path: Path) -> None:
    path, needs = tmp_path / "in.txt", "a transliteration model needs some text."
    for content, message in (
        (b"", "has no text; give texts, --input FILE or lines on standard input."),
        (b"a\n\nb\n", f"line 2 is empty; {needs}"),
        (b"a\n \t\n", f"line 2 is empty; {needs}"),
        (b"a\nb\xff\n", "line 2: byte 2 is not UTF-8 text."),
    ):
        path.write_bytes(content)
        joint = " " if message.startswith("has") else ", "
        assert call("predict", run, "--input", path).sentence == f"{path}{joint}{message}"
        assert call("predict", run, stdin=content).sentence == f"standard input{joint}{message}"
    assert call("predict", run, "a", "").sentence == f"input 2 is empty; {needs}"
    assert call("predict", run, stdin=None).sentence.startswith("standard input has no text;")
    broken = b"caf\xe9".decode("utf-8", "surrogateescape")  # as Python hands over such an argument
    assert "holds half a character" in call("predict", run, broken).sentence


def test_files_to_read_and_write(call: Any, run: Path, tmp_path: Path) -> None:
    path, out = tmp_path / "in.txt", tmp_path / "out.txt"
    assert call("predict", run, "--input", path).sentence == f"input file {path} does not exist."
    assert call("predict", run, "--input", tmp_path).sentence == f"input file {tmp_path} is a folder."
    path.write_text("namaste\n")
    assert call("predict", run, "a", "--input", path).sentence == "give texts or --input, not both."
    assert call("predict", run, "--input", path, "--output", path).sentence == (
        f"--input and --output are the same file, {path}; name another one to write."
    )
    assert path.read_text() == "namaste\n"
    there = tmp_path / "no" / "folder.txt"
    assert call("predict", run, "a", "--output", there).sentence == f"{there}: No such file or directory."
    assert call("predict", run, "a", "--output", tmp_path).sentence == f"{tmp_path}: Is a directory."
    out.write_text("of yesterday")
    assert call("predict", run, "", "--output", out).code == 2
    assert out.read_text() == "of yesterday"


# runs


def test_what_is_no_run(call: Any, tmp_path: Path, recipe: Maker) -> None:
    file = Path(recipe("a.yaml"))
    for command in ("predict", "evaluate"):
        assert call(command, tmp_path / "no").sentence == f"run folder {tmp_path / 'no'} does not exist."
        assert call(command, tmp_path).sentence == f"{tmp_path} is not a run folder: it has no recipe.yaml."
        assert call(command, file).sentence == f"{file} is not a run folder: it has no recipe.yaml."
    assert call("explain", tmp_path).sentence == f"{tmp_path} is not a run folder: it has no recipe.yaml."
    assert train(call, str(file), out=file).sentence == f"{file} is a file, not a folder for a run."


def test_a_run_without_weights(call: Any, copy: Path) -> None:
    for name in ("model.safetensors", "checkpoints/last.safetensors", "log.jsonl"):
        (copy / name).unlink()
    message = (
        f"{copy} has no trained weights yet (model.safetensors); they come with the first validation. "
        f"Go on with: sixjars train {copy / 'recipe.yaml'} --out {copy} --resume"
    )
    for command in (["predict", copy, "a"], ["evaluate", copy]):
        said = call(*command)
        assert (said.code, said.out, said.err) == (2, "", f"sixjars: {message}\n")
    assert call("train", copy / "recipe.yaml", "--out", copy, "--resume").code == 0
    (copy / "model.safetensors").unlink()
    assert call("train", copy / "recipe.yaml", "--out", copy, "--resume").sentence == (
        f"{copy / 'model.safetensors'} is gone, and only training from the start would bring it back; "
        "begin a new run with another --out."
    )


def damaged(content: bytes, how: str) -> bytes:
    noise = random.Random(0).randbytes(2000)
    return {"cut": content[: len(content) // 2], "empty": b"", "noise": noise, "tail": content[:-1]}[how]


@pytest.mark.parametrize("how", ["cut", "empty", "noise", "tail"])
def test_damaged_weights(how: str, call: Any, copy: Path) -> None:
    path = copy / "model.safetensors"
    path.write_bytes(damaged(path.read_bytes(), how))
    for command in (["predict", copy, "a"], ["evaluate", copy]):
        assert call(*command).sentence.startswith(f"{path} is damaged: ")


def test_weights_of_another_model(call: Any, copy: Path, language_model: Path, recipe: Maker, tmp_path: Path) -> None:
    path = copy / "model.safetensors"
    shutil.copy(language_model / "model.safetensors", path)
    assert call("predict", copy, "a").sentence.startswith(f"{path} does not fit the recipe beside it: ")
    other = sixjars.train(recipe(model={"encoder": {"size": 9}}), out=tmp_path / "other")
    shutil.copy(other.folder / "model.safetensors", path)
    assert call("predict", copy, "a").sentence == (
        f"{path} does not fit the recipe beside it: decoder.bridge.first.project.weight is (8, 9), "
        "but should be (8, 8)."
    )


@pytest.mark.parametrize("how", ["cut", "empty", "noise"])
@pytest.mark.parametrize("field", ["source", "target"])
def test_damaged_tokens(field: str, how: str, call: Any, copy: Path) -> None:
    path = copy / "tokens" / f"{field}.json"
    path.write_bytes(damaged(path.read_bytes(), how))
    for command in (["predict", copy, "a"], ["evaluate", copy], ["explain", copy]):
        assert call(*command).sentence.startswith(f"{path} is damaged: ")
    path.unlink()
    assert call("predict", copy, "a").sentence == (
        f"{copy} has no vocabulary (tokens/{field}.json); it was damaged, or killed at its start."
    )


@pytest.mark.parametrize("how", ["cut", "empty", "noise"])
def test_damaged_recipe(how: str, call: Any, copy: Path, run_recipe: str) -> None:
    path = copy / "recipe.yaml"
    path.write_bytes(damaged(path.read_bytes(), how))
    for command in (["predict", copy, "a"], ["evaluate", copy], ["train", run_recipe, "--out", copy, "--resume"]):
        said = call(*command)
        assert said.code == 2
        assert said.err.startswith((f"sixjars: {path}: ", "sixjars: "))
        assert str(path) in said.err
        assert "Traceback" not in said.err


def test_a_damaged_state(call: Any, copy: Path, run_recipe: str) -> None:
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
        "tokens/source.json": pickle.dumps(Bomb(touched)),
        "recipe.yaml": f"task: !!python/object/apply:subprocess.call [[touch, {touched}]]\n".encode(),
    }
    for name, content in hostile.items():
        kept = (copy / name).read_bytes()
        (copy / name).write_bytes(content)
        for command in (["predict", copy, "a"], ["evaluate", copy], ["explain", copy]):
            call(*command)
        said = call("train", run_recipe, "--out", copy, "--resume")
        assert said.code == 2 or name == "model.safetensors", said
        (copy / name).write_bytes(kept)
    (copy / "recipe.yaml").write_text((copy / "recipe.yaml").read_text().replace("kind: text", "kind: os.system"))
    assert "kind 'os.system' is unknown" in call("predict", copy, "a").sentence
    assert not touched.exists()


# the machine


def test_no_space_left(
    call: Any, copy: Path, recipe: Maker, run_recipe: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = recipe(learning={"save_seconds": 0})
    real, left = os.fsync, 8

    def full(number: int) -> None:
        nonlocal left
        left -= 1
        if left < 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        real(number)

    monkeypatch.setattr(os, "fsync", full)
    said = train(call, name, out=tmp_path / "run")
    last = [line for line in said.err.splitlines() if not line.startswith("epoch")]
    assert said.code == 2
    assert len(last) == 1
    assert last[0].startswith("sixjars: no space left to write ")
    assert last[0].endswith("; what was saved before is still there.")
    monkeypatch.undo()
    assert not list((tmp_path / "run").rglob(".*.part"))
    assert call("train", name, "--out", tmp_path / "run", "--resume").code == 0
    whole = sixjars.train(name, out=tmp_path / "whole").folder
    for file in ("model.safetensors", "log.jsonl"):
        assert (tmp_path / "run" / file).read_bytes() == (whole / file).read_bytes()


def test_a_full_device(call: Any, run: Path) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("there is no /dev/full")
    assert call("predict", run, "a", "--output", "/dev/full").sentence == (
        "output: No space left on device; what was saved before is still there."
    )


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 200 kB."""
    folder = tmp_path / "small"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=200k", "tmpfs", folder], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("no file system can be mounted here")
    yield folder
    subprocess.run(["umount", folder], check=True)


def test_really_no_space_left(call: Any, recipe: Maker, small_disk: Path) -> None:
    said = call("train", recipe(learning={"average": 50, "epochs": 30}), "--out", small_disk / "run")
    last = [line for line in said.err.splitlines() if not line.startswith("epoch")]
    assert said.code == 2, said
    assert len(last) == 1
    assert last[0].startswith("sixjars: no space left to write ")
    assert call("predict", small_disk / "run", "namaste").code == 0


def test_a_folder_that_may_not_be_written(call: Any, recipe: Maker, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("")
    said = train(call, recipe(), out=file / "run")
    assert said.sentence == f"{file / 'run' / 'run.json'} cannot be written: Not a directory."
    if os.geteuid() == 0:
        folder = Path("/proc/sixjars")  # where not even root may
        assert train(call, recipe(), out=folder).sentence == (
            f"{folder / 'run.json'} cannot be written: No such file or directory."
        )
    else:
        folder = tmp_path / "locked"
        folder.mkdir(mode=0o555)
        assert train(call, recipe(), out=folder).sentence == (
            f"{folder / 'run.json'} cannot be written: Permission denied."
        )


def test_a_loss_that_is_no_number(call: Any, recipe: Maker, tmp_path: Path) -> None:
    name = recipe(learning={"rate": 1e38, "optimizer": "sgd", "clip": None})
    said = train(call, name, out=tmp_path / "run")
    assert said.sentence == "the loss is no longer a number at update 2; try a lower learning.rate."
    said = train(call, name, "learning.validate_every=1", out=tmp_path / "run2")
    assert said.sentence == "the validation loss is no longer a number; try a lower learning.rate."
    assert not (tmp_path / "run2" / "model.safetensors").exists()


PHASES: dict[str, tuple[str, list[str], str]] = {
    "reading a recipe": ("sixjars.runs.train.read_recipe", ["train"], "stopped."),
    "reading data": (
        "sixjars.runs.train.corpus_of",
        ["train"],
        "stopped; the same command with --resume goes on from what {out} holds.",
    ),
    "training": (
        "sixjars.loss.token_loss",
        ["train"],
        "stopped at update 1 of 8; the same command with --resume goes on from there.",
    ),
    "scoring": (
        "sixjars.runs.train._finished",
        ["train"],
        "stopped; the same command with --resume goes on from what {out} holds.",
    ),
    "predicting": ("sixjars.runs.predict.found_by", ["predict", "a"], "stopped."),
    "evaluating": ("sixjars.runs.evaluate.scores_of", ["evaluate"], "stopped."),
}


@pytest.mark.parametrize("sort", ["SIGINT", "SIGTERM"])
@pytest.mark.parametrize("phase", PHASES)
def test_stopped_in_any_phase(phase: str, sort: str, server: Any, recipe: Maker, run: Path, tmp_path: Path) -> None:
    place, (command, *more), message = PHASES[phase]
    out, name = tmp_path / "run", recipe()
    module = place.rpartition(".")[0]
    before = f"""
import os, signal, {module}
real = {place}
def stopped(*arguments, **more):
    os.kill(os.getpid(), signal.{sort})
    return real(*arguments, **more)
{place} = stopped
"""
    arguments = ["train", name, "--out", out] if command == "train" else [command, run, *more]
    said = server.run(*arguments, before=before)
    assert said.code == 130, said
    last = [line for line in said.err.splitlines() if not line.startswith("epoch")]
    assert last == [f"sixjars: {message.format(out=out)}"]
    if command == "train" and (out / "recipe.yaml").exists():
        assert server.run("train", name, "--out", out, "--resume").code == 0
        whole = sixjars.train(name, out=tmp_path / "whole").folder
        for file in ("model.safetensors", "log.jsonl", "scores.json"):
            assert (out / file).read_bytes() == (whole / file).read_bytes()


def test_a_second_wish_does_not_wait(server: Any, recipe: Maker, tmp_path: Path) -> None:
    """An update that never ends is left by one more Ctrl-C."""
    before = """
import time
import sixjars.loss
sixjars.loss.token_loss = lambda *arguments, **more: [time.sleep(0.05) for _ in range(10_000)]
"""
    process = server.start("train", recipe(), "--out", tmp_path / "run", before=before)
    while not (tmp_path / "run" / "tokens" / "target.json").exists():
        signal.sigtimedwait([], 0.01)
    signal.sigtimedwait([], 0.5)
    process.kill(signal.SIGINT)
    signal.sigtimedwait([], 1.2)
    process.kill(signal.SIGINT)
    said = process.wait()
    assert said.code == 130
    assert said.err == f"sixjars: stopped; the same command with --resume goes on from what {tmp_path / 'run'} holds.\n"


def test_what_cannot_be_built_leaves_no_run_behind(call: Callable[..., Any], tmp_path: Path) -> None:
    """The mended command runs at once, without --resume and without another folder."""
    few = ["learning.steps=1", "data.sample.size=32", "model.encoder.size=8", "model.decoder.size=8"]
    arguments = ["train", "transliteration/sample_attention", *few, "--out", str(tmp_path / "run")]
    refused = call(*arguments, "model.bridge={kind: attention, score: dot}")
    assert refused.code == 2
    assert "score: dot needs a decoder state as large as the encoder's, but they have 8 and 16 numbers." in refused.err
    assert not (tmp_path / "run").exists()
    assert call(*arguments).code == 0
