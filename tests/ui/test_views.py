"""Matrix, words, finder, gallery, exports: what stands in the markup, and that nothing in it is executed."""

from __future__ import annotations

import csv
import io
import json
from typing import Any

import numpy as np
import pytest

from condviz.data.examples import Example
from condviz.types import Comparison
from condviz.ui.attribution_view import render_attribution
from condviz.ui.exports import to_csv, to_json, to_python
from condviz.ui.finder_view import render_ranking
from condviz.ui.form_state import FormState
from condviz.ui.gallery import render_gallery
from condviz.ui.matrix import MatrixView, render_matrix
from condviz.ui.record import pack_attribution, pack_comparison, stack, unpack_attribution, unpack_comparison
from condviz.ui.result_view import make_shown, render_shown
from condviz.ui.service import Progress
from tests.ui import fakes
from tests.ui.test_html import read

HOSTILE = "<img src=x onerror=alert(1)>${1+1}{{7*7}}'\"`</textarea></script>"
MODELS = [fakes.FakeModel(name) for name in ("minilm", "csr", "cross-encoder")]


def result(conditions: tuple[str, ...] = ("the sport", "the mood"), sentence: str = "A man skis.") -> Comparison:
    return fakes.compare(MODELS, sentence, "A woman surfs.", conditions)


def shown(comparison: Comparison, **options: Any) -> dict:
    form = FormState(comparison.sentence1, comparison.sentence2, comparison.conditions, ("minilm", "csr"))
    return make_shown(Progress(comparison), form, comparison.models, before=options.get("before"))


def test_the_matrix_is_a_table_with_scoped_headers_and_one_button_per_number() -> None:
    comparison = result()
    markup = render_matrix(comparison, comparison.models, MatrixView())
    assert markup.count("<table") == 1
    assert markup.count('scope="row"') == 3
    assert markup.count('scope="col"') == 2 + 1 + 2
    assert markup.count('class="cv-cell"') == 3 * 3
    assert markup.count("not trained") == 2


def test_cross_encoders_stand_in_a_group_and_on_a_scale_of_their_own() -> None:
    comparison = result()
    markup = render_matrix(comparison, comparison.models, MatrixView())
    cosine, cross = markup.split('<tbody class="cv-group-cross">')
    assert 'data-model="cross-encoder"' not in cosine
    assert 'data-model="csr"' not in cross.split("</tbody>")[0]
    assert "change of the cosine" in cross
    assert "change of the cross-encoder" in cross


def test_a_link_may_say_whose_words_are_shown_first() -> None:
    comparison = result()
    form = FormState("A man skis.", "A woman surfs.", comparison.conditions, ("minilm", "csr"))
    progress = Progress(comparison)
    for words, selected in (("", "csr"), ("cross-encoder", "cross-encoder"), ("odd", "csr")):
        record = make_shown(progress, form.replace(words=words), comparison.models, before=None)
        assert record["selected"] == [selected, 0]


def test_pending_and_failed_models_keep_their_row() -> None:
    comparison = result()
    infos = [*comparison.models, fakes.make_info("late"), fakes.make_info("broken")]
    view = MatrixView(pending={"late": "is loading"}, failed={"broken": "is truncated"})
    markup = render_matrix(comparison, infos, view)
    assert "is loading" in markup
    assert "is truncated" in markup
    assert 'data-ready="false"' in markup


@pytest.mark.parametrize("kind", ["matrix", "words", "gallery", "ranking"])
def test_no_text_becomes_markup(kind: str) -> None:
    comparison = result((HOSTILE, "b"), HOSTILE)
    example = Example("x", "simple", HOSTILE, HOSTILE, HOSTILE, HOSTILE, (HOSTILE,), ("low",), HOSTILE)
    words = fakes.attribute(MODELS[1], HOSTILE, "b", HOSTILE)
    markup = {
        "matrix": lambda: render_shown(shown(comparison)),
        "words": lambda: render_attribution(words, MODELS[1].info, sentence1=HOSTILE, sentence2="b"),
        "gallery": lambda: render_gallery([example]),
        "ranking": lambda: render_ranking([(HOSTILE, 0.5, 0.1), ("b", 0.1, -0.3)], MODELS[1].info, groups={}),
    }[kind]()
    assert "<img" not in markup
    assert not {"img", "script"} & set(read(markup).tags)


