"""What computes an encoder fastest here, and what int8 costs: torch, ONNX Runtime, sentence-transformers.

python -m benchmarks engines [--encoder NAME] [--texts N] [--busy] [--docs] [--rounds N]
python -m benchmarks engines --int8 [--model NAME] [--table SOURCE] [--texts N]
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

import condviz
from benchmarks.common import Plan, Result, mixed_sentences, options, ratio, report, times_in_turns
from benchmarks.speed import ANCHOR, load_anchors
from condviz.encoder import BASE_BACKBONE, DEFAULT_BACKBONE
from condviz.encoder.download import find_here
from condviz.encoder.pretrained import fast_in_bfloat16, load_backbone
from condviz.evaluation.dataset import open_data
from condviz.evaluation.metrics import spearman

SMALL = 10
"""The strings of one comparison of two sentences under five conditions."""
TEXTS = {DEFAULT_BACKBONE: 600, BASE_BACKBONE: 150}
LOST = {"csts-reannotated": 0.3, "tables": 0.5}
"""Points of Spearman's correlation that int8 may cost."""
MODELS = ("bi-encoder", "bi-encoder-csts", "bi-encoder-mpnet", "csr", "cross-encoder", "hyper-cl")
TABLES = ("csts-reannotated:validation", "tables:test")


def measure(name: str, *, texts: int, plan: Plan) -> list[Result]:
    """Encode many mixed sentences, and ten at a time, with every engine that is here."""
    ours = {"torch, float32": load_backbone(name, device="cpu", precision="float32", backend="torch")}
    if fast_in_bfloat16():
        ours["torch, bfloat16"] = load_backbone(name, device="cpu", precision="bfloat16", backend="torch")
    ours["ONNX Runtime, float32"] = load_backbone(name, backend="onnx")
    ours["ONNX Runtime, int8"] = load_backbone(name, precision="int8")
    theirs = load_anchors(name)
    found: dict[str, np.ndarray] = {}

    def jobs(chosen: Sequence[str]) -> dict[str, Callable[[], Any]]:
        items = [(text,) for text in chosen]

        def keep(engine: str, encode: Callable[[], Any]) -> Callable[[], None]:
            return lambda: found.__setitem__(engine, np.asarray(encode(), dtype=np.float64))

        made = {
            one: keep(one, lambda m=model: m.encode(chosen, show_progress_bar=False)) for one, model in theirs.items()
        }
        return made | {
            one: keep(one, lambda b=backbone: b.encode(items, pooling="mean")) for one, backbone in ours.items()
        }

    def forget() -> None:
        for backbone in ours.values():
            backbone.cache.clear()

    chosen = mixed_sentences(max(texts, 100))[:texts]
    small: dict[str, list[float]] = {}
    for start in range(0, min(20 * SMALL, texts), SMALL):
        timed = times_in_turns(jobs(chosen[start : start + SMALL]), rounds=1, before=forget, clock=plan.clock)
        for engine, seconds in timed.items():
            small.setdefault(engine, []).extend(seconds)
    large = times_in_turns(jobs(chosen), rounds=plan.rounds, before=forget, clock=plan.clock)
    exact, results = found["torch, float32"], []
    for engine in large:
        product = (found[engine] * exact).sum(axis=1)
        lowest = (product / np.linalg.norm(found[engine], axis=1) / np.linalg.norm(exact, axis=1)).min()
        many, few = ratio(large, ANCHOR, engine), ratio(small, ANCHOR, engine)
        told = (
            f"{many:.2f}x and {few:.2f}x ({statistics.median(small[engine]) * 1e3:.0f} ms), lowest cosine {lowest:.4f}"
        )
        what = f"{name.rpartition('/')[2]}: {texts:,} mixed sentences, and {SMALL} at a time: {engine}"
        results.append(Result(what, "", told, None, many, {"large": large[engine], "small": small[engine]}))
    return results


def measure_int8(models: Sequence[str], tables: Sequence[str], *, texts: int, plan: Plan) -> list[Result]:
    """Compare scores with ratings, in float32 and in int8, and the time that both take."""
    results = []
    for model in models:
        exact = condviz.load(model, device="cpu", precision="float32", backend="torch")
        rounded = condviz.load(model, precision="int8")
        for table in tables:
            pairs = [pair for pair in open_data(table, max_rows=None).pairs if pair.label is not None]
            pairs = pairs[:: max(1, len(pairs) // texts)] if texts else pairs
            ratings = [pair.label for pair in pairs]
            columns = [[getattr(pair, name) for pair in pairs] for name in ("sentence1", "sentence2", "condition")]
            found, seconds = {}, {}
            for name, one in (("float32", exact), ("int8", rounded)):
                one.backbone.cache.clear()
                start = plan.clock()
                found[name] = 100 * spearman(ratings, one.score(*columns))
                seconds[name] = plan.clock() - start
            lost, allowed = found["float32"] - found["int8"], LOST.get(table.partition(":")[0], 0.5)
            told = f"{lost:.2f} lost of {found['float32']:.2f}, {seconds['float32'] / seconds['int8']:.2f}x as fast"
            what = f"{model}, {table} ({len(pairs):,} rows), int8 against torch in float32"
            results.append(
                Result(what, f"≤ {allowed:g} points lost", told, lost <= allowed, lost, {"seconds": seconds})
            )
    return results


def main(arguments: Sequence[str] | None = None) -> None:
    """Run from the command line; `arguments` None takes those of the process."""
    parser = options(__doc__, rounds=3)
    parser.add_argument("--encoder", action="append", help="default: MiniLM, and all-mpnet-base-v2 where it is here")
    parser.add_argument("--texts", type=int, default=0, help="sentences, or rated rows (default: 600, 150; all rows)")
    parser.add_argument("--busy", action="store_true", help="for a busy machine: processor time of a single thread")
    parser.add_argument("--int8", action="store_true", help="what int8 costs")
    parser.add_argument("--model", action="append", help=f"for --int8 (default: {', '.join(MODELS)})")
    parser.add_argument("--table", action="append", help=f"for --int8 (default: {', '.join(TABLES)})")
    chosen = parser.parse_args(arguments)
    if chosen.int8:
        plan = Plan(rounds=1, busy=chosen.busy)
        told = measure_int8(chosen.model or MODELS, chosen.table or TABLES, texts=chosen.texts, plan=plan)
        report(told, chosen, "int8")
        return
    plan, before = Plan(rounds=chosen.rounds, busy=chosen.busy), torch.get_num_threads()
    torch.set_num_threads(1 if plan.busy else before)
    names = chosen.encoder or [name for name in TEXTS if find_here(name)]
    results = [row for name in names for row in measure(name, texts=chosen.texts or TEXTS.get(name, 150), plan=plan)]
    report(results, chosen, "engines")


if __name__ == "__main__":
    main()
