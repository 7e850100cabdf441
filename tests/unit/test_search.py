"""Greedy search, sampling and the rules; beam search has a file of its own."""

import itertools
import math
import random
from collections import Counter

import pytest
import torch
from torch import Tensor, nn

from sixjars.errors import RecipeError, ShapeError
from sixjars.evaluation.search import beam_rows, likely, search
from sixjars.evaluation.search.problem import banned, forced_prefix, min_length, no_repeated_ngram, together
from sixjars.flow.contracts import SpecialTokens
from sixjars.flow.values import Hypothesis, Padded, State, StepOutput
from sixjars.recipe.sections import SearchSettings

GO, STOP = 0, 5
MARKS = SpecialTokens(go=GO, stop=STOP)
KINDS = ["greedy", "sample", "beam"]


def rows(count: int) -> State:
    return State(torch.zeros(count, 1, 1))


def counting(token: Tensor, state: State) -> tuple[StepOutput, State]:
    """After each number the next one, for certain."""
    return StepOutput(nn.functional.one_hot((token + 1).clamp(max=STOP), STOP + 1).float().log()), state


def always(probabilities: list[float]) -> Tensor:
    return torch.tensor(probabilities).log()


def settings_of(kind: str, **others: object) -> SearchSettings:
    return SearchSettings.model_validate({"kind": kind, **others})


def run(
    log_probabilities: Tensor, settings: SearchSettings, marks: SpecialTokens, sources: int = 1
) -> list[list[Hypothesis]]:
    """Search where every step has the same distribution."""

    def step(token: Tensor, state: State) -> tuple[StepOutput, State]:
        return StepOutput(log_probabilities.expand(len(token), -1)), state

    return search(step, rows(sources * beam_rows(settings)), settings, marks)


def test_greedy_needs_no_network() -> None:
    (one,), (other,) = search(counting, rows(2), SearchSettings(), MARKS, prefix=Padded.of([[1], [1, 2]]))
    assert one == other == Hypothesis(tokens=(1, 2, 3, 4), score=0.0, log_probability=0.0)


@pytest.mark.parametrize("kind", KINDS)
def test_limit_counts_stop(kind: str) -> None:
    ((enough,),) = search(counting, rows(1), settings_of(kind, width=1, max_length=5), MARKS)
    ((short,),) = search(counting, rows(1), settings_of(kind, width=1, max_length=4), MARKS)
    assert enough.tokens == short.tokens == (1, 2, 3, 4)
    assert (enough.finished, short.finished) == (True, False)


@pytest.mark.parametrize("kind", KINDS)
def test_search_stops_when_every_row_has(kind: str) -> None:
    told = []

    def step(token: Tensor, state: State) -> tuple[StepOutput, State]:
        told.append(token.tolist())
        return counting(token, state)

    search(step, rows(2), settings_of(kind, width=1), MARKS)
    assert told == [[0, 0], [1, 1], [2, 2], [3, 3], [4, 4]]


def test_greedy_scores_by_length() -> None:
    settings = settings_of("greedy", max_length=3, length_penalty=0.5)
    ((found,),) = run(always([0.1, 0.3, 0.6]), settings, SpecialTokens(go=0, stop=1))
    assert found.tokens == (2, 2, 2)
    assert found.log_probability == pytest.approx(3 * math.log(0.6))
    assert found.score == pytest.approx(3 * math.log(0.6) / 3**0.5)


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
        always([0.125, 0.25, 0.625]).to(dtype), settings_of(kind, width=1, max_length=9), SpecialTokens(go=0, stop=1)
    )
    count = len(found.tokens)
    expected = count * math.log(0.625) + found.finished * math.log(0.25)
    assert found.log_probability == pytest.approx(expected, rel=1e-2 if dtype.itemsize == 2 else 1e-6)


def test_no_rows_no_hypotheses() -> None:
    assert search(counting, rows(0), SearchSettings(), MARKS) == []


def test_rows_per_source() -> None:
    assert beam_rows(settings_of("greedy", width=7, nbest=3)) == 1
    assert beam_rows(settings_of("sample", width=7, nbest=3)) == 3
    assert beam_rows(settings_of("beam", width=7, nbest=3)) == 7


# rules


