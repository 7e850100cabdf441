"""Files of true links: the Pharaoh format, and that of the shared task of NAACL 2003."""

import re
from pathlib import Path

from sixjars.data.text.files import lines_of
from sixjars.progress import number_of
from sixjars_runtime.errors import DataError

_NUMBERED = re.compile(r"(\d+)\s+(\d+)\s+(\d+)(?:\s+([SP]))?")


def read_links(path: Path, *, lines: int) -> list[str | None]:
    """The links of each of so many lines, as text (`0-0 1?2`); none for a line the file lacks.

    Either a line for each line: pairs of words, both counted from 0 (`0-0 1-2`; `1?2` is possible).
    Or a line for each link: `sentence first second S` (or `P`, possible), all three counted from 1;
    those without a letter are sure. Mihalcea & Pedersen 2003, https://aclanthology.org/W03-0301/.
    """
    texts = [(number, _decoded(path, number, line)) for number, line in lines_of(path)]
    if all(_NUMBERED.fullmatch(text) for _, text in texts if text):
        return _numbered(path, texts, lines)
    if len(texts) != lines:
        raise DataError(
            f"{path} has links for {number_of(len(texts), 'line')}, but there are {lines:,}."
        )
    return [text for _, text in texts]


def _decoded(path: Path, number: int, line: bytes) -> str:
    try:
        return line.decode().strip()
    except UnicodeDecodeError:
        raise DataError(f"{path}, line {number}: not UTF-8; is this a file of links?") from None


def _numbered(path: Path, texts: list[tuple[int, str]], lines: int) -> list[str | None]:
    links: dict[int, list[str]] = {}
    for number, text in texts:
        link = _NUMBERED.fullmatch(text)
        if link is None:
            continue
        sentence, first, second = (int(link[group]) - 1 for group in (1, 2, 3))
        if not 0 <= sentence < lines:
            raise DataError(
                f"{path}, line {number}: sentence {sentence + 1} is not one of the {lines:,} lines."
            )
        if min(first, second) < 0:
            raise DataError(
                f"{path}, line {number}: words are counted from 1 here, but {text!r} has a 0."
            )
        links.setdefault(sentence, []).append(f"{first}{'?' if link[4] == 'P' else '-'}{second}")
    return [" ".join(links[line]) if line in links else None for line in range(lines)]
