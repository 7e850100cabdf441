"""The names in the first row of a table, and whether it has names, by rules from the rows below."""

import re
import unicodedata
from collections.abc import Iterable, Sequence
from statistics import median
from typing import Final

DELIMITERS: Final = ("\t", ";", "|", ",")
"""Marks between columns, the least usual in texts first."""
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
_SELDOM: Final = 0.05
_MOSTLY: Final = 0.8


def is_number(text: str) -> bool:
    """Whether a text is a number, as people write them."""
    return _NUMBER.fullmatch(text.strip()) is not None


def is_date(text: str) -> bool:
    """Whether a text is a date, with or without a time."""
    return _DATE.fullmatch(text.strip()) is not None


def is_file(text: str) -> bool:
    """Whether a text may be a file name: it has an ending, and few words."""
    return _FILE.fullmatch(text.strip()) is not None and len(text.split()) <= 3


def has_header(records: Sequence[Sequence[str]]) -> bool:
    """Whether the first record has names of columns, not values.

    >>> has_header([["text", "label"], ["it is good", "pos"]])
    True
    >>> has_header([["it is bad", "neg"], ["good", "pos"]])
    False
    """
    return _judged(records) == "yes"


def may_have_header(records: Sequence[Sequence[str]]) -> bool:
    """Whether the first record may have names, or be the first, short example."""
    return _judged(records) == "unclear"


def _judged(records: Sequence[Sequence[str]]) -> str:
    """Whether the first record is a header: `yes`, `no` or `unclear`."""
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
    return elsewhere if verdict == "no" else verdict


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


def header_names(cells: Sequence[str], wanted: Iterable[str | int] = ()) -> list[str]:
    """The names in a header, without blanks around them unless two differ in those.

    >>> header_names([" Subject ", "Body"]), header_names([" a", "a"])
    (['Subject', 'Body'], [' a', 'a'])
    >>> header_names([" a", "b"], wanted=[" a"])
    [' a', 'b']
    """
    names = [cell.strip() for cell in cells]
    exact = any(key in cells and key not in names for key in wanted)
    return list(cells) if exact or len({*names}) < len({*cells}) else names


def other_delimiter(fields: Sequence[str]) -> str:
    r"""A question about the delimiter where a line is one column, but has another mark.

    >>> other_delimiter(["en;de"]), other_delimiter(["en", "de"])
    (" Is the delimiter ';'? Then write `data.delimiter: ';'`.", '')
    """
    mark = unused_delimiter(fields)
    written = '"\\t"' if mark == "\t" else repr(mark)
    return f" Is the delimiter {written}? Then write `data.delimiter: {written}`." if mark else ""


def unused_delimiter(fields: Sequence[str]) -> str:
    """The mark that may stand between the columns of a line read as one, or nothing."""
    return next((mark for mark in DELIMITERS if len(fields) == 1 and mark in fields[0]), "")
