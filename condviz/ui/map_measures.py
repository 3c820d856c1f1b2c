"""Markup of what was measured in the original space: impurity, values, isotropy, and the matrices W_c."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from condviz.analysis.map_result import EmbeddingMap, Side
from condviz.ui.html import join, notice, number, tag, text

EN_DASH = "\N{EN DASH}"


def render_measures(result: EmbeddingMap) -> str:
    """Write all measures; each stands or says why it is missing."""
    return tag("div", _impurity(result), _values(result), _isotropy(result), class_="cv-measures")


def render_weights(weights: Mapping[str, Any] | None) -> str:
    """Write the sizes of the matrices W_c."""
    if not weights:
        return ""
    rows = join(
        tag(
            "tr",
            text("th", condition, scope="row"),
            tag("td", number(norm, 4), class_="cv-num"),
            tag("td", f"{rank:,}", class_="cv-num"),
        )
        for condition, norm, rank in zip(weights["conditions"], weights["norms"], weights["rank"], strict=True)
    )
    head = _head("Condition", "Frobenius norm / d", "Directions that hold 99 % of it")
    more = f" {weights['left_out']:,} further conditions are left out." if weights["left_out"] else ""
    line = (
        f"Variance of the norms over these conditions: {weights['variance']:.3g}. Hyper-CL (section 6) reports 0.0248 "
        f"for its W_c and 0.001 for a Hadamard product, on other data.{more}"
    )
    table = tag("table", tag("thead", head), tag("tbody", rows), class_="cv-table")
    return tag("div", tag("div", table, class_="cv-scroll cv-scroll-y"), text("p", line, class_="cv-muted"))


def _section(title: str, lead: str, *content: str) -> str:
    head = tag("div", tag("h3", title), text("p", lead, class_="cv-muted"))
    return tag("section", head, *content)


def _head(*names: str) -> str:
    first, *rest = [text("th", name, scope="col") for name in names]
    return tag("tr", first, *rest)


def _impurity(result: EmbeddingMap) -> str:
    before, after = result.before.impurity, result.after.impurity
    title = "Impurity"
    lead = "0: every condition lies in one K-means cluster. Natural logarithm; lower is purer."
    if not before or not after:
        reason = (result.after.problems or {}).get("impurity", "Not measured.")
        return _section(title, lead, notice("No impurity", reason, tone="info"))
    rows = [_impurity_row("before", before), _impurity_row("after", after)]
    if result.control:
        rows.append(
            tag(
                "tr",
                tag("th", "random matrices", scope="row"),
                tag("td", _spread(result.control), class_="cv-num"),
                *[tag("td", EN_DASH, class_="cv-num")] * 4,
            )
        )  # fmt: skip
    names = ("", "Impurity (sd)", "Bits", "Share of maximum", "By chance", "p")
    table = tag("table", tag("thead", _head(*names)), tag("tbody", *rows), class_="cv-table", data_testid="impurity")
    seeds = len(after["per_seed"])
    facts = (
        f"K = {after['clusters']}, n = {len(result.points.texts):,}, mean and sd over {seeds} seeds of K-means on "
        "vectors of length 1; chance and p from 200 shuffles of the conditions."
    )
    control = (
        " Different matrices set conditions apart almost for free: the last row has a random matrix per condition "
        "instead of the model. So read the values below as well."
        if result.control
        else ""
    )
    tables = tag(
        "div",
        _crosstab("Before", result.before, "before"),
        _crosstab("After", result.after, "after"),
        class_="cv-map-columns",
    )
    return _section(
        title, lead, tag("div", table, class_="cv-scroll"), text("p", facts + control, class_="cv-muted"), tables
    )


def _impurity_row(name: str, found: Mapping[str, Any]) -> str:
    return tag(
        "tr",
        tag("th", name, scope="row"),
        tag("td", _spread(found), class_="cv-num"),
        tag("td", number(found["bits"]), class_="cv-num"),
        tag("td", number(found["normalised"]), class_="cv-num"),
        tag("td", number(found["chance"]), class_="cv-num"),
        tag("td", number(found["p_value"]), class_="cv-num"),
    )


def _spread(found: Mapping[str, Any]) -> str:
    return f"{number(found['mean'])} \N{PLUS-MINUS SIGN} {number(found['std'])}"


def _crosstab(title: str, side: Side, name: str) -> str:
    """Write conditions by clusters; a click on a count selects its points."""
    table = side.impurity["table"]
    head = tag(
        "tr", tag("th", "Condition", scope="col"),
        *[text("th", f"cluster {cluster}", scope="col") for cluster in table["clusters"]],
    )  # fmt: skip
    body = join(
        tag(
            "tr",
            text("th", group, scope="row"),
            *[
                tag("td", _cell(count, name, group, cluster), class_="cv-num")
                for cluster, count in zip(table["clusters"], counts, strict=True)
            ],
        )
        for group, counts in zip(table["groups"], table["counts"], strict=True)
    )
    return tag(
        "div",
        tag("h4", title),
        tag(
            "div",
            tag("table", tag("thead", head), tag("tbody", body), class_="cv-table", data_testid=f"crosstab-{name}"),
            class_="cv-scroll",
        ),
    )


def _cell(count: int, side: str, group: str, cluster: str) -> str:
    if not count:
        return "0"
    return tag(
        "button", f"{count:,}", type="button", class_="cv-link", data_act="cell", data_side=side, data_group=group,
        data_cluster=cluster, title="Select these points",
    )  # fmt: skip


def _values(result: EmbeddingMap) -> str:
    before, after = result.before.values, result.after.values
    title = "Values"
    lead = "Under one condition, do sentences with the same value lie together? Needs a column called value."
    if not before or not after:
        reason = (result.after.problems or {}).get("values")
        hint = reason or "The table has no column called value, or no condition has two different values."
        return _section(title, lead, notice("No values", hint, tone="info"))
    names = (
        "Condition",
        "n",
        "Values",
        "Nearest 3 agree: before",
        "after",
        "by chance",
        "Impurity: before",
        "after",
        "p",
    )
    rows = []
    for old, new in zip(before, after, strict=True):
        cells = [
            f"{new['num_points']:,}",
            f"{new['num_values']:,}",
            *(f"{100 * share:.0f} %" for share in (old["agreement"], new["agreement"], new["chance"])),
            number(old["impurity"]),
            number(new["impurity"]),
            number(new["p_value"]),
        ]
        body = [tag("td", cell, class_="cv-num") for cell in cells]
        rows.append(tag("tr", text("th", new["condition"], scope="row"), *body))
    table = tag("table", tag("thead", _head(*names)), tag("tbody", *rows), class_="cv-table", data_testid="values")
    return _section(title, lead, tag("div", table, class_="cv-scroll"))


def _isotropy(result: EmbeddingMap) -> str:
    title, lead = (
        "Isotropy and silhouette",
        "Whether vectors point everywhere alike, and a second opinion on the conditions.",
    )
    names = ("", "Mean cosine to the mean (sd)", "IPC", "Silhouette of the conditions")
    rows = []
    for name, side in (("before", result.before), ("after", result.after)):
        spread = side.isotropy
        cells = [
            f"{number(spread['mean_cosine'])} ({number(spread['std_cosine'])})" if spread else EN_DASH,
            number(spread["ipc"]) if spread else EN_DASH,
            number(side.silhouette) if side.silhouette is not None else EN_DASH,
        ]
        rows.append(tag("tr", tag("th", name, scope="row"), *[tag("td", cell, class_="cv-num") for cell in cells]))
    problems = {**(result.before.problems or {}), **(result.after.problems or {})}
    reasons = join(text("p", problems[key], class_="cv-muted") for key in ("isotropy", "silhouette") if key in problems)
    line = (
        "Lower mean cosine is more isotropic; higher IPC is. IPC is nearly a function of the length of the mean vector "
        "and of d. Silhouette: 1 if conditions are tight and apart, 0 if they overlap (cosine)."
    )
    table = tag("table", tag("thead", _head(*names)), tag("tbody", *rows), class_="cv-table", data_testid="isotropy")
    return _section(title, lead, tag("div", table, class_="cv-scroll"), text("p", line, class_="cv-muted"), reasons)
