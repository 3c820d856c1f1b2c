"""A small knowledge graph in words that the tiny encoders know."""

from __future__ import annotations

from pathlib import Path

from condviz.data.kg import Graph
from condviz.data.kg_formats import read_tables

ENTITIES = 12
WORDS = [
    "animals", "bike", "cat", "dogs", "grass", "happy", "man", "mood", "number", "over", "park", "rides", "run",
    "sport",
]  # fmt: skip
RELATIONS = (("_in", "the park"), ("_has", "the mood"))


def write_graph(folder: Path) -> Path:
    """Write the three tables: a ring of twelve entities, and the opposite one of each."""
    folder.mkdir(parents=True)
    rows = [f"e{i:02}\t{WORDS[i]}\t{WORDS[i + 1]} {WORDS[(3 * i) % len(WORDS)]}" for i in range(ENTITIES)]
    (folder / "entities.tsv").write_text("id\tname\tdescription\n" + "\n".join(rows) + "\n", encoding="utf-8")
    (folder / "relations.tsv").write_text("".join(f"{key}\t{text}\n" for key, text in RELATIONS), encoding="utf-8")
    lines = ["head\trelation\ttail\tsplit"]
    for i in range(ENTITIES):
        split = {5: "valid", 7: "test"}.get(i, "train")
        lines.append(f"e{i:02}\t_in\te{(i + 1) % ENTITIES:02}\t{split}")
        lines.append(f"e{i:02}\t_has\te{(i + 6) % ENTITIES:02}\ttrain")
    (folder / "triples.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder


def toy_graph(folder: Path) -> Graph:
    """Write the tables into a folder that does not exist yet, and read them."""
    return read_tables(write_graph(folder))
