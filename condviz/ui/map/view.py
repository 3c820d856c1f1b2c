"""The form of the Map tab, checked, and what the tab shows: as a link and back, and as markup."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache, partial
from typing import TYPE_CHECKING, Any
from weakref import ref

import gradio as gr
from cachetools import LRUCache

from condviz.analysis.groups import told_share
from condviz.analysis.maps import EmbeddingMap, build_map
from condviz.analysis.points import DEFAULT_ASPECTS, MapPoints, points_from_table, points_from_texts, scene_points
from condviz.data.texts import FOREIGN, mostly_foreign
from condviz.errors import CondvizError, DataError, check_count
from condviz.spec import check_options, given_options, read_options, write_options
from condviz.ui import limits
from condviz.ui.export import python_call, unpack
from condviz.ui.imports import POINTS, Reading
from condviz.ui.markup import read_asset, render
from condviz.ui.requests import KEPT
from condviz.ui.state import (
    MAX_TEXT,
    Values,
    conditions_of,
    first,
    joined,
    lines,
    number,
    pair_link,
    place,
    read_rows,
    write_link,
    write_rows,
)  # fmt: skip

if TYPE_CHECKING:
    from condviz.plots.maps import Colouring
    from condviz.types import ModelInfo

MAX_LISTED = 200
TOLD_CONDITIONS, TELLING_TEXTS = 20, 3
"""Conditions of a map whose sentences are looked at, whether they tell what is asked for; fewer are not judged."""
MAPS_BYTES = 300 * 2**20
"""For the maps of all visitors; the largest takes about 5 MB."""
SOURCES = {"scenes": "Example", "texts": "My sentences", "table": "My table"}
ASPECTS = ("number_of_people", "time_of_day", "weather", "place", "age_group", "vehicle", "object_colour",
           "relationship", "duration", "posture", "furniture", "mood")  # fmt: skip
UNSEEN = 5
"""Aspects of the scenes that enough test families tell; so many at the end were in no training."""
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
    rows: int = 1_000
    sample: int = 0
    drawn: Mapping[str, Any] = field(default_factory=lambda: _as_drawn({}))

    @property
    def types_conditions(self) -> bool:
        """Whether conditions come from the text box."""
        asked = self.source == "table" and self.table is not None and not self.table.column("condition")
        return self.source == "texts" or asked

    def points(self) -> MapPoints:
        """Read the points; raises DataError if they cannot be shown."""
        if self.source == "scenes":
            if not 2 <= len(self.aspects) <= 6:
                raise DataError(f"Choose two to six conditions, not {len(self.aspects)}.")
            check_count("The number of the random sample", self.sample, 0, 2**32 - 1)
            return scene_points(tuple(self.aspects), seed=self.sample)
        if self.source == "texts":
            asked = conditions_of(self.conditions)
            return points_from_texts(lines(self.sentences), asked, max_points=limits.MAP_POINTS)
        if self.table is None:
            raise DataError("No file is chosen. Choose a CSV or TSV file with one sentence per row.")
        if self.table.problem:
            raise DataError(f"{self.table.name} cannot be used like this: what is wrong stands beside the file.")
        if self.types_conditions and not lines(self.conditions):
            raise DataError(
                "There is no condition. Write some in Conditions, one per line, or choose a column that has them."
            )
        check_count("The maximum of rows", self.rows, 0, 10**9)
        chosen: dict[str, Any] = {f"{role}_column": self.table.column(role) for role in POINTS.roles}
        return points_from_table(
            self.table.table(POINTS),
            **chosen,
            conditions=conditions_of(self.conditions) if self.types_conditions else None,
            sample=self.rows or None,
            max_points=limits.MAP_POINTS,
        )

    @classmethod
    def of(cls, *values: Any) -> Form:  # noqa: ANN401 - of the components
        """Read the values of the components: the fields, then `DRAWN`; raises ConfigError where one is not allowed."""
        given: dict[str, Any] = dict(zip(DRAWN, values[-len(DRAWN) :], strict=True))
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
        if self.source == "texts" and self.linked:
            pairs += [("s", self.sentences)]
        if self.types_conditions:
            pairs += [("c", text) for text in lines(self.conditions)]
        if self.source == "scenes" and tuple(self.aspects) != DEFAULT_ASPECTS:
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

    def picked(self, values: Values) -> Shown:
        """Pick what a link says."""
        shown, points = self, len(self.result.points.texts)
        if (colour := first(values, "by", self.colour)) in dict(colours(self.result)).values():
            shown = replace(shown, colour=colour)
        if value := first(values, "v"):
            shown = shown.with_value(value)
        if search := first(values, "q"):
            shown = shown.with_search(search)
        if rows := read_rows(first(values, "i"), points):
            shown = shown.choose(rows)
        marked = positions(values.get("p", []), points)
        return replace(shown, marked=marked[0]) if marked else shown


# ---- markup: headline, legend, the list beside the picture, what is measured -----------------------------------------
def head(shown: Shown, *, picked: bool = False, asked: bool = False) -> str:
    """Render the headline and how the map was made, with the link that the page puts into its address.

    Where only something is `picked`, open sections stay there; what a link `asked` for is not the tab's own example.
    """
    from condviz.plots.maps import headline

    flags = {"picked": picked, "typing": picked and bool(shown.search), "asked": asked}
    points = shown.result.points
    flags["several"] = points.crossed and bool(points.value) and len(points.groups) > 1
    return render("map/head.html", headline=headline(shown.result), result=shown.result, shown=shown, **flags)


def has_maps(info: ModelInfo) -> bool:
    """Whether a model has maps: without a condition, or vectors, there is nothing to lay out before and after."""
    return info.kind != "cross" and info.conditional and not info.graph


def doubts(
    model: Any, form: Form, points: MapPoints, *, progress: Any = None  # noqa: ANN401 - a loaded model
) -> tuple[tuple[str, ...], tuple[str, ...]]:  # fmt: skip
    """Return conditions of which most sentences say nothing, if they are in English, and notes, both by a sample."""
    if form.source != "scenes" and mostly_foreign(points.texts):
        return (), (FOREIGN,)
    found = []
    for group in points.groups[:TOLD_CONDITIONS]:
        texts = [text for text, asked in zip(points.texts, points.conditions, strict=True) if asked == group]
        if len(texts) >= TELLING_TEXTS and told_share(model, texts, group) < 0.5:
            found.append(group)
    return tuple(found), ()


@cache
def example(model: str) -> tuple[EmbeddingMap | None, dict[str, Any]]:
    """Return the map of the example by a model and its pictures, if stored; it is kept: states only refer to it."""
    with suppress(CondvizError, AttributeError, KeyError, TypeError, ValueError):
        screen = read_asset("map_screen.json")[model]
        return unpack(EmbeddingMap, screen["map"]), screen
    return None, {}


def colours(result: EmbeddingMap) -> list[tuple[str, str]]:
    """Return what the points can be coloured by, as choices of a menu; values first."""
    columns = [name for name in result.points.columns if name != result.points.value]
    clusters = [("K-means cluster", "cluster")] if result.after.measures is not None else []
    values = [(result.points.value, result.points.value)] if result.points.value else []
    built_in = [("condition", "condition"), *clusters, ("change of neighbours", "change")]
    return [*values, *built_in, *((name, name) for name in columns)]


def legend(result: EmbeddingMap, colouring: Colouring, chosen: str) -> str:
    """Render the legend of both sides; each entry is a button that picks its points; `chosen` is the id of one."""
    from condviz.plots.maps import legend as grouped
    from condviz.plots.maps import shapes

    groups, told = grouped(colouring), shapes(result, colouring)
    return render("map/legend.html", colouring=colouring, groups=groups, shapes=told, chosen=chosen)


def reading(result: EmbeddingMap, chosen: Sequence[int] | None, marked: int | None, why: str) -> str:
    """Render the list beside the picture: neighbours of the marked point, else the chosen points, else a hint.

    Points were chosen by `why`, words or a value, or by a loop around them: "".
    """
    if marked is not None:
        lists = [_neighbors(result, side, marked) for side in ("before", "after")]
        item, model = _item(result, marked), result.model["name"]
        on = {"Search": write_link("search", [("q", item["text"]), ("c", item["condition"])])}
        aspect = result.points.columns.get("aspect", {marked: ""})[marked]
        if aspect in ASPECTS:  # the example, of which Errors has ratings
            part = "unseen_aspects" if aspect in ASPECTS[-UNSEEN:] else "test"
            on["Errors"] = write_link(
                "errors", [("ed", f"scenes:{part}"), ("ea", model), ("ef", f'aspect == "{aspect}"')]
            )
        beside = partial(pair_link, "compare", conditions=[item["condition"]], model=model)
        given = {"marked": item, "lists": lists, "chosen": chosen is not None, "within": result.points.within}
        return render("map/neighbors.html", **given, on=on, beside=beside)
    rows = [_item(result, index) for index in (chosen or ())[:MAX_LISTED]]
    count, total = None if chosen is None else len(chosen), len(result.points.texts)
    return render("map/chosen.html", rows=rows, count=count, total=total, why=why)


def measures(result: EmbeddingMap) -> str:
    """Render impurity beside that of random matrices, clusters, values, isotropy and sizes of W_c."""
    sides = [("before", result.before), ("after", result.after)]
    found = [side.measures for _, side in sides if side.measures is not None]
    mixed = [{row["condition"]: row for row in one.values} for one in found]
    values = [
        (old, new, mixed[0].get(old.condition), mixed[1].get(new.condition))
        for old, new in zip(result.before.values, result.after.values, strict=True)
    ]
    shown = {"problems": {key: problem for one in found for key, problem in one.problems.items()}, "values": values}
    return render("map/measures.html", result=result, sides=sides, matrices=result.matrices, **shown)


def python(result: EmbeddingMap) -> str:
    """Return a script that makes the map again."""
    points, layout = result.points, given_options(build_map, vars(result.made)).items()
    if points.crossed:
        texts = list(dict.fromkeys(points.texts))
        arguments = [("sentences", texts), ("conditions", list(points.groups))]
    else:
        value = {"value": list(points.values)} if points.values else {}
        arguments = [("sentences", {"text": list(points.texts), "condition": list(points.conditions), **value})]
    return python_call("build_map", [("model", result.model["name"]), *arguments, *layout])


def cell_members(result: EmbeddingMap, side: str, group: str, cluster: str) -> tuple[int, ...]:
    """Return the points of one condition in one K-means cluster; empty for what does not exist."""
    found = {"before": result.before, "after": result.after}.get(side)
    if found is None or found.measures is None or found.measures.clusters is None:
        return ()
    clusters = found.measures.clusters.tolist()
    own = zip(clusters, result.points.conditions, strict=True)
    return tuple(i for i, (of, condition) in enumerate(own) if str(of) == cluster and condition == group)


def listed_points(
    sentences: Sequence[str], conditions: Sequence[str], values: Sequence[str] | None, crossed: bool
) -> MapPoints:
    """Read the points of the endpoint: a condition, and perhaps a value, for each sentence, or all crossed."""
    import pandas as pd

    if crossed:
        if values:
            raise DataError("values belong to one condition each; leave them out, or give one condition per sentence.")
        return points_from_texts(sentences, conditions, max_points=limits.MAP_POINTS)
    columns = {"sentences": sentences, "conditions": conditions, **({"value": values} if values else {})}
    if len(set(map(len, columns.values()))) > 1:
        found = ", ".join(f"{len(cells):,} of {name}" for name, cells in columns.items())
        raise DataError(f"Give one condition (and value) per sentence, or set crossed; got {found}.")
    named: dict[str, Any] = {
        "text_column": "sentences",
        "condition_column": "conditions",
        "value_column": "value" if values else "",
    }
    return points_from_table(pd.DataFrame(columns), **named, max_points=limits.MAP_POINTS)


def positions(ids: object, number_of_points: int) -> list[int]:
    """Read ids that a browser sent as positions; whatever is none is left out."""
    if not isinstance(ids, list):
        return []
    return sorted({found for item in ids if (found := place(item, number_of_points)) is not None})


def _item(result: EmbeddingMap, index: int) -> dict[str, Any]:
    points = result.points
    return {
        "id": index,
        "text": points.texts[index],
        "condition": points.conditions[index],
        "value": points.values[index] if points.values else "",
    }


def _neighbors(result: EmbeddingMap, name: str, marked: int) -> dict[str, Any]:
    side, other = (result.before, result.after) if name == "before" else (result.after, result.before)
    near = slice(result.points.compared[marked])
    kept, rows = set(other.neighbors.indices[marked][near].tolist()), []
    found = side.neighbors.indices[marked][near].tolist(), side.neighbors.cosines[marked][near].tolist()
    for index, cosine in zip(*found, strict=True):
        fate = "stayed" if index in kept else "left" if name == "before" else "new"
        rows.append(_item(result, index) | {"cosine": cosine, "fate": fate})
    own = result.points.values[marked] if result.points.values else ""
    same = sum(row["value"] == own for row in rows) if own else 0
    return {"name": name, "rows": rows, "same": same, "new": sum(row["fate"] == "new" for row in rows), "value": own}
