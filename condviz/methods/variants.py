"""Variants of CSR: the ablations of its paper, made from any CSR model by other settings, on the same encoder.

A variant has the name of its model and its own behind an @, for instance "csr@hidden". Nothing here loads torch.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from condviz.errors import UnknownModelError
from condviz.types import ModelInfo

MARK = "@"
"""Between the name of a model and that of its variant."""


@dataclass(frozen=True)
class Variant:
    """Other settings of CSR, with what people are told about them."""

    title: str
    summary: str
    changes: dict[str, Any]


VARIANTS = {
    "hidden": Variant("Hidden", "Compares hidden states instead of query and key.", {"router": "hidden"}),
    "heavy": Variant("Heavy", "Query and key layers of its own, here at random.", {"router": "heavy"}),
    "random": Variant("Random Weight", "Random weights: a control.", {"router": "random"}),
    "only-weight": Variant("Only Weight", "Multiplies by w instead of 1 + w.", {"weighting": "only"}),
    "three-layers": Variant("three layers", "Routes the last three layers.", {"num_routed_layers": 3}),
}
"""Lin et al. 2024, Tables 1 and 3, Figure 4."""


def split_variant(name: str) -> tuple[str, str]:
    """Split "csr@hidden" into the names of model and variant; the latter is "" for any other name."""
    model, mark, variant = name.rpartition(MARK)
    return (model, variant) if mark and variant in VARIANTS else (name, "")


def describe_variant(info: ModelInfo, name: str) -> ModelInfo:
    """Describe a variant of a model. It counts as untrained: its weights were trained for another router.

    Raises:
        UnknownModelError: If there is no such variant.
    """
    if name not in VARIANTS:
        raise UnknownModelError(f"There is no variant {name[:40]!r}. Variants: {', '.join(VARIANTS)}.")
    variant = VARIANTS[name]
    return replace(
        info, name=f"{info.name}{MARK}{name}", title=f"{info.title}, {variant.title}", trained=False,
        summary=variant.summary, path="", calibration=None,
    )  # fmt: skip
