"""Variants of CSR: the ablations of its paper over one encoder."""

from __future__ import annotations

import numpy as np
import pytest

import condviz
from condviz.errors import ConfigError, UnknownModelError
from condviz.methods.catalog import VARIANTS, CSRBiConfig, split_variant
from condviz.methods.csr import CSR, CSRBi, CSRConfig
from condviz.models.registry import describe
from tests.tiny import SENTENCES, tiny_backbone, tiny_model

CONDITIONS = ["the sport", "the mood"]


@pytest.fixture(scope="module")
def csr() -> CSR:
    return tiny_model("csr", num_routed_layers=2)


def test_variants_differ_and_share_the_encoder(csr: CSR) -> None:
    models = {name: csr.make_variant(name) for name in VARIANTS if name != "heavy"}
    found = {name: model.token_weights(SENTENCES[1], CONDITIONS) for name, model in models.items()}
    assert not np.allclose(found["hidden"].weights, found["random"].weights)
    # Only Weight makes the same weights in the first routed layer and uses them otherwise.
    plain = csr.token_weights(SENTENCES[1], CONDITIONS)
    np.testing.assert_allclose(found["only-weight"].weights[0], plain.weights[0], atol=1e-6)
    vectors = [model.encode(SENTENCES[:1], CONDITIONS[:1]) for model in (csr, models["only-weight"])]
    assert np.abs(vectors[0] - vectors[1]).max() > 1e-6
    assert found["three-layers"].layers == (0, 1, 2)
    variant = models["hidden"]
    assert variant.backbone is csr.backbone
    assert (variant.info.name, variant.info.trained) == ("csr@hidden", False)
    assert variant.info.revision != csr.info.revision


def test_the_heavy_variant_is_the_same_each_time(csr: CSR) -> None:
    first, second = (csr.make_variant("heavy").token_weights(SENTENCES[1], CONDITIONS).weights for _ in range(2))
    np.testing.assert_array_equal(first, second)


def test_variants_that_cannot_be(csr: CSR) -> None:
    with pytest.raises(UnknownModelError, match="no variant 'magic'"):
        csr.make_variant("magic")
    with pytest.raises(UnknownModelError, match="no variant 'hidden'"):
        CSRBi(csr.backbone, CSRBiConfig()).make_variant("hidden")
    with pytest.raises(UnknownModelError, match="no variant 'hidden'"):
        describe("bi-encoder-zero-shot@hidden")  # it was described, though it could not be loaded
    with pytest.raises(UnknownModelError, match="nobody"):
        condviz.load("nobody@hidden")
    shallow = tiny_backbone()
    shallow.model.config.num_hidden_layers = 2
    with pytest.raises(ConfigError, match="at most 2"):
        CSR(shallow, CSRConfig()).make_variant("three-layers")


def test_only_known_variants_are_split_off() -> None:
    assert split_variant("csr@hidden") == ("csr", "hidden")
    assert split_variant("csr@magic") == ("csr@magic", "")
    assert split_variant("@hidden") == ("", "hidden")
