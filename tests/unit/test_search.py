"""What all kinds of search share, greedy search, and the rules."""

import itertools
import math
import random

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import sixjars_runtime.exported.search as runtime
from sixjars.decoding import beam_rows, search
from sixjars.decoding.scores import (
    banned,
    best_tokens,
    forced_prefix,
    min_length,
    no_repeated_ngram,
    rule_of,
)
from sixjars.errors import RecipeError, ShapeError
from sixjars.flow.searching import Hypothesis
from sixjars.flow.values import Padded, State, StepOutput
from sixjars.recipe.sections import SearchSettings
from sixjars_runtime.exported.search_options import SearchOptions
from sixjars_runtime.search_requests import (
    LEAST_TEMPERATURE,
    LEAST_TOP_P,
    MOST_COVERAGE_PENALTY,
    MOST_LENGTH_PENALTY,
    MOST_TEMPERATURE,
    MOST_TOKENS,
)
from sixjars_runtime.special_tokens import SpecialTokens

GO, STOP = 0, 5
SPECIAL = SpecialTokens(go=GO, stop=STOP)
KINDS = ["greedy", "sample", "beam"]
ROUNDING = 1e-5
"""Log probabilities have 32 bits, so seven digits, of which sums lose one."""


def rows(count: int) -> State:
    return State(torch.zeros(count, 1, 1))


def counting(token: Tensor, state: State) -> tuple[StepOutput, State]:
    """After each number the next one, for certain."""
    return StepOutput(
        nn.functional.one_hot((token + 1).clamp(max=STOP), STOP + 1).float().log()
    ), state


def always(probabilities: list[float]) -> Tensor:
    return torch.tensor(probabilities).log()


def settings_of(kind: str, **others: object) -> SearchSettings:
    return SearchSettings.model_validate({"kind": kind, **others})


def run(
    log_probabilities: Tensor, settings: SearchSettings, special: SpecialTokens, sources: int = 1
) -> list[list[Hypothesis]]:
    """Search where every step has the same distribution."""

    def step(token: Tensor, state: State) -> tuple[StepOutput, State]:
        return StepOutput(log_probabilities.expand(len(token), -1)), state

    return search(step, rows(sources * beam_rows(settings)), settings, special)


def test_greedy_needs_no_network() -> None:
    (one,), (other,) = search(
        counting, rows(2), SearchSettings(), SPECIAL, prefix=Padded.of([[1], [1, 2]])
    )
    assert one == other == Hypothesis(tokens=(1, 2, 3, 4), score=0.0, log_probability=0.0)


@pytest.mark.parametrize("kind", KINDS)
def test_limit_counts_stop(kind: str) -> None:
    ((enough,),) = search(counting, rows(1), settings_of(kind, width=1, max_length=5), SPECIAL)
    ((short,),) = search(counting, rows(1), settings_of(kind, width=1, max_length=4), SPECIAL)
    assert enough.tokens == short.tokens == (1, 2, 3, 4)
    assert (enough.finished, short.finished) == (True, False)


@pytest.mark.parametrize("kind", KINDS)
def test_search_stops_when_every_row_has(kind: str) -> None:
    told = []

    def step(token: Tensor, state: State) -> tuple[StepOutput, State]:
        told.append(token.tolist())
        return counting(token, state)

    search(step, rows(2), settings_of(kind, width=1), SPECIAL)
    assert told == [[0, 0], [1, 1], [2, 2], [3, 3], [4, 4]]


@pytest.mark.parametrize("kind", KINDS)
def test_a_dead_end_is_no_stop(kind: str) -> None:
    """Also where `<stop>` is number 0, the first of tokens none of which may follow."""

    def step(token: Tensor, state: State) -> tuple[StepOutput, State]:
        two_after_go_R1 = torch.where(token == 1, 0.0, -torch.inf).unsqueeze(1)
        return StepOutput(nn.functional.pad(two_after_go_R1, (2, 0), value=-torch.inf)), state

    ((found,),) = search(step, rows(1), settings_of(kind, width=1), SpecialTokens(go=1, stop=0))
    assert (found.tokens, found.finished) == ((2,), False)


def test_greedy_scores_by_length() -> None:
    settings = settings_of("greedy", max_length=3, length_penalty=0.5)
    ((found,),) = run(always([0.1, 0.3, 0.6]), settings, SpecialTokens(go=0, stop=1))
    assert found.tokens == (2, 2, 2)
    assert found.log_probability == pytest.approx(3 * math.log(0.6), rel=ROUNDING)
    assert found.score == pytest.approx(3 * math.log(0.6) / 3**0.5, rel=ROUNDING)


