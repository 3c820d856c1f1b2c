"""What visitors wait for when many come at once: a server, N clients, and the time that encoding alone would take.

python -m benchmarks.load --all [--docs]
python -m benchmarks.load [--clients N] [--requests N | --every SECONDS] [--seconds N] [--models NAME,...] [--bulk]
python -m benchmarks.load --lesson --every 15

A closed loop: each client asks again as soon as it has its answer, until so many requests or seconds are over. With
--every an open loop: each asks once in so many seconds, whether it has its answer or not, and waits are counted from
the moment at which it should have asked.
Seconds count only on a machine that does nothing else; the ratios of processor time hold on a busy one, too.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import random
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlencode

import httpx
import numpy as np

from benchmarks.common import Result, options, report
from benchmarks.page import free_port, start_page, stop
from condviz.data.scenes import load_aspects, load_families
from condviz.models.registry import describe, list_models
from condviz.ui.pool import ModelPool

NUM_CONDITIONS = 5
BARS = "data-ready"
"""Stands in the message with the bars of the page."""
FIRST, MANY = 50, 5_000
"""Requests after which memory is read, beside start and end; after the first of them it counts as warm."""
SORTED = 500
"""Comparisons at most that are scored in one sorted batch, too: what one costs no longer changes with more."""
BULK_POINTS = 5_000
MAP = (None, True, "umap", 15, 0.1, 0)
"""What /embedding_map takes behind the model: every sentence under the condition, the rest as by default."""
IDLE_SHARE = 0.1
"""Processor seconds in a second below which the server counts as idle."""
OPEN_S, GIVE_UP_S = 60.0, 600.0
"""Length of an open loop, and at most of a closed one or of a request."""
ALLOWED_P95_S, ALLOWED_RATIO, ALLOWED_SPREAD, ALLOWED_BULK, ALLOWED_MB = 2.0, 1.5, 2.0, 2.0, 300
LIMIT_MB = 2200
"""Own memory of a server with all shipped models loaded, in 10^6 bytes."""
Job = tuple[str, str, list[str]]


@dataclass(frozen=True)
class Plan:
    """How the server is driven.

    Attributes:
        clients: Visitors at once.
        requests: Of all together, in a closed loop.
        every: Seconds between two requests of one visitor, in an open loop; 0 for a closed one.
        seconds: Length at most; 0 for `OPEN_S` or `GIVE_UP_S`.
        models: Names of models; empty for the default of the page, asked as the page asks.
        bulk: Two of the largest maps are drawn over and over meanwhile.
        lesson: They are students, each changing the texts of the same figure of a lesson.
    """

    clients: int = 30
    requests: int = 150
    every: float = 0.0
    seconds: float = 0.0
    models: tuple[str, ...] = ()
    bulk: bool = False
    lesson: bool = False


@dataclass
class Load:
    """What came out.

    Attributes:
        waits: Seconds of each request.
        errors: Messages of those that failed.
        jobs: What was asked.
        wall, cpu: Seconds of the whole, and of the server's processor time.
        memory: Requests answered -> resident memory of the server in 10^6 bytes.
        bulk: Bulk jobs that ended.
    """

    waits: list[float] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    jobs: list[Job] = field(default_factory=list)
    wall: float = 0.0
    cpu: float = 0.0
    memory: dict[int, float] = field(default_factory=dict)
    bulk: int = 0

    def quantile(self, share: float) -> float:
        """Return the wait that a share of the requests stayed below."""
        return float(np.quantile(self.waits, share)) if self.waits else float("nan")


def make_jobs(seed: int = 0) -> Iterator[Job]:
    """Yield comparisons without end; no sentence comes twice."""
    draw = random.Random(seed)
    scenes = [scene.text for family in load_families() for scene in family.scenes]
    phrasings = sorted({text for aspect in load_aspects().values() for text in aspect.phrasings})
    for number in itertools.count(seed * 1_000_000):
        first, second = draw.sample(scenes, 2)
        yield f"{first} ({number})", f"{second} ({number})", draw.sample(phrasings, NUM_CONDITIONS)


class Server:
    """A server in its own process, and how to call it."""

    def __init__(self) -> None:
        """Start it, and load every model; one that cannot is ended."""
        port = free_port()
        self.process = start_page(port)
        try:
            self._prepare(port)
        except BaseException:
            stop(self.process)
            raise

    def _prepare(self, port: int) -> None:
        """Find the events, and load every model."""
        self.api = f"http://127.0.0.1:{port}/gradio_api"
        config = httpx.get(f"http://127.0.0.1:{port}/config", timeout=GIVE_UP_S).json()
        ids = {part["props"].get("elem_id"): part["id"] for part in config["components"]}
        events = [d for d in config["dependencies"] if d["backend_fn"]]  # the others only cancel
        targets = {tuple(target): d["id"] for d in events for target in d["targets"]}
        self.page_event, self.lesson_event = targets[ids["cv-run"], "click"], targets[ids["cv-learn-top"], "ask"]
        self.step_event = targets[ids["cv-learn-top"], "go"]
        self.events = {d["api_name"]: d["id"] for d in config["dependencies"]}
        values = {part["id"]: part["props"].get("value") for part in config["components"]}
        self.defaults = {d["id"]: [values[one] for one in d["inputs"]] for d in config["dependencies"]}
        self.default = ModelPool().default
        asyncio.run(self._warm())
        self._settle()

    async def _warm(self) -> None:
        async with httpx.AsyncClient(timeout=GIVE_UP_S) as client:
            jobs = make_jobs(seed=900)
            await self.compare(client, "warm", next(jobs), tuple(list_models()))
            await self.compare(client, "warm", next(jobs), ())

    def _settle(self) -> None:
        """Wait until what the tabs prepare ahead is done, which the first visitors of a day share the cores with."""
        used = -IDLE_SHARE
        while self.cpu() - used >= IDLE_SHARE:
            used = self.cpu()
            time.sleep(1)

    async def compare(self, client: httpx.AsyncClient, visitor: str, job: Job, models: Sequence[str]) -> float:
        """Compare by the endpoint, or, without models, by the button of the page. See `call`."""
        sentence1, sentence2, conditions = job
        if models:
            given = [sentence1, sentence2, conditions, list(models)]
            return await self.call(client, visitor, self.events["compare"], given)
        data = [sentence1, sentence2, "\n".join(conditions), self.default, None]
        return await self.call(client, visitor, self.page_event, data)

    async def learn(self, client: httpx.AsyncClient, visitor: str, job: Job) -> float:
        """Change the figure of a step that compares, as a student does. See `call`."""
        texts = {"p.sentence1": job[0], "p.sentence2": job[1], "p.conditions": "\n".join(job[2])}
        query = urlencode({"t": "learn", "lesson": "respect", "step": 4} | texts)
        return await self.call(client, visitor, self.lesson_event, [], {"query": query, "quiet": False})

    async def map(self, client: httpx.AsyncClient, visitor: str, turn: int) -> None:
        """Draw the largest map that a visitor may ask for."""
        jobs = make_jobs(seed=1000 + turn)
        texts = [job[0] for job in itertools.islice(jobs, BULK_POINTS)]
        await self.call(client, visitor, self.events["embedding_map"], [texts, ["the place"], self.default, *MAP])

    async def call(
        self, client: httpx.AsyncClient, visitor: str, event: int, data: list, told: dict | None = None
    ) -> float:
        """Run an event and wait for its end; return when the answer came: the page adds words to its bars later.

        Raises:
            RuntimeError: If the server answers with an error.
        """
        given = data + self.defaults[event][len(data) :]
        body = {"data": given, "fn_index": event, "session_hash": visitor, "event_data": told}
        joined = await client.post(f"{self.api}/queue/join", json=body)
        if joined.status_code != httpx.codes.OK:
            raise RuntimeError(f"{joined.status_code}: {joined.text[:200]}")
        answered = 0.0
        async for line in self._lines(client, visitor):
            if BARS in line or '"process_completed"' in line:
                answered = answered or time.perf_counter()
            if '"process_completed"' in line:
                message = json.loads(line)
                if not message["success"] or message["output"].get("error"):
                    raise RuntimeError(str(message["output"].get("error"))[:200])
                return answered
        raise RuntimeError("The stream ended without an answer.")

    async def _lines(self, client: httpx.AsyncClient, visitor: str) -> AsyncIterator[str]:
        async with client.stream("GET", f"{self.api}/queue/data", params={"session_hash": visitor}) as stream:
            async for line in stream.aiter_lines():
                if line.startswith("data:"):
                    yield line[5:]

    def memory(self) -> float:
        """Return its own memory in 10^6 bytes, without pages of files, which the system takes back as it needs them."""
        resident, shared = Path(f"/proc/{self.process.pid}/statm").read_text().split()[1:3]
        return (int(resident) - int(shared)) * os.sysconf("SC_PAGE_SIZE") / 1e6

    def cpu(self) -> float:
        """Return the processor time it has taken, in seconds."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def drive(server: Server, plan: Plan, jobs: Iterator[Job]) -> Load:
    """Send what the plan says and wait for all of it."""
    load = Load(memory={0: server.memory()})
    limits = httpx.Limits(max_connections=None)
    start, cpu = time.perf_counter(), server.cpu()
    # An open loop must not pile up without end: past this moment nothing more is asked.
    end = start + (plan.seconds or (OPEN_S if plan.every else GIVE_UP_S))
    async with httpx.AsyncClient(timeout=GIVE_UP_S, limits=limits) as client:
        bulk = [asyncio.create_task(_bulk(server, client, load, number)) for number in range(2 if plan.bulk else 0)]
        visitors = (_visitor(server, client, plan, jobs, load, number, start, end) for number in range(plan.clients))
        await asyncio.gather(*visitors)
        load.wall, load.cpu = time.perf_counter() - start, server.cpu() - cpu
        for task in bulk:
            task.cancel()
        await asyncio.gather(*bulk, return_exceptions=True)
    load.memory[len(load.waits)] = server.memory()
    return load


