"""The contract of every kind of field. A new kind adds its lines to CASES in `field_cases.py`."""

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from sixjars.data.dataset import Dataset, Fields, InputRows
from sixjars.data.field import Field
from sixjars.data.fields import FIELDS
from sixjars.data.fields.points import PointsField, PointsSettings
from sixjars.data.flat import as_array
from sixjars.data.flat import rows_of as rows_of_flat
from sixjars.data.storage.cache import Examples
from sixjars.errors import DataError
from sixjars.flow.values import Padded
from sixjars_runtime.special_tokens import PAD, STOP

from .field_cases import CASES, Case, draw

NO_OUTPUT = PointsField("nothing", PointsSettings())
"""Stands for the output where an input is looked at alone."""
LAZY = {"files", "store"}
"""What a field of files opens when it is first needed; nothing else of a field may change."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("files")
    draw(made)
    return made


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SIXJARS_CACHE", str(tmp_path / "cache"))


@pytest.fixture(params=CASES)
def case(request: pytest.FixtureRequest) -> Case:
    return CASES[request.param]


@pytest.fixture
def raw(case: Case, folder: Path) -> Field:
    """Before anything is learned."""
    return case.make(folder)


@pytest.fixture
def field(case: Case, raw: Field) -> Field:
    return raw.learned(case.kept)


def examples(case: Case, field: Field, *more: str) -> Examples:
    """As they come from a file; further rows may follow."""
    beside = {name: [*column, *column[:1] * len(more)] for name, column in case.beside.items()}
    return Examples.of({**beside, field.name: [*case.kept, *more]}, where="rows.tsv")


def dataset(case: Case, field: Field, *, stored: bool = False) -> Dataset:
    """The values in the role of the field, with what it is tied to; for training or prediction."""
    field = field.equipped(replace(field.equipment, stored=stored))
    fields = Fields({field.name: field}, NO_OUTPUT)
    if case.is_output:
        source = case.source
        fields = Fields(
            {} if source is None else {source.name: source.learned(case.beside[source.name])}, field
        )
    admitted = fields.all[field.name].admit(examples(case, field), skip=False)
    return Dataset.stored(admitted, fields) if stored else Dataset.in_memory(admitted, fields)


def rows_of(case: Case, data: Dataset, *rows: int) -> Padded:
    """Some rows as a batch has them, words to copy included."""
    batch = data.batches().collate(torch.tensor(rows or range(len(data))))
    return batch.target if case.is_output else next(iter(batch.inputs.values()))


def contents(value: Padded) -> list[Any]:
    """What a batch holds of each row, whatever surrounds it: numbers, segments."""
    real = [row[mask].tolist() for row, mask in zip(value.values, value.mask, strict=True)]
    if value.segments is None:
        return real
    flat = value.values.flatten().tolist()
    lines = [
        [flat[place] for place in line if place >= 0]
        for pack in value.segments.packs
        for line in pack.tolist()
    ]
    index = [
        [place for place in row if place >= 0] for row in value.segments.segment_index.tolist()
    ]
    return [
        [row, [lines[place] for place in places]] for row, places in zip(real, index, strict=True)
    ]


def refusals(case: Case, field: Field, value: Any) -> Iterator[str]:
    """What a prediction and a training say about a bad value; at least one of its checks must."""
    found = 0
    try:
        text = field.text_of(value)
    except ValueError as error:
        yield str(error)
        return
    beside = {name: column[0] for name, column in case.beside.items()}
    try:
        field.check(text, {**beside, field.name: text})
    except ValueError as error:
        found += 1
        yield str(error)
    try:
        field.admit(examples(case, field, text), skip=False)
    except DataError as error:
        found += 1
        start, line, told = str(error).partition(f"line {len(case.kept) + 1}: ")
        yield (
            told
            if (start, bool(line)) == ("rows.tsv, ", True)
            else f"{error} does not begin with its place"
        )
    assert found, f"{value!r} is not refused"


def test_every_kind_of_field_has_a_case(folder: Path) -> None:
    assert {type(case.make(folder)) for case in CASES.values()} == set(FIELDS.values())
    assert all(kind.kind == name for name, kind in FIELDS.items())
    assert all(
        kind.settings_class.model_fields["kind"].default == name for name, kind in FIELDS.items()
    )


def test_values_of_json_become_text(case: Case, field: Field) -> None:
    assert [field.text_of(json.loads(json.dumps(value))) for value in case.values] == list(
        case.kept
    )
    assert [field.text_of(text) for text in case.kept] == list(case.kept)
    for text in case.kept:
        assert text in [field.text_of(value) for value in field.arguments(text)]


def test_bad_values_are_refused_in_a_sentence_that_names_the_field(
    case: Case, field: Field
) -> None:
    assert case.bad
    for value, wanted in case.bad:
        sentences = list(refusals(case, field, value))
        assert wanted in sentences[0], sentences
        for told in sentences:
            assert f"the {field.name}" in told or f"data.{field.name}" in told, told
            assert told.endswith("."), told
            assert "\n" not in told, told


def test_bad_rows_are_left_out_and_counted(case: Case, field: Field) -> None:
    """Where a kind cannot use a row; an empty text is refused by readers already."""
    assert field.admit(examples(case, field), skip=False).skipped == 0
    for value in (value for value, _ in case.bad if isinstance(value, str) and value.strip()):
        left = field.admit(examples(case, field, value), skip=True)
        assert left.skipped == 1
        assert left.table.column(field.name).to_pylist() == list(case.kept)


def test_padding_is_zero_and_rows_are_the_same_alone(case: Case, field: Field) -> None:
    data = dataset(case, field)
    together = rows_of(case, data)
    lengths = data.lengths(field.name)
    assert together.mask.sum(1).tolist() == lengths
    width = max(*lengths, 1)
    assert together.mask.tolist() == [[at < length for at in range(width)] for length in lengths]
    assert not together.values[~together.mask].any()
    for row in range(len(data)):
        assert contents(rows_of(case, data, row)) == [contents(together)[row]]
    assert contents(rows_of(case, data, 2, 0, 2)) == [contents(together)[row] for row in (2, 0, 2)]


def test_training_and_prediction_have_the_same_numbers(case: Case, field: Field) -> None:
    """One encoded, stored and mapped from the disk, made anew and found again; one in memory."""
    now = rows_of(case, dataset(case, field))
    for _ in range(2):
        stored = rows_of(case, dataset(case, field, stored=True))
        assert stored.values.dtype == now.values.dtype
        assert torch.equal(stored.values, now.values)
        assert contents(stored) == contents(now)


def test_a_few_inputs_are_encoded_without_a_table(case: Case, field: Field) -> None:
    """By the same encoders, to the same batch; each encoder has one result for lists and for columns."""
    data = dataset(case, field)
    names = [name for name in data.fields.all if data.table.has(name)]
    columns = {name: data.table.texts(name) for name in names}
    examined, faults = data.fields.examined(columns)
    assert not faults
    rows = InputRows(examined, data.fields.encoders())
    batch = data.fields.encode(rows)
    other = data.batches().collate(batch.numbers)
    assert list(batch.inputs) == list(other.inputs)
    pairs = [*zip(batch.inputs.values(), other.inputs.values(), strict=True)]
    for few, padded in [*pairs, (batch.target, other.target)]:
        for tensor, expected in zip(few.tensors(), padded.tensors(), strict=True):
            assert torch.equal(tensor, expected)
    for name, encoder in data.fields.encoders().items():
        if encoder.column in columns:
            texts = columns[encoder.column]
            ids = encoder.encode(texts)
            assert ids == rows_of_flat(encoder.flat(as_array(texts)))
            assert ids == rows_of_flat(rows.ids(name)) == rows_of_flat(data.table.ids(name))


def test_what_was_learned_is_kept(case: Case, raw: Field, field: Field) -> None:
    again = raw.restored(field.to_json())
    assert again.facts() == field.facts()
    assert again.describe() == field.describe()
    assert again.to_json() == field.to_json()
    assert contents(rows_of(case, dataset(case, again))) == contents(
        rows_of(case, dataset(case, field))
    )
    assert {name: encoder.key() for name, encoder in again.encoders().items()} == {
        name: encoder.key() for name, encoder in field.encoders().items()
    }
    assert (field.to_json() == "null") == (not type(field).learns)


def test_what_is_output_comes_back_as_text(case: Case, field: Field) -> None:
    data = dataset(case, field)
    target = rows_of(case, data)
    if not case.is_output:
        return
    for row, (ids, mask, text) in enumerate(
        zip(target.values, target.mask, case.kept, strict=True)
    ):
        real, words = ids[mask].tolist(), data.source_words(row)
        assert field.decode(real, words) == field.normalize(text) == data.targets[row]
        assert len(field.tokens(real, words)) == len(real)
        if field.holds != "classes":
            assert real.index(STOP) == len(real) - 1
            assert field.decode([*real, PAD, PAD], words) == field.normalize(text)


def test_what_no_decoder_outputs_is_refused(case: Case, field: Field) -> None:
    if field.holds not in ("points", "pixels", "features"):
        return
    for call in (field.decode, field.tokens):
        told = f"^no decoder outputs a field of kind {field.kind}\\.$"
        with pytest.raises(NotImplementedError, match=told):
            call([0])


def test_normalizing_twice_changes_nothing(case: Case, field: Field) -> None:
    for text in case.kept:
        assert field.normalize(field.normalize(text)) == field.normalize(text)


def test_each_position_can_be_drawn(case: Case, field: Field) -> None:
    """Nothing, as of an image, or a token for each position, and its segment if it has one."""
    if case.is_output:
        return
    data = dataset(case, field)
    assert data.positions(0, data.lengths(field.name)[0]).tokens == case.drawn
    for row, length in enumerate(data.lengths(field.name)):
        told = data.positions(row, length)
        assert len(told.tokens) == (length if case.drawn else 0)
        assert len(told.segments) == (length if field.in_segments else 0)
        assert list(told.segments) == sorted(told.segments)


def test_a_network_is_told_what_the_class_announces(case: Case, raw: Field, field: Field) -> None:
    assert set(field.facts()) == set(type(field).fact_names)
    assumed = raw.assumed()  # where no data is at hand
    assert set(assumed.facts()) == set(type(field).fact_names)
    assert assumed.describe().strip()
    assert field.describe() == case.described


def test_facts_bound_the_numbers(case: Case, field: Field) -> None:
    """A network that is as large as the facts say can be given every value."""
    values, facts = rows_of(case, dataset(case, field)).values, field.facts()
    for name in {"vocabulary", "classes"} & set(facts):
        # copies are numbered behind the vocabulary
        assert case.source is not None or int(values.max()) < facts[name]
    if "dimensions" in facts:
        assert values.shape[2:] == (facts["dimensions"],)


def test_every_value_is_used_whole_or_is_told_to_be_cut(
    case: Case, raw: Field, field: Field
) -> None:
    data = dataset(case, field)
    assert field.usable(data.table).all()
    longer = raw.settings.model_copy(
        update={"max_length": 999} if hasattr(raw.settings, "max_length") else {}
    )
    whole = type(raw)(raw.name, longer).equipped(raw.equipment).learned(case.kept)
    lengths = zip(data.lengths(field.name), dataset(case, whole).lengths(field.name), strict=True)
    assert field.truncated(data.table, range(len(data))).tolist() == [
        own < full for own, full in lengths
    ]


def test_tokens_belong_to_words_that_are_counted(case: Case, field: Field) -> None:
    for words in field.words([field.normalize(text) for text in case.kept]):
        assert words[0] == 0
        assert all(after - before in (0, 1) for before, after in pairwise(words))


def test_what_the_role_forbids_is_a_sentence_about_its_key(case: Case, raw: Field) -> None:
    assert raw.misfits(is_output=case.is_output, is_first=True) == []
    for told in (*raw.misfits(is_output=True, is_first=False), *raw.copy_misfits(NO_OUTPUT)):
        assert told.endswith(".")
        assert f"data.{raw.name}" in told or "source" in told


def test_a_blank_is_a_value_that_a_network_could_be_given(case: Case, field: Field) -> None:
    real, blank = rows_of(case, dataset(case, field)), field.blank()
    assert (blank.rows, blank.values.dtype) == (1, real.values.dtype)
    assert blank.values.shape[2:] == real.values.shape[2:]
    assert blank.mask.all()
    assert blank.mask.shape == blank.values.shape[:2]
    assert (blank.segments is None) == (real.segments is None)
    if not blank.values.is_floating_point():
        limit = (
            field.facts().get("vocabulary") or field.facts().get("classes") or real.values.max() + 3
        )
        assert int(blank.values.max()) < max(int(limit), 256 if field.is_media else 0)


def test_settings_are_guessed_from_its_own_values_alone(case: Case, field: Field) -> None:
    kind = type(field)
    for values in (list(case.values), list(case.kept)):
        found = kind.guess(values)
        assert found is not None
        made = kind(field.name, kind.settings_class(column="column", **found)).equipped(
            field.equipment
        )
        for text, value in zip(case.kept, values, strict=True):
            assert made.text_of(value) == text  # so guessed, it takes them
    assert kind.guess(list(case.foreign)) is None
    suggested = kind.suggest(case.kept, tokens="words", long=False)
    kind.settings_class(column="column", **suggested)


def test_use_changes_no_field_and_threads_do_not_meet(case: Case, raw: Field, field: Field) -> None:
    wanted = contents(rows_of(case, dataset(case, field)))
    before = {one: dict(vars(one)) for one in (raw, field)}
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: contents(rows_of(case, dataset(case, field))), range(8)))
    assert found == [wanted] * 8
    for value, _ in case.bad:
        list(refusals(case, field, value))
    raw.learned(case.kept)
    for one, state in before.items():
        now = {key: value for key, value in vars(one).items() if key not in LAZY}
        assert set(now) == set(state) - LAZY
        assert all(now[key] is state[key] for key in now)


FROZEN = {name for name in CASES if name.partition(",")[0] == "features"} | {
    "image, features",
    "video, features",
}


@pytest.mark.parametrize("name", sorted(CASES))
def test_frozen_features_are_the_mean_over_positions(name: str, folder: Path) -> None:
    """One vector for each row asked for, in that order; nothing of whatever has none."""
    case = CASES[name]
    data = dataset(case, case.make(folder).learned(case.kept), stored=True)
    own, rows = data.fields.all[case.make(folder).name], [len(case.kept) - 1, 0]
    found = own.frozen_features(data.table, rows)
    assert (found is not None) == (name in FROZEN)
    if found is not None:
        padded = own.column(data.table).padded(np.array(rows))
        mask = padded.mask.unsqueeze(-1)
        wanted = (padded.values.float() * mask).sum(1) / mask.sum(1)
        np.testing.assert_allclose(found, wanted.numpy(), rtol=1e-3)
