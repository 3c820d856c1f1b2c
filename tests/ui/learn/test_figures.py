"""Figures: what they compute is what the models themselves give."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
import torch

from condviz.data.lessons import Step
from condviz.errors import DataError
from condviz.methods.hyper_cl import HyperCL
from condviz.ui.learn.figures import FIGURES, make_figure
from condviz.ui.learn.figures.models import passes
from tests.tiny import SENTENCES, encoded_rows, tiny_model

ROOT = Path(__file__).resolve().parents[3]
RANK = 8
TEXTS = {"condition": "the sport", "sentence1": SENTENCES[0], "sentence2": SENTENCES[1]}


@pytest.fixture(scope="module")
def model() -> HyperCL:
    torch.manual_seed(0)
    return tiny_model("hyper-cl", rank=RANK)


def test_the_whole_matrix_gives_the_score_of_the_model(model: HyperCL) -> None:
    found = FIGURES["spectrum"](**TEXTS, groups={"a": SENTENCES[:2], "b": SENTENCES[2:]}).compute([model])
    plain, whole, used = found["scores"]
    expected = model.score([SENTENCES[0]], [SENTENCES[1]], ["the sport"])[0]
    assert whole == used == pytest.approx(float(expected), abs=1e-3)
    assert plain == pytest.approx(float(model.score_unconditional([SENTENCES[0]], [SENTENCES[1]])[0]), abs=1e-3)
    assert len(found["values"]) == RANK
    assert len(found["before"]) == len(found["after"]) == len(SENTENCES)


def test_one_singular_value_leaves_two_cosines_and_none_leaves_nothing(model: HyperCL) -> None:
    one = FIGURES["spectrum"](**TEXTS, keep=1).compute([model])
    assert abs(one["scores"][2]) == pytest.approx(1, abs=1e-3)
    switched = FIGURES["spectrum"](**TEXTS, off=" ".join(map(str, range(2, RANK + 1)))).compute([model])
    assert switched["scores"] == one["scores"]
    assert FIGURES["spectrum"](**TEXTS, keep=1, off="1").compute([model])["scores"][2] == 0


def test_the_factors_are_those_of_the_matrix(model: HyperCL) -> None:
    found = FIGURES["factors"](condition="the sport").compute([model])
    whole = model.condition_matrix("the sport")
    assert (found["size"], found["rank"]) == (len(whole), np.linalg.matrix_rank(whole))
    assert FIGURES["matrix"](condition1="the sport", condition2="the sport").compute([model])["alike"] == 1


def test_a_hypernetwork_has_as_many_weights_as_the_layers_of_the_method(model: HyperCL) -> None:
    _, low = FIGURES["size"](width=768, rank=64).compute([])["learned"]
    assert low == 75_595_776
    assert FIGURES["size"](width=384, rank=48).compute([])["learned"] == [56_770_560, 14_192_640]


def test_the_counts_of_the_formula_are_those_of_the_encoder(model: HyperCL) -> None:
    with encoded_rows(model.backbone) as rows:
        ((_, kind, counted, _),) = FIGURES["measure"](n=5, m=2, names=("a", "b", "c")).compute([model])["rows"]
    assert kind == "tri"
    assert counted == sum(rows) == passes(5, 2)["Tri-encoder"] == 7


def test_a_lesson_that_asks_for_what_no_figure_has_names_the_place() -> None:
    for figure, says in (
        ({"name": "nothing"}, "no figure is called"),
        ({"name": "counts", "k": 3}, "Its parameters: "),
        ({"name": "counts", "n": 1}, "n is 1, allowed is 2 or more"),
        ({"name": "counts", "show": ["o"]}, "show names 'o'"),
    ):
        with pytest.raises(DataError, match=says) as caught:
            make_figure(Step("Title", "", figure, place="09-mine.md, line 3"))
        assert "09-mine.md, line 3" in str(caught.value)


def test_what_clicks_on_the_picture_set_has_no_control_of_its_own() -> None:
    figure = FIGURES["spectrum"](**TEXTS, show=("off",))
    assert [control["kind"] for control in figure.controls()] == ["hidden"]
    assert figure.changed({"off": "1 2"}).off == "1 2"


def test_two_equal_rankings_agree_and_reversed_ones_do_not() -> None:
    figure = FIGURES["ranking"]()
    rows = [["csr", 0.1, 0.9], ["case", 0.2, 0.8], ["case-zero-shot", 0.3, 0.7]]
    found = figure.view({"rows": rows})
    assert found["agreement"] == pytest.approx(1)
    assert [title for title, *_ in found["rows"]] == ["CSR", "CASE", "CASE (not trained)"]
    reversed_rows = [[name, impurity, -answers] for name, impurity, answers in rows]
    assert figure.view({"rows": reversed_rows})["agreement"] == pytest.approx(-1)


def test_the_guide_lists_every_figure() -> None:
    rows = re.findall(r"^\| (`.*?) \|", (ROOT / "docs" / "lessons.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert sorted(re.findall(r"`([a-z-]+)`", " ".join(rows))) == sorted(FIGURES)


def test_a_student_changes_only_what_is_shown() -> None:
    figure = FIGURES["spectrum"](**TEXTS, show=("keep",))
    assert figure.changed({"keep": "3", "model": "other", "random": "true"}) == FIGURES["spectrum"](
        **TEXTS, show=("keep",), keep=3
    )
    with pytest.raises(DataError, match="kept"):
        figure.changed({"keep": "many"})


@pytest.mark.parametrize("name", ["cosines", "subtraction", "spectrum"])
def test_a_text_that_was_emptied_or_is_too_long_is_told_by_its_title(name: str) -> None:
    known = TEXTS | {"sentences": SENTENCES[:2]}
    figure = FIGURES[name](**{key: known[key] for key in known if key in FIGURES[name].model_fields})
    with pytest.raises(DataError, match="Condition is empty"):
        figure.changed({"condition": " "})
    with pytest.raises(DataError, match="Condition has 2,000 characters, allowed are at most"):
        figure.changed({"condition": "x" * 2000})