def test_ghosts_show_where_a_number_changed_and_survive_a_second_run() -> None:
    first = shown(result())
    edited = shown(result(sentence="A child skis."), before=first)
    assert len(edited["ghosts"]) == 3 * 3
    assert shown(result(sentence="A child skis."), before=edited)["ghosts"] == edited["ghosts"]
    other = fakes.compare(MODELS, "Something else.", "Altogether.", ("the sport", "the mood"))
    assert shown(other, before=first)["ghosts"] == []


def test_ghosts_follow_a_condition_that_moves() -> None:
    before = shown(result(("a", "b")))
    assert shown(result(("b", "a")), before=before)["ghosts"] == []
    added = shown(result(("a", "b", "c")), before=before)["ghosts"]
    assert added == []


def test_words_keep_what_lies_between_them() -> None:
    sentence = "  A  man, skis  "
    words = fakes.attribute(MODELS[1], sentence, "b", None)
    markup = render_attribution(words, MODELS[1].info, sentence1=sentence, sentence2="b")
    assert "no condition" in markup
    assert sentence in read(markup).text


def test_records_come_back_exactly() -> None:
    comparison = result()
    comparison.percentiles[0, 0] = np.nan
    again = unpack_comparison(json.loads(json.dumps(pack_comparison(comparison), allow_nan=False)))
    assert again.models == comparison.models
    for name in ("scores", "unconditional", "percentiles"):
        np.testing.assert_array_equal(getattr(again, name), getattr(comparison, name))
    words = fakes.attribute(MODELS[0], "a b", "c", None)
    back = unpack_attribution(json.loads(json.dumps(pack_attribution(words))))
    assert back.words1 == words.words1
    np.testing.assert_array_equal(back.effects2, words.effects2)


def test_rows_of_single_models_stack_to_the_whole() -> None:
    whole = result()
    rows = [fakes.compare([m], whole.sentence1, whole.sentence2, whole.conditions) for m in MODELS]
    np.testing.assert_array_equal(stack(rows).scores, whole.scores)


def test_exports_name_models_and_revisions() -> None:
    comparison = result()
    for text in (to_json(comparison), to_python(comparison), to_csv(comparison)):
        for info in comparison.models:
            assert info.name in text
            assert info.revision in text


def test_the_script_prints_the_numbers_of_the_page(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    comparison = result((HOSTILE, "b\\n'''"), 'quote " and \u2028 line')

    class Model(fakes.FakeModel):
        def score(self, first: list[str], second: list[str], conditions: list[str]) -> np.ndarray:
            return np.array([self.value(*row) for row in zip(first, second, conditions, strict=True)], dtype=np.float32)

        def score_unconditional(self, first: list[str], second: list[str]) -> np.ndarray:
            return np.array([self.value(first[0], second[0], None)], dtype=np.float32)

    monkeypatch.setattr("condviz.load", Model)
    exec(compile(to_python(comparison), "copied", "exec"), {})
    out = capsys.readouterr().out
    for row in (*comparison.scores, comparison.unconditional):
        assert all(f"{value:.3f}" in out for value in row)
    assert HOSTILE in out


def test_csv_has_one_row_per_number_and_no_formulas() -> None:
    rows = list(csv.DictReader(io.StringIO(to_csv(result(("=1+1", "b"), "@sum")))))
    assert len(rows) == 3 * 3
    assert {row["condition"] for row in rows} == {"", "'=1+1", "b"}
    assert {row["sentence1"] for row in rows} == {"'@sum"}


def test_a_model_that_ignores_the_condition_is_said_to() -> None:
    assert "same score under every condition" in render_ranking(
        [("a", 0.5, 0.0), ("b", 0.5, 0.0)], MODELS[0].info, groups={}
    )
