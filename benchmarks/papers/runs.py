"""Carry out the rows of the papers' tables: train or load, measure, and keep what came out."""

from __future__ import annotations

import itertools
import tempfile
import time
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import parts
from benchmarks.papers.costs import Demand, count_costs, count_csr, graph_demand, row_demand, time_costs, time_csr
from benchmarks.papers.page import add_result, fingerprint
from benchmarks.papers.tables import Figures, Run, Table, read_results
from benchmarks.ranks import evaluate_links
from condviz.analysis.attention import read_pictures
from condviz.analysis.geometry import cosines_to_mean, frobenius_variance, isotropy
from condviz.analysis.maps import build_map
from condviz.analysis.points import PER_GROUP, scene_points
from condviz.data import corpora
from condviz.data.corpus import keep_pairs
from condviz.data.kg_formats import load_graph
from condviz.data.scenes import UNSEEN_ASPECTS, group_of, load_families
from condviz.encoder.cache import EmbeddingCache
from condviz.errors import ConfigError, DataError
from condviz.evaluation.csts import evaluate
from condviz.evaluation.metrics import Metric
from condviz.evaluation.scoreboard import FIGURES, LINK_FIGURES, PARTS
from condviz.methods.base import ConditionalScorer
from condviz.models.manifest import read_manifest
from condviz.models.registry import load
from condviz.paths import ASSETS
from condviz.training.model import FROZEN_CACHE_BYTES
from condviz.training.recipes import load_recipe
from condviz.training.trainer import carry_out
from condviz.types import columns

MB, RESAMPLES = 2**20, 200
LOOKS = "A man surfs on a big wave.", "surfs", ("the sport", "the number of people")
"""A sentence, the word whose weight is read, and the conditions."""
DRAWS, SAMPLE = 5, 400
"""Draws of three conditions for impurity; rows for isotropy."""


def run_table(
    table: Table, *, setting: str, seeds: int, row: str = "", device: str = "auto", report: Callable[[str], None]
) -> None:
    """Carry out the rows of a table that have not been measured yet.

    Args:
        table: The table.
        setting: "here", or "paper" for the paper's own data and encoder.
        seeds: How many seeds of each training.
        row: Only rows with this text in their name.
        device: As in `condviz.train`.
        report: Told what came out of each run.

    Raises:
        ConfigError: If the table has no row to run in this setting.
        CondvizError: If data or encoder are missing.
    """
    runs = [(one, run) for one, run in table.runs(setting) if row in one.name]
    if not runs:
        raise ConfigError(f"{table.title} has no row to run here. {table.absent}")
    for one, run in runs:
        for seed in run.seeds(seeds):
            stored = read_results().get(run.key, {}).get(str(seed), {"figures": {}})
            known = stored["figures"] if stored.get("of", fingerprint(run)) == fingerprint(run) else {}
            if not set(table.measurements(setting)) <= set(known):
                started, wanted = time.perf_counter(), table.wanted(run, setting)
                found = carry_out_run(run, seed, [name for name in wanted if name not in known], device)
                add_result(run, seed, (time.perf_counter() - started) / 60, found)
                report(f"{one.name}, seed {seed}: {found}")


def carry_out_run(run: Run, seed: int, names: list[str], device: str) -> Figures:
    """Train, load or count what stands for a row, and measure it; a training tells "validation" and "curve"."""
    if run.count:
        return {"cost": _count(run)}
    if run.model:
        options = {"backbone": run.backbone, **run.settings} if run.backbone else {}
        model = load(run.model, device=device, precision="float32", **options)
        return {name: measure(model, name) for name in names}
    recipe = load_recipe(ASSETS / "recipes" / f"{run.recipe}.toml", [*run.changes, f"seed={seed}"])
    with tempfile.TemporaryDirectory() as folder:
        records: list[Mapping[str, Any]] = []
        options = {"device": device, "vectors": _vectors(recipe.backbone), "report": records.append}
        made = carry_out(recipe, Path(folder) / recipe.name, **options)
        told = {
            "validation": dict(next(iter(read_manifest(made)["metrics"].values()), {})),
            "curve": {f"{one['epoch']:g}": one["spearman"] for one in records if one["event"] == "evaluation"},
        }
        model = load(str(made), device=device, precision="float32")
        return {name: told[name] if name in told else measure(model, name) for name in names}


