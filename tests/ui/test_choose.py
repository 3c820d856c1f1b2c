"""Which model for me: the answer can do what is asked, in the time that is given, and is among the best of those."""

from __future__ import annotations

import itertools

import pytest

from condviz.evaluation.scoreboard import read_board
from condviz.models.registry import describe, list_models
from condviz.ui.markup import read_asset
from condviz.ui.models import PART, PATIENCE, PLACES, TASKS, allowed, can

INFOS = [describe(name) for name in list_models()]


def test_a_gpu_gives_one_more_step_of_patience() -> None:
    work = {"cheap": 1.0, "some": 6.0, "much": 90.0}
    assert allowed(work, "least", "cpu") == ["cheap"]
    assert allowed(work, "least", "gpu") == allowed(work, "some", "cpu") == ["cheap", "some"]
    assert allowed(work, "any", "gpu") == allowed(work, "some", "gpu") == [*work]
    assert allowed({}, "any", "cpu") == []


def test_a_model_is_offered_only_for_what_it_can_do() -> None:
    found = {task: {info.name for info in INFOS if can(info, task)} for task in TASKS}
    assert "cross-encoder" in found["pair"] - found["many"]
    assert found["words"]
    assert all(describe(name).has_router for name in found["words"])
    assert "minilm" not in found["pair"]


@pytest.mark.parametrize(("task", "patience", "place"), [*itertools.product(TASKS, PATIENCE, PLACES)])
def test_each_answer_fits_and_the_picture_has_every_measured_model(task: str, patience: str, place: str) -> None:
    import gradio as gr

    from condviz.ui.models import Choose

    with gr.Blocks():
        chosen = Choose()
    board = read_board()
    (shown,) = map(str, chosen.show(INFOS, board, task, patience, place).values())
    efforts = read_asset("effort.json")
    measured = [one.name for one in INFOS if one.trained and one.name in efforts and board.find(one.name, PART)]
    assert all(f'data-card="{name}"' in shown for name in measured)
    assert "Take" in shown
    best = shown.partition('data-card="')[2].partition('"')[0]
    assert can(next(filter(lambda info: info.name == best, INFOS)), task)
