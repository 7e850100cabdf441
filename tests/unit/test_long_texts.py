"""Texts longer than `max_length`: cut, dropped or an error; scores are on whole texts."""

import math
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml

import sixjars
from sixjars.data.dataset import Dataset, Fields
from sixjars.data.field import Equipment
from sixjars.data.fields.text import TextField, TextSettings
from sixjars.data.storage.cache import Examples
from sixjars.data.text.statistics import longest_of
from sixjars.errors import DataError
from sixjars.flow.values import Padded
from sixjars.runs.data.splits import notes_on, splits_of
from sixjars.runs.recipes import Blueprint, recipe_of
from sixjars_runtime.special_tokens import STOP

LONG, SHORT = "a b c d a b c d", "a b c"


def text(name: str, *, options: dict[str, Any] | None = None, **settings: Any) -> TextField:
    made = TextField(name, TextSettings(**{"max_length": 4, **settings})).learned([LONG])
    return made if options is None else made.equipped(Equipment(target_options=options))


def dataset(
    source: TextField, target: TextField, sources: list[str], targets: list[str]
) -> Dataset:
    examples = Examples.of({"source": sources, "target": targets}, where="rows.tsv")
    return Dataset.in_memory(examples, Fields({"source": source}, target))


def trained_on(data: Dataset) -> dict[int, tuple[list[int], list[int]]]:
    """The ids of each row that training sees: source and target."""
    batches, found = data.batches(training=True, batch_examples=2), {}
    for rows in (rows for group in batches.plan(epoch=0) for rows in group):
        batch = batches.collate(rows)
        for at, row in enumerate(rows.tolist()):
            both = (batch.inputs["source"], batch.target)
            found[row] = tuple(padded.values[at][padded.mask[at]].tolist() for padded in both)
    return found  # type: ignore[return-value]


def scored_on(data: Dataset) -> list[list[int]]:
    batch = data.batches().collate(torch.arange(len(data)))
    return [
        ids[mask].tolist() for ids, mask in zip(batch.target.values, batch.target.mask, strict=True)
    ]


def test_a_long_target_is_dropped_and_counted_unless_told_otherwise() -> None:
    source, target = text("source"), text("target", options={})
    long, short = (target.tokenizer.encode(one) for one in (LONG, SHORT))
    data = dataset(source, target, ["a"] * 3, [SHORT, LONG, SHORT])
    assert set(trained_on(data)) == {0, 2}
    assert trained_on(data)[0][1] == [*short, STOP]
    assert (data.dropped, data.usable.tolist()) == (1, [True, False, True])
    assert data.why_dropped == "with more tokens than data.target.max_length (4)"
    assert scored_on(data) == [[*short, STOP], [*long, STOP], [*short, STOP]]


def test_why_rows_were_dropped_is_told_with_counts(call: Any, tmp_path: Path) -> None:
    """A row that is too long and has a rare label is counted once."""
    rows = [
        f"{'a b c d e f' if n < 3 else 'a b'} "
        f"{n}\t{'rare' if n == 0 else 'odd' if n == 50 else 'ab'[n % 2]}"
        for n in range(60)
    ]
    (tmp_path / "texts.tsv").write_text("\n".join(["text\tlabel", *rows, ""]))
    source = {"segments": "none", "max_length": 5, "on_long": "drop"}
    files = dict.fromkeys(["train", "valid"], str(tmp_path / "texts.tsv"))
    made = {
        "task": "document_classification",
        "data": {**files, "label": {"min_count": 2}, "source": source},
        "model": {"encoder": {"kind": "text", "size": 4}, "decoder": {"size": 4}},
        "learning": {"steps": 1},
    }
    (tmp_path / "mine.yaml").write_text(yaml.safe_dump(made))
    said = call("train", tmp_path / "mine.yaml", "--out", tmp_path / "run")
    assert said.out.splitlines()[0] == (
        "4 training rows were left out: 3 with more tokens than data.source.max_length (5), 1 "
        "because its label has 1 row (data.label.min_count): 'odd'"
    )


