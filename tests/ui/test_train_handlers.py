"""What the Train tab does on each event, over jobs without processes."""

from __future__ import annotations

import csv
import json
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from condviz.errors import CondvizError, ConfigError, DataError, TrainingError
from condviz.ui.pool import ModelPool
from condviz.ui.service import Service
from condviz.ui.train_api import _plain
from condviz.ui.train_handlers import FormHandlers
from condviz.ui.train_recipe import FIRST, edit, parse, presets
from condviz.ui.train_run import REPLAY_SECONDS, RunView, replay
from condviz.ui.train_service import TrainService
from condviz.ui.train_view import (
    duration,
    render_head,
    render_history,
    render_log,
    render_probes,
    render_progress,
    sparkline,
)
from condviz.ui.train_watch import WatchHandlers
from tests.ui import fakes
from tests.ui.train_fakes import FakeJob, make_preflight, make_train_engine

RECIPE = edit(presets()[FIRST].text, {"name": "mine"})
SHOWN: dict[str, Any] = {"run": None, "replay": None, "drawn": None}


def make_service(folder: Path, names: tuple[str, ...] = ("minilm", "hyper-cl"), **changes: Any) -> TrainService:
    engine = fakes.make_engine(names)
    service = Service(engine, ModelPool(names, engine.load))
    return TrainService(service, make_train_engine(folder, **changes))


@pytest.fixture
def service(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> TrainService:
    monkeypatch.delenv("SPACE_ID", raising=False)
    return make_service(tmp_path)


def last(steps: Iterator[dict[str, Any]]) -> dict[str, Any]:
    """Give all updates of a handler, the later ones over the earlier."""
    whole: dict[str, Any] = {}
    for step in steps:
        whole |= step
    return whole


def submit(service: TrainService, **changes: Any) -> FakeJob:
    run = service.start(edit(RECIPE, {"name": changes.pop("name", "mine")}))
    job = service.jobs.get(run.id)
    for name, value in changes.items():
        setattr(job, name, value)
    return job


# ---- the form


def test_a_preset_fills_the_form_under_a_free_name(service: TrainService) -> None:
    submit(service, name="my-case")
    step = last(FormHandlers(service).preset("case", "scenes", None))
    assert parse(step["recipe"])["name"] == "my-case-2"
    assert step["field_method"]["value"] == "case"
    assert step["field_projection"] == {"value": "linear", "visible": True, "__type__": "update"}
    assert not step["field_rank"]["visible"]
    assert not step["start"]["interactive"]


def test_a_field_is_written_into_the_recipe_and_asks_for_another_check(service: TrainService) -> None:
    step = last(FormHandlers(service).field(RECIPE, 0.002, name="lr"))
    assert parse(step["recipe"])["lr"] == 0.002
    assert step["checked"] == ""
    assert "field_lr" not in step  # what is being typed is left alone
    assert last(FormHandlers(service).field(RECIPE, "csr", name="method"))["field_routed_layers"]["visible"]


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """Give a table of 30 sentence pairs under two conditions."""
    with (tmp_path / "mine.csv").open("w", encoding="utf-8", newline="") as file:
        rows = [(f"a {i}", f"<i>b {i}</i>", c, y) for i in range(30) for c, y in (("the x", 1), ("the y", 5))]
        csv.writer(file).writerows([("sentence1", "sentence2", "condition", "label"), *rows])
    return tmp_path / "mine.csv"


def test_a_wrong_text_is_what_is_checked(service: TrainService) -> None:
    steps = FormHandlers(service).text("name = ")
    assert next(steps)["written"] == "name = "
    with pytest.raises(ConfigError, match="not valid TOML"):
        next(steps)


def test_an_uploaded_table_becomes_the_data(service: TrainService, table: Path) -> None:
    step = last(FormHandlers(service).upload(str(table), 0.2, RECIPE))
    content = parse(step["recipe"])
    assert content["batching"] == "pairs"
    assert [Path(content[part][0]["path"]).parent for part in ("train", "validation")] == [service.jobs.uploads] * 2
    assert "&lt;i&gt;b" in step["table"]["value"]
    assert "<i>b" not in step["table"]["value"]
    back = last(FormHandlers(service).data("scenes", step["recipe"], step["uploaded"]))
    assert parse(back["recipe"])["train"][0]["name"] == "scenes"
    again = last(FormHandlers(service).data("table", back["recipe"], step["uploaded"]))
    assert parse(again["recipe"])["train"] == content["train"]
    other = last(FormHandlers(service).preset("case", "table", step["uploaded"]))
    assert parse(other["recipe"])["train"] == content["train"]


def test_without_a_table_nothing_else_is_trained_on(service: TrainService, table: Path) -> None:
    form = FormHandlers(service)
    with pytest.raises(DataError, match="no table to train on yet"):
        last(form.check(RECIPE, "table"))
    recipe = last(form.upload(str(table), 0.2, RECIPE))["recipe"]
    table.write_text("a,b\n1,2\n", encoding="utf-8")
    steps = form.upload(str(table), 0.2, recipe)
    emptied = next(steps)
    with pytest.raises(DataError, match="no column sentence1"):
        last(steps)
    assert "train" not in parse(emptied["recipe"])
    assert last(form.upload(None, 0.2, recipe))["uploaded"] is None
    assert "recipe" not in last(form.share(None, 0.3, recipe))  # its tables came with it


def test_only_what_was_checked_can_be_started(service: TrainService) -> None:
    form = FormHandlers(service)
    with pytest.raises(ConfigError, match="Press Check"):
        last(form.start(RECIPE, ""))
    step = last(form.check(RECIPE, "scenes"))
    assert step["checked"] == RECIPE
    assert step["start"]["interactive"]
    assert "about 1 min 30 s" in step["preflight"]
    with pytest.raises(ConfigError, match="has changed"):
        last(form.start(edit(RECIPE, {"epochs": 9}), step["checked"]))
    assert last(form.start(RECIPE, step["checked"]))["wanted"] == service.jobs.list()[0].id


def test_what_does_not_fit_cannot_be_started(tmp_path: Path) -> None:
    problem = "This needs about 90 GB. Lower batch_size."
    service = make_service(tmp_path, check=lambda recipe: make_preflight(recipe, problems=(problem,), minutes=None))
    step = last(FormHandlers(service).check(RECIPE, "scenes"))
    assert problem in step["preflight"]
    assert step["checked"] == ""
    assert not step["start"]["interactive"]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"lr": 0.0}, "lr is 0.0"),
        ({"lr": 1000.0}, "lr is 1000"),
        ({"name": ""}, "name is ''"),
        ({"name": "hyper-cl"}, "already"),
        ({"epochs": 0}, "epochs is 0"),
        ({"backbone": "someone/else"}, "backbone is 'someone/else'"),
    ],
)
def test_bad_values_are_named(service: TrainService, changes: dict, message: str) -> None:
    with pytest.raises(CondvizError, match=message):
        last(FormHandlers(service).check(edit(RECIPE, changes), "scenes"))


