"""Work on a cluster: the same as without one, also where a worker dies. Skipped where Ray is not installed."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import psutil
import pytest

from condviz.errors import CondvizError, ConfigError
from condviz.methods.hyper_cl import HyperCL, HyperCLConfig
from condviz.models import checkpoints, registry
from condviz.store import build
from condviz.store.build import build_store
from condviz.store.corpus import Identity
from tests.commands import Command
from tests.models.test_checkpoints import encoder
from tests.store.test_disk import contents, write_csv
from tests.tiny import SENTENCES

PAIRS = [(one, other) for one in SENTENCES for other in SENTENCES if one != other]
"""More rows than one worker is sent at once."""
pytest.importorskip("lance")
ray = pytest.importorskip("ray")
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    place = tmp_path_factory.mktemp("model")
    model = HyperCL(encoder(place / "encoder"), HyperCLConfig(rank=4, transform=False)).eval()
    return str(checkpoints.save(model, place / "mine"))


@pytest.fixture(autouse=True)
def single_precision(monkeypatch: pytest.MonkeyPatch) -> None:
    """In half precision a score depends on what else is in its batch."""
    monkeypatch.setenv("CONDVIZ_PRECISION", "float32")


@pytest.fixture(scope="module", autouse=True)
def cluster() -> Iterator[None]:
    ray.init("local", num_cpus=2, include_dashboard=False, log_to_driver=False)
    yield
    ray.shutdown()


def kill_a_worker() -> bool:
    """Kill one process that holds a model."""
    for process in psutil.Process().children(recursive=True):
        if "MapWorker" in process.name() + " ".join(process.cmdline()):
            os.kill(process.pid, signal.SIGKILL)
            return True
    return False


def test_a_cluster_makes_the_same_store_though_a_worker_dies(
    folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(build, "SLICE_ROWS", 4)
    monkeypatch.setattr(build, "WINDOW", 30)
    source = write_csv(tmp_path / "a.csv", 160)
    killed = []

    def kill_once(done: int, total: int) -> None:
        if not any(killed):
            killed.append(kill_a_worker())

    build_store(source, tmp_path / "s", model=folder, ray="local", workers=2, progress=kill_once)
    assert any(killed)
    build_store(source, tmp_path / "whole", model=folder)
    found, whole = contents(tmp_path / "s"), contents(tmp_path / "whole")
    assert found[0] == whole[0]
    np.testing.assert_array_equal(found[1], whole[1])
    np.testing.assert_array_equal(found[2], whole[2])


def test_a_table_is_scored_and_encoded_as_without_a_cluster(folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build, "TABLE_ROWS", 3)
    model, told = registry.load(folder), []
    remote = build.OnRay(model, "local", workers=2)
    columns = (SENTENCES * 2, SENTENCES[::-1] * 2, ["the sport", "the mood"] * len(SENTENCES))
    different = len(set(zip(*columns, strict=True)))
    found = remote.score(*columns, progress=lambda *now: told.append(now))
    np.testing.assert_allclose(found, model.score(*columns), atol=1e-6)
    assert told[-1] == (different, different)
    np.testing.assert_allclose(remote.encode(*columns[::2]), model.encode(*columns[::2]), atol=1e-6)
    assert remote.info == model.info


@pytest.mark.parametrize("command", ["score -", "evaluate --data - --resamples 0 --out OUT", "map - --method pca"])
def test_a_command_prints_the_same_with_a_cluster(
    command: str, folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cli: Command
) -> None:
    monkeypatch.setattr(build, "TABLE_ROWS", 3)
    asked, run = [], build.map_slices
    monkeypatch.setattr(build, "map_slices", lambda *args, **options: asked.append(options) or run(*args, **options))
    head = "text,condition" if command.startswith("map") else "sentence1,sentence2,condition,label"
    rows = [[one, other, "the sport", str(number % 5 + 1)] for number, (one, other) in enumerate(PAIRS)]
    rows = [row[::2] if command.startswith("map") else row for row in rows]
    table = "\n".join([head, *(",".join(row) for row in rows)])
    printed = []
    for cluster in ([], ["--ray", "local", "--workers", "2"]):
        out = tmp_path / f"{len(printed)}.csv"
        words = [out if word == "OUT" else word for word in command.split()]
        said = cli(*words, "--model", folder, *cluster, stdin=table).out.replace(str(out), "OUT")
        printed.append(said + (out.read_text() if out.exists() else ""))
    assert {"address": "local", "workers": 2} in asked
    assert printed[0] == printed[1]


def test_what_a_cluster_cannot_do_is_told(folder: str) -> None:
    model = registry.load(folder)
    with pytest.raises(ConfigError, match="from 1 to 2"):
        build.OnRay(model, "local", workers=3).score(["a"], ["b"], ["c"])
    other = replace(Identity.of(model), weights="0" * 64)
    with pytest.raises(CondvizError, match="cluster could not"):
        list(build.map_slices([[["a cat"]]], other, "encode_sentences", workers=1))
