"""Trainings that are killed, stopped and watched: real processes on a tiny model."""

from __future__ import annotations

import io
import json
import os
import random
import signal
import sys
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest
import tomlkit
import torch
from safetensors.torch import load_file

from condviz.cli.main import main
from condviz.errors import DataError, TrainingStopped
from condviz.models import checkpoints
from condviz.models.manifest import WEIGHTS, read_manifest
from condviz.training import loop, worker
from condviz.training.job import UNFINISHED, Job, read_job
from condviz.training.jobs import Jobs
from condviz.training.recipes import SentenceRecipe
from condviz.training.trainer import carry_out
from tests.children import in_child
from tests.fresh import modules_after
from tests.training.toy import toy_recipe
from tests.training.toy_jobs import pretend_jobs

KILLS = int(os.environ.get("CONDVIZ_KILLS", "3"))
"""How many trainings are killed; set it to 20 to be surer."""
STEPS = 18


def recipe(folder: Path, **changes: Any) -> SentenceRecipe:
    """Give 18 steps with dropout, a state after every third."""
    return toy_recipe(
        folder, "hyper-cl", config={"rank": 4}, **{"epochs": 3, "batch_size": 4, "evaluations": 2, **changes}
    )


def run(folder: Path, out: str, steer: Callable[[int, int], bool] | None = None) -> None:
    carry_out(recipe(folder), folder / out, resume=True, device="cpu", steer=steer, folder=folder / f"{out}-run")


def run_until_killed(folder: Path, out: str, place: str, count: int) -> None:
    """Train, and die at a step, or in the middle of writing a file."""

    def die(*_: object) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    if place == "step":
        run(folder, out, lambda step, _: bool(step == count and die()))
    calls = iter(range(1, 10**6))
    save = torch.save

    def half(content: object, path: object, *args: object, **kwargs: object) -> None:
        if next(calls) == count:
            Path(str(path)).write_bytes(b"PK half of a state")
            die()
        save(content, path, *args, **kwargs)

    torch.save = half
    run(folder, out)


