"""Changes to try where a baseline is as good as a model, or better.

Changes are in the order of measurements on real data: the one that brought most comes first. Each
is said with the keys that a recipe needs for it, so that they can be written behind `sixjars train
RECIPE`. The page has the same order. What the log of a run speaks against is left out; where it
asks for more updates, they come first.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, final

from sixjars.data.text.wordllama import WIDTH
from sixjars.model.bridges import BRIDGES
from sixjars.recipe.files import flat
from sixjars.recipe.sections import Recipe
from sixjars.runs.training.trend import Trend

Values = Mapping[str, Any]
"""A recipe, its keys with dots between them."""
PAGE: Final = "docs/bad_model.md"
"""The page for models that are no better than a baseline."""
MUCH_DROPOUT: Final = 0.5
LEAST_SIZE: Final = 16
"""Below which a layer is not made smaller."""
LEAST_EVIDENCE: Final = 4
"""Below which the evidence of a bag of words is not: it is the rank of a linear classifier."""
EVIDENCE: Final = "model.encoder.ngrams.size"
WORD_VECTORS: Final = "model.encoder.embedding.size"
STATE: Final = "model.decoder.size"
SUBWORDS: Final = ("bpe", "unigram")
SCRATCH: Final = "small"
"""The backbone that learns from the images of the recipe alone."""


@final
@dataclass(frozen=True)
class Advice:
    """One thing to try."""

    says: str
    changes: Callable[[Values], Iterable[str]]
    """The `KEY=VALUE` that a recipe lacks; none where it does this already, or cannot."""

    def for_recipe(self, recipe: Recipe) -> str:
        """The sentence with its keys; empty where the recipe needs no change."""
        changes = " ".join(self.changes(flat(recipe.model_dump(mode="json"))))
        return f"{self.says} ({changes})" if changes else ""


def _texts(values: Values) -> Iterator[str]:
    """The sections of texts, as `data.source`."""
    for key in values:
        if key.startswith("data.") and key.endswith(".tokens"):
            yield key.removesuffix(".tokens")


def _words(values: Values) -> Iterator[str]:
    for text in _texts(values):
        if values[f"{text}.tokens"] in SUBWORDS:
            yield f"{text}.tokens=words"


def _lowercase(values: Values) -> Iterator[str]:
    for text in _texts(values):
        if not values[f"{text}.lowercase"]:
            yield f"{text}.lowercase=true"


def _dropout(values: Values) -> Iterator[str]:
    """Dropout of the encoder, or else of the decoder, as of a bag of words; not of word vectors."""
    keys = []
    for key in values:
        if key.endswith(".dropout") and "embedding" not in key and "ngrams" not in key:
            keys.append(key)
    of_encoder = [key for key in keys if key.startswith("model.encoder.")]
    keys = of_encoder or [key for key in keys if key.startswith("model.")]
    if keys and max(values[key] for key in keys) < MUCH_DROPOUT:
        yield f"{keys[-1]}={MUCH_DROPOUT}"  # the last is of all that the encoder has read


def _vectors(values: Values) -> Iterator[str]:
    inputs = [text for text in _texts(values) if text != "data.target"]
    are_words = all(values[f"{text}.tokens"] == "words" for text in inputs)
    if inputs and are_words and all(values[f"{text}.vectors"] is None for text in inputs):
        yield from (f"{text}.vectors=wordllama" for text in inputs)
        for key, size in values.items():
            is_width = key.startswith("model.encoder.") and key.endswith(".embedding.size")
            if is_width and size != WIDTH:
                yield f"{key}={WIDTH}"
        if _copies_bag(values) and values[WORD_VECTORS] != WIDTH:
            yield f"{STATE}={WIDTH + values[EVIDENCE]}"


def _copies_bag(values: Values) -> bool:
    """Whether the decoder's state is all that a bag of words gives: their sizes go together."""
    return (
        values.get("model.bridge.start") == "copy"
        and values.get("model.bridge.join_summary") is True
        and {EVIDENCE, WORD_VECTORS, STATE} <= values.keys()
    )


def _plain_loss(values: Values) -> Iterator[str]:
    if values.get("loss.smoothing"):
        yield "loss.smoothing=0"
    # One value for all labels, or one for each.
    keys = [key for key in values if key.startswith("loss.class_weights")]
    if any(values[key] is not None for key in keys):
        yield "loss.class_weights=null"


