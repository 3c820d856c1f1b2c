"""Which rows go together, in which order, and that no text of a batch is encoded twice."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from condviz.data.pairs import read_pairs
from condviz.errors import ConfigError, DataError
from condviz.methods.encoders import number
from condviz.training import data
from condviz.training.data import Example, MixedOrder, collate, load_blocks, load_source, make_units, read_as
from condviz.training.probe import survey
from condviz.training.recipes import Source, from_dict

row = st.builds(
    Example,
    sentence1=st.sampled_from("abc"),
    sentence2=st.sampled_from("abc"),
    condition=st.sampled_from("xyz"),
    label=st.integers(1, 5),
    group=st.sampled_from("123456"),
)


@given(st.lists(row, min_size=1, max_size=30))
def test_pairs_are_groups_of_two_with_the_higher_label_first(rows: list[Example]) -> None:
    twos = {group for group, count in Counter(row.group for row in rows).items() if count == 2}
    if not twos:
        with pytest.raises(DataError, match="exactly two rated conditions"):
            make_units(rows, "pairs")
        return
    units = make_units(rows, "pairs")
    assert [high.group for high, _ in units] == [low.group for _, low in units]
    assert {high.group for high, _ in units} == twos
    assert len(units) == len(twos)
    assert all(high.label >= low.label for high, low in units)
    for high, low in units:  # ties keep the order of the file
        assert high.label > low.label or [row for row in rows if row.group == high.group] == [high, low]


@given(st.lists(row, min_size=1, max_size=30))
def test_batches_hold_highs_and_then_their_lows(rows: list[Example]) -> None:
    units = [(high, low) for high in rows[:3] for low in rows[-2:]]
    made = collate(units)
    half = len(units)
    assert len(made["batch"]) == 2 * half
    for place, (high, low) in enumerate(units):
        assert made["batch"].conditions[place] == high.condition
        assert made["batch"].sentences1[place + half] == low.sentence1
        assert made["labels"][place + half] == (low.label - 1) / 4
    assert made["teacher"].isnan().all()


def test_single_rows_stay_as_they_come() -> None:
    rows = [Example("a", "b", condition, 3, "g", teacher) for condition, teacher in (("x", None), ("y", 0.25))]
    made = collate(make_units(rows, "rows"))
    assert made["batch"].conditions == ("x", "y")
    assert made["labels"].tolist() == [0.5, 0.5]
    assert made["teacher"].isnan().tolist() == [True, False]
    assert made["teacher"][1] == 0.25


@given(st.lists(st.text(max_size=2), max_size=20))
def test_numbering_loses_and_repeats_nothing(items: list[str]) -> None:
    different, index = number(items)
    assert len(set(different)) == len(different)
    assert [different[i] for i in index.tolist()] == items


@given(
    st.lists(st.tuples(st.integers(1, 7), st.sampled_from([0.3, 0.5, 1.0, 1.5, 2.0])), min_size=1, max_size=3),
    st.integers(0, 5),
)
def test_every_epoch_takes_each_source_by_its_weight(parts: list[tuple[int, float]], seed: int) -> None:
    sizes, weights = zip(*parts, strict=True)
    order = MixedOrder(sizes, weights, seed=seed)
    counts: Counter[int] = Counter()
    for epoch in range(4):
        order.set_epoch(epoch)
        epoch_order = list(order)
        assert len(epoch_order) == len(order)
        counts.update(epoch_order)
    start = 0
    for size, count in zip(sizes, order.counts, strict=True):
        taken = [counts[i] for i in range(start, start + size)]
        assert sum(taken) == 4 * count
        assert max(taken) - min(taken) <= 1  # none is left out for long, none comes too often
        start += size


def test_the_order_depends_on_seed_and_epoch_alone() -> None:
    orders = {}
    for seed, epoch in ((0, 0), (0, 1), (1, 0)):
        order = MixedOrder([20], [1], seed=seed)
        order.set_epoch(epoch)
        orders[seed, epoch] = list(order)
        torch.rand(3)
        assert list(order) == orders[seed, epoch]
        assert sorted(orders[seed, epoch]) == list(range(20))
    assert len({tuple(order) for order in orders.values()}) == 3


def test_a_block_is_one_unit_of_highs_and_then_lows() -> None:
    rows = [
        Example("a", "b", f"{block}{pair}{label}", label, f"{block}{pair}", block=block)
        for block, pairs in (("x", 3), ("y", 1))
        for pair in range(pairs)
        for label in (1, 5)
    ]
    units = make_units(rows, "blocks")
    assert [[row.condition for row in unit] for unit in units] == [
        ["x05", "x15", "x25", "x01", "x11", "x21"],
        ["y05", "y01"],
    ]
    made = collate(units)
    assert made["batch"].conditions == ("x05", "x15", "x25", "y05", "x01", "x11", "x21", "y01")
    assert made["labels"].tolist() == [1, 1, 1, 1, 0, 0, 0, 0]


def test_a_source_gives_no_more_rows_than_asked_for() -> None:
    whole, few = (load_blocks(Source("tables", "validation", rows=rows), 12) for rows in (0, 100))
    assert (len(few), few) == (100, whole[:100])
    assert len(load_source(Source("tables", "validation", rows=6))) == 6
    scenes = load_source(Source("scenes", "dev"))
    assert len(make_units(scenes, "pairs")) == len(scenes) / 2 > 100


RECIPE = {
    "name": "m",
    "method": "hyper-cl",
    "config": {"rank": 4},
    "keep": "last",
    "train": [{"name": "csv", "path": "x"}],
}


def test_a_table_of_a_recipe_is_read_on_its_scale_with_its_words_and_columns(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("premise;other;label\na;b;no\nc;d;yes\ne;f;0,5\ng;h;much\n")
    source = {
        "name": "csv",
        "path": str(path),
        "scale": [0, 1],
        "labels": {"no": 0, "yes": 1},
        "condition": "the topic",
    }
    source |= {"columns": {"sentence1": "premise", "sentence2": "other"}, "skip_bad": True}
    recipe = from_dict(RECIPE | {"train": [source]})
    assert [row.label for row in load_source(recipe.train[0])] == [1, 5, 3]
    assert from_dict(recipe.to_dict()).train == recipe.train
    found = survey(recipe).found
    assert any("mapped to 1" in note for note in found.advice)
    assert any("1 row that cannot be used" in note for note in found.advice)
    assert found.dropped == 1


def test_a_survey_reads_each_table_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    paths = [tmp_path / "train.csv", tmp_path / "validation.csv"]
    for path in paths:
        path.write_text("sentence1,sentence2,condition,label\na,b,c,1\nd,e,f,5\n")
    read = []
    monkeypatch.setattr(data, "read_pairs", lambda path, **form: read.append(path) or read_pairs(path, **form))
    first, second = ([{"name": "csv", "path": str(path)}] for path in paths)
    found = survey(from_dict(RECIPE | {"train": first, "validation": second})).found
    assert (found.rows, found.validation_rows, read) == (2, 2, paths)


def test_options_of_the_command_line_change_how_tables_are_read(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("sentence1,sentence2,condition,label\na,b,c,0\nd,e,f,1\n")
    recipe = from_dict(RECIPE | {"train": [{"name": "csv", "path": str(path)}]})
    with pytest.raises(DataError, match=r"\(scale\)"):
        load_source(recipe.train[0])
    changed = read_as(recipe, {"scale": [0.0, 1.0], "labels": {}, "header": None, "skip_bad": False})
    assert [row.label for row in load_source(changed.train[0])] == [1, 5]
    with pytest.raises(ConfigError, match="scale would change nothing"):
        read_as(from_dict(RECIPE | {"train": [{"name": "scenes"}]}), {"scale": [0.0, 1.0]})