@pytest.fixture(scope="module")
def straight(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give a folder in which one training went through."""
    folder = tmp_path_factory.mktemp("killed")
    recipe(folder)
    assert in_child(run, folder, "straight") == 0
    return folder


def assert_same_weights(folder: Path, out: str) -> None:
    one, other = (load_file(folder / name / WEIGHTS) for name in ("straight", out))
    torch.testing.assert_close(other, one, rtol=0, atol=0)


@pytest.mark.parametrize("seed", range(KILLS))
def test_a_killed_training_ends_with_the_same_weights(straight: Path, seed: int) -> None:
    dice, out = random.Random(seed), f"killed{seed}"
    deaths = 1 + seed % 2
    for _ in range(deaths):
        place = dice.choice(("step", "save"))
        count = dice.randint(1, STEPS - 1) if place == "step" else dice.randint(1, 12)
        code = in_child(run_until_killed, straight, out, place, count)
        assert code in (-signal.SIGKILL, 0), place  # 0: the second time it was beyond that step
    assert in_child(run, straight, out) == 0
    assert_same_weights(straight, out)


def train_by_command(folder: Path, number: int, *more: str) -> None:
    """Run `condviz train`; after the evaluation of step 3 the signal comes."""

    class Terminal(io.StringIO):
        def write(self, text: str) -> int:
            if text.startswith("step 3 of"):
                os.kill(os.getpid(), number)
            if "Stopped" in text:
                (folder / "said").write_text(text)
            return len(text)

    sys.stderr = Terminal()
    (folder / "toy.toml").write_text(tomlkit.dumps(recipe(folder).to_dict()), encoding="utf-8")
    sys.exit(main(["train", str(folder / "toy.toml"), "--out", str(folder / f"by{number}"), "--device", "cpu", *more]))


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_plain_training_saves_when_it_is_told_to_stop(straight: Path, number: int) -> None:
    assert in_child(train_by_command, straight, int(number)) == 128 + number
    said = (straight / "said").read_text()
    assert f"Stopped after step 4 of {STEPS}, which is saved" in said
    assert "--resume" in said
    assert (straight / f".by{number}.run" / "checkpoint-4").is_dir()
    assert in_child(train_by_command, straight, int(number), "--resume") == 0
    assert_same_weights(straight, f"by{number}")


def stop_often(folder: Path) -> None:
    loop.SAVE_SECONDS = 0.0  # a state after every step
    for at, where in ((1, 1), (6, 7), (10, 10)):  # step 6 is evaluated first
        with pytest.raises(TrainingStopped, match=f"Stopped after step {where} of {STEPS}, which is saved"):
            run(folder, "stopped", lambda step, _, at=at: step >= at)


def test_a_stopped_training_ends_with_the_same_weights(straight: Path) -> None:
    assert in_child(stop_often, straight) == 0
    assert in_child(run, straight, "stopped") == 0
    assert_same_weights(straight, "stopped")


@pytest.fixture
def jobs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Jobs:
    monkeypatch.delenv("SPACE_ID", raising=False)
    return Jobs(tmp_path / "jobs", checkpoints=tmp_path / "checkpoints", roots=[tmp_path])


@pytest.fixture
def job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Job:
    """Give a job that nobody has started yet, though it counts as running."""
    jobs = pretend_jobs(tmp_path, monkeypatch)
    return jobs.submit(recipe(tmp_path, epochs=1, evaluations=1), device="cpu")


def work(folder: Path) -> None:
    worker.NICENESS = 0  # nobody waits for a page here
    sys.exit(worker.main(folder))


def end_of(job: Job) -> dict[str, str]:
    return json.loads((job.folder / "end.json").read_text())


def test_the_worker_leaves_a_model_and_a_last_word(job: Job) -> None:
    assert in_child(work, job.folder) == 0
    assert end_of(job) == {"state": "done", "reason": ""}
    told = read_manifest(job.out)["training"]["recipe"]
    assert {**told, "train": job.recipe["train"], "validation": job.recipe["validation"]} == job.recipe
    seen = read_job(job.folder)
    assert (seen.heartbeat.step, seen.heartbeat.steps, seen.heartbeat.phase) == (6, 6, "finishing")
    assert seen.heartbeat.tokens_per_second > 0
    records = seen.records()
    assert [record["event"] for record in records] == ["start", "step", "evaluation", "end"]
    assert [len(record["probes"]) for record in records if "probes" in record] == [6, 6]


def test_a_worker_that_is_asked_to_stop_saves_first(job: Job) -> None:
    (job.folder / "stop").touch()
    assert in_child(work, job.folder) == 0
    assert end_of(job) == {"state": "stopped", "reason": "Stopped after step 1 of 6, which is saved."}
    assert read_job(job.folder).saved_step == 1
    assert not job.out.exists()


def work_on_a_full_disk(folder: Path) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    torch.save = full
    work(folder)


def work_with_broken_numbers(folder: Path) -> None:
    from condviz.training import model

    model.mean_squared_error = lambda scores, targets: scores.mean() * float("nan")
    work(folder)


@pytest.mark.parametrize(
    ("how", "reason"),
    [
        (work_on_a_full_disk, "The disk is full."),
        (work_with_broken_numbers, "Training stopped after step 0: the loss is nan."),
    ],
)
def test_the_worker_says_why_it_failed(job: Job, how: Callable[[Path], None], reason: str) -> None:
    content = {**job.recipe, "loss": {**job.recipe["loss"], "mse": 1.0}}
    (job.folder / "recipe.json").write_text(json.dumps(content))
    (job.folder / "reserve").write_bytes(b"room")
    assert in_child(how, job.folder) == 1
    assert end_of(job)["state"] == "failed"
    assert end_of(job)["reason"].startswith(reason)
    assert not (job.folder / "reserve").exists()


def test_a_table_that_is_gone(job: Job) -> None:
    Path(job.recipe["train"][0]["path"]).unlink()
    assert in_child(work, job.folder) == 1
    assert "rows.csv is neither in" in end_of(job)["reason"]


def test_what_is_known_goes_into_the_log_in_words(
    job: Job, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise DataError("rows.csv is gone.")

    monkeypatch.setattr(worker, "_train", fail)
    monkeypatch.setattr(worker.signal, "signal", lambda *_: None)
    assert worker.main(job.folder) == 1
    assert capsys.readouterr().err == "rows.csv is gone.\n"
    assert end_of(job)["reason"] == "rows.csv is gone."


@pytest.mark.parametrize(
    ("code", "state", "reason"),
    [
        ("import os; os.kill(os.getpid(), 9)", "failed", "The training was killed from outside (SIGKILL)."),
        ("raise SystemExit(3)", "failed", "The training ended with code 3 before it could say why."),
        ("", "failed", "The training ended with code 0"),
    ],
)
def test_the_supervisor_tells_how_it_ended(
    job: Job, monkeypatch: pytest.MonkeyPatch, code: str, state: str, reason: str
) -> None:
    monkeypatch.setattr(worker, "command", lambda job: [sys.executable, "-c", code])
    worker.watch(job.folder)
    ended = read_job(job.folder)
    assert ended.state == state
    assert ended.reason.startswith(reason)


@pytest.mark.parametrize(
    ("phase", "reason"), [("preparing", "Stopped before its first step"), ("training", "Ended by force")]
)
def test_the_supervisor_ends_what_does_not_stop(
    job: Job, monkeypatch: pytest.MonkeyPatch, phase: str, reason: str
) -> None:
    forever = "import threading; threading.Event().wait()"
    monkeypatch.setattr(worker, "command", lambda job: [sys.executable, "-c", forever])
    (job.folder / "heartbeat.json").write_text(json.dumps({"time": 1.0, "phase": phase}))
    (job.folder / "stop").touch()
    if phase == "training":
        os.utime(job.folder / "stop", (0, 0))
    worker.watch(job.folder)
    ended = read_job(job.folder)
    assert (ended.state, ended.reason) == ("stopped", f"{reason}. Nothing had been saved: resume begins anew.")


def test_watching_needs_no_torch() -> None:
    assert "torch" not in modules_after("import condviz.training.worker")


def test_gpus_are_started_through_accelerate(job: Job) -> None:
    assert worker.command(job)[1:] == ["-m", "condviz.training.worker", str(job.folder)]
    words = worker.command(replace(job, status=replace(job.status, device="cuda", processes=2)))
    assert words[1:3] == ["-m", "accelerate.commands.launch"]
    assert "--multi_gpu" in words
    assert words[words.index("--num_processes") + 1] == "2"
    assert words[-3:] == ["--module", "condviz.training.worker", str(job.folder)]


def wait_for(jobs: Jobs, job: Job, holds: Callable[[Job], bool]) -> Job:
    pause = threading.Event()
    while not holds(now := jobs.get(job.id)):
        pause.wait(0.2)
    return now


def test_the_life_of_two_jobs(jobs: Jobs, tmp_path: Path) -> None:
    """One is killed, which starts the other; that one is stopped at once, begins again and ends with a model."""
    first = jobs.submit(recipe(tmp_path, name="first", epochs=500), device="cpu")
    second = jobs.submit(recipe(tmp_path, name="second", epochs=1), device="cpu")
    assert (first.state, second.state) == ("running", "queued")
    first = wait_for(jobs, first, lambda job: job.heartbeat.worker is not None)
    psutil.Process(first.heartbeat.worker.pid).kill()
    second = wait_for(jobs, second, lambda job: job.state == "running")
    assert jobs.get(first.id).state == "failed"
    assert "SIGKILL" in jobs.get(first.id).reason
    assert jobs.stop(second.id).state == "stopping"
    second = wait_for(jobs, second, lambda job: job.state not in UNFINISHED)
    assert (second.state, second.saved_step) == ("stopped", None)
    assert second.reason.startswith("Stopped before its first step.")
    assert jobs.resume(second.id).state == "running"
    second = wait_for(jobs, second, lambda job: job.state not in UNFINISHED)
    assert (second.state, second.reason) == ("done", "")
    assert [record["event"] for record in second.records()].count("start") == 1
    assert checkpoints.load(second.out, device="cpu").score(["a cat"], ["the man"], ["the mood"]).shape == (1,)


def test_of_the_encoding_of_entities_every_tenth_part_is_logged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("condviz.evaluation.kgc.PART", 5)
    heart = worker.Heart(tmp_path)
    for step in range(5, 201, 5):
        heart.report({"event": "encode", "step": step, "steps": 200})
    steps = [int(line.split("step ")[1].split(":")[0]) for line in capsys.readouterr().out.splitlines()]
    assert steps == [50, 100, 150, 200]
