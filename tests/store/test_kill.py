"""A build that is killed again and again ends in the same store."""

from __future__ import annotations

from multiprocessing.connection import Connection
from pathlib import Path

import numpy as np
import pytest

from condviz.store import build
from tests.children import CHILDREN
from tests.store.test_disk import contents, make_model, write_csv

pytest.importorskip("lance")


def run_build(source: Path, store: Path, tell: Connection) -> None:
    def report(done: int, _: int) -> None:
        tell.send(done)
        tell.recv()

    build.SLICE_ROWS = 4
    build.build_store(source, store, model=make_model(), progress=report)


def killed_build(source: Path, store: Path, slices: int) -> bool:
    """Build until so many slices are told of; returns whether the build ended first."""
    told, tell = CHILDREN.Pipe()
    child = CHILDREN.Process(target=run_build, args=(source, store, tell))
    child.start()
    tell.close()
    try:
        for _ in range(slices):
            told.recv()
            told.send("go on")
        child.kill()  # in the middle of the slice that follows
    except EOFError:
        pass
    child.join()
    return child.exitcode == 0


def test_a_killed_build_goes_on_to_the_same_store(tmp_path: Path) -> None:
    source, killed = write_csv(tmp_path / "a.csv", 24), 0
    while killed < 30 and not killed_build(source, tmp_path / "s", 1 + killed % 2):
        killed += 1
    assert 3 <= killed < 30
    build.build_store(source, tmp_path / "whole", model=make_model())
    found, whole = contents(tmp_path / "s"), contents(tmp_path / "whole")
    assert found[0] == whole[0]
    np.testing.assert_allclose(found[1].astype(np.float32), whole[1].astype(np.float32), atol=2e-3)
