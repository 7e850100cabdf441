"""Streams that come together are written side by side, each as `predict` outputs it, and hold up nobody else."""

import asyncio
import json
import re
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from threading import Event
from time import monotonic, sleep
from typing import Any

import pytest
import torch
from torch import Tensor

import sixjars
from sixjars.decoding.problem import SearchStep
from sixjars.decoding.scores import NEVER
from sixjars.evaluation.score import hypotheses_of
from sixjars.runs.prediction.partial_outputs import WrittenToken, stepwise
from sixjars.runs.prediction.prediction import Prediction
from sixjars.serving.client import Answer, Client, Token
from sixjars.serving.server.batcher import Batcher
from sixjars.serving.server.requests import CheckedRequest, PredictionSettings
from sixjars.serving.server.settings import ServerSettings
from sixjars.serving.server.streams import OutputStream
from tests.unit.serving import a_request, serving
from tests.unit.web_pages import trained

TEXTS = ["namaste", "a", "ghar", "pani pani pani pani", "shukriya", "ghar"]
RULES = {"length_penalty": 0.6, "coverage_penalty": 0.3, "min_length": 3, "no_repeat_ngram": 2}
SEARCHES: list[dict[str, Any]] = [
    {"kind": "greedy"},
    {"kind": "greedy", **RULES},
    {"kind": "greedy", "unknown": "replace", "max_length": 4},
    {"kind": "sample", "seed": 5, "temperature": 0.7},
]
STEPS = "sixjars.runs.prediction.partial_outputs.hypotheses_of"
Told = list[WrittenToken | Prediction | Exception]


