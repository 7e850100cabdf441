"""A report in a real browser: points and words answer, and nothing leaves the page. Skipped where there is none."""

from collections.abc import Iterator
from dataclasses import replace
from time import monotonic

import pytest

from sixjars.drawing.view import Output
from sixjars.evaluation.metrics import ClassRow, Confusion
from sixjars.reports.page import report_page
from sixjars.reports.values import Group, ShownExample
from tests.unit.browser import CHROMIUM, Browser
from tests.unit.test_report_html import (
    LARGEST_FILE,
    example,
    large_view,
    report_of,
    summary_map,
    view,
)
from tests.unit.test_views_html import WEIGHTS

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium on this machine")

TIP = "(tip => tip.hidden ? null : tip.textContent)(document.querySelector('.tip'))"
QUICK = 2.0
"""Seconds until a report is open."""
PHONE = {"width": 380, "height": 700, "deviceScaleFactor": 2, "mobile": True}


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """With a report."""
    folder = tmp_path_factory.mktemp("browser")
    file = folder / "report.html"
    labels = tuple(f"label {at}" for at in range(20))
    report = report_of(
        summary_map=summary_map(30, labels=3),
        classes=[ClassRow(label, 1, 1.0, 1.0, 1.0) for label in labels],
        confusion=Confusion(
            labels, tuple(tuple(int(row == at) for at in range(20)) for row in range(20))
        ),
    )
    file.write_text(report_page(report), encoding="utf-8")
    with Browser(folder / "profile") as made:
        made.open(file)
        yield made


def dot(at: int) -> str:
    return f'.dot[data-at="{at}"]'


def test_pointing_at_a_point_shows_its_text(browser: Browser) -> None:
    assert browser.ask(TIP) is None
    for at in (3, 17):
        browser.point(dot(at))
        told = browser.ask(TIP)
        assert told.startswith(f"input {at} word")
        assert f"→ output {at} " in told
    browser.point("h1")
    assert browser.ask(TIP) is None


def test_a_click_shows_the_nearest_neighbours(browser: Browser) -> None:
    near = summary_map(30).neighbours[5]
    browser.click(dot(5))
    told = browser.ask("document.querySelector('.picked').innerText")
    assert told.startswith("input 5 word")
    assert "exact_match: 0.833" in told
    shown = browser.ask("[...document.querySelectorAll('.picked button')].map(b => b.textContent)")
    assert [text.split()[1] for text in shown] == [str(other) for other, _ in near]
    assert f"similarity {near[0][1]:.2f}" in told
    assert browser.ask("document.querySelectorAll('.ring.near').length") == 5
    browser.click(".picked button")
    assert browser.ask("document.querySelector('.picked b').textContent").startswith(
        f"input {near[0][0]} "
    )


def test_arrow_keys_go_from_point_to_point(browser: Browser) -> None:
    places = summary_map(30).spots
    browser.ask(f"document.querySelector('{dot(5)}').focus()")
    focused = "+document.activeElement.dataset.at"
    for key, axis, sign in (
        ("ArrowRight", 0, 1),
        ("ArrowUp", 1, 1),
        ("ArrowLeft", 0, -1),
        ("ArrowDown", 1, -1),
    ):
        before = browser.ask(focused)
        browser.press(key)
        after = browser.ask(focused)
        assert after != before
        assert sign * (places[after][axis] - places[before][axis]) > 0
        assert browser.ask(TIP).startswith(f"input {after} ")
        assert browser.ask("document.activeElement.getAttribute('aria-label')").startswith(
            f"input {after} "
        )
    browser.press("Enter")
    assert browser.ask("document.querySelector('.picked b').textContent").startswith(
        f"input {after} "
    )
    assert browser.ask("document.querySelectorAll('.dot[tabindex=\"0\"]').length") == 1
    browser.ask("document.activeElement.blur()")


def test_colours_are_switched_and_have_a_legend(browser: Browser) -> None:
    shown = "[...document.querySelectorAll('.legend')].filter(e => e.checkVisibility()).map(e => e.classList[1])"
    colours = (
        "new Set([...document.querySelectorAll('.dot')].map(e => getComputedStyle(e).fill)).size"
    )
    found = {}
    for name in browser.ask("[...document.querySelector('.by').options].map(o => o.value)"):
        browser.ask(
            f"(by => {{by.value = '{name}'; by.dispatchEvent(new Event('change', {{bubbles: true}}))}})"
            "(document.querySelector('.by'))"
        )
        assert browser.ask(shown) == [name]
        found[name] = browser.ask(colours)
    assert found == {"class": 3, "length": 9, "score": 7}


