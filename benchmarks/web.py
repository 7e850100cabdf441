"""What a run costs as a page in the browser: its download beside its weights, and how fast it answers in Chromium.

python benchmarks/web.py runs/en-hi runs/words

Answers are those to the inputs of the run's test set, one after the other, as somebody who types would get them; the
first few, before the browser has compiled the script, are not counted.
"""

import argparse
import gzip
import json
import statistics
import sys
import tempfile
from contextlib import ExitStack
from math import prod
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.unit.browser import Browser
from tests.unit.web_pages import READY, header_of, hosted, inputs_of, uri

import sixjars
from sixjars.samples import materialise
from sixjars.serving.web import export_web

TIME = """(async (cases) => {
    const found = [];
    for (const [texts, search] of cases) {
        const given = texts.map(text => text.startsWith("data:") ? fileOf(text) : text);
        const began = performance.now(), [best] = await model.predict(given, {...model.search, ...search});
        found.push([performance.now() - began, best.text.length]);
    }
    return found;
})"""
TEXTS = (".html", ".js")
"""What hosts compress."""
WARM = 20
"""Answers before the browser has compiled the script."""


def sizes(run: Path, page: Path) -> str:
    """The folder beside the weights in 32 bits, and what travels where the host compresses texts.

    Weights are the run's own file, and those of a frozen backbone, which its page
    needs too. Hosts compress by the kind of a file: texts, and not what they do not know.
    """
    content = (run / "model.safetensors").read_bytes()
    own = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
    frozen = [size for name, size in header_of(page)["tensors"].items() if name not in own]
    weights = len(content) + 4 * sum(map(prod, frozen))
    files = {path.name: path.read_bytes() for path in page.iterdir()}
    whole = sum(map(len, files.values()))
    sent = sum(
        len(gzip.compress(one) if Path(name).suffix in TEXTS else one)
        for name, one in files.items()
    )
    each = ", ".join(f"{name} {len(one):,}" for name, one in sorted(files.items()))
    share = f"{whole / weights:.3f} times the weights, {sent / weights:.3f} where the host compresses texts"
    return f"weights {weights:,} bytes, folder {whole:,} ({each}): {share}"


def timed(browser: Browser, cases: list[Any]) -> str:
    """Milliseconds of an answer, and characters of output in a second."""
    found = browser.ask(f"{TIME}({json.dumps([*cases[:WARM], *cases])})")[min(WARM, len(cases)) :]
    took = [each for each, _ in found]
    rate = 1000 * sum(letters for _, letters in found) / sum(took)
    return f"{statistics.median(took):.1f} ms an answer (median), {rate:,.0f} characters a second"


def tried(browser: Browser, run: Path, page: Path, count: int) -> None:
    """Print how fast a page is."""
    predictor = sixjars.load(run, device="cpu")
    inputs = inputs_of(predictor)[:count]
    with tempfile.TemporaryDirectory() as folder:
        for name in (name for name, field in predictor.inputs.items() if field.is_media):
            materialise(predictor.recipe.task, [one[name] for one in inputs], Path(folder))
            inputs = [{**one, name: uri(Path(folder) / one[name])} for one in inputs]
    with hosted(page) as address:
        browser.open(address)
        browser.ask(READY)
        print(f"  ready after {browser.ask('performance.now()'):.0f} ms")
        for kind in ("greedy", "beam") if predictor.network.decoder.searches else ("label",):
            search = {} if kind == "label" else {"kind": kind}
            print(f"  {kind}: {timed(browser, [[list(one.values()), search] for one in inputs])}")


def main() -> None:
    """Print sizes and times of each run."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "runs", type=Path, nargs="+", help="folders of trained runs of a synthetic corpus"
    )
    parser.add_argument("--inputs", type=int, default=100)
    parser.add_argument("--only-sizes", action="store_true", help="do not open a browser")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        browser = (
            None if given.only_sizes else stack.enter_context(Browser(Path(folder) / "profile"))
        )
        for run in given.runs:
            page = export_web(run, Path(folder) / run.name)
            print(f"{run.name}\n  {sizes(run, page)}", flush=True)
            if browser is not None:
                tried(browser, run, page, given.inputs)


if __name__ == "__main__":
    main()
