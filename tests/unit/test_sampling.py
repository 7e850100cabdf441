"""Sampling: draws follow the model's probabilities, by seed, row, step and token alone."""

import itertools
import math
import random
from collections import Counter
from collections.abc import Sequence

import numpy as np
import pytest
import torch
from torch import Tensor

from sixjars.decoding import beam_rows, search
from sixjars.decoding.sampling import draw, hashed, likely
from sixjars.flow.searching import Hypothesis
from sixjars.flow.values import State, StepOutput
from sixjars.recipe.sections import SearchSettings
from sixjars_runtime.special_tokens import SpecialTokens

GO, STOP = 0, 1
SPECIAL = SpecialTokens(go=GO, stop=STOP)
QUANTILES = {1: 10.8, 2: 13.8, 8: 26.1}
"""Of χ², by degrees of freedom: a true distribution stays below with probability 0.999."""


def always(probabilities: Sequence[float]) -> Tensor:
    return torch.tensor(probabilities).log()


def settings_of(**others: object) -> SearchSettings:
    return SearchSettings.model_validate({"kind": "sample", **others})


def run(
    log_probabilities: Tensor,
    settings: SearchSettings,
    *,
    sources: int = 1,
    special: SpecialTokens = SPECIAL,
    seeds: Sequence[int] | None = None,
) -> list[list[Hypothesis]]:
    """Search where every step has the same distribution."""

    def step(token: Tensor, state: State) -> tuple[StepOutput, State]:
        return StepOutput(log_probabilities.expand(len(token), -1)), state

    return search(
        step,
        State(torch.zeros(sources * beam_rows(settings), 1, 1)),
        settings,
        special,
        seeds=seeds,
    )


def chi_squared(seen: Counter[tuple[int, ...]], chances: dict[int, float]) -> float:
    """Pearson's, of pairs of independent draws (or single ones)."""
    [size] = {len(each) for each in seen}
    total, found = seen.total(), 0.0
    for outcome in itertools.product(chances, repeat=size):
        wanted = total * math.prod(chances[token] for token in outcome)
        found += (seen[outcome] - wanted) ** 2 / wanted
    return found


# The numbers


