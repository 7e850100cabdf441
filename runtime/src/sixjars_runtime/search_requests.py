"""What may be asked of a search: its numbers, what a run is able to do, and the settings of a call.

The numbers are those of settings and of what an exported model says of itself. Their ranges are
wide: what lies beyond is a slip, or overflows. A number of a search has 32 bits, up to 3.4e38.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, final

from sixjars_runtime.errors import DataError

MOST_ROWS: Final = 10_000
"""Of a beam, or drawn outputs: a thousand is wide, and a million took minutes and gigabytes."""
MOST_TOKENS: Final = 20_000
"""Of an output: four chapters of a book in words, and seconds of steps."""
MOST_LENGTH_PENALTY: Final = 5.0
"""α: the length of the longest output to this power still has 32 bits (20,000^5 = 3e21); 0 to 2 is
usual."""
MOST_COVERAGE_PENALTY: Final = 100.0
"""β: each of millions of positions costs at most 87 times this (log of the least number); 0 to 1 is
usual."""
LEAST_TEMPERATURE: Final = 0.001
"""Already the most probable token: log probabilities divided by this stay far below 3.4e38."""
MOST_TEMPERATURE: Final = 1000.0
"""Already as good as evenly distributed."""
LEAST_TOP_P: Final = 1e-6
"""Already the most probable token alone; a number that 32 bits take for 0 would leave none."""


@final
@dataclass(frozen=True)
class Ability:
    """The options that the requests of a run may have."""

    searches: bool
    """Whether outputs are found token by token, or labels chosen."""
    has_attention: bool
    multi_label: bool

    def check(self, kind: str | None, given: Mapping[str, Any]) -> None:
        """Refuse what a run cannot do: a kind of search, where one is named, and its settings."""
        if not self.searches and (kind is not None or set(given) - {"nbest"}):
            raise DataError(
                "this run chooses a label; there is nothing to search. "
                "With nbest it gives the most probable."
            )
        if self.multi_label and "nbest" in given:
            raise DataError(
                "this run chooses all labels that apply to an input, so nbest does not apply."
            )
        if given.get("unknown") == "replace" and not self.has_attention:
            raise DataError(
                "unknown=replace needs attention, but this run has none; "
                "its bridge is of another kind."
            )

    def changed(
        self, own: Mapping[str, Any], given: Mapping[str, Any], *, is_named: bool
    ) -> dict[str, Any]:
        """Return settings of search with those of a call; several outputs need a beam or sampling.

        Where the call does not name its kind of search, a beam is taken for them.
        """
        values = {**own, **given}
        nbest = given.get("nbest", 1)
        if self.searches and isinstance(nbest, int) and nbest > 1:
            if values["kind"] == "greedy" and is_named:
                few = f"greedy search finds one output, but nbest is {nbest}"
                raise DataError(f"{few}; search with beam or sample.")
            if values["kind"] == "greedy":
                values["kind"] = "beam"
            values["width"] = given.get("width", max(own["width"], nbest))
        return values