def _smaller(values: Values) -> Iterator[str]:
    """Half the size of each layer, with the sizes that must go with it."""
    if _copies_bag(values):
        if values[EVIDENCE] >= 2 * LEAST_EVIDENCE:
            evidence = values[EVIDENCE] // 2
            yield from (f"{EVIDENCE}={evidence}", f"{STATE}={values[WORD_VECTORS] + evidence}")
        return
    layers = ("model.encoder", "model.encoder.sentence", "model.encoder.deep", "model.decoder")
    sizes = {
        key: size for layer in layers if isinstance(size := values.get(key := f"{layer}.size"), int)
    }
    half = {key: size // 2 for key, size in sizes.items() if size >= 2 * LEAST_SIZE}
    together = len(half) == len(sizes) > 1 and EVIDENCE not in values
    if values.get("model.bridge.start") == "copy" and (
        not together or any(size % 2 for size in sizes.values())
    ):
        return  # one size depends on the others
    for key, size in half.items():
        yield f"{key}={size}"
        if key == STATE and values.get("model.decoder.tied"):
            yield f"model.decoder.embedding.size={size}"


def _pairs_of_words(values: Values) -> Iterator[str]:
    # The encoder reads one text, and not yet its pairs of words.
    if "data.source.tokens" in values and "model.encoder.ngrams.size" not in values:
        is_wide = values.get("data.source.vectors") is not None and WORD_VECTORS in values
        vectors = f", embedding: {{size: {values[WORD_VECTORS]}}}" if is_wide else ""
        yield f"'model.encoder={{kind: bag{vectors}}}'"
        yield "'model.bridge={kind: pooling, join_summary: true}'"


def _words_of_both(values: Values) -> Iterator[str]:
    if values.get("model.encoder.compare") == "summaries":
        yield "model.encoder.compare=words"


def _backbone(values: Values) -> Iterator[str]:
    for key, value in values.items():
        if key.endswith(".backbone.name") and value == SCRATCH:
            yield f"{key.removesuffix('.name')}=efficientnet_lite0"


def _attends(values: Values) -> bool | None:
    """Whether the bridge is one with attention; None of one that is not ours."""
    bridge = BRIDGES.get(str(values.get("model.bridge.kind")))
    return None if bridge is None else bridge.has_attention


def _attention(values: Values) -> Iterator[str]:
    if _attends(values) is False:
        yield "'model.bridge={kind: attention}'"


def _copying(values: Values) -> Iterator[str]:
    in_words = values.get("data.source.tokens") == values.get("data.target.tokens") == "words"
    can_copy = _attends(values) and in_words and not values.get("loss.smoothing")
    if can_copy and values.get("model.decoder.copying") is False:
        yield "model.decoder.copying=true"


WORDS: Final = Advice("words in place of subwords", _words)
LOWERCASE: Final = Advice("lowercase", _lowercase)
DROPOUT: Final = Advice("more dropout", _dropout)
VECTORS: Final = Advice(
    "pretrained word vectors, if the texts are English, or a file of them", _vectors
)
PLAIN_LOSS: Final = Advice("no label smoothing and no class weights", _plain_loss)
UPDATES: Final = Advice(
    "more updates", lambda _: ["smaller batches, more learning.steps, more learning.patience"]
)
SMALLER: Final = Advice("a smaller model", _smaller)
MORE_DATA: Final = Advice(
    "more data", lambda _: ["more rows to train on, or --from a run on similar ones"]
)
PAIRS_OF_WORDS: Final = Advice("an encoder of words and pairs of words", _pairs_of_words)
WORDS_OF_BOTH: Final = Advice("comparing the words of both texts", _words_of_both)
BACKBONE: Final = Advice("a pretrained backbone", _backbone)
ATTENTION: Final = Advice("attention", _attention)
COPYING: Final = Advice("copying words of the input", _copying)

ADVICE: Final[Mapping[str, tuple[Advice, ...]]] = {
    "labels": (WORDS, LOWERCASE, DROPOUT, VECTORS, PLAIN_LOSS, UPDATES, PAIRS_OF_WORDS, BACKBONE),
    "names": (LOWERCASE, DROPOUT, PLAIN_LOSS, UPDATES),
    "pairs": (PLAIN_LOSS, WORDS_OF_BOTH, VECTORS, WORDS, LOWERCASE, DROPOUT, UPDATES),
    "texts": (BACKBONE, UPDATES, ATTENTION, COPYING, VECTORS, DROPOUT),
    "language": (UPDATES, DROPOUT),
    "images": (BACKBONE, DROPOUT, UPDATES),
    "order": (UPDATES, ATTENTION),
}
"""By what a model does: it labels texts, single words, pairs of texts or images; writes texts;
models a language; puts into an order."""


def advice_for(topic: str, recipe: Recipe, trend: Trend | None = None) -> list[str]:
    """Changes to try, in order, without those that the recipe has or the log speaks against."""
    table = ADVICE.get(topic, ())
    chosen = table if trend is None else _by_log(table, trend)
    return [sentence for advice in chosen if (sentence := advice.for_recipe(recipe))]


def _by_log(table: Sequence[Advice], trend: Trend) -> list[Advice]:
    """Changes in the order of the table; more updates come first where the log asks for them.

    A model that overfits may also be smaller, which helps less than all that is in the table.
    """
    against = [UPDATES] if trend.overfits or trend.stopped_early else []
    against += [] if trend.has_gap else [DROPOUT]
    left = [advice for advice in table if advice not in against]
    if trend.overfits:
        return [*left, SMALLER, MORE_DATA]
    if trend.improves:
        return sorted(left, key=lambda advice: advice is not UPDATES)
    return left
