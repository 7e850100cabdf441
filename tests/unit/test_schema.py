"""A signature as a schema: what it takes, what it refuses, and every refusal word for word."""

from typing import Any, Literal, final

import pytest
from pydantic import BaseModel

from sixjars.flow.limits import Positive, Share
from sixjars.model.build import schema_of
from sixjars.recipe.files import checked, loaded

from .faults import entries


@final
class Paint:
    """A module inside a component."""

    given = ("supply",)

    def __init__(
        self, *, supply: int, colour: Literal["red", "blue"] = "red", gloss: Share = 0.5
    ) -> None:
        self.made = (supply, colour, gloss)


@final
class Jar:
    """A component; the toolkit knows the shelf."""

    def __init__(
        self, *, shelf: str, height: Positive, paint: Paint, open: bool = False, width: Positive = 3
    ) -> None:
        self.made = (shelf, height, paint, open, width)


@final
class Label:
    """A module with a name, and a module inside it."""

    def __init__(self, *, paint: Paint, name: str = "plain", size: Positive = 3) -> None:
        self.made = (paint, name, size)


@final
class Shelf:
    """A component with a module that has a module."""

    def __init__(self, *, label: Label) -> None:
        self.made = label


def is_section(kind: Any) -> bool:
    return kind in (Paint, Label)


SCHEMA = schema_of(Jar, ("shelf",), is_section)
SHELF = schema_of(Shelf, (), is_section)


def faults(section: Any) -> list[str]:
    settings, told = checked(SCHEMA, section, "jar")
    assert (settings is None) == bool(told)
    return told


def test_keys_are_the_parameters_that_the_toolkit_does_not_fill_in() -> None:
    assert list(SCHEMA.model_fields) == ["height", "paint", "open", "width"]
    paint = SCHEMA.model_fields["paint"].annotation
    assert isinstance(paint, type)
    assert issubclass(paint, BaseModel)
    assert list(paint.model_fields) == ["colour", "gloss"]


def test_defaults_come_from_the_signature() -> None:
    settings, told = checked(SCHEMA, {"height": 7, "paint": {"colour": "blue"}}, "jar")
    assert settings is not None
    expected = {"height": 7, "paint": {"colour": "blue", "gloss": 0.5}, "open": False, "width": 3}
    assert settings.model_dump() == expected
    assert told == []


def test_a_whole_nested_section_may_be_left_out() -> None:
    settings, _ = checked(SCHEMA, {"height": 7}, "jar")
    assert settings is not None
    assert settings.model_dump()["paint"] == {"colour": "red", "gloss": 0.5}


FAULTS = """
{height: 7, hight: 8}
    jar: key 'hight' is unknown. Did you mean 'height'? Known: height, open, paint, width.
{height: 7, lid: 8}
    jar: key 'lid' is unknown. Known: height, open, paint, width.
{}
    jar: key 'height' is missing.
{height: tall}
    jar.height: should be a valid integer, but is 'tall'.
{height: 2.5}
    jar.height: should be a valid integer, but is 2.5.
{height: true}
    jar.height: should be a valid integer, but is True.
{height: 0}
    jar.height: should be greater than or equal to 1, but is 0.
{height: 7, open: ajar}
    jar.open: should be a valid boolean, but is 'ajar'.
{height: 7, shelf: top}
    jar: key 'shelf' is filled in by the toolkit; remove it.
{height: 7, paint: {color: red}}
    jar.paint: key 'color' is unknown. Did you mean 'colour'? Known: colour, gloss.
{height: 7, paint: {supply: 9}}
    jar.paint: key 'supply' is filled in by the toolkit; remove it.
{height: 7, paint: {colour: green}}
    jar.paint.colour: should be 'red' or 'blue', but is 'green'.
{height: 7, paint: {gloss: 1}}
    jar.paint.gloss: should be less than 1, but is 1.
{height: 7, paint: {gloss: -0.1}}
    jar.paint.gloss: should be greater than or equal to 0, but is -0.1.
{height: 7, paint: red}
    jar.paint: should be a section of keys, but is 'red'.
[height]
    jar: must be a section of keys, but is ['height'].
{height: 0, shelf: top, lid: 1, paint: {gloss: 2, colour: 3}}
    jar.height: should be greater than or equal to 1, but is 0.
    jar.paint.colour: should be 'red' or 'blue', but is 3.
    jar.paint.gloss: should be less than 1, but is 2.
    jar: key 'shelf' is filled in by the toolkit; remove it.
    jar: key 'lid' is unknown. Known: height, open, paint, width.
"""


@pytest.mark.parametrize(("section", "sentences"), entries(FAULTS))
def test_every_fault_is_a_sentence(section: str, sentences: str) -> None:
    assert " ".join(faults(loaded(section))) == sentences


@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_numbers_that_are_none(number: float) -> None:
    told = faults({"height": 7, "paint": {"gloss": number}})
    assert told == [f"jar.paint.gloss: should be a finite number, but is {number}."]


def test_a_number_in_quotes_is_a_word() -> None:
    assert faults({"height": 7, "paint": {"gloss": 5e-1}}) == []
    assert faults({"height": 7, "paint": {"gloss": "5e-1"}}) == [
        "jar.paint.gloss: should be a valid number, but is '5e-1'."
    ]


def test_a_word_alone_is_the_name_of_a_module_that_has_one() -> None:
    settings, told = checked(SHELF, {"label": "honey"}, "shelf")
    assert settings is not None
    assert settings.model_dump() == {
        "label": {"paint": {"colour": "red", "gloss": 0.5}, "name": "honey", "size": 3}
    }
    assert told == []
    written, _ = checked(SHELF, {"label": {"name": "honey"}}, "shelf")
    assert written == settings


def test_modules_stand_inside_modules_inside_components() -> None:
    assert checked(SHELF, {"label": {"paint": {"gloss": 2}, "size": 0}}, "shelf")[1] == [
        "shelf.label.paint.gloss: should be less than 1, but is 2.",
        "shelf.label.size: should be greater than or equal to 1, but is 0.",
    ]
    assert checked(SHELF, {"label": {"paint": {"supply": 2}}}, "shelf")[1] == [
        "shelf.label.paint: key 'supply' is filled in by the toolkit; remove it."
    ]


def test_settings_are_frozen() -> None:
    settings, _ = checked(SCHEMA, {"height": 7}, "jar")
    with pytest.raises(ValueError, match="frozen"):
        settings.height = 8  # type: ignore[union-attr]


def test_two_schemas_do_not_share_what_is_filled_in() -> None:
    other = schema_of(Jar, ("width", "shelf"), is_section)
    assert checked(other, {"height": 7, "width": 3}, "jar")[1] == [
        "jar: key 'width' is filled in by the toolkit; remove it."
    ]
    assert faults({"height": 7, "width": 3}) == []
