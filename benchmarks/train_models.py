"""Train the shipped models of both encoders side by side on one GPU, a process each, until a clock runs out.

Each step takes 32 sentence pairs of C-STS re-annotated (train90) and one block of the texts of this project or of
reviews, and keeps similarities without a condition as they were. Rates fall with the time that is left. Encoders are
trained by low-rank adapters; those of a MiniLM model begin as the best approximation of the shipped one.

python -m benchmarks.train_models pack FOLDER                 rows of all corpora, and what MiniLM models begin with
python -m benchmarks.train_models train FOLDER --seconds 450  all models, or those named by --model

`benchmarks.ship_models` makes checkpoints and tables of what came out.
"""

from __future__ import annotations

import argparse
import gzip
import json
import math
import random
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeVar

import numpy as np
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor
from torch.nn import functional

from condviz.encoder.backbone import Backbone
from condviz.encoder.pretrained import choose_precision, load_backbone
from condviz.evaluation.metrics import spearman
from condviz.methods import METHODS, ConditionalScorer
from condviz.models import checkpoints
from condviz.training.data import Batch
from condviz.training.losses import info_nce, mean_squared_error
from condviz.training.model import TrainingModel, add_adapters, quick_attention
from condviz.training.recipes import Lora, Loss

MINILM, MPNET = "sentence-transformers/all-MiniLM-L6-v2", "sentence-transformers/all-mpnet-base-v2"
TARGETS = {
    MINILM: ("self.query", "self.key", "self.value", "output.dense", "intermediate.dense"),
    MPNET: ("attn.q", "attn.k", "attn.v", "attn.o", "output.dense", "intermediate.dense"),
}
"""Ends of the names of the layers that get adapters: all linear ones of each layer."""
SOURCES = {"tables": (3, 205), "tables-weak": (3, 67), "tables-hard": (1, 6), "scenes": (1, 60), "cebab": (1, 40),
           "cebab-edits": (1, 40), "mams": (1, 50)}  # fmt: skip
"""Corpus -> how often it is divided into blocks anew, and its weight when a block is drawn."""
SENTENCES, PAIRS = 32, 32
"""Sentences of a block; pairs of C-STS in a step."""
PLAIN, PLAIN_AT_ONCE, PLAIN_WEIGHT = 3000, 24, 2.0
"""Sentences whose similarity without a condition is kept, how many of them in a step, and the weight of that."""
CROSS_PAIRS = 24
"""Pairs of a block that a cross-encoder reads, to which a block saves nothing."""
WARM_UP, CLIP, DECAY, SEED, MARKS = 0.05, 1.0, 0.01, 42, 4
Row = tuple[str, str, str, float]
T = TypeVar("T")


@dataclass(frozen=True)
class Plan:
    """How one model is trained.

    Attributes:
        method, encoder, config: What it is.
        rank, scale: Of the adapters; their product is multiplied by `scale`.
        rate, head_rate: Of the adapters and of the method's own layers.
        contrast: Weight of the contrast of the two conditions of a pair, in blocks and in C-STS.
        temperature: Of the contrast, likewise.
        init: Shipped model, or one that was trained before, whose encoder and head it begins with.
        start: As in recipes.
        steps: Most steps, whatever the clock says.
    """

    method: str
    encoder: str
    config: Mapping[str, Any] = field(default_factory=dict)
    rank: int = 16
    scale: float = 2.0
    rate: float = 4e-4
    head_rate: float = 5e-4
    contrast: tuple[float, float] = (1.0, 0.0)
    temperature: tuple[float, float] = (0.2, 1.7)
    init: str = ""
    start: str = "random"
    steps: int = 10_000


