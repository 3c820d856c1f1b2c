"""Loads the golden reference values: inputs, weights and results that the original programs give for them.

The folder is `CONDVIZ_GOLDEN`, or `../shared/golden` beside the checkout. Where the second one is absent, tests that
carry `requires_golden` are skipped; a folder that was asked for by name has to be there. Any set of the same form can
be checked: cases are found by their prefix, sizes and settings come from their files.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import pytest
import torch
from safetensors.torch import load_file

if TYPE_CHECKING:
    from transformers import PreTrainedModel

GOLDEN = Path(os.environ.get("CONDVIZ_GOLDEN") or Path(__file__).resolve().parents[2] / "shared" / "golden")

if os.environ.get("CONDVIZ_GOLDEN") and not GOLDEN.is_dir():
    raise FileNotFoundError(f"CONDVIZ_GOLDEN names {GOLDEN}, which is not a folder. Unset it to skip the golden tests.")

requires_golden = pytest.mark.skipif(not GOLDEN.is_dir(), reason=f"no golden reference values in {GOLDEN}")


@dataclass(frozen=True)
class Precision:
    """A precision to compute in, and how far a result may be from the stored value (absolute, golden/README.md)."""

    dtype: torch.dtype

    def __str__(self) -> str:
        """Give the name that pytest shows."""
        return str(self.dtype).removeprefix("torch.")

    def tolerance(self, case: str, array: str) -> float:
        """Give the largest absolute distance that is allowed for one array of one case."""
        if self.dtype == torch.float64:
            return 1e-9
        leaf = array.rsplit(".", 1)[-1]
        if leaf.startswith(("logits", "loss")):
            return 2e-4 if case.startswith("kgc") else 2e-5
        return 2e-5 if leaf.startswith(("cosine", "weights")) else 5e-5


DOUBLE = Precision(torch.float64)
SINGLE = Precision(torch.float32)
each_precision = pytest.mark.parametrize("precision", [DOUBLE, SINGLE], ids=str)


@dataclass(frozen=True)
class Case:
    """One stored case.

    Attributes:
        name: File name without ending.
        settings: What the JSON says under "settings", or empty.
        arrays: Every array under its full name, as stored: weights float32, ids int64, expected values float64.
        meta: The whole JSON file.
    """

    name: str
    settings: MappingProxyType[str, Any]
    arrays: MappingProxyType[str, torch.Tensor]
    meta: MappingProxyType[str, Any]

    @property
    def backbone(self) -> str:
        """Name of the backbone case that this case is computed with."""
        return self.meta["backbone"].split()[0]

    def expected(self, array: str) -> torch.Tensor:
        """Give `expected.<array>`, float64."""
        return self.arrays[f"expected.{array}"]

    def group(self, prefix: str, *, dtype: torch.dtype | None = None) -> dict[str, torch.Tensor]:
        """Give copies of all arrays whose name starts with `prefix.`, without it; floats as `dtype` if one is given."""
        start = f"{prefix}."
        found = {key.removeprefix(start): value for key, value in self.arrays.items() if key.startswith(start)}
        return {
            key: value.to(dtype, copy=True) if dtype and value.is_floating_point() else value.clone()
            for key, value in found.items()
        }

    def check(self, array: str, actual: torch.Tensor, precision: Precision) -> None:
        """Assert that `actual` has the shape and, within the tolerance, the values of `expected.<array>`."""
        torch.testing.assert_close(
            actual.detach().to(torch.float64),
            self.expected(array),
            rtol=0.0,
            atol=precision.tolerance(self.name, array),
            msg=lambda text: f"{self.name}, expected.{array} in {precision}: {text}",
        )


def case_names(prefix: str) -> list[str]:
    """List the stored cases whose name starts with `prefix`; empty where there is no golden folder."""
    return sorted(path.stem for path in GOLDEN.glob(f"{prefix}*.safetensors"))


@cache
def load_case(name: str) -> Case:
    """Read one case. Arrays are shared between callers: copy before writing."""
    meta = json.loads((GOLDEN / f"{name}.json").read_text(encoding="utf-8"))
    arrays = load_file(GOLDEN / f"{name}.safetensors")
    return Case(name, MappingProxyType(meta.get("settings", {})), MappingProxyType(arrays), MappingProxyType(meta))


@cache
def load_evaluation() -> dict[str, Any]:
    """Read `evaluation.json`."""
    return json.loads((GOLDEN / "evaluation.json").read_text(encoding="utf-8"))


def tiny_encoder(
    name: str, dtype: torch.dtype = torch.float64, *, weights: dict[str, torch.Tensor] | None = None
) -> PreTrainedModel:
    """Build the encoder of a backbone case, without pooler, in evaluation mode, with every weight loaded strictly.

    Args:
        name: A backbone case, "backbone_bert" or "backbone_roberta".
        dtype: Precision of the weights.
        weights: Other weights of the same shape, for instance `load_case("kgc_bi_mean").group("tail_encoder")`.
    """
    from transformers import AutoConfig, AutoModel

    case = load_case(name)
    settings = dict(case.meta["config"])
    config = AutoConfig.for_model(settings.pop("model_type"), **settings)
    model = AutoModel.from_config(config, add_pooling_layer=False)
    if weights is None:
        weights = {key: value for key, value in case.arrays.items() if not key.startswith(("input.", "expected."))}
    missing, unexpected = model.load_state_dict(weights, strict=False)
    # Position ids are a constant that some versions of the library keep as a buffer.
    missing = [key for key in missing if key in dict(model.named_parameters())]
    if missing or unexpected:
        raise ValueError(f"{name}: missing weights {missing}, unknown weights {unexpected}.")
    return model.to(dtype).eval()
