"""How probable given outputs are: teacher forcing with a trained run, row by row."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

from sixjars.data.dataset import Dataset
from sixjars.learning.engine import Device, device_named
from sixjars.model.build import Network
from sixjars.progress import number_of, tell
from sixjars.recipe.outside import Outside
from sixjars.runs.data import Blueprint
from sixjars.runs.evaluate import file_dataset
from sixjars.runs.folder import open_run
from sixjars.runs.forced import taught


@final
@dataclass(frozen=True)
class ScoredOutput:
    """One given output, and how probable it is."""

    inputs: dict[str, str]
    output: str
    log_probability: float
    """Natural log of P(output | input), `<stop>` included."""
    tokens: tuple[str, ...] = ()
    """The tokens of the output, `<stop>` included; or the label."""
    token_log_probabilities: tuple[float, ...] = ()
    """Of each token, given those before it."""
    line: int = 0
    """Where it was in its file, counted from 1."""

    def to_json(self) -> dict[str, Any]:
        """Plain values, for `--json`."""
        given = next(iter(self.inputs.values()), "") if len(self.inputs) < 2 else self.inputs
        return {
            "input": given,
            "output": self.output,
            "log_probability": self.log_probability,
            "tokens": list(self.tokens),
            "token_log_probabilities": list(self.token_log_probabilities),
            "line": self.line,
        }


def score_outputs(
    folder: str | Path,
    data: str | Path,
    *,
    device: Device = "auto",
    allow: Iterable[str] = (),
    components: Iterable[Any] = (),
) -> list[ScoredOutput]:
    """The log probability of each output of a file that has the columns of the run, in the order of its rows.

    A label that the run did not learn has no number, so its log probability is -inf.

    >>> import tempfile, sixjars
    >>> few = ["data.sample.size=64", "learning.steps=2", "evaluation.search.max_length=5"]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     run = sixjars.train("transliteration/sample_attention", few, out=f"{folder}/run")
    ...     _ = Path(f"{folder}/pairs.jsonl").write_text('{"roman": "ghar", "devanagari": "घर"}')
    ...     [found] = score_outputs(run.folder, f"{folder}/pairs.jsonl")
    >>> len(found.tokens), found.log_probability < 0
    (3, True)
    """
    run = open_run(Path(folder), Outside(tuple(allow), tuple(components)))
    blueprint = Blueprint.of(run.recipe, run.outside, device=device_named(device))
    run.check_backbones(blueprint.fingerprints)
    fields = run.restored(blueprint.fields)
    network = run.network(blueprint, fields).to(device_named(device))
    dataset = file_dataset(run, fields, data)
    if dataset.skipped:
        rows = number_of(dataset.skipped, "bad row")
        tell(f"left out: {rows} of {data}; --json has the line of each of the others.")
    found = dict(_scored(network, dataset, examples=run.recipe.evaluation.batch_examples))
    return [found[row] for row in range(len(dataset))]


def _scored(network: Network, dataset: Dataset, *, examples: int) -> Iterator[tuple[int, ScoredOutput]]:
    output, texts = dataset.fields.output, dataset.table.texts(dataset.fields.output.name)
    for row, found in taught(network, dataset, examples=examples):
        each = found.log_probabilities
        total = sum(each) if each else float("-inf")
        stop = ["<stop>"] if found.finished and network.decoder.searches else []
        tokens = (*output.tokens(found.ids, dataset.source_words(row)), *stop)
        yield row, ScoredOutput(dataset.raw(row), texts[row], total, tokens, each, dataset.table.line(row))
