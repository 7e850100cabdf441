"""The command line: what it shows, how fast it answers, and that pipes work."""

import json
import os
import platform
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import sixjars
from sixjars.recipe.files import packaged
from sixjars.samples import generate
from sixjars.tasks import TASKS
from tests.unit.trained import one_step

SIXJARS = str(Path(sys.executable).with_name("sixjars"))
COMMANDS = [
    *("cache", "compare", "demo", "evaluate", "explain", "features"),
    *("new", "pack", "predict", "sample", "score", "tasks", "train", "tune"),
]
UNUSED = {
    *("lightning_fabric", "matplotlib", "numpy.ma", "numpy.random", "PIL", "pyarrow.compute"),
    *("rich", "sympy", "torch._dynamo", "torch._inductor", "triton"),
    *("sixjars.data.tables", "sixjars.drawing", "sixjars.learning.loop", "sixjars.runs.train"),
}
"""What a prediction of a text has no use for."""
HEAVY = {
    *("torch", "numpy", "pyarrow", "pydantic", "lightning_fabric"),
    *("tokenizers", "yaml", "PIL", "rich.console"),
}


def shell(line: str, **env: str) -> "subprocess.CompletedProcess[bytes]":
    command = ["bash", "-o", "pipefail", "-c", line]
    return subprocess.run(command, capture_output=True, check=False, env={**os.environ, **env})


def test_help_loads_nothing_heavy() -> None:
    """So it answers at once; how fast that is, `benchmarks/` tells."""
    code = "import sys; from sixjars.cli import main; sys.argv = ['sixjars', '--help']; main()"
    code = f"import atexit, sys; atexit.register(lambda: print(sorted({HEAVY!r} & set(sys.modules)))); {code[12:]}"
    said = subprocess.check_output([sys.executable, "-c", code]).decode()
    assert [name for name in COMMANDS if f"\n  {name} " in said] == COMMANDS
    assert said.splitlines()[-1] == "[]"


def test_a_first_prediction_loads_only_what_it_uses(run: Path) -> None:
    """And its end is quick: Python looks through nothing for garbage then."""
    code = f"""
import atexit, gc, sys, torch
from sixjars.cli import main

unused = {UNUSED!r} - set(sys.modules)
atexit.register(lambda: print(sorted(unused & set(sys.modules)), gc.get_freeze_count() > 100_000))
sys.argv = ["sixjars", "predict", {str(run)!r}, "ghar", "--device", "cpu"]
main()
"""
    said = subprocess.check_output([sys.executable, "-c", code]).decode().splitlines()
    assert (len(said), said[-1]) == (2, "[] True")


