"""Markup of the Links tab: the question, ranked answers, other relations side by side, nearest entities."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from condviz.ui.html import badge, esc, join, number, tag, text
from condviz.ui.links_examples import Example
from condviz.ui.links_export import to_csv, to_json, to_python
from condviz.ui.links_state import LinksState
from condviz.ui.record import unpack_info
from condviz.ui.result_view import hand_out

Record = Mapping[str, Any]
Item = Mapping[str, Any]
SPLIT_HELP = {
    "train": "known: a triple of the train part",
    "valid": "known: a triple of the validation part",
    "test": "right answer: a triple of the test part",
}
MAX_BELOW = 10
"""Known answers listed below the best ones."""
QUERY = "\N{LEFT DOUBLE QUOTATION MARK}{}\N{RIGHT DOUBLE QUOTATION MARK}"


def render_result(record: Record) -> str:
    """Write the whole result.

    Args:
        record: As `condviz.ui.links_service.LinksService.answer` gives it.
    """
    state, info = LinksState.from_dict(record["state"]), unpack_info(record["model"])
    payloads = {
        "link": (state.to_query(), "Copy link"),
        "json": (to_json(record), "Copy JSON"),
        "python": (to_python(record), "Copy Python"),
        "csv": (to_csv(record), "Save CSV"),
    }
    parts = [
        _question(record),
        tag("p", _verdict(record), class_="cv-links-said", data_testid="links-verdict"),
        text("p", " \N{MIDDLE DOT} ".join(_facts(record)), class_="cv-muted cv-links-facts"),
        _table(record),
        hand_out(payloads, [info]),
    ]
    query = state.to_query() if record.get("link") else None
    return tag("section", *parts, class_="cv-links", data_testid="links", data_query=query)


def render_relations(record: Record) -> str:
    """Write the same entity under several relations, one column each."""
    columns = [_column(record, column) for column in record["columns"]]
    head = tag("div", tag("h2", "The same entity under other relations"), class_="cv-section-head")
    lead = text("p", "Each list is one question to the same model. Click a title to open it.", class_="cv-muted")
    listed = tag("div", *columns, class_="cv-links-columns", role="region", tabindex="0", aria_label="Relations")
    return tag("section", head, lead, listed, class_="cv-links-part", data_testid="links-relations")


def render_nearest(record: Record) -> str:
    """Write the entities nearest to the entity alone and under the relation: what the relation changes."""
    sides = {"alone": "The entity alone", "under": f"Under {QUERY.format(record['relation'])}"}
    ids = {key: {item["id"] for item in record[key]} for key in sides}
    other = {"alone": ("under", "left"), "under": ("alone", "entered")}
    lists = []
    for key, title in sides.items():
        opposite, changed = other[key]
        items = [_near(item, "stayed" if item["id"] in ids[opposite] else changed) for item in record[key]]
        lists.append(tag("div", text("h3", title), tag("ol", *items, class_="cv-rank-list")))
    head = tag("div", tag("h2", "Nearest entities, without and with the relation"), class_="cv-section-head")
    lead = text("p", "Cosine in the original space; the entity itself is left out.", class_="cv-muted")
    pair = tag("div", *lists, class_="cv-links-pair")
    return tag("section", head, lead, pair, class_="cv-links-part", data_testid="links-nearest")


def render_examples(examples: Sequence[Example]) -> str:
    """Write questions worth asking, as buttons."""
    chips = [
        tag(
            "button", *(reversed(_ends(example)) if example.inverse else _ends(example)), type="button",
            class_="cv-links-chip", data_act="example", data_id=example.entity, data_relation=example.relation,
            data_inverse="1" if example.inverse else "0",
        )
        for example in examples
    ]  # fmt: skip
    lead = tag("span", "Try", class_="cv-label")
    return tag("div", lead, tag("div", *chips, class_="cv-links-chips"), data_testid="links-examples")


def _ends(example: Example) -> tuple[str, str, str]:
    return text("b", example.name), f" {text('span', example.text)} ", "?"


def render_legend(rows: Sequence[tuple[str, str, str, int]]) -> str:
    """Write the legend of the map: (label, colour, mark, count) of each role."""
    items = [
        tag(
            "li", tag("span", mark, class_="cv-links-mark", style=f"color:{colour}"), text("span", label),
            tag("span", f"{count:,}", class_="cv-muted cv-num"),
        )
        for label, colour, mark, count in rows
    ]  # fmt: skip
    return tag("ul", *items, class_="cv-legend-list")


def _question(record: Record) -> str:
    """Write the triple with the gap that is asked for."""
    relation = record["relation"].removeprefix("inverse ") if record["state"]["inverse"] else record["relation"]
    ends = [_opener(record["entity"]), tag("span", "?", aria_label="which entity")]
    if record["state"]["inverse"]:
        ends.reverse()
    edge = text("span", relation, class_="cv-links-edge")
    return tag("h2", ends[0], edge, ends[1], class_="cv-links-query", data_testid="links-query")


def _verdict(record: Record) -> str:
    """Say in a sentence what came first and where the right answers are."""
    total, answers = record["graph"]["entities"], record["answers"]
    itself = record["rows"][0]["id"] == record["entity"]["id"]
    first = record["rows"][1 if itself and len(record["rows"]) > 1 else 0]
    said = ["The entity itself is nearest, then " if itself else "First comes ", text("em", first["name"]), "."]
    if not answers:
        return join([*said, " The graph does not know any answer to this question, so nothing here is right or wrong."])
    if len(answers) == 1:
        place = f" The one answer that the graph knows, {esc(answers[0]['name'])}, has rank "
    else:
        place = (
            f" Of {record['known']:,} answers that the graph knows, {esc(answers[0]['name'])} is found first, at rank "
        )
    best = answers[0]
    filtered = "" if best["filtered_rank"] == best["rank"] else f", filtered rank {rank(best['filtered_rank'])}"
    said += [place, text("em", rank(best["rank"])), f" of {total:,}{filtered}."]
    tested = [answer for answer in answers if answer["split"] == "test"]
    if tested and len(answers) > 1:
        shown = ", ".join(f"{esc(item['name'])} {rank(item['filtered_rank'])}" for item in tested[:4])
        more = f" and {len(tested) - 4} more" if len(tested) > 4 else ""
        said.append(f" Filtered rank of the test answers: {shown}{more}.")
    return join(said)


def _facts(record: Record) -> list[str]:
    info, graph = record["model"], record["graph"]
    return [
        f"{info['title']} ({_training(record)})",
        f"{graph['title']}, {graph['entities']:,} entities",
        f"score: cosine; bars from {number(record['middle'], 2)}, the median of all entities, to 1",
        *([f"revision {info['revision']}"] if info["revision"] else []),
    ]


def _training(record: Record) -> str:
    info = record["model"]
    if info["graph"]:
        return "trained on this graph" if info["graph"] == record["graph"]["name"] else f"trained on {info['graph']}"
    return "trained on sentences, not on links" if info["trained"] else "not trained"


def _table(record: Record) -> str:
    columns = ("Rank", "Entity", "Score", "", "No relation", "Known", "Filtered rank")
    figures = ("Rank", "Score", "No relation", "Filtered rank")
    head = tag("tr", *[tag("th", name, scope="col", class_="cv-num" if name in figures else None) for name in columns])
    shown = {item["id"] for item in record["rows"]}
    below = [item for item in record["answers"] if item["id"] not in shown]
    more = len(below) + record["known"] - len(record["answers"])
    body = [_row(record, item) for item in record["rows"]]
    if below:
        best = "" if more <= MAX_BELOW else f", of which the best {MAX_BELOW}"
        gap = f"Further down: {more:,} more {'answer' if more == 1 else 'answers'} that the graph knows{best}."
        body.append(tag("tr", text("td", gap, colspan=str(len(columns))), class_="cv-links-gap"))
        body += [_row(record, item) for item in below[:MAX_BELOW]]
    table = tag(
        "table", tag("thead", head), tag("tbody", *body), class_="cv-table cv-links-table", data_testid="links-table"
    )
    note = (
        "Known answers are marked with the part of the graph they come from. The filtered rank leaves out the other "
        "known answers, as the figures of the papers do. “No relation” is the cosine with the entity alone."
    )
    listed = tag("div", table, class_="cv-scroll", role="region", tabindex="0", aria_label="Ranked entities")
    return listed + text("p", note, class_="cv-muted cv-links-facts")


def _row(record: Record, item: Item) -> str:
    split = item["split"]
    known = badge(split, title=SPLIT_HELP[split], tone=split) if split else ""
    if item["id"] == record["entity"]["id"]:
        known += badge("itself", title="the entity that is asked about")
    filtered = rank(item["filtered_rank"]) if split else "\N{EN DASH}"
    return tag(
        "tr",
        tag("td", rank(item["rank"]), class_="cv-num"),
        tag("th", _opener(item), text("span", item["description"], class_="cv-links-definition"), scope="row"),
        tag("td", number(item["score"]), class_="cv-num"),
        tag("td", _bar(item["score"], record["middle"])),
        tag("td", number(item["unconditional"]), class_="cv-num cv-muted"),
        tag("td", known),
        tag("td", filtered, class_="cv-num"),
        class_="cv-links-known" if split else None,
        data_id=item["id"],
    )


def _column(record: Record, column: Record) -> str:
    state = record["state"]
    current = (column["relation"], column["inverse"]) == (state["relation"], state["inverse"])
    title = tag(
        "button", text("span", column["text"]), type="button", class_="cv-link", data_act="relation",
        data_relation=column["relation"], data_inverse="1" if column["inverse"] else "0",
    )  # fmt: skip
    items = [
        tag(
            "li", _opener(item), tag("span", number(item["score"], 2), class_="cv-num"),
            _bar(item["score"], record["middle"]),
            class_="cv-links-right" if item["split"] else None,
        )
        for item in column["rows"]
    ]  # fmt: skip
    known = f"{column['known']:,} known" if column["known"] else "none known"
    found = f"{known}, best at {rank(column['best'])}" if column["known"] else known
    return tag(
        "div", tag("h4", title), tag("small", found), tag("ol", *items), class_="cv-links-column",
        aria_current="true" if current else None,
    )  # fmt: skip


def _near(item: Item, change: str) -> str:
    inner = (
        text("span", item["name"], class_="cv-rank-name"),
        tag("span", number(item["score"]), class_="cv-num"),
        badge(change, tone="plain" if change == "stayed" else change),
    )
    return tag("li", tag("button", *inner, type="button", class_="cv-rank cv-near", **_opens(item)))


def _opener(item: Item) -> str:
    """Write a name that asks about its entity; the definition stands in the tip."""
    return tag("button", text("span", item["name"]), type="button", class_="cv-link cv-links-name", **_opens(item))


def _opens(item: Item) -> dict[str, str]:
    named = f"{item['label']}: " if item["label"] != item["name"] else ""
    definition = f"{named}{item['description'] or 'no definition in the graph'}"
    return {"data_act": "entity", "data_id": item["id"], "data_definition": definition}


def _bar(score: float, middle: float) -> str:
    share = min(1.0, max(0.0, (score - middle) / (1 - middle))) if middle < 1 else 0.0
    return tag("span", tag("span", style=f"--t:{share:.3f}"), class_="cv-links-bar", aria_hidden="true")


def rank(value: float) -> str:
    """Write a rank; between two entities of the same score it may end in .5."""
    return f"{value:,.0f}" if value == int(value) else f"{value:,.1f}"
