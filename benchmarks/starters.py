"""What a user gets by herself: `new` and `train` on real tables, beside what costs nothing.

    python -m benchmarks.starters FOLDER_WITH_THE_DATA [--only ag_news,sick] [--rows 200,1000,20000] [--seeds 1]

Each data set is written as one table such as people have, `sixjars new` and `sixjars train` are called as a user calls
them, on two CPU cores, and the run is scored on `dev`, which training never sees. Beside it, on the same rows: for
labels scikit-learn's TF-IDF of words and pairs of words with logistic regression, trained on all rows of the table;
for texts the best of copying the input and taking the output of the most similar row. One line of JSON for each is
appended to --out; `--table` makes benchmarks/results/starters.yaml of them.
"""

import argparse
import csv
import gzip
import json
import os
import random
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, final

Row = tuple[str, ...]
MOST_ROWS = 20_000
DEV_ROWS = 1_000
"""Rows of `dev` that texts are scored on: search takes time."""


@final
@dataclass(frozen=True)
class DataSet:
    """A table of real data, and what it is used for."""

    task: str
    columns: Row
    read: Callable[[Path, str], Iterator[Row]]
    """The rows of `train` or `dev` in a folder."""
    metric: str
    given: Row = ()
    """Options of `new` that a user would need."""


def lines(path: Path) -> Iterator[str]:
    """The lines of a text file, plain or gzipped."""
    opened = gzip.open(path, "rt", encoding="utf-8") if path.suffix == ".gz" else path.open(encoding="utf-8")
    with opened as file:
        yield from (line.rstrip("\n") for line in file)


def records(path: Path) -> Iterator[Any]:
    """The objects of a file of JSON lines."""
    yield from map(json.loads, lines(path))


def ag_news(folder: Path, split: str) -> Iterator[Row]:
    """Title and description in one column."""
    for row in records(folder / f"ag_news_small/{split}.jsonl.gz"):
        yield f"{row['title']}. {row['description']}", row["label"]


def movie_reviews(folder: Path, split: str) -> Iterator[Row]:
    """The sentences of a review as one text."""
    for row in records(folder / f"movie_reviews/{split}.jsonl.gz"):
        yield " ".join(row["sentences"]), row["label"]


def bbc(folder: Path, split: str) -> Iterator[Row]:
    """An article and its category."""
    for row in records(folder / f"bbc_news_summary/{split}.jsonl.gz"):
        yield text_of(row["article"]), row["category"]


def bbc_headlines(folder: Path, split: str) -> Iterator[Row]:
    """An article and its headline."""
    for row in records(folder / f"bbc_news_summary/{split}.jsonl.gz"):
        yield text_of(row["article"]), row["title"]


def imdb(folder: Path, split: str) -> Iterator[Row]:
    """A tenth of the training set, drawn once, is `dev`: there is no other."""
    rows = [(row["text"], row["label"]) for row in records(folder / "imdb/train.jsonl.gz")]
    random.Random(0).shuffle(rows)
    held_out = len(rows) // 10
    yield from rows[held_out:] if split == "train" else rows[:held_out]


def reuters(folder: Path, split: str) -> Iterator[Row]:
    """Stories with all their topics, in the form that multi_label reads."""
    for row in records(folder / f"reuters21578/{split}.jsonl.gz"):
        if row["topics"] and row.get("paragraphs"):
            yield " ".join([row["title"], *row["paragraphs"]]), ", ".join(row["topics"])


def sick(folder: Path, split: str) -> Iterator[Row]:
    """Pairs of sentences and their relation."""
    for line in list(lines(folder / f"sick/sick.{split}.tsv"))[1:]:
        cells = line.split("\t")
        yield cells[1], cells[2], cells[4]


def snli(folder: Path, split: str) -> Iterator[Row]:
    """The same of a larger corpus."""
    yield from (tuple(line.split("\t")) for line in list(lines(folder / f"snli_small/{split}.tsv.gz"))[1:])


def tatoeba(folder: Path, split: str) -> Iterator[Row]:
    """English and French sentences, in an order of chance: the file is sorted by length."""
    rows = [tuple(line.split("\t")[:2]) for line in lines(folder / f"tatoeba/eng-fra.{split}.tsv.gz")]
    random.Random(0).shuffle(rows)
    yield from rows


def hindi(folder: Path, split: str) -> Iterator[Row]:
    """Words in Latin letters and in Devanagari."""
    yield from (tuple(line.split("\t")[:2]) for line in lines(folder / f"xlit_crowd/hi-en.{split}.tsv"))


