"""Views in the terminal: no wider than the window, and with the weights that were kept."""

import re
from dataclasses import replace
from io import StringIO

import pytest
from rich.console import Console

from sixjars.drawing.terminal import TERMINAL, view_in_terminal
from sixjars.drawing.view import Output, View, order_of, probability_of
from tests.unit.test_views_html import CASES, WEIGHTS, words


def printed(view: View, name: str, width: int = 80) -> str:
    console = Console(width=width, highlight=False, emoji=False, markup=False, file=StringIO())
    for part in view_in_terminal(view, name, width=width):
        console.print(part)
    assert isinstance(console.file, StringIO)
    return console.file.getvalue()


@pytest.mark.parametrize("name", TERMINAL)
def test_every_view_fits_the_window(name: str) -> None:
    lines = printed(CASES[name], name, width=60).splitlines()
    assert lines
    assert max(map(len, lines)) <= 60


def test_a_heat_map_has_its_weights_and_lists_the_other_hypotheses() -> None:
    text = printed(words(), "heatmap")
    numbers = [float(number) for number in re.findall(r"(?<= )\.\d\d(?= |$)", text, re.MULTILINE)]
    assert numbers == [weight for row in WEIGHTS for weight in row if weight >= 0.05]
    assert "2. x1 " in text
    assert "(probability 61%)" in text
    assert "Ordered by probability." in text


def test_a_wide_heat_map_continues_below_where_there_is_weight() -> None:
    source = tuple(f"word{at}" for at in range(60))
    row = tuple(1.0 if at == 50 else 0.0 for at in range(60))
    text = printed(View({"x": "long"}, (Output("y", ("y",), (row,)),), source=source), "heatmap")
    assert "word50" in text
    assert "word5 " not in text
    [left_out] = re.findall(
        r"^(\d+) more columns, where every weight is below 0\.05, are left out\.",
        text,
        re.MULTILINE,
    )
    assert int(left_out) + len(re.findall(r"word\d+", text)) == 60


def test_lines_name_what_each_word_attends_to() -> None:
    text = printed(words().alone(0), "lines")
    assert "→" in text
    assert "a 0.70  b 0.20  c 0.10" in text


def test_copying_tells_what_is_certain() -> None:
    view = View(
        {"x": "Rex ran"},
        (
            Output(
                "Rex ran far",
                ("Rex", "ran", "far"),
                ((0.9, 0.1), (0.2, 0.8), (0.5, 0.5)),
                copied=(0, None, None),
            ),
        ),
        source=("Rex", "ran"),
    )
    lines = [
        " ".join(line.split()) for line in printed(view, "copying").splitlines() if line.strip()
    ]
    assert lines == [
        "Rex copied from word 1 0.90",
        "ran also in the input: word 2 0.80",
        "far generated",
    ]


def test_a_document_has_the_weight_of_each_sentence() -> None:
    text = printed(CASES["document"].alone(0), "document")
    shares = re.findall(r"^ *(\d+)%", text, re.MULTILINE)
    assert shares == ["50", "50"]
    assert "Most weight: " in text


def test_a_text_without_sentences_is_its_words_alone() -> None:
    """All its weight is no news."""
    text = printed(words().alone(0), "document")
    assert not re.findall(r"^ *(\d+)%", text, re.MULTILINE)
    assert text.startswith("a b c ")


def test_all_outputs_have_one_unit() -> None:
    """Where one is so improbable that its logarithm says more, all have the logarithm; or else their scores."""
    best, other = words().outputs
    both = replace(words(), outputs=(best, replace(other, log_probability=-9.0)))
    assert "(probability below 0.1%)" in printed(both, "heatmap")
    assert probability_of(both).startswith("probability ")
    rare = replace(both, outputs=both.outputs[::-1])
    assert probability_of(rare) == "log probability -9.00"
    assert probability_of(rare, 1) == f"log probability {best.log_probability:.2f}"
    scored = replace(both, order="Ordered by score: x.")
    assert (probability_of(scored), order_of(scored)) == ("score 0.000", "Ordered by score: x.")
    assert order_of(scored.alone(0)) == ""


def test_an_image_is_bright_where_the_weights_are() -> None:
    lines = printed(CASES["image"], "image").splitlines()
    assert lines[0].split() == ["a", "70%", "dog", "75%"]
    assert lines[1].startswith("██")


def test_a_heat_map_of_a_long_text_is_a_list() -> None:
    source = ("a", *(f"word{at}" for at in range(1, 199)), "a")
    rows = tuple(
        tuple(0.6 if at == step else 0.4 if at == 199 else 0.0 for at in range(200))
        for step in range(20)
    )
    flat = (0.005,) * 200
    tokens = tuple(f"y{step}" for step in range(21))
    text = printed(
        View({"x": "long"}, (Output("y", tokens, (*rows, flat)),), source=source), "heatmap"
    )
    lines = [" ".join(line.split()) for line in text.splitlines()]
    assert len(lines) < 30
    assert lines[0] == "y0 → a (word 1) 0.60 a (word 200) 0.40"
    assert lines[1] == "y1 → word1 0.60 a (word 200) 0.40"
    assert lines[20] == "y20 → each below 0.05"
    assert "a heat map of 200 columns is too wide for a terminal" in " ".join(lines)
