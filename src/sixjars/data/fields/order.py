"""Orders: positions of an input, counted from 0, each at most once."""

from collections.abc import Mapping, Sequence
from typing import Any, final

from sixjars.data.batches import FieldValues, IdColumn
from sixjars.data.field import Field
from sixjars.data.storage.cache import ExampleTable, FieldEncoder, IdEncoder
from sixjars.flow.values import Padded
from sixjars.recipe.data import Column as ColumnName
from sixjars.recipe.data import FieldSettings
from sixjars_runtime.special_tokens import SPECIAL, STOP
from sixjars_runtime.text.points import order_of, text_of_order, whole_numbers


class OrderSettings(FieldSettings):
    """One column of positions of the input, counted from 0: `2 0 1`, or a list in JSON lines."""

    kind: str = "order"
    column: ColumnName = "order"


@final
class OrderField(Field):
    """Positions as tokens: the special ones first, then one for each position.

    >>> field = OrderField("order", OrderSettings())
    >>> field.encode(["2 0 1"]), field.decode([6, 4, 5, STOP])
    ([[6, 4, 5]], '2 0 1')
    """

    kind = "order"
    settings_class = OrderSettings
    holds = "positions"
    lists = "value"

    @property
    def complete(self) -> bool:
        """Whether every order must have all positions: the decoder stops when none is left."""
        return bool((self.equipment.target_options or {}).get("complete"))

    def as_text(self, value: object) -> str:
        """Write positions as `2 0 1`."""
        return text_of_order(value)

    def check(self, text: str, row: Mapping[str, str]) -> None:
        """Raise ValueError unless the positions are those of the input's points."""
        count = len(next(iter(row.values())).split())
        try:
            visited = len(order_of(text, count))
        except ValueError as error:
            raise ValueError(f"the {self.name}: {error}") from None
        if self.complete and visited < count:
            raise ValueError(
                f"the {self.name} has {visited} of {count} points, but model.decoder.visits is "
                "all; say visits: some."
            )

    def normalize(self, text: str) -> str:
        """Single spaces, no zeros in front."""
        words = text.split()
        plain = (str(int(word)) if word.isascii() and word.isdigit() else word for word in words)
        return " ".join(plain)

    def encoders(self) -> dict[str, IdEncoder]:
        """Encodes orders as tokens."""
        return {self.name: FieldEncoder(self.name, self.encode)}

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """The tokens of each order, without `<go>` and `<stop>`."""
        return [[len(SPECIAL) + place for place in whole_numbers(text)] for text in texts]

    def column(self, table: ExampleTable, *, training: bool = False) -> FieldValues:
        """Tokens that end in `<stop>`."""
        return IdColumn(table.ids(self.name), stop=STOP)

    def blank(self) -> Padded:
        """The first two positions, then `<stop>`."""
        return Padded.of([[len(SPECIAL), len(SPECIAL) + 1, STOP]])

    def decode(self, ids: Sequence[int], source_words: Sequence[str] = ()) -> str:
        """The order of tokens; special ones are left out."""
        return " ".join(str(number - len(SPECIAL)) for number in ids if number >= len(SPECIAL))

    def tokens(self, ids: Sequence[int], source_words: Sequence[str] = ()) -> list[str]:
        """One text for each token."""
        count = len(SPECIAL)
        return [SPECIAL[token] if token < count else str(token - count) for token in ids]

    def describe(self) -> str:
        """A description of the positions."""
        return "positions of the input, each at most once"

    @classmethod
    def decoder_options(cls, columns: Mapping[str, Sequence[str]]) -> dict[str, Any]:
        """`visits: all` where every order has all points, else `some`."""
        pairs = zip(*columns.values(), strict=True)
        every = all(len(points.split()) == len(order.split()) for points, order in pairs)
        return {"visits": "all" if every else "some"}

    @classmethod
    def guess(cls, values: Sequence[object]) -> dict[str, Any] | None:
        """Whole numbers, as text or in lists."""
        try:
            fit = all(whole_numbers(text_of_order(value)) for value in values)
        except ValueError:
            return None
        return {} if fit else None
