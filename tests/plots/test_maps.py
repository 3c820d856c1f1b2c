"""Pictures of maps: marks, legends, and texts of users that stay texts."""

from __future__ import annotations

import html
from dataclasses import replace

import numpy as np
import pytest

from condviz.analysis.geometry import judge_values, knn_change, nearest, value_agreement
from condviz.analysis.layout import Layout, Topic
from condviz.analysis.maps import EmbeddingMap, Side
from condviz.analysis.points import MapPoints
from condviz.plots.maps import PICTURES, SYMBOLS, colouring, headline, legend, plot_side, shapes, to_html


def make_map(conditions: list[str], values: list[str], texts: list[str] | None = None, **rest: object) -> EmbeddingMap:
    """Make a map of random vectors; points of one value lie together after conditioning."""
    generator = np.random.default_rng(0)
    number = len(conditions)
    before = generator.standard_normal((number, 6))
    centres = {value: 9 * generator.standard_normal(6) for value in sorted(set(values))}
    after = before + np.stack([centres[value] for value in values])
    points = MapPoints(
        tuple(texts or [f"Sentence {i}." for i in range(number)]), tuple(conditions), {"value": tuple(values)}, "value"
    )
    first, of = points.copies
    groups = points.take(first).conditions if points.within else None
    sides = [
        Side(v[:, :2].astype(np.float32), nearest(v[first], 10, groups=groups).with_copies(first, of),
             value_agreement(v, conditions, values), (Topic(("<b>two", "dogs"), 0.0, 0.0, 5),))
        for v in (before, after)
    ]  # fmt: skip
    model = {"name": "toy", "title": "Toy", "revision": "0", "trained": True, "method": "toy"}
    change = knn_change(sides[0].neighbors, sides[1].neighbors, points.compared)
    return EmbeddingMap(model, points, Layout("pca", 15, 0.1, 0), *sides, change, colour="value", **rest)


HOSTILE = "<img src=x onerror=alert(1)>"
HOSTILE_LABEL = "&lt;img src=x onerror=alert(1)&gt;"
FEW = make_map(["a"] * 10 + ["b"] * 10, [*"xy" * 10])
MANY = make_map(["a"] * 12 + ["b"] * 12, [f"{of}{i % 6}" for of in "ab" for i in range(12)])


def members(figure: object) -> list[str]:
    return sorted((i for trace in figure.data for i in trace.ids), key=int)


@pytest.mark.parametrize("name", ["", "condition", "value", "change", "nonsense"])
def test_every_point_is_drawn_once(name: str) -> None:
    for made in (FEW, MANY):
        figure = plot_side(made, "after", colouring(made, name))
        assert members(figure) == [str(i) for i in range(len(made.points.texts))]


def test_the_headline_is_about_values() -> None:
    assert "more often" in headline(FEW)
    assert f"{100 * FEW.after.agreement:.0f}\N{NO-BREAK SPACE}% after" in headline(FEW)


def test_the_headline_of_random_values_claims_nothing() -> None:
    """Of a thousand maps with shuffled values at most fifty tell of more or less; a few points say so."""
    rng = np.random.default_rng(0)
    conditions = ["a"] * 20 + ["b"] * 20
    sides = [nearest(rng.standard_normal((40, 6)), 5, groups=conditions) for _ in range(2)]
    texts = tuple(f"Sentence {i}." for i in range(40))
    drawn = (MapPoints(texts, tuple(conditions), {"v": tuple(rng.choice([*"xyz"], 40))}, "v") for _ in range(1_000))
    claims = [judge_values(*sides, points) for points in drawn]
    assert np.mean([[one.sure for one in both] for both in claims], axis=0).max() <= 0.05
    small = make_map(["a"] * 6, [*"xyxyxy"])
    assert "and 10 are needed" in headline(small)
    assert "%" not in headline(small)


def test_the_headline_counts_neighbours_under_the_same_condition() -> None:
    """As its figures do; near a sentence under one condition most others are under another."""
    rng = np.random.default_rng(0)
    vectors, conditions = rng.standard_normal((40, 6)), ("a", "b") * 20
    points = MapPoints(
        tuple(f"Sentence {i}." for i in range(40)), conditions, {"v": tuple(rng.choice([*"xyz"], 40))}, "v"
    )
    among_all, within = (nearest(vectors, 39, groups=groups) for groups in (None, conditions))
    assert judge_values(among_all, among_all, points) == judge_values(within, within, points)