@pytest.mark.parametrize("kind", KINDS)
def test_search_leaves_no_gradients_behind(kind: str) -> None:
    weight = nn.Parameter(torch.zeros(3))

    def step(token: Tensor, state: State) -> tuple[StepOutput, State]:
        scores = weight.log_softmax(0).expand(len(token), 3)
        assert not scores.requires_grad
        return StepOutput(scores), state

    search(step, rows(5), settings_of(kind, max_length=3), SpecialTokens(go=0, stop=1))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float64])
def test_numbers_of_any_size(kind: str, dtype: torch.dtype) -> None:
    ((found,),) = run(
        always([0.125, 0.25, 0.625]).to(dtype),
        settings_of(kind, width=1, max_length=9),
        SpecialTokens(go=0, stop=1),
    )
    count = len(found.tokens)
    expected = count * math.log(0.625) + found.finished * math.log(0.25)
    assert found.log_probability == pytest.approx(
        expected, rel=1e-2 if dtype.itemsize == 2 else ROUNDING
    )


def test_no_rows_no_hypotheses() -> None:
    assert search(counting, rows(0), SearchSettings(), SPECIAL) == []


def test_rows_per_source() -> None:
    assert beam_rows(settings_of("greedy", width=7, nbest=3)) == 1
    assert beam_rows(settings_of("sample", width=7, nbest=3)) == 3
    assert beam_rows(settings_of("beam", width=7, nbest=3)) == 7


# rules


@pytest.mark.parametrize("kind", KINDS)
def test_go_and_banned_tokens_are_never_output(kind: str) -> None:
    settings = settings_of(kind, nbest=5, max_length=20)
    found = run(
        always([0.3, 0.1, 0.3, 0.2, 0.1]),
        settings,
        SpecialTokens(go=0, stop=1, banned=(2,)),
        sources=4,
    )
    assert {token for each in itertools.chain(*found) for token in each.tokens} <= {3, 4}
    assert any(3 in each.tokens for each in itertools.chain(*found))


def test_go_may_be_the_same_token_as_stop() -> None:
    ((found,),) = run(always([0.6, 0.4]), SearchSettings(), SpecialTokens(go=0, stop=0))
    assert found.finished
    assert found.tokens == ()


def test_min_length_holds_stop_back() -> None:
    settings = settings_of("greedy", min_length=3, max_length=9)
    ((found,),) = run(always([0.1, 0.6, 0.3]), settings, SpecialTokens(go=0, stop=1))
    assert found.tokens == (2, 2, 2)
    assert found.finished
    assert found.log_probability == pytest.approx(3 * math.log(0.3) + math.log(0.6), rel=ROUNDING)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "rule", [{}, {"no_repeat_ngram": 1}], ids=["by the model", "by another rule"]
)
def test_min_length_gives_way_where_nothing_else_may_follow(
    kind: str, rule: dict[str, int]
) -> None:
    """A pointer that has been everywhere, or no word left: <stop> alone may come."""
    places = 3

    def step(token: Tensor, state: State) -> tuple[StepOutput, State]:
        """Tokens 2, 3 and 4, each once (or as often as a rule lets them), and <stop> (1)."""
        seen = state.hidden[:, 0].bool() | (torch.arange(5) == token.unsqueeze(1))
        free = torch.tensor([0.0, 0.4, 0.3, 0.2, 0.1]).expand(len(token), 5)
        scores = free.masked_fill(seen & (torch.arange(5) > 1), 0.0) if not rule else free
        return StepOutput(scores.log()), State(seen.float().unsqueeze(1))

    settings = settings_of(kind, min_length=8, max_length=20, width=2, **rule)
    start = State(torch.zeros(beam_rows(settings), 1, 5))
    ((found,),) = search(step, start, settings, SpecialTokens(go=0, stop=1))
    assert found.finished
    assert sorted(found.tokens) == [2, 3, 4]
    assert len(found.tokens) == places


@pytest.mark.parametrize("kind", KINDS)
def test_unknown_is_banned_unless_it_is_asked_for(kind: str) -> None:
    special, chances = SpecialTokens(go=0, stop=1, unknown=2), always([0.0, 0.1, 0.6, 0.3])
    for unknown, expected in (("ban", {3}), ("allow", {2, 3}), ("replace", {2, 3})):
        found = run(
            chances,
            settings_of(kind, width=8, nbest=4, max_length=6, unknown=unknown),
            special,
            sources=3,
        )
        output = {token for each in itertools.chain(*found) for token in each.tokens}
        assert output == (expected if kind != "greedy" or unknown == "ban" else {2}), unknown
    assert SearchSettings().unknown == "ban"


