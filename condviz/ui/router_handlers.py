"""What the Router tab does on each event. Every handler yields {component name: update}; no layout here."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import gradio as gr

from condviz.analysis.router import method_routes
from condviz.errors import CondvizError, DataError
from condviz.types import DeletionTest, ModelInfo, WordReading
from condviz.ui.form_state import FormState, split_conditions
from condviz.ui.guard import explain
from condviz.ui.html import notice
from condviz.ui.router_pictures import (
    DELETE_CHOICES,
    render_deletion,
    render_detail_head,
    render_heads,
    render_pictures,
)
from condviz.ui.router_record import TAB, from_link, pack_reading, unpack_reading
from condviz.ui.router_service import RouterService
from condviz.ui.router_view import RouterView

Step = dict[str, Any]
Record = dict[str, Any]
LOOK = {"first", "second", "depth", "units"}
DETAIL = ("model", "text", "condition")
_DELETING = notice("Deletion test", "Words are deleted, and the pair is scored again.", tone="busy")
_NO_ROUTER = notice(
    "No router among the chosen models",
    "Their strips show what leaving out each word does. Choose a CSR model to see the pictures of its paper.",
    tone="info",
)


class RouterHandlers:
    """The behaviour of the tab over a service; holds nothing of any visitor."""

    def __init__(self, service: RouterService) -> None:
        """Keep what the events need.

        Args:
            service: Reads words.
        """
        self.service = service

    def run(
        self, sentence1: str, sentence2: str, conditions: str, models: list[str], shown: Record | None
    ) -> Iterator[Step]:
        """Read what stands in the form."""
        form = FormState(sentence1, sentence2, split_conditions(conditions), tuple(models))
        yield from self.read(form, shown)

    def first(
        self, query: str, sentence1: str, sentence2: str, conditions: str, models: list[str], shown: Record | None
    ) -> Iterator[Step]:
        """Read the example when the tab is opened for the first time; a link brings its own texts."""
        if shown or from_link(query):
            yield {"notice": gr.skip()}
            return
        form = FormState(sentence1, sentence2, split_conditions(conditions), tuple(models))
        yield from self.read(form, None, link=False)

    def open_link(self, query: str, shown: Record | None) -> Iterator[Step]:
        """Restore the state that the address holds, if it is one of this tab."""
        form = from_link(query)
        if form is None:
            yield {"notice": gr.skip()}  # a generator without a step would clear every output
            return
        known = form.with_models([info.name for info in self.service.infos()])
        form = known if known.models else form.replace(models=self.default_models())
        yield {"tabs": gr.update(selected=TAB), **_fields(form)}
        yield from self.read(form, shown)

    def take(
        self, sentence1: str, sentence2: str, conditions: str, models: list[str], shown: Record | None
    ) -> Iterator[Step]:
        """Take the texts of the Compare tab into the form and read them."""
        form = FormState(sentence1, sentence2, split_conditions(conditions), tuple(models))
        yield _fields(form)
        yield from self.read(form, shown)

    def default_models(self) -> tuple[str, ...]:
        """Give what is chosen at the start: the models with a trained router, or the first one where there is none."""
        infos = self.service.infos()
        trained = [info.name for info in infos if info.trained and method_routes(info.method)]
        return tuple(trained or [info.name for info in infos[:1]])

    def read(self, form: FormState, shown: Record | None, *, link: bool = True) -> Iterator[Step]:
        """Read model by model, then the pictures of the first router, then the deletion tests.

        Args:
            form: What to read.
            shown: The result on screen before, for the way it was looked at.
            link: Put the state into the address of the page.
        """
        request = self.service.check(form.sentence1, form.sentence2, conditions=form.conditions, models=form.models)
        pair = (form.first, form.second) if max(form.first, form.second) < len(request.conditions) else (0, 1)
        form = form.replace(conditions=request.conditions, first=pair[0], second=pair[1])
        kept = {
            key: (shown or {}).get(key, default) for key, default in (("depth", 0), ("units", "words"), ("delete", 2))
        }
        record = {"form": form.to_dict(), "readings": [], "failed": {}, "detail": [0, 0, 0], "link": link, **kept}
        for name in request.names:
            if not self.service.ready(name):
                title = self.service.info(name).title
                yield {
                    "notice": notice("One moment", f"{title} is loading.", tone="busy"),
                    "cancel": gr.update(visible=True),
                }
            try:
                reading = self.service.read(name, request.sentences, request.conditions)
                record["readings"].append(pack_reading(reading))
            except CondvizError as error:
                record["failed"][self.service.info(name).title] = str(error)
        yield {
            "notice": "", "result": RouterView(record).render(), "shown": record, "cancel": gr.update(visible=True),
            "deletion": _DELETING if record["readings"] else "", "detail": "",
        }  # fmt: skip
        yield {"detail": self._part(self._detail, record)}
        yield from self._deletion(record)
        yield {"cancel": gr.update(visible=False)}

    def look(self, data: Any, shown: Record | None) -> Iterator[Step]:  # noqa: ANN401 - from the browser
        """Show the same readings in another way; takes no model."""
        key, value = _setting(data)
        if not shown or key not in LOOK:
            yield {"notice": gr.skip()}
            return
        if key == "units":
            shown = {**shown, "units": "tokens" if value else "words"}
        elif key == "depth":
            shown = {**shown, "depth": value}
        else:
            shown = {**shown, "form": _choose(shown["form"], key, value), "link": True}
        yield {"notice": "", "result": RouterView(shown).render(), "shown": shown}

    def detail(self, data: Any, shown: Record | None) -> Iterator[Step]:  # noqa: ANN401
        """Show the pictures and heads of another model, sentence or condition."""
        key, value = _setting(data)
        if not shown or key not in DETAIL:
            yield {"notice": gr.skip()}
            return
        chosen = list(shown["detail"])
        chosen[DETAIL.index(key)] = value
        shown = {**shown, "detail": chosen}
        yield {"notice": "", "detail": self._part(self._detail, shown), "shown": shown}

    def delete(self, data: Any, shown: Record | None) -> Iterator[Step]:  # noqa: ANN401
        """Run the deletion tests again with another number of words."""
        key, value = _setting(data)
        if not shown or key != "delete" or value >= len(DELETE_CHOICES):
            yield {"notice": gr.skip()}
            return
        shown = {**shown, "delete": DELETE_CHOICES[value]}
        yield {"deletion": _DELETING, "shown": shown, "cancel": gr.update(visible=True)}
        yield from self._deletion(shown)
        yield {"cancel": gr.update(visible=False)}

    def stop(self) -> Iterator[Step]:
        """Say that the run was cancelled."""
        message = notice("Stopped", "What was ready stays.", tone="info")
        yield {"cancel": gr.update(visible=False), "notice": message, "deletion": ""}

    def _deletion(self, record: Record) -> Iterator[Step]:
        tests: list[tuple[ModelInfo, DeletionTest]] = []
        failed = ""
        for reading in map(unpack_reading, record["readings"]):
            try:
                test = self.service.delete(reading, record["delete"])
                tests.append((reading.model, test))
            except Exception as error:
                failed += explain(error)
            done = render_deletion(tests, record["delete"], pair=len(reading.texts) == 2) if tests else ""
            yield {"deletion": done + failed}

    def _detail(self, record: Record) -> str:
        readings = [unpack_reading(packed) for packed in record["readings"]]
        if not readings:
            return ""
        routed = [reading for reading in readings if reading.source == "router"]
        if not routed:
            return _NO_ROUTER
        sizes = len(routed), len(routed[0].texts), len(routed[0].conditions)
        chosen = tuple(min(value, size - 1) for value, size in zip(record["detail"], sizes, strict=True))
        reading, place, condition = routed[chosen[0]], *chosen[1:]
        sentence = reading.texts[place].sentence
        head = render_detail_head(
            [r.model for r in routed], [text.sentence for text in reading.texts], reading.conditions, chosen
        )
        return (
            head
            + self._part(self._pictures, reading, sentence, chosen)
            + self._part(
                lambda: render_heads(
                    self.service.heads(reading.model.name, sentence, reading.conditions[condition]), place=place
                )
            )
        )

    def _pictures(self, reading: WordReading, sentence: str, chosen: tuple[int, ...]) -> str:
        pictures = self.service.pictures(reading.model.name, sentence, reading.conditions)
        return render_pictures(pictures, place=chosen[1], condition=chosen[2])

    @staticmethod
    def _part(render: Callable[..., str], *arguments: Any) -> str:  # noqa: ANN401
        """Write one part of the page; its failure takes nothing else down."""
        try:
            return render(*arguments)
        except Exception as error:
            return explain(error)


def _fields(form: FormState) -> Step:
    return {
        "sentence1": form.sentence1,
        "sentence2": form.sentence2,
        "conditions": "\n".join(form.conditions),
        "models": list(form.models),
    }


def _setting(data: Any) -> tuple[str, int]:  # noqa: ANN401 - from the browser
    """Give the one {key: position} that a select has sent.

    Raises:
        DataError: If it is anything else.
    """
    if isinstance(data, dict) and len(data) == 1:
        key, value = next(iter(data.items()))
        if type(value) is int and 0 <= value < 1000:
            return str(key), value
    raise DataError(f"There is no such choice: {str(data)[:60]}. Reload the page.")


def _choose(form: Record, key: str, value: int) -> Record:
    """Choose a condition of the difference; the one that the other side has swaps the two."""
    other = "second" if key == "first" else "first"
    if value >= len(form["conditions"]):
        raise DataError(f"There is no condition number {value + 1}. Reload the page.")
    swapped = form[key] if form[other] == value else form[other]
    return {**form, key: value, other: swapped}
