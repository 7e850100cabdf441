"""The part of a model card on texts: how a text becomes token ids, and ids become a text."""

import json
from typing import Any

from sixjars.data.field import Field
from sixjars_runtime.special_tokens import SPECIAL, UNK
from sixjars_runtime.text.joiners import JOINER, STAND_IN
from sixjars_runtime.text.spelling import MARK, has_marked_words

MARKED = (
    f"replace every `{MARK}` in a word by `_`, and put `{MARK}` before the word, the first one too"
)
SPLITS = {
    "characters": ["join the words with one space; each code point is a token, the spaces too"],
    "spaces": ["each word is a token"],
    "punctuation": [
        f"replace every `{JOINER}` in a word by `{STAND_IN}`",
        "each punctuation mark or symbol (Unicode categories P and S, and U+FE0E, U+FE0F and "
        "U+20E3) is a token, and what is between them is a token too; a mark begins with "
        f"`{JOINER}` unless it begins the word, and ends with `{JOINER}` if no mark follows it in "
        f"the word: `home (now)` is `home`, `({JOINER}`, `now` and `{JOINER})`",
        "a mark that is not among the `tokens` is the one that is and has fewest "
        f"`{JOINER}` more or less, the first of several",
    ],
    "marked": [
        MARKED,
        "each punctuation mark or symbol (Unicode categories P and S) is a token, with the "
        f"`{MARK}` if one is right before it; what is between them is a token too: `home, now` is "
        f"`{MARK}home`, `,` and `{MARK}now`",
    ],
    "bpe": [
        MARKED,
        "each code point is a token; as long as two neighbours in a word are a pair of `merges`, "
        "those whose pair comes first there become one token, the first such neighbours in the "
        "word first",
    ],
    "unigram": [
        MARKED,
        "a word is split into those of the `tokens` whose `scores` sum to the most; a code point "
        "that is no token counts as the lowest score minus 10, and such ones side by side are one "
        "token",
    ],
}
"""The steps from words to tokens, by the kind of the vocabulary."""
LIBRARIES = {
    "tokenizer.json": "a `tokenizer.json` of Hugging Face",
    "sentencepiece": "a SentencePiece model",
}
FIRST = len(SPECIAL)
NUMBERED = f"its tokens without the special ones, in its order, are {FIRST}, {FIRST + 1}, and so on"


def read_in_words(field: Field, *, limited: bool = True) -> list[str]:
    """The steps from a text to ids, numbered; `limited` where the field limits the length."""
    about = json.loads(field.to_json())
    settings = field.settings.model_dump()
    file = f"`fields/{field.name}.json`"
    steps = []
    if settings["segments"] != "none":
        segments = f"split the text into {settings['segments']}, as `sixjars_runtime` does"
        steps.append(f"{segments}; each goes through what follows")
    if about["kind"] == "file":
        steps.append("Unicode NFC, every run of white space one space, none at the ends")
        source = f"{_given(about)}, which is `content` of {file} in base64"
        steps.append(f"split it with {source}; no special token is added")
        steps.append(f"{NUMBERED}; its unknown token is {UNK}")
    else:
        steps += ["lowercase every code point"] if about["lowercase"] else []
        steps += ["Unicode NFC; split it into words at white space", *SPLITS[_kind(about)]]
        place = f"its place in `tokens` of {file}, from 0"
        steps.append(f"the id of a token is {FIRST} + {place}; of others, {UNK}")
    if limited:
        steps.append(_limited(settings))
    return [f"{number}. {step}" for number, step in enumerate(steps, 1)]


def written_in_words(field: Field) -> list[str]:
    """The steps from ids to a text, numbered."""
    about = json.loads(field.to_json())
    file = f"`fields/{field.name}.json`"
    if about["kind"] == "file":
        source = f"{_given(about)}, which is `content` of {file} in base64"
        return [f"1. decode the ids with {source}; {NUMBERED}"]
    kind = _kind(about)
    names = f"take `tokens[id - {FIRST}]` of {file} for each id, and `{SPECIAL[UNK]}` for {UNK}"
    if kind in ("characters", "spaces"):
        return [f"1. {names}", f"2. join them{' with one space' if kind == 'spaces' else ''}"]
    if kind == "punctuation":
        seams = f"`{JOINER} {JOINER}`, ` {JOINER}` and `{JOINER} `, in this order"
        joined = f"join them with one space, and leave out every {seams}, and those at the ends"
        return [f"1. {names}", f"2. {joined}"]
    unknown = f" (`{MARK}{SPECIAL[UNK]}`)" if kind == "marked" else ""
    joined = f"join them, replace every `{MARK}` by a space, and leave out the first space"
    return [f"1. {names}{unknown}", f"2. {joined}"]


def _kind(about: dict[str, Any]) -> str:
    if has_marked_words(about):
        return "marked"
    return str(about["split"] if about["kind"] == "words" else about["kind"])


def _given(about: dict[str, Any]) -> str:
    return LIBRARIES[about["library"]]


def _limited(settings: dict[str, Any]) -> str:
    most = settings["max_length"]
    if settings["on_long"] not in (None, "cut"):
        return f"a row has at least one id, and at most {most}"
    cut, ends = "the others are cut off", ""
    if settings["segments"] == "turns":
        cut = "the last turns are read, as many as fit"
    if settings["segments"] != "none":
        ends = ", one for the end of each segment counted"
    return f"a row has at least one id, and at most {most}{ends}; {cut}"