def test_a_target_that_is_cut_does_not_end_there() -> None:
    target = text("target", options={}, on_long="cut")
    long, short = (target.tokenizer.encode(one) for one in (LONG, SHORT))
    data = dataset(text("source"), target, ["a"] * 3, [SHORT, LONG, "a b c d"])
    expected = {0: [*short, STOP], 1: long[:4], 2: [*long[:4], STOP]}
    assert {row: ids for row, (_, ids) in trained_on(data).items()} == expected
    assert data.dropped == 0
    assert scored_on(data)[1] == [*long, STOP]


def test_a_long_target_may_be_an_error() -> None:
    data = dataset(
        text("source"), text("target", options={}, on_long="error"), ["a", "a"], [SHORT, LONG]
    )
    with pytest.raises(DataError) as error:
        data.batches(training=True)
    assert str(error.value) == (
        "rows.tsv: the target of line 2 has 8 tokens, but data.target.max_length is 4; raise it, "
        "or say on_long: cut or drop."
    )
    assert len(scored_on(data)[1]) == 9


def test_a_long_input_is_cut_dropped_or_an_error() -> None:
    ids = text("source").tokenizer.encode(LONG)
    cut, drop, error = (
        dataset(text("source", on_long=how), text("target", options={}), [SHORT, LONG], ["a", "a"])
        for how in (None, "drop", "error")
    )
    assert (trained_on(cut)[1][0], cut.dropped) == (ids[:4], 0)
    assert (set(trained_on(drop)), drop.dropped) == ({0}, 1)
    told = r"^rows\.tsv: the source of line 2 has 8 tokens, but data\.source\.max_length"
    with pytest.raises(DataError, match=told):
        _ = error.dropped


def test_turns_that_are_left_out_are_a_cut_however_short_the_rest() -> None:
    source = text("source", segments="turns", max_length=8)
    data = dataset(source, text("target", options={}), [f"{LONG}\na", "a\nb"], ["a", "a"])
    assert source.truncated(data.table, [0, 1]).tolist() == [True, False]


def test_training_tells_how_many_texts_were_cut(tmp_path: Path) -> None:
    """A text of just `max_length` tokens was not cut."""
    rows = [
        ("a b c d e f" if n < 30 else "a b c d", "x y z" if n < 5 else "x y") for n in range(50)
    ]
    (tmp_path / "pairs.tsv").write_text(
        "".join(f"{n} {one}\t{other}\n" for n, (one, other) in enumerate(rows))
    )
    data = {
        **{"train": str(tmp_path / "pairs.tsv"), "valid": str(tmp_path / "pairs.tsv")},
        **{"source": {"column": 1, "max_length": 5}, "target": {"column": 2, "max_length": 2}},
    }

    def told(**changes: dict[str, Any]) -> list[str]:
        both = {name: {**data[name], **changes.get(name, {})} for name in ("source", "target")}  # type: ignore[dict-item]
        made = {"task": "translation", "data": {**data, **both}}
        found = notes_on(splits_of(Blueprint.of(recipe_of(made, "a test"))))
        return [note for note in found if "cut" in note]

    more = "; raise it if what comes after that matters."
    cut = f"25 of 45 training inputs (55.6 %) were cut at data.source.max_length (5 tokens){more}"
    assert told() == [cut]
    assert told(source={"max_length": 7}) == told(source={"on_long": "drop"}) == []
    assert told(target={"on_long": "cut"}) == [
        f"30 of 50 training inputs (60 %) were cut at data.source.max_length (5 tokens){more}",
        "5 of 50 training texts of target (10 %) were cut at data.target.max_length (2 "
        f"tokens){more}",
    ]


def test_of_very_many_texts_the_share_that_was_cut_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "pairs.tsv").write_text("".join(f"{n} a b c\tx\n" for n in range(80)))
    monkeypatch.setattr("sixjars.runs.data.splits.LOOKED_AT", 10)
    files = dict.fromkeys(["train", "valid"], str(tmp_path / "pairs.tsv"))
    data = {**files, "source": {"column": 1, "max_length": 3}, "target": {"column": 2}}
    recipe = recipe_of({"task": "translation", "data": data}, "a test")
    found = notes_on(splits_of(Blueprint.of(recipe)))
    assert [note.partition(" cut ")[0] for note in found if "cut" in note] == [
        "about 100 % of 80 training inputs were"
    ]


