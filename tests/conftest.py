"""Settings for all tests."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import settings

from tests.commands import Command

if TYPE_CHECKING:
    from tests.hub import Hub

# Of torch, and of every process that a test starts: on small models, threads that wait for each other cost ten times as
# much as one. Set before anything imports torch or numba.
os.environ["OMP_NUM_THREADS"] = os.environ["NUMBA_NUM_THREADS"] = "1"
# Nothing is fetched: without a network, each question to the hub would wait. Set before anything imports its library.
os.environ["HF_HUB_OFFLINE"] = "1"
# Pages start with the same model on every machine.
os.environ["CONDVIZ_DEFAULT"] = "fast"
# What Python compiles is kept, else each of these processes would compile this package anew.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False
gc.disable()  # until all tests are collected: what they import stays
# Examples are the same in every run, and a slow machine is no failure.
settings.register_profile("condviz", derandomize=True, deadline=None, max_examples=50)
settings.register_profile("fast", settings.get_profile("condviz"), max_examples=20)
settings.register_profile("thorough", settings.get_profile("condviz"), max_examples=2_000)
settings.load_profile("condviz")

MARKED = {
    "browser": ("e2e",),
    "training": (
        "training/test_trainer.py", "training/test_job_processes.py", "training/test_jobs.py::test_one_job_runs",
        "training/test_links.py", "benchmarks/test_runs.py::test_a_recipe_is_trained",
    ),
    "slow": (
        "analysis/errors/test_filters.py::test_any_text_selects",
        "analysis/errors/test_measures.py::test_random_scores", "analysis/test_attention.py",
        "analysis/test_compare.py::test_conditions_are_offered", "analysis/test_deletion.py::test_every_model",
        "analysis/test_groups.py::test_texts_without_groups", "analysis/test_layout.py",
        "analysis/test_links.py::test_the_shipped_model", "analysis/test_maps.py", "analysis/test_reference.py",
        "analysis/test_search.py::test_a_match", "analysis/test_search.py::test_a_separable",
        "analysis/test_search.py::test_commands_divide", "analysis/test_search.py::test_words_carry",
        "benchmarks/test_costs.py", "benchmarks/test_deploy.py", "benchmarks/test_models.py",
        "benchmarks/test_parts.py", "benchmarks/test_runs.py::test_cosines",
        "benchmarks/test_runs.py::test_counts_and_norms", "benchmarks/test_tables.py::test_the_shipped_tables",
        "cli/test_main.py::test_a_full_disk", "cli/test_main.py::test_a_reader",
        "cli/test_main.py::test_a_wrong_setting", "cli/test_parser.py::test_every_command_has_examples",
        "data/test_blocks.py", "data/test_contrasts.py", "data/test_corpora.py::test_real_corpora",
        "data/test_corpora.py::test_the_conditions_of_a_part", "data/test_kg.py::test_wn18rr",
        "data/test_language.py::test_no_false_alarm", "data/test_language.py::test_no_scene", "data/test_plain.py",
        "data/test_same_rows.py", "data/test_scene_tables.py::test_each_kind", "data/test_splits.py",
        "data/test_tables.py::test_any_bytes", "data/test_texts.py::test_any_text",
        "encoder/test_backbone.py::test_odd_texts", "evaluation/test_dataset.py::test_a_part_of_a_corpus",
        "evaluation/test_dataset.py::test_the_conditions_of_a_training",
        "evaluation/test_verdicts.py::test_at_most_one_claim", "interop/test_modules.py",
        "methods/test_base.py::test_any_sequence", "methods/test_csr.py::test_other_types_of_encoder",
        "models/test_registry.py::test_any_method_is_built", "models/test_standard.py",
        "plots/test_errors.py::test_random_scores", "plots/test_maps.py::test_the_headline_of_random",
        "store/test_kill.py", "test_assets.py::test_no_damaged", "test_contract.py::test_onnx",
        "test_contract.py::test_saved", "test_contract.py::test_trained_encoder",
        "test_contract.py::test_visitors_at_once", "test_field_inputs.py::test_command",
        "test_field_inputs.py::test_page", "test_golden.py", "test_readme.py", "test_reference.py",
        "test_reference_maths.py", "test_smoke.py", "test_wheel.py", "training/test_model.py",
        "training/test_preflight.py::test_steps_are",
        "ui/learn/test_class_room.py", "ui/learn/test_tab.py", "ui/test_app.py::test_a_running_page",
        "ui/test_choose.py::test_each_answer", "ui/test_compare.py::test_examples_come",
        "ui/test_compare.py::test_the_finder_ranks", "ui/test_errors.py", "ui/test_events.py::test_an_error_in_any",
        "ui/test_events.py::test_what_folds", "ui/test_first_screen.py::test_what_errors",
        "ui/test_fuzz.py::test_every_answer", "ui/test_limits.py", "ui/test_links.py",
        "ui/test_models.py::test_each_model", "ui/test_requests.py::test_requests_are_logged",
        "ui/test_requests.py::test_the_page_is_served", "ui/test_search.py", "ui/test_train.py",
    ),
}  # fmt: skip
"""Marker -> folders, files and tests. `make test-fast` leaves all of them out."""


SHARED = {
    "browser": ("tests/e2e/",),
    "children": ("tests/training/test_job_processes.py", "tests/store/test_kill.py"),
    "compiled": ("tests/analysis/test_layout.py", "tests/benchmarks/test_deploy.py"),
    "rows": (
        *(f"tests/data/test_{name}.py" for name in ("same_rows", "corpora", "plain", "blocks", "contrasts", "splits")),
        "tests/benchmarks/test_parts.py",
        "tests/evaluation/test_dataset.py",
        "tests/ui/test_first_screen.py",
    ),
}
"""What is made once -> tests that use it: a server and a browser; what forks children; what numba
compiles in a new environment; the rows of corpora."""


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Command:
    """Run `condviz`: `cli("jobs", "stop", "toy").out`."""
    from condviz.cli.main import main

    return Command(main, capsys, monkeypatch)


@pytest.fixture
def bench(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Command:
    """Run `python -m benchmarks`."""
    from benchmarks.__main__ import main

    return Command(main, capsys, monkeypatch)


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    """Serve a stand-in of the hub, to which the client sends everything."""
    from tests.hub import serve_hub

    with serve_hub(monkeypatch) as server:
        yield server


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark tests by their place; files with long ones go first, so that no worker is left alone with one at the end."""
    first = {}
    for item in items:
        place = item.nodeid.removeprefix("tests/")
        for rank, (marker, beginnings) in enumerate(MARKED.items()):
            if place.startswith(beginnings):
                item.add_marker(marker)
            if item.get_closest_marker(marker):  # given here, or in its file
                first[item.path] = min(rank, first.get(item.path, rank))
    items.sort(key=lambda item: first.get(item.path, len(MARKED)))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Send the tests of a file to one worker, and so files that share something that takes long to make."""
    from xdist.scheduler import LoadFileScheduling

    class Scheduling(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            shared = (name for name, files in SHARED.items() if nodeid.startswith(files))
            return next(shared, None) or super()._split_scope(nodeid)

    return Scheduling(config, log) if config.getvalue("dist") == "loadfile" else None


def pytest_collection_finish() -> None:
    """Look for garbage from now on, without searching a million imported objects each time."""
    gc.freeze()
    gc.enable()


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """Leave out of the search what a file has left for later ones: one search of it all takes two seconds."""
    if nextitem is None or nextitem.path != item.path:
        gc.collect()
        gc.freeze()
