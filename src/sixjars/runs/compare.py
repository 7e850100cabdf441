"""Several recipes or runs side by side, by the length of the input."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, final

from sixjars.data.dataset import Dataset
from sixjars.errors import DataError
from sixjars.evaluation.by_length import Bucket, edges_of, scores_by_length
from sixjars.evaluation.metrics import Metric, Outcome, metric_named, score
from sixjars.evaluation.score import judged, widened
from sixjars.evaluation.search import in_words
from sixjars.inspection.page import draw_by_length
from sixjars.learning.engine import Device, device_named
from sixjars.progress import Reporter
from sixjars.recipe.outside import Outside
from sixjars.recipe.sections import Recipe
from sixjars.runs.data import Blueprint
from sixjars.runs.evaluate import scored_dataset
from sixjars.runs.extension import resume_run
from sixjars.runs.folder import RunFolder, open_run
from sixjars.runs.recipes import make_fields, read_recipe
from sixjars.runs.train import train

BUCKETS = 5


@final
@dataclass(frozen=True)
class Contender:
    """One model of a comparison."""

    name: str
    parameters: int
    overall: float
    buckets: tuple[Bucket, ...]
    search: str
    """How its outputs were chosen."""


@final
@dataclass(frozen=True)
class Comparison:
    """All of them, on the same metric and the same examples.

    >>> Comparison("bleu", (), Path("by_length.png"), 200, "the test set of pairs.tsv").to_json()["data"]
    'the test set of pairs.tsv'
    """

    metric: str
    contenders: tuple[Contender, ...]
    picture: Path
    examples: int
    """How many were scored."""
    data: str
    """What they are: the split, and its file."""

    @property
    def title(self) -> str:
        """The metric, the examples and the search; several searches are named one by one."""
        searches = dict.fromkeys(found.search for found in self.contenders)
        how = ", ".join(searches)
        if len(searches) > 1:
            how = "; ".join(f"{found.name}: {found.search}" for found in self.contenders)
        return f"{self.metric} on {self.examples:,} examples of {self.data}, {how}"

    def to_json(self) -> dict[str, Any]:
        """Plain values, for `--json`."""
        return {**asdict(self), "picture": str(self.picture)}


def compare(
    named: Sequence[str | Path],
    *,
    out: str | Path = "runs/compare",
    metric: str = "exact_match",
    device: Device = "auto",
    reporter: Callable[[], Reporter] = Reporter,
    allow: Iterable[str] = (),
    components: Iterable[Any] = (),
) -> Comparison:
    """Train what is a recipe (unless `out` has it trained already), load what is a run, score all by length.

    >>> import sixjars
    >>> sixjars.compare(["translation/sample_attention"])
    Traceback (most recent call last):
        ...
    sixjars.errors.DataError: compare needs two recipes or runs, or more.
    """
    outside, folder, names = Outside(tuple(allow), tuple(components)), Path(out), [str(name) for name in named]
    wanted = metric_named(metric, outside)
    if len(names) < 2:
        raise DataError("compare needs two recipes or runs, or more.")
    recipes = [open_run(Path(n), outside).recipe if Path(n).is_dir() else read_recipe(n, (), outside) for n in names]
    _check_tasks(names, recipes, outside)
    runs = [
        open_run(Path(name), outside) if Path(name).is_dir() else _trained(name, folder, device, reporter, outside)
        for name in names
    ]
    scored = [_scored(run, wanted, device) for run in runs]
    _check_data(names, scored)
    edges = edges_of([length for one in scored for length in one.lengths], buckets=BUCKETS)
    contenders = tuple(
        Contender(
            name,
            one.parameters,
            score(one.outcomes, [wanted])[0].value,
            tuple(scores_by_length(one.outcomes, one.lengths, metric=wanted, edges=edges)),
            one.search,
        )
        for name, one in zip(short_names(_names(names, runs)), scored, strict=True)
    )
    picture = folder / "by_length.png"
    result = Comparison(metric, contenders, picture, len(scored[0].outcomes), scored[0].data)
    draw_by_length(picture, {found.name: found.buckets for found in contenders}, metric=metric, title=result.title)
    return result


def _check_tasks(names: Sequence[str], recipes: Sequence[Recipe], outside: Outside) -> None:
    """Only models of one task can be compared, and only by inputs that have a length."""
    for name, recipe in zip(names, recipes, strict=True):
        if recipe.task != recipes[0].task:
            both = f"{names[0]} is a {recipes[0].task} model, but {name} is a {recipe.task} model"
            raise DataError(f"{both}; compare models of one task.")
        first = next(iter(make_fields(recipe, outside).inputs.values()), None)
        if first is None or first.is_media:
            raise DataError(f"{name} is a {recipe.task} model; its inputs have no length that could be compared.")


def _check_data(names: Sequence[str], scored: "Sequence[_Scored]") -> None:
    """Scores compare only on the same examples."""
    for name, one in zip(names, scored, strict=True):
        if one.examples != scored[0].examples:
            both = f"{names[0]} and {name} are scored on different examples"
            raise DataError(f"{both}; score both on one file with `sixjars evaluate RUN --data FILE`.")


def _names(named: Sequence[str], runs: Sequence[RunFolder]) -> list[str]:
    """The folders' names; as they were given where two are the same."""
    folders = [run.folder.name for run in runs]
    return folders if len(set(folders)) == len(folders) else list(named)


