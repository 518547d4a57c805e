"""Text of a model file for the editor of the page: reading, checking, saving, words for completion."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from fsm_dyn.core.errors import InputError
from fsm_dyn.core.files import write_file
from fsm_dyn.language.loader import load
from fsm_dyn.page.broadcast import error_payload

LARGEST: Final = 1_000_000  # bytes of a text
_DEEPEST: Final = 12  # of the schema


class Editor:
    """A model file under edit."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def payload(self) -> dict[str, Any]:
        """Return name and text of the file, and the words for completion.

        Raises InputError: the file cannot be read.
        """
        try:
            text = self.path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(f"cannot read '{self.path}'", found=str(error)) from error
        return {"name": self.path.name, "text": text, "words": completions()}

    def check(self, text: str) -> dict[str, Any] | None:
        """Return the error of a text with its line and column, from 1; None without one."""
        try:
            load(str(self.path), text=text)
        except InputError as error:
            return {**error_payload(error), "line": error.where.line, "column": error.where.column}
        return None

    def save(self, text: str) -> None:
        """Write the file, which is watched: the page starts the model again.

        Raises InputError: the file cannot be written.
        """
        try:
            write_file(self.path, text)
        except OSError as error:
            raise InputError(f"cannot write '{self.path}'", found=str(error)) from error


def completions() -> dict[str, dict[str, str]]:
    """Return the keys of a model with their meanings: under the empty name the first ones, else those in a section."""
    # deferred: of edited models alone
    from fsm_dyn.language.describe_keys import json_schema

    schema = json_schema()
    sections: Mapping[str, Any] = schema["properties"]
    found = {"": {name: str(part.get("description", "")) for name, part in sections.items()}}
    for name, part in sections.items():
        found[name] = dict(_keys(part, schema, 0))
    return found


def _keys(part: Any, schema: Mapping[str, Any], depth: int) -> Iterator[tuple[str, str]]:
    if depth > _DEEPEST or not isinstance(part, Mapping):
        return
    if "$ref" in part:
        yield from _keys(schema["$defs"][part["$ref"].rsplit("/", 1)[-1]], schema, depth + 1)
    for name, own in part.get("properties", {}).items():
        yield name, str(own.get("description", ""))
    for key in ("anyOf", "oneOf", "allOf", "prefixItems"):
        for own in part.get(key, ()):
            yield from _keys(own, schema, depth + 1)
    for own in part.get("patternProperties", {}).values():
        yield from _keys(own, schema, depth + 1)
    for key in ("items", "additionalProperties"):
        yield from _keys(part.get(key), schema, depth + 1)


def editor_routes(editor: Editor | None, check: Callable[[str], None]) -> list[Route]:
    """Return the routes of an edited file.

    ``editor``: without it there is nothing at their addresses; ``check``: raises for a wrong token.
    """

    def edited(request: Request) -> Editor:
        check(request.path_params["token"])
        if editor is None:
            raise HTTPException(404)
        return editor

    async def text_of(request: Request) -> Response:
        return JSONResponse(await asyncio.to_thread(edited(request).payload))

    async def take(request: Request) -> Response:
        own, body = edited(request), b""
        if request.headers.get("origin") != f"http://{request.headers['host']}":
            raise HTTPException(403)
        async for part in request.stream():
            body += part
            if len(body) > LARGEST:
                raise HTTPException(413)
        text = body.decode("utf-8", errors="replace")
        if request.url.path.endswith("/save"):
            await asyncio.to_thread(own.save, text)
        return JSONResponse(await asyncio.to_thread(own.check, text))

    return [
        Route("/{token}/source", text_of, methods=["GET"]),
        *(Route(f"/{{token}}/{name}", take, methods=["POST"]) for name in ("check", "save")),
    ]
