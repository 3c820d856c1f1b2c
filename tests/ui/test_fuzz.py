"""Whatever is sent to an endpoint, the answer is a result, or a message that names what is wrong.

CONDVIZ_FUZZ=2000 tries that many inputs instead of a hundred.
"""

from __future__ import annotations

import json
import logging
import os
import traceback
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from condviz.models.registry import describe
from condviz.training.jobs import Jobs
from condviz.ui.app import Settings, build_app, launch_options
from condviz.ui.pool import ModelPool
from tests.tiny import tiny_model
from tests.training.toy_jobs import pretend_jobs

EXAMPLES = int(os.environ.get("CONDVIZ_FUZZ", "100"))
PLAIN = {"deadline": None, "suppress_health_check": list(HealthCheck), "derandomize": True}
NAMES = ("minilm", "csr", "hyper-cl", "cross-encoder", "case")
ROWS = "\n".join(f"a man {i},a cat {i},{c},{label}" for i in range(12) for c, label in (("the sport", 1), ("x", 4)))
VALID: dict[str, Any] = {
    "sentence1": "a man rides a bike",
    "sentence2": "two dogs run",
    "sentences": ["a man", "two dogs", "a cat", "the park"],
    "sentences1": ["a man", "two dogs", "a cat", "the park"],
    "sentences2": ["two cats", "a dog", "a man", "the street"],
    "conditions": ["the sport", "the mood", "the colour", "the place"],
    "condition": "the sport",
    "values": None,
    "models": ["csr"],
    "model": "csr",
    "job": "20000101-000000-abcd",
    "data": f"sentence1,sentence2,condition,label\n{ROWS}",
    "resamples": 10,
    "query": "a man rides a bike",
    "entity": "bee",
    "relation": "produces",
    "recipe": 'name = "x"',
    "method": "pca",
}
SAID = {
    "data": ("table", "rows", "column", "csv", "label", "score_"),
    "recipe": ("key", "toml", "name", "method"),
    "owner": ("key", "name", "job"),
    "job": ("id",),
    "delete": ("num_words",),
    "k": ("number of", "hits"),
    "where": ("filter", "column"),
    "contains": ("regular expression", "text"),
    "values": ("value",),
    "relation": ("question",),
    "method": ("umap",),
    "crossed": ("condition", "values"),
}
"""What else than its name a message may call a parameter."""
HOSTILE_TEXTS = (
    "", " ", "\0", "\ud800", "\u202e", "'", '"', "<script>alert(1)</script>", "=HYPERLINK(1)", "{{7*7}}", "${x}",
    "../..", "/etc/passwd", "owner/model", "scenes:train", "a" * 30_000, "word " * 3_000, "\n" * 5_000, "[" * 1_500,
    "(" * 500, "gold >=", "__import__('os')", "/(a+)+$/", "/[/", "é" * 200, "🦜" * 50, "not " * 400 + "seen",
    "csr@hidden", "umap", "a,b\n1,2", "sentence1,sentence2,condition\n" + "x,y\n" * 9, "name = [1]\n",
    "a = " + "[" * 1_500, "None", "NaN",
)  # fmt: skip
SLIPS = (" ", "\n", "\t", "x", "-", "é", "\u200b", "\u0301", "🦜", ",", '"', "\0", "\ud800", "<b>", "0")
"""What gets into a text by mistake."""
NUMBERS = st.one_of(st.integers(-3, 300), st.sampled_from([2**31, -(2**63), 10**30, 1e308, 0.1, -0.5]))
VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), NUMBERS, st.sampled_from(HOSTILE_TEXTS), st.text(max_size=30)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=6),
        st.dictionaries(st.text(max_size=5), inner, max_size=3),
        st.lists(inner, min_size=60),
    ),
    max_leaves=70,
)
PLAUSIBLE = st.sampled_from(
    ["a man", "two dogs run", "the sport", "the mood", "csr", "case", "minilm", "pca", "not seen"]
)
SIMILAR = {
    str: st.one_of(PLAUSIBLE, st.sampled_from(HOSTILE_TEXTS), st.text(max_size=60)),
    list: st.one_of(
        st.lists(PLAUSIBLE, max_size=6, unique=True),
        st.lists(st.one_of(st.sampled_from(HOSTILE_TEXTS), st.text(max_size=20)), max_size=30),
    ),
    int: NUMBERS,
    float: NUMBERS,
}

