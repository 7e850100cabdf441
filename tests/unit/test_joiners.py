"""Words beside punctuation: one entry each, and joining the tokens gives the text back."""

import re
from collections import Counter
from unicodedata import category

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sixjars.data.text.tokenizer import TextTokenizer
from sixjars_runtime.special_tokens import SPECIAL, UNK
from sixjars_runtime.text.joiners import folded, stand_ins, text_of, without_joiners
from sixjars_runtime.text.spelling import MARKED_WORDS, TokenizerSettings

from .tokenizers import trained, vocabulary

WORDS = ["invoice", "can", "t", "3", "14", "U", "S", "नमस्ते", "日本語", "e\u0301x"]
EMOJI = "\ufe0e\ufe0f\u20e3"
SIGNS = list(f"<>()\"'.,!?-–/_$€+😀।{EMOJI}")
SHAPES = ("{0}", "{0}a", "a{0}", "a{0}a")
EVERY_FORM = [" ".join([*WORDS, "a", *(shape.format(sign) for sign in SIGNS for shape in SHAPES)])]
TOKENS = trained(EVERY_FORM, tokens="words")


@pytest.mark.parametrize(
    ("text", "split"),
    [
        ("<p>invoice</p>", "<￭ p ￭>￭ invoice ￭< ￭/￭ p ￭>"),
        ("(invoice)", "(￭ invoice ￭)"),
        ('say "invoice".', 'say "￭ invoice ￭" ￭.'),
        ("can't", "can ￭'￭ t"),
        ("3.14 a_b -x", "3 ￭.￭ 14 a ￭_￭ b -￭ x"),
        ("the U.S. is", "the U ￭.￭ S ￭. is"),
        ("wait ... so...", "wait . ￭. ￭. so ￭. ￭. ￭."),
        ("well-known – or", "well ￭-￭ known – or"),
        ("so😀😀 日本、語", "so ￭😀 ￭😀 日本 ￭、￭ 語"),
        # whether a sign is drawn as an emoji
        ("✔\ufe0finvoice❤\ufe0f", "✔ ￭\ufe0f￭ invoice ￭❤ ￭\ufe0f"),
        ("1\ufe0f\u20e3invoice", "1 ￭\ufe0f ￭\u20e3￭ invoice"),
        ("a￭b", "a ￭■￭ b"),  # a joiner of the text itself
        ("▁a", "▁￭ a"),
        ("", ""),
    ],
)
def test_words_and_marks(text: str, split: str) -> None:
    assert TOKENS.split(text) == split.split()
    assert text_of(split.split()) == TOKENS.normalize(text)


def split_by_hand(text: str) -> list[str]:
    """The rule once more, by the categories of Python."""
    found: list[str] = []
    for word in text.split():
        kinds = ("S" if category(sign)[0] in "PS" or sign in EMOJI else "W" for sign in word)
        parts = re.findall(r"S|W+", "".join(kinds))
        place = 0
        for at, part in enumerate(parts):
            own, place = word[place : place + len(part)], place + len(part)
            follows = at + 1 < len(parts) and parts[at + 1] != "S"
            found.append(f"{'￭' * (at > 0)}{own}{'￭' * follows}" if part == "S" else own)
    return found


@given(st.lists(st.sampled_from([*WORDS, *SIGNS, *SIGNS, " ", " "]), max_size=25).map("".join))
def test_any_text_of_known_words_comes_back(text: str) -> None:
    """Any marks in any order: the vocabulary has each of them in each form, and words in one."""
    glued = [word for word in re.split(rf"[{re.escape(''.join(SIGNS))}\s]+", text) if word]
    tokens = trained([*EVERY_FORM, " ".join(glued)], tokens="words")
    ids = tokens.encode(text)
    assert UNK not in ids
    assert tokens.decode(ids) == tokens.normalize(text)
    assert tokens.split(text) == split_by_hand(tokens.normalize(text))


@given(
    st.lists(st.sampled_from([*WORDS, *SIGNS[: -len(EMOJI)], " ", "￭"]), max_size=25).map("".join)
)
def test_texts_are_as_long_as_before(text: str) -> None:
    """Joiners are on tokens, and are none themselves."""
    old = TextTokenizer.trained(EVERY_FORM, TokenizerSettings(split=MARKED_WORDS), "x")
    assert len(TOKENS.encode(text)) == len(old.encode(text.replace("￭", "■")))


def test_a_word_is_counted_once() -> None:
    """Wherever it stands; so `min_count` and `size` see all of its places."""
    texts = ["invoice (invoice) <b>invoice</b> bill", 'a "bill" of']
    known = vocabulary(trained(texts, tokens="words", min_count=2))
    assert {token for token in known if token.isalpha()} == {"invoice", "bill", "b"}
    assert known["invoice"] == len(SPECIAL)  # the most frequent one


def test_a_form_that_was_not_seen_is_read_as_the_nearest() -> None:
    tokens = trained(['the (new) invoice, "so" a-b'], tokens="words")
    known = vocabulary(tokens)
    forms = {"a,b": "￭,", "the , b": "￭,", "a(b": "(￭", "a ( b": "(￭", "a) b": "￭)"}
    for text, form in (forms | {'a"b': '"￭', '" b': '"￭', "- b": "￭-￭"}).items():
        assert known[form] in tokens.encode(text)
        assert UNK not in tokens.encode(text)
    assert tokens.encode("a; b")[1] == UNK  # no form of it was seen


