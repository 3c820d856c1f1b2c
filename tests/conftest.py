"""Settings for all tests."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import settings

if TYPE_CHECKING:
    from xdist.scheduler import LoadFileScheduling

# Of torch, and of every process that a test starts: on small models, threads that wait for each other cost ten times as
# much as one. Set before anything imports torch.
os.environ["OMP_NUM_THREADS"] = "1"
# Examples are the same in every run, and a slow machine is no failure.
settings.register_profile("condviz", derandomize=True, deadline=None)
settings.register_profile("fast", settings.get_profile("condviz"), max_examples=20)
settings.load_profile("condviz")

MARKED = {
    "browser": ("e2e",),
    "training": (
        "training/test_trainer.py", "training/test_job_processes.py", "training/test_jobs.py::test_one_job_runs",
        "training/test_links.py", "training/test_papers.py::test_a_recipe_is_trained",
    ),
    "slow": (
        "analysis/test_layout.py", "analysis/test_links.py::test_the_shipped_model", "analysis/test_reference.py",
        "cli/test_benchmark.py", "data/test_blocks.py", "data/test_corpora.py::test_real_corpora", "data/test_pairs.py",
        "data/test_plain.py", "data/test_same_rows.py", "data/test_scene_tables.py::test_the_shipped_tables",
        "data/test_splits.py", "evaluation/test_benchmark.py", "store/test_kill.py", "test_assets.py::test_no_damaged",
        "test_golden.py", "test_readme.py", "test_reference.py", "test_reference_maths.py", "test_smoke.py",
        "training/test_papers.py::test_cosines", "training/test_papers.py::test_counts_and_norms",
        "training/test_preflight.py::test_steps_are", "ui/learn/test_tab.py", "ui/test_compare.py::test_examples_come",
    ),
}  # fmt: skip
"""Marker -> folders, files and tests. `make test-fast` leaves all of them out."""
WHOLE_PAGE = ("test_addresses", "test_class_mode", "test_frame", "test_learn", "test_panels")
"""Browser tests of no single tab: they take about as long as all others."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark tests by their place; files with long ones go first, so that no worker is left alone with one at the end."""
    first = {}
    for item in items:
        place = item.nodeid.removeprefix("tests/")
        for rank, (marker, beginnings) in enumerate(MARKED.items()):
            if place.startswith(beginnings):
                item.add_marker(marker)
                if marker == "browser":  # up to twice more, as the summary says: a busy machine outlasts any wait
                    item.add_marker(pytest.mark.flaky(reruns=2))
                first[item.path] = min(rank, first.get(item.path, rank))
    items.sort(key=lambda item: first.get(item.path, len(MARKED)))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LoadFileScheduling | None:
    """Give each file to one worker; those that drive a browser go in two groups, each with a page and a browser."""
    from xdist.scheduler import LoadFileScheduling

    class ByFile(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            file = super()._split_scope(nodeid)
            if not file.startswith("tests/e2e/"):
                return file
            return (
                "tests/e2e, the whole page" if file.removeprefix("tests/e2e/").startswith(WHOLE_PAGE) else "tests/e2e"
            )

    return ByFile(config, log) if config.getvalue("dist") == "loadfile" else None
