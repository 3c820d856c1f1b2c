"""How embeddings lie in their own space: do conditions form clusters, and do vectors use all directions.

Everything is measured on (n, d) arrays, never on a map of two dimensions, and in double precision.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import logsumexp

from condviz.analysis.impurity import KMeansImpurity, check_vectors, kmeans_impurity
from condviz.errors import ConfigError, DataError

NUM_DIRECTIONS = 1000
"""Random directions of isotropy B. CASE does not print the number; all twelve figures of its table 5 fit 1000."""


@dataclass(frozen=True)
class Isotropy:
    """Whether vectors point everywhere alike.

    Attributes:
        mean_cosine: Mean cosine to the mean vector (A), in [0, 1]; lower is more isotropic.
        std_cosine: Standard deviation of those cosines (divided by n).
        ipc: Smallest over largest value of the partition function (B), in (0, 1]; higher is more isotropic.
        num_directions: Random directions that B was measured in.
    """

    mean_cosine: float
    std_cosine: float
    ipc: float
    num_directions: int

    def to_dict(self) -> dict:
        """Give plain JSON."""
        return {
            "mean_cosine": self.mean_cosine,
            "std_cosine": self.std_cosine,
            "ipc": self.ipc,
            "directions": self.num_directions,
        }


@dataclass(frozen=True)
class GeometryReport:
    """Geometry of one set of embeddings, each made under a condition (its group).

    Attributes:
        num_embeddings: n.
        dimension: d.
        impurity: Of K-means clusters, over seeds, with the table of groups by clusters.
        isotropy: Of all vectors together.
    """

    num_embeddings: int
    dimension: int
    impurity: KMeansImpurity
    isotropy: Isotropy

    def to_dict(self) -> dict:
        """Give plain JSON."""
        return {
            "embeddings": self.num_embeddings,
            "dimension": self.dimension,
            "impurity": self.impurity.to_dict(),
            "isotropy": self.isotropy.to_dict(),
        }


def frobenius_variance(matrices: np.ndarray) -> float:
    """Measure how much the size of the condition's transformation differs between conditions.

    Args:
        matrices: (m, d, d): W_c of m conditions, whose norms are divided by d; or (m, d): the vectors of a Hadamard
            head, read as diagonal matrices, whose norms are divided by the square root of d.

    Returns:
        Variance of the scaled Frobenius norms over the conditions (divided by m), at least 0.

    Raises:
        DataError: If the shape is another one, there is no condition, or a value is not finite.

    Source:
        Hyper-CL (Yoo et al. 2024), section 6: 0.0248 for W_c and 0.001 for the Hadamard head.
    """
    array = np.asarray(matrices, dtype=np.float64)
    square = array.ndim == 3 and array.shape[1] == array.shape[2]
    if not (array.ndim == 2 or square) or not array.size or not np.isfinite(array).all():
        raise DataError(
            f"Needs finite matrices (m, d, d) or vectors (m, d) of at least one condition, got {array.shape}."
        )
    d = array.shape[1]
    norms = np.sqrt(np.square(array).sum(axis=tuple(range(1, array.ndim))))
    return float(np.var(norms / (d if square else math.sqrt(d))))


def frobenius_variance_low_rank(left: np.ndarray, right: np.ndarray) -> float:
    """Give `frobenius_variance` of the products left @ right without forming them.

    Args:
        left: (m, d, k), finite.
        right: (m, k, d), finite.

    Returns:
        As `frobenius_variance`; the norm of a product is also that of its transpose.

    Raises:
        DataError: If the shapes do not fit, or a value is not finite.
    """
    a, b = np.asarray(left, dtype=np.float64), np.asarray(right, dtype=np.float64)
    if a.ndim != 3 or not a.size or b.shape != a.transpose(0, 2, 1).shape:
        raise DataError(f"The factors must be (m, d, k) and (m, k, d), got {a.shape} and {b.shape}.")
    if not (np.isfinite(a).all() and np.isfinite(b).all()):
        raise DataError("The factors hold a NaN or an infinity.")
    # |A B|^2 = trace(A'A B B'), two k x k matrices.
    squares = np.sum((a.transpose(0, 2, 1) @ a) * (b @ b.transpose(0, 2, 1)), axis=(1, 2))
    return float(np.var(np.sqrt(np.maximum(squares, 0)) / a.shape[1]))


def cosines_to_mean(embeddings: np.ndarray) -> np.ndarray:
    """Give the cosine of every vector, scaled to length 1, with the mean of the scaled vectors.

    Args:
        embeddings: Shape (n, d), finite, no row of zeros. Subtract what has to be subtracted before: CASE takes the
            condition off first and scales then.

    Returns:
        Shape (n,), float64, in [-1, 1].

    Raises:
        DataError: If a row has no direction, or the vectors cancel out so that their mean has none.

    Source:
        CASE, table 4.
    """
    scaled = _scale(embeddings)
    mean = scaled.mean(axis=0)
    length = np.linalg.norm(mean)
    if length < 1e-12:
        raise DataError("The vectors cancel each other out: their mean is 0 and has no direction to compare with.")
    return np.clip(scaled @ (mean / length), -1.0, 1.0)


def log_partition(embeddings: np.ndarray, directions: np.ndarray) -> np.ndarray:
    """Give log F(v) of each direction v, F(v) = sum over the vectors x of exp(v . x).

    Args:
        embeddings: Shape (n, d), as they are.
        directions: Shape (q, d).

    Returns:
        Shape (q,), float64. The logarithm, because F of long vectors overflows.

    Raises:
        DataError: If the shapes do not fit, or a value is not finite.
    """
    vectors, ways = check_vectors(embeddings), check_vectors(directions)
    if vectors.shape[1] != ways.shape[1]:
        raise DataError(f"Vectors have {vectors.shape[1]} dimensions, directions {ways.shape[1]}. They must agree.")
    return logsumexp(ways @ vectors.T, axis=1)


def random_directions(number: int, dimension: int, *, seed: int = 0) -> np.ndarray:
    """Draw unit vectors, uniform over the sphere: shape (number, dimension), float64. Raises ConfigError below 1."""
    if number < 1 or dimension < 1:
        raise ConfigError(f"Number and dimension of directions must be at least 1, got {number} and {dimension}.")
    return _scale(np.random.default_rng(seed).standard_normal((number, dimension)))


def partition_isotropy(embeddings: np.ndarray, directions: np.ndarray) -> float:
    """Give the smallest over the largest partition function of the vectors, scaled to length 1.

    Args:
        embeddings: Shape (n, d), no row of zeros.
        directions: Unit vectors, shape (q, d).

    Returns:
        IPC, in (0, 1]; 1 is the same in every direction.

    Raises:
        DataError: As `log_partition`, or if a row has no direction.

    Source:
        CASE, table 5, after Mu and Viswanath 2018. It is nearly a function of the length of the mean vector and of d.
    """
    logs = log_partition(_scale(embeddings), directions)
    return float(np.exp(logs.min() - logs.max()))


def isotropy(embeddings: np.ndarray, *, num_directions: int = NUM_DIRECTIONS, seed: int = 0) -> Isotropy:
    """Measure isotropy both ways; arguments and errors as `cosines_to_mean` and `partition_isotropy`."""
    cosines = cosines_to_mean(embeddings)
    directions = random_directions(num_directions, np.shape(embeddings)[1], seed=seed)
    ipc = partition_isotropy(embeddings, directions)
    return Isotropy(float(cosines.mean()), float(cosines.std()), ipc, num_directions)


def geometry_report(
    embeddings: np.ndarray,
    groups: Sequence[str | int],
    *,
    num_clusters: int | None = None,
    seeds: Sequence[int] = tuple(range(10)),
    num_shuffles: int = 200,
) -> GeometryReport:
    """Measure impurity and isotropy; arguments and errors as `kmeans_impurity` and `isotropy`."""
    number, dimension = check_vectors(embeddings).shape
    clustered = kmeans_impurity(embeddings, groups, num_clusters=num_clusters, seeds=seeds, num_shuffles=num_shuffles)
    return GeometryReport(number, dimension, clustered, isotropy(embeddings))


def _scale(vectors: np.ndarray) -> np.ndarray:
    array = check_vectors(vectors)
    # Dividing by the largest entry first keeps squares of very large or small numbers in range.
    largest = np.abs(array).max(axis=1, keepdims=True)
    if not largest.all():
        raise DataError(f"Row {np.flatnonzero(largest == 0)[0]} of the vectors is all 0 and has no direction.")
    array = array / largest
    return array / np.linalg.norm(array, axis=1, keepdims=True)
