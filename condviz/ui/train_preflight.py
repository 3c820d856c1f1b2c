"""What a training will take, as markup: shown before the button works."""

from __future__ import annotations

from typing import Any

from condviz.ui.html import esc, notice, tag, text
from condviz.ui.train_view import duration


def render_preflight(found: Any) -> str:  # noqa: ANN401 - a Preflight; its module imports torch
    """Write the result of a check.

    Args:
        found: A `condviz.training.preflight.Preflight`.
    """
    left_out = f", {found.dropped:,} left out" if found.dropped else ""
    figures = [
        ("Device", f"{found.device}, {found.precision}" if found.precision else found.device),
        ("Rows to train on", f"{found.rows:,}{left_out}"),
        ("Rows to measure with", f"{found.validation_rows:,}"),
        ("Steps", f"{found.steps:,}" if found.steps else "none: the projection is fitted"),
        ("Time, measured", "" if found.minutes is None else f"about {duration(60 * found.minutes)}"),
        ("Memory", _memory(found)),
    ]
    items = [tag("div", text("dt", name), text("dd", value)) for name, value in figures if value]
    advice = tag("ul", *[text("li", line) for line in found.advice], class_="cv-muted") if found.advice else ""
    if found.problems:
        head = notice("This cannot be trained yet", " ".join(found.problems))
    else:
        head = tag("p", esc("Ready. Press Start training."), class_="cv-train-ready")
    return tag(
        "div", head, tag("dl", *items, class_="cv-figures cv-train-figures"), advice, class_="cv-train-preflight",
        data_testid="preflight", data_ok="false" if found.problems else "true",
    )  # fmt: skip


def _memory(found: Any) -> str:  # noqa: ANN401
    if found.memory is None or found.available is None:
        return ""
    return f"{found.memory / 1e9:.1f} of {found.available / 1e9:.1f} GB"
