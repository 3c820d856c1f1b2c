"""One row of the Errors tab in full, the training rows nearest to it, and what a rewrite does to a slice."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING
from urllib.parse import urlencode

import numpy as np

from condviz.ui.errors_rows import item_of, show_judgement, show_rating
from condviz.ui.errors_state import PAGE
from condviz.ui.errors_view import act
from condviz.ui.html import esc, number, tag, text

if TYPE_CHECKING:
    from condviz.analysis.errors.rewrites import Effect, Neighbour
    from condviz.analysis.errors.study import Study

TAGS = (
    "label looks wrong",
    "condition missed",
    "negation",
    "number",
    "same words",
    "needs knowledge",
    "ambiguous",
    "interesting",
    "other",
)
"""What a reader may call a row; the digits 1 to 9 set them."""


def render_detail(study: Study, row: int | None) -> str:
    """Write one row in full: both conditions, every judgement, links onward, tags and a note."""
    if row is None or not 0 <= row < len(study.dataset.pairs):
        hint = "Click a row, or move with the arrow keys: 1 to 9 tag it, n writes a note, Enter opens it here."
        return text("p", hint, class_="cv-muted", data_testid="detail-empty")
    dataset, pair = study.dataset, study.dataset.pairs[row]
    item = item_of(study, row)
    shared = study.columns["shared"][row]
    facts = []
    for one in item:
        asked = dataset.pairs[one]
        cells = [text("th", asked.condition, scope="row"), tag("td", show_rating(asked.label), class_="cv-num")]
        facts.append(tag("tr", *cells, *(show_judgement(judged, one) for judged in study.judged)))
    head = [tag("th", "Condition", scope="col"), tag("th", "Rating", scope="col", class_="cv-num")]
    head += [text("th", judged.model, scope="col", class_="cv-num") for judged in study.judged]
    table = tag("table", tag("thead", tag("tr", *head)), tag("tbody", *facts), class_="cv-table")
    names = [judged.model for judged in study.judged]
    # The condition of this very row comes first, and with it the words that the other tabs show.
    asked_first = sorted(item, key=lambda one: one != row)
    links = _links(pair.sentence1, pair.sentence2, [dataset.pairs[one].condition for one in asked_first], names)
    return tag(
        "div",
        text("p", f"Row {dataset.numbers[row]}", class_="cv-label"),
        tag("div", *(tag("p", _marked(one, shared), class_="cv-sentence") for one in (pair.sentence1, pair.sentence2))),
        text("p", "Underlined: words in both sentences.", class_="cv-muted cv-err-note") if shared else "",
        tag("div", table, class_="cv-scroll"),
        tag("div", *links, act("Nearest training rows", "neighbours", class_="cv-button"), class_="cv-exports"),
        _remark(row, int(dataset.numbers[row])),
        class_="cv-err-detail", data_row=row, data_number=int(dataset.numbers[row]), data_testid="detail",
    )  # fmt: skip


def _marked(sentence: str, shared: frozenset[str]) -> str:
    """Underline words that both sentences have."""
    from condviz.encoder.words import split_words

    parts, end = [], 0
    for word in split_words(sentence):
        parts.append(esc(sentence[end : word.start]))
        alike = word.text.casefold().replace("’", "'") in shared
        parts.append(tag("u", esc(word.text)) if alike else esc(word.text))
        end = word.end
    return "".join(parts) + esc(sentence[end:])


def _links(sentence1: str, sentence2: str, conditions: Sequence[str], models: Sequence[str]) -> list[str]:
    """Give links that open the row in other tabs, in a page of their own: this one keeps its place.

    Compare shows the words of the first model under the first condition.
    """
    texts = [("s1", sentence1), ("s2", sentence2), *(("c", condition) for condition in conditions)]
    texts += [("m", name) for name in models]
    queries = {
        "Compare": urlencode([*texts, ("w", models[0])]),
        "Router": urlencode([("t", "router"), *((f"r{key}", value) for key, value in texts)]),
    }
    return [
        tag("a", f"Open in {name}", href=f"?{query}", target="_blank", rel="noopener", class_="cv-button",
            data_testid=f"to-{name.lower()}")
        for name, query in queries.items()
    ]  # fmt: skip


def _remark(row: int, number_: int) -> str:
    """Write tags and the note; the script fills in what the browser has stored."""
    tags = [
        tag("button", f"{index} {esc(name)}", type="button", class_="cv-err-tag", data_tag=name, aria_pressed="false")
        for index, name in enumerate(TAGS, start=1)
    ]
    note = tag("textarea", class_="cv-err-remark", rows=2, maxlength=2000, placeholder="Note (kept in this browser)",
               aria_label=f"Note on row {number_}", data_note=row)  # fmt: skip
    return tag("div", *tags, class_="cv-err-tagbar") + note


def render_neighbours(found: Sequence[Neighbour], model: str) -> str:
    """Write the nearest training rows."""
    rows = [
        tag(
            "tr",
            tag("td", number(one.similarity), class_="cv-num"),
            tag("td", show_rating(one.pair.label), class_="cv-num"),
            tag(
                "td",
                text("p", one.pair.sentence1),
                text("p", one.pair.sentence2),
                text("small", one.pair.condition, class_="cv-muted"),
                class_="cv-err-texts",
            ),
        )
        for one in found
    ]
    head = [tag("th", name, scope="col", class_="cv-num") for name in ("Cosine", "Rating")]
    head.append(tag("th", "Sentences, condition", scope="col"))
    table = tag("table", tag("thead", tag("tr", *head)), tag("tbody", *rows), class_="cv-table cv-err-rows")
    lead = (
        f"Nearest by the vectors of {model}, among 200 rows of the training part of the scenes that share most words."
    )
    return tag(
        "div", text("h3", "Training rows like this one"), text("p", lead, class_="cv-muted cv-err-note"),
        tag("div", table, class_="cv-scroll"), data_testid="neighbours",
    )  # fmt: skip


def render_effect(study: Study, effects: Sequence[Effect]) -> str:
    """Write before and after of a rewrite, for each model, largest change first."""
    first = effects[0]
    rewritten = first.rewritten
    parts = [_effect_line(effect, judged.model) for effect, judged in zip(effects, study.judged, strict=True)]
    change = np.nan_to_num(np.abs(first.after - first.before))
    rows = [_effect_row(study, effects, int(place)) for place in np.argsort(-change, kind="stable")[:PAGE]]
    head = [tag("th", name, scope="col") for name in ("Row", "After", "Condition")]
    head += [text("th", f"{judged.model}: before, after", scope="col", class_="cv-num") for judged in study.judged]
    table = tag("table", tag("thead", tag("tr", *head)), tag("tbody", *rows), class_="cv-table cv-err-rows")
    notes = [f"{len(rewritten.rows):,} rows changed."]
    if rewritten.unchanged:
        notes.append(f"To {rewritten.unchanged:,} others of the slice the rule does not apply.")
    if rewritten.left_out:
        notes.append(f"{rewritten.left_out:,} more were left out: at most {len(rewritten.rows):,} are scored at once.")
    lead = f"{' '.join(notes)} The {len(rows)} largest changes:"
    body = tag("div", table, class_="cv-scroll cv-scroll-y")
    return tag("div", *parts, text("p", lead, class_="cv-muted cv-err-note"), body, data_testid="effect")


def _effect_line(effect: Effect, model: str) -> str:
    change = effect.after - effect.before
    moved = float(np.mean(np.abs(change)))
    up, down = int((change > 1e-6).sum()), int((change < -1e-6).sum())
    fitted = ""
    if np.isfinite(effect.fitted_before).all():
        before, after = float(effect.fitted_before.mean()), float(effect.fitted_after.mean())
        fitted = f" Mean fitted rating {before:.2f} before, {after:.2f} after."
    return tag("p", text("b", model), esc(f": {up:,} scores rise, {down:,} fall; mean change {moved:.3f}.{fitted}"))


def _effect_row(study: Study, effects: Sequence[Effect], place: int) -> str:
    rewritten = effects[0].rewritten
    row, pair = int(rewritten.rows[place]), rewritten.pairs[place]
    cells = [
        tag("td", f"{number(effect.before[place])} \N{RIGHTWARDS ARROW} {number(effect.after[place])}", class_="cv-num")
        for effect in effects
    ]
    texts = tag("td", text("p", pair.sentence1), text("p", pair.sentence2), class_="cv-err-texts")
    return tag(
        "tr", tag("th", str(study.dataset.numbers[row]), scope="row", class_="cv-num"), texts,
        text("td", pair.condition), *cells,
    )  # fmt: skip
