"""What taking the condition off does to the directions of CASE's vectors: isotropy, tables 4 and 5 of the paper."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

import numpy as np

from condviz.analysis.geometry import Isotropy, cosines_to_mean, isotropy
from condviz.errors import ConfigError
from condviz.types import ModelInfo, Result

if TYPE_CHECKING:
    import pandas as pd

    from condviz.methods.base import ConditionalScorer

SIDES = ("cond", "cond − c")


@dataclass(frozen=True)
class Subtraction(Result):
    """How evenly vectors point with the condition and without it.

    Attributes:
        model: The model.
        cosines: (2, n) cosine of each vector to the mean vector, of both `SIDES`.
        isotropy: Mean and deviation of these cosines, and IPC, of both.
    """

    model: ModelInfo
    cosines: np.ndarray
    isotropy: tuple[Isotropy, Isotropy]

    def to_frame(self) -> pd.DataFrame:
        """Return a row for each side."""
        import pandas as pd

        return pd.DataFrame([asdict(one) for one in self.isotropy], index=list(SIDES))


def compare_isotropy(model: ConditionalScorer, sentences: Sequence[str], conditions: Sequence[str]) -> Subtraction:
    """Compare e(c|s) with e(c|s) - e(c), before any projection.

    Args:
        model: A CASE model that subtracts.
        sentences: n sentences.
        conditions: n conditions, one for each.

    Raises:
        ConfigError: If the model is not CASE, or subtracts nothing.
        DataError: If a vector has no direction.
    """
    if not hasattr(model, "encode_offsets") or not model.method_config.subtract:
        raise ConfigError(f"{model.info.name} subtracts nothing. Choose case or case-zero-shot.")
    offsets = np.asarray(model.encode_offsets(sentences, conditions), dtype=np.float64)
    sides = (offsets + model.encode_sentences(conditions), offsets)
    return Subtraction(
        model.info, np.stack([cosines_to_mean(side) for side in sides]), tuple(isotropy(side) for side in sides)
    )
