"""What architectures cost on a knowledge graph: encodings, cache hits, memory and time (Hyper-CL, tables 3 and 4).

Every triple of every split is asked for once, forward, one at a time, with caches that start empty. Hits and memory
follow from the triples alone; times are measured per call on a few rows and multiplied by those counts.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch

from condviz.data.corpus import RatedPair
from condviz.data.kg import Graph
from condviz.encoder.backbone import Backbone
from condviz.errors import ConfigError
from condviz.methods.hyper_cl import HyperCL, HyperCLConfig
from condviz.methods.tri_encoder import TriEncoder, TriEncoderConfig

FLOAT_BYTES = 4
ENTRY_OVERHEAD_BYTES = 48
"""Bytes of bookkeeping counted per tensor, as in the paper."""


@dataclass(frozen=True)
class CacheCost:
    """What one architecture asks for and keeps.

    Attributes:
        requests: Vectors asked for.
        sequences: Different sequences encoded: the misses.
        bytes: Memory of all that is kept, with 48 bytes for each tensor.
    """

    requests: int
    sequences: int
    bytes: int

    @property
    def hit_rate(self) -> float:
        """Share of requests answered from the cache, in [0, 1]."""
        return 1 - self.sequences / self.requests


def cache_costs(graph: Graph, size: int, *, rank: int | None = None) -> dict[str, CacheCost]:
    """Count requests, misses and memory of each architecture, from the triples alone.

    Args:
        graph: All its splits count.
        size: Length d of the vectors: 768 for BERT-base.
        rank: K of the low-rank hypernetwork; None keeps whole matrices W_r.

    Returns:
        "bi-encoder": (head, relation) and tail. "tri-encoder": head, relation and tail. "hyper-cl": the same with W_r,
        or its two factors, in place of the relation's vector.
    """
    triples = graph.triples
    entities, relations = len(set(triples[:, [0, 2]].ravel().tolist())), len(set(triples[:, 1].tolist()))
    pairs = len({(head, relation) for head, relation, _ in triples.tolist()})
    return count_costs(len(triples), pairs + len(set(triples[:, 2].tolist())), entities, relations, size, rank=rank)


def row_costs(rows: Sequence[RatedPair], size: int, *, rank: int | None = None) -> dict[str, CacheCost]:
    """Count the same for rated rows (table 3): two sentences with their condition, or three texts, for each row."""
    sentences = {text for row in rows for text in (row.sentence1, row.sentence2)}
    joint = {(text, row.condition) for row in rows for text in (row.sentence1, row.sentence2)}
    return count_costs(len(rows), len(joint), len(sentences), len({row.condition for row in rows}), size, rank=rank)


def count_costs(
    rows: int, joint: int, texts: int, conditions: int, size: int, *, rank: int | None = None
) -> dict[str, CacheCost]:
    """Count requests, misses and memory where it is known how many texts differ.

    Args:
        rows: Triples, or rated rows.
        joint: Different sequences of a bi-encoder.
        texts, conditions: Different texts of a tri-encoder.
        size, rank: As in `cache_costs`.
    """
    vector = FLOAT_BYTES * size + ENTRY_OVERHEAD_BYTES
    elements, tensors = (size * size, 1) if rank is None else (2 * size * rank, 2)
    matrix = FLOAT_BYTES * elements + tensors * ENTRY_OVERHEAD_BYTES
    return {
        "bi-encoder": CacheCost(2 * rows, joint, joint * vector),
        "tri-encoder": CacheCost(3 * rows, texts + conditions, (texts + conditions) * vector),
        "hyper-cl": CacheCost(3 * rows, texts + conditions, texts * vector + conditions * matrix),
    }


@torch.inference_mode()
def time_costs(graph: Graph, backbone: Backbone, *, rows: int = 50, seed: int = 0) -> dict[str, float]:
    """Estimate the seconds that each architecture takes for all triples, batch 1, on this machine.

    Args:
        graph: All its splits count.
        backbone: The encoder; its cache is not used.
        rows: Triples that are timed.
        seed: Decides which.

    Returns:
        Seconds of "bi-encoder", "hadamard", "concat", "hyper-cl" (whole matrices W_r, as in `cache_costs`) and
        "hyper-cl, rank 64" (two factors); matrices and factors are ready. Ratios of one run can be compared.

    Raises:
        ConfigError: If there is no row to time.
    """
    if rows < 1:
        raise ConfigError(f"rows is {rows}, allowed is 1 or more.")
    chosen = torch.randperm(len(graph.triples), generator=torch.Generator().manual_seed(seed))[:rows]
    triples = graph.triples[chosen.numpy()].tolist()
    heads = [graph.text(head, neighbours=False) for head, _, _ in triples]
    pairs = [(text, graph.relation_text(relation)) for text, (_, relation, _) in zip(heads, triples, strict=True)]
    counts = cache_costs(graph, backbone.hidden_size)
    alone = _seconds(lambda i: _encode(backbone, (heads[i],)), rows, backbone)
    joint = _seconds(lambda i: _encode(backbone, pairs[i]), rows, backbone)
    head = torch.randn(1, backbone.hidden_size, device=backbone.device)
    pair_count = counts["bi-encoder"].sequences - len(set(graph.triples[:, 2].tolist()))
    seconds = {"bi-encoder": pair_count * joint + (counts["bi-encoder"].sequences - pair_count) * alone}
    for name, model in _heads(backbone).items():
        composed = _seconds(lambda _, model=model: model(head), rows, backbone)
        seconds[name] = counts["tri-encoder"].sequences * alone + len(graph.triples) * composed
    return seconds


def _heads(backbone: Backbone) -> dict[str, Callable[[torch.Tensor], torch.Tensor]]:
    """Return what each tri-encoder does with a head where vectors of relations, or their W_r, are known."""
    relation = torch.randn(1, backbone.hidden_size, device=backbone.device)
    found: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {}
    for kind in ("hadamard", "concat"):
        model = TriEncoder(backbone, TriEncoderConfig(composition=kind, pooling="mean")).to(backbone.device).eval()
        found[kind] = lambda head, model=model: model.compose(head, relation)
    matrix = torch.randn(backbone.hidden_size, backbone.hidden_size, device=backbone.device)
    found["hyper-cl"] = lambda head: head @ matrix
    hyper = HyperCL(backbone, HyperCLConfig(rank=64 if backbone.hidden_size >= 64 else 1, pooling="mean"))
    factors = [factor[0] for factor in hyper.to(backbone.device).eval().factors(relation)]
    found["hyper-cl, rank 64"] = lambda head: head @ factors[0] @ factors[1]
    return found


def _encode(backbone: Backbone, item: tuple[str, ...]) -> torch.Tensor:
    return backbone(backbone.collate(backbone.tokenize([item])), "mean")


def _seconds(call: Callable[[int], object], rows: int, backbone: Backbone) -> float:
    """Time one call, the mean of all rows after one that warms up; waits for the device before reading the clock."""
    call(0)
    _wait(backbone)
    start = time.perf_counter()
    for row in range(rows):
        call(row)
    _wait(backbone)
    return (time.perf_counter() - start) / rows


def _wait(backbone: Backbone) -> None:
    if backbone.device.type == "cuda":
        torch.cuda.synchronize()
