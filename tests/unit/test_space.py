"""Search spaces as people write them, and every sentence about those that cannot be read."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from optuna.distributions import BaseDistribution, CategoricalDistribution
from optuna.distributions import FloatDistribution as Float
from optuna.distributions import IntDistribution as Int

from sixjars.errors import RecipeError
from sixjars.tuning.search_space import SCORING, SearchSpace, overrides_of, space_of
from tests.unit.faults import entries

EXAMPLE = "for example 'learning.rate=log(1e-4,1e-2)'."


def choices(*values: Any) -> CategoricalDistribution:
    return CategoricalDistribution([json.dumps(value) for value in values])


def read(text: str) -> Any:
    space = space_of([text, "x.y=[1,2]"])
    return {**space.distributions, **space.fixed}[text.partition("=")[0]]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("log(1e-4,1e-2)", Float(1e-4, 1e-2, log=True)),
        ("log(64, 512)", Int(64, 512, log=True)),
        ("log(1.0,10)", Float(1.0, 10.0, log=True)),
        (" uniform( 0 , 1 ) ", Float(0.0, 1.0)),
        ("uniform(-1,5e-1)", Float(-1.0, 0.5)),
        ("int(1,4)", Int(1, 4)),
        ("[128,256]", choices(128, 256)),
        ("[gru, 'lstm', null, true, 1e-3]", choices("gru", "lstm", None, True, 1e-3)),
        ("[1, 1.0, true]", choices(1, 1.0, True)),
        ("[[encoder],[encoder,decoder]]", choices(["encoder"], ["encoder", "decoder"])),
        ("[{kind: a},{kind: b}]", choices({"kind": "a"}, {"kind": "b"})),
        ("[[encoder]]", ["encoder"]),
        ("[5]", 5),
        ("5e-4", 5e-4),
        ("gru", "gru"),
        ("null", None),
        ("{encoder: 0.1}", {"encoder": 0.1}),
    ],
)
def test_spaces_and_single_values(text: str, found: Any) -> None:
    got = read(f"a.b={text}")
    assert got == found
    assert type(got) is type(found)
    if isinstance(got, BaseDistribution):
        written = SearchSpace({"a.b": got}).texts()["a.b"]
        assert read(f"a.b={written}") == got


def test_a_dict_has_texts_lists_and_values() -> None:
    given = {"learning.rate": "log(1e-4,1e-2)", "a.size": [64, 128], "a.cell": ("gru", "lstm")}
    space = space_of({**given, "a.b": 3, "a.c": "gru"})
    found = [Float(1e-4, 1e-2, log=True), choices(64, 128), choices("gru", "lstm")]
    assert list(space.distributions.values()) == found
    assert space.fixed == {"a.b": 3, "a.c": "gru"}
    assert space_of("a.b=[1,2]") == space_of(["a.b=[1,2]"])


def test_what_is_drawn_becomes_a_value_of_the_recipe() -> None:
    space = space_of(
        {"a": "log(1e-4,1e-2)", "b": "uniform(0.123449,0.2)", "c": "int(1,9)", "d": [[1], None]}
    )
    drawn = {"a": 0.00123456, "b": 0.123449, "c": 3, "d": "[1]"}
    values = {"a": 0.001235, "b": 0.123449, "c": 3, "d": [1]}  # b: never beyond an end
    assert space.values(drawn) == values
    overrides = overrides_of({"a": 1e-5, "b": None, "c": "no", "d": ["x"]})
    assert overrides == ["a=1e-05", "b=null", 'c="no"', 'd=["x"]']


def test_all_combinations_can_be_drawn() -> None:
    space = space_of({"a": "int(3,5)", "b": ["x", None]})
    assert space.count == 6
    drawn = [space.values(space.draw(at)) for at in range(6)]
    assert drawn == [{"a": a, "b": b} for b in ("x", None) for a in (3, 4, 5)]
    assert space_of({"a": "uniform(0,1)", "b": ["x", None]}).count is None
    assert space.corners() == {"a": (3, 5), "b": ("x", None)}
    assert space.axes() == {"a": "linear", "b": "names"}


RANGES = {"log": "log(1e-4,1e-2)", "uniform": "uniform(0,0.5)", "int": "int(64,512)"}
FAULTS = """
a.b=[]
  a.b=[] is empty; write the values to try, for example 'a.b=[128,256,512]'.
a.b=[1,2,1]
  a.b: 1 stands twice in its list.
