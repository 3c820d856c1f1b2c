"""Stands for the package `spaces` on ZeroGPU: what is marked runs in a forked process.

As there, arguments and results are pickled, of an error only the name comes back, and nothing may have been on a GPU
before.
"""

from __future__ import annotations

import functools
import multiprocessing
import os
import pickle
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

FORK = multiprocessing.get_context("fork")


def GPU(function: Callable) -> Callable:
    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        import torch

        assert not torch.cuda.is_initialized()
        ours, theirs = FORK.Pipe()
        process = FORK.Process(target=_work, args=(function, pickle.dumps((args, kwargs)), theirs), daemon=True)
        process.start()
        theirs.close()
        worked, result = pickle.loads(ours.recv_bytes())
        process.join()
        if not worked:
            raise RuntimeError(f"ZeroGPU worker error: {result}")
        return result

    return call


def _work(function: Callable, sent: bytes, answer: Connection) -> None:
    with Path(os.environ["ZERO_GPU_LOG"]).open("a") as log:
        log.write(f"{os.getpid()}\n")
    args, kwargs = pickle.loads(sent)
    try:
        with ThreadPoolExecutor() as executor:
            result = True, executor.submit(copy_context().run, functools.partial(function, *args, **kwargs)).result()
        sent = pickle.dumps(result)
    except Exception as error:
        sent = pickle.dumps((False, type(error).__name__))
    answer.send_bytes(sent)
