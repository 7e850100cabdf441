"""Results of commands as texts and tables for the terminal."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table
from rich.text import Text

from sixjars.progress import number_of

if TYPE_CHECKING:
    from sixjars.comparison.result import Comparison
    from sixjars.evaluation.baselines.result import Baseline
    from sixjars.evaluation.metrics import ClassRow, Confusion, Score
    from sixjars.runs.explanation.explain import ExplainedWeight, Explanation
    from sixjars.runs.run import Run
    from sixjars.starter.race import Race
    from sixjars.tuning.result import Tuning

MOST_LABELS = 20
"""Lines of the table of labels."""
MOST_TRIALS = 20
"""Lines of the table of trials of a search."""
HEADLINE = "I am going home"
"""The sentence that the demo draws."""


def plain_table(*names: str, texts: int = 1) -> Table:
    """A table without lines: some columns of `texts`, then columns of numbers."""
    table = Table(box=None, padding=(0, 2, 0, 0), show_edge=False)
    for at, name in enumerate(names):
        table.add_column(name, justify="left" if at < texts else "right", no_wrap=True)
    return table


def show_scores(
    console: Console, scores: "Sequence[Score]", *, examples: int, where: str, skipped: int = 0
) -> None:
    """A line for each metric, with its signature."""
    bad = f", {number_of(skipped, 'bad row')} skipped" if skipped else ""
    console.print(f"{number_of(examples, 'example')} of {where}{bad}")
    width = max(len(score.name) for score in scores)
    for score in scores:
        name, signature = (f"  {score.name:{width}}  ", "bold"), (score.signature, "dim")
        console.print(Text.assemble(name, f"{score.value:10.4f}   ", signature))


def show_classes(
    console: Console, classes: "Sequence[ClassRow]", confusion: "Confusion | None"
) -> None:
    """A line for each label, then the confusion matrix, unless an example may have several."""
    from sixjars.drawing.terminal import confusion_in_terminal

    table = plain_table("  label", "count", "precision", "recall", "f1")
    for row in classes[:MOST_LABELS]:
        rates = (f"{rate:.3f}" for rate in (row.precision, row.recall, row.f1))
        table.add_row(f"  {row.label}", f"{row.count}", *rates)
    console.print()
    console.print(table)
    if len(classes) > MOST_LABELS:
        console.print(f"  and {len(classes) - MOST_LABELS} more; --json has them all", style="dim")
    if confusion is not None:
        console.print()
        console.print(confusion_in_terminal(confusion.labels, confusion.counts))


def show_race(console: Console, race: "Race") -> None:
    """A line for each candidate, the best one first."""
    table = plain_table("candidate", race.metric, "updates", "seconds")
    table.add_column("")
    for row in race.rows:
        score = "–" if row["score"] is None else f"{row['score']:.4g}"
        state = f"failed: {row['why']}" if row["state"] == "failed" else ""
        best = "best" if row["candidate"] == race.winner else state
        table.add_row(row["candidate"], score, f"{row['updates']:,}", f"{row['seconds']:.0f}", best)
    if race.rows:
        scored = f"{race.metric} on the validation set ({race.better} is better)"
        console.print(f"{scored}; the test set was not scored")
        console.print(table)


def _were(count: int) -> str:
    return "was" if count == 1 else "were"


def show_trained(console: Console, trained: "Run") -> None:
    """The scores of a run, its baselines and its folder."""
    if trained.skipped:
        rows = f"{number_of(trained.skipped, 'bad row')} of the data {_were(trained.skipped)}"
        console.print(f"{rows} skipped")
    if trained.dropped:
        rows = f"{number_of(trained.dropped, 'training row')} {_were(trained.dropped)}"
        between = ", " if trained.why_dropped.startswith(("because", "with")) else ": "
        console.print(f"{rows} left out{between}{trained.why_dropped}")
    show_scores(console, trained.scores, examples=trained.examples, where=trained.where)
    signatures = [score.signature for score in trained.scores]
    if any("search:" in text and "search:greedy" not in text for text in signatures):
        console.print(
            "  (the validations above used greedy search, which is quicker; these scores are final)"
        )
    show_baselines(console, trained.baselines, trained.beside)
    console.print(f"run: {trained.folder}")


def show_baselines(console: Console, baselines: "Sequence[Baseline]", sentence: str) -> None:
    """A line for each baseline, and the best one beside the model; nothing where there are none."""
    from sixjars.evaluation.baselines.result import grid_of

    if baselines:
        console.print("without a network, on the same examples:")
        console.print(_grid(*grid_of(baselines)))
    if sentence:
        console.print(sentence)


def show_tuning(console: Console, tuning: "Tuning") -> None:
    """A line for each trial, the best one first; then what to do next."""
    from sixjars.tuning.result import TABLE, text_of

    grid = plain_table("trial", *tuning.axes, tuning.metric, "epochs", "seconds", texts=0)
    grid.add_column("", no_wrap=True)
    for row in tuning.ranked[:MOST_TRIALS]:
        values = [text_of("", row[key]).strip() for key in tuning.axes]
        score = "–" if row["score"] is None else f"{row['score']:.4g}"
        state = "" if row["state"] == "complete" else row["state"]
        cost = f"{row['epochs']:.3g}", f"{row['seconds']:.0f}"
        grid.add_row(f"{row['number']}", *values, score, *cost, state)
    scored = f"{tuning.metric} on the validation set ({tuning.better} is better)"
    console.print(f"{scored}; the test set was not scored")
    console.print(grid)
    if len(tuning.trials) > MOST_TRIALS:
        console.print(f"and {len(tuning.trials) - MOST_TRIALS} more")
    console.print(f"table:   {tuning.folder / TABLE}")
    console.print(f"picture: {tuning.picture}")
    if tuning.tied:
        console.print(f"tie:     {tuning.tie_in_words}", soft_wrap=True)
    best = ", ".join(text_of(key, value) for key, value in tuning.best.items())
    console.print(f"best:    {best}")
    console.print(f"train and score it: {tuning.command}")


def show_demo(console: Console, folder: Path) -> None:
    """Sentences of the test set, and the attention of one."""
    from sixjars.drawing.draw import draw
    from sixjars.drawing.terminal import in_terminal
    from sixjars.runs.evaluate import scored_dataset
    from sixjars.runs.folder.run_folder import open_run
    from sixjars.runs.prediction.predictor import load

    predictor = load(folder, device="cpu")
    dataset = scored_dataset(open_run(folder))
    console.print()
    console.print("Sentences of the test set, which it never saw:", style="bold")
    sources = [inputs["source"] for inputs in dataset.inputs[:6]]
    rows = zip(sources, dataset.targets[:6], predictor.predict(sources), strict=True)
    for source, truth, output in rows:
        mark = ("✓", "green") if output.text == truth else ("✗", "red")
        arrow, text = ("→ ", "dim"), (output.text, "bold")
        console.print(Text.assemble("  ", mark, f" {source} ", arrow, text))
    prediction = predictor.predict([HEADLINE])[0]
    picture = folder / "attention.png"
    draw(picture, predictor, prediction)
    console.print()
    console.print(f"Attention for {prediction.text!r}:", style="bold")
    console.print(
        in_terminal(prediction.weights, source=prediction.source, target=prediction.tokens)
    )
    console.print()
    console.print(f"picture: {picture}")
    console.print(f"look:    sixjars inspect {folder} 'she is reading a book' --out attention.html")
    console.print(f"try:     sixjars predict {folder} 'she is reading a book'")


def show_explanation(console: Console, explanation: "Explanation") -> None:
    """The six sections, each with its lines and its weights."""
    for section in explanation.sections:
        console.print(Text(section.name, style="bold"))
        for line in section.lines:
            console.print(f"    {line}")
        if section.weights:
            console.print(_weights(section.weights))
        console.print()
    frozen = f", {explanation.frozen:,} frozen" if explanation.frozen else ""
    console.print(f"{explanation.count:,} trainable parameters{frozen}.")


def _weights(weights: "Sequence[ExplainedWeight]") -> Table:
    table = plain_table("    parameter", "letter", "shape", "count", texts=3)
    for column in table.columns:
        column.header_style = "dim"
    for weight in weights:
        shape = " × ".join(str(size) for size in weight.shape)
        fixed = "" if weight.trainable else " (not trained)"
        table.add_row(f"    {weight.name}", weight.letter, shape, f"{weight.count:,}{fixed}")
    return table


def show_comparison(console: Console, comparison: "Comparison") -> None:
    """Scores and cost, what is significant, score by length, and examples."""
    from sixjars.comparison.tables import example_lines, legend

    console.print(comparison.title)
    console.print(_grid(*comparison.table()))
    console.print(legend(), style="dim")
    for sentence in comparison.findings():
        console.print(sentence)
    show_baselines(console, comparison.baselines, comparison.beside())
    if comparison.by:
        console.print(f"\n{comparison.metric} by the {comparison.by}:")
        console.print(_grid(*comparison.by_length()))
        for note in comparison.notes():
            console.print(note)
    if comparison.differing:
        console.print("\nexamples where they differ most:")
    for example in comparison.differing:
        for line in example_lines(example, comparison):
            console.print(f"  {line}")


def _grid(head: Sequence[str], rows: Sequence[Sequence[str]]) -> Table:
    """A table with a column of texts, then columns of numbers."""
    table = plain_table(*head)
    for column in table.columns:  # a name or an interval may be longer than a narrow terminal
        column.no_wrap, column.overflow = False, "fold"
    for row in rows:
        table.add_row(*row)
    return table
