"""The command `inspect`: what a run attends to, in the terminal, as a file, or as word alignments."""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, final

import typer

from sixjars.cli import options
from sixjars.cli.faithfulness import check_weights
from sixjars.cli.inputs import (
    CommandInputs,
    note_file_names,
    note_skipped,
    note_table,
    note_unknown,
    note_unknown_target,
)
from sixjars.cli.options import check_output, note, option, print_json, results
from sixjars.cli.predict import check_one_source, note_fonts, search_settings, with_attention
from sixjars.cli.streaming import portions
from sixjars.progress import number_of
from sixjars.runs.prediction.input_warnings import InputCounts, Skipped, cut_in_words
from sixjars_runtime.errors import DataError

if TYPE_CHECKING:
    from sixjars.drawing.view import View
    from sixjars.recipe.sections import SearchSettings
    from sixjars.runs.prediction.prediction import Prediction
    from sixjars.runs.prediction.predictor import Predictor
    from sixjars.runs.prediction.requests import Input

    Pair = tuple[Input, str | None]
    """An input, and the output that is forced."""


PICTURES, PAGE, DATA = (".png", ".svg", ".pdf"), ".html", ".json"
"""The endings of files that can be written."""
MOST = 100
"""Inputs of a page, unless more are asked for: a few megabytes."""
MOST_DECISIVE = 5
"""Decisive words of an output that are listed."""
NOT_DRAWN = (
    "note: the weights are attention to words; the output hangs on evidence of words and pairs of "
    "words too. Without --out the words that it hangs on are listed."
)
ViewName = Literal[
    "heatmap", "lines", "document", "image", "frames", "tour", "copying", "pharaoh", "json"
]


def inspect(
    run: options.Run,
    texts: options.Texts = None,
    question: options.Question = None,
    input_file: Annotated[Path | None, option("--input", help=options.FILE)] = None,
    out: Annotated[
        Path | None,
        option(help="A file: .html answers when pointed at; .png, .svg, .pdf or .json."),
    ] = None,
    view: Annotated[
        ViewName | None, option(help="How it is shown; without it, as fits the input.")
    ] = None,
    target: Annotated[
        str | None, option(metavar="TEXT", help="Force this output (teacher forcing).")
    ] = None,
    search: options.Search = None,
    nbest: options.Nbest = None,
    setting: options.Setting = None,
    *,
    pieces: Annotated[
        bool, typer.Option("--pieces", help="Show tokens as they are, not joined to words.")
    ] = False,
    check: Annotated[
        bool,
        typer.Option(
            "--check", help="Compare the weights with erasing the input and with gradients."
        ),
    ] = False,
    data: Annotated[
        Path | None, option(help="With --check: a file in place of the test set.")
    ] = None,
    examples: Annotated[
        int | None, option(help="The most inputs that are shown, or checked.", min=1)
    ] = None,
    reference: Annotated[
        bool,
        typer.Option(
            "--reference", help="With --check: force the outputs of the data (teacher forcing)."
        ),
    ] = False,
    device: options.Device = "auto",
    allow: options.Allow = None,
    strict: options.Strict = False,
) -> None:
    """Show what a run attends to: for each output word, the words, regions, frames or points of the
    input.
    """  # noqa: D205 - one sentence of --help
    from sixjars.runs.prediction.predictor import load

    _check_out(out, view)
    if check:
        if any((texts, question, input_file, view, target, search, nbest, setting, pieces)):
            raise DataError(
                "--check measures a whole file: give --data FILE, "
                "and no inputs or options of one view."
            )
        check_weights(
            run,
            out,
            data=data,
            examples=examples,
            reference=reference,
            device=device,
            allow=allow or [],
        )
        return
    if data is not None or reference:
        raise DataError(
            "--data and --reference belong to --check; inputs to look at are --input FILE."
        )
    check_one_source(texts, input_file)
    predictor = load(run, device=device, allow=allow or [])
    if not predictor.has_attention:
        raise DataError(
            f"{run} has no attention, so it gives no view (sixjars report shows the rest); "
            f"{with_attention(predictor)}"
        )
    settings = _search(predictor, search, nbest, setting)
    inspection = _Inspection(
        predictor, settings, view, target, pieces=pieces, most=examples, strict=strict
    )
    given = inspection.pairs(CommandInputs(texts or [], question or [], input_file))
    if view != "pharaoh":
        return inspection.show(given, out, title=f"Attention of {run.name}")
    print_alignments(predictor, islice(given, examples), out, strict=strict)


def _check_out(out: Path | None, view: str | None) -> None:
    """Refuse a file of another ending, or one that cannot be written, before anything loads."""
    from sixjars.runs.output_file import check_writable

    if out is None:
        return
    ending = out.suffix.lower()
    drawn = ending in (*PICTURES, PAGE, DATA)
    if view == "pharaoh" and drawn:
        raise DataError(
            f"--view pharaoh is written as lines of text, but --out is {out}; name a .txt file."
        )
    if view != "pharaoh" and not drawn:
        raise DataError(f"--out {out} should end in {', '.join([*PICTURES, PAGE])} or {DATA}.")
    if view == "json" and ending != DATA:
        raise DataError(f"--view json is written to a {DATA} file, but --out is {out}.")
    if ending not in (*PICTURES, PAGE):
        check_output(out, "--out")
    check_writable(out, f"--out {out}")


