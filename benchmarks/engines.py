"""What computes an encoder fastest here, and what int8 would cost: torch, ONNX Runtime, sentence-transformers.

python -m benchmarks engines [--encoder NAME] [--texts N] [--busy] [--docs] [--rounds N]
python -m benchmarks engines --int8 [--model NAME] [--table SOURCE] [--texts N]
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

import condviz
from benchmarks.common import Plan, Result, mixed_sentences, options, ratio, report, times_in_turns
from benchmarks.speed import ANCHOR, load_anchors
from condviz.data.corpora import open_table
from condviz.encoder import BASE_BACKBONE, DEFAULT_BACKBONE
from condviz.encoder.backbone import Backbone
from condviz.encoder.pretrained import cpu_has_bfloat16, find_here, load_backbone
from condviz.evaluation.metrics import spearman

SMALL = 10
"""The strings of one comparison of two sentences under five conditions."""
TEXTS = {DEFAULT_BACKBONE: 600, BASE_BACKBONE: 150}
LOST = {"csts-reannotated": 0.3, "tables": 0.5}
"""Points of Spearman's correlation that int8 may cost."""
TABLES = ("csts-reannotated:validation", "tables:test")


def measure(name: str, *, texts: int, plan: Plan) -> list[Result]:
    """Encode many mixed sentences, and ten at a time, with every engine that is here."""
    ours = {"torch, float32": load_backbone(name, device="cpu", precision="float32", backend="torch")}
    if cpu_has_bfloat16():
        ours["torch, bfloat16"] = load_backbone(name, device="cpu", precision="bfloat16", backend="torch")
    ours["ONNX Runtime, float32"] = load_backbone(name, backend="onnx")
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


class Rounded(nn.Module):
    """A linear layer as dynamic int8 computes it: weights by output channel, inputs by `per` "tensor" or "token"."""

    def __init__(self, layer: nn.Linear, per: str) -> None:
        super().__init__()
        scale = layer.weight.detach().abs().amax(dim=1, keepdim=True) / 127
        self.weight, self.bias, self.per = (layer.weight.detach() / scale).round() * scale, layer.bias, per

    def forward(self, inputs: Tensor) -> Tensor:
        """Compute rounded inputs times rounded weights, plus the bias."""
        axis = dict(dim=-1, keepdim=True) if self.per == "token" else {}
        low, high = inputs.amin(**axis).clamp_max(0), inputs.amax(**axis).clamp_min(0)
        scale = ((high - low) / 255).clamp_min(1e-8)
        zero = (-low / scale).round()
        return nn.functional.linear(
            (((inputs / scale).round() + zero).clamp(0, 255) - zero) * scale, self.weight, self.bias
        )


@contextmanager
def rounded(backbone: Backbone, per: str, chosen: Callable[[int, str], bool]) -> Iterator[None]:
    """Round those linear layers that `chosen` names by number of layer and name of module."""
    before = []
    for number, block in enumerate(backbone.layers.blocks):
        for name, module in block.named_modules():
            if isinstance(module, nn.Linear) and chosen(number, name):
                parent, _, leaf = name.rpartition(".")
                before.append((block.get_submodule(parent), leaf, module))
    for parent, leaf, module in before:
        setattr(parent, leaf, Rounded(module, per))
    backbone.cache.clear()
    try:
        yield
    finally:
        for parent, leaf, module in before:
            setattr(parent, leaf, module)


def measure_int8(model: str, tables: Sequence[str], *, texts: int) -> list[Result]:
    """Compare scores with ratings, in float32 and as int8 would compute them: whole, in part, and layer by layer."""
    loaded = condviz.load(model, device="cpu", precision="float32", backend="torch")
    down = lambda name: name == "output.dense"  # noqa: E731 (behind the activation, whose range is the widest)
    ways: dict[str, tuple[str, Callable[[int, str], bool]]] = {
        "all, inputs by tensor": ("tensor", lambda number, name: True),
        "all, inputs by token": ("token", lambda number, name: True),
        "all but the last of each layer, by tensor": ("tensor", lambda number, name: not down(name)),
        "all but the last of each layer, by token": ("token", lambda number, name: not down(name)),
    }
    for layer in range(loaded.backbone.num_layers):
        ways[f"layer {layer} alone, by tensor"] = "tensor", lambda number, name, layer=layer: number == layer
    results = []
    for table in tables:
        pairs = [pair for pair in open_table(table).pairs if pair.label is not None]
        pairs = pairs[:: max(1, len(pairs) // texts)] if texts else pairs
        ratings = [pair.label for pair in pairs]
        columns = [[getattr(pair, name) for pair in pairs] for name in ("sentence1", "sentence2", "condition")]
        exact, allowed = 100 * spearman(ratings, loaded.score(*columns)), LOST.get(table.partition(":")[0], 0.5)
        for way, (per, chosen) in ways.items():
            with rounded(loaded.backbone, per, chosen):
                lost = exact - 100 * spearman(ratings, loaded.score(*columns))
            what = f"{model}, {table} ({len(pairs):,} rows), int8: {way}"
            told = f"{lost:.2f} lost of {exact:.2f}"
            results.append(Result(what, f"≤ {allowed:g} points lost", told, lost <= allowed, lost, {}))
        loaded.backbone.cache.clear()
    return results


def main(arguments: Sequence[str] | None = None) -> None:
    """Run from the command line; `arguments` None takes those of the process."""
    parser = options(__doc__, rounds=3)
    parser.add_argument("--encoder", action="append", help="default: MiniLM, and all-mpnet-base-v2 where it is here")
    parser.add_argument("--texts", type=int, default=0, help="sentences, or rated rows (default: 600, 150; all rows)")
    parser.add_argument("--busy", action="store_true", help="for a busy machine: processor time of a single thread")
    parser.add_argument("--int8", action="store_true", help="what int8 would cost, computed in float32")
    parser.add_argument("--model", default="bi-encoder", help="for --int8 (default: %(default)s)")
    parser.add_argument("--table", action="append", help=f"for --int8 (default: {', '.join(TABLES)})")
    chosen = parser.parse_args(arguments)
    if chosen.int8:
        report(measure_int8(chosen.model, chosen.table or TABLES, texts=chosen.texts), chosen, "int8")
        return
    plan, before = Plan(rounds=chosen.rounds, busy=chosen.busy), torch.get_num_threads()
    torch.set_num_threads(1 if plan.busy else before)
    names = chosen.encoder or [name for name in TEXTS if find_here(name)]
    results = [row for name in names for row in measure(name, texts=chosen.texts or TEXTS.get(name, 150), plan=plan)]
    report(results, chosen, "engines")


if __name__ == "__main__":
    main()
