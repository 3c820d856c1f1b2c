"""A stand-in of the hub: the endpoints that Spaces and models are sent to."""

from __future__ import annotations

import base64
import hashlib
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import huggingface_hub.constants
import pytest
import yaml

LIMIT = 10 * 2**20
"""A file above it must go another way than through the commit."""


class Hub(ThreadingHTTPServer):
    """The endpoints of the hub that making a Space needs; keeps what it was sent."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Answers)
        self.address = f"http://127.0.0.1:{self.server_port}"
        self.made: dict = {}
        self.files: dict[str, bytes] = {}
        self.objects: dict[str, bytes] = {}
        self.variables: dict[str, str] = {}
        self.hardware = ""
        self.refuses = False
        self.asked: list[str] = []


class Answers(BaseHTTPRequestHandler):
    server: Hub

    def log_message(self, *args: object) -> None:
        """Say nothing."""

    def answer(self, content: object, code: int = 200) -> None:
        body = json.dumps(content).encode()
        self.send_response(code)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self) -> None:
        hub, path = self.server, self.path.split("?")[0]
        hub.asked.append(path)
        if path.endswith("/runtime"):
            self.answer({"stage": "BUILDING", "hardware": {"current": None, "requested": hub.hardware}})
        elif "/tree/" in path:
            self.answer([{"type": "file", "path": name, "size": 1, "oid": "0"} for name in hub.files])
        else:
            self.answer({"error": f"no {path}"}, 404)

    def do_PUT(self) -> None:
        self.server.objects[self.path.rsplit("/", 1)[1]] = self.rfile.read(int(self.headers["content-length"]))
        self.answer({})

    def do_POST(self) -> None:
        hub, path = self.server, self.path.split("?")[0]
        hub.asked.append(path)
        body = self.rfile.read(int(self.headers["content-length"]))
        sent = [json.loads(line) for line in body.splitlines()]
        if hub.refuses:
            self.answer({"error": "You do not have the rights"}, 403)
        elif path == "/api/repos/create":
            there, hub.made = bool(hub.made), hub.made or sent[0]
            hub.hardware = hub.hardware or sent[0].get("hardware", "")
            kind = "spaces/" if sent[0].get("type") == "space" else ""
            address = f"{hub.address}/{kind}{sent[0]['organization']}/{sent[0]['name']}"
            self.answer({"url": address}, 409 if there else 200)
        elif path == "/api/validate-yaml":
            yaml.safe_load(sent[0]["content"].split("---")[1])
            self.answer({})
        elif path.endswith("/preupload/main"):
            files = [(file["path"], file["size"]) for file in sent[0]["files"]]
            large = {name: size > LIMIT or Path(name).suffix == ".png" for name, size in files}
            modes = {name: "lfs" if found else "regular" for name, found in large.items()}
            self.answer({"files": [{"path": n, "uploadMode": m, "shouldIgnore": False} for n, m in modes.items()]})
        elif path.endswith("/info/lfs/objects/batch"):
            uploads = [{**one, "href": f"{hub.address}/{one['oid']}"} for one in sent[0]["objects"]]
            self.answer({"objects": [{**one, "actions": {"upload": {"href": one["href"]}}} for one in uploads]})
        elif path.endswith("/commit/main"):
            self.commit([(line["key"], line["value"]) for line in sent])
            address = hub.address + path.removeprefix("/api").removesuffix("/main") + "/0"
            self.answer({"commitUrl": address, "commitOid": "0" * 40})
        elif path.endswith("/variables"):
            hub.variables[sent[0]["key"]] = sent[0]["value"]
            self.answer({sent[0]["key"]: {"value": sent[0]["value"]}})
        elif path.endswith("/hardware"):
            hub.hardware = sent[0]["flavor"]
            self.answer({"stage": "BUILDING"})
        else:
            self.answer({"error": f"no {path}"}, 404)

    def commit(self, lines: list[tuple[str, dict]]) -> None:
        for key, value in lines:
            if key == "file":
                self.server.files[value["path"]] = base64.b64decode(value["content"])
            elif key == "lfsFile":
                content = self.server.objects[value["oid"]]
                assert hashlib.sha256(content).hexdigest() == value["oid"]
                self.server.files[value["path"]] = content
            elif key == "deletedFile":
                del self.server.files[value["path"]]


@contextmanager
def serve_hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    """Serve a hub, and let the client send everything there."""
    # The protocol of its storage is that of a library in Rust, with servers of its own: files go the way before it.
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_DISABLE_XET", True)
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", False)
    server = Hub()
    monkeypatch.setattr(huggingface_hub.constants, "ENDPOINT", server.address)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()
