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


def view(source: tuple[str, ...], *tokens: str, weights: Any = None, **more: Any) -> View:
    """One output over a source."""
    rows = weights or tuple((1.0 / len(source),) * len(source) for _ in tokens)
    own = {key: more.pop(key) for key in ("copied", "token_words") if key in more}
    output = Output(
        " ".join(tokens),
        tokens,
        rows,
        words=own.get("token_words", ()),
        copied=own.get("copied", ()),
    )
    return View({"source": " ".join(source)}, (output,), source=source, **more)


def test_weights_of_pieces_are_added_in_the_source_and_averaged_in_the_output() -> None:
    weights = ((0.1, 0.2, 0.7), (0.3, 0.3, 0.4), (0.0, 0.0, 1.0), (0.5, 0.25, 0.25))
    pieces = view(
        ("▁un", "do", "▁it"), "▁mach", "es", "▁auf", "<stop>", weights=weights, words=(0, 0, 1)
    )
    pieces = View(pieces.inputs, (Output("maches auf", pieces.outputs[0].tokens, weights, words=(0, 0, 1, 2)),),
                  source=pieces.source, words=pieces.words)  # fmt: skip
    joined = pieces.joined()
    [output] = joined.outputs
    assert joined.source == ("undo", "it")
    assert output.tokens == ("maches", "auf", "<stop>")
    assert output.weights[0] == pytest.approx((0.45, 0.55))
    assert output.weights[1] == pytest.approx((0.0, 1.0))
    assert output.weights[2] == pytest.approx((0.75, 0.25))
    assert all(sum(row) == pytest.approx(1.0) for row in output.weights)
    assert joined.joined() == joined


def test_whole_words_lose_their_marks_too() -> None:
    words = view(
        ("▁a", "▁man"), "▁ein", "▁Mann", "<stop>", words=(0, 1), token_words=(0, 1, 2)
    ).joined()
    assert words.source == ("a", "man")
    assert words.outputs[0].tokens == ("ein", "Mann", "<stop>")


def test_pieces_of_a_caption_are_joined_over_the_cells_of_an_image() -> None:
    output = Output("a redbird", ("▁a", "▁red", "bird", "<stop>"), ((0.5, 0.5), (1.0, 0.0), (0.0, 1.0), (0.5, 0.5)),
                    words=(0, 1, 1, 2))  # fmt: skip
    joined = View({"image": "x.png"}, (output,), layout=Layout("grid", (1, 2))).joined()
    assert joined.outputs[0].tokens == ("a", "redbird", "<stop>")
    assert joined.outputs[0].weights == ((0.5, 0.5), (0.5, 0.5), (0.5, 0.5))
    assert joined.source == ()


def test_a_single_word_keeps_its_characters_whatever_the_output_is() -> None:
    one = view(tuple("delhi"), *"कख", "<stop>", words=(0,) * 5, token_words=(0, 1, 2)).joined()
    assert one.source == tuple("delhi")
    assert len(one.outputs[0].weights[0]) == 5


def test_copied_positions_move_with_their_words() -> None:
    whole = view(
        ("▁Re", "x", "▁ran"), "▁Re", "x", words=(0, 0, 1), token_words=(0, 0), copied=(0, None)
    )
    two = View(whole.inputs, (Output("Rex ran", ("▁Re", "x", "▁ran"), ((1.0, 0.0, 0.0),) * 3, words=(0, 0, 1),
               copied=(None, None, 2)),), source=whole.source, words=whole.words)  # fmt: skip
    assert two.joined().outputs[0].copied == (None, 1)
    assert two.joined().outputs[0].tokens == ("Rex", "ran")


def test_characters_of_one_word_stay_and_those_of_several_are_joined() -> None:
    one = view(tuple("ghar"), *"घर", "<stop>", words=(0,) * 4, token_words=(0, 0, 1))
    assert one.joined() is one
    two = view(("n", "e", "␣", "d"), "न", "<stop>", words=(0, 0, 1, 1), token_words=(0, 1))
    assert two.joined().source == ("ne", "d")


def test_a_word_never_reaches_into_the_next_sentence() -> None:
    document = view(("a", "b", "c", "d"), "yes", words=(0, 0, 0, 1), segments=(0, 0, 1, 1))
    joined = document.joined()
    assert joined.source == ("ab", "c", "d")
    assert joined.segments == (0, 1, 1)


def test_both_levels_of_a_document() -> None:
    document = view(("a", "b", "c"), "yes", weights=((0.1, 0.3, 0.6),), segments=(0, 0, 1))
    (first, words), (second, other) = document.sentences(document.outputs[0])
    assert (first, second) == pytest.approx((0.4, 0.6))
    assert words == pytest.approx((0.25, 0.75))
    assert other == (1.0,)
    assert document.kind == "segments"
    assert view(("a",), "yes", weights=((0.0,),)).sentences(Output("x", ("x",), ((0.0,),)))[0] == (
        0.0,
        (0.0,),
    )


def test_positions_without_a_name_have_a_place() -> None:
    image = View(
        {"image": "a.jpg"}, (Output("a", ("a",), ((0.25,) * 4,)),), layout=Layout("grid", (2, 2))
    )
    assert image.names == (
        "row 1, column 1",
        "row 1, column 2",
        "row 2, column 1",
        "row 2, column 2",
    )
    frames = View(
        {"video": "a.mp4"}, (Output("a", ("a",), ((0.5, 0.5),)),), layout=Layout("frames")
    )
    assert frames.names == ("1", "2")


