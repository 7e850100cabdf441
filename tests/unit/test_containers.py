"""Inputs in tables, columns, arrays and iterators: the run's columns are read, or a sentence refuses."""

import importlib
from collections import namedtuple
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pytest

import sixjars
import sixjars_runtime
from sixjars.data.fields.points import PointsField, PointsSettings
from sixjars.data.fields.text import TextField, TextSettings
from sixjars.errors import DataError, RequestError, SixJarsError
from sixjars.runs.prediction.predictor import Predictor
from sixjars_runtime.containers import by_name, inputs_of
from tests.conftest import once

WORDS = ["namaste", "ghar", "abc"]
ROWS: list[dict[str, Any]] = [
    {"number": at, "roman": word, "devanagari": word[::-1]} for at, word in enumerate(WORDS)
]
COLUMNS: dict[str, list[Any]] = {name: [row[name] for row in ROWS] for name in ROWS[0]}
ONE = {"source": "body"}
PAIR = {"premise": "first", "hypothesis": "second"}


@pytest.fixture(scope="module")
def predictor(run: Path) -> Predictor:
    return sixjars.load(run)


@pytest.fixture(scope="module")
def runtime(run: Path, tmp_path_factory: pytest.TempPathFactory) -> Any:
    return sixjars_runtime.load(
        once(tmp_path_factory, "exported", lambda out: sixjars.export(run, out))
    )


def texts(predictions: Any) -> list[str]:
    return [prediction.text for prediction in predictions]


def module(name: str) -> Any:
    pytest.importorskip(name)
    return importlib.import_module(name)


def pandas_of(columns: dict[str, list[Any]]) -> Any:
    count = len(next(iter(columns.values())))
    return module("pandas").DataFrame(columns, index=range(7, 7 + count))


def polars_of(columns: dict[str, list[Any]]) -> Any:
    return module("polars").DataFrame(columns)


class HubTable:
    """What `datasets.Dataset` offers: names of columns, columns by name, and rows when it is iterated over."""

    def __init__(self, columns: dict[str, list[Any]]) -> None:
        self.data = columns

    @property
    def column_names(self) -> list[str]:
        return list(self.data)

    def __getitem__(self, name: str) -> list[Any]:
        return self.data[name]

    def __iter__(self) -> Iterator[dict[str, Any]]:
        rows = zip(*self.data.values(), strict=True)
        return (dict(zip(self.data, row, strict=True)) for row in rows)


class Stream(HubTable):
    """What `datasets.IterableDataset` offers where nobody knows its columns."""

    column_names = None  # type: ignore[assignment]


TABLES: dict[str, Callable[[dict[str, list[Any]]], Any]] = {
    "pandas": pandas_of,
    "polars": polars_of,
    "arrow": pyarrow.table,
    "batch": pyarrow.RecordBatch.from_pydict,
    "datasets": HubTable,
    "dict of lists": dict,
    "dict of tuples": lambda columns: {name: tuple(some) for name, some in columns.items()},
    "dict of arrays": lambda columns: {name: np.array(some) for name, some in columns.items()},
    "dict of series": lambda columns: dict(pandas_of(columns)),
}
SEVERAL: dict[str, Callable[[list[str]], Any]] = {
    "series": lambda words: module("pandas").Series(words, index=[5, 5, 9]),
    "index": lambda words: module("pandas").Index(words),
    "categories": lambda words: module("pandas").Series(words, dtype="category"),
    "polars": lambda words: module("polars").Series(words),
    "array": pyarrow.array,
    "chunked array": lambda words: pyarrow.chunked_array([words[:1], words[1:]]),
    "numpy": np.array,
    "objects": lambda words: np.array(words, dtype=object),
    "tuple": tuple,
    "generator": lambda words: (word for word in words),
    "iterator": iter,
    "rows": lambda words: [{"roman": word, "other": 7} for word in words],
    "values of a dict": lambda words: {at: word for at, word in enumerate(words)}.values(),
}


