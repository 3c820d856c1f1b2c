"""What rows of natural tables are worth: the bi-encoder's fourth stage on few and many of them, at equal compute.

Every run starts from `bi-encoder-scenes`, sees `SEEN` rows, few ones again and again, beside the same scenes, and keeps
the last weights as they are. Goes on where it stopped; results are kept with those of the papers' tables.

python -m benchmarks.tables [--rows N ...] [--seeds N] [--docs]
"""

from __future__ import annotations

from benchmarks.common import fill, options
from condviz.evaluation.papers import Row, Run, Table, format_table, read_results
from condviz.training.papers import run_table

SEEN = 10_000
POINTS = (0, 500, 1_000, 3_000, 10_000, 20_000)
PARTS = ("validation", "tables", "tables_unseen_domains", "test")
"""The validation rows of the tables in full, then parts of `condviz benchmark models`."""
FIGURES = ("spearman", "pair_accuracy")


def run(rows: int) -> Run:
    """Return the training on so many rows of tables; without any, it sees as many more of the scenes."""
    source = f'name="tables", seed=1, rows={rows}, weight={SEEN / rows}' if rows else f'name="scenes", rows={SEEN}'
    scenes = f'name="scenes", seed=5, rows={SEEN // 10}'
    return Run("bi-encoder-tables", (f"train=[{{{source}}}, {{{scenes}}}]", "blend=1.0"))


def table(points: tuple[int, ...]) -> Table:
    """Return the table of results, a row for each number of rows."""
    rows = tuple(Row(f"{number:,} rows", here=run(number)) for number in points)
    figures = tuple(f"{part}.{figure}" for part in PARTS for figure in FIGURES)
    return Table("tables", "Rows of natural tables", "", rows, here_figures=figures)


def main() -> None:
    """Train what is missing, measure, and print."""
    parser = options(__doc__)
    parser.add_argument("--rows", type=int, nargs="+", default=POINTS, help="of tables (default: %(default)s)")
    parser.add_argument("--seeds", type=int, default=1, help="trainings of each (default: %(default)s)")
    chosen = parser.parse_args()
    wanted = table(tuple(chosen.rows))
    run_table(wanted, setting="here", seeds=chosen.seeds, report=print)
    text = format_table(read_results(), wanted)
    print(text)
    if chosen.docs:
        fill("rows", text)


if __name__ == "__main__":
    main()