def test_the_ends_of_segments_count_as_they_do_where_a_text_is_cut() -> None:
    source = text("source", segments="lines", on_long="drop")
    data = dataset(source, text("target", options={}), ["a b\nc", "a\nb", "a b c"], ["a"] * 3)
    assert data.usable.tolist() == [False, True, True]  # 5, 4 and 4 ids


@pytest.mark.parametrize("length", [4, 99])
@pytest.mark.parametrize("how", ["cut", "drop"])
def test_alignments_reach_as_far_as_what_is_trained_on(how: Any, length: int) -> None:
    source, target = text("source", max_length=length), text("target", options={}, on_long=how)
    links = " ".join(f"{place}-{place}" for place in range(8))
    both = [LONG, SHORT]
    columns = {"source": both, "target": both, "alignment": [links, "0-0 1-1 2-2"]}
    data = Dataset.in_memory(
        Examples.of(columns, where="rows.tsv"), Fields({"source": source}, target)
    )
    batches = data.batches(training=True, guided=True)
    [[rows]] = batches.plan(epoch=0)
    batch = batches.collate(rows)
    assert batch.alignment is not None
    for row, truth_TS in zip(rows.tolist(), batch.alignment, strict=True):
        count = (4, 3)[row]
        assert torch.equal(truth_TS[:count, :count], torch.eye(count))
        assert truth_TS.sum() == count


def written(folder: Path, lines: list[str], **target: Any) -> dict[str, Any]:
    (folder / "rows.tsv").write_text(
        "source\ttarget\n" + "".join(f"{line}\t{line}\n" for line in lines)
    )
    files = {"folder": str(folder), "train": "rows.tsv", "valid": "rows.tsv"}
    data = {**files, "source": {"column": "source"}}
    return {
        "task": "translation",
        "data": {**data, "target": {"column": "target", "max_length": 4, **target}},
        "model": {role: {"size": 8} for role in ("encoder", "bridge", "decoder")},
        "learning": {"epochs": 2, "batch_examples": 4},
        "evaluation": {"metrics": ["perplexity", "exact_match"], "search": {"max_length": 12}},
    }


def test_nothing_left_to_learn_from_is_an_error(tmp_path: Path) -> None:
    recipe = recipe_of(written(tmp_path, [LONG] * 4), "a test")
    told = r"rows\.tsv: no row is left to learn from; all are too long \(see on_long\)\."
    with pytest.raises(DataError, match=told):
        splits_of(Blueprint.of(recipe))


@pytest.mark.parametrize(("how", "dropped"), [(None, 6), ("cut", 0)])
def test_perplexity_is_that_of_whole_targets(how: str | None, dropped: int, tmp_path: Path) -> None:
    """Reckoned again, row by row and step by step."""
    lines = [LONG] * 6 + [SHORT] * 6
    (tmp_path / "recipe.yaml").write_text(yaml.safe_dump(written(tmp_path, lines, on_long=how)))
    trained = sixjars.train(tmp_path / "recipe.yaml", out=tmp_path / "run", device="cpu")
    assert trained.dropped == dropped
    predictor = sixjars.load(trained.folder, device="cpu")
    source, target = predictor.fields.inputs["source"], predictor.fields.output
    assert isinstance(source, TextField)
    assert isinstance(target, TextField)
    total, tokens = 0.0, 0
    for line in lines:
        wanted = [*target.tokenizer.encode(line), STOP]
        with torch.inference_mode():
            encoded = predictor.network.encode(
                {"source": Padded.of([source.tokenizer.encode(line)])}
            )
            logits_TV = predictor.network.decoder.teach(encoded, Padded.of([wanted])).logits[0]
        total -= sum(
            float(row_V.log_softmax(0)[number])
            for row_V, number in zip(logits_TV, wanted, strict=True)
        )
        tokens += len(wanted)
    assert tokens == 6 * 9 + 6 * 4
    scores = {score.name: score.value for score in trained.scores}
    assert scores["perplexity"] == pytest.approx(math.exp(total / tokens), rel=1e-4)


def test_all_but_the_longest_hundredth_fit_into_the_limit_of_a_starter_recipe() -> None:
    texts = ["a " * count for count in [60] * 190 + [90] * 9 + [200]]
    assert longest_of(texts, 1, most=500) == 90
    assert longest_of(texts, 1, most=80) == 80
