"""The Models tab: what can be loaded, where it comes from, how it stands, and its model card."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gradio as gr

from condviz.errors import DataError
from condviz.types import ModelInfo
from condviz.ui.components import markup
from condviz.ui.guard import guarded
from condviz.ui.html import badge, esc, kind_badge, model_badges, number, tag, text
from condviz.ui.pool import LoadState
from condviz.ui.scores_view import EXPLANATION, column_titles, load_board, render_cells, render_detail, render_problem
from condviz.ui.service import Service

MAX_CARD_CHARACTERS = 60_000
_FRONT_MATTER = re.compile(r"\A\ufeff?---\r?\n.*?\r?\n---\r?\n", re.DOTALL)
_SCRIPT = "condviz.models(element, (data) => trigger('card', data));"


def render_models(service: Service) -> str:
    """Write the table of all models with their stored scores and their state."""
    states, (board, problem) = service.pool.states(), load_board()
    measured = column_titles(board)
    columns = ("Model", "Reads", "Training", *measured, "Added parameters", "Score range", "Weights", "Paper", "State")
    figures = {*measured, "Added parameters"}
    rows = []
    for info in service.infos():
        cells = render_cells(board, info, service.pool.loaded(info.name))
        rows.append(_row(info, states[info.name], cells))
    head = tag("tr", *[tag("th", name, scope="col", class_="cv-num" if name in figures else None) for name in columns])
    table = tag(
        "table", tag("thead", head), tag("tbody", *rows), class_="cv-table cv-models-table", data_testid="models"
    )
    return tag(
        "div",
        tag(
            "div",
            tag("h2", "Models"),
            tag("p", "Choose a name to read its card.", class_="cv-muted"),
            class_="cv-section-head",
        ),
        render_problem(problem),
        tag("p", EXPLANATION, class_="cv-muted cv-explanation") if board.models else "",
        tag("div", table, class_="cv-scroll", role="region", tabindex="0", aria_label="All models"),
    )


def _row(info: ModelInfo, state: LoadState, score_cells: str) -> str:
    low, high = info.score_range
    scores = f"{number(low, 0)} to {number(high, 0)}" if math.isfinite(low) and math.isfinite(high) else "unbounded"
    name = tag(
        "button",
        text("span", info.title),
        class_="cv-link",
        type="button",
        data_card=info.name,
        data_testid=f"card-{info.name}",
    )
    trained = "trained" if info.trained else badge("not trained", tone="warn")
    return tag(
        "tr",
        tag("th", name, text("code", info.name), scope="row"),
        tag("td", kind_badge(info.kind)),
        tag("td", trained),
        score_cells,
        tag("td", f"{info.added_parameters:,}", class_="cv-num"),
        tag("td", esc(scores)),
        tag("td", text("span", info.source), text("code", info.revision) if info.revision else ""),
        text("td", info.reference, class_="cv-paper"),
        tag("td", _state(state), class_="cv-state"),
    )


def _state(state: LoadState) -> str:
    dot = tag("span", class_="cv-dot", data_phase=state.phase, aria_hidden="true")
    if state.phase == "ready":
        return f"{dot}ready {tag('span', f'{state.seconds:.1f} s, +{state.megabytes:.0f} MB', class_='cv-muted')}"
    if state.phase == "failed":
        return dot + "failed " + text("span", state.reason, class_="cv-row-failed")
    return dot + esc(state.phase)


def render_runtime(service: Service) -> str:
    """Write the encoder with device and precision, and what the cache of embeddings holds."""
    model = next((m for name in service.pool.names if (m := service.pool.loaded(name)) is not None), None)
    backbone = getattr(model, "backbone", None)
    if backbone is None:
        return tag("p", "The encoder is described here once the first model has loaded.", class_="cv-muted")
    stats = backbone.cache.stats()
    figures = [
        ("Encoder", backbone.describe()),
        ("Cache entries", f"{stats.entries:,}"),
        ("Cache memory", f"{stats.bytes / 1e6:.1f} of {stats.max_bytes / 1e6:.0f} MB"),
        ("Hits", f"{stats.hits:,} of {stats.hits + stats.misses:,}"),
        ("Hit rate", f"{100 * stats.hit_rate:.0f} %"),
    ]
    items = [tag("div", tag("dt", name), text("dd", value)) for name, value in figures]
    return tag("dl", *items, class_="cv-figures", data_testid="runtime")


def read_card(info: ModelInfo) -> str:
    """Give the model card as Markdown: the README of the checkpoint, else what is known of the model."""
    path = Path(info.path) / "README.md" if info.path else None
    if path is not None and path.is_file():
        card = path.read_text(encoding="utf-8", errors="replace")[:MAX_CARD_CHARACTERS]
        return _FRONT_MATTER.sub("", card, count=1)
    trained = "Trained." if info.trained else "Not trained: the pretrained encoder as it is."
    lines = [
        f"# {info.title}",
        info.summary,
        trained,
        f"Paper: {info.reference}",
        f"Load it with `condviz.load({info.name!r})`.",
    ]
    return "\n\n".join(line for line in lines if line.strip())


def build_models_tab(service: Service) -> tuple[gr.HTML, gr.HTML]:
    """Lay out the tab and connect it; call inside a gr.Tab.

    Args:
        service: The models.

    Returns:
        The table and the line on encoder and cache, which the timer of the page keeps up to date.
    """
    table = markup(render_models(service), elem_id="cv-models-table", script=_SCRIPT)
    notice = markup("", elem_id="cv-models-notice")
    heading = markup("", elem_id="cv-card-head")
    card = gr.Markdown("", elem_id="cv-card", sanitize_html=True, container=False, latex_delimiters=[])
    markup('<div class="cv-section-head"><h2>Encoder and cache</h2></div>', elem_id="cv-runtime-head")
    runtime = markup(render_runtime(service), elem_id="cv-runtime")

    @guarded(notice)
    def show_card(event: gr.EventData) -> Iterator[dict[Any, Any]]:
        name = str((event._data or {}).get("name"))
        if name not in service.pool.names:
            raise DataError(f"There is no model {name!r}. Reload the page.")
        info = service.info(name)
        title = tag("p", text("span", f"Model card of {info.name}"), " ", model_badges(info), class_="cv-label")
        scores = render_detail(load_board()[0], info, service.pool.loaded(name))
        yield {notice: "", heading: title + scores, card: read_card(info)}

    table.card(show_card, None, [notice, heading, card], api_visibility="private", show_progress="hidden", queue=False)
    return table, runtime