async def _visitor(
    server: Server, client: httpx.AsyncClient, plan: Plan, jobs: Iterator[Job], load: Load, number: int,
    start: float, end: float,
) -> None:  # fmt: skip
    due = start + plan.every * number / plan.clients if plan.every else start
    asked: list[asyncio.Task] = []
    while max(due, time.perf_counter()) < end and (plan.every or len(load.jobs) < plan.requests):
        await asyncio.sleep(max(0.0, due - time.perf_counter()))
        job = next(jobs)
        load.jobs.append(job)
        due = due if plan.every else time.perf_counter()
        visitor = f"visitor{number}-{len(asked)}" if plan.every else f"visitor{number}"
        asked.append(asyncio.create_task(_ask(server, client, plan, job, load, visitor, due)))
        if not plan.every:
            await asked.pop()
        due += plan.every
    await asyncio.gather(*asked)


async def _ask(
    server: Server, client: httpx.AsyncClient, plan: Plan, job: Job, load: Load, visitor: str, due: float
) -> None:
    try:
        ask = server.learn(client, visitor, job) if plan.lesson else server.compare(client, visitor, job, plan.models)
        load.waits.append(await ask - due)
    except (RuntimeError, httpx.HTTPError) as error:
        load.errors.append(f"{type(error).__name__}: {error}")
    if len(load.waits) in (FIRST, MANY):
        load.memory[len(load.waits)] = server.memory()


