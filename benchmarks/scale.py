"""What a store of many texts costs: vectors, disk, hours and machines, from rates measured in the same run.

python -m benchmarks.scale [--texts 4000] [--rate ROWS_PER_SECOND] [--docs]

Encoding, the size of a row on disk and the scan under a new condition are measured on sentences of the scenes; all else
is arithmetic. With --rate the hours are also those of a machine that encodes so many texts a second.
"""

from __future__ import annotations

import csv
import tempfile
import time
from pathlib import Path

from benchmarks.board import fill_document
from benchmarks.common import command, conditions, machine, mixed_sentences, options
from condviz.analysis.search import score_rows
from condviz.evaluation.scoreboard import markdown_table
from condviz.models.registry import load
from condviz.store.build import DEFAULT_MODEL, build_store
from condviz.store.disk import Store

DOCUMENT = Path(__file__).parents[1] / "docs" / "scale.md"
ROWS = (10**6, 10**7, 10**8, 10**9)
SCANS = 5
GB = 1e9


def measure(texts: int) -> dict[str, float]:
    """Return texts encoded in a second, bytes of a row, and rows scanned in a second."""
    with tempfile.TemporaryDirectory() as place:
        source, folder = Path(place) / "texts.csv", Path(place) / "s"
        with source.open("w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows([["text"], *([text] for text in mixed_sentences(texts))])
        model = load(DEFAULT_MODEL)
        model.encode_sentences(["The first call sets up what later ones use."])
        start = time.perf_counter()
        store = build_store(source, folder, model=model)
        rate = texts / (time.perf_counter() - start)
        size = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
        return {
            "rate": rate, "vector": 2 * store.identity.dimension, "row": size / texts, "scan": _scan(store, model)
        }  # fmt: skip


def _scan(store: Store, model: object) -> float:
    seconds = []
    for condition in conditions(SCANS + 1):
        start = time.perf_counter()
        score_rows(model, store, "Two women are playing tennis in the rain.", condition)
        seconds.append(time.perf_counter() - start)
    return len(store) / sorted(seconds[1:])[SCANS // 2]


def table(found: dict[str, float], rate: float = 0.0) -> str:
    """Return the costs in markdown."""
    rates = [("this machine", found["rate"]), *([(f"{rate:,.0f} texts a second", rate)] if rate else [])]
    head = ["texts", "vectors, GB", "disk, GB", *(f"hours to encode, {name}" for name, _ in rates)]
    head += [*(f"machines for one day, {name}" for name, _ in rates), "one new condition, seconds"]
    lines = []
    for rows in ROWS:
        hours = [rows / one / 3600 for _, one in rates]
        cells = [f"{rows:,}", f"{rows * found['vector'] / GB:,.1f}", f"{rows * found['row'] / GB:,.1f}"]
        cells += [f"{one:,.1f}" for one in hours] + [f"{-(-one // 24):,.0f}" for one in hours]
        lines.append([*cells, f"{rows / found['scan']:,.1f}"])
    return markdown_table(head, lines)


def main() -> None:
    """Measure, and print the table."""
    parser = options(__doc__)
    parser.add_argument("--texts", type=int, default=4_000)
    parser.add_argument("--rate", type=float, default=0.0, help="texts a second that another machine encodes")
    chosen = parser.parse_args()
    found = measure(chosen.texts)
    told = ", ".join(f"{name} {value}" for name, value in machine().items())
    text = (
        f"`{command()}`; {told}: {found['rate']:,.0f} texts a second into a store, {found['row']:,.0f} bytes a row on "
        f"disk, {found['scan']:,.0f} rows a second under a new condition.\n\n{table(found, chosen.rate)}"
    )
    print(text)
    if chosen.docs:
        fill_document(text, DOCUMENT, marks=("<!-- scale:start -->", "<!-- scale:end -->"))


if __name__ == "__main__":
    main()