def test_a_word_is_found(browser: Browser) -> None:
    fill = (
        "(box => {{box.value = '{}'; box.dispatchEvent(new Event('input', {{bubbles: true}})); box.focus()}})"
        "(document.querySelector('.find'))"
    )
    browser.ask(fill.format("input 12 "))
    assert browser.ask("document.querySelectorAll('.dot:not(.dim)').length") == 1
    browser.press("Enter")
    assert browser.ask("document.querySelector('.picked b').textContent").startswith("input 12 ")
    browser.ask(fill.format(""))
    assert browser.ask("document.querySelectorAll('.dim').length") == 0


def test_pointing_at_an_output_word_lights_its_sources(browser: Browser) -> None:
    shares = "[...document.querySelectorAll('#worst-2-view [data-s]')].map(e => +e.style.getPropertyValue('--w'))"
    for step, row in enumerate(WEIGHTS):
        browser.point(f'#worst-2-view [data-t="{step}"]:not(td)')
        assert browser.ask(shares) == pytest.approx([weight / max(row) for weight in row], abs=2e-3)
    browser.point("h1")


def test_dark_light_and_telephone(browser: Browser) -> None:
    found = []
    for scheme in ("light", "dark"):
        browser.order(
            "Emulation.setEmulatedMedia",
            features=[{"name": "prefers-color-scheme", "value": scheme}],
        )
        found.append(browser.ask("getComputedStyle(document.querySelector('.chart text')).fill"))
    browser.order("Emulation.setEmulatedMedia", features=[])
    assert found[0] != found[1]
    browser.order("Emulation.setDeviceMetricsOverride", **PHONE)
    wide = browser.ask("document.documentElement.scrollWidth")
    browser.order("Emulation.clearDeviceMetricsOverride")
    assert wide <= 380


def test_nothing_is_complained_of_and_nothing_is_loaded(browser: Browser) -> None:
    """After all of the above was done."""
    assert browser.complaints() == []


def test_a_thousand_examples_open_quickly(
    browser: Browser, tmp_path_factory: pytest.TempPathFactory
) -> None:
    groups: tuple[Group, ...] = ("best", "median", "worst")
    shown = [
        ShownExample(group, example(at, 500), large_view(120, 24))
        for group in groups
        for at in range(3)
    ]
    file = tmp_path_factory.mktemp("large") / "report.html"
    file.write_text(report_page(report_of(1000, shown=shown)), encoding="utf-8")
    assert file.stat().st_size < LARGEST_FILE
    took = []
    for _ in range(3):  # other tests run beside it: the quickest counts
        browser.session = ""
        begun = monotonic()
        browser.open(file)
        assert browser.ask("document.querySelectorAll('.dot').length") == 1000
        took.append(monotonic() - begun)
    assert min(took) < QUICK, took
    browser.point(dot(999))
    assert browser.ask(TIP).startswith("input 999 ")
    browser.point('#best-1-view [data-t="3"]:not(td)')
    assert browser.ask("document.querySelector('#best-1-view [role=tabpanel]').dataset.lit") == "t3"
    assert browser.complaints() == []


def test_hypotheses_of_a_beam_are_switched(
    browser: Browser, tmp_path_factory: pytest.TempPathFactory
) -> None:
    given, several = view(0), [WEIGHTS, WEIGHTS[::-1]]
    outputs = tuple(
        Output(f"answer {at}", ("x", f"y{at}"), weights, -0.5) for at, weights in enumerate(several)
    )
    file = tmp_path_factory.mktemp("beam") / "report.html"
    shown = [ShownExample("best", example(0), replace(given, outputs=outputs))]
    file.write_text(report_page(report_of(shown=shown)), encoding="utf-8")
    browser.session = ""
    browser.open(file)
    visible = "[...document.querySelectorAll('#best-1-view [role=tabpanel]')].map(e => e.checkVisibility()).indexOf(true)"
    shares = (
        "[...document.querySelectorAll('#best-1-view [data-s]')].filter(e => e.checkVisibility() && e.tagName != 'TD')"
        ".map(e => +e.style.getPropertyValue('--w'))"
    )
    for at, weights in enumerate(several):
        browser.click(f"#best-1-view [role=tab]:nth-of-type({at + 1})")
        assert browser.ask(visible) == at
        browser.point("#best-1-view [role=tabpanel]:not([hidden]) [data-t='0']:not(td)")
        assert browser.ask(shares) == pytest.approx(
            [weight / max(weights[0]) for weight in weights[0]], abs=2e-3
        )
    assert browser.complaints() == []
