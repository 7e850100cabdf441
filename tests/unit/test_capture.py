"""Search by graphs. A CPU has none, so here what would be captured is called again."""

import contextlib
import gc
import weakref
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, cast

import pytest
import torch
from torch import Tensor

import sixjars.decoding as searching
from sixjars.decoding import KINDS, RowsRunning, Searcher, capture
from sixjars.decoding.capture import GRAPHS, KEPT, bucketed, can_capture, walked_captured
from sixjars.decoding.problem import SearchKind, SearchProblem, SearchStep
from sixjars.flow.contracts import Generator
from sixjars.flow.searching import Hypothesis
from sixjars.flow.values import Encoded
from sixjars.recipe.sections import SearchSettings
from tests.contracts.decoder_cases import GENERATORS, source_for
from tests.reads import Reads

LENGTHS = (4, 2, 3, 1, 6)
CASES = [
    *(
        "sequence-lstm-2-additive-own",
        "sequence-gru-1-two_level-own",
        "sequence-dot",
        "pointer-some-additive",
    ),
    "conditional-gru-2-location",
]
SEARCHES: list[dict[str, Any]] = [
    {"kind": "greedy", "max_length": 10},
    {"kind": "greedy", "max_length": 11},
    {"kind": "sample", "nbest": 3, "max_length": 12, "top_k": 4},
    {"kind": "beam", "width": 4, "nbest": 3, "max_length": 13},
]


def decoder_named(name: str) -> Generator:
    torch.manual_seed(3)
    decoder = next(make for key, make in GENERATORS.items() if key.startswith(name))().eval()
    for weight in decoder.parameters():
        weight.data.mul_(2.5)
    return decoder


def found(
    decoder: Generator, source: Encoded, settings: dict[str, Any], **more: Any
) -> list[list[Hypothesis]]:
    seeds = [*range(len(LENGTHS)), *[0] * (source.rows - len(LENGTHS))]
    return decoder.answer(source, Searcher(SearchSettings.model_validate(settings), seeds, **more))


def plain(hypotheses: list[list[Hypothesis]]) -> list[Any]:
    """Tokens, scores and weights, without those of padding."""
    return [
        [
            (one.tokens, one.finished, one.score, [row[: max(LENGTHS)] for row in one.weights])
            for one in few
        ]
        for few in hypotheses
    ]


def near(found: list[Any]) -> list[Any]:
    """The same to rounding."""
    return [
        [
            (
                tokens,
                finished,
                pytest.approx(score, abs=1e-5),
                [pytest.approx(row, abs=1e-5) for row in rows],
            )
            for tokens, finished, score, rows in few
        ]
        for few in found
    ]


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize(
    "settings", SEARCHES, ids=lambda settings: f"{settings['kind']}-{settings['max_length']}"
)
def test_the_same_hypotheses(
    name: str, settings: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    decoder, source = decoder_named(name), source_for(LENGTHS)
    with torch.inference_mode():
        wanted = near(plain(found(decoder, source, settings)))
        monkeypatch.setattr(searching, "walked", partial(walked_captured, decoder))
        for _ in range(2):  # the second time with what was captured the first time
            assert plain(found(decoder, bucketed(source), settings, sources=len(LENGTHS))) == wanted
            assert len(GRAPHS[decoder].kept) == 1


def test_few_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    decoder = decoder_named("sequence-dot")
    monkeypatch.setattr(searching, "walked", partial(walked_captured, decoder))
    with torch.inference_mode():
        for length in range(2, KEPT + 4):
            found(decoder, source_for(LENGTHS), {"kind": "greedy", "max_length": length})
    assert len(GRAPHS[decoder].kept) == KEPT


def test_sources_are_padded_to_shapes_that_come_again() -> None:
    wide = bucketed(source_for(LENGTHS))
    assert wide.memory.shape[:2] == wide.mask.shape == (5, 8)
    assert int(wide.mask.sum()) == sum(LENGTHS)
    many = bucketed(source_for((4,) * 35))
    assert many.rows == 36
    assert not many.mask[35:].any()


@pytest.mark.parametrize(
    "more", [{"min_length": 2}, {"no_repeat_ngram": 2}, {"coverage_penalty": 0.1}]
)
def test_rules_that_count_steps_are_not_captured(
    more: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def seen(problem: Any, walk: Any) -> list[list[Hypothesis]]:
        asked.append(can_capture(decoder, problem))
        return []

    decoder = decoder_named("sequence-dot")
    monkeypatch.setattr(searching, "_found", seen)
    for settings in ({}, more):
        found(decoder, source_for(LENGTHS), settings)
    assert asked == [False, False]  # a CPU has no graphs at all


@pytest.mark.parametrize(
    "settings", SEARCHES, ids=lambda settings: f"{settings['kind']}-{settings['max_length']}"
)
def test_what_a_graph_reads_lives_as_long_as_the_graph(
    settings: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A graph has addresses alone: what was there before it was recorded must be kept."""
    reads = Reads()

    def recorded(make: Callable[[], None], *_: object) -> Callable[[], None]:
        with reads:
            make()
        return lambda: None

    monkeypatch.setattr(capture, "recorded", recorded)
    decoder, source = decoder_named("sequence-gru-1-additive"), source_for(LENGTHS)
    monkeypatch.setattr(searching, "walked", partial(walked_captured, decoder))
    # a graph of nothing finds nothing
    with torch.inference_mode(), contextlib.suppress(IndexError, RuntimeError):
        found(decoder, source, settings)
    assert decoder in GRAPHS
    del source
    assert reads.freed() == 0


def test_a_kernel_of_a_graph_may_read_what_is_never_output(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody sees what a Triton kernel reads, so here another step reads the same tensor."""
    seen = []

    def greedy(
        problem: SearchProblem, running: RowsRunning, made: int | Tensor
    ) -> tuple[RowsRunning, SearchStep]:
        seen.append(weakref.ref(problem.choice_rules.never))
        return advanced(problem, running, made)

    def recorded(make: Callable[[], None], *_: object) -> Callable[[], None]:
        make()
        return lambda: None

    advanced = KINDS["greedy"].advanced
    monkeypatch.setattr(capture, "recorded", recorded)
    monkeypatch.setitem(
        cast("dict[str, SearchKind]", KINDS), "greedy", replace(KINDS["greedy"], advanced=greedy)
    )
    decoder = decoder_named("sequence-gru-1-additive")
    monkeypatch.setattr(searching, "walked", partial(walked_captured, decoder))
    # a graph of nothing finds nothing
    with torch.inference_mode(), contextlib.suppress(IndexError, RuntimeError):
        found(decoder, source_for(LENGTHS), {"kind": "greedy", "max_length": 10})
    gc.collect()
    assert seen[0]() is not None
    GRAPHS[decoder].kept.clear()
    gc.collect()
    assert seen[0]() is None