@pytest.mark.parametrize("kind", TABLES)
def test_a_table_gives_the_columns_of_the_run(
    kind: str, predictor: Predictor, runtime: Any
) -> None:
    expected = predictor.predict(WORDS)
    assert predictor.predict(TABLES[kind](COLUMNS)) == expected
    assert [found[0] for found in predictor.nbest(TABLES[kind](COLUMNS))] == expected
    assert texts(runtime.predict(TABLES[kind](COLUMNS))) == texts(expected)
    # columns may be called as the fields are
    assert predictor.predict(TABLES[kind]({"source": WORDS})) == expected


@pytest.mark.parametrize("kind", SEVERAL)
def test_a_column_or_an_iterator_gives_its_values(
    kind: str, predictor: Predictor, runtime: Any
) -> None:
    expected = predictor.predict(WORDS)
    assert predictor.predict(SEVERAL[kind](WORDS)) == expected
    assert texts(runtime.predict(SEVERAL[kind](WORDS))) == texts(expected)


def test_one_input_is_never_read_letter_by_letter(predictor: Predictor) -> None:
    expected = predictor.predict(["ghar"])[0]
    row = namedtuple("row", "roman number")  # what `itertuples` gives
    several = ("ghar", np.str_("ghar"), np.array("ghar"))
    for one in (*several, {"roman": "ghar", "number": 3}, row("ghar", 3)):
        assert predictor.predict(one) == expected
        with pytest.raises(DataError, match="give a list of inputs, not one input"):
            predictor.nbest(one)


def test_a_row_of_a_table_is_one_input(predictor: Predictor) -> None:
    table = pandas_of(COLUMNS)
    expected = predictor.predict(WORDS)
    assert predictor.predict(table.iloc[1]).text == expected[1].text
    assert predictor.predict([row for _, row in table.iterrows()]) == expected
    assert predictor.predict(table.itertuples()) == expected
    assert predictor.predict(module("polars").DataFrame(COLUMNS).iter_rows(named=True)) == expected


# where a text is from: no field of the run, beside other columns
SOURCES = {"word": WORDS, "source": WORDS}
LACKS = "the table has no column 'roman', which this run reads; its columns: "
NO_TEXT = "give a text, or a list of inputs, but not "
REFUSED: dict[str, tuple[Callable[[], Any], str]] = {
    "pandas": (lambda: pandas_of(SOURCES), f"{LACKS}'word', 'source'."),
    "polars": (lambda: polars_of(SOURCES), f"{LACKS}'word', 'source'."),
    "arrow": (lambda: pyarrow.table(SOURCES), f"{LACKS}'word', 'source'."),
    "datasets": (lambda: HubTable(SOURCES), f"{LACKS}'word', 'source'."),
    "no columns": (lambda: module("pandas").DataFrame(), f"{LACKS}none."),
    "numbers": (lambda: module("pandas").DataFrame([["a", "b"]]), f"{LACKS}0, 1."),
    "twice": (
        lambda: module("pandas").DataFrame([["a", "b"]], columns=["roman", "roman"]),
        "the table has the column 'roman' 2 times; rename one.",
    ),
    "stream": (
        lambda: Stream({}),
        "the columns of this Stream are not known; make a pandas or Arrow table of it.",
    ),
    "lazy": (
        lambda: module("polars").LazyFrame({"roman": WORDS}),
        "the column 'roman' cannot be read from a LazyFrame; make a pandas or Arrow table of it.",
    ),
    "splits": (
        lambda: {"train": pyarrow.table(COLUMNS)},
        "'train' of the dict is a whole table; give that table alone.",
    ),
    "tables": (
        lambda: iter([pyarrow.table(COLUMNS)]),
        "input 1 is a whole table (Table); give each table alone, or all of them as one.",
    ),
    "set": (
        lambda: set(WORDS),
        "a set has no order, so nobody could tell which output is of which input; give a list, sorted(INPUTS).",
    ),
    "bytes": (lambda: b"ghar", f"{NO_TEXT}b'ghar' (bytes)."),
    "bytearray": (lambda: bytearray(b"ghar"), f"{NO_TEXT}bytearray(b'ghar') (bytearray)."),
    "none": (lambda: None, f"{NO_TEXT}None (NoneType)."),
    "number": (lambda: 7, f"{NO_TEXT}7 (int)."),
}