def test_json_has_the_weights_as_they_are() -> None:
    weights = ((0.123456789, 0.876543211),)
    found = json.loads(
        json.dumps(view(("a", "b"), "x", weights=weights, segments=(0, 1)).to_json())
    )
    assert found["outputs"][0]["weights"] == [list(weights[0])]
    assert found["outputs"][0]["sentence_weights"] == list(weights[0])
    assert found["layout"] == ["segments"]
    points = View(
        {"points": "0,1"},
        (Output("0", ("0",), ((1.0,),)),),
        layout=Layout("points"),
        backdrop=[(0.0, 1.0)],
    )
    assert points.to_json()["points"] == [[0.0, 1.0]]
    assert view(("a",), "a", copied=(0,)).to_json()["outputs"][0]["copied"] == [0]


def test_a_view_is_made_of_predictions() -> None:
    found = [
        Prediction(
            "ja",
            source=("I",),
            tokens=("ja",),
            weights=((1.0,),),
            inputs={"x": "a/I"},
            log_probability=rank,
        )
        for rank in (-0.5, -2.0)
    ]
    made = view_of(predictor(None, is_media=True), found)
    assert made.inputs == {"x": "I"}
    assert [one.log_probability for one in made.outputs] == [-0.5, -2.0]
    assert made.alone(1).outputs == (made.outputs[1],)
    assert made.short == "I"
    assert view(("word",) * 90, "x").short.endswith("…")
    assert len(view(("我" * 200,), "x").short) == 120


def test_points_are_numbered_and_one_of_two_inputs_is_attended_to() -> None:
    """As the output names them."""
    inputs = {"x": "0,1 1,0", "y": "what"}
    both: dict[str, Any] = {
        "source": ("0,1", "1,0"),
        "tokens": ("1",),
        "weights": ((0.0, 1.0),),
        "attended": "x",
    }
    found = Prediction("1", inputs=inputs, layout=Layout("points"), **both)
    reads = SimpleNamespace(
        inputs=dict.fromkeys(inputs, predictor([(0.0, 1.0), (1.0, 0.0)]).inputs["x"])
    )
    made = view_of(reads, [found])
    assert made.names == ("0: 0,1", "1: 1,0")
    assert made.to_json()["source"] == ["0,1", "1,0"]  # for programs, which count themselves
    assert made.over == " (attention over x)"
    assert view_of(reads, [replace(found, inputs={"x": "0,1 1,0"})]).over == ""


def test_labels_that_are_chosen_together_are_one_step_and_empty_hypotheses_are_left_out() -> None:
    both = Prediction(
        "a b", source=("x", "y"), tokens=("a", "b"), weights=((0.5, 0.5),), inputs={"x": "x y"}
    )
    made = view_of(predictor(None), [both, Prediction("", inputs={"x": "x y"})])
    assert [one.tokens for one in made.outputs] == [("a, b",)]
    assert usual_view(made) == "heatmap"


def test_every_layout_has_a_view_and_every_view_a_name() -> None:
    assert set(FITTING) == set(Layout.__annotations__["kind"].__args__)
    assert {name for names in FITTING.values() for name in names} | {"json"} == set(
        get_args(ViewName)
    )
    drawn = set(get_args(ViewName)) - {"pharaoh", "json"}
    assert set(IMAGES) == set(TERMINAL) == set(VALUES) == drawn


@pytest.mark.parametrize(
    ("words", "steps", "segments", "name"),
    [(5, 3, False, "heatmap"), (90, 1, False, "document"), (5, 3, True, "heatmap"), (5, 1, True, "document"),
     (90, 3, True, "document"), (90, 3, False, "heatmap")],
)  # fmt: skip
def test_the_usual_view_fits(words: int, steps: int, segments: bool, name: str) -> None:
    source = tuple(f"w{at}" for at in range(words))
    made = view(
        source, *("x",) * steps, segments=tuple(at // 3 for at in range(words)) if segments else ()
    )
    assert usual_view(made) == name
    assert chosen_view(made, None) == name


def test_a_view_that_does_not_fit_is_refused_with_those_that_do() -> None:
    made = view(("a", "b"), "x", "y")
    assert fitting_views(made) == ["heatmap", "lines", "document", "pharaoh", "json"]
    assert "copying" in fitting_views(view(("a", "b"), "x", "y", copied=(None, None)))
    with pytest.raises(DataError) as told:
        chosen_view(made, "image")
    sentence = (
        "this model cannot be shown as image; it gives heatmap, lines, document, pharaoh or json."
    )
    assert str(told.value) == sentence
    bare = View({"video": "a"}, (Output("a", ("a",), ((1.0,),)),), layout=Layout("frames"))
    assert usual_view(bare) == "heatmap"
    deep = View(
        {"x": "0,0,0"},
        (Output("0", ("0",), ((1.0,),)),),
        layout=Layout("points"),
        backdrop=[(0.0, 0.0, 0.0)],
    )
    assert fitting_views(deep) == ["heatmap", "json"]
