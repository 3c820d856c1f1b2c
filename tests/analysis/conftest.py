"""Models of every method on one tiny encoder."""

from __future__ import annotations

import pytest

from condviz.encoder.pretrained import load_backbone
from condviz.methods import METHODS, ConditionalScorer
from condviz.models import registry
from tests.tiny import tiny_folder, tiny_model


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> list[ConditionalScorer]:
    """Every method on one tiny encoder, as `condviz.load` gives them."""
    place = str(tiny_folder(tmp_path_factory.mktemp("models") / "encoder"))
    backbone = load_backbone(place, device="cpu", precision="float32")
    found = []
    for name, cls in METHODS.items():
        model = tiny_model(name, backbone=backbone)
        info = registry.describe("minilm")
        model.info = type(info)(**{**vars(info), "name": name, "title": cls.title, "kind": cls.kind})
        found.append(model)
    return found
