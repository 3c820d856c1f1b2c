"""Trainings as markup: where one stands, its probe pairs, its log, and all runs. Every text is escaped."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from condviz.ui.html import badge, esc, notice, number, tag, text
from condviz.ui.train_run import METRICS, Probe, RunView

STATES = {
    "queued": "waits for its turn",
    "running": "running",
    "stopping": "stopping",
    "stopped": "stopped",
    "failed": "failed",
    "dead": "process gone",
    "done": "done",
    "recorded": "recorded run",
}
PHASES = {
    "preparing": "loading data and encoder",
    "training": "about to begin",
    "finishing": "writing the model",
}
_BUTTONS = {
    "queued": ("stop", "delete"),
    "running": ("stop",),
    "stopping": (),
    "stopped": ("resume", "rerun", "delete"),
    "failed": ("resume", "rerun", "delete"),
    "dead": ("resume", "rerun", "delete"),
    "done": ("rerun", "delete"),
    "recorded": ("replay",),
}
_TITLES = {
    "stop": "Stop",
    "resume": "Resume",
    "rerun": "Run again",
    "delete": "Delete",
    "replay": "Replay",
    "take": "Take this recipe",
}
WIDTH, HEIGHT = 120, 26
"""Of a sparkline, in pixels."""
MAX_PROBES = 5
SPACE_GUIDE = "https://huggingface.co/docs/hub/spaces-overview#duplicating-a-space"


def duration(seconds: float | None) -> str:
    """Write a time as people say it: "45 s", "3 min 20 s", "2 h 5 min"; an unknown one as an en dash."""
    if seconds is None or seconds != seconds:
        return "\N{EN DASH}"
    whole = max(0, round(seconds))
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    if minutes < 60:
        return f"{minutes} min {rest} s" if rest and minutes < 10 else f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    return f"{hours:,} h {minutes} min" if minutes else f"{hours:,} h"


def render_head(run: RunView) -> str:
    """Write the name and state of a training, with the buttons for what can be done now."""
    reason = notice("Why", run.reason, tone="error") if run.state in ("failed", "dead") and run.reason else ""
    return tag(
        "section",
        tag(
            "div",
            text("h2", run.name),
            tag("span", esc(STATES.get(run.state, run.state)), class_="cv-train-state", data_state=run.state),
            tag("span", _buttons(run), class_="cv-train-buttons"),
            class_="cv-train-head",
        ),
        reason or (text("p", run.reason, class_="cv-muted") if run.reason else ""),
        data_testid="run", data_run=run.id, data_state=run.state,
    )  # fmt: skip


def render_progress(run: RunView) -> str:
    """Write how far a training is."""
    share = 100 * run.step / run.steps if run.steps else 0.0
    moving = run.active or run.state == "recorded"
    now = PHASES.get(run.phase, "") if run.phase == "preparing" or not run.steps else ""
    figures = [
        ("Step", f"{run.step:,} of {run.steps:,}" if run.steps else ""),
        ("Now", now),
        ("Time", duration(run.elapsed)),
        ("Left", duration(run.left) if moving and run.left is not None else ""),
        ("Last sign of life", f"{duration(run.idle)} ago" if run.active and run.idle is not None else ""),
        ("Speed", _speed(run)),
    ]
    items = [tag("div", text("dt", name), text("dd", value)) for name, value in figures if value]
    track = tag("span", style=f"width:{share:.1f}%", data_state=run.state)
    bar = tag(
        "div", track, class_="cv-train-bar", role="progressbar", aria_valuemin="0", aria_valuemax="100",
        aria_valuenow=f"{share:.0f}", aria_label="Steps done",
    )  # fmt: skip
    return bar + tag("dl", *items, class_="cv-figures cv-train-figures", data_testid="progress", data_step=run.step)


def render_probes(run: RunView) -> str:
    """Write the pairs that are scored at each evaluation, each with the course of its score."""
    if not run.probes:
        return ""
    rows = [_probe_row(probe) for probe in run.probes[:MAX_PROBES]]
    head = tag("tr", text("th", "Pair"), text("th", "Condition"), text("th", "Course"), text("th", "Score"))
    table = tag("table", tag("thead", head), tag("tbody", *rows), class_="cv-table cv-train-probes")
    lead = "Five pairs, scored at every evaluation. Each line has its own scale from its lowest to its highest score."
    return tag(
        "section",
        tag("h3", "Probe pairs"),
        text("p", lead, class_="cv-muted"),
        tag("div", table, class_="cv-scroll", tabindex="0", role="region", aria_label="Probe pairs"),
        data_testid="probes",
    )


def sparkline(values: Sequence[float]) -> str:
    """Draw the course of a number as a small picture."""
    if len(values) < 2:
        return ""
    low, high = min(values), max(values)
    spread = (high - low) or 1.0
    x = [2 + i * (WIDTH - 4) / (len(values) - 1) for i in range(len(values))]
    y = [HEIGHT - 3 - (value - low) / spread * (HEIGHT - 6) for value in values]
    points = " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(x, y, strict=True))
    label = f"from {number(values[0])} to {number(values[-1])}"
    return tag(
        "svg",
        tag("polyline", points=points, fill="none", stroke="currentColor", stroke_width="1.6"),
        tag("circle", cx=f"{x[-1]:.1f}", cy=f"{y[-1]:.1f}", r="2.4", fill="currentColor"),
        class_="cv-spark", viewBox=f"0 0 {WIDTH} {HEIGHT}", width=WIDTH, height=HEIGHT, role="img", aria_label=label,
    )  # fmt: skip


def render_baselines(baselines: Mapping[str, float]) -> str:
    """Say what the dotted lines are, or why there are none."""
    if not baselines:
        line = "No lines to compare with: stored scores are known for the scenes of this project only."
    else:
        line = (
            f"Dotted: what {', '.join(baselines)} reach on the test scenes, which are other sentences than those "
            "measured here."
        )
    return text("p", line, class_="cv-muted")


def render_log(run: RunView) -> str:
    """Write the last lines of the log, folded unless the training failed."""
    if not run.log.strip():
        return ""
    body = tag("pre", esc(run.log), class_="cv-train-log", tabindex="0")
    return tag(
        "details", tag("summary", "Log"), body, class_="cv-details", open=run.state == "failed", data_testid="log"
    )


def render_history(runs: Sequence[RunView], shown: str | None) -> str:
    """Write all runs, newest first; a name shows that run."""
    if not runs:
        return ""
    columns = ("Run", "Method", "State", "Started", "Time", "Best Spearman", "Best pair accuracy", "Last loss")
    numbers = {"Best Spearman", "Best pair accuracy", "Last loss"}
    head = tag("tr", *[text("th", name, scope="col", class_="cv-num" if name in numbers else None) for name in columns])
    rows = [_history_row(run, run.id == shown) for run in runs]
    table = tag("table", tag("thead", head), tag("tbody", *rows), class_="cv-table", data_testid="history")
    return tag(
        "section",
        tag("h2", "Runs"),
        tag("div", table, class_="cv-scroll cv-scroll-y", tabindex="0", role="region", aria_label="Runs"),
    )


def render_table(report: Mapping[str, Any]) -> str:
    """Write what was found in an uploaded table.

    Args:
        report: "name", "total", "used", "paired", "histogram" (counts of the ratings 1 to 5), "notes", "preview" (texts
            and labels of the first rows), "train" and "held" (numbers of rows).
    """
    peak = max(report["histogram"]) or 1
    bars = "".join(
        tag(
            "div",
            tag("span", class_="cv-train-column", style=f"height:{100 * count / peak:.0f}%"),
            text("b", rating),
            text("small", f"{count:,}"),
        )
        for rating, count in enumerate(report["histogram"], start=1)
    )
    rows = [
        tag("tr", *[text("td", cell) for cell in (row[0], row[1], row[2])], text("td", row[3], class_="cv-num"))
        for row in report["preview"]
    ]
    names = tag("tr", *[text("th", name) for name in ("sentence1", "sentence2", "condition", "label")])
    line = (
        f"{report['used']:,} of {report['total']:,} rows can be used: {report['train']:,} to train on and "
        f"{report['held']:,} to measure with. {report['paired']:,} sentence pairs have two conditions."
    )
    return tag(
        "section",
        text("h3", report["name"]),
        text("p", line),
        tag("ul", *[text("li", note) for note in report["notes"]]) if report["notes"] else "",
        text("p", "How often each rating occurs:", class_="cv-muted"),
        tag("div", bars, class_="cv-train-histogram", role="img", aria_label="How often each rating occurs"),
        tag(
            "div",
            tag("table", tag("thead", names), tag("tbody", *rows), class_="cv-table"),
            class_="cv-scroll", tabindex="0", role="region", aria_label="First rows",
        ),
        class_="cv-train-table", data_testid="table",
    )  # fmt: skip


def render_off(reason: str, space: str) -> str:
    """Say why nothing can be trained here, and where it can.

    Args:
        reason: In words.
        space: Id of the Space, "" where there is none.
    """
    href = f"https://huggingface.co/spaces/{space}?duplicate=true" if space else SPACE_GUIDE
    link = tag("a", "Duplicate this Space", href=href, target="_blank", rel="noopener", class_="cv-button")
    return tag(
        "div",
        text("strong", "Training is off on this page"),
        text("p", reason),
        tag("p", link, " ", text("span", "In your own copy, set CONDVIZ_TRAINING=1 in its settings.")),
        text("p", "Below is a recorded run, and the recipe can be composed and taken away.", class_="cv-notice-hint"),
        class_="cv-notice cv-notice-info", data_testid="training-off",
    )  # fmt: skip


def _buttons(run: RunView) -> str:
    acts = [*_BUTTONS.get(run.state, ()), *(["take"] if run.id else [])]  # the tables of the recording do not ship
    return " ".join(
        tag(
            "button", esc(_TITLES[act]), type="button", class_="cv-button", data_act=act, data_run=run.id,
            data_confirm="Delete for good?" if act == "delete" else None, data_testid=f"run-{act}",
        )
        for act in acts
    )  # fmt: skip


def _speed(run: RunView) -> str:
    """Write how fast it goes: a head on stored vectors reads no tokens."""
    if run.speed:
        return f"{run.speed:,.0f} tokens/s"
    return f"{(run.steps - run.step) / run.left:,.1f} steps/s" if run.active and run.left else ""


def _probe_row(probe: Probe) -> str:
    pair = text("div", probe.sentence1) + text("div", probe.sentence2)
    last = number(probe.scores[-1]) if probe.scores else "\N{EN DASH}"
    return tag(
        "tr",
        tag("td", pair, class_="cv-train-pair"),
        text("td", probe.condition),
        tag("td", sparkline(probe.scores), class_="cv-train-course"),
        text("td", last, class_="cv-num"),
    )


def _history_row(run: RunView, shown: bool) -> str:
    best = [run.best("spearman"), run.best("pair_accuracy")]
    loss = run.losses[-1]["loss"] if run.losses else None
    cells = [number(value, 1) if value is not None else "\N{EN DASH}" for value in best]
    name = tag(
        "button", esc(run.name), type="button", class_="cv-link", data_act="show", data_run=run.id,
        aria_current="true" if shown else None,
    )  # fmt: skip
    state = badge(STATES.get(run.state, run.state), tone="warn" if run.state in ("failed", "dead") else "plain")
    return tag(
        "tr",
        tag("th", name, scope="row"),
        text("td", run.method),
        tag("td", state),
        text("td", run.created),
        text("td", duration(run.elapsed), class_="cv-num"),
        *[text("td", cell, class_="cv-num") for cell in cells],
        text("td", number(loss, 4) if loss is not None else "\N{EN DASH}", class_="cv-num"),
        data_shown=shown or None,
    )


def metric_choices() -> list[tuple[str, str]]:
    """Give the scores that the figure can show: (title, name)."""
    return [(title, name) for name, title in METRICS.items()]
