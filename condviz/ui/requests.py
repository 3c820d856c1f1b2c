"""Requests to gradio's API, read before gradio reads them: a clear answer to what it could not use; uploads."""

from __future__ import annotations

import json
import re
import secrets
import shutil
import threading
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import gradio as gr
from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from condviz.errors import DataError
from condviz.ui.limits import MAX_BODY_BYTES, Counts, Newest, Value, crowded

UPLOAD_BYTES = 100_000_000
"""What one address may upload within `UPLOAD_SECONDS`: twenty of the largest tables."""
UPLOAD_SECONDS = 3600
_CALL = re.compile(r".*/gradio_api/(call/v2|call|run|api|queue)/([^/]*)/?")


class Uploads:
    """Which sessions use which uploaded files; a file goes with the last session that used it.

    With it goes what was written beside it, such as a table with scores: gradio gives each content a folder.
    """

    def __init__(self) -> None:
        self._users: dict[str, set[str]] = {}
        self._lock = threading.Lock()

    def use(self, session: str, paths: Iterable[str]) -> None:
        with self._lock:
            for path in paths:
                self._users.setdefault(path, set()).add(session)

    def close(self, session: str) -> None:
        """Delete the files that nobody else uses, and the rest of their folders where nobody uses anything there."""
        with self._lock:
            for users in self._users.values():
                users.discard(session)
            unused = [Path(path) for path, users in self._users.items() if not users]
            self._users = {path: users for path, users in self._users.items() if users}
            for path in unused:
                path.unlink(missing_ok=True)
            for folder in {path.parent for path in unused} - {Path(path).parent for path in self._users}:
                shutil.rmtree(folder, ignore_errors=True)


UPLOADS = Uploads()


class Kept(Newest[str, Any]):
    """What visitors brought, or made of it, and no link holds: under a secret token, for the rest of the sitting.

    The upload behind it stays as long as it does.
    """

    def add(self, value: object, path: str = "") -> str:
        """Keep a value, and the upload at a path; return the token."""
        token = f"upload-{secrets.token_hex(16)}"
        self[token] = value
        UPLOADS.use(token, [path] if path else [])
        return token

    def find(self, token: str, kind: type[Value]) -> Value | None:
        value = self.get(token)
        return value if isinstance(value, kind) else None

    def popitem(self) -> tuple[str, Any]:
        """Let the oldest value go, and its upload where nobody else uses it."""
        token, value = super().popitem()
        UPLOADS.close(token)
        return token, value


KEPT = Kept(400)


def forget_uploads(request: gr.Request) -> None:
    """Delete the uploads of a session that was closed; for `blocks.unload`."""
    UPLOADS.close(str(request.session_hash))


