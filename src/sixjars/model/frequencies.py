"""How many texts have a word, and its weight by that: rare words weigh more, and telling ones.

Dims: B batch, S source positions, L labels of a row, F features, K pairs of a feature and a label
      that occur.
"""

from typing import Final, final

import numpy as np
import torch
from torch import Tensor

from sixjars.flow.values import Padded

SMOOTHING: Final = 4.0
"""Texts that are added to the counts, so that a word of one text does not decide. With two labels a
linear classifier of 1,400 movie reviews reaches 0.880 with 4, 0.871 with 2 and 0.863 without the
ratio; of 200 reviews 0.738, 0.715 and 0.677."""
MERGED_AT: Final = 4_000_000
"""Pairs of features and labels that wait to be counted: at 8 bytes each, 32 MB."""


def weighing_column(weights: Tensor, without: int) -> Tensor:
    """The weights as a column, in which the first few are 0."""
    weights[:without] = 0.0
    return weights.unsqueeze(1)


def _distinct(features: Tensor) -> tuple[Tensor, Tensor]:
    """The features of each row in order, (B, S), and which are the first of equal ones."""
    ordered = features.sort(dim=1).values
    is_first = torch.ones_like(ordered, dtype=torch.bool)
    is_first[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
    return ordered, is_first


@final
class FeatureCounts:
    """How many texts have each feature; with their labels, how much a feature tells about them."""

    def __init__(self, size: int) -> None:
        self.texts_F = torch.zeros(size, dtype=torch.float64)
        self.total = 0
        self._labels = torch.zeros(0, dtype=torch.float64)
        """The texts of each label."""
        self._keys_K = torch.zeros(0, dtype=torch.int64)
        """label · F + feature, ascending."""
        self._with_K = torch.zeros(0, dtype=torch.float64)
        """How many texts have both."""
        self._waiting: list[Tensor] = []

    def add(self, features: Tensor, labels: Padded | None = None) -> None:
        """Count texts with features (B, S), and labels (B, L) if those are counted too."""
        ordered_BS, is_first_BS = _distinct(features)
        self.texts_F += torch.bincount(ordered_BS[is_first_BS], minlength=len(self.texts_F))
        self.total += len(features)
        if labels is None:
            return
        self._labels = _sum(self._labels, torch.bincount(labels.values[labels.mask]))
        keys_BLS = labels.values.unsqueeze(2) * len(self.texts_F) + ordered_BS.unsqueeze(1)
        counts_BLS = labels.mask.unsqueeze(2) & is_first_BS.unsqueeze(1)
        self._waiting.append(keys_BLS[counts_BLS])
        if sum(map(len, self._waiting)) > MERGED_AT:
            self._merge()

    def _merge(self) -> None:
        """Add the waiting pairs to those that are counted."""
        keys_K, place_K = np.unique(
            torch.cat([self._keys_K, *self._waiting]).numpy(), return_inverse=True
        )
        ones = torch.ones(len(place_K) - len(self._with_K), dtype=torch.float64)
        counts_K = np.bincount(place_K, weights=torch.cat([self._with_K, ones]).numpy())
        self._keys_K = torch.from_numpy(keys_K)
        self._with_K = torch.from_numpy(counts_K)
        self._waiting.clear()

    def inverse_frequency(self) -> Tensor:
        """log((1 + n) / (1 + n_g)) + 1 of each feature, 0 of those that no text has."""
        return torch.where(self.texts_F > 0, self.weights_of_all(), 0.0)

    def weights_of_all(self) -> Tensor:
        """The same, but a feature that no text has weighs most: it is rare."""
        return ((1 + self.total) / (1 + self.texts_F)).log() + 1

    def label_ratio(self) -> Tensor:
        r"""The greatest log ratio of each feature, (F,), at least 0.

        .. math:: \max_ℓ \log \frac{(n_{gℓ} + a n_ℓ / n) / (n_ℓ + a)}
                                   {(n_g - n_{gℓ} + a (n - n_ℓ) / n) / (n - n_ℓ + a)}

        over the labels ℓ of texts that have the feature: how much more frequent it is in the texts
        of a label than in all others, n_gℓ of n_ℓ against n_g - n_gℓ of n - n_ℓ. These are the
        weights of naive Bayes, for a linear classifier: Wang & Manning 2012
        (https://aclanthology.org/P12-2018), with frequencies in texts. On each side a = 4 texts
        are added, of which as large a share has the feature as the side has of all texts.
        """
        if self._waiting:
            self._merge()
        ratios_F = torch.zeros_like(self.texts_F)
        for begin in range(0, len(self._keys_K), MERGED_AT):
            part = slice(begin, begin + MERGED_AT)  # all at once would be gigabytes
            feature_K, ratio_K = self._ratios(self._keys_K[part], self._with_K[part])
            ratios_F.scatter_reduce_(0, feature_K, ratio_K, "amax")
        return ratios_F

    def _ratios(self, keys: Tensor, texts_with: Tensor) -> tuple[Tensor, Tensor]:
        """The feature and the log ratio of pairs of a feature and a label, (K,) each."""
        feature_K = keys % len(self.texts_F)
        of_label_K = self._labels[keys // len(self.texts_F)]
        others_K = self.total - of_label_K
        inside_K = texts_with + SMOOTHING * of_label_K / self.total
        outside_K = self.texts_F[feature_K] - texts_with + SMOOTHING * others_K / self.total
        odds_K = inside_K / (of_label_K + SMOOTHING) * (others_K + SMOOTHING) / outside_K
        # A label that all texts have tells nothing, and nothing is outside it.
        return feature_K, torch.where(others_K > 0, odds_K.log(), 0.0)


def _sum(left: Tensor, right: Tensor) -> Tensor:
    """The sum of two vectors, the shorter one filled with zeros."""
    total = left.new_zeros(max(len(left), len(right)))
    total[: len(left)] += left
    total[: len(right)] += right
    return total


def occurrences(features: Tensor) -> Tensor:
    """The number of positions in its row that have each feature of (B, S), (B, S)."""
    if torch.compiler.is_exporting():  # ONNX has no search in sorted numbers
        return (features.unsqueeze(2) == features.unsqueeze(1)).sum(2)
    ordered = features.sort(dim=1).values
    first, behind = (torch.searchsorted(ordered, features, right=right) for right in (False, True))
    return behind - first