async def _bulk(server: Server, client: httpx.AsyncClient, load: Load, number: int) -> None:
    for turn in itertools.count():
        try:
            await server.map(client, f"bulk{number}", 2 * turn + number)
            load.bulk += 1
        except (RuntimeError, httpx.HTTPError) as error:
            load.errors.append(f"bulk: {error}")
            return


ALONE = """
import json, resource, sys, time
import condviz
names, jobs = json.load(sys.stdin)
rows = [(one, two, condition) for one, two, asked in jobs for condition in asked]
def cpu():
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime
wall = spent = 0
for name in names:
    model = condviz.load(name)
    model.score(["A man surfs."], ["A woman skis."], ["the sport"])
    start, before = time.perf_counter(), cpu()
    model.score(*(list(column) for column in zip(*rows)))
    model.score_unconditional([job[0] for job in jobs], [job[1] for job in jobs])
    wall, spent = wall + time.perf_counter() - start, spent + cpu() - before
print(wall, spent)
"""


def alone(models: Sequence[str], jobs: Sequence[Job]) -> tuple[float, float]:
    """Score the same texts in one sorted batch for each model, in a fresh process: wall and processor seconds."""
    done = subprocess.run(
        [sys.executable, "-c", ALONE],
        input=json.dumps([list(models), jobs]),
        capture_output=True,
        text=True,
        check=True,
    )
    wall, cpu = map(float, done.stdout.split())
    return wall, cpu


def measure(plan: Plan) -> list[Result]:
    """Drive a fresh server; some minutes."""
    jobs, server = make_jobs(), Server()
    try:
        quiet = asyncio.run(drive(server, plan if not plan.bulk else Plan(**{**vars(plan), "bulk": False}), jobs))
        loaded = asyncio.run(drive(server, plan, jobs)) if plan.bulk else None
    finally:
        stop(server.process)
    found = [_line(plan, quiet, "")]
    if plan.models:
        found.append(_against_sorted(plan, quiet))
    if len(quiet.waits) > FIRST:
        grown = {count: used - quiet.memory[FIRST] for count, used in quiet.memory.items() if count > FIRST}
        counted = grown.get(MANY, grown[len(quiet.waits)])
        found.append(
            Result(
                f"Memory of the server, against that after {FIRST} comparisons ({quiet.memory[FIRST]:.0f} MB)",
                f"≤ {ALLOWED_MB} MB more, ≤ {LIMIT_MB:,} MB in all",
                ", ".join(f"{more:+.0f} MB after {count:,}" for count, more in grown.items()),
                counted <= ALLOWED_MB and max(quiet.memory.values()) <= LIMIT_MB,
                counted,
                {"memory_mb": quiet.memory},
            )
        )
    if loaded is not None:
        slower = loaded.quantile(0.95) / quiet.quantile(0.95)
        line = _line(plan, loaded, f"with two maps of {BULK_POINTS:,} points meanwhile ({loaded.bulk} done): ")
        what, told = "p95 with the maps against p95 without", f"{slower:.2f} times"
        found += [line, Result(what, f"≤ {ALLOWED_BULK:g} times", told, slower <= ALLOWED_BULK, slower, {})]
    return found


