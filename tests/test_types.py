"""Results say what they are in a line, and types are told to those who check them."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import get_overloads

import numpy as np
import pytest

import condviz
from condviz.methods import METHODS
from condviz.models import registry
from condviz.types import Result
from tests.tiny import CONDITIONS, SENTENCES, tiny_model

ROOT = Path(__file__).parents[1]


def test_a_result_is_shown_in_a_line() -> None:
    conditions = [f"{CONDITIONS[0]} {number}" for number in range(20)]
    found = condviz.compare(tiny_model("bi-encoder"), SENTENCES[0], SENTENCES[1] * 10, conditions)
    assert repr(found).startswith("Comparison(")
    assert str(found) == repr(found)
    assert "\n" not in repr(found)
    assert len(repr(found)) < 1200


def test_arrays_are_shown_by_their_shape() -> None:
    @dataclass(frozen=True)
    class Rows(Result):
        rows: np.ndarray
        text: str

    assert repr(Rows(np.zeros((4, 3)), "a" * 1000)).startswith("Rows(rows=array of shape (4, 3), text='aaa")
    assert len(repr(Rows(np.zeros((4, 3)), "a" * 1000))) < 150


def test_a_model_is_shown_in_a_line() -> None:
    assert repr(tiny_model("csr")) == "CSR('csr', not trained; tiny bert, cpu, float32)"


def test_overloads_of_load_name_the_class_of_each_model() -> None:
    told: dict[str, str] = {}
    for overload in get_overloads(registry.load):
        annotation, returned = overload.__annotations__["name"], overload.__annotations__["return"]
        told |= dict.fromkeys(re.findall(r"[\"']([\w-]+)[\"']", annotation), returned)
    for name in (*condviz.list_models(), *registry.link_models()):
        assert told[name] == METHODS[registry.describe(name).method].__name__, name


@pytest.mark.slow
def test_the_examples_of_the_documents_type_check(tmp_path: Path) -> None:
    if not shutil.which("node"):
        pytest.skip("pyright needs node")
    text = "\n".join((ROOT / name).read_text(encoding="utf-8") for name in ("README.md", "docs/api.md"))
    (tmp_path / "examples.py").write_text("\n".join(re.findall(r"```python\n(.*?)```", text, re.DOTALL)))
    (tmp_path / "pyrightconfig.json").write_text(json.dumps({"extraPaths": [str(ROOT)]}))
    done = subprocess.run(
        [sys.executable, "-m", "pyright", "--pythonpath", sys.executable, "--project", str(tmp_path)],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
