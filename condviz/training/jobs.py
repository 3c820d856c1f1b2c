"""The queue: a folder of jobs, of which one runs on each device while the others wait. Loads no torch to look.

    submit -> queued -> running -> done, failed, stopped      written down by the process that watches (worker.watch)
                 ^         |-----> stopping -> stopped        a file "stop", seen after each step
                 |         '-----> dead                       no process is left: noted by whoever reads the folder
                 '---------------- resume                     of what failed, stopped or died

Jobs outlive the page and the terminal that started them, and no server watches them: whoever reads the folder notes
which are dead and starts the next, as every training that ends does.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import replace
from itertools import chain, count
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

from annotated_doc import Doc
from filelock import FileLock, Timeout

from condviz.data.files import write_text
from condviz.errors import CondvizError, DataError, TrainingError, require
from condviz.paths import CHECKPOINTS, JOBS
from condviz.training.job import (
    GONE,
    RESERVE_BYTES,
    UNFINISHED,
    Job,
    Status,
    explain,
    explain_exit,
    find_process,
    hash_token,
    is_alive,
    is_shared,
    kill,
    paths_of,
    read_job,
    read_json,
    write_status,
)

if TYPE_CHECKING:
    from condviz.training.loop import Probe
    from condviz.training.preflight import Preflight
    from condviz.training.recipes import LinkRecipe, Recipe, SentenceRecipe

SWITCH = "CONDVIZ_TRAINING"
LOCK_S = 30.0
UPLOAD_S = 24 * 3600.0
"""An upload that no job trains on is removed after this time."""
_ROOT = Path(__file__).resolve().parents[2]


def is_enabled() -> bool:
    """Whether trainings may be started: everywhere but on a Space, where CONDVIZ_TRAINING=1 allows it."""
    return not os.environ.get("SPACE_ID") or os.environ.get(SWITCH) == "1"


def child_environment() -> dict[str, str]:
    """Return the environment in which this package is found by other processes, from a checkout, too."""
    path = os.pathsep.join(filter(None, (str(_ROOT), os.environ.get("PYTHONPATH"))))
    return os.environ | {"PYTHONPATH": path, "TOKENIZERS_PARALLELISM": "false"}


class Jobs:
    """The jobs of a folder. Several processes may use the same folder at once.

    Args:
        folder: One subfolder per job, and `uploads` for tables.
        checkpoints: Where finished models go.
        roots: Folders that tables may be read from, beside `uploads` and the folder of the corpora.

    Example:
        >>> jobs = Jobs()
        >>> job = jobs.submit(load_recipe("assets/recipes/hyper-cl-start.toml"))
        >>> jobs.get(job.id).state
        'running'
    """

    def __init__(self, folder: Path = JOBS, *, checkpoints: Path = CHECKPOINTS, roots: Sequence[Path] = ()) -> None:
        self.folder, self.checkpoints = Path(folder).absolute(), Path(checkpoints).absolute()
        self.uploads = self.folder / "uploads"
        self.roots = (self.uploads, *roots)
        self._file_lock = FileLock(self.folder / ".lock", timeout=LOCK_S)  # one thread may hold it twice

    def check(self, recipe: Recipe, *, device: str = "auto", **options: Any) -> Preflight:  # noqa: ANN401
        """Survey the data of a recipe and measure a few steps, as `condviz.training.preflight.check` does.

        TrainingError if training is switched off, or the name is taken.
        """
        from condviz.training.preflight import check

        _require_enabled()
        self._check_name(recipe.name)
        return check(recipe, roots=self.roots, device=device, **options)

    def submit(
        self,
        recipe: Recipe,
        *,
        text: str = "",
        device: str = "auto",
        probes: Sequence[Probe] | None = None,
        owner: str = "",
    ) -> Job:
        """Queue a training; it starts at once where its device is free.

        Args:
            recipe: What to train. Its name becomes the model's.
            text: The recipe as it was written, kept as recipe.toml; "" keeps the plain one only.
            device: "auto", "cpu", "cuda" or "mps".
            probes: Pairs to score along the way; None chooses some of the validation rows, for links none.
            owner: Token of the visitor who may stop and delete it on a Space.

        Raises:
            TrainingError: If training is switched off, or the name is taken.
            ConfigError: If a file or model is where the recipe may not look.
            DataError: If a table has no rows to learn from, or the folder cannot be written to.
            MissingExtraError: If a package for training is not installed.
        """
        from condviz.training.preflight import admit, choose_probes, choose_processes
        from condviz.training.recipes import LinkRecipe

        _require_enabled()
        require("accelerate", "train")
        recipe = cast("SentenceRecipe | LinkRecipe", admit(recipe, self.roots))
        device, processes = choose_processes(device)
        if isinstance(recipe, LinkRecipe):  # its probes would be sentences, and its batches cannot be divided
            probes, processes = (), 1
        elif probes is None:
            probes = choose_probes(recipe)
        with self._lock():
            self._check_name(recipe.name)
            status = Status(
                "queued", time.time(), device, processes, str(self.checkpoints / recipe.name),
                tuple((one, two, condition) for one, two, condition in probes), owner=hash_token(owner),
            )  # fmt: skip
            folder = self.folder / f"{time.strftime('%Y%m%d-%H%M%S')}-{secrets.token_hex(2)}"
            folder.mkdir()
            if text:
                write_text(folder / "recipe.toml", text)
            write_text(folder / "recipe.json", json.dumps(recipe.to_dict(), indent=2) + "\n")
            write_status(folder, status)
            self._advance()
            return read_job(folder)

    def list(self) -> list[Job]:
        """List all jobs, the newest first."""
        found = self._read()
        if any(self._is_lost(job) for job in found) or self._next(found):
            with self._lock():
                self._advance()
            found = self._read()
        return sorted(found, key=lambda job: (job.status.created, job.id), reverse=True)

    def models_of_others(self, token: str) -> set[str]:
        """Return the names of models that only others than the holder of a token see, where others reach the page."""
        jobs = self.list() if is_shared() else ()
        return {job.name for job in jobs if job.status.owner and not job.may_change(token)}

    def get(self, id: str) -> Job:
        """Return a job; raises TrainingError if there is none with this id."""
        for job in self.list():
            if job.id == id:
                return job
        raise TrainingError(f"There is no job {str(id)[:80]!r}. It may have been deleted: look at the list of jobs.")

    def stop(
        self,
        id: str,
        *,
        force: Annotated[bool, Doc("End it now; what was saved before is kept")] = False,
        token: str | None = None,
    ) -> Job:
        """Ask a job to save its state and stop after the step at hand; one that waits leaves the queue.

        A training that does not answer within five minutes, or still prepares, is ended by its supervisor.

        Args:
            token: Of the visitor who asks; None is the owner of the machine. See `Job.may_change`.

        Raises:
            TrainingError: If there is no such job, it has ended, or is somebody else's.
        """
        with self._lock():
            job = self._find(id, token)
            if job.state not in UNFINISHED:
                raise TrainingError(f"Job {job.name} is {job.state}: there is nothing to stop.")
            if job.state == "queued":
                self._end(job, "stopped", "Stopped before it began.")
            elif force:
                for process in (job.status.supervisor, job.heartbeat.worker):
                    kill(process)
                self.settle(id, code=None)
            else:
                (job.folder / "stop").touch()
            return read_job(job.folder)

    def resume(self, id: str, *, token: str | None = None) -> Job:
        """Queue a job that was stopped, failed or died again, to go on from its last saved state.

        It ends with the same weights as if nothing had happened. `token` as in `stop`.

        Raises:
            TrainingError: If training is switched off, there is no such job, or it cannot go on.
        """
        _require_enabled()
        with self._lock():
            job = self._find(id, token)
            if not job.can_resume:
                raise TrainingError(f"Job {job.name} is {job.state}: only what has ended without a model can go on.")
            if not self._is_model_of(job):  # else it died when all was done
                self._check_name(job.name, but=id)
            waiting = {"state": "queued", "reason": "", "started": None, "ended": None, "spent": job.elapsed}
            write_status(job.folder, replace(job.status, **waiting))
            self._advance()
            return read_job(job.folder)

    def rerun(self, id: str, *, token: str | None = None) -> Job:
        """Start the same recipe again as another job; where its name is taken, "-2" or the next number is added.

        On a Space it belongs to the holder of the token, who must be the owner of the first one, too.

        Raises:
            TrainingError: If training is switched off, or there is no such job.
            ConfigError, DataError: As in `submit`.
        """
        from condviz.training.recipes import from_dict

        job = self._find(id, token)
        name = self.free_name(job.name)
        whole = [Path(path) for path in (*paths_of(job.recipe), job.recipe["backbone"]) if Path(path).is_absolute()]
        same = Jobs(self.folder, checkpoints=self.checkpoints, roots=(*self.roots, *whole))  # admitted once
        recipe = from_dict({**job.recipe, "name": name})
        return same.submit(recipe, device=job.status.device, probes=job.status.probes, owner=token or "")

    def free_name(self, name: str) -> str:
        """Return the name, or, where it is taken, the same with "-2", or its number counted on: "run-5", "run-6"."""
        taken = self._taken()
        stem, number = re.findall(r"\A(.*?)(?:-([1-9][0-9]*))?\Z", name, re.DOTALL)[0]
        further = (f"{stem}-{i}" for i in count(int(number or 1) + 1))
        return next(found for found in chain([name], further) if found not in taken)

    def delete(
        self,
        id: str,
        *,
        keep_model: Annotated[bool, Doc("Leave the model that it made")] = False,
        token: str | None = None,
    ) -> None:
        """Remove a job: its states, its log, the uploads that only it trains on, and the model that it made.

        `token` as in `stop`.

        Raises:
            TrainingError: If there is no such job, it runs, or is somebody else's.
        """
        with self._lock():
            job = self._find(id, token)
            if job.state in ("running", "stopping"):
                raise TrainingError(f"Job {job.name} is {job.state}. Stop it before you delete it.")
            made = job.state == "done" and not keep_model and self._is_model_of(job)
            # Renamed first, so that half a folder is never taken for a job.
            gone = [job.folder.rename(job.folder.with_name(f".{job.id}"))]
            if made:
                gone.append(job.out.rename(job.out.with_name(f".{job.id}-model")))
            self._remove_uploads(older_than=0, of=job)
        for folder in gone:
            shutil.rmtree(folder, ignore_errors=True)

    def remove_old_uploads(self) -> None:
        """Remove uploads that nobody has trained on for a day."""
        with self._lock():
            self._remove_uploads(older_than=UPLOAD_S)

    def begun(self, id: str) -> Job:
        """Return a job that is being started once that is written down: its processes can be faster than that."""
        with self._lock():
            return self._find(id)

    def settle(self, id: str, *, code: int | None) -> None:
        """Record how a job ended whose training is gone, by its exit code or None after force, and start the next."""
        with self._lock():
            job = self._find(id)
            word = read_json(job.folder / "end.json")
            if word is not None:
                self._end(job, word["state"], word["reason"])
            elif code is None:
                how = "Stopped before its first step" if job.heartbeat.phase == "preparing" else "Ended by force"
                self._end(job, "stopped", f"{how}. {_kept(job)}")
            else:
                self._end(job, "failed", explain_exit(code, job.log()))
            self._advance()

    # Below, the lock is held where something is written.

    def _lock(self) -> AbstractContextManager:
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            return self._file_lock.acquire()
        except Timeout as error:
            raise TrainingError(f"The jobs in {self.folder} are busy. Try again in a moment.") from error
        except OSError as error:
            why = f"{error.strerror}. Set CONDVIZ_JOBS to another folder."
            raise DataError(f"{self.folder} cannot be written to: {why}") from error

    def _read(self) -> list[Job]:
        found = []
        for status in self.folder.glob("[!.]*/status.json"):
            with suppress(DataError):  # being made or deleted
                found.append(read_job(status.parent))
        return found

    def _find(self, id: str, token: str | None = None) -> Job:
        found = next((job for job in self._read() if job.id == id), None) or self.get(id)
        if not found.may_change(token):
            raise TrainingError(f"Job {found.name} was started by somebody else: only they can change it.")
        return found

    def _is_model_of(self, job: Job) -> bool:
        """Whether the folder of the model still holds what this job has trained."""
        from condviz.training.recipes import from_dict
        from condviz.training.trainer import Run

        try:
            return Run(job.out, from_dict(job.recipe)).is_finished()
        except CondvizError:  # damaged, or made by another version: not ours to remove
            return False

    def _remove_uploads(self, *, older_than: float, of: Job | None = None) -> None:
        """Remove old uploads that no job uses; with `of`, only those of one job."""
        used = {path for job in self._read() for path in _uploads(job, self.uploads)}
        mine = _uploads(of, self.uploads) if of else set(self.uploads.glob("*"))
        for path in mine - used:
            if of or time.time() - path.stat().st_mtime > older_than:
                shutil.rmtree(path, ignore_errors=True) if path.is_dir() else path.unlink(missing_ok=True)

    def _is_lost(self, job: Job) -> bool:
        """Whether a job counts as running and no process of it is left."""
        processes = (job.status.supervisor, job.heartbeat.worker)
        return job.status.state == "running" and not any(map(is_alive, processes))

    def _next(self, found: Sequence[Job]) -> list[Job]:
        """Return the jobs that can start: of each free device, the one that waits longest."""
        if not is_enabled():
            return []
        busy = {job.status.device for job in found if job.status.state == "running"}
        waiting = sorted((job for job in found if job.state == "queued"), key=lambda job: -job.status.created)
        return list({job.status.device: job for job in waiting if job.status.device not in busy}.values())

    def _advance(self) -> None:
        """Record which trainings are gone, and start those that can."""
        for job in self._read():
            if self._is_lost(job):
                word = read_json(job.folder / "end.json") or {"state": "dead", "reason": f"{GONE} {_kept(job)}"}
                # Hours may have passed since; the last sign of life tells how long it has worked.
                ended = max(job.heartbeat.time, job.status.started or 0.0)
                self._end(job, word["state"], word["reason"], ended=ended)
        for job in self._next(self._read()):
            try:
                self._start(job)
            except OSError as error:
                self._end(job, "failed", explain(error))

    def _start(self, job: Job) -> None:
        for name in ("stop", "end.json", "heartbeat.json"):  # of an earlier attempt
            (job.folder / name).unlink(missing_ok=True)
        (job.folder / "reserve").write_bytes(bytes(RESERVE_BYTES))
        with (job.folder / "log.txt").open("ab") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "condviz.training.worker", str(job.folder), "watch"],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=child_environment(),
                start_new_session=True,  # it outlives whoever starts it, and the keys of a terminal do not reach it
            )  # fmt: skip
        running = {"state": "running", "started": time.time(), "supervisor": find_process(process.pid)}
        threading.Thread(target=process.wait, daemon=True).start()  # or it would stay as a zombie
        write_status(job.folder, replace(job.status, **running))

    def _end(self, job: Job, state: str, reason: str, *, ended: float | None = None) -> None:
        ended = time.time() if ended is None else ended
        status = replace(job.status, state=state, reason=reason, ended=ended, supervisor=None)
        (job.folder / "reserve").unlink(missing_ok=True)
        write_status(job.folder, status)
        (job.folder / "stop").unlink(missing_ok=True)

    def _taken(self, but: str = "") -> dict[str, str]:
        """Return names of models that a new one must not have, and why."""
        from condviz.models.registry import list_models

        folders = self.checkpoints.iterdir() if self.checkpoints.is_dir() else ()
        taken = {name: "a model of this name exists" for name in (*list_models(), *(path.name for path in folders))}
        active = (job for job in self._read() if job.state in UNFINISHED and job.id != but)
        return taken | {job.name: f"a job of this name is {job.state}" for job in active}

    def _check_name(self, name: str, *, but: str = "") -> None:
        if why := self._taken(but).get(name):
            raise TrainingError(f"The name {name!r} is taken: {why}. Choose another name for the model.")


def _uploads(job: Job, folder: Path) -> set[Path]:
    """Return the files and folders directly in the folder of uploads that a job trains on."""
    found = map(Path, paths_of(job.recipe))
    return {folder / path.relative_to(folder).parts[0] for path in found if folder in path.parents}


def _require_enabled() -> None:
    if not is_enabled():
        raise TrainingError(
            "Training is switched off on this Space: it would take the processor from all visitors. Duplicate the "
            f"Space and set {SWITCH}=1 there, or run the program on a machine of your own."
        )


def _kept(job: Job) -> str:
    step = job.saved_step
    return "Nothing had been saved: resume begins anew." if step is None else f"Resume goes on from step {step}."
