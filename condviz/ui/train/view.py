"""A training as the page shows it: where it stands, what it has learned, and a recorded one to replay."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cache, cached_property, lru_cache
from typing import TYPE_CHECKING, Any

from cachetools import LRUCache, cached

from condviz.errors import CondvizError
from condviz.evaluation.metrics import COUNTED, Verdict, between, counted, judge_rise, wilson
from condviz.methods.catalog import CATALOG
from condviz.models.registry import describe
from condviz.paths import ASSETS
from condviz.plots.svg import Curve, draw_curves
from condviz.types import plain
from condviz.ui.markup import render
from condviz.ui.state import pair_link, write_link
from condviz.ui.train.recipe import LINK_KEYS, QUALITIES

if TYPE_CHECKING:
    from condviz.training.job import Job
    from condviz.training.preflight import Preflight

RECORDING = ASSETS / "training_replay.jsonl"
REPLAY_SECONDS = 24.0
"""How long the recording takes on the page, whatever it took."""
ACTIVE = ("queued", "running", "stopping")
STATES = {"dead": "process gone", "recorded": "recorded"}
"""How states are called where their own name will not do."""
ACTIONS = {
    "queued": ("stop",),
    "running": ("stop",),
    "stopped": ("resume", "rerun", "delete"),
    "failed": ("resume", "rerun", "delete"),
    "dead": ("resume", "rerun", "delete"),
    "done": ("rerun", "delete"),
    "recorded": ("replay",),
}
TITLES = {"stop": "Stop", "resume": "Resume", "rerun": "Run again", "delete": "Delete", "replay": "Replay"}
FIGURES = {
    "pair_accuracy": ("puts {} held-back pairs in the right order", "Held-back pairs ordered right, %", 1),
    "spearman": ("follows the held-back ratings with a correlation of {}", "Spearman × 100", 1),
    "hits@1": ("ranks the right entity first for {} % of the held-back triples", "Hits@1, %", 100),
    "MRR": ("", "", 100),
}
"""Figure -> how it is said, its title, and what it is multiplied by; the first that was measured is shown."""
STAGES = {"preparing": "reads the data and the encoder", "training": "trains", "finishing": "saves the model"}
"""Phase of a training -> what it does then."""
CHANCE = {"pair_accuracy": {"by chance": 50.0}}
"""Figure -> its levels that do not come from the training."""
LOG_LINES = 60


@dataclass(frozen=True)
class RunView:
    """One training, or the recorded one."""

    id: str
    """What names it to the server; "" is the recording."""
    name: str
    method: str
    state: str
    """Of the job; "dead" where its process is gone, or "recorded"."""
    reason: str = ""
    phase: str = ""
    step: int = 0
    steps: int = 0
    """0 while unknown."""
    elapsed: float | None = None
    left: float | None = None
    speed: float | None = None
    """Seconds since the start and to the end, tokens per second; None while unknown."""
    records: tuple[Mapping[str, Any], ...] = ()
    probes: tuple[tuple[str, str, str], ...] = ()
    """Texts of the pairs that are scored along the way."""
    log: str = ""
    """Its last lines; "" for those who may not read them."""
    recipe: Mapping[str, Any] = field(default_factory=dict)
    created: str = ""
    mine: bool = True
    """Whether this visitor may stop and delete it."""

    @property
    def ended(self) -> bool:
        """Whether it has come to its end with a model."""
        return self.state in ("done", "recorded") and self.left is None

    @cached_property
    def measured(self) -> list[Mapping[str, Any]]:
        """The start and the evaluations, as far as they have figures."""
        return [r for r in self.records if r["event"] in ("start", "evaluation") and r.get(self.figure) is not None]

    @cached_property
    def figure(self) -> str:
        """Key of the figure to show; "" before anything was measured."""
        return next((key for key in FIGURES if any(r.get(key) is not None for r in self.records)), "")

    @property
    def start(self) -> Mapping[str, Any]:
        """The figures before training; {} while there are none."""
        return next((record for record in self.measured if record["event"] == "start"), {})

    @cached_property
    def kept(self) -> Mapping[str, Any]:
        """The evaluation whose weights are kept, or would be now; {} before the first."""
        found = [record for record in self.measured if record["event"] == "evaluation"]
        if self.recipe.get("keep") == "last":
            return found[-1] if found else {}
        chooses = "MRR" if "graph" in self.recipe else "spearman"
        ranked = [record for record in found if record.get(chooses) is not None] or found[:1]

        def rank(record: Mapping[str, Any]) -> tuple[float, int, int]:  # as `SentenceTask.rank`
            pearson = record.get("pearson")
            return record.get(chooses) or 0.0, round(pearson or 0.0), 0 if pearson is None else record["step"]

        return max(ranked, key=rank, default={})

    @property
    def losses(self) -> list[Mapping[str, Any]]:
        return [record for record in self.records if record.get("loss") is not None]

    @property
    def stamp(self) -> tuple[object, ...]:
        """What changes when the figures have to be drawn anew."""
        return self.id, self.state, len(self.records)

    def curve(self) -> Curve:
        """Return the figure over the steps. What is kept is chosen by rank, and need not be the highest point."""
        scale, rows = FIGURES[self.figure][2] if self.figure else 1, self.measured
        kept = self.kept["step"] if self.kept and self.ended else None
        values = [scale * row[self.figure] for row in rows]
        return Curve([row["step"] for row in rows], values, kept, self.steps, self.name)

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON, without the recipe: clients of gradio take every "path" in it for a file to download."""
        names = [one.name for one in fields(self) if one.name not in ("recipe", "records", "mine")]
        content = {name: getattr(self, name) for name in names}
        return plain(content | {"losses": self.losses, "evaluations": self.measured})


