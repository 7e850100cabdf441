"""Views as HTML: everything is escaped, nothing is loaded, and the weights drawn are the weights kept."""

import re
from base64 import b64decode
from collections.abc import Sequence
from dataclasses import replace
from html.parser import HTMLParser
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from jinja2 import UndefinedError
from markupsafe import escape
from PIL import Image

import sixjars
from sixjars.drawing.html.pages import page, render
from sixjars.drawing.html.views import VALUES, fragment, light_uri, photo_uri
from sixjars.drawing.view import Output, View
from sixjars.drawing.weights import DARK
from sixjars.flow.values import Layout

PACKAGE = Path(sixjars.__file__).parent
WILD = "</script><script>alert('x')</script>\"&"
WEIGHTS = ((0.7, 0.2, 0.1, 0.0), (0.05, 0.05, 0.15, 0.75))


def words(**more: Any) -> View:
    outputs = tuple(
        Output(f"x{at} {WILD}", (f"x{at}", WILD), WEIGHTS, -0.5 * at, (None, 3)) for at in range(2)
    )
    return View({"source": f"a b c {WILD}"}, outputs, source=("a", "b", "c", WILD), **more)


def image() -> View:
    pixels = np.full((40, 60, 3), 200, dtype=np.uint8)
    outputs = (Output("a dog", ("a", "dog"), WEIGHTS),)
    backdrop = pixels, (0.1, 0.0, 0.9, 1.0)
    return View({"image": WILD}, outputs, layout=Layout("grid", (2, 2)), backdrop=backdrop)


def frames(count: int = 4) -> View:
    weights = tuple(tuple(float(at == step) for at in range(count)) for step in range(2))
    pixels = np.zeros((count, 8, 8, 3), dtype=np.uint8)
    outputs = (Output("it runs", ("it", "runs"), weights),)
    return View({"video": "v.mp4"}, outputs, layout=Layout("frames"), backdrop=pixels)


def points(*coordinates: tuple[float, ...]) -> View:
    outputs, backdrop = (Output("1 0 2 3", ("1", "0"), WEIGHTS),), list(coordinates)
    layout = Layout("points")
    return View({"x": "p"}, outputs, source=tuple("0123"), layout=layout, backdrop=backdrop)


def even(source: Sequence[str], tokens: str = "ab", **values: Any) -> View:
    """An output for a long input, or one in turns."""
    row = values.pop("row", (1 / len(source),) * len(source))
    output = Output(tokens, tuple(tokens), (row,) * len(tokens), copied=values.pop("copied", ()))
    return View({"x": "input"}, (output,), source=tuple(source), **values)


def numbered(count: int) -> list[str]:
    return [f"word{at}" for at in range(count)]


CASES = {
    "heatmap": words(),
    "lines": words(),
    "document": words(segments=(0, 0, 1, 1)),
    "copying": words(),
    "image": image(),
    "frames": frames(),
    "tour": points((0.0, 0.0), (1.0, 0.0), (1.0, 1.0), (0.0, 1.0)),
}


