"""Would another engine pay? OpenVINO and this package encode the same texts in turns, beside sentence-transformers.

pip install openvino, then python -m benchmarks.engines [--docs] [--rounds N]
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from benchmarks.common import Result, mixed_sentences, options, ratio, report, times_in_turns
from benchmarks.speed import ANCHOR, load_anchor
from condviz.encoder.backbone import BATCH_TOKENS, Backbone
from condviz.encoder.pretrained import DEFAULT_BACKBONE, cpu_has_bfloat16, load_backbone
from condviz.encoder.tokens import batches_by_length

NUM_TEXTS, SMALL = 2_000, 10
"""A large job, and the strings of one comparison of two sentences under five conditions."""


class Pooled(nn.Module):
    """An encoder with mean pooling, as one graph."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, ids: Tensor, mask: Tensor) -> Tensor:
        """Encode a batch: (b, L), (b, L) -> (b, d)."""
        state = self.model(input_ids=ids, attention_mask=mask, token_type_ids=torch.zeros_like(ids)).last_hidden_state
        weight = mask[..., None].to(state.dtype)
        return (state * weight).sum(dim=1) / weight.sum(dim=1)


class OpenVino:
    """The same encoder, converted."""

    def __init__(self, backbone: Backbone, precision: str) -> None:
        """Convert and compile; `backbone` in float32."""
        import openvino as ov  # no dependency of this package

        self.backbone = backbone
        start = time.perf_counter()
        sample = (torch.ones(2, 8, dtype=torch.long),) * 2
        with torch.no_grad():
            model = ov.convert_model(
                Pooled(backbone.model), example_input=sample, input=[ov.PartialShape([-1, -1])] * 2
            )
        hint = {"INFERENCE_PRECISION_HINT": {"float32": "f32", "bfloat16": "bf16"}[precision]}
        self.request = ov.Core().compile_model(model, "CPU", hint).create_infer_request()
        self.seconds = time.perf_counter() - start

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        """Encode in batches of similar length: (n, d)."""
        rows = self.backbone.tokenize([(text,) for text in texts])
        found = np.zeros((len(rows), self.backbone.hidden_size), np.float32)
        for batch in batches_by_length([len(row) for row in rows], BATCH_TOKENS["cpu"]):
            tokens = self.backbone.collate([rows[i] for i in batch])
            inputs = [tokens.ids.numpy(), tokens.mask.numpy().astype(np.int64)]
            found[batch] = next(iter(self.request.infer(inputs).values()))
        return found


def run(*, rounds: int) -> list[Result]:
    """Measure; two or three minutes."""
    precisions = ["float32", *(["bfloat16"] if cpu_has_bfloat16() else [])]
    anchor = load_anchor()
    ours = {name: load_backbone(DEFAULT_BACKBONE, device="cpu", precision=name) for name in precisions}
    theirs = {name: OpenVino(ours["float32"], name) for name in precisions}

    def jobs(texts: Sequence[str]) -> dict[str, Callable[[], Any]]:
        items = [(text,) for text in texts]
        found = {ANCHOR: lambda: anchor.encode(texts, show_progress_bar=False)}
        for name in precisions:
            found[f"torch, {name}"] = lambda name=name: ours[name].encode(items, pooling="mean")
            found[f"OpenVINO, {name}"] = lambda name=name: theirs[name].encode(texts)
        return found

    def forget() -> None:
        for backbone in ours.values():
            backbone.cache.clear()

    texts = mixed_sentences(NUM_TEXTS)
    large = times_in_turns(jobs(texts), rounds=rounds, before=forget)
    small: dict[str, list[float]] = {}
    for start in range(0, 40 * SMALL, SMALL):
        timed = times_in_turns(jobs(texts[start : start + SMALL]), rounds=1, before=forget, warm_up=False)
        for name, seconds in timed.items():
            small.setdefault(name, []).extend(seconds)
    results = []
    for name in large:
        if name == ANCHOR:
            continue
        many, few = ratio(large, ANCHOR, name), ratio(small, ANCHOR, name)
        engine, _, precision = name.partition(", ")
        start = f"; converted and compiled in {theirs[precision].seconds:.1f} s" if engine == "OpenVINO" else ""
        told = f"{many:.2f}x and {few:.2f}x ({statistics.median(small[name]) * 1e3:.0f} ms){start}"
        what = f"{NUM_TEXTS:,} mixed sentences, and {SMALL} at a time, against {ANCHOR}: {name}"
        results.append(Result(what, "", told, None, many, {"large": large[name], "small": small[name]}))
    return results


def main() -> None:
    """Run from the command line."""
    chosen = options(__doc__, rounds=3).parse_args()
    report(run(rounds=chosen.rounds), chosen, "engines")


if __name__ == "__main__":
    main()
