"""What the Errors tab does on each event. Every handler yields {component name: update}; no layout here."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import gradio as gr

from condviz.analysis.errors.columns import TARGETS
from condviz.errors import CondvizError, DataError
from condviz.ui.errors_detail import TAGS, render_detail, render_effect, render_neighbours
from condviz.ui.errors_paint import Painter, resamples_for
from condviz.ui.errors_service import DEFAULT, ErrorsService
from condviz.ui.errors_state import MAX_FILTER, SORTS, TAB, UNITS, VIEWS, ErrorsState, from_query
from condviz.ui.html import esc, notice, tag

if TYPE_CHECKING:
    from condviz.analysis.errors.findings import Remark
    from condviz.analysis.errors.study import Study
    from condviz.evaluation.dataset import Dataset

logger = logging.getLogger(__name__)
Step = dict[str, Any]
Record = dict[str, Any]
PREFERRED = ("hyper-cl", "csr", "csr-prefix")
"""Models shown at first, the first two of which there are scores."""
MAX_REMARKS, MAX_NOTE = 5000, 2000
_READING = notice("One moment", "The rows are being read.", tone="busy")


class ErrorsHandlers:
    """The behaviour of the tab over a service; holds nothing of any visitor."""

    def __init__(self, service: ErrorsService) -> None:
        """Keep what the events need.

        Args:
            service: Datasets, scores and studies.
        """
        self.service, self.paint = service, Painter(service)
        self._acts: dict[str, Callable[[Mapping[str, Any], ErrorsState], Iterator[Step]]] = {
            "filter": self._filter,
            "target": self._target,
            "unit": self._choice("unit", UNITS),
            "sort": self._choice("sort", SORTS),
            "page": self._page,
            "row": self._row,
            "column": self._column,
            "view": self._view,
            "neighbours": self._neighbours,
            "export": self._export,
        }

    # ---- data and models

    def first(self, query: str, shown: Record | None) -> Iterator[Step]:
        """Show the shipped predictions when the tab is opened for the first time."""
        if shown or from_query(query):
            yield {"notice": gr.skip()}
            return
        yield from self.load(ErrorsState(data=DEFAULT))

    def warm_up(self) -> None:
        """Read and measure what the tab opens with; it is then kept for everybody."""
        try:
            for _ in self.first("", None):
                pass
        except CondvizError as error:
            logger.warning("The Errors tab will open empty: %s", error)

    def open_link(self, query: str) -> Iterator[Step]:
        """Restore the state that the address holds, if it is one of this tab."""
        state = from_query(query)
        if state is None:
            yield {"notice": gr.skip()}  # a generator without a step would clear every output
            return
        yield {"tabs": gr.update(selected=TAB)}
        yield from self.load(state if state.data else state.change(data=DEFAULT))

    def load(self, state: ErrorsState) -> Iterator[Step]:
        """Read a dataset and show what is known about it."""
        yield {"notice": _READING}
        dataset = self.service.dataset(state.data)
        names = [name for _, name in self.service.models(dataset)]
        first, second = self._models(dataset, state, names)
        state = state.change(first=first, second=second)
        yield self._selectors(dataset, state)
        yield from self._shown(dataset, state)

    def choose(self, data: str, first: str, second: str, filter_: str, shown: Record | None) -> Iterator[Step]:
        """Show another dataset or other models; the filter stays."""
        state = ErrorsState.from_dict(shown)
        moved = state.data != data
        state = state.change(data=str(data), first=first or "", second=second or "", filter=filter_, brush=(), page=0)
        state = state.change(row=None) if moved else state
        if not state.second and state.target in ("first", "second"):
            state = state.change(target="over")
        if moved:
            yield from self.load(state.change(filter=""))
        else:
            yield from self._shown(self.service.dataset(state.data), state)

    def upload(
        self, path: str | None, uploads: list[list[str]], first: str, second: str, shown: Record | None
    ) -> Iterator[Step]:
        """Read a table that somebody brings; the chosen models stay, unless the table has scores of its own."""
        if not path:
            raise DataError("No file arrived. Choose a CSV file of at most 5 MB.")
        yield {"notice": _READING}
        name = path.replace("\\", "/").rpartition("/")[2]
        key, dataset = self.service.upload(path, name)
        uploads = [*(entry for entry in uploads if entry[1] != key), [name, key]]
        chosen = {} if dataset.stored else {"first": first or "", "second": second or ""}
        state = ErrorsState(unit=ErrorsState.from_dict(shown).unit, data=key, **chosen)
        first, second = self._models(dataset, state, [name for _, name in self.service.models(dataset)])
        state = state.change(first=first, second=second)
        choices = [*self.service.engine.corpora(), *map(tuple, uploads)]
        selected = gr.update(choices=choices, value=key)
        yield {**self._selectors(dataset, state), "data": selected, "uploads": uploads}
        yield from self._shown(dataset, state)

    def score(self, data: str, first: str, second: str, filter_: str, shown: Record | None) -> Iterator[Step]:
        """Score the dataset with the chosen models, then show what was found."""
        dataset = self.service.dataset(data)
        state = ErrorsState.from_dict(shown).change(data=data, first=first or "", second=second or "", filter=filter_)
        for name in filter(None, (state.first, state.second)):
            started = time.monotonic()
            for step in self.service.score(dataset, name):
                left = (time.monotonic() - started) * (step.total - step.done) / step.done if step.done else None
                wait = f"about {left:.0f} s left" if left is not None else "loading the model"
                line = _scoring(name, step.done, step.total, f"rows, {wait}")
                yield {"notice": line, "cancel": gr.update(visible=True)}
        yield {"cancel": gr.update(visible=False), **self._selectors(dataset, state)}
        yield from self._shown(dataset, state)

    def stop(self) -> Iterator[Step]:
        """Say that the run was cancelled."""
        message = "Nothing was kept of the model that was being scored; what was shown stays."
        yield {"notice": notice("Stopped", message, tone="info"), "cancel": gr.update(visible=False)}

    # ---- filter and selection

    def apply(self, filter_: str, shown: Record | None) -> Iterator[Step]:
        """Show the slice of a filter that was typed."""
        if not shown:
            raise DataError("There are no scores to filter yet. Press Score first.")
        if len(filter_) > MAX_FILTER:
            raise DataError(f"The filter has {len(filter_):,} characters, and at most {MAX_FILTER:,} are allowed.")
        state = ErrorsState.from_dict(shown).change(filter=filter_.strip(), page=0, row=None)
        yield from self.paint.slice(state)

    def clear(self, shown: Record | None) -> Iterator[Step]:
        """Show all rows."""
        yield {"filter": ""}
        if shown:
            state = ErrorsState.from_dict(shown).change(filter="", brush=(), page=0, row=None)
            yield from self.paint.slice(state)

    def brush(self, data: Any, shown: Record | None) -> Iterator[Step]:  # noqa: ANN401 - from the browser
        """Show the rows that were selected in the figure."""
        if not shown:
            yield {"notice": gr.skip()}
            return
        ids = (data or {}).get("ids") or []
        rows = tuple(int(one) for one in ids if str(one).isdigit())
        state = ErrorsState.from_dict(shown).change(brush=rows, page=0)
        yield from self.paint.slice(state, keep_selection=True)

    def point(self, data: Any, shown: Record | None) -> Iterator[Step]:  # noqa: ANN401
        """Open the row of a point."""
        yield from self.act({"act": "row", "row": (data or {}).get("id")}, shown)

    def act(self, data: Any, shown: Record | None) -> Iterator[Step]:  # noqa: ANN401
        """Do what a button in the markup asks for."""
        asked = data if isinstance(data, dict) else {}
        do = self._acts.get(str(asked.get("act")))
        if not shown or do is None:
            yield {"notice": gr.skip()}
            return
        yield from do(asked, ErrorsState.from_dict(shown))

    def rewrite(self, rule: str, old: str, new: str, shown: Record | None) -> Iterator[Step]:
        """Change the rows of the slice by a rule and score them again."""
        from condviz.analysis.errors.rewrites import measure_effect, rewrite

        if not shown:
            raise DataError("There is no slice yet. Press Score first.")
        state = ErrorsState.from_dict(shown)
        study = self.paint.study(state)
        changed = rewrite(study, self.paint.mask(study, state), rule, old=old or "", new=new or "")
        effects, total = [], len(changed.pairs)
        for judged in study.judged:
            if judged.model not in self.service.service.pool.names:
                raise DataError(f"{judged.model} is a column of the file, not a model: it cannot score changed rows.")
            yield {"notice": _scoring(judged.model, 0, total, "changed rows"), "cancel": gr.update(visible=True)}
            work = self.service.scoring(judged.model, changed.pairs)
            for done, _ in work.steps():
                yield {"notice": _scoring(judged.model, done, total, "changed rows")}
            effects.append(measure_effect(changed, judged, work.result()))
        yield {"notice": "", "effect": render_effect(study, effects), "cancel": gr.update(visible=False)}

    # ---- what buttons in the markup ask for

    def _filter(self, data: Mapping[str, Any], state: ErrorsState) -> Iterator[Step]:
        wanted = str(data.get("filter", ""))[:MAX_FILTER]
        if data.get("join") and state.filter and wanted not in state.filter:
            both = [f"({part})" if " or " in part else part for part in (state.filter, wanted)]
            wanted = " and ".join(both)
        state = state.change(filter=wanted, page=0, row=None)
        yield {"filter": wanted}
        yield from self.paint.slice(state)

    def _target(self, data: Mapping[str, Any], state: ErrorsState) -> Iterator[Step]:
        state = state.change(target=_one_of(data.get("target"), TARGETS))
        yield {"finder": self.paint.finder(self.paint.study(state), state), "shown": state.to_dict()}

    def _choice(self, name: str, allowed: Any) -> Callable[..., Iterator[Step]]:  # noqa: ANN401
        def do(data: Mapping[str, Any], state: ErrorsState) -> Iterator[Step]:
            chosen = state.change(**{name: _one_of(data.get(name), allowed), "page": 0})
            yield self.paint.table(self.paint.study(chosen), chosen)

        return do

    def _page(self, data: Mapping[str, Any], state: ErrorsState) -> Iterator[Step]:
        state = state.change(page=max(0, _whole(data.get("page"))))
        yield self.paint.table(self.paint.study(state), state)

    def _row(self, data: Mapping[str, Any], state: ErrorsState) -> Iterator[Step]:
        from condviz.ui.plotly_panel import panel_update

        study, row = self.paint.study(state), _whole(data.get("row"))
        if not 0 <= row < len(study.dataset.pairs):
            raise DataError(f"There is no row {row}. Reload the page.")
        yield {"detail": render_detail(study, row), "extra": "", "shown": state.change(row=row).to_dict()}
        yield {"plot": panel_update(marked=str(row))}

    def _column(self, data: Mapping[str, Any], state: ErrorsState) -> Iterator[Step]:
        state = state.change(column=str(data.get("column"))[:100])
        yield {"worst": self.paint.worst(self.paint.study(state), state), "shown": state.to_dict()}

    def _view(self, data: Mapping[str, Any], state: ErrorsState) -> Iterator[Step]:
        state = state.change(view=_one_of(data.get("view"), VIEWS))
        yield {**self.paint.figure(self.paint.study(state), state), "shown": state.to_dict()}

    def _neighbours(self, data: Mapping[str, Any], state: ErrorsState) -> Iterator[Step]:
        study = self.paint.study(state)
        if state.row is None:
            raise DataError("No row is open. Click one in the table first.")
        yield {"extra": notice("One moment", "Training rows are being encoded.", tone="busy")}
        try:
            found = self.service.neighbours(state.first, study.dataset.pairs[state.row])
        except CondvizError as error:
            yield {"extra": notice("No training rows", str(error), tone="info")}
            return
        yield {"extra": render_neighbours(found, state.first)}

    def _export(self, data: Mapping[str, Any], state: ErrorsState) -> Iterator[Step]:
        study = self.paint.study(state)
        remarks = _read_remarks(data.get("remarks"), study)
        if data.get("kind") == "report":
            from condviz.analysis.errors.findings import analyse
            from condviz.plots.errors import render_report

            yield {"notice": notice("One moment", "The report is being written.", tone="busy")}
            revisions = {judged.model: self._revision(judged.model) for judged in study.judged}
            limits = {"selected": state.brush, "resamples": resamples_for(study)}
            found = analyse(study, filter=state.filter, revisions=revisions, **limits)
            content = render_report(found, remarks=remarks)
            yield {"notice": "", "out": _hand_over("condviz-errors.html", content)}
            return
        from condviz.analysis.errors.findings import format_csv

        rows = self.paint.mask(study, state).nonzero()[0].tolist()
        yield {"out": _hand_over("condviz-errors.csv", format_csv(study, rows, remarks))}

    # ---- helpers

    def _shown(self, dataset: Dataset, state: ErrorsState) -> Iterator[Step]:
        """Show a study, or what is missing for it."""
        missing = [n for n in (state.first, state.second) if n and self.service.known(dataset, n) is None]
        if not missing:
            yield {"score": gr.update(interactive=False)}  # there is nothing left to score
            yield from self.paint.everything(state)
            if dataset.notes:
                yield {"notice": notice("About these rows", " ".join(dataset.notes), tone="info")}
            return
        count = f"{len(dataset.pairs):,} {'row' if len(dataset.pairs) == 1 else 'rows'}"
        line = f"{' and '.join(missing)} on {dataset.name}: {count}. Press Score; it can be stopped."
        line = " ".join((line, *dataset.notes))
        empty = dict.fromkeys(("figures", "views", "finder", "worst", "table", "detail", "more", "extra", "effect"), "")
        scorable = gr.update(interactive=True)
        yield {"notice": notice("Not scored yet", line, tone="info"), "score": scorable, "shown": None, **empty}

    def _models(self, dataset: Dataset, state: ErrorsState, names: list[str]) -> tuple[str, str]:
        """Choose models: those of the state, those of the file, those whose scores are known, or the first."""
        if state.first in names:
            return state.first, state.second if state.second in names and state.second != state.first else ""
        ranked = [*(name for name in PREFERRED if name in names), *names]
        known = [*dataset.stored, *(name for name in ranked if self.service.known(dataset, name) is not None)]
        first = next(iter([*known, *ranked]), "")
        return first, next((name for name in known if name != first), "")

    def _selectors(self, dataset: Dataset, state: ErrorsState) -> Step:
        choices = self.service.models(dataset)
        return {
            "data": gr.update(value=state.data),
            "first": gr.update(choices=choices, value=state.first),
            "second": gr.update(choices=[("none", ""), *choices], value=state.second),
            "filter": state.filter,
        }

    def _revision(self, name: str) -> str:
        return self.service.service.info(name).revision if name in self.service.service.pool.names else "from the file"


def _scoring(name: str, done: int, total: int, what: str) -> str:
    bar = tag("span", tag("span", style=f"width:{100 * done / total:.0f}%"), class_="cv-load-bar cv-err-progress")
    return notice("Scoring", f"{name}: {done:,} of {total:,} {what}.", tone="busy") + bar


def _one_of(value: Any, allowed: Any) -> str:  # noqa: ANN401 - from the browser
    if value not in allowed:
        raise DataError(f"{str(value)[:40]!r} is not one of {', '.join(allowed)}. Reload the page.")
    return str(value)


def _whole(value: Any) -> int:  # noqa: ANN401
    if not str(value).isascii() or not str(value).isdigit() or len(str(value)) > 8:
        raise DataError(f"{str(value)[:40]!r} is no number of a row or page. Reload the page.")
    return int(value)


def _read_remarks(value: Any, study: Study) -> dict[int, Remark]:  # noqa: ANN401
    """Read what the browser has stored: number of the row -> tags and note; anything damaged is left out."""
    from condviz.analysis.errors.findings import Remark

    try:
        entries = json.loads(value or "{}")
    except (TypeError, ValueError):
        return {}
    places = {str(number): place for place, number in enumerate(study.dataset.numbers.tolist())}
    remarks = {}
    for number, entry in list(entries.items())[:MAX_REMARKS] if isinstance(entries, dict) else ():
        if number in places and isinstance(entry, dict):
            tags = entry.get("tags") if isinstance(entry.get("tags"), list) else []
            note = str(entry.get("note") or "")[:MAX_NOTE]
            remarks[places[number]] = Remark(tuple(tag for tag in TAGS if tag in tags), note)
    return remarks


def _hand_over(name: str, content: str) -> str:
    """Write a file into the page, from where the script saves it: nothing is kept on the server."""
    # A line feed right after <textarea> is dropped by the HTML parser, hence the extra one.
    return f'<textarea hidden readonly data-file="{name}" data-testid="file">\n{esc(content)}</textarea>'
