"""The papers' ablations on our scenes at one small budget: python -m benchmarks.ablations [--name TEXT] [--write].

Within a group everything starts from the same encoder and sees the same rows once, with seed 42; judged on the
validation rows (scenes dev: new families, own aspects in new words). CSR starts from the encoder of hyper-cl, the
others from the pretrained one. That is enough to see what a part of a method is worth at this budget, and not what it
could reach. Each finished result is kept in assets/ablations.json and not measured again, as long as the scenes stay
the same; --write puts the table into docs/results.md.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import tempfile
from dataclasses import dataclass
from pathlib import Path

from benchmarks.common import fill
from condviz.data.files import write_text
from condviz.data.scenes import SCENES
from condviz.encoder.cache import EmbeddingCache
from condviz.evaluation.scoreboard import markdown_table
from condviz.models.checkpoints import read_manifest
from condviz.paths import ASSETS
from condviz.training.recipes import SentenceRecipe, load_recipe
from condviz.training.trainer import carry_out
from condviz.training.tuning import FROZEN_CACHE_BYTES

RESULTS = ASSETS / "ablations.json"
FROZEN = ("init=", "tuning=frozen", "frozen_layers=0", "evaluations=1")
HEADS = (*FROZEN, "train.0.draws=2")
"""Two draws: a head that reads sentence and condition apart needs each text once, so rows cost next to nothing."""
CSR = ('validation=[{name="scenes", split="dev"}]', "keep=best", "evaluations=1")
"""The stage that wakes the router: before it no variant differs from another."""


@dataclass(frozen=True)
class Ablation:
    """One line of the table.

    Attributes:
        group: Which question it belongs to.
        name: What is different.
        recipe: Name of a recipe in assets/recipes.
        changes: As `--set` of `condviz train`.
    """

    group: str
    name: str
    recipe: str
    changes: tuple[str, ...]

    @property
    def key(self) -> str:
        """Name under which the result is kept."""
        return f"{self.group}: {self.name}"

    def load(self) -> SentenceRecipe:
        """Give the recipe."""
        return load_recipe(ASSETS / "recipes" / f"{self.recipe}.toml", self.changes)


def _case(name: str, *changes: str) -> Ablation:
    one_source = 'train=[{name="scenes", weight=0.5}]'
    changes = (*FROZEN, one_source, "loss.plain=0", "batch_size=160", *changes)
    return Ablation("CASE, frozen encoder (its tables 1 and 2, figure 4)", name, "case", changes)


def _hyper(name: str, *changes: str) -> Ablation:
    group = "Hyper-CL, frozen encoder (its tables 6 and 8)"
    return Ablation(group, name, "hyper-cl-start", (*HEADS, *changes))


def _csr(name: str, *changes: str) -> Ablation:
    group = "CSR, first stage, upper four layers trained (its tables 1 and 3, figure 4a)"
    return Ablation(group, name, "csr-start", (*CSR, *changes))


ABLATIONS = (
    _hyper("rank 16", "config.rank=16"),
    _hyper("rank 48"),
    _hyper("rank 128", "config.rank=128"),
    _hyper("full rank", "config.rank=none"),
    _hyper("rank 48, no contrast", "loss.infonce=0"),
    _hyper("rank 48, contrast alone", "loss.mse=0"),
    _hyper("rank 48, random start", "start=random"),
    Ablation("baselines, frozen encoder", "tri-encoder, Hadamard", "tri-hadamard", HEADS),
    Ablation("baselines, frozen encoder", "tri-encoder, concatenation", "tri-concat", HEADS),
    _case("linear, 256 numbers"),
    _case("linear, 64 numbers", "config.projection_dim=64"),
    _case("linear, 384 numbers", "config.projection_dim=384"),
    _case("linear, nothing subtracted", "config.subtract=false"),
    _case("linear, sentence in the light of the condition", "config.prompt=sent"),
    _case("non-linear", "config.projection=mlp"),
    _case("PCA, without labels", "config.projection=pca"),
    _case("ICA, without labels", "config.projection=ica"),
    *(_csr(f"R = {layers}", f"config.num_routed_layers={layers}") for layers in range(5)),
    *(_csr(f"R = 4, {router}", f"config.router={router}") for router in ("multihead", "hidden", "heavy", "random")),
    _csr("R = 4, weights alone", "config.weighting=only"),
)


def corpus() -> str:
    """Give a hash of the files of the scenes."""
    files = sorted(SCENES.glob("*.json*"))
    return hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()[:16]


def measure(ablation: Ablation, vectors: EmbeddingCache) -> dict[str, object]:
    """Train one and give what it took and its validation scores; frozen encoders share their vectors."""
    with tempfile.TemporaryDirectory() as folder:
        manifest = read_manifest(carry_out(ablation.load(), Path(folder) / "model", vectors=vectors))
    training, (scores,) = manifest["training"], manifest["metrics"].values()
    return {
        "command": f"python -m condviz train assets/recipes/{ablation.recipe}.toml",
        "set": list(ablation.changes),
        "rows": training["data"][0]["rows"],
        "steps": training["steps"],
        "minutes": round(training["seconds"] / 60, 1),
        "scores": scores,
    }


def table(results: dict[str, dict]) -> str:
    """Give the markdown table of what was measured."""
    rows, group = [], ""
    for ablation in ABLATIONS:
        found = results.get(ablation.key)
        if found is None:
            continue
        if ablation.group != group:
            group = ablation.group
            rows.append((f"**{group}**", "", "", "", ""))
        scores = (_show(found["scores"][name]) for name in ("spearman", "pair_accuracy"))
        rows.append((ablation.name, f"{found['rows']:,}", f"{found['steps']:,}", *scores))
    return markdown_table(("what", "rows", "steps", "Spearman × 100", "pair accuracy"), rows)


def _show(score: float | None) -> str:
    return "not defined" if score is None else f"{score:.1f}"


def main() -> None:
    """Measure what is missing and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--name", default="", help="only those with this text in group or name")
    parser.add_argument("--write", action="store_true", help="put the table into docs/results.md")
    chosen = parser.parse_args()
    stored = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.is_file() else {}
    today, vectors = corpus(), EmbeddingCache(FROZEN_CACHE_BYTES)
    results = {key: found for key, found in stored.items() if found["corpus"] == today}
    for ablation in ABLATIONS:
        if ablation.key in results or chosen.name not in ablation.key:
            continue
        results[ablation.key] = measure(ablation, vectors) | {"corpus": today}
        write_text(RESULTS, json.dumps(results, indent=1) + "\n")
        print(f"{ablation.key}: {results[ablation.key]['scores']}", flush=True)
    print(table(results))
    if chosen.write:
        fill("ablations", table(results))


if __name__ == "__main__":
    main()
