"""The gallery as a check: which contrasts there are, and the command."""

from __future__ import annotations

import pytest

from benchmarks.parts import contrast
from condviz.data.examples import Example, load_examples
from tests.commands import Command
from tests.stand_ins import LengthModel


def make_example(conditions: tuple[str, ...], expected: tuple[str, ...]) -> Example:
    return Example("two-cats", "simple", "captions", "Two cats", "a cat", "a black cat", conditions, expected)


def test_levels_that_differ_are_contrasts() -> None:
    example = make_example(("aaaa", "bb", "ccc", "d"), ("high", "medium", "low", "low"))
    found = {(one.higher, one.lower): one for one in contrast(LengthModel(), [example])}
    assert set(found) == {("aaaa", "bb"), ("aaaa", "ccc"), ("aaaa", "d"), ("bb", "ccc"), ("bb", "d")}
    assert [pair for pair, one in found.items() if not one.in_order] == [("bb", "ccc")]
    assert found["bb", "ccc"].example == "two-cats"
    assert found["bb", "ccc"].lower_score == pytest.approx(0.3)


def test_equal_scores_are_not_in_order() -> None:
    (one,) = contrast(LengthModel(), [make_example(("aa", "bb"), ("high", "low"))])
    assert not one.in_order


def test_the_gallery_has_contrasts_in_every_example() -> None:
    examples = load_examples()
    assert {one.example for one in contrast(LengthModel(), examples)} == {example.id for example in examples}


def test_command_counts_and_lists(monkeypatch: pytest.MonkeyPatch, bench: Command) -> None:
    examples = [make_example(("aaa", "bb"), ("high", "low")), make_example(("a", "bb"), ("high", "low"))]
    monkeypatch.setattr("condviz.data.examples.load_examples", lambda: examples)
    monkeypatch.setattr("condviz.models.registry.load", lambda name, **_: LengthModel(name))
    lines = [line.split() for line in bench("gallery", "--model", "one", "--model", "one", "--wrong").out.splitlines()]
    assert lines[2] == ["one", "1", "2", "50.0", "0"]
    assert lines[-1] == ["one", "two-cats", "a", "0.10", "bb", "0.20"]


def test_command_without_a_gallery_or_a_model(monkeypatch: pytest.MonkeyPatch, bench: Command) -> None:
    monkeypatch.setattr("condviz.data.examples.load_examples", list)
    assert "examples.json is missing" in bench.refuse("gallery")
    monkeypatch.undo()
    assert "nobody" in bench.refuse("gallery", "--model", "nobody")
