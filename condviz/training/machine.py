"""What this machine has for a training: free memory, and how much a process has taken."""

from __future__ import annotations

import resource
import sys
from pathlib import Path

import psutil
import torch

_GROUP = Path("/sys/fs/cgroup")
"""Limits of a container, for which psutil shows the memory of the whole machine."""


def free_memory(device: str) -> int:
    """Give the bytes that a new process could take on "cuda", or in main memory."""
    if device == "cuda":
        return torch.cuda.mem_get_info()[0]
    return min(psutil.virtual_memory().available, _group_free())


def peak_memory(device: str) -> int:
    """Give the most bytes that this process has held on "cuda", or in main memory."""
    if device == "cuda":
        return torch.cuda.max_memory_reserved()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def _group_free() -> int:
    try:
        limit = (_GROUP / "memory.max").read_text(encoding="ascii").strip()
        used = int((_GROUP / "memory.current").read_text(encoding="ascii"))
        # Files that were read are counted, and given back when memory is wanted.
        facts = dict(line.split() for line in (_GROUP / "memory.stat").read_text(encoding="ascii").splitlines())
    except (OSError, ValueError):
        return sys.maxsize
    return sys.maxsize if limit == "max" else int(limit) - used + int(facts.get("inactive_file", 0))