def test_a_folder_is_an_encoder_but_not_on_a_space(
    service: TrainService, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe = edit(RECIPE, {"backbone": str(tmp_path)})
    assert service.read(recipe).backbone == str(tmp_path)
    monkeypatch.setenv("SPACE_ID", "ada/condviz")
    with pytest.raises(ConfigError, match="allowed are"):
        service.read(recipe)


def test_off_means_off(tmp_path: Path) -> None:
    service = make_service(tmp_path, enabled=lambda: False)
    for refused in (service.start, service.check):
        with pytest.raises(ConfigError, match="Training is off"):
            refused(RECIPE)
    assert service.jobs.list() == []


def test_recipes_come_from_files_and_go_into_files(service: TrainService, tmp_path: Path) -> None:
    form = FormHandlers(service)
    (tmp_path / "r.toml").write_text(RECIPE, encoding="utf-8")
    assert last(form.load(str(tmp_path / "r.toml")))["recipe"] == RECIPE
    file = last(form.download(RECIPE))["out"]["file"]
    assert (file["name"], file["content"]) == ("mine.toml", RECIPE)
    (tmp_path / "r.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ConfigError, match="no text file"):
        last(form.load(str(tmp_path / "r.toml")))


# ---- the runs


def test_a_run_is_painted_and_then_only_what_has_changed(service: TrainService) -> None:
    job = submit(service)
    watch = WatchHandlers(service)
    step = last(watch.opened(SHOWN, [], "spearman"))
    assert 'data-state="running"' in step["run"]
    assert "10 of 20" in step["progress"]
    assert step["timer"].active
    assert json.loads(step["losses"]["figure"])["data"][0]["y"] == [0.9]
    assert "&lt;b&gt;not bold" in step["log"]
    quiet = last(watch.tick(step["shown"], [], "spearman"))
    assert "run" not in quiet
    assert "losses" not in quiet
    assert "progress" in quiet
    job.state = "done"
    ended = last(watch.tick(step["shown"], [], "spearman"))
    assert 'data-state="done"' in ended["run"]
    assert ended["box_model"]["visible"]
    assert not ended["timer"].active


def test_buttons_do_what_they_say(service: TrainService) -> None:
    job = submit(service)
    watch = WatchHandlers(service)

    def press(act: str) -> dict[str, Any]:
        return last(watch.act({"act": act, "run": job.id}, SHOWN, [], "spearman"))

    assert 'data-state="stopped"' in press("stop")["run"]
    assert 'data-state="running"' in press("resume")["run"]
    again = press("rerun")
    assert again["shown"]["run"] == "job-2"
    press("delete")
    assert [one.id for one in service.jobs.list()] == ["job-2"]
    with pytest.raises(TrainingError, match="no job"):
        press("resume")
    with pytest.raises(DataError, match="cannot"):
        press("__init__")


def test_runs_are_compared_in_one_figure(service: TrainService) -> None:
    first, second = submit(service, state="done"), submit(service, name="other")
    step = last(WatchHandlers(service).compare({**SHOWN, "run": second.id}, [first.id], "pair_accuracy"))
    figure = json.loads(step["scores"]["figure"])
    assert [trace["y"] for trace in figure["data"]] == [[50.0, 71.0]] * 2
    assert figure["layout"]["showlegend"]
    assert "mine" in step["history"]


def test_a_finished_model_joins_the_others_at_once(service: TrainService, tmp_path: Path) -> None:
    job = submit(service, state="done")
    names = ["minilm", "hyper-cl", "mine"]
    service.service.engine = fakes.make_engine(names)
    step = last(WatchHandlers(service).opened(SHOWN, [], "spearman"))
    assert step["known"] == names
    assert service.service.info("mine").name == "mine"
    job.out.mkdir(parents=True)
    (job.out / "README.md").write_text("card", encoding="utf-8")
    with zipfile.ZipFile(service.pack(job.id)) as packed:
        assert packed.read("mine/README.md") == b"card"


def test_the_token_is_never_repeated(service: TrainService, tmp_path: Path) -> None:
    sent: list[tuple[Any, ...]] = []

    def push(folder: Path, repository: str, *, token: str, private: bool) -> str:
        sent.append((folder, repository, token, private))
        raise RuntimeError(f"401 for {token} and hf_another")

    service = make_service(tmp_path, push=push)
    job = submit(service, state="done")
    job.out.mkdir(parents=True)
    watch = WatchHandlers(service)
    steps = watch.push("ada/mine", " secret-token ", True, {**SHOWN, "run": job.id})
    assert next(steps)["token"] == ""
    with pytest.raises(DataError, match="did not take") as caught:
        next(steps)
    assert sent == [(job.out, "ada/mine", "secret-token", True)]
    assert "secret" not in str(caught.value)
    assert "hf_another" not in str(caught.value)
    assert caught.value.__cause__ is None
    for repository, token in (("mine", "t"), ("ada/mine", "")):
        with pytest.raises(DataError, match=r"owner/name|token"):
            service.push(job.id, repository, token=token, private=True)


def test_without_runs_the_recording_is_shown(service: TrainService) -> None:
    head = {"recipe": {"name": "old", "method": "csr"}, "about": "Recorded.", "probes": [["a", "b", "c"]], "log": ""}
    records = [
        {"event": "step", "step": 10, "steps": 20, "loss": 1.0, "time": 30.0},
        {"event": "evaluation", "step": 20, "steps": 20, "spearman": 40.0, "probes": [0.4], "time": 60.0},
    ]
    service.__dict__["recording"] = [head, *records]
    step = last(WatchHandlers(service).opened(SHOWN, [], "spearman"))
    assert 'data-state="recorded"' in step["run"]
    assert not step["timer"].active
    half = replay(service.recording, REPLAY_SECONDS / 2)
    assert (half.step, half.evaluations, half.left) == (10, (), 15.0)
    assert replay(service.recording, None).probes[0].scores == (0.4,)


def test_endpoints_give_no_paths(service: TrainService) -> None:
    submit(service)
    told = _plain(service.run("job-1"))
    assert told["evaluations"][0]["spearman"] == 2.0
    assert "recipe" not in told


# ---- markup


def test_texts_of_a_run_are_escaped() -> None:
    bad = "<img src=x onerror=alert(1)>"
    probe = SimpleNamespace(sentence1=bad, sentence2=bad, condition=bad, scores=(0.1, 0.2))
    run = RunView(bad, bad, bad, "failed", bad, probes=(probe,), log=bad, created=bad)
    for markup in (render_head(run), render_progress(run), render_probes(run), render_log(run)):
        assert "<img" not in markup
    assert "<img" not in render_history([run], None)
    assert "Why" in render_head(run)


def test_progress_tells_what_is_being_done_and_how_fast() -> None:
    run = RunView("a", "a", "csr", "running", phase="preparing")
    assert "loading data and encoder" in render_progress(run)
    assert "loading data and encoder" in render_progress(replace(run, step=8, steps=20))  # begun again
    going = replace(run, phase="training", step=8, steps=20, left=4.0)
    assert "3.0 steps/s" in render_progress(going)
    assert "90 tokens/s" in render_progress(replace(going, speed=90.0))


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [(None, "–"), (0.4, "0 s"), (59, "59 s"), (200, "3 min 20 s"), (1800, "30 min"), (7500, "2 h 5 min")],
)
def test_durations(seconds: float | None, shown: str) -> None:
    assert duration(seconds) == shown


def test_sparklines_need_two_values_and_take_equal_ones() -> None:
    assert sparkline([0.3]) == ""
    assert "polyline" in sparkline([0.3, 0.3])
