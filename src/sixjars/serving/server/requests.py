"""From the bytes of a request to inputs: JSON, or a form with files that are kept until it is answered."""

import asyncio
import re
import shutil
import tempfile
from collections.abc import AsyncIterator, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager
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
from sixjars.runs.requests import Input, Unreadable
from sixjars.serving.server.messages import PredictRequest
from sixjars.serving.server.settings import ServerSettings
from sixjars_runtime.errors import shown

M = TypeVar("M", bound=BaseModel)
T = TypeVar("T")
FORM, JSON = "multipart/form-data", "application/json"


@final
class Uploads:
    """Files of one request, in a folder of their own under names of our own."""

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = folder
        self.names: dict[str, str] = {}
        """By path, the name that the sender gave."""

    def add(self, file: UploadFile) -> None:
        """Keep one."""
        assert self.folder is not None
        given = plain_name(file.filename)
        path = self.folder / f"{uuid4().hex}{ending_of(given)}"
        with path.open("wb") as target:
            shutil.copyfileobj(file.file, target)
        self.names[str(path)] = given

    def path(self, name: object) -> str | Unreadable:
        """Where the file of that name is; a sentence where there is none, or several."""
        wanted = plain_name(name) if isinstance(name, str) else None
        found = [path for path, given in self.names.items() if given == wanted]
        if len(found) == 1:
            return found[0]
        there = (
            f"uploaded are: {', '.join(self.names.values())}"
            if self.names
            else "no file was uploaded"
        )
        wrong = (
            "is the name of several uploaded files; give each its own"
            if found
            else f"is no uploaded file; {there}"
        )
        return Unreadable(f"{shown(name)} {wrong}.")


def plain_name(given: str | None) -> str:
    r"""The name of a file without its folder, as it may be shown.

    >>> plain_name("..\\x/cat\n.jpg"), plain_name(None), len(plain_name("a" * 300))
    ('cat.jpg', 'file', 100)
    """
    last = re.split(r"[/\\]", given or "")[-1]
    return "".join(one for one in last if one.isprintable())[-100:] or "file"


def ending_of(name: str) -> str:
    """How a name ends, if that is harmless: arrays are told by it.

    >>> ending_of("cat.JPG"), ending_of("x.tar.gz"), ending_of("x.☃"), ending_of("none")
    ('.JPG', '.gz', '', '')
    """
    found = re.search(r"\.[A-Za-z0-9]{1,8}$", name)
    return found[0] if found else ""


def message_of(schema: type[M], text: bytes | str) -> M:
    """The message that some JSON is; 422 with every fault in it."""
    try:
        values: Any = from_json(text or b"{}", allow_inf_nan=False)
    except ValueError as error:
        raise HTTPException(422, f"the request is not JSON: {error}.") from None
    found, faults = checked(schema, values, "request")
    if found is None:
        raise HTTPException(422, " ".join(faults[:5]))
    return found


@asynccontextmanager
async def in_time(settings: ServerSettings) -> AsyncIterator[None]:
    """A request must not arrive too slowly; one whose sender goes away is no fault of ours."""
    try:
        async with asyncio.timeout(settings.time_limit):
            yield
    except TimeoutError:
        raise HTTPException(
            408, f"the request took longer than {settings.time_limit:g} seconds to arrive."
        ) from None
    except ClientDisconnect:
        raise _went_away() from None


async def while_there(request: Request, work: Coroutine[Any, Any, T]) -> T:
    """What is computed; it is given up where the sender of a request that was read goes away."""

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
                parts = {
                    "max_files": settings.max_inputs,
                    "max_fields": 2,
                    "max_part_size": settings.json_bytes,
                }
                async with request.form(**parts) as form:
                    found = await _of_form(form, Uploads(Path(folder)))
            yield found
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
    asked: PredictRequest, uploads: Uploads, fields: Mapping[str, Field], settings: ServerSettings
) -> list[Input]:
    """The inputs, with paths in place of the names of files; whatever is wrong with one is told in its place."""
    files = [name for name, own in fields.items() if own.is_media]
    given: Sequence[Any] | None = asked.inputs
    if given is None and uploads.names and list(fields) == files and len(files) == 1:
        return list(uploads.names)
    if not given:
        raise HTTPException(422, "request.inputs: give a list of at least one input.")
    if len(given) > settings.max_inputs:
        told = f"request.inputs: there are {len(given)}, but this server allows {settings.max_inputs} in a request"
        raise HTTPException(422, f"{told} (--max-inputs).")
    return [_input(one, uploads, list(fields), files, settings.max_text) for one in given]


def _input(one: Any, uploads: Uploads, names: list[str], files: list[str], most: int) -> Input:
    """One input; a field that is a file is nothing but the name of an upload."""
    if (size := _size(one)) > most:
        return Unreadable(f"has {size} characters, but this server allows {most} (--max-text).")
    values = one if isinstance(one, dict) else {names[0]: one} if len(names) == 1 else {}
    found: dict[str, Any] = {}
    for name, value in values.items():
        found[name] = uploads.path(value) if name in files else value
        if isinstance(found[name], Unreadable):
            return Unreadable(f"the {name} {found[name].sentence}")
    if files and set(found) != set(
        names
    ):  # a path of this machine under another name must not get through
        return Unreadable(f"must name {' and '.join(names)}.")
    return found if found else one


def _size(value: Any) -> int:
    """Characters of all texts in a value; a number counts as one, and so does a list or an object."""
    if isinstance(value, str):
        return len(value)
    if isinstance(value, dict):
        return 1 + sum(_size(one) for pair in value.items() for one in pair)
    return 1 + sum(map(_size, value)) if isinstance(value, list) else 1
