"""Buttons that copy or save, for tabs of the first edition."""

from __future__ import annotations

from collections.abc import Sequence

from condviz.types import ModelInfo
from condviz.ui.html import esc, tag, text


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
