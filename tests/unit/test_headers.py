"""Whether a first row has names or values, where both are texts; and what the user says of it."""

import csv
from pathlib import Path
from random import Random

import pytest

from sixjars.data.tables.dialect import header_verdict
from tests.conftest import Call

WORDS = "turn set open close play stop send find the a lamp door song mail house of in at my your".split()
Pairs = list[list[str]]


def sentences(count: int = 200, *, low: int = 3, high: int = 9, end: str = ".") -> Pairs:
    """Pairs of sentences, some of them short."""
    draw = Random(0)

    def one() -> str:
        return " ".join(draw.choices(WORDS, k=draw.randint(low, high))).capitalize() + end

    return [[one(), one()] for _ in range(count)]


SHORT = [[one + other, other + one] for one in WORDS[:7] for other in WORDS[:7] if one != other]
JAPANESE = [
    [f"明日は{n}時に駅で友達に会います。", f"昨日は{n}時に家に帰りました。"] for n in range(150)
]
HINDI = [[f"यह घर {n} बहुत बड़ा है।", f"this house {n} is very big."] for n in range(150)]
NUMBERS = [[f"{n}", f"{n} plus one"] for n in range(20)]
LATIN = dict(zip("бвгдзклмн", "bvgdzklmn", strict=True))
RUSSIAN = [[f"{a}а{b}ы", f"{LATIN[a]}a{LATIN[b]}y"] for a in LATIN for b in LATIN]
COUNTED = [[f"{n}", *row, "" if n % 9 else "проверить"] for n, row in enumerate(RUSSIAN)]


@pytest.mark.parametrize(
    ("first", "below"),
    [
        (["Long Instruction", "Short Command"], sentences(low=1)),
        (["Raw Version", "Clean Version"], sentences(low=1)),
        (["Raw Version", "Clean Version"], sentences(low=1, end="")),
        (["Raw Form of It", "Clean Form"], sentences()),
        (["raw_version", "clean_version"], sentences(low=1)),
        (["raw version", "clean version"], sentences()),
        (["plainText", "simpleText"], sentences(end="")),
        (["Rohfassung Alt", "Übertragung Neu"], sentences()),
        (["文章", "翻訳"], JAPANESE),
        (["मूल पाठ", "अनुवाद"], HINDI),
        (["amount", "meaning"], NUMBERS),
        (["№", "слово", "translit", "примечание"], COUNTED),
        (["№ п/п", "лексема", "запись", "что-то"], COUNTED),
        (["слово", "translit"], RUSSIAN),
        (["Wort", "Umschrift", "source"], [[*row, "web"] for row in RUSSIAN]),
    ],
)
def test_names_above_sentences(first: list[str], below: Pairs) -> None:
    assert header_verdict([first, *below]) == "yes"


LATIN_CYRILLIC = [
    [f"{a}o{b}", f"{c}о{d}"]
    for a, c in zip("dvsn", "двсн", strict=True)
    for b, d in zip("mlptk", "млптк", strict=True)
]


@pytest.mark.parametrize(
    "first",
    [["Latn", "Cyrl"], ["latn", "cyrl"], ["EN", "DEU"], ["source", "traget"]],
)
def test_a_first_row_unlike_all_others_is_asked_about(first: list[str]) -> None:
    assert header_verdict([first, *LATIN_CYRILLIC]) == "unclear"
    assert header_verdict([first, *LATIN_CYRILLIC[:9]]) == "no"
    assert header_verdict([["dva", "два"], *LATIN_CYRILLIC]) == "no"


@pytest.mark.parametrize(
    ("first", "below"),
    [
        (["hi", "hallo"], SHORT),
        (["Hi", "Hallo"], SHORT),
        (["good day", "guten Tag"], SHORT),
        (["Turn on the lamp.", "Lamp on."], sentences()),
        (["Turn the lamp on", "Set lamp"], sentences(end="")),
        (["Open the door", "Door open"], sentences(low=1, end="")),
        (["New York", "New York"], sentences()),
        (["Guten Morgen", "Good morning"], sentences(low=1, high=4, end="")),
        (["3", "drei"], NUMBERS),
        (["昨日は家に帰りました。", "翻訳"], JAPANESE),
        (["Raw Version", "Clean Version"], sentences(4)),
        (["hi", "hallo"], []),
        (["нет слова", "net slova"], RUSSIAN),
        (["море", "more"], RUSSIAN),
        (["?", "!"], RUSSIAN),
    ],
)
def test_a_first_pair_is_no_header(first: list[str], below: Pairs) -> None:
    assert header_verdict([first, *below]) == "no"


