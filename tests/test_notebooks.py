"""The notebooks of the documents are kept without what they show; tests/test_wheel.py runs them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.notebook import code_cells

NOTEBOOKS = sorted((Path(__file__).parents[1] / "docs" / "notebooks").glob("*.ipynb"))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebooks_are_kept_without_outputs(path: Path) -> None:
    assert not any(cell["outputs"] or cell["execution_count"] for cell in code_cells(path))
