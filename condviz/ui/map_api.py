"""The endpoints /embedding_map and /impurity: what the Map tab shows, as plain JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gradio as gr

from condviz.analysis.map_points import MapPoints, from_table, from_texts
from condviz.analysis.map_result import ProjectionConfig
from condviz.data.tables import TextTable
from condviz.errors import DataError
from condviz.ui.exports import finite
from condviz.ui.guard import api_error
from condviz.ui.map_service import MapService


def add_map_api(service: MapService) -> None:
    """Add both endpoints to the page; call inside gr.Blocks.

    Args:
        service: Makes maps.
    """

    @api_error
    def embedding_map(
        sentences: list[str],
        conditions: list[str],
        model: str,
        values: list[str] | None = None,
        crossed: bool = False,
        method: str = "umap",
        dimensions: int = 2,
        num_neighbors: int = 15,
        min_dist: float = 0.1,
        seed: int = 0,
    ) -> dict[str, Any]:
        """Lay sentences out before and after conditioning, and measure both spaces.

        Args:
            sentences: At least three different ones.
            conditions: One per sentence; with `crossed`, a list that every sentence is put under.
            model: Name as /models lists it; cross-encoders have no map.
            values: Value of each sentence under its condition, or nothing.
            crossed: Put every sentence under every condition.
            method: "umap" or "pca".
            dimensions: 2 or 3.
            num_neighbors: Of UMAP, 2 to 200.
            min_dist: Of UMAP, from 0 to below 1.
            seed: Of UMAP.

        Returns:
            Coordinates, neighbours, clusters, impurity, isotropy and values; missing numbers are null.
        """
        points = _points(sentences, conditions, values, crossed)
        config = ProjectionConfig(method, dimensions, num_neighbors, min_dist, seed)
        return finite(service.make(model, points, config).to_dict())

    @api_error
    def impurity(
        sentences: list[str],
        conditions: list[str],
        model: str,
        values: list[str] | None = None,
        crossed: bool = False,
        clusters: int = 0,
    ) -> dict[str, Any]:
        """Measure whether sentences under one condition lie together, before and after conditioning.

        Args:
            sentences: At least three different ones.
            conditions: One per sentence; with `crossed`, a list that every sentence is put under.
            model: Name as /models lists it.
            values: Value of each sentence under its condition, or nothing.
            crossed: Put every sentence under every condition.
            clusters: K of K-means; 0 takes the number of conditions.

        Returns:
            {"points", "before", "after", "random_matrices"}: impurity (nats, bits, share of the maximum, chance, p,
            table), isotropy, silhouette, values, and why one of them is missing.
        """
        points = _points(sentences, conditions, values, crossed)
        config = ProjectionConfig("pca")
        made = service.make(model, points, config, clusters=clusters or None)
        sides = {"before": made.before.measures(), "after": made.after.measures()}
        return finite({"points": len(points.texts), **sides, "random_matrices": made.control})

    gr.api(embedding_map, api_name="embedding_map", concurrency_limit=2, concurrency_id="model")
    gr.api(impurity, api_name="impurity", concurrency_limit=2, concurrency_id="model")


def _points(
    sentences: Sequence[str], conditions: Sequence[str], values: Sequence[str] | None, crossed: bool
) -> MapPoints:
    if not isinstance(sentences, list) or not isinstance(conditions, list):
        raise DataError("sentences and conditions must be lists of texts.")
    if crossed:
        if values:
            raise DataError("values belong to one condition each; leave them out, or give one condition per sentence.")
        return from_texts(sentences, conditions)
    columns = {"text": sentences, "condition": conditions, **({"value": values} if values else {})}
    lengths = {name: len(cells) for name, cells in columns.items()}
    if len(set(lengths.values())) > 1:
        found = ", ".join(f"{length:,} of {name}" for name, length in lengths.items())
        raise DataError(f"Give one condition (and value) per sentence, or set crossed; got {found}.")
    rows = tuple(tuple(map(str, row)) for row in zip(*columns.values(), strict=True))
    return from_table(TextTable(tuple(columns), rows), text_column="text", condition_column="condition")
