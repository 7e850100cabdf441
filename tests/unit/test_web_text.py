"""The script of the page reads texts as Python does: tokens, segments, what comes back. Skipped without a browser."""

import json
import random
import re
from pathlib import Path
from typing import Any
from unicodedata import category

import pytest

from sixjars.data.text.tokenizer import TextTokenizer
from sixjars.serving.web.parts import SCRIPT
from sixjars_runtime.text import sentences
from sixjars_runtime.text.segments import segments_of
from sixjars_runtime.text.spelling import MARKED_WORDS, TokenizerSettings
from tests.unit.browser import CHROMIUM, Browser

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium on this machine")

CORPUS = [
    "Hello, how are you? I don't know; they're there (in the garden).",
    "Grüße aus Köln – ‘quoted’ “text” #1/2 №5 ﬁne ½ naïve café",
    "मेरा नाम ▁ है Σίσυφος ΟΔΥΣΣΕΥΣ İstanbul 日本語のテキスト e-mail: a@b.com http://x.y/z?q=1",
    "the quick brown fox jumps over the lazy dog, and the dog sleeps on",
] * 3
LETTERS = (
    "aehHΣσς İıiüu\u0308\u0301 ▁"
    "￭■_.,;:!?-–—/()[]{}\"'“”‘’«»…&@#$%^*+=<>|~`\\\t\n\r\x0b\x0c\x1c\x1d\x1e\x1f\x85\xa0\u2003"
    "\u2028\u3000\ufeff\u200b\u200d😀❤\ufe0f\ufe0e\u20e3🇩🇪日本語मेरा½№ﬁ€"
)
SPLITS = [("words", split) for split in ("punctuation", "spaces", MARKED_WORDS)]
SPLITS += [(kind, "punctuation") for kind in ("characters", "bpe", "unigram")]
KINDS = [(kind, split, lower) for kind, split in SPLITS for lower in (False, True)]
PROSE = (
    "Mr. Dr. U.S. p.m. No. Fig. e.g. Inc. etc. J. I. 1. 2. (a) The the He And and 5 IV 3.14 ... ! ? ?! … । 。 \" ' ” ) "
    "'' www.x.Com notes.PDF System.Out bn.For It A B. Ph.D. end. Stop! Yes? no <br/> <BR> \x85 \u2028 , ; : — café. "
    "Éa. été. ÀB. İ. ß. ǅ 日本。 你好. नमस्ते। 😀. ². x&y. St-Moritz. (End.) “Go.” 'Why?' \"Out.\" cf. vs. A.B. U.S.A"
).split(" ")
GAPS = [" ", " ", "", "\n", "  "]
READ = """(texts => {
    const tokenizer = new TOKENS[learned.kind](learned);
    return texts.map(text => {
        const read = tokenizer.read(text), ids = read.map(({ id }) => id);
        return [ids, read.map(({ word }) => word), tokenizer.decode(ids, []), tokenizer.tokens(ids, [])];
    });
})"""


@pytest.fixture(scope="module")
def browser(chromium: Browser, tmp_path_factory: pytest.TempPathFactory) -> Browser:
    """With the part of the script that reads texts."""
    folder = tmp_path_factory.mktemp("browser")
    names = ["tensors.js", "text.js", "field/text.js"]
    parts = [path for part in ("tokens", "segments") for path in SCRIPT.joinpath(part).iterdir()]
    files = [*map(SCRIPT.joinpath, names), *parts]
    script = "\n".join(path.read_text("utf-8") for path in files)
    html = f'<meta charset="utf-8"><script>{script}</script>'
    (folder / "page.html").write_text(html, encoding="utf-8")
    chromium.open(folder / "page.html")
    return chromium


def wild(count: int) -> list[str]:
    """Texts of letters, marks and spaces that are hard to read, and of the words of the corpus."""
    rng, words = random.Random(0), " ".join(CORPUS).split()
    letters = ["".join(rng.choices(LETTERS, k=rng.randint(1, 25))) for _ in range(count)]
    sentences = [" ".join(rng.choices(words, k=rng.randint(1, 12))) for _ in range(count)]
    return ["", " ", *letters, *sentences]


def tokenizer(kind: str, split: str, lower: bool) -> TextTokenizer:
    return TextTokenizer.trained(CORPUS, TokenizerSettings(kind, split, lower, size=150), "source")


def read(browser: Browser, made: TextTokenizer, texts: list[str]) -> list[Any]:
    found: list[Any] = browser.ask(f"(learned => {READ}({json.dumps(texts)}))({made.to_json()})")
    return found