def headlines(folder: Path, split: str) -> Iterator[Row]:
    """Stories of Reuters and their headlines."""
    yield from (tuple(line.split("\t")[:2]) for line in lines(folder / f"reuters21578/headline.{split}.tsv.gz"))


def dialogs(folder: Path, split: str) -> Iterator[Row]:
    """An utterance and its response, of everyday conversations."""
    for row in records(folder / f"dailydialog/dialogs.{split}.jsonl.gz"):
        turns = next(value for value in row.values() if isinstance(value, list) and value)
        for utterance, response in pairwise(turns):
            if isinstance(utterance, str):
                yield utterance, response


def questions(folder: Path, split: str) -> Iterator[Row]:
    """Images of shapes and questions about them; the images lie beside the table."""
    for row in records(folder / f"easy_vqa/questions.{split}.jsonl.gz"):
        yield f"{row['image_id']}.png" if "image_id" in row else row["image"], row["question"], row["answer"]


def text_of(value: Any) -> str:
    """A text; of a list, its members in one line."""
    return " ".join(value) if isinstance(value, list) else value


TEXT, PAIR, TWO = ("text", "label"), ("sentence1", "sentence2", "label"), ("source", "target")
SETS: dict[str, DataSet] = {
    "ag_news": DataSet("document_classification", TEXT, ag_news, "accuracy@1"),
    "movie_reviews": DataSet("document_classification", TEXT, movie_reviews, "accuracy@1"),
    "bbc": DataSet("document_classification", TEXT, bbc, "accuracy@1"),
    "imdb": DataSet("document_classification", TEXT, imdb, "accuracy@1"),
    "reuters_topics": DataSet("document_classification", TEXT, reuters, "labels_micro_f1"),
    "sick": DataSet("sentence_pair", PAIR, sick, "accuracy@1"),
    "snli": DataSet("sentence_pair", PAIR, snli, "accuracy@1"),
    "tatoeba": DataSet("translation", TWO, tatoeba, "bleu"),
    "hindi": DataSet("transliteration", TWO, hindi, "exact_match"),
    "reuters_headlines": DataSet("summarization", TWO, headlines, "rougeL"),
    "bbc_headlines": DataSet("summarization", TWO, bbc_headlines, "rougeL"),
    "dialogs": DataSet("dialog", TWO, dialogs, "bleu"),
    "easy_vqa": DataSet("image_question_answering", ("image", "question", "answer"), questions, "accuracy@1"),
}