def view_job(job: Job, token: str | None, *, log: bool = False) -> RunView:
    """Read a job for a visitor with a token, see `Job.may_change`; its `log`, too, if that is wanted."""
    mine, beat = job.may_change(token), job.heartbeat
    return RunView(
        id=job.id, name=job.name, method=str(job.recipe.get("method", "")), state=job.state,
        reason=job.reason if mine or job.state != "failed" else "",
        phase=beat.phase if job.state == "running" else "", step=beat.step, steps=beat.steps, elapsed=job.elapsed,
        left=job.seconds_left, speed=beat.tokens_per_second, records=tuple(job.records()), recipe=job.recipe, mine=mine,
        probes=job.status.probes if mine else (),  # of the owner's table
        log="\n".join(job.log().splitlines()[-LOG_LINES:]) if log and mine else "",
        created=_started(job),
    )  # fmt: skip


@cache
def load_recording() -> tuple[dict[str, Any], ...]:
    """Read the recorded training: a head with recipe, probes and ratings, then records with "time" in seconds."""
    try:
        return tuple(json.loads(line) for line in RECORDING.read_text(encoding="utf-8").splitlines() if line)
    except (OSError, ValueError):
        return ()


def replay(seconds: float | None = None) -> RunView | None:
    """Return the recorded training as it stood so many seconds after the replay was started; None shows the end."""
    if not load_recording():
        return None
    head, *rest = load_recording()
    begin, whole = float(rest[0]["time"]), float(rest[-1]["time"])  # before, data and encoder are read
    now = whole if seconds is None else min(whole, begin + seconds / REPLAY_SECONDS * (whole - begin))
    records = tuple(record for record in rest if record["time"] <= now)
    return RunView(
        "", head["recipe"]["name"], head["recipe"]["method"], "recorded", head["about"],
        step=records[-1]["step"], steps=max(int(record.get("steps", 0)) for record in rest),
        elapsed=now, left=whole - now if now < whole else None, records=records,
        probes=tuple(map(tuple, head["probes"])), recipe=head["recipe"],
    )  # fmt: skip


def render_curve(run: RunView, others: Sequence[RunView]) -> str:
    """Draw the figure over the steps, with where it started, chance, and other trainings that measure the same."""
    scale, levels = FIGURES.get(run.figure, ("", "", 1))[2], CHANCE.get(run.figure, {})
    if run.start:
        levels = {**levels, f"{_start_of(run)} before training": scale * run.start[run.figure]}
    same = [other.curve() for other in others if other.figure == run.figure]
    return draw_curves([run.curve(), *same], FIGURES.get(run.figure, ("", "", 1))[1], levels=levels)


def _start_of(run: RunView) -> str:
    name = run.recipe.get("init")
    try:
        return describe(name).title if name else "the pretrained encoder"
    except CondvizError:  # it is gone by now
        return str(name)


def render_loss(run: RunView) -> str:
    """Draw the loss over the steps."""
    rows = run.losses
    curve = Curve([row["step"] for row in rows], [row["loss"] for row in rows], end=run.steps)
    return draw_curves([curve], "loss", digits=4) or render("train/none.html", text="No loss was logged yet.")