def test_rare_forms_count_as_the_most_frequent_one() -> None:
    counts = {"￭.": 5, ".": 1, "￭.￭": 2, "a": 1, "￭;": 1, ";": 1, "of": 1}
    assert folded(counts, 2) == Counter({"￭.": 6, "￭.￭": 2, "a": 1, ";": 2, "of": 1})
    assert folded(counts, 1) == Counter(counts)
    tokens = trained(["x; x ; x;x x y y"], tokens="words", min_count=3)
    assert set(vocabulary(tokens)) == {*SPECIAL, "x", ";"}
    ids = [vocabulary(tokens)["x"], vocabulary(tokens)[";"]]
    assert tokens.encode("x;") == tokens.encode("x ;") == ids


@given(st.lists(st.text("a,(😀￭", max_size=4), unique=True))
def test_each_mark_has_all_forms(tokens: list[str]) -> None:
    made = stand_ins(tokens)
    assert not set(made) & set(tokens)
    marks = {without_joiners(token) for token in tokens if len(without_joiners(token)) == 1} - {"￭"}
    for mark in marks:
        forms = {mark, f"￭{mark}", f"{mark}￭", f"￭{mark}￭"}
        assert forms <= set(made) | set(tokens)
        for form in forms & set(made):
            assert without_joiners(made[form]) == mark
            assert made[form] in tokens


def test_tokens_of_a_decoder_are_joined_whatever_their_order() -> None:
    known = vocabulary(TOKENS)

    def decoded(tokens: str) -> str:
        return TOKENS.decode([known[token] for token in tokens.split()])

    assert decoded("(￭ invoice ￭) invoice") == "(invoice) invoice"
    assert decoded("(￭ ( ￭, , (￭") == "((, , ("
    assert decoded("￭, invoice (￭") == ", invoice ("
    assert decoded("can ￭'￭ t invoice") == "can't invoice"
    assert TOKENS.decode([known["(￭"], UNK, UNK, known["￭)"]]) == "(<unk> <unk>)"
    assert TOKENS.tokens([known["(￭"], known["invoice"], known["￭'￭"]]) == ["(", "invoice", "'"]


def test_copied_words_take_the_mark_beside_them_along() -> None:
    """Where the vocabulary has the mark in another form only; else the decoder has chosen."""
    tokens = trained(["it is 5, so (5) it"], tokens="words")
    other = trained(["a,b it, is 5"], tokens="words")
    for made, expected in ((tokens, "it 3,14 it"), (other, "it 3, 14 it")):
        words, known = made.split("3,14 (Ann) it"), vocabulary(made)
        three, fourteen = (made.size + words.index(word) for word in ("3", "14"))
        assert (
            made.decode([known["it"], three, known["￭,"], fourteen, known["it"]], words) == expected
        )
    ann, known = tokens.split("so (Ann Lee").index("Ann"), vocabulary(tokens)
    assert (
        tokens.decode([known["it"], known["￭,"], tokens.size + ann], tokens.split("so (Ann Lee"))
        == "it, Ann"
    )


def test_pieces_of_a_source_go_on_with_the_piece_before() -> None:
    """Of another tokenizer, whose words take the place of unknown ones."""
    source, target = trained(["Smith went"], tokens="bpe"), trained(["he saw"], tokens="words")
    words = [target.adopted(piece, source) for piece in ("▁Sm", "ith", "▁went")]
    assert words == ["Sm", "￭ith", "went"]
    he, first = vocabulary(target)["he"], target.size
    assert target.decode([he, first, first + 1, first + 2], words) == "he Smith went"
    assert target.decode([he, first + 1, first], words) == "he ith Sm"


def test_words_for_a_subword_tokenizer_and_for_marked_words() -> None:
    bpe = trained(["he saw (her)"], tokens="bpe")
    old = TextTokenizer.trained(["he saw (her)"], TokenizerSettings(split=MARKED_WORDS), "x")
    for other in (bpe, old):
        expected = ["▁(", "▁invoice", ")"]
        assert [other.adopted(word, TOKENS) for word in TOKENS.split("(invoice)")] == expected
    expected = ["(", "￭her", "￭)", "now"]
    assert [TOKENS.adopted(word, old) for word in old.split("(her) now")] == expected
    assert TOKENS.adopted("(￭", TOKENS) == "(￭"


def test_words_have_pretrained_vectors_wherever_they_stand() -> None:
    words = trained(['(invoice) "the" invoice the'], tokens="words").by_word()
    expected = {"invoice": 1, "the": 1, "(": 1, ")": 1, '"': 2}
    assert {word: len(ids) for word, ids in words.items()} == expected


def test_a_mark_that_is_known_in_another_form_is_no_extra_word() -> None:
    settings = TokenizerSettings()
    tokens = trained(["a, b"], tokens="words").extended([",", "a", "zed", "ur"], settings, extra=1)
    assert tokens._names[len(SPECIAL) :] == ["a", "b", "￭,", "zed"]


def test_a_form_that_is_not_there_is_read_as_the_nearest() -> None:
    assert stand_ins([",", "￭,"]) == {",￭": ",", "￭,￭": "￭,"}
    assert stand_ins(["￭.", ".￭"]) == {".": "￭.", "￭.￭": "￭."}  # the first of equally near ones
