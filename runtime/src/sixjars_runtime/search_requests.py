"""What one call may ask of a run: what the run is able to do, and its search with what is given."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, final

from sixjars_runtime.errors import DataError


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