def measure(model: ConditionalScorer, name: str) -> dict[str, float | None]:
    """Measure a model: a part of the benchmark, a part of a corpus ("csts:dev"), a graph, or one of `MEASURES`."""
    if name in MEASURES:
        return MEASURES[name](model)
    if name in PARTS:
        found = parts.measure(model, parts.choose(name), resamples=RESAMPLES)
        figures = {key: getattr(found, key) for key in FIGURES}
        errors = {f"{key}_error": _error(one) for key, one in figures.items()}
        return {key: one.value for key, one in figures.items()} | errors
    if ":" in name:
        return _agreement(model, name)
    # The test part of a graph with SimKGC's bonus, as the papers' scripts do: MRR and hits in %.
    mean = evaluate_links(model, load_graph(name)).to_dict()["reranked"]["mean"]
    return {key: 100 * mean[key] for key in LINK_FIGURES}


def _error(figure: Metric) -> float | None:
    """Return the standard error over test rows that an interval stands for."""
    return None if figure.low is None or figure.high is None else (figure.high - figure.low) / (2 * 1.96)


@cache
def _vectors(_backbone: str) -> EmbeddingCache:
    """Return the store of a frozen encoder's vectors, which all runs of one process share."""
    return EmbeddingCache(FROZEN_CACHE_BYTES)


def _agreement(model: ConditionalScorer, data: str) -> dict[str, float | None]:
    """Measure part of a corpus, and its seen and unseen conditions apart; seen are those of the rows trained on."""
    corpus = data.partition(":")[0]
    train = "train90" if "train90" in corpora.CORPORA[corpus].parts else "train"
    seen = {row.condition for row in corpora.build(corpus, train)}
    report = evaluate(model, data, training_conditions=seen, resamples=0).reports[0]
    found = {f"{part}_spearman": figures.spearman.value for part, figures in report.parts()}
    overall = report.overall
    return found | {"pearson": overall.pearson.value, "pair_accuracy": overall.ties_wrong.value}


def _count(run: Run) -> dict[str, float | None]:
    """Count requests, hits and memory of an architecture on a graph, or on all parts of a corpus or table."""
    if run.unique:
        rows, joint, texts, conditions = run.unique
        demand = Demand(rows, 2 * rows, joint, 0, texts, conditions)
    elif ":" in run.data:
        demand = row_demand(corpora.build(*run.data.split(":")))
    else:
        demand = graph_demand(load_graph(run.data))
    found = count_costs(demand, run.size, rank=run.rank)[run.count]
    return {"hits": 100 * found.hit_rate, "cache_MB": found.bytes / MB}


def _impurity(model: ConditionalScorer) -> dict[str, float | None]:
    """Measure the impurity of three conditions with 20 sentences each, before and after; mean of some draws."""
    draws = enumerate(_held_out_triples(DRAWS))
    maps = [build_map(model, scene_points(names, seed=seed), method="pca") for seed, names in draws]
    sides = {side: [getattr(one, side).measures.impurity["mean"] for one in maps] for side in ("before", "after")}
    return {side: float(np.mean(found)) for side, found in sides.items()}


def _held_out_triples(draws: int) -> list[tuple[str, str, str]]:
    """Draw triples of aspects that no training has seen and that enough test families tell."""
    families = [family for family in load_families() if group_of(family) == "test"]
    enough = [
        name
        for name in sorted(UNSEEN_ASPECTS)
        if sum(name in family.scenes[0].aspects for family in families) >= 1.3 * PER_GROUP
    ]
    if len(enough) < 3:
        raise DataError(f"Only {len(enough)} held-out aspects are told by enough test families.")
    generator = np.random.default_rng(0)
    return [tuple(generator.choice(enough, 3, replace=False).tolist()) for _ in range(draws)]


