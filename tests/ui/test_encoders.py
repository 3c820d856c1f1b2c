"""Another encoder in the Models tab: who may ask for which, what is announced, and what stays in memory."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from condviz.errors import CheckpointError, CondvizError, DataError
from condviz.models import registry
from condviz.training.job import SHARED
from condviz.ui import encoders
from condviz.ui.encoders import ENCODERS, KEPT, METHODS, EncoderForm, check_encoder
from condviz.ui.pool import ModelPool
from tests.pages import build_view
from tests.tiny import SENTENCES, edit_json, tiny_folder


def request(host: str = "127.0.0.1", **headers: str) -> Any:
    return SimpleNamespace(client=SimpleNamespace(host=host), headers=headers)


@pytest.fixture(autouse=True)
def laptop(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in SHARED:
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def form() -> EncoderForm:
    return build_view(EncoderForm, ModelPool(["minilm"]))


def test_at_the_machine_any_encoder_elsewhere_those_of_the_list(monkeypatch: pytest.MonkeyPatch) -> None:
    assert check_encoder(" someone/encoder ", request()) == "someone/encoder"
    assert check_encoder("/home/me/encoder", request("::1")) == "/home/me/encoder"
    for other in (request("10.0.0.7"), request(**{"x-forwarded-for": "10.0.0.7"})):
        assert check_encoder(ENCODERS[0], other) == ENCODERS[0]
        for asked in ("someone/encoder", "/etc", "../encoder"):
            with pytest.raises(DataError, match=r"is not offered here.*intfloat/e5-small-v2"):
                check_encoder(asked, other)
    for name in SHARED:
        with monkeypatch.context() as patch:
            patch.setenv(name, "someone")
            with pytest.raises(DataError, match="is not offered here"):
                check_encoder("someone/encoder", request())
    for asked in ("", "  ", None, ["a"]):
        with pytest.raises(DataError, match="No encoder is chosen"):
            check_encoder(asked, request())


def test_a_folder_becomes_a_model_of_all_tabs(form: EncoderForm, tmp_path: Path) -> None:
    place = str(tiny_folder(tmp_path / "mine"))
    for method in METHODS:
        steps = list(form.add(request(), place, method))
        assert "is loaded" in steps[-1][form.notice]
        assert form.page.models_changed in steps[-1]
    name = f"{METHODS[-1]} on {place}"
    model = form.pool.get(name)
    assert model.info.title.endswith("on mine")
    assert len(model.encode(SENTENCES, SENTENCES)) == len(SENTENCES)
    assert (name, form.pool.names[0]) == (form.pool.names[-1], "minilm")
    assert len(form.pool.names) == 1 + KEPT


def test_the_encoder_that_was_used_last_stays(form: EncoderForm, tmp_path: Path) -> None:
    place = str(tiny_folder(tmp_path / "mine"))
    first, *rest = (f"{method}{registry.ON}{place}" for method in METHODS)
    list(form.add(request(), place, METHODS[0]))
    for method in METHODS[1:]:
        form.pool.run(lambda model: None, first).result()
        list(form.add(request(), place, method))
    assert {first, rest[-1]} < set(form.pool.names)
    assert len(form.pool.names) == 1 + KEPT


def test_the_size_is_told_before_the_download(form: EncoderForm, monkeypatch: pytest.MonkeyPatch) -> None:
    from condviz.encoder import download

    def fetch(name: str, total: int, progress: Any) -> None:
        raise CheckpointError("the disk is full")

    monkeypatch.setattr(download, "count_missing", lambda name: 133_500_000)
    monkeypatch.setattr(download, "fetch", fetch)
    told: list[str] = []
    monkeypatch.setattr(encoders, "follow", lambda work, message, **_: told.append(message) or _result(work))
    with pytest.raises(CheckpointError, match="disk is full"):
        list(form.add(request(), ENCODERS[0], "csr"))
    assert "134 MB" in told[-1]
    assert form.pool.names == ("minilm",)


def _result(work: Any) -> Any:
    yield from ()
    return work.result()


def test_what_cannot_be_loaded_leaves_no_model(form: EncoderForm, tmp_path: Path) -> None:
    place = str(tiny_folder(tmp_path / "bert"))
    edit_json(tmp_path / "bert" / "config.json", model_type="magic")
    with pytest.raises(CondvizError, match="magic"):
        list(form.add(request(), place, "csr-bi"))
    with pytest.raises(DataError, match="no method 'magic'"):
        list(form.add(request(), place, "magic"))
    assert form.pool.names == ("minilm",)


def test_what_cannot_be_loaded_takes_no_place_in_memory(form: EncoderForm, tmp_path: Path) -> None:
    place = str(tiny_folder(tmp_path / "mine"))
    for method in METHODS[:KEPT]:
        list(form.add(request(), place, method))
    before = form.pool.names
    broken = str(tiny_folder(tmp_path / "bert"))
    edit_json(tmp_path / "bert" / "config.json", model_type="magic")
    with pytest.raises(CondvizError, match="magic"):
        list(form.add(request(), broken, "csr"))
    assert form.pool.names == before