def _search(
    predictor: "Predictor", kind: str | None, nbest: int | None, setting: list[str] | None
) -> "SearchSettings":
    """The settings of search; of a beam all hypotheses are shown."""
    search, given = search_settings(predictor, kind, nbest, setting)
    every = search.kind == "beam" and predictor.ability.searches and "nbest" not in given
    return search.model_copy(update={"nbest": search.width}) if every else search


@final
@dataclass(frozen=True)
class _Inspection:
    """The settings of `inspect`, and its views of inputs."""

    predictor: "Predictor"
    settings: "SearchSettings"
    view: str | None
    target: str | None
    pieces: bool
    most: int | None
    """The most inputs that are shown."""
    strict: bool
    """Whether the exit code is 1 where an input was skipped."""

    def pairs(self, inputs: CommandInputs) -> "Iterator[Pair]":
        """Each input with its forced output, of the command line or of its row in a file."""
        predictor = self.predictor
        note_file_names(predictor, inputs.texts)
        aligns = self.view == "pharaoh" and self.target is None
        table = inputs.table(predictor, with_output=aligns)
        if aligns and table is None:
            columns = " and ".join(map(str, predictor.all_columns.values()))
            raise DataError(
                "--view pharaoh aligns an input with a given output: add --target TEXT, "
                f"or --input FILE with the columns {columns}."
            )
        if inputs.typed:
            raise DataError("give texts, --input FILE or lines on standard input.")
        for values, _ in inputs.items(predictor, table, inputs.lines(predictor, table)):
            if aligns:
                row = dict(values) if isinstance(values, Mapping) else {}
                target = str(row.pop(predictor.fields.output.name, ""))
                yield row or values, target
            else:
                yield values, self.target
        note_table(table)

    def show(self, given: "Iterator[Pair]", out: Path | None, *, title: str) -> None:
        """Show all inputs in one page or list of JSON, or one input in a picture."""
        every = list(given)
        most = self.most or (MOST if out is not None and out.suffix.lower() == PAGE else len(every))
        rows = self._predicted(every[:most])
        if len(every) > most:
            shown = "input is shown" if most == 1 else f"{most:,} inputs are shown"
            note(f"note: the first {shown}, of {len(every):,}; --examples N shows more.")
        good = [row for row in rows if row[0].error is None]
        if not good:
            raise DataError(str(rows[0][0].error))
        _note_cut(row[0] for row in good)
        views = [self._view(row) for row in good]
        if out is None:
            self._print(views, [self._decisive(row[0]) for row in good])
        else:
            self._write(out, views, title)
            if self._has_evidence:
                note(NOT_DRAWN)
        self._note(rows, good)

    @property
    def _has_evidence(self) -> bool:
        """Whether an output depends on counted words besides attention."""
        return bool(self.predictor.network.encoder.counted)

    def _decisive(self, prediction: "Prediction") -> str:
        """The words that an output with evidence depends on, more than on those it attends to."""
        if not self._has_evidence or self.view == "json":
            return ""
        from sixjars.runs.faithfulness import falls_without

        weights = tuple(falls_without(self.predictor, prediction))
        view = self._view([replace(prediction, weights=(weights,))])
        pairs = zip(view.outputs[0].weights[0], view.names, strict=True)
        falls = sorted(pairs, key=lambda pair: -pair[0])[:MOST_DECISIVE]
        # smaller falls would be shown as 0.00
        listed = "  ".join(f"{name} {fall:.2f}" for fall, name in falls if fall >= 0.005)
        about = "It hangs on (log P falls by so much without the word)"
        return f"{about}: {listed or 'no single word'}"

    def _note(self, rows: "list[list[Prediction]]", good: "list[list[Prediction]]") -> None:
        """Notes on unknown tokens and skipped inputs; then the exit code."""
        note_unknown(InputCounts.of(good).unknown_share)
        if self.target is not None:
            note_unknown_target(good[0][0].tokens)
        counts = InputCounts.of(rows)
        note_skipped(counts)
        if counts.are_failure(strict=self.strict):
            raise typer.Exit(1)

    def _predicted(self, given: "list[Pair]") -> "list[list[Prediction]]":
        from sixjars.runs.prediction.teacher_forcing import forced_predictions

        inputs = [values for values, _ in given]
        if self.target is None:
            return self.predictor.nbest(inputs, search=self.settings)
        if len(inputs) > 1:
            raise DataError(f"--target is the output of one input, but {len(inputs)} are given.")
        return [forced_predictions(self.predictor, inputs, [self.target])]

    def _view(self, predictions: "list[Prediction]") -> "View":
        from sixjars.decoding.scores import order_in_words
        from sixjars.drawing.view import view_of
        from sixjars.drawing.view_names import chosen_view

        order = order_in_words(self.settings) if self.predictor.ability.searches else ""
        forced = self.target is not None
        view = view_of(self.predictor, predictions, pieces=self.pieces, forced=forced, order=order)
        chosen_view(view, self.view)  # refuse a view that the model does not have
        return view

    def _print(self, views: "list[View]", decisive: "list[str]") -> None:
        from rich.text import Text

        from sixjars.drawing.terminal import view_in_terminal
        from sixjars.drawing.view import probability_of
        from sixjars.drawing.view_names import chosen_view

        console = results()
        for view, hangs_on in zip(views, decisive, strict=True):
            if self.view == "json":
                print_json(view.to_json())
                continue
            output = f" {view.outputs[0].text} ", "bold"
            about = f"({probability_of(view)}){view.over}", "dim"
            head = Text.assemble(view.short, " →", output, about)
            parts = view_in_terminal(view, chosen_view(view, self.view), width=console.width)
            for part in (head, *parts, *([Text(hangs_on)] if hangs_on else [])):
                console.print(part, soft_wrap=False)
                console.print()

    def _write(self, out: Path, views: "list[View]", title: str) -> None:
        from sixjars.drawing.draw import draw_view
        from sixjars.drawing.html.pages import page
        from sixjars.drawing.html.views import fragment

        ending = out.suffix.lower()
        if ending in PICTURES:
            if len(views) > 1:
                raise DataError(
                    f"a picture shows one input, but {len(views)} are given: name an {PAGE} file, "
                    "or draw them into a folder with sixjars predict --pictures FOLDER."
                )
            draw_view(out, views[0], self.view)
            note_fonts({*views[0].names, *views[0].outputs[0].tokens})
        else:
            out.parent.mkdir(parents=True, exist_ok=True)
            if ending == PAGE:
                keys = (f"view-{at}" for at in range(1, len(views) + 1))
                pairs = zip(views, keys, strict=True)
                text = page(
                    (fragment(view, self.view, key=key) for view, key in pairs), title=title
                )
            else:
                values = [view.to_json() for view in views]
                text = json.dumps(values, ensure_ascii=False, indent=1)
            out.write_text(text, encoding="utf-8")
        note(f"wrote {out}")


