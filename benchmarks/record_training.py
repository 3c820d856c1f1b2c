"""Record a training that the Train tab replays where none may be started: python -m benchmarks.record_training.

What a visitor gets who chooses the example and "Quick": the head of Hyper-CL on a frozen encoder, on the scenes.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from condviz.data.files import write_text
from condviz.training.data import load_source
from condviz.training.preflight import choose_probes
from condviz.training.recipes import from_dict
from condviz.training.trainer import carry_out
from condviz.ui.train.recipe import compose
from condviz.ui.train.view import RECORDING

ABOUT = (
    "A recorded training, on a CPU that was busy with other work: the head of Hyper-CL on a frozen MiniLM, on the "
    "scenes of this project."
)


def main() -> None:
    """Train on the CPU and write head and records as JSON lines, each record with its time in seconds."""
    recipe = from_dict(tomllib.loads(compose("quick", "hyper-cl-head", None)))
    probes = choose_probes(recipe)
    rated = {row.texts: row.label for source in recipe.validation for row in load_source(source)}
    records: list[Mapping[str, Any]] = []
    start = time.monotonic()

    def note(record: Mapping[str, Any]) -> None:
        records.append({**record, "time": round(time.monotonic() - start, 1)})

    with tempfile.TemporaryDirectory() as folder:
        carry_out(recipe, Path(folder) / "model", report=note, probes=probes, device="cpu")
    ratings = [rated.get(tuple(probe)) for probe in probes]
    head = {"recipe": recipe.to_dict(), "about": ABOUT, "probes": probes, "ratings": ratings}
    write_text(RECORDING, "".join(json.dumps(line) + "\n" for line in (head, *records)))
    sys.stdout.write(f"{RECORDING}\n")


if __name__ == "__main__":
    main()
