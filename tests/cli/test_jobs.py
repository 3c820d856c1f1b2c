"""The command jobs, and train --follow."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from condviz.cli import train as jobs_command
from condviz.training.job import Job
from condviz.training.jobs import Jobs
from tests.commands import Command
from tests.training.toy import toy_recipe
from tests.training.toy_jobs import end, pretend_jobs


@pytest.fixture
def jobs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Jobs:
    found = pretend_jobs(tmp_path, monkeypatch)

    class Found(Jobs):
        def __new__(cls, **_: object) -> Jobs:
            return found

    monkeypatch.setattr(jobs_command, "Jobs", Found)
    return found


@pytest.fixture
def job(jobs: Jobs, tmp_path: Path) -> Job:
    return jobs.submit(toy_recipe(tmp_path), device="cpu")


def test_jobs_are_listed(jobs: Jobs, job: Job, cli: Command) -> None:
    (job.folder / "heartbeat.json").write_text('{"time": 1.0, "step": 3, "steps": 12, "seconds_left": 120.0}')
    assert cli("jobs").out.split() == [job.id, "toy", "running", "3", "of", "12", "2", "min", "left"]
    (facts,) = json.loads(cli("jobs", "--json").out)
    assert (facts["id"], facts["state"], facts["device"], facts["steps"]) == (job.id, "running", "cpu", 12)


def test_without_jobs_it_says_so(jobs: Jobs, cli: Command) -> None:
    assert "There are no trainings" in cli("jobs").err


def test_a_job_is_driven_by_id_or_name(jobs: Jobs, job: Job, cli: Command) -> None:
    assert "stopping" in cli("jobs", "stop", "toy").out
    cli("jobs", "stop", job.id, "--force")
    assert jobs.get(job.id).state == "stopped"
    cli("jobs", "resume", job.id)
    assert jobs.get(job.id).state == "running"
    assert "toy-2" in cli("jobs", "rerun", job.id).out
    end(jobs, job)
    cli("jobs", "delete", job.id)
    assert [left.name for left in jobs.list()] == ["toy-2"]


@pytest.mark.parametrize(
    ("words", "message"),
    [(["stop"], "Which job?"), (["stop", "nobody"], "There is no job 'nobody'"), (["delete", "toy"], "toy is running")],
)
def test_what_cannot_be_done(job: Job, cli: Command, words: list[str], message: str) -> None:
    assert message in cli.refuse("jobs", *words)


def test_following_shows_the_log_and_ends_with_the_job(jobs: Jobs, job: Job, cli: Command) -> None:
    (job.folder / "log.txt").write_text("step 1\nstep 2\n")
    end(jobs, job)
    followed = cli("jobs", "follow", "toy")
    assert followed.out == f"{job.out}\n"
    assert followed.err.endswith("step 1\nstep 2\n")


def test_following_a_job_that_fails(jobs: Jobs, job: Job, cli: Command) -> None:
    end(jobs, job, "failed", "The disk is full.")
    assert f"Job {job.id} has ended: failed. The disk is full." in cli.refuse("jobs", "follow", job.id)


def test_training_as_a_job(jobs: Jobs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cli: Command) -> None:
    recipe, followed, path = toy_recipe(tmp_path), [], tmp_path / "toy.toml"
    path.write_text('name = "toy"\n')
    monkeypatch.setattr("condviz.training.recipes.load_recipe", lambda *_: recipe)
    monkeypatch.setattr(jobs_command, "follow", lambda jobs, job: followed.append(job))
    cli("train", path, "--follow", "--device", "cpu")
    assert (followed[0].name, followed[0].state) == ("toy", "running")
    assert "No job of the name 'toy' can go on" in cli.refuse("train", path, "--follow", "--resume")
    jobs.stop(followed[0].id, force=True)
    cli("train", path, "--follow", "--resume")
    assert followed[1].id == followed[0].id
    assert "--out goes without --follow" in cli.refuse("train", path, "--follow", "--out", "somewhere")
