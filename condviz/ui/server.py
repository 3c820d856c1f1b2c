"""What surrounds the page on its server: static files and health, hosts, headers, sizes, compression, a request log."""

from __future__ import annotations

import hmac
import logging
import os
import re
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from typing import Any
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import FileResponse, HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from condviz.paths import ASSETS
from condviz.ui.limits import MAX_BODY_BYTES
from condviz.ui.markup import STATIC, render, static_url
from condviz.ui.plotly_panel import plotly_source
from condviz.ui.requests import Requests, refusal
from condviz.ui.state import HOME, page_called, path_of, read_query

LOOPBACK = ("127.0.0.1", "localhost")
PRIVATE_NETWORKS = "127.0.0.1,::1,10.0.0.0/8,172.16.0.0/12,192.168.0.0/16,fc00::/7"
"""Where the proxy of a Space stands. With "*" instead, uvicorn would believe whatever a visitor writes."""
LOG = logging.getLogger("condviz.requests")
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
    """Build the middleware of a page that listens on a host, outermost first.

    On a loopback address only that machine's own names are answered, so that no web site can reach the page through a
    name that it resolves to 127.0.0.1 (DNS rebinding). Elsewhere CONDVIZ_HOSTS may list the names; without it, all are.
    """
    listed = [name.strip() for name in os.environ.get("CONDVIZ_HOSTS", "").split(",") if name.strip()]
    # gradio asks its own address whether it has started.
    hosts = [*listed, *LOOPBACK, host] if listed or host in LOOPBACK else ["*"]
    trusted = Middleware(TrustedHostMiddleware, allowed_hosts=hosts, www_redirect=False)
    logged = [Middleware(RequestLog)] if os.environ.get("CONDVIZ_LOG", "") not in ("", "0") else []
    inner = [Middleware(one) for one in (Prefix, Limits, Compression, Requests, Forward)]
    return [*logged, trusted, Middleware(Origins, hosts=hosts), *inner]


def trust_proxies() -> None:
    """Let uvicorn take visitors' addresses from the proxy of a Space, so that they do not all count as one.

    Elsewhere only a proxy on this machine is believed, unless uvicorn's own FORWARDED_ALLOW_IPS names others.
    """
    if os.environ.get("SPACE_ID"):
        os.environ.setdefault("FORWARDED_ALLOW_IPS", PRIVATE_NETWORKS)


def routes() -> list[BaseRoute]:
    """Return the routes of health, styles, scripts, fonts and pictures; addresses do not tell where files lie."""
    folders = [Mount(f"/{STATIC}/{name}", StaticFiles(directory=ASSETS / name)) for name in FOLDERS]
    plotly = plotly_source()
    return [
        Route("/healthz", healthz),
        Route("/readyz", readyz),
        Route(f"/{STATIC}/qr.svg", draw_code),
        Route(f"/{STATIC}/{plotly.name}", lambda request: FileResponse(plotly)),
        *folders,
    ]


async def missing(request: Request, error: Exception) -> Response:
    """Answer what is not here: in words to a browser that opens it, else as {"detail": ...}."""
    if request.method == "GET" and "text/html" in request.headers.get("accept", ""):
        shown = {"path": request.url.path[:80], "home": request.base_url.path, "sheet": static_url("css/tokens.css")}
        return HTMLResponse(render("missing.html", **shown), 404)
    return JSONResponse({"detail": getattr(error, "detail", "Not Found")}, 404)


MAX_CODE = 1_000
"""Characters of a link that a phone still reads off a beamer."""


