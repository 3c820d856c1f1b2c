"""Which model for me: three questions, and how right the models are against how much work they are, in one picture."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlencode

import gradio as gr

from condviz.evaluation.leaders import leading
from condviz.evaluation.metrics import Metric
from condviz.evaluation.scoreboard import Board
from condviz.plots.svg import Axis
from condviz.types import ModelInfo
from condviz.ui.markup import html, read_asset, render
from condviz.ui.state import Values, first

TASKS = {"pair": "compare two sentences", "many": "search or map many texts", "words": "see which words count"}
PATIENCE = {
    "least": ("as little as possible", 2.0),
    "some": ("a little more", 8.0),
    "any": ("does not matter", math.inf),
}
"""How much more work than the cheapest model that can do it a model may be."""
PLACES = {"cpu": "a laptop or a small server", "gpu": "a GPU"}
PART = "csts"
"""Of the benchmark: rated by people."""


def can(info: ModelInfo, task: str) -> bool:
    """Whether a trained model can do what is asked."""
    able = {"pair": True, "many": info.encodes, "words": info.has_router}[task]
    return able and info.trained and info.conditional and not (info.graph or info.missing)


def allowed(work: Mapping[str, float], patience: str, place: str) -> list[str]:
    """Return the models that are quick enough; on a GPU, where work costs little, one may be one step more patient."""
    steps = list(PATIENCE)
    step = min(len(steps) - 1, steps.index(patience) + (place == "gpu"))
    most = PATIENCE[steps[step]][1] * min(work.values(), default=0.0)
    return [name for name, one in work.items() if one <= most]


class Choose:
    """Questions, answer and picture; lay it out inside its section."""

    def __init__(self) -> None:
        with gr.Row(elem_classes="cv-models-choose"):
            self.task, self.patience, self.place = (
                gr.Radio([(title, name) for name, title in choices], value=start, label=label, min_width=200)
                for label, start, choices in (
                    ("What do you want to do?", "pair", TASKS.items()),
                    ("How much time may an answer take?", "any", [(name, one) for name, (one, _) in PATIENCE.items()]),
                    ("Where does it run?", "cpu", PLACES.items()),
                )
            )
        script = "condviz.models(element, (data) => trigger('card', data), (data) => trigger('sort', data));"
        self.answer = html("", elem_id="cv-models-answer", script=script)
        self.fields = [self.task, self.patience, self.place]

    def restore(self, values: Values) -> dict[Any, str]:
        """Return the answers that a link has."""
        pairs = zip(self.fields, ("task", "time", "place"), (TASKS, PATIENCE, PLACES), strict=True)
        return {one: found if (found := first(values, key)) in known else next(iter(known)) for one, key, known in pairs
                if first(values, key)}  # fmt: skip

    def show(self, infos: Sequence[ModelInfo], board: Board, task: str, patience: str, place: str) -> dict:
        """Answer, and draw all models that were measured."""
        efforts = read_asset("effort.json") or {}
        kind = "pair" if task == "words" else task
        right: dict[str, Metric] = {}
        for info in infos:
            scores = board.find(info.name, PART)
            if info.name in efforts and scores and info.trained and scores.pair_accuracy.value is not None:
                right[info.name] = scores.pair_accuracy
        work = {name: float(efforts[name][kind]) for name in right}
        able = {info.name: work[info.name] for info in infos if info.name in right and can(info, task)}
        quick = allowed(able, patience, place)
        best = leading({name: right[name] for name in quick})
        noted = urlencode({"task": task, "time": patience, "place": place})
        shown = {"best": best, "right": right, "work": work, "titles": {info.name: info.title for info in infos}}
        return {
            self.answer: render(
                "models/choose.html", noted=noted, count=len(quick), **shown, **_place(right, work, quick, best)
            )
        }


def _place(right: Mapping[str, Metric], work: Mapping[str, float], quick: Sequence[str], best: Sequence[str]) -> dict:
    """Place the models in the picture: work across, on a scale of factors, and accuracy up, with its interval."""
    if not right:
        return {"points": (), "across": (), "up": ()}
    most = max(work.values())
    x = Axis(math.log10(min(work.values())) - 0.65, math.log10(most) + 0.1, 0, 100)  # names stand left of their dots
    y = Axis(min(one.low for one in right.values()) - 2, max(one.high for one in right.values()) + 2, 100, 0)
    points = []
    for name, one in sorted(right.items(), key=lambda found: found[0] in quick):
        beaten = any(right[other].value > one.value and work[other] <= work[name] for other in right if other != name)
        points.append({
            "name": name, "x": x.place(math.log10(work[name])), "y": y.place(one.value), "low": y.place(one.low),
            "high": y.place(one.high), "quick": name in quick, "best": name in best[:1], "named": not beaten,
        })  # fmt: skip
    ticks = [
        (x.place(math.log10(times)), f"{times} ×") for times in (1, 2, 5, 10, 20, 50, 100, 200, 500) if times <= most
    ]
    return {"points": points, "across": ticks, "up": y.ticks()}
