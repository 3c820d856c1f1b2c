"""A build that is killed again and again ends in the same store."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from condviz.store.build import build_store
from tests.store.test_disk import contents, make_model, write_csv

pytest.importorskip("lance")
ROOT = Path(__file__).parents[2]


def test_a_killed_build_goes_on_to_the_same_store(tmp_path: Path) -> None:
    source = write_csv(tmp_path / "a.csv", 15)
    code = (
        "import sys; from pathlib import Path; from condviz.store import build; build.SLICE_ROWS = 4\n"
        "from tests.store.test_disk import make_model\n"
        f"build.build_store(Path({str(source)!r}), Path({str(tmp_path / 's')!r}), model=make_model(),\n"
        "    progress=lambda done, total: print(done, flush=True))"
    )
    command = [sys.executable, "-c", code]
    finished = killed = 0
    while not finished and killed < 30:
        process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
        for number, _ in enumerate(process.stdout, start=1):
            if number == 1 + killed % 2:  # in the middle of the slice that follows
                os.kill(process.pid, signal.SIGKILL)
                killed += 1
        finished = process.wait() == 0
    assert finished
    assert killed >= 3
    build_store(source, tmp_path / "whole", model=make_model())
    found, whole = contents(tmp_path / "s"), contents(tmp_path / "whole")
    assert found[0] == whole[0]
    np.testing.assert_allclose(found[1].astype(np.float32), whole[1].astype(np.float32), atol=2e-3)
