"""How much a visitor may ask for, and how many may wait: less on a Space, where strangers share the machine."""

from __future__ import annotations

import os

import fastapi
import gradio as gr
from gradio.blocks import BlocksConfig
from gradio.data_classes import PredictBodyInternal
from gradio.queueing import Queue

_SHARED = bool(os.environ.get("SPACE_ID"))
MAP_POINTS = 2_000 if _SHARED else 5_000
TABLE_ROWS = 2_000 if _SHARED else 5_000
"""Rows of a table whose pairs are scored."""
ERROR_ROWS = 5_000 if _SHARED else 20_000
TOKENS = 1_000_000 if _SHARED else 10_000_000
"""Tokens that one request may have encoded."""

AT_ONCE = 64
"""Events that run a model at the same time; their texts share batches, so that many cost little more than one."""
QUEUE = 200
"""Events that wait to start."""
PER_VISITOR, PER_ADDRESS = 16, 100
"""Events of one page or client, and of one address (a class may have one in common), that wait or run."""


class _Config(BlocksConfig):
    """The components of a page, of which a session gets its own without another description of each."""

    def __copy__(self) -> BlocksConfig:
        session = super().__copy__()
        session.config_for_block = lambda *_: {}
        return session


def keep_sessions_small(page: gr.Blocks) -> None:
    """Spare each session what gradio keeps for its deep links, which this page does not have.

    It describes every component anew: 55 ms during which nobody is answered, and 0.85 MB for each of the last thousand
    sessions.
    """
    page.default_config.__class__ = _Config


def guard_queue(queue: Queue) -> None:
    """Refuse events at the door of gradio's queue where one visitor has too many in it.

    Args:
        queue: Of the page.
    """
    # By default gradio looks for work a thousand times a second, and makes a table of all past events after each one.
    queue.sleep_when_free = queue.progress_update_sleep_when_free = 0.01
    queue.ANAYLTICS_CACHE_FREQUENCY = 10**9
    push = queue.push

    async def guarded(body: PredictBodyInternal, request: fastapi.Request, username: str | None) -> tuple:
        events = list(queue.event_ids_to_events.values())
        address = request.client and request.client.host
        mine = sum(event.session_hash == body.session_hash for event in events)
        near = sum((event.request.client and event.request.client.host) == address for event in events)
        for found, allowed, whose in ((mine, PER_VISITOR, "You have"), (near, PER_ADDRESS, "Your address has")):
            if found >= allowed:
                times = queue.process_time_per_fn
                seconds = max(
                    1, round(max((times[event.fn].avg_time for event in events if event.fn in times), default=1))
                )
                message = (
                    f"{whose} {found} requests here that wait or run; at most {allowed} may. Wait for an answer, "
                    f"about {seconds} s, and ask again."
                )
                return False, message, "queue_full"
        return await push(body, request, username)

    queue.push = guarded
