"""What the Compare tab does on each event. Every handler yields {component name: update}; no layout here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import gradio as gr

from condviz.data.examples import Example
from condviz.errors import CondvizError, DataError
from condviz.ui.attribution_view import render_attribution
from condviz.ui.finder_view import render_ranking
from condviz.ui.form_state import FormState, from_query, split_conditions
from condviz.ui.html import notice, tag
from condviz.ui.record import pack_attribution, unpack_attribution, unpack_comparison, unpack_info
from condviz.ui.result_view import column_condition, make_shown, render_shown
from condviz.ui.service import Request, Service

MAX_HISTORY = 50
LONG_WORDS = 40
"""Words of both sentences from which the attribution takes a visible time: one score each."""
_WORDS_BUSY = notice("Words", "Each word is left out once; long sentences take a moment.", tone="busy")
Step = dict[str, Any]
Record = dict[str, Any]


class CompareHandlers:
    """The behaviour of the tab over a service; holds nothing of any visitor."""

    def __init__(self, service: Service, examples: Mapping[str, Example], library: Mapping[str, str]) -> None:
        """Keep what the events need.

        Args:
            service: Scores.
            examples: Cards of the gallery by id.
            library: Conditions of the finder, each with its group.
        """
        self.service = service
        self.examples = examples
        self.finder_conditions = library

    def first_shown(self, first_screen: Record | None) -> Record | None:
        """Give the state behind the first screen."""
        return {**first_screen["shown"], "link": False} if first_screen else None

    def first_history(self, default: FormState) -> Record:
        """Give the empty history: the form as it stands at the start."""
        return {"past": [], "now": default.to_dict(), "future": []}

    def first_paint(self, first_screen: Record | None) -> tuple[str, str]:
        """Give the markup of result and attribution before any model has loaded."""
        if not first_screen:
            return notice("Ready", "Press Compare to score the pair.", tone="info"), ""
        shown, words = self.first_shown(first_screen), first_screen.get("attribution")
        return render_shown(shown), self._words(shown, words) if words else ""

    def run(
        self, sentence1: str, sentence2: str, conditions: str, models: list[str], shown: Record | None, history: Record
    ) -> Iterator[Step]:
        """Score what stands in the form."""
        kept = shown["form"] if shown else {}
        count = len(split_conditions(conditions))
        pair = (kept.get("first", 0), kept.get("second", 1))
        first, second = pair if max(pair) < count else (0, 1)
        form = FormState(sentence1, sentence2, split_conditions(conditions), tuple(models), first, second)
        yield from self.score(form, shown=shown, history=history)

    def score(self, form: FormState, *, shown: Record | None, history: Record) -> Iterator[Step]:
        """Score a state of the form: rows as they come, then the words of the selected cell."""
        request = self.service.check(form.sentence1, form.sentence2, conditions=form.conditions, models=form.models)
        history = _remember(history, form)
        buttons = {
            "undo": gr.update(interactive=bool(history["past"])),
            "redo": gr.update(interactive=bool(history["future"])),
        }
        record = shown
        for progress in self.service.compare_steps(request):
            infos = [self.service.info(name) for name in request.names]
            record = make_shown(progress, form, infos, before=shown)
            waiting = bool(progress.pending)
            long = len(f"{request.sentence1} {request.sentence2}".split()) > LONG_WORDS
            yield {
                "notice": _busy(progress.pending) if waiting else "",
                "result": render_shown(record),
                "shown": record,
                "history": history,
                "cancel": gr.update(visible=waiting or long),
                **({"attribution": _WORDS_BUSY} if long else {}),
                **buttons,
            }
        yield {"attribution": self._words_of_selection(record, request), "cancel": gr.update(visible=False)}

    def travel(self, shown: Record | None, history: Record, *, forward: bool) -> Iterator[Step]:
        """Go one step back or forward in the states that were scored, and score again."""
        source, target = ("future", "past") if forward else ("past", "future")
        if not history[source]:
            yield {"notice": gr.skip()}
            return
        *rest, now = history[source]
        history = {source: rest, target: [*history[target], history["now"]], "now": now}
        yield from self._fill(FormState.from_dict(now), shown=shown, history=history)

    def example(self, data: Any, shown: Record | None, history: Record) -> Iterator[Step]:  # noqa: ANN401 - from the browser
        """Fill the form with a card of the gallery and score it with the models chosen last."""
        example = self.examples.get(str((data or {}).get("id")))
        if example is None:
            raise DataError("This example does not exist any more. Reload the page.")
        models = tuple(shown["form"]["models"]) if shown else tuple(history["now"]["models"])
        form = FormState(example.sentence1, example.sentence2, example.conditions, models)
        yield from self._fill(form, shown=shown, history=history)

    def adopt(
        self,
        data: Any,  # noqa: ANN401
        sentence1: str,
        sentence2: str,
        conditions: str,
        models: list[str],
        shown: Record | None,
        history: Record,
    ) -> Iterator[Step]:
        """Add a condition of the finder to the form and score."""
        lines = split_conditions(conditions)
        wanted = str((data or {}).get("condition", ""))
        if wanted in lines:
            raise DataError(f"The condition {wanted!r} is already in the list.")
        form = FormState(sentence1, sentence2, (*lines, wanted), tuple(models))
        yield from self._fill(form, shown=shown, history=history)

    def open_link(self, query: str, shown: Record | None, history: Record) -> Iterator[Step]:
        """Restore the state that the address holds, if it holds one."""
        form = from_query(query)
        if form is None:
            yield {"notice": gr.skip()}  # a generator without a step would clear every output
            return
        known = form.with_models(self.service.pool.names)
        form = known if known.models else form.replace(models=tuple(history["now"]["models"]))
        yield from self._fill(form, shown=None, history=history)

    def pick(self, data: Any, shown: Record | None) -> Iterator[Step]:  # noqa: ANN401
        """Choose the two conditions of the headline; takes no model."""
        if not shown:
            yield {"notice": gr.skip()}
            return
        count = len(shown["comparison"]["conditions"])
        first, second = (_index((data or {}).get(key), count) for key in ("first", "second"))
        form = {**shown["form"], "first": first, "second": second}
        shown = {**shown, "form": form, "link": True}
        yield {"result": render_shown(shown), "shown": shown}

    def cell(self, data: Any, shown: Record | None) -> Iterator[Step]:  # noqa: ANN401
        """Show the words behind one cell of the result on screen."""
        if not shown:
            yield {"notice": gr.skip()}
            return
        name, column = str((data or {}).get("model")), int((data or {}).get("column", 0))
        condition = column_condition(shown, column)
        infos = {info["name"]: unpack_info(info) for info in shown["infos"]}
        if self.service.pool.state(name).phase != "ready":
            title = infos[name].title if name in infos else name
            yield {"attribution": notice("One moment", f"{title} is loading; its words appear here.", tone="busy")}
        comparison = shown["comparison"]
        result = self.service.attribute(
            name, comparison["sentence1"], sentence2=comparison["sentence2"], condition=condition
        )
        shown = {**shown, "selected": [name, column]}
        yield {"notice": "", "attribution": self._words(shown, pack_attribution(result)), "shown": shown}

    def find(self, sentence1: str, sentence2: str, model: str) -> Iterator[Step]:
        """Rank the library of conditions for the pair in the form."""
        yield {
            "notice": "",
            "finder": notice("Ranking", f"{len(self.finder_conditions)} conditions are being scored.", tone="busy"),
        }
        try:
            ranked = self.service.rank(model, sentence1, sentence2=sentence2, conditions=tuple(self.finder_conditions))
        except Exception:
            yield {"finder": ""}
            raise
        yield {"finder": render_ranking(ranked, self.service.info(model), groups=self.finder_conditions)}

    def stop(self, shown: Record | None) -> Iterator[Step]:
        """Mark the rows that were not scored, after the run was cancelled."""
        step: Step = {
            "cancel": gr.update(visible=False),
            "notice": notice("Stopped", "The rows that were ready stay.", tone="info"),
        }
        if shown:
            failed = {**shown.get("failed", {}), **dict.fromkeys(shown.get("pending", {}), "stopped")}
            step["result"] = render_shown({**shown, "pending": {}, "failed": failed})
        yield step

    def _fill(self, form: FormState, *, shown: Record | None, history: Record) -> Iterator[Step]:
        yield {
            "sentence1": form.sentence1,
            "sentence2": form.sentence2,
            "conditions": "\n".join(form.conditions),
            "models": list(form.models),
        }
        yield from self.score(form, shown=shown, history=history)

    def _words_of_selection(self, shown: Record | None, request: Request) -> str:
        if not shown or not shown.get("selected"):
            return ""
        name, column = shown["selected"]
        condition = column_condition(shown, column)
        try:
            result = self.service.attribute(name, request.sentence1, sentence2=request.sentence2, condition=condition)
        except CondvizError as error:
            # The scores above are fine; only the words are missing.
            return notice("No words for this pair", str(error), tone="info")
        return self._words(shown, pack_attribution(result))

    def _words(self, shown: Record, packed: Record) -> str:
        comparison = unpack_comparison(shown["comparison"])
        infos = {info["name"]: unpack_info(info) for info in shown["infos"]}
        result = unpack_attribution(packed)
        info = infos.get(result.model) or self.service.info(result.model)
        return render_attribution(result, info, sentence1=comparison.sentence1, sentence2=comparison.sentence2)


def _remember(history: Record, form: FormState) -> Record:
    """Put the state scored before into the past; the state that undo has just restored is already "now"."""
    now = form.to_dict()
    if all(history["now"][key] == now[key] for key in ("sentence1", "sentence2", "conditions", "models")):
        return {**history, "now": now}
    return {"past": [*history["past"], history["now"]][-MAX_HISTORY:], "now": now, "future": []}


def _index(value: Any, count: int) -> int:  # noqa: ANN401 - from the browser
    if not isinstance(value, int) or not 0 <= value < count:
        raise DataError(f"There is no condition number {value!r}. Reload the page.")
    return value


def _busy(pending: Mapping[str, str]) -> str:
    name, wait = next(iter(pending.items()))
    more = f", {len(pending) - 1} more after it" if len(pending) > 1 else ""
    return notice("Scoring", f"{name} {wait}{more}.", tone="busy") + tag(
        "span", class_="cv-busy-line", aria_hidden="true"
    )
