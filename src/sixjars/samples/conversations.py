"""A conversation of two people, and the response to its last turn, with evidence turns before.

Both state where they and others live, what their animals are called and what they have. Then one
asks. There is always a second fact of the same kind with another answer: of another animal, another
relative, or of the other person, so that the speaker matters.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from random import Random
from typing import final

from sixjars.samples.sample import Corpus, Row
from sixjars.samples.texts import Lexicon

WORDS = Lexicon("conversations")
IN_A_TURN = 2
"""The most facts of one turn; the last one has room for one before the question."""
MOST_FACTS = 4


@final
@dataclass(frozen=True)
class Fact:
    """A fact, and the turn that states it."""

    turn: int
    kind: str
    subject: str
    values: tuple[str, ...]

    def phrased(self, pattern: str, person: str) -> str:
        """A pattern of its kind, for `i` or `you`."""
        whose = "my" if person == "i" else "your"
        gaps = {"person": person, "whose": whose, "subject": self.subject}
        if self.subject == "self":
            gaps |= {"about": person, "s": "", "es": ""}
        else:
            gaps |= {"about": f"{whose} {self.subject}", "s": "s", "es": "es"}
        return pattern.format(*self.values, **gaps)


@partial(Corpus, "conversation", ["turns"], "response", tokens="turns", lengths=(2, 8))
def conversation(rng: Random, longest: int) -> Row:
    """Two people state facts and talk of other things; the last turn asks for one of the facts."""
    turns = rng.randint(2, longest)
    facts = _facts(rng, turns)
    asked = rng.choice([fact for fact in facts[:2] if fact.turn < turns - 1])
    # The speakers alternate: the one who spoke two turns before the end asks now.
    person, other = ("i", "you") if (turns - 1 - asked.turn) % 2 == 0 else ("you", "i")
    kind = WORDS.table(asked.kind)
    number = rng.randrange(len(kind["questions"]))
    question = asked.phrased(kind["questions"][number], person)
    answer = asked.phrased(kind["answers"][number], other)
    lines = [_turn(rng, at, [fact for fact in facts if fact.turn == at]) for at in range(turns - 1)]
    before = [_stated([fact]) for fact in facts if fact.turn == turns - 1]
    return {"turns": "\n".join([*lines, " ".join([*before, question])]), "response": f"{answer} ."}


def _facts(rng: Random, turns: int) -> list[Fact]:
    """Facts with different answers; the first two are of one kind, one before the last turn."""
    room = [at for at in range(turns - 1) for _ in range(IN_A_TURN)] + [turns - 1]
    places = rng.sample(room, min(len(room), rng.randint(2, MOST_FACTS)))
    first = rng.choice(WORDS["kinds"])
    kinds = [first, first, *rng.choices(WORDS["kinds"], k=len(places) - 2)]
    left = {
        kind: [rng.sample(line.split(), len(line.split())) for line in WORDS.table(kind)["values"]]
        for kind in WORDS["kinds"]
    }
    facts: list[Fact] = []
    for turn, kind in zip(places, kinds, strict=True):
        same = [fact for fact in facts if fact.kind == kind]
        stated = [fact.subject for fact in same if (fact.turn - turn) % 2 == 0]
        other = [fact.subject for fact in same if fact.subject not in stated]
        free = [subject for subject in WORDS.table(kind)["subjects"] if subject not in stated]
        # Half of the time the other person has stated a fact about the same subject, if possible.
        subject = rng.choice(other if other and rng.random() < 0.5 else free)
        facts.append(Fact(turn, kind, subject, tuple(values.pop() for values in left[kind])))
    return facts


def _turn(rng: Random, at: int, facts: Sequence[Fact]) -> str:
    return _stated(facts) if facts else rng.choice(WORDS["small_talk" if at else "openings"])


def _stated(facts: Sequence[Fact]) -> str:
    statements = (fact.phrased(WORDS.table(fact.kind)["statement"][0], "i") for fact in facts)
    return f"{' and '.join(statements)} ."
