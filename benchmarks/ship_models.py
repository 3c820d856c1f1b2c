"""What `benchmarks.train_models` has trained, as checkpoints and as tables.

python -m benchmarks.ship_models ship FOLDER --model NAME   checkpoints/NAME; its scores: python -m benchmarks models
python -m benchmarks.ship_models table FOLDER [--docs]      all models that were trained: how long, and what came out
python -m benchmarks.ship_models share checkpoints/bi-encoder --model NAME   leaves out of checkpoints/NAME what it has
python -m benchmarks.ship_models begin checkpoints/bi-encoder-mpnet --model csr-bi-mpnet   its encoder, nothing trained
python -m benchmarks.ship_models head FOLDER/case-mpnet   a model trained on a frozen encoder, as its head alone
"""

from __future__ import annotations

import argparse
import hashlib
import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import load_file, save_file

from benchmarks.board import HEADS, SUMMARY, format_board
from benchmarks.common import fill
from benchmarks.parts import choose, measure_scores
from benchmarks.train_models import CLIP, DECAY, PLANS, SEED, SOURCES, WARM_UP, Plan, Rows, build, take
from condviz.evaluation.scoreboard import PARTS, Board, ModelScores, format_figure, markdown_table
from condviz.methods import METHODS
from condviz.models import checkpoints
from condviz.models.manifest import ENCODER, SHA256, WEIGHTS, hash_file, read_manifest, rewrite_manifest

NAMES = {"csts": "csts_validation"}
"""Part of the benchmark -> what the training calls it, where the two differ."""


def ship(name: str, folder: Path) -> None:
    """Save a trained model as checkpoints/NAME, without what is said behind an @."""
    told, plan = json.loads((folder / f"out-{name}.json").read_text()), PLANS[name]
    model = build(plan, folder, plan.encoder)
    take(model, load_file(folder / f"out-{name}.safetensors"))
    target = Path("checkpoints") / name.partition("@")[0]
    training = {key: told[key] for key in ("steps", "seconds", "device", "curve")} | {
        "recipe": _recipe(target.name, plan),
        "seed": SEED,
        "best_step": None,
        "data": _data(Rows(folder)),
    }
    if plan.init in PLANS:
        first = json.loads((folder / f"out-{plan.init}.json").read_text())
        training["before"] = {key: first[key] for key in ("steps", "seconds", "device", "curve")} | {
            "recipe": _recipe(plan.init, PLANS[plan.init])
        }
    checkpoints.save(model.eval(), target, training=training, dtype=torch.float16)
    rewrite_manifest(target, identity="file")


def share(name: str, start: Path) -> None:
    """Leave out of checkpoints/NAME the weights of the encoder that another checkpoint has: its scores stay."""
    folder, before = Path("checkpoints") / name, load_file(start / WEIGHTS)
    tensors = load_file(folder / WEIGHTS)
    known = {key for key, value in before.items() if key.startswith(ENCODER)}
    if not all(key in tensors and torch.equal(tensors[key], before[key]) for key in known):
        raise SystemExit(f"{name} does not have the weights of {start.name}.")
    save_file({key: tensors[key] for key in tensors if key not in known}, folder / WEIGHTS, metadata={"format": "pt"})
    named = {"model": start.name, SHA256: hash_file(start / WEIGHTS)}
    rewrite_manifest(folder, start=named, **{SHA256: hash_file(folder / WEIGHTS)})


def begin(name: str, start: Path) -> None:
    """Save the method of checkpoints/NAME on the encoder of another checkpoint as it is: nothing is trained.

    A projection is left out, as its weights would be random.
    """
    plan, before = PLANS[name], read_manifest(start)
    config = {key: value for key, value in plan.config.items() if not key.startswith("projection")}
    model = checkpoints.load(start, device="cpu", precision="float32")
    method = METHODS[plan.method]
    made = method(model.backbone, method.config_cls(**config))
    folder = Path("checkpoints") / name
    recipe = before["training"]["recipe"] | {
        "name": name, "command": "python -m benchmarks.ship_models begin", "method": plan.method,
        "config": config, "init": start.name, "tuning": "frozen",
    }  # fmt: skip
    training = before["training"] | {"recipe": recipe, "steps": 0, "seconds": 0, "curve": []}
    training["before"] = {key: before["training"][key] for key in ("steps", "seconds", "device", "curve", "recipe")}
    checkpoints.save(made, folder, training=training)
    head = {f"head.{key}": value for key, value in made.head_state().items()}
    save_file(head, folder / WEIGHTS, metadata={"format": "pt"})
    (folder / WEIGHTS).chmod(0o644)  # made private to the user
    named = {"model": start.name, SHA256: hash_file(start / WEIGHTS)}
    changed = {"start": named, "adapter_scale": before["adapter_scale"], "identity": before.get("identity", "weights")}
    rewrite_manifest(folder, **changed, **{SHA256: hash_file(folder / WEIGHTS)})


