"""Tokenizers of every kind, trained on a few texts."""

from typing import Any

from sixjars.data.fields.text import TextSettings
from sixjars.data.text.tokenizer import AnyTokenizer, TextTokenizer
from sixjars_runtime.special_tokens import SPECIAL

KINDS: dict[str, dict[str, Any]] = {
    "words, punctuation": {"tokens": "words", "split": "punctuation"},
    "words, spaces": {"tokens": "words", "split": "spaces"},
    "characters": {"tokens": "characters"},
    "bpe": {"tokens": "bpe"},
    "unigram": {"tokens": "unigram"},
}


TEXTS = [
    "Hello, how are you?",
    'She said: "the (old) house isn\'t for sale"!',
    "मैं घर जा रहा हूँ।",
    "the house, the garden and the cat",
    "Größe ❤ 5.5€ <b>",
]


def trained(texts: list[str], **kind: Any) -> TextTokenizer:
    return TextTokenizer.trained(texts, TextSettings(**kind), "data.source")


def vocabulary(tokenizer: AnyTokenizer) -> dict[str, int]:
    """Every token and its id; a special name wins over a word that is spelled the same."""
    ordinary = {
        token: number for number, token in enumerate(tokenizer._names) if number >= len(SPECIAL)
    }
    return ordinary | {name: number for number, name in enumerate(SPECIAL)}
