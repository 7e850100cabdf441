"""Numbers to be put in order, the smallest first; they differ, so one order is right."""

from random import Random

from sixjars.samples.sample import Row, SyntheticCorpus

STEPS = 10_000
"""Numbers are 0.0000, 0.0001, … 0.9999."""
FEWEST = 3


def draw(rng: Random, longest: int) -> Row:
    """From 3 to `longest` numbers, and the places of the smallest, the second smallest and so on.

    >>> draw(Random(0), 5)
    {'points': '0.6890 0.0663 0.4242 0.8376', 'order': '1 2 0 3'}
    """
    numbers = rng.sample(range(STEPS), rng.randint(FEWEST, longest))
    order = sorted(range(len(numbers)), key=numbers.__getitem__)
    return {
        "points": " ".join(f"0.{number:04d}" for number in numbers),
        "order": " ".join(str(place) for place in order),
    }


SAMPLE = SyntheticCorpus(
    task="pointing",
    description="Numbers between 0 and 1 to be put in order, the smallest first.",
    draw=draw,
    source="points",
    target="order",
    tokens="points",
    shortest=FEWEST,
    longest=8,
    most=STEPS,
)
