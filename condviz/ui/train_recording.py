"""Write assets/training_replay.jsonl: a real training that the Train tab replays where none may be started.

The head of Hyper-CL on the frozen default encoder, on a small part of the scenes: python -m condviz.ui.train_recording
"""

from __future__ import annotations

import csv
import json
import random
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from condviz.data import corpora
from condviz.data.files import write_text
from condviz.data.rows import RatedPair
from condviz.ui.train_run import RECORDING

PAIRS = {"train": (700, 1), "dev": (150, 2)}
"""Part of the scenes -> how many sentence pairs are drawn, and with which seed."""
RECIPE: Mapping[str, Any] = {
    "name": "hyper-cl-head",
    "method": "hyper-cl",
    "batching": "pairs",
    "tuning": "frozen",
    "dropout": 0.0,
    "epochs": 10,
    "batch_size": 64,
    "lr": 5e-4,
    "weight_decay": 0.01,
    "warmup": 0.05,
    "clip": 1.0,
    "evaluations": 2,
    "disk": "float16",
    "start": "identity",
    "precision": "float32",
    "loss": {"mse": 1.0, "infonce": 1.0, "temperature": 0.2},
    "config": {"rank": 48, "pooling": "mean"},
}
ABOUT = (
    "A real training, recorded on a busy CPU: the head of Hyper-CL on a frozen MiniLM, on 700 sentence pairs of the "
    "scenes under two conditions each, measured on 150 others."
)


def draw_table(part: str, folder: Path) -> Path:
    """Write some sentence pairs of the scenes as a table.

    Args:
        part: Key of `PAIRS`.
        folder: Where to.
    """
    number, seed = PAIRS[part]
    groups: dict[str, list[RatedPair]] = {}
    for row in corpora.build("scenes", part, seed=0):
        groups.setdefault(row.pair, []).append(row)
    path = folder / f"scenes-{part}.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["sentence1", "sentence2", "condition", "label"])
        for pair in random.Random(seed).sample(sorted(groups), number):
            writer.writerows([row.sentence1, row.sentence2, row.condition, row.label] for row in groups[pair])
    return path


def record() -> str:
    """Train, and give the lines of the recording: head, then records with their time in seconds."""
    from condviz.training.admission import default_probes
    from condviz.training.recipes import from_dict
    from condviz.training.trainer import carry_out

    lines: list[Mapping[str, Any]] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        train_rows, dev_rows = (draw_table(part, folder) for part in PAIRS)
        sources = {"train": [{"name": "csv", "path": str(train_rows)}]}
        sources["validation"] = [{"name": "csv", "path": str(dev_rows)}]
        recipe, probes, start = from_dict({**RECIPE, **sources}), default_probes(), time.monotonic()

        def note(entry: Mapping[str, Any]) -> None:
            lines.append({**entry, "time": round(time.monotonic() - start, 1)})

        carry_out(recipe, folder / "model", report=note, probes=probes, device="cpu")
    return write_recording(recipe.to_dict(), probes, lines)


def write_recording(recipe: dict[str, Any], probes: Any, records: list[Mapping[str, Any]]) -> str:  # noqa: ANN401
    """Write a recording as JSON lines, without the folders of the machine."""
    for key in ("train", "validation"):
        recipe[key] = [{**source, "path": Path(source["path"]).name} for source in recipe[key]]
    head = {"recipe": recipe, "about": ABOUT, "probes": probes}
    return "".join(json.dumps(line) + "\n" for line in (head, *records))


if __name__ == "__main__":
    write_text(RECORDING, record())
    sys.stdout.write(f"{RECORDING}\n")
