"""`inspect --view pharaoh`: the word alignments of pairs, a line each, for other programs."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from sixjars.cli.input_notes import is_failure
from sixjars.cli.inputs import note_cut
from sixjars.cli.options import note, results
from sixjars.cli.streaming import portions
from sixjars.runs.skipped import Skipped

if TYPE_CHECKING:
    from sixjars.runs.predict import Predictor
    from sixjars.runs.prediction import Prediction
    from sixjars.runs.requests import Input

    Pair = tuple[Input, str | None]
    """An input, and the output that is forced."""


def print_alignments(
    predictor: "Predictor", given: "Iterator[Pair]", out: Path | None, *, strict: bool = False
) -> None:
    """A line for each pair, empty where a text is empty or a pair cannot be used: lines stay beside those of a file."""
    from sixjars.progress import number_of

    skipped, empty, done, lines = Skipped(), 0, 0, list[str]()
    for some in portions(given, typed=False, slow=False):
        failed: list[Prediction] = []
        lines += _links(predictor, some, failed, first=done)
        skipped += Skipped.of([[prediction] for prediction in failed])
        done += len(some)
        empty += sum(_is_empty(*pair) for pair in some)
        if out is None:
            results().print("\n".join(lines))
            lines = []
    if out is not None:
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        note(f"wrote {out}: a line of links for each of {number_of(done, 'pair')}")
    if empty:
        note(
            f"note: {empty:,} of {number_of(done, 'pair')} with an empty text; an empty line stands for each."
        )
    if skipped.count:
        note(f"note: {skipped.in_words(done, 'lines', what='pairs')}")
    if is_failure(skipped.count, done, strict=strict):
        raise typer.Exit(1)


def _is_empty(one: "Input", target: str | None) -> bool:
    from sixjars.runs.requests import Unreadable

    if isinstance(one, Unreadable):
        return False
    values = one.values() if isinstance(one, Mapping) else [one]
    return not (target or "").strip() or any(
        isinstance(value, str) and not value.strip() for value in values
    )


def _links(
    predictor: "Predictor", pairs: "list[Pair]", failed: "list[Prediction]", *, first: int
) -> Iterator[str]:
    """The links of each pair; nothing of one that cannot be used, and `failed` has it, unless a text of it is empty."""
    from sixjars.data.alignment.aligner import pharaoh
    from sixjars.evaluation.metrics.attention import linked
    from sixjars.runs.forced import forced

    source, output = next(iter(predictor.inputs.values())), predictor.fields.output
    outputs = [target or "" for _, target in pairs]
    found = forced(predictor, [one for one, _ in pairs], outputs, first=first, posterior=True)
    wide = source.words([source.normalize(next(iter(one.inputs.values()), "")) for one in found])
    high = output.words([output.normalize(text) for text in outputs])
    for pair, one, left, right in zip(pairs, found, wide, high, strict=True):
        if one.error is None and not _is_empty(*pair):
            note_cut(one)
            yield pharaoh(linked(one.weights, left, right))
            continue
        failed += [] if _is_empty(*pair) else [one]
        yield ""
