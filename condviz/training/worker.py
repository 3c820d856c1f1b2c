"""The processes of trainings: two of a job, and one that waits to try a recipe. Loads no torch before it trains.

`python -m condviz.training.worker FOLDER`, or the same through `accelerate launch`, trains. With `watch` behind it, it
starts that and watches it, and then starts the next job: it outlives the page, and is still there to write down how a
training ended that was killed.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from condviz.data.files import write_text
from condviz.errors import CondvizError, DataError, TrainingStopped
from condviz.training.job import Heartbeat, Job, explain, find_process, kill, read_job
from condviz.training.jobs import Jobs, child_environment

BEAT_S = 1.0
NICENESS = 5
"""On a CPU the page, for which people wait, goes first."""
LOOK_S = 0.5
GRACE_S = 300.0
"""How long a training may take to save and stop before it is ended by force: one slow step, an evaluation, one large
state."""
SHOWN = ("loss", "tokens_per_second", "spearman", "pearson", "pair_accuracy", "MRR", "hits@1", "hits@10", "seconds")


class Heart:
    """Writes every second how far the training is, and checks for stop requests."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.beat = Heartbeat(time.time(), worker=find_process())
        self.stop_asked = threading.Event()
        self.since: float | None = None
        self.first_step = 0
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)

    def start(self) -> None:
        """Begin."""
        self._write()
        self._thread.start()

    def end(self) -> None:
        """Send a last heartbeat."""
        self._ended.set()
        self._thread.join()
        self._write()

    def steer(self, step: int, steps: int) -> bool:
        """Record a step, and say whether to stop."""
        left = None
        if self.since is not None and step > self.first_step:
            left = (time.monotonic() - self.since) / (step - self.first_step) * (steps - step)
        phase = "training" if step < steps else "finishing"
        self.beat = replace(self.beat, step=step, steps=steps, phase=phase, seconds_left=left)
        return self.stop_asked.is_set() or (self.folder / "stop").exists()

    def report(self, record: Mapping[str, Any]) -> None:
        """Record and print a record; of the encoding of entities, every tenth part."""
        if record["event"] == "encode" and record["step"] < record["steps"]:
            from condviz.evaluation.kgc import PART  # imports torch, which the run has by then

            if record["step"] // PART % 10:
                return
        if record["event"] == "start":
            self.since, self.first_step = time.monotonic(), record["step"]
            self.beat = replace(self.beat, phase="training", step=record["step"], steps=record["steps"])
        if record.get("tokens_per_second"):
            self.beat = replace(self.beat, tokens_per_second=record["tokens_per_second"])
        told = {**record, "tokens_per_second": record.get("tokens_per_second") or None}  # a head reads stored vectors
        values = ", ".join(f"{name} {told[name]:.6g}" for name in SHOWN if told.get(name) is not None)
        sys.stdout.write(f"{time.strftime('%H:%M:%S')} step {record['step']}: {record['event']} {values}\n")
        sys.stdout.flush()

    def _look(self) -> None:
        while True:
            self._write()
            if self._ended.wait(BEAT_S):
                return

    def _write(self) -> None:
        self.beat = replace(self.beat, time=time.time())
        with suppress(DataError):  # a full disk is reported by what needs it more
            write_text(self.folder / "heartbeat.json", json.dumps(asdict(self.beat)) + "\n")


def command(job: Job) -> list[str]:
    """Return the command that trains a job.

    `accelerate launch` is for GPUs: for one process it would do nothing but hold 230 MB and take seconds to import
    torch.
    """
    module = ["condviz.training.worker", str(job.folder)]
    if job.status.device != "cuda":
        return [sys.executable, "-m", *module]
    several = ["--multi_gpu"] if job.status.processes > 1 else []
    # The number type is chosen by the recipe, see `condviz.encoder.pretrained.choose_precision`.
    fixed = ["--num_machines", "1", "--mixed_precision", "no", "--dynamo_backend", "no", "--main_process_port", "0"]
    count = ["--num_processes", str(job.status.processes)]
    return [sys.executable, "-m", "accelerate.commands.launch", *several, *count, *fixed, "--module", *module]