@pytest.fixture(scope="module")
def uneven(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run whose outputs have many lengths."""
    more = ["model.encoder.size=16", "model.decoder.size=16", "evaluation.search.max_length=12"]
    more.append("learning.steps=60")
    folder = tmp_path_factory.mktemp("uneven") / "run"
    return trained("transliteration/sample_attention", more, folder)


@pytest.fixture(scope="module")
def predictor(uneven: Path) -> sixjars.Predictor:
    return sixjars.load(uneven, device="cpu")


def settings_of(predictor: sixjars.Predictor, **given: Any) -> sixjars.SearchSettings:
    return predictor.recipe.evaluation.search.model_copy(update=given)


def written(
    predictor: sixjars.Predictor, texts: Sequence[str], **given: Any
) -> tuple[list[Told], list[Prediction]]:
    """What is told of each text, and the predictions."""
    told: list[Told] = [[] for _ in texts]
    stepwise(predictor, texts, settings_of(predictor, **given), [one.append for one in told])
    return told, [one[-1] for one in told if isinstance(one[-1], Prediction)]


@pytest.mark.parametrize("search", SEARCHES, ids=str)
def test_several_are_written_as_predict_outputs_each(
    predictor: sixjars.Predictor, search: dict[str, Any]
) -> None:
    told, found = written(predictor, TEXTS, **search)
    for text, own, one in zip(TEXTS, told, found, strict=True):
        wanted = predictor.predict([text], search=settings_of(predictor, **search))[0]
        assert (one.text, one.tokens, one.finished) == (wanted.text, wanted.tokens, wanted.finished)
        assert (one.source, one.inputs, one.copied) == (wanted.source, wanted.inputs, wanted.copied)
        assert one.score == pytest.approx(wanted.score, abs=1e-5)
        assert one.log_probability == pytest.approx(wanted.log_probability, abs=1e-5)
        for weights, row in zip(one.weights, wanted.weights, strict=True):
            assert weights == pytest.approx(row, abs=1e-5)
        steps = [step for step in own if isinstance(step, WrittenToken)]
        assert [step.token for step in steps] == list(wanted.tokens)
        assert [step.at for step in steps] == list(range(len(steps)))
        assert steps[-1].text == wanted.text
        assert steps[-1].log_probability == pytest.approx(wanted.log_probability, abs=1e-5)
        assert own[len(steps) :] == [one]


def test_one_that_ends_is_told_before_the_others_end(predictor: sixjars.Predictor) -> None:
    order: list[tuple[int, bool]] = []
    found: dict[int, Prediction] = {}

    def teller(at: int) -> Any:
        def told(made: WrittenToken | Prediction) -> None:
            order.append((at, isinstance(made, Prediction)))
            found.update({at: made} if isinstance(made, Prediction) else {})

        return told

    texts = ["", *TEXTS]
    stepwise(predictor, texts, settings_of(predictor), [teller(at) for at in range(len(texts))])
    assert order[0] == (0, True)
    assert found[0].error == "input 1: the source is empty."
    ends = [place for place, (_, ended) in enumerate(order) if ended]
    assert len({len(found[at].tokens) for at in range(1, len(texts))}) > 1
    assert ends[1] < max(place for place, (_, ended) in enumerate(order) if not ended)
    assert not any(at == order[end][0] for end in ends for at, _ in order[end + 1 :])


def test_what_is_raised_after_a_step_ends_all(predictor: sixjars.Predictor) -> None:
    steps: list[int] = []

    def after() -> None:
        steps.append(1)
        if len(steps) == 2:
            raise ZeroDivisionError

    deaf: Any = [lambda made: None] * len(TEXTS)
    with pytest.raises(ZeroDivisionError):
        stepwise(predictor, TEXTS, settings_of(predictor), deaf, after=after)
    assert len(steps) == 2


def test_where_nothing_may_follow_is_an_end_too(
    predictor: sixjars.Predictor, monkeypatch: pytest.MonkeyPatch
) -> None:
    def forbidding(*given: Any, tell: Any, **more: Any) -> Any:
        """From the third step on no token is allowed."""
        steps = iter(range(100))

        def told(column: SearchStep, places: Tensor) -> Any:
            assert column.gained is not None
            none = torch.full_like(column.gained, NEVER)
            return tell(column if next(steps) < 2 else replace(column, gained=none), places)

        return hypotheses_of(*given, tell=told, **more)

    monkeypatch.setattr(STEPS, forbidding)
    [told], [found] = written(predictor, ["ghar"], min_length=5)
    assert (len(found.tokens), len(found.weights), found.finished) == (2, 2, False)
    assert isinstance(told[1], WrittenToken)
    assert found.log_probability == told[1].log_probability
    assert (len(told), told[-1]) == (3, found)


def test_rows_that_only_pad_a_batch_are_left_out(
    predictor: sixjars.Predictor, monkeypatch: pytest.MonkeyPatch
) -> None:
    def padded(*given: Any, tell: Any, **more: Any) -> Any:
        """As on a GPU, where a batch has a row too many, and positions too many."""

        def told(column: SearchStep, places: Tensor) -> Any:
            wider = column.pick(torch.tensor([*range(len(places)), 0]))
            assert wider.weights is not None
            weights = torch.nn.functional.pad(wider.weights, (0, 3))
            tell(replace(wider, weights=weights), torch.cat([places, torch.tensor([len(TEXTS)])]))

        return hypotheses_of(*given, tell=told, **more)

    plain = written(predictor, TEXTS)
    monkeypatch.setattr(STEPS, padded)
    assert written(predictor, TEXTS) == plain


def test_many_streams_at_once_get_their_own_outputs(
    uneven: Path, predictor: sixjars.Predictor
) -> None:
    texts = TEXTS * 3
    wanted = [one.text for one in predictor.predict(texts)]

    def streamed(text: str) -> tuple[str, list[str]]:
        with Client(server.address) as client:
            *tokens, last = client.stream(text)
        assert isinstance(last, Answer)
        return last.text, [one.token for one in tokens if isinstance(one, Token)]

    with serving({"hi": uneven}) as server, ThreadPoolExecutor(len(texts)) as threads:
        found = list(threads.map(streamed, texts))
        sizes = server.ask("/metrics")[2]
    assert [text for text, _ in found] == wanted
    assert [tokens for _, tokens in found] == [list(one.tokens) for one in predictor.predict(texts)]
    [batches] = re.findall(r"^sixjars_batch_inputs_count\S* (\S+)$", sizes, re.MULTILINE)
    assert float(batches) < len(texts)


def test_a_stream_whose_batch_was_computed_again_tells_no_token_twice(
    predictor: sixjars.Predictor,
) -> None:
    [told], _ = written(predictor, ["ghar"])
    steps = [one for one in told if isinstance(one, WrittenToken)]

    async def answer(asked: CheckedRequest) -> Any:
        assert asked.tell is not None
        for one in (*steps[:2], *steps):
            await asyncio.to_thread(asked.tell, one)
        return {"outputs": ["x"]}

    async def main() -> list[bytes]:
        how = PredictionSettings(predictor, settings_of(predictor), weights=True, view=False)
        stream = OutputStream(answer, CheckedRequest(["ghar"], how), AsyncExitStack())
        await stream.begin()
        return [line async for line in stream.lines()]

    *tokens, end = asyncio.run(main())
    places = [json.loads(line.partition(b"data: ")[2])["at"] for line in tokens]
    assert places == [*range(len(steps))]
    assert end == b'event: end\ndata: {"outputs":["x"]}\n\n'


def test_others_are_computed_between_the_steps_of_streams() -> None:
    done: list[Any] = []
    streamed: list[float] = []
    begun, go = Event(), Event()

    def work(jobs: Any, between: Any) -> Any:
        if jobs[0].request.streams:
            began, lent = monotonic(), 0.0
            begun.set()
            go.wait(10)
            for step in range(40):
                done.append(step)
                sleep(0.004)
                before = monotonic()
                between()
                lent += monotonic() - before
            streamed.append(monotonic() - began - lent)
        else:
            sleep(0.05)
        done.append([job.request.inputs[0] for job in jobs])
        return [(job, len(jobs)) for job in jobs]

    async def main() -> None:
        seconds: list[float] = []
        batcher = Batcher(work, ServerSettings(), lambda jobs, took: seconds.append(took))
        first = asyncio.create_task(batcher.answer(a_request(["s"], "x", streams=True)))
        await asyncio.to_thread(begun.wait, 10)
        asked = [("t", "x", 1), ("a", "x", 0), ("b", "y", 0), ("u", "x", 1), ("c", "x", 0)]
        requests = [a_request([text], how, streams=bool(streams)) for text, how, streams in asked]
        later = [asyncio.create_task(batcher.answer(request)) for request in requests]
        await asyncio.sleep(0)
        go.set()
        assert [await one for one in (first, *later)] == [1, 2, 2, 1, 2, 2]
        await batcher.close()
        assert min(seconds) >= 0.04
        assert seconds[2] - streamed[0] < 0.08  # without what the others took, 0.1 at least

    asyncio.run(main())
    batches = [one for one in done if isinstance(one, list)]
    assert batches == [["a", "c"], ["b"], ["s"], ["t", "u"]]
    assert done.index(["a", "c"]) == 1
    assert done.index(["b"]) - done.index(["a", "c"]) > 3  # the streams have their turn for as long
