"""What the Links tab does on each event. Every handler yields {component name: update}; no layout here."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import gradio as gr

from condviz.errors import DataError
from condviz.ui.background import Background, percent
from condviz.ui.guard import explain
from condviz.ui.html import notice
from condviz.ui.links_service import Asked, LinksService
from condviz.ui.links_state import COUNTS, TAB, LinksState, from_query
from condviz.ui.links_view import render_examples, render_legend, render_nearest, render_relations, render_result
from condviz.ui.plotly_panel import panel_update

if TYPE_CHECKING:
    from condviz.data.kg import Graph

Step = dict[str, Any]
Record = dict[str, Any]
Field = Mapping[str, str]


class LinksHandlers:
    """The behaviour of the tab over a service; holds nothing of any visitor."""

    def __init__(self, service: LinksService) -> None:
        """Keep what the events need.

        Args:
            service: Graphs and answers.
        """
        self.service = service
        self.start = service.start()

    # ---- opening

    def first(self, query: str, *form: Any) -> Iterator[Step]:  # noqa: ANN401 - the fields of the form
        """Show the stored answer when the tab is opened for the first time; a link brings its own question."""
        if form[-1] or from_query(query):
            yield {"notice": gr.skip()}
            return
        stored = self.service.first
        if stored is None:
            yield from self._answer(self.start)
            return
        state = LinksState.from_dict(stored["state"])
        yield self._fields(state, self.service.graph(state.graph))
        yield self._paint(stored, link=False)

    def open_link(self, query: str, *_form: Any) -> Iterator[Step]:  # noqa: ANN401
        """Restore the question that the address holds, if it is one of this tab."""
        state = from_query(query)
        if state is None:
            yield {"notice": gr.skip()}  # a generator without a step would clear every output
            return
        yield {"tabs": gr.update(selected=TAB)}
        state = self.service.complete(state)
        try:
            self.service.check(state)
        except DataError:
            yield from self._answer(self.start)  # so that the form can be used, whatever the link asked for
            raise
        yield from self._answer(state)

    # ---- questions

    def ask(self, *form: Any) -> Iterator[Step]:  # noqa: ANN401
        """Answer what stands in the form."""
        yield from self._answer(self._read(form), fields=False)

    def graph(self, *form: Any) -> Iterator[Step]:  # noqa: ANN401
        """Show another graph with its first example."""
        yield from self._answer(self.service.complete(LinksState(str(form[0]))))

    def upload(self, paths: list[str] | None, uploads: list[list[str]], *form: Any) -> Iterator[Step]:  # noqa: ANN401
        """Read the three tables of somebody's graph, and ask a first question."""
        yield {"notice": notice("One moment", "The tables are being read.", tone="busy")}
        key, title = self.service.upload(paths or [])
        uploads = [*(entry for entry in uploads if entry[1] != key), [title, key]]
        choices = [*self.service.graphs(), *map(tuple, uploads)]
        yield {"graph": gr.update(choices=choices, value=key), "uploads": uploads}
        yield from self._answer(self.service.complete(LinksState(key)))

    def act(self, data: Any, *form: Any) -> Iterator[Step]:  # noqa: ANN401 - from the browser
        """Do what a button in the markup asks for."""
        asked = data if isinstance(data, dict) else {}
        shown = form[-1]
        acts: dict[str, Callable[[LinksState], LinksState]] = {
            "entity": lambda state: state.change(entity=str(asked.get("id"))),
            "relation": lambda state: state.change(
                relation=str(asked.get("relation")), inverse=asked.get("inverse") == "1"
            ),
            "example": lambda state: state.change(
                entity=str(asked.get("id")), relation=str(asked.get("relation")), inverse=asked.get("inverse") == "1"
            ),
        }
        change = acts.get(str(asked.get("act")))
        if change is None or not shown:
            yield {"notice": gr.skip()}
            return
        state = LinksState.from_dict(shown["state"]).change(model=str(form[1] or ""), count=_count(form[5]))
        yield from self._answer(change(state))

    def point(self, data: Any, *form: Any) -> Iterator[Step]:  # noqa: ANN401
        """Ask about the entity of a point."""
        chosen = str((data or {}).get("id"))
        if chosen in ("?", "None"):
            yield {"notice": gr.skip()}
            return
        yield from self.act({"act": "entity", "id": chosen}, *form)

    def stop(self) -> Iterator[Step]:
        """Say that nothing more comes."""
        message = "What is encoded already is kept, and the next question goes on from there."
        yield {"notice": notice("Stopped", message, tone="info"), "cancel": gr.update(visible=False)}

    # ---- helpers

    def _read(self, form: tuple[Any, ...]) -> LinksState:
        """Read the form: an entity that was only typed is looked up by its name."""
        graph, model, entity, relation, inverse, count, _ = form
        state = LinksState(str(graph), str(model or ""), "", str(relation or ""), bool(inverse), _count(count))
        if not (entity["id"] or entity["text"].strip()):
            raise DataError("No entity is chosen. Type a part of its name, and choose one from the list.")
        found = self.service.graph(state.graph)
        return state.change(entity=found.entities[found.find_entity(entity["id"] or entity["text"])].id)

    def _answer(self, state: LinksState, *, fields: bool = True) -> Iterator[Step]:
        asked = self.service.check(state)
        yield self._fields(state, asked.graph) if fields else {"entity": _chosen(state, asked.graph)}
        if not self.service.ready(asked):
            yield {"notice": _waiting(asked), "cancel": gr.update(visible=True)}
        work = Background(lambda progress: self.service.answer(asked, progress))
        for done, total in work.steps():
            yield {"notice": _waiting(asked, done, total), "cancel": gr.update(visible=True)}
        yield self._paint(work.result())

    def _fields(self, state: LinksState, graph: Graph) -> Step:
        relations = [(relation.text, relation.id) for relation in graph.relations]
        return {
            "graph": state.graph,
            "model": gr.update(choices=self.service.choices(graph.name), value=state.model),
            "entity": _chosen(state, graph),
            "relation": gr.update(choices=relations, value=state.relation),
            "inverse": state.inverse,
            "count": state.count,
        }

    def _paint(self, record: Record, *, link: bool = True) -> Step:
        record = {**record, "link": link}
        return {
            "notice": "",
            "cancel": gr.update(visible=False),
            "shown": {"state": record["state"]},
            "examples": render_examples(self.service.examples(record["state"]["graph"])),
            "result": render_result(record),
            "relations": _part(render_relations, record),
            "nearest": _part(render_nearest, record),
            **self._map(record),
        }

    def _map(self, record: Record) -> Step:
        try:
            from condviz.plots.neighbourhood import legend, plot_neighbourhood

            points = record["points"]
            figure = plot_neighbourhood(points, str(record["state"]))
            drawn = panel_update(figure=figure, message="", selection=[], marked=None)
            return {"legend": render_legend(legend(points)), "map": drawn}
        except Exception as error:  # the picture takes nothing else down
            return {"legend": explain(error), "map": panel_update(message="This map cannot be drawn.", tone="error")}


def _part(render: Callable[[Record], str], record: Record) -> str:
    """Write one part of the page; its failure takes nothing else down."""
    try:
        return render(record)
    except Exception as error:
        return explain(error)


def _chosen(state: LinksState, graph: Graph) -> dict[str, Any]:
    label = graph.entities[graph.find_entity(state.entity)].label
    return gr.update(value={"id": state.entity, "text": label}, graph=state.graph)


def _count(value: Any) -> int:  # noqa: ANN401 - from the browser
    if value not in COUNTS:
        raise DataError(f"{value!r:.20} answers cannot be shown; choose one of {', '.join(map(str, COUNTS))}.")
    return int(value)


def _waiting(asked: Asked, done: int = 0, total: int = 0) -> str:
    number = asked.graph.num_entities
    line = f"{asked.title} reads the {number:,} entities of the graph once. {percent(done, total)}"
    return notice("One moment", line.strip(), tone="busy")
