"""What is told before a training: data, steps, time, memory."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from condviz.errors import ConfigError
from condviz.models import registry
from condviz.paths import ASSETS
from condviz.training import preflight, probe, worker
from condviz.training.loop import Loop
from condviz.training.model import SentenceTask
from condviz.training.preflight import check
from condviz.training.probe import count_steps, survey
from condviz.training.recipes import LinkRecipe, SentenceRecipe, load_recipe
from condviz.training.trainer import Run
from tests.training.toy import HEADER, toy_recipe

GB = 10**9


def write(recipe: SentenceRecipe, text: str) -> None:
    Path(recipe.train[0].path).write_text(HEADER + text)


@pytest.fixture
def start_instead(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], list]:
    """Let another program answer as the process of a try, waited for in turns; give those that are started."""
    started, start = [], subprocess.Popen

    def give(code: str) -> list[subprocess.Popen]:
        def run(_: list[str], **options: Any) -> subprocess.Popen:
            started.append(start([sys.executable, "-c", code], **options))
            return started[-1]

        monkeypatch.setattr(worker.subprocess, "Popen", run)
        return started

    monkeypatch.setattr(preflight, "TICK_S", 0.001)
    return give


def test_few_rows_that_are_held_back_are_all_watched(tmp_path: Path) -> None:
    recipe = toy_recipe(tmp_path)
    Path(recipe.validation[0].path).write_text(HEADER + "a,b,c,4\nd,e,f,2\ng,h,i,1\n")
    assert preflight.choose_probes(recipe) == [("a", "b", "c"), ("g", "h", "i")]


def measured(**changes: Any) -> probe.Measured:
    nothing = dict.fromkeys(("preparation", "batch", "update", "scoring", "encoding"), 0.0)
    return probe.Measured(**nothing | {"memory": GB, "available": 8 * GB, "fitting_rows": 8, "cut_texts": 0} | changes)


def judged(recipe: SentenceRecipe, tried: probe.Measured) -> probe.Preflight:
    """Give what a check says of a try."""
    data = survey(recipe)
    return probe.judge(recipe, data, replace(data.found, steps=count_steps(recipe, data.units)), tried)


@pytest.mark.parametrize(
    "changes",
    [{}, {"accumulation": 2, "epochs": 3}, {"batching": "rows", "loss": {"mse": 1.0}, "batch_size": 5}],
    ids=str,
)
def test_steps_are_those_of_the_training(tmp_path: Path, changes: dict[str, Any]) -> None:
    recipe = toy_recipe(tmp_path, **changes)
    loop = Loop(SentenceTask(recipe, "cpu"), Run(tmp_path / "toy", recipe), steer=lambda *_: True)
    loop.args.save_strategy = "no"
    loop.train()
    assert loop.state.max_steps == count_steps(recipe, survey(recipe).units)
    assert loop.stopped


def test_rows_that_are_not_used_are_counted(tmp_path: Path) -> None:
    recipe = toy_recipe(tmp_path, keep="last", validation=[])
    pairs = "".join(f"a{i},b,x,1\na{i},b,y,5\n" for i in range(10))
    write(recipe, pairs + "a0,b,x,1\nc,d,x,\nalone,d,x,2\n")  # repeated, without a label, without a partner
    found = survey(recipe).found
    assert (found.rows, found.dropped, found.validation_rows, found.problems) == (20, 3, 0, ())
    assert any("20 rows are few" in line for line in found.advice)
    assert any("Without validation rows" in line for line in found.advice)


def test_labels_that_contradict_each_other_and_rows_on_both_sides(tmp_path: Path) -> None:
    recipe = toy_recipe(tmp_path, batching="rows", loss={"mse": 1.0})
    write(recipe, "".join(f"a{i},b,x,1\na{i},b,x,5\n" for i in range(10)))
    advice = survey(recipe).found.advice
    assert any("10 triples of texts have several labels" in line for line in advice)
    assert any("20 of 20 validation rows are also trained on" in line for line in advice)


def test_what_is_wrong_with_the_data_is_told_without_a_try(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(preflight, "take_probe", lambda: pytest.fail("nothing to try"))
    recipe = toy_recipe(tmp_path, validation=[{"name": "csv", "path": str(tmp_path / "dev.csv")}])
    (tmp_path / "dev.csv").write_text(HEADER + "a,b,x,3\nc,d,x,3\n")
    assert "no model ranks them better" in check(recipe, roots=[tmp_path], device="cpu").problems[0]
    Path(recipe.train[0].path).unlink()
    assert "no such file" in check(recipe, roots=[tmp_path], device="cpu").problems[0]


@pytest.mark.parametrize("graph", ["everyday", str(ASSETS / "graph" / "everyday")])
def test_the_graph_that_ships_can_be_trained_on(graph: str) -> None:
    found = check(LinkRecipe(name="toy", method="tri-encoder", graph=graph), device="cpu")
    assert found.problems == ()
    assert found.rows > 1000 > found.validation_rows > 0


@pytest.mark.parametrize(
    ("method", "changes"),
    [
        ("bi-encoder", {}),
        ("hyper-cl", {"config": {"rank": 4}, "tuning": "frozen", "loss": {"mse": 1.0}}),
        ("case", {"config": {"projection": "pca", "projection_dim": 3}, "tuning": "frozen"}),
    ],
    ids=str,
)
def test_a_try_measures_time_and_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method: str, changes: dict
) -> None:
    monkeypatch.setattr(probe, "MEASURE_S", 0.0)
    recipe = toy_recipe(tmp_path, method, **changes)
    found = probe.measure(recipe, probe.Try(recipe, "cpu"), survey(recipe))
    fitted = method == "case"
    assert (found.batch > 0, found.update > 0, found.scoring > 0) == (not fitted,) * 3
    assert (found.encoding > 0) == (recipe.tuning == "frozen")
    assert 10**7 < found.memory < found.available
    assert (found.fitting_rows, found.cut_texts) == (8, 0)


def test_a_batch_that_does_not_fit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    peaks = iter([2 * GB, 3 * GB, 5 * GB, 3 * GB])  # before; a quarter and a half of the batch; the end
    monkeypatch.setattr(probe, "peak_memory", lambda device: next(peaks))
    monkeypatch.setattr(probe, "free_memory", lambda device: 5 * GB)
    recipe = toy_recipe(tmp_path, batch_size=16, accumulation=2)
    found = probe.measure(recipe, probe.Try(recipe, "cpu"), survey(recipe))
    assert (found.batch, found.memory, found.fitting_rows) == (None, 9 * GB, 4)
    told = judged(recipe, found)
    assert told.problems == (
        "This needs about 9.0 GB of memory, and 5.0 GB are free on this machine. batch_size = 4 with accumulation = 8 "
        "would fit and takes the same steps.",
    )
    assert (told.minutes, told.memory) == (None, 9 * GB)


def test_the_time_is_that_of_all_parts(tmp_path: Path) -> None:
    tried = measured(preparation=10.0, batch=2.0, update=0.5, scoring=0.1, cut_texts=3)
    found = judged(toy_recipe(tmp_path, epochs=2), tried)
    assert found.steps == 6
    assert found.minutes == pytest.approx((10 + 6 * 2.5 + 4 * 24 * 0.1) / 60)
    assert any("3 of the texts are longer" in line for line in found.advice)


def test_a_frozen_encoder_reads_each_text_once(tmp_path: Path) -> None:
    recipe = toy_recipe(tmp_path, "hyper-cl", config={"rank": 4}, tuning="frozen", loss={"mse": 1.0})
    task = SentenceTask(recipe, "cpu")
    task.prepare()
    task.validate()
    assert judged(recipe, measured(encoding=60.0)).minutes == task.method.backbone.cache.entries


def test_a_probe_that_waits_is_asked_first(tmp_path: Path, start_instead: Callable[[str], list]) -> None:
    code = "print('ready', flush=True); input(); print('{\"problems\": [\"asked\"]}')"
    started = start_instead(code)
    assert worker.prepare_probe() is worker.prepare_probe()
    assert started[0].stdout.readline() == "ready\n"
    for _ in range(2):
        assert check(toy_recipe(tmp_path), roots=[tmp_path], device="cpu").problems == ("asked",)
    assert len(started) == 2


def test_a_probe_that_has_ended_is_not_asked(start_instead: Callable[[str], list]) -> None:
    start_instead("")
    first = worker.prepare_probe()
    assert first.wait(60) == 0
    second = worker.take_probe()
    assert second is not first
    second.communicate()


def test_a_probe_that_nobody_asks_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    read, write = os.pipe()  # nobody writes

    def leave(code: int) -> None:
        assert code == 0
        os.close(write)

    monkeypatch.setattr(probe, "IDLE_S", 0.0)
    monkeypatch.setattr(os, "_exit", leave)
    with open(read) as waiting:
        monkeypatch.setattr(sys, "stdin", waiting)
        probe.main()  # returns, as nobody is left who could ask


@pytest.mark.parametrize(
    ("code", "problem"),
    [
        ("import os; os.kill(os.getpid(), 9)", "Out of memory"),
        ('input(); print(\'{"problems": ["No such encoder."]}\')', "No such encoder."),
        ("raise SystemExit('broken')", "before it could say why. Last line of the log: broken"),
        ("", "before it could say why"),
    ],
)
def test_a_try_that_ends_badly_is_a_problem_of_its_own(
    tmp_path: Path, start_instead: Callable[[str], list], code: str, problem: str
) -> None:
    start_instead(code)
    assert problem in check(toy_recipe(tmp_path), roots=[tmp_path], device="cpu").problems[0]


def test_what_was_found_of_the_data_survives_the_try(tmp_path: Path, start_instead: Callable[[str], list]) -> None:
    start_instead("import os; print('{\"rows\": 24}', flush=True); os.kill(os.getpid(), 9)")
    found = check(toy_recipe(tmp_path), roots=[tmp_path], device="cpu")
    assert found.rows == 24
    assert "Out of memory" in found.problems[0]


def test_who_stops_waiting_ends_the_try(tmp_path: Path, start_instead: Callable[[str], list]) -> None:
    started = start_instead("import signal; signal.pause()")

    def stop(done: int, total: int) -> None:
        raise InterruptedError

    with pytest.raises(InterruptedError):
        check(toy_recipe(tmp_path), roots=[tmp_path], device="cpu", progress=stop)
    assert started[0].returncode == -9


def test_the_process_of_a_try_answers_in_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    recipe = toy_recipe(tmp_path)
    for backbone in (recipe.backbone, str(tmp_path / "nowhere")):
        content = {**recipe.to_dict(), "backbone": backbone}
        asked = json.dumps({"recipe": content, "device": "cpu", "processes": 1})
        monkeypatch.setattr(sys, "stdin", io.StringIO(f"{asked}\n"))
        probe.main()
        _, *lines = filter(None, capsys.readouterr().out.splitlines())
        of_data, whole = map(probe.ANSWER.validate_json, lines)
        assert (of_data.rows, of_data.minutes) == (whole.rows, None) == (24, None)
        there = backbone == recipe.backbone
        assert (whole.minutes is not None, not whole.problems) == (there, there)


def test_limits_of_a_container_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probe, "_GROUP", tmp_path)
    whole = probe.free_memory("cpu")
    for name, text in (("max", "900\n"), ("current", "700\n"), ("stat", "anon 100\ninactive_file 50\n")):
        (tmp_path / f"memory.{name}").write_text(text)
    assert probe.free_memory("cpu") == 250
    (tmp_path / "memory.max").write_text("max\n")
    assert probe.free_memory("cpu") == pytest.approx(whole, rel=0.5)


def test_a_start_that_ships_and_is_not_here_says_where_it_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(registry, "MODEL_FOLDERS", (tmp_path,))
    recipe = load_recipe(ASSETS / "recipes" / "bi-encoder-start.toml")
    with pytest.raises(ConfigError, match=r"init is csr\. The trained weights of csr are not on this machine"):
        preflight.admit(replace(recipe, init="csr"), [])
