"""Points and orders as fields: rectangles of coordinates, tokens of positions, and bad rows."""

import time
import warnings
from random import Random
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from sixjars.data.batches import FieldValues
from sixjars.data.field import Equipment
from sixjars.data.fields import points
from sixjars.data.fields.order import OrderField, OrderSettings
from sixjars.data.fields.points import PointsField, PointsSettings
from sixjars.data.storage.cache import Examples, encoded
from sixjars.errors import DataError
from sixjars.model.encoders.points import PointsEncoder
from sixjars_runtime.text.points import points_of, text_of_order, text_of_points

finite = st.floats(allow_nan=False, allow_infinity=False, width=32).filter(
    lambda number: abs(number) < 3e38
)
clouds = st.integers(1, 3).flatmap(
    lambda size: st.lists(
        st.lists(st.lists(finite, min_size=size, max_size=size), min_size=1, max_size=5),
        min_size=1,
        max_size=6,
    )
)


def field(dimensions: int = 2) -> PointsField:
    return PointsField("points", PointsSettings(dimensions=dimensions))


def order(*, complete: bool = False) -> OrderField:
    return OrderField("order", OrderSettings()).equipped(
        Equipment(target_options={"complete": complete})
    )


def examples(points: list[str], orders: list[str]) -> Examples:
    return Examples.of({"points": points, "order": orders}, where="tours.tsv")


def column_of(made: PointsField, texts: list[str]) -> FieldValues:
    return made.column(encoded(Examples.of({made.name: texts}, where="tours.tsv"), {}))


# Rectangles


@given(clouds)
def test_a_rectangle_holds_what_the_texts_say(cloud: list[list[list[float]]]) -> None:
    texts = [text_of_points(row) for row in cloud]
    column = column_of(field(len(cloud[0][0])), texts)
    assert column.lengths.tolist() == [len(row) for row in cloud]
    rows = list(range(len(cloud)))[::-1]
    padded = column.padded(np.array(rows))
    assert padded.values.dtype == torch.float32
    for at, row in enumerate(rows):
        assert torch.equal(
            padded.values[at][padded.mask[at]], torch.tensor(cloud[row], dtype=torch.float32)
        )
        assert not padded.values[at][~padded.mask[at]].any()
        assert padded.mask[at].sum() == len(cloud[row])


def test_unusual_spelling_is_read_all_the_same() -> None:
    usual = field().arrays(["1000,2 3,4", "5,6"])
    unusual = field().arrays([" 1_000,2\t3,4 ", "5,6"])
    assert all(np.array_equal(one, other) for one, other in zip(usual, unusual, strict=True))
    assert [array.dtype for array in unusual] == [np.float32] * 2
    assert field().arrays([]) == []


def test_many_rows_are_read_fast() -> None:
    rng = Random(0)
    texts = [
        " ".join(f"{rng.random():.4f},{rng.random():.4f}" for _ in range(10)) for _ in range(2000)
    ] * 25
    begin = time.process_time()
    arrays = field().arrays(texts)
    assert field().admit(examples(texts, texts), skip=False).table.num_rows == len(texts)
    assert time.process_time() - begin < 10
    assert sum(map(len, arrays)) == 500_000
    assert points_of(texts[-1])[-1] == pytest.approx(tuple(arrays[-1][-1].tolist()))


def test_the_warnings_of_the_process_are_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another thread that warns while a column is parsed must not fail for it."""
    seen: list[Any] = []
    array = np.array

    def parsing(*given: Any, **more: Any) -> Any:
        seen.append(list(warnings.filters))
        return array(*given, **more)

    before = list(warnings.filters)
    monkeypatch.setattr(np, "array", parsing)
    for text in ("1,2 3,4", "1,2 3,x4", "1e39,1", "1,nan", "1_0,2"):
        points.parsed([text])
    assert seen
    assert all(filters == before for filters in seen)
    assert list(warnings.filters) == before


# Bad rows


def test_points_of_another_size_are_bad_even_if_they_all_are() -> None:
    rows = examples(["1,2,3", "4,5,6"], ["0", "0"])
    told = r"^tours\.tsv: no row is left of 2; all were bad: a point has 3 coordinates"
    with pytest.raises(DataError, match=told):
        field().admit(rows, skip=True)


# Tokens


def test_positions_stand_where_tokens_can() -> None:
    own = order()
    assert own.encode(["2 0 1", " 10 ", ""]) == [[6, 4, 5], [14], []]
    assert own.decode([1, 6, 4, 5, 2, 0, 3]) == "2 0 1"
    assert own.tokens([6, 2, 14]) == ["2", "<stop>", "10"]
    assert own.normalize(" 02  0\t1 ") == "2 0 1"
    assert own.normalize("2  and 1") == "2 and 1"


@given(st.lists(st.integers(0, 999), min_size=1))
def test_orders_and_tokens_are_each_other_s_opposite(places: list[int]) -> None:
    [ids] = order().encode([text_of_order(places)])
    assert order().decode(ids) == " ".join(order().tokens(ids)) == text_of_order(places)


def test_whether_every_order_visits_all_points() -> None:
    for last, visits in (("1 0", "all"), ("1", "some")):
        columns = {"points": ["1 2 3", "4 5"], "order": ["2 0 1", last]}
        assert OrderField.decoder_options(columns) == {"visits": visits}


# The encoder


def test_each_point_is_embedded_before_it_is_read() -> None:
    encoder = PointsEncoder(dimensions=2, embedding=3, cell="rnn", size=4)
    given_points = column_of(field(), ["0.5,1 2,3 -1,0"]).padded(np.array([0]))
    weights = dict(encoder.rnn.named_parameters())
    in_4x3, state_4x4, bias_in_4, bias_4 = (
        next(value for name, value in weights.items() if name.endswith(end))
        for end in ("weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0")
    )
    state = torch.zeros(4)
    for at, point in enumerate(given_points.values[0]):
        embedded = encoder.embedding.weight @ point + encoder.embedding.bias
        state = torch.tanh(in_4x3 @ embedded + bias_in_4 + state_4x4 @ state + bias_4)
        torch.testing.assert_close(encoder(given_points).memory[0, at], state)
    torch.testing.assert_close(encoder(given_points).summary[0], state)