@pytest.mark.parametrize("size", [1, 2, 3, 4])
@pytest.mark.parametrize("length", [0, 1, 2, 3, 4, 9])
def test_no_repeated_ngram_against_a_loop(size: int, length: int) -> None:
    chance = random.Random(size * 100 + length)
    written = [[chance.randrange(3) for _ in range(length)] for _ in range(50)]
    scores = torch.randn(50, 4, generator=torch.Generator().manual_seed(length))
    expected = scores.clone()
    for row, tokens in enumerate(written):
        seen = {tuple(tokens[at : at + size]) for at in range(length - size + 1)}
        for token in range(4):
            if length >= size - 1 and (*tokens[length - size + 1 :], token) in seen:
                expected[row, token] = -torch.inf
    history = torch.tensor(written, dtype=torch.long).view(50, length)
    assert torch.equal(no_repeated_ngram(size)(scores, history, history.shape[1]), expected)
    assert expected.isinf().any() == (length >= size)


def test_rules_leave_the_models_scores_alone() -> None:
    scores = torch.randn(2, 4)
    kept, written = scores.clone(), torch.tensor([[1, 1], [2, 3]])
    settings, special = SearchSettings(min_length=3, no_repeat_ngram=1), SpecialTokens(go=0, stop=1)
    ruled = rule_of(settings, special, prefix=None, device=scores.device)(scores, written, 2)
    min_length(3, stop=1)(scores, written, 2)
    assert torch.equal(scores, kept)
    assert torch.equal(ruled[ruled > -torch.inf], scores[ruled > -torch.inf])
    # Of the second row only <stop> is left, so it may come.
    assert (ruled == -torch.inf).tolist() == [[True, True, False, False], [True, False, True, True]]
    own = rule_of(settings, special, prefix=None, device=scores.device, overwrite=True)(
        scores, written, 2
    )
    assert torch.equal(own, ruled)


def test_forced_prefix_overrules_every_other_rule() -> None:
    rule = forced_prefix(Padded.of([[1, 1], [2], []]), otherwise=banned(torch.tensor([1, 3])))
    scores = torch.arange(12.0).view(3, 4)
    never = -torch.inf
    expected = [[never, 1.0, never, never], [never, never, 6.0, never], [8.0, never, 10.0, never]]
    assert rule(scores, torch.zeros(3, 0, dtype=torch.long), 0).tolist() == expected
    expected = [[never, 1.0, never, never], [4.0, never, 6.0, never], [8.0, never, 10.0, never]]
    assert rule(scores, torch.tensor([[1], [2], [0]]), 1).tolist() == expected
    ruled = rule(scores, torch.zeros(3, 2, dtype=torch.long), 2)
    assert ruled[0].tolist() == [0.0, never, 2.0, never]


@pytest.mark.parametrize("kind", KINDS)
def test_prefix_is_output_and_counted(kind: str) -> None:
    settings = settings_of(kind, nbest=2, max_length=4, no_repeat_ngram=1, min_length=3)
    copies = beam_rows(settings)
    prefix = Padded.of([[2, 2], [3, STOP], [1, 1, 1, 1, 1]]).repeat(copies)
    chances = always([0.1, 0.1, 0.2, 0.2, 0.3, 0.1])

    def step(token: Tensor, state: State) -> tuple[StepOutput, State]:
        return StepOutput(chances.expand(len(token), -1)), state

    two, stopped, long = search(step, rows(3 * copies), settings, SPECIAL, prefix=prefix)
    assert all(each.tokens[:2] == (2, 2) and len(each.tokens) >= 3 for each in two)
    assert stopped[0].tokens == (3,)
    assert stopped[0].log_probability == pytest.approx(math.log(0.2 * 0.1), rel=ROUNDING)
    assert long[0].tokens == (1, 1, 1, 1)
    assert not long[0].finished


# faults


def test_rows_must_be_repeated() -> None:
    with pytest.raises(ShapeError) as caught:
        search(counting, rows(7), settings_of("beam", width=5), SPECIAL)
    assert str(caught.value) == (
        "search of kind beam needs 5 rows for each source, side by side, but got 7 rows in all. "
        "Repeat the state, and what the step knows, by beam_rows(settings)."
    )


def test_prefix_and_mask_must_be_repeated_too() -> None:
    settings = settings_of("beam", width=5)
    with pytest.raises(ShapeError) as caught:
        search(counting, rows(10), settings, SPECIAL, prefix=Padded.of([[1], [2]]))
    assert str(caught.value) == (
        "the prefix has 2 rows, but the state has 10. Repeat the prefix by beam_rows(settings) too."
    )
    with pytest.raises(ShapeError, match="the mask has 2 rows, but the state has 10"):
        search(counting, rows(10), settings, SPECIAL, mask=torch.ones(2, 3, dtype=torch.bool))


