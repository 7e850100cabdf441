"""Images of one coloured thing, and its shape, which is their class.

Colour, size and position are drawn apart from the shape, so they are no evidence.
"""

from random import Random

from sixjars.samples.sample import Row, SyntheticCorpus
from sixjars.samples.scenes import LARGE, SMALL, appearance, box_of, name_of, paint, somewhere


def draw(rng: Random, _longest: int) -> Row:
    """One image by its name, the shape of the thing in it, and its bounding box."""
    thing = somewhere(rng, *appearance(rng), rng.randint(SMALL[0], LARGE[1]))
    return {"image": name_of([thing]), "label": thing.shape, "boxes": box_of(thing, 0)}


SAMPLE = SyntheticCorpus(
    task="image_classification",
    description="Images of one coloured shape; the shape is the class.",
    draw=draw,
    media="image",
    paint=paint,
    target="label",
    boxes="boxes",
)