def _plans() -> Iterator[tuple[str, Plan]]:
    mean = {"pooling": "mean"}
    first = "bi-encoder-mpnet@first"
    yield first, Plan("bi-encoder", MPNET, mean, rate=8e-4)
    yield "bi-encoder-mpnet", Plan("bi-encoder", MPNET, mean, rate=6e-4, init=first)
    case = {"projection": "linear", "projection_dim": 512}
    yield "case-mpnet", Plan("case", MPNET, case, rate=6e-4, init=first)
    yield "csr-bi-mpnet", Plan("csr-bi", MPNET, mean | {"num_routed_layers": 3}, rate=6e-4, init=first)
    yield "csr-prefix-mpnet", Plan("csr-prefix", MPNET, mean, rate=6e-4, init=first)
    yield "csr-mpnet", Plan("csr", MPNET, mean | {"num_routed_layers": 6}, rate=6e-4, init=first)
    yield "cross-encoder-mpnet", Plan("cross-encoder", MPNET, mean, rate=6e-4, init=first)
    yield "hyper-cl-mpnet", Plan("hyper-cl", MPNET, mean | {"rank": 64, "generator_rank": 64}, start="identity",
                                 contrast=(1.0, 0.3))  # fmt: skip
    yield "tri-concat-mpnet", Plan("tri-encoder", MPNET, mean | {"composition": "concat"})
    yield "tri-hadamard-mpnet", Plan("tri-encoder", MPNET, mean | {"composition": "hadamard"}, start="identity")
    small = {"rank": 64, "scale": 1.0, "rate": 6e-4, "steps": 1600}
    yield "bi-encoder-csts", Plan("bi-encoder", MINILM, mean, init="bi-encoder", **small)
    case = {"projection": "linear", "projection_dim": 256}
    yield "case-csts", Plan("case", MINILM, case, init="bi-encoder", **small)
    yield "csr-bi-csts", Plan("csr-bi", MINILM, mean | {"num_routed_layers": 3}, init="bi-encoder", **small)
    yield "csr-prefix-csts", Plan("csr-prefix", MINILM, mean, init="bi-encoder", **small)
    yield "csr-csts", Plan("csr", MINILM, mean | {"num_routed_layers": 4}, init="csr", **small)
    yield "cross-encoder-csts", Plan("cross-encoder", MINILM, mean, init="cross-encoder", **small)
    yield "hyper-cl-csts", Plan("hyper-cl", MINILM, mean | {"rank": 48, "generator_rank": 64}, start="identity",
                           contrast=(1.0, 0.3), **small)  # fmt: skip


PLANS = dict(_plans())


# ---- rows and starts, where the corpora are -------------------------------------------------------------------------


def pack(folder: Path) -> None:
    """Write rows.json.gz, and start-NAME.safetensors for each model that MiniLM models begin with."""
    from benchmarks import parts as board
    from condviz.data import corpora

    texts: dict[str, int] = {}

    def numbered(rows: Sequence[Any]) -> list[list[float]]:
        return [
            [*(texts.setdefault(text, len(texts)) for text in (row.sentence1, row.sentence2, row.condition)), row.label]
            for row in rows
        ]

    csts = {part: numbered(corpora.build("csts-reannotated", part)) for part in ("train90", "dev10", "validation")}
    blocks = {
        name: [
            numbered(block)
            for seed in range(11, 11 + draws)
            for block in corpora.build_blocks(name, "train", sentences=SENTENCES, seed=seed)
        ]
        for name, (draws, _) in SOURCES.items()
    }
    parts = {name: numbered(board.choose(name).rows) for name in board.PARTS if name != "plain"}
    parts["tables_validation"] = numbered(corpora.build("tables", "validation", seed=0)[:800])
    told = sorted({row[i] for name in ("tables", "scenes", "cebab") for b in blocks[name] for row in b for i in (0, 1)})
    told += sorted({row[i] for row in csts["train90"] for i in (0, 1)})
    plain = random.Random(SEED).sample(told, PLAIN)
    content = {"texts": list(texts), "csts": csts, "blocks": blocks, "parts": parts, "plain": plain}
    folder.mkdir(parents=True, exist_ok=True)
    with gzip.open(folder / "rows.json.gz", "wt", encoding="utf-8") as file:
        json.dump(content, file)
    for name, plan in {plan.init: plan for plan in PLANS.values() if plan.init and plan.init not in PLANS}.items():
        save_file(factorise(name, plan), folder / f"start-{name}.safetensors")


def factorise(name: str, plan: Plan) -> dict[str, Tensor]:
    """Return what a shipped model changes in its encoder: the nearest matrices of low rank, and whole vectors."""
    trained = checkpoints.load(Path("checkpoints") / name, device="cpu", precision="float32")
    base = load_backbone(plan.encoder, device="cpu", precision="float32").model.state_dict()
    tensors = {f"head.{key}": value.half() for key, value in trained.head_state().items()}
    for key, value in trained.backbone.model.state_dict().items():
        if torch.equal(value, base[key]):
            continue
        if value.dim() == 2 and any(key.removesuffix(".weight").endswith(end) for end in TARGETS[plan.encoder]):
            left, strengths, right = torch.linalg.svd(value - base[key], full_matrices=False)
            root = (strengths[: plan.rank] / plan.scale).sqrt()
            module = key.removesuffix(".weight")
            tensors[f"adapter.{module}.lora_B"] = (left[:, : plan.rank] * root).half().contiguous()
            tensors[f"adapter.{module}.lora_A"] = (root[:, None] * right[: plan.rank]).half().contiguous()
        else:
            tensors[f"backbone.{key}"] = value.half()
    return tensors