@pytest.mark.parametrize("kind", KINDS)
def test_coverage_penalty_needs_weights(kind: str) -> None:
    with pytest.raises(RecipeError) as caught:
        search(counting, rows(1), settings_of(kind, width=1, coverage_penalty=0.2), SPECIAL)
    assert str(caught.value) == (
        "this recipe: search.coverage_penalty is 0.2, but this model gives no attention weights. "
        "Set it to 0, or use an attention bridge."
    )


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "extreme",
    [
        {"length_penalty": MOST_LENGTH_PENALTY, "max_length": 50},
        {"coverage_penalty": MOST_COVERAGE_PENALTY},
        {"temperature": LEAST_TEMPERATURE},
        {"temperature": MOST_TEMPERATURE},
        {"top_p": LEAST_TOP_P},
    ],
    ids=str,
)
def test_the_ends_of_all_ranges_give_numbers(kind: str, extreme: dict[str, float]) -> None:
    """Here and in the runtime alike; what lies beyond overflowed, or left no token to draw."""
    assert MOST_TOKENS**MOST_LENGTH_PENALTY < np.finfo(np.float32).max
    log_V = always([0.0, 1e-6, 0.3, 0.2, 0.1, 0.4 - 1e-6])

    def step(token: Tensor, state: State) -> tuple[StepOutput, State]:
        return StepOutput(
            log_V.expand(len(token), -1), torch.eye(1, 3).expand(len(token), -1)
        ), state

    settings = settings_of(kind, nbest=1, width=1, **extreme)
    (found,) = search(step, rows(beam_rows(settings)), settings, SPECIAL)
    there = SearchOptions.read(settings.model_dump())
    outcome = runtime.search(
        lambda token, state, prepared: (
            log_V.expand(len(token), -1).numpy().copy(),
            np.eye(1, 3, dtype="f4"),
            state,
        ),
        {},
        {},
        there,
        SpecialTokens(go=GO, stop=STOP),
        mask=np.ones((1, 3), dtype=bool),
    )
    for one in (found[0], outcome[0][0]):
        assert math.isfinite(one.score)
        assert math.isfinite(one.log_probability)
        assert set(one.tokens) <= {1, 2, 3, 4}
    assert (found[0].tokens, found[0].finished) == (outcome[0][0].tokens, outcome[0][0].finished)
    if (
        kind == "sample"
        and extreme.get("temperature") != MOST_TEMPERATURE
        and extreme.keys() & {"temperature", "top_p"}
    ):
        assert found[0].tokens == ()  # the most probable token is the last


@pytest.mark.parametrize("kind", KINDS)
def test_a_position_without_any_attention_costs_much_but_not_everything(kind: str) -> None:
    def step(token: Tensor, state: State) -> tuple[StepOutput, State]:
        scored, state = counting(token, state)
        return StepOutput(scored.log_probabilities, torch.tensor([[1.0, 0.0]])), state

    settings = settings_of(kind, width=1, coverage_penalty=1.0)
    ((found,),) = search(step, rows(1), settings, SPECIAL)
    assert found.tokens == (1, 2, 3, 4)
    assert -100 < found.score < -50
    ((padded,),) = search(step, rows(1), settings, SPECIAL, mask=torch.tensor([[True, False]]))
    assert padded.score == 0.0


@pytest.mark.parametrize("steps", range(5))
def test_min_length_holds_back_as_long_where_the_steps_are_a_tensor(steps: int) -> None:
    """As in a CUDA graph, which is replayed for other steps."""
    rule, scores = min_length(3, stop=1), torch.zeros(1, 4)
    ruled = rule(scores.clone(), torch.zeros(1, 0), torch.tensor(steps))
    assert torch.equal(ruled, rule(scores, torch.zeros(1, 0), steps))
    assert bool(ruled[0, 1] == -torch.inf) == (steps < 3)


@pytest.mark.parametrize("size", [1, 31, 64, 127, 128, 300])
@pytest.mark.parametrize("count", [1, 2, 4])
def test_the_best_tokens_are_found_wherever_they_stand(size: int, count: int) -> None:
    """Also behind the last whole chunk: each row has its best at another place."""
    scores = torch.randn(size, size)
    scores.fill_diagonal_(9.0)
    values, tokens = best_tokens(scores, min(count, size))
    assert tokens[:, 0].tolist() == list(range(size))
    assert torch.equal(values, scores.topk(min(count, size)).values)
    assert torch.equal(scores.gather(1, tokens), values)
