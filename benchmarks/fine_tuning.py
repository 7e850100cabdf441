"""Fine-tuning on real data: English to German of Tatoeba, from a Multi30k model and from nothing, at several sizes.

python benchmarks/fine_tuning.py --multi30k FOLDER --tatoeba FOLDER --out runs/fine_tuning --device cuda

Trains `translation/multi30k_attention` once (or takes it from `--from`). Then, for each number of Tatoeba pairs and
each seed, three models are trained on the same rows and scored on the same held-out pairs: one that starts from that
run, one of the same kind from nothing, with the subwords of these few rows, and one of a smaller kind from nothing. The
Multi30k model as it is, without one pair of Tatoeba, is scored too. Everything is resumed when the command is given
again. The numbers are in OUT/fine_tuning.json and the drawing of them in `--picture`.
"""

import argparse
import gzip
import json
import random
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from itertools import product
from multiprocessing import get_context
from pathlib import Path
from statistics import mean
from typing import Any

import matplotlib as mpl
import torch
import yaml

mpl.use("Agg")
from matplotlib import pyplot as plt

from sixjars.progress import Reporter
from sixjars.runs.evaluate import evaluate
from sixjars.runs.train import train

PARENT = "translation/multi30k_attention"
WAYS = {
    "from": "started from a Multi30k run",
    "large": "from nothing, the same model",
    "small": "from nothing, a smaller model",
}
COLOURS = {"from": "#0b6e4f", "large": "#c8553d", "small": "#8d99ae"}
METRIC = "chrf"
SMALL = {
    "encoder": {
        "size": 64,
        "direction": "both",
        "dropout": 0.3,
        "embedding": {"size": 64, "dropout": 0.2},
    },
    "bridge": {"kind": "attention", "size": 64},
    "decoder": {
        "size": 128,
        "dropout": 0.3,
        "tied": True,
        "embedding": {"size": 128, "dropout": 0.2},
    },
}
"""Chosen for few pairs; the large one is that of the Multi30k recipe."""


def pairs_of(path: Path) -> list[str]:
    """The lines of a gzipped file of pairs."""
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return [line for line in file.read().splitlines() if line.count("\t") == 1]