FAULTS = """
import resource
from sixjars.cli import keep_memory

keep_memory()
for turn in range(9):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    blocks = [bytearray(b"x") * (24 << 20) for _ in range(3)]
    del blocks
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="is for the GNU C library")
def test_memory_is_kept_but_not_where_somebody_said_otherwise() -> None:
    """Pages of 4 KB that are asked of the system once more, for 72 MB that were just freed."""
    command = [sys.executable, "-c", FAULTS]
    ours = ("MALLOC_", "GLIBC_")
    plain = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    kept, given = (
        int(subprocess.check_output(command, env={**plain, **more}))
        for more in ({}, {"MALLOC_TRIM_THRESHOLD_": "1"})
    )
    assert kept < 1000 < given


def test_every_command_has_help(call: Any) -> None:
    for command in COMMANDS:
        said = call(command, "--help")
        assert said.code == 0
        assert said.out.startswith(f"Usage: sixjars {command} ")
    assert call().out == call("--help").out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["trian"], "No such command 'trian'. Did you mean 'train'? See: sixjars --help"),
        (["train"], "Missing argument 'RECIPE'. See: sixjars train --help"),
        (["train", "x", "--devise", "cpu"], "No such option: --devise"),
        (["train", "x", "--device", "gpu"], "Invalid value for '--device'"),
        (["train", "x", "--devices", "0"], "Invalid value for '--devices'"),
        (["train", "x", "--seed", "-1"], "Invalid value for '--seed'"),
        (["predict", "x", "--nbest", "two"], "Invalid value for '--nbest'"),
        (["predict", "x", "--search", "bfs"], "Invalid value for '--search'"),
    ],
)
def test_the_grammar_of_the_command_line(arguments: list[str], message: str, call: Any) -> None:
    said = call(*arguments)
    assert said.code == 2
    assert said.sentence.startswith(message)
    assert said.sentence.endswith(" --help")


def test_our_own_mistakes_are_shown_whole(call: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def mistaken() -> dict[str, Path]:
        raise ZeroDivisionError("ours")

    monkeypatch.setattr("sixjars.recipe.files.packaged", mistaken)
    monkeypatch.setattr(sys, "argv", ["sixjars", "tasks"])
    with pytest.raises(ZeroDivisionError, match="ours"):
        sixjars.cli.main()


def test_tasks(call: Any) -> None:
    text = call("tasks").out
    for task in TASKS.values():
        assert f"{task.number:4}{task.name}" in text
    for name in packaged():
        assert f"      {name}\n" in text
    listed = json.loads(call("tasks", "--json").out)
    assert [task["name"] for task in listed] == list(TASKS)
    assert sorted(name for task in listed for name in task["recipes"]) == sorted(packaged())


def test_training_shows_its_way_and_its_end(
    call: Any, recipe: Callable[..., str], tmp_path: Path
) -> None:
    name = recipe(expect={"character_error_rate": 0.001})
    said = call("train", name, "--out", tmp_path / "run", "--seed", 3)
    assert said.code == 0
    shown = said.err.splitlines()
    facts = ["device", "rows", "source", "target", "parameters", "steps", "path", "search"]
    assert [line.split()[0] for line in shown[:8]] == facts
    few = "note: the validation set has 8 examples, too few to choose a checkpoint by; "
    assert shown[8].startswith(few)
    epochs = [line.split("train loss")[0].split() for line in shown[9:11]]
    assert epochs == [["epoch", "1", "step", "4"], ["epoch", "2", "step", "8"]]
    assert shown[11].startswith("note: character_error_rate is ")
    assert shown[11].endswith(", but the recipe expects at most 0.001.")
    assert said.out.splitlines()[0] == "8 examples of the test set of the sample"
    assert said.out.splitlines()[-1] == f"run: {tmp_path / 'run'}"
    assert json.loads((tmp_path / "run" / "run.json").read_text())["seed"] == 3
    first = (tmp_path / "run" / "model.safetensors").read_bytes()
    for seed in (3, 4):
        again = sixjars.train(name, [f"learning.seed={seed}"], out=tmp_path / str(seed)).folder
        assert ((again / "model.safetensors").read_bytes() == first) == (seed == 3)


def test_the_folder_when_nobody_names_one(
    call: Any, recipe: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert call("train", recipe("mine.yaml")).code == 0
    assert (tmp_path / "runs" / "mine" / "model.safetensors").is_file()


def evaluated(call: Any, run: Path, *options: object) -> Any:
    return json.loads(call("evaluate", run, *options, "--json").out)


def test_evaluate(call: Any, run: Path) -> None:
    found = evaluated(call, run)
    assert (found["examples"], found["skipped"]) == (8, 0)
    assert found["data"] == "the test set of the sample"
    score = found["scores"]["character_error_rate"]
    kept = json.loads((run / "scores.json").read_text())["scores"]["character_error_rate"]
    assert score["value"] == pytest.approx(kept["value"])
    assert score["signature"] == kept["signature"]
    said = call("evaluate", run)
    assert said.err == ""
    assert said.out.splitlines()[0] == "8 examples of the test set of the sample"
    assert score["signature"] in said.out
    both = evaluated(call, run, "--metrics", "bleu, accuracy@3")["scores"]
    assert list(both) == ["bleu", "accuracy@3"]
    assert both["bleu"]["signature"].startswith("nrefs:1|")


def test_evaluate_another_file(call: Any, run: Path, tmp_path: Path) -> None:
    """A synthetic corpus as a file, in its own columns, scores what it scores as a sample."""
    path = tmp_path / "test.jsonl"
    rows = generate("transliteration", size=64, valid=8, test=8)["test"]
    path.write_text("\n".join(json.dumps(row) for row in rows))
    metrics = ["--metrics", "character_error_rate,alignment_error_rate"]
    own, file = (evaluated(call, run, *more, *metrics) for more in ([], ["--data", path]))
    assert file["data"] == str(path)
    assert file["scores"] == own["scores"]
    short = [{key: row[key] for key in ("roman", "devanagari")} for row in rows]
    path.write_text("\n".join(json.dumps(row) for row in short))
    again = evaluated(call, run, "--data", path)["scores"]["character_error_rate"]
    assert again == own["scores"]["character_error_rate"]
    said = call("evaluate", run, "--data", path, *metrics)
    assert "'alignment' is unknown" in said.sentence
    path.write_text('{"english": "a"}\n')
    assert "'roman' is unknown" in call("evaluate", run, "--data", path).sentence


def test_explain(call: Any, run: Path, run_recipe: str) -> None:
    of_run, of_recipe = call("explain", run), call("explain", run_recipe)
    assert of_run.code == of_recipe.code == 0
    assert of_run.out == of_recipe.out
    equation = "e_jt = V_attᵀ tanh(U_att s_{t-1} + W_att h_j)"
    for words in (equation, "S5 transliteration", "64 training"):
        assert words in of_run.out
    told = json.loads(call("explain", run, "--json").out)
    count = sum(tensor.numel() for tensor in sixjars.load(run).network.parameters())
    assert told["trainable_parameters"] == count
    assert f"{count:,} trainable parameters." in of_run.out
    weights = [weight for section in told["sections"] for weight in section["weights"]]
    assert sum(weight["count"] for weight in weights) == count


def test_explain_without_the_data(call: Any, from_file: Callable[..., str], tmp_path: Path) -> None:
    said = call("explain", from_file(tmp_path / "gone.tsv"))
    assert said.code == 0
    assert "the data is not here" in said.out


def test_pipes(run: Path, tmp_path: Path, warm_python: str) -> None:
    (tmp_path / "many.txt").write_text("namaste\n" * 5000)
    warm = f"{warm_python} {SIXJARS}"
    for line in (
        f"{SIXJARS} tasks | head -1",
        f"{warm} predict {run} --input {tmp_path / 'many.txt'} --set max_length=3 | head -1",
        f"{warm} explain {run} --json | true",
    ):
        said = shell(line)
        assert said.stderr == b"", line
        assert said.stdout.count(b"\n") <= 1
    said = shell(f"echo namaste | {warm} predict {run} --json | cat")
    assert said.returncode == 0
    assert json.loads(said.stdout)["input"] == "namaste"


def test_a_terminal_that_knows_no_devanagari(run: Path) -> None:
    said = shell(f"{SIXJARS} predict {run} namaste", PYTHONIOENCODING="ascii", LC_ALL="C")
    assert said.returncode == 0
    assert said.stderr == b""
    assert said.stdout.startswith(b"\\u09")


def test_as_a_module() -> None:
    command = [sys.executable, "-m", "sixjars", "train", "no.yaml"]
    code = subprocess.run(command, capture_output=True, check=False)
    assert (code.returncode, code.stdout) == (2, b"")
    assert code.stderr == b"sixjars: recipe file no.yaml does not exist.\n"


def test_a_text_that_is_the_name_of_a_file(
    call: Any, run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    plain = call("predict", run, "neu.csv", "a" * 5000)
    assert "neu.csv" not in plain.err
    (tmp_path / "neu.csv").write_text("roman\nghar\n")
    said = call("predict", run, "neu.csv", "a" * 5000)
    assert (said.code, said.out) == (plain.code, plain.out)
    note = "note: neu.csv is the name of a file; to read it, say --input neu.csv."
    assert said.err == f"{note}\n{plain.err}"


@pytest.mark.usefixtures("unrendered")
def test_pictures_of_what_was_attended_to(call: Any, run: Path, tmp_path: Path) -> None:
    said = call("predict", run, "ghar", "ja", "--nbest", "2", "--pictures", tmp_path / "seen")
    assert said.code == 0
    assert said.err.endswith(f"the pictures are in {tmp_path / 'seen'}\n")
    names = sorted(path.name for path in (tmp_path / "seen").iterdir())
    assert names == ["1-ghar-1.png", "1-ghar-2.png", "2-ja-1.png", "2-ja-2.png"]
    plain = one_step("transliteration/sample_initial", tmp_path / "p", size=32)
    refused = call("predict", plain, "ghar", "--pictures", tmp_path / "none")
    assert refused.sentence == (
        f"--pictures draws attention, but {plain} has none; its bridge is of another kind: "
        "train again with 'model.bridge={kind: attention}'."
    )


def test_pictures_need_a_folder(call: Any, tmp_path: Path) -> None:
    file = tmp_path / "mine.txt"
    file.touch()
    sentence = call("predict", "run", "ghar", "--pictures", file).sentence
    assert sentence == f"--pictures {file} is a file; name a folder."


def test_version(call: Any) -> None:
    assert call("--version").out.strip() == sixjars.__version__


def test_a_run_is_explained_as_it_is(call: Any, run: Path) -> None:
    told = "the command line: a run is explained as it is; only a recipe takes KEY=VALUE."
    assert call("explain", run, "model.encoder.layers=2").sentence == told