def headline(run: RunView) -> str:
    """Return one sentence that says where a training stands and what it has reached."""
    start, kept = run.start, run.kept
    if run.state in ("failed", "dead", "stopped") and not kept:
        return f"“{run.name}” has no model."
    if run.state == "queued":
        return f"“{run.name}” is queued and starts when the training before it ends."
    if not kept:
        return f"“{run.name}” {STAGES.get(run.phase, 'trains')}."
    now, before = _reached(run.figure, kept), _reached(run.figure, start, whole=False) if start else ""
    said = FIGURES[run.figure][0].format(now) + _interval(kept)
    told = f"“{run.name}” {'' if run.ended else 'so far '}{said}"
    if not before:
        return f"{told}."
    both = [key for key in FIGURES if None not in (start.get(key), kept.get(key))]
    verdicts = [verdict for key in both if (verdict := _judged(run, key)) is not None]
    sure = any(verdict.says == "more" for verdict in verdicts)
    if not sure and any(verdict.says == "few" for verdict in verdicts):
        return f"{told}; before training it was {before}. So few rows cannot tell whether training has helped."
    full = start.get("pair_accuracy") == 100
    both_full = full and kept.get("pair_accuracy") == 100
    same = f" {'All are in order both times: these' if both_full else 'These'} rows show no clear difference."
    advice = "" if sure or not verdicts else same
    if run.ended and not sure and all(kept[key] <= start[key] for key in both):
        advice = "all were in order before" if full else "try more rows, or a lower learning rate"
        advice = f" Training has not helped: {advice}."
    return f"{told}; before training it was {before}.{advice}"


