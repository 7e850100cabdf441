"""Prose is cut into sentences by a rule, without anything learned.

A sentence ends at a new line (or `<br />`), at a full stop that its script uses for nothing else
(`। 。 ！ ？`), and at `. ? ! …` with white space after it, unless
- the next word begins with a small letter (in a text without any capital letters, small letters
  may begin a sentence),
- a comma, a semicolon, a colon or another mark comes next,
- the full stop belongs to an abbreviation, an initial, or the number of an item (`1. Milk`).

Closing quotation marks and brackets go with the sentence that they close.

Where the white space is missing (`grew by 2bn.For the year`), the mark still ends a sentence if a
word with a capital letter follows, with the same exceptions. So `U.S.A`, `3.14` and `J.Smith` stay
whole, and so do `example.Com` and `notes.PDF`, whose endings are known; but `System.Out` is cut,
for glued sentences are more frequent in prose.
"""

import re
from collections.abc import Iterator
from typing import Final

RULE: Final = 1
"""The number of the rule. Count it up with every change that cuts any text otherwise: what was kept
of texts that were cut by another rule is then not read again."""
NAME_FOLLOWS: Final = frozenset(
    "Mr Mrs Ms Dr Drs Prof Rev Fr Br Gen Col Maj Capt Cpt Cmdr Lt Sgt Cpl Adm Sen Sens Rep Reps "
    "Gov Govs Pres Hon Messrs Mme Mlle Mgr Msgr St Sta Ste Mt Ft Sra Srta Dra Supt Insp Det Atty "
    "Amb Sec vs v e.g i.e eg ie cf viz ca approx bzw z.B d.h resp incl excl".split()
)
"""Abbreviations that never end a sentence."""
NUMBER_FOLLOWS: Final = frozenset(
    "No Nos no nos Nr nr p pp Fig Figs fig Vol vol Ch ch Eq eq Op op Art art Chap".split()
)
"""Words that are abbreviations if a number follows."""
MAY_END: Final = frozenset(
    "Inc Corp Co Cos Ltd Bros Jr Sr Esq etc al Jan Feb Mar Apr Jun Jul Aug Sep Sept Oct Nov Dec "
    "Mon Tue Tues Wed Thu Thur Thurs Fri Ave Blvd Rd Dept Univ Assn Ala Ariz Ark Calif Colo Conn "
    "Del Fla Ga Ill Ind Kan Ky La Mass Md Mich Minn Mo Miss Mont Neb Nev Okla Ore Pa Penn Tenn Tex "
    "Va Vt Wash Wis Wyo est dept mln bln usw".split()
)
"""Abbreviations that end a sentence only before one of `STARTERS`; so do initials and `U.S`, `a.m`,
`Ph.D`."""
STARTERS: Final = frozenset(
    "the a an this that these those he she it they we you i his her its their our my your in on "
    "at but and or so if when while as for with by from after before since although though "
    "however then there here what who how why where which also not no yes one some many most all "
    "another both each every other meanwhile moreover nevertheless now still yet according during "
    "under over despite because until once even only such".split()
)
"""Words that, with a capital letter, tell a new sentence rather than a name."""
_KNOWN = NAME_FOLLOWS | NUMBER_FOLLOWS | MAY_END
_ENDINGS = frozenset(
    "com org net edu gov io js pdf doc txt csv xml html zip exe jpg png gif mp3".split()
)
"""Of web names and files, that no sentence begins with."""
_FULL = "।॥。！？｡"
_STRONG = "?!‽؟۔"
_MARKS = rf"[.…{_STRONG}{_FULL}]"
_SPACE = r"[^\S\n]"
_CLOSING = r"[)\]}”»›」』）］】〉》]"

# The quantifiers are possessive (`++`): a pattern that may give back what it took needs time that
# grows with the square of the length in a line of marks or white space alone.
_BREAKS = r"\n\r\v\f\x1c-\x1e\x85\u2028\u2029"
_MAYBE_BREAK = re.compile(rf"[{_BREAKS}<]")  # quick to look for
_BREAK = re.compile(rf"[{_BREAKS}]+|(?:<br\s{{0,9}}/?>\s*+)+", re.IGNORECASE)
_MARK = re.compile(rf"{_MARKS}++(?:{_SPACE}++{_MARKS}++)*+")
_AFTER_QUOTED = re.compile(
    rf"""(?:{_CLOSING}|['’"])*+(?:{_SPACE}++(?:{_CLOSING}|''|"(?=[\s,;]|$)))*+"""
)
"""What may close a sentence inside quotation marks; in a text already cut into words, a space may
come before it."""
_AFTER = re.compile(rf"""(?:{_CLOSING}|['’]|"(?!\w))*+(?:{_SPACE}++(?:{_CLOSING}|''))*+""")
_AHEAD = re.compile(r"(?P<gap>\s*+)(?P<signs>(?:[^\w\s]{1,8}+\s?+){0,3}+)(?P<word>\w{0,16}+)")
_PAUSE = re.compile(rf"\s*+(?:[,;:](?=\s|$)|[，、；：]|{_MARKS})")
_ITEM = re.compile(r"\s*+[(\[]?(?:\d{1,3}|[^\W\d_])\s?")
_DOTTED = re.compile(r"(?:[^\W\d_]{1,2}\.)+[^\W\d_]{1,2}")
_ROMAN = re.compile("[IVXLC]{2,}|[VX]")  # `I` is more often a word
_LONGEST_ABBREVIATION = 24


