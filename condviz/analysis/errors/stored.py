"""Scores of the shipped models on the test part of the scenes, so that the page has something to show at once.

Run this again whenever scenes or shipped models change: python -m condviz.analysis.errors.stored
"""

from __future__ import annotations

import argparse
import base64
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from condviz.analysis.errors.findings import with_training_of
from condviz.analysis.errors.study import Study, judge, make_study
from condviz.data.files import write_text
from condviz.errors import DataError
from condviz.evaluation.dataset import Dataset, corpus_dataset
from condviz.models.registry import list_models, load
from condviz.paths import ASSETS

FILE = ASSETS / "error_scores.json"
CORPUS, PART = "scenes", "test"
MAX_BYTES = 1_000_000


@dataclass(frozen=True)
class Stored:
    """Scores of one model.

    Attributes:
        weights: Hash of the weights that gave them.
        scores: (p,) float32, in the order of the rows.
    """

    weights: str
    scores: np.ndarray


def read_stored(dataset: Dataset) -> dict[str, Stored]:
    """Return stored scores by the name of the model; none where they belong to other rows, or there is no file."""
    if not FILE.is_file():
        return {}
    content = json.loads(FILE.read_text(encoding="utf-8"))
    if content["rows"] != dataset.digest:
        return {}
    return {name: Stored(entry["weights"], _unpack(entry["scores"])) for name, entry in content["models"].items()}


@lru_cache(maxsize=1)
def stored_study(model: str) -> Study:
    """Return a study of a shipped model on the test part of the scenes, made of its stored scores."""
    dataset = with_training_of(corpus_dataset(CORPUS, PART), model)
    found = read_stored(dataset)
    if model not in found:
        raise DataError(f"No scores of {model[:40]!r} are stored. There are: {', '.join(found)}.")
    return make_study(dataset, judge(dataset, model, found[model].scores))


def main(arguments: Sequence[str] | None = None) -> None:
    """Score the rows with every model, in float32, and store the result."""
    parser = argparse.ArgumentParser(prog="python -m condviz.analysis.errors.stored", description=__doc__)
    parser.add_argument("--model", action="append", default=[], help="may be repeated (default: all)")
    options = parser.parse_args(arguments)
    dataset = corpus_dataset(CORPUS, PART)
    kept = read_stored(dataset) if options.model else {}
    models = {name: {"weights": one.weights, "scores": _pack(one.scores)} for name, one in kept.items()}
    for name in options.model or list_models():
        model = load(name, precision="float32")
        models[name] = {"weights": model.weights_hash, "scores": _pack(model.score(*dataset.texts()))}
        sys.stdout.write(f"{name}: {len(dataset.pairs):,} rows\n")
    lines = ",\n".join(f" {json.dumps(name)}: {json.dumps(entry)}" for name, entry in models.items())
    text = f'{{"rows": "{dataset.digest}", "models": {{\n{lines}\n}}}}\n'
    write_text(FILE, text)
    if len(text) > MAX_BYTES:
        sys.stderr.write(
            f"{FILE.name} has {len(text):,} bytes; leave models out with --model to stay below a megabyte.\n"
        )


def _pack(scores: np.ndarray) -> str:
    return base64.b64encode(np.asarray(scores, dtype="<f4").tobytes()).decode("ascii")


def _unpack(text: str) -> np.ndarray:
    return np.frombuffer(base64.b64decode(text), dtype="<f4").astype(np.float32)


if __name__ == "__main__":
    main()