@pytest.mark.parametrize("kind", KINDS)
def test_go_and_banned_tokens_are_never_written(kind: str) -> None:
    settings = settings_of(kind, nbest=5, max_length=20)
    found = run(always([0.3, 0.1, 0.3, 0.2, 0.1]), settings, SpecialTokens(go=0, stop=1, banned=(2,)), sources=4)
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
    assert found.log_probability == pytest.approx(3 * math.log(0.3) + math.log(0.6))


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
    assert torch.equal(no_repeated_ngram(size)(scores, history), expected)
    assert expected.isinf().any() == (length >= size)


def test_rules_leave_the_models_scores_alone() -> None:
    scores = torch.randn(2, 4)
    kept, written = scores.clone(), torch.tensor([[1, 1], [2, 3]])
    rules = [banned(torch.tensor([0])), min_length(3, stop=1), no_repeated_ngram(1)]
    ruled = together(rules)(scores, written)
    min_length(3, stop=1)(scores, written)
    assert torch.equal(scores, kept)
    assert torch.equal(ruled[ruled > -torch.inf], scores[ruled > -torch.inf])
    assert (ruled == -torch.inf).tolist() == [[True, True, False, False], [True, True, True, True]]


def test_forced_prefix_overrules_every_other_rule() -> None:
    rule = forced_prefix(Padded.of([[1, 1], [2], []]), otherwise=banned(torch.tensor([1, 3])))
    scores = torch.arange(12.0).view(3, 4)
    never = -torch.inf
    assert rule(scores, torch.zeros(3, 0, dtype=torch.long)).tolist() == [
        [never, 1.0, never, never],
        [never, never, 6.0, never],
        [8.0, never, 10.0, never],
    ]
    assert rule(scores, torch.tensor([[1], [2], [0]])).tolist() == [
        [never, 1.0, never, never],
        [4.0, never, 6.0, never],
        [8.0, never, 10.0, never],
    ]
    assert rule(scores, torch.zeros(3, 2, dtype=torch.long)).tolist()[0] == [0.0, never, 2.0, never]


@pytest.mark.parametrize("kind", KINDS)
def test_prefix_is_written_and_paid_for(kind: str) -> None:
    settings = settings_of(kind, nbest=2, max_length=4, no_repeat_ngram=1, min_length=3)
    copies = beam_rows(settings)
    prefix = Padded.of([[2, 2], [3, STOP], [1, 1, 1, 1, 1]]).repeat(copies)
    chances = always([0.1, 0.1, 0.2, 0.2, 0.3, 0.1])

    def step(token: Tensor, state: State) -> tuple[StepOutput, State]:
        return StepOutput(chances.expand(len(token), -1)), state

    two, stopped, long = search(step, rows(3 * copies), settings, MARKS, prefix=prefix)
    assert all(each.tokens[:2] == (2, 2) and len(each.tokens) >= 3 for each in two)
    assert stopped[0].tokens == (3,)
    assert stopped[0].log_probability == pytest.approx(math.log(0.2 * 0.1))
    assert long[0].tokens == (1, 1, 1, 1)
    assert not long[0].finished


# sampling


def test_draws_have_the_models_probabilities() -> None:
    """Pearson's χ² over all outcomes of two draws stays below its 0.999 quantile (26.1 for 8 degrees)."""
    chances, draws = [0.5, 0.2, 0.3], 20_000
    settings = settings_of("sample", nbest=draws, max_length=2, seed=3)
    (found,) = run(always([*chances, 0.0, 0.0]), settings, SpecialTokens(go=3, stop=4))
    seen = Counter(each.tokens for each in found)
    expected = {pair: draws * chances[pair[0]] * chances[pair[1]] for pair in itertools.product(range(3), repeat=2)}
    assert set(seen) == set(expected)
    assert sum((seen[pair] - wanted) ** 2 / wanted for pair, wanted in expected.items()) < 26.1


def test_temperature_changes_the_draws_but_not_the_log_probability() -> None:
    """At temperature 0.5 probabilities are squared: 0.64 to 0.04 becomes 16 to 1 (χ² with 1 degree: 10.8)."""
    draws = 10_000
    settings = settings_of("sample", nbest=draws, max_length=1, temperature=0.5)
    (found,) = run(always([0.0, 0.0, 0.8, 0.2]), settings, SpecialTokens(go=0, stop=1))
    likely_ones = sum(each.tokens == (2,) for each in found)
    wanted = draws * 16 / 17
    assert (likely_ones - wanted) ** 2 / wanted + (likely_ones - wanted) ** 2 / (draws - wanted) < 10.8
    for each in found:
        assert each.log_probability == pytest.approx(math.log({2: 0.8, 3: 0.2}[each.tokens[0]]))


