"""The form of the Map tab, checked, and what the tab shows; both as a link and back."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any
from weakref import ref

import gradio as gr
from cachetools import LRUCache

from condviz.analysis.maps import EmbeddingMap, build_map
from condviz.analysis.points import DEFAULT_ASPECTS, MapPoints, points_from_table, points_from_texts, scene_points
from condviz.errors import DataError, check_count
from condviz.spec import check_options, read_options, write_options
from condviz.ui import limits
from condviz.ui.imports import POINTS, Reading
from condviz.ui.requests import KEPT
from condviz.ui.state import MAX_TEXT, Values, first, joined, lines, number, write_link, write_rows

MAPS_BYTES = 300 * 2**20
"""For the maps of all visitors; the largest takes about 5 MB."""
SOURCES = {"scenes": "Example", "texts": "My sentences", "table": "My table"}
ASPECTS = ("number_of_people", "time_of_day", "weather", "place", "age_group", "vehicle", "object_colour",
           "relationship", "duration", "posture", "furniture", "mood")  # fmt: skip
"""Aspects of the scenes that enough test families tell; the last five were in no training."""
SENTENCES = """Three children play football on the beach.
A man surfs alone at dawn.
Two women play chess in the park.
A crowd watches the tennis final.
A girl rides her bicycle to school.
Five friends row across the lake."""
CONDITIONS = "the number of people\nthe sport"
DRAWN = ("method", "n_neighbors", "min_dist", "seed")
"""Options of `build_map` that say how a map is drawn."""
LINKED = ("model", "source", "aspects", "sentences", "conditions", "sample")
"""Fields that a link fills in."""


@dataclass(frozen=True)
class Form:
    """The fields of the form, in the order in which handlers get them, and how the map is drawn (`DRAWN`)."""

    model: str
    source: str = "scenes"
    aspects: Sequence[str] = DEFAULT_ASPECTS
    sentences: str = SENTENCES
    conditions: str = CONDITIONS
    table: Reading | None = None
    rows: float | None = 1_000
    sample: float | None = 0
    drawn: Mapping[str, Any] = field(default_factory=lambda: _as_drawn({}))

    @property
    def types_conditions(self) -> bool:
        """Whether conditions come from the text box."""
        return self.source == "texts" or (
            self.source == "table" and (self.table is None or not self.table.column("condition"))
        )

    def points(self) -> MapPoints:
        """Read the points; raises DataError if they cannot be shown."""
        if self.source == "scenes":
            if not 2 <= len(self.aspects) <= 6:
                raise DataError(f"Choose two to six conditions, not {len(self.aspects)}.")
            check_count("The number of the random sample", self.sample, 0, 2**32 - 1)
            return scene_points(tuple(self.aspects), seed=self.sample)
        if self.source == "texts":
            return points_from_texts(lines(self.sentences), lines(self.conditions), max_points=limits.MAP_POINTS)
        if self.table is None:
            raise DataError("No file is chosen. Choose a CSV or TSV file with one sentence per row.")
        check_count("The maximum of rows", self.rows, 0, 10**9)
        table = self.table.table(POINTS)
        if self.table.problem:
            raise DataError(self.table.problem)
        return points_from_table(
            table,
            **{f"{role}_column": self.table.column(role) for role in POINTS.roles},
            conditions=lines(self.conditions) if self.types_conditions else None,
            sample=self.rows or None,
            max_points=limits.MAP_POINTS,
        )

    @classmethod
    def of(cls, *values: Any) -> Form:  # noqa: ANN401 - of the components
        """Read the values of the components: the fields, then `DRAWN`; raises ConfigError where one is not allowed."""
        given = dict(zip(DRAWN, values[-len(DRAWN) :], strict=True))
        return cls(*values[: -len(DRAWN)], drawn=check_options(build_map, given))

    @property
    def linked(self) -> bool:
        """Whether a link carries the sentences: no table, and no text that is too long for an address."""
        return self.source == "scenes" or (self.source == "texts" and 0 < len(self.sentences) <= MAX_TEXT)

    def updates(self, components: Mapping[str, Any]) -> dict[Any, Any]:
        """Return updates of the components, by the name of their field."""
        names = [*LINKED, "rows"] if self.table else LINKED
        return {components[name]: gr.update(value=getattr(self, name)) for name in names}

    def link(self) -> list[tuple[str, str]]:
        """Return what a link says of the form, the sentences only if it is `linked`."""
        pairs = [("m", self.model)]
        if self.source != "scenes":
            pairs += [("from", self.source)]
        if self.source == "texts":
            sentences = [("s", self.sentences)] if self.linked else []
            pairs += [*sentences, *(("c", text) for text in lines(self.conditions))]
        elif self.source == "scenes" and tuple(self.aspects) != DEFAULT_ASPECTS:
            pairs += [("a", name) for name in self.aspects]
        sample = [("draw", str(self.sample))] if self.sample else []
        return [*pairs, *sample, *write_options(build_map, {name: self.drawn[name] for name in DRAWN})]

    @classmethod
    def from_link(cls, values: Values, model: str) -> Form:
        """Read the form that a link describes; what it does not say keeps its default."""
        source = first(values, "from")
        return cls(
            model,
            source if source in SOURCES else "scenes",
            [name for name in values.get("a", []) if name in ASPECTS] or list(DEFAULT_ASPECTS),
            first(values, "s", "" if source == "texts" else SENTENCES),
            joined(values.get("c", [])) or CONDITIONS,
            sample=number(values, "draw", 0, low=0, high=10_000),
            drawn=_as_drawn(values),
        )


def _as_drawn(values: Values) -> dict[str, Any]:
    """Return `DRAWN` from a link; what it does not say keeps its default."""
    found = read_options(build_map, values)
    return {name: found[name] for name in DRAWN}


def _bytes(result: EmbeddingMap) -> int:
    sides = (result.before, result.after)
    arrays = [part for side in sides for part in (side.layout, side.neighbors.indices, side.neighbors.cosines)]
    cells = [result.points.texts, result.points.conditions, *result.points.columns.values()]
    return sum(array.nbytes for array in arrays) + sum(2 * len(text) + 60 for column in cells for text in column)


class Maps:
    """The maps of all visitors, within a budget of memory: the one that was looked at longest ago goes first."""

    def __init__(self, budget: int = MAPS_BYTES) -> None:
        self._maps: LRUCache = LRUCache(budget, getsizeof=_bytes)
        self._lock = threading.Lock()

    def keep(self, result: EmbeddingMap) -> None:
        with self._lock, suppress(ValueError):  # one that is larger than all of the budget
            self._maps[id(result)] = result


MAPS = Maps()


@dataclass(frozen=True)
class Shown:
    """What the tab shows, and a session keeps: a map (see `Maps`), what made it, and what is picked on it."""

    map: ref[EmbeddingMap]
    form: Form
    colour: str
    token: str = ""
    """Opens what no link holds again in the same sitting, "" where a link holds all of the form."""
    search: str = ""
    """Words that chosen points contain."""
    value: str = ""
    """Category of the legend that is chosen."""
    chosen: tuple[int, ...] | None = None
    marked: int | None = None
    """Position of the point whose neighbours are shown."""

    @property
    def result(self) -> EmbeddingMap:
        """The map; raises DataError if it is no longer cached."""
        found = self.map()
        if found is None:
            raise DataError("This map is no longer cached. Press Draw map to draw it again.")
        return found

    def link(self) -> str:
        """Return the link to all of this but for what is `unlinked`."""
        colour = "" if self.colour == self.result.colour else self.colour
        marked = "" if self.marked is None else str(self.marked)
        rows = write_rows(self._by_hand)
        picked = [("by", colour), ("q", self.search), ("v", self.value), ("i", rows), ("p", marked)]
        return write_link("map", [*self.form.link(), *picked])

    def keep(self) -> Shown:
        """Keep what no link holds for the rest of the sitting, and its file when the page is left."""
        if self.form.linked:
            return self
        return replace(self, token=KEPT.add(self, self.form.table.path if self.form.table else ""))

    @property
    def unlinked(self) -> str:
        """What the link does not hold, in a sentence; "" if it holds all."""
        if self.form.source == "table":
            return "The link does not carry your table: whoever opens it has to choose the file again."
        if not self.form.linked:
            return f"The link does not carry your sentences: they have more than {MAX_TEXT:,} characters."
        if self._by_hand and not write_rows(self._by_hand):
            return "The link does not carry the points you chose: there are too many for an address."
        return ""

    @property
    def _by_hand(self) -> tuple[int, ...]:
        """The chosen points, unless words or a value say which they are."""
        return () if self.search or self.value else self.chosen or ()

    def choose(self, chosen: tuple[int, ...] | None, *, search: str = "", value: str = "") -> Shown:
        """Choose other points; no point is marked any more."""
        return replace(self, chosen=chosen, search=search, value=value, marked=None)

    def with_search(self, search: str) -> Shown:
        """Choose the points whose sentence contains all words; no words choose none."""
        words = search.casefold().split()
        if not words:
            return self.choose(None)
        texts = [text.casefold() for text in self.result.points.texts]
        found = tuple(index for index, text in enumerate(texts) if all(word in text for word in words))
        return self.choose(found, search=search)

    def with_value(self, value: str) -> Shown:
        """Choose a category of the legend, or release it where it is chosen already."""
        from condviz.plots.maps import colouring

        members = {row.id: row.members for row in colouring(self.result, self.colour).categories}
        if value == self.value or value not in members:
            return self.choose(None)
        return self.choose(members[value], value=value)
