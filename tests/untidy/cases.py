"""The untidy files."""

import csv

from .files import (
    ANIMALS,
    BOTH,
    DIALOG,
    DOC,
    EN_DE,
    ENTAIL,
    LM,
    MT,
    NEWS,
    PAIRS,
    REVIEWS,
    SUM,
    TEXT_LABEL,
    TRANSLIT,
    Case,
    N,
    array,
    article,
    code_of,
    date_of,
    english,
    french,
    german,
    headed,
    headline,
    lines,
    packed,
    review,
    rows,
    sentiment,
    tabs,
    written,
)
from .pair_cases import PAIRS_OF_SENTENCES

BROKEN = [f"{english(n)}\nand {n}" for n in range(N)]

HEADERS = [
    Case("a header of known names", written(headed("text,label", REVIEWS)), DOC, TEXT_LABEL),
    Case("no header, commas", written(REVIEWS), DOC, {"source": 1, "label": 2}),
    Case("no header, tabs", tabs(PAIRS), MT, BOTH, file="data.tsv"),
    Case(
        "a header of languages",
        tabs(headed("English,German", PAIRS)),
        MT,
        {"source": "English", "target": "German"},
        file="d.tsv",
    ),
    Case(
        "a header in capitals",
        written(headed("TEXT,LABEL", REVIEWS)),
        DOC,
        {"source": "TEXT", "label": "LABEL"},
    ),
    Case(
        "a header of strange names",
        written(headed("foo,bar", PAIRS)),
        MT,
        {"source": "foo", "target": "bar"},
    ),
    Case(
        "a header with spaces",
        written(headed("Review Text,My Label", REVIEWS)),
        DOC,
        {"source": "Review Text", "label": "My Label"},
    ),
    Case(
        "blanks around the names of a header",
        written(headed(" Text , My Label\t", REVIEWS)),
        DOC,
        {"source": "Text", "label": "My Label"},
        options=("--source", "Text", "--label", "My Label"),
    ),
    Case(
        "names that differ in blanks alone",
        written(headed("text, text,label", rows(N, english, review, sentiment))),
        DOC,
        {"source": " text", "label": "label"},
        options=("--source", " text"),
    ),
    Case(
        "two columns for one field",
        written(headed("Subject,Body,label", rows(N, headline, review, sentiment))),
        DOC,
        asks=(
            "the source is given two columns, 'Subject' and 'Body', but a field is one column; join them into one "
            "first, as docs/faq.md shows.",
        ),
        options=("--source", "Subject", "--source", "Body"),
    ),
    Case(
        "two columns for one field, by --column",
        written(headed("Subject,Body,label", rows(N, headline, review, sentiment))),
        DOC,
        asks=("the source is given two columns, 'Subject' and 'Body', but",),
        options=("--source", "Subject", "--column", "source=Body"),
    ),
    Case(
        "a header of one name twice",
        written(headed("text,text,label", rows(N, english, review, sentiment))),
        DOC,
        asks=("column 1 ('text') or column 2 ('text')", "--source 1"),
    ),
    Case(
        "a header of one name twice, one chosen",
        written(headed("text,text,label", rows(N, english, review, sentiment))),
        DOC,
        {"source": 2, "label": 3},
        keys={"header": True},
        options=("--source", "2"),
    ),
    Case(
        "a header again in the middle",
        written([*headed("text,label", REVIEWS), *headed("text,label", REVIEWS)]),
        DOC,
        TEXT_LABEL,
    ),
    Case(
        "a label first", written(headed("label,text", rows(N, sentiment, review))), DOC, TEXT_LABEL
    ),
    Case(
        "a label first, no header",
        written(rows(N, sentiment, review)),
        DOC,
        {"source": 2, "label": 1},
    ),
    Case(
        "numbers for labels",
        written(headed("sentence,label", rows(N, review, lambda n: n % 3))),
        DOC,
        {"source": "sentence", "label": "label"},
    ),
    Case(
        "numbers for labels, no header",
        written(rows(N, review, lambda n: n % 3)),
        DOC,
        {"source": 1, "label": 2},
    ),
    Case(
        "first words that are short",
        tabs([["hello", "hallo"], ["yes", "ja"], *PAIRS]),
        MT,
        BOTH,
        file="data.tsv",
    ),
]
IDS = [
    Case(
        "an id first",
        written(headed("id,en,de", rows(N, lambda n: n + 1, english, german))),
        MT,
        EN_DE,
        says=("'id' (ids)",),
    ),
    Case(
        "an index of pandas",
        written(headed(",review,sentiment", rows(N, lambda n: n, review, sentiment))),
        DOC,
        {"source": "review", "label": "sentiment"},
        says=("'' (row numbers)",),
    ),
    Case(
        "two indexes of pandas",
        written(headed("Unnamed: 0,,en,de", rows(N, lambda n: n, lambda n: n, english, german))),
        MT,
        EN_DE,
    ),
    Case(
        "row numbers, no header",
        written(rows(N, lambda n: n, english, german)),
        MT,
        {"source": 2, "target": 3},
    ),
    Case(
        "codes",
        written(headed("movie,review,rating", rows(N, code_of, review, lambda n: n % 5))),
        DOC,
        {"source": "review", "label": "rating"},
    ),
    Case(
        "codes, no header",
        tabs(rows(N, code_of, english, german)),
        MT,
        {"source": 2, "target": 3},
        file="data.tsv",
    ),
    Case(
        "uuids",
        written(
            headed(
                "key,text,label",
                rows(N, lambda n: f"{n:08x}-1234-5678-9abc-{n:012x}", review, sentiment),
            )
        ),
        DOC,
        TEXT_LABEL,
    ),
    Case(
        "a constant column",
        written(headed("lang,en,de", rows(N, "en-de", english, german))),
        MT,
        EN_DE,
        says=("always 'en-de'",),
    ),
    Case(
        "a constant column, no header",
        written(rows(N, "train", review, sentiment)),
        DOC,
        {"source": 2, "label": 3},
    ),
    Case(
        "dates",
        written(headed("date,text,label", rows(N, date_of, review, sentiment))),
        DOC,
        TEXT_LABEL,
        says=("'date' (dates)",),
    ),
    Case(
        "dates and numbers, no header",
        written(rows(N, date_of, lambda n: n * 1.5, english, german)),
        MT,
        {"source": 3, "target": 4},
    ),
    Case(
        "where they come from",
        written(headed("en,de,source", rows(N, english, german, lambda n: ["web", "book"][n % 2]))),
        MT,
        EN_DE,
    ),
    Case(
        "an empty column",
        written(headed("notes,en,de", rows(N, "", english, german))),
        MT,
        EN_DE,
        says=("'notes' (empty)",),
    ),
    Case(
        "addresses",
        written(
            headed("url,text,label", rows(N, lambda n: f"https://a.example/{n}", review, sentiment))
        ),
        DOC,
        TEXT_LABEL,
    ),
    Case(
        "all at once",
        written(
            headed(
                ",id,date,title,body,stars,category",
                rows(
                    N, lambda n: n, code_of, date_of, headline, article, lambda n: n % 5, sentiment
                ),
            )
        ),
        DOC,
        {"source": "body", "label": "category"},
    ),
]
DELIMITERS = [
    Case(
        "semicolons",
        written(headed("text,label", REVIEWS), ";"),
        DOC,
        TEXT_LABEL,
        keys={"delimiter": ";"},
    ),
    Case("semicolons, no header", written(PAIRS, ";"), MT, BOTH, keys={"delimiter": ";"}),
    Case(
        "semicolons, a comma in each text",
        written(REVIEWS, ";"),
        DOC,
        {"source": 1, "label": 2},
        keys={"delimiter": ";"},
    ),
    Case("pipes", written(headed("en,de", PAIRS), "|"), MT, EN_DE, keys={"delimiter": "|"}),
    Case("tabs in a .csv", tabs(headed("en,de", PAIRS)), MT, EN_DE, keys={"delimiter": "\t"}),
    Case(
        "commas in a .tsv",
        written(headed("en,de", PAIRS)),
        MT,
        EN_DE,
        keys={"delimiter": ","},
        file="data.tsv",
    ),
    Case("tabs in a .txt", tabs(PAIRS), MT, BOTH, keys={"delimiter": "\t"}, file="data.txt"),
    Case(
        "spaces for tabs",
        "".join(f"{english(n)}    {german(n)}\n" for n in range(N)).encode(),
        MT,
        asks=("only one column was found", "tabs, commas, semicolons or |"),
        file="data.tsv",
    ),
    Case(
        "all quoted", written(headed("text,label", REVIEWS), quoting=csv.QUOTE_ALL), DOC, TEXT_LABEL
    ),
    Case(
        "quotes with line breaks",
        written(
            headed("text,label", list(zip(BROKEN, [sentiment(n) for n in range(N)], strict=True)))
        ),
        DOC,
        TEXT_LABEL,
    ),
    Case(
        "doubled quotes",
        written(
            headed("text,label", rows(N, lambda n: f'he said "{english(n)}", twice', sentiment))
        ),
        DOC,
        TEXT_LABEL,
    ),
    Case(
        "quoted tabs",
        written(
            headed("text,label", list(zip(BROKEN, [sentiment(n) for n in range(N)], strict=True))),
            "\t",
        ),
        DOC,
        TEXT_LABEL,
        keys={"quotes": True},
        file="data.tsv",
    ),
    Case(
        "quotes that are letters in a .tsv",
        tabs(rows(N, lambda n: f'"{english(n)}" he said', german)),
        MT,
        BOTH,
        file="data.tsv",
    ),
    Case(
        "quotes that are letters in a .csv",
        "".join(f'"{english(n)}" he said;{german(n)}\n' for n in range(N)).encode(),
        MT,
        BOTH,
        keys={"delimiter": ";", "quotes": False},
    ),
    Case("line ends of Windows", written(headed("en,de", PAIRS), end="\r\n"), MT, EN_DE),
]
ENCODINGS = [
    Case(
        "a byte order mark",
        b"\xef\xbb\xbf" + written(headed("text,label", REVIEWS)),
        DOC,
        TEXT_LABEL,
    ),
    Case(
        "Excel's semicolons and mark",
        b"\xef\xbb\xbf" + written(headed("text,label", REVIEWS), ";", end="\r\n"),
        DOC,
        TEXT_LABEL,
        keys={"delimiter": ";"},
    ),
    Case(
        "UTF-16, little end",
        tabs(headed("en,de", PAIRS)).decode().encode("utf-16"),
        MT,
        EN_DE,
        file="data.tsv",
    ),
    Case(
        "UTF-16, big end",
        b"\xfe\xff" + tabs(headed("en,de", PAIRS)).decode().encode("utf-16-be"),
        MT,
        EN_DE,
        file="data.tsv",
    ),
    Case(
        "UTF-16 without a mark",
        written(headed("en,de", PAIRS)).decode().encode("utf-16-le"),
        MT,
        EN_DE,
    ),
    Case("a .CSV", written(headed("en,de", PAIRS)), MT, EN_DE, file="DATA.CSV"),
    Case(
        "gzipped",
        packed(written(headed("en,de", PAIRS), ";")),
        MT,
        EN_DE,
        keys={"delimiter": ";"},
        file="data.csv.gz",
    ),
    Case(
        "Windows-1252, as Excel saves it",
        written(headed("Größe,en,de", [(n, *pair) for n, pair in enumerate(PAIRS)]), ";")
        .decode()
        .encode("cp1252"),
        MT,
        EN_DE,
        keys={"delimiter": ";"},
        says=(
            "is not UTF-8, so it is read as Windows-1252; if letters look wrong, save it as UTF-8.",
        ),
    ),
]
JSON = [
    Case("a JSON list", array("en de", PAIRS), MT, EN_DE, file="data.json"),
    Case(
        "a JSON list, indented",
        array("id text label", rows(N, lambda n: n, review, sentiment), 2),
        DOC,
        TEXT_LABEL,
        file="data.json",
    ),
    Case("JSON lines in a .JSONL", lines("en de", PAIRS), MT, EN_DE, file="data.JSONL"),
    Case("JSON lines in a .json", lines("en de", PAIRS), MT, EN_DE, file="data.json"),
    Case(
        "objects inside",
        lines("id pair", [[n, {"en": english(n), "de": german(n)}] for n in range(N)]),
        MT,
        {"source": "pair.en", "target": "pair.de"},
        file="data.jsonl",
    ),
    Case(
        "an object around a list",
        b'{"data": ' + array("en de", PAIRS) + b"}",
        MT,
        EN_DE,
        file="data.json",
    ),
    Case(
        "an object around a list, indented",
        b'{\n  "version": 1.0,\n  "rows": '
        + array("id en de", [(n, *pair) for n, pair in enumerate(PAIRS)], 2)
        + b"}\n",
        MT,
        EN_DE,
        file="data.json",
    ),
    Case(
        "an object around two lists",
        b'{"train": ' + array("en de", PAIRS) + b', "test": ' + array("en de", PAIRS) + b"}",
        MT,
        asks=(
            "is an object with several lists (train, test); save the one that is meant as a file.",
        ),
        file="data.json",
    ),
    Case(
        "a list that is cut off",
        array("en de", PAIRS)[:-30],
        MT,
        asks=("line 1: is not JSON",),
        file="data.json",
    ),
    Case(
        "keys that are missing",
        lines("en de", PAIRS) + b'{"en": "alone"}\n',
        MT,
        EN_DE,
        keys={"on_bad_row": "skip"},
        file="data.jsonl",
    ),
]
ROWS = [
    Case(
        "ragged rows",
        written([*headed("text,label", REVIEWS), ["short"], ["a", "pos", "more"]]),
        DOC,
        TEXT_LABEL,
        keys={"on_bad_row": "skip"},
        says=("Line 26", "1 bad row"),
    ),
    Case(
        "empty cells",
        written([*headed("text,label", REVIEWS), ["", "pos"], ["good", ""]]),
        DOC,
        TEXT_LABEL,
        keys={"on_bad_row": "skip"},
        says=("2 bad rows",),
    ),
    Case(
        "blank lines at the end",
        written(headed("text,label", REVIEWS)) + b"\n\n",
        DOC,
        TEXT_LABEL,
        keys={"on_bad_row": "skip"},
    ),
    Case(
        "inputs that come again",
        written(headed("text,label", [*REVIEWS, *REVIEWS, *REVIEWS])),
        DOC,
        TEXT_LABEL,
    ),
    Case("12 rows", written(headed("text,label", REVIEWS[:12])), DOC, TEXT_LABEL),
    Case(
        "one class",
        written(headed("text,label", rows(N, review, "spam"))),
        DOC,
        asks=("'label'", "always 'spam'", "two classes"),
    ),
    Case(
        "500 classes",
        written(headed("text,label", rows(1000, english, lambda n: f"class {n % 500} of all"))),
        DOC,
        TEXT_LABEL,
    ),
    Case(
        "500 classes, no header",
        written(rows(1000, lambda n: f"{english(n)} {n}", lambda n: f"kind {n % 500}")),
        DOC,
        {"source": 1, "label": 2},
    ),
    Case("a header alone", b"text,label\n", DOC, asks=("no rows",)),
    Case("nothing", b"", DOC, asks=("is empty",)),
    Case(
        "a split column",
        written(
            headed(
                "text,label,split",
                rows(N, review, sentiment, lambda n: "train" if n % 4 else "test"),
            )
        ),
        DOC,
        TEXT_LABEL,
        keys={"filter": {"split": "train"}},
    ),
]
TEXTS = [
    Case(
        "three languages",
        written(headed("en,de,fr", rows(N, english, german, french))),
        MT,
        asks=("'en', 'de' or 'fr'", "--source"),
    ),
    Case(
        "three languages, two named",
        written(headed("en,de,fr", rows(N, english, german, french))),
        MT,
        {"source": "en", "target": "fr"},
        options=("--source", "en", "--target", "fr"),
    ),
    Case(
        "three columns, by number",
        written(rows(N, english, german, french)),
        MT,
        {"source": 3, "target": 1},
        options=("--source", "3", "--target", "1"),
    ),
    Case(
        "the other way round",
        written(headed("en,de", PAIRS)),
        MT,
        {"source": "de", "target": "en"},
        options=("--source", "de", "--target", "en"),
    ),
    Case(
        "a summary first",
        written(headed("short,long", rows(N, headline, article))),
        SUM,
        {"source": "long", "target": "short"},
        says=("the longer text",),
    ),
    Case(
        "a summary first, no header",
        written(rows(N, headline, article)),
        SUM,
        {"source": 2, "target": 1},
    ),
    Case(
        "title, text and summary",
        written(
            headed(
                "title,text,summary",
                rows(N, lambda n: f"news {n % 7} of the day", article, headline),
            )
        ),
        SUM,
        {"source": "text", "target": "summary"},
    ),
    Case(
        "two labels",
        written(
            headed("text,topic,sentiment", rows(N, review, lambda n: ANIMALS[n % 4], sentiment))
        ),
        DOC,
        asks=("'topic' or 'sentiment'", "--label"),
    ),
    Case(
        "two labels, one named",
        written(
            headed("text,topic,sentiment", rows(N, review, lambda n: ANIMALS[n % 4], sentiment))
        ),
        DOC,
        {"source": "text", "label": "topic"},
        options=("--label", "topic"),
    ),
    Case(
        "two texts of one length",
        written(headed("left,right,label", rows(N, english, german, sentiment))),
        DOC,
        asks=("'left' or 'right'", "--source"),
    ),
    Case(
        "no column like that",
        written(headed("en,de", PAIRS)),
        MT,
        asks=("column 'english' is unknown", "en"),
        options=("--source", "english"),
    ),
    Case(
        "no field like that",
        written(headed("en,de", PAIRS)),
        MT,
        asks=("field 'text' is unknown",),
        options=("--column", "text=en"),
    ),
    Case(
        "a label of ten words",
        written(headed("headline,story", NEWS)),
        SUM,
        {"source": "story", "target": "headline"},
    ),
    Case(
        "lines of text",
        "".join(english(n) + "\n" for n in range(N)).encode(),
        LM,
        {"target": "text"},
        file="data.txt",
    ),
    Case(
        "lines of text with an id",
        written(headed("id,sentence", rows(N, lambda n: n, english))),
        LM,
        {"target": "sentence"},
    ),
    Case(
        "questions and answers",
        written(headed("question,answer,date", rows(N, english, german, date_of))),
        DIALOG,
        {"source": "question", "target": "answer"},
    ),
    Case(
        "words",
        tabs(
            rows(
                N,
                lambda n: f"{ANIMALS[n % 8]}{'s' * (n // 8)}",
                lambda n: f"{ANIMALS[n % 8].upper()}{n // 8 * 'S'}",
            )
        ),
        TRANSLIT,
        BOTH,
        file="data.tsv",
    ),
    Case(
        "pairs of sentences and a score",
        written(
            headed(
                "pair_ID,sentence1,sentence2,relatedness_score",
                rows(N, lambda n: n + 1, english, headline, lambda n: n * 0.25),
            )
        ),
        ENTAIL,
        {"source": "sentence1", "target": "sentence2"},
    ),
]
CASES = [*HEADERS, *IDS, *DELIMITERS, *ENCODINGS, *JSON, *ROWS, *TEXTS, *PAIRS_OF_SENTENCES]
