"""A map as one HTML file that needs nothing else: both pictures and the measures."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Mapping
from typing import Any

import plotly.graph_objects as go

from condviz.analysis.map_result import EmbeddingMap
from condviz.paths import ASSETS
from condviz.plots.maps import SideName, colouring, plot_side

_TOKEN = re.compile(r"(--cv-[\w-]+):\s*(#[0-9a-fA-F]{3,8})")
_STYLE = """body{font:16px/1.5 system-ui,sans-serif;color:#1c2126;background:#fffefb;max-width:72rem;margin:2rem auto;
padding:0 1rem}h1{font-size:1.4rem}.maps{display:grid;grid-template-columns:repeat(auto-fit,minmax(20rem,1fr));gap:1rem}
table{border-collapse:collapse}td,th{padding:.3rem .8rem;border-bottom:1px solid #dedad0;text-align:right}
th:first-child{text-align:left}.key{display:inline-block;width:.75rem;height:.75rem;border-radius:50%}"""


def map_page(result: EmbeddingMap, *, colour: str = "condition") -> str:
    """Write the page.

    Args:
        result: The map.
        colour: What points are coloured by, as in `colouring`.
    """
    colours = colouring(result, colour)
    tokens = light_colours()
    sides: tuple[SideName, ...] = ("before", "after")
    drawn = {side: _figure(plot_side(result, side, colours), tokens, library=side == "before") for side in sides}
    figures = "".join(f"<div><h2>{side.title()}</h2>{figure}</div>" for side, figure in drawn.items())
    legend = " ".join(
        f'<span class="key" style="background:{_solid(paint, tokens)}"></span> {html.escape(label)} ({count:,})'
        for label, paint, count in colours.categories
    )
    made = result.projection.config.to_dict()
    facts = ", ".join(f"{name} {value}" for name, value in made.items())
    title = f"{result.model['title']} ({result.model['name']} @ {result.model['revision']})"
    notes = "".join(f"<li>{html.escape(note)}</li>" for note in result.notes)
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>CondViz map</title><style>{_STYLE}</style>'
        f"<h1>{html.escape(title)}</h1><p>{len(result.points.texts):,} points; {html.escape(facts)}</p><p>{legend}</p>"
        f'<div class="maps">{figures}</div><p>Distances between clusters on a map are no evidence; the numbers below '
        f"are measured in the original space.</p>{_measures(result)}<ul>{notes}</ul></html>\n"
    )


def light_colours() -> dict[str, str]:
    """Read the colours of the light page from its style sheets: "--cv-pos" -> "#5b9bd9"."""
    found: dict[str, str] = {}
    for name in ("condviz.css", "figures.css"):
        for block in re.findall(r":root\s*{(.*?)}", (ASSETS / "css" / name).read_text(encoding="utf-8"), re.DOTALL):
            found |= dict(_TOKEN.findall(block))
    return found


def _solid(colour: str, tokens: Mapping[str, str]) -> str:
    return tokens.get(colour.removeprefix("var(").removesuffix(")"), colour)


def _figure(figure: go.Figure, tokens: Mapping[str, str], *, library: bool) -> str:
    record = json.loads(figure.to_json())
    for trace in record["data"]:
        # Plotly reads tips as markup; these are texts of the user.
        trace |= {"hoverinfo": "text", "hovertext": [html.escape(text) for text in trace["text"]]}
        trace.pop("meta", None)
        if trace["type"] == "scattergl" and len(trace["text"]) <= 1500:
            trace["type"] = "scatter"
    filled = _colours(record, tokens)
    return go.Figure(filled).to_html(full_html=False, include_plotlyjs=library, default_height="30rem")


def _colours(value: Any, tokens: Mapping[str, str]) -> Any:  # noqa: ANN401 - any JSON
    if isinstance(value, dict):
        return {key: item if key in ("text", "hovertext") else _colours(item, tokens) for key, item in value.items()}
    if isinstance(value, list):
        return [_colours(item, tokens) for item in value]
    return _solid(value, tokens) if isinstance(value, str) and value.startswith("var(--") else value


def _measures(result: EmbeddingMap) -> str:
    rows = []
    for name, side in (("before", result.before), ("after", result.after)):
        clustered, spread = side.impurity or {}, side.isotropy or {}
        cells = [
            *(clustered.get(key) for key in ("mean", "std", "bits", "normalised", "chance", "p_value")),
            side.silhouette,
            *(spread.get(key) for key in ("mean_cosine", "ipc")),
        ]
        rows.append(f"<tr><th>{name}</th>" + "".join(f"<td>{_number(cell)}</td>" for cell in cells) + "</tr>")
    names = ("", "impurity", "sd", "bits", "share of maximum", "by chance", "p", "silhouette", "mean cosine", "IPC")
    head = "".join(f"<th>{name}</th>" for name in names)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>"


def _number(value: float | None) -> str:
    return "\N{EN DASH}" if value is None else f"{value:.3f}"
