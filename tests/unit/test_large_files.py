"""Large files: read by blocks, the same with any number of cores, and told of."""

import gc
import os
import signal
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sixjars import progress
from sixjars.data import flat
from sixjars.data.batches import Batches, IdColumn, by_length, token_borders
from sixjars.data.flat import flattened
from sixjars.data.storage import spool
from sixjars.data.storage.spool import Spool, filtered
from sixjars.data.tables import Examples
from sixjars.data.text import files
from sixjars.errors import DataError
from sixjars.progress import Reporter, listening
from sixjars.runs.data.duplicates import _first_seen, _hashes, numbered
from sixjars.runs.data.splits import Splits, splits_of
from sixjars.runs.recipes import Blueprint, recipe_of
from tests.unit.conftest import Server
from tests.unit.rows import line_numbers, reading, rows_of

LINES = [
    "a\tb",
    "é\t각",
    "",
    "only one",
    "x\ty\tz",
    "\t",
    "c\td\r",
    "w\t\r\r",
    "\ufeffq\tr",
    "“s”\t t ",
]
SPLITS = ("train", "valid")


def outcome(folder: Path, files: Any, columns: Any, **more: Any) -> Any:
    """What is read of a file, or the sentence that says why nothing is."""
    try:
        found = reading(folder, files, columns, **more)
    except DataError as error:
        return str(error)
    return rows_of(found), line_numbers(found), found.skipped, found.notes


