"""The page builds without what takes seconds to import: what has to hold before anything else."""

from __future__ import annotations

from tests.fresh import modules_after


def test_the_page_builds() -> None:
    loaded = modules_after("from condviz.ui.app import build_app; build_app()")
    assert not loaded & {"torch", "umap", "plotly", "scipy.stats", "py3langid"}