class Requests:
    """Check calls of endpoints, count uploads, and answer what fails before an endpoint is reached."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app
        self._uploaded = Counts(UPLOAD_SECONDS)
        self._calls: Calls | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http" or scope["method"] != "POST" or "/gradio_api/" not in scope["path"]:
            await self.app(scope, receive, send)
            return
        headers, wait = Headers(scope=scope), ""
        try:
            if scope["path"].rstrip("/").endswith("/upload"):
                wait = self._count(scope, int(headers.get("content-length", MAX_BODY_BYTES)))
            elif "json" in headers.get("content-type", ""):
                body = await Request(scope, receive).body()
                wait, receive = self._check(scope, body), _again(body, receive)
        except ClientDisconnect:
            return
        except DataError as error:
            await refusal(400, str(error))(scope, receive, send)
            return
        await (refusal(429, wait) if wait else self.app)(scope, receive, send)

    def _check(self, scope: Scope, body: bytes) -> str:
        """Return why a body has to come again later, or ""; raises DataError if it cannot be used."""
        blocks = getattr(scope.get("app"), "blocks", None)
        content = read_json(body)
        if blocks is None or not (call := _CALL.fullmatch(scope["path"])):
            return ""
        self._calls = self._calls or Calls(blocks)
        kind, name = call.groups()
        if kind == "queue" or (kind in ("run", "api") and content.get("fn_index") is not None):
            self._calls.check_event(content)
            known = blocks.upload_file_set
            UPLOADS.use(str(content.get("session_hash")), [path for path in _paths(content["data"]) if path in known])
        else:
            self._calls.check_named(name, content, by_name=kind == "call/v2")
        session = None if kind == "call/v2" else content.get("session_hash")
        return crowded(blocks._queue, session, (scope.get("client") or (None,))[0])

    def _count(self, scope: Scope, size: int) -> str:
        """Count an upload; returns why it is refused, or ""."""
        address = (scope.get("client") or ("",))[0]
        if self._uploaded[address] + size > UPLOAD_BYTES:
            limit = UPLOAD_BYTES // 1_000_000
            return f"More than {limit} MB came from your address. Wait up to an hour, or use the command line."
        self._uploaded[address] += size
        return ""


@dataclass
class Calls:
    """The endpoints and events of a page: which names there are, and how many values each takes."""

    blocks: gr.Blocks

    @cached_property
    def endpoints(self) -> dict[str, dict[str, bool]]:
        """Name of each public endpoint -> its parameters, and whether they have a default."""
        return {
            name.removeprefix("/"): {
                one["parameter_name"]: one.get("parameter_has_default", False) for one in info["parameters"]
            }
            for name, info in self.blocks.get_api_info()["named_endpoints"].items()
        }

    def check_named(self, name: str, content: Mapping[str, Any], *, by_name: bool) -> None:
        """Check the body of a call of an endpoint: {"data": [values]}, or with `by_name` {parameter: value}."""
        if name not in self.endpoints:
            known = ", ".join(sorted(self.endpoints))
            raise DataError(f"There is no endpoint {name[:60]!r}. Endpoints: {known}.")
        names = self.endpoints[name]
        takes = f"/{name} takes {', '.join(names) or 'nothing'}"
        if not by_name:
            given = _data(content)
            if missing := list(names)[len(given) :]:
                raise DataError(f"{takes}; data has {len(given)} of {len(names)} values: {missing[0]} is missing.")
        elif unknown := [key for key in content if key not in names]:
            raise DataError(f"{takes}; {str(unknown[0])[:60]!r} is not one of them.")
        elif missing := [
            parameter for parameter, optional in names.items() if not optional and parameter not in content
        ]:
            raise DataError(f"{takes}; {missing[0]} is missing.")

    def check_event(self, content: Mapping[str, Any]) -> None:
        """Check an event of the page; raises DataError if there is none of its number or a value is missing."""
        index = content.get("fn_index")
        function = self.blocks.fns.get(index) if isinstance(index, int) else None
        if function is None:
            raise DataError("fn_index belongs to no event of this page. Reload it: the server runs another version.")
        if len(_data(content)) < len(function.inputs):
            raise DataError(f"data has {len(content['data'])} of {len(function.inputs)} values. Reload the page.")


def read_json(body: bytes) -> dict[str, Any]:
    """Read a body; raises DataError if it is no JSON object, or holds NaN or an infinite number."""

    def refuse(name: str) -> None:
        raise ValueError(f"{name} is not valid JSON; leave the value out, or send null")

    try:
        content = json.loads(body or b"{}", parse_constant=refuse)
    except (ValueError, RecursionError) as error:
        raise DataError(f"The body cannot be read: {str(error)[:200]}.") from error
    if not isinstance(content, dict):
        raise DataError('The body must be an object such as {"data": [...]}.')
    return content


def refusal(status: int, message: str) -> JSONResponse:
    """Return the answer {"error": message}."""
    return JSONResponse({"error": message}, status)


def _data(content: Mapping[str, Any]) -> list:
    data = content.get("data")
    if not isinstance(data, list):
        raise DataError(f"data must be a list of values, got {data!r:.60}.")
    return data


def _paths(value: object) -> Iterator[str]:
    if isinstance(value, Mapping) and isinstance(value.get("path"), str):
        yield value["path"]
    elif isinstance(value, list):
        for item in value:
            yield from _paths(item)


def _again(body: bytes, receive: Receive) -> Receive:
    """Return a `receive` that replays a buffered body and then goes on."""
    waiting = [{"type": "http.request", "body": body, "more_body": False}]

    async def replay() -> Message:
        return waiting.pop() if waiting else await receive()

    return replay
