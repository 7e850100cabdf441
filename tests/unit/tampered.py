"""Damaged and tampered copies of runs and exports, by a seed; and a process that uses them."""

import json
import math
import os
import random
import selectors
import shutil
import struct
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

import yaml

PLACES = ("../../../../etc/passwd", "/etc/passwd", "..", "a\0b", "C:\\nul", "fields/../model.json")
NUMBERS = (
    *(-1, 0, 1, 2, 7, -(2**31), 2**31, 2**53, 2**63, 10**30),
    *(0.5, -0.5, 1e-320, 1e300, 1000.0, 1_000_000),
)
ODD: tuple[Any, ...] = (
    *(None, True, False, "", "text", "\ud800", "x" * 5000),
    *([], {}, [None], [[]], {"a": 1}, [1, "a"], "NaN", math.nan, math.inf, -math.inf),
)
OTHER_TENSORS: tuple[dict[str, Any], ...] = (
    {"dtype": "F64"},
    {"dtype": "I32"},
    {"dtype": "F16"},
    {"shape": [2**40]},
    {"shape": []},
)
LONGEST = 20.0
"""Seconds that one use of a model may take; a machine may be busy."""


def places(value: Any, above: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every place of nested values, the outermost first."""
    yield above
    if isinstance(value, dict | list):
        for key, below in value.items() if isinstance(value, dict) else enumerate(value):
            yield from places(below, (*above, key))


def nested(depth: int) -> Any:
    """A list in a list, so many times."""
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


def other(value: Any, draw: random.Random) -> Any:
    """Something else in the place of a value."""
    kind = draw.randrange(8)
    if kind == 0:
        return draw.choice(ODD)
    if kind == 1:
        return draw.choice(PLACES)
    if kind == 2:
        return nested(draw.choice((2, 30, 900)))
    if kind == 3 and isinstance(value, list) and value:
        as_dict = dict(enumerate(map(str, value)))
        return draw.choice((value + value, value[:-1], value[::-1], [value], as_dict))
    if kind == 3 and isinstance(value, dict):
        return draw.choice((list(value), list(value.values()), {**value, "another": 1}, [value]))
    if kind == 4 and isinstance(value, int | float) and math.isfinite(value):
        near = (-value, value + 1, value * 1000)
        return draw.choice((*near, str(value), [value], float(value), value + 0.5))
    return draw.choice(NUMBERS)


def changed(values: Any, draw: random.Random) -> tuple[Any, str]:
    """Values with one place deleted, replaced, renamed or exchanged; and what was done."""
    every = list(places(values))
    # a vocabulary has thousands of places, of one kind
    short = [place for place in every if len(place) < 4]
    place = draw.choice(draw.choice((every, short)))
    if not place:
        return other(values, draw), "all of it"
    section = values
    for key in place[:-1]:
        section = section[key]
    how = draw.choice(("delete", "replace", "replace", "replace", "rename", "swap"))
    if how == "delete":
        del section[place[-1]]
    elif how == "rename" and isinstance(section, dict):
        section[draw.choice((*PLACES, "x", ""))] = section.pop(place[-1])
    elif how == "swap":
        one = place[-1]
        two = draw.choice(list(section) if isinstance(section, dict) else range(len(section)))
        section[one], section[two] = section[two], section[one]
    else:
        section[place[-1]] = other(section[place[-1]], draw)
    return values, f"{how} {'.'.join(map(str, place))}"


def written(values: Any, *, as_yaml: bool = False) -> bytes:
    """As a file; YAML cannot say all that JSON can."""
    if as_yaml:
        return yaml.safe_dump(values, sort_keys=False).encode()
    return json.dumps(values).encode()


def noisy(content: bytes, draw: random.Random) -> bytes:
    """Some of its bytes are others."""
    whole = bytearray(content)
    for _ in range(draw.choice((1, 1, 3, 20))):
        if whole:
            whole[draw.randrange(len(whole))] = draw.randrange(256)
    return bytes(whole)


def twice(content: bytes, draw: random.Random) -> bytes:
    """A line of it stands there twice."""
    lines = content.splitlines(keepends=True)
    at = draw.randrange(len(lines)) if lines else 0
    return b"".join([*lines[:at], *lines[at : at + 1] * 2, *lines[at + 1 :]])


BYTES: dict[str, Callable[[bytes, random.Random], bytes]] = {
    "cut": lambda content, draw: content[: draw.randrange(len(content) + 1)],
    "last byte": lambda content, draw: content[:-1],
    "empty": lambda content, draw: b"",
    "noise": lambda content, draw: draw.randbytes(2000),
    "noisy": noisy,
    "line twice": twice,
    "more": lambda content, draw: content + draw.choice((b"{}", b"\0" * 100, content)),
    "nested": lambda content, draw: draw.choice((b"[", b'{"a":')) * 100_000,
    "latin-1": lambda content, draw: b"\xe9" + content,
    "utf-16": lambda content, draw: content.decode("utf-8", "replace").encode("utf-16"),
    "mark": lambda content, draw: b"\xef\xbb\xbf" + content,
    "blanks": lambda content, draw: b" " * 100_000,
}


def weights_changed(content: bytes, draw: random.Random) -> tuple[bytes, str]:
    """A file of tensors with something else in its header."""
    size = struct.unpack("<Q", content[:8])[0]
    if draw.random() < 0.2:
        wrong = draw.choice((0, 1, size + 1, 2**31, 2**63, 2**64 - 1))
        return struct.pack("<Q", wrong) + content[8:], "size"
    header, how = changed(json.loads(content[8 : 8 + size]), draw)
    if isinstance(header, dict) and draw.random() < 0.3:
        name = draw.choice([key for key in header if key != "__metadata__"] or [""])
        what: dict[str, Any] = draw.choice(OTHER_TENSORS)
        header[name] = {**(header[name] if isinstance(header.get(name), dict) else {}), **what}
        how += f" and {name} {what}"
    new = json.dumps(header).encode()
    return struct.pack("<Q", len(new)) + new + content[8 + size :], how


def numbers_changed(content: bytes, draw: random.Random) -> tuple[bytes, str]:
    """A file of tensors whose numbers are others, without its check sum."""
    size = struct.unpack("<Q", content[:8])[0]
    header = json.loads(content[8 : 8 + size])
    header.pop("__metadata__", None)
    new = json.dumps(header).encode()
    number = draw.choice((math.nan, math.inf, -3e38, 0.0))
    count = (len(content) - 8 - size) // 4
    return struct.pack("<Q", len(new)) + new + struct.pack("<f", number) * count, f"all {number}"


def special(path: Path, draw: random.Random) -> str:
    """No file any more, or another kind of thing."""
    how = draw.choice(("gone", "folder", "endless", "pipe", "link to itself", "huge"))
    path.unlink()
    if how == "folder":
        path.mkdir()
    elif how == "endless":
        path.symlink_to("/dev/zero")
    elif how == "pipe":
        os.mkfifo(path)
    elif how == "link to itself":
        path.symlink_to(path.name)
    elif how == "huge":
        with path.open("wb") as file:
            file.truncate(3 << 30)  # without a block of the disk
    return how


def tamper(folder: Path, draw: random.Random) -> str:
    """Change one file of a run or an export, sometimes two; says what was done."""
    files = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    files = [path for path in files if path.suffix not in (".md", ".png")]
    told = []
    for _ in range(draw.choice((1, 1, 1, 2))):
        settings = [path for path in files if path.suffix not in (".onnx", ".safetensors")]
        path = draw.choice(draw.choice((files, settings)))
        if path.is_file() and not path.is_symlink() and path.stat().st_size < 1 << 24:
            told.append(f"{path.relative_to(folder)}: {_tampered(path, files, draw)}")
    return ", then ".join(told)


def _tampered(path: Path, files: list[Path], draw: random.Random) -> str:
    content, chance = path.read_bytes(), draw.random()
    if chance < 0.05:
        return special(path, draw)
    if chance < 0.1:
        another = draw.choice(files)
        if another.is_file() and not another.is_symlink() and another.stat().st_size < 1 << 24:
            path.write_bytes(another.read_bytes())
        return f"is {another.name}"
    if chance < 0.3 or path.suffix == ".onnx":
        name = draw.choice(list(BYTES))
        path.write_bytes(BYTES[name](content, draw))
        return name
    try:
        if path.suffix == ".safetensors":
            change = draw.choice((weights_changed, weights_changed, numbers_changed))
            new, how = change(content, draw)
        elif path.suffix == ".jsonl":
            lines = content.splitlines()
            at = draw.randrange(len(lines))
            values, how = changed(json.loads(lines[at]), draw)
            new = b"\n".join([*lines[:at], written(values), *lines[at + 1 :]]) + b"\n"
        else:
            as_yaml = path.suffix == ".yaml"
            values, how = changed(yaml.safe_load(content) if as_yaml else json.loads(content), draw)
            new = written(values, as_yaml=as_yaml)
    except (ValueError, LookupError, RecursionError, TypeError, yaml.YAMLError, UnicodeError):
        # changed already so that it is no such file any more
        new, how = (noisy(content, draw), "noisy")
    path.write_bytes(new)
    return how


def copied(folder: Path, target: Path) -> Path:
    """A copy to be tampered with."""
    shutil.rmtree(target, ignore_errors=True)
    return Path(shutil.copytree(folder, target))


USER = """
import json, os, re, sys, traceback, warnings
warnings.simplefilter("ignore")
sys.set_int_max_str_digits(10_000)
{imports}
def most_memory():  # since the program was begun: `ru_maxrss` would count the process that started it too
    with open("/proc/self/status") as status:
        return int(re.search(r"VmHWM:\\s*(\\d+)", status.read())[1]) / 1024
lines, answers = os.fdopen(os.dup(0)), os.fdopen(os.dup(1), "w")
os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
os.dup2(2, 1)
for line in lines:
    order = json.loads(line)
    try:
        outcome, text = "used", use(order)
    except SixJarsError as error:
        outcome, text = "refused", str(error)
    except BaseException:
        outcome, text = "raw", traceback.format_exc()[-3000:]
    print(json.dumps({{"outcome": outcome, "text": text, "most": most_memory()}}), file=answers, flush=True)
"""
RUNTIME = """
import sixjars_runtime
from sixjars_runtime import SixJarsError
def use(order):
    model = sixjars_runtime.load(order["folder"])
    return repr(model.predict(order["inputs"]))[:200]
"""
TOOLKIT = """
import torch
torch.set_num_threads(1)
import sixjars
from sixjars.errors import SixJarsError
def use(order):
    if order["use"] == "evaluate":
        return repr(sixjars.evaluate(order["folder"], device="cpu"))[:200]
    if order["use"] == "report":
        return repr(sixjars.report(order["folder"], out=order["folder"] + "/report.html", device="cpu"))[:200]
    if order["use"] == "resume":
        return repr(sixjars.train(order["folder"] + "/recipe.yaml", out=order["folder"], resume=True, device="cpu"))
    return repr(sixjars.load(order["folder"], device="cpu").predict(order["inputs"]))[:200]
"""


@final
@dataclass(frozen=True)
class Outcome:
    """What became of one use."""

    outcome: str
    """`used`, `refused` with a sentence, or `raw`."""
    text: str
    most: float
    """The most memory that the process ever had, in MB."""
    seconds: float


@final
class User:
    """A process that uses models; it is started anew where one use hung or killed it."""

    def __init__(self, python: str, imports: str) -> None:
        self._command = [python, "-c", USER.format(imports=imports)]
        self._process: subprocess.Popen[str] | None = None

    def use(self, **order: Any) -> Outcome:
        """Use one."""
        if self._process is None:
            pipe, nothing = subprocess.PIPE, subprocess.DEVNULL
            self._process = subprocess.Popen(
                self._command, stdin=pipe, stdout=pipe, stderr=nothing, text=True
            )
        process, begin = self._process, time.monotonic()
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(json.dumps(order, default=str) + "\n")
            process.stdin.flush()
            with selectors.DefaultSelector() as selector:
                selector.register(process.stdout, selectors.EVENT_READ)
                answer = process.stdout.readline() if selector.select(LONGEST) else None
        except BrokenPipeError:
            answer = ""
        seconds = time.monotonic() - begin
        if not answer:
            self.stop()
            return Outcome("hung" if answer is None else "died", "", 0.0, seconds)
        return Outcome(**json.loads(answer), seconds=seconds)

    def stop(self) -> None:
        """End the process."""
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None