def splitmix64(number: int) -> int:
    """As it is published, with whole numbers that never overflow."""
    mixed = (number + 0x9E3779B97F4A7C15) % 2**64
    mixed = (mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
    mixed = (mixed ^ (mixed >> 27)) * 0x94D049BB133111EB % 2**64
    return mixed ^ (mixed >> 31)


def test_the_hash_is_splitmix64() -> None:
    chance = random.Random(0)
    numbers = [
        0,
        1,
        -1,
        2**63 - 1,
        -(2**63),
        *(chance.randrange(-(2**63), 2**63) for _ in range(500)),
    ]
    found = [number % 2**64 for number in hashed(torch.tensor(numbers)).tolist()]
    assert found == [splitmix64(number % 2**64) for number in numbers]
    # the first number of the published generator, with seed 0
    assert found[0] == 0xE220A8397B1DCDAF


def test_draws_follow_the_softmax() -> None:
    """Over rows, each with its own seed; scores need no norm, and -inf is never drawn."""
    scores = torch.tensor([1.0, -torch.inf, 2.0, 0.5, -3.0])
    chances = dict(enumerate(scores.double().softmax(0).tolist()))
    del chances[1]
    for step in (0, 1, 77):
        found = draw(scores.expand(40_000, 5), hashed(torch.arange(40_000)), step)
        # 3 degrees
        assert chi_squared(Counter((token,) for token in found.tolist()), chances) < 16.3


def test_a_row_where_nothing_may_follow_does_no_harm() -> None:
    scores = torch.tensor([[-torch.inf, -torch.inf], [-torch.inf, 0.0]])
    assert draw(scores, torch.tensor([3, 4]), 0).tolist()[1] == 1


# What is drawn for whom


CHANCES = {2: 0.5, 3: 0.2, 4: 0.3}
LOG = always([0.0, 0.0, *CHANCES.values()])


def test_draws_of_one_source_follow_the_model() -> None:
    """All outcomes of two steps, over as many copies of a source as a search may have, twice."""
    drawn = [run(LOG, settings_of(nbest=10_000, max_length=2, seed=seed))[0] for seed in (3, 4)]
    outcomes = Counter(each.tokens for hypotheses in drawn for each in hypotheses)
    assert outcomes.total() == 20_000
    assert chi_squared(outcomes, CHANCES) < QUANTILES[8]


def test_draws_of_neighbours_are_independent() -> None:
    """Sources whose seeds are 0, 1, 2, …: each alone, and each with the next."""
    found = [each.tokens[0] for (each,) in run(LOG, settings_of(max_length=1), sources=20_000)]
    assert chi_squared(Counter((token,) for token in found), CHANCES) < QUANTILES[2]
    assert chi_squared(Counter(zip(found[::2], found[1::2], strict=True)), CHANCES) < QUANTILES[8]


def test_draws_of_steps_are_independent() -> None:
    ((found,),) = run(LOG, settings_of(max_length=4000, seed=11))
    assert (
        chi_squared(Counter(zip(found.tokens[::2], found.tokens[1::2], strict=True)), CHANCES)
        < QUANTILES[8]
    )


def test_draws_of_search_seeds_are_independent() -> None:
    """For one source, the first token of seed 0, 1, 2, …"""
    found = [run(LOG, settings_of(max_length=1, seed=seed))[0][0].tokens for seed in range(2000)]
    assert chi_squared(Counter(found), CHANCES) < QUANTILES[2]


def test_rows_steps_and_seeds_draw_differently() -> None:
    """Of 1,000 equal tokens: nothing repeats, neither in a row nor a row or a step apart."""
    log, settings = always([0.0, 0.0, *[1e-3] * 1000]), settings_of(nbest=4, max_length=50)
    drawn = {
        (seed, source, copy): each.tokens
        for seed in (0, 1)
        for source, found in enumerate(
            run(log, settings.model_copy(update={"seed": seed}), sources=4)
        )
        for copy, each in enumerate(found)
    }
    assert len(drawn) == 32
    assert min(len(set(tokens)) for tokens in drawn.values()) > 40
    for one, other in itertools.combinations(drawn.values(), 2):
        for shift in (-1, 0, 1):
            pairs = zip(one[max(0, shift) :], other[max(0, -shift) :], strict=False)
            assert sum(a == b for a, b in pairs) < 5


class Walk:
    """A model whose next token depends on source and last token, looked up in a table."""

    def __init__(self) -> None:
        self.table = torch.randn(9, 12, 12, generator=torch.Generator().manual_seed(1)).log_softmax(
            -1
        )

    def sample(
        self, sources: Sequence[int], seeds: Sequence[int], **settings: object
    ) -> list[list[Hypothesis]]:
        chosen = settings_of(max_length=15, **settings)
        source = torch.tensor(sources).repeat_interleave(beam_rows(chosen))

        def step(token: Tensor, state: State) -> tuple[StepOutput, State]:
            return StepOutput(self.table[source, token]), state

        return search(step, State(torch.zeros(len(source), 1, 1)), chosen, SPECIAL, seeds=seeds)


@pytest.mark.parametrize(
    "settings",
    [{}, {"nbest": 3}, {"nbest": 2, "top_k": 4, "top_p": 0.8, "temperature": 1.3, "seed": 6}],
    ids=["plain", "three", "likely"],
)
def test_a_draw_does_not_depend_on_its_company(settings: dict[str, object]) -> None:
    """The same source with the same seed: alone, in a batch, at another place, in a smaller one."""
    walk, sources, seeds = Walk(), [3, 1, 4, 1, 5, 8], [70, 0, 3, 12, 2**40, 9]
    together = walk.sample(sources, seeds, **settings)
    assert together[1] != together[3]  # the same source with another seed
    alone = [
        walk.sample([source], [seed], **settings)[0]
        for source, seed in zip(sources, seeds, strict=True)
    ]
    assert together == alone
    assert walk.sample(sources[::-1], seeds[::-1], **settings) == together[::-1]
    assert walk.sample(sources[2:5], seeds[2:5], **settings) == together[2:5]
    assert walk.sample([0, 0, *sources], [5, 5, *seeds], **settings)[2:] == together


def test_more_copies_do_not_change_the_others() -> None:
    walk = Walk()
    few, many = (walk.sample([2], [7], nbest=nbest)[0] for nbest in (3, 10))
    assert set(few) < set(many)


def test_same_seed_same_draws() -> None:
    one, again, other = (
        run(LOG, settings_of(nbest=20, max_length=9, seed=seed)) for seed in (1, 1, 2)
    )
    assert one == again
    assert one != other


def test_no_generator_is_touched_or_read() -> None:
    def drawn(*, sample: bool) -> tuple[float, ...]:
        torch.manual_seed(4)
        random.seed(4)
        np.random.seed(4)
        if sample:
            found.append(run(LOG, settings_of(nbest=20, max_length=9, top_p=0.9)))
        return torch.rand(()).item(), random.random(), np.random.random()

    found = [run(LOG, settings_of(nbest=20, max_length=9, top_p=0.9))]
    assert drawn(sample=True) == drawn(sample=False)
    assert found[0] == found[1]


# Temperature, top k, top p


def test_temperature_changes_the_draws_but_not_the_log_probability() -> None:
    """At temperature 0.5 probabilities are squared: 0.64 to 0.04 becomes 16 to 1."""
    (found,) = run(
        always([0.0, 0.0, 0.8, 0.2]), settings_of(nbest=10_000, max_length=1, temperature=0.5)
    )
    seen = Counter(each.tokens for each in found)
    assert chi_squared(seen, {2: 16 / 17, 3: 1 / 17}) < QUANTILES[1]
    for each in found:
        assert each.log_probability == pytest.approx(
            math.log({2: 0.8, 3: 0.2}[each.tokens[0]]), rel=1e-5
        )


def test_draws_come_most_probable_first() -> None:
    for found in run(always([0.0, 0.2, 0.3, 0.5]), settings_of(nbest=50, max_length=6), sources=3):
        chances = [each.log_probability for each in found]
        assert chances == sorted(chances, reverse=True)
        assert len(set(chances)) > 5


@pytest.mark.parametrize(
    ("top_k", "top_p"), list(itertools.product([0, 1, 3, 99], [0.05, 0.5, 0.9, 1.0]))
)
def test_likely_tokens_against_a_sort_by_hand(top_k: int, top_p: float) -> None:
    scores = torch.randn(30, 8, generator=torch.Generator().manual_seed(0), dtype=torch.float64) * 2
    kept, tokens = likely(scores, top_k=top_k, top_p=top_p)
    for row in range(30):
        ranked = sorted(range(8), key=lambda token: -scores[row, token].item())[: top_k or 8]
        chances = [math.exp(scores[row, token].item()) for token in ranked]
        fewest = next(
            (n for n in range(1, len(ranked)) if sum(chances[:n]) / sum(chances) >= top_p),
            len(ranked),
        )
        drawn = zip(tokens[row].tolist(), kept[row].tolist(), strict=True)
        found = {token: score for token, score in drawn if score > -math.inf}
        assert found == {token: scores[row, token].item() for token in ranked[:fewest]}


def test_the_fewest_that_reach_top_p() -> None:
    """Four equal shares: two of them are 0.5, to the last bit."""
    assert (likely(torch.zeros(1, 4), top_k=0, top_p=0.5)[0] == 0.0).sum() == 2
    assert (likely(torch.zeros(1, 4), top_k=0, top_p=0.51)[0] == 0.0).sum() == 3


def test_only_likely_tokens_are_drawn() -> None:
    log = always([0.0, 0.05, 0.4, 0.3, 0.25])
    for update, expected in (
        ({"top_k": 2}, {2, 3}),
        ({"top_p": 0.75}, {2, 3, 4}),
        ({"top_k": 1}, {2}),
    ):
        (found,) = run(log, settings_of(nbest=100, max_length=5, **update))
        assert {token for each in found for token in each.tokens} == expected


def test_draws_among_likely_tokens_follow_what_is_left() -> None:
    (found,) = run(LOG, settings_of(nbest=10_000, max_length=1, top_k=2))
    assert (
        chi_squared(Counter(each.tokens for each in found), {2: 0.5 / 0.8, 4: 0.3 / 0.8})
        < QUANTILES[1]
    )


def test_a_rule_that_leaves_all_tokens_leaves_all_draws() -> None:
    """A draw goes by the token, not by its rank: what is not drawn does not matter."""
    walk = Walk()
    plain, kept = (walk.sample(range(9), range(9), nbest=5, top_k=top_k) for top_k in (0, 12))
    assert plain == kept
