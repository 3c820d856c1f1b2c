"""One linked figure: plotly in a gr.HTML that keeps zoom and selection over updates and tells Python what was chosen.

    panel = plotly_panel(figure, elem_id="cv-map", label="Sentences after W_c", link="map")
    panel.select(handler, ...)     # box, lasso, Esc:  gr.EventData with _data {"ids": [...]}; [] when released
    panel.click(handler, ...)      # a point:          {"id": "17"}; without ids: {"id": None, "x": ..., "y": ...}
    panel.relayout(handler, ...)   # zoom, pan:        {"x": [low, high], "y": [low, high]}
    panel.ready(handler, ...)      # it has appeared without a figure: what came before is lost, give a `fallback`
    yield {panel: panel_update(figure=other, selection=["3", "17"])}     # what a handler gives back

Points are known by the `ids` of their trace (texts). Data travel as typed arrays: give numpy float32 to plotly.
Colours may be "var(--cv-pos)" and the like; they, and all that the figure leaves open, follow light and dark. For a
tip in which no text is read as markup give a trace `text`, `hoverinfo="none"` and, for badges, `customdata` (texts).
A number in either stands for one of the texts in `layout.meta["texts"]`, each of which is sent once.
A trace with `meta={"from": {"x": ..., "y": ...}}` gets a slider that moves its points from there to x and y. Panels of
one `link` share selection and marked point, with `link_zoom` the axes too. A new `layout.uirevision` resets the zoom.
Up to 1,500 points a scattergl is drawn as SVG, which is sharper; without WebGL up to 5,000.
Figures come as plotly figures or as their JSON; this module does not load plotly.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal, Protocol

import gradio as gr
from markupsafe import Markup

from condviz.errors import MissingExtraError
from condviz.ui.markup import STATIC, inert, page_script, render

Tool = Literal["pan", "lasso", "select"]
Tone = Literal["info", "busy", "old", "error"]

_SCRIPT = page_script("condviz.panel(element, props, watch, trigger);  // 'select' 'click' 'relayout' 'ready'")


class Figure(Protocol):
    """What plotly's figures offer."""

    def to_json(self) -> str | None: ...


class PlotlyPanel(gr.HTML):
    """A plotly figure; made by `plotly_panel`.

    The constructor stays that of gr.HTML: gradio builds the component again from it after every update.
    """

    def get_block_name(self) -> str:
        """Return the name of the component in the browser: that of the parent."""
        return "html"


def plotly_panel(
    figure: Figure | str | None = None, *, elem_id: str, label: str, link: str = "", link_zoom: bool = False,
    tool: Tool = "pan", height: int = 440, message: str = "", play: bool = False, still: str = "",
    **kwargs: Any,  # noqa: ANN401 - as gr.HTML
) -> PlotlyPanel:  # fmt: skip
    """Lay out a figure, or a place for one; call inside gr.Blocks. Raises MissingExtraError without plotly.

    Exported files have the name of its id; the label is for screen readers, a message is shown over it. The tool is
    what dragging does at first; on touch screens it scrolls the page until one is chosen. With `play`, a new figure
    moves its points from before to after. A `still` is the first one as SVG, which stands until plotly has loaded.
    """
    source = plotly_source()
    # In the template, not in the props: an update that comes before the tab is opened replaces all props. The template
    # is constant, so that no update touches what plotly has drawn.
    settings = {"plotly": f"{STATIC}/{source.name}?v={source.stat().st_size}", "filename": elem_id.removeprefix("cv-")}
    settings |= {"link": link, "link_zoom": link_zoom, "tool": tool, "height": height, "play": play}
    drawn = inert(render("figure.html", label=label, tool=tool, settings=settings, still=Markup(still)))
    fixed = {"html_template": drawn, "js_on_load": _SCRIPT, "apply_default_css": False}
    props = {"figure": _pack(figure), "fallback": "", "message": {"text": message, "tone": "info"}}
    props |= {"selection": None, "marked": None}
    return PlotlyPanel(None, elem_id=elem_id, **fixed, **props, **kwargs)


def panel_update(
    *, figure: Figure | str | None = None, fallback: Figure | str | None = None,
    selection: Sequence[str] | Literal[False] = False, marked: str | Literal[False] | None = False,
    message: str | None = None, tone: Tone = "info", share: float = 0.0,
) -> dict[str, Any]:  # fmt: skip
    """Return the update of a panel that a handler yields; what is left out stays.

    A new figure keeps zoom and selection; a fallback is drawn only where no figure has come, before it or after; a
    marked point gets a ring, None none; a message "" goes, an "error" is announced at once, and a "busy" one dims the
    picture, of whose work the `share` in [0, 1] is done.
    """
    props: dict[str, Any] = {}
    if figure is not None:
        props["figure"] = _pack(figure)
    if fallback is not None:
        props["fallback"] = _pack(fallback)
    # The stamp makes the same ids a change again after the reader has selected something else.
    if selection is not False:
        props["selection"] = {"ids": [str(item) for item in selection], "at": time.monotonic_ns()}
    if marked is not False:
        props["marked"] = {"id": marked, "at": time.monotonic_ns()}
    if message is not None:
        props["message"] = {"text": message, "tone": tone, "share": share}
    return gr.update(**props)


def plotly_source() -> Path:
    """Return the path of the plotly.js that comes with the plotly package, without importing it."""
    found = find_spec("plotly")
    if found is None or not found.submodule_search_locations:
        raise MissingExtraError("plotly is not installed. Install it from a clone with: pip install -e '.[app]'")
    return Path(next(iter(found.submodule_search_locations))) / "package_data" / "plotly.min.js"


def _pack(figure: Figure | str | None) -> str:
    if figure is None or isinstance(figure, str):
        return figure or ""
    return str(figure.to_json())
