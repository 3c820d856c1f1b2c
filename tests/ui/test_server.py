"""What guards the server: hosts, headers, size of requests, password."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace

import pytest
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route
from starlette.testclient import TestClient

from condviz.ui.server import HEADERS, MAX_BODY_BYTES, middleware, missing, password, routes, trust_proxies


async def echo(request: Request) -> PlainTextResponse:
    return PlainTextResponse(str(len(await request.body())))


def client(host: str, called: str) -> TestClient:
    app = Starlette(routes=[Route("/", echo, methods=["GET", "POST"])], middleware=middleware(host))
    return TestClient(app, base_url=f"http://{called}", raise_server_exceptions=False)


@pytest.mark.parametrize("name", ["evil.example", "127.0.0.1.evil.example", "localhost.evil.example"])
def test_a_local_page_answers_to_its_own_names_only(name: str) -> None:
    assert client("127.0.0.1", f"{name}:7860").get("/").status_code == 400
    assert client("127.0.0.1", "127.0.0.1:7860").get("/").status_code == 200
    assert client("127.0.0.1", "localhost:7860").get("/").status_code == 200


def test_a_server_answers_to_the_names_it_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    assert client("0.0.0.0", "class.example").get("/").status_code == 200
    monkeypatch.setenv("CONDVIZ_HOSTS", "class.example, other.example")
    assert client("0.0.0.0", "class.example").get("/").status_code == 200
    assert client("0.0.0.0", "evil.example").get("/").status_code == 400


@pytest.mark.parametrize(
    ("origin", "status"),
    [
        ("http://127.0.0.1:7860", 200),
        ("http://localhost:7860", 200),
        ("https://class.example", 200),
        ("http://localhost:9999", 403),
        ("http://localhost", 403),
        ("http://evil.example", 403),
        ("http://127.0.0.1.evil.example:7860", 403),
        ("null", 403),
        ("http://[", 403),
    ],
)
def test_pages_of_other_sites_may_send_nothing(monkeypatch: pytest.MonkeyPatch, origin: str, status: int) -> None:
    assert client("0.0.0.0", "class.example").post("/", headers={"origin": origin}).status_code == 200
    monkeypatch.setenv("CONDVIZ_HOSTS", "class.example")
    asked = client("127.0.0.1", "localhost:7860").post("/", headers={"origin": origin})
    assert asked.status_code == status
    assert status == 200 or "CONDVIZ_HOSTS" in asked.json()["error"]


def test_every_answer_has_the_headers() -> None:
    answer = client("127.0.0.1", "localhost").get("/")
    assert all(answer.headers[name] == value for name, value in HEADERS.items())


def test_large_bodies_are_refused_whether_they_say_so_or_not() -> None:
    page = client("127.0.0.1", "localhost")
    assert page.post("/", content=b"x" * 1000).text == "1000"
    answer = page.post("/", content=b"x" * (MAX_BODY_BYTES + 1))
    assert answer.status_code == 413
    assert "8 MB" in answer.json()["error"]

    def endless() -> Iterator[bytes]:
        for _ in range(MAX_BODY_BYTES // 100_000 + 2):
            yield b"x" * 100_000

    answer = page.post("/", content=endless())
    assert answer.status_code == 413
    assert "8 MB" in answer.json()["error"]


def test_a_password_is_asked_for_where_one_is_set(monkeypatch: pytest.MonkeyPatch) -> None:
    assert password() == {}
    monkeypatch.setenv("CONDVIZ_PASSWORD", "secret")
    assert password()["auth"]("anyone", "secret")
    assert not password()["auth"]("anyone", "wrong")


@pytest.mark.parametrize(
    ("trusted", "space", "address"),
    [("", False, "172.17.0.1"), ("172.16.0.0/12", False, "198.51.100.7"), ("", True, "198.51.100.7")],
)
def test_visitors_behind_a_proxy_are_told_apart(
    monkeypatch: pytest.MonkeyPatch, trusted: str, space: bool, address: str
) -> None:
    for name, value in (("FORWARDED_ALLOW_IPS", trusted), ("SPACE_ID", "owner/name" if space else "")):
        monkeypatch.setenv(name, value) if value else monkeypatch.delenv(name, raising=False)
    trust_proxies()

    async def whose(request: Request) -> PlainTextResponse:
        return PlainTextResponse(request.client.host)

    config = uvicorn.Config(Starlette(routes=[Route("/", whose)]))
    config.load()
    visitor = TestClient(config.loaded_app, client=("172.17.0.1", 50000))
    # The first address is what the visitor wrote.
    assert visitor.get("/", headers={"x-forwarded-for": "203.0.113.9, 198.51.100.7"}).text == address


@pytest.mark.parametrize(
    ("asked", "answer"),
    [
        ("/?t=map&near=30&s=%C3%A4+b", "./map?near=30&s=%C3%A4+b"),
        ("/?tab=Router&rs1=a", "./words?rs1=a"),
        ("/map?t=compare&s1=a", "./?s1=a"),
        ("/map/?near=30", "../map?near=30"),
        ("/compare?s1=a", "./?s1=a"),
        ("/?t=nothing", ""),
        ("/map?near=30", ""),
        ("/condviz/js/map.js?t=map", ""),
    ],
)
def test_links_to_a_tab_go_on_to_its_page(asked: str, answer: str) -> None:
    app = Starlette(routes=[Route("/{rest:path}", echo)], middleware=middleware("*"))
    app.blocks = SimpleNamespace(pages=[("", "Compare", True), ("map", "Map", False), ("words", "Words", False)])
    found = TestClient(app, follow_redirects=False).get(asked)
    assert found.headers.get("location", "") == answer
    # Under a path, whether the proxy passes it on or not: the way is relative.
    for path in (asked, f"/condviz{asked}"):
        found = TestClient(app, follow_redirects=False, root_path="/condviz").get(path)
        assert found.headers.get("location", "") == answer


def test_a_browser_gets_a_page_in_words_where_there_is_none_and_programs_get_json() -> None:
    app = Starlette(exception_handlers={404: missing})
    for path, accept in (("/nope", "text/html,*/*"), ("/<b>x", "text/html"), ("/nope", "application/json")):
        answer = TestClient(app).get(path, headers={"accept": accept})
        assert answer.status_code == 404
        if "html" in accept:
            assert 'href="/"' in answer.text
            assert "<b>x" not in answer.text
        else:
            assert answer.json() == {"detail": "Not Found"}


def test_a_code_holds_the_address_of_a_page_and_nothing_else() -> None:
    visitor = TestClient(Starlette(routes=routes()))
    drawn = visitor.get("/cv-static/qr.svg", params={"to": "http://localhost/map?near=30"})
    assert drawn.headers["content-type"].startswith("image/svg+xml")
    assert "<path" in drawn.text
    for wrong in ("", "javascript:alert(1)", "http://localhost/?s1=" + "x" * 2_000):
        assert visitor.get("/cv-static/qr.svg", params={"to": wrong}).status_code == 400
