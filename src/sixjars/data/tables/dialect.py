"""How a file of lines is written: its delimiter, its quotation marks, and whether it has a header.

All of it is decided from the first rows, by rules: the same file always gives the same answer.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from statistics import median
from typing import Any, Final, final

from sixjars.data.bad_rows import SHOWN
from sixjars.data.tables.delimited import USUAL, DelimitedFile, csv_fields, is_quoted, records_of
from sixjars.data.tables.rows import Key, RowFault
from sixjars.data.tables.table_file import (
    DELIMITERS,
    CellFile,
    TableFile,
    header_names,
    unused_delimiter,
)
from sixjars.data.text.files import ending_of, lines_of
from sixjars.progress import number_of, tell
from sixjars.recipe.data import TableSettings
from sixjars_runtime.errors import DataError

ROWS: Final = 1000  # rows that are looked at
_BYTES: Final = 1 << 20
_MOST_BROKEN: Final = 0.1
"""The share of rows that quotation marks may break; where it is larger, they are letters."""
Names = Key | tuple[str, ...]
"""A column by its name or number, or by any of several names."""
Way = tuple[str, bool]
"""A delimiter, and whether quotation marks enclose fields."""
Sample = tuple[list[str], bool]
"""The first lines of a file that are not blank, and whether more follow: `ROWS` may not be enough,
for a field may hold line breaks."""
_CURLY = ("\u201c", "\u201d", "\u201e")
_NUMBER: Final = re.compile(r"[-+]?(\d[\d,]*)?[.,]?\d+([eE][-+]?\d+)?%?")
_DATE: Final = re.compile(
    r"(\d{4}[-/.]\d{1,2}[-/.]\d{1,2}|\d{1,2}[-/.]\d{1,2}[-/.]\d{2,4}"
    r"|\d{1,2} \w{3,9}\.? \d{4}|\w{3,9}\.? \d{1,2}, \d{4})"
    r"([T ]\d{1,2}:\d{2}(:\d{2}(\.\d+)?)?( ?[AaPp][Mm])?(Z|[-+]\d{2}:?\d{2})?)?"
)
_FILE: Final = re.compile(r"\S[^\n]{0,250}\.[A-Za-z][A-Za-z0-9]{1,4}")
_NAME: Final = re.compile(r"[^\W\d][\w .:#()/-]{0,39}")
KNOWN: Final = frozenset(
    """
    id idx index no nr number key uid uuid row text texts sentence sentences document doc body
    content message review comment tweet post description abstract article story news title headline
    head subject summary highlights tldr label labels class category categories sentiment topic
    topics tag tags rating stars score polarity emotion intent target source src tgt trg input
    output prompt response reply utterance question answer context history turns dialog dialogue
    premise hypothesis image images file filename file_name path picture photo video clip caption
    captions date time timestamp year author user name language lang split set en de fr es it pt nl
    ru zh ja ko hi ar tr pl cs sv fi english german french spanish italian portuguese dutch russian
    chinese japanese korean hindi arabic turkish polish deutsch instruction instructions command
    commands query completion points order word words transliteration translit romanization
    transcription translation latin devanagari native url link from to
    """.split()
)
"""Usual names of columns."""
_ELSEWHERE: Final = frozenset(
    """
    слово слова текст тексты предложение предложения фраза перевод транслит транслитерация
    метка метки класс категория тема отзыв оценка вопрос ответ источник заголовок примечание
    комментарий речення переклад мітка категорія
    wort wörter satz sätze umschrift übersetzung klasse kategorie frage antwort quelle ziel
    betreff bemerkung mot mots texte phrase phrases traduction étiquette classe catégorie question
    réponse palabra texto frase oración traducción etiqueta clase categoría pregunta respuesta
    parola testo traduzione etichetta categoria domanda risposta palavra tradução rótulo pergunta
    resposta woord zin vertaling słowo zdanie tłumaczenie etykieta kategoria slovo věta překlad
    kelime cümle çeviri etiket
    词 词语 单词 句子 文本 翻译 拼音 标签 类别 问题 答案 単語 文 文章 翻訳 読み ラベル
    質問 回答 단어 문장 번역 라벨 질문 답변
    शब्द वाक्य पाठ अनुवाद लिप्यंतरण كلمة جملة نص ترجمة מילה משפט תרגום λέξη πρόταση μετάφραση
    """.split()
)
"""The same in other languages; as the only name in a cell, for they are words of texts too."""
_BY_NUMBER: Final = frozenset("# № n° nº".split())
"""Signs that are the name of a column."""
_WORDS: Final = frozenset("word words".split())  # names that a list of words may begin with
_PROSE = "no to it es de en hi from tag set time head key post user word"
_ALSO_PROSE: Final = frozenset(_PROSE.split())  # unclear among other words: `guten Tag`
_END: Final = re.compile(r"[.!?…:;।。！？؟۔]['\"”’»)\]]*$")
_FEWEST: Final = 10  # rows below which the style of a first row says nothing for sure
_MANY: Final = 100  # rows in which the words of a sentence would come again
# Looser shares find more headers, and take more first examples for headers.
_ASKED_FROM: Final = 20
"""Texts below a first line that is only unlike them: of fewer, none may happen to be like it."""
_SELDOM: Final = 0.05
_MOSTLY: Final = 0.8


@final
@dataclass(frozen=True)
class Dialect:
    """How a file is written, and its first rows."""

    delimiter: str
    quotes: bool
    header: bool
    rows: list[list[str]]
    """The first rows, without the header."""
    names: list[str]
    """The names in the header, if there is one."""
    unclear: bool = False
    """Whether the first row may be a header all the same."""


def dialect_of(path: Path, named: Collection[str] = (), columns: Sequence[Names] = ()) -> Dialect:
    """How a file is written: by its content, else its ending; `named` as in `of_records`.

    If the first line has the `columns` between some delimiter, it is that one, or one of those.
    """
    usual = USUAL.get(ending_of(path))
    sample = _sample(path)
    order = sorted(DELIMITERS, key=lambda mark: mark != usual)
    ways = [(mark, quotes) for mark in order for quotes in (mark != "\t", mark == "\t")]
    with_columns = [way for way in ways if columns and _has(_first(path, way), columns)]
    ways = with_columns or ways
    scored = {way: _consistency(sample, way) for way in ways}
    best = max(ways, key=lambda way: scored[way])  # the first of equals
    if scored[best] <= 0 and not with_columns:
        best = (usual or "\t", usual == ",")
    records = [fields for fields in _records(path, best) if fields != [""]]
    return of_records(path, records, best[0], quotes=best[1], named=named)


def of_records(
    path: Path,
    records: list[list[str]],
    delimiter: str,
    *,
    quotes: bool,
    named: Collection[str] = (),
) -> Dialect:
    """How a file with these first records is written: whether the first has names.

    It has if one of the names that the user gives, `named`, stands there.
    """
    if not records:
        raise DataError(f"{path} has no rows.")
    said = {*header_names(records[0], named)} & {name for name in named if not name.isdecimal()}
    verdict = "yes" if said else header_verdict(records)
    names = header_names(records[0], said) if verdict == "yes" else []
    rows = records[1:] if names else records
    return Dialect(delimiter, quotes, bool(names), rows, names, verdict == "unclear")


def refitted(path: Path, columns: Sequence[Names], table: TableSettings) -> dict[str, Any]:
    """The settings to read a file that has these columns, but is written in another way.

    Nothing where the given settings fit, or where none do: the reader then says what is wrong.
    """
    ending = ending_of(path)
    usual = table.delimiter or USUAL.get(ending)
    if usual is None or ending not in {*USUAL, ".txt"} or not path.is_file():
        return {}
    first = _first(path, (usual, is_quoted(usual, table.quotes)))
    if not first:
        return {}
    # A line of CSV that is read as one column may be several, of which one is wanted.
    is_first = usual == "," and all(names == 1 for names in columns)
    if _has(first, columns) and not (is_first and unused_delimiter(first) in (";", "|", "\t")):
        if table.quotes is not None or usual != "\t":
            return {}
        sample = _sample(path)
        with_quotes, without = (_consistency(sample, (usual, way)) for way in (True, False))
        return {"quotes": True} if with_quotes > without else {}
    dialect = dialect_of(path, columns=columns)
    mark = dialect.delimiter
    if not _has(dialect.names or dialect.rows[0], columns):
        return {}
    if mark != usual:
        tell(
            f"{path} has {mark!r} between its columns, and is read that way; {usual!r} was expected."
        )
    return {"delimiter": mark, "quotes": dialect.quotes}


def _first(path: Path, way: Way) -> list[str]:
    """The cells of the first line; none where it cannot be read."""
    with suppress(DataError):  # a field that is never closed, for one
        _, first = next(records_of(path, *way), (0, []))
        return [] if isinstance(first, RowFault) else first
    return []


def _has(first: Sequence[str], columns: Sequence[Names]) -> bool:
    """Whether a first row has columns, each by number or by one of its names."""
    keys = [names if isinstance(names, tuple) else (names,) for names in columns]
    there = {*header_names(first, [key for names in keys for key in names])}
    numbers = range(1, len(first) + 1)
    return all(any(key in there or key in numbers for key in names) for names in keys)


def _sample(path: Path) -> Sample:
    lines = list[str]()
    size = 0
    for _, raw in lines_of(path):
        if size > _BYTES:
            return lines, True
        size += len(raw)
        line = raw.decode(errors="replace").rstrip("\r\n")
        if line.strip():
            lines.append(line)
    return lines, False


def _records(path: Path, way: Way) -> list[list[str]]:
    records: list[list[str]] = []
    bad: RowFault | None = None
    for _, fields in records_of(path, *way):
        if isinstance(fields, RowFault):
            bad = bad or fields
        else:
            records.append(fields)
        if len(records) > ROWS:
            break
    if bad is not None and len(records) < 2:
        raise DataError(f"{path}, line {bad.line}: {bad.sentence}")
    return records


def _consistency(sample: Sample, way: Way) -> float:
    """How well columns fit a delimiter: the share of rows with the usual number of fields.

    Fields that begin with a space count against it, as commas in a sentence do, and so do broken
    quotation marks. Without any quotation marks, both ways are equal, and the first wins.
    """
    delimiter, quotes = way
    first = sample[0][:ROWS]
    rows = [line.split(delimiter) for line in first]
    broken = 0
    if quotes:
        rows, broken = _quoted(sample, delimiter)
        letters = delimiter == "\t" and (broken or not _needs_quotes(first))
        if letters or broken > _MOST_BROKEN * len(rows):
            return 0.0
    if not rows:
        return 0.0
    width, count = max(Counter(map(len, rows)).items(), key=lambda item: (item[1], item[0]))
    if width < 2:
        return 0.0
    inner = [field for row in rows for field in row[1:]]
    spaced = sum(field.startswith(" ") for field in inner) / len(inner)
    score = count / (len(rows) + broken) * (1 - 0.6 * spaced)
    if delimiter == "\t":
        return score + 0.05 * quotes  # lines between tabs come here quoted only if they need it
    if quotes:
        return score
    fields = [field for row in rows for field in row]
    enclosed = sum(len(field) > 1 and field[0] == field[-1] == '"' for field in fields)
    return score - 0.2 * enclosed / len(fields)


def _quoted(sample: Sample, delimiter: str) -> tuple[list[list[str]], int]:
    """The first `ROWS` records by the rules of CSV, and how many quotation marks break them.

    A sample may be cut inside a field, which speaks neither for a delimiter nor against it.
    """
    rows: list[list[str]] = []
    broken = 0
    lines, is_cut = sample
    numbered = ((at, f"{line}\n".encode()) for at, line in enumerate(lines, 1))
    try:
        for _, fields in csv_fields(numbered, delimiter, Path()):
            if isinstance(fields, RowFault):
                broken += 1
            else:
                rows.append(fields)
            if len(rows) == ROWS or broken > _MOST_BROKEN * ROWS:
                break
    except DataError:  # a field is never closed, and all lines behind it are lost
        broken += 0 if is_cut else len(lines)
    return rows, broken


def _needs_quotes(lines: Sequence[str]) -> bool:
    """Whether tab-separated lines are quoted: a field needs marks, or every field has them."""
    fields = [field for line in lines for field in line.split("\t")]
    marked = [field for field in fields if field.startswith('"')]
    doubled = any('""' in field[1:-1] for field in marked)
    opened = any(field.count('"') % 2 for field in marked)
    enclosed = all(field.endswith('"') and len(field) > 1 for field in fields)
    return bool(marked) and (doubled or opened or enclosed)


# Headers.


def is_number(text: str) -> bool:
    """Whether a text is a number, as people write them."""
    return _NUMBER.fullmatch(text.strip()) is not None


def is_date(text: str) -> bool:
    """Whether a text is a date, with or without a time."""
    return _DATE.fullmatch(text.strip()) is not None


def is_file(text: str) -> bool:
    """Whether a text may be a file name: it has an ending, and few words."""
    return _FILE.fullmatch(text.strip()) is not None and len(text.split()) <= 3


def header_verdict(records: Sequence[Sequence[str]]) -> str:
    """Whether the first record has names of columns: `yes`, `no` or `unclear` (a short example, maybe).

    >>> header_verdict([["text", "label"], ["it is good", "pos"]])
    'yes'
    >>> header_verdict([["it is bad", "neg"], ["good", "pos"]])
    'no'
    """
    first = [cell.strip() for cell in records[0]]
    below = records[1:]
    named = [cell.rstrip(".:?") for cell in first if cell]
    if not named or not all(map(_is_name, named)):
        return "no"
    if len({*first}) < len(first) and not all(cell.lower() in KNOWN for cell in named):
        return "no"
    known = [_known(cell) for cell in named]
    if all(known):  # the header may come again, where files were put together
        below = [row for row in below if [cell.strip() for cell in row] != first]
    if not below:
        return "yes" if all(known) else "no"
    columns = [[row[at].strip() for row in below if at < len(row)] for at in range(len(first))]
    signs = [_signs(cell, column) for cell, column in zip(first, columns, strict=True)]
    if "value" in signs:
        return "no"
    if named != list(filter(None, first)):  # marks end sentences too: `No.`, `Go.`
        sure = "yes" if any(known) else "unclear"
        return sure if "type" in signs else "no"
    elsewhere = _elsewhere(named, signs)
    longer = "longer" in signs and _fit_longer(named, signs, known, len(below))
    if longer or elsewhere == "yes" or "type" in signs or all(known):
        return "yes"
    verdict = _by_style(_styles(first, columns, signs), len(below))
    return _by_others(elsewhere, first, columns) if verdict == "no" else verdict


def _by_others(verdict: str, first: Sequence[str], columns: Sequence[Sequence[str]]) -> str:
    """The verdict of column names in any language; `unclear` where the cells are only unlike others."""
    return "unclear" if verdict == "no" and _is_unlike(first, columns) else verdict


def _is_unlike(first: Sequence[str], columns: Sequence[Sequence[str]]) -> bool:
    """Whether first cells over many texts may be names: it is only asked about, never decided.

    One is a usual name of a column, or of a script that hardly any text below has; or all are in
    capitals where hardly any text is.

    >>> below = ["dom", "voda", "selo", "noch"] * 5
    >>> [_is_unlike([cell], [below]) for cell in ("LATN", "dva", "source")]
    [True, False, True]
    >>> _is_unlike(["latn", "cyrl"], [below, ["дом", "вода", "село", "ночь"] * 5])
    True
    """
    pairs = [(cell, [*filter(None, column)]) for cell, column in zip(first, columns, strict=True)]
    pairs = [(cell, texts) for cell, texts in pairs if cell]
    if not pairs or min(len(texts) for _, texts in pairs) < _ASKED_FROM:
        return False
    if any(len(cell) > 3 and cell.lower() in KNOWN for cell, _ in pairs):  # 'hi' is a greeting, too
        return True
    foreign, capital = [], []
    for cell, texts in pairs:
        rare = _SELDOM * len(texts)
        scripts = _scripts(cell)
        foreign.append(
            bool(scripts) and sum(bool(scripts & _scripts(text)) for text in texts) <= rare
        )
        capital.append(cell.isupper() and sum(map(str.isupper, texts)) <= rare)
    return any(foreign) or all(capital)


def _scripts(text: str) -> set[str]:
    """The scripts of the letters of a text, by the first word of their Unicode names."""
    return {unicodedata.name(letter, "").partition(" ")[0] for letter in text if letter.isalpha()}


def _fit_longer(named: Sequence[str], signs: Sequence[str], known: list[bool], rows: int) -> bool:
    """Whether cells above longer texts are names: single words, or known ones for the most part."""
    single = set(signs) <= {"longer", "labels"} and not any(" " in name for name in named)
    return (single and rows >= 5) or sum(known) * 2 >= len(known)


def _styles(
    first: Sequence[str], columns: Sequence[Sequence[str]], signs: Sequence[str]
) -> list[frozenset[str]]:
    """The styles of first cells, but for those of labels and of columns without a text."""
    styles = []
    for cell, column, sign in zip(first, columns, signs, strict=True):
        texts = [*filter(None, column)]
        if cell and texts and sign != "labels":
            styles.append(_style(cell, texts))
    return styles


def _by_style(styles: Sequence[frozenset[str]], rows: int) -> str:
    """Judge a header by the styles of the first cells of all texts."""
    if not styles or rows < 5:
        return "no"
    titles = all("title" in style for style in styles)
    if titles and rows >= _FEWEST and any(style & {"short", "bare"} for style in styles):
        return "yes"
    if rows >= _MANY and all({"short", "bare", "new"} <= style for style in styles):
        return "yes"
    unlike = ["short" in style and bool(style & {"bare", "least"}) for style in styles]
    new = rows >= _MANY and all("new" in style for style in styles)
    return "unclear" if titles or all(unlike) or (new and any(unlike)) else "no"


def _style(cell: str, column: Sequence[str]) -> frozenset[str]:
    """How a first cell differs from the texts below.

    `title` (Written So, or so_written), `short` (half as long as they usually are, or less),
    `least` (almost all are longer), `bare` (they end with a mark, it does not), `new` (none of its
    words comes again).
    """
    words = len(cell.split())
    lengths = [len(text.split()) for text in column]
    rare = _SELDOM * len(column)
    if max(lengths) == 1:  # a script without spaces
        short = median(map(len, column)) >= 3 * len(cell)
        least = False
    else:
        short = median(lengths) >= 2 * words
        least = sum(length <= words for length in lengths) <= rare
    below = {*re.split(r"[\W_]+", " ".join(column).casefold())}
    style = {
        "title": _is_title(cell) and sum(map(_is_title, column)) <= rare,
        "short": short,
        "least": least,
        "bare": sum(_END.search(text) is not None for text in column) >= _MOSTLY * len(column),
        "new": not {*cell.casefold().split()} & below,
    }
    return frozenset(name for name, true in style.items() if true)


def _is_title(cell: str) -> bool:
    """Whether all words have a capital, or one word is several: `so_written`, `soWritten`.

    >>> _is_title("Long Instruction"), _is_title("Name of Item")
    (True, True)
    >>> _is_title("Good morning"), _is_title("plain_text")
    (False, True)
    """
    words = cell.split()
    if len(words) == 1:
        return re.fullmatch(r"[^\W_]+(_[^\W_]+)+|[a-z]+[A-Z]\w+", cell) is not None
    inner = [word for word in words[1:-1] if len(word) > 3]
    return len(words) > 1 and all(word[0].isupper() for word in (words[0], *inner, words[-1]))


def _elsewhere(named: Sequence[str], signs: Sequence[str]) -> str:
    """Whether cells that are column names in any language are: `unclear` with words below.

    >>> rows = ["слово", "translit"], ["слово", "word"], ["дом", "word"]
    >>> [_elsewhere(cells, ["", ""]) for cells in rows]
    ['yes', 'unclear', 'no']
    """
    cells = {cell.lower() for cell in named}
    if not cells <= _ELSEWHERE | KNOWN:
        return "no"
    return "yes" if any(signs) or cells & (KNOWN - _WORDS) else "unclear"


def _is_name(cell: str) -> bool:
    """Whether a cell without marks at its end may be a name: short, mostly letters."""
    if _BY_NUMBER.intersection(cell.split()[:1]):
        return len(cell.split()) <= 3
    # Without vowel signs, as Devanagari has them, which are no letters by themselves.
    letters = "".join(sign for sign in cell if not unicodedata.category(sign).startswith("M"))
    return _NAME.fullmatch(letters) is not None and len(cell.split()) <= 4


def _known(cell: str) -> bool:
    words = re.split(r"[\W_]+", cell.lower())
    telling = [word for word in words if " " not in cell or word not in _ALSO_PROSE]
    return cell.lower() in KNOWN or (len(words) <= 3 and any(word in KNOWN for word in telling))


def _signs(cell: str, column: Iterable[str]) -> str:
    """How a first cell differs from the values below.

    `value` (it is one of them), `type` (they are numbers, dates or files, and it is not), `labels`
    (they are few, and it is none of them), `longer` (they are all texts of more words), or nothing.
    """
    filled = [text for text in column if text]
    if not filled:
        return ""
    if cell in filled:
        return "value"
    for test in (is_number, is_date, is_file):
        if sum(map(test, filled)) >= 0.9 * len(filled) and not test(cell):
            return "type"
    if min(len(text.split()) for text in filled) > len(cell.split()):
        return "longer"
    if len(set(filled)) * 3 <= len(filled):
        return "labels"
    words = sorted(len(text.split()) for text in filled)
    return "longer" if _known(cell) and words[len(words) // 2] > len(cell.split()) else ""


# Notes.


def unsaid_header(
    table: TableFile, rows: Sequence[tuple[int, list[str]]] | None = None
) -> list[str]:
    """The cells of a first line that looks like names of columns and need not be a header."""
    cells = [cells for _, cells in (_first_rows(table) if rows is None else rows)]
    unsaid = cells and table.settings.header is None and header_verdict(cells) == "yes"
    return cells[0] if unsaid else []


def notes_on(table: TableFile) -> Iterator[str]:
    """What the first rows of training data suggest: a header, or delimiters that end a text."""
    rows = _first_rows(table)
    named = not all(isinstance(key, int) for key in table.columns.values())
    if not named and (cells := unsaid_header(table, rows)):
        yield (
            f"{table.path}: the first line ({', '.join(map(repr, cells))}) looks like a header, "
            "but is read as an example, because columns are given by number; name them, or write "
            "`data.header: true` (`data.header: false` if it is an example)."
        )
    if rows and (named or table.settings.header) and isinstance(table, DelimitedFile):
        names = len(rows[0][1])
        wide = [(line, cells) for line, cells in rows if any(map(str.strip, cells[names:]))]
        if wide:
            yield _cut_texts(table.path, names, len(rows) - 1, wide)


def _first_rows(table: TableFile) -> list[tuple[int, list[str]]]:
    """The first rows of cells with their lines, a header too; none of other formats."""
    lines = table.lines() if isinstance(table, CellFile) and table.delimiter else ()
    first = islice(lines, ROWS)
    return [(line, cells) for line, cells in first if not isinstance(cells, RowFault)]


def _cut_texts(path: Path, names: int, rows: int, wide: Sequence[tuple[int, list[str]]]) -> str:
    """A sentence where lines have more values than the header has names."""
    curly = any(cell.strip().startswith(_CURLY) for _, cells in wide for cell in cells)
    quotes = "curly quotation marks do not enclose a text"
    why = quotes if curly else "a delimiter inside a text ends it"
    shown = [str(line) for line, _ in wide[:SHOWN]]
    lines = ", ".join(shown + ["..."] * (len(wide) > SHOWN))
    return (
        f"{path}: {len(wide)} of the first {rows} rows have more values than the header, which has "
        f"{number_of(names, 'name')} (line {lines}), so values may be in the wrong columns: {why}. "
        'Enclose such texts in straight quotation marks (") and read them with `data.quotes: '
        "true`, or choose another delimiter."
    )
