"""Encoding on a cluster: the same store row for row, also where a worker dies. Skipped where Ray is not installed."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import numpy as np
import psutil
import pytest

from condviz.errors import ConfigError
from condviz.methods.hyper_cl import HyperCL, HyperCLConfig
from condviz.models import checkpoints
from condviz.store import build
from condviz.store.build import build_store
from tests.models.test_checkpoints import encoder
from tests.store.test_disk import contents, write_csv

pytest.importorskip("lance")
ray = pytest.importorskip("ray")
scale = pytest.importorskip("condviz.store.scale")
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    place = tmp_path_factory.mktemp("model")
    model = HyperCL(encoder(place / "encoder"), HyperCLConfig(rank=4, transform=False)).eval()
    return str(checkpoints.save(model, place / "mine"))


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
    monkeypatch.setattr(scale, "WINDOW", 30)
    source = write_csv(tmp_path / "a.csv", 160)
    killed = []

    def kill_once(done: int, total: int) -> None:
        if not any(killed):
            killed.append(kill_a_worker())

    ray.init("local", num_cpus=2, include_dashboard=False, log_to_driver=False)
    try:
        build_store(source, tmp_path / "s", model=folder, ray="local", workers=2, progress=kill_once)
        with pytest.raises(ConfigError, match="from 1 to 2"):
            build_store(source, tmp_path / "t", model=folder, ray="local", workers=3)
    finally:
        ray.shutdown()
    assert any(killed)
    build_store(source, tmp_path / "whole", model=folder)
    found, whole = contents(tmp_path / "s"), contents(tmp_path / "whole")
    assert found[0] == whole[0]
    np.testing.assert_array_equal(found[1], whole[1])
    np.testing.assert_array_equal(found[2], whole[2])
