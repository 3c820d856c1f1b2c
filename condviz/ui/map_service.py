"""Maps for the tab and the API: made once, kept for a while, found again by a key that a visitor's state holds."""

from __future__ import annotations

import hashlib
import json
import logging
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from condviz.analysis.map_points import MapPoints
from condviz.analysis.map_result import EmbeddingMap, ProjectionConfig
from condviz.errors import CondvizError, DataError
from condviz.types import ModelInfo
from condviz.ui.background import Once
from condviz.ui.map_engine import MapEngine
from condviz.ui.service import Service, on_gpu

if TYPE_CHECKING:
    from condviz.analysis.map_builder import Embedded

logger = logging.getLogger(__name__)
MAX_KEPT = 12
MAX_KEPT_POINTS = 100_000
"""Together some 100 MB of texts, neighbours and coordinates."""
FIRST = "first"
"""Key of the stored map that the tab shows at the start."""


class MapService:
    """Encodes through the pool, lays out and measures; keeps the last maps of all visitors."""

    def __init__(self, service: Service, engine: MapEngine, first: EmbeddingMap | None = None) -> None:
        """Join the parts.

        Args:
            service: The models.
            engine: The calls into the core.
            first: A stored map, always kept.
        """
        self.service = service
        self.engine = engine
        self.first = first
        self._maps: OrderedDict[str, EmbeddingMap] = OrderedDict()
        self._lock = threading.Lock()
        self.warm_up = Once(self._compile)
        """Compiles what UMAP needs."""
        # Names and texts go in, not models, as a ZeroGPU worker is forked; nor can it report progress.
        self._embed = on_gpu(self._embed_here)
        self._tells = self._embed == self._embed_here

    def infos(self) -> list[ModelInfo]:
        """Describe the models that give vectors which depend on the condition."""
        return [info for info in self.service.infos() if info.kind != "cross" and info.method != "unconditional"]

    def embed(self, name: str, points: MapPoints, progress: Callable[[int, int], None] | None = None) -> Embedded:
        """Encode points; errors as `condviz.analysis.map_builder.embed_points`."""
        return self._embed(name, points, progress if self._tells else None)

    def start(self, name: str, points: MapPoints, embedded: Embedded, *, dimensions: int, clusters: int | None) -> str:
        """Measure and lay out by the PCA; gives the key of the map."""
        from condviz.analysis.map_builder import start_map

        model = self.service.pool.get(name)
        made = start_map(
            model.info,
            points,
            embedded,
            dimensions=dimensions,
            weights=self.engine.describe(model, points.groups),
            num_clusters=clusters,
        )
        return self._keep(made)

    def finish(
        self, key: str, embedded: Embedded, config: ProjectionConfig, progress: Callable[[int, int], None] | None = None
    ) -> str:
        """Lay a map out by another method; gives the key of the new one."""
        from condviz.analysis.map_builder import finish_map

        return self._keep(finish_map(self.get(key), embedded, config, progress=progress))

    def make(
        self, name: str, points: MapPoints, config: ProjectionConfig, *, clusters: int | None = None
    ) -> EmbeddingMap:
        """Make a whole map at once, for the API."""
        embedded = self.embed(name, points)
        key = self.start(name, points, embedded, dimensions=config.dimensions, clusters=clusters)
        return self.get(self.finish(key, embedded, config))

    def get(self, key: str) -> EmbeddingMap:
        """Give a map.

        Raises:
            DataError: If it is not kept any more.
        """
        if key == FIRST and self.first is not None:
            return self.first
        with self._lock:
            if key in self._maps:
                self._maps.move_to_end(key)
                return self._maps[key]
        raise DataError("This map is not in the memory of the server any more. Press Draw to make it again.")

    def _compile(self) -> None:
        try:
            self.engine.warm_up()
        except CondvizError as error:
            logger.warning("UMAP is not available: %s", error)

    def _embed_here(self, name: str, points: MapPoints, progress: Callable[[int, int], None] | None) -> Embedded:
        return self.engine.embed(self.service.pool.get(name), points, progress)

    def _keep(self, made: EmbeddingMap) -> str:
        key = _key(made)
        with self._lock:
            self._maps[key] = made
            self._maps.move_to_end(key)
            while len(self._maps) > 1 and (len(self._maps) > MAX_KEPT or self._kept_points() > MAX_KEPT_POINTS):
                self._maps.popitem(last=False)
        return key

    def _kept_points(self) -> int:
        return sum(len(made.points.texts) for made in self._maps.values())


def _key(made: EmbeddingMap) -> str:
    """Name a map by what decides it, so that the same request finds the same map."""
    parts: Sequence[Any] = (
        dict(made.model),
        made.points.texts,
        made.points.conditions,
        dict(made.points.columns),
        made.projection.config.to_dict(),
        made.after.impurity["clusters"] if made.after.impurity else None,
    )
    return hashlib.sha256(json.dumps(parts, default=list).encode("utf-8", "replace")).hexdigest()[:24]