pytestmark = pytest.mark.slow


@dataclass
class Page:
    """The page under test, and what it has said in its log."""

    client: httpx.Client
    endpoints: dict[str, list[dict]]
    log: list[str] = field(default_factory=list)

    def call(self, name: str, values: list, *, raw: str | None = None) -> tuple[bool, Any]:
        """Call an endpoint; returns whether it answered, and the answer or the message."""
        body = raw if raw is not None else json.dumps({"data": values})
        headers = {"content-type": "application/json"}
        asked = self.client.post(f"/gradio_api/call/{name}", content=body, headers=headers)
        if asked.status_code != 200:
            assert asked.status_code in (400, 422), asked.text
            return False, asked.json().get("error") or str(asked.json()["detail"])
        lines = self.client.get(f"/gradio_api/call/{name}/{asked.json()['event_id']}").text.split("\n")
        # Heartbeats may come before it.
        content = json.loads([line[5:] for line in lines if line.startswith("data:")][-1])
        return (True, content) if "event: complete" in lines else (False, content["error"])


def load(name: str) -> Any:
    info = describe(name)
    model = tiny_model(info.method)
    model.info = info
    return model


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    folder = tmp_path_factory.mktemp("fuzz")
    with pytest.MonkeyPatch.context() as patch:
        jobs = pretend_jobs(folder, patch)
        patch.setattr("condviz.ui.train.tab.Jobs", lambda: jobs)
        patch.setenv("GRADIO_TEMP_DIR", str(folder))
        patch.setattr(Jobs, "check", lambda *args, **options: pytest.fail("no endpoint checks"))
        page = Page(httpx.Client(timeout=300, limits=httpx.Limits(max_keepalive_connections=0)), {})
        patch.setattr(traceback, "print_exc", lambda *args, **options: page.log.append(traceback.format_exc()))
        blocks = build_app(Settings(pool=lambda: ModelPool(NAMES, load), preload=False))
        handler = logging.Handler(logging.ERROR)
        handler.emit = lambda record: page.log.append(record.getMessage() + "\n" + _trace(record))
        logging.getLogger().addHandler(handler)
        options = {**launch_options("127.0.0.1"), "server_port": None}
        _, address, _ = blocks.launch(**options, prevent_thread_lock=True, quiet=True)
        page.client.base_url = address
        page.endpoints = {
            name.removeprefix("/"): info["parameters"]
            for name, info in blocks.get_api_info()["named_endpoints"].items()
        }
        yield page
        blocks.close(verbose=False)
        logging.getLogger().removeHandler(handler)


def _trace(record: logging.LogRecord) -> str:
    return "".join(traceback.format_exception(*record.exc_info)) if record.exc_info else ""


def valid(parameter: dict) -> Any:
    name = parameter["parameter_name"]
    return VALID.get(name, parameter.get("parameter_default"))


def names(parameter: str) -> tuple[str, ...]:
    plain = parameter.replace("_", " ").rstrip("12")
    return (plain.removesuffix("s"), parameter, *SAID.get(parameter, ()))


def test_valid_values_give_a_result(page: Page) -> None:
    for name, parameters in page.endpoints.items():
        if name.startswith("train"):
            continue
        answered, content = page.call(name, [valid(one) for one in parameters])
        assert answered, f"/{name}: {content}"
    assert page.log == []


