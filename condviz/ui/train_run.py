"""A training as the page shows it: plain values, made from a job or from the recording that ships with the page."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from condviz.paths import ASSETS

if TYPE_CHECKING:
    from condviz.plots.training import Curve

RECORDING = ASSETS / "training_replay.jsonl"
REPLAY_SECONDS = 24.0
"""How long the recording takes on the page, whatever it took."""
ACTIVE = ("queued", "running", "stopping")
METRICS = {"spearman": "Spearman", "pearson": "Pearson", "pair_accuracy": "Pair accuracy"}


@dataclass(frozen=True)
class Probe:
    """One pair that is scored at each evaluation.

    Attributes:
        sentence1, sentence2, condition: Texts.
        scores: One per evaluation, in order.
    """

    sentence1: str
    sentence2: str
    condition: str
    scores: tuple[float, ...] = ()


@dataclass(frozen=True)
class RunView:
    """One training.

    Attributes:
        id: What names it to the server; "" is the recording.
        name, method: Of the model.
        state: "queued", "running", "stopping", "stopped", "failed", "done", "dead" or "recorded".
        reason: Why it stands so, in words.
        phase: What a running one does: "preparing", "training" or "finishing".
        step, steps: Of the optimizer; steps is 0 while unknown.
        elapsed, idle, left: Seconds since the start, since the last sign of life, and to the end, None while unknown.
        speed: Tokens per second, None while unknown.
        losses: Records with step and loss.
        evaluations: Records with step and the scores times 100.
        probes: The pairs scored at each evaluation.
        log: Its last lines.
        recipe: The recipe as plain JSON.
        created: When it was started, for people.
    """

    id: str
    name: str
    method: str
    state: str
    reason: str = ""
    phase: str = ""
    step: int = 0
    steps: int = 0
    elapsed: float | None = None
    idle: float | None = None
    left: float | None = None
    speed: float | None = None
    losses: tuple[Mapping[str, Any], ...] = ()
    evaluations: tuple[Mapping[str, Any], ...] = ()
    probes: tuple[Probe, ...] = ()
    log: str = ""
    recipe: Mapping[str, Any] = field(default_factory=dict)
    created: str = ""

    @property
    def active(self) -> bool:
        """Whether something may still happen to it by itself."""
        return self.state in ACTIVE

    @property
    def title(self) -> str:
        """A name that tells runs of one recipe apart."""
        return f"{self.name}, {self.created}" if self.created else self.name

    @property
    def stamp(self) -> list[Any]:
        """What changes when the figures have to be drawn anew."""
        return [self.id, self.state, len(self.losses), len(self.evaluations)]

    def loss_curve(self) -> Curve:
        """Give the loss over the steps."""
        return _curve(self.title, self.losses, "loss")

    def score_curve(self, metric: str) -> Curve:
        """Give a score over the steps; `metric` is a key of `METRICS`."""
        return _curve(self.title, self.evaluations, metric)

    def best(self, metric: str) -> float | None:
        """Give the highest value of a score, None without any."""
        return max((row[metric] for row in self.evaluations if row.get(metric) is not None), default=None)


def with_records(run: RunView, records: Sequence[Mapping[str, Any]]) -> RunView:
    """Add what a log of a training holds.

    Args:
        run: The training.
        records: As `condviz.training.loop.Log` writes them; "event" is "start", "step", "evaluation" or "end".
    """
    losses = tuple(record for record in records if record.get("loss") is not None)
    evaluations = tuple(record for record in records if record.get("event") == "evaluation")
    scored = [record["probes"] for record in records if isinstance(record.get("probes"), list)]
    probes = tuple(
        replace(probe, scores=tuple(scores[i] for scores in scored if i < len(scores) and scores[i] is not None))
        for i, probe in enumerate(run.probes)
    )
    speed = next((r["tokens_per_second"] for r in reversed(losses) if r.get("tokens_per_second")), None)
    last = max((int(record.get("step", 0)) for record in records), default=0)
    steps = max((int(record.get("steps", 0)) for record in records), default=0)
    return replace(
        run, losses=losses, evaluations=evaluations, probes=probes, speed=run.speed or speed,
        step=max(run.step, last), steps=run.steps or steps,
    )  # fmt: skip


def load_recording() -> list[dict[str, Any]]:
    """Read the recording: one record with the recipe and probes, then the log, each record with "time" in seconds."""
    if not RECORDING.is_file():
        return []
    return [json.loads(line) for line in RECORDING.read_text(encoding="utf-8").splitlines() if line]


def replay(records: Sequence[Mapping[str, Any]], seconds: float | None) -> RunView | None:
    """Give the recorded training as it stood.

    Args:
        records: From `load_recording`.
        seconds: Since the replay was started; None shows the end.
    """
    if not records:
        return None
    head, *rest = records
    begin, whole = float(rest[0]["time"]), float(rest[-1]["time"])  # before, data and encoder are read
    now = whole if seconds is None else min(whole, begin + seconds / REPLAY_SECONDS * (whole - begin))
    probes = tuple(Probe(*texts) for texts in head["probes"])
    run = RunView(
        "", head["recipe"]["name"], head["recipe"]["method"], "recorded", head["about"],
        elapsed=now, left=whole - now if now < whole else None,
        probes=probes, recipe=head["recipe"], steps=max(int(record.get("steps", 0)) for record in rest),
        log=head.get("log", ""),
    )  # fmt: skip
    return with_records(run, [record for record in rest if record["time"] <= now])


def _curve(name: str, records: Sequence[Mapping[str, Any]], key: str) -> Curve:
    from condviz.plots.training import Curve  # imports plotly

    return Curve(name, [record["step"] for record in records], [record.get(key) for record in records])
