"""How embeddings lie in their own space: do vectors use all directions, what is W_c like.

Everything is measured on (n, d) arrays, never on a map of two dimensions, and in double precision. Arrays of another
shape, without a row, with a value that is not finite or, where directions count, with a row of zeros raise DataError.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from condviz.errors import DataError, require
from condviz.types import Progress

if TYPE_CHECKING:
    from condviz.methods.base import ConditionalScorer

NUM_DIRECTIONS = 1000
"""Random directions of isotropy B. CASE does not print the number; all twelve figures of its table 5 fit 1000."""
DIRECTIONS_AT_ONCE = 64
"""Of isotropy B: 10 MB at 20,000 vectors."""
MAX_MATRICES = 50
"""A matrix of 384 x 384 takes 0.6 MB, and its singular values some 30 ms."""
SHOWN_VALUES = 100
SILHOUETTE_SAMPLE = 2000


@dataclass(frozen=True)
class Isotropy:
    """Whether vectors point everywhere alike."""

    mean_cosine: float
    """Mean cosine to the mean vector (A), in [0, 1]; lower is more isotropic."""
    std_cosine: float
    """Standard deviation of those cosines (divided by n)."""
    ipc: float
    """Smallest over largest value of the partition function (B), in (0, 1]; higher is more isotropic."""
    num_directions: int
    """Random directions that B was measured in."""


def frobenius_variance(matrices: np.ndarray) -> float:
    """Measure how much the size of the condition's transformation differs between conditions.

    Args:
        matrices: (m, d, d): W_c of m conditions, whose norms are divided by d; or (m, d): the vectors of a Hadamard
            head, read as diagonal matrices, whose norms are divided by the square root of d.

    Returns:
        Variance of the scaled Frobenius norms over the conditions (divided by m), at least 0.

    Source:
        Hyper-CL (Yoo et al. 2024), section 5.4.1: 0.0248 for W_c and 0.001 for the Hadamard head.
    """
    array = np.asarray(matrices, dtype=np.float64)
    d = array.shape[1]
    norms = np.sqrt(np.square(array).sum(axis=tuple(range(1, array.ndim))))
    return float(np.var(norms / (d if array.ndim == 3 else math.sqrt(d))))


def cosines_to_mean(embeddings: np.ndarray) -> np.ndarray:
    """Return the cosine of every vector, scaled to length 1, with the mean of the scaled vectors: (n,) in [-1, 1].

    What has to be subtracted comes off before: CASE takes the condition off first and scales then. Vectors that cancel
    out have no mean direction, which raises DataError.

    Source:
        CASE, table 4. Differs from the paper, whose mean is that of the vectors before scaling; where all vectors have
        the same length both are equal.
    """
    scaled = _scale(embeddings)
    mean = scaled.mean(axis=0)
    length = np.linalg.norm(mean)
    if length < 1e-12:
        raise DataError("The vectors cancel each other out: their mean is 0 and has no direction to compare with.")
    return np.clip(scaled @ (mean / length), -1.0, 1.0)


def log_partition(embeddings: np.ndarray, directions: np.ndarray) -> np.ndarray:
    """Return log F(v) of each direction v, (q,), where F(v) is the sum over the vectors x of exp(v . x).

    Vectors (n, d) and directions (q, d) are taken as they are; F itself would overflow for long vectors.
    """
    return np.logaddexp.reduce(check_vectors(directions) @ check_vectors(embeddings).T, axis=1)


def partition_isotropy(embeddings: np.ndarray, directions: np.ndarray, *, progress: Progress | None = None) -> float:
    """Return IPC, in (0, 1]: the smallest over the largest partition function of the vectors, scaled to length 1.

    Args:
        embeddings: Shape (n, d).
        directions: Unit vectors, shape (q, d).
        progress: Told the directions done.

    Source:
        CASE, table 5, after Mu and Viswanath 2018. It is nearly a function of the length of the mean vector and of d.
    """
    scaled, parts = _scale(embeddings), []
    for start in range(0, len(directions), DIRECTIONS_AT_ONCE):
        if progress is not None:
            progress(start, len(directions))
        parts.append(log_partition(scaled, directions[start : start + DIRECTIONS_AT_ONCE]))
    logs = np.concatenate(parts)
    return float(np.exp(logs.min() - logs.max()))


def isotropy(
    embeddings: np.ndarray, *, num_directions: int = NUM_DIRECTIONS, progress: Progress | None = None
) -> Isotropy:
    """Measure isotropy both ways; arguments and errors as `cosines_to_mean` and `partition_isotropy`.

    The directions are random, uniform over the sphere, and the same in each call.
    """
    cosines = cosines_to_mean(embeddings)
    directions = np.random.default_rng(0).standard_normal((num_directions, np.shape(embeddings)[1]))
    ipc = partition_isotropy(embeddings, _scale(directions), progress=progress)
    return Isotropy(float(cosines.mean()), float(cosines.std()), ipc, num_directions)


def silhouette(vectors: np.ndarray, labels: np.ndarray, *, metric: str) -> float | None:
    """Return the mean silhouette of labelled vectors, (n, d), or of a random sample of `SILHOUETTE_SAMPLE` of them.

    It is in [-1, 1]: above 0, groups lie apart. None where it is not defined: for a single label, or as many as there
    are vectors.
    """
    if len(labels) > SILHOUETTE_SAMPLE:
        chosen = require("sklearn.utils", "viz").check_random_state(0).permutation(len(labels))[:SILHOUETTE_SAMPLE]
        vectors, labels = vectors[chosen], labels[chosen]
    if not 2 <= len(np.unique(labels)) < len(labels):
        return None
    return float(require("sklearn.metrics", "viz").silhouette_score(vectors, labels, metric=metric))


def turn_at_random(vectors: np.ndarray, groups: Sequence[str], *, seed: int = 0) -> np.ndarray:
    """Multiply vectors, (n, d), by one random matrix (d, d) for each group: different matrices alone set groups apart.

    Returns float64, (n, d).
    """
    generator, names = np.random.default_rng(seed), np.asarray(groups)
    turned = np.array(vectors, dtype=np.float64)
    for name in dict.fromkeys(groups):
        own = names == name
        turned[own] = turned[own] @ generator.standard_normal((turned.shape[1], turned.shape[1]))
    return turned


def describe_matrices(
    model: ConditionalScorer, conditions: Sequence[str], *, progress: Progress | None = None
) -> dict[str, Any] | None:
    """Describe the matrix W_c that Hyper-CL makes of every condition.

    Args:
        model: Any; only those with `condition_matrix` have W_c.
        conditions: m conditions; the first `MAX_MATRICES` are described.
        progress: Told the conditions done.

    Returns:
        Plain JSON: "conditions"; "left_out", how many more there are; "spectra" (m lists of at most `SHOWN_VALUES`
        singular values, largest first, the largest of all being 1); "norms" (m Frobenius norms divided by d);
        "variance" of these norms; "rank" (m: how many singular values make 99 % of the squared norm); "distances"
        (m, m): 1 - cosine of the matrices as vectors; "places" (m, 2): PCA of the matrices, where there are three
        conditions or more. None for models without W_c.

    Source:
        Norms and their variance: Hyper-CL (Yoo et al. 2024), section 5.4.1. Spectra and distances are ours.
    """
    if not model.condition_matrices or not conditions:
        return None
    named = list(conditions)[:MAX_MATRICES]
    made, spectra = [], []
    for number, condition in enumerate(named):
        if progress is not None:
            progress(number, len(named))
        matrix = np.asarray(model.condition_matrix(condition), dtype=np.float64)
        if not np.isfinite(matrix).all():
            raise DataError(f"{model.info.name} makes a W_c with numbers that are not finite. Load it in float32.")
        made.append(matrix)
        spectra.append(np.linalg.svd(matrix, compute_uv=False))
    matrices, values = np.stack(made), np.stack(spectra)
    unit = unit_rows(matrices.reshape(len(matrices), -1))
    energy = np.cumsum(np.square(values), axis=1)
    return {
        "conditions": named,
        "left_out": len(conditions) - len(named),
        "spectra": (values / max(values.max(), math.ulp(0))).round(5)[:, :SHOWN_VALUES].tolist(),
        "norms": (np.sqrt(energy[:, -1]) / values.shape[1]).round(6).tolist(),
        "variance": frobenius_variance(matrices),
        "rank": ((energy < 0.99 * energy[:, -1:]).sum(axis=1) + 1).tolist(),
        "distances": np.clip(1 - unit @ unit.T, 0, 2).round(4).tolist(),
        "places": principal_axes(unit).round(4).tolist() if len(named) > 2 else [],
    }


def principal_axes(rows: np.ndarray) -> np.ndarray:
    """Return the first two principal components of rows, (n, 2) float64; axes that the rows do not have are 0."""
    if len(rows) == 1:  # scikit-learn divides by n - 1
        return np.zeros((1, 2))
    number = min(2, *rows.shape)
    solver = "covariance_eigh" if len(rows) > rows.shape[1] else "full"
    found = require("sklearn.decomposition", "viz").PCA(number, svd_solver=solver).fit_transform(rows)
    return np.pad(found, ((0, 0), (0, 2 - number)))


# ---- vectors that can be measured ------------------------------------------------------------------------------------


def check_vectors(vectors: np.ndarray) -> np.ndarray:
    """Return vectors, shape (n, d), in float64; raises DataError unless they are that, at least one, and finite."""
    array = np.asarray(vectors)
    if array.ndim != 2 or not array.size or array.dtype.kind not in "fiub":
        raise DataError(f"Needs numbers of shape (n, d), at least one row; got {array.shape}, {array.dtype}.")
    bad = np.flatnonzero(~np.isfinite(array).all(axis=1))
    if len(bad):
        raise DataError(f"Row {bad[0]} of the vectors holds a NaN or an infinity.")
    return array.astype(np.float64)


def unit_rows(vectors: np.ndarray) -> np.ndarray:
    """Return vectors scaled to length 1, float64; rows of zeros stay. Errors as `check_vectors`."""
    return require("sklearn.preprocessing", "viz").normalize(check_vectors(vectors), copy=False)


def _scale(vectors: np.ndarray) -> np.ndarray:
    array = check_vectors(vectors)
    # Dividing by the largest entry first keeps squares of very large or small numbers in range.
    largest = np.abs(array).max(axis=1, keepdims=True)
    if not largest.all():
        raise DataError(f"Row {np.flatnonzero(largest == 0)[0]} of the vectors is all 0 and has no direction.")
    array = array / largest
    return array / np.linalg.norm(array, axis=1, keepdims=True)
