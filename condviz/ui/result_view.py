"""The result area: matrix plus what can be taken out of it. `shown` is what gr.State keeps of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from condviz.types import Comparison, ModelInfo
from condviz.ui.exports import to_csv, to_json, to_python
from condviz.ui.form_state import FormState
from condviz.ui.html import esc, tag, text
from condviz.ui.matrix import NO_CONDITION, MatrixView, render_matrix
from condviz.ui.record import pack_comparison, pack_info, unpack_comparison, unpack_info
from condviz.ui.service import Progress

UNCONDITIONAL = "unconditional"
"""Method that does not read the condition: nothing to see in its words when another model is there."""
Ghosts = dict[tuple[str, int], float]


def make_shown(
    progress: Progress,
    form: FormState,
    infos: list[ModelInfo] | tuple[ModelInfo, ...],
    *,
    before: dict[str, Any] | None,
) -> dict[str, Any]:
    """Collect what the page keeps about the result on screen, as plain JSON.

    Args:
        progress: Rows, pending and failed models.
        form: State of the form that led here.
        infos: All models asked for.
        before: The result on screen before this run, for ghosts and for the selected cell.
    """
    record = {
        "form": form.to_dict(),
        "comparison": pack_comparison(progress.comparison),
        "infos": [pack_info(info) for info in infos],
        "pending": progress.pending,
        "failed": progress.failed,
        "ghosts": [[*key, value] for key, value in _ghosts(before, progress.comparison).items()] if before else [],
        "link": True,
    }
    record["selected"] = _keep_selection(before, record)
    return record


def render_shown(shown: dict[str, Any]) -> str:
    """Write the result area."""
    comparison = unpack_comparison(shown["comparison"])
    infos = [unpack_info(info) for info in shown["infos"]]
    form = FormState.from_dict(shown["form"])
    selected = shown.get("selected")
    view = MatrixView(
        first=form.first,
        second=form.second,
        selected=tuple(selected) if selected else None,
        ghosts={(name, column): value for name, column, value in shown.get("ghosts", [])},
        pending=shown.get("pending", {}),
        failed=shown.get("failed", {}),
        query=form.to_query() if shown.get("link") else "",
    )
    return render_matrix(comparison, infos, view) + render_exports(comparison, form)


def render_exports(comparison: Comparison, form: FormState) -> str:
    """Write the buttons that copy or save the result, with their payloads in hidden text areas."""
    if not comparison.models:
        return ""
    payloads = {
        "link": (form.to_query(), "Copy link"),
        "json": (to_json(comparison), "Copy JSON"),
        "python": (to_python(comparison), "Copy Python"),
        "csv": (to_csv(comparison), "Save CSV"),
    }
    return hand_out(payloads, comparison.models)


def hand_out(payloads: dict[str, tuple[str, str]], infos: Sequence[ModelInfo]) -> str:
    """Write one button per payload (text, label), and the revisions of the models behind them."""
    buttons = [
        tag("button", label, type="button", class_="cv-button", data_copy=name, data_testid=f"copy-{name}")
        for name, (_, label) in payloads.items()
    ]
    # A line feed right after <textarea> is dropped by the HTML parser, hence the extra one.
    areas = [
        f'<textarea hidden readonly data-export="{name}" data-testid="export-{name}">\n{esc(payload)}</textarea>'
        for name, (payload, _) in payloads.items()
    ]
    said = tag("span", class_="cv-said", role="status", aria_live="polite")
    revisions = ", ".join(f"{info.name} {info.revision}".strip() for info in infos)
    source = tag("details", tag("summary", "Models and revisions"), text("p", revisions), class_="cv-details")
    return tag("div", *buttons, said, *areas, source, class_="cv-exports")


def column_condition(shown: dict[str, Any], column: int) -> str | None:
    """Give the condition of a column of the result on screen, None for "no condition".

    Raises:
        IndexError: If there is no such column.
    """
    if column == NO_CONDITION:
        return None
    if column < 0:
        raise IndexError(column)
    return shown["comparison"]["conditions"][column]


def _keep_selection(before: dict[str, Any] | None, record: dict[str, Any]) -> list | None:
    names = [info["name"] for info in record["comparison"]["models"]]
    count = len(record["comparison"]["conditions"])
    if before and before.get("selected"):
        name, column = before["selected"]
        if name in names and column < count:
            return [name, column]
    if record["form"].get("words") in names:
        return [record["form"]["words"], 0]
    reads = [i["name"] for i in record["comparison"]["models"] if i["method"] != UNCONDITIONAL]
    return [(reads or names)[0], 0] if names else None


def _ghosts(before: dict[str, Any], now: Comparison) -> Ghosts:
    """Give old scores of cells that can be recognised: same condition, or same place in as many columns."""
    old = unpack_comparison(before["comparison"])
    rows = {info.name: row for row, info in enumerate(old.models)}
    same_shape = len(old.conditions) == len(now.conditions)
    ghosts: Ghosts = {}
    if (old.sentence1, old.sentence2, old.conditions) == (now.sentence1, now.sentence2, now.conditions):
        return {(name, column): value for name, column, value in before["ghosts"]}  # nothing was edited in between
    if old.sentence1 != now.sentence1 and old.sentence2 != now.sentence2:
        return ghosts  # another pair altogether, not an edit
    for row, info in enumerate(now.models):
        if info.name not in rows:
            continue
        old_row = rows[info.name]
        pairs = [(NO_CONDITION, float(old.unconditional[old_row]), float(now.unconditional[row]))]
        for column, condition in enumerate(now.conditions):
            place = old.conditions.index(condition) if condition in old.conditions else column if same_shape else None
            if place is not None:
                pairs.append((column, float(old.scores[old_row, place]), float(now.scores[row, column])))
        ghosts |= {(info.name, column): was for column, was, value in pairs if abs(was - value) >= 0.0005}
    return ghosts