def _conditioned(model: ConditionalScorer) -> np.ndarray:
    """Encode sentences of the scenes, each with its condition."""
    rows = keep_pairs(corpora.build("scenes", "test"), SAMPLE // 2)
    return np.asarray(model.encode([row.sentence1 for row in rows], [row.condition for row in rows]))


def _isotropy(model: ConditionalScorer) -> dict[str, float | None]:
    """Measure how evenly vectors of conditional sentences point: mean and deviation of cosines to the mean, and IPC."""
    found = isotropy(_conditioned(model))
    return {"mean": found.mean_cosine, "std": found.std_cosine, "IPC": found.ipc}


def _cosines(model: ConditionalScorer) -> dict[str, float | None]:
    """Count the cosines to the mean, times 100, in steps of 10: shares in %."""
    cosines = 100 * cosines_to_mean(_conditioned(model))
    counts, edges = np.histogram(cosines, bins=20, range=(-100, 100))
    steps = (f"{low:.0f} to {high:.0f}" for low, high in itertools.pairwise(edges))
    return dict(zip(steps, (100 * counts / len(cosines)).tolist(), strict=True))


def _study(model: ConditionalScorer) -> dict[str, float | None]:
    """Score three pairs under the condition in which they are alike, and that in which they differ."""
    rows = keep_pairs(corpora.build("scenes", "test"), 3)
    scores = model.score(*columns(rows))
    twos = zip(rows[::2], rows[1::2], strict=True)
    alike = [found for one, two in twos for found in (one.label > two.label, two.label > one.label)]
    names = (f"{place // 2 + 1} {'alike' if found else 'different'}" for place, found in enumerate(alike))
    return dict(zip(names, map(float, scores), strict=True))


def _norms(model: ConditionalScorer) -> dict[str, float | None]:
    """Measure the variance of the Frobenius norms of what conditions become: W_c, or the vectors of a Hadamard head."""
    conditions = sorted({row.condition for row in corpora.build("scenes", "dev")})[:100]
    if model.condition_matrices:
        made = np.stack([np.asarray(model.condition_matrix(condition)) for condition in conditions])
    else:
        made = np.asarray(model.encode_conditions(conditions))
    return {"variance": frobenius_variance(made)}


def _cost(model: ConditionalScorer) -> dict[str, float | None]:
    """Count the cache of CSR, a bi- or a tri-encoder on rated scenes, and estimate processor seconds."""
    demand, backbone = row_demand(corpora.build("scenes", "test")), model.backbone
    if model.about.meets == "router":
        routed = model.method_config.num_routed_layers
        cost, (online, offline) = count_csr(demand, backbone, routed), time_csr(demand, backbone, routed)
    else:
        kind, head = {"bi": ("bi-encoder", "bi-encoder"), "tri": ("tri-encoder", "hadamard")}[model.about.kind]
        cost, (online, offline) = count_costs(demand, backbone.hidden_size)[kind], time_costs(demand, backbone)[head]
    return {"cache_MB": cost.bytes / MB, "hits": 100 * cost.hit_rate, "online_s": online, "offline_s": offline}


def _looks(model: ConditionalScorer) -> dict[str, float | None]:
    """Read the rows of CSR's Figures 5 to 7: the share in % that lies on the verb of a sentence."""
    sentence, word, conditions = LOOKS
    found = read_pictures(model, sentence, conditions)
    rows = {"Figure 5": found.without_router[0]}
    for figure, part in (("Figure 6", found.router), ("Figure 7", found.with_router)):
        rows |= {f"{figure}, {row.condition}": row for row in part}
    return {
        name: float(100 * sum(row.weights[place] for place, one in enumerate(row.words) if one.text == word))
        for name, row in rows.items()
    }


MEASURES: dict[str, Callable[[ConditionalScorer], dict[str, float | None]]] = {
    "impurity": _impurity,
    "isotropy": _isotropy,
    "cosines": _cosines,
    "study": _study,
    "looks": _looks,
    "norms": _norms,
    "cost": _cost,
    "size": lambda model: {"added_M": model.info.added_parameters / 1e6},
}