def _trained(name: str, out: Path, device: Device, reporter: Callable[[], Reporter], outside: Outside) -> RunFolder:
    folder = out / name.removesuffix(".yaml").replace("/", "-")
    begun = (folder / "recipe.yaml").is_file()
    if begun:
        resume_run(folder, read_recipe(name, (), outside), outside)  # refuses one that an older recipe trained
    if not (folder / "scores.json").is_file():
        train(
            name,
            out=folder,
            resume=begun,
            device=device,
            reporter=reporter(),
            allow=outside.packages,
            components=outside.components,
        )
    return open_run(folder, outside)


def short_names(names: Sequence[str]) -> list[str]:
    """Names without the words that they all begin with.

    >>> short_names(["translation-long_initial", "translation-long_every_step"])
    ['initial', 'every_step']
    """
    ends = [at + 1 for at, letter in enumerate(names[0]) if letter in "-_/"]
    cut = max((end for end in ends if all(name.startswith(names[0][:end]) for name in names)), default=0)
    return [name[cut:] or name for name in names]


@final
@dataclass(frozen=True)
class _Scored:
    """What one model output, and how long each input was, in words (characters for a model of characters)."""

    outcomes: list[Outcome]
    lengths: list[int]
    examples: list[tuple[str, ...]]
    """Inputs and targets as they were given."""
    parameters: int
    data: str
    """The split, and where it comes from."""
    search: str


def _scored(run: RunFolder, metric: Metric, device: Device) -> _Scored:
    blueprint = Blueprint.of(run.recipe, run.outside, device=device_named(device))
    fields = run.restored(blueprint.fields)
    network = run.network(blueprint, fields).to(device_named(device))
    dataset = scored_dataset(run, blueprint, fields)
    settings = run.recipe.evaluation.model_copy(update={"group": False})
    found = judged(network, dataset, settings, [metric])
    [outcomes] = found.outcomes.values()
    parameters = sum(weight.numel() for weight in network.parameters())
    examples = list(zip(*(dataset.table.texts(name) for name in dataset.fields.all), strict=True))
    search = in_words(widened(settings.search, metric.nbest))
    how = search if found.searches and "candidates" in metric.needs else "no search"
    return _Scored(outcomes, _lengths(dataset), examples, parameters, dataset.where, how)


def _lengths(dataset: Dataset) -> list[int]:
    """Words of the first input of each row."""
    field = next(iter(dataset.fields.inputs.values()))
    words = field.words([row[field.name] for row in dataset.inputs])
    return [row[-1] + 1 if row else 0 for row in words]
