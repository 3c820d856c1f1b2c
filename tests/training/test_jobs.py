"""The queue: what may start, who waits, how jobs end, and what is offered after that. No training runs here."""

from __future__ import annotations

import json
import os
import re
import threading
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from condviz.errors import CondvizError, ConfigError, DataError, TrainingError
from condviz.training.job import DISK, OUT_OF_MEMORY, Heartbeat, Job, Process, explain, find_process, write_status
from condviz.training.jobs import Jobs, is_enabled
from condviz.training.recipes import SentenceRecipe, from_dict
from tests.training.toy import HEADER, toy_recipe
from tests.training.toy_jobs import end, pretend_jobs

GONE = Process(2**22 + 1, 0.0)


@pytest.fixture
def jobs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Jobs:
    return pretend_jobs(tmp_path, monkeypatch)


def recipe(jobs: Jobs, name: str = "toy", **changes: Any) -> SentenceRecipe:
    return toy_recipe(jobs.folder.parent, name=name, **changes)


def submit(jobs: Jobs, name: str = "toy", **changes: Any) -> Job:
    return jobs.submit(recipe(jobs, name, **changes), device="cpu")


def save_state(job: Job, step: int, *, whole: bool = True) -> None:
    state = job.folder / "run" / f"checkpoint-{step}"
    state.mkdir(parents=True)
    (state / "model.safetensors").write_bytes(b"weights")
    if whole:
        (state / "complete").touch()


def states(jobs: Jobs) -> dict[str, str]:
    return {job.name: job.state for job in jobs.list()}


def test_one_job_runs_and_the_others_wait_in_order(jobs: Jobs) -> None:
    first, second, third = (submit(jobs, name) for name in ("a", "b", "c"))
    assert [job.name for job in jobs.list()] == ["c", "b", "a"]
    assert (first.state, second.state, third.state) == ("running", "queued", "queued")
    end(jobs, first)
    assert states(jobs) == {"a": "done", "b": "running", "c": "queued"}
    jobs.stop(third.id)
    end(jobs, second, "failed", "The disk is full.")
    assert states(jobs) == {"a": "done", "b": "failed", "c": "stopped"}
    assert jobs.get(second.id).reason == "The disk is full."
    assert jobs.get(third.id).reason == "Stopped before it began."


def test_what_watches_a_training_waits_until_its_start_is_written_down(jobs: Jobs) -> None:
    job = submit(jobs)
    write_status(job.folder, replace(job.status, state="queued"))
    with ThreadPoolExecutor() as threads:
        with jobs._lock():
            begun = threads.submit(Jobs(jobs.folder).begun, job.id)
            wait([begun], 0.05)
            write_status(job.folder, replace(job.status, state="running"))
        assert begun.result().state == "running"


def test_devices_have_queues_of_their_own(jobs: Jobs, monkeypatch: pytest.MonkeyPatch) -> None:
    submit(jobs, "a")
    monkeypatch.setattr("condviz.training.preflight.choose_processes", lambda device: ("cuda", 2))
    other = jobs.submit(recipe(jobs, "b"))
    assert (other.state, other.status.device, other.status.processes) == ("running", "cuda", 2)


def test_a_job_keeps_the_recipe_as_it_is_and_as_it_was_written(jobs: Jobs) -> None:
    wanted = recipe(jobs)
    job = jobs.submit(wanted, text="# mine\n", device="cpu", probes=[("a", "b", "c")])
    assert job.recipe == wanted.to_dict()
    assert (job.folder / "recipe.toml").read_text() == "# mine\n"
    assert job.status.probes == (("a", "b", "c"),)
    probes = jobs.get(submit(jobs, "other").id).status.probes
    assert len(probes) == 6
    assert [first[:2] == second[:2] for first, second in zip(probes[::2], probes[1::2], strict=True)] == [True] * 3
    assert (job.name, job.out, job.heartbeat) == ("toy", jobs.checkpoints / "toy", Heartbeat())


