"""Speed of encoding, of one comparison, and of grids, as ratios to sentence-transformers in the same run.

python -m benchmarks.speed [--json FILE] [--rounds N] [--part PART] [--busy]
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING

import numpy as np
import torch

from benchmarks.common import Plan, Result, conditions, mixed_sentences, options, ratio, report, times_in_turns
from condviz.encoder import DEFAULT_BACKBONE
from condviz.encoder.backbone import Backbone
from condviz.encoder.download import find_here
from condviz.encoder.pretrained import fast_in_bfloat16, load_backbone
from condviz.errors import require
from condviz.methods.baselines import BiEncoder, TriEncoder, TriEncoderConfig
from condviz.methods.catalog import BiEncoderConfig
from condviz.methods.csr import CSR, CSRConfig
from condviz.methods.hyper_cl import HyperCL, HyperCLConfig

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

RANK = 64
NUM_ENCODED = 2000
GRID = (1000, 50)
SAMPLE = 2000
"""Concatenations of the grid that sentence-transformers encodes; the time for all is extrapolated from them."""
ANCHOR = "sentence-transformers"
COSINE = 0.9999


@dataclass(frozen=True)
class Targets:
    """How many times as fast as sentence-transformers, and how many milliseconds for the matrices of a grid."""

    encoding: Mapping[str, float]
    comparison: Mapping[str, float]
    grid: float
    csr_grid: float
    matrices: float = 40.0
    full_matrices: float = 150.0


WITH_BFLOAT16 = Targets({"torch, float32": 1.1, "torch, bfloat16": 3.0}, {}, 100, 8)
WITHOUT = Targets({"ONNX Runtime, float32": 1.45}, {"bi-encoder": 2.0}, 100, 12)
COMPARISON = 2.5


def targets() -> Targets:
    """Return what this processor can be asked for."""
    return WITH_BFLOAT16 if fast_in_bfloat16() else WITHOUT


def load_anchors(name: str = DEFAULT_BACKBONE) -> dict[str, SentenceTransformer]:
    """Load the same weights into sentence-transformers, on the CPU: with its defaults, and by its own ONNX backend.

    The second is what a careful user picks; it needs the package optimum.
    """
    make = partial(
        require("sentence_transformers", "dev").SentenceTransformer, str(find_here(name) or name), device="cpu"
    )
    anchors = {ANCHOR: make()}
    if find_spec("optimum") and find_spec("onnxruntime"):
        anchors[f"{ANCHOR}, its ONNX backend"] = make(backend="onnx")
    return anchors


def measure_encoding(
    anchors: dict[str, SentenceTransformer], backbones: dict[str, Backbone], *, plan: Plan
) -> list[Result]:
    """Encode mixed sentences from text, no cache."""
    texts = mixed_sentences(NUM_ENCODED)
    items = [(text,) for text in texts]
    found: dict[str, np.ndarray] = {}

    def keep(name: str, encode: Callable[[], object]) -> Callable[[], object]:
        return lambda: found.__setitem__(name, np.asarray(encode(), dtype=np.float64))

    jobs = {
        name: keep(name, lambda one=one: one.encode(texts, show_progress_bar=False)) for name, one in anchors.items()
    }
    for name, backbone in backbones.items():
        jobs[name] = keep(name, lambda backbone=backbone: backbone.encode(items, pooling="mean"))
    seconds = times_in_turns(
        jobs, rounds=plan.rounds, clock=plan.clock, before=lambda: [one.cache.clear() for one in backbones.values()]
    )
    lengths = [len(row) for row in next(iter(backbones.values())).tokenize(items)]
    rate = NUM_ENCODED / statistics.median(seconds[ANCHOR])
    results = []
    for name in [*jobs][1:]:
        cosines = np.sum(found[ANCHOR] * found[name], axis=1)
        cosines /= np.linalg.norm(found[ANCHOR], axis=1) * np.linalg.norm(found[name], axis=1)
        factor, mean = ratio(seconds, ANCHOR, name), float(cosines.mean())
        wanted = targets().encoding.get(name)
        results.append(
            Result(
                f"{NUM_ENCODED:,} mixed sentences (mean {np.mean(lengths):.0f} tokens), {name}",
                f"≥ {wanted:g}x {ANCHOR} default, cosine ≥ {COSINE}" if wanted else "",
                f"{factor:.2f}x ({NUM_ENCODED / statistics.median(seconds[name]):,.0f} against {rate:,.0f} per s), "
                f"cosine mean {mean:.6f}, lowest {cosines.min():.5f}",
                (factor >= wanted and mean >= COSINE) if wanted else None,
                factor,
                {"seconds": seconds, "cosine_mean": mean, "cosine_min": float(cosines.min())},
            )
        )
    return results


def measure_comparison(anchor: SentenceTransformer, backbone: Backbone, *, plan: Plan) -> list[Result]:
    """Compare two sentences under five conditions, from text, models warm, nothing cached."""
    torch.manual_seed(0)
    models = {
        "bi-encoder": BiEncoder(backbone, BiEncoderConfig()),
        "tri-encoder": TriEncoder(backbone, TriEncoderConfig()),
        f"Hyper-CL, K = {RANK}": HyperCL(backbone, HyperCLConfig(rank=RANK)).match_precision(),
        "CSR": CSR(backbone, CSRConfig()),
    }
    repeats = 12 * plan.rounds
    texts, asked = mixed_sentences(2 * repeats, seed=1), conditions(5)
    seconds: dict[str, list[float]] = {ANCHOR: [], **{name: [] for name in models}}
    for turn in range(repeats):
        pair = texts[2 * turn : 2 * turn + 2]
        joined = [f"{sentence} {condition}" for sentence in pair for condition in asked]
        jobs = {ANCHOR: lambda joined=joined: anchor.encode(joined, show_progress_bar=False)}
        for name, model in models.items():
            jobs[name] = lambda model=model, pair=pair: model.eval().score([pair[0]] * 5, [pair[1]] * 5, asked)
        for name, timed in times_in_turns(
            jobs, rounds=1, clock=plan.clock, before=backbone.cache.clear, warm_up=not turn
        ).items():
            seconds[name] += timed
    medians = {name: statistics.median(timed) for name, timed in seconds.items()}
    return [
        Result(
            f"2 sentences x 5 conditions, warm, from text: {name}",
            f"p50 ≤ 1/{(wanted := targets().comparison.get(name, COMPARISON)):g} of {ANCHOR} encoding the 10 strings",
            f"1/{medians[ANCHOR] / medians[name]:.2f} "
            f"({medians[name] * 1e3:.1f} ms against {medians[ANCHOR] * 1e3:.1f} ms)",
            medians[name] * wanted <= medians[ANCHOR],
            medians[ANCHOR] / medians[name],
            {"p50_ms": {key: value * 1e3 for key, value in medians.items()}, "repeats": repeats},
        )
        for name in models
    ]


def measure_grids(anchor: SentenceTransformer, backbone: Backbone, *, plan: Plan) -> list[Result]:
    """Put 1,000 sentences under 50 conditions."""
    torch.manual_seed(0)
    n, m = GRID
    texts, asked = mixed_sentences(n, seed=2), conditions(m)
    every = [f"{sentence} {condition}" for sentence in texts for condition in asked]
    sample = [every[i] for i in np.random.default_rng(0).choice(len(every), SAMPLE, replace=False)]
    low, full = (HyperCL(backbone, HyperCLConfig(rank=rank)).match_precision().eval() for rank in (RANK, None))
    csr = CSR(backbone, CSRConfig()).eval()
    low_name, csr_name = f"Hyper-CL, K = {RANK}", "CSR"
    seconds = times_in_turns(
        {
            ANCHOR: lambda: anchor.encode(sample, show_progress_bar=False),
            low_name: lambda: low.encode_grid(texts, asked),
        },
        rounds=plan.rounds,
        clock=plan.clock,
        before=backbone.cache.clear,
    )
    once = times_in_turns(
        {
            ANCHOR: lambda: anchor.encode(sample, show_progress_bar=False),
            csr_name: lambda: csr.encode_grid(texts, asked),
        },
        rounds=1,
        clock=plan.clock,
        before=backbone.cache.clear,
        warm_up=False,  # Both have just run, and the whole grid takes its time.
    )
    scale = len(every) / len(sample)
    results = []
    for name, timed, wanted in ((low_name, seconds, targets().grid), (csr_name, once, targets().csr_grid)):
        anchor_s, ours_s = statistics.median(timed[ANCHOR]) * scale, statistics.median(timed[name])
        factor = ratio(timed, ANCHOR, name) * scale
        results.append(
            Result(
                f"Grid of {n:,} sentences x {m} conditions from text: {name}",
                f"≥ {wanted:g}x {ANCHOR} encoding the {len(every):,} joined strings",
                f"{factor:.0f}x ({ours_s:.2f} s against {anchor_s:.0f} s, extrapolated from {SAMPLE:,} of them)",
                factor >= wanted,
                factor,
                {"seconds": timed, "extrapolated_by": scale},
            )
        )
    limits = {f"K = {RANK}": (low, targets().matrices), "full rank": (full, targets().full_matrices)}
    return results + measure_matrices(limits, texts, asked, plan)


def measure_matrices(
    models: dict[str, tuple[HyperCL, float]], texts: list[str], asked: list[str], plan: Plan
) -> list[Result]:
    """Compose the grid from vectors that are there: making every W_c and projecting every sentence by it."""
    results = []
    for name, (model, limit_ms) in models.items():
        sentences = torch.from_numpy(model.encode_sentences(texts))
        encoded = torch.from_numpy(model.encode_conditions(asked))
        jobs = {"all embeddings": lambda model=model, s=sentences, c=encoded: model.embed_grid(s, c)}
        seconds = times_in_turns(jobs, rounds=10 * plan.rounds, clock=plan.clock)
        for job, timed in seconds.items():
            median = statistics.median(timed) * 1e3
            results.append(
                Result(
                    f"The same grid, sentences cached, matrix time: Hyper-CL, {name}, {job}",
                    f"< {limit_ms:.0f} ms",
                    f"{median:.0f} ms",
                    None if plan.busy else median < limit_ms,
                    median,
                    {"seconds": timed},
                )
            )
    return results


PARTS = ("encoding", "comparison", "grid")


def run(plan: Plan | None = None, *, parts: Sequence[str] = PARTS) -> list[Result]:
    """Measure some parts, or everything; some minutes."""
    plan = plan or Plan()
    anchors = load_anchors()
    anchor = anchors[ANCHOR]
    backbones = {
        "torch, float32": load_backbone(device="cpu", precision="float32", backend="torch"),
        "ONNX Runtime, float32": load_backbone(device="cpu", precision="float32", backend="onnx"),
    }
    if fast_in_bfloat16():
        backbones["torch, bfloat16"] = load_backbone(device="cpu", precision="bfloat16", backend="torch")
    chosen = load_backbone(device="cpu")
    measure = {
        "encoding": lambda: measure_encoding(anchors, backbones, plan=plan),
        "comparison": lambda: measure_comparison(anchor, chosen, plan=plan),
        "grid": lambda: measure_grids(anchor, chosen, plan=plan),
    }
    threads = torch.get_num_threads()
    torch.set_num_threads(1 if plan.busy else threads)
    try:
        with torch.inference_mode():
            return [result for part in parts for result in measure[part]()]
    finally:
        torch.set_num_threads(threads)


def main() -> None:
    """Run from the command line."""
    parser = options(__doc__, rounds=3, docs=False)
    parser.add_argument("--part", action="append", choices=PARTS, help="measure this only; can be repeated")
    parser.add_argument("--busy", action="store_true", help="for a busy machine: processor time of a single thread")
    chosen = parser.parse_args()
    plan = Plan(rounds=chosen.rounds, busy=chosen.busy)
    if plan.busy:
        print("Processor time of a single thread. Compare the ratios; the limits in ms are for all threads.\n")
    print(f"Targets of a processor that is {'' if fast_in_bfloat16() else 'not '}faster in bfloat16.\n")
    report(run(plan, parts=chosen.part or PARTS), chosen, "speed")


if __name__ == "__main__":
    main()