def _reached(figure: str, record: Mapping[str, Any], *, whole: bool = True) -> str:
    """Return a figure as the headline names it, as a `whole` with what it rests on where that is known."""
    value, rows = record[figure], record.get("rows")
    if figure == "spearman":
        return f"{value / 100:.2f}" + (f" ({rows:,} rows)" if rows and whole else "")
    if figure != "pair_accuracy" or not rows:
        return f"{FIGURES[figure][2] * value:.0f}" + (" % of the" if figure == "pair_accuracy" and whole else "")
    pairs = record.get("pairs", rows // 2)
    return counted(value / 100, pairs) + (f" of {pairs:,}" if pairs >= COUNTED and whole else "")


def _interval(record: Mapping[str, Any]) -> str:
    """Return the 95 % interval of a pair accuracy as headlines name it; "" where nothing tells of how many pairs."""
    pairs = record.get("pairs", record.get("rows", 0) // 2)
    if record.get("pair_accuracy") is None or pairs < COUNTED:
        return ""
    low, high = wilson(record["pair_accuracy"] / 100, pairs)
    return f" ({between(100 * low, 100 * high)})"


def _tries(run: RunView) -> int:
    """Return how many evaluations the kept one was chosen from, at least 1."""
    found = sum(record["event"] == "evaluation" for record in run.measured)
    return 1 if run.recipe.get("keep") == "last" else max(1, found)


def _judged(run: RunView, figure: str) -> Verdict | None:
    """Judge how far a figure has risen; None where nothing tells of how many rows it is.

    The best of several evaluations is kept: each of them was looked at.
    """
    rows = run.kept.get("rows")
    if not rows or figure not in ("pair_accuracy", "spearman"):
        return None
    count = run.kept.get("pairs", rows // 2) if figure == "pair_accuracy" else rows // 2  # two rows a sentence pair
    before, after = (record[figure] / 100 for record in (run.start, run.kept))
    return judge_rise(before, after, count, correlation=figure == "spearman", tries=_tries(run))


def render_run(run: RunView, *, focus: bool = False, asked: bool = False) -> str:
    """Render name, state, progress and buttons of a training, and what it has reached in a sentence.

    `focus` brings one that was just started into view; what a link `asked` for is not the tab's own example.
    """
    ranks = [f"{record['spearman']:.0f}" for record in (run.start, run.kept) if record.get("spearman") is not None]
    kept = run.kept.get("step", run.step) if run.state == "done" else run.step
    facts = [
        ("step", f"{run.step:,} of {run.steps:,}" if run.steps else ""),
        ("kept", f"step {kept:,}, which orders the rows held back best" if kept != run.step else ""),
        ("started", run.created),
        ("time", duration(run.elapsed) if run.elapsed else ""),
        ("left", f"about {duration(run.left)}" if run.left is not None else ""),
        ("Spearman × 100", " → ".join(ranks) if run.figure != "spearman" else ""),
        ("speed", f"{run.speed:,.0f} tokens/s" if run.speed and run.state in ACTIVE else ""),
    ]
    actions = {name: TITLES[name] for name in ACTIONS.get(run.state, ()) if run.mine}
    return render(
        "train/run.html", run=run, headline=headline(run), state=STATES.get(run.state, run.state), actions=actions,
        stages=STAGES if run.phase else (),
        facts=[(name, value) for name, value in facts if value], focus=focus, asked=asked,
        share=100 * run.step / run.steps if run.steps else 0.0, title=FIGURES.get(run.figure, ("", "", 1))[1],
        link=write_link("train", [("run", run.id)]), keys=" ".join(LINK_KEYS),
    )  # fmt: skip


def render_learned(run: RunView, ratings: Mapping[tuple[str, str, str], float], errors: str = "") -> str:
    """Render the held-back rows that were scored along the way: rating, score before training, score now.

    `errors` is the link to all of them in Errors, "" for none.
    """
    scored = [record["probes"] for record in run.records if record.get("probes")]
    if not scored or not run.probes:
        return ""
    kept = run.kept.get("probes") or scored[-1]
    rows = [
        {"pair": probe[:2], "condition": probe[2], "rating": ratings.get(probe), "before": before, "now": now}
        for probe, before, now in zip(run.probes, scored[0], kept, strict=False)
    ]
    pair = run.probes[0][:2]
    asked = [probe[2] for probe in run.probes if probe[:2] == pair]
    link = pair_link("compare", pair, asked, run.name) if run.state == "done" else ""
    held = any(row["rating"] for row in rows)
    return render("train/learned.html", rows=rows, link=link, errors=errors if link else "", held=held)


def find_ratings(run: RunView) -> dict[tuple[str, str, str], float]:
    """Find the ratings of the rows held back; none where they cannot be read, which the training itself reports."""
    if run.id:
        try:
            return _ratings(json.dumps(run.recipe.get("validation", ())))
        except (CondvizError, OSError):  # not kept: a file may come back
            return {}
    head = load_recording()[0]
    return {tuple(probe): rating for probe, rating in zip(head["probes"], head.get("ratings", ()), strict=False)}


@lru_cache(maxsize=8)
def _ratings(sources: str) -> dict[tuple[str, str, str], float]:
    from condviz.training.data import load_source
    from condviz.training.recipes import Source

    rows = [row for source in json.loads(sources) for row in load_source(Source(**source))]
    return {row.texts: row.label for row in rows}


def render_runs(jobs: Sequence[Job], shown: str, over: Sequence[str], *, shared: bool) -> str:
    """Render trainings, newest first: a name shows that one, a switch draws its curve beside the one `shown`.

    Where the page is `shared`, they are the visitor's own.
    """
    rows = [
        {"job": job, "method": CATALOG[job.recipe["method"]].title, "state": STATES.get(job.state, job.state),
         "started": _started(job), "time": duration(job.elapsed),
         "best": _best_of_ended(job) if job.status.ended else _best(job)}
        for job in jobs
    ]  # fmt: skip
    return render("train/runs.html", rows=rows, shown=shown, over=over, shared=shared)


def _best(job: Job) -> tuple[float | None, float | None]:
    """Read what the kept weights reach: Spearman and pair accuracy."""
    run = RunView(job.id, job.name, "", job.state, records=tuple(job.records()), recipe=job.recipe)
    return run.kept.get("spearman"), run.kept.get("pair_accuracy")


# Logs are long, and all trainings are shown again at every tick.
_best_of_ended = cached(LRUCache(1_000), key=lambda job: (job.folder, job.status.ended), lock=threading.Lock())(_best)


def _started(job: Job) -> str:
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(job.status.created))


def render_check(found: Preflight) -> str:
    """Render what a training will take, or the problems that block it."""
    memory = f" and {found.memory / 1e9:.1f} GB of memory" if found.memory else ""
    minutes = f", about {duration(60 * found.minutes)}{memory} on this machine" if found.minutes is not None else ""
    return render("train/check.html", found=found, takes=minutes)


def label_qualities(minutes: Mapping[str, float]) -> list[tuple[str, str]]:
    """Return the choices of thoroughness, with the time that each takes here where a check has measured it."""
    times = {name: f" (about {duration(60 * found)})" for name, found in minutes.items()}
    return [(label + times.get(name, ""), name) for name, label in QUALITIES.items()]


def duration(seconds: float | None) -> str:
    """Format a time as people say it: "45 s", "3 min 20 s", "2 h 5 min"; an unknown one as an en dash."""
    if seconds is None or seconds != seconds:
        return "\N{EN DASH}"
    whole = max(0, round(seconds))
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    if minutes < 60:
        return f"{minutes} min {rest} s" if rest and minutes < 10 else f"{minutes} min"
    return f"{minutes // 60:,} h {minutes % 60} min"
