r"""IBM model 1 with a prior for the diagonal, learned by expectation maximization.

Dims: K sentence pairs of one shape, S words of the given text, T words of the explained text,
      N word pairs of a chunk, P different word pairs of all text, V different words.

Each word y_t of the one text is explained by a word x_s of the other, or by none (the null word):

.. math:: P(y_t, a_t = s \mid x) = p(a_t = s) \, \theta(y_t \mid x_s), \quad
          p(a_t = \text{null}) = p_0, \quad
          p(a_t = s) = (1 - p_0) \frac{\exp(-\lambda |s/S - t/T|)}
          {\sum_r \exp(-\lambda |r/S - t/T|)}

with s and t counted from 1. Brown et al. 1993 (https://aclanthology.org/J93-2003/, section 4.2)
have model 1; Dyer, Chahuneau & Smith 2013 (https://aclanthology.org/N13-1073/) the diagonal and the
Dirichlet prior of θ. Here λ is the exact maximum of its M-step, found by Newton's method, where
they make a few steps of gradient ascent.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, final

import numpy as np
import torch
from numpy.typing import NDArray

from sixjars.data.alignment.pairs import PairBlock, PairedText, WordPairChunk
from sixjars.recipe.data import DIAGONAL, STEEPEST

Values = NDArray[np.float64]
# The constants of Dyer's implementation, fast_align.
NULL: Final = 0.08  # p_0, the probability that a word is explained by none
SPREAD: Final = 0.01  # α of the Dirichlet prior: the smaller, the fewer words explain each word
LIMITS: Final = (0.1, STEEPEST)  # between which λ stays, unless it is 0 from the beginning


def distances(size_S: int, size_T: int) -> Values:
    """-|s/S - t/T| for all positions, (S, T)."""
    given_S1 = np.arange(1, size_S + 1)[:, None] / size_S
    distances_ST: Values = -np.abs(given_S1 - np.arange(1, size_T + 1) / size_T)
    return distances_ST


def diagonal(steepness: float, size_S: int, size_T: int) -> Values:
    """p(a_t = s) where a word is explained by some word, (S, T); the sum over S is 1."""
    weights_ST = np.exp(steepness * distances(size_S, size_T))
    prior_ST: Values = weights_ST / weights_ST.sum(axis=0)
    return prior_ST


def _digamma(values: Values) -> Values:
    psi: Values = torch.digamma(torch.from_numpy(values)).numpy()
    return psi


@final
@dataclass
class _Expected:
    """The expected counts of the E-step."""

    pairs: Values
    """How often each word pair is a link, (P,)."""
    null: Values
    """How often each word is explained by none, (V,)."""
    near: float
    """Σ of -|s/S - t/T| over all links."""
    mass: dict[tuple[int, int], Values]
    """For each shape and each position t, how many words are explained by some word, (T,)."""


@final
class DiagonalModel:
    """One direction of alignment: how the words of one text explain those of the other."""

    def __init__(
        self, text: PairedText, *, reverse: bool = False, steepness: float = DIAGONAL
    ) -> None:
        self.text = text
        self.reverse = reverse
        """Whether the first text is explained by the second."""
        self.steepness = steepness
        """λ; 0 stays 0, and all positions are equally probable: model 1 without a prior."""
        self.given = text.second if reverse else text.first
        self.explained = text.first if reverse else text.second
        self.sizes = text.counts[::-1] if reverse else text.counts
        self.theta: Values = np.full(len(self.given), 1.0)
        self.null: Values = np.full(self.sizes[1], 1.0)

    def joint(self, chunk: WordPairChunk) -> tuple[Values, list[tuple[PairBlock, Values, Values]]]:
        """P(y_t, a_t = s) in a chunk (N,), and for each block (K, S, T), with null's (K, T)."""
        joint = self.theta[chunk.pairs][chunk.places]
        blocks = []
        for block in chunk.blocks:
            part = block.cut(joint)
            joint_KST = part.transpose(0, 2, 1) if self.reverse else part
            joint_KST *= (1.0 - NULL) * diagonal(self.steepness, *joint_KST.shape[1:])
            explained_KT = block.first if self.reverse else block.second
            blocks.append((block, joint_KST, NULL * self.null[explained_KT]))
        return joint, blocks

    def expect(self) -> _Expected:
        """The E-step: the posterior probability of each link, added up over all sentence pairs."""
        expected = _Expected(np.zeros_like(self.theta), np.zeros_like(self.null), 0.0, {})
        for chunk in self.text.chunks:
            joint, blocks = self.joint(chunk)
            for block, joint_KST, null_KT in blocks:  # views of `joint`, which becomes posterior
                total_KT = joint_KST.sum(axis=1) + null_KT
                joint_KST /= total_KT[:, None]
                null_KT /= total_KT
                np.add.at(expected.null, block.first if self.reverse else block.second, null_KT)
                shape = joint_KST.shape[1:]
                links_ST = joint_KST.sum(axis=0)
                expected.near += float((links_ST * distances(*shape)).sum())
                expected.mass[shape] = expected.mass.get(shape, 0.0) + links_ST.sum(axis=0)
            expected.pairs[chunk.pairs] += np.bincount(chunk.places, joint, len(chunk.pairs))
        return expected

    def maximize(self, expected: _Expected) -> None:
        """The M-step: θ under its Dirichlet prior (variational), and λ."""
        totals = np.bincount(self.given, expected.pairs, self.sizes[0]).astype(np.float64)
        below = _digamma(totals + SPREAD * self.sizes[1])
        self.theta = np.exp(_digamma(expected.pairs + SPREAD) - below[self.given])
        null = np.array(expected.null.sum() + SPREAD * self.sizes[1])
        self.null = np.exp(_digamma(expected.null + SPREAD) - _digamma(null))
        if self.steepness:
            self.steepness = best_steepness(self.steepness, expected.near, expected.mass)

    def iterate(self) -> None:
        """Run one iteration of EM."""
        self.maximize(self.expect())

    def best(self) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
        """Each block's lines (K,) and the best given word for each word or -1, (K, T)."""
        for chunk in self.text.chunks:
            for block, joint_KST, null_KT in self.joint(chunk)[1]:
                best_KT = joint_KST.argmax(axis=1)
                best_KT[joint_KST.max(axis=1) <= null_KT] = -1
                yield block.lines, best_KT


def best_steepness(start: float, near: float, mass: dict[tuple[int, int], Values]) -> float:
    """The λ under which the expected links are most probable.

    λ Σ h - Σ mass_t log Σ_s exp(λ h_st) has one maximum.
    """
    steepness = start
    for _ in range(20):
        slope, curve = near, 0.0
        for shape, mass_T in mass.items():
            prior_ST, h_ST = diagonal(steepness, *shape), distances(*shape)
            mean_T = (prior_ST * h_ST).sum(axis=0)
            slope -= float(mass_T @ mean_T)
            curve += float(mass_T @ ((prior_ST * h_ST**2).sum(axis=0) - mean_T**2))
        if curve <= 0:
            break
        before, steepness = steepness, float(np.clip(steepness + slope / curve, *LIMITS))
        if abs(steepness - before) < 1e-3:
            break
    return steepness
