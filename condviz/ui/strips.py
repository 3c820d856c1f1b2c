"""Words as chips, tinted on one scale and with their values as text: the strips of the Router tab."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from condviz.ui.html import MINUS, esc, number, shade, signed, tag

MIN_LIMIT = 0.01
"""Smallest end of a scale: below it, differences are the noise of the number format and stay white."""


@dataclass(frozen=True)
class Scale:
    """One colour scale for everything that is compared.

    Attributes:
        limit: Its end; larger values take the end colour.
        signed: True for a diverging scale from -limit to limit, False for 0 to limit.
        family: Class that brings the hues: "weight", "cosine" or "cross".
    """

    limit: float
    signed: bool = False
    family: str = "weight"

    def attributes(self, value: float) -> dict[str, object]:
        """Give the attributes that colour a chip."""
        found = shade(value, self.limit)
        return found if self.signed or found["data_sign"] != "pos" else {**found, "data_sign": "use"}

    def show(self, value: float) -> str:
        """Write a value as it stands on a chip: ".142", with its sign on a diverging scale."""
        shown = signed(value) if self.signed else number(value)
        return shown.replace("0.", ".", 1) if abs(value) < 1 else shown


def fit_scale(values: Sequence[np.ndarray], *, signed: bool = False, family: str = "weight") -> Scale:
    """Give the scale that holds all values: its end is the next 1, 2 or 5 times a power of ten."""
    largest = max((float(np.abs(array).max(initial=0)) for array in values), default=0.0)
    largest = max(MIN_LIMIT, largest)
    power = 10.0 ** math.floor(math.log10(largest))
    limit = next(step * power for step in (1, 2, 5, 10) if largest <= step * power * (1 + 1e-6))
    return Scale(limit, signed, family)


def legend(scale: Scale, low: str, high: str, note: str) -> str:
    """Write the legend of a scale: both ends as numbers with what they mean."""
    steps = range(-4, 5) if scale.signed else range(9)
    most = 4 if scale.signed else 8
    swatches = [tag("span", class_="cv-swatch", **scale.attributes(step / most * scale.limit)) for step in steps]
    ends = (f"{MINUS}{scale.limit:g} {low}", f"+{scale.limit:g} {high}") if scale.signed else (
        f"0 {low}".strip(), f"{scale.limit:g} {high}".strip()
    )  # fmt: skip
    return tag(
        "div",
        tag(
            "span",
            tag("span", esc(ends[0])),
            tag("span", *swatches, class_="cv-swatches"),
            tag("span", esc(ends[1])),
            class_="cv-legend-scale",
        ),
        tag("span", esc(note), class_="cv-muted"),
        class_=f"cv-legend cv-scale-{scale.family}",
    )


@dataclass(frozen=True)
class Strip:
    """One row of chips.

    Attributes:
        title: Safe markup in front of the row.
        name: What the row is, in words, for screen readers.
        short: The same in as few letters as the readout has room for; "" leaves the row out of it.
        words: What stands on the chips.
        values: (w,) numbers.
        ranks: (w,) from 1, or None where a rank says nothing.
        shares: (w,) in [0, 1], or None.
        note: Safe markup behind the chips.
    """

    title: str
    name: str
    words: Sequence[str]
    values: np.ndarray
    ranks: np.ndarray | None = None
    shares: np.ndarray | None = None
    note: str = ""
    short: str = ""


def render_strip(strip: Strip, scale: Scale) -> str:
    """Write one row; every chip is a button with its number as text, found by the keyboard through the script."""
    chips = [_chip(strip, scale, place) for place in range(len(strip.words))]
    return tag(
        "div",
        tag("div", strip.title, class_="cv-strip-title"),
        tag("div", *chips, class_="cv-toks", role="group", aria_label=strip.name, data_short=strip.short or None),
        tag("div", strip.note, class_="cv-strip-note") if strip.note else "",
        class_=f"cv-strip cv-scale-{scale.family}",
    )


def _chip(strip: Strip, scale: Scale, place: int) -> str:
    value = float(strip.values[place])
    said = [scale.show(value)]
    if strip.ranks is not None:
        said.append(f"rank {strip.ranks[place]} of {len(strip.words)}")
    if strip.shares is not None:
        said.append(f"share {100 * strip.shares[place]:.0f} %")
    return tag(
        "button",
        tag("span", esc(strip.words[place]), dir="auto"),
        tag("small", scale.show(value)),
        type="button",
        class_="cv-tok",
        tabindex="-1",
        aria_pressed="false",
        aria_label=f"{strip.words[place]}: {', '.join(said)}",
        data_w=place,
        data_said=", ".join(said),
        **scale.attributes(value),
    )