def test_stopping_asks_first_and_then_ends_by_force(jobs: Jobs, monkeypatch: pytest.MonkeyPatch) -> None:
    killed = []
    monkeypatch.setattr("condviz.training.jobs.kill", killed.append)
    job = submit(jobs)
    save_state(job, 7)
    (job.folder / "heartbeat.json").write_text('{"time": 1.0, "phase": "training", "step": 8}')
    assert jobs.stop(job.id).state == "stopping"
    assert (job.folder / "stop").exists()
    assert jobs.stop(job.id).state == "stopping"
    stopped = jobs.stop(job.id, force=True)
    assert stopped.state == "stopped"
    assert stopped.reason == "Ended by force. Resume goes on from step 7."
    assert find_process() in killed
    with pytest.raises(TrainingError, match="toy is stopped: there is nothing to stop"):
        jobs.stop(job.id)


def test_resuming_waits_its_turn_and_keeps_the_time_spent(jobs: Jobs) -> None:
    first, second = submit(jobs, "a"), submit(jobs, "b")
    with pytest.raises(TrainingError, match="a is running: only what has ended without a model can go on"):
        jobs.resume(first.id)
    write_status(first.folder, replace(first.status, started=100.0, ended=160.0, state="stopped"))
    assert jobs.get(first.id).elapsed == 60
    assert states(jobs) == {"a": "stopped", "b": "running"}
    assert jobs.resume(first.id).state == "queued"
    assert jobs.get(first.id).elapsed == 60
    end(jobs, second)
    assert states(jobs) == {"a": "running", "b": "done"}


def test_a_job_whose_processes_are_gone_is_dead_and_the_next_starts(jobs: Jobs) -> None:
    job, _ = submit(jobs, "a"), submit(jobs, "b")
    write_status(job.folder, replace(job.status, supervisor=GONE))
    save_state(job, 3)
    save_state(job, 5, whole=False)
    assert states(jobs) == {"a": "dead", "b": "running"}
    dead = jobs.get(job.id)
    assert "process is gone" in dead.reason
    assert dead.reason.endswith("Resume goes on from step 3.")
    assert (dead.saved_step, dead.can_resume) == (3, True)


def test_a_dead_job_has_worked_until_its_last_sign_of_life(jobs: Jobs) -> None:
    job = submit(jobs)
    write_status(job.folder, replace(job.status, supervisor=GONE, started=100.0))
    (job.folder / "heartbeat.json").write_text('{"time": 160.0}')
    assert jobs.get(job.id).elapsed == 60


def test_a_training_without_its_supervisor_still_counts_as_running(jobs: Jobs) -> None:
    job = submit(jobs)
    write_status(job.folder, replace(job.status, supervisor=GONE))
    beat = {"time": 1.0, "step": 4, "steps": 9, "phase": "training", "worker": vars(find_process())}
    (job.folder / "heartbeat.json").write_text(json.dumps(beat | {"seconds_left": 8.0, "tokens_per_second": 90.0}))
    seen = jobs.get(job.id)
    told = seen.heartbeat
    assert (seen.state, told.step, told.steps, told.phase) == ("running", 4, 9, "training")
    assert (seen.seconds_left, told.tokens_per_second) == (8.0, 90.0)
    (job.folder / "heartbeat.json").write_text(json.dumps(beat | {"worker": vars(GONE)}))
    (job.folder / "end.json").write_text('{"state": "done", "reason": ""}')
    assert jobs.get(job.id).state == "done"


@pytest.mark.parametrize(
    ("code", "log", "reason"),
    [
        (-9, "", r"killed from outside \(SIGKILL\).*memory runs out.*halve batch_size"),
        (137, "", r"killed from outside \(SIGKILL\)"),
        (-15, "", r"killed from outside \(SIGTERM\)\. Resume goes on"),
        (1, "ImportError: no torch\n\n", "ended with code 1 .* ImportError: no torch"),
        (1, "", "the log is empty"),
        (1, "torch.OutOfMemoryError: CUDA out of memory. Tried to", "^Out of memory. Halve batch_size"),
    ],
)
def test_a_training_that_could_not_speak_has_failed_with_a_reason(jobs: Jobs, code: int, log: str, reason: str) -> None:
    job = submit(jobs)
    (job.folder / "log.txt").write_text(log)
    jobs.settle(job.id, code=code)
    failed = jobs.get(job.id)
    assert failed.state == "failed"
    assert re.search(reason, failed.reason), failed.reason
    assert failed.log() == log


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (OSError(28, "No space left on device"), DISK),
        (RuntimeError("[enforce fail at inline_container.cc] PytorchStreamWriter failed writing file"), DISK),
        (MemoryError(), OUT_OF_MEMORY),
        (RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 9 bytes"), OUT_OF_MEMORY),
        (DataError("rows.csv is missing."), "rows.csv is missing."),
        (ZeroDivisionError("division by zero"), "Unexpected ZeroDivisionError: division by zero. The end of the log"),
    ],
)
def test_reasons_are_words(error: Exception, reason: str) -> None:
    assert explain(error).startswith(reason)
    wrapped = DataError("heartbeat.json could not be written")
    wrapped.__cause__ = error
    if reason in (DISK, OUT_OF_MEMORY):
        assert explain(wrapped) == reason


