"""What `sixjars new` tells of faults in the data: one bad row or file is no reason to refuse the others."""

import json
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from sixjars.errors import DataError
from sixjars.runs.recipes import read_recipe
from sixjars.starter import notes as starter_notes
from sixjars.starter.write import started


def lined(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


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
    bad: object, sentence: str, line: int, tmp_path: Path
) -> None:
    rows: list[dict[str, Any]] = [
        {"image": f"{n}.jpg", "captions": [f"a dog {n}", "a pet"]} for n in range(12)
    ]
    rows[line - 1]["captions"] = bad
    data = lined(tmp_path / "a.jsonl", rows)
    made = started(
        tmp_path / "new.yaml", task="image_captioning", data=data, columns={"target": "captions"}
    )
    assert f"{data}: 1 bad row was skipped. Line {line}: column 'captions' {sentence}" in made.notes


def test_a_conversation_without_turns_is_a_bad_row(tmp_path: Path) -> None:
    data = lined(
        tmp_path / "a.jsonl",
        [{"turns": []}, *({"turns": ["how are you?", f"fine {n}"]} for n in range(12))],
    )
    made = started(tmp_path / "new.yaml", task="conversation", data=data)
    assert read_recipe(made.path).data.format == "dialogs"
    assert read_recipe(made.path).data.on_bad_row == "skip"
    assert any("Line 1: column 'turns' holds an empty list." in note for note in made.notes)


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
        (
            10_000,
            "2 of 122 files cannot be used (all images were opened, and 100 of them read to the end), so the ",
        ),
        (
            50,
            "1 of 122 files cannot be used (50 of 122 images were opened, and 50 of them read to the end), so the ",
        ),
    ],
)
def test_images_are_counted_or_it_is_said_that_they_are_not(
    opened: int, sentence: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(starter_notes, "OPENED", opened)
    monkeypatch.setattr(starter_notes, "DECODED", min(opened, 100))
    data = photographs(tmp_path / "photos", 122, (90, 60))
    notes = started(tmp_path / "new.yaml", task="image_classification", data=data).notes
    [counted] = [note for note in notes if "cannot be used" in note]
    assert counted.startswith(sentence)
    assert "circle/000.png is empty." in counted


def test_the_image_whose_size_is_told_is_one_that_has_a_size(tmp_path: Path) -> None:
    data = photographs(tmp_path / "photos", 12, (90, 60))
    notes = started(tmp_path / "new.yaml", task="image_classification", data=data).notes
    assert any(
        note.startswith("images such as circle/001.png are 90 x 60; their middle square, 67%")
        for note in notes
    )
    assert any(
        note.startswith("2 of 12 files cannot be used, so the recipe says") for note in notes
    )


@pytest.mark.parametrize(
    ("name", "content", "rows"),
    [
        ("a.csv", "text,label\n" + "the same,spam\n" * 12, "all rows have"),
        ("b.csv", "text,label\nhello,spam\n", "its only row has"),
        (
            "c.csv",
            "text,label\n" + "".join(f"hello {n}, spam\n" for n in range(12)) + "bye,spam\n",
            "all rows have",
        ),
        (
            "d.jsonl",
            "".join(f'{{"text": "hello {n}", "label": ["spam"]}}\n' for n in range(12)),
            "all rows have",
        ),
    ],
)
def test_one_label_alone_is_refused(name: str, content: str, rows: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(content, encoding="utf-8")
    with pytest.raises(DataError) as caught:
        started(tmp_path / "new.yaml", task="document_classification", data=tmp_path / name)
    assert str(caught.value) == (
        f"{tmp_path / name}: {rows} the label 'spam', so there is nothing to tell apart; training needs rows with two "
        "labels or more."
    )
    assert not (tmp_path / "new.yaml").exists()


def test_one_folder_of_images_is_refused_and_several_labels_of_each_row_are_not(
    tmp_path: Path,
) -> None:
    data = photographs(tmp_path / "photos", 4, (8, 8))
    (data / "square").rename(tmp_path / "elsewhere")
    with pytest.raises(
        DataError, match="all rows have the label 'circle', so there is nothing to tell apart"
    ):
        started(tmp_path / "new.yaml", task="image_classification", data=data)
    rows = [{"text": f"hello {n}", "label": ["spam", "new"]} for n in range(12)]
    assert started(
        tmp_path / "new.yaml",
        task="document_classification",
        data=lined(tmp_path / "a.jsonl", rows),
    ).path.exists()


TAGS = [["billing"], ["refund"], ["Refund", "billing"], ["login"], ["billing", "login", "refund"]]


def tagged(path: Path, mark: str) -> Path:
    rows = [f'"ticket {number} is here";"{mark.join(TAGS[number % 5])}"\n' for number in range(120)]
    path.write_text("text;tags\n" + "".join(rows), encoding="utf-8")
    return path


def test_labels_with_commas_between_are_several_labels(tmp_path: Path) -> None:
    made = started(
        tmp_path / "new.yaml",
        task="document_classification",
        data=tagged(tmp_path / "a.csv", " , "),
    )
    recipe = read_recipe(made.path)
    assert recipe.data.fields["label"].model_dump()["multi_label"] is True
    assert (recipe.loss.smoothing, recipe.evaluation.metrics[0]) == (0, "labels_micro_f1")
    assert made.notes[-2:] == (
        "a row may have several labels, such as 'Refund, billing', so the recipe says `multi_label: true`. If that is "
        "one label, remove it there, and write `metrics: [accuracy@1, macro_f1]`.",
        "labels differ only in case, and are different classes: 'refund' (48 rows) and 'Refund' (24 rows). Write "
        "`lowercase: true` under label to make them one.",
    )


@pytest.mark.parametrize("count", [0, 1, 7])
@pytest.mark.parametrize("ending", ["jsonl", "csv"])
def test_rows_without_any_label_are_counted(count: int, ending: str, tmp_path: Path) -> None:
    tags = [*TAGS * 24, *[[]] * count]
    rows = [{"text": f"ticket {n} is here", "tags": some} for n, some in enumerate(tags)]
    path = lined(tmp_path / "a.jsonl", [*rows, {"text": "ticket 200 is here", "tags": None}])
    if ending == "csv":
        path = tmp_path / "a.csv"
        lines = [
            f'{row["text"]},"{", ".join(some)}"\n' for row, some in zip(rows, tags, strict=True)
        ]
        path.write_text("text,tags\n" + "".join(lines), encoding="utf-8")
    made = started(tmp_path / "new.yaml", task="document_classification", data=path)
    have = "1 row has" if count == 1 else f"{count} rows have"
    sentence = (
        f"{have} no label, which cannot be learned yet, so they are bad rows. Where that is right "
        "of a text, give such rows a label for it, such as 'none'."
    )
    assert [note for note in made.notes if "learned yet" in note] == ([sentence] if count else [])


@pytest.mark.parametrize("mark", [";", "|", "/"])
def test_labels_with_other_marks_between_are_told_of(mark: str, tmp_path: Path) -> None:
    made = started(
        tmp_path / "new.yaml", task="document_classification", data=tagged(tmp_path / "a.csv", mark)
    )
    assert read_recipe(made.path).data.fields["label"].model_dump()["multi_label"] is False
    assert (
        f"labels look like lists with {mark!r} between, such as 'Refund{mark}billing', but each list is a class of its "
        "own. If a row may have several labels, write commas there and run `sixjars new` again."
    ) in made.notes


def test_lists_beyond_the_rows_of_a_guess_are_told_of(tmp_path: Path) -> None:
    rows = [f'"ticket {number} is here";"{TAGS[number % 2][0]}"\n' for number in range(1000)]
    rows += [f'"ticket {number} is here";"billing, refund"\n' for number in range(1000, 1400)]
    (tmp_path / "a.csv").write_text("text;tags\n" + "".join(rows), encoding="utf-8")
    made = started(tmp_path / "new.yaml", task="document_classification", data=tmp_path / "a.csv")
    assert (
        "labels look like lists with ',' between, such as 'billing, refund', but each list is a class of its own. If a "
        "row may have several labels, write `multi_label: true` under label, and `metrics: [labels_micro_f1]`."
    ) in made.notes


def test_a_name_with_a_comma_in_it_is_one_label(tmp_path: Path) -> None:
    data, places = (
        tmp_path / "a.csv",
        ["Paris, France", "Rome, Italy", "Lyon, France", "Milan, Italy"],
    )
    data.write_text(
        "text,label\n" + "".join(f'text {n} is here,"{places[n % 4]}"\n' for n in range(120))
    )
    made = started(tmp_path / "new.yaml", task="document_classification", data=data)
    assert read_recipe(made.path).data.fields["label"].model_dump()["multi_label"] is False
    assert not any("several labels" in note for note in made.notes)


def test_of_two_columns_the_one_whose_few_values_come_again_is_the_label(tmp_path: Path) -> None:
    lines = [
        f"Subject {n // 2},my parcel number {n} is late and lost,queue {n % 4}" for n in range(120)
    ]
    data = tmp_path / "mails.csv"
    data.write_text("\n".join(["Betreff,Body,Warteschlange", *lines]) + "\n", encoding="utf-8")
    told = started(tmp_path / "new.yaml", task="document_classification", data=data).notes[0]
    why = "label = 'Warteschlange' (4 values in 120 rows, where 'Betreff' has 60)"
    assert why in told


def test_the_best_guess_is_what_a_question_about_the_label_says(tmp_path: Path) -> None:
    lines = [f"topic {n % 24},my parcel number {n} is late and lost,{n % 3}x" for n in range(120)]
    data = tmp_path / "mails.csv"
    data.write_text("\n".join(["Betreff,Body,Warteschlange", *lines]) + "\n", encoding="utf-8")
    with pytest.raises(DataError) as caught:
        started(tmp_path / "new.yaml", task="document_classification", data=data)
    assert str(caught.value).endswith(
        "'Betreff' or 'Warteschlange'? Say it, such as --label Warteschlange "
        "(in Python: columns={'label': 'Warteschlange'})."
    )


def test_labels_that_are_left_out_are_named(tmp_path: Path) -> None:
    """Where nearly every label has one row, the usual count of rows says nothing."""
    labels = ["good"] * 60 + ["bad"] * 12 + [f"odd{n}" for n in range(9)]
    rows = [{"text": f"a text {n} of words", "label": label} for n, label in enumerate(labels)]
    data = lined(tmp_path / "a.jsonl", rows)
    told = started(tmp_path / "new.yaml", task="document_classification", data=data).notes
    why = "a typo, or too few to learn it from"
    named = "; ".join(f"label 'odd{n}' has 1 row: {why}" for n in range(3))
    assert (
        f"{named}; and 6 more. The 9 labels of 1 row are left out (min_count: 2 under label)."
        in told
    )


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
def test_amounts_are_no_classes(label: Any, says: str, tmp_path: Path) -> None:
    rows = [{"text": f"a text {n} of words", "label": label(n)} for n in range(300)]
    data = lined(tmp_path / "a.jsonl", rows)
    made = started(
        tmp_path / "new.yaml", task="document_classification", data=data, columns={"label": "label"}
    )
    told = [note for note in made.notes if note.startswith("labels are numbers")]
    many = "labels are numbers with many different values"
    end = "and sixjars predicts classes: round them or put them into ranges first."
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
def test_another_word_is_no_typo(rare: str, typo: bool, tmp_path: Path) -> None:
    labels = ["Billing / Delivery"] * 40 + ["Account"] * 40 + [rare]
    rows = [{"text": f"a text {n} of words", "label": label} for n, label in enumerate(labels)]
    data = lined(tmp_path / "a.jsonl", rows)
    told = " ".join(started(tmp_path / "new.yaml", task="document_classification", data=data).notes)
    assert f"has 1 row: {'a typo of' if typo else 'a typo, or too few'}" in told
