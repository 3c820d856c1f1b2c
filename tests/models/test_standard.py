"""Trained models as folders that sentence-transformers opens, and on the hub."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
import torch

import condviz
from condviz.encoder.pretrained import load_backbone
from condviz.errors import CheckpointError, ConfigError
from condviz.methods import METHODS, ConditionalScorer
from tests.hub import Hub
from tests.tiny import CONDITIONS, SENTENCES, tiny_folder

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

OPTIONS = {"device": "cpu", "precision": "float32"}
SETTINGS = {"hyper-cl": {"rank": 4}, "case": {"projection": "linear", "projection_dim": 8}}
ENCODERS = [name for name in METHODS if METHODS[name].encodes]
ROWS = [list(pair) for pair in zip(SENTENCES, CONDITIONS, strict=True)]


def open_folder(folder: Path, *, trust: bool) -> SentenceTransformer:
    from sentence_transformers import SentenceTransformer  # seconds, which a run without these tests saves

    return SentenceTransformer(str(folder), device="cpu", trust_remote_code=trust)


def trained(tmp_path: Path, name: str, **settings: object) -> ConditionalScorer:
    """Make a model with weights of its own in the encoder and in the head."""
    place = tmp_path / "encoder"
    if not place.exists():
        tiny_folder(place)
    torch.manual_seed(1)
    backbone = load_backbone(str(place), shared=False, **OPTIONS)
    with torch.no_grad():
        backbone.model.encoder.layer[-1].output.dense.weight.mul_(1.5)
    backbone.digest = ""
    return METHODS[name](backbone, METHODS[name].config_cls(**SETTINGS.get(name, {}) | settings)).eval()


@pytest.mark.parametrize("name", ENCODERS)
def test_sentence_transformers_opens_the_folder_and_computes_the_same(tmp_path: Path, name: str) -> None:
    model = trained(tmp_path, name)
    model.save_pretrained(tmp_path / "mine")
    opened = open_folder(tmp_path / "mine", trust=True)
    expected = model.encode(SENTENCES, CONDITIONS)
    np.testing.assert_allclose(opened.encode(ROWS), expected, atol=1e-5)
    np.testing.assert_allclose(opened.encode(SENTENCES), model.encode(SENTENCES), atol=1e-5)
    assert opened.get_embedding_dimension() == model.get_sentence_embedding_dimension()
    assert opened.max_seq_length == model.max_seq_length
    ours = condviz.load(tmp_path / "mine", **OPTIONS)
    np.testing.assert_allclose(ours.encode(SENTENCES, CONDITIONS), expected, atol=1e-5)
    assert type(METHODS[name].from_pretrained(tmp_path / "mine", **OPTIONS)) is METHODS[name]


@pytest.mark.parametrize(("settings", "plain"), [({}, True), ({"pooling": "cls"}, True), ({"transform": True}, False)])
def test_a_bi_encoder_needs_nothing_of_ours(tmp_path: Path, settings: dict, plain: bool) -> None:
    model = trained(tmp_path, "bi-encoder", **settings)
    model.save_pretrained(tmp_path / "mine")
    listed = json.loads((tmp_path / "mine" / "modules.json").read_text())
    assert all(module["type"].startswith("sentence_transformers.") for module in listed) is plain
    condviz.load(tmp_path / "mine", **OPTIONS).save_pretrained(tmp_path / "copy")
    card = (tmp_path / "copy" / "README.md").read_text()
    assert card.count("SentenceTransformer(") == 1
    assert ("trust_remote_code" in card) is not plain
    opened = open_folder(tmp_path / "mine", trust=not plain)
    np.testing.assert_allclose(opened.encode(ROWS), model.encode(SENTENCES, CONDITIONS), atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["bi-encoder", "case", "wn18rr-hyper-cl"])
def test_shipped_models_are_saved_byte_for_byte_and_open(tmp_path: Path, name: str) -> None:
    model = condviz.load(name, **OPTIONS)
    model.save_pretrained(tmp_path / name)
    for file in ("condviz.json", "model.safetensors"):
        assert (tmp_path / name / file).read_bytes() == (Path(model.info.path) / file).read_bytes()
    assert (tmp_path / name / "README.md").read_text().startswith((Path(model.info.path) / "README.md").read_text())
    opened = open_folder(tmp_path / name, trust=name != "bi-encoder")
    rows = [["Two men surf at dawn.", "the sport"], ["A woman skis.", "the number of people"]]
    np.testing.assert_allclose(opened.encode(rows), model.encode(*zip(*rows, strict=True)), atol=1e-5)


def test_a_cross_encoder_is_saved_without_modules(tmp_path: Path) -> None:
    trained(tmp_path, "cross-encoder").save_pretrained(tmp_path / "mine")
    assert {file.name for file in (tmp_path / "mine").iterdir()} == {"condviz.json", "model.safetensors", "README.md"}


def test_what_nobody_trained_is_not_saved(tmp_path: Path) -> None:
    model = condviz.load("csr", backbone=tiny_folder(tmp_path / "encoder"), **OPTIONS)
    with pytest.raises(ConfigError, match="is not trained"):
        model.save_pretrained(tmp_path / "mine")
    with torch.no_grad():
        model.backbone.model.encoder.layer[-1].output.dense.weight.mul_(1.5)
    model.train().eval()  # as a training does: the identity of the weights is computed anew
    model.save_pretrained(tmp_path / "mine")
    assert condviz.describe(tmp_path / "mine").trained


def test_a_folder_of_something_else_stays_as_it_is(tmp_path: Path) -> None:
    model, place = trained(tmp_path, "csr"), tmp_path / "encoder"
    before = {file.name: file.read_bytes() for file in place.iterdir()}
    with pytest.raises(CheckpointError, match="not a checkpoint: nothing was written"):
        model.save_pretrained(place)
    assert {file.name: file.read_bytes() for file in place.iterdir()} == before
    model.save_pretrained(tmp_path / "mine")
    model.save_pretrained(tmp_path / "mine")  # a later version takes the place of an earlier one


def test_another_class_is_refused(tmp_path: Path) -> None:
    trained(tmp_path, "csr").save_pretrained(tmp_path / "mine")
    with pytest.raises(CheckpointError, match="is a CSR, not a HyperCL"):
        METHODS["hyper-cl"].from_pretrained(tmp_path / "mine", **OPTIONS)


def test_a_model_is_pushed_with_its_card(tmp_path: Path, hub: Hub) -> None:
    trained(tmp_path, "bi-encoder").push_to_hub("somebody/mine", token="hf_x", private=True)
    assert (hub.made["name"], hub.made["visibility"]) == ("mine", "private")
    assert {"condviz.json", "model.safetensors", "README.md", "modules.json"} < set(hub.files)
    assert "0_Transformer/model.safetensors" in hub.files
    card = hub.files["README.md"].decode()
    assert "Bi-encoder" in card
    assert 'SentenceTransformer("OWNER/NAME")' in card
