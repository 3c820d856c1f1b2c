"""Where the models stand, in one line."""

from __future__ import annotations

import json

from condviz.ui.html import tag, text
from condviz.ui.model_pool import ModelPool


def render_status(pool: ModelPool) -> str:
    """Write the line on loading; data-states carries the phase of every model for the dots of the picker."""
    states = pool.states()
    ready = sum(state.phase == "ready" for state in states.values())
    failed = {name: state.reason for name, state in states.items() if state.phase == "failed"}
    now = next((name for name, state in states.items() if state.phase == "loading"), "")
    if ready == len(states):
        line = f"All {ready} models are loaded."
    elif failed and ready + len(failed) == len(states):
        line = f"{ready} of {len(states)} models are loaded, {len(failed)} failed."
    else:
        line = f"{ready} of {len(states)} models are loaded" + (f"; {now} is loading." if now else ".")
    share = 100 * ready / max(1, len(states))
    bar = tag("span", tag("span", style=f"width:{share:.0f}%"), class_="cv-load-bar", aria_hidden="true")
    phases = json.dumps({name: state.phase for name, state in states.items()})
    reasons = "".join(text("li", f"{name}: {reason}") for name, reason in failed.items())
    return tag(
        "div",
        text("span", line),
        bar if not pool.settled else "",
        tag("details", tag("summary", "What failed"), tag("ul", reasons), class_="cv-details") if failed else "",
        class_="cv-status",
        role="status",
        data_states=phases,
        data_testid="status",
    )
