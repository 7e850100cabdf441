"""The command `inspect`: what a run attends to, in the terminal or as a file."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, final

import typer

from sixjars.cli.faithfulness import (
    CheckedDataOption,
    CheckOption,
    CheckOptions,
    ExamplesOption,
    ReferenceOption,
    check_weights,
)
from sixjars.cli.input_notes import UnknownTokens, is_failure, note_table, note_unknown_target
from sixjars.cli.inputs import (
    Lines,
    at_terminal,
    note_cut,
    note_file_names,
    on_one_line,
    rows_given,
    texts_given,
)
from sixjars.cli.options import (
    AllowOption,
    DeviceOption,
    RunArgument,
    StrictOption,
    check_output,
    note,
    results,
)
from sixjars.cli.predict import (
    InputOption,
    NbestOption,
    QuestionOption,
    SearchOption,
    SettingOption,
    TextsArgument,
    check_one_source,
    note_fonts,
    search_settings,
    table_of,
    with_attention,
)
from sixjars.cli.word_links import print_alignments
from sixjars.runs.skipped import Skipped
from sixjars_runtime.errors import DataError

if TYPE_CHECKING:
    from sixjars.drawing.view import View
    from sixjars.recipe.sections import SearchSettings
    from sixjars.runs.predict import Predictor
    from sixjars.runs.prediction import Prediction
    from sixjars.runs.requests import Input

PICTURES, PAGE, DATA = (".png", ".svg", ".pdf"), ".html", ".json"
"""How the files end that may be written."""
MOST = 100
"""Inputs of a page, unless more are asked for: a few megabytes."""
MOST_DECISIVE = 5
"""Words whose part in an output is listed."""
NOT_DRAWN = (
    "note: the weights are attention to words; the output hangs on evidence of words and pairs of words too. Without "
    "--out the words that it hangs on are listed."
)
ViewName = Literal[
    "heatmap", "lines", "document", "image", "frames", "tour", "copying", "pharaoh", "json"
]


def inspect(
    run: RunArgument,
    texts: TextsArgument = None,
    question: QuestionOption = None,
    input_file: InputOption = None,
    out: Annotated[
        Path | None,
        typer.Option(
            help="A file: .html answers when pointed at; .png, .svg, .pdf or .json.",
            show_default=False,
        ),
    ] = None,
    view: Annotated[
        ViewName | None,
        typer.Option(help="How it is shown; without it, as fits the input.", show_default=False),
    ] = None,
    target: Annotated[
        str | None,
        typer.Option(
            metavar="TEXT", help="Force this output (teacher forcing).", show_default=False
        ),
    ] = None,
    search: SearchOption = None,
    nbest: NbestOption = None,
    setting: SettingOption = None,
    *,
    pieces: Annotated[
        bool, typer.Option("--pieces", help="Show tokens as they are, not joined to words.")
    ] = False,
    check: CheckOption = False,
    data: CheckedDataOption = None,
    examples: ExamplesOption = None,
    reference: ReferenceOption = False,
    device: DeviceOption = "auto",
    allow: AllowOption = None,
    strict: StrictOption = False,
) -> None:
    """Show what a run attends to: for each output word, the words, regions, frames or points of the input."""
    from sixjars.runs.predict import load

    _check_out(out, view)
    own = CheckOptions(data, examples, reference)
    if check:
        others = (texts, question, input_file, view, target, search, nbest, setting, pieces)
        check_weights(run, own, out=out, alone=not any(others), device=device, allow=allow or [])
        return
    own.refuse_without_check()
    check_one_source(texts, input_file)
    predictor = load(run, device=device, allow=allow or [])
    if not predictor.has_attention:
        raise DataError(
            f"{run} has no attention, so it gives no view (sixjars report shows the rest); {with_attention(predictor)}"
        )
    settings = _search(predictor, search, nbest, setting)
    work = _Work(predictor, settings, view, target, pieces=pieces, most=examples, strict=strict)
    given = work.inputs(texts or [], question or [], input_file)
    if view != "pharaoh":
        return work.show(given, out, title=f"Attention of {run.name}")
    print_alignments(predictor, islice(given, examples), out, strict=strict)


def _check_out(out: Path | None, view: str | None) -> None:
    """Before anything is loaded: how the file ends, and whether it can be written."""
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
    """Of a beam all its hypotheses are shown."""
    found, given = search_settings(predictor, kind, nbest, setting)
    every = found.kind == "beam" and predictor.ability.searches and "nbest" not in given
    return found.model_copy(update={"nbest": found.width}) if every else found


@final
@dataclass(frozen=True)
class _Work:
    """What is shown of each input."""

    predictor: "Predictor"
    settings: "SearchSettings"
    view: str | None
    target: str | None
    pieces: bool
    most: int | None
    """Inputs that are shown."""
    strict: bool
    """Whether the exit code is 1 where an input was skipped."""

    def inputs(
        self, texts: list[str], questions: list[str], file: Path | None
    ) -> "Iterator[tuple[Input, str | None]]":
        """Each input, with the output that is forced: that of the command line, or for alignments that of its row."""
        predictor, output = self.predictor, self.predictor.fields.output.name
        note_file_names(predictor, texts)
        pairs = self.view == "pharaoh" and self.target is None
        table = table_of(file, predictor, with_output=pairs)
        if pairs and table is None:
            raise DataError(
                f"--view pharaoh aligns an input with a given output: add --target TEXT, or --input FILE with the "
                f"columns {' and '.join(map(str, predictor.all_columns.values()))}."
            )
        if table is not None:
            for values, _ in rows_given(predictor, table):
                own = dict(values) if isinstance(values, Mapping) else {}
                wanted = str(own.pop(output, "")) if pairs else self.target
                yield (own if own else values), wanted
            note_table(table)
            return
        if not texts and file is None and at_terminal():
            raise DataError("give texts, --input FILE or lines on standard input.")
        given = (
            iter(on_one_line(predictor, texts, questions))
            if texts
            else iter(Lines(file, predictor))
        )
        for values, _ in texts_given(predictor, given, questions):
            yield values, self.target

    def show(
        self, given: "Iterator[tuple[Input, str | None]]", out: Path | None, *, title: str
    ) -> None:
        """All inputs in one page or list of JSON; of a picture there is one for one input."""
        every = list(given)
        most = self.most or (MOST if out is not None and out.suffix.lower() == PAGE else len(every))
        found = self._found(every[:most])
        if len(every) > most:
            shown = "input is shown" if most == 1 else f"{most:,} inputs are shown"
            note(f"note: the first {shown}, of {len(every):,}; --examples N shows more.")
        good = [some for some in found if some[0].error is None]
        if not good:
            raise DataError(str(found[0][0].error))
        for some in good:
            note_cut(some[0])
        views = [self._view(some) for some in good]
        if out is None:
            self._print(views, [self._decisive(some[0]) for some in good])
        else:
            self._write(out, views, title)
            if self._has_evidence:
                note(NOT_DRAWN)
        self._note(found, good)

    @property
    def _has_evidence(self) -> bool:
        """Whether an output hangs on counted words besides what is attended to."""
        return bool(self.predictor.network.encoder.counted)

    def _decisive(self, prediction: "Prediction") -> str:
        """The words that an output with evidence hangs on; attention over words is the lesser part of it."""
        if not self._has_evidence or self.view == "json":
            return ""
        from sixjars.runs.faithfulness import falls_without

        view = self._view(
            [replace(prediction, weights=(tuple(falls_without(self.predictor, prediction)),))]
        )
        falls = sorted(
            zip(view.outputs[0].weights[0], view.names, strict=True), key=lambda pair: -pair[0]
        )
        listed = [
            f"{name} {fall:.2f}" for fall, name in falls[:MOST_DECISIVE] if fall >= 0.005
        ]  # else shown as 0.00
        return f"It hangs on (log P falls by so much without the word): {'  '.join(listed) or 'no single word'}"

    def _note(self, found: "list[list[Prediction]]", good: "list[list[Prediction]]") -> None:
        """What is unknown to the run, and what was skipped; then the exit code."""
        unknown = UnknownTokens()
        for some in good:
            unknown.add(some[0])
        unknown.note()
        if self.target is not None:
            note_unknown_target(good[0][0].tokens)
        skipped = Skipped.of(found)
        if skipped.count:
            note(f"note: {skipped.in_words(len(found))}")
        if is_failure(skipped.count, len(found), strict=self.strict):
            raise typer.Exit(1)

    def _found(self, given: "list[tuple[Input, str | None]]") -> "list[list[Prediction]]":
        from sixjars.runs.forced import forced

        inputs = [one for one, _ in given]
        if self.target is None:
            return self.predictor.nbest(inputs, search=self.settings)
        if len(inputs) > 1:
            raise DataError(f"--target is the output of one input, but {len(inputs)} are given.")
        return [forced(self.predictor, inputs, [self.target])]

    def _view(self, found: "list[Prediction]") -> "View":
        from sixjars.decoding.scores import order_in_words
        from sixjars.drawing.choice import chosen
        from sixjars.drawing.view import view_of

        order = order_in_words(self.settings) if self.predictor.ability.searches else ""
        made = view_of(
            self.predictor, found, pieces=self.pieces, forced=self.target is not None, order=order
        )
        chosen(made, self.view)
        return made

    def _print(self, views: "list[View]", decisive: "list[str]") -> None:
        """One below the other."""
        from rich.text import Text

        from sixjars.drawing.choice import chosen
        from sixjars.drawing.draw import probability_of
        from sixjars.drawing.terminal import view_in_terminal

        console = results()
        for view, hangs_on in zip(views, decisive, strict=True):
            if self.view == "json":
                console.print(json.dumps(view.to_json(), ensure_ascii=False))
                continue
            said = (
                (f" {view.outputs[0].text} ", "bold"),
                (f"({probability_of(view)}){view.over}", "dim"),
            )
            console.print(Text.assemble(view.short, " →", *said), soft_wrap=False)
            console.print()
            for part in view_in_terminal(view, chosen(view, self.view), width=console.width):
                console.print(part, soft_wrap=False)
                console.print()
            if hangs_on:
                console.print(Text(hangs_on), soft_wrap=False)
                console.print()

    def _write(self, out: Path, views: "list[View]", title: str) -> None:
        """A page, a list of JSON, or a picture."""
        from sixjars.drawing.draw import draw_view
        from sixjars.drawing.html import fragment, page

        ending = out.suffix.lower()
        if ending in PICTURES:
            if len(views) > 1:
                raise DataError(
                    f"a picture shows one input, but {len(views)} are given: name an {PAGE} file, or draw them into "
                    "a folder with sixjars predict --pictures FOLDER."
                )
            draw_view(out, views[0], self.view)
            note_fonts({*views[0].names, *views[0].outputs[0].tokens})
        else:
            out.parent.mkdir(parents=True, exist_ok=True)
            made = [view.to_json() for view in views]
            shown = (
                fragment(view, self.view, key=f"view-{at}")
                for at, view in enumerate(views, start=1)
            )
            text = (
                page(shown, title=title)
                if ending == PAGE
                else json.dumps(made, ensure_ascii=False, indent=1)
            )
            out.write_text(text, encoding="utf-8")
        note(f"wrote {out}")
