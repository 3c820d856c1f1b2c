"""The matrices W_c that Hyper-CL makes from two conditions, as pictures, and the thin factors of the first."""

from __future__ import annotations

import base64
import io
from typing import Any, ClassVar

import numpy as np
from PIL import Image
from pydantic import Field

from condviz.ui.learn.figures.base import Figure

CORNER = 64
"""Rows and columns that are drawn: single numbers stay visible."""
_ZERO, _MORE, _LESS = np.array([255, 254, 251]), np.array([26, 84, 150]), np.array([190, 90, 20])


class Matrix(Figure):
    """Pictures of the upper left corner."""

    name: ClassVar[str] = "matrix"
    button: ClassVar[str] = "Make the matrices"
    condition1: str = Field(title="Condition", max_length=300)
    condition2: str = Field(title="Another condition", max_length=300)
    model: str = "hyper-cl"

    def compute(self, models: list[Any]) -> dict[str, Any]:
        """Make both matrices and compare them as long lists of numbers: their cosine."""
        first, second = (models[0].condition_matrix(_checked(text)) for text in (self.condition1, self.condition2))
        alike = float((first * second).sum() / (np.linalg.norm(first) * np.linalg.norm(second)))
        return {"corners": [_pack(first), _pack(second)], "alike": round(alike, 3), "size": len(first)}

    def view(self, data: dict[str, Any]) -> dict[str, Any]:
        """Turn numbers into pictures."""
        return data | {"corners": [_picture(corner) for corner in data["corners"]], "corner": CORNER}


class Factors(Figure):
    """A tall and a wide matrix whose product is W_c."""

    name: ClassVar[str] = "factors"
    button: ClassVar[str] = "Make the matrix"
    condition: str = Field(title="Condition", max_length=300)
    model: str = "hyper-cl"

    def compute(self, models: list[Any]) -> dict[str, Any]:
        """Ask the two hypernetworks for their factors, (d, K) and (K, d)."""
        import torch

        model = models[0]
        with torch.no_grad():
            encoded = model.encode_conditions([_checked(self.condition)], convert_to_tensor=True)
            left, right = (factor[0].float().cpu().numpy() for factor in model.factors(encoded))
        # A row vector is multiplied by left, then by right; W_c, which multiplies a column, is the transpose of that.
        packed = {"tall": _pack(right.T), "wide": _pack(left.T), "whole": _pack((left @ right).T)}
        return packed | {"size": len(left), "rank": left.shape[1]}

    def view(self, data: dict[str, Any]) -> dict[str, Any]:
        """Turn numbers into pictures."""
        return data | {key: _picture(data[key]) for key in ("tall", "wide", "whole")} | {"corner": CORNER}


class Size(Figure):
    """How many numbers a hypernetwork has to make, and how many it is made of."""

    name: ClassVar[str] = "size"
    width: int = Field(default=384, ge=64, le=1024, multiple_of=64, title="Numbers in a sentence vector, H")
    rank: int = Field(default=48, ge=1, le=256, title="Rank, K")

    def compute(self, models: list[Any]) -> dict[str, Any]:
        """Count the numbers of W_c or its factors, and the weights and biases of the layers that make them."""
        made = [self.width**2, 2 * self.width * self.rank]
        return {"made": made, "learned": [(self.width + 1) * count for count in made]}


def _checked(condition: str) -> str:
    from condviz.data.texts import check_condition

    return check_condition(condition, "condition")


def _pack(matrix: np.ndarray) -> dict[str, Any]:
    """Keep the corner of a matrix as whole numbers from -127 to 127: full colour at three standard deviations."""
    corner = matrix[:CORNER, :CORNER]
    levels = np.clip(127 * corner / (3 * matrix.std()), -127, 127).astype(np.int8)
    return {"shape": list(levels.shape), "levels": base64.b64encode(levels.tobytes()).decode("ascii")}


def _picture(packed: dict[str, Any]) -> str:
    """Paint a packed corner: blue above zero, orange below; an address for an img."""
    levels = np.frombuffer(base64.b64decode(packed["levels"]), np.int8).reshape(packed["shape"]) / 127
    ends = np.where(levels[..., None] > 0, _MORE, _LESS)
    colours = _ZERO + np.abs(levels[..., None]) * (ends - _ZERO)
    image = Image.fromarray(colours.astype(np.uint8))
    buffer = io.BytesIO()
    image.resize((4 * image.width, 4 * image.height), Image.Resampling.NEAREST).save(buffer, "PNG")
    return "data:image/png;base64," + base64.b64encode(buffer.getvalue()).decode("ascii")
