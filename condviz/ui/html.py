"""Building blocks of the page as strings. Every text goes through `esc`; markup is only what this package writes."""

from __future__ import annotations

import html
import json
import math
from collections.abc import Iterable

from condviz.types import Kind, ModelInfo

MINUS = "\N{MINUS SIGN}"
_OPENERS = {ord(c): f"&#{ord(c)};" for c in "${}`\\"}
KIND_HELP = {
    "cross": "cross-encoder: reads both sentences and the condition at once",
    "bi": "bi-encoder: reads each sentence together with the condition",
    "tri": "tri-encoder: reads sentence and condition apart, then combines them",
}


def esc(text: object) -> str:
    """Escape a text for use between tags and in quoted attributes.

    Control characters other than tab and line feed become U+FFFD, as HTML has no way to write them.
    """
    shown = "".join(
        c if c in "\t\n" or (ord(c) >= 32 and not 0x7F <= ord(c) < 0xA0) else "\N{REPLACEMENT CHARACTER}"
        for c in str(text)
    )
    return html.escape(shown.encode("utf-8", "replace").decode("utf-8"), quote=True)


def attributes(**values: object) -> str:
    """Write HTML attributes: None and False leave one out, True writes the bare name, "_" stands for "-"."""
    parts = []
    for name, value in values.items():
        key = name.rstrip("_").replace("_", "-")
        if value is True:
            parts.append(f" {key}")
        elif value is not None and value is not False:
            parts.append(f' {key}="{esc(value)}"')
    return "".join(parts)


def tag(name: str, *children: str, **values: object) -> str:
    """Write an element around markup that is already safe; attribute values are escaped here."""
    return f"<{name}{attributes(**values)}>{''.join(children)}</{name}>"


def text(name: str, content: object, **values: object) -> str:
    """Write an element around a text, which is escaped and keeps its own reading direction."""
    return tag(name, esc(content), **{"dir": "auto", **values})


def inert(markup: str) -> str:
    """Make finished markup safe inside a template, which gradio reads as Handlebars and then as JavaScript."""
    return markup.translate(_OPENERS)


def script_text(text: str) -> str:
    """Write a text as a JavaScript literal that may stand in an expression of a template."""
    return "".join(f"\\u{ord(c):04x}" if c in "{}$`<>&'" else c for c in json.dumps(text))


def join(parts: Iterable[str]) -> str:
    """Join markup."""
    return "".join(parts)


def badge(label: str, *, title: str = "", tone: str = "plain") -> str:
    """Write a small label; tone is "plain", "warn" or a kind."""
    return tag("span", esc(label), class_=f"cv-badge cv-badge-{tone}", title=title or None)


def kind_badge(kind: Kind) -> str:
    """Write the badge of how a model reads its input."""
    return badge(kind, title=KIND_HELP[kind], tone=kind)


def model_badges(info: ModelInfo) -> str:
    """Write the badges that stand beside a model wherever it appears."""
    untrained = badge(
        "not trained", title="The pretrained encoder as it is, without any training for conditions", tone="warn"
    )
    return kind_badge(info.kind) + ("" if info.trained else untrained)


def letter(index: int) -> str:
    """Give the letter of a condition: A, B ... Z, AA."""
    name = ""
    while index >= 0:
        name = chr(ord("A") + index % 26) + name
        index = index // 26 - 1
    return name


def notice(title: str, message: str, *, tone: str = "error", hint: str = "") -> str:
    """Write a message that screen readers announce.

    Args:
        title: What happened, in a few words.
        message: What is wrong and what to do.
        tone: "error", "info" or "busy".
        hint: A second line, smaller.
    """
    role = "alert" if tone == "error" else "status"
    extra = text("p", hint, class_="cv-notice-hint") if hint else ""
    body = text("strong", title) + text("p", message) + extra
    return tag("div", body, class_=f"cv-notice cv-notice-{tone}", role=role, data_testid=f"notice-{tone}")


def number(value: float, digits: int = 3) -> str:
    """Write a number with a true minus sign; a missing one as an en dash."""
    if not math.isfinite(value):
        return "\N{EN DASH}"
    shown = f"{value:.{digits}f}"
    if float(shown) == 0:
        shown = shown.removeprefix("-")
    return shown.replace("-", MINUS)


def signed(value: float, digits: int = 3) -> str:
    """Write a change with its sign, zero as "±0.000"."""
    if not math.isfinite(value):
        return "\N{EN DASH}"
    shown = f"{abs(value):.{digits}f}"
    if float(shown) == 0:
        return f"\N{PLUS-MINUS SIGN}{shown}"
    return f"{'+' if value > 0 else MINUS}{shown}"


def arrow(value: float, digits: int = 3) -> str:
    """Give the direction of a change as a sign that needs no colour: up, down, or nothing below the shown precision."""
    if not math.isfinite(value) or float(f"{abs(value):.{digits}f}") == 0:
        return ""
    shape = "\N{BLACK UP-POINTING SMALL TRIANGLE}" if value > 0 else "\N{BLACK DOWN-POINTING SMALL TRIANGLE}"
    return f"{shape}\N{THIN SPACE}"


def shade(value: float, limit: float) -> dict[str, object]:
    """Give the attributes that colour an element on a diverging scale.

    Args:
        value: The number to show; not finite counts as missing.
        limit: End of the symmetric scale, > 0; larger values take the end colour.

    Returns:
        data-sign "pos", "neg", "zero" or "none", and style with --t in [0, 1]: the share of the end colour.
    """
    if not math.isfinite(value):
        return {"data_sign": "none"}
    share = min(1.0, abs(value) / limit) if limit > 0 else 0.0
    if share < 0.004:
        return {"data_sign": "zero"}
    return {"data_sign": "pos" if value > 0 else "neg", "style": f"--t:{share:.3f}"}


def ordinal(value: float) -> str:
    """Give the short form of a percentile, "P87"; a missing one as an en dash."""
    return f"P{round(value)}" if math.isfinite(value) else "\N{EN DASH}"


def is_cross(info: ModelInfo) -> bool:
    """Return whether a model's scores are on a scale of their own, not on that of the cosine."""
    return info.kind == "cross" or not all(-1 <= end <= 1 for end in info.score_range)