@pytest.mark.filterwarnings("ignore:Determining the column names:Warning")
@pytest.mark.parametrize("kind", REFUSED)
def test_what_is_refused(kind: str, predictor: Predictor, runtime: Any) -> None:
    make, sentence = REFUSED[kind]
    for asked in (predictor.predict, predictor.nbest, runtime.predict, runtime.nbest):
        with pytest.raises(Exception) as caught:  # noqa: PT011 - the runtime has an error of its own
            asked(make())
        assert type(caught.value).__name__ == "DataError"
        assert str(caught.value) == sentence


@pytest.mark.parametrize(
    "empty", [[], (), iter(()), {}.values(), pyarrow.table({"roman": pyarrow.array([], "str")})]
)
def test_no_inputs_have_no_outputs(empty: Any, predictor: Predictor) -> None:
    assert predictor.predict(empty) == []


def test_a_missing_value_is_told_with_its_number(predictor: Predictor, runtime: Any) -> None:
    some = ["ghar", None, "abc", ""]
    expected = predictor.predict(["ghar", "x", "abc"])
    makers: list[Any] = [pandas_of, polars_of, pyarrow.table, dict]
    tables = [make({"roman": some}) for make in makers]
    tables.append(pandas_of({"roman": ["ghar", float("nan"), "abc", ""]}))
    for asked in (predictor, runtime):
        for table in tables:
            good, bad, other, empty = asked.predict(table)
            assert (good.text, other.text) == (expected[0].text, expected[2].text)
            assert bad.error == "input 2: the source has no value."
            assert empty.error == "input 4: the source is empty."
    values = ["ghar", None, float("nan"), module("pandas").NA]
    series = module("pandas").Series(values, dtype=object)
    for asked in (predictor, runtime):
        errors = [found.error for found in asked.predict(series)[1:]]
        assert errors == [f"input {number}: the source has no value." for number in (2, 3, 4)]


# What a list is depends on the field: one document, one list of points, or several texts.


def takes(field: Any) -> Callable[[str, list[Any]], bool]:
    def one_value(name: str, value: list[Any]) -> bool:
        try:
            field.text_of(value)
        except (ValueError, SixJarsError):
            return False
        return True

    return one_value


TEXT = takes(TextField("source", TextSettings()))
DOCUMENT = takes(TextField("source", TextSettings(segments="lines")))
POINTS = takes(PointsField("source", PointsSettings()))


def test_a_list_in_a_dict_is_a_document_where_the_run_reads_documents() -> None:
    document, points = ["One.", "Two."], [[0.5, 1.0], [2.0, 3.0]]
    assert inputs_of({"body": document}, ONE, DOCUMENT) == ([{"body": document}], True)
    assert inputs_of({"body": np.array(document)}, ONE, DOCUMENT)[1]
    assert inputs_of({"body": points}, ONE, POINTS) == ([{"body": points}], True)
    rows = [{"source": "One."}, {"source": "Two."}]
    assert inputs_of({"body": document}, ONE, TEXT) == (rows, False)
    assert inputs_of({"body": [document] * 2}, ONE, DOCUMENT) == ([{"source": document}] * 2, False)
    assert inputs_of({"body": [points] * 2}, ONE, POINTS) == ([{"source": points}] * 2, False)
    # a column has a value for each row, whatever those are
    assert inputs_of({"body": pyarrow.array(document)}, ONE, DOCUMENT) == (rows, False)


def test_documents_in_cells_stay_whole() -> None:
    documents = [["One.", "Two."], ["Three."]]
    expected = ([{"source": one} for one in documents], False)
    for make in (pyarrow.table, pandas_of, polars_of):
        assert inputs_of(make({"body": documents}), ONE, DOCUMENT) == expected
    arrays = [np.array(one) for one in documents]  # as pandas reads them from Parquet
    assert inputs_of(pandas_of({"body": arrays}), ONE, DOCUMENT) == expected
    assert inputs_of(documents, ONE, DOCUMENT) == (documents, False)


def test_numbers_in_a_table_are_texts_as_in_training() -> None:
    expected = ([{"source": "3"}, {"source": "4.5"}], False)
    assert inputs_of(pyarrow.table({"body": [3.0, 4.5]}), ONE, TEXT) == expected
    assert inputs_of(pandas_of({"body": [3.0, 4.5]}), ONE, TEXT) == expected
    whole = [{"source": "3"}, {"source": "4"}]
    assert inputs_of(pandas_of({"body": [3, 4]}), ONE, TEXT)[0] == whole


