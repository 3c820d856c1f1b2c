"""The Train tab in a real browser: from a table to a model that scores in Compare."""

from __future__ import annotations

import csv
import random
import re
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
import pytest
from gradio_client import Client
from gradio_client.exceptions import AppError

from condviz.training.job import UNFINISHED
from condviz.training.jobs import Jobs
from tests.e2e.conftest import _free_port, _serve, open_tab
from tests.tiny import CONDITIONS, WORDS

if TYPE_CHECKING:
    from playwright.sync_api import Page

expect = pytest.importorskip("playwright.sync_api").expect
SECONDS = 300_000
"""Processes load torch, on a machine that may be busy."""
LOGGED = 10
"""The first step with a point in the figure of the loss."""
RECIPE = """# A tiny encoder with random weights.
name = "first"
method = "bi-encoder"
backbone = "{encoder}"
epochs = 20
batch_size = 16
lr = 0.003
clip = 1.0
evaluations = 1
precision = "float32"
config = {{ pooling = "mean" }}

[[train]]
name = "scenes"

[[validation]]
name = "scenes"
split = "dev"
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of the server: encoder, checkpoints and jobs."""
    return tmp_path_factory.mktemp("train")


@pytest.fixture(scope="module")
def train_address(folder: Path) -> Iterator[str]:
    """Address of a page over one tiny real model that can train."""
    port = _free_port()
    places = [f"CONDVIZ_CHECKPOINTS={folder / 'checkpoints'}", f"CONDVIZ_JOBS={folder / 'jobs'}"]
    command = ["env", "-u", "SPACE_ID", *places, sys.executable, "-m", "tests.e2e.serve_train", str(folder), str(port)]
    yield from _serve(command, port, folder / "log.txt")
    jobs = Jobs(folder / "jobs")  # they outlive the server
    for job in jobs.list():
        if job.state in UNFINISHED:
            jobs.stop(job.id, force=True)


@pytest.fixture(scope="module")
def space_address(folder: Path) -> Iterator[str]:
    """Address of the same page as a shared Space."""
    port = _free_port()
    home = folder / "space"
    home.mkdir()
    places = [f"CONDVIZ_CHECKPOINTS={home / 'checkpoints'}", f"CONDVIZ_JOBS={home / 'jobs'}", "SPACE_ID=ada/condviz"]
    command = ["env", *places, sys.executable, "-m", "tests.e2e.serve_train", str(home), str(port)]
    yield from _serve(command, port, home / "log.txt")


def write_pairs(path: Path, count: int) -> Path:
    """Write different sentence pairs, each rated high under one condition and low under another."""
    dice = random.Random(0)
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["sentence1", "sentence2", "condition", "label"])
        for number in range(count):
            pair = [" ".join(dice.sample(WORDS, 6)) for _ in range(2)]
            writer.writerow([*pair, CONDITIONS[0], 4 + number % 2])
            writer.writerow([*pair, CONDITIONS[1], 1 + number % 2])
    return path


def state(page: Page, name: str) -> None:
    """Wait until the run on the page is in a state."""
    expect(page.get_by_test_id("run")).to_have_attribute("data-state", name, timeout=SECONDS)


def hold(jobs: Jobs) -> psutil.Process:
    """Freeze the newest training once it has logged a step: on no machine can it end before it is stopped."""
    pause = threading.Event()
    while (job := jobs.list()[0]).step < LOGGED:
        assert job.state == "running", job.reason
        pause.wait(0.1)
    process = psutil.Process(job.heartbeat.worker.pid)
    process.suspend()
    return process


def step(page: Page) -> int:
    return int(page.get_by_test_id("progress").get_attribute("data-step"))


