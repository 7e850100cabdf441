"""Requests for predictions: JSON, or a form with files that are kept until the response."""

import asyncio
import re
import shutil
import tempfile
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar, final
from uuid import uuid4

from fastapi import HTTPException, Request
from pydantic import BaseModel
from pydantic_core import from_json
from starlette.datastructures import FormData, UploadFile
from starlette.requests import ClientDisconnect

from sixjars.data.field import Field
from sixjars.recipe.files import checked
from sixjars.recipe.sections import SearchSettings
from sixjars.runs.prediction.partial_outputs import WrittenToken
from sixjars.runs.prediction.predictor import Predictor
from sixjars.runs.prediction.requests import Input, UnreadableInput, most_together
from sixjars.serving.server.messages import PredictRequest
from sixjars.serving.server.settings import ServerSettings
from sixjars_runtime.errors import shown

M = TypeVar("M", bound=BaseModel)
T = TypeVar("T")
FORM, JSON = "multipart/form-data", "application/json"


@final
@dataclass(frozen=True)
class PredictionSettings:
    """The predictor and the search of a request: a run may be read again while requests wait."""

    run: Predictor
    search: SearchSettings
    weights: bool
    view: bool


@final
@dataclass(frozen=True, eq=False)
class CheckedRequest:
    """The inputs of a request, the files that came with it, and how they are predicted."""

    inputs: Sequence[Input]
    settings: PredictionSettings
    names: Mapping[str, str] = field(default_factory=dict)
    """Paths of uploaded files, and the names that their sender gave them."""
    tell: Callable[[WrittenToken], None] | None = None
    """Called with each step of a stream."""

    @property
    def streams(self) -> bool:
        """Whether its output is wanted as it is written."""
        return self.tell is not None

    @property
    def most(self) -> int | None:
        """Most inputs that are computed with it; nothing where the server's limit is enough.

        As many streams are written side by side as one batch of predictions has inputs.
        """
        run = self.settings.run
        examples = run.recipe.evaluation.batch_examples
        return most_together(examples, run.fields.inputs.values()) if self.streams else None

    def plain(self, sentence: str) -> str:
        """A sentence with the sender's names of files in place of paths."""
        for path, name in self.names.items():
            sentence = sentence.replace(path, name)
        return sentence


@final
class Uploads:
    """The files of one request, in a folder of their own under new names."""

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = folder
        self.names: dict[str, str] = {}
        """The sender's names, by path."""

    def add(self, file: UploadFile) -> None:
        """Keep a file."""
        assert self.folder is not None
        name = plain_name(file.filename)
        path = self.folder / f"{uuid4().hex}{ending_of(name)}"
        with path.open("wb") as target:
            shutil.copyfileobj(file.file, target)
        self.names[str(path)] = name

    def path(self, name: object) -> str | UnreadableInput:
        """The path of the file of that name; a sentence where there is none, or several."""
        plain = plain_name(name) if isinstance(name, str) else None
        paths = [path for path, given in self.names.items() if given == plain]
        if len(paths) == 1:
            return paths[0]
        if paths:
            fault = "is the name of several uploaded files; give each its own"
        elif self.names:
            fault = f"is no uploaded file; uploaded are: {', '.join(self.names.values())}"
        else:
            fault = "is no uploaded file; no file was uploaded"
        return UnreadableInput(f"{shown(name)} {fault}.")


def plain_name(given: str | None) -> str:
    r"""The name of a file without its folder, as it may be shown.

    >>> plain_name("..\\x/cat\n.jpg"), plain_name(None), len(plain_name("a" * 300))
    ('cat.jpg', 'file', 100)
    """
    last = re.split(r"[/\\]", given or "")[-1]
    return "".join(filter(str.isprintable, last))[-100:] or "file"


def ending_of(name: str) -> str:
    """The ending of a name, if it is harmless: it distinguishes arrays from images.

    >>> ending_of("cat.JPG"), ending_of("x.tar.gz"), ending_of("x.☃"), ending_of("none")
    ('.JPG', '.gz', '', '')
    """
    match = re.search(r"\.[A-Za-z0-9]{1,8}$", name)
    return match[0] if match else ""


def message_of(schema: type[M], text: bytes | str) -> M:
    """The message in some JSON; 422 with its faults."""
    try:
        values: Any = from_json(text or b"{}", allow_inf_nan=False)
    except ValueError as error:
        raise HTTPException(422, f"the request is not JSON: {error}.") from None
    message, faults = checked(schema, values, "request")
    if message is None:
        raise HTTPException(422, " ".join(faults[:5]))
    return message


