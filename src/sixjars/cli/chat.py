"""A conversation in the terminal: each line goes to a model with all turns before it."""

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
    from sixjars.runs.prediction.predictor import Predictor

PROMPT, ANSWER = "you> ", "it>  "
COMMANDS = {
    "/new": "forget the conversation and begin another",
    "/back": "take back the last thing you said, and its answer",
    "/help": "show these commands",
    "/quit": "end; so does the end of the input, or Ctrl-C",
}
"""Commands of a conversation."""
GREETING = "Say something. /help tells what else can be typed, /quit ends."
GOODBYE = "Goodbye."


def chat(
    reply_to: Callable[[list[str]], str],
    *,
    lines: TextIO | None = None,
    replies: TextIO | None = None,
    remarks: TextIO | None = None,
) -> None:
    r"""Hold a conversation until the input ends.

    `reply_to` gets all turns so far, the user's first and the one to reply to last, and returns the
    next.
    Turns are read from `lines`, one each; replies go to `replies`; prompts (for a terminal only)
    and everything else go to `remarks`. These are stdin, stdout and stderr by default. An error of
    `reply_to` becomes a remark, and the turn is not kept.

    >>> lines, remarks = io.StringIO("hello\nwho is there\n"), io.StringIO()
    >>> reply_to = lambda turns: f"{turns[-1]}, {len(turns)}"
    >>> chat(reply_to, lines=lines, replies=sys.stdout, remarks=remarks)
    it>  hello, 1
    it>  who is there, 3
    """
    lines = lines or sys.stdin or io.StringIO()
    talk = _Talk(reply_to, lines, replies or sys.stdout, remarks or sys.stderr)
    if isinstance(talk.lines, io.TextIOWrapper):
        # a bad line is no reason to stop
        talk.lines.reconfigure(encoding="utf-8-sig", errors="surrogateescape")
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
    """Talk with a run: it gets all turns if it reads texts in segments, else the last."""
    field = next(iter(predictor.fields.inputs.values()), None)
    output = predictor.fields.output
    if field is None or field.holds != output.holds:
        task = predictor.recipe.task
        raise DataError(f"--chat needs a model that answers a text with a text; {task} does not.")
    segments = field.settings.segments

    def reply_to(turns: list[str]) -> str:
        text = turns[-1]
        if segments == "turns":  # an empty reply must not shift the speakers
            text = joined([marked(turn, own=at % 2 == 1) for at, turn in enumerate(turns) if turn])
        elif field.in_segments:
            text = joined(turns)
        prediction = predictor.predict([text], search=settings)[0]
        if prediction.error is not None:
            raise DataError(prediction.error.removeprefix("input 1: "))
        return " ".join(prediction.text.split())

    chat(reply_to)


@final
@dataclass(frozen=True)
class _Talk:
    """A conversation and its streams."""

    reply_to: Callable[[list[str]], str]
    lines: TextIO
    replies: TextIO
    remarks: TextIO
    turns: list[str] = field(default_factory=list)
    """The turns of the user and of the model, alternating."""

    @property
    def typed(self) -> bool:
        """Whether lines are typed at a terminal."""
        return self.lines.isatty()

    def remark(self, text: str) -> None:
        """Write a line that is no reply."""
        self.remarks.write(f"{text}\n")
        self.remarks.flush()

    def listen(self) -> str | None:
        """The next line, without the space around it; nothing at the end."""
        standard = self.lines is sys.stdin and self.replies is sys.stdout
        if self.typed and standard and self.replies.isatty():
            with suppress(EOFError):
                return input(PROMPT).strip()
        else:
            if self.typed:
                self.remarks.write(PROMPT)
                self.remarks.flush()
            if line := self.lines.readline():
                return line.strip()
        self.end_line()
        return None

    def end_line(self) -> None:
        """End the line of the prompt in a terminal."""
        if self.typed:
            self.remark("")

    def take(self, line: str) -> None:
        """Reply to a line, or run its command; an empty line is ignored."""
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
            self.remark("\n".join(f"{name:6} {effect}" for name, effect in COMMANDS.items()))
        else:
            self.remark(unknown("command", line.split()[0], COMMANDS))

    def _reply(self, line: str) -> None:
        try:
            line.encode()
        except UnicodeEncodeError:
            self.remark("This line is not UTF-8 text; say it again.")
            return
        try:
            reply = self.reply_to([*self.turns, line])
        except SixJarsError as error:
            self.remark(str(error))
            return
        self.turns.extend([line, reply])
        text = f"\n{' ' * len(ANSWER)}".join(reply.splitlines())
        self.replies.write(f"{ANSWER}{text}\n")
        self.replies.flush()

    def _take_back(self) -> None:
        if not self.turns:
            self.remark("There is nothing to take back.")
            return
        line, _ = self.turns[-2:]
        del self.turns[-2:]
        self.remark(f"Taken back: {line}")
