"""One row of the benchmark: `new`, `train` and `evaluate` as a user calls them, and baselines."""

import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean
from typing import Any, final

import yaml

from .data_sets import SETS, Row, images_beside, write_table

MOST_ROWS = 20_000
"""Of a table; IMDb has all its 22,500."""
DEV_ROWS = 1_000
"""Rows of `dev` that are scored: search takes time."""
BY_LABEL = ("accuracy@1", "labels_micro_f1")


@final
@dataclass(frozen=True)
class Finished:
    """A command that has ended."""

    output: str
    seconds: float
    gigabytes: float
    """The most memory it had at a time."""
    cpu_seconds: float
    """Of all its threads: what does not depend on what else the machine does."""


def called(*arguments: str, folder: Path) -> Finished:
    """Runs a command of sixjars on two cores; what it prints is added to log.txt in the folder."""
    command = [sys.executable, "-m", "sixjars", *arguments]
    cores = {*sorted(os.sched_getaffinity(0))[:2]}
    output, errors = folder / "stdout.txt", folder / "stderr.txt"
    began = time.monotonic()
    with output.open("w") as stdout, errors.open("w") as stderr:
        process = subprocess.Popen(
            command,
            cwd=folder,
            stdout=stdout,
            stderr=stderr,
            preexec_fn=lambda: os.sched_setaffinity(0, cores),
        )
        _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    results = output.read_text(encoding="utf-8")
    messages = errors.read_text(encoding="utf-8")
    with (folder / "log.txt").open("a", encoding="utf-8") as file:
        file.write(f"$ {' '.join(command)}\n{results}{messages}\n")
    if process.returncode:
        raise RuntimeError(f"{' '.join(arguments)}: {messages[-500:]}")
    cpu = usage.ru_utime + usage.ru_stime
    return Finished(results, time.monotonic() - began, usage.ru_maxrss / 2**20, cpu)


def measured(
    name: str, folder: Path, place: Path, most: int, seed: int, device: str
) -> dict[str, Any]:
    """The score of what `new` and `train` give, and of what costs nothing."""
    data = SETS[name]
    train, dev = rows_of(name, folder, most, seed)
    place.mkdir(parents=True, exist_ok=True)
    if "image" in data.columns:
        images_beside(folder / "easy_vqa", place, {row[0] for row in (*train, *dev)})
    table = write_table(place / "mine.tsv", data.columns, train).name
    held_out = write_table(place / "dev.tsv", data.columns, dev).name
    recipe = place / "mine.yaml"
    recipe.unlink(missing_ok=True)
    new = called("new", recipe.name, "--task", data.task, "--data", table, folder=place)
    seeds = [f"learning.seed={seed}", f"data.seed={seed}"] if seed else []
    run = f"run-{time.time_ns()}"
    trained = called("train", recipe.name, *seeds, "--out", run, "--device", device, folder=place)
    evaluated = called(
        "evaluate", run, "--data", held_out, "--metrics", data.metric, "--json", folder=place
    )
    scores = json.loads(evaluated.output)
    result = {
        "set": name,
        "rows": len(train),
        "seed": seed,
        "metric": data.metric,
        "score": float(scores["scores"][data.metric]["value"]),
        "device": device,
        "new_s": round(new.seconds, 1),
        "train_s": round(trained.seconds, 1),
        "cpu_s": round(trained.cpu_seconds, 1),
        "gb": round(trained.gigabytes, 2),
        "dev": len(dev),
        "quarter_costs": quarter_costs(place / run, recipe, data.metric),
    }
    if data.metric in BY_LABEL and "image" not in data.columns:
        by = "linear model on word counts"
        return result | {"baseline": linear(data.task, data.metric, train, dev), "by": by}
    return result | best_baseline(scores, data.metric)


def rows_of(name: str, folder: Path, most: int, seed: int) -> tuple[list[Row], list[Row]]:
    """Rows to train on, drawn by the seed, and rows to score."""
    train, dev = (list(SETS[name].read(folder, split)) for split in ("train", "dev"))
    random.Random(seed).shuffle(train)
    if name != "imdb" or most < MOST_ROWS:
        train = train[:most]
    return train, dev[:DEV_ROWS]


def quarter_costs(run: Path, recipe: Path, metric: str) -> float | None:
    """Points that the validation set would have lost, had training ended after a quarter of its plan.

    Of the checkpoint that would have been chosen then, as the log of the run says; of a
    cross-validation the mean over its folds. None where no validation came so early.
    """
    planned = yaml.safe_load(recipe.read_text(encoding="utf-8"))["learning"]
    chooses = planned.get("metric", metric)
    sign = -1.0 if chooses == "loss" else 1.0
    logs = sorted((run / "folds").glob("*/log.jsonl")) or [run / "log.jsonl"]
    costs = []
    for log in logs:
        lines = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
        scored = [line for line in lines if metric in line and chooses in line]
        early = [line for line in scored if line["step"] <= planned["steps"] / 4]
        if early:
            best, first = (
                max(some, key=lambda line: sign * line[chooses]) for some in (scored, early)
            )
            costs.append(best[metric] - first[metric])
    points = 1.0 if metric in ("bleu", "chrf") else 100.0
    return round(points * mean(costs), 2) if costs else None


def linear(task: str, metric: str, train: Sequence[Row], dev: Sequence[Row]) -> float:
    """What a user would otherwise run: TF-IDF of words and pairs of words, logistic regression."""
    import scipy.sparse
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.metrics import f1_score
    from sklearn.multiclass import OneVsRestClassifier
    from sklearn.preprocessing import MultiLabelBinarizer

    words = TfidfVectorizer(ngram_range=(1, 2))
    words.fit([text for row in train for text in row[:-1]])
    model: Any = LogisticRegression(C=10, max_iter=1000)

    def features(rows: Sequence[Row]) -> Any:
        first = words.transform([row[0] for row in rows])
        if task != "sentence_pair":
            return first
        second = words.transform([row[1] for row in rows])
        both = first.multiply(second)
        return scipy.sparse.hstack([abs(first - second), both, both.sum(1)]).tocsr()

    labels, expected = ([row[-1] for row in rows] for rows in (train, dev))
    if metric == "labels_micro_f1":
        names = MultiLabelBinarizer().fit([label.split(", ") for label in labels])
        truth = names.transform([label.split(", ") for label in expected])
        several = OneVsRestClassifier(model)
        several.fit(features(train), names.transform([label.split(", ") for label in labels]))
        predicted = several.predict(features(dev))
        return float(f1_score(truth, predicted, average="micro", zero_division=0))
    return float(model.fit(features(train), labels).score(features(dev), expected))


def best_baseline(scores: Any, metric: str) -> dict[str, Any]:
    """The best of the baselines that `evaluate` prints, by a metric of which more is better."""
    values = {
        baseline["name"]: baseline["scores"][metric]["value"]
        for baseline in scores.get("baselines", [])
        if metric in baseline["scores"]
    }
    name = max(values, key=values.__getitem__, default="")
    return {"baseline": values[name], "by": name} if name else {}
