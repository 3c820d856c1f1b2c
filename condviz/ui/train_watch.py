"""What the runs of the Train tab do on each event. Every handler yields {component name: update}; no layout here."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import gradio as gr

from condviz.errors import CondvizError, DataError
from condviz.ui.html import notice
from condviz.ui.plotly_panel import panel_update
from condviz.ui.train_run import METRICS, RunView, replay
from condviz.ui.train_service import TrainService
from condviz.ui.train_view import (
    render_baselines,
    render_head,
    render_history,
    render_log,
    render_probes,
    render_progress,
)

Step = dict[str, Any]
Record = dict[str, Any]
MAX_COMPARED = 6
_OURS = "Nothing has been trained here yet. This run comes with the program."
_EMPTY = "Nothing has been trained here yet. Choose a recipe, press Check, then Start training."


class WatchHandlers:
    """The behaviour of the runs over a service; what a visitor looks at is in the state `shown`.

    `shown` holds "run" (id; None for the newest, "" for the recording), "replay" (Unix time at which a replay was
    started, or None), and "drawn": what is on screen, so that a tick sends only what has changed.
    """

    def __init__(self, service: TrainService) -> None:
        """Keep the service."""
        self.service = service

    def opened(self, shown: Record, others: list[str], metric: str) -> Iterator[Step]:
        """Show the run that was looked at last, or the newest."""
        yield self._paint({**shown, "drawn": None}, others, metric)

    def tick(self, shown: Record, others: list[str], metric: str) -> Iterator[Step]:
        """Show what has happened since."""
        yield self._paint(shown, others, metric)

    def started(self, wanted: str, shown: Record, others: list[str], metric: str) -> Iterator[Step]:
        """Look at the run that has just been put into the queue."""
        if not wanted:
            yield {"timer": gr.skip()}
            return
        yield self._paint({"run": wanted, "replay": None, "drawn": None}, others, metric)

    def compare(self, shown: Record, others: list[str], metric: str) -> Iterator[Step]:
        """Draw other runs, or another score."""
        yield self._paint({**shown, "drawn": None}, others, metric)

    def act(self, data: Any, shown: Record, others: list[str], metric: str) -> Iterator[Step]:  # noqa: ANN401 - from the browser
        """Do what a button of a run asks for."""
        act, id = str((data or {}).get("act")), str((data or {}).get("run", ""))
        step: Step = {"notice": ""}
        if act in ("show", "replay"):
            shown = {"run": id, "replay": time.time() if act == "replay" else None, "drawn": None}
        else:
            shown = {**shown, "run": self.service.act(act, id) or None, "drawn": None}
            if act == "delete":
                line = "Its finished model stays, if there is one."
                step["notice"] = notice("Deleted", line, tone="info")
        yield {**step, **self._paint(shown, others, metric)}

    def pack(self, shown: Record) -> Iterator[Step]:
        """Offer the finished model as a zip file."""
        yield {"notice": notice("Packing", "The model is put into a zip file.", tone="busy")}
        path = self.service.pack(self._chosen(shown))
        size = path.stat().st_size / 1e6
        yield {
            "notice": "",
            "zip": gr.update(value=str(path), label=f"Save {path.name} ({size:,.1f} MB)", visible=True),
        }

    def push(self, repository: str, token: str, private: bool, shown: Record) -> Iterator[Step]:
        """Put the finished model on the hub; the token leaves the form whatever happens."""
        yield {"token": "", "notice": notice("Sending", "The model is on its way to the hub.", tone="busy")}
        address = self.service.push(self._chosen(shown), repository, token=token, private=private)
        yield {"notice": notice("On the hub", f"The model is at {address}.", tone="info")}

    def _chosen(self, shown: Record) -> str:
        run = self._run(shown, self.service.runs())
        if run is None or not run.id:
            raise DataError("No run of this machine is shown. Choose one in the table.")
        return run.id

    def _paint(self, shown: Record, others: Sequence[str], metric: str) -> Step:
        if metric not in METRICS:
            raise DataError(f"There is no score {str(metric)[:40]!r}; choose one of {', '.join(METRICS.values())}.")
        runs = self.service.runs()
        run = self._run(shown, runs)
        active = any(one.active for one in runs) or (run is not None and run.state == "recorded" and bool(run.left))
        step: Step = {"timer": gr.Timer(active=active)}
        if any(one.state == "done" for one in runs):
            step["known"] = list(self.service.add_models())
        if run is None:
            return {**step, **_nothing(), "shown": {**shown, "drawn": None}}
        # What has buttons is written anew only where something has changed: a click or the focus would be lost.
        stamp = [run.stamp, [[one.id, one.state] for one in runs], metric, list(others)]
        step |= {"progress": render_progress(run), "shown": {**shown, "drawn": stamp}}
        if stamp != shown.get("drawn"):
            rest = [one for one in runs if one.id != run.id]
            step |= self._figures(run, [one for one in rest if one.id in others], metric)
            step |= {
                "run": render_head(run),
                "history": render_history(runs, run.id),
                "probes": render_probes(run),
                "others": gr.update(choices=[(one.title, one.id) for one in rest], visible=bool(rest)),
                "box_curves": gr.update(visible=True),
                "box_model": gr.update(visible=run.state == "done"),
                "zip": gr.update(visible=False),
            }
        return step | {"log": render_log(run)}

    def _run(self, shown: Record, runs: Sequence[RunView]) -> RunView | None:
        """Give the run to show: the chosen one, else the newest, else the recording."""
        chosen = shown.get("run")
        if chosen == "" or not runs:
            started = shown.get("replay")
            recorded = replay(self.service.recording, None if started is None else time.time() - started)
            return recorded if runs or not recorded else replace(recorded, reason=f"{_OURS} {recorded.reason}")
        newest = next((run for run in runs if run.state in ("running", "stopping")), runs[0])
        found = next((run for run in runs if run.id == chosen), newest)
        try:
            return self.service.run(found.id)
        except CondvizError:  # deleted in another browser meanwhile
            return found

    def _figures(self, run: RunView, others: Sequence[RunView], metric: str) -> Step:
        from condviz.plots.training import plot_curves

        drawn = [run, *others[:MAX_COMPARED]]
        losses = plot_curves([one.loss_curve() for one in drawn], "loss", digits=4)
        baselines = self.service.baselines(run, metric)
        curves = [one.score_curve(metric) for one in drawn]
        scores = plot_curves(curves, f"{METRICS[metric]}, \N{MULTIPLICATION SIGN} 100", baselines=baselines)
        so_far = " yet" if run.active else ""
        return {
            "losses": panel_update(figure=losses, message="" if run.losses else f"No step has been logged{so_far}."),
            "scores": panel_update(figure=scores, message="" if run.evaluations else f"No evaluation{so_far}."),
            "baselines": render_baselines(baselines),
        }


def _nothing() -> Step:
    return {
        "run": notice("No runs yet", _EMPTY, tone="info"),
        "progress": "",
        "history": "",
        "probes": "",
        "log": "",
        "box_curves": gr.update(visible=False),
        "box_model": gr.update(visible=False),
    }