def print_alignments(
    predictor: "Predictor", given: "Iterator[Pair]", out: Path | None, *, strict: bool = False
) -> None:
    """Print a line for each pair, empty for one that cannot be used: line numbers stay the same."""
    counts = InputCounts()
    lines = list[str]()
    empty = 0
    for pairs in portions(given, typed=False, slow=False):
        failed: list[list[Prediction]] = []
        lines += _links(predictor, pairs, failed, first=counts.rows)
        counts += InputCounts(len(pairs), Skipped.of(failed))
        empty += sum(_is_empty(*pair) for pair in pairs)
        if out is None:
            results().print("\n".join(lines))
            lines = []
    if out is not None:
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        note(f"wrote {out}: a line of links for each of {number_of(counts.rows, 'pair')}")
    if empty:
        count = f"{empty:,} of {number_of(counts.rows, 'pair')}"
        note(f"note: {count} with an empty text; an empty line stands for each.")
    note_skipped(counts, "lines", what="pairs")
    if counts.are_failure(strict=strict):
        raise typer.Exit(1)


def _note_cut(predictions: "Iterable[Prediction]") -> None:
    for prediction in predictions:
        if prediction.truncated:
            note(f"note: {cut_in_words()}")


def _is_empty(given: "Input", target: str | None) -> bool:
    from sixjars.runs.prediction.requests import UnreadableInput

    if isinstance(given, UnreadableInput):
        return False
    values = given.values() if isinstance(given, Mapping) else [given]
    texts = [value for value in (target or "", *values) if isinstance(value, str)]
    return not all(text.strip() for text in texts)


def _links(
    predictor: "Predictor", pairs: "list[Pair]", failed: "list[list[Prediction]]", *, first: int
) -> Iterator[str]:
    """The links of each pair; `failed` gets those that cannot be used, but have no empty text."""
    from sixjars.data.alignment.aligner import pharaoh
    from sixjars.evaluation.metrics.attention import linked
    from sixjars.runs.prediction.teacher_forcing import forced_predictions

    source, output = next(iter(predictor.inputs.values())), predictor.fields.output
    outputs = [target or "" for _, target in pairs]
    inputs = [given for given, _ in pairs]
    predictions = forced_predictions(predictor, inputs, outputs, first=first, posterior=True)
    texts = [next(iter(prediction.inputs.values()), "") for prediction in predictions]
    source_words = source.words([source.normalize(text) for text in texts])
    target_words = output.words([output.normalize(text) for text in outputs])
    rows = zip(pairs, predictions, source_words, target_words, strict=True)
    for pair, prediction, left, right in rows:
        if prediction.error is None and not _is_empty(*pair):
            _note_cut([prediction])
            yield pharaoh(linked(prediction.weights, left, right))
            continue
        failed += [] if _is_empty(*pair) else [[prediction]]
        yield ""
