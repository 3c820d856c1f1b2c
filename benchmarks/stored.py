"""Scores of the shipped models that the page reads: run it again whenever the rows or a model change.

python -m benchmarks.stored reference [--model NAME]   of the reference pairs, the yardstick behind percentiles
python -m benchmarks.stored errors [--model NAME]      of the test part of the scenes, with which Errors begins
"""

from __future__ import annotations

import argparse
import base64
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from condviz.analysis import reference
from condviz.analysis.errors import findings
from condviz.cli.options import load_asked
from condviz.data.files import write_text
from condviz.evaluation.dataset import corpus_dataset
from condviz.methods import ConditionalScorer

MAX_BYTES = 1_000_000


def main(arguments: Sequence[str] | None = None) -> None:
    """Score rows in float32, by all models or those named, and store the result; other models keep theirs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("reference", "errors"))
    parser.add_argument("--model", action="append", default=[], help="may be repeated (default: all)")
    parser.set_defaults(device="cpu")
    options = parser.parse_args(arguments)
    if options.what == "reference":
        path, key, digest = reference.SCORES, "pairs", reference.pairs_digest()
    else:
        dataset = corpus_dataset("scenes", "test")
        path, key, digest = findings.STORED_SCORES, "rows", dataset.digest

    def score(model: ConditionalScorer) -> list[float] | str:
        if options.what == "reference":
            return [round(float(one), 5) for one in reference.compute_scores(model)]
        return base64.b64encode(np.asarray(model.score(*dataset.texts()), dtype="<f4").tobytes()).decode("ascii")

    models = dict(_read(path, key, digest)) if options.model else {}
    for name, model in load_asked(options):
        models[name] = {"weights": model.weights_hash, "scores": score(model)}
        sys.stdout.write(f"{name}\n")
    rows = ",\n".join(f" {json.dumps(name)}: {json.dumps(entry)}" for name, entry in models.items())
    text = f'{{"{key}": "{digest}", "models": {{\n{rows}\n}}}}\n'
    write_text(path, text)
    if len(text) > MAX_BYTES:
        sys.stderr.write(f"{path.name} has {len(text):,} bytes: leave models out to stay below a megabyte.\n")


def _read(path: Path, key: str, digest: str) -> Mapping[str, Any]:
    """Return what is stored by model; nothing where it belongs to other rows."""
    content = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    return content["models"] if content.get(key) == digest else {}


if __name__ == "__main__":
    main()