@pytest.mark.parametrize(
    ("first", "below"),
    [
        (["good day", "guten Tag"], sentences(50, low=5)),
        (["Raw Version", "Clean Version"], sentences(6)),
        (["Raw Version", "Clean Version"], SHORT),
        (
            ["raw version", "clean version"],
            [[one, " ".join(other.split()[:3])] for one, other in sentences()],
        ),
        (["слово", "word"], RUSSIAN),
        (["Wort", "Umschrift"], RUSSIAN),
    ],
)
def test_some_first_rows_are_not_clear(first: list[str], below: Pairs) -> None:
    assert header_verdict([first, *below]) == "unclear"


def write(path: Path, rows: Pairs) -> Path:
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, quoting=csv.QUOTE_ALL).writerows(rows)
    return path


def test_a_header_of_prose_names_the_columns(call: Call, tmp_path: Path) -> None:
    data = write(tmp_path / "clean.csv", [["Long Instruction", "Short Command"], *sentences(low=1)])
    said = call("new", tmp_path / "c.yaml", "--task", "translation", "--data", data)
    assert (
        "source = 'Long Instruction' (the first text), target = 'Short Command'"
        in said.out + said.err
    )
    text = (tmp_path / "c.yaml").read_text()
    assert "{column: Long Instruction, " in text


def test_a_first_line_that_is_not_clear_is_a_note(call: Call, tmp_path: Path) -> None:
    data = write(tmp_path / "clean.csv", [["good day", "guten Tag"], *sentences(50, low=5)])
    said = call("new", tmp_path / "c.yaml", "--task", "translation", "--data", data)
    assert said.code == 0
    assert (
        f"{data}: the first line ('good day', 'guten Tag') may be a header, and is read as an example; write "
        "`data.header: true` if it is one, `data.header: false` if not."
    ) in said.out + said.err


def test_a_column_that_the_user_names_is_in_a_header(call: Call, tmp_path: Path) -> None:
    data = write(tmp_path / "short.csv", [["hi there", "hallo"], *SHORT])
    options = ("--task", "translation", "--data", data)
    said = call("new", tmp_path / "c.yaml", *options, "--source", "hallo", "--target", "hi there")
    assert "source = 'hallo' (as you say), target = 'hi there' (as you say)" in said.out + said.err
    one = call("new", tmp_path / "d.yaml", *options, "--target", "hi there")
    assert "target = 'hi there' (as you say)" in one.out + one.err
    wrong = call("new", tmp_path / "e.yaml", *options, "--source", "hello")
    assert wrong.sentence == f"{data}: column 'hello' is unknown. Known: 1, 2."


def test_a_label_that_the_user_names_is_in_a_header(call: Call, tmp_path: Path) -> None:
    rows = [
        ["so it went", "kind of it"],
        *([text, f"kind {at % 2}"] for at, (text, _) in enumerate(sentences(low=1))),
    ]
    options = ("--task", "document_classification", "--data", write(tmp_path / "l.csv", rows))
    said = call("new", tmp_path / "c.yaml", *options, "--label", "kind of it")
    assert (
        "source = 'so it went' (the only text), label = 'kind of it' (as you say)"
        in said.out + said.err
    )


REVIEWS = [
    [str(n), "2024-01-02", "lamp", "it is quite good indeed.", str(n % 5)] for n in range(30)
]


@pytest.mark.parametrize(
    ("first", "below"),
    [
        (["No.", "Date", "Product", "Review text", "Stars"], REVIEWS),
        (["Nr.", "Datum:", "Ware", "Wie war es?", "Punkte"], REVIEWS),
        (["Did you like it?", "Stars"], [row[3:] for row in REVIEWS]),
    ],
)
def test_names_may_end_with_a_mark_above_numbers(first: list[str], below: Pairs) -> None:
    assert header_verdict([first, *below]) == "yes"


def test_sentences_are_no_names_even_above_numbers() -> None:
    assert header_verdict([["Go.", "Geh."], *sentences()]) == "no"
    reviews = [[row[3], row[4]] for row in REVIEWS]
    assert header_verdict([["Good lamp.", "unrated"], *reviews]) == "unclear"
