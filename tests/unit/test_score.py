"""Scoring a dataset: one pass for all metrics; no answer depends on its batch."""

import json
import math
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from torch import Tensor

import sixjars
from sixjars.decoding import Searcher
from sixjars.evaluation.metrics import metric_named
from sixjars.evaluation.score import JudgedOutputs, judged
from sixjars.model.build import Network
from sixjars.recipe.sections import SearchSettings
from sixjars.runs.evaluate import scored_dataset
from sixjars.runs.folder.run_folder import open_run
from sixjars.runs.recipes import Blueprint

Counts = Counter[str]


@pytest.fixture
def rows(monkeypatch: pytest.MonkeyPatch) -> Counts:
    """How many rows were encoded, and how many outputs were searched for."""
    found: Counts = Counter()
    encode, find = Network.encode, Searcher.find

    def encoded(self: Network, inputs: Any) -> Any:
        result = encode(self, inputs)
        found["encoded"] += result.rows
        return result

    def searched(self: Searcher, step: Any, state: Any, *arguments: Any, **more: Any) -> Any:
        found["searched"] += state.rows
        return find(self, step, state, *arguments, **more)

    monkeypatch.setattr(Network, "encode", encoded)
    monkeypatch.setattr(Searcher, "find", searched)
    return found


def judge(folder: Path, *metrics: str, with_loss: bool = False, **changes: Any) -> JudgedOutputs:
    """What a run makes of its test set, with some settings changed."""
    run = open_run(folder)
    blueprint = Blueprint.of(run.recipe, run.outside)
    network = run.network(blueprint, run.restored(blueprint.fields))
    settings = run.recipe.evaluation.model_copy(update=changes)
    wanted = [metric_named(name) for name in metrics]
    return judged(network, scored_dataset(run, blueprint), settings, wanted, with_loss=with_loss)


