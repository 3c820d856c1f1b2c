"""Evaluations and error studies as HTML: whole, escaped, and the same in a notebook."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
from markupsafe import Markup

from condviz.analysis.errors.findings import analyse
from condviz.analysis.errors.measures import GroupErrors, summarise, worst_conditions
from condviz.analysis.errors.study import Judged, Study, judge, make_study
from condviz.evaluation.csts import evaluate
from condviz.evaluation.dataset import Dataset, make_dataset
from condviz.plots.errors import group_row, headline, plot
from condviz.types import Pair
from tests.analysis.errors.toy import toy_dataset, toy_study
from tests.stand_ins import LengthModel


def test_a_notebook_shows_an_evaluation_with_intervals() -> None:
    shown = evaluate([LengthModel(), LengthModel("<b>")], toy_dataset(), resamples=50)._repr_html_()
    assert "<b>" not in shown
    assert shown.count("cv-interval") > 8
    assert "not trained" in shown


def test_a_notebook_shows_a_study_of_two_models() -> None:
    shown = analyse(toy_study(), filter='"umbrella" in shared', resamples=50)._repr_html_()
    assert "difference" in shown
    assert "follows the condition" in shown


def said(study: Study, **options: object) -> str:
    return Markup(headline(analyse(study, resamples=0, **options))).striptags()


def rows(items: int, conditions: int = 2, *, seed: int = 0) -> Dataset:
    """Sentence pairs under so many conditions, with ratings that differ within each."""
    rng = np.random.default_rng(seed)
    ratings = [rng.permutation(5)[:conditions] + 1.0 for _ in range(items)]
    return make_dataset(
        "t", [Pair(f"a{i}", "b", f"c{j}", float(one)) for i, row in enumerate(ratings) for j, one in enumerate(row)]
    )


def test_the_headline_says_only_what_the_figures_support() -> None:
    assert re.search(
        r"puts \d+ of 120 sentence pairs in the order of the ratings \(\d+\s%", said(toy_study(second=False))
    )
    bare = make_dataset("t", [Pair(f"a{i}", "b", "x") for i in range(3)])
    assert "nothing can be said" in said(make_study(bare, judge(bare, "m", np.arange(3.0))))
    for items, conditions, unit in ((1, 2, "1 of 1 sentence pairs"), (1, 3, "3 of 3 comparisons"), (3, 2, "3 of 3")):
        few = rows(items, conditions)
        text = said(make_study(few, judge(few, "m", few.gold)))
        assert unit in text
        assert "too few to tell" in text
        assert "%" not in text
    single = make_dataset("t", [Pair(f"a{i}", "b", "x", 1.0 + i % 5) for i in range(60)])
    assert "follow the ratings closely (correlation 1.00" in said(make_study(single, judge(single, "m", single.gold)))
    noise = judge(single, "m", np.random.default_rng(0).random(60))
    assert "do not follow the ratings" in said(make_study(single, noise))


def test_people_read_the_titles_of_models_in_words_tables_and_pictures() -> None:
    data = rows(60)
    rng = np.random.default_rng(0)
    one, two = (judge(data, name, rng.random(120), title) for name, title in (("m-1", "First"), ("m-2", "Second")))
    study = make_study(data, one, two)
    found = analyse(study, resamples=0)
    figures = [plot(study, view, found.mask).to_json() for view in ("residuals", "against", "calibration")]
    for shown in (headline(found), found._repr_html_(), *figures):
        assert "First" in shown
        assert "m-1" not in shown
    assert found.models == ("m-1", "m-2")


def test_scores_are_drawn_where_there_is_no_error() -> None:
    scores, other = np.array([0.5, 0.1, 0.9]), np.array([3.0, 1.0, 2.0])
    bare, few = (make_dataset("t", [Pair(f"a{i}", "b", "x", label) for i in range(3)]) for label in (None, 4.0))

    def drawn(*judged: Judged, data: Dataset = bare) -> tuple[list[float], list[float], str]:
        figure = plot(make_study(data, *judged), "scores", np.ones(3, bool))
        return figure.data[0].x.tolist(), figure.data[0].y.round().tolist(), figure.layout.yaxis.title.text

    first = judge(bare, "m", scores)
    places = np.float32(scores).tolist()
    assert drawn(first) == (places, [33, 0, 67], "% of all rows that score lower")
    assert drawn(judge(few, "m", scores), data=few) == (places, [4, 4, 4], "rating")
    assert drawn(first, judge(bare, "n", other)) == (places, [3, 1, 2], "score of n")


def test_two_rated_rows_in_order_are_not_called_wrong() -> None:
    data = make_dataset("t", [Pair("a", "b", "c", 1.0), Pair("d", "e", "c", 5.0)])
    study = make_study(data, judge(data, "m", np.array([0.3, 0.9])))
    assert "Only 2 rated rows: too few to say" in said(study)
    assert "than a step" not in said(study)
    assert analyse(study, resamples=0).every.figures[0].error.value is None


def test_the_headline_accounts_for_all_that_the_pair_accuracy_counts() -> None:
    ratings = [(1.0, 4.0)] * 9 + [(2.0, 2.0)] * 9
    pairs = [Pair(f"a{i}", "b", f"c{j}", one) for i, row in enumerate(ratings) for j, one in enumerate(row)]
    data = make_dataset("t", pairs)
    study = make_study(data, judge(data, "m", data.gold + np.arange(36) / 100))
    figures = analyse(study, resamples=0).every.figures[0]
    assert (figures.ties_wrong.value, figures.ties_excluded.value) == (50, 100)
    text = said(study)
    assert "puts 9 of 9" in text
    assert "9 more pairs are rated alike" in text
    assert "rated alike" not in said(toy_study(second=False))


def test_the_headline_of_two_models_is_about_both() -> None:
    data = rows(60, 3)
    rng = np.random.default_rng(1)
    good, bad = judge(data, "good", data.gold + rng.normal(size=180)), judge(data, "bad", rng.random(180))
    assert re.search(
        r"^good orders \d+ more of 180 comparisons of two conditions right than bad \(\d+ to \d+ in 100\)",
        said(make_study(data, good, bad)),
    )
    assert re.search(r"^good orders \d+ more of 180", said(make_study(data, bad, good)))
    assert said(make_study(data, bad, judge(data, "other", 2 * bad.scores))).startswith(
        "No clear difference in order: bad"
    )


def test_rows_that_trained_a_model_are_told_and_can_be_left_out() -> None:
    data = replace(rows(60), trained=np.arange(120) < 48)
    study = make_study(data, judge(data, "m", data.gold))
    assert "48 of these 120 rows trained m" in said(study)
    assert "trained" not in said(study, exclude_seen=True)
    assert analyse(study, resamples=0, exclude_seen=True).every.n == 72
    assert said(study, filter="not trained").startswith("m puts 36 of 36")
    assert 'data-filter="not trained"' in headline(analyse(study, resamples=0), active=True)


def test_random_scores_make_no_claims() -> None:
    """Of one model that guesses, and of two: at most one headline in twenty claims an order, or what is asked."""
    rng, claims = np.random.default_rng(0), np.zeros(4)
    draws = 200
    for _ in range(draws):
        data = rows(24, int(rng.integers(2, 4)), seed=int(rng.integers(1_000_000)))
        size = len(data.pairs)
        groups = {f"c{j}": f"c{j}" for j in range(3)}
        one, two = (judge(data, name, rng.random(size)) for name in "mn")
        single, both = make_study(data, one, asks=groups), make_study(data, one, two, asks=groups)
        whole = np.ones(size, dtype=bool)
        found = [summarise(study, whole, worst_conditions(study), "condition") for study in (single, both)]
        claims += [found[0].order.sure, bool(found[0].best or found[0].worst), found[1].order.sure,
                   bool(found[1].wins or found[1].loses)]  # fmt: skip
    assert (claims / draws <= 0.05).all(), claims


def test_an_interval_that_reaches_below_0_is_too_few_rows() -> None:
    group = GroupErrors("the mood", 2, (0.9, 0.9), (5.89, 0.4), (0.9, 0.9), (np.nan, 0.0))
    assert [small for _, small in group_row("condition", group)["cells"][::3]] == ["too few", "\N{PLUS-MINUS SIGN}0.40"]
