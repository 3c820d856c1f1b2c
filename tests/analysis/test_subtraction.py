"""What CASE subtracts: other models subtract nothing."""

from __future__ import annotations

import pytest

from condviz.analysis.subtraction import read_offsets
from condviz.errors import ConfigError
from tests.tiny import SENTENCES, tiny_model


def test_others_subtract_nothing() -> None:
    with pytest.raises(ConfigError, match="subtracts nothing"):
        read_offsets(tiny_model("case", subtract=False), SENTENCES, "the sport")
