"""How long a student waits in each step of each lesson: until it shows, and until its figure follows a change.

python -m benchmarks.lessons [--json FILE] [--lesson NAME] [--rounds N]

One student and a server with all models loaded; from the request to the answer, without what the browser does with it.
What is changed was never asked before, and what reacts in the browser alone is not listed as reacting.
"""

from __future__ import annotations

import asyncio
import statistics
import time
from typing import Any

import httpx

from benchmarks.common import Result, options, report
from benchmarks.load import GIVE_UP_S, Server
from benchmarks.page import stop
from condviz.data.lessons import Lesson, load_lessons
from condviz.ui.learn.figures import make_figure
from condviz.ui.learn.tab import step_link

ALLOWED_SHOW_S, ALLOWED_REACT_S = 0.3, 0.5


def other_values(control: dict[str, Any], mark: str) -> list[str]:
    """Return values of a control that it does not start with; texts are made new by a mark."""
    start = control["value"]
    match control["kind"]:
        case "hidden":
            return []
        case "menu":
            return [choice for choice in control["choices"] if choice != start]
        case "switch":
            return [str(not start)]
        case "slider":
            low, step = control["low"], control["step"]
            values = (low + place * step for place in range(round((control["high"] - low) / step) + 1))
            return [f"{value:g}" for value in values if abs(value - start) > step / 2]
        case "lines":
            return ["\n".join([*start[:-1], f"{start[-1]} {mark}{turn}"]) for turn in "abc"]
        case _:
            return [f"{start} {mark}{turn}" for turn in "abc"]


async def show(server: Server, client: httpx.AsyncClient, query: str) -> float:
    """Go to a step; return the seconds until it is there."""
    body = {"data": [], "fn_index": server.step_event, "session_hash": "student", "event_data": {"query": query}}
    start = time.perf_counter()
    answer = await client.post(f"{server.api}/run/predict", json=body)
    if answer.status_code != httpx.codes.OK:
        raise RuntimeError(f"{answer.status_code}: {answer.text[:200]}")
    return time.perf_counter() - start


async def react(server: Server, client: httpx.AsyncClient, query: str) -> float:
    """Ask for the figure of a step; return the seconds until it is there."""
    start = time.perf_counter()
    asked = {"query": query, "quiet": False}
    return await server.call(client, "student", server.lesson_event, [], asked) - start


async def measure(server: Server, lesson: Lesson, rounds: int) -> list[Result]:
    """Time every step of a lesson, after its figure was computed once as the lesson has it."""
    results = []
    async with httpx.AsyncClient(timeout=GIVE_UP_S) as client:
        for number, step in enumerate([*lesson.steps, None], start=1):
            link, figure = step_link(lesson, number), step and make_figure(step)
            shows = [await show(server, client, link) for _ in range(rounds)]
            seconds: dict[str, list[float]] = {}
            if figure:
                await react(server, client, link)
            for control in figure.controls() if figure else ():
                name, values = control["name"], other_values(control, f"{lesson.number}{number}")
                links = [step_link(lesson, number, [(f"p.{name}", value)]) for value in values[:rounds]]
                seconds[name] = [await react(server, client, link) for link in links]
            results.append(_line(f"Lesson {lesson.number}, {lesson.id}, step {number}", shows, seconds))
    return results


def _line(what: str, shows: list[float], seconds: dict[str, list[float]]) -> Result:
    """Put the medians into words; of several controls the slowest counts."""
    shown = statistics.median(shows)
    medians = {name: statistics.median(found) for name, found in seconds.items() if found}
    slowest = max(medians, key=lambda name: medians[name], default="")
    reacted = medians.get(slowest, 0.0)
    told = f"; reacts in {reacted:.3f} s ({slowest})" if slowest else "; reacts in the browser"
    passed = shown <= ALLOWED_SHOW_S and reacted <= ALLOWED_REACT_S
    target = f"shows ≤ {ALLOWED_SHOW_S:g} s, reacts ≤ {ALLOWED_REACT_S:g} s"
    details = {"show_s": shows, "react_s": seconds}
    return Result(what, target, f"shows in {shown:.3f} s{told}", passed, max(shown, reacted), details)


def main() -> None:
    """Run from the command line."""
    parser = options(__doc__, rounds=3, docs=False)
    parser.add_argument("--lesson", default="", help="its name; all by default")
    chosen = parser.parse_args()
    lessons, server = [one for one in load_lessons() if chosen.lesson in ("", one.id)], Server()
    try:
        found = [row for lesson in lessons for row in asyncio.run(measure(server, lesson, chosen.rounds))]
    finally:
        stop(server.process)
    report(found, chosen, "lessons")


if __name__ == "__main__":
    main()