def test_a_column_may_be_called_as_an_attribute_of_a_table() -> None:
    expected = ([{"source": "one"}], False)
    for name in ("column_names", "columns", "index", "values"):
        assert inputs_of(pandas_of({"body": ["one"], name: ["x"]}), ONE, TEXT) == expected
        assert inputs_of(pandas_of({name: ["one"]}), {"source": name}, TEXT) == expected


def test_columns_inside_of_objects() -> None:
    table = pyarrow.table({"meta": [{"body": "one"}, {"body": None}]})
    rows = [{"source": "one"}, {"source": None}]
    assert inputs_of(table, {"source": "meta.body"}, TEXT) == (rows, False)
    flat = pyarrow.table({"meta.body": ["one"]})
    assert inputs_of(flat, {"source": "meta.body"}, TEXT) == ([{"source": "one"}], False)


def test_several_inputs_come_from_several_columns() -> None:
    table = {"second": ["b", "d"], "first": ["a", "c"], "label": ["x", "y"]}
    expected = [{"premise": "a", "hypothesis": "b"}, {"premise": "c", "hypothesis": "d"}]
    for given in (table, pyarrow.table(table), pandas_of(table), polars_of(table), HubTable(table)):
        assert inputs_of(given, PAIR, TEXT) == (expected, False)
    one = {"first": "a", "second": "b"}
    assert inputs_of(one, PAIR, TEXT) == ([one], True)
    with pytest.raises(DataError) as caught:
        inputs_of({"first": ["a"], "second": ["b", "c"]}, PAIR, TEXT)
    assert str(caught.value) == (
        "the lists of a dict must have equally many values, but premise has 1, hypothesis has 2."
    )
    with pytest.raises(DataError) as caught:
        inputs_of(np.array(["a", "b"]), PAIR, TEXT)
    assert str(caught.value) == (
        "this run reads premise and hypothesis, but one column is given (ndarray); give a table that has them all, "
        "or a list of dicts."
    )


def test_a_column_by_number_is_not_the_key_of_a_dict() -> None:
    """The first column of a file is 1, but that of a table without names is 0."""
    with pytest.raises(ValueError, match=r"must name source, but has 0, 1\."):
        by_name({0: "the text", 1: "the label"}, {"source": 1})
    assert by_name({"source": "a"}, {"source": 1}) == {"source": "a"}
    found = inputs_of(pyarrow.table({"source": ["a"]}), {"source": 1}, TEXT)
    assert found == ([{"source": "a"}], False)
    with pytest.raises(DataError) as caught:
        inputs_of(pyarrow.table({"source": ["a"], "1": ["b"]}), {"source": 1}, TEXT)
    assert str(caught.value) == (
        "this run was trained on column 1 of a file without a header; call the columns of the table 'source', and "
        "leave out all others; its columns: 'source', '1'."
    )


def test_the_client_knows_no_columns() -> None:
    client = sixjars.Client("http://127.0.0.1:1")
    with pytest.raises(RequestError) as caught:
        client.predict(pyarrow.table(COLUMNS))
    assert str(caught.value) == (
        "give a list of inputs, not a table (Table): of pandas, table['COLUMN'].tolist(), or "
        "table[COLUMNS].to_dict('records') for several columns."
    )
    with pytest.raises(DataError, match="a set has no order"):
        client.predict({"a"})  # type: ignore[arg-type]


def test_texts_to_align_are_no_table() -> None:
    for table in (pyarrow.table(COLUMNS), COLUMNS):
        with pytest.raises(DataError) as caught:
            sixjars.align(table, table)  # type: ignore[arg-type]
        told = "Give two texts to align, each a file or a list, not a table"
        assert str(caught.value) == f"{told} ({type(table).__name__})."
    words = ["a b", "b a"]
    found, expected = (sixjars.align(some, some) for some in (pyarrow.array(words), words))
    assert list(found.to_pharaoh()) == list(expected.to_pharaoh())
