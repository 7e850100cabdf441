"""Greedy search: at every step the most probable token.

Dims: R rows open in search, V vocabulary.
"""

from sixjars.evaluation.search.problem import Problem
from sixjars.evaluation.search.writing import write
from sixjars.flow import Hypothesis


def greedy(problem: Problem) -> list[list[Hypothesis]]:
    r"""One hypothesis for each source.

    .. math:: \hat y_t = \arg\max_v P(v | \hat y_1 .. \hat y_{t-1}, x)
    """
    return write(problem, lambda allowed_RV: allowed_RV.argmax(dim=1), copies=1)
