"""Baselines that learn nothing from inputs: the most frequent output, copies, first sentences."""

from collections import Counter
from collections.abc import Callable, Sequence

from sixjars.evaluation.baselines.budget import TimeBudget
from sixjars.evaluation.baselines.problem import BaselineOutputs, BaselineProblem
from sixjars_runtime.text.sentences import sentences_of


def most_frequent(problem: BaselineProblem, budget: TimeBudget) -> BaselineOutputs:
    """The most frequent outputs of the training set; equally frequent ones by the alphabet."""
    rows = problem.learned_from
    counts = Counter(problem.targets(rows))
    ordered = sorted(counts, key=lambda text: (-counts[text], text))[: problem.most]
    return BaselineOutputs([tuple(ordered)] * len(problem.rows), rows=len(rows))


def copied(problem: BaselineProblem, budget: TimeBudget) -> BaselineOutputs:
    """The first text of the input."""
    return _from_input(problem, lambda text: text)


def lead(problem: BaselineProblem, budget: TimeBudget) -> BaselineOutputs:
    """The first sentence of the first text, which few summarizers of news beat.

    Nenkova 2005, section 4 (https://cdn.aaai.org/AAAI/2005/AAAI05-228.pdf).
    """
    return _from_input(problem, lambda text: next(iter(sentences_of(text)), ""))


def _from_input(problem: BaselineProblem, part: Callable[[str], str]) -> BaselineOutputs:
    """A part of each input as an output."""
    texts = problem.scored.table.texts(problem.texts[0], problem.rows)
    normalize = problem.fields.output.normalize
    return BaselineOutputs([(normalize(" ".join(part(text).split())),) for text in texts])


def in_order(problem: BaselineProblem, budget: TimeBudget) -> BaselineOutputs:
    """All positions of the first input as they come."""
    name = next(iter(problem.fields.inputs))
    lengths: Sequence[int] = problem.scored.lengths(name)
    return BaselineOutputs([(" ".join(map(str, range(lengths[row]))),) for row in problem.rows])
