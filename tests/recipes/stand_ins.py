"""Stand-ins for the real data that recipes name: the same files with the same columns, a few
synthetic rows of each.

Dims: F frames, H and W pixels, C = 3 colours.
"""

import gzip
import io
import json
import zipfile
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from sixjars.recipe.sections import Recipe
from sixjars.samples.video_files import write_video

Rows = list[dict[str, Any]]
COLOURS = ("red", "green", "blue", "white")
"""What the images of a stand-in show, one each; the name of the file says which."""


def image(name: str) -> bytes:
    """An image of one colour and some noise, as the ending of its name says."""
    file = io.BytesIO()
    Image.fromarray(_frames(name, 1, 40, 56)[0]).save(
        file, "PNG" if name.endswith("png") else "JPEG"
    )
    return file.getvalue()


def video(name: str) -> bytes:
    """A video of one colour and some noise, of five frames or six."""
    file = io.BytesIO()
    write_video(file, _frames(name, 5 + crc32(name.encode()) % 2, 32, 48), rate=10)
    return file.getvalue()


def _frames(name: str, frames: int, height: int, width: int) -> NDArray[np.uint8]:
    noise = np.random.default_rng(crc32(name.encode()))
    colour = Image.new(
        "RGB", (1, 1), next((colour for colour in COLOURS if colour in name), "gray")
    ).getpixel((0, 0))
    shades_FHWC = np.array(colour) * 0.6 + noise.integers(0, 100, (frames, height, width, 3))
    return shades_FHWC.astype(np.uint8)


def _zipped(path: Path, names: Iterable[str], paint: Callable[[str], bytes]) -> None:
    with zipfile.ZipFile(path, "w") as packed:
        for name in names:
            packed.writestr(name, paint(name))


def lined(path: Path, rows: Rows) -> None:
    content = "".join(json.dumps(row) + "\n" for row in rows).encode()
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)


def _flickr8k(folder: Path) -> None:
    """Some rows belong to a split that no recipe reads, and their images are nowhere."""
    rows: Rows = []
    for number in range(6):
        name = f"{number}_{COLOURS[number % 4]}.jpg"
        _zipped(folder / f"images.train.{number:02}.zip", [name], image)
        rows.append({"image": name, "split": "train"})
    held_out = [f"dev_{colour}.jpg" for colour in COLOURS[:2]]
    _zipped(folder / "images.dev.zip", held_out, image)
    rows += [{"image": name, "split": "dev"} for name in held_out] + [
        {"image": "nowhere.jpg", "split": "other"}
    ]
    for row in rows:
        seen = next((colour for colour in COLOURS if colour in row["image"]), "grey")
        row |= {
            "captions": [f"All is {seen} .", f"A picture of {seen} things ."],
            "width": 56,
            "height": 40,
        }
    lined(folder / "captions.jsonl.gz", rows)


def _asked(folder: Path, kind: str, ending: str) -> None:
    """Questions about images, those of both splits in one zip."""
    names = {
        "train": [f"{colour}.{ending}" for colour in COLOURS],
        "dev": [f"dev_red.{ending}", f"dev_blue.{ending}"],
    }
    _zipped(folder / "images.train.zip", [*names["train"], *names["dev"]], image)
    for split, files in names.items():
        rows: Rows = []
        for name in files:
            colour = next(colour for colour in COLOURS if colour in name)
            for question, answer in (
                ("what color is it ?", colour),
                ("is it red ?", "yes" if "red" in name else "no"),
            ):
                rows += [
                    {"image": name, "question": question, "answer": answer, "split": split}
                ] * 2
        lined(folder / f"{kind}.{split}.jsonl.gz", rows)


def _clips(folder: Path, labels: tuple[str, ...]) -> None:
    rows: Rows = []
    for split, count in {"train": 2, "dev": 1}.items():
        names = [f"{label}_{split}_{number}.mp4" for label in labels for number in range(count)]
        _zipped(folder / f"clips.{split}.zip", names, video)
        rows += [
            {"video": name, "label": name.split("_")[0], "split": split, "fps": 10}
            for name in names
        ]
    rows.append({"video": "nowhere.mp4", "label": labels[0], "split": "test", "fps": 10})
    lined(folder / "clips.jsonl", rows)


VISUAL: Mapping[str, Callable[[Path], None]] = {
    "flickr8k": _flickr8k,
    "easy_vqa": lambda folder: _asked(folder, "questions", "png"),
    "daquar": lambda folder: _asked(folder, "qa", "jpg"),
    "ut_interaction": lambda folder: _clips(folder, ("punching", "kicking", "hugging")),
    "violence_actions": lambda folder: _clips(folder, ("violent", "non-violent")),
}
"""By the folder that a recipe reads from where nobody names another."""


def _splits(folder: Path, rows: Callable[[int], dict[str, Any]], *names: str) -> None:
    """As many rows in each split, each made from its number."""
    for name in names:
        lined(folder / f"{name}.jsonl.gz", [rows(number) for number in range(12)])


