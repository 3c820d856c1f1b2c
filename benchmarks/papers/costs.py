"""What architectures cost on a graph or table: encodings, cache hits, memory and time.

Papers: Hyper-CL, tables 3 and 4; CSR, figure 4 (b) and appendix B. Every row is asked for once, one at a time, with
caches that start empty (online) or hold all that can be known before (offline). Hits and memory follow from the
different texts alone; times are measured per call on a few rows and multiplied by those counts.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import cycle

import numpy as np
import torch

from condviz.data.kg import Graph
from condviz.encoder.backbone import Backbone, Item
from condviz.errors import ConfigError
from condviz.methods.baselines import TriEncoder, TriEncoderConfig
from condviz.methods.csr import CSR, CSRConfig
from condviz.methods.hyper_cl import HyperCL, HyperCLConfig
from condviz.types import Pair

FLOAT_BYTES = 4
ENTRY_OVERHEAD_BYTES = 48
"""Bytes of bookkeeping counted per tensor, as in the paper."""


@dataclass(frozen=True)
class Demand:
    """What a graph or table asks for; each number counts different texts, but the first two.

    Attributes:
        rows: Triples, or rated rows.
        compositions: Vectors of a text under a condition, with repeats: 1 a triple, 2 a rated row.
        joint: Different texts with a condition.
        alone: Texts that a bi-encoder encodes without a condition: the tails of a graph.
        texts, conditions: Different texts of a tri-encoder.
        samples: Some of the texts with a condition, for timing.
        names: All different texts, for their tokens; empty where they are not at hand.
    """

    rows: int
    compositions: int
    joint: int
    alone: int
    texts: int
    conditions: int
    samples: tuple[Item, ...] = ()
    names: tuple[str, ...] = ()


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
        """Share of requests answered from the cache, in [0, 1]; 0 where nothing is asked for."""
        return 1 - self.sequences / self.requests if self.requests else 0.0


def graph_demand(graph: Graph, *, samples: int = 0) -> Demand:
    """Count what all splits of a graph ask for, forward: (head, relation) and tail."""
    triples = graph.triples
    order = torch.randperm(len(triples), generator=torch.Generator().manual_seed(0))[:samples].numpy()
    chosen = tuple(
        (graph.text(head, neighbours=False), graph.relation_text(relation))
        for head, relation, _ in triples[order].tolist()
    )
    pairs = len(np.unique(triples[:, :2], axis=0))
    tails, entities, relations = (len(np.unique(triples[:, column])) for column in (2, [0, 2], 1))
    return Demand(len(triples), len(triples), pairs, tails, entities, relations, chosen)


def row_demand(rows: Sequence[Pair]) -> Demand:
    """Count what rated rows ask for: each of two sentences under the condition."""
    joint = list(dict.fromkeys((text, row.condition) for row in rows for text in (row.sentence1, row.sentence2)))
    names = tuple(dict.fromkeys(text for text, _ in joint))
    conditions = {condition for _, condition in joint}
    return Demand(len(rows), 2 * len(rows), len(joint), 0, len(names), len(conditions), tuple(joint), names)


def count_costs(demand: Demand, size: int, *, rank: int | None = None) -> dict[str, CacheCost]:
    """Count requests, misses and memory of each architecture.

    Args:
        demand: What is asked for.
        size: Length d of the vectors: 768 for BERT-base.
        rank: K of the low-rank hypernetwork; None keeps whole matrices W_c.

    Returns:
        "bi-encoder": texts with their condition. "tri-encoder": texts and conditions. "hyper-cl": the same with W_c, or
        its two factors, in place of the condition's vector.
    """
    vector = FLOAT_BYTES * size + ENTRY_OVERHEAD_BYTES
    elements, tensors = (size * size, 1) if rank is None else (2 * size * rank, 2)
    matrix = FLOAT_BYTES * elements + tensors * ENTRY_OVERHEAD_BYTES
    joint, apart = demand.joint + demand.alone, demand.texts + demand.conditions
    return {
        "bi-encoder": CacheCost(2 * demand.rows, joint, joint * vector),
        "tri-encoder": CacheCost(3 * demand.rows, apart, apart * vector),
        "hyper-cl": CacheCost(3 * demand.rows, apart, demand.texts * vector + demand.conditions * matrix),
    }


def count_csr(demand: Demand, backbone: Backbone, routed: int) -> CacheCost:
    """Count the same for CSR, which keeps the states of all tokens below its first routed layer.

    Args:
        demand: Of a table; its texts are tokenized.
        backbone: The encoder.
        routed: Number R of routed layers, for which R vectors of each condition are kept.
    """
    tokens = sum(map(len, backbone.tokenize([(name,) for name in demand.names])))
    vectors = tokens + routed * demand.conditions
    kept = FLOAT_BYTES * backbone.hidden_size * vectors + ENTRY_OVERHEAD_BYTES * (demand.texts + demand.conditions)
    return CacheCost(3 * demand.rows, demand.texts + demand.conditions, kept)


@torch.inference_mode()
def time_costs(
    demand: Demand, backbone: Backbone, *, rank: int = 64, calls: int = 50
) -> dict[str, tuple[float, float | None]]:
    """Estimate the seconds that each architecture takes for all rows, batch 1, on this machine.

    Args:
        demand: What is asked for; its samples are timed.
        backbone: The encoder; its cache is not used.
        rank: K of the low-rank hypernetwork.
        calls: Calls that are timed.

    Returns:
        Seconds online and offline: "bi-encoder", which can know nothing before (None); "hadamard", "concat",
        "hyper-cl", "hyper-cl, rank K"; and for tables "csr, 1 routed" and so on, where the encoder has its layers one
        by one. Ratios of one run can be compared.

    Raises:
        ConfigError: If there is no call to time.
    """
    if calls < 1 or not demand.samples:
        raise ConfigError(f"{calls} calls on {len(demand.samples)} rows cannot be timed. At least 1 is needed of both.")
    timer = _Timer(backbone, calls)
    samples = (demand.samples, [(text,) for text, _ in demand.samples], [(asked,) for _, asked in demand.samples])
    joint, alone, condition = (
        timer(lambda item: backbone(backbone.collate(backbone.tokenize([item])), "mean"), items) for items in samples
    )
    seconds: dict[str, tuple[float, float | None]] = {"bi-encoder": (demand.joint * joint + demand.alone * alone, None)}
    before = demand.texts * alone + demand.conditions * condition
    for name, compose in _heads(backbone, rank).items():
        offline = demand.compositions * timer(compose, [None])
        seconds[name] = (before + offline, offline)
    try:
        routed = range(1, backbone.layers.num_layers + 1) if demand.names else ()
    except ConfigError:  # its layers cannot be run one by one
        routed = ()
    return seconds | {f"csr, {number} routed": time_csr(demand, backbone, number, calls=calls) for number in routed}


@torch.inference_mode()
def time_csr(demand: Demand, backbone: Backbone, routed: int, *, calls: int = 50) -> tuple[float, float]:
    """Estimate the seconds that CSR takes for all rows of a table, online and offline; see `time_costs`.

    Args:
        demand, backbone, calls: As in `time_costs`.
        routed: Number R of routed layers.
    """
    timer = _Timer(backbone, calls)
    model = CSR(backbone, CSRConfig(num_routed_layers=routed)).to(backbone.device).eval()
    rows = [tuple(backbone.collate(backbone.tokenize([(text,)])) for text in item) for item in demand.samples[:calls]]
    known = [(model.enter(text), text, model.read(condition)) for text, condition in rows]
    enter, read = timer(lambda row: model.enter(row[0]), rows), timer(lambda row: model.read(row[1]), rows)
    offline = demand.joint * timer(lambda row: model.route(*row), known)
    return demand.texts * enter + demand.conditions * read + offline, offline


def _heads(backbone: Backbone, rank: int) -> dict[str, Callable[[object], object]]:
    """Return what each tri-encoder does with a text where vectors of conditions, or their W_c, are known."""
    size, device = backbone.hidden_size, backbone.device
    text, condition = torch.randn(1, size, device=device), torch.randn(1, size, device=device)
    found: dict[str, Callable[[object], object]] = {}
    for kind in ("hadamard", "concat"):
        model = TriEncoder(backbone, TriEncoderConfig(composition=kind, pooling="mean")).to(device).eval()
        found[kind] = lambda _, model=model: model.compose(text, condition)
    matrix = torch.randn(size, size, device=device)
    found["hyper-cl"] = lambda _: text @ matrix
    hyper = HyperCL(backbone, HyperCLConfig(rank=min(rank, size), pooling="mean")).to(device).eval()
    first, second = (factor[0] for factor in hyper.factors(condition))
    found[f"hyper-cl, rank {rank}"] = lambda _: text @ first @ second
    return found


@dataclass(frozen=True)
class _Timer:
    """Times one call: the mean of some after one that warms up.

    On a CPU processor time, so that other programs do not count; else the clock is read when the device has finished.
    """

    backbone: Backbone
    calls: int

    def __call__(self, call: Callable, items: Sequence) -> float:
        call(items[0])
        start = self._now()
        for _, item in zip(range(self.calls), cycle(items), strict=False):
            call(item)
        return (self._now() - start) / self.calls

    def _now(self) -> float:
        if self.backbone.device.type == "cpu":
            return time.process_time()
        if self.backbone.device.type == "cuda":
            torch.cuda.synchronize()
        return time.perf_counter()