@settings(max_examples=80, deadline=None)
@given(
    lines=st.lists(
        st.sampled_from([line.encode() for line in LINES] + [b"\xff\tb", b"a\t\xc3"]), max_size=12
    ),
    size=st.integers(1, 20),
    end=st.sampled_from([b"", b"\n", b"\r\n"]),
    skip=st.sampled_from(["skip", "error"]),
)
def test_blocks_of_any_size_give_the_same(
    lines: Sequence[bytes],
    size: int,
    end: bytes,
    skip: str,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    folder = tmp_path_factory.mktemp("blocks")
    content = b"\n".join(lines) + end
    (folder / "a.tsv").write_bytes(content)
    (folder / "a.txt").write_bytes(content)
    (folder / "b.txt").write_bytes(b"\n".join([b"1"] * len(lines)) + end)
    ways: list[tuple[Any, Any]] = [
        ("a.tsv", {"source": 1, "target": 2}),
        ("a.txt", {"source": "text"}),
        ({"en": "a.txt", "de": "b.txt"}, {"source": "en", "target": "de"}),
    ]
    for names, columns in ways:
        want = outcome(folder, names, columns, on_bad_row=skip)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(files, "FIRST", size)
            patch.setattr(files, "BLOCK", size)
            assert outcome(folder, names, columns, on_bad_row=skip) == want


def test_parallel_files_whose_blocks_differ(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "FIRST", 8)
    monkeypatch.setattr(files, "BLOCK", 8)
    (tmp_path / "en").write_text("".join(f"long line {number}\n" for number in range(9)))
    (tmp_path / "de").write_text("".join(f"{number}\n" for number in range(9)))
    found = reading(tmp_path, {"en": "en", "de": "de"})
    assert rows_of(found) == [(f"long line {number}", str(number)) for number in range(9)]
    assert line_numbers(found) == list(range(1, 10))
    (tmp_path / "de").write_text("".join(f"{number}\n" for number in range(30)))
    told = outcome(tmp_path, {"en": "en", "de": "de"}, {"source": "en", "target": "de"})
    assert told == (
        f"Parallel files must have equally many lines, but {tmp_path / 'en'} has 9, "
        f"{tmp_path / 'de'} has 30."
    )


def corpus(folder: Path, count: int = 300) -> Splits:
    noise = np.random.default_rng(0)
    lines = [" ".join(f"w{word}" for word in noise.zipf(1.5, 5) % 40) for _ in range(count)]
    (folder / "a.tsv").write_text(
        "en\tde\n" + "".join(f"{line}\t{line.upper()}.\n" for line in lines)
    )
    sides = {
        "source": {"column": "en", "size": 30},
        "target": {"column": "de", "tokens": "bpe", "size": 40},
    }
    data = {"folder": str(folder), "train": "a.tsv", **sides}
    return splits_of(Blueprint.of(recipe_of({"task": "translation", "data": data}, "a test")))


def content(made: Splits) -> list[Any]:
    """All that a training depends on."""
    sets = (made.train, made.valid)
    ids = [
        part.tolist()
        for one in sets
        for name in ("source", "target")
        for part in one.table.ids(name)
    ]
    return [made.fingerprints, [field.to_json() for field in made.fields.all.values()], ids]


@pytest.mark.parametrize("count", [1, 2, 3])
def test_any_number_of_cores_gives_the_same(
    count: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    want = content(corpus(tmp_path))
    monkeypatch.setattr(flat, "cores", lambda: count)
    monkeypatch.setattr(flat, "MOST_ROWS", 17)
    monkeypatch.setattr(files, "FIRST", 100)
    monkeypatch.setattr(files, "BLOCK", 500)
    monkeypatch.setattr(spool, "IN_MEMORY", 1000)
    monkeypatch.setenv("SIXJARS_CACHE", str(tmp_path / "other"))
    assert content(corpus(tmp_path)) == want
    assert all(
        len(path.name) == 64 or path.name == ".pruned" for path in (tmp_path / "other").iterdir()
    )


def test_what_is_done_is_told_with_how_much_there_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SIXJARS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(progress, "_OFTEN", -1.0)
    monkeypatch.setattr(progress, "_ROWS", 1)
    monkeypatch.setattr(flat, "MOST_ROWS", 50)
    monkeypatch.setattr(files, "FIRST", 1000)
    monkeypatch.setattr(files, "BLOCK", 1000)
    heard: dict[str, list[tuple[int, int | None]]] = {}

    class Listener(Reporter):
        def reading(self, what: str, *, rows: int, total: int | None = None) -> None:
            heard.setdefault(what, []).append((rows, total))

    with listening(Listener()):
        corpus(tmp_path)
    fields = ("source", "target")
    work = [
        f"{doing} {field}"
        for doing in ("learning the vocabulary of", "tokenizing")
        for field in fields
    ]
    assert list(heard) == [f"reading {tmp_path / 'a.tsv'}", *work]
    for what in work:
        assert heard[what][0][0] <= 50
        assert {total for _, total in heard[what]} <= {280, 20}
    for rows, total in heard[f"reading {tmp_path / 'a.tsv'}"]:
        assert total is not None
        assert rows <= total <= 400  # about 300, as the share of the file says


def test_a_large_table_is_in_a_file_that_nobody_sees(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SIXJARS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(spool, "IN_MEMORY", 100)
    gc.collect()
    before = pyarrow.total_allocated_bytes()  # by tests that ran before in this process
    pieces = [
        pyarrow.table({"text": [f"text {number}"] * 9, "line": [number] * 9})
        for number in range(20)
    ]
    made = Spool()
    for piece in pieces:
        made.add(piece)
    table = made.table()
    assert table.equals(pyarrow.concat_tables(pieces))
    allocated = pyarrow.total_allocated_bytes() - before
    assert allocated < table.nbytes + sum(piece.nbytes for piece in pieces)
    assert list((tmp_path / "cache").iterdir()) == []
    mask = np.arange(180) % 7 > 2
    assert filtered(table, mask).equals(pyarrow.concat_tables(pieces).filter(pyarrow.array(mask)))


def test_a_folder_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("SIXJARS_CACHE", str(tmp_path / "file"))
    monkeypatch.setattr(spool, "IN_MEMORY", 1)
    with pytest.raises(DataError) as caught:
        Spool().add(pyarrow.table({"text": ["one"]}))
    assert str(caught.value) == (
        f"Data that is being read cannot be kept in {tmp_path / 'file'}: File exists; "
        "set SIXJARS_CACHE to a folder that can be written."
    )


@given(texts=st.lists(st.sampled_from("abcde")), more=st.lists(st.sampled_from("xy"), min_size=40))
def test_equal_rows_are_numbered_as_they_come(texts: list[str], more: list[str]) -> None:
    firsts = list(dict.fromkeys(texts))
    column = pyarrow.chunked_array([texts[:3], texts[3:]], pyarrow.string())
    assert _first_seen(_hashes(column)).tolist() == [firsts.index(text) for text in texts]
    both = list(zip(texts, more, strict=False))
    if both:
        examples = Examples.of(
            {"one": [one for one, _ in both], "two": [two for _, two in both]}, where="a test"
        )
        number = numbered(examples, ["one", "two"])
        assert (
            len(set(zip(both, number.tolist(), strict=True)))
            == len(set(both))
            == len(set(number.tolist()))
        )


@given(
    lengths=st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=60),
    limit=st.integers(1, 60),
)
def test_batches_are_cut_as_row_by_row(lengths: list[tuple[int, int]], limit: int) -> None:
    given_inputs, given_targets = (
        np.array([pair[side] for pair in lengths], dtype=np.int64) for side in (0, 1)
    )
    order = by_length(given_inputs, given_targets)
    assert order.tolist() == np.lexsort((given_targets, given_inputs)).tolist()
    inputs, targets = given_inputs[order], given_targets[order]
    borders, begin, target = [0], 0, 0
    for at in range(len(order)):
        target = max(target, int(targets[at]))
        if at > begin and (at - begin + 1) * (int(inputs[at]) + target) > limit:
            borders.append(at)
            begin, target = at, int(targets[at])
    assert token_borders(inputs, targets, limit).tolist() == (
        [*borders, len(order)] if len(order) else [0]
    )


@pytest.mark.parametrize("longest", [20, 70_000])
def test_chance_orders_rows_of_equal_lengths(longest: int) -> None:
    noise = np.random.default_rng(0)
    inputs = noise.integers(0, 5, 200)
    targets = noise.integers(0, longest, 200)
    chance = noise.random(200)
    assert (
        by_length(inputs, targets, chance).tolist()
        == np.lexsort((chance, targets, inputs)).tolist()
    )


def test_what_is_left_of_a_plan() -> None:
    column = IdColumn(flattened([[7]] * 10))
    plan = Batches({"source": column}, column, batch_examples=2).plan(epoch=0, accumulate=2)
    whole = [[rows.tolist() for rows in group] for group in plan]
    assert [len(group) for group in whole] == [2, 2, 1]
    assert [[rows.tolist() for rows in group] for group in plan[1:]] == whole[1:]
    assert (len(plan), len(plan[1:]), len(plan[3:])) == (3, 2, 0)
    assert [rows.tolist() for rows in plan[-1]] == whole[-1]
    with pytest.raises(IndexError):
        plan[3]


WORK = """
import os, sys, time
from pathlib import Path
from sixjars.data.storage import spool
from sixjars.data.text.tokenizer import TextTokenizer
from sixjars.runs.data.splits import Blueprint, splits_of
from sixjars.runs.recipes import recipe_of
folder, stuck = Path(sys.argv[1]), sys.argv[2] == "stuck"
spool.IN_MEMORY = 1000
real, calls = TextTokenizer.encode_flat, []
def slow(self, texts, **more):
    calls.append(1)
    if stuck and len(calls) > 1:
        (folder / "working").touch()
        time.sleep(2)
    return real(self, texts, **more)
TextTokenizer.encode_flat = slow
sides = {"source": {"column": "en"}, "target": {"column": "de"}}
data = {"folder": str(folder), "train": "a.tsv", **sides}
made = splits_of(Blueprint.of(recipe_of({"task": "translation", "data": data}, "a test")))
print(len(made.train), made.train.table.ids("target")[0].sum(), flush=True)
os._exit(0)
"""


@pytest.mark.skipif(not hasattr(os, "killpg"), reason="signals of POSIX")
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_a_kill_in_the_middle_leaves_no_broken_cache(
    number: signal.Signals, tmp_path: Path, server: Server
) -> None:
    (tmp_path / "a.tsv").write_text(
        "en\tde\n" + "".join(f"word{at} a\tb wort{at}\n" for at in range(400))
    )
    cache = tmp_path / "cache"
    own = {"SIXJARS_CACHE": str(cache)}
    process = server.start(tmp_path, "stuck", before=WORK, env=own)
    end = time.monotonic() + 60
    while not (tmp_path / "working").exists():
        assert time.monotonic() < end
        time.sleep(0.01)
    process.kill(number)
    assert process.wait().code != 0
    assert all(
        path.name.startswith(".making-") for path in cache.iterdir() if path.name != ".pruned"
    )
    again = server.start(tmp_path, "quick", before=WORK, env=own).wait()
    assert again.code == 0
    assert again.out.split()[0] == "380"
    assert all(len(path.name) == 64 for path in cache.iterdir() if path.name != ".pruned")
