"""Tables of real data such as people have: which columns, for which task, and how each file is read."""

import csv
import gzip
import json
import random
import zipfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, final

Row = tuple[str, ...]


@final
@dataclass(frozen=True)
class DataSet:
    """A table of real data, and what it is used for."""

    task: str
    columns: Row
    read: Callable[[Path, str], Iterator[Row]]
    """The rows of `train` or `dev` in a folder."""
    metric: str


def lines(path: Path) -> Iterator[str]:
    """The lines of a text file, plain or gzipped."""
    opened = (
        gzip.open(path, "rt", encoding="utf-8")
        if path.suffix == ".gz"
        else path.open(encoding="utf-8")
    )
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
    yield from (
        tuple(line.split("\t")) for line in list(lines(folder / f"snli_small/{split}.tsv.gz"))[1:]
    )


def tatoeba(folder: Path, split: str) -> Iterator[Row]:
    """English and French sentences, in an order of chance: the file is sorted by length."""
    rows = [
        tuple(line.split("\t")[:2]) for line in lines(folder / f"tatoeba/eng-fra.{split}.tsv.gz")
    ]
    random.Random(0).shuffle(rows)
    yield from rows


def hindi(folder: Path, split: str) -> Iterator[Row]:
    """Words in Latin letters and in Devanagari."""
    yield from (
        tuple(line.split("\t")[:2]) for line in lines(folder / f"xlit_crowd/hi-en.{split}.tsv")
    )


def headlines(folder: Path, split: str) -> Iterator[Row]:
    """Stories of Reuters and their headlines."""
    yield from (
        tuple(line.split("\t")[:2])
        for line in lines(folder / f"reuters21578/headline.{split}.tsv.gz")
    )


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
        yield (
            f"{row['image_id']}.png" if "image_id" in row else row["image"],
            row["question"],
            row["answer"],
        )


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
    "easy_vqa": DataSet(
        "image_question_answering", ("image", "question", "answer"), questions, "accuracy@1"
    ),
}


def write_table(path: Path, columns: Row, rows: Sequence[Row]) -> Path:
    """A table with a header."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, delimiter="\t" if path.suffix == ".tsv" else ",")
        writer.writerow(columns)
        writer.writerows([[" ".join(cell.split()) for cell in row] for row in rows])
    return path


def images_beside(archive: Path, place: Path, names: set[str]) -> None:
    """The images of some rows, beside the table."""
    with zipfile.ZipFile(archive / "images.train.zip") as file:
        inside = {Path(name).name: name for name in file.namelist()}
        for name in names & inside.keys():
            if not (place / name).is_file():
                (place / name).write_bytes(file.read(inside[name]))