a.b=[1,2
  a.b=[1,2 is neither a value nor a space: brackets or quotes are open.
a.b=log(2,1)
  a.b=log(2,1): the lower end 2 must be below the upper end 1.
a.b=uniform(1,1)
  a.b=uniform(1,1): the lower end 1 must be below the upper end 1.
a.b=log(0,1)
  a.b=log(0,1): 0 and less have no logarithm; begin above 0, or use uniform.
a.b=int(1,2.5)
  a.b=int(1,2.5): both ends must be whole numbers; use uniform or log for others.
a.b=choice(1,2)
  a.b: write choices as a list: 'a.b=[1,2]'.
a.b=loguniform(1,2)
  a.b: range 'loguniform' is unknown. Did you mean 'log'? Known: int, log, uniform.
a.b=between(1,2)
  a.b: range 'between' is unknown. Did you mean 'uniform'? Known: int, log, uniform.
a.b=Log(1,2)
  a.b: range 'Log' is unknown. Did you mean 'log'? Known: int, log, uniform.
a.b=__import__(1)
  a.b: range '__import__' is unknown. Known: int, log, uniform.
x.y=[3,4]
  x.y stands twice; give it one space.
"""


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        *entries(FAULTS),
        *((text, f"'{text}' must look like KEY=SPACE, {EXAMPLE}") for text in ("learning.rate", "=[1,2]")),
        *((f"a.b={name}", f"a.b={name} has no ends; write 'a.b={range}'.") for name, range in RANGES.items()),
        *((f"a.b={range}", f"a.b={range} must have two numbers, the lower and the upper, such as "
           f"'a.b={RANGES[range.partition('(')[0]]}'.")
          for range in ("log(1)", "uniform(a,b)", "int(1,true)", "uniform(0,.inf)")),
    ],
)  # fmt: skip
def test_a_space_that_cannot_be_read(text: str, sentence: str) -> None:
    assert refused(["x.y=[1,2]", text]) == sentence


def refused(space: Any) -> str:
    """The sentence that refuses a space."""
    with pytest.raises(RecipeError) as caught:
        space_of(space)
    return str(caught.value).removeprefix("the search space: ")


def test_choices_that_no_recipe_could_hold() -> None:
    assert refused({"a.b": [1, {2}]}) == "a.b: choices must be plain values, but they are [1, {2}]."


@pytest.mark.parametrize("given", [Path("a"), range(3), np.array([1, 2]), {1: {2}}])
def test_values_that_no_recipe_could_hold(given: Any) -> None:
    told = "a.b: give a text such as 'log(1e-4,1e-2)', a list of choices, or a plain value; it is "
    assert refused({"a.b": given, "x.y": [1, 2]}).startswith(told)


def test_numbers_of_numpy_are_numbers() -> None:
    space = space_of({"a.b": np.int64(3), "x.y": [np.float32(0.5), np.int64(1)]})
    assert (space.fixed, space.texts()) == ({"a.b": 3}, {"x.y": "[0.5, 1]"})


GUARDED = """
    learning data data.train data.folder data.format data.header data.sheet data.on_bad_row
    data.valid data.seed data.split.column data.sample.size data.source data.source.column
    evaluation.search.width
"""


def test_what_a_field_makes_of_its_column_can_be_searched() -> None:
    keys = ["data.source.max_length", "data.source.tokens.kind", "learning.rate"]
    assert list(space_of([f"{key}=[1,2]" for key in keys]).distributions) == keys


@pytest.mark.parametrize("key", [*SCORING, *GUARDED.split()])
def test_keys_that_decide_what_is_scored(key: str) -> None:
    sentence = f"{key} decides what is scored, so trials could not be compared; give it one value."
    assert refused([f"{key}=[1,2]"]) == sentence
    assert space_of([f"{key}=1", "x.y=[1,2]"]).fixed == {key: 1}


def test_nothing_to_search() -> None:
    assert refused([]) == f"there is nothing to search; write KEY=SPACE, {EXAMPLE}"
    assert refused(["a.cell=gru"]) == (
        'there is nothing to search: a.cell="gru" is one value; '
        "write 'a.cell=[\"gru\",…]', or a range: 'a.cell=log(1e-4,1e-2)'."
    )
    told = "is one value; write 'learning.rate=[0.001,0.01]', or a range: "
    assert told in refused(["learning.rate=0.001,0.01"])


def test_all_faults_are_told_at_once() -> None:
    with pytest.raises(RecipeError) as caught:
        space_of(["a.b=log(2,1)", "a.c=[]", "nonsense"])
    assert len(caught.value.faults) == 3