def sentences_of(text: str) -> list[str]:
    """Return the sentences of a text, in order, without white space around them.

    Every other character is in one of them.

    >>> sentences_of("Dr. Who paid $3.50 at 5 p.m. in the U.S. He left. 'Why?' she asked.")
    ['Dr. Who paid $3.50 at 5 p.m. in the U.S.', 'He left.', "'Why?' she asked."]
    >>> sentences_of("Sales rose by 2bn.For the year they fell")
    ['Sales rose by 2bn.', 'For the year they fell']
    """
    cased = any(map(str.isupper, text))
    sentences = []
    for line, tail in _lines(text):
        pieces = [piece.strip() for piece in _pieces(line, cased=cased)]
        pieces = [piece for piece in pieces if piece]
        sentences += [*pieces[:-1], *(piece + tail for piece in pieces[-1:])]
    return sentences


def _lines(text: str) -> Iterator[tuple[str, str]]:
    """Return the lines of a text with the tags that end each; those before any word begin one."""
    begin, lead = 0, ""
    for maybe in _MAYBE_BREAK.finditer(text):
        match = _BREAK.match(text, maybe.start()) if maybe.start() >= begin else None
        if match is None:
            continue
        line, tags = text[begin : match.start()], " ".join(match[0].split())
        begin = match.end()
        if line.strip():
            yield lead + line, tags
            lead = ""
        elif tags:
            lead += f"{tags} "
    yield lead + text[begin:], ""


def _pieces(line: str, *, cased: bool) -> Iterator[str]:
    begin = quotes = counted = 0
    for mark in _MARK.finditer(line):
        quotes += line.count('"', counted, mark.end())
        counted = mark.end()
        closed = (_AFTER_QUOTED if quotes % 2 else _AFTER).match(line, mark.end())
        assert closed is not None
        if _ends(line, begin, mark, closed.end(), cased=cased):
            yield line[begin : closed.end()]
            begin = closed.end()
    yield line[begin:]


def _ends(line: str, begin: int, mark: re.Match[str], end: int, *, cased: bool) -> bool:
    """Whether a mark ends the sentence from `begin`; with what closes it, it would end at `end`."""
    capital = line[end : end + 1] == " " and line[end + 1 : end + 2].isupper()
    if mark[0] == "." and cased and capital:
        # Most full stops: a word of small letters before, a capital letter after. The rules below
        # would say the same.
        word = line[max(line.rfind(" ", begin, mark.start()) + 1, begin) : mark.start()]
        if len(word) > 1 and word.isalpha() and word.islower() and word not in _KNOWN:
            return True
    if _PAUSE.match(line, end):
        return False
    if any(sign in _FULL for sign in mark[0]):
        return True
    ahead = _AHEAD.match(line, end)
    assert ahead is not None
    if cased and ahead["word"][:1].islower():
        return False
    after = line[ahead.end() : ahead.end() + 1]
    if not ahead["gap"] and not _glued(line, mark, ahead["word"], after):
        return False
    return mark[0] != "." or not _abbreviated(line, begin, mark.start(), ahead, cased=cased)


def _glued(line: str, mark: re.Match[str], word: str, after: str) -> bool:
    before = line[max(mark.start() - 40, 0) : mark.start()]
    if not word or not before or before[-1].isspace():
        return False
    if word[0].isalpha() and word[0].lower() == word[0].upper():  # a script without capital letters
        return any(sign in _STRONG for sign in mark[0])
    token = before.split()[-1]
    address = "@" in token or "://" in token or token.startswith("www")
    if address or word.lower() in _ENDINGS or not word[0].isupper():
        return False
    alone = word in ("I", "A") and after != "."
    short = after in ("&", "-") and not before[-1].isupper()
    return alone or short or word[1:2].islower() or (len(word) > 1 and not before[-1].isupper())


def _abbreviated(line: str, begin: int, at: int, ahead: re.Match[str], *, cased: bool) -> bool:
    """Whether the full stop at `at` belongs to the word before it."""
    if at - begin < 8 and _ITEM.fullmatch(line, begin, at):
        return True
    words = re.split(r"[\s(\[\"'“‘/-]", line[max(begin, at - _LONGEST_ABBREVIATION) : at].rstrip())
    last, following = words[-1], ahead["word"]
    followed_by_initial = len(following) == 1 and line[ahead.end() : ahead.end() + 1] == "."
    if last in ("I", "i"):
        return followed_by_initial
    spellings = {last} if cased and not last.isupper() else {last, last.lower(), last.capitalize()}
    if spellings & NAME_FOLLOWS:
        return True
    is_number = following[:1].isdigit() or bool(_ROMAN.fullmatch(following))
    if spellings & NUMBER_FOLLOWS and is_number:
        return True
    initial = len(last) == 1 and (last.isupper() or (last.islower() and not cased))
    if initial or spellings & MAY_END or _DOTTED.fullmatch(last):
        return followed_by_initial or not cased or following.lower() not in STARTERS
    return False
