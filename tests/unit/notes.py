"""A reporter that keeps what is noted."""

from typing import final

from sixjars.progress import Reporter


@final
class Notes(Reporter):
    """The sentences, in their order."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def note(self, sentence: str) -> None:
        self.lines.append(sentence)
