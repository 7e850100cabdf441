"""What to try where a baseline is as good as a model, or better: one table, in the order in which things helped.

The order is that of measurements on real data: the change that brought most comes first.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatch
from typing import Any, Final, final

from sixjars.model.bridges import BRIDGES
from sixjars.model.encoders import ENCODERS
from sixjars.recipe.files import flat
from sixjars.recipe.sections import Recipe

BAG: Final = "bag"
"""The encoder of words and pairs of words."""
Values = Mapping[str, Any]
"""A recipe, its keys with dots between them."""


@final
@dataclass(frozen=True)
class Advice:
    """One thing to try."""

    says: str
    done: Callable[[Values], bool] = lambda values: False
    """Whether a recipe does it already, or cannot."""

    def helps(self, recipe: Recipe) -> bool:
        """Whether a recipe does not do it yet."""
        return not self.done(flat(recipe.model_dump(mode="json")))


def _some(values: Values, pattern: str, fits: Callable[[Any], bool]) -> bool:
    """Whether a key of this form has a value that fits; `*` stands for any part of a key."""
    return any(fnmatch(key, pattern) and fits(value) for key, value in values.items())


def _has_plain_words(values: Values) -> bool:
    texts = [key.removesuffix(".tokens") for key in values if fnmatch(key, "data.*.tokens")]
    return all(values[f"{text}.tokens"] == "words" and values[f"{text}.lowercase"] for text in texts)


def _has_much_dropout(values: Values) -> bool:
    return _some(values, "model.encoder*.dropout", lambda value: value >= 0.5)


def _has_vectors(values: Values) -> bool:
    return _some(values, "data.*.vectors", lambda value: value is not None)


def _is_plain(values: Values) -> bool:
    weights = _some(values, "loss.class_weights*", lambda value: value is not None)  # a key each, or one word
    return not values["loss.smoothing"] and not weights


def _is_bag(values: Values) -> bool:
    return BAG not in ENCODERS or values["model.encoder.kind"] == BAG


def _attends(values: Values) -> bool:
    bridge = BRIDGES.get(values["model.bridge.kind"])
    return bridge is None or bridge.has_attention  # nobody knows what a bridge of yours does


def _copies(values: Values) -> bool:
    return values.get("model.decoder.copying", True) is True


WORDS: Final = Advice("words in place of subwords, lowercased (tokens: words, lowercase: true)", _has_plain_words)
DROPOUT: Final = Advice("more dropout (model.encoder.dropout: 0.5)", _has_much_dropout)
VECTORS: Final = Advice("pretrained word vectors (vectors: wordllama, or a file)", _has_vectors)
PLAIN: Final = Advice("no label smoothing and no class weights (loss: {kind: cross_entropy})", _is_plain)
UPDATES: Final = Advice("more updates (smaller batches, more learning.steps, more learning.patience)")
PAIRS_OF_WORDS: Final = Advice("an encoder of words and pairs of words (model.encoder.kind: bag)", _is_bag)
FEATURES: Final = Advice("a pretrained backbone (backbone: efficientnet_lite0)")
ATTENTION: Final = Advice("attention (model.bridge.kind: attention)", _attends)
COPYING: Final = Advice("copying words of the input (model.decoder.copying: true)", _copies)

ADVICE: Final[Mapping[str, tuple[Advice, ...]]] = {
    "labels": (WORDS, DROPOUT, VECTORS, PLAIN, UPDATES, PAIRS_OF_WORDS),
    "pairs": (PLAIN, VECTORS, WORDS, DROPOUT, UPDATES),
    "texts": (UPDATES, ATTENTION, COPYING, VECTORS, DROPOUT),
    "language": (UPDATES, DROPOUT),
    "images": (FEATURES, DROPOUT, UPDATES),
    "order": (UPDATES, ATTENTION),
}
"""By what a model does: labels texts, labels pairs of texts, writes texts, models a language, labels images, orders."""


def advice_for(topic: str, recipe: Recipe) -> list[str]:
    """What to try, in order, but for what the recipe does already."""
    return [one.says for one in ADVICE.get(topic, ()) if one.helps(recipe)]
