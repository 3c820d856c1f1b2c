"""Encoding on more than one machine, by Ray Data: models in actors, slices of texts in, their vectors out, in order.

A worker that dies is started again and repeats its slice. What has arrived is stored by the process that asked, in the
same steps as without a cluster: the store is the same row for row, and a build that is killed goes on where it was.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import islice, tee
from typing import TYPE_CHECKING, Any

import numpy as np

from condviz.errors import ConfigError, require
from condviz.store.corpus import Identity, to_stored

if TYPE_CHECKING:
    import pyarrow as pa

LOCAL = "local"
WINDOW = 4_096
"""Slices that the cluster holds at once, some eight million texts: a gigabyte, which Ray moves to disk if it has to."""


class Worker:
    """A model in an actor."""

    def __init__(self, identity: Identity) -> None:
        """Load the model, which every machine has to have by its name or folder."""
        self.model = identity.load()

    def __call__(self, table: pa.Table) -> pa.Table:
        """Encode one slice, as a process on its own does."""
        import pyarrow as pa

        vectors, norms = to_stored(self.model.encode_sentences(table.column("text").to_pylist()))
        size = vectors.shape[1]
        return pa.table({"vector": pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), size), "norm": norms})


def encode_on_ray(
    slices: Iterable[list[str]], identity: Identity, *, address: str = LOCAL, workers: int = 0
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Encode slices of texts on a cluster.

    Args:
        slices: Lists of texts, some perhaps empty.
        identity: The model, by a name or folder that every machine has.
        address: Of the cluster; "auto" for the one that this machine belongs to, "local" to start one here.
        workers: Number of models; 0 for one on each GPU, or one on two cores.

    Yields:
        For each slice its vectors, (b, d) float16 of length one, and their lengths, (b,) float32.

    Raises:
        ConfigError: If there is no cluster, or a number of workers that it cannot hold.
        MissingExtraError: If Ray is not installed.
    """
    data = require("ray.data", "scale")
    asked, counted = tee(slices)
    with _cluster(address) as resources:
        rows = _rows(data, (texts for texts in asked if texts), identity, _actors(resources, workers))
        vectors, norms = np.zeros((0, identity.dimension), np.float16), np.zeros(0, np.float32)
        for size in map(len, counted):
            while len(norms) < size:
                vectors, norms = (np.concatenate(both) for both in zip((vectors, norms), next(rows), strict=True))
            yield vectors[:size], norms[:size]
            vectors, norms = vectors[size:], norms[size:]


def _rows(data: Any, slices: Iterator[list[str]], identity: Identity, options: dict) -> Iterator[tuple]:  # noqa: ANN401
    """Yield vectors and lengths in order, a slice or less at a time."""
    import pyarrow as pa

    data.DataContext.get_current().execution_options.preserve_order = True
    while window := [pa.table({"text": texts}) for texts in islice(slices, WINDOW)]:
        encoded = data.from_arrow(window).map_batches(
            Worker,
            fn_constructor_args=(identity,),
            batch_size=None,
            batch_format="pyarrow",
            compute=data.ActorPoolStrategy(size=options["size"]),
            **options["needs"],
        )
        for table in encoded.iter_batches(batch_size=None, batch_format="pyarrow"):
            for batch in table.to_batches():
                vectors = batch.column("vector").flatten().to_numpy(zero_copy_only=True)
                yield vectors.reshape(-1, identity.dimension), batch.column("norm").to_numpy()


def _actors(resources: dict[str, float], workers: int) -> dict[str, Any]:
    """Return how many models there are to be, and what each needs of the cluster."""
    gpus, cores = int(resources.get("GPU", 0)), int(resources.get("CPU", 1))
    most = gpus or cores
    if not 0 <= workers <= most:
        raise ConfigError(f"workers must be from 1 to {most}, the {'GPUs' if gpus else 'cores'} of the cluster, or 0.")
    number = workers or gpus or max(1, cores // 2)
    return {"size": number, "needs": {"num_gpus": 1} if gpus else {"num_cpus": max(1, cores // number)}}


@contextmanager
def _cluster(address: str) -> Iterator[dict[str, float]]:
    """Connect to a cluster, or start one; leave it as it was."""
    import ray

    connected = ray.is_initialized()
    if not connected:
        try:
            ray.init(address, log_to_driver=False, include_dashboard=False if address == LOCAL else None)
        except (ConnectionError, ValueError) as error:
            raise ConfigError(
                f"There is no Ray cluster at {address!r} ({str(error).splitlines()[0][:120]}). Start one with "
                f"ray start --head, or use {LOCAL!r} for this machine."
            ) from error
    try:
        yield ray.cluster_resources()
    finally:
        if not connected:
            ray.shutdown()
