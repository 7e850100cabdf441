"""The untidy files."""

import csv

from .files import (
    ANIMALS,
    NEWS,
    PAIRS,
    REVIEWS,
    N,
    array,
    article,
    code_of,
    date_of,
    dialog,
    doc,
    english,
    entail,
    french,
    german,
    headed,
    headline,
    lines,
    lm,
    mt,
    packed,
    review,
    rows,
    sentiment,
    summed,
    table,
    tabs,
    translit,
    written,
)
from .pair_cases import PAIRS_OF_SENTENCES

BROKEN = [f"{english(n)}\nand {n}" for n in range(N)]
HEADERS = [
    doc("a header of known names", table("text,label", REVIEWS), "text,label"),
    doc("no header, commas", written(REVIEWS), "1,2"),
    mt("no header, tabs", tabs(PAIRS), "1,2", file="data.tsv"),
    mt(
        "a header of languages",
        table("English,German", PAIRS, "\t"),
        "English,German",
        file="d.tsv",
    ),
    doc("a header in capitals", table("TEXT,LABEL", REVIEWS), "TEXT,LABEL"),
    mt("a header of strange names", table("foo,bar", PAIRS), "foo,bar"),
    doc("a header with spaces", table("Review Text,My Label", REVIEWS), "Review Text,My Label"),
    doc(
        "blanks around the names of a header",
        table(" Text , My Label\t", REVIEWS),
        "Text,My Label",
        options=("--source", "Text", "--label", "My Label"),
    ),
    doc(
        "names that differ in blanks alone",
        table("text, text,label", rows(N, english, review, sentiment)),
        " text,label",
        options=("--source", " text"),
    ),
    doc(
        "two columns for one field",
        table("Subject,Body,label", rows(N, headline, review, sentiment)),
        asks=(
            "the source is given two columns, 'Subject' and 'Body', but a field is one column; "
            "join them into one first, as docs/faq.md shows.",
        ),
        options=("--source", "Subject", "--source", "Body"),
    ),
    doc(
        "two columns for one field, by --column",
        table("Subject,Body,label", rows(N, headline, review, sentiment)),
        asks=("the source is given two columns, 'Subject' and 'Body', but",),
        options=("--source", "Subject", "--column", "source=Body"),
    ),
    doc(
        "a header of one name twice",
        table("text,text,label", rows(N, english, review, sentiment)),
        asks=("column 1 ('text') or column 2 ('text')", "--source 1"),
    ),
    doc(
        "a header of one name twice, one chosen",
        table("text,text,label", rows(N, english, review, sentiment)),
        "2,3",
        keys={"header": True},
        options=("--source", "2"),
    ),
    doc(
        "a header again in the middle",
        written([*headed("text,label", REVIEWS), *headed("text,label", REVIEWS)]),
        "text,label",
    ),
    doc("a label first", table("label,text", rows(N, sentiment, review)), "text,label"),
    doc("a label first, no header", written(rows(N, sentiment, review)), "2,1"),
    doc(
        "numbers for labels",
        table("sentence,label", rows(N, review, lambda n: n % 3)),
        "sentence,label",
    ),
    doc("numbers for labels, no header", written(rows(N, review, lambda n: n % 3)), "1,2"),
    mt(
        "first words that are short",
        tabs([["hello", "hallo"], ["yes", "ja"], *PAIRS]),
        "1,2",
        file="data.tsv",
    ),
]
IDS = [
    mt(
        "an id first",
        table("id,en,de", rows(N, lambda n: n + 1, english, german)),
        "en,de",
        says=("'id' (ids)",),
    ),
    doc(
        "an index of pandas",
        table(",review,sentiment", rows(N, lambda n: n, review, sentiment)),
        "review,sentiment",
        says=("'' (row numbers)",),
    ),
    mt(
        "two indexes of pandas",
        table("Unnamed: 0,,en,de", rows(N, lambda n: n, lambda n: n, english, german)),
        "en,de",
    ),
    mt("row numbers, no header", written(rows(N, lambda n: n, english, german)), "2,3"),
    doc(
        "codes",
        table("movie,review,rating", rows(N, code_of, review, lambda n: n % 5)),
        "review,rating",
    ),
    mt("codes, no header", tabs(rows(N, code_of, english, german)), "2,3", file="data.tsv"),
    doc(
        "uuids",
        table(
            "key,text,label",
            rows(N, lambda n: f"{n:08x}-1234-5678-9abc-{n:012x}", review, sentiment),
        ),
        "text,label",
    ),
    mt(
        "a constant column",
        table("lang,en,de", rows(N, "en-de", english, german)),
        "en,de",
        says=("always 'en-de'",),
    ),
    doc("a constant column, no header", written(rows(N, "train", review, sentiment)), "2,3"),
    doc(
        "dates",
        table("date,text,label", rows(N, date_of, review, sentiment)),
        "text,label",
        says=("'date' (dates)",),
    ),
    mt(
        "dates and numbers, no header",
        written(rows(N, date_of, lambda n: n * 1.5, english, german)),
        "3,4",
    ),
    mt(
        "where they come from",
        table("en,de,source", rows(N, english, german, lambda n: ["web", "book"][n % 2])),
        "en,de",
    ),
    mt(
        "an empty column",
        table("notes,en,de", rows(N, "", english, german)),
        "en,de",
        says=("'notes' (empty)",),
    ),
    doc(
        "addresses",
        table("url,text,label", rows(N, lambda n: f"https://a.example/{n}", review, sentiment)),
        "text,label",
    ),
    doc(
        "all at once",
        table(
            ",id,date,title,body,stars,category",
            rows(N, lambda n: n, code_of, date_of, headline, article, lambda n: n % 5, sentiment),
        ),
        "body,category",
    ),
]
DELIMITERS = [
    doc("semicolons", table("text,label", REVIEWS, ";"), "text,label", keys={"delimiter": ";"}),
    mt("semicolons, no header", written(PAIRS, ";"), "1,2", keys={"delimiter": ";"}),
    doc("semicolons, a comma in each text", written(REVIEWS, ";"), "1,2", keys={"delimiter": ";"}),
    mt("pipes", table("en,de", PAIRS, "|"), "en,de", keys={"delimiter": "|"}),
    mt("tabs in a .csv", table("en,de", PAIRS, "\t"), "en,de", keys={"delimiter": "\t"}),
    mt(
        "commas in a .tsv", table("en,de", PAIRS), "en,de", keys={"delimiter": ","}, file="data.tsv"
    ),
    mt("tabs in a .txt", tabs(PAIRS), "1,2", keys={"delimiter": "\t"}, file="data.txt"),
    mt(
        "spaces for tabs",
        "".join(f"{english(n)}    {german(n)}\n" for n in range(N)).encode(),
        asks=("only one column was found", "tabs, commas, semicolons or |"),
        file="data.tsv",
    ),
    doc("all quoted", table("text,label", REVIEWS, quoting=csv.QUOTE_ALL), "text,label"),
    doc(
        "quotes with line breaks",
        table("text,label", list(zip(BROKEN, [sentiment(n) for n in range(N)], strict=True))),
        "text,label",
    ),
    doc(
        "doubled quotes",
        table("text,label", rows(N, lambda n: f'he said "{english(n)}", twice', sentiment)),
        "text,label",
    ),
    doc(
        "quoted tabs",
        table("text,label", list(zip(BROKEN, [sentiment(n) for n in range(N)], strict=True)), "\t"),
        "text,label",
        keys={"quotes": True},
        file="data.tsv",
    ),
    mt(
        "quotes that are letters in a .tsv",
        tabs(rows(N, lambda n: f'"{english(n)}" he said', german)),
        "1,2",
        file="data.tsv",
    ),
    mt(
        "quotes that are letters in a .csv",
        "".join(f'"{english(n)}" he said;{german(n)}\n' for n in range(N)).encode(),
        "1,2",
        keys={"delimiter": ";", "quotes": False},
    ),
    mt("line ends of Windows", table("en,de", PAIRS, end="\r\n"), "en,de"),
]
ENCODINGS = [
    doc("a byte order mark", b"\xef\xbb\xbf" + table("text,label", REVIEWS), "text,label"),
    doc(
        "Excel's semicolons and mark",
        b"\xef\xbb\xbf" + table("text,label", REVIEWS, ";", end="\r\n"),
        "text,label",
        keys={"delimiter": ";"},
    ),
    mt(
        "UTF-16, little end",
        table("en,de", PAIRS, "\t").decode().encode("utf-16"),
        "en,de",
        file="data.tsv",
    ),
    mt(
        "UTF-16, big end",
        b"\xfe\xff" + table("en,de", PAIRS, "\t").decode().encode("utf-16-be"),
        "en,de",
        file="data.tsv",
    ),
    mt("UTF-16 without a mark", table("en,de", PAIRS).decode().encode("utf-16-le"), "en,de"),
    mt("a .CSV", table("en,de", PAIRS), "en,de", file="DATA.CSV"),
    mt(
        "gzipped",
        packed(table("en,de", PAIRS, ";")),
        "en,de",
        keys={"delimiter": ";"},
        file="data.csv.gz",
    ),
    mt(
        "Windows-1252, as Excel saves it",
        table("Größe,en,de", [(n, *pair) for n, pair in enumerate(PAIRS)], ";")
        .decode()
        .encode("cp1252"),
        "en,de",
        keys={"delimiter": ";"},
        says=(
            "is not UTF-8, so it is read as Windows-1252; if letters look wrong, save it as UTF-8.",
        ),
    ),
]
JSON = [
    mt("a JSON list", array("en de", PAIRS), "en,de", file="data.json"),
    doc(
        "a JSON list, indented",
        array("id text label", rows(N, lambda n: n, review, sentiment), 2),
        "text,label",
        file="data.json",
    ),
    mt("JSON lines in a .JSONL", lines("en de", PAIRS), "en,de", file="data.JSONL"),
    mt("JSON lines in a .json", lines("en de", PAIRS), "en,de", file="data.json"),
    mt(
        "objects inside",
        lines("id pair", [[n, {"en": english(n), "de": german(n)}] for n in range(N)]),
        "pair.en,pair.de",
        file="data.jsonl",
    ),
    mt(
        "an object around a list",
        b'{"data": ' + array("en de", PAIRS) + b"}",
        "en,de",
        file="data.json",
    ),
    mt(
        "an object around a list, indented",
        b'{\n  "version": 1.0,\n  "rows": '
        + array("id en de", [(n, *pair) for n, pair in enumerate(PAIRS)], 2)
        + b"}\n",
        "en,de",
        file="data.json",
    ),
    mt(
        "an object around two lists",
        b'{"train": ' + array("en de", PAIRS) + b', "test": ' + array("en de", PAIRS) + b"}",
        asks=(
            "is an object with several lists (train, test); save the one that is meant as a file.",
        ),
        file="data.json",
    ),
    mt(
        "a list that is cut off",
        array("en de", PAIRS)[:-30],
        asks=("line 1: is not JSON",),
        file="data.json",
    ),
    mt(
        "keys that are missing",
        lines("en de", PAIRS) + b'{"en": "alone"}\n',
        "en,de",
        keys={"on_bad_row": "skip"},
        file="data.jsonl",
    ),
]
ROWS = [
    doc(
        "ragged rows",
        written([*headed("text,label", REVIEWS), ["short"], ["a", "pos", "more"]]),
        "text,label",
        keys={"on_bad_row": "skip"},
        says=("Line 26", "1 bad row"),
    ),
    doc(
        "empty cells",
        written([*headed("text,label", REVIEWS), ["", "pos"], ["good", ""]]),
        "text,label",
        keys={"on_bad_row": "skip"},
        says=("2 bad rows",),
    ),
    doc(
        "blank lines at the end",
        table("text,label", REVIEWS) + b"\n\n",
        "text,label",
        keys={"on_bad_row": "skip"},
    ),
    doc(
        "inputs that come again", table("text,label", [*REVIEWS, *REVIEWS, *REVIEWS]), "text,label"
    ),
    doc("12 rows", table("text,label", REVIEWS[:12]), "text,label"),
    doc(
        "one class",
        table("text,label", rows(N, review, "spam")),
        asks=("'label'", "always 'spam'", "two classes"),
    ),
    doc(
        "500 classes",
        table("text,label", rows(1000, english, lambda n: f"class {n % 500} of all")),
        "text,label",
    ),
    doc(
        "500 classes, no header",
        written(rows(1000, lambda n: f"{english(n)} {n}", lambda n: f"kind {n % 500}")),
        "1,2",
    ),
    doc("a header alone", b"text,label\n", asks=("no rows",)),
    doc("nothing", b"", asks=("is empty",)),
    doc(
        "a split column",
        table(
            "text,label,split", rows(N, review, sentiment, lambda n: "train" if n % 4 else "test")
        ),
        "text,label",
        keys={"filter": {"split": "train"}},
    ),
]
TEXTS = [
    mt(
        "three languages",
        table("en,de,fr", rows(N, english, german, french)),
        asks=("'en', 'de' or 'fr'", "--source"),
    ),
    mt(
        "three languages, two named",
        table("en,de,fr", rows(N, english, german, french)),
        "en,fr",
        options=("--source", "en", "--target", "fr"),
    ),
    mt(
        "three columns, by number",
        written(rows(N, english, german, french)),
        "3,1",
        options=("--source", "3", "--target", "1"),
    ),
    mt(
        "the other way round",
        table("en,de", PAIRS),
        "de,en",
        options=("--source", "de", "--target", "en"),
    ),
    summed(
        "a summary first",
        table("short,long", rows(N, headline, article)),
        "long,short",
        says=("the longer text",),
    ),
    summed("a summary first, no header", written(rows(N, headline, article)), "2,1"),
    summed(
        "title, text and summary",
        table(
            "title,text,summary", rows(N, lambda n: f"news {n % 7} of the day", article, headline)
        ),
        "text,summary",
    ),
    doc(
        "two labels",
        table("text,topic,sentiment", rows(N, review, lambda n: ANIMALS[n % 4], sentiment)),
        asks=("'topic' or 'sentiment'", "--label"),
    ),
    doc(
        "two labels, one named",
        table("text,topic,sentiment", rows(N, review, lambda n: ANIMALS[n % 4], sentiment)),
        "text,topic",
        options=("--label", "topic"),
    ),
    doc(
        "two texts of one length",
        table("left,right,label", rows(N, english, german, sentiment)),
        asks=("'left' or 'right'", "--source"),
    ),
    mt(
        "no column like that",
        table("en,de", PAIRS),
        asks=("column 'english' is unknown", "en"),
        options=("--source", "english"),
    ),
    mt(
        "no field like that",
        table("en,de", PAIRS),
        asks=("field 'text' is unknown",),
        options=("--column", "text=en"),
    ),
    summed("a label of ten words", table("headline,story", NEWS), "story,headline"),
    lm(
        "lines of text",
        "".join(english(n) + "\n" for n in range(N)).encode(),
        "text",
        file="data.txt",
    ),
    lm("lines of text with an id", table("id,sentence", rows(N, lambda n: n, english)), "sentence"),
    dialog(
        "questions and answers",
        table("question,answer,date", rows(N, english, german, date_of)),
        "question,answer",
    ),
    translit(
        "words",
        tabs(
            rows(
                N,
                lambda n: f"{ANIMALS[n % 8]}{'s' * (n // 8)}",
                lambda n: f"{ANIMALS[n % 8].upper()}{n // 8 * 'S'}",
            )
        ),
        "1,2",
        file="data.tsv",
    ),
    entail(
        "pairs of sentences and a score",
        table(
            "pair_ID,sentence1,sentence2,relatedness_score",
            rows(N, lambda n: n + 1, english, headline, lambda n: n * 0.25),
        ),
        "sentence1,sentence2",
    ),
]
CASES = [*HEADERS, *IDS, *DELIMITERS, *ENCODINGS, *JSON, *ROWS, *TEXTS, *PAIRS_OF_SENTENCES]