def test_the_headline_counts_different_sentences() -> None:
    """A sentence that stands several times, or under several conditions, is one."""
    texts = [f"Sentence {i % 12}." for i in range(48)]
    assert "12 sentences)" in headline(make_map(["a"] * 24 + ["b"] * 24, [*"xy" * 24], texts))
    few = make_map(["a"] * 20, [*"xy" * 10], texts[:8] * 2 + texts[:4])
    assert headline(few).startswith("8 sentences have a known value, and 10 are needed")


def test_without_values_the_headline_is_about_the_nearest_sentence() -> None:
    before, after = (replace(side, values=()) for side in (FEW.before, FEW.after))
    assert "0 of 20 sentences" in headline(replace(FEW, before=before, after=replace(before, layout=after.layout)))
    turned = replace(before.neighbors, indices=before.neighbors.indices[:, ::-1])
    other = replace(FEW, before=before, after=replace(before, neighbors=turned))
    assert "20 of 20 sentences" in headline(other)


def test_of_sentences_under_several_conditions_the_headline_names_most_and_least() -> None:
    made = make_map(["a"] * 12 + ["b"] * 12, [*"xy" * 12], [f"Sentence {i}." for i in range(12)] * 2)
    before = replace(made.before, values=())
    turned = np.concatenate([before.neighbors.indices[:12], before.neighbors.indices[12:, ::-1]])
    after = replace(before, neighbors=replace(before.neighbors, indices=turned))
    told = headline(replace(made, before=before, after=after))
    assert told == "Under “b”, 12 of 12 sentences get a new nearest neighbour; under “a”, 0 of 12."
    silent = replace(made, before=before, after=after, untold=("b",))
    assert headline(silent) == "Under “a”, 0 of 12 sentences get a new nearest neighbour."
    assert headline(replace(silent, untold=("a", "b"))).startswith(
        "Most sentences seem to say nothing about “a” or “b”"
    )
    crossed = headline(replace(made, points=replace(made.points, crossed=True)))
    assert "the same “value”" in crossed
    assert "12 sentences, under 2 conditions each)" in crossed


def test_shapes_are_explained_where_the_legend_does_not_use_them() -> None:
    assert shapes(FEW, colouring(FEW, "condition")) == []
    told = shapes(FEW, colouring(FEW, "change"))
    assert [condition for _, condition in told] == list(FEW.points.groups)


def test_more_values_than_colours_are_told_apart_by_shape() -> None:
    colours = colouring(MANY)
    assert not colours.searched
    assert len(colours.categories) == 12
    assert len({(category.colour, category.mark) for category in colours.categories}) == 12
    assert [group for group, _ in legend(colours)] == ["a", "b"]
    drawn = {symbol for trace in plot_side(MANY, "after", colours).data for symbol in trace.marker.symbol}
    assert {SYMBOLS[symbol] for symbol in drawn} == {category.mark for category in colours.categories}


def test_far_more_values_than_colours_are_searched() -> None:
    made = make_map(["a"] * 40, [f"v{i % 20}" for i in range(40)])
    colours = colouring(made)
    assert colours.searched
    assert len(colours.categories) == 20
    assert len({category.colour for category in colours.categories}) == 1


def test_points_at_one_place_are_set_apart() -> None:
    made = make_map(["a"] * 6, [*"xyxyxy"])
    made.before.layout[:] = 0
    figure = plot_side(made, "before", colouring(made, "condition"))
    places = {(float(x), float(y)) for trace in figure.data for x, y in zip(trace.x, trace.y, strict=True)}
    assert len(places) == 6