def write_rows(path: Path, rows: Sequence[str]) -> str:
    """A file of pairs; returns its whole name."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{row}\n" for row in rows), encoding="utf-8")
    return str(path.resolve())


def recipe(
    way: str, files: dict[str, str], size: int, updates: int, model: dict[str, Any]
) -> dict[str, Any]:
    """What is trained: the same data and number of updates each way; a gentler rate where weights are there already."""
    subwords = {"tokens": "bpe", "size": min(4000, max(200, size * 2)), "max_length": 100}
    fields = {} if way == "from" else subwords
    values: dict[str, Any] = {
        "task": "translation",
        "data": {**files, "source": {**fields, "column": 1}, "target": {**fields, "column": 2}},
        "loss": {"smoothing": 0.1},
        "learning": {
            "rate": 3e-4 if way == "from" else 1e-3,
            "schedule": "plateau",
            "plateau_patience": 2,
            "batch_tokens": 4000,
            "epochs": 100_000,
            "steps": updates,
            "validate_every": max(1, updates // 20),
            "patience": 6,
            "metric": METRIC,
        },
        "evaluation": {
            "search": {"kind": "beam", "width": 5, "max_length": 60},
            "metrics": [METRIC, "bleu"],
        },
    }
    return values if way == "from" else {**values, "model": model if way == "large" else SMALL}


def parent_of(given: argparse.Namespace) -> Path:
    """The Multi30k run: the one that was named, or one that is trained now."""
    if given.from_run is not None:
        return Path(given.from_run)
    folder: Path = given.out / "multi30k"
    overrides = [f"data.folder={given.multi30k}", *given.parent]
    train(
        PARENT,
        overrides,
        out=folder,
        resume=True,
        device=given.device,
        reporter=Printed("multi30k"),
    )
    return folder


class Printed(Reporter):
    """A line for each validation."""

    def __init__(self, name: str) -> None:
        self.name = name

    def validated(self, record: Any, *, is_best: bool) -> None:
        """The metric that decides."""
        value = record.get(METRIC, record["loss"])
        print(
            f"{self.name}  step {record['step']:.0f}  {value:.2f}{'  best' if is_best else ''}",
            flush=True,
        )

    def note(self, text: str) -> None:
        """As it is."""
        print(f"{self.name}  {text}", flush=True)


def prepared(given: argparse.Namespace) -> None:
    """Write the rows of every size and seed, and the pairs that are held out, the same for all."""
    rows, held = (
        pairs_of(given.tatoeba / "eng-deu.train.tsv.gz"),
        pairs_of(given.tatoeba / "eng-deu.dev.tsv.gz"),
    )
    random.Random(0).shuffle(held)
    data, test = given.out / "data", held[given.held : 3 * given.held]
    for size, seed in product(given.sizes, given.seeds):
        write_rows(data / f"{size}-{seed}.tsv", random.Random(seed).sample(rows, size))
    write_rows(data / "valid.tsv", held[: given.held])
    write_rows(data / "test.tsv", test)
    write_rows(data / "test_named.tsv", ["en\tde", *test])


def trained(
    way: str, size: int, seed: int, given: argparse.Namespace, parent: Path
) -> dict[str, Any]:
    """One model, and its scores on the test pairs."""
    torch.set_num_threads(1)
    name, data = f"{way}-{size}-{seed}", (given.out / "data").resolve()
    files = {
        "train": f"{data}/{size}-{seed}.tsv",
        "valid": f"{data}/valid.tsv",
        "test": f"{data}/test.tsv",
    }
    whole = yaml.safe_load((parent / "recipe.yaml").read_text(encoding="utf-8"))["model"]
    values = recipe(way, files, size, given.updates, whole)
    path = given.out / "recipes" / f"{name}.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(yaml.safe_dump(values, sort_keys=False), encoding="utf-8")
    run = train(
        path,
        [f"learning.seed={seed}"],
        out=given.out / "runs" / name,
        resume=True,
        from_run=parent if way == "from" else None,
        device=given.device,
        reporter=Printed(name),
    )
    return {"way": way, "size": size, "seed": seed} | {
        score.name: score.value for score in run.scores
    }


def unchanged(parent: Path, given: argparse.Namespace) -> dict[str, float]:
    """The Multi30k model on the test pairs, before any of Tatoeba."""
    named = given.out / "data" / "test_named.tsv"
    found = evaluate(parent, data=named, metrics=[METRIC, "bleu"], device=given.device)
    return {score.name: score.value for score in found.scores}


def draw(
    path: Path, results: Sequence[dict[str, Any]], before: dict[str, float], metric: str
) -> None:
    """A line for each way, with its seeds as points; and the level of the Multi30k model as it is."""
    figure, axes = plt.subplots(figsize=(7.2, 4.2), layout="constrained")
    sizes = sorted({row["size"] for row in results})
    for way, label in WAYS.items():
        by_size = {
            size: [row[metric] for row in results if (row["way"], row["size"]) == (way, size)]
            for size in sizes
        }
        axes.plot(
            sizes,
            [mean(by_size[size]) for size in sizes],
            marker="o",
            color=COLOURS[way],
            label=label,
        )
        for size, values in by_size.items():
            axes.scatter([size] * len(values), values, color=COLOURS[way], s=12, alpha=0.6)
    axes.axhline(before[metric], color="#444444", linestyle=":", label="the Multi30k run as it is")
    axes.set_xscale("log")
    axes.set_xticks(sizes, [f"{size:,}" for size in sizes])
    axes.minorticks_off()
    axes.set_xlabel("Tatoeba pairs that are trained on")
    axes.set_ylabel({"chrf": "chrF", "bleu": "BLEU"}[metric] + " on held-out Tatoeba pairs")
    axes.set_ylim(bottom=0)
    axes.grid(alpha=0.3)
    axes.legend(frameon=False)
    axes.set_title("English to German: fine-tuned, and trained from nothing", fontsize=11)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)
    plt.close(figure)


def main() -> None:
    """Train all, write the numbers, and draw them."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--multi30k", type=Path, help="folder with train.en.gz and the others")
    parser.add_argument(
        "--tatoeba",
        type=Path,
        required=True,
        help="folder with eng-deu.train.tsv.gz and .dev.tsv.gz",
    )
    parser.add_argument(
        "--from", dest="from_run", type=Path, help="a Multi30k run that is trained already"
    )
    parser.add_argument("--sizes", type=int, nargs="+", default=[100, 1000, 5000])
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument(
        "--updates", type=int, default=2000, help="most updates of each Tatoeba model"
    )
    parser.add_argument(
        "--held",
        type=int,
        default=800,
        help="validation pairs; twice as many are scored at the end",
    )
    parser.add_argument(
        "--parent",
        nargs="*",
        default=[],
        metavar="KEY=VALUE",
        help="overrides of the Multi30k recipe",
    )
    parser.add_argument("--out", type=Path, default=Path("runs/fine_tuning"))
    parser.add_argument("--picture", type=Path, default=Path("docs/images/fine_tuning.png"))
    parser.add_argument(
        "--jobs", type=int, default=1, help="Tatoeba models that are trained side by side"
    )
    parser.add_argument("--device", choices=["auto", "cpu", "cuda"], default="auto")
    given = parser.parse_args()
    prepared(given)
    parent, results = parent_of(given), []
    before = unchanged(parent, given)
    with ProcessPoolExecutor(given.jobs, mp_context=get_context("spawn")) as pool:
        wanted = product(given.seeds, given.sizes, WAYS)
        waiting = [
            pool.submit(trained, way, size, seed, given, parent) for seed, size, way in wanted
        ]
        for done in as_completed(waiting):
            results.append(done.result())
            print(json.dumps(results[-1]), flush=True)
    results.sort(key=lambda row: (row["seed"], row["size"], row["way"]))
    found = {"multi30k": before, "updates": given.updates, "results": results}
    (given.out / "fine_tuning.json").write_text(
        json.dumps(found, indent=2) + "\n", encoding="utf-8"
    )
    draw(given.picture, results, before, METRIC)
    print(f"numbers: {given.out / 'fine_tuning.json'}\npicture: {given.picture}")


if __name__ == "__main__":
    main()
