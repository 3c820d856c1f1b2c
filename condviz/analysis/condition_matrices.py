"""What Hyper-CL makes of conditions: singular values and size of W_c, and which conditions project alike."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from condviz.analysis.projection import ProjectionConfig, project
from condviz.errors import DataError
from condviz.methods.base import ConditionalScorer

MAX_MATRICES = 50
"""A matrix of 384 x 384 takes 0.6 MB, and its singular values some 30 ms."""
SHOWN_VALUES = 100


def describe_matrices(model: ConditionalScorer, conditions: Sequence[str]) -> dict[str, Any] | None:
    """Describe W_c of every condition.

    Args:
        model: Any; only those with `condition_matrix` have W_c.
        conditions: m conditions; the first `MAX_MATRICES` are described.

    Returns:
        Plain JSON: "conditions"; "left_out", how many more there are; "spectra" (m lists of at most `SHOWN_VALUES`
        singular values, largest first, the largest of all being 1); "norms" (m Frobenius norms divided by d);
        "variance" of these norms; "rank" (m: how many singular values make 99 % of the squared norm); "distances"
        (m, m): 1 - cosine of the matrices as vectors; "places" (m, 2): PCA of the matrices, where there are three
        conditions or more. None for models without W_c.

    Source:
        Norms and their variance: Hyper-CL (Yoo et al. 2024), section 5.4.1. Spectra and distances are ours.
    """
    if not hasattr(model, "condition_matrix") or not conditions:
        return None
    named = list(conditions)[:MAX_MATRICES]
    matrices = np.stack([model.condition_matrix(condition) for condition in named]).astype(np.float64)
    if not np.isfinite(matrices).all():
        raise DataError(f"{model.info.name} makes a W_c with numbers that are not finite. Load it in float32.")
    spectra = np.linalg.svd(matrices, compute_uv=False)
    norms = np.sqrt(np.square(spectra).sum(axis=1)) / matrices.shape[1]
    flat = matrices.reshape(len(matrices), -1)
    flat /= np.maximum(np.linalg.norm(flat, axis=1, keepdims=True), np.finfo(np.float64).tiny)
    distances = np.clip(1 - flat @ flat.T, 0, 2)
    return {
        "conditions": named,
        "left_out": len(conditions) - len(named),
        "spectra": (spectra / max(spectra.max(), math.ulp(0))).round(5)[:, :SHOWN_VALUES].tolist(),
        "norms": norms.round(6).tolist(),
        "variance": float(norms.var()),
        "rank": _effective_rank(spectra).tolist(),
        "distances": distances.round(4).tolist(),
        "places": _places(flat).tolist() if len(named) > 2 else [],
    }


def _effective_rank(spectra: np.ndarray) -> np.ndarray:
    energy = np.cumsum(np.square(spectra), axis=1)
    return (energy < 0.99 * energy[:, -1:]).sum(axis=1) + 1


def _places(flat: np.ndarray) -> np.ndarray:
    """Lay the conditions out by the PCA of their matrices, scaled to length 1: (m, 2)."""
    return project(flat, flat, ProjectionConfig("pca")).before.round(4)
