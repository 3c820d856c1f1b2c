"""Say in words why a training ended. Loads no torch."""

from __future__ import annotations

import errno
import signal

from condviz.errors import CondvizError

MEMORY = (
    "Out of memory. Halve batch_size and double accumulation, which keeps the size of a step; or tune less "
    '(tuning = "lora" or "frozen"), or take a smaller encoder. Then start again: a resumed job has the same recipe.'
)
DISK = "The disk is full. Free some space and resume: what was saved before is kept."
GONE = "The process is gone without a word: the machine was restarted, or somebody killed it."
_MEMORY_SIGNS = ("out of memory", "can't allocate memory", "cannot allocate memory", "not enough memory")
_DISK_SIGNS = ("no space left", "disk quota exceeded", "pytorchstreamwriter failed", "file write failed")


def explain(error: BaseException) -> str:
    """Give the reason for people; what is not known by sight is named, and the log has the rest."""
    causes = _chain(error)
    texts = [str(cause).lower() for cause in causes]
    short = any(isinstance(cause, MemoryError) for cause in causes)
    if short or any(sign in text for sign in _MEMORY_SIGNS for text in texts):
        return MEMORY
    full = any(isinstance(cause, OSError) and cause.errno in (errno.ENOSPC, errno.EDQUOT) for cause in causes)
    if full or any(sign in text for sign in _DISK_SIGNS for text in texts):
        return DISK
    if isinstance(error, CondvizError):
        return str(error)
    first = (str(error).strip().splitlines() or [""])[0][:300]
    return f"Unexpected {type(error).__name__}: {first or 'no message'}. The end of the log tells where."


def explain_exit(code: int, log: str) -> str:
    """Give the reason where the training had no time to say it.

    Args:
        code: Exit code as `subprocess` has it: negative for a signal.
        log: The end of the output.
    """
    if any(sign in log.lower()[-4000:] for sign in _MEMORY_SIGNS):
        return MEMORY
    killed = -code if code < 0 else code - 128
    if code < 0 or killed == signal.SIGKILL:
        name = signal.Signals(killed).name if killed in set(signal.Signals) else f"signal {killed}"
        memory = " Systems do that when memory runs out: if it comes again, halve batch_size." if killed == 9 else ""
        return f"The training was killed from outside ({name}).{memory} Resume goes on from what was saved."
    last = next((line.strip() for line in reversed(log.splitlines()) if line.strip()), "the log is empty")
    return f"The training ended with code {code} before it could say why. Last line of the log: {last[:300]}"


def _chain(error: BaseException | None) -> list[BaseException]:
    found: list[BaseException] = []
    while error is not None and error not in found:
        found.append(error)
        error = error.__cause__ or error.__context__
    return found
