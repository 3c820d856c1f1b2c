"""The sentence that leads the Train tab claims only what the held-back rows can tell."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from condviz.ui.train import view


def run_of(pairs: int, *accuracies: float, ranks: Iterable[float] = ()) -> view.RunView:
    """Return a run with its pair accuracies, and its correlations where they do not follow from these."""
    figures = zip(accuracies, ranks or [one - 50 for one in accuracies], strict=True)
    records = [
        {"event": "evaluation" if step else "start", "step": step, "pair_accuracy": accuracy, "spearman": rank}
        for step, (accuracy, rank) in enumerate(figures)
    ]
    records = tuple(one | {"rows": 2 * pairs, "pairs": pairs} for one in records)
    return view.RunView("1", "mine", "hyper-cl", "done", records=records)


def test_training_is_said_to_have_helped_only_where_the_rows_can_tell() -> None:
    assert "65\N{NO-BREAK SPACE}% of 2,863 held-back pairs" in view.headline(run_of(2863, 50, 65))
    for run in (run_of(6, 50, 65), run_of(20, 50, 60), run_of(20, 50, *[75] * 40)):
        said = view.headline(run)
        assert "%" not in said, "of fewer than thirty there is no percentage"
        assert "cannot tell" in said or "no clear difference" in said
    assert "no clear difference" not in view.headline(run_of(60, 50, 90))
    assert "not helped" in view.headline(run_of(60, 65, 60))


def test_of_trainings_that_learn_nothing_one_in_twenty_is_said_to_help() -> None:
    rng, claims = np.random.default_rng(0), 0
    for _ in range(1_000):
        shares = 100 * (rng.random((6, 40)) < 0.5).mean(axis=1)
        said = view.headline(run_of(40, *shares, ranks=[*(100 * rng.normal(scale=1 / 39**0.5, size=6))]))
        claims += (
            not any(unsure in said for unsure in ("not helped", "cannot tell")) and "no clear difference" not in said
        )
    assert claims <= 50


def test_the_kept_evaluation_ranks_best_whatever_the_sign() -> None:
    ranked = [{"event": "evaluation", "step": step, "spearman": value} for step, value in enumerate((-0.5, 0.0, -2.0))]
    run = view.RunView("1", "mine", "hyper-cl", "done", records=tuple(ranked))
    assert run.kept["step"] == 1
    tied = tuple({"event": "evaluation", "step": step, "spearman": 75.3, "pearson": value}
                 for step, value in ((3, 82.8), (12, 90.6), (24, 91.4), (30, 89.0)))  # fmt: skip
    assert replace(run, records=tied).kept["step"] == 24, "the last of those that are as near to the ratings"
    assert replace(run, recipe={"keep": "last"}).kept["step"] == 2
    assert replace(run, records=()).kept == {}


def test_training_that_keeps_every_pair_right_and_agrees_better_has_helped() -> None:
    def headline(spearman: float) -> str:
        start = {"event": "start", "step": 0, "spearman": 36.0, "pair_accuracy": 100.0}
        end = {"event": "evaluation", "step": 4, "spearman": spearman, "pair_accuracy": 100.0}
        return view.headline(view.RunView("1", "mine", "hyper-cl", "done", records=(start, end)))

    assert "not helped" not in headline(43.0)
    assert "not helped" in headline(30.0)
    assert "learning rate" not in headline(36.0), "where all pairs are in order, no setting puts more of them right"
