"""Children of a process that has imported torch and never computed.

A fork of one that has may crash in its threads, and a new interpreter imports for seconds: what children import on
their way is there before they are forked.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from typing import Any

CHILDREN = multiprocessing.get_context("forkserver")
CHILDREN.set_forkserver_preload([
    "condviz.training.trainer", "condviz.training.links", "transformers.models.bert.modeling_bert",
    "condviz.store.build", "tests.training.toy", "tests.ahead",
])  # fmt: skip


def in_child(function: Callable[..., Any], *args: object) -> int:
    """Run a function of a module in a process of its own; gives its exit code."""
    child = CHILDREN.Process(target=function, args=args)
    child.start()
    child.join()
    return child.exitcode
