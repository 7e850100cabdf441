"""Texts in segments: sentences of a document, lines, or turns of a conversation; and lists.

In a table such a text is one string, with a newline between segments that are known. In a file it
may be a list.
"""

from collections.abc import Callable, Iterable
from typing import Final, TypeVar

from sixjars_runtime.errors import shown, unknown
from sixjars_runtime.text.sentences import sentences_of

T = TypeVar("T")
OTHER: Final = ">"
"""Stands before a turn of the other speaker."""
OWN: Final = "<"
"""Stands before a turn of the speaker who answers next."""
SEPARATOR: Final = ", "
"""Between several labels of one example."""
KINDS: Final = ("none", "sentences", "lines", "turns")
"""What a text may be made of."""

_NAMES = {
    bool: "true or false",
    int: "a number",
    float: "a number",
    str: "a text",
    list: "a list",
    dict: "an object",
}


def segments_of(text: str, kind: str) -> list[str]:
    r"""Split a text into its segments, in order; white space alone has none.

    `lines` are those that are not empty. `turns` are such lines too, each with a mark of who
    speaks: the last one is by the other speaker, and the two take turns. If every line has a mark
    already, the marks stay.

    >>> segments_of("Hello?\nSpeaking.\nThis is Ann.", "turns")
    ['> Hello?', '< Speaking.', '> This is Ann.']
    """
    match kind:
        case "none":
            return [text]
        case "sentences":
            return sentences_of(text)
        case "lines":
            return _lines(text)
        case "turns":
            lines = _lines(text)
            if all(line.startswith((f"{OTHER} ", f"{OWN} ")) for line in lines):
                return lines
            left = range(len(lines) - 1, -1, -1)
            return [marked(line, own=at % 2 == 1) for at, line in zip(left, lines, strict=True)]
    raise ValueError(unknown("kind of segments", kind, KINDS))


def latest(ids: list[T], limit: int, *, end: T) -> list[T]:
    """Return the last turns of a conversation, as many whole ones as fit.

    The very last is cut if it does not fit alone.

    >>> latest([7, 8, 2, 9, 2, 7, 2], limit=5, end=2)
    [9, 2, 7, 2]
    >>> latest([7, 2, 8, 9, 10, 2], limit=2, end=2)
    [8, 9]
    """
    begins = [0, *(place + 1 for place, number in enumerate(ids[:-1]) if number == end)]
    fits = [begin for begin in begins if len(ids) - begin <= limit]
    return ids[fits[0] :] if fits else ids[begins[-1] : begins[-1] + limit]


def shortened(row: list[T], limit: int | None, kind: str, *, end: T) -> list[T]:
    """Return as much of a row as fits: of a conversation its end, of any other text its beginning.

    >>> shortened([7, 8, 9], 2, "none", end=2), shortened([7, 2, 9, 2], 2, "turns", end=2)
    ([7, 8], [9, 2])
    """
    if limit is None:
        return row
    return latest(row, limit, end=end) if kind == "turns" else row[:limit]


def words_of_segments(
    text: str, kind: str, split: Callable[[str], list[str]], limit: int | None
) -> list[str]:
    """Return what stands at each position of a text; `split` makes words of a segment.

    >>> words_of_segments("I see. Fine.", "sentences", str.split, limit=4)
    ['I', 'see.', 'Fine.']
    """
    row = [word for segment in segments_of(text, kind) for word in (*split(segment), None)]
    return [word for word in shortened(row, limit, kind, end=None) if word is not None]


def joined(segments: Iterable[str]) -> str:
    r"""Join segments by newlines; line breaks inside a segment become spaces.

    >>> joined(["One\nand two.", "Three."])
    'One and two.\nThree.'
    """
    return "\n".join(" ".join(segment.splitlines()) for segment in segments)


def marked(turn: str, *, own: bool) -> str:
    """Return a turn with the mark of who speaks.

    >>> marked("Hello?", own=False)
    '> Hello?'
    """
    return f"{OWN if own else OTHER} {turn}"


def text_of_segments(value: object) -> str:
    r"""Join a list of texts, a line for each; raises ValueError with the end of a sentence.

    >>> text_of_segments(["One.", "Two."])
    'One.\nTwo.'
    """
    return joined(texts_of(value))


def text_of_labels(value: object) -> str:
    """Join a list of labels to one text; raises ValueError with the end of a sentence.

    >>> text_of_labels(["grain", "wheat"])
    'grain, wheat'
    """
    labels = [" ".join(text.split()) for text in texts_of(value)]
    for label in labels:
        if not label:
            raise ValueError("holds an empty label.")
        if SEPARATOR.strip() in label:
            raise ValueError(
                f"holds the label {shown(label)}, but a comma stands between labels; write it "
                "without."
            )
    return SEPARATOR.join(labels)


def has_half_character(text: str) -> bool:
    r"""Whether a text holds half a character, which no file in UTF-8 can hold.

    >>> has_half_character("jar"), has_half_character("jar \ud83e")
    (False, True)
    """
    return any("\ud800" <= letter <= "\udfff" for letter in text)


def texts_of(value: object) -> list[str]:
    """Return the texts of a list, numbers and truth values as they are written.

    Raises ValueError with the end of a sentence.

    >>> texts_of(["a", 1, True])
    ['a', '1', 'true']
    """
    if not isinstance(value, list):
        raise ValueError(f"holds {kind_of(value)}, not a list of texts.")
    if not value:
        raise ValueError("holds an empty list.")
    return [_text(item) for item in value]


def _text(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str | int | float):
        return str(value)
    raise ValueError(f"holds a list with {kind_of(value)} in it; it may hold texts alone.")


def kind_of(value: object) -> str:
    """Return what a value is, in a sentence.

    >>> kind_of(None), kind_of([])
    ('null', 'a list')
    """
    return "null" if value is None else _NAMES.get(type(value), type(value).__name__)


def _lines(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if line.strip()]
