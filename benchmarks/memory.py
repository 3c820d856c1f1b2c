"""Resident memory with all models loaded that share the default encoder, above that of torch and gradio alone.

python -m benchmarks.memory [--json FILE]
"""

from __future__ import annotations

import subprocess
import sys

from benchmarks.common import Result, options, report

LIMIT_MB = 250
ALONE = "import gradio, torch"
LOADED = """
import condviz, gradio, torch
from condviz.encoder.pretrained import DEFAULT_BACKBONE
models = [condviz.load(name, device="cpu") for name in condviz.list_models()]
models = [model for model in models if model.backbone.name == DEFAULT_BACKBONE]
shared = {id(model.backbone) for model in models}
print(len(models), len(shared))
"""
SCORED = """
for model in models:
    model.score(["A woman plays the violin."], ["A man plays the guitar."], ["the instrument"])
"""
READ = """
with open("/proc/self/status") as status:
    print(next(line.split()[1] for line in status if line.startswith("{field}:")))
"""


def resident(code: str, *, peak: bool = False) -> tuple[float, list[str]]:
    """Run code in a fresh interpreter: its resident memory in MB (2^20), and the words it printed.

    The memory is that at the end, or the largest that it ever had.
    """
    command = [sys.executable, "-c", code + READ.format(field="VmHWM" if peak else "VmRSS")]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    return int(printed[-1]) / 1024, printed[:-1]


def run() -> list[Result]:
    """Measure in fresh processes; half a minute."""
    alone, _ = resident(ALONE)
    loaded, (models, backbones) = resident(LOADED)
    scored, _ = resident(LOADED + SCORED)
    return [
        Result(
            f"Memory of {models} models on {backbones} encoder(s) in memory, {state}",
            f"≤ {LIMIT_MB} MB above torch + gradio alone",
            f"{used - alone:.0f} MB above ({used:.0f} against {alone:.0f} MB)",
            used - alone <= LIMIT_MB,
            used - alone,
            {"alone_mb": alone, "used_mb": used, "models": int(models), "backbones": int(backbones)},
        )
        for state, used in (("loaded", loaded), ("after one comparison with each", scored))
    ]


def main() -> None:
    """Run from the command line."""
    report(run(), options(__doc__, docs=False).parse_args(), "memory")


if __name__ == "__main__":
    main()
