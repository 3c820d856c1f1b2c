"""Directions with the condition and without it are those of the vectors themselves."""

from __future__ import annotations

import json

import numpy as np
import pytest

from condviz.analysis import subtraction
from condviz.analysis.geometry import cosines_to_mean, isotropy
from condviz.analysis.subtraction import SIDES, compare_isotropy
from condviz.errors import ConfigError
from condviz.methods.base import ConditionalScorer
from tests.tiny import CONDITIONS, SENTENCES, tiny_model


def make(**settings: object) -> ConditionalScorer:
    return tiny_model("case", **settings)


def test_both_sides_are_measured_on_raw_vectors() -> None:
    found = compare_isotropy(make(), SENTENCES, CONDITIONS)
    for side, subtract in enumerate((False, True)):
        vectors = make(subtract=subtract).encode(SENTENCES, CONDITIONS)
        np.testing.assert_allclose(found.cosines[side], cosines_to_mean(vectors), atol=1e-5)
        assert found.isotropy[side].ipc == pytest.approx(isotropy(vectors).ipc, abs=1e-5)
    assert list(found.to_frame().index) == list(SIDES)
    json.dumps(found.to_dict())
    assert "<svg" in found._repr_html_()


def test_models_may_be_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subtraction, "load", lambda name: make() if name == "case" else name)
    assert compare_isotropy("case", SENTENCES, CONDITIONS).model == make().info


def test_others_subtract_nothing() -> None:
    with pytest.raises(ConfigError, match="subtracts nothing"):
        compare_isotropy(make(subtract=False), SENTENCES, CONDITIONS)
