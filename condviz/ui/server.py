"""What guards the server of the page: hosts it answers to, headers, size of requests, an optional password."""

from __future__ import annotations

import hmac
import os
import re
from collections.abc import Sequence
from fnmatch import fnmatch
from typing import Any

from starlette.datastructures import Headers, MutableHeaders
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import ClientDisconnect
from starlette.responses import FileResponse
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from condviz.paths import ASSETS
from condviz.ui.limits import MAX_BODY_BYTES
from condviz.ui.markup import STATIC
from condviz.ui.plotly_panel import plotly_source
from condviz.ui.requests import Requests, refusal

LOOPBACK = ("127.0.0.1", "localhost")
FOLDERS = ("css", "js", "fonts", "images")
"""Of the assets, for browsers."""
HEADERS = {
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",
    # gradio evaluates its templates and styles in the page; what comes from elsewhere has no place. A Space is a frame.
    "content-security-policy": (
        "default-src 'self'; script-src 'self' 'unsafe-inline' 'unsafe-eval' blob:; style-src 'self' 'unsafe-inline'; "
        "img-src 'self' data: blob:; font-src 'self' data:; connect-src 'self' ws: wss: data: blob:; "
        "worker-src 'self' blob:; object-src 'none'; base-uri 'self'; form-action 'self'; "
        "frame-ancestors 'self' https://huggingface.co https://*.hf.space"
    ),
}


def middleware(host: str) -> list[Middleware]:
    """Return what stands before the page.

    Args:
        host: Address that the server listens on. On a loopback address only that machine's own names are answered, so
            that no web site can reach the page through a name that it resolves to 127.0.0.1 (DNS rebinding). Elsewhere
            CONDVIZ_HOSTS may list the names, with commas; without it, all are answered. Pages of other sites may send
            nothing, either.
    """
    listed = [name.strip() for name in os.environ.get("CONDVIZ_HOSTS", "").split(",") if name.strip()]
    # gradio asks its own address whether it has started.
    hosts = [*listed, *LOOPBACK, host] if listed or host in LOOPBACK else ["*"]
    trusted = Middleware(TrustedHostMiddleware, allowed_hosts=hosts, www_redirect=False)
    return [trusted, Middleware(Origins, hosts=hosts), Middleware(Limits), Middleware(Requests)]


def routes() -> list[BaseRoute]:
    """Return what serves styles, scripts, fonts and pictures, under addresses that do not tell where they lie."""
    folders = [Mount(f"/{STATIC}/{name}", StaticFiles(directory=ASSETS / name)) for name in FOLDERS]
    source = plotly_source()
    return [*folders, Route(f"/{STATIC}/{source.name}", lambda request: FileResponse(source))]


def password() -> dict[str, Any]:
    """Return the options for `launch` that ask for CONDVIZ_PASSWORD, whatever the name; none where it is not set."""
    wanted = os.environ.get("CONDVIZ_PASSWORD", "")
    if not wanted:
        return {}

    def right(name: str, given: str) -> bool:
        return hmac.compare_digest(given.encode(), wanted.encode())

    return {"auth": right, "auth_message": "Any name, and the password of this page."}


class Origins:
    """Refuse what the page of another site has a browser send; for a form, no browser asks the server first."""

    def __init__(self, app: ASGIApp, hosts: Sequence[str]) -> None:
        """Keep the application behind it, and the names of this server; "*" among them lets all in."""
        self.app, self.hosts = app, hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        headers = Headers(raw=scope.get("headers", []))
        origin, called = headers.get("origin", ""), headers.get("host", "")
        name = re.sub(r"^\w+://|:\d+$", "", origin)
        # Other programs of this machine have pages, too, with the same name and another port.
        foreign = "*" not in self.hosts and name in LOOPBACK and _port(origin) != _port(called)
        if origin and (foreign or not any(fnmatch(name, host) for host in self.hosts)):
            message = f"The page of {name[:80]!r} may not use this server. CONDVIZ_HOSTS lists names that may."
            await refusal(403, message)(scope, receive, send)
        else:
            await self.app(scope, receive, send)


def _port(address: str) -> str:
    return address.rpartition(":")[2] if re.search(r":\d+$", address) else ""


class Limits:
    """Refuse bodies over `MAX_BODY_BYTES`, and add `HEADERS` to every answer."""

    def __init__(self, app: ASGIApp) -> None:
        """Keep the application behind it."""
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        limit = f"{MAX_BODY_BYTES // 1_000_000} MB"
        too_large = refusal(413, f"The request is larger than {limit}. Send less, or use the command line.")
        length = Headers(scope=scope).get("content-length", "0")
        if not (length.isascii() and length.isdigit()) or int(length) > MAX_BODY_BYTES:
            await too_large(scope, receive, send)
            return
        read, started = 0, False

        async def counted() -> Message:
            nonlocal read
            message = await receive()
            read += len(message.get("body", b""))
            # A body without a declared length ends here, as if its sender had gone.
            return {"type": "http.disconnect"} if read > MAX_BODY_BYTES else message

        async def answered(message: Message) -> None:
            nonlocal started
            started = True
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        try:
            await self.app(scope, counted, answered)
        except ClientDisconnect:
            if read <= MAX_BODY_BYTES:
                raise
        if read > MAX_BODY_BYTES and not started:
            await too_large(scope, receive, send)
