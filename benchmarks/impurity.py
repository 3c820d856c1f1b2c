"""Impurity of conditions and agreement of values on our scenes, before and after conditioning, for every model.

After Hyper-CL (Yoo et al. 2024), section 5.2: three conditions, 20 sentences each, K = 3; averaged over draws of three
conditions that no training has seen. Beside it a random matrix per condition, and whether sentences with the same value
lie together, which the paper does not ask.

python -m benchmarks.impurity [--model NAME ...] [--draws N] [--json FILE] [--docs]
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence

import numpy as np

from benchmarks.common import command, fill, options
from condviz.analysis.maps import EmbeddingMap, build_map
from condviz.analysis.points import MapPoints, held_out_triples, scene_points
from condviz.errors import CondvizError, ConfigError
from condviz.models.registry import list_models, load

DRAWS = 20
COLUMNS = (
    "model",
    "impurity of conditions, before → after",
    "draws in which it rises",
    "random matrices",
    "silhouette, before → after",
    "nearest 3 with the same value, before → after (chance)",
    "impurity of values, before → after (chance)",
)


def draw_points(draws: int) -> list[MapPoints]:
    """Give the draws: other conditions and other sentences each time."""
    return [scene_points(names, seed=seed) for seed, names in enumerate(held_out_triples(draws))]


def measure(name: str, drawn: Sequence[MapPoints]) -> list[EmbeddingMap]:
    """Measure one model on every draw."""
    model = load(name)
    return [build_map(model, points, method="pca") for points in drawn]


def summarize(maps: Sequence[EmbeddingMap]) -> dict[str, object]:
    """Give mean and standard deviation over the draws of everything that the table shows."""

    def over(values: Sequence[float]) -> dict[str, float]:
        return {"mean": float(np.mean(values)), "std": float(np.std(values))}

    def values(side: str, key: str) -> list[float]:
        return [float(np.mean([row[key] for row in getattr(made, side).measures.values])) for made in maps]

    sides = {"before": [made.before for made in maps], "after": [made.after for made in maps]}
    before, after = ([side.measures.impurity["mean"] for side in found] for found in sides.values())
    return {
        "draws": len(maps),
        "impurity": {
            "before": over(before),
            "after": over(after),
            "random": over([made.random_matrices["mean"] for made in maps]),
        },
        "worse": sum(b < a - 1e-9 for b, a in zip(before, after, strict=True)),
        "silhouette": {name: over([side.measures.silhouette for side in found]) for name, found in sides.items()},
        "agreement": {
            **{name: over([side.agreement for side in found]) for name, found in sides.items()},
            "chance": over([side.chance for side in sides["after"]]),
        },
        "value impurity": {
            **{side: over(values(side, "impurity")) for side in ("before", "after")},
            "chance": over(values("after", "chance")),
        },
    }


def row(name: str, found: Mapping[str, Mapping[str, Mapping[str, float]]]) -> str:
    """Give one line of the markdown table."""

    def change(group: str, *, form: str = ".3f") -> str:
        return " → ".join(format(found[group][side]["mean"], form) for side in ("before", "after"))

    def chance(group: str, *, form: str = ".3f") -> str:
        return f"({format(found[group]['chance']['mean'], form)})"

    impurity = found["impurity"]
    cells = [
        name,
        f"{change('impurity')} (sd {impurity['after']['std']:.3f})",
        f"{found['worse']} of {found['draws']}",
        f"{impurity['random']['mean']:.3f}",
        change("silhouette"),
        f"{change('agreement', form='.0%')} {chance('agreement', form='.0%')}",
        f"{change('value impurity')} {chance('value impurity')}",
    ]
    return f"| {' | '.join(cells)} |"


def protocol(draws: int) -> str:
    """Say how the table was made."""
    return (
        f"`{command()}`: {draws} draws of three conditions that no "
        "training has seen, 20 sentences each from families that no training has seen, every sentence under one "
        "condition; K-means with K = 3 on vectors of length 1, mean over 10 seeds, nats, then mean over the draws (sd: "
        "over the draws). Random matrices: one per condition in place of the model. Values are the tags of the scenes; "
        "their figures are means over the three conditions, K = number of values, 5 seeds:"
    )


def main() -> None:
    """Run from the command line."""
    parser = options(__doc__)
    parser.add_argument("--model", action="append", default=[], help="may be repeated (default: all with a map)")
    parser.add_argument("--draws", type=int, default=DRAWS, help="of three conditions (default: %(default)s)")
    chosen = parser.parse_args()
    drawn = draw_points(chosen.draws)
    lines = [f"| {' | '.join(COLUMNS)} |", f"|{' --- |' * len(COLUMNS)}"]
    print("\n".join(lines))
    results = {}
    for name in chosen.model or list_models():
        try:
            results[name] = summarize(measure(name, drawn))
        except ConfigError as error:  # no vectors, or the same ones before and after
            print(f"{name} is left out: {error}", file=sys.stderr)
            continue
        except CondvizError as error:
            sys.exit(str(error))
        lines.append(row(name, results[name]))
        print(lines[-1], flush=True)
    if chosen.json:
        chosen.json.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    if chosen.docs:
        fill("impurity", "\n".join([protocol(chosen.draws), "", *lines]))


if __name__ == "__main__":
    main()
