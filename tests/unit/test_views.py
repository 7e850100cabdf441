"""The value that all drawings of attention are made of: joining, levels, JSON, and which views fit it."""

import json
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, get_args

import pytest

from sixjars import Layout, Prediction
from sixjars.cli.inspect import ViewName
from sixjars.drawing.draw import IMAGES
from sixjars.drawing.html.views import VALUES
from sixjars.drawing.terminal import TERMINAL
from sixjars.drawing.view import Output, View, view_of
from sixjars.drawing.view_names import FITTING, chosen_view, fitting_views, usual_view
from sixjars.errors import DataError
from tests.unit.test_drawing_draw import predictor


def view(source: Any, *tokens: str, weights: Any = None, **values: Any) -> View:
    """One output over a source, evenly attended to."""
    rows = weights or tuple((1.0 / len(source),) * len(source) for _ in tokens)
    of_output = {"words": values.pop("token_words", ()), "copied": values.pop("copied", ())}
    output = Output(" ".join(tokens), tokens, rows, **of_output)
    return View({"source": " ".join(source)}, (output,), source=tuple(source), **values)


def test_weights_of_pieces_are_added_in_the_source_and_averaged_in_the_output() -> None:
    weights = ((0.1, 0.2, 0.7), (0.3, 0.3, 0.4), (0.0, 0.0, 1.0), (0.5, 0.25, 0.25))
    tokens = "▁mach", "es", "▁auf", "<stop>"
    pieces = view(("▁un", "do", "▁it"), *tokens, weights=weights, words=(0, 0, 1), token_words=(0, 0, 1, 2))  # fmt: skip
    joined = pieces.joined()
    [output] = joined.outputs
    assert joined.source == ("undo", "it")
    assert output.tokens == ("maches", "auf", "<stop>")
    for row, expected in zip(output.weights, [(0.45, 0.55), (0.0, 1.0), (0.75, 0.25)], strict=True):
        assert row == pytest.approx(expected)
    assert joined.joined() == joined


def test_whole_words_lose_their_marks_too() -> None:
    output = "▁ein", "▁Mann", "<stop>"
    words = view(("▁a", "▁man"), *output, words=(0, 1), token_words=(0, 1, 2)).joined()
    assert words.source == ("a", "man")
    assert words.outputs[0].tokens == ("ein", "Mann", "<stop>")


def test_pieces_of_a_caption_are_joined_over_the_cells_of_an_image() -> None:
    weights = ((0.5, 0.5), (1.0, 0.0), (0.0, 1.0), (0.5, 0.5))
    output = Output("a redbird", ("▁a", "▁red", "bird", "<stop>"), weights, words=(0, 1, 1, 2))
    joined = View({"image": "x.png"}, (output,), layout=Layout("grid", (1, 2))).joined()
    assert joined.outputs[0].tokens == ("a", "redbird", "<stop>")
    assert joined.outputs[0].weights == ((0.5, 0.5), (0.5, 0.5), (0.5, 0.5))
    assert joined.source == ()


def test_characters_of_one_word_stay_and_those_of_several_are_joined() -> None:
    alone = view("delhi", *"कख", "<stop>", words=(0,) * 5, token_words=(0, 1, 2)).joined()
    assert alone.source == tuple("delhi")
    assert len(alone.outputs[0].weights[0]) == 5
    single = view("ghar", *"घर", "<stop>", words=(0,) * 4, token_words=(0, 0, 1))
    assert single.joined() is single
    two = view(("n", "e", "␣", "d"), "न", "<stop>", words=(0, 0, 1, 1), token_words=(0, 1))
    assert two.joined().source == ("ne", "d")


def test_copied_positions_move_with_their_words() -> None:
    tokens, copied = ("▁Re", "x", "▁ran"), (None, None, 2)
    pieces = view(tokens, *tokens, words=(0, 0, 1), token_words=(0, 0, 1), copied=copied)
    [output] = pieces.joined().outputs
    assert output.copied == (None, 1)
    assert output.tokens == ("Rex", "ran")


def test_a_word_never_reaches_into_the_next_sentence() -> None:
    joined = view("abcd", "yes", words=(0, 0, 0, 1), segments=(0, 0, 1, 1)).joined()
    assert joined.source == ("ab", "c", "d")
    assert joined.segments == (0, 1, 1)


def test_both_levels_of_a_document() -> None:
    document = view("abc", "yes", weights=((0.1, 0.3, 0.6),), segments=(0, 0, 1))
    (first, words), (second, other) = document.sentences(document.outputs[0])
    assert (first, second) == pytest.approx((0.4, 0.6))
    assert words == pytest.approx((0.25, 0.75))
    assert other == (1.0,)
    assert document.kind == "segments"
    empty = view("a", "yes", weights=((0.0,),))
    assert empty.sentences(empty.outputs[0]) == [(0.0, (0.0,))]