# ---- one training ---------------------------------------------------------------------------------------------------


class Rows:
    """What `pack` has written."""

    def __init__(self, folder: Path) -> None:
        with gzip.open(folder / "rows.json.gz", "rt", encoding="utf-8") as file:
            content = json.load(file)
        texts = content["texts"]

        def told(rows: Sequence[Sequence[float]]) -> list[Row]:
            return [(texts[row[0]], texts[row[1]], texts[row[2]], float(row[3])) for row in rows]

        self.csts = {part: told(rows) for part, rows in content["csts"].items()}
        self.blocks = {name: [told(rows) for rows in blocks] for name, blocks in content["blocks"].items()}
        self.parts = {name: told(rows) for name, rows in content["parts"].items()}
        self.plain = [texts[i] for i in content["plain"]]

    def pairs(self) -> list[tuple[Row, Row]]:
        """Return the sentence pairs of C-STS train with two rated conditions, the higher rating first."""
        rows = self.csts["train90"]
        together = zip(rows[::2], rows[1::2], strict=False)
        return [tuple(sorted(pair, key=lambda row: -row[3])) for pair in together if pair[0][:2] == pair[1][:2]]


def batch(rows: Sequence[Row]) -> tuple[Batch, Tensor]:
    """Return the texts of rows, and their ratings in [0, 1]."""
    first, second, conditions, labels = zip(*rows, strict=True)
    return Batch(first, second, conditions), (torch.tensor(labels) - 1) / 4


def high_low(rows: Sequence[Row], rng: random.Random, pairs: int | None) -> list[Row]:
    """Order rows, the two of a pair side by side, as losses want them: all highs, then all lows."""
    together = [sorted(pair, key=lambda row: -row[3]) for pair in zip(rows[::2], rows[1::2], strict=True)]
    if pairs is not None and len(together) > pairs:
        together = rng.sample(together, pairs)
    return [pair[0] for pair in together] + [pair[1] for pair in together]


def build(plan: Plan, folder: Path, encoder: str) -> ConditionalScorer:
    """Build the model with its adapters, on an encoder of its own, in float32 on the CPU."""
    backbone = load_backbone(encoder, device="cpu", precision="float32", shared=False)
    torch.manual_seed(SEED)
    method = METHODS[plan.method]
    model = method(backbone, method.config_cls(**plan.config))
    if plan.start == "identity":
        model.start_identity()
    backbone.requires_grad_(False)
    add_adapters(backbone, Lora(rank=plan.rank, alpha=plan.rank * plan.scale, targets=TARGETS[plan.encoder]))
    if plan.init:
        before = f"out-{plan.init}" if plan.init in PLANS else f"start-{plan.init}"
        take(model, load_file(folder / f"{before}.safetensors"), heads=plan.init == plan.method)
    return model


def take(model: ConditionalScorer, tensors: Mapping[str, Tensor], *, heads: bool = True) -> None:
    """Copy adapters, changed vectors and heads into a model; of others that it has, none is touched."""
    own = {checkpoints.plain_name(name): value for name, value in model.backbone.model.named_parameters()}
    own = {f"adapter.{name}": value for name, value in own.items()} | {
        f"backbone.{name.replace('.base_layer.', '.')}": value for name, value in own.items()
    }
    own |= {f"head.{name}": value for name, value in model.state_dict().items() if heads}
    with torch.no_grad():
        for name, value in tensors.items():
            if name in own:
                own[name].copy_(value)
            elif not name.startswith("head."):
                raise KeyError(name)


def trained_tensors(model: ConditionalScorer) -> dict[str, Tensor]:
    """Return adapters and head in float16, as `take` takes them."""
    parts = model.backbone.model.state_dict()
    tensors = {f"adapter.{checkpoints.plain_name(name)}": value for name, value in parts.items() if "lora_" in name}
    tensors |= {f"head.{name}": value for name, value in model.head_state().items()}
    return {name: value.detach().half().cpu().contiguous() for name, value in tensors.items()}


