"""The Compare tab over real models, without a browser."""

from __future__ import annotations

import json
import runpy
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import gradio as gr
import numpy as np
import pytest

import condviz
from condviz.data.examples import load_examples
from condviz.errors import DataError, UnknownModelError
from condviz.plots import similarity
from condviz.types import Comparison
from condviz.ui import compare, export
from condviz.ui.app import Settings, build_app
from condviz.ui.pool import ModelPool
from condviz.ui.state import read_link
from tests.pages import last

SENTENCES = ("A man surfs at dawn.", "A woman skis in the morning.")


@pytest.fixture(scope="module")
def tab() -> compare.CompareTab:
    found = []
    build = compare.Tab("compare", "Compare", lambda page: found.append(compare.CompareTab(page)))
    build_app(Settings(pool=lambda: ModelPool(("minilm", "hyper-cl", "bi-encoder")), tabs=(build,), preload=False))
    return found[0]


def run(tab: compare.CompareTab) -> Comparison:
    return last(tab.compare(*SENTENCES, "the sport\nthe time of day", "bi-encoder", None))[tab.shown]


def test_the_tab_shows_what_the_public_function_returns(tab: compare.CompareTab) -> None:
    shown = run(tab)
    direct = condviz.compare(tab.pool.get("bi-encoder"), *SENTENCES, ["the sport", "the time of day"])
    assert shown.to_dict() | {"words": []} == direct.to_dict()
    assert len(shown.words) == 2


def test_texts_are_escaped_wherever_they_are_shown(tab: compare.CompareTab) -> None:
    evil = "<img src=x onerror=alert(1)>"
    steps = last(tab.compare(f"{evil} man", "A woman.", f"{evil}\nthe sport", "hyper-cl", None))
    shown = steps[tab.shown]
    views = [steps[tab.result], *last(tab.explain(shown)).values(), *tab.show_exports(shown).values()]
    assert all("<img" not in str(view) for view in views)
    assert any("&lt;img" in str(view) for view in views)


@pytest.mark.parametrize(
    ("change", "named"), [({0: " "}, "sentence 1"), ({1: "a" * 6000}, "sentence 2"), ({2: ""}, "condition")]
)
def test_bad_input_names_the_field(tab: compare.CompareTab, change: dict[int, str], named: str) -> None:
    values = [*SENTENCES, "the sport", "hyper-cl", None]
    for position, value in change.items():
        values[position] = value
    with pytest.raises(DataError, match=f"(?i){named}"):
        last(tab.compare(*values))


def test_a_model_outside_the_pool_is_refused(tab: compare.CompareTab) -> None:
    with pytest.raises(UnknownModelError):
        last(tab.compare(*SENTENCES, "the sport", "owner/model", None))
    with pytest.raises(UnknownModelError):
        tab.api_compare(*SENTENCES, ["the sport"], ["../checkpoints/csr"])


def test_the_endpoint_says_what_the_model_says_of_told_conditions(tab: compare.CompareTab) -> None:
    found = tab.api_applies(list(SENTENCES), ["the sport", "banana"])["applies"]
    assert found == tab.pool.get("hyper-cl").applies(SENTENCES, ["the sport", "banana"]).tolist()
    for wrong in ([], ["a"] * 101, [" "]):
        with pytest.raises(DataError, match=r"(?i)sentence"):
            tab.api_applies(wrong, ["the sport"])


def test_many_rows_are_scored_as_one_by_one(tab: compare.CompareTab) -> None:
    first, second = SENTENCES
    rows = [first, second], [second, second]
    for conditions in (["the sport"], ["the sport", "the mood"]):
        scores = tab.api_score(*rows, conditions, "bi-encoder")["scores"]
        both = conditions * 2 if len(conditions) == 1 else conditions
        np.testing.assert_allclose(scores, tab.pool.get("bi-encoder").score(*rows, both), atol=1e-6)
    with pytest.raises(DataError, match="2 first sentences, 2 second sentences, 3 conditions"):
        tab.api_score(*rows, ["the sport"] * 3, "bi-encoder")
    with pytest.raises(DataError, match=r"(?i)row 2, sentence 1"):
        tab.api_score([first, " "], [second, second], ["the sport"], "bi-encoder")
    with pytest.raises(DataError, match="0 first sentences"):
        tab.api_score([], [], ["the sport"], "bi-encoder")


def test_a_link_with_a_model_that_is_gone_says_so(tab: compare.CompareTab) -> None:
    (moved,) = (one.fn for one in tab.page.site.blocks.fns.values() if one.name == "on_moved")
    for model in ("gone", "hyper-cl"):
        event = SimpleNamespace(query=f"s1=A+man.&s2=A+woman.&c=the+sport&m={model}")
        told = "".join(str(step.get(tab.notice)) for step in moved(event, "hyper-cl", None))
        assert ("which is not here" in told) == (model == "gone")


def test_a_link_restores_the_form(tab: compare.CompareTab) -> None:
    shown = run(tab)
    _, values = read_link(compare._link(shown))
    restored = last(tab.open_link(values, "hyper-cl", None))
    assert [restored[part] for part in (tab.sentence1, tab.sentence2, tab.conditions, tab.model)] == [
        *SENTENCES, "the sport\nthe time of day", "bi-encoder",
    ]  # fmt: skip
    assert restored[tab.shown].to_dict() == shown.to_dict()