def test_measurements_of_lost_steps_are_left_out(jobs: Jobs) -> None:
    job = submit(jobs)
    (job.folder / "run").mkdir()
    rows = [("start", 0), ("step", 10), ("evaluation", 10), ("step", 20), ("start", 10), ("step", 20), ("end", 20)]
    lines = [json.dumps({"event": event, "step": step, "turn": turn}) for turn, (event, step) in enumerate(rows)]
    (job.folder / "run" / "log.jsonl").write_text("\n".join(lines) + '\n{"event": "st')
    assert [record["turn"] for record in job.records()] == [0, 1, 2, 5, 6]


def test_running_again_takes_a_free_name(jobs: Jobs) -> None:
    job = submit(jobs)
    assert jobs.rerun(job.id).name == "toy-2"
    assert jobs.rerun(job.id).name == "toy-3"
    end(jobs, job, "failed", "no reason")
    again = jobs.rerun(job.id)
    assert (again.name, again.recipe) == ("toy", job.recipe)
    assert again.id != job.id


@pytest.mark.parametrize(
    ("name", "free"), [("run-5", "run-6"), ("run-10", "run-11"), ("run-0", "run-0-2"), ("a-9", "a-10")]
)
def test_a_name_with_a_number_is_counted_on(jobs: Jobs, name: str, free: str) -> None:
    assert jobs.free_name(name) == name
    submit(jobs, name)
    assert jobs.free_name(name) == free


def test_running_again_reads_what_was_admitted_before(jobs: Jobs, tmp_path_factory: pytest.TempPathFactory) -> None:
    outside = tmp_path_factory.mktemp("outside")
    wider = Jobs(jobs.folder, checkpoints=jobs.checkpoints, roots=[*jobs.roots, outside])
    wanted = recipe(jobs, init=str(outside))
    job = wider.submit(wanted, device="cpu")
    assert jobs.rerun(job.id).recipe == {**job.recipe, "name": "toy-2"}
    with pytest.raises(ConfigError, match="is outside"):
        jobs.submit(replace(wanted, name="other"), device="cpu")


def test_deleting(jobs: Jobs) -> None:
    job = submit(jobs)
    with pytest.raises(TrainingError, match=r"toy is running\. Stop it before"):
        jobs.delete(job.id)
    job.out.mkdir(parents=True)
    end(jobs, job)
    jobs.delete(job.id)
    assert (jobs.list(), job.out.is_dir(), job.folder.exists()) == ([], True, False)  # that is not what it trained
    for action in (jobs.get, jobs.resume, jobs.rerun, jobs.stop, jobs.delete):
        with pytest.raises(TrainingError, match=f"There is no job '{job.id}'. It may have been deleted"):
            action(job.id)
    with pytest.raises(TrainingError, match="There is no job"):
        jobs.get("../jobs")


def test_names_are_given_once(jobs: Jobs) -> None:
    submit(jobs)
    with pytest.raises(TrainingError, match="'toy' is taken: a job of this name is running"):
        submit(jobs)
    with pytest.raises(TrainingError, match="'minilm' is taken: a model of this name exists"):
        submit(jobs, "minilm")
    (jobs.checkpoints / "mine").mkdir(parents=True)
    with pytest.raises(TrainingError, match="'mine' is taken"):
        submit(jobs, "mine")


