"""Markup of the Map tab: headline, legend, the list beside the picture, what is measured."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from condviz.analysis.maps import EmbeddingMap, build_map
from condviz.spec import given_options
from condviz.ui.export import python_call
from condviz.ui.map.form import Shown
from condviz.ui.markup import render
from condviz.ui.state import place

if TYPE_CHECKING:
    from condviz.plots.maps import Colouring

MAX_LISTED = 200
NEIGHBORS_SHOWN = 7


def head(shown: Shown, *, picked: bool = False, asked: bool = False) -> str:
    """Render the headline and how the map was made, with the link that the page puts into its address.

    Where only something is `picked`, open sections stay there; what a link `asked` for is not the tab's own example.
    """
    from condviz.plots.maps import headline

    flags = {"picked": picked, "typing": picked and bool(shown.search), "asked": asked}
    return render("map/head.html", headline=headline(shown.result), result=shown.result, shown=shown, **flags)


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
        item, crossed = _item(result, marked), result.points.crossed
        return render("map/neighbors.html", marked=item, lists=lists, chosen=chosen is not None, crossed=crossed)
    rows = [_item(result, index) for index in (chosen or ())[:MAX_LISTED]]
    count, total = None if chosen is None else len(chosen), len(result.points.texts)
    return render("map/chosen.html", rows=rows, count=count, total=total, why=why)


def measures(result: EmbeddingMap) -> str:
    """Render impurity beside that of random matrices, clusters, values, isotropy and sizes of W_c."""
    sides = [("before", result.before), ("after", result.after)]
    mixed = [{row["condition"]: row for row in side.measures.values} for _, side in sides]
    values = [
        (old, new, mixed[0].get(old.condition), mixed[1].get(new.condition))
        for old, new in zip(result.before.values, result.after.values, strict=True)
    ]
    shown = {"problems": {**result.before.measures.problems, **result.after.measures.problems}, "values": values}
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


def positions(ids: object, number_of_points: int) -> list[int]:
    """Read ids that a browser sent as positions; whatever is none is left out."""
    if not isinstance(ids, list):
        return []
    return sorted({place(item, number_of_points) for item in ids} - {None})


def _item(result: EmbeddingMap, index: int) -> dict[str, Any]:
    points = result.points
    return {
        "id": index,
        "text": points.texts[index],
        "condition": points.conditions[index],
        "value": points.values[index] if points.values else "",
        "change": f"{100 * float(result.change[index]):.0f} % of its neighbours are new",
    }


def _neighbors(result: EmbeddingMap, name: str, marked: int) -> dict[str, Any]:
    side, other = (result.before, result.after) if name == "before" else (result.after, result.before)
    kept = set(other.neighbors.indices[marked].tolist())
    rows = []
    pairs = zip(side.neighbors.indices[marked].tolist(), side.neighbors.cosines[marked].tolist(), strict=True)
    for index, cosine in pairs:
        if index >= 0 and math.isfinite(cosine):
            fate = "stayed" if index in kept else "left" if name == "before" else "new"
            rows.append(_item(result, index) | {"cosine": cosine, "fate": fate})
    own = result.points.values[marked] if result.points.values else ""
    same = sum(row["value"] == own for row in rows) if own else 0
    return {"name": name, "rows": rows, "shown": NEIGHBORS_SHOWN, "same": same, "value": own}
