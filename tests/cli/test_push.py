"""The command `push`, and the upload of the page, against a stand-in of the hub."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import gradio as gr
import pytest

from condviz.errors import ConfigError, DataError
from condviz.models import registry
from condviz.models.hub import refusals
from condviz.ui.train.runs import Share
from tests.commands import Command
from tests.hub import Hub
from tests.models.test_standard import trained


@pytest.fixture
def hub(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> Hub:
    monkeypatch.setenv("HF_TOKEN", "hf_x")
    return hub


@pytest.fixture
def mine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(registry, "MODEL_FOLDERS", (tmp_path / "models",))
    trained(tmp_path, "csr").save_pretrained(tmp_path / "models" / "mine")
    return tmp_path / "models" / "mine"


def test_a_model_is_pushed(mine: Path, hub: Hub, cli: Command) -> None:
    assert "somebody/mine" in cli("push", "mine", "somebody/mine", "--private").out
    assert hub.made["visibility"] == "private"
    assert hub.files["model.safetensors"] == (mine / "model.safetensors").read_bytes()
    assert "modules.json" in hub.files


def test_what_goes_wrong_is_one_line(mine: Path, hub: Hub, cli: Command) -> None:
    for words in (["mine", "no-owner"], ["minilm", "somebody/minilm"], ["nothing", "somebody/nothing"]):
        cli.refuse("push", *words)
    hub.refuses = True
    assert "The hub did not take somebody/mine" in cli.refuse("push", "mine", "somebody/mine")


def test_the_page_pushes_a_finished_training(mine: Path, hub: Hub) -> None:
    job = SimpleNamespace(state="done", name="mine", out=mine, may_change=lambda owner: owner == "me")
    with gr.Blocks():
        share = Share(SimpleNamespace(get=lambda run: job))
    shown = {"run": "1"}
    said = share.send("somebody/mine", "hf_secret", True, shown, "me")
    assert "somebody/mine" in str(said)
    assert "condviz.json" in hub.files
    with pytest.raises(DataError, match="somebody else"):
        share.send("somebody/mine", "hf_secret", True, shown, "other")
    hub.refuses = True
    with pytest.raises(ConfigError, match="did not take") as caught:
        share.send("somebody/mine", "hf_secret", True, shown, "me")
    assert "hf_secret" not in str(caught.value)
    for repository, token in (("no-owner", "hf_secret"), ("somebody/mine", " ")):
        with pytest.raises((ConfigError, DataError), match=r"OWNER/NAME|token"):
            share.send(repository, token, True, shown, "me")


def test_an_error_that_names_the_token_does_not_show_it() -> None:
    shown = r"401 for \(token\)\.+\(token"
    with pytest.raises(ConfigError, match=shown) as caught, refusals("somebody/mine", "hf_secret"):
        raise OSError("401 for hf_secret" + "." * 178 + "hf_secret")
    assert caught.value.__cause__ is None
