"""Result of the condition finder: the spread of all conditions, and the two ends as lists."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from condviz.types import ModelInfo
from condviz.ui.html import arrow, join, model_badges, number, shade, signed, tag, text
from condviz.ui.matrix import COSINE_LIMIT, CROSS_LIMIT, is_cross

SHOWN = 8
"""Conditions listed at each end; all of them stand in the table below."""


def render_ranking(ranked: Sequence[tuple[str, float, float]], info: ModelInfo, *, groups: Mapping[str, str]) -> str:
    """Write spread, most alike, most different, and the whole ranking.

    Args:
        ranked: (condition, score, change against no condition); any order.
        info: The model that scored.
        groups: Condition to the group it belongs to.
    """
    if not ranked:
        return ""
    ordered = sorted(ranked, key=lambda row: -row[1])
    limit = CROSS_LIMIT if is_cross(info) else COSINE_LIMIT
    changes = [row[2] for row in ordered]
    if max(changes) - min(changes) < 1e-6:
        message = "This model gives the same score under every condition; choose one that reads the condition."
        return text("p", message, class_="cv-muted", data_testid="ranking")
    count = min(SHOWN, max(1, len(ordered) // 2))
    ends = tag(
        "div",
        _end("Most alike under", ordered[:count], limit=limit, groups=groups),
        _end("Most different under", ordered[::-1][:count], limit=limit, groups=groups),
        class_="cv-ends",
    )
    title = tag(
        "p",
        text("strong", info.title),
        " ",
        model_badges(info),
        f" {len(ordered)} conditions ranked. ",
        f"Scores from {number(ordered[-1][1])} to {number(ordered[0][1])}.",
    )
    family = "cv-group-cross" if is_cross(info) else "cv-group-cosine"
    return tag(
        "div",
        title,
        _spread(ordered),
        ends,
        _table(ordered, groups),
        class_=f"cv-ranking {family}",
        data_testid="ranking",
    )


def _spread(ordered: Sequence[tuple[str, float, float]]) -> str:
    low, high = ordered[-1][1], ordered[0][1]
    ticks = join(
        tag(
            "span",
            class_="cv-tick",
            style=f"left:{100 * (score - low) / (high - low):.2f}%",
            title=f"{condition}: {number(score)}",
        )
        for condition, score, _ in ordered
    )
    ends = tag("span", tag("span", number(low)), tag("span", number(high)), class_="cv-spread-ends")
    return tag("div", tag("span", ticks, class_="cv-spread-line"), ends, class_="cv-spread", aria_hidden="true")


def _end(title: str, rows: Sequence[tuple[str, float, float]], *, limit: float, groups: Mapping[str, str]) -> str:
    items = [
        tag(
            "li",
            tag(
                "button",
                tag("span", text("span", condition), text("small", groups.get(condition, "")), class_="cv-rank-name"),
                tag("span", number(score), class_="cv-num"),
                tag("span", f"{arrow(change)}{signed(change)}", class_="cv-change-chip", **shade(change, limit)),
                type="button",
                class_="cv-rank",
                data_add=condition,
                title="Add to the conditions",
            ),
        )
        for condition, score, change in rows
    ]
    return tag("div", tag("h3", title), tag("ol", *items, class_="cv-rank-list"))


def _table(ordered: Sequence[tuple[str, float, float]], groups: Mapping[str, str]) -> str:
    rows = [
        tag(
            "tr",
            tag("td", str(i), class_="cv-num"),
            text("th", condition, scope="row"),
            text("td", groups.get(condition, "")),
            tag("td", number(score), class_="cv-num"),
            tag("td", signed(change), class_="cv-num"),
        )
        for i, (condition, score, change) in enumerate(ordered, start=1)
    ]
    head = tag("tr", *[tag("th", name, scope="col") for name in ("Rank", "Condition", "Group", "Score", "Change")])
    table = tag("table", tag("thead", head), tag("tbody", *rows), class_="cv-table")
    return tag(
        "details",
        tag("summary", "All conditions"),
        tag("div", table, class_="cv-scroll cv-scroll-y"),
        class_="cv-details",
    )
