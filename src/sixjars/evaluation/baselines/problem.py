"""The data of a baseline: the training set, and the inputs of the rows that are scored."""

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final, Literal, final

import numpy as np
from numpy.typing import NDArray

from sixjars.data.dataset import Dataset, Fields
from sixjars.data.text.statistics import are_unspaced
from sixjars.evaluation.baselines.budget import Check, Learner, M, T, TimeBudget, learned_in_time
from sixjars.evaluation.metrics import Metric, Outcome
from sixjars.evaluation.score import given_of, references_of

Condition = Literal["always", "input", "text", "long text", "no input", "unseen input"]
"""What outputs can depend on; an unseen input can be compared with no other."""
SAMPLED: Final = 1_000
"""Training rows that tell how long texts are, and whether their words or characters are counted."""
BEGINNING: Final = 1_000
"""Characters of each that tell whether it has words."""
FEW_WORDS: Final = 1.5
"""Mean words of a text below which its characters say more: names, words to transliterate."""
WORD: Final = 6
"""Characters of a word with the space behind it, in English."""
FEATURES_AT_ONCE: Final = 500
"""Rows whose features are read between two checks of the time."""


@final
@dataclass(frozen=True)
class BaselineProblem:
    """The data of one task: rows to learn from, and rows to give outputs for."""

    train: Dataset
    scored: Dataset
    groups: tuple[tuple[int, ...], ...]
    """The rows of `scored` for each example, several where they have the same input."""
    most: int = 1
    """Outputs of an example that some metric compares."""
    longer_source: bool = False
    """Whether inputs are longer than outputs, as those of summaries."""
    seed: int = 0
    model: Callable[[Metric], Sequence[Outcome]] | None = None
    """The outcomes of a model on the same examples, by a metric; nothing where there is none."""

    @cached_property
    def rows(self) -> list[int]:
        """The first row of each example."""
        return [group[0] for group in self.groups]

    @cached_property
    def examples(self) -> list[Outcome]:
        """The references that outputs are compared with, as outcomes."""
        return [
            Outcome(references_of(self.scored, group), given=given_of(self.scored, group[0]))
            for group in self.groups
        ]

    @cached_property
    def known_outputs(self) -> frozenset[str]:
        """All outputs of the training set."""
        return frozenset(self.train.targets)

    @property
    def fields(self) -> Fields:
        """The fields of both sets."""
        return self.scored.fields

    @cached_property
    def learned_from(self) -> list[int]:
        """The training rows that the model learns from too."""
        return [int(row) for row in np.flatnonzero(self.train.usable)]

    @cached_property
    def texts(self) -> list[str]:
        """The names of the inputs that are texts."""
        return self.scored.text_inputs

    def targets(self, rows: Sequence[int]) -> list[str]:
        """The right outputs of training rows, as they are scored."""
        return self.train.normalized(self.fields.output.name, rows)

    @cached_property
    def _sampled(self) -> list[str]:
        """The input texts of some training rows, from all over."""
        step = max(1, len(self.learned_from) // SAMPLED)
        rows = self.learned_from[::step]
        return [text for name in self.texts for text in self.train.table.texts(name, rows)]

    @cached_property
    def counts_characters(self) -> bool:
        """Whether texts are single words, or in a script without spaces."""
        texts = [text[:BEGINNING] for text in self._sampled]
        words = sum(len(text.split()) for text in texts)
        return are_unspaced(texts) or words < FEW_WORDS * len(texts)

    @cached_property
    def size(self) -> float:
        """Numbers of a training row on average: n-grams of its texts, and frozen features."""
        characters = sum(map(len, self._sampled)) / max(len(self._sampled), 1) * len(self.texts)
        # One, two and three characters from each on; or a word, and it with the next one.
        ngrams = characters * (3 if self.counts_characters else 2 / WORD)
        features = self.features(self.train, self.learned_from[:1])
        return ngrams + (0 if features is None else features.shape[1])

    def learned(self, learner: Learner[M, T], budget: TimeBudget) -> tuple[list[T], int]:
        """The predictions for each example, and how many training rows there was time for."""
        with warnings.catch_warnings():
            # a baseline that has not converged still has its score
            warnings.simplefilter("ignore")
            return learned_in_time(learner, self.learned_from, self.rows, budget, seed=self.seed)

    def features(
        self, dataset: Dataset, rows: Sequence[int], check: Check = lambda: None
    ) -> NDArray[np.float32] | None:
        """Frozen features of all inputs that have some, (R, N), of unit length; or nothing."""
        if not self.has_features:
            return None
        blocks = []
        for begin in range(0, len(rows), FEATURES_AT_ONCE):
            check()
            block = rows[begin : begin + FEATURES_AT_ONCE]
            fields = dataset.fields.inputs.values()
            features = (field.frozen_features(dataset.table, block) for field in fields)
            units = [_even(vectors) for vectors in features if vectors is not None]
            blocks.append(np.concatenate(units, axis=1))
        return np.concatenate(blocks)

    @cached_property
    def meets(self) -> dict[Condition, bool]:
        """The conditions that the data meets."""
        has_text, has_inputs = bool(self.texts), bool(self.fields.inputs)
        is_seen = has_text or self.has_features
        return {
            "always": True,
            "input": is_seen,
            "text": has_text,
            "long text": has_text and self.longer_source,
            "no input": not has_inputs,
            "unseen input": has_inputs and not is_seen,
        }

    @cached_property
    def has_features(self) -> bool:
        """Whether some input has frozen features that are stored."""
        first = self.rows[:1]
        table = self.scored.table
        fields = self.fields.inputs.values()
        return any(field.frozen_features(table, first) is not None for field in fields)


def _even(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """Rows of length 1."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.maximum(lengths, 1e-9), dtype=np.float32)


@final
@dataclass(frozen=True)
class BaselineOutputs:
    """The predictions of a baseline for each example."""

    candidates: Sequence[tuple[str, ...]] | None = None
    """Its outputs, best first; nothing where it gives probabilities alone."""
    likelihoods: Sequence[tuple[float, int]] | None = None
    """The log probability of the first reference, and how many tokens that covers."""
    rows: int | None = None
    """Training rows that it learned from; nothing where it learned from none."""


@final
@dataclass(frozen=True)
class Method:
    """One baseline: when it can be had, and how."""

    name: Callable[[BaselineProblem], str]
    """A name for people, such as `a linear model on word counts`."""
    when: Condition
    predict: Callable[[BaselineProblem, TimeBudget], BaselineOutputs]
    topic: Callable[[BaselineProblem], str]
    """The key of advice for a model that is worse than this."""
    needs_library: bool = False
    """Whether scikit-learn computes it."""

    def fits(self, problem: BaselineProblem) -> bool:
        """Whether it can be had."""
        return problem.meets[self.when]


def called(name: str) -> Callable[[BaselineProblem], str]:
    """The same name, whatever the data."""
    return lambda problem: name
