"""A probe that waits: its imports take seconds, so a page starts it before anybody asks for a check."""

from __future__ import annotations

import subprocess
import sys
import threading

from condviz.training.jobs import child_environment

IDLE_S = 600.0
"""A probe that nobody has asked for anything in this time gives its memory back."""
_lock = threading.Lock()
_waiting: subprocess.Popen | None = None


def prepare() -> subprocess.Popen:
    """Start a probe ahead, unless one is waiting already; it ends with this process at the latest.

    Returns:
        The probe; it prints a line once it can be asked.
    """
    global _waiting
    with _lock:
        if _waiting is not None and _waiting.poll() is None:
            return _waiting
        started = _waiting = _start()
    timer = threading.Timer(IDLE_S, _retire, (started,))
    timer.daemon = True
    timer.start()
    return started


def take() -> subprocess.Popen:
    """Return the probe that waits, else a new one; whoever takes it ends it."""
    global _waiting
    with _lock:
        found, _waiting = _waiting, None
    return found if found is not None and found.poll() is None else _start()


def _start() -> subprocess.Popen:
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    command = [sys.executable, "-m", "condviz.training.probe"]
    return subprocess.Popen(command, **pipes, text=True, errors="replace", env=child_environment())


def _retire(probe: subprocess.Popen) -> None:
    global _waiting
    with _lock:
        if _waiting is not probe:
            return
        _waiting = None
    probe.kill()
    probe.communicate()
