"""Work on more than one machine, by Ray Data: models in actors, slices of texts in, vectors or scores out, in order.

A worker that dies is started again and repeats its slice. What has arrived is kept by the process that asked, in the
same steps as without a cluster: a store is the same row for row, and a build that is killed goes on where it was.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from functools import partial
from itertools import islice, tee
from typing import TYPE_CHECKING, Any, Literal, cast, get_args

import numpy as np

from condviz.errors import CondvizError, ConfigError, first_line, require
from condviz.store.corpus import Identity
from condviz.types import Progress

if TYPE_CHECKING:
    from condviz.methods import ConditionalScorer

LOCAL = "local"
WINDOW = 4_096
"""Slices that the cluster holds at once, some eight million texts: a gigabyte, which Ray moves to disk if it has to."""
TABLE_ROWS = 256
"""Rows of a table that are sent at once: few enough for every worker to have some of a small one."""
Ability = Literal["score", "encode", "encode_sentences"]
Columns = Sequence[Sequence[str]]
"""What an ability takes: lists of texts, of equal length."""


class OnRay:
    """A model whose scores and vectors are computed on a cluster, each different row once; else the model itself.

    Args:
        model: Any that every machine can load by its name or folder.
        address, workers: As in `map_slices`.
    """

    def __init__(self, model: ConditionalScorer, address: str, workers: int = 0) -> None:
        self._model, self._cluster = model, {"address": address, "workers": workers}

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401
        known = name in get_args(Ability)
        return partial(self._gather, cast("Ability", name)) if known else getattr(self._model, name)

    def _gather(self, ability: Ability, *columns: Sequence[str], progress: Progress | None = None) -> np.ndarray:
        """Do what the method of the model does; `progress` is told (rows done, different rows)."""
        from condviz.methods.encoders import number  # imports torch

        (rows, index), found = number(zip(*columns, strict=True)), []
        slices = (tuple(zip(*rows[i : i + TABLE_ROWS], strict=True)) for i in range(0, len(rows), TABLE_ROWS))
        for values in map_slices(slices, Identity.of(self._model), ability, **self._cluster):
            found.append(values)
            if progress:
                progress(min(len(found) * TABLE_ROWS, len(rows)), len(rows))
        return np.concatenate(found)[index.numpy()]


class Worker:
    """A model in an actor."""

    def __init__(self, identity: Identity, ability: Ability) -> None:
        """Load the model, which every machine has to have by its name or folder."""
        self.run = getattr(identity.load(), ability)

    def __call__(self, columns: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Compute one slice, as a process on its own does."""
        return {"values": self.run(*(texts.tolist() for texts in columns.values()))}


def map_slices(
    slices: Iterable[Columns], identity: Identity, ability: Ability, *, address: str = LOCAL, workers: int = 0
) -> Iterator[np.ndarray]:
    """Compute slices of texts on a cluster.

    Args:
        slices: What `ability` takes; some perhaps without rows.
        identity: The model, by a name or folder that every machine has.
        ability: Method of the model.
        address: Of the cluster; "auto" for the one that this machine belongs to, "local" to start one here.
        workers: Number of models; 0 for one on each GPU, or one on two cores.

    Yields:
        For each slice its values, (b,) or (b, d) float32.

    Raises:
        ConfigError: If there is no cluster, or a number of workers that it cannot hold.
        CondvizError: If a worker cannot load the model, or the cluster gives up.
        MissingExtraError: If Ray is not installed.
    """
    data = require("ray.data", "scale")
    asked, counted = tee(slices)
    rest = np.zeros((0,) if ability == "score" else (0, identity.dimension), np.float32)
    with _cluster(address) as resources:
        filled = (columns for columns in asked if len(columns[0]))
        found = _blocks(data, filled, (identity, ability), _actors(resources, workers))
        with closing(found):  # before the cluster goes
            for columns in counted:
                while len(rest) < len(columns[0]):
                    rest = np.concatenate([rest, next(found)])
                yield rest[: len(columns[0])]
                rest = rest[len(columns[0]) :]


def _blocks(data: Any, slices: Iterator[Columns], arguments: tuple, options: dict[str, Any]) -> Generator[np.ndarray]:  # noqa: ANN401
    """Yield values in order, in blocks of any size."""
    import pyarrow as pa

    context = data.DataContext.get_current()
    context.execution_options.preserve_order, context.enable_progress_bars = True, False
    while window := [pa.table({str(n): texts for n, texts in enumerate(part)}) for part in islice(slices, WINDOW)]:
        values = data.from_arrow(window).map_batches(Worker, fn_constructor_args=arguments, batch_size=None, **options)
        yield from (block["values"] for block in values.iter_batches(batch_size=None))


def _actors(resources: dict[str, float], workers: int) -> dict[str, Any]:
    """Return how many models there are to be, and what each needs of the cluster."""
    from ray.data import ActorPoolStrategy  # pyright: ignore[reportMissingImports] (an extra)

    gpus, cores = int(resources.get("GPU", 0)), int(resources.get("CPU", 1))
    most = gpus or cores
    if not 0 <= workers <= most:
        raise ConfigError(f"workers must be from 1 to {most}, the {'GPUs' if gpus else 'cores'} of the cluster, or 0.")
    number = workers or gpus or max(1, cores // 2)
    needs = {"num_gpus": 1} if gpus else {"num_cpus": max(1, cores // number)}
    return {"compute": ActorPoolStrategy(size=number), **needs}


@contextmanager
def _cluster(address: str) -> Iterator[dict[str, float]]:
    """Connect to a cluster, or start one; leave it as it was."""
    import ray  # pyright: ignore[reportMissingImports] (an extra)

    connected = ray.is_initialized()
    if not connected:
        try:
            ray.init(
                address, log_to_driver=False, logging_level="ERROR",
                include_dashboard=False if address == LOCAL else None,
            )  # fmt: skip
        except (ConnectionError, ValueError) as error:
            raise ConfigError(
                f"There is no Ray cluster at {address!r} ({first_line(error)}). Start one with "
                f"ray start --head, or use {LOCAL!r} for this machine."
            ) from error
    try:
        yield ray.cluster_resources()
    except ray.exceptions.RayError as error:
        reason = str(error).strip().splitlines()[-1][:300]
        raise CondvizError(f"The Ray cluster could not do it: {reason}") from error
    finally:
        if not connected:
            ray.shutdown()