def test_a_table_becomes_a_model_in_compare(
    open_page: Callable[..., Page], train_address: str, folder: Path, tmp_path: Path
) -> None:
    recipe = tmp_path / "mine.toml"
    recipe.write_text(RECIPE.format(encoder=folder / "encoder"), encoding="utf-8")
    page = open_page(base=train_address)
    page.set_default_timeout(SECONDS)
    open_tab(page, "Train")
    expect(page.locator("#cv-train-start")).to_be_disabled(timeout=SECONDS)
    page.locator("#cv-train-recipe-box").get_by_text("Recipe", exact=True).click()
    with page.expect_file_chooser() as chooser:
        page.locator("#cv-train-load").click()
    chooser.value.set_files(recipe)
    expect(page.locator("#cv-train-name input, #cv-train-name textarea")).to_have_value("first", timeout=SECONDS)
    page.locator("#cv-train-data").get_by_label("My table").check()
    page.locator("#cv-train-upload input[type=file]").set_input_files(write_pairs(tmp_path / "rows.csv", 300))
    expect(page.get_by_test_id("table")).to_contain_text("600 of 600 rows can be used", timeout=SECONDS)
    page.locator("#cv-train-check").click()
    expect(page.get_by_test_id("preflight")).to_have_attribute("data-ok", "true", timeout=SECONDS)
    page.locator("#cv-train-start").click()
    state(page, "running")
    training = hold(Jobs(folder / "jobs"))
    page.locator("#cv-train-losses-figure .scatterlayer .point").first.wait_for(timeout=SECONDS)
    page.reload(wait_until="commit")
    page.locator("[data-testid=matrix]").wait_for(state="attached", timeout=SECONDS)
    open_tab(page, "Train")
    state(page, "running")
    page.get_by_test_id("run-stop").click()
    state(page, "stopping")
    training.resume()
    state(page, "stopped")
    stopped = step(page)
    assert stopped >= LOGGED
    page.get_by_test_id("run-resume").click()
    state(page, "done")
    assert step(page) > stopped
    expect(page.get_by_test_id("probes").locator("svg")).to_have_count(5, timeout=SECONDS)
    told = Client(train_address, verbose=False).predict(api_name="/train_status")["jobs"]
    assert [(job["name"], job["state"]) for job in told] == [("first", "done")]
    open_tab(page, "Compare")
    page.get_by_test_id("model-first").check(timeout=SECONDS)
    row = page.locator("tr[data-model=first] .cv-cell")
    expect(row.first).to_be_visible(timeout=SECONDS)
    expect(page.locator("tr[data-model=shipped] .cv-cell").first).to_be_visible(timeout=SECONDS)


def test_bad_recipes_get_a_message_and_nothing_is_lost(open_page: Callable[..., Page], train_address: str) -> None:
    page = open_page(base=train_address)
    page.set_default_timeout(SECONDS)
    open_tab(page, "Train")
    page.locator("#cv-train-recipe-box").get_by_text("Recipe", exact=True).click()
    area = page.locator("#cv-train-recipe textarea")
    # One after the other, faster than the server answers.
    page.locator("#cv-train-name textarea").fill("quick")
    page.locator("#cv-train-epochs input").fill("7")
    page.locator("#cv-train-rank input").fill("9")
    expect(area).to_have_value(re.compile(r'name = "quick".*epochs = 7\b.*rank = 9\b', re.DOTALL), timeout=SECONDS)
    area.fill('name = "mine"\nmethodd = "hyper-cl"\n')
    area.blur()
    expect(page.locator("#cv-train-notice")).to_contain_text("did you mean method", timeout=SECONDS)
    expect(area).to_have_value('name = "mine"\nmethodd = "hyper-cl"\n')
    expect(page.locator("#cv-train-start")).to_be_disabled()


def test_a_shared_space_explains_and_refuses(open_page: Callable[..., Page], space_address: str) -> None:
    page = open_page(base=space_address)
    open_tab(page, "Train")
    off = page.get_by_test_id("training-off")
    expect(off).to_contain_text("shared Space", timeout=SECONDS)
    assert off.get_by_role("link").get_attribute("href").endswith("ada/condviz?duplicate=true")
    expect(page.locator("#cv-train-check")).to_be_disabled()
    with pytest.raises(AppError, match="Training is off"):
        Client(space_address, verbose=False).predict(recipe=RECIPE, api_name="/train")


def test_the_tab_fits_a_phone(open_page: Callable[..., Page], train_address: str) -> None:
    page = open_page(base=train_address, width=380, color_scheme="dark")
    open_tab(page, "Train")
    expect(page.locator("#cv-train-check")).to_be_visible(timeout=SECONDS)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