@asynccontextmanager
async def in_time(settings: ServerSettings) -> AsyncIterator[None]:
    """Refuse a request that arrives too slowly, or whose sender goes away."""
    try:
        async with asyncio.timeout(settings.time_limit):
            yield
    except TimeoutError:
        limit = f"{settings.time_limit:g} seconds"
        raise HTTPException(408, f"the request took longer than {limit} to arrive.") from None
    except ClientDisconnect:
        raise _went_away() from None


async def while_there(request: Request, work: Coroutine[Any, Any, T]) -> T:
    """The result of `work`, which is given up where the sender of the request goes away."""

    async def gone() -> None:
        while (await request.receive())["type"] != "http.disconnect":
            pass

    tasks = asyncio.create_task(work), asyncio.create_task(gone())
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        if not tasks[0].done():
            raise _went_away()
        return tasks[0].result()
    finally:
        for task in tasks:
            task.cancel()


def _went_away() -> HTTPException:
    return HTTPException(400, "the sender of this request went away.")


@asynccontextmanager
async def received(
    request: Request, settings: ServerSettings
) -> AsyncIterator[tuple[PredictRequest, Uploads]]:
    """The message of a request and its files, which are there until its end."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind == JSON:
        async with in_time(settings):
            body = await request.body()
        yield message_of(PredictRequest, body), Uploads()
    elif kind == FORM:
        with tempfile.TemporaryDirectory(prefix="sixjars-") as folder:
            async with in_time(settings):
                most, size = settings.max_inputs, settings.json_bytes
                form = request.form(max_files=most, max_fields=2, max_part_size=size)
                async with form as parts:
                    message = await _of_form(parts, Uploads(Path(folder)))
            yield message
    else:
        raise HTTPException(415, f"send {JSON}, or {FORM} with files, but not {shown(kind)}.")


async def _of_form(form: FormData, uploads: Uploads) -> tuple[PredictRequest, Uploads]:
    if unknown := sorted(set(form) - {"request", "files"}):
        raise HTTPException(
            422, f"a form has the parts 'request' and 'files', but this has {shown(unknown[0])}."
        )
    text, files = form.get("request", "{}"), form.getlist("files")
    if not isinstance(text, str):
        raise HTTPException(422, "the part 'request' of the form must be JSON, but is a file.")
    for file in files:
        if not isinstance(file, UploadFile):
            raise HTTPException(422, "the part 'files' of the form must be files, but is a text.")
        await asyncio.to_thread(uploads.add, file)
    return message_of(PredictRequest, text), uploads


def inputs_of(
    message: PredictRequest, uploads: Uploads, fields: Mapping[str, Field], settings: ServerSettings
) -> list[Input]:
    """The inputs, with paths for the names of files, and a sentence for one that is wrong."""
    files = [name for name, field in fields.items() if field.is_media]
    given: Sequence[Any] | None = message.inputs
    if given is None and uploads.names and list(fields) == files and len(files) == 1:
        return list(uploads.names)
    if not given:
        raise HTTPException(422, "request.inputs: give a list of at least one input.")
    if len(given) > settings.max_inputs:
        allowed = f"this server allows {settings.max_inputs} in a request (--max-inputs)"
        raise HTTPException(422, f"request.inputs: there are {len(given)}, but {allowed}.")
    return [_input(each, uploads, list(fields), files, settings.max_text) for each in given]


def _input(given: Any, uploads: Uploads, names: list[str], files: list[str], most: int) -> Input:
    """One input; a field that is a file can only be the name of an upload."""
    if (size := _size(given)) > most:
        return UnreadableInput(
            f"has {size} characters, but this server allows {most} (--max-text)."
        )
    alone = {names[0]: given} if len(names) == 1 else {}
    values = dict(given if isinstance(given, dict) else alone)
    for name in (name for name in values if name in files):
        values[name] = uploads.path(values[name])
        if isinstance(values[name], UnreadableInput):
            return UnreadableInput(f"the {name} {values[name].sentence}")
    # a path of this machine under another name must not get through
    if files and set(values) != set(names):
        return UnreadableInput(f"must name {' and '.join(names)}.")
    return values or given


def _size(value: Any) -> int:
    """Characters of all texts in a value; a number, a list or an object counts as one more."""
    if isinstance(value, str):
        return len(value)
    if isinstance(value, dict):
        return 1 + sum(_size(key) + _size(inner) for key, inner in value.items())
    return 1 + sum(map(_size, value)) if isinstance(value, list) else 1
