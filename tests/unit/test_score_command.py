"""`sixjars score` and `sixjars evaluate --output`: every example with its numbers."""

import json
import math
import shutil
from pathlib import Path
from typing import Any

import pytest

import sixjars
from sixjars.evaluation.metrics.table import METRICS


@pytest.fixture
def pairs_file(run: Path, tmp_path: Path) -> Path:
    texts = ["namaste", "ghar", "a"]
    found = sixjars.load(run).predict(texts)
    rows = [
        {"roman": text, "devanagari": one.text or "क"}
        for text, one in zip(texts, found, strict=True)
    ]
    path = tmp_path / "pairs.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_given_outputs_are_scored_as_search_scores_them(
    call: Any, run: Path, pairs_file: Path
) -> None:
    """Greedy search found these outputs one token at a time; teacher forcing gives the same log probability."""
    searched = sixjars.load(run).predict(["namaste", "ghar", "a"])
    said = call("score", run, pairs_file)
    values = [float(line) for line in said.out.splitlines()]
    ended = [at for at, one in enumerate(searched) if one.finished and one.text]
    assert ended
    for at in ended:
        assert values[at] == pytest.approx(searched[at].log_probability, abs=1e-4)
    for line, value in zip(
        call("score", run, pairs_file, "--json").out.splitlines(), values, strict=True
    ):
        whole = json.loads(line)
        assert whole["log_probability"] == pytest.approx(value, abs=1e-5)
        assert sum(whole["token_log_probabilities"]) == pytest.approx(value, abs=1e-5)
        assert len(whole["tokens"]) == len(whole["token_log_probabilities"])
        assert whole["tokens"][-1] == "<stop>"


def test_rows_that_are_left_out_are_counted(
    call: Any, run: Path, pairs_file: Path, tmp_path: Path
) -> None:
    run = shutil.copytree(run, tmp_path / "lenient")
    recipe = (run / "recipe.yaml").read_text()
    assert "on_bad_row: error" in recipe
    (run / "recipe.yaml").write_text(recipe.replace("on_bad_row: error", "on_bad_row: skip"))
    first, *others = pairs_file.read_text().splitlines(keepends=True)
    pairs_file.write_text(
        first + json.dumps({"roman": "ghar", "devanagari": ""}) + "\n" + "".join(others)
    )
    said = call("score", run, pairs_file, "--json")
    assert [json.loads(line)["line"] for line in said.out.splitlines()] == [1, 3, 4]
    assert (
        f"left out: 1 bad row of {pairs_file}; --json has the line of each of the others."
        in said.err
    )


def test_columns_that_are_not_there(call: Any, run: Path, tmp_path: Path) -> None:
    (tmp_path / "pairs.tsv").write_text("a\tb\nc\td\n")
    assert call("score", run, tmp_path / "pairs.tsv").sentence.startswith(
        f"{tmp_path / 'pairs.tsv'}: column 'roman' is unknown."
    )


def test_every_example_is_written(call: Any, run: Path, pairs_file: Path, tmp_path: Path) -> None:
    out = tmp_path / "scored.jsonl"
    named = "exact_match,bleu,character_error_rate,perplexity,accuracy@2"
    said = call(
        "evaluate", run, "--data", pairs_file, "--metrics", named, "--output", out, "--json"
    )
    assert said.code == 0
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    assert [row["input"] for row in rows] == ["namaste", "ghar", "a"]
    scores = json.loads(said.out)["scores"]
    for row in rows:
        assert set(row) == {"input", "references", "output", "scores"}
        assert set(row["scores"]) == {
            "exact_match",
            "character_error_rate",
            "perplexity",
            "accuracy@2",
        }
        assert row["scores"]["exact_match"] == float(row["output"] == row["references"][0])
    for name in ("exact_match", "accuracy@2"):
        assert math.fsum(row["scores"][name] for row in rows) / 3 == pytest.approx(
            scores[name]["value"]
        )


def test_metrics_of_all_examples_together() -> None:
    together = {name for name, metric in METRICS.items() if not metric.per_example}
    assert {"bleu", "bleu4", "macro_f1", "distinct2", "cider_d"} <= together
    assert "chrf" not in together


@pytest.mark.parametrize("name", ["scored.csv", "scored.XLSX"])
def test_json_lines_are_not_written_under_the_name_of_a_table(
    name: str, call: Any, tmp_path: Path
) -> None:
    out = tmp_path / name
    assert call("evaluate", "run", "--output", out).sentence == (
        f"--output {out} gets a JSON line for each example; let its name end in .jsonl."
    )
    assert not out.exists()