def test_an_edit_of_one_sentence_shows_where_the_bars_were(tab: compare.CompareTab) -> None:
    before = run(tab)
    after = last(tab.compare(SENTENCES[0], "A woman surfs at night.", "the sport", "bi-encoder", before))[tab.shown]
    assert list(compare._before(after, before)) == ["the sport"]
    assert compare._before(after, None) == {}
    assert compare._before(before, before) == {}


def test_texts_too_long_for_words_say_why_none_is_named(tab: compare.CompareTab) -> None:
    shown = replace(run(tab), words=())
    for number, told in ((5, ""), (120, "open “Words"), (300, "more than the 400")):
        why = compare._why_unnamed(replace(shown, sentence1="word " * number, sentence2="word " * number))
        assert told in why
        assert bool(why) == bool(told)
        assert why in tab._picture(replace(shown, sentence1="word " * number, sentence2="word " * number))


def test_a_table_comes_back_with_scores(tab: compare.CompareTab, tmp_path: Path) -> None:
    file = tmp_path / "pairs.csv"
    file.write_text(f"id,sentence1,sentence2,condition\n=1,{SENTENCES[0]},{SENTENCES[1]},the sport\n", encoding="utf-8")
    written = {}
    for model in ("hyper-cl", "bi-encoder"):
        steps = last(tab.table(str(file), None, model))
        written[model] = Path(steps[tab.download].value["path"])
        own, meant = steps[tab.rows].value["headers"][:4], steps[tab.rows].value["headers"][4:]
        assert own == ["id", "sentence1", "sentence2", "condition"], "own columns stay"
        assert meant == ["model rating", "model percentile", "model score"]
    for model, path in written.items():
        head = path.read_text(encoding="utf-8").splitlines()[0]
        assert head == f"id,sentence1,sentence2,condition,score_{model},rating_{model},percentile_{model}"
    with pytest.raises(DataError, match="No file"):
        last(tab.table(None, None, "hyper-cl"))


def test_a_scored_table_is_there_again_in_the_sitting(tab: compare.CompareTab, tmp_path: Path) -> None:
    file = tmp_path / "pairs.csv"
    file.write_text(f"sentence1,sentence2,condition\n{SENTENCES[0]},{SENTENCES[1]},the sport\n", encoding="utf-8")
    scored, shown = last(tab.table(str(file), None, "hyper-cl")), run(tab)
    own = str(scored[tab.table_told]).partition('data-own="')[2].partition('"')[0]
    values = read_link(f"?{own}")[1]
    back = last(tab.open_link(values, "hyper-cl", shown))
    assert back[tab.rows].value == scored[tab.rows].value
    assert Path(back[tab.download].value["path"]).is_file()
    assert tab.sentence1 not in back, "the example of the page stays"
    (tmp_path / "pairs-hyper-cl.csv").unlink()
    assert "again" in last(tab.open_link(values, "hyper-cl", shown))[tab.table_told]


def test_the_finder_ranks_conditions_that_fit(tab: compare.CompareTab) -> None:
    ranking = str(last(tab.find(run(tab)))[tab.ranking])
    assert "the sport" in ranking
    assert "the number of animals" not in ranking


def test_all_models_counts_trained_ones_only(tab: compare.CompareTab) -> None:
    shown = run(tab)
    assert "of 2 trained models" in str(last(tab.all_models(shown, False))[tab.matrix])
    untold = replace(shown, models=shown.models * 2, percentiles=np.repeat(shown.percentiles, 2, axis=0),
                     applies=np.zeros_like(shown.applies))  # fmt: skip
    assert similarity.agreement(replace(untold, applies=np.ones_like(shown.applies)))
    assert similarity.agreement(untold) == ""


def test_exported_python_prints_the_same_numbers(
    tab: compare.CompareTab, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable in ("CONDVIZ_BACKEND", "CONDVIZ_PRECISION"):
        monkeypatch.setenv(variable, "")  # so that what the script sets there goes again
        monkeypatch.delenv(variable)
    text = "A man \"quotes\" \\ and '''breaks''' lines."
    shown = last(tab.compare(text, SENTENCES[1], "the sport", "hyper-cl", None))[tab.shown]
    call = [("models", "hyper-cl"), ("sentence1", text), ("sentence2", SENTENCES[1]), ("conditions", ["the sport"])]
    script = tmp_path / "script.py"
    script.write_text(export.python_call("compare", call), encoding="utf-8")
    runpy.run_path(str(script))
    assert f"{shown.to_frame()['score'][1]:.6f}"[:6] in capsys.readouterr().out


def test_json_is_strict_and_csv_is_safe_to_open(tab: compare.CompareTab) -> None:
    shown = last(tab.compare("=HYPERLINK(1)", SENTENCES[1], "the sport", "hyper-cl", None))[tab.shown]
    json.loads(export.json_text(shown), parse_constant=lambda name: pytest.fail(name))
    assert "'=HYPERLINK" in export.csv_text(shown)


def test_handlers_name_only_components_of_the_page(tab: compare.CompareTab) -> None:
    assert all(isinstance(key, gr.blocks.Block) for key in last(tab.explain(run(tab))))


@pytest.mark.slow
def test_examples_come_out_as_stated_by_the_default_model() -> None:
    from benchmarks.parts import contrast

    pool = ModelPool()
    model = condviz.load(pool.default, precision="float32")
    wrong = {item.example for item in contrast(model, load_examples()) if not item.in_order}
    assert wrong == {example.id for example in load_examples() if example.fails}