def test_of_two_starts_at_once_one_wins(jobs: Jobs) -> None:
    wanted, gate, results = recipe(jobs), threading.Barrier(2), []

    def start() -> None:
        other = Jobs(jobs.folder, checkpoints=jobs.checkpoints, roots=jobs.roots)
        gate.wait()
        try:
            results.append(other.submit(wanted, device="cpu").state)
        except TrainingError as error:
            results.append(str(error)[:23])

    threads = [threading.Thread(target=start) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(results) == ["The name 'toy' is taken", "running"]
    assert len(jobs.list()) == 1


@pytest.mark.parametrize(
    ("table", "changes", "message"),
    [
        ("sentence1,sentence2,label\na,b,1\n", {}, "has no column condition"),
        (HEADER + "a,b,x,1\na,b,y,5\nc,d,x,3\n", {"batching": "rows", "loss": {"mse": 1.0}}, "only 3 rows"),
        (HEADER + "".join(f"a{i},b,x,4\n" for i in range(20)), {"batching": "rows", "loss": {"mse": 1.0}},
         "Every row has the label 4"),
        (HEADER + "a,b,x,2\n" * 20, {"batching": "rows", "loss": {"mse": 1.0}}, "only 1 rows"),
        (HEADER + "a" * 6000 + ",b,x,2\n", {}, "at most 5,000|5000"),
        (None, {"batch_size": 500}, "batch_size is 500, but there are only 24 rows. Set it to 16"),
    ],
)  # fmt: skip
def test_tables_that_teach_nothing(jobs: Jobs, table: str | None, changes: dict, message: str) -> None:
    wanted = recipe(jobs, **changes)
    if table is not None:
        Path(wanted.train[0].path).write_text(table)
    with pytest.raises(DataError, match=message):
        jobs.submit(wanted, device="cpu")
    assert jobs.list() == []


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"lr": 0.0}, "lr is 0.0, allowed is above 0"),
        ({"lr": 1e3}, "lr is 1000.0, allowed is below 1"),
        ({"learning_rate": 0.1}, "Unknown key learning_rate"),
        ({"name": "../../etc"}, "name '../../etc' cannot"),
        ({"name": "<b>x</b>"}, "name '<b>x<"),
        ({"train": [{"name": "csv", "path": "/etc/hostname"}]}, "/etc/hostname is outside of the folders"),
    ],
)
def test_recipes_that_are_refused(jobs: Jobs, changes: dict, message: str) -> None:
    with pytest.raises(CondvizError, match=message):
        submit(jobs, **{"name": "toy", **changes})
    assert jobs.list() == []


OUTSIDE = "/etc/passwd"
ENTRIES: list[dict[str, Any]] = [
    {"train": [{"name": "csv", "path": OUTSIDE}]},
    {"train": [{"name": "csv", "path": "../../../../../../../../../../etc/passwd"}]},
    {"validation": [{"name": "csv", "path": OUTSIDE}]},
    {"backbone": "/etc"},
    {"backbone": "../../etc"},
    {"init": "/etc"},
    {"teacher": ["minilm", "/etc"], "loss": {"mse": 1.0, "teacher": 1.0}},
    {"graph": "/etc"},
    {"graph": "everyday", "init": "/etc"},
]


@pytest.mark.parametrize("changes", ENTRIES, ids=str)
def test_every_entry_that_names_a_path_is_admitted_before_it_is_opened(jobs: Jobs, changes: dict) -> None:
    content = recipe(jobs, batching="rows", loss={"mse": 1.0}).to_dict()
    if "graph" in changes:
        content = {"name": "toy", "method": "tri-encoder"}
    wanted = from_dict(content | changes)
    missing = from_dict(json.loads(json.dumps(wanted.to_dict()).replace("/etc", "/no-such-folder")))
    said = []
    for action in (jobs.submit, jobs.check):
        for asked in (wanted, missing):
            with pytest.raises(ConfigError, match="is outside of the folders") as caught:
                action(asked, device="cpu")
            said.append(str(caught.value).replace("no-such-folder", "etc"))
    assert len(set(said)) == 1, "the answer must not tell whether there is such a file"


