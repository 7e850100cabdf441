"""A conversation in the terminal: what is typed goes to a model with all that was said before."""

import io
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TextIO, final

from sixjars_runtime.errors import DataError, SixJarsError, unknown
from sixjars_runtime.text.segments import joined, marked

if TYPE_CHECKING:
    from sixjars.recipe.sections import SearchSettings
    from sixjars.runs.predict import Predictor

PROMPT, ANSWER = "you> ", "it>  "
COMMANDS = {
    "/new": "forget the conversation and begin another",
    "/back": "take back the last thing you said, and its answer",
    "/help": "show these commands",
    "/quit": "end; so does the end of the input, or Ctrl-C",
}
"""What can be typed besides something to say."""
GREETING = "Say something. /help tells what else can be typed, /quit ends."
GOODBYE = "Goodbye."


def chat(
    answer: Callable[[list[str]], str],
    *,
    given: TextIO | None = None,
    answers: TextIO | None = None,
    remarks: TextIO | None = None,
) -> None:
    r"""Talk until the input ends.

    `answer` gets all turns so far, the user's first and the one to answer last, and says the next. Turns are read from
    `given`, a line each; answers go to `answers`; prompts (for a terminal only) and everything else go to `remarks`.
    These are stdin, stdout and stderr, if not said otherwise. What `answer` cannot do becomes a remark, and the
    turn is not kept.

    >>> said = io.StringIO("hello\nwho is there\n")
    >>> chat(lambda turns: f"{turns[-1]}, {len(turns)}", given=said, answers=sys.stdout, remarks=io.StringIO())
    it>  hello, 1
    it>  who is there, 3
    """
    talk = _Talk(
        answer, given or sys.stdin or io.StringIO(), answers or sys.stdout, remarks or sys.stderr
    )
    if isinstance(talk.given, io.TextIOWrapper):
        talk.given.reconfigure(
            encoding="utf-8-sig", errors="surrogateescape"
        )  # a bad line is no reason to stop
    if talk.typed:
        with suppress(ImportError):  # not every system has it
            import readline  # noqa: F401 - gives `input` the arrow keys
        talk.remark(GREETING)
    try:
        while (line := talk.listen()) is not None and line != "/quit":
            talk.take(line)
    except KeyboardInterrupt:
        talk.end_line()
    talk.remark(GOODBYE)


def hold_conversation(predictor: "Predictor", settings: "SearchSettings") -> None:
    """Talk with a run: with all that was said if it reads texts in segments, else with the last thing that was."""
    field, output = next(iter(predictor.fields.inputs.values()), None), predictor.fields.output
    if field is None or field.holds != output.holds:
        raise DataError(
            f"--chat needs a model that answers a text with a text; {predictor.recipe.task} does not."
        )
    segments = field.settings.segments

    def answer(turns: list[str]) -> str:
        text = turns[-1]
        if segments == "turns":  # an empty answer must not change who said what
            text = joined([marked(turn, own=at % 2 == 1) for at, turn in enumerate(turns) if turn])
        elif field.in_segments:
            text = joined(turns)
        found = predictor.predict([text], search=settings)[0]
        if found.error is not None:
            raise DataError(found.error.removeprefix("input 1: "))
        return " ".join(found.text.split())

    chat(answer)


@final
@dataclass(frozen=True)
class _Talk:
    """One conversation, and where it is held."""

    answer: Callable[[list[str]], str]
    given: TextIO
    answers: TextIO
    remarks: TextIO
    turns: list[str] = field(default_factory=list)
    """The user's and the model's, by turns."""

    @property
    def typed(self) -> bool:
        """Whether someone sits at a terminal."""
        return self.given.isatty()

    def remark(self, text: str) -> None:
        """Tell something that is not an answer."""
        self.remarks.write(f"{text}\n")
        self.remarks.flush()

    def listen(self) -> str | None:
        """The next line, without the space around it; nothing at the end."""
        if (
            self.typed
            and self.given is sys.stdin
            and self.answers is sys.stdout
            and self.answers.isatty()
        ):
            with suppress(EOFError):
                return input(PROMPT).strip()
        else:
            if self.typed:
                self.remarks.write(PROMPT)
                self.remarks.flush()
            if line := self.given.readline():
                return line.strip()
        self.end_line()
        return None

    def end_line(self) -> None:
        """In a terminal, go on below the prompt and what was begun there."""
        if self.typed:
            self.remark("")

    def take(self, line: str) -> None:
        """Answer a line or do what it says; an empty one is passed over."""
        if not line:
            return
        if not line.startswith("/"):
            self._reply(line)
        elif line == "/new":
            self.turns.clear()
            self.remark("All is forgotten; a new conversation begins.")
        elif line == "/back":
            self._take_back()
        elif line == "/help":
            self.remark("\n".join(f"{name:6} {what}" for name, what in COMMANDS.items()))
        else:
            self.remark(unknown("command", line.split()[0], COMMANDS))

    def _reply(self, line: str) -> None:
        try:
            line.encode()
        except UnicodeEncodeError:
            self.remark("This line is not UTF-8 text; say it again.")
            return
        try:
            said = self.answer([*self.turns, line])
        except SixJarsError as error:
            self.remark(str(error))
            return
        self.turns.extend([line, said])
        first, *more = said.splitlines() or [""]
        self.answers.write(
            "".join([f"{ANSWER}{first}\n", *(f"{' ' * len(ANSWER)}{other}\n" for other in more)])
        )
        self.answers.flush()

    def _take_back(self) -> None:
        if not self.turns:
            self.remark("There is nothing to take back.")
            return
        line, _ = self.turns[-2:]
        del self.turns[-2:]
        self.remark(f"Taken back: {line}")