@pytest.mark.parametrize(("kind", "split", "lower"), KINDS)
def test_tokens_are_those_of_python(browser: Browser, kind: str, split: str, lower: bool) -> None:
    made, texts = tokenizer(kind, split, lower), wild(120)
    found = read(browser, made, texts)
    for text, ids, one in zip(texts, made.encode_many(texts), found, strict=True):
        assert one == [ids, made.split(text), made.decode(ids), made.tokens(ids)], text


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "split", "lower"), KINDS)
def test_every_character_is_read_as_in_python(
    browser: Browser, kind: str, split: str, lower: bool
) -> None:
    """All that this Python knows: of younger ones, libraries of different age disagree which are punctuation."""
    made = tokenizer(kind, split, lower)
    places = [at for at in range(0x20000) if category(chr(at)) not in ("Cn", "Cs")]
    for begin in range(0, len(places), 8192):
        texts = [f"a{chr(at)}b {chr(at)}e" for at in places[begin : begin + 8192]]
        found = [one[0] for one in read(browser, made, texts)]
        rows = zip(texts, made.encode_many(texts), found, strict=True)
        assert [text for text, ids, one in rows if ids != one] == []


def prose(count: int) -> list[str]:
    """The texts of the tests of segments, and such that are made of what is hard in them."""
    rng, folder = random.Random(1), Path(__file__).parent
    files = (folder / "test_sentences.py", folder / "test_segments.py")
    written = [path.read_text(encoding="utf-8") for path in files]
    texts = [text for source in written for text in re.findall(r'"([^"\\]+)"', source)]
    for _ in range(count):
        words = rng.randint(2, 16)
        text = "".join(rng.choice(PROSE) + rng.choice(GAPS) for _ in range(words))
        texts += [text, text.lower()]
    return texts


@pytest.mark.parametrize("kind", ["none", "lines", "turns", "sentences"])
def test_segments_are_those_of_python(browser: Browser, kind: str) -> None:
    texts = prose(300)
    found = browser.ask(f"{json.dumps(texts)}.map(text => SEGMENTS[{json.dumps(kind)}](text))")
    for text, one in zip(texts, found, strict=True):
        assert one == segments_of(text, kind), text


def test_the_rule_for_sentences_has_the_same_words(browser: Browser) -> None:
    for name in ("NAME_FOLLOWS", "NUMBER_FOLLOWS", "MAY_END", "STARTERS", "_ENDINGS"):
        assert set(browser.ask(f"[...{name.strip('_')}]")) == getattr(sentences, name)


@pytest.mark.parametrize("split", ["punctuation", MARKED_WORDS])
@pytest.mark.parametrize("pieces", [False, True])
def test_copied_words_are_joined_as_in_python(browser: Browser, split: str, pieces: bool) -> None:
    """An id from the size of the vocabulary on is a position of the source, which may be pieces of words."""
    made = tokenizer("words", split, False)
    source = tokenizer("bpe", "punctuation", False) if pieces else made
    text = 'the zebra ( Okapi ) "gnu" re-zoned , so/called Emu’s (Gnu) 3,14'
    words = [made.adopted(word, source) for word in source.split(text)]
    rng = random.Random(2)

    def number() -> int:
        return rng.choice([rng.randrange(3, made.size), made.size + rng.randrange(len(words))])

    rows = [[number() for _ in range(9)] for _ in range(300)]
    join = f"(learned => {json.dumps(rows)}.map(ids => new TOKENS.words(learned).decode(ids, {json.dumps(words)})))"
    assert browser.ask(f"{join}({made.to_json()})") == [made.decode(ids, words) for ids in rows]


@pytest.mark.parametrize("split", ["punctuation", "spaces", MARKED_WORDS])
def test_words_of_another_tokenizer_are_spelled_as_in_python(browser: Browser, split: str) -> None:
    """They take the place of unknown words of the output."""
    made = tokenizer("words", split, False)
    for kind, other_split, lower in KINDS:
        other = tokenizer(kind, other_split, lower)
        words = [word for text in CORPUS for word in other.split(text)]
        both = f"(new TOKENS.words({made.to_json()}), new TOKENS[{json.dumps(kind)}]({other.to_json()}))"
        adopt = "word => FIELD.text.prototype.adopted.call({tokenizer}, word, other)"
        spelled = f"((tokenizer, other) => {json.dumps(words)}.map({adopt}))"
        assert browser.ask(spelled + both) == [made.adopted(word, other) for word in words]