def _review(number: int) -> tuple[list[str], str]:
    good = number % 2 == 0
    told = (
        ["it was a fine movie .", "we laughed ."]
        if good
        else ["it was a dull movie .", "we slept ."]
    )
    return [f"movie number {number} .", *told * (1 + number % 3)], "pos" if good else "neg"


def _movie_reviews(folder: Path) -> None:
    _splits(
        folder, lambda n: dict(zip(("sentences", "label"), _review(n), strict=True)), "train", "dev"
    )


def _imdb(folder: Path) -> None:
    _splits(
        folder,
        lambda n: {"text": " ".join(_review(n)[0]), "label": _review(n)[1], "rating": n % 10},
        "train",
    )


def _reuters(folder: Path) -> None:
    """Some stories have no topic, and are left out."""

    def story(number: int) -> dict[str, Any]:
        topics = (["grain"], ["grain", "wheat"], ["wheat"], [])[number % 4]
        return {
            "topics": topics,
            "paragraphs": [f"The {' and '.join(topics)} trade rose. It fell.", "Reuter."],
        }

    for split in ("train", "dev"):
        lined(folder / f"{split}.jsonl.gz", [story(number) for number in range(40)])


def _sgd(folder: Path) -> None:
    turns = [
        "I would like to eat.",
        "Where would you like to eat?",
        "In Paris.",
        "There is a place in Paris.",
    ]

    def dialog(number: int) -> dict[str, Any]:
        count = 1 + number % 4
        return {
            "id": str(number),
            "turns": turns[:count],
            "speakers": ["user", "system", "user", "system"][:count],
        }

    _splits(folder, dialog, "train", "dev")


def _dailydialog(folder: Path) -> None:
    def row(number: int) -> dict[str, Any]:
        return {
            "context": ["How are you?", "Well.", "Good."][: 1 + number % 3],
            "responses": ["Is it so?", "Good."],
        }

    _splits(folder, row, "plusplus.train", "plusplus.dev")


def _bbc(folder: Path) -> None:
    def news(number: int) -> dict[str, Any]:
        return {
            "title": f"Zed{number} wins",
            "article": f"Zed{number} won today. It was late.\nZed{number} wins a lot.",
        }

    _splits(folder, news, "train", "dev")


def _inferred(folder: Path, *files: str) -> None:
    """Pairs of sentences with a header, and columns that no recipe reads."""
    lines = ["pair_id\tpremise\thypothesis\trelatedness\tlabel"]
    for number, label in enumerate(["entailment", "neutral", "contradiction"] * 12):
        second = {
            "entailment": "A man eats",
            "neutral": "He eats fish",
            "contradiction": "Nobody eats",
        }[label]
        lines.append(f"{number}\tMan {number} is eating\t{second}\t3.{number % 10}\t{label}")
    content = ("\n".join(lines) + "\n").encode()
    for name in files:
        (folder / name).write_bytes(gzip.compress(content) if name.endswith(".gz") else content)


def _hansards(folder: Path) -> None:
    """Parallel files, and true links of the test set."""
    texts = {
        "fr": ["le chien court .", "deux hommes .", "la mer"],
        "en": ["the dog runs .", "two men .", "the sea"],
    }
    for split, count in {"long.{}.gz": 12, "valid.{}.gz": 4, "dev.{}": 1}.items():
        for language, lines in texts.items():
            content = "".join(f"{line}\n" for line in lines * count).encode()
            name = split.format(language)
            (folder / name).write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    (folder / "dev.links").write_text("1 1 1 P\n1 2 2 S\n2 1 1 S\n3 2 2 S\n")


TEXTUAL: Mapping[str, Callable[[Path], None]] = {
    "movie_reviews": _movie_reviews,
    "imdb": _imdb,
    "reuters21578": _reuters,
    "sgd_dialog": _sgd,
    "dailydialog": _dailydialog,
    "bbc_news_summary": _bbc,
    "hansards": _hansards,
    "sick": lambda folder: _inferred(folder, "sick.train.tsv", "sick.dev.tsv"),
    "snli": lambda folder: _inferred(folder, "train.tsv.gz", "dev.tsv.gz"),
}
"""The same for documents, conversations and pairs of sentences."""


def stand_in(recipe: Recipe, folder: Path) -> None:
    """Everything that a recipe reads."""
    folder.mkdir()
    usual = Path(recipe.data.folder).name
    if usual in (made := {**VISUAL, **TEXTUAL}):
        made[usual](folder)
        return
    for files in (recipe.data.train, recipe.data.valid, recipe.data.test):
        if files is not None and not isinstance(files, float | tuple):
            _texts(files, folder)


def _texts(files: str | dict[str, str], folder: Path) -> None:
    """Pairs of texts, in columns or in parallel files."""
    lines = [
        "a dog runs\tein hund rennt\t1",
        "two men sit\tzwei maenner sitzen\t2",
        "the sea\tdas meer\t1",
    ] * 12
    columns = {name: number for number, name in enumerate(files)} if isinstance(files, dict) else {}
    named = files.items() if isinstance(files, dict) else [("", files)]
    for column, name in named:
        picked = [line.split("\t")[columns[column]] if column else line for line in lines]
        content = ("\n".join(picked) + "\n").encode()
        (folder / name).write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