def head(trained: Path) -> None:
    """Save a model whose recipe left its encoder as that of a shipped model was, as its head on that model."""
    told = read_manifest(trained)
    start = Path("checkpoints") / told["training"]["recipe"]["init"]
    folder, before = Path("checkpoints") / trained.name, read_manifest(start)
    shutil.copytree(trained, folder)
    tensors = {key: value for key, value in load_file(trained / WEIGHTS).items() if key.startswith("head.")}
    save_file(tensors, folder / WEIGHTS, metadata={"format": "pt"})
    named = {"model": start.name, SHA256: hash_file(start / WEIGHTS)}
    changed = {"start": named, "adapter_scale": before["adapter_scale"], "identity": before.get("identity", "weights")}
    rewrite_manifest(folder, **changed, **{SHA256: hash_file(folder / WEIGHTS)})


def _recipe(name: str, plan: Plan) -> dict[str, Any]:
    """Describe a plan in the words of recipes; the share of a source is that of the steps that take a block of it."""
    total = sum(weight for _, weight in SOURCES.values())
    sources = {"csts-reannotated": 1.0} | {source: round(weight / total, 3) for source, (_, weight) in SOURCES.items()}
    return {
        "name": name,
        "command": "python -m benchmarks.train_models",
        "method": plan.method,
        "config": dict(plan.config),
        "backbone": plan.encoder,
        "init": plan.init,
        "tuning": "lora",
        "frozen_layers": 0,
        "lora": {"rank": plan.rank, "alpha": plan.rank * plan.scale, "init": ""},
        "lr": plan.rate,
        "head_lr": plan.head_rate,
        "contrast": plan.contrast,
        "temperature": plan.temperature,
        "weight_decay": DECAY,
        "warmup": WARM_UP,
        "clip": CLIP,
        "seed": SEED,
        "keep": "last",
        "train": [{"name": source, "weight": weight} for source, weight in sources.items()],
    }


def _data(rows: Rows) -> list[dict[str, Any]]:
    parts = {"csts-reannotated": ("train90", rows.csts["train90"])} | {
        source: ("train", [row for block in blocks for row in block]) for source, blocks in rows.blocks.items()
    }
    return [
        {"source": source, "split": split, "path": "", "rows": len(found),
         "sha256": hashlib.sha256(json.dumps(found).encode()).hexdigest()}
        for source, (split, found) in parts.items()
    ]  # fmt: skip


def table(folder: Path) -> tuple[str, str]:
    """Format what a training has written of its models, from stored scores: the short table, and all figures."""
    told = {path.stem.removeprefix("out-"): json.loads(path.read_text()) for path in sorted(folder.glob("out-*.json"))}
    told = {name: one for name, one in told.items() if "scores" in one}
    measured = set().union(*(one["scores"] for one in told.values()))
    chosen = {part: choose(part) for part in PARTS if NAMES.get(part, part) in measured}
    models = {}
    for name, one in told.items():
        found = {
            part: measure_scores(item, np.array(one["scores"][NAMES.get(part, part)])) for part, item in chosen.items()
        }
        models[name] = ModelScores(weights="", precision="float32", trained=True, versions={}, parts=found)
    columns = [(part, metric) for part, metric in SUMMARY if part in chosen]
    head = ("model", "encoder", "device", "steps", "seconds")
    rows = [
        (f"`{name}`", one["plan"]["encoder"].rpartition("/")[2], one["device"], str(one["steps"]), str(one["seconds"]),
         *(format_figure(getattr(models[name].parts[part], metric)) for part, metric in columns))
        for name, one in told.items()
    ]  # fmt: skip
    short = markdown_table((*head, *(f"{PARTS[part].title}: {HEADS[metric]}" for part, metric in columns)), rows)
    board = Board({part: item.sample for part, item in chosen.items()}, models)
    return short, format_board(board, list(models), list(chosen))


def main() -> None:
    """Run one of the commands."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("ship", "share", "begin", "head", "table"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--model", action="append")
    parser.add_argument("--docs", action="store_true", help="put the short table into docs/results.md")
    chosen = parser.parse_args()
    if chosen.what == "head":
        head(chosen.folder)
        return
    if chosen.what != "table":
        for name in chosen.model or PLANS:
            {"ship": ship, "share": share, "begin": begin}[chosen.what](name, chosen.folder)
        return
    short, figures = table(chosen.folder)
    print(f"{short}\n\n{figures}")
    if chosen.docs:
        fill("trainings", short)


if __name__ == "__main__":
    main()
