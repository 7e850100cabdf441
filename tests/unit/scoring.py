"""Outcomes of models for the tests of metrics, by hand and by Hypothesis, and their scores."""

from collections.abc import Sequence

from hypothesis import strategies as st

from sixjars.evaluation.metrics import Outcome, score

WORDS = ("home", "Home", "go", "घर", "जाना", "ab", "abc", "b", ".", "né")
sentences = st.lists(st.sampled_from(WORDS), max_size=7).map(" ".join)


def outcomes_of(text: st.SearchStrategy[str]) -> st.SearchStrategy[list[Outcome]]:
    several = st.lists(text, min_size=1, max_size=3).map(tuple)
    outcomes = st.builds(Outcome, references=several, candidates=several)
    return st.lists(outcomes, min_size=1, max_size=4)


def value(name: str, outcomes: Sequence[Outcome]) -> float:
    return score(outcomes, [name])[0].value


def outcome(references: str | tuple[str, ...], *candidates: str) -> Outcome:
    return Outcome((references,) if isinstance(references, str) else references, candidates)


def outputs(*texts: str) -> list[Outcome]:
    """Outputs whose references do not matter."""
    return [Outcome(("x",), (text,)) for text in texts]