@st.composite
def nudged(draw: st.DrawFn, value: Any) -> Any:
    """Change a valid value a little: what a careless program or hand sends."""
    if isinstance(value, list) and value:
        place, kind = draw(st.integers(0, len(value) - 1)), draw(st.sampled_from(["drop", "twice", "item", "turn"]))
        if kind == "item":
            return [*value[:place], draw(nudged(value[place])), *value[place + 1 :]]
        return {"drop": value[:place] + value[place + 1 :], "twice": [*value, value[place]], "turn": value[::-1]}[kind]
    if isinstance(value, str):
        place, added = draw(st.integers(0, len(value))), draw(st.sampled_from(SLIPS))
        return draw(st.sampled_from([value[:place] + added + value[place:], value[:place] + value[place + 1 :]]))
    if isinstance(value, bool) or value is None:
        return draw(st.sampled_from([True, False, None, 0, 1, ""]))
    if isinstance(value, int | float):
        return draw(st.sampled_from([value + 1, value - 1, float(value), str(value), 2 * value, value / 2, None]))
    return value


@settings(max_examples=EXAMPLES, **PLAIN)
@given(data=st.data())
def test_every_answer_is_a_result_or_a_message_that_names_the_field(page: Page, data: st.DataObject) -> None:
    name, values, changed = draw_call(page, data)
    for place in changed:
        values[place] = data.draw(st.one_of(SIMILAR.get(type(values[place]), VALUES), VALUES))
    check(page, name, values, changed)


def test_slips_in_valid_values_are_read_or_named(page: Page) -> None:
    answered = []

    @settings(max_examples=EXAMPLES, **PLAIN)
    @given(data=st.data())
    def run(data: st.DataObject) -> None:
        name, values, changed = draw_call(page, data)
        for place in changed:
            values[place] = data.draw(nudged(values[place]))
        answered.append(check(page, name, values, changed))

    run()
    assert sum(answered) > len(answered) / 3, "most of these are still valid"


def draw_call(page: Page, data: st.DataObject) -> tuple[str, list, list[int]]:
    """Draw an endpoint, valid values for it, and the places of one or two to change."""
    name = data.draw(st.sampled_from(sorted(name for name, parameters in page.endpoints.items() if parameters)))
    values = [valid(one) for one in page.endpoints[name]]
    places = st.lists(st.integers(0, len(values) - 1), min_size=1, max_size=2, unique=True)
    return name, values, data.draw(places)


def check(page: Page, name: str, values: list, changed: list[int]) -> bool:
    """Call an endpoint and check what it says of the changed values; returns whether it gave a result."""
    page.log.clear()
    answered, content = page.call(name, values)
    told = f"/{name} {[values[place] for place in changed]!r:.300}: {content!r:.300}"
    assert page.log == [], told + "\n" + page.log[0][-3000:]
    if answered:
        json.dumps(content, allow_nan=False)
        return True
    assert isinstance(content, str), told
    assert len(content) > 10, told
    assert "Internal" not in content, told
    assert "Traceback" not in content, told
    fields = [word for place in changed for word in names(page.endpoints[name][place]["parameter_name"])]
    assert any(word in content.casefold() for word in fields), told
    return False


@settings(
    max_examples=max(20, EXAMPLES // 10), deadline=None, suppress_health_check=list(HealthCheck), derandomize=True
)
@given(
    body=st.one_of(
        st.text(max_size=50),
        VALUES.map(json.dumps),
        st.fixed_dictionaries({"data": VALUES}).map(json.dumps),
        st.sampled_from(["NaN", '{"data": [Infinity]}', '{"data":', "[" * 10_000, '{"data": [' + "[" * 5_000]),
    ),
    name=st.sampled_from(["compare", "errors", "train", "nothing", "..", "compare%00", "v2/compare"]),
)
def test_every_body_is_answered(page: Page, body: str, name: str) -> None:
    page.log.clear()
    body = body.encode("utf-8", "surrogatepass").decode("utf-8", "replace")
    asked = page.client.post(f"/gradio_api/call/{name}", content=body, headers={"content-type": "application/json"})
    assert asked.status_code in (200, 400, 404, 405, 422), asked.text
    assert page.log == []