def written(path: Path, columns: Row, rows: Sequence[Row]) -> Path:
    """A table with a header."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, delimiter="\t" if path.suffix == ".tsv" else ",")
        writer.writerow(columns)
        writer.writerows([[" ".join(cell.split()) for cell in row] for row in rows])
    return path


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


def called(*arguments: str, folder: Path, log: Path) -> Finished:
    """Runs a command of sixjars on two cores."""
    command = [sys.executable, "-m", "sixjars", *arguments]
    cores = {*sorted(os.sched_getaffinity(0))[:2]}
    began, output, errors = time.monotonic(), folder / "stdout.txt", folder / "stderr.txt"
    with output.open("w") as stdout, errors.open("w") as stderr:
        process = subprocess.Popen(
            command, cwd=folder, stdout=stdout, stderr=stderr, preexec_fn=lambda: os.sched_setaffinity(0, cores)
        )
        _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    told, said = output.read_text(encoding="utf-8"), errors.read_text(encoding="utf-8")
    with log.open("a", encoding="utf-8") as file:
        file.write(f"$ {' '.join(command)}\n{told}{said}\n")
    if process.returncode:
        raise RuntimeError(f"{' '.join(arguments)}: {said[-500:]}")
    spent = usage.ru_utime + usage.ru_stime
    return Finished(told, time.monotonic() - began, usage.ru_maxrss / 2**20, spent)


def linear(kind: str, train: Sequence[Row], dev: Sequence[Row]) -> float:
    """What a user would otherwise run: TF-IDF of words and pairs of words, logistic regression, all rows."""
    import scipy.sparse
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.metrics import f1_score
    from sklearn.multiclass import OneVsRestClassifier
    from sklearn.preprocessing import MultiLabelBinarizer

    words = TfidfVectorizer(ngram_range=(1, 2)).fit([text for row in train for text in row[:-1]])
    model: Any = LogisticRegression(C=10, max_iter=1000)

    def features(rows: Sequence[Row]) -> Any:
        if kind != "sentence_pair":
            return words.transform([row[0] for row in rows])
        first, second = (words.transform([row[at] for row in rows]) for at in (0, 1))
        both = first.multiply(second)
        return scipy.sparse.hstack([abs(first - second), both, both.sum(1)]).tocsr()

    labels = [[row[-1] for row in rows] for rows in (train, dev)]
    if kind == "several":
        names = MultiLabelBinarizer().fit([label.split(", ") for label in labels[0]])
        truth, wanted = (names.transform([label.split(", ") for label in some]) for some in labels)
        found = OneVsRestClassifier(LogisticRegression(C=10, max_iter=1000)).fit(features(train), truth)
        return float(f1_score(wanted, found.predict(features(dev)), average="micro", zero_division=0))
    return float(model.fit(features(train), labels[0]).score(features(dev), labels[1]))


def measured(name: str, folder: Path, work: Path, rows: int, seed: int, device: str) -> dict[str, Any]:
    """A row of the table: the score of what `new` and `train` give, and of what costs nothing."""
    data, place = SETS[name], work / f"{name}-{rows}-{seed}"
    place.mkdir(parents=True, exist_ok=True)
    train, dev = (list(data.read(folder, split)) for split in ("train", "dev"))
    random.Random(seed).shuffle(train)
    train, dev = train[: min(rows, MOST_ROWS if name != "imdb" else len(train))], dev[:DEV_ROWS]
    if "image" in data.columns:
        images_beside(folder / "easy_vqa", place, {row[0] for row in (*train, *dev)})
    table, log = written(place / "mine.tsv", data.columns, train), place / "log.txt"
    held_out = written(place / "dev.tsv", data.columns, dev)
    recipe = place / "mine.yaml"
    recipe.unlink(missing_ok=True)
    asked = called("new", recipe.name, "--task", data.task, "--data", table.name, *data.given, folder=place, log=log)
    seeded = [f"learning.seed={seed}", f"data.seed={seed}"] if seed else []
    out = f"run-{time.time_ns()}"
    trained = called("train", recipe.name, *seeded, "--out", out, "--device", device, folder=place, log=log)
    scored = called("evaluate", out, "--data", held_out.name, "--metrics", data.metric, "--json", folder=place, log=log)
    found = json.loads(scored.output)
    result: dict[str, Any] = {"set": name, "rows": len(train), "seed": seed, "metric": data.metric}
    result["score"] = value_of(found, data.metric)
    result |= {"device": device, "new_s": round(asked.seconds, 1), "train_s": round(trained.seconds, 1)}
    result |= {"cpu_s": round(trained.cpu_seconds, 1)}
    result |= {"gb": round(trained.gigabytes, 2), "dev": len(dev)}
    began = time.monotonic()
    if data.metric in ("accuracy@1", "labels_micro_f1") and "image" not in data.columns:
        kind = "several" if data.metric == "labels_micro_f1" else data.task
        result |= {"baseline": linear(kind, train, dev), "by": "linear model on word counts"}
    else:
        result |= best_baseline(found, data.metric)
    return result | {"baseline_s": round(time.monotonic() - began, 1)}


def value_of(found: Any, metric: str) -> float:
    """The value of a metric in what `evaluate --json` prints."""
    return float(found["scores"][metric]["value"])


def best_baseline(found: Any, metric: str) -> dict[str, Any]:
    """The best of the baselines that `evaluate` prints, by a metric of which more is better."""
    kept = [one for one in found.get("baselines", []) if metric in one["scores"]]
    scores = {one["name"]: one["scores"][metric]["value"] for one in kept}
    name = max(scores, key=scores.__getitem__, default="")
    return {"baseline": scores[name], "by": name} if name else {}


def images_beside(archive: Path, place: Path, names: set[str]) -> None:
    """The images of some rows, beside the table."""
    with zipfile.ZipFile(archive / "images.train.zip") as file:
        inside = {Path(name).name: name for name in file.namelist()}
        for name in names & inside.keys():
            if not (place / name).is_file():
                (place / name).write_bytes(file.read(inside[name]))


def main() -> None:
    """Measure the sets that are named, one after the other."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("--only", default=",".join(SETS))
    parser.add_argument("--rows", default=f"200,1000,{MOST_ROWS}")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--work", type=Path, default=Path("build/starters"))
    parser.add_argument("--out", type=Path, default=Path("build/starters/rows.jsonl"))
    options = parser.parse_args()
    options.out.parent.mkdir(parents=True, exist_ok=True)
    for name in options.only.split(","):
        for rows in map(int, options.rows.split(",")):
            for seed in range(options.seeds):
                try:
                    found = measured(name, options.data.resolve(), options.work.resolve(), rows, seed, options.device)
                except RuntimeError as error:
                    found = {"set": name, "rows": rows, "seed": seed, "error": str(error)}
                print(json.dumps(found), flush=True)
                with options.out.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(found) + "\n")


if __name__ == "__main__":
    main()
