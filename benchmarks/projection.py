"""Time of a map, before and after together, beside umap-learn with its defaults on the same vectors.

python -m benchmarks.projection [--json FILE] [--docs] [--rounds N]
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

import numpy as np
from sklearn.manifold import trustworthiness

from benchmarks.common import Result, options, report, times_in_turns
from condviz.analysis.geometry import nearest
from condviz.analysis.layout import Layout, project, warm_up

ALLOWED_S = {60: 1.0, 1_000: 2.0, 10_000: 15.0}
DIMENSION = 384
"""Of the shipped encoder."""
MEASURED_POINTS = 1_000
"""Most points whose trustworthiness is measured: it compares all with all."""


def vectors(number: int) -> tuple[np.ndarray, np.ndarray]:
    """Give points in five groups before, and the same turned by a random matrix per group after."""
    generator = np.random.default_rng(0)
    groups = generator.integers(0, 5, number)
    before = generator.standard_normal((5, DIMENSION))[groups] + generator.standard_normal((number, DIMENSION))
    after = np.empty_like(before)
    for group in range(5):
        own = groups == group
        after[own] = before[own] @ generator.standard_normal((DIMENSION, DIMENSION))
    return before.astype(np.float32), after.astype(np.float32)


def defaults(before: np.ndarray, after: np.ndarray) -> list[np.ndarray]:
    """Make both maps as umap-learn does by default, with the cosine and a seed."""
    from umap import UMAP

    return [UMAP(metric="cosine", random_state=0, n_jobs=1).fit_transform(rows) for rows in (before, after)]


def kept(before: np.ndarray, after: np.ndarray) -> str:
    """Say how well our map and that of umap-learn's defaults keep neighbourhoods before conditioning (1: wholly)."""
    ours, theirs = project(before, after, Layout("umap", 15, 0.1, 0))[0][0], defaults(before, after)[0]
    trust = [trustworthiness(before, layout, n_neighbors=15, metric="cosine") for layout in (ours, theirs)]
    return "; trustworthiness {:.3f}, umap-learn's defaults {:.3f}".format(*trust)


def run(*, rounds: int = 3, clock: Callable[[], float] = time.perf_counter) -> list[Result]:
    """Measure at every size, in turns."""
    warm_up()
    results = []
    for number, allowed in ALLOWED_S.items():
        before, after = vectors(number)
        jobs = {
            "UMAP": lambda before=before, after=after: project(before, after, Layout("umap", 15, 0.1, 0)),
            "umap-learn": lambda before=before, after=after: defaults(before, after),
            "PCA": lambda before=before, after=after: project(before, after, Layout("pca", 15, 0.1, 0)),
            "neighbours": lambda before=before: nearest(before, 15),
        }
        seconds = times_in_turns(jobs, rounds=rounds, clock=clock)
        ours, theirs, pca, near = (statistics.median(seconds[name]) for name in jobs)
        quality = kept(before, after) if number <= MEASURED_POINTS else ""
        results.append(
            Result(
                f"Map of {number:,} points, before and after, after warm-up",
                f"≤ {allowed:g} s",
                f"{ours:.2f} s, umap-learn's defaults {theirs:.2f} s; PCA {pca:.2f} s; exact neighbours {near:.2f} s"
                + quality,
                ours <= allowed,
                ours,
                {"seconds": seconds},
            )
        )
    return results


def main() -> None:
    """Run from the command line."""
    parser = options(__doc__, rounds=3)
    parser.add_argument("--busy", action="store_true", help="take processor time of one thread, on a busy machine")
    chosen = parser.parse_args()
    clock = time.thread_time if chosen.busy else time.perf_counter
    report(run(rounds=chosen.rounds, clock=clock), chosen, "projection")


if __name__ == "__main__":
    main()
