"""A small set of rated pairs, an encoder that knows its words, and recipes for them."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

from condviz.training.recipes import SentenceRecipe, from_dict
from tests.tiny import CONDITIONS, WORDS, tiny_folder

HEADER = "sentence1,sentence2,condition,label\n"


def write_table(path: Path, pairs: int = 12) -> Path:
    """Write pairs with one high and one low condition each."""
    words = itertools.cycle([word for word in WORDS if word.isalpha()])
    lines = []
    for number in range(pairs):
        texts = [" ".join(itertools.islice(words, 3 + (number + side) % 4)) for side in range(2)]
        high, low = CONDITIONS[number % 3], CONDITIONS[(number + 1) % 3]
        lines += [f"{','.join(texts)},{high},{4 + number % 2}", f"{','.join(texts)},{low},{1 + number % 2}"]
    path.write_text(HEADER + "\n".join(lines) + "\n", encoding="utf-8")
    return path


def toy_recipe(folder: Path, method: str = "bi-encoder", **changes: Any) -> SentenceRecipe:
    """Give a recipe for two epochs on the small set; writes table and encoder on the first call."""
    if not (folder / "encoder").exists():
        tiny_folder(folder / "encoder")
        write_table(folder / "rows.csv")
    source = {"name": "csv", "path": str(folder / "rows.csv")}
    content = {
        "name": "toy",
        "method": method,
        "backbone": str(folder / "encoder"),
        "train": [source],
        "validation": [source],
        "batching": "pairs",
        "loss": {"infonce": 1.0},
        "epochs": 2,
        "batch_size": 8,
        "lr": 3e-3,
        "precision": "float32",
    }
    return from_dict(content | changes)
