"""The selection of cases: every pair of values is in it, and little else."""

from itertools import product

from .pairwise import named, pairs_of, pairwise


def test_every_pair_is_covered_by_few_cases() -> None:
    settings = {
        "cell": ("rnn", "gru", "lstm"),
        "layers": (1, 2),
        "bridge": tuple("abcde"),
        "tied": (False, True),
    }
    chosen = pairwise(**settings)
    every = [dict(zip(settings, values, strict=True)) for values in product(*settings.values())]
    wanted = {pair for case in every for pair in pairs_of(case)}
    assert {pair for case in chosen for pair in pairs_of(case)} == wanted
    assert 15 <= len(chosen) <= 20 < len(every) == 60
    assert chosen == pairwise(**settings)


def test_the_others_are_rare() -> None:
    made, rare = named(lambda a, b: (a, b), "case", a=(1, 2), b=("x", "y"))
    assert made == {
        "case-1-x": (1, "x"),
        "case-1-y": (1, "y"),
        "case-2-x": (2, "x"),
        "case-2-y": (2, "y"),
    }
    assert rare == set()
    assert len(named(lambda **case: case, "case", a=(1, 2), b=(3, 4), c=(5, 6))[1]) == 4
