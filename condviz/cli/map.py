"""The command `map`."""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING

from condviz.analysis.maps import build_map
from condviz.cli import options as shared
from condviz.cli.options import format_table, progress_bar, tell
from condviz.errors import ConfigError

if TYPE_CHECKING:
    from condviz.analysis.maps import EmbeddingMap


OF_TABLES = ("text_column", "condition_column", "value_column", "condition", "sample")
"""Options that only a table of one's own has."""


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to a parser."""
    files = shared.files(json="write everything as JSON", html="write both pictures and the measures as one page")
    layout = shared.of_function(build_map, n_neighbors="neighbors")
    models, table = shared.models("hyper-cl", several=False), shared.reading(pairs=False)
    parser = commands.add_parser(
        "map",
        parents=[models, shared.device(precision=None), shared.cluster(), files, table, layout],
        help="lay sentences out before and after conditioning, and measure both",
        description="Encode the sentences of a table without and with their conditions, lay both out in one alignment, "
        "and print values, impurity, isotropy and silhouette. Without a column of conditions, give --condition.",
    )
    parser.add_argument("table", metavar="FILE", help="CSV or TSV, - for standard input, or scenes for our example")
    parser.add_argument("--text-column", metavar="NAME", help="column of the sentences (default: guessed)")
    parser.add_argument("--condition-column", metavar="NAME", help="column of the conditions (default: condition)")
    parser.add_argument("--value-column", metavar="NAME", help="column of the values (default: value)")
    parser.add_argument("--condition", action="append", help="put every sentence under it; may be repeated")
    parser.add_argument("--sample", type=int, metavar="N", help="draw N rows at random (by --seed) from larger tables")
    parser.set_defaults(command=run)


def run(options: argparse.Namespace) -> None:
    """Make the map, print the measures and write the files."""
    from condviz.analysis.points import points_from_table, scene_points
    from condviz.data.tables import read_table

    # Settings and table are checked before the model loads, which takes seconds.
    settings = shared.given(options, build_map)
    if options.table == "scenes":
        given = [name for name in OF_TABLES if getattr(options, name) is not None]
        if given:
            raise ConfigError(f"scenes has conditions of its own: leave out --{given[0].replace('_', '-')}.")
        points = scene_points(seed=options.seed)
    else:
        columns = {f"{name}_column": getattr(options, f"{name}_column") for name in ("text", "condition", "value")}
        drawn = {"sample": options.sample, "seed": options.seed}
        points = points_from_table(
            read_table(options.table, **shared.reading_of(options), names=("text",)),
            **columns,
            conditions=options.condition,
            **drawn,
        )

    from condviz.models.registry import load

    model = shared.on_cluster(load(options.model, device=options.device), options)
    with progress_bar("map", "‰") as update:
        made = build_map(model, points, **settings, progress=update)
    if options.html:
        from condviz.plots.maps import map_page

        shared.write(options.html, map_page(made))
    if options.json:
        shared.write(options.json, json.dumps(made.to_dict(), ensure_ascii=False) + "\n")
    tell(*made.notes)
    if not shared.output_taken(options):
        print(format_measures(made))


def format_measures(made: EmbeddingMap) -> str:
    """Format what was measured: a table of measures, and one of values where they are known."""
    points, sides = made.points, (made.before, made.after)
    groups = f"{len(points.groups):,} {'condition' if len(points.groups) == 1 else 'conditions'}"
    lines = [f"{made.model['name']}: {len(points.texts):,} points, {groups}", ""]
    if made.before.values:
        share = "{:.0f} %".format
        rows = [
            (new.condition, share(100 * old.agreement), share(100 * new.agreement), share(100 * new.chance))
            for old, new in zip(made.before.values, made.after.values, strict=True)
        ]
        lines += [format_table(("nearest 3 with the same value", "before", "after", "by chance"), rows), ""]
    rows, problems = [], {}
    for name, side in zip(("before", "after"), sides, strict=True):
        found = side.measures
        if found is None:
            continue
        problems |= found.problems
        clustered, spread = found.impurity or {}, found.isotropy or {}
        cells = [*map(clustered.get, ("mean", "std", "chance")), found.silhouette]
        cells += map(spread.get, ("mean_cosine", "ipc"))
        rows.append((name, *("-" if cell is None else f"{cell:.3f}" for cell in cells)))
    if made.random_matrices:
        rows.append(("random matrices", f"{made.random_matrices['mean']:.3f}", *[""] * 5))
    head = ("", "impurity", "sd", "by chance", "silhouette", "mean cosine", "IPC")
    lines.append(format_table(head, rows))
    lines += [f"no {name}: {reason}" for name, reason in problems.items()]
    return "\n".join(lines)
