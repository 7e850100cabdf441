"""Sentences: a table of cases made by hand, and what must hold for every text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sixjars.data.text.tokenizer import TextEncoding, TextTokenizer
from sixjars_runtime.text.sentences import MAY_END, NAME_FOLLOWS, NUMBER_FOLLOWS, sentences_of
from sixjars_runtime.text.spelling import TokenizerSettings

# `|` stands where one sentence ends and the next begins; a space around it is in neither.
WITH_SPACES = [
    # plain prose
    "One. | Two. | Three",
    "Is it? | It is! | Really?! | Yes...",
    "No mark at all",
    "He left.   | She stayed.",
    "Is 7 a lot? | 7 is enough. | 50 people came.",
    "Ölpreise steigen. | Über Nacht fiel Schnee.",
    "C'est fini. | Écoute ! | Qui est là ?",
    "¿Qué pasa? | ¡Nada! | Vamos.",
    "Он ушёл. | Она осталась.",
    # small letters and pauses go on
    "Yahoo! is a firm. | It was.",
    "Who? me? | No.",
    '"What?" he said. | "Go!" | She went.',
    "Oranges, pears etc., and apples etc. | The end.",
    "Tokens are cut , e.g . here etc . , like so . | Next .",
    "Well... maybe not. | Hmm… | I see. | And... | So what?",
    "He came in. (see below.) | Then he left.",
    # abbreviations
    "Mr. Smith and Dr. Who met Mrs. Gray. | Prof. Moriarty was late.",
    "MR. SMITH MET DR. WHO. | THEN THEY LEFT.",
    "St. Paul is in Minn. and has no Mt. Everest.",
    "Use a lamp, e.g. Davy's, i.e. That one. | Good.",
    "It is Jones vs. Smith.",
    "The U.S. Treasury and the U.K. Government agree. | So does the U.N. | The end.",
    "We met at 5 p.m. Tuesday. | She left at 6 a.m. | He did not.",
    "Acme Inc. Chairman Bo Li and Foo Corp. | But Bar Co. Ltd. Directors met.",
    "On Jan. 5 and Feb. Fourth it rained. | In Dec. | It snowed.",
    "See No. 5 and no. 7. | No. | I will not. | He said no. | Go.",
    "Turn to p. 12, pp. 13 and Fig. 4, Vol. IV. | It rose in Vol. | Go on.",
    "She has a Ph.D. | She works with Bob Jr. Miller.",
    "That is z.B. Wien. | Gut.",
    # initials, numbers, items
    "J. R. Smith met John F. Kennedy. | They ate.",
    "Take vitamin C. | Then sleep.",
    "So do I. | You know I. M. Pei. | Neither did I. | Bob agreed.",
    "Pi is 3.14. | Version 2.0.1 costs $3.50. | Buy .5 kg.",
    "It was 1994. | Snow fell.",
    "1. Buy milk. | 2. Drink it.",
    "c. Sleep. | Then wake.",
    "Visit www.example.com. | Write to a.b@c.org. | See http://x.y/z?Q=A.B now.",
    # closing marks
    'She said "Go." | He went.',
    "(He left.) | She stayed (at home). | [Really.] | Yes.",
    "“Go.” | ‘Why?’ | «Non.» | Fine.",
    "He left (at 5 p.m.). | She did not.",
    'They said " go . " | Then we went . | " Stop ! " | We did .',
    "It runs ( where else ? ) a train . | It stops ( where ? ) | There .",
    "``Go.'' | He went.",
    # a text without capital letters
    "the film is bad . | why ? | it is long ! | mr . smith met j . r . jones . | so it ends .",
    "i like it. | 3.5 stars, e.g. this one at 5 p.m. he says.",
    # other scripts
    "राम घर गया। | सीता आई॥ | ठीक",
    "هل أنت هنا؟ | نعم.",
    "नमस्ते. | ठीक है? | हाँ",
]
GLUED = [
    "Sales rose by 2.7bn.|For the full-year they fell.|It was 10%.|But why?|Because!|A "
    "reason.|I'm sure.",
    "The bank.|UFJ Holdings said.|U2 sang.|R&B won.|C-Murder (2004).|The BBC.|They said so.",
    'He left."|"She stayed.',
    'He said "so".|The end.',
    'He left.|"She stayed," he said.',
    "U.S.A. and U.S.S.R are J.Smith's, at 3.14.15 in Ph.D time, Mr.Smith",
    "See example.Com, Node.JS, notes.PDF, the .NET and e.g.Vienna or www.Site.Shop now",
    "A more rational...licensing process.|The end",
    "我来了。|你好！|真的？|「好。」|他说，「来！」，是。",
    "好吗?|好!|我来了",
    "System.|Out",
]


@pytest.mark.parametrize("case", WITH_SPACES)
def test_sentences_with_spaces_between(case: str) -> None:
    wanted = [sentence.strip() for sentence in case.split("|")]
    text = case.replace(" |", "")
    assert sentences_of(text) == wanted
    assert " ".join(sentences_of(text)).split() == text.split()


@pytest.mark.parametrize("case", GLUED)
def test_sentences_without_spaces_between(case: str) -> None:
    wanted = case.split("|")
    assert sentences_of(case.replace("|", "")) == wanted


@pytest.mark.parametrize("text", ["", " ", "\n\t\r\n \u2028\u3000"])
def test_white_space_has_no_sentences(text: str) -> None:
    assert sentences_of(text) == []


def test_a_new_line_always_ends() -> None:
    expected = ["A title", "and small, Mr.", "Smith", "ends", "here"]
    assert sentences_of("A title\nand small, Mr.\r\nSmith\n\n \nends\u2028here") == expected


def test_tags_that_break_a_line_stay_with_it() -> None:
    text = "<br />\n<BR>Bad (very).<br /><br />so it goes. Yes<br/>\nNo.<br /> "
    expected = ["<br /> <BR> Bad (very).<br /><br />", "so it goes.", "Yes<br/>", "No.<br />"]
    assert sentences_of(text) == expected
    assert sentences_of("<br />") == ["<br />"]


def test_small_letters_begin_only_where_there_are_no_others() -> None:
    assert sentences_of("one. two. three") == ["one.", "two.", "three"]
    assert sentences_of("one. two. Three") == ["one. two.", "Three"]


@pytest.mark.parametrize("word", sorted(NAME_FOLLOWS))
def test_abbreviations_before_a_name(word: str) -> None:
    assert len(sentences_of(f"We saw {word}. The Name there. Twice.")) == 2


@pytest.mark.parametrize("word", sorted(MAY_END))
def test_abbreviations_that_may_end(word: str) -> None:
    assert len(sentences_of(f"We saw {word}. Name there. Twice.")) == 2
    assert len(sentences_of(f"We saw {word}. The name there. Twice.")) == 3


@pytest.mark.parametrize("word", sorted(NUMBER_FOLLOWS))
def test_abbreviations_before_a_number(word: str) -> None:
    assert len(sentences_of(f"We saw {word}. 5 there. Twice.")) == 2
    assert len(sentences_of(f"We saw {word}. Name there. Twice.")) == 3


WORDS = ["<br />", "Mr.", "e.g.", "U.S.", " The ", "word", "Word", "...", "bn.For"]
PIECES = st.sampled_from([*"aAiIxX19.?!…。।,;:()[]'\"”-&<> \n\t", *WORDS])


@given(st.one_of(st.lists(PIECES, max_size=40).map("".join), st.text(max_size=60)))
def test_nothing_is_lost(text: str) -> None:
    found = sentences_of(text)
    assert "".join("".join(found).split()) == "".join(text.split())
    for sentence in found:
        assert sentence == sentence.strip() != ""
        assert len(sentence.splitlines()) == 1


@pytest.mark.parametrize(
    ("piece", "count", "sentences"),
    [
        ("This is one of many. ", 10_000, 10_000),
        ("A. ", 60_000, 1),
        ("a.", 100_000, 1),
        (".", 200_000, 1),
        (" ", 200_000, 0),
        ("\n ", 100_000, 0),
        ("\n<br />", 30_000, 1),
        ('."', 100_000, 1),
        ("x", 200_000, 1),
    ],
)
def test_long_texts(piece: str, count: int, sentences: int) -> None:
    assert len(sentences_of(piece * count)) == sentences


def test_what_was_kept_by_another_rule_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    tokenizer = TextTokenizer.trained(["some words"], TokenizerSettings(), "a test")
    kinds = ("none", "sentences", "lines", "turns")
    encodings = [TextEncoding("x", tokenizer, 9, segments=kind, copies=False) for kind in kinds]
    before = [encoding.key() for encoding in encodings]
    assert len(set(before)) == len(kinds)
    monkeypatch.setattr("sixjars.data.text.tokenizer.RULE", 2)
    same = [encoding.key() == key for encoding, key in zip(encodings, before, strict=True)]
    assert same == [True, False, True, True]
