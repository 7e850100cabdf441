"""The next update's batches are made while the present one is computed."""

import threading

import pytest

from sixjars.errors import DataError
from sixjars.learning.engine import ahead


def test_the_next_is_made_while_the_present_one_is_used() -> None:
    made = {number: threading.Event() for number in range(3)}

    def make(number: int) -> int:
        made[number].set()
        return number

    got = ahead(make, range(3))
    assert next(got) == 0
    assert made[1].wait(5)
    assert not made[2].is_set()
    assert list(got) == [1, 2]


def test_what_goes_wrong_is_told_in_its_turn() -> None:
    def make(number: int) -> int:
        if number == 1:
            raise DataError("the second is damaged.")
        return number

    got = ahead(make, [0, 1, 2])
    assert next(got) == 0
    with pytest.raises(DataError, match="the second is damaged"):
        next(got)


def test_nothing_of_nothing() -> None:
    assert list(ahead(str, [])) == []
