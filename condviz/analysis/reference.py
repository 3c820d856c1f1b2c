"""The yardstick behind percentiles: pairs that no model was trained on, and what each model gives for them.

python -m condviz.analysis.reference           score the stored pairs anew, whenever a shipped model changes
python -m condviz.analysis.reference --draw    draw the pairs anew from the scenes before that
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import json
import sys
from collections import Counter
from collections.abc import Iterator
from functools import cache
from itertools import combinations
from weakref import WeakKeyDictionary

import numpy as np

from condviz.data.families import LOCAL, Family, Scene, rate
from condviz.data.files import write_text
from condviz.data.scenes import load_aspects, load_families
from condviz.data.splits import group_of, seen_phrasings
from condviz.encoder.backbone import Progress
from condviz.methods import ConditionalScorer
from condviz.models.registry import list_models, load
from condviz.paths import ASSETS
from condviz.types import Pair

PAIRS = ASSETS / "reference_pairs.csv"
SCORES = ASSETS / "reference_scores.json"
UNTRAINED = ("test", "unseen_domains")
"""Groups of families that no training, and no choice of weights, has seen."""
PER_KIND = 24
"""Pairs of each rating from one family, and as many from two."""
LONGEST = 240
"""Characters of a sentence."""

_computed: WeakKeyDictionary[ConditionalScorer, np.ndarray] = WeakKeyDictionary()


@cache
def reference_pairs() -> tuple[Pair, ...]:
    """Read the stored pairs that percentiles refer to: written for this project, balanced over labels 1 to 5."""
    with PAIRS.open(encoding="utf-8", newline="") as file:
        return tuple(
            Pair(row["sentence1"], row["sentence2"], row["condition"], float(row["label"]))
            for row in csv.DictReader(file)
        )


def reference_scores(model: ConditionalScorer) -> np.ndarray:
    """Return the scores of the reference pairs by a model in ascending order.

    Those of shipped models are stored; those of others are computed once per loaded model.
    """
    known = _computed.get(model)
    if known is None:
        stored = _stored().get(model.weights_hash)
        known = _computed[model] = compute_scores(model) if stored is None else np.array(stored, dtype=np.float32)
    return known


def compute_scores(model: ConditionalScorer, *, progress: Progress | None = None) -> np.ndarray:
    """Score the reference pairs: float32 in ascending order."""
    columns = ([getattr(pair, name) for pair in reference_pairs()] for name in ("sentence1", "sentence2", "condition"))
    return np.sort(model.score(*columns, progress=progress))


def percentile(scores: np.ndarray, reference: np.ndarray) -> np.ndarray:
    """Return the share of reference scores below each score, equal ones counted half, in [0, 100], float32."""
    below = np.searchsorted(reference, scores, side="left") + np.searchsorted(reference, scores, side="right")
    return (50.0 * below / len(reference)).astype(np.float32)


def pairs_digest() -> str:
    """Return the SHA-256 of the pairs that stored scores belong to, whatever the line ends."""
    return hashlib.sha256("\n".join(PAIRS.read_text(encoding="utf-8").splitlines()).encode()).hexdigest()


@cache
def _stored() -> dict[str, list[float]]:
    """Read stored scores by the hash of the weights; nothing where they belong to other pairs."""
    if not SCORES.is_file():
        return {}
    content = json.loads(SCORES.read_text(encoding="utf-8"))
    if content["pairs"] != pairs_digest():
        return {}
    return {model["weights"]: model["scores"] for model in content["models"].values()}


def draw_pairs(seed: int = 0) -> list[dict[str, object]]:
    """Draw the reference pairs from the families that no model was trained on.

    As many of each rating, half of them from one family and half from two. Every family gives one pair, and aspects
    that have been asked least are asked next; ratings follow by the rule of the scenes, in seen wordings.
    """
    rng, aspects = np.random.default_rng(seed), load_aspects()
    families = [family for family in load_families() if group_of(family) in UNTRAINED]
    found = list(_candidates(families, rng))
    asked: Counter[str] = Counter()
    used: set[str] = set()
    rows = []
    for rating in (4, 2, 3, 1, 5):  # the rarest first
        for within in (True, False):
            kind = [item for item in found if item[0] == rating and (item[2] is item[4]) == within]
            kind = [kind[place] for place in rng.permutation(len(kind))]
            for _ in range(PER_KIND):
                free = (item for item in kind if not used & {item[2].id, item[4].id})
                _, name, family1, scene1, family2, scene2 = min(free, key=lambda item: asked[item[1]])
                asked[name] += 1
                used |= {family1.id, family2.id}
                own = name.startswith(LOCAL)
                texts = family1.local_phrasings[name] if own else seen_phrasings(aspects[name])
                rows.append({
                    "sentence1": scene1.text, "sentence2": scene2.text, "condition": str(rng.choice(texts)),
                    "label": rating, "source_family1": family1.id, "source_family2": family2.id, "aspect": name,
                })  # fmt: skip
    return rows


def _candidates(
    families: list[Family], rng: np.random.Generator
) -> Iterator[tuple[int, str, Family, Scene, Family, Scene]]:
    """Yield the rated pairs inside of each family, and those of as many random pairs of families."""
    aspects = load_aspects()
    told = [(family, scene) for family in families for scene in family.scenes if len(scene.text) <= LONGEST]
    inside = [pair for pair in combinations(told, 2) if pair[0][0] is pair[1][0] and pair[0][1].text != pair[1][1].text]
    mixed = [(told[one], told[two]) for one, two in rng.integers(len(told), size=(len(inside), 2))]
    for first, second in (*inside, *(pair for pair in mixed if pair[0][0] is not pair[1][0])):
        for name, rating in rate(first, second, aspects):
            yield rating, name.rpartition(":")[2], *first, *second


def main() -> None:
    """Draw the reference pairs where asked; score them with every model, in float32, and store the result."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draw", action="store_true", help="draw the pairs anew")
    if parser.parse_args().draw:
        import pandas as pd

        write_text(PAIRS, pd.DataFrame(draw_pairs()).to_csv(index=False, lineterminator="\n"))
        reference_pairs.cache_clear()
    models = {}
    for name in list_models():
        model = load(name, precision="float32")
        scores = [round(float(score), 5) for score in compute_scores(model)]
        models[name] = {"weights": model.weights_hash, "scores": scores}
        sys.stdout.write(f"{name}: {len(scores)} pairs, median {float(np.median(scores)):.3f}\n")
    rows = ",\n".join(f" {json.dumps(name)}: {json.dumps(content)}" for name, content in models.items())
    write_text(SCORES, f'{{"pairs": "{pairs_digest()}", "models": {{\n{rows}\n}}}}\n')


if __name__ == "__main__":
    main()