def _against_sorted(plan: Plan, load: Load) -> Result:
    jobs = load.jobs[:SORTED]
    share = len(jobs) / len(load.jobs)
    wall, cpu = alone(plan.models, jobs)
    ratio, cpu_ratio = share * load.wall / wall, share * load.cpu / cpu
    spread = load.quantile(0.95) / load.quantile(0.5)
    return Result(
        f"The same, against scoring {'the same' if share == 1 else f'{SORTED} of these'} texts in one sorted batch for "
        f"each of {len(plan.models)} models",
        f"≤ {ALLOWED_RATIO} times the seconds, p95 ≤ {ALLOWED_SPREAD:g} times p50",
        f"{ratio:.2f} times ({share * load.wall:.1f} against {wall:.1f} s), {cpu_ratio:.2f} times the processor time "
        f"({share * load.cpu:.1f} against {cpu:.1f} s), p95 {spread:.2f} times p50",
        ratio <= ALLOWED_RATIO and spread <= ALLOWED_SPREAD,
        ratio,
        {"wall_s": wall, "cpu_s": cpu, "cpu_ratio": cpu_ratio},
    )


def _line(plan: Plan, load: Load, note: str) -> Result:
    models = (
        f"{len(plan.models)} models" if plan.models else f"{'a lesson' if plan.lesson else 'the page'}, default model"
    )
    pace = f"one request in {plan.every:g} s each" if plan.every else "closed loop"
    p50, p95, p99 = (load.quantile(share) for share in (0.5, 0.95, 0.99))
    passed = not load.errors and (not plan.every or p95 <= ALLOWED_P95_S)
    return Result(
        f"{plan.clients} visitors, {pace}, {models}, {NUM_CONDITIONS} conditions",
        f"p95 ≤ {ALLOWED_P95_S:g} s, no errors" if plan.every else "no errors",
        f"{note}p50 {p50:.2f}, p95 {p95:.2f}, p99 {p99:.2f} s; {len(load.waits) / load.wall:.2f} requests/s; "
        f"{len(load.errors)} of {len(load.jobs)} failed{': ' + load.errors[0] if load.errors else ''}; "
        f"memory {load.memory[0]:.0f} to {load.memory[len(load.waits)]:.0f} MB",
        passed,
        p95,
        {"waits_s": load.waits, "errors": load.errors, "wall_s": load.wall, "cpu_s": load.cpu},
    )


def trained() -> tuple[str, ...]:
    """Return the trained models of sentences."""
    return tuple(name for name in list_models() if describe(name).trained)


def run() -> list[Result]:
    """Measure a closed loop with all trained models, and the pace of a class; ten minutes.

    The class: each of thirty asks every 15 s; then twelve, while two large maps are drawn; then thirty in a lesson.
    """
    plans = (
        Plan(models=trained()),
        Plan(every=15.0),
        Plan(clients=12, every=15.0, bulk=True),
        Plan(every=15.0, lesson=True),
    )
    return [row for plan in plans for row in measure(plan)]


def main() -> None:
    """Run from the command line."""
    parser = options(__doc__)
    parser.add_argument("--clients", type=int, default=30, help="visitors at once (default: %(default)s)")
    parser.add_argument("--requests", type=int, default=150, help="of a closed loop in all (default: %(default)s)")
    parser.add_argument("--every", type=float, default=0.0, help="open loop: seconds between two of one visitor")
    parser.add_argument(
        "--seconds", type=float, default=0.0, help="length at most (default: 60 if open, 600 if closed)"
    )
    parser.add_argument("--models", default="", help="with commas, or all; by default the page with its default model")
    parser.add_argument("--bulk", action="store_true", help="measure again while two of the largest maps are drawn")
    parser.add_argument("--lesson", action="store_true", help="students change a figure of a lesson")
    parser.add_argument("--all", action="store_true", help="what `make benchmark` runs")
    chosen = parser.parse_args()
    models = trained() if chosen.models == "all" else tuple(name for name in chosen.models.split(",") if name)
    plan = Plan(chosen.clients, chosen.requests, chosen.every, chosen.seconds, models, chosen.bulk, chosen.lesson)
    report(run() if chosen.all else measure(plan), chosen, "load")


if __name__ == "__main__":
    main()