async def draw_code(request: Request) -> Response:
    """Draw a link to this page (`to`) as a QR code, for phones in front of a beamer."""
    import segno  # small, pure Python, without dependencies of its own

    link = request.query_params.get("to", "")
    if not link.startswith(("http://", "https://")) or len(link) > MAX_CODE:
        return refusal(400, f"to must be the address of a page, of at most {MAX_CODE} characters.")
    drawn = segno.make_qr(link, error="l").svg_inline(scale=4, border=2, light="#fff")
    return Response(drawn.replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', 1), media_type="image/svg+xml")


async def healthz(request: Request) -> JSONResponse:
    """Answer that the server is alive, and how many of its models are loaded; always 200."""
    return JSONResponse(_health(request))


async def readyz(request: Request) -> JSONResponse:
    """Answer as `healthz`, with 503 until every model is loaded or has failed."""
    health = _health(request)
    return JSONResponse(health, 200 if health["ready"] else 503)


def _health(request: Request) -> dict[str, Any]:
    pool = request.app.blocks.condviz_pool
    phases = [state.phase for state in pool.states().values() if state.phase != "absent"]
    counts = {"models": len(phases), "loaded": phases.count("ready"), "failed": phases.count("failed")}
    return {"status": "ok", "ready": pool.settled, **counts}


def password() -> dict[str, Any]:
    """Return the options for `launch` that ask for CONDVIZ_PASSWORD, whatever the name; none where it is not set."""
    wanted = os.environ.get("CONDVIZ_PASSWORD", "")
    if not wanted:
        return {}

    def right(name: str, given: str) -> bool:
        return hmac.compare_digest(given.encode(), wanted.encode())

    return {"auth": right, "auth_message": "Any name, and the password of this page."}


@dataclass
class Prefix:
    """Serve the page under a path (GRADIO_ROOT_PATH), whether the proxy passes that path on or strips it.

    Starlette finds mounted files only where the path begins with `root_path`, so a stripped one is put back.
    """

    app: ASGIApp

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass one request on."""
        # A whole address is allowed, too; FastAPI has put it into the scope.
        prefix = urlsplit(scope.get("root_path", "")).path.rstrip("/")
        if prefix and scope["type"] in ("http", "websocket"):
            path = scope["path"]
            whole = path if path == prefix or path.startswith(f"{prefix}/") else prefix + path
            scope = {**scope, "root_path": prefix, "path": whole}
        await self.app(scope, receive, send)


class Compression(GZipMiddleware):
    """Compress pages and JSON. What has a file's name gradio compresses itself; streams of events are left alone."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        name = scope.get("path", "").rpartition("/")[2]
        await (self.app if "." in name else super().__call__)(scope, receive, send)


class RequestLog:
    """Log method, path, status, time and address of every request; no query and no body, which hold visitors' texts."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app
        if not LOG.hasHandlers():
            handler = logging.StreamHandler(sys.stderr)
            handler.setFormatter(logging.Formatter("%(asctime)s %(message)s", "%Y-%m-%dT%H:%M:%S%z"))
            LOG.addHandler(handler)
            LOG.propagate = False  # libraries set up the root logger later
        LOG.setLevel(logging.INFO)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        start, status = time.perf_counter(), 0

        async def answered(message: Message) -> None:
            nonlocal status
            status = message.get("status", status)
            await send(message)

        try:
            await self.app(scope, receive, answered)
        finally:
            # Names of uploaded files are texts of visitors as well.
            path = re.sub(r"(/file(?:/|=)).*", r"\1...", scope["path"])[:200]
            address, took = (scope.get("client") or ("-",))[0], 1000 * (time.perf_counter() - start)
            LOG.info("%s %s %s %d %.0f ms", address, scope["method"], ascii(path)[1:-1], status or 499, took)


@dataclass
class Origins:
    """Refuse what the page of another site has a browser send; for a form, no browser asks the server first."""

    app: ASGIApp
    hosts: Sequence[str]
    """Names of this server; "*" among them lets all in."""

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


@dataclass
class Forward:
    """Send links of the time when all views were tabs of one page, `/?t=map&near=30`, on to `/map?near=30`.

    So a Space can be linked into, too: it passes on the query of its own page, and not the path. The way there is
    relative, so that it holds behind any prefix that a proxy takes off (GRADIO_ROOT_PATH).
    """

    app: ASGIApp

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        place = _forward(scope) if scope["type"] == "http" and scope["method"] in ("GET", "HEAD") else ""
        await (RedirectResponse(place) if place else self.app)(scope, receive, send)


def _forward(scope: Scope) -> str:
    """Return where a request for a page is sent on to, relative to it; "" where it is answered here."""
    pages = {path for path, *_ in getattr(getattr(scope.get("app"), "blocks", None), "pages", ())}
    path = scope["path"].removeprefix(scope.get("root_path", ""))
    here, query = path.strip("/"), scope["query_string"].decode("latin-1")
    if here not in (*pages, HOME):
        return ""
    values = read_query(query)
    asked = next((values[key][0] for key in ("t", "tab") if key in values), HOME if here == HOME else "")
    there = path_of(page_called(asked)) if asked else here
    if there in pages and asked:
        query = "&".join(part for part in query.split("&") if part.partition("=")[0] not in ("t", "tab"))
    elif not (here and path.endswith("/")):
        return ""
    up = "../" if here and path.endswith("/") else "./"
    return f"{up}{there if there in pages else here}" + (f"?{query}" if query else "")


@dataclass
class Limits:
    """Refuse bodies over `MAX_BODY_BYTES`, and add `HEADERS` to every answer."""

    app: ASGIApp

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
