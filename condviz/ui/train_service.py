"""What the handlers of the Train tab and of its API call: jobs as plain values, checks, uploads, finished models."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
import threading
import time
from functools import cached_property
from pathlib import Path
from typing import Any

from condviz.errors import CondvizError, ConfigError, DataError
from condviz.evaluation.scoreboard import Board, read_board
from condviz.ui.service import Service
from condviz.ui.train_engine import TrainEngine
from condviz.ui.train_recipe import backbones, parse, write
from condviz.ui.train_run import Probe, RunView, load_recording, with_records
from condviz.ui.train_table import SHOWN_ROWS, divide, inspect, store

BASELINES = ("minilm", "bi-encoder", "hyper-cl", "cross-encoder")
"""Models whose stored scores are drawn beside a training on scenes."""
LOG_CHARACTERS = 12_000
OFF = (
    "This page runs on a shared Space, where a training would take the processor from all visitors. The server refuses "
    "to start one."
)
_TOKEN = re.compile(r"\bhf_\w+")


class TrainService:
    """Trainings of this machine. Holds nothing of any visitor: every browser sees the same jobs."""

    def __init__(self, service: Service, engine: TrainEngine) -> None:
        """Join the models and the core.

        Args:
            service: The models of the page; finished ones are added to them.
            engine: The calls into the core.
        """
        self.service, self.engine = service, engine
        self._listed = frozenset(service.engine.list_models())  # a page that offers some models hides the others
        self._adding = threading.Lock()
        self._ended: dict[str, tuple[Any, RunView]] = {}

    @cached_property
    def jobs(self) -> Any:  # noqa: ANN401 - a Jobs
        """The jobs, found on first use."""
        return self.engine.jobs()

    @cached_property
    def recording(self) -> list[dict[str, Any]]:
        """The recorded run that ships with the page; empty if there is none."""
        return load_recording()

    @property
    def enabled(self) -> bool:
        """Whether trainings may be started here."""
        return self.engine.enabled()

    @property
    def shared(self) -> bool:
        """Whether this is a Space, where folders of the machine are nobody's business."""
        return bool(self.space)

    @property
    def space(self) -> str:
        """Id of the Space that this is, "" on any other machine."""
        return os.environ.get("SPACE_ID", "")

    def runs(self) -> list[RunView]:
        """Give all jobs, the newest first, without their logs."""
        return [self._seen(job) for job in self.jobs.list()]

    def run(self, id: str) -> RunView:
        """Give one job with its log.

        Raises:
            TrainingError: If there is none of this id.
        """
        return _view(self.jobs.get(id), log=True)

    def read(self, text: str) -> Any:  # noqa: ANN401 - a SentenceRecipe
        """Read a recipe and check what the page allows.

        Raises:
            ConfigError: If a key or value is wrong, or the encoder is not one that the page trains.
        """
        recipe = self.engine.read(parse(text))
        known = backbones()
        if recipe.backbone not in known and (self.shared or not Path(recipe.backbone).is_dir()):
            local = "" if self.shared else ", or a folder of this machine with an encoder"
            raise ConfigError(f"backbone is {recipe.backbone!r}, allowed are {', '.join(known)}{local}.")
        return recipe

    def check(self, text: str) -> Any:  # noqa: ANN401 - a Preflight
        """Look at the data of a recipe and measure a few steps: what it takes, and what stands in the way.

        Raises:
            CondvizError: If the recipe cannot be read, or training is off.
        """
        self._require_enabled()
        recipe = self.read(text)
        if recipe.name in self.service.pool.names or recipe.name in self.service.engine.list_models():
            raise ConfigError(f"A model is called {recipe.name!r} already. Give yours another name.")
        return self.engine.check(recipe)

    def start(self, text: str) -> RunView:
        """Put a training into the queue; errors as `condviz.training.jobs.Jobs.submit`."""
        self._require_enabled()
        return _view(self.jobs.submit(self.read(text), text=text))

    def recipe_text(self, id: str) -> str:
        """Give the recipe of a job as it was written.

        Raises:
            TrainingError: If there is no such job.
        """
        job = self.jobs.get(id)
        kept = job.folder / "recipe.toml"
        return kept.read_text(encoding="utf-8") if kept.is_file() else write(job.recipe)

    def act(self, name: str, id: str) -> str:
        """Stop, resume, rerun or delete a job; gives the id of the one to look at now, "" for none.

        Raises:
            DataError: If there is no such action.
            TrainingError: If the job cannot do so now; says why.
        """
        if name not in ("stop", "resume", "rerun", "delete"):
            raise DataError(f"A run cannot {name[:40]!r}. Reload the page.")
        done = getattr(self.jobs, name)(id)
        return "" if done is None else done.id

    def add_table(self, path: str, share: float) -> tuple[dict[str, Any], dict[str, str]]:
        """Check an uploaded table and keep its two parts for trainings.

        Args:
            path: The file.
            share: How much of it is kept for measuring, in (0, 0.5].

        Returns:
            What `condviz.ui.train_view.render_table` shows; and {"train", "validation"}, the stored files, with how
            its rows are best put into "batching". No files are stored where training is off.

        Raises:
            DataError: If nothing can be learnt from it.
        """
        report = inspect(path)
        train, held = divide(report, share)
        facts = {
            "name": report.name,
            "total": report.total,
            "used": len(report.rows),
            "paired": report.paired,
            "histogram": report.histogram(),
            "notes": list(report.notes),
            "preview": [
                (row.sentence1, row.sentence2, row.condition, f"{row.label:g}") for row in report.rows[:SHOWN_ROWS]
            ],
            "train": len(train),
            "held": len(held),
        }
        self._require_enabled()
        stored = store(report, share, self.jobs.uploads)
        return facts, {"train": str(stored[0]), "validation": str(stored[1]), "batching": report.batching}

    def add_models(self) -> tuple[str, ...]:
        """Take models that were trained since the start into the pool, load them in the background; gives all names."""
        pool = self.service.pool
        with self._adding:
            for name in self.service.engine.list_models():
                if name not in self._listed and name not in pool.names:
                    pool.add(name)
                    threading.Thread(target=_load, args=(pool, name), name=f"condviz-load-{name}", daemon=True).start()
        return pool.names

    def pack(self, id: str) -> Path:
        """Write the finished model of a job into a zip file.

        Raises:
            DataError: If the job has no model.
        """
        model = self._model_of(id)
        folder = Path(tempfile.mkdtemp(prefix="condviz-"))
        return Path(shutil.make_archive(str(folder / model.name), "zip", model.parent, model.name))

    def push(self, id: str, repository: str, *, token: str, private: bool) -> str:
        """Put the finished model of a job on the hub; gives its address. The token is used once and kept nowhere.

        Raises:
            DataError: If the job has no model, or the hub refuses; the message never holds the token.
        """
        repository, token = str(repository or "").strip(), str(token or "").strip()
        if not re.fullmatch(r"[\w.-]+/[\w.-]+", repository):
            raise DataError(f"The repository is {repository[:80]!r}; write owner/name, for instance ada/my-hyper-cl.")
        if not token:
            raise DataError("A token with the right to write is needed: huggingface.co/settings/tokens.")
        model = self._model_of(id)
        try:
            return self.engine.push(model, repository, token=token, private=bool(private))
        except Exception as error:  # the client raises errors of several libraries
            said = _TOKEN.sub("(token)", str(error).replace(token, "(token)")).strip()
            reason = said.splitlines()[0][:200] if said else "no reason given"
            raise DataError(f"The hub did not take the model ({type(error).__name__}: {reason}).") from None

    def baselines(self, run: RunView, metric: str) -> dict[str, float]:
        """Give stored scores to draw beside a training: model -> value; nothing if it measures on other data."""
        sources = run.recipe.get("validation") or []
        if not sources or any(source.get("name") != "scenes" for source in sources):
            return {}
        try:
            board = read_board()
        except DataError:
            board = Board()
        found = {name: board.find(name, "test") for name in BASELINES}
        values = {name: getattr(part, metric).value for name, part in found.items() if part is not None}
        return {name: value for name, value in values.items() if value is not None}

    def _seen(self, job: Any) -> RunView:  # noqa: ANN401 - a Job
        """Give a job; what has ended is read once, as every open page asks again and again."""
        kept = self._ended.get(job.id)
        if kept is not None and kept[0] == job.status:
            return kept[1]
        run = _view(job)
        if not run.active:
            self._ended[job.id] = (job.status, run)
        return run

    def _model_of(self, id: str) -> Path:
        job = self.jobs.get(id)
        if job.state != "done" or not job.out.is_dir():
            raise DataError(f"Job {job.name} is {job.state}: it has left no model.")
        return job.out

    def _require_enabled(self) -> None:
        if not self.enabled:
            raise ConfigError(f"Training is off. {OFF}")


def _view(job: Any, *, log: bool = False) -> RunView:  # noqa: ANN401 - a Job
    run = RunView(
        id=job.id,
        name=job.name,
        method=str(job.recipe.get("method", "")),
        state=job.state,
        reason=job.reason,
        phase=job.phase if job.state == "running" else "",
        step=job.step,
        steps=job.steps,
        elapsed=job.elapsed,
        idle=time.time() - job.updated,
        left=job.seconds_left,
        speed=job.tokens_per_second,
        probes=tuple(Probe(*texts) for texts in job.status.probes),
        log=_end(job.log()) if log else "",
        recipe=job.recipe,
        created=time.strftime("%Y-%m-%d %H:%M", time.localtime(job.status.created)),
    )
    return with_records(run, job.records())


def _end(log: str) -> str:
    """Give the last lines of a log, whole ones."""
    return log if len(log) <= LOG_CHARACTERS else log[-LOG_CHARACTERS:].partition("\n")[2]


def _load(pool: Any, name: str) -> None:  # noqa: ANN401 - a ModelPool
    try:
        pool.get(name)
    except CondvizError:  # its state tells
        return
