"""The command jobs, and train --follow."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from condviz.cli import main as cli
from condviz.cli import train as jobs_command
from condviz.training.job import Job
from condviz.training.jobs import Jobs
from tests.training.toy import toy_recipe
from tests.training.toy_jobs import end, pretend_jobs

Output = pytest.CaptureFixture[str]


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


def test_jobs_are_listed(jobs: Jobs, job: Job, capsys: Output) -> None:
    (job.folder / "heartbeat.json").write_text('{"time": 1.0, "step": 3, "steps": 12, "seconds_left": 120.0}')
    assert cli.main(["jobs"]) == 0
    assert capsys.readouterr().out.split() == [job.id, "toy", "running", "3", "of", "12", "2", "min", "left"]
    assert cli.main(["jobs", "--json"]) == 0
    (facts,) = json.loads(capsys.readouterr().out)
    assert (facts["id"], facts["state"], facts["device"], facts["steps"]) == (job.id, "running", "cpu", 12)


def test_without_jobs_it_says_so(jobs: Jobs, capsys: Output) -> None:
    assert cli.main(["jobs"]) == 0
    assert "There are no trainings" in capsys.readouterr().err


def test_a_job_is_driven_by_id_or_name(jobs: Jobs, job: Job, capsys: Output) -> None:
    assert cli.main(["jobs", "stop", "toy"]) == 0
    assert "stopping" in capsys.readouterr().out
    assert cli.main(["jobs", "stop", job.id, "--force"]) == 0
    assert jobs.get(job.id).state == "stopped"
    assert cli.main(["jobs", "resume", job.id]) == 0
    assert jobs.get(job.id).state == "running"
    assert cli.main(["jobs", "rerun", job.id]) == 0
    assert "toy-2" in capsys.readouterr().out
    end(jobs, job)
    assert cli.main(["jobs", "delete", job.id]) == 0
    assert [left.name for left in jobs.list()] == ["toy-2"]


@pytest.mark.parametrize(
    ("words", "message"),
    [(["stop"], "Which job?"), (["stop", "nobody"], "There is no job 'nobody'"), (["delete", "toy"], "toy is running")],
)
def test_what_cannot_be_done(job: Job, capsys: Output, words: list[str], message: str) -> None:
    assert cli.main(["jobs", *words]) == 2
    assert message in capsys.readouterr().err


def test_following_shows_the_log_and_ends_with_the_job(jobs: Jobs, job: Job, capsys: Output) -> None:
    (job.folder / "log.txt").write_text("step 1\nstep 2\n")
    end(jobs, job)
    assert cli.main(["jobs", "follow", "toy"]) == 0
    output = capsys.readouterr()
    assert output.out == f"{job.out}\n"
    assert output.err.endswith("step 1\nstep 2\n")


def test_following_a_job_that_fails(jobs: Jobs, job: Job, capsys: Output) -> None:
    end(jobs, job, "failed", "The disk is full.")
    assert cli.main(["jobs", "follow", job.id]) == 2
    assert f"Job {job.id} has ended: failed. The disk is full." in capsys.readouterr().err


def test_training_as_a_job(jobs: Jobs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Output) -> None:
    recipe, followed, path = toy_recipe(tmp_path), [], tmp_path / "toy.toml"
    path.write_text('name = "toy"\n')
    monkeypatch.setattr("condviz.training.recipes.load_recipe", lambda *_: recipe)
    monkeypatch.setattr(jobs_command, "follow", lambda jobs, job: followed.append(job))
    assert cli.main(["train", str(path), "--follow", "--device", "cpu"]) == 0
    assert (followed[0].name, followed[0].state) == ("toy", "running")
    assert cli.main(["train", str(path), "--follow", "--resume"]) == 2
    assert "No job of the name 'toy' can go on" in capsys.readouterr().err
    jobs.stop(followed[0].id, force=True)
    assert cli.main(["train", str(path), "--follow", "--resume"]) == 0
    assert followed[1].id == followed[0].id
    assert cli.main(["train", str(path), "--follow", "--out", "somewhere"]) == 2
    assert "--out goes without --follow" in capsys.readouterr().err
