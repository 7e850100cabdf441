"""The section of a model card on a graph with a search inside: its inputs and outputs."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from sixjars.data.dataset import Fields
from sixjars.decoding import in_words
from sixjars.decoding.scores import order_in_words
from sixjars.recipe.sections import SearchSettings
from sixjars.serving.export.texts import read_in_words, written_in_words
from sixjars_runtime.exported.settings import WHOLE
from sixjars_runtime.special_tokens import SPECIAL

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
