"""The section of a model card on a graph with a search inside: its inputs, outputs and texts."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from sixjars.data.dataset import Fields
from sixjars.data.field import Field
from sixjars.decoding import in_words
from sixjars.decoding.scores import order_in_words
from sixjars.recipe.sections import SearchSettings
from sixjars_runtime.exported.settings import WHOLE
from sixjars_runtime.special_tokens import SPECIAL, UNK
from sixjars_runtime.text.joiners import JOINER, STAND_IN
from sixjars_runtime.text.spelling import MARK, has_marked_words

VALUES = {
    "int64": "token ids, 0 behind the end of a row",
    "uint8": "pixels of each image or frame, 0 to 255: all of red, then green, then blue, "
    "each from the top row by row",
}
"""The meaning of the values of an input, by their type."""
INPUTS = {
    "values": "the numbers of each position, 0 behind the end of a row",
    "mask": "true where a position is real; in every row those come first",
    "copy_ids": "what copying a position outputs: the id of its word, or the size of the output's "
    "vocabulary plus the first position of that word",
    "packs.0": "a row for each segment of all rows: row · positions + position of its tokens, "
    "-1 behind its end",
    "segment_index": "which of those is the p-th of each row, -1 where there is none",
    "position_index": "where each position stands among them, flattened; 0 where padded",
    "segment_of": "which segment of its row each position is in; 0 where padded",
}
"""The meaning of inputs, by the end of their names."""
OUTPUTS = {
    "tokens": "token ids of each hypothesis, the best first, without `<stop>`; 0 behind its end",
    "length": "how many tokens it has",
    "log_probability": "its natural logarithm, `<stop>` included",
    "score": "what hypotheses are ordered by; -inf is an empty place",
    "finished": "whether `<stop>` was reached before the limit",
    "weights": "attention at each token, and at `<stop>` behind them, "
    "over the positions of the source",
    "mask": "true where such a position is real",
}

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
JOINED = {
    "characters": "join them",
    "spaces": "join them with one space",
    "punctuation": f"join them with one space, and leave out every `{JOINER} {JOINER}`, ` {JOINER}` "
    f"and `{JOINER} `, in this order, and those at the ends",
}
"""What makes a text of tokens, by the kind of the vocabulary; of all others a mark is a space."""
LIBRARIES = {
    "tokenizer.json": "a `tokenizer.json` of Hugging Face",
    "sentencepiece": "a SentencePiece model",
}
FIRST = len(SPECIAL)
NUMBERED = f"its tokens without the special ones, in its order, are {FIRST}, {FIRST + 1}, and so on"


def whole_card(folder: Path, search: SearchSettings, fields: Fields) -> str:
    """A section of the model card."""
    import onnx

    graph = onnx.load(folder / WHOLE).graph
    values = [value for value in graph.input if value.name.endswith(".values")]
    lengths = {_sizes(value)[1]: f"positions of {value.name[:-7]}" for value in values}
    limit = "each position at most once"
    if fields.output.facts().get("vocabulary"):
        limit = f"at most {search.max_length} tokens, `<stop>` included"
    ranked = f" {order_in_words(search)}" if search.kind == "beam" else ""
    lines = [
        "",
        f"## {WHOLE}",
        "",
        f"Encoder, decoder and {in_words(search)} in one graph, for any number of rows of any "
        f"length. An output has {limit}.{ranked}",
        "",
        *_table("input", graph.input, lengths),
        "",
        *_table("output", graph.output, lengths),
        "",
        *_ids(fields),
        *_texts(fields),
    ]
    return "\n".join(lines) + "\n"


def _sizes(value: Any) -> list[str]:
    return [dim.dim_param or str(dim.dim_value) for dim in value.type.tensor_type.shape.dim]


def _table(what: str, values: Iterable[Any], lengths: Mapping[str, str]) -> list[str]:
    """A table of values; `lengths` are better names of dimensions than those in the graph."""
    from onnx import TensorProto

    rows = []
    for value in values:
        kind = TensorProto.DataType.Name(value.type.tensor_type.elem_type).lower()
        shape = ", ".join(lengths.get(size, size) for size in _sizes(value))
        part = value.name.partition(".")[2].removeprefix("segments.")
        meaning = INPUTS[part] if part else OUTPUTS[value.name]
        meaning = VALUES.get(kind, meaning) if part == "values" else meaning
        rows.append(f"| `{value.name}` | {kind} | {shape} | {meaning} |")
    return [f"| {what} | type | shape | what it is |", "| --- | --- | --- | --- |", *rows]


def _ids(fields: Fields) -> list[str]:
    first = len(SPECIAL)
    size = fields.output.facts().get("vocabulary")
    lines = [f"- ids: {', '.join(f'{number} is `{name}`' for number, name in enumerate(SPECIAL))}"]
    for name, field in fields.inputs.items():
        if field.is_media:
            keys = "`pixels` (its side) and `fit` (how it is cut)"
            lines.append(f"- `{name}`: a square; {keys} are in `model.json`")
    place = "first position of the input"
    if not size:
        lines.append(f"- of the output, {first} is the {place}, {first + 1} the second, and so on")
    if fields.link is not None:
        lines.append(f"- of the output, {size} is the word at the {place}, copied, and so on")
    return lines


def _texts(fields: Fields) -> list[str]:
    lines = []
    for name, field in (fields.inputs or {"prefix": fields.output}).items():
        if field.facts().get("vocabulary") or not fields.inputs:
            steps = read_in_words(field, limited=bool(fields.inputs))
            lines += ["", f"### From a text to `{name}.values`", "", *steps]
    if fields.output.facts().get("vocabulary"):
        lines += ["", "### From `tokens` to a text", "", *written_in_words(fields.output)]
    return lines


def read_in_words(field: Field, *, limited: bool = True) -> list[str]:
    """The steps from a text to ids, numbered; `limited` where the field limits the length."""
    about, settings = json.loads(field.to_json()), field.settings.model_dump()
    file = f"`fields/{field.name}.json`"
    steps = []
    if settings["segments"] != "none":
        segments = f"split the text into {settings['segments']}, as `sixjars_runtime` does"
        steps.append(f"{segments}; each goes through what follows")
    if about["kind"] == "file":
        steps.append("Unicode NFC, every run of white space one space, none at the ends")
        source = f"{LIBRARIES[about['library']]}, which is `content` of {file} in base64"
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


def _limited(settings: Mapping[str, Any]) -> str:
    most, segments = settings["max_length"], settings["segments"]
    if settings["on_long"] not in (None, "cut"):
        return f"a row has at least one id, and at most {most}"
    ends = "" if segments == "none" else ", one for the end of each segment counted"
    latest = "the last turns are read, as many as fit"
    cut = latest if segments == "turns" else "the others are cut off"
    return f"a row has at least one id, and at most {most}{ends}; {cut}"


def written_in_words(field: Field) -> list[str]:
    """The steps from ids to a text, numbered."""
    about, file = json.loads(field.to_json()), f"`fields/{field.name}.json`"
    if about["kind"] == "file":
        source = f"{LIBRARIES[about['library']]}, which is `content` of {file} in base64"
        return [f"1. decode the ids with {source}; {NUMBERED}"]
    kind = _kind(about)
    unknown = f" (`{MARK}{SPECIAL[UNK]}`)" if kind == "marked" else ""
    joined = JOINED.get(
        kind, f"join them, replace every `{MARK}` by a space, and leave out the first space"
    )
    names = f"take `tokens[id - {FIRST}]` of {file} for each id, and `{SPECIAL[UNK]}` for {UNK}"
    return [f"1. {names}{unknown}", f"2. {joined}"]


def _kind(about: Mapping[str, Any]) -> str:
    if has_marked_words(about):
        return "marked"
    return str(about["split"] if about["kind"] == "words" else about["kind"])