@pytest.fixture(scope="module")
def classifier(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Attends to a text and chooses one of a few labels, after a few updates."""
    few = ["data.sample.size=80", "data.sample.valid=8", "data.sample.test=50", "learning.steps=8"]
    few += ["learning.batch_examples=16", "evaluation.batch_examples=16"]
    folder = tmp_path_factory.mktemp("classifier") / "run"
    return sixjars.train("document_classification/sample_flat_attention", few, out=folder).folder


METRICS = ["accuracy@1", "accuracy@3", "macro_f1", "perplexity"]


def test_a_classifier_encodes_every_example_once(classifier: Path, rows: Counts) -> None:
    found = sixjars.evaluate(classifier, metrics=METRICS)
    assert rows["encoded"] == found.examples == 50
    assert len(found.classes) > 1
    assert found.confusion is not None
    assert [score.name for score in found.scores] == METRICS


def test_one_pass_gives_the_scores_of_several(classifier: Path) -> None:
    together = sixjars.evaluate(classifier, metrics=METRICS)
    alone = [sixjars.evaluate(classifier, metrics=[name]) for name in METRICS]
    assert together.scores == tuple(one.scores[0] for one in alone)
    assert together.classes == alone[0].classes
    assert together.confusion == alone[0].confusion


def test_all_needs_and_searches_share_one_pass(run: Path, rows: Counts) -> None:
    """Greedy search for one metric, a beam for another, the likelihood of the truth for a third."""
    metrics = ["exact_match", "accuracy@3", "character_error_rate", "perplexity"]
    found = judge(run, *metrics, with_loss=True)
    assert rows == {"encoded": 8, "searched": 16}
    assert sorted(found.outcomes) == [1, 3]
    assert [len(one.candidates) for one in found.outcomes[3]] == [3] * 8
    named = [metric_named(name) for name in metrics]
    scores = {score.name: score for score in found.scores(named)}
    for name in metrics:
        [alone] = judge(run, name).scores([metric_named(name)])
        assert scores[name] == alone
    assert scores["accuracy@3"].signature.endswith("search:beam5,max_length:12")
    assert scores["exact_match"].signature.endswith("search:greedy,max_length:12")
    assert "search" not in scores["perplexity"].signature
    # seven digits, and sums in another order
    assert math.exp(found.loss) == pytest.approx(scores["perplexity"].value, rel=1e-5)


def test_nothing_is_computed_that_nobody_needs(run: Path, rows: Counts) -> None:
    assert judge(run).outcomes == {}
    assert rows == {}
    judge(run, "perplexity")
    assert rows == {"encoded": 8}


def candidates(found: JudgedOutputs, count: int) -> list[tuple[str, ...]]:
    return [one.candidates for one in found.outcomes[count]]


@pytest.fixture
def references(from_file: Callable[..., str], tmp_path: Path) -> Path:
    """A run whose sources have several references each: six sources, 2 and 3 references."""
    ends = "und", "oder", "mehr"
    lines = [
        {"en": f"word{n} and more", "de": [f"wort{n} {end}" for end in ends[: 2 + n % 2]]}
        for n in range(6)
    ]
    data = tmp_path / "several.jsonl"
    data.write_text("".join(json.dumps(line) + "\n" for line in lines))
    changes = {"data": {"valid": str(data), "test": str(data)}}
    changes["learning"] = {"epochs": 40, "rate": 0.05}  # type: ignore[dict-item]
    evaluation = {"group": True, "batch_examples": 4, "metrics": ["bleu", "perplexity"]}
    name = from_file(data, **changes, evaluation=evaluation)
    return sixjars.train(name, out=tmp_path / "run").folder


def test_rows_of_one_source_are_searched_for_once(references: Path, rows: Counts) -> None:
    """The truth of all 15 rows is scored, an output is found for the 6 sources; all in one pass."""
    found = judge(references, "exact_match", "perplexity", with_loss=True)
    assert rows == {"encoded": 15, "searched": 6}
    assert [len(one.references) for one in found.outcomes[1]] == [2, 3] * 3
    rows.clear()
    again = judge(references, "exact_match")
    assert rows == {"encoded": 6, "searched": 6}
    assert candidates(again, 1) == candidates(found, 1)
    every = judge(references, "exact_match", group=False).outcomes[1]
    assert len(every) == 15
    texts = {one.references[0].split()[0]: one.candidates for one in every}
    assert all(one.candidates == texts[one.references[0].split()[0]] for one in found.outcomes[1])
    assert len({one.candidates for one in found.outcomes[1]}) > 2  # so that a mix-up would show


@pytest.mark.parametrize("kind", ["greedy", "sample", "beam"])
def test_outputs_do_not_depend_on_the_batch(kind: str, run: Path) -> None:
    search = SearchSettings.model_validate({"kind": kind, "nbest": 2, "max_length": 12, "seed": 5})
    first, *others = (
        candidates(judge(run, "exact_match", search=search, batch_examples=size), 2)
        for size in (1, 3, 8, 100)
    )
    assert others == [first] * 3
    if kind == "sample":
        other = judge(run, "exact_match", search=search.model_copy(update={"seed": 6}))
        assert candidates(other, 2) != first


@pytest.mark.parametrize("kind", ["sample", "beam"])
def test_predictions_do_not_depend_on_their_company(kind: str, run: Path) -> None:
    """The same input at the same place, alone, among others, in portions of another size."""
    predictor, texts = sixjars.load(run), ["namaste", "ghar", "kitab", "a", "namaste", "dost"]
    values = {"kind": kind, "nbest": 3, "max_length": 12, "temperature": 1.5}
    search = SearchSettings.model_validate(values)
    together = predictor.nbest(texts, search=search)
    if kind == "sample":
        assert [one.text for one in together[0]] != [one.text for one in together[4]]
    for at, text in enumerate(texts):
        (alone,) = predictor.nbest([text], search=search, first=at)
        assert [one.text for one in alone] == [one.text for one in together[at]]
        # In float32 a matrix product over another number of rows may be rounded otherwise.
        for one, other in zip(alone, together[at], strict=True):
            assert one.log_probability == pytest.approx(other.log_probability, rel=1e-4)
    evaluation = predictor.recipe.evaluation.model_copy(update={"batch_examples": 2})
    predictor.recipe = predictor.recipe.model_copy(update={"evaluation": evaluation})
    portions = predictor.nbest(texts, search=search)
    assert [[one.text for one in some] for some in portions] == [
        [one.text for one in some] for some in together
    ]


def test_a_network_in_training_goes_on_training(run: Path) -> None:
    opened = open_run(run)
    blueprint = Blueprint.of(opened.recipe, opened.outside)
    network = opened.network(blueprint, opened.restored(blueprint.fields)).train()
    modes: list[bool] = []
    network.encoder.register_forward_hook(lambda module, *_: modes.append(module.training))
    before = {name: tensor.clone() for name, tensor in network.state_dict().items()}
    dataset, metrics = scored_dataset(opened, blueprint), [metric_named("exact_match")]
    judged(network, dataset, opened.recipe.evaluation, metrics)
    assert modes == [False]
    assert network.training
    assert all(Tensor.equal(tensor, before[name]) for name, tensor in network.state_dict().items())


@pytest.mark.parametrize("kind", ["greedy", "sample", "beam"])
@pytest.mark.parametrize("visits", ["all", "some"])
def test_a_complete_order_is_finished_before_min_length(
    kind: str, visits: str, tmp_path: Path
) -> None:
    few = ["data.sample.size=40", "data.sample.valid=4", "data.sample.test=4", "learning.steps=1"]
    few += [f"model.decoder.visits={visits}", "evaluation.search.min_length=20"]
    folder = sixjars.train("pointing/sample_sorting", few, out=tmp_path / "run").folder
    search = SearchSettings.model_validate({"kind": kind, "min_length": 20, "max_length": 30})
    points = [[0.3], [0.1], [0.9], [0.2]], [[0.5]]
    predictions = sixjars.load(folder).predict(points, search=search)
    for found, given in zip(predictions, points, strict=True):
        assert found.finished
        assert sorted(map(int, found.text.split())) == list(range(len(given)))
        assert found.tokens[-1] == "<stop>"
        assert len(found.weights) == len(given) + 1