def test_on_a_space_strangers_are_not_told_where_things_lie(jobs: Jobs, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = recipe(jobs)
    monkeypatch.setenv("SPACE_ID", "somebody/condviz")
    monkeypatch.setenv("CONDVIZ_TRAINING", "1")
    monkeypatch.setattr("condviz.training.preflight._encoder", lambda name, folders: name)
    for path, message in ((OUTSIDE, "outside of the folders"), ("nowhere.csv", "no such file")):
        asked = from_dict(wanted.to_dict() | {"train": [{"name": "csv", "path": path}]})
        with pytest.raises(CondvizError, match=message) as caught:
            jobs.submit(asked, device="cpu")
        assert "/" not in str(caught.value).replace(OUTSIDE, "")


def test_on_a_space_only_the_owner_changes_a_job(jobs: Jobs, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPACE_ID", "somebody/condviz")
    monkeypatch.setenv("CONDVIZ_TRAINING", "1")
    monkeypatch.setattr("condviz.training.preflight._encoder", lambda name, folders: name)
    job = jobs.submit(recipe(jobs), device="cpu", owner="mine")
    assert "mine" not in (job.folder / "status.json").read_text()
    for token in ("", "yours"):
        assert not job.may_change(token)
        for action in (jobs.stop, jobs.resume, jobs.rerun, jobs.delete):
            with pytest.raises(TrainingError, match="started by somebody else"):
                action(job.id, token=token)
    assert jobs.stop(job.id, token="mine").state == "stopping"
    old = replace(job, status=replace(job.status, owner=""))  # from before jobs had owners
    assert not old.may_change("")
    assert old.may_change(None)
    monkeypatch.delenv("SPACE_ID")
    assert job.may_change("yours")


def test_deleting_takes_the_uploads_and_the_model_along(jobs: Jobs, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = recipe(jobs)
    found = []
    for name in ("first", "second", "third"):
        folder = jobs.uploads / name
        folder.mkdir(parents=True)
        table = Path(wanted.train[0].path).read_text()
        (folder / "train.csv").write_text(table)
        found.append({"name": "csv", "path": str(folder / "train.csv")})
    first = jobs.submit(recipe(jobs, "a", train=found[:2]), device="cpu")
    second = jobs.submit(recipe(jobs, "b", train=found[1:2]), device="cpu")
    end(jobs, first)
    first.out.mkdir(parents=True)
    monkeypatch.setattr(Jobs, "_is_model_of", lambda self, job: True)
    jobs.delete(first.id)
    assert sorted(path.name for path in jobs.uploads.iterdir()) == ["second", "third"]
    assert not first.out.exists()
    os.utime(jobs.uploads / "third", (0, 0))
    os.utime(jobs.uploads / "second", (0, 0))
    jobs.remove_old_uploads()
    assert [path.name for path in jobs.uploads.iterdir()] == ["second"]
    end(jobs, second)
    second.out.mkdir(parents=True)
    jobs.delete(second.id, keep_model=True)
    assert second.out.exists()


def test_jobs_of_other_versions_can_be_read(jobs: Jobs) -> None:
    job = submit(jobs)
    content = json.loads((job.folder / "status.json").read_text())
    del content["owner"]
    (job.folder / "status.json").write_text(json.dumps(content | {"colour": "red"}))
    assert jobs.get(job.id).status == job.status


def test_a_link_does_not_lead_out_of_the_folders(jobs: Jobs, tmp_path_factory: pytest.TempPathFactory) -> None:
    wanted = recipe(jobs)
    outside = tmp_path_factory.mktemp("outside") / "rows.csv"
    path = Path(wanted.train[0].path)
    path.rename(outside)
    path.symlink_to(outside)
    with pytest.raises(ConfigError, match="is outside"):
        jobs.submit(wanted, device="cpu")


def test_off_means_off(jobs: Jobs, monkeypatch: pytest.MonkeyPatch) -> None:
    job = submit(jobs)
    end(jobs, job, "failed", "for the test")
    monkeypatch.setenv("SPACE_ID", "somebody/condviz")
    assert not is_enabled()
    for action in (lambda: submit(jobs, "new"), lambda: jobs.resume(job.id), lambda: jobs.rerun(job.id)):
        with pytest.raises(TrainingError, match=r"switched off on this Space.*Duplicate the Space.*CONDVIZ_TRAINING=1"):
            action()
    monkeypatch.setenv("CONDVIZ_TRAINING", "1")
    assert is_enabled()
    with pytest.raises(ConfigError, match=r"backbone is .*encoder'; on this Space it is one of sentence-transformers"):
        submit(jobs, "new")


def test_folders_that_hold_no_job_are_passed_over(jobs: Jobs) -> None:
    job = submit(jobs)
    (jobs.folder / "half").mkdir()
    (jobs.folder / "half" / "status.json").write_text('{"state": "run')
    (jobs.folder / "uploads").mkdir()
    assert [found.id for found in jobs.list()] == [job.id]
    assert Jobs(jobs.folder / "nowhere").list() == []
