"""Conversations in the terminal: what the model is given, what is said, and every remark."""

import io
import os
import pty
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from sixjars.cli.chat import chat
from sixjars.errors import DataError, SixJarsError

HELP = """/new   forget the conversation and begin another
/back  take back the last thing you said, and its answer
/help  show these commands
/quit  end; so does the end of the input, or Ctrl-C
"""
HELLO = "Say something. /help tells what else can be typed, /quit ends.\n"
BYE = "Goodbye.\n"


class Typed(io.StringIO):
    """A terminal, as far as anyone asks."""

    def isatty(self) -> bool:
        return True


class Pressed(Typed):
    """Someone who presses Ctrl-C after the last line."""

    def readline(self, *_: int) -> str:  # type: ignore[override]
        line = super().readline()
        if not line:
            raise KeyboardInterrupt
        return line


@dataclass
class Parrot:
    """Answers with a number, and remembers what it was given."""

    heard: list[list[str]] = field(default_factory=list)
    fails: Callable[[str], SixJarsError | None] = lambda line: None

    def __call__(self, turns: list[str]) -> str:
        self.heard.append(list(turns))
        if error := self.fails(turns[-1]):
            raise error
        answer = f"answer {len(self.heard)}"
        turns.append("spoiled")  # the list is its own
        return answer


def held(given: io.StringIO, answer: Callable[[list[str]], str]) -> tuple[str, str]:
    """What was told, and what was remarked."""
    told, remarks = io.StringIO(), io.StringIO()
    chat(answer, lines=given, replies=told, remarks=remarks)
    return told.getvalue(), remarks.getvalue()


TALKS: dict[str, tuple[type[io.StringIO], str, list[list[str]], str, str]] = {
    "the model is given all that was said": (
        io.StringIO,
        "hi\n  how are you \r\nfine",
        [
            ["hi"],
            ["hi", "answer 1", "how are you"],
            ["hi", "answer 1", "how are you", "answer 2", "fine"],
        ],
        "123",
        BYE,
    ),
    "a terminal is greeted and prompted": (
        Typed,
        "hi\n\n \nbye\n",
        [["hi"], ["hi", "answer 1", "bye"]],
        "12",
        HELLO + "you> " * 5 + "\n" + BYE,
    ),
    "empty lines are passed over": (io.StringIO, "\n   \n\thi\n\n", [["hi"]], "1", BYE),
    "new forgets": (
        io.StringIO,
        "hi\n/new\nwho are you\n",
        [["hi"], ["who are you"]],
        "12",
        "All is forgotten; a new conversation begins.\n" + BYE,
    ),
    "quit ends before the rest": (io.StringIO, "hi\n /quit \nnever\n", [["hi"]], "1", BYE),
    "help lists the commands": (io.StringIO, "/help\n", [], "", HELP + BYE),
    "an unknown command is not said": (
        io.StringIO,
        "/bak now\n",
        [],
        "",
        "command '/bak' is unknown. Did you mean '/back'? Known: /back, /help, /new, /quit.\n"
        + BYE,
    ),
    "interrupted while listening": (Pressed, "hi\n", [["hi"]], "1", HELLO + "you> you> \n" + BYE),
}


@pytest.mark.parametrize("talk", TALKS)
def test_a_talk(talk: str) -> None:
    kind, lines, heard, answers, remarks = TALKS[talk]
    parrot = Parrot()
    replies = "".join(f"it>  answer {number}\n" for number in answers)
    assert held(kind(lines), parrot) == (replies, remarks)
    assert parrot.heard == heard


def test_back_takes_back_one_exchange_each() -> None:
    parrot = Parrot()
    given = io.StringIO("a\nb\nc\n/back\nd\n/back\n/back\ne\n/back\n/back\n/back\nf\n")
    remarks = held(given, parrot)[1]
    twice = ["a", "answer 1", "b", "answer 2", "d"]
    assert parrot.heard[3:] == [twice, ["a", "answer 1", "e"], ["f"]]
    taken = [f"Taken back: {line}\n" for line in "cdbea"]
    assert remarks == "".join(taken) + "There is nothing to take back.\n" + BYE


