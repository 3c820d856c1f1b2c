"""The Train tab in a real browser: from a table to a model in Compare."""

from __future__ import annotations

import csv
import random
import re
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest
from gradio_client import Client
from playwright.sync_api import Page, expect

from condviz.training.job import UNFINISHED
from condviz.training.jobs import Jobs
from tests.e2e.conftest import follow_link
from tests.tiny import CONDITIONS, WORDS

SECONDS = 300_000
"""Processes load torch, on a machine that may be busy."""
LOGGED = 10
"""The first step with a point in the figure of the loss."""
CHANGES = {
    r'init = ".*"': 'backbone = "{encoder}"',
    r'tuning = "lora"': 'tuning = "full"',
    r"frozen_layers = .*\n": "",
    r"\[lora\]\nrank = 16\nalpha = 32.0\n": "",
    r"epochs = \d+": "epochs = 4",
    r"batch_size = \d+": "batch_size = 16",
    r"lr = \S+": "lr = 0.003",
    r"config = .*": 'config = { pooling = "mean" }\nprecision = "float32"',
}


@pytest.fixture(scope="module")
def folder(served: Path) -> Iterator[Path]:
    """Folder of the server; trainings outlive it, and end here."""
    yield served
    jobs = Jobs(served / "jobs")
    for job in jobs.list():
        if job.state in UNFINISHED:
            jobs.stop(job.id, force=True)


def write_pairs(path: Path, count: int) -> Path:
    """Write different sentence pairs, each rated high under one condition and low under another."""
    dice = random.Random(0)
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["text a", "text b", "question", "rating"])
        for number in range(count):
            pair = [" ".join(dice.sample(WORDS, 6)) for _ in range(2)]
            writer.writerow([*pair, CONDITIONS[0], 4 + number % 2])
            writer.writerow([*pair, CONDITIONS[1], 1 + number % 2])
    return path


def state(page: Page, name: str) -> None:
    """Wait until the run on the page is in a state."""
    expect(page.get_by_test_id("run")).to_have_attribute("data-state", name, timeout=SECONDS)


def hold(jobs: Jobs) -> psutil.Process:
    """Freeze the newest training once it has logged a step: on no machine can it end before it is looked at."""
    pause = threading.Event()
    while (job := jobs.list()[0]).heartbeat.step < LOGGED:
        assert job.state == "running", job.reason
        pause.wait(0.1)
    process = psutil.Process(job.heartbeat.worker.pid)
    process.suspend()
    return process


def test_a_table_becomes_a_model_in_compare(
    open_page: Callable[..., Page], address: str, folder: Path, tmp_path: Path
) -> None:
    page = open_page("train")
    page.set_default_timeout(SECONDS)
    page.locator("#cv-train-upload input[type=file]").set_input_files(write_pairs(tmp_path / "rows.csv", 160))
    expect(page.get_by_test_id("table")).to_contain_text("rows to train on", timeout=SECONDS)
    expect(page.locator("#cv-train-column-sentence1 input")).to_have_value("text a")
    page.locator("#cv-train-name").locator("textarea, input").fill("first")
    page.locator("#cv-train-name").locator("textarea, input").blur()
    page.locator("#cv-train-advanced").get_by_role("button").first.click()
    area = page.locator("#cv-train-recipe textarea")
    expect(area).to_have_value(re.compile('name = "first"'), timeout=SECONDS)
    text = area.input_value()
    for pattern, value in CHANGES.items():
        text = re.sub(pattern, value.replace("{encoder}", str(folder / "checkpoints" / "encoder")), text, count=1)
    area.fill(text)
    area.blur()
    expect(page.locator("#cv-train-epochs input")).to_have_value("4", timeout=SECONDS)
    page.locator("#cv-train-check").click()
    expect(page.get_by_test_id("preflight")).to_have_attribute("data-ok", "true", timeout=SECONDS)
    page.locator("#cv-train-start").click()
    state(page, "running")
    training = hold(Jobs(folder / "jobs"))
    page.locator("#cv-train-curve .cv-curves-dot").first.wait_for(timeout=SECONDS)
    page.reload(wait_until="commit")
    state(page, "running")
    training.resume()
    state(page, "done")
    expect(page.get_by_test_id("train-headline")).to_contain_text("before training")
    scored = page.get_by_test_id("learned").locator("tbody tr:not(:has([colspan]))")
    expect(scored).to_have_count(6, timeout=SECONDS)
    told = Client(address, verbose=False).predict(api_name="/train_status")["jobs"]
    assert [(job["name"], job["state"]) for job in told] == [("first", "done")]
    page.get_by_test_id("to-errors").click()
    expect(page.get_by_test_id("errors")).to_contain_text(re.compile("rows|validation"), timeout=SECONDS)
    page.go_back()
    page.get_by_test_id("try").click()
    expect(page.locator("#cv-result .cv-headline").first).to_be_visible(timeout=SECONDS)
    expect(page).to_have_url(re.compile("m=first"))
    expect(page.locator("#cv-model input")).to_have_value(re.compile("first"), timeout=SECONDS)  # the link is done
    follow_link(page, "Train")
    page.get_by_test_id("run-delete").click()
    page.get_by_test_id("run-delete").click()  # asked again
    expect(page.locator("#cv-train-notice")).to_contain_text("deleted", timeout=SECONDS)
    assert not (folder / "checkpoints" / "first").exists()
    assert Jobs(folder / "jobs").list() == []


def test_bad_recipes_get_a_message_and_nothing_is_lost(open_page: Callable[..., Page]) -> None:
    page = open_page("train")
    page.set_default_timeout(SECONDS)
    expect(page.locator("#cv-train-start")).to_be_in_viewport()
    page.locator("#cv-train-data").get_by_label("Example").check()
    expect(page.locator("#cv-train-upload")).to_be_hidden()  # its recipe has come, and fills the fields no more
    page.locator("#cv-train-advanced").get_by_role("button").first.click()
    area = page.locator("#cv-train-recipe textarea")
    # One after the other, faster than the server answers.
    page.locator("#cv-train-epochs input").fill("7")
    page.locator("#cv-train-seed input").fill("9")
    expect(area).to_have_value(re.compile(r"epochs = 7\b.*seed = 9\b", re.DOTALL), timeout=SECONDS)
    area.fill('name = "mine"\nmethodd = "hyper-cl"\n')
    area.blur()
    page.locator("#cv-train-check").click()
    expect(page.locator("#cv-train-notice")).to_contain_text("Did you mean method", timeout=SECONDS)
    expect(area).to_have_value('name = "mine"\nmethodd = "hyper-cl"\n')
