"""Which shipped model to use for what, read from the stored benchmark; loads no model."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache

import numpy as np

from condviz.encoder import DEFAULT_BACKBONE
from condviz.errors import DataError
from condviz.evaluation.metrics import Metric
from condviz.evaluation.scoreboard import read_board
from condviz.evaluation.verdicts import judge_gap
from condviz.paths import ASSETS
from condviz.types import ModelInfo

OVERALL = (
    "test", "unseen_phrasings", "unseen_aspects", "own_aspects", "unseen_domains", "tables", "tables_unseen_domains",
)  # fmt: skip
"""Parts of the benchmark whose mean decides which model is best."""


@cache
def pair_accuracies() -> dict[str, dict[str, float | None]]:
    """Read the pair accuracy (%) of each model on each part; empty where no benchmark is stored."""
    return {name: {part: one.value for part, one in parts.items()} for name, parts in _measured().items()}


@cache
def _measured() -> dict[str, dict[str, Metric]]:
    try:
        models = read_board(ASSETS / "benchmark.json").models
    except DataError:
        return {}
    return {name: {part: one.pair_accuracy for part, one in found.parts.items()} for name, found in models.items()}


def mean_accuracy(parts: Mapping[str, float | None]) -> float:
    """Return the mean pair accuracy (%) over `OVERALL`; NaN where a part is missing."""
    return float(np.mean(np.array([parts.get(part) for part in OVERALL], dtype=float)))


def mean_of(figures: Sequence[Metric]) -> Metric:
    """Return the mean of figures on different rows, with the interval that theirs imply."""
    value = float(np.mean(np.array([one.value for one in figures], dtype=float)))
    reaches = [(one.high - one.low) / 2 for one in figures if one.low is not None and one.high is not None]
    if len(reaches) < len(figures):
        return Metric(value)
    reach = float(np.linalg.norm(reaches)) / len(figures)
    return Metric(value, value - reach, value + reach)


def leading(figures: Mapping[str, Metric]) -> list[str]:
    """Return the name with the highest figure, and behind it those of which it is not sure that they are lower."""
    values = {name: one.value for name, one in figures.items() if one.value is not None}
    ranked = sorted(values, key=lambda name: -values[name])
    best = ranked[:1]
    tries = len(ranked) - 1
    return best + [one for one in ranked[1:] if not judge_gap(figures[best[0]], figures[one], tries=tries).sure]


def best_encoder(infos: Iterable[ModelInfo]) -> str:
    """Return the name of the trained encoder with the highest mean accuracy; "" where none is measured.

    A cross-encoder does not count: it has no vectors, so the map and the search could not follow.
    """
    return _best(
        info for info in infos if info.trained and info.kind != "cross" and not info.graph and not info.missing
    )


def fast_encoder(infos: Iterable[ModelInfo]) -> str:
    """Return the best model on the small encoder, with which two cores answer in time; "" where none is measured."""
    return best_encoder(info for info in infos if info.encoder == DEFAULT_BACKBONE)


def strengths(infos: Iterable[ModelInfo]) -> dict[str, str]:
    """Return what each model is good for, in a few words; models without a distinction are left out.

    The best is called so only where no other may be as good.
    """
    infos = [info for info in infos if info.trained]
    found = _measured()
    texts: dict[str, list[str]] = {}

    def crown(scored: Mapping[str, Metric | None], text: str) -> None:
        names = leading({name: one for name, one in scored.items() if one is not None})
        for name in names[:1]:
            texts.setdefault(name, []).append(text if len(names) == 1 else f"among the {text}")

    if best := best_encoder(infos):
        encoders = [info.name for info in infos if info.kind != "cross" and not info.graph]
        parts = {name: [found.get(name, {}).get(part) for part in OVERALL] for name in encoders}
        known = {name: [one for one in figures if one is not None] for name, figures in parts.items()}
        means = {name: mean_of(figures) for name, figures in known.items() if len(figures) == len(OVERALL)}
        crown(means or {best: Metric(0.0)}, f"best encoder{'s' if len(leading(means)) > 1 else ''} overall")
    for part, text in (
        ("csts", "best by people’s ratings"), ("tables", "best on free conditions"), ("cebab", "best on reviews"),
    ):  # fmt: skip
        crown({info.name: found.get(info.name, {}).get(part) for info in infos}, text)
    if fastest := _best(info for info in infos if info.kind == "tri"):
        texts.setdefault(fastest, []).append("one pass for any number of conditions")
    return {name: ", ".join(found_for) for name, found_for in texts.items()}


def _best(infos: Iterable[ModelInfo]) -> str:
    """Return the name with the highest mean accuracy; "" where none is measured on all parts."""
    found = pair_accuracies()
    means = {info.name: mean_accuracy(found.get(info.name, {})) for info in infos}
    return max((name for name, mean in means.items() if mean == mean), key=means.__getitem__, default="")