def remember_tokens(backbone: Backbone) -> None:
    """Let an encoder turn each text into tokens once: rows come again in every pass."""
    plain, known = backbone.tokenize, {}

    def tokenize(items: Sequence[tuple[str, ...]], **options: Any) -> list[Any]:  # noqa: ANN401
        key = tuple(sorted(options.items()))
        if missing := [item for item in dict.fromkeys(items) if (item, key) not in known]:
            known.update(zip(((item, key) for item in missing), plain(missing, **options), strict=True))
        return [known[item, key] for item in items]

    backbone.tokenize = tokenize


@torch.no_grad()
def score(module: TrainingModel, rows: Sequence[Row], size: int = 512) -> np.ndarray:
    """Score rows in float32: (n,)."""
    module.eval()
    parts = [module.scores(batch(rows[start : start + size])[0]).float() for start in range(0, len(rows), size)]
    module.train()
    return torch.cat(parts).cpu().numpy()


class Training:
    """One model on its way: `run` it, then `save` what came out."""

    def __init__(self, name: str, folder: Path, encoder: str, device: str) -> None:
        self.name, self.plan, self.folder, self.device = name, PLANS[name], folder, device
        self.rows, self.rng = Rows(folder), random.Random(SEED)
        self.model = build(self.plan, folder, encoder)
        remember_tokens(self.model.backbone)
        self.module = TrainingModel(self.model.to(device), Loss(), frozen=False).train()
        self.known = self._plain_vectors(encoder) if self.model.encodes else torch.zeros(0)
        own = [(key, value) for key, value in self.model.named_parameters() if value.requires_grad]
        adapters = [value for key, value in own if key.startswith("backbone.")]
        heads = [value for key, value in own if not key.startswith("backbone.")]
        groups = [{"params": adapters, "lr": self.plan.rate}, {"params": heads, "lr": self.plan.head_rate}]
        self.weights = adapters + heads
        self.optimizer = torch.optim.AdamW([group for group in groups if group["params"]], weight_decay=DECAY)
        self.rates = [group["lr"] for group in self.optimizer.param_groups]
        self.sums, self.curve, self.step = Counter(), [], 0
        self.pairs = _endless(self.rows.pairs(), self.rng)
        self.blocks = {key: _endless(blocks, self.rng) for key, blocks in self.rows.blocks.items()}

    def run(self, end: float) -> None:
        """Take steps until the clock shows `end`, or the plan has no more."""
        begun = time.time()
        while True:
            seconds = time.time() - begun
            done = max(seconds / max(1.0, end - begun), self.step / self.plan.steps)
            if done * MARKS >= len(self.curve) + 1 or done >= 1:
                self._mark(seconds)
            if done >= 1:
                break
            for group, rate in zip(self.optimizer.param_groups, self.rates, strict=True):
                group["lr"] = rate * min(1.0, done / WARM_UP + 1e-3) * (1 - done)
            self._take_step()
        self.seconds = round(time.time() - begun)

    def save(self) -> None:
        """Write out-NAME.safetensors and out-NAME.json, with the scores of all parts."""
        save_file(trained_tensors(self.model), self.folder / f"out-{self.name}.safetensors")
        rows = {f"csts_{part}": self.rows.csts[part] for part in ("validation", "dev10")} | self.rows.parts
        scores = {part: score(self.module, data) for part, data in rows.items()}
        told = {
            "plan": asdict(self.plan),
            "steps": self.step,
            "seconds": self.seconds,
            "device": torch.cuda.get_device_name() if self.device == "cuda" else self.device,
            "curve": self.curve,
            "spearman": {part: _spearman(scores[part], data) for part, data in rows.items()},
            "scores": {part: [round(float(value), 6) for value in values] for part, values in scores.items()},
        }
        (self.folder / f"out-{self.name}.json").write_text(json.dumps(told))
        print("done", self.name, self.step, json.dumps(told["spearman"]), flush=True)

    def _plain_vectors(self, encoder: str) -> Tensor:
        """Encode the sentences whose similarity is kept with the encoder as it was: (PLAIN, d), of length 1."""
        bare = load_backbone(encoder, device=self.device, precision="float32", shared=False).eval()
        vectors = bare.encode([(text,) for text in self.rows.plain], pooling="mean")
        return functional.normalize(vectors.float()).to(self.device)

    def _take_step(self) -> None:
        together = [next(self.pairs) for _ in range(PAIRS)]
        self._learn("csts", [pair[0] for pair in together] + [pair[1] for pair in together])
        (source,) = self.rng.choices(list(SOURCES), [weight for _, weight in SOURCES.values()])
        limit = None if self.model.encodes else CROSS_PAIRS
        self._learn("block", high_low(next(self.blocks[source]), self.rng, limit))
        if self.model.encodes:
            self._keep_plain()
        torch.nn.utils.clip_grad_norm_(self.weights, CLIP)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        self.step += 1

    def _learn(self, kind: Literal["block", "csts"], rows: Sequence[Row]) -> None:
        texts, labels = batch(rows)
        with self._half(), quick_attention(self.model.backbone):
            scores = self.module.scores(texts).float()
        loss, place = mean_squared_error(scores, labels.to(self.device)), ("block", "csts").index(kind)
        if self.plan.contrast[place]:
            loss = loss + self.plan.contrast[place] * info_nce(scores, temperature=self.plan.temperature[place])
        loss.backward()
        self.sums[kind] += float(loss.detach())

    def _keep_plain(self) -> None:
        """Add the gradient of the distance between cosines without a condition and the pretrained ones."""
        chosen = self.rng.sample(range(len(self.rows.plain)), PLAIN_AT_ONCE)
        with self._half(), quick_attention(self.model.backbone):
            vectors = self.module.method.embed_sentences([self.rows.plain[i] for i in chosen], self.module)
        vectors, known = functional.normalize(vectors.float()), self.known[chosen]
        loss = functional.mse_loss(vectors @ vectors.T, known @ known.T)
        (PLAIN_WEIGHT * loss).backward()
        self.sums["plain"] += float(loss.detach())

    def _half(self) -> AbstractContextManager:
        half = choose_precision("auto", self.device) == torch.bfloat16
        return torch.autocast(self.device, torch.bfloat16) if half else nullcontext()

    def _mark(self, seconds: float) -> None:
        """Note the mean losses since the last mark, and Spearman on the rows kept back."""
        steps = max(1, self.step - (self.curve[-1]["step"] if self.curve else 0))
        kept = {"csts dev10": self.rows.csts["dev10"], "tables validation": self.rows.parts["tables_validation"]}
        self.curve.append(
            {"step": self.step, "seconds": round(seconds)}
            | {f"loss {kind}": round(value / steps, 4) for kind, value in self.sums.items()}
            | {part: _spearman(score(self.module, data), data) for part, data in kept.items()}
        )
        self.sums.clear()
        print(self.name, json.dumps(self.curve[-1]), flush=True)


