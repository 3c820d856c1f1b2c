"""The papers' tables as Markdown and as pictures, and where results are kept."""

from __future__ import annotations

import hashlib
import json
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import plotly.graph_objects as go

from benchmarks.board import fill_document
from benchmarks.papers import tables as stored
from benchmarks.papers.tables import (
    Figures,
    Paper,
    Run,
    Table,
    fill_table,
    find_tables,
    format_state,
    heading,
    is_done,
    papers,
    values,
)
from condviz.data.files import write_text
from condviz.encoder.download import PINNED
from condviz.errors import UnknownModelError
from condviz.evaluation.scoreboard import NONE, markdown_table
from condviz.models.registry import describe
from condviz.paths import ASSETS

PAGE = Path(__file__).resolve().parents[2] / "docs" / "papers.md"
FILLED = ASSETS / "papers.json"
"""Claims and filled tables, as the page of the models shows them."""
MARKS = ("<!-- papers:start -->", "<!-- papers:end -->")


def add_result(run: Run, seed: int, minutes: float, found: Figures) -> None:
    """Keep what a run gave, beside what was measured before of the same weights; what others gave goes."""
    results, of = stored.read_own_results(), fingerprint(run)
    seeds = results.setdefault(run.key, {})
    if seeds.get(str(seed), {}).get("of") != of:
        seeds[str(seed)] = {"of": of, "minutes": 0.0, "figures": {}}
    known = seeds[str(seed)]
    known |= {"minutes": round(known["minutes"] + minutes, 2), "figures": known["figures"] | found}
    write_text(stored.RESULTS, json.dumps(results, indent=1) + "\n")


def fingerprint(run: Run) -> str:
    """Return what the figures of a run belong to, 16 hex digits: weights of a model, or what a training reads."""
    told: list[object] = [run.key]
    if run.recipe:
        told.append(tomllib.loads((ASSETS / "recipes" / f"{run.recipe}.toml").read_text(encoding="utf-8")))
    elif run.model and not run.backbone:
        with suppress(UnknownModelError):
            path = describe(run.model).path
            told += [hashlib.sha256(one.read_bytes()).hexdigest() for one in sorted(Path(path).glob("*.safetensors"))]
    elif run.backbone in PINNED:
        told.append(PINNED[run.backbone].digest)
    return hashlib.sha256(json.dumps(told).encode()).hexdigest()[:16]


def format_table(results: Mapping[str, Any], table: Table) -> str:
    """Format a table as Markdown; "" where nothing is printed or measured."""
    found = fill_table(results, table)
    return "\n\n".join([markdown_table(("", *found.heads), found.rows), *found.tests]) if found.heads else ""


def format_page(results: Mapping[str, Any]) -> str:
    """Format the state of all tables, all claims and all tables as Markdown."""
    rows = []
    for paper, table in find_tables(""):
        done = [format_state(results, table, setting) for setting in ("paper", "here")]
        paper_only = " --paper" if done[1] == NONE else ""
        command = f"papers run {paper.id}:{table.id}{paper_only}"
        command = command if done != [NONE, NONE] else "quoted" if table.rows else NONE
        rows.append((f"{paper.title}, {table.title}", *done, command))
    head = ("", "rows run in the paper’s setting (`--paper`)", "rows run here", "command")
    blocks = ["## What has been run", markdown_table(head, rows), "## What the papers say, and what we see"]
    for paper in papers():
        lines = (f"- {claim.says} **Here: {claim.holds}.** {claim.because}" for claim in paper.claims)
        blocks += [f"**{paper.title}** ({paper.citation})", "\n".join(lines)]
    for paper in papers():
        blocks.append(f"## {paper.title}")
        for table in paper.tables:
            blocks += [f"### {table.title}", *_describe(results, paper, table), format_table(results, table)]
    return "\n\n".join(block for block in blocks if block)


def shown_papers(results: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return what the page of the models shows of each paper: its claims, and its tables with what was measured."""
    return [
        {
            "title": paper.title,
            "citation": paper.citation,
            "claims": list(map(asdict, paper.claims)),
            "tables": [
                {name: getattr(table, name) for name in ("title", "shows", "where", "absent")}
                | {"state": format_state(results, table, "here")}
                | asdict(fill_table(results, table))
                for table in paper.tables
            ],
        }
        for paper in papers()
    ]


def write_pages(results: Mapping[str, Any]) -> None:
    """Write docs/papers.md, and what the page of the models shows."""
    fill_document(format_page(results), PAGE, marks=MARKS)
    write_text(FILLED, json.dumps(shown_papers(results), ensure_ascii=False, indent=1) + "\n")


def _describe(results: Mapping[str, Any], paper: Paper, table: Table) -> Iterator[str]:
    yield table.shows
    missing = "; ".join(row.name for row, run in table.runs("here") if not is_done(results, table, "here", run))
    facts = {"In the paper": table.needs, "Time": table.time, "Here": table.where, "Not run": table.absent}
    facts |= {"Still to run here": missing}
    yield "\n".join(f"- *{name}*: {text}" for name, text in facts.items() if text)
    if table.runs("here") and table.here_figures:
        yield f"`python -m benchmarks papers run {paper.id}:{table.id} --seeds 3`"


def plot_table(results: Mapping[str, Any], table: Table) -> go.Figure:
    """Draw what was measured for a table: means over seeds, with their standard deviation, a colour per `series`."""
    bars: dict[str, list[tuple[str, float, float]]] = {}
    for setting in ("paper", "here"):
        for figure in getattr(table, f"{setting}_figures"):
            for row in table.rows:
                if len(found := values(results, getattr(row, setting), figure)):
                    series, place = heading(setting, figure), row.name
                    if table.series == "rows":
                        series, place = place, series
                    spread = found.std(ddof=1) if len(found) > 1 else 0.0
                    bars.setdefault(series, []).append((place, found.mean(), spread))
    curves = any(figure.startswith("curve.") for figure in table.here_figures)
    shape = partial(go.Scatter, mode="lines+markers") if curves else go.Bar
    drawn = [
        shape(x=x, y=y, error_y={"array": spread}, name=name)
        for name, rows in bars.items()
        for x, y, spread in [zip(*rows, strict=True)]
    ]
    return go.Figure(drawn).update_layout(template="none", title={"text": table.title}, barmode="group")
