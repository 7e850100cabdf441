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
    """Print a line for each pair, empty for one that cannot be used: line numbers stay the same."""
    from sixjars.progress import number_of

    skipped = Skipped()
    lines = list[str]()
    empty = done = 0
    for pairs in portions(given, typed=False, slow=False):
        failed: list[Prediction] = []
        lines += _links(predictor, pairs, failed, first=done)
        skipped += Skipped.of([[prediction] for prediction in failed])
        done += len(pairs)
        empty += sum(_is_empty(*pair) for pair in pairs)
        if out is None:
            results().print("\n".join(lines))
            lines = []
    if out is not None:
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        note(f"wrote {out}: a line of links for each of {number_of(done, 'pair')}")
    if empty:
        count = f"{empty:,} of {number_of(done, 'pair')}"
        note(f"note: {count} with an empty text; an empty line stands for each.")
    if skipped.count:
        note(f"note: {skipped.in_words(done, 'lines', what='pairs')}")
    if is_failure(skipped.count, done, strict=strict):
        raise typer.Exit(1)


def _is_empty(given: "Input", target: str | None) -> bool:
    from sixjars.runs.requests import Unreadable

    if isinstance(given, Unreadable):
        return False
    values = given.values() if isinstance(given, Mapping) else [given]
    texts = [value for value in (target or "", *values) if isinstance(value, str)]
    return not all(text.strip() for text in texts)


def _links(
    predictor: "Predictor", pairs: "list[Pair]", failed: "list[Prediction]", *, first: int
) -> Iterator[str]:
    """The links of each pair; `failed` gets those that cannot be used, but have no empty text."""
    from sixjars.data.alignment.aligner import pharaoh
    from sixjars.evaluation.metrics.attention import linked
    from sixjars.runs.forced import forced

    source, output = next(iter(predictor.inputs.values())), predictor.fields.output
    outputs = [target or "" for _, target in pairs]
    inputs = [given for given, _ in pairs]
    predictions = forced(predictor, inputs, outputs, first=first, posterior=True)
    texts = [next(iter(prediction.inputs.values()), "") for prediction in predictions]
    source_words = source.words([source.normalize(text) for text in texts])
    target_words = output.words([output.normalize(text) for text in outputs])
    rows = zip(pairs, predictions, source_words, target_words, strict=True)
    for pair, prediction, left, right in rows:
        if prediction.error is None and not _is_empty(*pair):
            note_cut(prediction)
            yield pharaoh(linked(prediction.weights, left, right))
            continue
        failed += [] if _is_empty(*pair) else [prediction]
        yield ""