def test_positions_without_a_name_have_a_place() -> None:
    output = Output("a", ("a",), ((0.25,) * 4,))
    image = View({"image": "a.jpg"}, (output,), layout=Layout("grid", (2, 2)))
    assert image.names == tuple(f"row {row}, column {at}" for row in (1, 2) for at in (1, 2))
    assert replace(image, layout=Layout("frames")).names == ("1", "2", "3", "4")


def test_json_has_the_weights_as_they_are() -> None:
    weights = ((0.123456789, 0.876543211),)
    found = json.loads(json.dumps(view("ab", "x", weights=weights, segments=(0, 1)).to_json()))
    assert found["outputs"][0]["weights"] == [list(weights[0])]
    assert found["outputs"][0]["sentence_weights"] == list(weights[0])
    assert found["layout"] == ["segments"]
    points = view(("0,1",), "0", layout=Layout("points"), backdrop=[(0.0, 1.0)])
    assert points.to_json()["points"] == [[0.0, 1.0]]
    assert view("a", "a", copied=(0,)).to_json()["outputs"][0]["copied"] == [0]


def test_a_view_is_made_of_predictions() -> None:
    values: dict[str, Any] = {"source": ("I",), "tokens": ("ja",), "weights": ((1.0,),)}
    values["inputs"] = {"x": "a/I"}
    found = [Prediction("ja", log_probability=rank, **values) for rank in (-0.5, -2.0)]
    made = view_of(predictor(None, is_media=True), found)
    assert made.inputs == {"x": "I"}
    assert [output.log_probability for output in made.outputs] == [-0.5, -2.0]
    assert made.alone(1).outputs == (made.outputs[1],)
    assert made.short == "I"
    assert view(("word",) * 90, "x").short.endswith("…")
    assert len(view(("我" * 200,), "x").short) == 120


def test_points_are_numbered_and_one_of_two_inputs_is_attended_to() -> None:
    """As the output names them."""
    inputs, points = {"x": "0,1 1,0", "y": "what"}, [(0.0, 1.0), (1.0, 0.0)]
    values: dict[str, Any] = {"source": ("0,1", "1,0"), "tokens": ("1",), "weights": ((0.0, 1.0),)}
    values |= {"attended": "x", "layout": Layout("points")}
    reads = SimpleNamespace(inputs=dict.fromkeys(inputs, predictor(points).inputs["x"]))
    made = view_of(reads, [Prediction("1", inputs=inputs, **values)])
    assert made.names == ("0: 0,1", "1: 1,0")
    assert made.to_json()["source"] == ["0,1", "1,0"]  # for programs, which count themselves
    assert made.over == " (attention over x)"
    assert view_of(reads, [Prediction("1", inputs={"x": "0,1 1,0"}, **values)]).over == ""


def test_labels_that_are_chosen_together_are_one_step_and_empty_hypotheses_are_left_out() -> None:
    values: dict[str, Any] = {"source": ("x", "y"), "tokens": ("a", "b"), "inputs": {"x": "x y"}}
    both = Prediction("a b", weights=((0.5, 0.5),), **values)
    made = view_of(predictor(None), [both, Prediction("", inputs={"x": "x y"})])
    assert [output.tokens for output in made.outputs] == [("a, b",)]
    assert usual_view(made) == "heatmap"


def test_every_layout_has_a_view_and_every_view_a_name() -> None:
    assert set(FITTING) == set(Layout.__annotations__["kind"].__args__)
    names = {name for fitting in FITTING.values() for name in fitting}
    assert names | {"json"} == set(get_args(ViewName))
    assert set(IMAGES) == set(TERMINAL) == set(VALUES) == names - {"pharaoh"}


@pytest.mark.parametrize(
    ("words", "steps", "segments", "name"),
    [(5, 3, False, "heatmap"), (90, 1, False, "document"), (5, 3, True, "heatmap"), (5, 1, True, "document"),
     (90, 3, True, "document"), (90, 3, False, "heatmap")],
)  # fmt: skip
def test_the_usual_view_fits(words: int, steps: int, segments: bool, name: str) -> None:
    numbers = tuple(at // 3 for at in range(words)) if segments else ()
    made = view([f"w{at}" for at in range(words)], *("x",) * steps, segments=numbers)
    assert usual_view(made) == chosen_view(made, None) == name


def test_a_view_that_does_not_fit_is_refused_with_those_that_do() -> None:
    made = view("ab", "x", "y")
    assert fitting_views(made) == ["heatmap", "lines", "document", "pharaoh", "json"]
    assert "copying" in fitting_views(view("ab", "x", "y", copied=(None, None)))
    with pytest.raises(DataError) as told:
        chosen_view(made, "image")
    fitting = "heatmap, lines, document, pharaoh or json"
    assert str(told.value) == f"this model cannot be shown as image; it gives {fitting}."
    assert usual_view(view((), "a", weights=((1.0,),), layout=Layout("frames"))) == "heatmap"
    deep = view("a", "0", layout=Layout("points"), backdrop=[(0.0, 0.0, 0.0)])
    assert fitting_views(deep) == ["heatmap", "json"]
