"""Does Links say "I don't know" where it does not? Names that the graph does not have, on the graph that ships here.

    held out    heads of the test part, which no model was trained on, taken out of the graph and asked about by name
    elsewhere   names that have no place in a graph of everyday things (assets/graph/elsewhere.txt): any answer is wrong

How strong an answer has to be is measured on the valid part alone here; the page takes both parts.

python -m benchmarks.unknown_names [--docs]
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from benchmarks.board import fill_document, read_marked
from condviz.analysis.answers import LinkAnswers
from condviz.analysis.links import LinkPredictor
from condviz.data.kg import SPLITS, Graph, build_graph
from condviz.data.kg_formats import EVERYDAY, load_graph
from condviz.evaluation.scoreboard import markdown_table
from condviz.models.registry import link_models, load
from condviz.paths import ASSETS

MARKS = ("<!-- unknown-names:start -->", "<!-- unknown-names:end -->")


def main() -> None:
    """Measure and print; put the table into docs/results.md where asked."""
    if "--docs" in sys.argv:
        read_marked(marks=MARKS)
    with TemporaryDirectory() as folder:
        text = measure(Path(folder))
    sys.stdout.write(text + "\n")
    if "--docs" in sys.argv:
        fill_document(text, marks=MARKS)


def measure(folder: Path) -> str:
    """Ask about names, and count what is answered, and how often rightly: a Markdown table."""
    graph, test = load_graph(EVERYDAY), load_graph(EVERYDAY).splits["test"]
    asker = LinkPredictor(without(graph, set(test[:, 0].tolist())), load(link_models(EVERYDAY)[0]), folder=folder)
    found, right = [], []
    for head, relation in np.unique(test[:, :2], axis=0).tolist():
        true = {graph.entities[tail].id for h, r, tail in test.tolist() if (h, r) == (head, relation)}
        found.append(asker.ask(graph.entities[head].name, graph.relations[relation].id, k=1))
        right.append(found[-1].answers[0].id in true)
    names = (ASSETS / "graph" / "elsewhere.txt").read_text(encoding="utf-8").splitlines()
    other = [asker.ask(name, relation, k=1) for name in names for relation in asker.relations_for(name)]
    rows = [_row("held out", found, right), _row("elsewhere", other, [False] * len(other))]
    head = ("names that are not in the graph", "questions", "answered", "right, of those", "right, of the others")
    return markdown_table(head, rows)


def without(graph: Graph, gone: set[int]) -> Graph:
    """Take entities, and the triples they are in, out of a graph."""
    splits = {
        split: [
            (graph.entities[head].id, graph.relations[relation].id, graph.entities[tail].id)
            for head, relation, tail in graph.splits[split].tolist()
            if gone.isdisjoint((head, tail))
        ]
        for split in SPLITS
    }
    kept = [entity for number, entity in enumerate(graph.entities) if number not in gone]
    return build_graph("everyday without names", kept, graph.relations, splits)


def _row(title: str, found: Sequence[LinkAnswers], right: Sequence[bool]) -> tuple[str, ...]:
    told, true = np.array([item.told for item in found]), np.array(right)
    shares = (f"{part.mean():.0%}" if len(part) else "-" for part in (told, true[told], true[~told]))
    return title, f"{len(found)}", *shares


if __name__ == "__main__":
    main()
