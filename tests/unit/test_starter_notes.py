"""What `sixjars new` tells of faults in the data: one bad row or file is no reason to refuse the others."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from sixjars.errors import DataError
from sixjars.starter import notes as starter_notes

from .starters import LABELS, Start, put
from .starters import start as start

PHOTOS = "image_classification"


def labelled(labels: Sequence[object]) -> list[dict[str, object]]:
    """A text for each of the labels."""
    return [{"text": f"a text {n} of words", "label": label} for n, label in enumerate(labels)]


@pytest.mark.parametrize(
    ("bad", "sentence"),
    [
        ([], "holds an empty list."),
        (None, "has no value."),
        ([None], "holds a list with null in it; it may hold texts alone."),
    ],
)
@pytest.mark.parametrize("line", [1, 5])
def test_one_list_without_texts_is_a_bad_row(
    bad: object, sentence: str, line: int, start: Start, tmp_path: Path
) -> None:
    rows: list[dict[str, Any]] = [
        {"image": f"{n}.jpg", "captions": [f"a dog {n}", "a pet"]} for n in range(12)
    ]
    rows[line - 1]["captions"] = bad
    told = start("image_captioning", rows, columns={"target": "captions"}).notes
    place = f"{tmp_path / 'rows.jsonl'}: 1 bad row was skipped. Line {line}"
    assert f"{place}: column 'captions' {sentence}" in told


def test_a_conversation_without_turns_is_a_bad_row(start: Start) -> None:
    talks = ({"turns": ["how are you?", f"fine {n}"]} for n in range(12))
    starter = start("conversation", [{"turns": []}, *talks])
    data = starter.recipe.data
    assert (data.format, data.on_bad_row) == ("dialogs", "skip")
    assert any("Line 1: column 'turns' holds an empty list." in note for note in starter.notes)


def photographs(folder: Path, count: int, size: tuple[int, int]) -> Path:
    """A folder with half of the images in each of two classes; the first one is empty, and the last one is no image."""
    for number in range(count):
        path = folder / ("circle" if number < count // 2 else "square") / f"{number:03}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", size, (number, 0, 0)).save(path)
    (folder / "circle" / "000.png").write_bytes(b"")
    (folder / "square" / f"{count - 1:03}.png").write_text("not an image")
    return folder


@pytest.mark.parametrize(
    ("opened", "sentence"),
    [
        (10_000, "2 of 122 files cannot be used (all images were opened, and 100 of them"),
        (50, "1 of 122 files cannot be used (50 of 122 images were opened, and 50 of them"),
    ],
)
def test_images_are_counted_or_it_is_said_that_they_are_not(
    opened: int, sentence: str, start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(starter_notes, "OPENED", opened)
    monkeypatch.setattr(starter_notes, "DECODED", min(opened, 100))
    notes = start(PHOTOS, photographs(tmp_path / "photos", 122, (90, 60))).notes
    [counted] = [note for note in notes if "cannot be used" in note]
    assert counted.startswith(f"{sentence} read to the end), so the ")
    assert "circle/000.png is empty." in counted


def test_the_image_whose_size_is_told_is_one_that_has_a_size(start: Start, tmp_path: Path) -> None:
    told = " ".join(start(PHOTOS, photographs(tmp_path / "photos", 12, (90, 60))).notes)
    assert "images such as circle/001.png are 90 x 60; their middle square, 67%" in told
    assert "2 of 12 files cannot be used, so the recipe says" in told


@pytest.mark.parametrize(
    ("name", "content", "rows"),
    [
        ("a.csv", "text,label\n" + "the same,spam\n" * 12, "all rows have"),
        ("b.csv", "text,label\nhello,spam\n", "its only row has"),
        ("c.csv", "text,label\n" + "hello, spam\n" * 12 + "bye,spam\n", "all rows have"),
        ("d.jsonl", '{"text": "hello", "label": ["spam"]}\n' * 12, "all rows have"),
    ],
)
def test_one_label_alone_is_refused(
    name: str, content: str, rows: str, start: Start, tmp_path: Path
) -> None:
    with pytest.raises(DataError) as caught:
        start(LABELS, content, name)
    assert str(caught.value) == (
        f"{tmp_path / name}: {rows} the label 'spam', so there is nothing to tell apart; training needs rows with two "
        "labels or more."
    )
    assert not [*tmp_path.glob("*.yaml")]


def test_one_folder_of_images_is_refused_and_several_labels_of_each_row_are_not(
    start: Start, tmp_path: Path
) -> None:
    data = photographs(tmp_path / "photos", 4, (8, 8))
    (data / "square").rename(tmp_path / "elsewhere")
    told = "all rows have the label 'circle', so there is nothing to tell apart"
    with pytest.raises(DataError, match=told):
        start(PHOTOS, data)
    assert start(LABELS, labelled([["spam", "new"]] * 12)).path.exists()


TAGS = [["billing"], ["refund"], ["Refund", "billing"], ["login"], ["billing", "login", "refund"]]


def tagged(mark: str) -> str:
    rows = [f'"ticket {number} is here";"{mark.join(TAGS[number % 5])}"\n' for number in range(120)]
    return "text;tags\n" + "".join(rows)


def test_labels_with_commas_between_are_several_labels(start: Start) -> None:
    starter = start(LABELS, tagged(" , "), "a.csv")
    recipe = starter.recipe
    assert starter.setting("label", "multi_label") is True
    assert (recipe.loss.smoothing, recipe.evaluation.metrics[0]) == (0, "labels_micro_f1")
    assert starter.notes[-2:] == (
        "a row may have several labels, such as 'Refund, billing', so the recipe says `multi_label: true`. If that is "
        "one label, remove it there, and write `metrics: [accuracy@1, macro_f1]`.",
        "labels differ only in case, and are different classes: 'refund' (48 rows) and 'Refund' (24 rows). Write "
        "`lowercase: true` under label to make them one.",
    )


@pytest.mark.parametrize("count", [0, 1, 7])
@pytest.mark.parametrize("ending", ["jsonl", "csv"])
def test_rows_without_any_label_are_counted(count: int, ending: str, start: Start) -> None:
    tags = [*TAGS * 24, *[[]] * count]
    lines = [f'ticket {n},"{", ".join(some)}"\n' for n, some in enumerate(tags)]
    data: Any = "text,tags\n" + "".join(lines) if ending == "csv" else labelled([*tags, None])
    have = "1 row has" if count == 1 else f"{count} rows have"
    sentence = (
        f"{have} no label, which cannot be learned yet, so they are bad rows. Where that is right "
        "of a text, give such rows a label for it, such as 'none'."
    )
    told = [note for note in start(LABELS, data, f"a.{ending}").notes if "learned yet" in note]
    assert told == ([sentence] if count else [])


COMMAS = "write commas there and run `sixjars new` again"
MANY = [["billing"], ["refund"]] * 500 + [["billing", "refund"]] * 400


@pytest.mark.parametrize(
    ("mark", "content", "example", "advice"),
    [
        *((mark, tagged(mark), f"Refund{mark}billing", COMMAS) for mark in ";|/"),
        (  # lists beyond the rows of a guess
            ",",
            "text;tags\n"
            + "".join(f'"ticket {n}";"{", ".join(row)}"\n' for n, row in enumerate(MANY)),
            "billing, refund",
            "write `multi_label: true` under label, and `metrics: [labels_micro_f1]`",
        ),
    ],
)
def test_labels_with_other_marks_between_are_told_of(
    mark: str, content: str, example: str, advice: str, start: Start
) -> None:
    starter = start(LABELS, content, "a.csv")
    assert starter.setting("label", "multi_label") is False
    assert (
        f"labels look like lists with {mark!r} between, such as '{example}', but each list is a "
        f"class of its own. If a row may have several labels, {advice}."
    ) in starter.notes


def test_a_name_with_a_comma_in_it_is_one_label(start: Start) -> None:
    places = ["Paris, France", "Rome, Italy", "Lyon, France", "Milan, Italy"]
    starter = start(LABELS, labelled(places * 30))
    assert starter.setting("label", "multi_label") is False
    assert not any("several labels" in note for note in starter.notes)


def mails(folder: Path, subject: str, queue: str) -> Path:
    lines = [
        f"{subject.format(n // 2, n % 24)},my parcel number {n} is late and lost,{queue.format(n % 4, n % 3)}"
        for n in range(120)
    ]
    return put(folder / "mails.csv", "\n".join(["Betreff,Body,Warteschlange", *lines]))


def test_of_two_columns_the_one_whose_few_values_come_again_is_the_label(
    start: Start, tmp_path: Path
) -> None:
    why = "label = 'Warteschlange' (4 values in 120 rows, where 'Betreff' has 60)"
    assert why in start(LABELS, mails(tmp_path, "Subject {0}", "queue {0}")).notes[0]


def test_the_best_guess_is_what_a_question_about_the_label_says(
    start: Start, tmp_path: Path
) -> None:
    with pytest.raises(DataError) as caught:
        start(LABELS, mails(tmp_path, "topic {1}", "{1}x"))
    assert str(caught.value).endswith(
        "'Betreff' or 'Warteschlange'? Say it, such as --label Warteschlange "
        "(in Python: columns={'label': 'Warteschlange'})."
    )


def test_labels_that_are_left_out_are_named(start: Start) -> None:
    """Where nearly every label has one row, the usual count of rows says nothing."""
    labels = ["good"] * 60 + ["bad"] * 12 + [f"odd{n}" for n in range(9)]
    why = "a typo, or too few to learn it from"
    named = "; ".join(f"label 'odd{n}' has 1 row: {why}" for n in range(3))
    left_out = "The 9 labels of 1 row are left out (min_count: 2 under label)."
    assert f"{named}; and 6 more. {left_out}" in start(LABELS, labelled(labels)).notes


@pytest.mark.parametrize(
    ("label", "says"),
    [
        (lambda n: f"{n * 7 % 300 / 100:.2f}", "(300 in 300 rows, such as '0.00')"),
        (lambda n: str(n * 7 % 150), "(150 in 300 rows, such as '0')"),
        (lambda n: str(n % 5), ""),
        (lambda n: str(n % 50), ""),
        (lambda n: f"class {n % 50}", ""),
    ],
)
def test_amounts_are_no_classes(label: Callable[[int], str], says: str, start: Start) -> None:
    rows = labelled([*map(label, range(300))])
    notes = start(LABELS, rows, columns={"label": "label"}).notes
    many = "labels are numbers with many different values"
    end = "and sixjars predicts classes: round them or put them into ranges first."
    told = [note for note in notes if note.startswith("labels are numbers")]
    assert told == ([f"{many} {says}, {end}"] if says else [])


@pytest.mark.parametrize(
    ("rare", "typo"),
    [
        ("Cancellation / Delivery", False),
        ("Biling / Delivery", True),
        ("Billing / Delvery", True),
        ("Billing/Delivery", True),
        ("Billing / Delivery / Account", False),
        ("Billing  Del ivery", True),
    ],
)
def test_another_word_is_no_typo(rare: str, typo: bool, start: Start) -> None:
    labels = ["Billing / Delivery"] * 40 + ["Account"] * 40 + [rare]
    told = " ".join(start(LABELS, labelled(labels)).notes)
    assert f"has 1 row: {'a typo of' if typo else 'a typo, or too few'}" in told
