"""Makes the Canadian Hansards ready for alignment: both texts tokenized as the sentences with true links are.

python benchmarks/hansards.py SOURCE data/hansards

SOURCE has hansard36.train.en-fr.tsv.gz and hansard36.valid.en-fr.tsv.gz (English, tab, French; plain text), and of the
shared task of NAACL 2003 (https://aclanthology.org/W03-0301/) dev.e, dev.f and dev.wa.nonullalign.

There, words are separated by spaces, and French words are spelled out: "l'aide du pays" is "le aide de le pays". The
pairs have no accents, so those of the others are removed; all is lowercased.

Nearly all pairs have fewer than 18 English words, and 22 of the 37 sentences with links have 18 or more. Attention does
not follow sentences that are longer than all it was trained on. So long.fr.gz and long.en.gz have the pairs once as
they are, and once more two neighbours at a time as one; longer.fr.gz and longer.en.gz have each also joined with the
next one, and three neighbours at a time as one.
"""

import argparse
import gzip
import re
import unicodedata
from itertools import pairwise
from pathlib import Path

WORDS = re.compile(r"\d+(?:[.,]\d+)*|(?:[a-z]\.){2,}|(?:dr|hon|m|mr|mrs|st)\.|\w+|[^\w\s]")
ELIDED = re.compile(r"\b(l|d|n|qu|c|s|j|m|t|jusqu|lorsqu|puisqu)'\s*")
SPELLED = {"des": "de les", "du": "de le", "aux": "a les", "au": "a le"}


def plain(text: str) -> str:
    """Small letters without accents, one space between words.

    >>> plain("Les  élèves")
    'les eleves'
    """
    parts = unicodedata.normalize("NFKD", text.lower())
    return " ".join(
        "".join(letter for letter in parts if not unicodedata.combining(letter)).split()
    )


def words_of(text: str, *, french: bool) -> str:
    """The words of a text with spaces between.

    >>> words_of("Mr. Speaker, it's 10,000.", french=False)
    "mr. speaker , it ' s 10,000 ."
    >>> words_of("L'aide du pays", french=True)
    'le aide de le pays'
    """
    text = plain(text).replace("``", '"').replace("''", '"')
    if not french:
        return " ".join(WORDS.findall(text))
    text = ELIDED.sub(lambda found: f"{found[1]}e ", text)
    return " ".join(
        SPELLED.get(word, word)
        for word in WORDS.findall(text.replace("aujourd'hui", "aujourd' hui"))
    )


def lengthened(lines: list[str]) -> list[str]:
    """All lines, and behind them the first and second as one, the third and fourth, and so on.

    >>> lengthened(["a .", "b .", "c ."])
    ['a .', 'b .', 'c .', 'a . b .']
    """
    return lines + [f"{one} {two}" for one, two in zip(lines[::2], lines[1::2], strict=False)]


def longer(lines: list[str]) -> list[str]:
    """All lines, behind them each with the next one, and then the first three as one, the next three, and so on.

    >>> longer(["a .", "b .", "c ."])
    ['a .', 'b .', 'c .', 'a . b .', 'b . c .', 'a . b . c .']
    """
    threes = zip(lines[::3], lines[1::3], lines[2::3], strict=False)
    return lines + [" ".join(some) for some in (*pairwise(lines), *threes)]


def _written(path: Path, lines: list[str]) -> None:
    content = "".join(f"{line}\n" for line in lines).encode()
    path.write_bytes(gzip.compress(content, mtime=0) if path.suffix == ".gz" else content)


def main() -> None:
    """Parallel files for training and validation; those with true links, French first."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("source", type=Path)
    parser.add_argument("folder", type=Path)
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    for split in ("train", "valid"):
        with gzip.open(
            given.source / f"hansard36.{split}.en-fr.tsv.gz", "rt", encoding="utf-8"
        ) as file:
            pairs = [line.rstrip("\n").split("\t") for line in file]
        english = [words_of(english, french=False) for english, _ in pairs]
        french = [words_of(french, french=True) for _, french in pairs]
        for name, lines in {"en.gz": english, "fr.gz": french}.items():
            _written(given.folder / f"{split}.{name}", lines)
            if split == "train":
                _written(given.folder / f"long.{name}", lengthened(lines))
                _written(given.folder / f"longer.{name}", longer(lines))
        print(f"{split}: {len(pairs):,} pairs")
    for language in "ef":
        texts = (given.source / f"dev.{language}").read_text(encoding="utf-8").splitlines()
        _written(
            given.folder / f"dev.{'en' if language == 'e' else 'fr'}",
            [plain(text) for text in texts],
        )
    links = [
        line.split()
        for line in (given.source / "dev.wa.nonullalign").read_text(encoding="utf-8").splitlines()
    ]
    _written(
        given.folder / "dev.links",
        [f"{number} {second} {first} {kind}" for number, first, second, kind in links],
    )
    print(f"dev: {len(links):,} links")


if __name__ == "__main__":
    main()
