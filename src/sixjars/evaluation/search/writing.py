"""Writing one token a row, each row on its own: what greedy search and sampling share.

Dims: B sources, N rows of each, R = B * N, V vocabulary, S source positions, t tokens written so far.
"""

from collections.abc import Callable

import torch
from torch import Tensor

from sixjars.evaluation.search.problem import Problem
from sixjars.evaluation.search.tracing import Ended, Past
from sixjars.flow import Hypothesis

Choose = Callable[[Tensor], Tensor]
"""From log probabilities (R, V), -inf where a token is forbidden, to one token for each row, (R,)."""


def write(problem: Problem, choose: Choose, *, copies: int) -> list[list[Hypothesis]]:
    """One hypothesis for each row, `copies` for each source, in the order of the rows.

    A row ends with `<stop>`, at the limit, or where no token may follow; only the first is finished.
    """
    stop, ranking, state = problem.marks.stop, problem.ranking, problem.state
    token_R, written_Rt = problem.first()
    rows_R = torch.arange(problem.rows, device=problem.device)
    open_R = torch.ones_like(rows_R, dtype=torch.bool)
    finished_R, count_R, total_R = ~open_R, torch.zeros_like(rows_R), torch.zeros((), device=problem.device)
    covered_RS, past = None, Past()
    for _ in range(problem.settings.max_length):
        allowed_RV, weights_RS, state = problem.look(token_R, state, written_Rt)
        token_R = choose(allowed_RV)
        gained_R = allowed_RV.gather(1, token_R.unsqueeze(1)).squeeze(1)
        open_R = open_R & (gained_R > -torch.inf)
        covered_RS = ranking.covered(covered_RS, weights_RS, open_R)
        total_R = total_R + torch.where(open_R, gained_R, 0.0)
        finished_R = finished_R | (open_R & (token_R == stop))
        open_R = open_R & ~finished_R
        count_R = count_R + open_R
        past.add(token_R, rows_R, weights_RS)
        written_Rt = torch.cat([written_Rt, token_R.unsqueeze(1)], dim=1)
        if not bool(open_R.any()):
            break
    score_R = ranking.scores(total_R, count_R + finished_R, ranking.penalty(covered_RS))
    ended = Ended(score_R, total_R, rows_R, count_R, finished_R)
    return past.hypotheses(ended.mapped(lambda tensor: tensor.view(-1, copies)))
