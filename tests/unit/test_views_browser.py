"""The live views in a real browser: what is pointed at lights what it attended to. Skipped where there is none."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from sixjars.drawing.html.pages import page
from sixjars.drawing.html.views import fragment
from sixjars.drawing.view import Output, View
from tests.unit.browser import CHROMIUM, Browser
from tests.unit.test_views_html import CASES, WEIGHTS, WILD, words

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium on this machine")

SHARES = "[...document.querySelectorAll('#{key} [data-{side}]:not(td)')].map(e => +e.style.getPropertyValue('--w'))"


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """With one page of all views."""
    folder = tmp_path_factory.mktemp("browser")
    file = folder / "all.html"
    shown = [fragment(view.alone(0), name, key=name) for name, view in CASES.items()]
    file.write_text(
        page([*shown, fragment(words(), key="several")], title=f"All views {WILD}"),
        encoding="utf-8",
    )
    with Browser(folder / "profile") as made:
        made.open(file)
        yield made


def shares(browser: Browser, key: str, side: str) -> list[float]:
    """How dark each word is."""
    found: list[float] = browser.ask(SHARES.format(key=key, side=side))
    return found


@pytest.mark.parametrize("key", CASES)
def test_pointing_at_an_output_word_lights_its_input_and_the_other_way_round(
    browser: Browser, key: str
) -> None:
    view = CASES[key]
    for step, row in enumerate(view.outputs[0].weights):
        browser.point(f'#{key} [data-t="{step}"]:not(td)')
        assert shares(browser, key, "s") == pytest.approx(order_of(browser, key, row), abs=2e-3)
        assert (
            browser.ask(f"document.querySelector('#{key} [role=tabpanel]').dataset.lit")
            == f"t{step}"
        )
    for at in (0, 3):
        browser.point(f'#{key} [data-s="{at}"]:not(td)')
        column = [row[at] for row in view.outputs[0].weights]
        peak = max(column) or 1.0
        assert shares(browser, key, "t") == pytest.approx(
            [weight / peak for weight in column], abs=2e-3
        )
        told = browser.ask(f"document.querySelector('#{key} .status').textContent")
        best = [
            f"{view.outputs[0].tokens[step]} ({column[step]:.2f})"
            for step in (0, 1)
            if column[step] == max(column)
        ]
        name = {"frames": f"frame {at + 1}", "tour": f"point {at}"}.get(key, view.names[at])
        assert told.startswith(
            f"{name} is attended to by {best[0]}" if max(column) else f"{name}: "
        )
    browser.point("h1")
    assert browser.ask(f"document.querySelector('#{key} [role=tabpanel]').dataset.lit") is None


def order_of(browser: Browser, key: str, row: tuple[float, ...]) -> list[float]:
    """The shares as they stand on the page: bars and points may come in another order."""
    places = browser.ask(
        f"[...document.querySelectorAll('#{key} [data-s]')].map(e => +e.dataset.s)"
    )
    return [row[at] / max(row) for at in places]


def test_a_click_keeps_what_is_lit_until_escape(browser: Browser) -> None:
    browser.click('#lines [data-t="0"]')
    browser.point("h1")
    assert shares(browser, "lines", "s") == pytest.approx(
        [weight / 0.7 for weight in WEIGHTS[0]], abs=2e-3
    )
    browser.press("Escape")
    assert shares(browser, "lines", "s") == [0, 0, 0, 0]


def test_arrow_keys_go_from_word_to_word_and_to_the_other_side(browser: Browser) -> None:
    focused = (
        "(() => {const d = document.activeElement.dataset; return d.t ? 't' + d.t : 's' + d.s})()"
    )
    browser.ask("document.querySelector('#heatmap [data-t=\"0\"]:not(td)').focus()")
    found = []
    for key in ("ArrowRight", "ArrowDown", "ArrowLeft", "Home", "ArrowUp", "End"):
        browser.press(key)
        found.append(browser.ask(focused))
    assert found == ["t1", "s3", "s2", "s0", "t0", "t1"]
    browser.ask("document.activeElement.blur()")


def test_hypotheses_are_switched_by_mouse_and_keys(browser: Browser) -> None:
    shown = (
        "[...document.querySelectorAll('#several [role=tabpanel]')].map(e => e.checkVisibility())"
    )
    assert browser.ask(shown) == [True, False]
    browser.click("#several-1-tab")
    assert browser.ask(shown) == [False, True]
    assert (
        browser.ask("document.querySelector('#several-1-tab').getAttribute('aria-selected')")
        == "true"
    )
    browser.point('#several-1 [data-t="1"]:not(td)')
    assert browser.ask("document.querySelector('#several-1').dataset.lit") == "t1"
    browser.ask("document.querySelector('#several-1-tab').focus()")
    browser.press("ArrowLeft")
    assert browser.ask(shown) == [True, False]


def test_lines_are_as_thick_as_their_weights(browser: Browser) -> None:
    lines = "[...document.querySelectorAll('#{key} path')]"
    drawn = (
        lines + ".map(p => [+p.dataset.lineT, +p.dataset.lineS, +p.getAttribute('stroke-width')])"
    )
    found = {(step, at): width / 8 for step, at, width in browser.ask(drawn.format(key="lines"))}
    wanted = {
        (step, at): w for step, row in enumerate(WEIGHTS) for at, w in enumerate(row) if w >= 0.05
    }
    assert found == pytest.approx(wanted)
    assert [tuple(own[:2]) for own in browser.ask(drawn.format(key="copying"))] == [(1, 3)]


def test_lines_of_a_long_input_cross_no_word(tmp_path: Path) -> None:
    source = tuple(f"word{at}" for at in range(40))
    weights = tuple(tuple(float(at == step) for at in range(40)) for step in (0, 39))
    view = View({"x": "long"}, (Output("a b", ("a", "b"), weights),), source=source)
    (tmp_path / "long.html").write_text(
        page([fragment(view, "lines")], title="long"), encoding="utf-8"
    )
    with Browser(tmp_path / "profile") as browser:
        browser.open(tmp_path / "long.html")
        right = "Math.max(...[...document.querySelectorAll('[data-s]')].map(e => e.getBoundingClientRect().right))"
        left = "Math.min(...[...document.querySelectorAll('[data-t]')].map(e => e.getBoundingClientRect().left))"
        box = "[...document.querySelectorAll('.pair path')].map(p => p.getBoundingClientRect())"
        lines = browser.ask(f"{box}.map(b => [b.left, b.right])")
        assert len(lines) == 2
        assert all(browser.ask(right) <= begin and end <= browser.ask(left) for begin, end in lines)
        assert not browser.complaints()


def test_the_large_image_shows_the_light_of_a_word(browser: Browser) -> None:
    light = "getComputedStyle(document.querySelector('#image .large .light')).display"
    assert browser.ask(light) == "none"
    browser.point('#image .tile[data-t="1"]')
    assert browser.ask(light) == "block"
    shown = "document.querySelector('#image {} .light').style.backgroundImage"
    tile = '.tile[data-t="1"]'
    assert browser.ask(shown.format(".large")) == browser.ask(shown.format(tile)) != ""
    browser.point("h1")


def test_sentences_have_the_weights_of_the_word_that_is_pointed_at(browser: Browser) -> None:
    sentences = "[...document.querySelectorAll('#document .sentence')]"
    shown = sentences + ".map(e => [e.textContent, +e.style.getPropertyValue('--w')])"
    usual = browser.ask(shown)
    browser.point('#document [data-t="0"]')
    assert browser.ask(shown) == [["90%", 1], ["10%", pytest.approx(0.1 / 0.9, abs=1e-3)]]
    browser.point("h1")
    assert browser.ask(shown) == usual


def test_dark_and_light(browser: Browser) -> None:
    colour = "getComputedStyle(document.body).backgroundColor"
    found = []
    for scheme in ("light", "dark"):
        browser.order(
            "Emulation.setEmulatedMedia",
            features=[{"name": "prefers-color-scheme", "value": scheme}],
        )
        found.append(browser.ask(colour))
    browser.order("Emulation.setEmulatedMedia", features=[])
    assert found == ["rgb(255, 255, 255)", "rgb(20, 24, 29)"]


CONTRAST = """(() => {
    const canvas = document.createElement("canvas").getContext("2d", {willReadFrequently: true});
    const light = (color, behind) => {
        for (const one of [behind, color]) { canvas.fillStyle = one; canvas.fillRect(0, 0, 1, 1); }
        const part = [...canvas.getImageData(0, 0, 1, 1).data].slice(0, 3).map(v => v / 255)
            .map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
        return 0.2126 * part[0] + 0.7152 * part[1] + 0.0722 * part[2];
    };
    const paper = getComputedStyle(document.body).backgroundColor;
    return [...document.querySelectorAll("#heatmap td, #document .word, #document .sentence")].map(e => {
        const style = getComputedStyle(e), back = light(style.backgroundColor, paper), ink = light(style.color, paper);
        return (Math.max(back, ink) + 0.05) / (Math.min(back, ink) + 0.05);
    });
})()"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_letters_can_be_read_on_every_shade(browser: Browser, scheme: str) -> None:
    """By the contrast of WCAG 2.1: 4.5 is good, 3 is enough for large letters."""
    browser.order(
        "Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}]
    )
    cells = "document.querySelectorAll('#heatmap .heat td[data-t]')"
    browser.ask(
        f"[...{cells}].forEach((e, at) => {{ const w = at / 7; e.style.setProperty('--w', w);"
        " e.classList.toggle('deep', w > 0.58); e.classList.toggle('deepest', w > 0.78); })"
    )
    found = browser.ask(CONTRAST)
    browser.order("Emulation.setEmulatedMedia", features=[])
    assert len(found) > 12
    assert min(found) > 4


def test_a_telephone_need_not_scroll_sideways(browser: Browser) -> None:
    how = {"width": 380, "height": 700, "deviceScaleFactor": 2, "mobile": True}
    browser.order("Emulation.setDeviceMetricsOverride", **how)
    wide = browser.ask("[document.documentElement.scrollWidth, innerWidth]")
    browser.order("Emulation.clearDeviceMetricsOverride")
    assert wide[0] <= 380


def test_nothing_is_complained_of_and_nothing_is_loaded(browser: Browser) -> None:
    """Last, so that all of the above was done."""
    assert browser.complaints() == []
    browser.ask("console.error('heard'); fetch('https://example.invalid/').catch(() => 0)")
    assert any("heard" in told for told in browser.complaints())  # so it would have been seen