def _endless(units: Sequence[T], rng: random.Random) -> Iterator[T]:
    """Yield units again and again, each time in another order."""
    while True:
        yield from rng.sample(units, len(units))


def _spearman(scores: np.ndarray, rows: Sequence[Row]) -> float:
    return round(100 * spearman(np.array([row[3] for row in rows]), scores), 2)


def side_by_side(names: Sequence[str], folder: Path, encoders: Mapping[str, str], device: str, seconds: float) -> int:
    """Train models in a process each; returns how many failed."""
    deadline, running = time.time() + seconds, {}
    for name in names:
        command = [sys.executable, "-m", "benchmarks.train_models", "one", str(folder), "--model", name]
        command += ["--encoder", encoders[PLANS[name].encoder], "--device", device, "--deadline", str(deadline)]
        command += ["--seconds", str(seconds)]
        running[name] = subprocess.Popen(command)
    failed = [name for name, process in running.items() if process.wait()]
    print("failed:", failed, flush=True)
    return len(failed)


def main() -> None:
    """Run one of the commands; `one` is what `train` runs for each model."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("pack", "train", "one"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--model", action="append", choices=list(PLANS))
    parser.add_argument("--seconds", type=float, default=450.0)
    parser.add_argument("--deadline", type=float, default=math.inf)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--encoder", help="for `one`: folder or name of the encoder")
    parser.add_argument("--mpnet", default=MPNET, help="folder or name")
    parser.add_argument("--minilm", default=MINILM, help="folder or name")
    chosen = parser.parse_args()
    if chosen.what == "pack":
        pack(chosen.folder)
    elif chosen.what == "one":
        (name,) = chosen.model
        training = Training(name, chosen.folder, chosen.encoder, chosen.device)
        training.run(min(chosen.deadline, time.time() + chosen.seconds))
        training.save()
    else:
        encoders = {MPNET: chosen.mpnet, MINILM: chosen.minilm}
        sys.exit(side_by_side(chosen.model or list(PLANS), chosen.folder, encoders, chosen.device, chosen.seconds))


if __name__ == "__main__":
    main()