def test_draws_come_most_probable_first() -> None:
    settings = settings_of("sample", nbest=50, max_length=6)
    for found in run(always([0.0, 0.2, 0.3, 0.5]), settings, SpecialTokens(go=0, stop=1), sources=3):
        chances = [each.log_probability for each in found]
        assert chances == sorted(chances, reverse=True)
        assert len(set(chances)) > 5


def test_same_seed_same_draws_and_the_global_state_stays() -> None:
    chances, marks = always([0.0, 0.1, 0.4, 0.5]), SpecialTokens(go=0, stop=1)
    before = torch.get_rng_state()
    one, again, other = (run(chances, settings_of("sample", nbest=20, seed=seed), marks) for seed in (1, 1, 2))
    assert torch.equal(torch.get_rng_state(), before)
    assert one == again
    assert one != other


@pytest.mark.parametrize(("top_k", "top_p"), list(itertools.product([0, 1, 3, 99], [0.05, 0.5, 0.9, 1.0])))
def test_support_against_a_sort_by_hand(top_k: int, top_p: float) -> None:
    scores = torch.randn(30, 8, generator=torch.Generator().manual_seed(0), dtype=torch.float64) * 2
    kept, tokens = likely(scores, top_k=top_k, top_p=top_p)
    for row in range(30):
        ranked = sorted(range(8), key=lambda token: -scores[row, token].item())[: top_k or 8]
        chances = [math.exp(scores[row, token].item()) for token in ranked]
        fewest = next((n for n in range(1, len(ranked)) if sum(chances[:n]) / sum(chances) >= top_p), len(ranked))
        found = [token for token, score in zip(tokens[row].tolist(), kept[row].tolist(), strict=True) if score > -9e9]
        assert found == ranked[:fewest]
        assert kept[row, : len(found)].tolist() == scores[row, ranked[:fewest]].tolist()


def test_only_likely_tokens_are_drawn() -> None:
    chances, marks = always([0.0, 0.05, 0.4, 0.3, 0.25]), SpecialTokens(go=0, stop=1)
    for update, expected in (({"top_k": 2}, {2, 3}), ({"top_p": 0.75}, {2, 3, 4}), ({"top_k": 1}, {2})):
        (found,) = run(chances, settings_of("sample", nbest=100, max_length=5, **update), marks)
        assert {token for each in found for token in each.tokens} == expected


# faults


def test_rows_must_be_spread() -> None:
    with pytest.raises(ShapeError) as caught:
        search(counting, rows(7), settings_of("beam", width=5), MARKS)
    assert str(caught.value) == (
        "search of kind beam needs 5 rows for each source, side by side, but got 7 rows in all. "
        "Spread the state, and what the step knows, by beam_rows(settings)."
    )


def test_prefix_and_mask_must_be_spread_too() -> None:
    settings = settings_of("beam", width=5)
    with pytest.raises(ShapeError) as caught:
        search(counting, rows(10), settings, MARKS, prefix=Padded.of([[1], [2]]))
    assert str(caught.value) == (
        "the prefix has 2 rows, but the state has 10. Spread the prefix by beam_rows(settings) too."
    )
    with pytest.raises(ShapeError, match="the mask has 2 rows, but the state has 10"):
        search(counting, rows(10), settings, MARKS, mask=torch.ones(2, 3, dtype=torch.bool))


@pytest.mark.parametrize("kind", KINDS)
def test_coverage_penalty_needs_weights(kind: str) -> None:
    with pytest.raises(RecipeError) as caught:
        search(counting, rows(1), settings_of(kind, width=1, coverage_penalty=0.2), MARKS)
    assert str(caught.value) == (
        "this recipe: search.coverage_penalty is 0.2, but this model gives no attention weights. "
        "Set it to 0, or use an attention bridge."
    )


@pytest.mark.parametrize("kind", KINDS)
def test_a_position_nobody_looked_at_costs_much_but_not_everything(kind: str) -> None:
    def step(token: Tensor, state: State) -> tuple[StepOutput, State]:
        scored, state = counting(token, state)
        return StepOutput(scored.log_probabilities, torch.tensor([[1.0, 0.0]])), state

    settings = settings_of(kind, width=1, coverage_penalty=1.0)
    ((found,),) = search(step, rows(1), settings, MARKS)
    assert found.tokens == (1, 2, 3, 4)
    assert -100 < found.score < -50
    ((padded,),) = search(step, rows(1), settings, MARKS, mask=torch.tensor([[True, False]]))
    assert padded.score == 0.0
