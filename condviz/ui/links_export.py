"""What the Links tab hands out: the answers as CSV, as JSON, and as a Python script that prints them."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping
from typing import Any

import condviz
from condviz.data.texts import plain_cell
from condviz.ui.exports import describe_revision, finite
from condviz.ui.links_engine import EVERYDAY, TITLES
from condviz.ui.record import unpack_info

Record = Mapping[str, Any]
COLUMNS = ("rank", "id", "label", "description", "score", "split", "filtered_rank")


def to_csv(record: Record) -> str:
    """Write the ranked answers, and the known ones further down, one row each."""
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(["graph", "model", "revision", "entity", "relation", *COLUMNS])
    asked = [record["graph"]["name"], record["model"]["name"], record["model"]["revision"]]
    asked += [plain_cell(record["entity"]["label"]), plain_cell(record["relation"])]
    shown = {item["id"] for item in record["rows"]}
    for item in (*record["rows"], *(item for item in record["answers"] if item["id"] not in shown)):
        texts = [plain_cell(item[key]) for key in ("id", "label", "description")]
        filtered = f"{item['filtered_rank']:g}" if item["split"] else ""
        writer.writerow([*asked, f"{item['rank']:g}", *texts, f"{item['score']:.6f}", item["split"], filtered])
    return out.getvalue()


def to_json(record: Record) -> str:
    """Write the answers as `/predict_links` gives them, with the version."""
    return json.dumps(finite({"condviz": condviz.__version__, **public(record)}), ensure_ascii=False, indent=1)


def to_python(record: Record) -> str:
    """Write a script that prints the answers; texts are Python literals in ASCII, so nothing in them ends a string."""
    state, graph = record["state"], record["graph"]["name"]
    if state["graph"] == EVERYDAY:
        paths, opened = "from condviz.paths import ASSETS", 'load_graph(str(ASSETS / "graph" / "everyday"))'
    else:
        paths, opened = "", f"load_graph({graph!a})"
    uploaded = (
        [] if state["graph"] in TITLES else ["# Put entities.tsv, relations.tsv and triples.tsv into this folder."]
    )
    question = f"{state['entity']!a}, {state['relation']!a}"
    lines = [
        f"# Links in a knowledge graph, from CondViz {condviz.__version__}.",
        f"# Model behind the numbers of the page: {ascii(describe_revision(unpack_info(record['model'])))[1:-1]}",
        "",
        "import condviz",
        "from condviz.ui.links_predictor import LinkPredictor",
        "from condviz.data.kg_formats import load_graph",
        *([paths] if paths else []),
        "",
        *uploaded,
        f"graph = {opened}",
        f"predictor = LinkPredictor(graph, condviz.load({state['model']!a}))",
        f"found = predictor.predict({question}, inverse={state['inverse']}, k={state['count']})",
        "for answer in found.candidates:",
        '    print(f"{answer.rank:5g}  {answer.score:.3f}  {answer.label}  {answer.split}")',
        "",
    ]
    return "\n".join(lines)


def public(record: Record) -> dict[str, Any]:
    """Give what concerns everybody: the question, the answers, and where they come from."""
    model = {key: record["model"][key] for key in ("name", "revision", "trained")}
    plain = {key: record[key] for key in ("graph", "entity", "relation", "rows", "answers")}
    return {"model": model, **plain}
