"""What the Map tab does on each event. Every handler yields {component name: update}; no layout here."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import gradio as gr

from condviz.analysis.map_result import EmbeddingMap
from condviz.errors import DataError
from condviz.ui.background import Background, percent
from condviz.ui.html import notice
from condviz.ui.map_form import MapForm, column_choices, open_table
from condviz.ui.map_measures import render_measures, render_weights
from condviz.ui.map_service import FIRST, MapService
from condviz.ui.map_view import (
    map_json,
    positions,
    render_head,
    render_legend,
    render_neighbors,
    render_table,
    rows_csv,
)
from condviz.ui.plotly_panel import panel_update

if TYPE_CHECKING:
    from condviz.plots.old_maps import Colouring

Step = dict[str, Any]
Record = dict[str, Any]
BUILT_IN = {"condition": "condition", "cluster": "cluster", "drift": "change of neighbours"}


class MapHandlers:
    """The behaviour of the tab over a service; holds nothing of any visitor."""

    def __init__(self, service: MapService) -> None:
        """Keep the service."""
        self.service = service

    def opened(self, shown: Record | None) -> Iterator[Step]:
        """Show the stored map when the tab is opened for the first time, and let UMAP be compiled meanwhile."""
        if shown is None and self.service.first is not None:
            yield from self._show(FIRST, _fresh(FIRST, self.service.first))
        else:
            yield {"notice": gr.skip()}
        self.service.warm_up.start()

    def source(self, source: str) -> Iterator[Step]:
        """Show the fields of what the points come from."""
        yield {f"box_{name}": gr.update(visible=name == source) for name in ("scenes", "texts", "table")} | {
            "box_conditions": gr.update(visible=source != "scenes")
        }

    def upload(self, path: str | None) -> Iterator[Step]:
        """Read the header of an uploaded table and offer its columns."""
        if not path:
            yield {"notice": "", "text_column": gr.update(choices=[], value=None)}
            return
        table = open_table(path)
        choices = column_choices(table)
        (texts, text), (conditions, condition) = choices["text"], choices["condition"]
        yield {
            "text_column": gr.update(choices=texts, value=text),
            "condition_column": gr.update(choices=conditions, value=condition),
            "notice": notice("Table read", f"{len(table.rows):,} rows. Check the columns and press Draw.", tone="info"),
        }

    def draw(self, *fields: Any) -> Iterator[Step]:  # noqa: ANN401 - the fields of MapForm and the state
        """Encode, lay out by the PCA, measure, and lay out by UMAP when that is ready."""
        *values, shown = fields
        form = MapForm(*values)
        config, clusters = form.config(), form.num_clusters()
        points = form.points(self.service.engine)
        self.service.service.info(form.model)
        yield {
            "notice": _busy(f"{form.model} reads {len(points.texts):,} sentences"),
            "cancel": gr.update(visible=True),
        }
        work = Background(lambda progress: self.service.embed(form.model, points, progress))
        for done, total in work.steps():
            yield {"notice": _busy(f"{form.model} reads the sentences {percent(done, total)}")}
        embedded = work.result()
        key = self.service.start(form.model, points, embedded, dimensions=config.dimensions, clusters=clusters)
        record = _fresh(key, self.service.get(key), colour=(shown or {}).get("colour", ""))
        yield from self._show(key, record)
        if config.method == "umap":
            yield {"notice": _busy("This is the PCA. UMAP is on its way.")}
            layout = Background(lambda progress: self.service.finish(key, embedded, config, progress))
            for done, total in layout.steps():
                yield {"notice": _busy(f"This is the PCA. UMAP is on its way {percent(done, total)}")}
            key = layout.result()
            record = {**record, "key": key}
            yield from self._show(key, record)
        yield {"notice": "", "cancel": gr.update(visible=False)}

    def colour(self, colour: str, shown: Record | None) -> Iterator[Step]:
        """Colour the points by something else; zoom and selection stay."""
        result, record = self._result(shown)
        record = {**record, "colour": colour}
        yield {**self._figures(result, colour), "shown": record}

    def select(self, data: Any, shown: Record | None) -> Iterator[Step]:  # noqa: ANN401 - from the browser
        """Show the selected points in the table."""
        result, record = self._result(shown)
        ids = (data or {}).get("ids") or []
        chosen = positions(ids, len(result.points.texts)) if ids else None
        yield self._rows(result, {**record, "chosen": chosen})

    def open(self, data: Any, shown: Record | None) -> Iterator[Step]:  # noqa: ANN401
        """Mark a point and show its neighbours."""
        result, record = self._result(shown)
        found = positions([str((data or {}).get("id"))], len(result.points.texts))
        marked = found[0] if found else None
        record = {**record, "marked": marked}
        ring = panel_update(marked=None if marked is None else str(marked))
        yield {**self._rows(result, record), "neighbors": render_neighbors(result, marked), "after": ring}

    def act(self, data: Any, shown: Record | None) -> Iterator[Step]:  # noqa: ANN401
        """Do what a button of the table or of the measures asks for."""
        data = data or {}
        if data.get("act") == "open":
            yield from self.open(data, shown)
            return
        result, record = self._result(shown)
        if data.get("act") == "cell":
            chosen = _cell(result, data)
            yield {**self._rows(result, {**record, "chosen": chosen}), "after": panel_update(selection=_ids(chosen))}
        elif data.get("act") in ("csv", "json"):
            csv = data["act"] == "csv"
            content = rows_csv(result, record["chosen"]) if csv else map_json(result)
            name = "condviz-map.csv" if csv else "condviz-map.json"
            yield {"out": gr.update(file={"name": name, "content": content, "at": time.monotonic_ns()})}

    def stop(self) -> Iterator[Step]:
        """Say that nothing more comes."""
        yield {"notice": notice("Stopped", "What is drawn stays.", tone="info"), "cancel": gr.update(visible=False)}

    def _result(self, shown: Record | None) -> tuple[EmbeddingMap, Record]:
        if not shown:
            raise DataError("There is no map yet. Press Draw.")
        return self.service.get(shown["key"]), shown

    def _show(self, key: str, record: Record) -> Iterator[Step]:
        result = self.service.get(key)
        choices = colour_choices(result)
        names = [name for _, name in choices]
        colour = record["colour"] if record["colour"] in names else default_colour(result)
        record = {**record, "colour": colour}
        yield {
            **self._figures(result, colour, selection=[], marked=None),
            **self._rows(result, record),
            "head": render_head(result),
            "neighbors": render_neighbors(result, record["marked"]),
            "measures": render_measures(result),
            "colour": gr.update(choices=choices, value=colour),
        }
        yield self._weights(result)

    def _rows(self, result: EmbeddingMap, record: Record) -> Step:
        return {"table": render_table(result, record["chosen"], record["marked"]), "shown": record}

    def _figures(self, result: EmbeddingMap, colour: str, **rest: Any) -> Step:  # noqa: ANN401 - as panel_update
        from condviz.plots.old_maps import colouring, plot_side

        colours: Colouring = colouring(result, colour)
        legend = render_legend(colours.name, colours.categories, colours.ends, result.points.groups)
        sides = {
            side: panel_update(figure=plot_side(result, side, colours), message="", **rest)
            for side in ("before", "after")
        }
        return {**sides, "legend": legend}

    def _weights(self, result: EmbeddingMap) -> Step:
        from condviz.plots.old_maps import plot_conditions, plot_spectra

        weights = result.weights
        if not weights:
            return {"box_weights": gr.update(visible=False)}
        update: Step = {
            "box_weights": gr.update(visible=True),
            "spectra": panel_update(figure=plot_spectra(weights), message=""),
            "sizes": render_weights(weights),
        }
        if weights["places"]:
            update["places"] = panel_update(figure=plot_conditions(weights), message="")
        else:
            update["places"] = panel_update(message="A map of conditions needs three of them.")
        return update


def colour_choices(result: EmbeddingMap) -> list[tuple[str, str]]:
    """Give what the points can be coloured by: (title, name)."""
    built_in = [
        (title, name) for name, title in BUILT_IN.items() if name != "cluster" or result.after.clusters is not None
    ]
    return [*built_in, *((name, name) for name in result.points.columns if name not in BUILT_IN)]


def default_colour(result: EmbeddingMap) -> str:
    """Give the colours of a new map: conditions, or the change where there is only one condition."""
    return "condition" if len(result.points.groups) > 1 else "drift"


def _fresh(key: str, result: EmbeddingMap, *, colour: str = "") -> Record:
    return {"key": key, "colour": colour or default_colour(result), "chosen": None, "marked": None}


def _ids(chosen: list[int]) -> list[str]:
    return [str(index) for index in chosen]


def _cell(result: EmbeddingMap, data: dict[str, Any]) -> list[int]:
    """Give the points of one condition in one cluster."""
    side = result.before if data.get("side") == "before" else result.after
    if side.clusters is None:
        raise DataError("This map has no clusters.")
    group, cluster = str(data.get("group")), str(data.get("cluster"))
    conditions, clusters = result.points.conditions, side.clusters.tolist()
    return [i for i in range(len(conditions)) if conditions[i] == group and str(clusters[i]) == cluster]


def _busy(line: str) -> str:
    return notice("Working", f"{line.strip()} \N{HORIZONTAL ELLIPSIS}", tone="busy")
