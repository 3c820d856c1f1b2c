"""Requests to the API: what cannot be used gets a clear answer, and uploads go with the visit."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import gradio as gr
import pytest
from pydantic import ConfigDict, TypeAdapter
from starlette.testclient import TestClient

from condviz.errors import DataError
from condviz.paths import ASSETS
from condviz.ui import requests
from condviz.ui.events import _typed, publish
from condviz.ui.pool import ModelPool
from condviz.ui.requests import UPLOADS, Kept, Uploads, forget_uploads
from condviz.ui.server import middleware, routes
from tests.ports import free_ports


def double(word: str, times: int = 2) -> str:
    """Repeat a word.

    Args:
        word: Any text,
            on one line.
        times: How often.

    Returns:
        The word, repeated.
    """
    return word * times


SERVED: list[gr.Blocks] = []


@pytest.fixture(scope="module", autouse=True)
def closed() -> Iterator[None]:
    yield
    while SERVED:
        SERVED.pop().close(verbose=False)


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GRADIO_TEMP_DIR", str(tmp_path_factory.mktemp("uploads")))
        yield make_page()


def load(name: str) -> str:
    if name == "broken":
        raise DataError("It cannot be read.")
    return name


def make_page(root: str = "") -> TestClient:
    with gr.Blocks() as blocks:
        publish(double, "double", heavy=False)
        file, name = gr.File(), gr.Textbox()
        file.change(lambda path: path, file, name)
        blocks.unload(forget_uploads)
    blocks.queue(api_open=False)
    blocks.condviz_pool = ModelPool(["first", "broken"], load)
    served = {"middleware": middleware("127.0.0.1"), "routes": routes()}
    port = free_ports()[0]
    blocks.launch(server_port=port, root_path=root, app_kwargs=served, prevent_thread_lock=True, quiet=True)
    SERVED.append(blocks)
    client = TestClient(blocks.app, base_url="http://127.0.0.1", raise_server_exceptions=False)
    client.blocks, blocks.max_file_size = blocks, None
    return client


def post(page: TestClient, path: str, content: object) -> tuple[int, str]:
    body = content if isinstance(content, str) else json.dumps(content)
    path = path if path.startswith("/") else f"/gradio_api/{path}"
    answer = page.post(path, content=body, headers={"content-type": "application/json"})
    return answer.status_code, answer.json().get("error", "")


@pytest.mark.parametrize(
    ("path", "content", "named"),
    [
        ("call/nothing", {"data": []}, "double"),
        ("call/double", {"data": ["a"]}, "times is missing"),
        ("call/double", {"data": "a"}, "data must be a list"),
        ("call/double", {}, "data"),
        ("call/double", '{"data": [NaN, 1]}', "NaN"),
        ("call/double", '{"data": ["a", -Infinity]}', "Infinity"),
        ("call/double", "[" * 100_000, "recursion"),
        ("call/double", '"\\ud800"', "object"),
        ("call/double", "\x00", "body"),
        ("call/v2/double", {"wrod": "a"}, "wrod"),
        ("call/v2/double", {"times": 3}, "word is missing"),
        ("call/v2/nothing", {}, "nothing"),
        ("run/nothing", {"data": []}, "nothing"),
        ("run/predict", {"data": [], "fn_index": 99}, "fn_index"),
        ("queue/join", {"data": [], "fn_index": 0, "session_hash": "s"}, "0 of 2"),
        ("queue/join", {"data": [], "fn_index": [], "session_hash": "s"}, "fn_index"),
        ("reset", '{"event_id": NaN}', "NaN"),
    ],
)
def test_what_gradio_could_not_read_is_answered_clearly(
    page: TestClient, path: str, content: object, named: str
) -> None:
    status, message = post(page, path, content)
    assert status == 400
    assert named in message


@pytest.mark.parametrize("content", [{"word": "a"}, {"word": "a", "times": 3}])
def test_calls_in_order_go_through(page: TestClient, content: dict) -> None:
    assert post(page, "call/v2/double", content)[0] == 200
    assert post(page, "call/double", {"data": ["a", 2]})[0] == 200


def test_endpoints_describe_their_parameters_and_answers(page: TestClient) -> None:
    info = page.blocks.get_api_info()["named_endpoints"]["/double"]
    described = [(one["parameter_name"], one["label"], one["python_type"]) for one in info["parameters"]]
    assert described == [
        ("word", "word", {"type": "str", "description": "Any text, on one line."}),
        ("times", "times", {"type": "int", "description": "How often."}),
    ]
    assert info["returns"][0]["python_type"] == {"type": "str", "description": "The word, repeated."}
    assert info["description"] == "Repeat a word."


@pytest.mark.parametrize("root", ["/condviz", "/viz/words", "https://class.example/condviz"])
@pytest.mark.parametrize("stripped", [True, False])
def test_the_page_is_served_under_a_path_whether_the_proxy_strips_it_or_not(root: str, stripped: bool) -> None:
    from condviz.ui.markup import STATIC, static_url

    page = make_page(root)
    prefix = "" if stripped else root.removeprefix("https://class.example")
    for path in ("", static_url("css/page.css"), f"{STATIC}/plotly.min.js", "config", "healthz", "gradio_api/info"):
        # Not compressed, which takes most of a second for plotly.
        assert page.get(f"{prefix}/{path}", headers={"accept-encoding": "identity"}).status_code == 200, path
    assert page.get(f"{prefix}/config").json()["root"].endswith(root)
    assert post(page, f"{prefix}/gradio_api/call/v2/double", {"word": "a"})[0] == 200


def test_pages_are_compressed_and_files_are_left_to_gradio(page: TestClient) -> None:
    from condviz.ui.markup import STATIC

    for path in ("/", "/config", f"/{STATIC}/css/page.css"):
        assert page.get(path, headers={"accept-encoding": "gzip"}).headers["content-encoding"] == "gzip"
    font = next((ASSETS / "fonts").glob("*.woff2")).name
    assert "content-encoding" not in page.get(f"/{STATIC}/fonts/{font}").headers


def test_health_tells_alive_from_ready(page: TestClient) -> None:
    pool = page.blocks.condviz_pool
    assert page.get("/healthz").json() == {"status": "ok", "ready": False, "models": 2, "loaded": 0, "failed": 0}
    assert page.get("/readyz").status_code == 503
    pool.preload().join()
    assert page.get("/readyz").status_code == 200
    assert page.get("/healthz").json() == {"status": "ok", "ready": True, "models": 2, "loaded": 1, "failed": 1}


def test_requests_are_logged_only_when_asked_for_and_without_texts(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    secret = "my-secret"
    caplog.set_level("INFO", "condviz.requests")
    for wanted in ("", "1"):
        monkeypatch.setenv("CONDVIZ_LOG", wanted)
        page = make_page()
        page.get(f"/?s1={secret}")
        page.get(f"/gradio_api/file={secret}.csv")
        post(page, "call/v2/double", {"word": secret})
        told = [record.getMessage() for record in caplog.records if record.name == "condviz.requests"]
        assert bool(told) is bool(wanted)
    assert any("POST /gradio_api/call/v2/double 200" in line for line in told)
    assert not any(secret in line for line in told)


def test_no_address_of_an_asset_tells_where_it_lies(page: TestClient) -> None:
    from condviz.ui.markup import STATIC, page_scripts, static_url
    from condviz.ui.theme import page_head

    assert "/" + str(Path.cwd().parts[1]) not in page_scripts() + page_head()
    for path in ("css/page.css", "js/page.js", "images/preview.png"):
        assert page.get(f"/{static_url(path)}").status_code == 200
    assert page.get(f"/{STATIC}/plotly.min.js").status_code == 200
    for path in ("css/../recipes/quick.toml", "css/%2e%2e/recipes/quick.toml", "recipes/quick.toml", "css//etc/passwd"):
        assert page.get(f"/{STATIC}/{path}").status_code == 404


@pytest.mark.parametrize(
    ("kind", "value", "said"),
    [
        (str, {}, "p must be text"),
        (list[str], "a", "p must be a list"),
        (list[str], ["a", None], r"p\[1\] must be text"),
        (int, "x", "p must be a whole number"),
        (int, 1.5, "p must be a whole number"),
        (float, "x", "p must be a number"),
        (float, float("nan"), "p must be a finite number"),
        (bool, [], "p must be true or false"),
        (list[str] | None, 3, "p must be a list"),
    ],
)
def test_a_wrong_type_is_told_with_its_place(kind: type, value: object, said: str) -> None:
    with pytest.raises(DataError, match=said):
        _typed("p", TypeAdapter(kind, config=ConfigDict(allow_inf_nan=False)), value)


def upload(page: TestClient, content: bytes, name: str = "t.csv") -> str:
    return page.post("/gradio_api/upload", files=[("files", (name, content))]).json()[0]


def test_an_upload_goes_with_the_last_session_that_used_it(page: TestClient, tmp_path: Path) -> None:
    path = upload(page, b"a,b\n1,2\n")
    beside = Path(path).with_name("scores.csv")
    beside.write_text("made of it")
    private = tmp_path / "private"
    private.write_text("not an upload")
    files = [{"path": one, "meta": {"_type": "gradio.FileData"}} for one in (path, str(private))]
    index = next(i for i, function in page.blocks.fns.items() if len(function.inputs) == 1)
    for session in ("first", "second"):
        for file in files:
            post(page, "queue/join", {"data": [file], "fn_index": index, "session_hash": session})
    closing = next(f for f in page.blocks.fns.values() if any(target[1] == "unload" for target in f.targets))
    for session, there in (("first", True), ("second", False)):
        closing.fn(gr.Request(session_hash=session))
        assert Path(path).exists() is there
        assert beside.exists() is there
    assert private.exists(), "only what was uploaded is deleted"


def test_sessions_are_forgotten_with_their_files(tmp_path: Path) -> None:
    uploads = Uploads()
    uploads.use("s", [str(tmp_path / "folder" / "gone.csv")])
    uploads.close("s")
    uploads.close("s")
    assert uploads._users == {}
    assert UPLOADS is not uploads


def test_what_a_sitting_keeps_goes_with_its_upload_when_newer_ones_come(tmp_path: Path) -> None:
    kept, paths = Kept(2), [tmp_path / str(number) / "t.csv" for number in range(3)]
    for path in paths:
        path.parent.mkdir()
        path.write_text("text")
    tokens = [kept.add(path.parent.name, str(path)) for path in paths]
    assert [kept.find(token, str) for token in tokens] == [None, "1", "2"]
    assert kept.find(tokens[1], int) is None  # a token of another view opens nothing here
    assert [path.exists() for path in paths] == [False, True, True]


def test_an_address_may_upload_so_much_an_hour(page: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(requests, "UPLOAD_BYTES", 5_000)
    sent = [("files", ("t.csv", b"x" * 2_000))]
    codes = [page.post("/gradio_api/upload", files=sent).status_code for _ in range(4)]
    assert codes == [200, 200, 429, 429]
    without_length = page.post("/gradio_api/upload", content=iter([b"x" * 2_000]))
    assert without_length.status_code == 429
