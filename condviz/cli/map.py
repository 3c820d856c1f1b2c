"""The command `map`."""

from __future__ import annotations

import argparse
import json
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from condviz.analysis.map_result import EmbeddingMap


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to a parser."""
    parser = commands.add_parser(
        "map",
        help="lay sentences out before and after conditioning, and measure both",
        description="Encode the sentences of a table without and with their conditions, lay both out in one alignment, "
        "and print impurity, values, isotropy and silhouette. Without a column of conditions, give --condition.",
    )
    parser.add_argument("table", metavar="FILE", help="CSV or TSV, or - for standard input")
    parser.add_argument("--model", default="hyper-cl", help="name, folder or hub id (default: hyper-cl)")
    parser.add_argument("--text-column", metavar="NAME", help="column of the sentences (default: guessed)")
    parser.add_argument("--condition-column", metavar="NAME", help="column of the conditions (default: condition)")
    parser.add_argument("--condition", action="append", default=[], help="put every sentence under it; may be repeated")
    parser.add_argument("--sample", type=int, metavar="N", help="draw N rows at random from larger tables")
    parser.add_argument("--method", default="umap", help="umap or pca (default: umap)")
    parser.add_argument("--dimensions", type=int, default=2, help="2 or 3 (default: 2)")
    parser.add_argument("--neighbors", type=int, default=15, help="of UMAP (default: 15)")
    parser.add_argument("--min-dist", type=float, default=0.1, help="of UMAP (default: 0.1)")
    parser.add_argument("--seed", type=int, default=0, help="of UMAP and of the sample (default: 0)")
    parser.add_argument("--clusters", type=int, help="K of the impurity (default: the number of conditions)")
    parser.add_argument("--html", metavar="FILE", help="write both pictures and the measures as one page")
    parser.add_argument("--json", metavar="FILE", help="write everything")
    parser.add_argument("--colour", default="condition", help="condition, cluster, drift or a column, for --html")
    parser.add_argument("--device", default="auto", help="auto, cpu, cuda or mps (default: auto)")
    parser.set_defaults(command=run)


def run(options: argparse.Namespace) -> None:
    """Make the map, print the measures and write the files."""
    from condviz.analysis.map_points import from_table, guess_columns
    from condviz.analysis.map_result import ProjectionConfig
    from condviz.data.files import check_target, write_text
    from condviz.data.tables import read_table

    for path in filter(None, (options.html, options.json)):
        check_target(path)
    config = ProjectionConfig(options.method, options.dimensions, options.neighbors, options.min_dist, options.seed)
    table = read_table(options.table)
    text, condition = guess_columns(table)
    points = from_table(
        table,
        text_column=options.text_column or text,
        condition_column=None if options.condition else options.condition_column or condition,
        conditions=options.condition,
        sample=options.sample,
        seed=options.seed,
    )

    from condviz.analysis.map_builder import build_map
    from condviz.models.registry import load

    made = build_map(load(options.model, device=options.device), points, config, num_clusters=options.clusters)
    if options.html:
        from condviz.plots.map_page import map_page

        write_text(options.html, map_page(made, colour=options.colour))
    if options.json:
        write_text(options.json, json.dumps(made.to_dict(), ensure_ascii=False) + "\n")
    for note in made.notes:
        sys.stderr.write(f"condviz: {note}\n")
    sys.stdout.write(format_measures(made) + "\n")


def format_measures(made: EmbeddingMap) -> str:
    """Write what was measured as text."""
    points = made.points
    groups = f"{len(points.groups):,} {'condition' if len(points.groups) == 1 else 'conditions'}"
    lines = [f"{made.model['name']}: {len(points.texts):,} points, {groups}"]
    sides = (("before", made.before), ("after", made.after))
    for name, side in sides:
        lines.append(f"impurity {name:<7} {_impurity(side.impurity)}")
    if made.control:
        lines.append(
            f"impurity random  {made.control['mean']:.3f} (sd {made.control['std']:.3f}), a random matrix each"
        )
    for name, side in sides:
        spread = side.isotropy
        shown = f"{spread['mean_cosine']:.3f}, IPC {spread['ipc']:.3f}" if spread else "-"
        outline = "-" if side.silhouette is None else f"{side.silhouette:.3f}"
        lines.append(f"{name:<7} mean cosine {shown}, silhouette {outline}")
    for old, new in zip(made.before.values, made.after.values, strict=True):
        lines.append(
            f"values of {new['condition']!r}: {100 * old['agreement']:.0f} % of the nearest 3 agree before, "
            f"{100 * new['agreement']:.0f} % after, {100 * new['chance']:.0f} % by chance; impurity "
            f"{old['impurity']:.3f} before, {new['impurity']:.3f} after"
        )
    problems: dict[str, Any] = {**(made.before.problems or {}), **(made.after.problems or {})}
    lines += [f"no {name}: {reason}" for name, reason in problems.items()]
    return "\n".join(lines)


def _impurity(found: Any) -> str:  # noqa: ANN401 - JSON or None
    if not found:
        return "-"
    return (
        f"{found['mean']:.3f} (sd {found['std']:.3f} over {len(found['per_seed'])} seeds), {found['bits']:.3f} bits, "
        f"{found['normalised']:.3f} of the maximum, chance {found['chance']:.3f}, p {found['p_value']:.3f}"
    )
