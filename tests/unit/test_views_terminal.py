"""Views in the terminal: no wider than the window, and with the weights that were kept."""

import re
from dataclasses import replace
from io import StringIO

import numpy as np
import pytest
from rich.console import Console

from sixjars.drawing.terminal import TERMINAL, view_in_terminal
from sixjars.drawing.view import Output, View, order_of, probability_of
from tests.unit.test_views_html import CASES, WEIGHTS, even, numbered, words


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
    row = tuple(1.0 if at == 50 else 0.0 for at in range(60))
    text = printed(even(numbered(60), "y", row=row), "heatmap")
    assert "word50" in text
    assert "word5 " not in text
    note = r"^(\d+) more columns, where every weight is below 0\.05, are left out\."
    [left_out] = re.findall(note, text, re.MULTILINE)
    assert int(left_out) + len(re.findall(r"word\d+", text)) == 60


def test_lines_name_what_each_word_attends_to() -> None:
    text = printed(words().alone(0), "lines")
    assert "→" in text
    assert "a 0.70  b 0.20  c 0.10" in text


def test_copying_tells_what_is_certain() -> None:
    weights, copied = ((0.9, 0.1), (0.2, 0.8), (0.5, 0.5)), (0, None, None)
    output = Output("Rex ran far", ("Rex", "ran", "far"), weights, copied=copied)
    text = printed(View({"x": "Rex ran"}, (output,), source=("Rex", "ran")), "copying")
    assert [" ".join(line.split()) for line in text.splitlines() if line.strip()] == [
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
    source = ("a", *numbered(199)[1:], "a")
    rows = np.zeros((21, 200))
    rows[:20, 199], rows[20] = 0.4, 0.005
    rows[range(20), range(20)] = 0.6
    tokens = tuple(f"y{step}" for step in range(21))
    output = Output("y", tokens, tuple(map(tuple, rows.tolist())))
    text = printed(View({"x": "long"}, (output,), source=source), "heatmap")
    lines = [" ".join(line.split()) for line in text.splitlines()]
    assert len(lines) < 30
    assert lines[0] == "y0 → a (word 1) 0.60 a (word 200) 0.40"
    assert lines[1] == "y1 → word1 0.60 a (word 200) 0.40"
    assert lines[20] == "y20 → each below 0.05"
    assert "a heat map of 200 columns is too wide for a terminal" in " ".join(lines)