def test_labels_cover_neither_each_other_nor_points_where_there_is_room() -> None:
    made = make_map(["a"] * 60, [*"xy"] * 30)
    for side in (made.before, made.after):
        side.layout[:] = [[-2, -2], [2, 2]] * 29 + [[0, 0.1]] * 2  # where the first label would stand
    topics = tuple(Topic(("word", "other"), x, 0.0, 19) for x in (0.1, -0.9))
    made = replace(made, before=replace(made.before, topics=topics))
    plotted = plot_side(made, "before", colouring(made, "condition"))
    layout = plotted.layout
    wide = 7 * len("word, other")
    for across in PICTURES:
        pixel = (layout.xaxis.range[1] - layout.xaxis.range[0]) / across
        spots = [(one.x + one.xshift * pixel, one.y + one.yshift * pixel) for one in layout.annotations]
        (x, y), (right, high) = spots
        assert abs(x - right) > wide * pixel or abs(y - high) > 18 * pixel
        for spot in spots:
            places = np.stack([np.concatenate([trace[axis] for trace in plotted.data]) for axis in "xy"], axis=1)
            assert (np.abs(places - spot) >= (wide / 2 * pixel, 14 * pixel)).any(axis=1).all()


def test_few_points_have_labels_of_their_own_and_a_sentence_in_one_place_has_one() -> None:
    texts = ["A fox.", "A long sentence on a dog.", HOSTILE] * 2
    made = make_map(["a"] * 3 + ["b"] * 3, [*"xyz"] * 2, texts)
    made.before.layout[:] = [[-2, -1], [0, 0], [0, 1]] * 2
    made.after.layout[:] = [[-2, -2], [0, -1], [0, -2], [-2, 2], [0, 1], [0, 2]]
    before, after = (
        [one.text for one in plot_side(made, side, colouring(made)).layout.annotations] for side in ("before", "after")
    )
    assert sorted(before) == sorted(["A fox.", "A long sentence on a dog.", HOSTILE_LABEL])
    assert sorted(text[:6] for text in after) == sorted(["A fox.", "A long", "&lt;im"] * 2), (
        "cut where there is less room"
    )


def test_of_some_more_points_groups_are_named_and_what_has_room_beside_them() -> None:
    made = make_map(["a"] * 30, [*"xy"] * 15)
    for side in (made.before, made.after):
        side.layout[:] = [
            (3 * np.cos(turn), 3 * np.sin(turn)) for turn in np.linspace(0, 2 * np.pi, 30, endpoint=False)
        ]
    named = [one.text for one in plot_side(made, "before", colouring(made)).layout.annotations]
    assert named[0] == "&lt;b&gt;two, dogs"
    assert len(named) > 10
    assert all(text.startswith("Sentence") for text in named[1:])


def test_a_label_that_would_cover_points_everywhere_is_left_out() -> None:
    made = make_map(["a"] * 400, [*"xy"] * 200)
    grid = np.stack(np.meshgrid(np.linspace(-2, 2, 20), np.linspace(-2, 2, 20)), axis=-1).reshape(-1, 2)
    for side in (made.before, made.after):
        side.layout[:] = grid
    made = replace(made, before=replace(made.before, topics=(Topic(("word", "other"), 0.0, 0.0, 19),)))
    assert not plot_side(made, "before", colouring(made, "condition")).layout.annotations


def test_texts_that_stand_several_times_are_counted() -> None:
    made = make_map(["a"] * 3, [*"xyz"])
    shown = [
        cells for trace in plot_side(made, "before", colouring(made, "condition")).data for cells in trace.customdata
    ]
    texts = list(zip(made.points.texts, made.points.conditions, strict=True))
    counted = sum("times" in " ".join(cells) for cells in shown)
    assert counted == sum(texts.count(pair) > 1 for pair in texts)


def test_texts_of_users_are_escaped() -> None:
    texts = [f"{HOSTILE} {i}" for i in range(30)]
    made = make_map(["a", HOSTILE] * 15, [HOSTILE, "y"] * 15, texts, notes=(HOSTILE,))
    picture = to_html(made)
    assert HOSTILE not in picture
    assert picture.count(html.escape(f"{HOSTILE} 3")) == 2, "the mouse shows it on both sides"
    assert "<b>two" not in str(plot_side(made, "after", colouring(made)).layout.annotations)


def test_a_map_in_a_notebook_is_small_and_has_no_script() -> None:
    made = make_map(["a", "b", "c"] * 2, ["x"] * 6, [str(number) for number in range(6)])
    picture = made._repr_html_()
    assert len(picture) < 50_000
    assert "<script" not in picture
    assert "http" not in picture
