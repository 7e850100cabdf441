"""The model of a starter recipe: its components, with sizes chosen from the user's data."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from statistics import median
from typing import Any

from sixjars.data.field import Equipment
from sixjars.data.fields import FIELDS
from sixjars.data.text.segments import segments_of
from sixjars.errors import DataError
from sixjars.model.bridges import BRIDGES
from sixjars.model.build import TABLES
from sixjars.model.decoders import DECODERS
from sixjars.recipe.files import inline
from sixjars.runs.columns import Found, field_of
from sixjars.tasks import Slot, Task

FEW_SEGMENTS = 3
"""In a document that is read as one text."""
BACKBONE = """\
# a pretrained network, frozen (pip install 'sixjars[vision]'); or small, which learns from your files alone; or one
  # that you have installed: torchvision/resnet50, timm/NAME, transformers/NAME"""


def by_rows(rows: int, *choices: Any) -> Any:
    """The choice for fewer than 500 rows, 5,000, 50,000, or more."""
    return choices[sum(rows >= limit for limit in (500, 5_000, 50_000))]


def is_flat(task: Task, found: Found) -> bool:
    """Whether the documents have so few sentences that nothing is learned from how those follow each other."""
    if not task.flat or "segments" in found.settings.get(task.inputs[0].name, {}):
        return False
    counts = [len(segments_of(text, task.segments)) for text in found.texts.get(task.inputs[0].name, ())]
    return bool(counts) and median(counts) <= FEW_SEGMENTS


def model_lines(task: Task, found: Found, rows: int, *, places: Sequence[Path]) -> list[str]:
    """The lines of the model section; `places` are where images, videos or their features are."""
    size, dropout = by_rows(rows, 128, 128, 256, 512), 0.3 if rows < 50_000 else 0.1
    labels = not DECODERS[task.decoder].searches

    def suggested(role: str, kind: str) -> dict[str, Any]:
        return {"kind": kind, **TABLES[role][kind].suggest(size, dropout, labels=labels)}

    encoder = task.flat if is_flat(task, found) else task.encoder
    made = {"encoder": suggested("encoder", encoder), "decoder": suggested("decoder", task.decoder)}
    given = [slot for slot in task.inputs if "kind" in found.settings.get(slot.name, {})]
    pixels = places and not given
    made["encoder"] = _without_backbone(made["encoder"]) if given else made["encoder"]
    if found.texts:
        made["decoder"] |= FIELDS[task.output.kind].decoder_options(found.texts)
    learned = "" if task.inputs else " # the summary vector is learned"
    lines = [f"encoder: {inline(made['encoder'])}{learned}"]
    if len(task.inputs) > 1:  # too much for one line
        lines = ["encoder:", *(f"  {key}: {inline(inner)}" for key, inner in made["encoder"].items())]
    single = any(_is_one_vector(slot, found, places) for slot in given)
    bridges = [kind for kind in task.bridges if not (single and BRIDGES[kind].has_attention)]
    first, *others = (inline(suggested("bridge", kind)) for kind in bridges)
    bridge = f"bridge: {first}" + (f" # or {', or '.join(others)}" if others else "")
    return [*([BACKBONE] if pixels else []), *lines, bridge, f"decoder: {inline(made['decoder'])}"]


def _is_one_vector(slot: Slot, found: Found, places: Sequence[Path]) -> bool:
    """Whether the features of an image are one vector, which leaves attention nothing to choose from."""
    field = field_of(slot, found.settings[slot.name]).equipped(Equipment(places=tuple(places)))
    with suppress(DataError):  # of which training will tell
        return not field.learned(found.texts[slot.name]).facts()["feature_shape"].positions
    return False


def _without_backbone(section: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of an encoder to which features are given."""
    inner = {key: _without_backbone(one) if isinstance(one, Mapping) else one for key, one in section.items()}
    return {key: one for key, one in inner.items() if key != "backbone"}
