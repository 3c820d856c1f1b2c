"""The process that watches a job, and starts the next: python -m condviz.training.supervisor FOLDER. Loads no torch.

It outlives the page, and is still there to write down how it ended when the training is killed.
"""

from __future__ import annotations

import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

from condviz.training.job import Job, find_process, kill, read_job
from condviz.training.jobs import Jobs

LOOK_S = 0.5
GRACE_S = 300.0
"""How long a training may take to save and stop before it is ended by force: one slow step, an evaluation, one large
state."""


def command(job: Job) -> list[str]:
    """Return the command that trains a job.

    Through `accelerate launch` on GPUs, of which there may be several. Everywhere else there is one process, for which
    the launcher would do nothing but hold 230 MB and take the seconds in which it imports torch.
    """
    module = ["condviz.training.worker", str(job.folder)]
    if job.status.device != "cuda":
        return [sys.executable, "-m", *module]
    several = ["--multi_gpu"] if job.status.processes > 1 else []
    # The number type is chosen by the recipe, see `condviz.encoder.pretrained.choose_precision`.
    fixed = ["--num_machines", "1", "--mixed_precision", "no", "--dynamo_backend", "no", "--main_process_port", "0"]
    count = ["--num_processes", str(job.status.processes)]
    return [sys.executable, "-m", "accelerate.commands.launch", *several, *count, *fixed, "--module", *module]


def main(folder: Path) -> None:
    """Train, wait, write down how it ended, and start what waits."""
    job = read_job(folder)
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


if __name__ == "__main__":
    main(Path(sys.argv[1]))