def watch(folder: Path) -> None:
    """Train, wait, write down how it ended, and start what waits."""
    job = Jobs(folder.parent).begun(folder.name)
    process = subprocess.Popen(command(job), stdin=subprocess.DEVNULL)
    forced = False
    while True:
        try:
            code = process.wait(LOOK_S)
            break
        except subprocess.TimeoutExpired:
            # Asked to stop long ago, or before its first step, when there is nothing to save.
            with suppress(OSError):
                asked = time.time() - (folder / "stop").stat().st_mtime
                forced = forced or asked > GRACE_S or read_job(folder).heartbeat.phase == "preparing"
            if forced:
                kill(find_process(process.pid))  # there until it has been waited for
    Jobs(folder.parent).settle(folder.name, code=None if forced else code)


def main(folder: Path) -> int:
    """Train the job in a folder, leave the last word there, and return the exit code: 0 if it ended as meant."""
    first = os.environ.get("RANK", "0") == "0"
    job, heart = read_job(folder), Heart(folder)
    if job.status.state != "running":  # whoever started this died at once, and the job was given up
        return 1
    signal.signal(signal.SIGTERM, lambda *_: heart.stop_asked.set())
    if first:
        heart.start()
    try:
        _train(job, heart, first=first)
    except TrainingStopped as stopped:
        word = {"state": "stopped", "reason": str(stopped)}
    except BaseException as error:
        if isinstance(error, CondvizError):
            sys.stderr.write(f"{error}\n")  # says all there is to say
        else:
            traceback.print_exc()
        _leave(folder, {"state": "failed", "reason": explain(error)})
        return 1
    else:
        word = {"state": "done", "reason": ""}
    finally:
        if first:
            heart.end()
    if first:
        _leave(folder, word)
    return 0


def _train(job: Job, heart: Heart, *, first: bool) -> None:
    if job.status.device == "cpu" and hasattr(os, "nice") and os.nice(0) == 0:  # else whoever started it has decided
        os.nice(NICENESS)
    from condviz.training.recipes import from_dict
    from condviz.training.trainer import carry_out

    carry_out(
        from_dict(job.recipe),
        job.out,
        resume=True,
        device=job.status.device,
        report=heart.report,
        folder=job.folder / "run",
        steer=heart.steer if first else None,
        probes=job.status.probes,
    )


def _leave(folder: Path, word: Mapping[str, str]) -> None:
    (folder / "reserve").unlink(missing_ok=True)  # room for this, whatever the disk is full of
    write_text(folder / "end.json", json.dumps(word) + "\n")


# ---- a probe that waits: its imports take seconds, so a page starts it before anybody asks for a check ---------------

_probe_lock = threading.Lock()
_probe: subprocess.Popen | None = None


def prepare_probe() -> subprocess.Popen:
    """Start a probe ahead, unless one is waiting; it prints a line once it can be asked, and ends when nobody asks."""
    global _probe
    with _probe_lock:
        if _probe is None or _probe.poll() is not None:
            _probe = _start_probe()
        return _probe


def take_probe() -> subprocess.Popen:
    """Return the probe that waits, else a new one; whoever takes it ends it."""
    global _probe
    with _probe_lock:
        found, _probe = _probe, None
    return found if found is not None and found.poll() is None else _start_probe()


def _start_probe() -> subprocess.Popen:
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    command = [sys.executable, "-m", "condviz.training.probe"]
    return subprocess.Popen(command, **pipes, text=True, errors="replace", env=child_environment())


if __name__ == "__main__":
    sys.exit((watch if sys.argv[2:] == ["watch"] else main)(Path(sys.argv[1])))