class Reader(HTMLParser):
    """The tags and texts of a page, and the numbers of its tables of weights."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data


def table_of(html: str) -> list[list[float]]:
    """The weights of the first table."""
    [body, *_] = re.findall(r'class="weights">.*?<tbody>(.*?)</tbody>', html)
    rows = [re.findall(r"<td>([\d.]+)</td>", row) for row in body.split("</tr>")[:-1]]
    return [[*map(float, row)] for row in rows]


def test_only_html_and_what_is_the_toolkits_own_is_not_escaped() -> None:
    """A `safe` more is a text of a run that may be HTML: make its template escape it."""
    marked = {}
    for path in PACKAGE.rglob("templates/*.html"):
        if found := re.findall(r"(\S+) \| safe", path.read_text("utf-8")):
            marked[path.name] = found
    assert marked == {
        "page.html": ["style", "fragment", "script"],
        "view.html": ["panel"],
        "example.html": ["example.view"],
    }


def test_a_template_is_escaped_and_on_one_line() -> None:
    values = {"names": [WILD], "numbers": [1], "photos": ["data:"], "weights": [], "peak": 0.5}
    output = Output("", (), ())
    html = render("frames.html", values | {"output": output, "frames": 1})
    assert f'alt="{escape(WILD)}">' in html
    assert "\n" not in html
    assert re.search(r"\s<|>\s", html.replace(str(escape(WILD)), "")) is None
    with pytest.raises(UndefinedError, match="'names' is undefined"):
        render("frames.html", {"output": output})


def test_every_view_has_a_case() -> None:
    assert set(CASES) == set(VALUES)


@pytest.mark.parametrize("name", CASES)
def test_text_is_escaped_and_nothing_is_loaded(name: str) -> None:
    html = page([fragment(CASES[name], name)], title=WILD)
    read = Reader(html)
    assert [tag for tag, _ in read.tags].count("script") == 1
    assert not [tag for tag, _ in read.tags if tag in ("link", "iframe", "object", "embed", "base")]
    loaded = [own[key] for _, own in read.tags for key in ("src", "href", "srcset") if key in own]
    assert all(str(one).startswith("data:") for one in loaded)
    urls = re.findall(r"url\((.*?)\)", html)
    assert all(url.startswith("data:") for url in urls)
    policies = [own.get("content") for tag, own in read.tags if tag == "meta"]
    assert "default-src 'none'" in str(policies)
    assert "alert('x')" in read.text


@pytest.mark.parametrize("name", CASES)
def test_the_table_has_the_weights(name: str) -> None:
    view = CASES[name]
    found = table_of(fragment(view, name))
    assert np.allclose(found, view.outputs[0].weights, atol=5e-5)


@pytest.mark.parametrize("name", CASES)
def test_whatever_is_pointed_at_can_be_reached_by_keys(name: str) -> None:
    tags = Reader(fragment(CASES[name].alone(0), name)).tags
    items = [own for tag, own in tags if ("data-t" in own or "data-s" in own) and tag != "td"]
    assert {own.get("role") for own in items} == {"button"}
    assert [own["data-t"] for own in items if own["tabindex"] == "0"] == ["0"]
    assert {int(str(own["data-s"])) for own in items if "data-s" in own} == {0, 1, 2, 3}
    assert {int(str(own["data-t"])) for own in items if "data-t" in own} == {0, 1}


def test_cells_are_as_dark_as_their_weights() -> None:
    html = fragment(words().alone(0), "heatmap")
    shares = re.findall(r'<td class="[^"]*" data-t="\d" style="--w:([\d.]+)"', html)
    assert np.allclose(np.reshape([*map(float, shares)], (2, 4)) * 0.75, WEIGHTS, atol=1e-3)


def test_hypotheses_have_tabs_and_ids_of_their_own() -> None:
    html = fragment(words(), key="a") + fragment(words(), key="b")
    tags = Reader(html).tags
    ids = [own["id"] for _, own in tags if "id" in own]
    assert len(ids) == len(set(ids))
    tabs = [own for _, own in tags if own.get("role") == "tab"]
    assert [own["aria-selected"] for own in tabs] == ["true", "false"] * 2
    panels = {own["id"]: "hidden" in own for _, own in tags if own.get("role") == "tabpanel"}
    assert panels == {"a-0": False, "a-1": True, "b-0": False, "b-1": True}
    assert [own["aria-controls"] for own in tabs] == list(panels)


def test_copied_words_are_marked_with_where_they_are_from() -> None:
    html = fragment(words().alone(0), "copying")
    [(own)] = [own for _, own in Reader(html).tags if "copied" in str(own.get("class"))]
    assert (own["data-t"], own["data-from"]) == ("1", "3")


def test_a_forced_output_is_said_to_be_given() -> None:
    assert "(this output was given)" in fragment(words(forced=True).alone(0))


def test_a_long_input_flows_as_text() -> None:
    html = fragment(even(numbered(200)))
    assert 'class="heat"' not in html
    assert html.count("data-s=") == 200


def test_a_text_without_sentences_is_one_paragraph() -> None:
    html = fragment(words().alone(0), "document")
    assert "<li>" not in html
    assert 'class="sentence' not in html
    assert html.count("data-s=") == len(words().source)
    assert "Blue: the weight of a word, averaged over the output; strongest is " in html


def test_the_order_of_hypotheses_is_told() -> None:
    assert "Ordered by probability." in fragment(words())
    assert "Ordered by" not in fragment(words().alone(0))


def test_all_columns_of_a_longer_input_are_seen() -> None:
    """More than 24 are narrow, without numbers."""
    for count, numbers in ((24, True), (25, False)):
        html = fragment(even(numbered(count), "a", row=(0.5, 0.5, *[0.0] * (count - 2))))
        assert (">.50</td>" in html) == numbers
        assert ('class="heat narrow"' in html) != numbers


@pytest.mark.parametrize("name", ["heatmap", "document"])
def test_turns_of_a_conversation_are_told_apart(name: str) -> None:
    told, turns = "&gt; and &lt;: turns of the other speaker", ["<", "a", ">", "b"]
    assert told in fragment(even(turns, segments=(0, 0, 1, 1)), name)
    assert told not in fragment(even(turns, segments=(0, 1, 1, 1)), name)
    assert told not in fragment(words(segments=(0, 0, 1, 1)), name)


def test_which_of_several_inputs_is_attended_to_is_told() -> None:
    assert "(attention over sentence2)" in fragment(words(attended="sentence2"))


def test_many_frames_are_grouped_and_their_weights_added() -> None:
    found = table_of(fragment(frames(40)))
    assert len(found[0]) == 16
    assert [sum(row) for row in found] == [1.0, 1.0]


def test_numbers_are_bars() -> None:
    html = fragment(points((0.5,), (-0.25,), (0.75,), (0.0,)))
    heights = [float(one) for one in re.findall(r'<rect [^>]*height="([\d.]+)"', html)]
    assert np.allclose(heights, np.array([0.25, 0.5, 0.75, 0.0]) * 230, atol=0.1)


def pixels(uri: str, kind: str) -> Any:
    assert uri.startswith(f"data:image/{kind};base64,")
    return np.asarray(Image.open(BytesIO(b64decode(uri.partition(",")[2]))))


def test_light_lies_where_the_weights_are() -> None:
    weights = np.zeros((3, 4))
    weights[1, 2] = 1.0
    mask = pixels(light_uri(weights), "png")
    assert mask.shape == (18, 24, 2)
    darkness = mask[:, :, 1] / (255 * (1 - DARK))
    assert darkness[8:10, 14:16].max() < 0.1  # the middle of that cell
    assert darkness[0, 0] > 0.99
    assert (mask[:, :, 0] == 0).all()


@pytest.mark.parametrize(("high", "wide"), [(900, 1200), (10, 20)])
def test_images_are_small(high: int, wide: int) -> None:
    shown = pixels(photo_uri(np.zeros((high, wide, 3), dtype=np.uint8), 480), "jpeg")
    assert shown.shape == ((360, 480, 3) if wide > 480 else (120, 240, 3))


@pytest.mark.parametrize("name", ["lines", "copying"])
def test_a_long_input_stands_beside_its_output(name: str) -> None:
    assert 'class="pair"' in fragment(CASES[name].alone(0), name)
    assert 'class="pair tall"' in fragment(even(numbered(40), copied=(None, 0)), name)


def test_points_that_are_not_in_the_output_are_told() -> None:
    view = points((0.0, 0.0), (1.0, 0.0), (1.0, 1.0), (0.5, 0.2))
    part = fragment(replace(view, outputs=(Output("1 0", ("1", "0"), WEIGHTS),)))
    assert fragment(view).count('class="left-out"') == 0
    assert part.count('class="left-out"') == 2
    assert "Grey: not in the output." in part


def test_numbers_have_their_values_and_positions() -> None:
    html = fragment(points((0.3,), (0.1,), (-0.5,), (0.7,)))
    assert re.findall(r'<text class="below"[^>]*>(\d+)</text>', html) == ["1", "0", "2", "3"]
    assert re.findall(r"<text style[^>]*>([-.0-9]+)</text>", html) == ["0.1", "0.3", "-0.5", "0.7"]