def test_an_answer_that_fails_is_a_remark_and_the_talk_goes_on() -> None:
    long = DataError("input 1 is too long.")
    parrot = Parrot(fails=lambda line: long if line == "long" else None)
    told, remarks = held(io.StringIO("hi\nlong\nshort\n"), parrot)
    assert remarks == "input 1 is too long.\n" + BYE
    assert told == "it>  answer 1\nit>  answer 3\n"
    assert parrot.heard[-1] == ["hi", "answer 1", "short"]


def test_our_own_mistakes_are_not_hidden() -> None:
    def broken(turns: list[str]) -> str:
        raise ValueError(turns[0])

    with pytest.raises(ValueError, match="hi"):
        held(io.StringIO("hi\n"), broken)


def test_interrupted_while_answering() -> None:
    def slow(turns: list[str]) -> str:
        raise KeyboardInterrupt

    assert held(io.StringIO("hi\nmore\n"), slow) == ("", BYE)


def test_an_answer_of_many_lines_or_none() -> None:
    answers = iter(["one\ntwo", "", "three"])
    heard: list[list[str]] = []

    def answer(turns: list[str]) -> str:
        heard.append(turns)
        return next(answers)

    told = held(io.StringIO("a\nb\nc\n"), answer)[0]
    assert told == "it>  one\n     two\nit>  \nit>  three\n"
    assert heard[-1] == ["a", "one\ntwo", "b", "", "c"]


def test_a_line_that_is_not_text_is_a_remark() -> None:
    parrot = Parrot()
    given = io.TextIOWrapper(
        io.BytesIO(b"\xef\xbb\xbfnaive\nna\xefve\nna\xc3\xafve\n"), encoding="ascii"
    )
    told, remarks = io.StringIO(), io.StringIO()
    chat(parrot, lines=given, replies=told, remarks=remarks)
    assert parrot.heard == [["naive"], ["naive", "answer 1", "naïve"]]
    assert remarks.getvalue() == "This line is not UTF-8 text; say it again.\n" + BYE


def test_the_streams_of_the_process_are_the_default(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("hi\n"))
    chat(Parrot())
    assert capsys.readouterr() == ("it>  answer 1\n", BYE)
    monkeypatch.setattr(sys, "stdin", None)  # a process that has none
    chat(Parrot())
    assert capsys.readouterr() == ("", BYE)


PROGRAM = "from sixjars.cli.chat import chat; chat(lambda turns: turns[-1].upper())"


@pytest.mark.parametrize(
    ("keys", "line", "answer"),
    [
        (b"na\xc3\xafve\n\x04", "naïve", "NAÏVE"),
        (b"hallo\x1b[D\x1b[D\x1b[D\x1b[D\x7fJ\n/quit\n", "Jallo", "JALLO"),
    ],
    ids=["end of input", "arrow keys"],
)
def test_in_a_true_terminal(keys: bytes, line: str, answer: str) -> None:
    """Prompt and answers stand on the screen, remarks elsewhere; what is typed can be changed before it is sent."""
    ours, theirs = pty.openpty()
    options: dict[str, Any] = {"stdin": theirs, "stdout": theirs, "stderr": subprocess.PIPE}
    environment = {**os.environ, "TERM": "dumb"}
    with subprocess.Popen([sys.executable, "-c", PROGRAM], env=environment, **options) as process:
        os.close(theirs)
        screen = b""
        while b"you> " not in screen:
            screen += os.read(ours, 4096)
        os.write(ours, keys)
        assert process.stderr is not None
        remarks = process.stderr.read().decode()
    screen += os.read(ours, 4096)
    os.close(ours)
    assert process.returncode == 0
    assert remarks.replace("\n\n", "\n") == HELLO + BYE
    assert f"it>  {answer}\r\n" in screen.decode()
    assert line in screen.decode()
