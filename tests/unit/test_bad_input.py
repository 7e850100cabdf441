"""Whatever is wrong on the user's side: one sentence, an exit code, and nothing is lost."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml

Maker = Callable[..., Any]


# recipes


def test_no_such_recipe(call: Any, tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text("")
    assert call("train", tmp_path / "mien.yaml").sentence == (
        f"recipe file {tmp_path / 'mien.yaml'} does not exist. Did you mean "
        f"'{tmp_path / 'mine.yaml'}'?"
    )
    assert call("train", "translation/sample_atention").sentence == (
        "recipe 'translation/sample_atention' is unknown. Did you mean "
        "'translation/sample_attention'? "
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
    said = call("train", name, "--out", tmp_path / "run")
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
        (
            "learning.raet=1",
            "learning: key 'raet' is unknown. Did you mean 'rate'? Known: accumulate, ",
        ),
        ("learning.rate=-1", "learning.rate: should be greater than 0, but is -1."),
        ("model.encoder.size=big", "model.encoder.size: should be a valid integer, but is 'big'."),
        (
            "model.bridge.kind=initail",
            "model.bridge: kind 'initail' is unknown. Did you mean 'initial'? Known: ",
        ),
        ("loss.guide=1", ""),
    ],
)
def test_overrides(override: str, message: str, call: Any, recipe: Maker, tmp_path: Path) -> None:
    name = recipe()
    if message:
        sentence = call("train", name, override, "--out", tmp_path / "run").sentence
        assert sentence.startswith(f"{name}: {message}")
    else:
        bridge = recipe("initial.yaml", model={"bridge": {"kind": "initial", "size": ...}})
        assert call("train", bridge, override, "--out", tmp_path / "run").sentence == (
            f"{bridge}: loss.guide: needs a bridge of kind attention, location or two_level, but "
            "it is initial."
        )
    assert not (tmp_path / "run").exists()


def test_a_guide_or_a_metric_without_alignments(
    call: Any, pairs: Maker, from_file: Maker, tmp_path: Path, run: Path, language_model: Path
) -> None:
    name = from_file(pairs(), loss={"guide": 0.5}, evaluation={"metrics": ["alignment_error_rate"]})
    assert call("train", name, "--out", tmp_path / "run").err == (
        f"sixjars: 2 faults in {name}:\n"
        "  - loss.guide: needs true alignments, but data.alignment names no column; name one, or "
        "say data.alignment: "
        "learn, which aligns the words.\n"
        "  - evaluation.metrics: alignment_error_rate needs true alignments, but data.alignment "
        "names no column.\n"
    )
    said = call("evaluate", language_model, "--metrics", "alignment_error_rate, perplexty")
    assert said.err.splitlines()[0] == "sixjars: 3 faults in the command line:"
    told = "  - --metrics: metric 'perplexty' is unknown. Did you mean 'perplexity'? Known: "
    assert told in said.err
    assert call("evaluate", run, "--metrics", "alignment_error_rate").code == 0


def test_what_this_machine_cannot_do(call: Any, recipe: Maker, run: Path, tmp_path: Path) -> None:
    if torch.cuda.is_available():
        pytest.skip("this machine has a GPU")
    nothing = "the command line: --device cuda was asked for, but torch sees no CUDA device here."
    assert (
        call("train", recipe(), "--device", "cuda", "--out", tmp_path / "run").sentence == nothing
    )
    assert call("predict", run, "a", "--device", "cuda").sentence == nothing
    assert call("evaluate", run, "--device", "cuda").sentence == nothing
    assert call(
        "train", recipe(), "learning.precision=fp16", "--out", tmp_path / "run"
    ).sentence == (
        "this recipe: learning.precision: fp16 needs a CUDA device; use bf16 or 32 on a CPU."
    )
    largest = r"encoder\.rnn\.layers\.0\.left_to_right\.stack\.weight_hh_l0 \(3000000, 1000000\) takes 48,000 GB, .+"
    assert re.fullmatch(
        r"training this recipe needs about 48,001 GB of memory \(weights, gradients and the "
        r"optimizer's numbers\), but "
        rf"[\d.,]+ [GM]B are free\. The largest: {largest}\. Lower model\.encoder\.size, "
        r"model\.decoder\.size\.",
        call("train", recipe(), "model.encoder.size=1000000", "--out", tmp_path / "huge").sentence,
    )
    assert not (tmp_path / "huge").exists()
    assert not (tmp_path / "run").exists()


# data


def test_no_such_data(call: Any, from_file: Maker, pairs: Maker, run: Path, tmp_path: Path) -> None:
    missing = tmp_path / "missing.tsv"
    sentence = call("train", from_file(missing), "--out", tmp_path / "run").sentence
    assert sentence == f"{missing} does not exist."
    assert call("evaluate", run, "--data", missing).sentence == f"{missing} does not exist."
    wrong = call("train", from_file(pairs("pairs.xls")), "--out", tmp_path / "run2")
    assert wrong.sentence.startswith(f"{tmp_path / 'pairs.xls'}: ending '.xls' is unknown.")


SEEN = "note: the run was trained on rows of this file; a score on them says little of new ones."
ROWS: dict[str, tuple[bytes, str]] = {
    "too few columns": (b"alone", "line 14: "),
    "an empty column": (b"a\t ", "line 14: column 'de' is empty."),
    "not UTF-8": (b"a\tb\xff", "line 14: "),
}


@pytest.mark.parametrize("kind", ROWS)
def test_a_bad_row(kind: str, call: Any, from_file: Maker, pairs: Maker, tmp_path: Path) -> None:
    row, message = ROWS[kind]
    path = pairs(more=[row, b"good words\tgute worte"])
    said = call("train", from_file(path), "--out", tmp_path / "run")
    assert said.sentence.startswith(f"{path}, {message}")
    skipping = from_file(path, data={"on_bad_row": "skip"})
    said = call("train", skipping, "--out", tmp_path / "skipped")
    assert said.code == 0, said
    assert "1 bad row of the data was skipped" in said.out
    said = call("evaluate", tmp_path / "skipped", "--data", path)
    assert said.out.splitlines()[0] == f"13 examples of {path}, 1 bad row skipped"
    assert said.err.splitlines()[0] == SEEN
    said = call("evaluate", tmp_path / "skipped", "--data", path, "--json")
    assert yaml.safe_load(said.out)["skipped"] == 1
    other = path.with_name("other.tsv")
    other.write_bytes(path.read_bytes())
    assert SEEN not in call("evaluate", tmp_path / "skipped", "--data", other).err


def test_no_rows(call: Any, from_file: Maker, run: Path, tmp_path: Path) -> None:
    path = tmp_path / "a.tsv"
    for content in (b"", b"en\tde\n"):
        path.write_bytes(content)
        said = call("train", from_file(path), "--out", tmp_path / f"run{len(content)}")
        assert said.sentence.startswith(str(path))
    path.write_bytes(b"roman\tdevanagari\n")
    assert call("evaluate", run, "--data", path).sentence == f"{path} has no rows."
    path.write_bytes(b"en\tde\na\tb\n")
    told = f"data.valid: a fraction of 0.25 leaves nothing to train on; {path} has 1 input."
    assert call("train", from_file(path), "--out", tmp_path / "one").sentence == told


def test_no_word_is_left(call: Any, from_file: Maker, pairs: Maker, tmp_path: Path) -> None:
    name = from_file(pairs(), data={"target": {"min_count": 1000}})
    assert call("train", name, "--out", tmp_path / "run").sentence == (
        "data.target: no token is left for the vocabulary with min_count 1000 and size 20000; "
        "lower min_count or raise size."
    )


def test_alignments_that_point_nowhere(call: Any, from_file: Maker, tmp_path: Path) -> None:
    path = tmp_path / "a.tsv"
    for links, message in (
        ("0-9", "alignment 0-9 points outside the target"),
        ("0:0", "alignment '0:0' must be"),
    ):
        path.write_text("en\tde\tlinks\n" + "".join(f"a{n} b\tc d\t{links}\n" for n in range(8)))
        name = from_file(path, data={"alignment": "links"}, loss={"guide": 1})
        said = call("train", name, "--out", tmp_path / links.replace(":", "_"))
        assert said.sentence.startswith(f"{path}, line ")
        assert message in said.sentence


# texts


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b"", "the source is empty."),
        (b" \t", "the source is empty."),
        (b"b\xff", "byte 2 of the source (0xff) is not UTF-8; give it in UTF-8."),
    ],
)
def test_a_bad_line_spoils_only_its_own_answer(
    line: bytes, message: str, call: Any, run: Path, tmp_path: Path
) -> None:
    path, content = tmp_path / "in.txt", b"namaste\n" + line + b"\nghar\n"
    path.write_bytes(content)
    good = [call("predict", run, text).out for text in ("namaste", "ghar")]
    notes = f"note: 1 of 3 inputs was skipped, and its answer is empty: {message.removesuffix('.')} (input 2).\n"
    for said in (call("predict", run, "--input", path), call("predict", run, stdin=content)):
        assert (said.code, said.out, said.err) == (0, f"{good[0]}\n{good[1]}", notes)
    said = call("predict", run, "--json", stdin=content)
    expected = [None, f"input 2: {message}", None]
    assert [yaml.safe_load(row).get("error") for row in said.out.splitlines()] == expected
    alone = line.decode("utf-8", "surrogateescape")  # as Python hands over such an argument
    assert call("predict", run, alone).sentence == f"input 1: {message}"


def test_nothing_to_predict_from(call: Any, run: Path, tmp_path: Path) -> None:
    (tmp_path / "in.txt").write_bytes(b"")
    nothing = "has no text; give texts, --input FILE or lines on standard input."
    sentence = call("predict", run, "--input", tmp_path / "in.txt").sentence
    assert sentence == f"{tmp_path / 'in.txt'} {nothing}"
    assert call("predict", run, stdin=b"").sentence == f"standard input {nothing}"
    assert call("predict", run, stdin=None).sentence == f"standard input {nothing}"


def test_files_to_read_and_write(call: Any, run: Path, tmp_path: Path) -> None:
    path, out = tmp_path / "in.txt", tmp_path / "out.txt"
    assert call("predict", run, "--input", path).sentence == f"input file {path} does not exist."
    told = f"answers to --input {tmp_path} are files: give --output, a folder for them."
    assert call("predict", run, "--input", tmp_path).sentence == told
    path.write_text("namaste\n")
    assert call("predict", run, "a", "--input", path).sentence == "give texts or --input, not both."
    told = f"--input and --output are the same file, {path}; name another one to write."
    assert call("predict", run, "--input", path, "--output", path).sentence == told
    told = "--json writes JSON lines, but --output is out.csv; name it .jsonl, or leave out --json."
    assert call("predict", run, "a", "--json", "--output", "out.csv").sentence == told
    assert path.read_text() == "namaste\n"
    there = tmp_path / "no" / "folder.txt"
    sentence = call("predict", run, "a", "--output", there).sentence
    assert sentence == f"{there}: No such file or directory."
    told = f"{tmp_path}: Is a directory."
    assert call("predict", run, "a", "--output", tmp_path).sentence == told
    out.write_text("of yesterday")
    assert call("predict", run, "", "--output", out).code == 2
    assert out.read_text() == "of yesterday"
