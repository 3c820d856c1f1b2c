"""The Search tab: what its handlers answer, over a tiny model."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from markupsafe import Markup

from condviz.analysis.answers import Hits
from condviz.errors import CondvizError, DataError
from condviz.methods.hyper_cl import HyperCL
from condviz.models import registry
from condviz.plots import search as plots
from condviz.store import disk
from condviz.ui import search as view
from condviz.ui.corpora import HITS, OWN_STORE, SCENES, Searches, Texts
from condviz.ui.imports import Reading
from condviz.ui.markup import dimmed
from condviz.ui.pool import ModelPool
from condviz.ui.search import OWN, TRIES, SearchTab
from condviz.ui.state import read_link
from tests.pages import build_view, last, last_before_error
from tests.tiny import SENTENCES, tiny_model

FORM = (SENTENCES[0], "the sport\nthe mood", "scenes", "hyper-cl", "", "", 3)


@pytest.fixture
def tab(monkeypatch: pytest.MonkeyPatch) -> SearchTab:
    model = tiny_model("hyper-cl", transform=False)
    model.info = registry.describe("hyper-cl")
    texts = [*SENTENCES, "a <b>bold</b> dog", "the mood of two dogs"]
    monkeypatch.setattr(disk, "_sentences", lambda: (texts, {"domain": ["x", "y"] * 3}))
    monkeypatch.setattr(HyperCL, "applies", lambda _, sentences, conditions: np.ones((len(sentences), 1)))
    return build_view(SearchTab, ModelPool(["hyper-cl"], lambda name: model))


@pytest.fixture
def two_models(tab: SearchTab, monkeypatch: pytest.MonkeyPatch) -> SearchTab:
    """The tab with a model that reads texts again, by the vectors of the other one."""
    reader = tiny_model("bi-encoder", seed=1)
    reader.info = registry.describe("bi-encoder")
    pool = tab.pool
    load = pool._load
    pool.add("bi-encoder")
    monkeypatch.setattr(pool, "_load", lambda name: reader if name == "bi-encoder" else load(name))
    return tab


def grouped(tab: SearchTab) -> Callable[[Searches | None], Iterator[dict]]:
    return lambda found: tab.show_groups(found, "kmeans", 3)


def crossed_by(tab: SearchTab) -> Callable[[Searches | None], Iterator[dict]]:
    return lambda found: tab.show_crossing(found, "kmeans", 3)


def test_each_condition_has_a_column_and_the_state_a_link(tab: SearchTab) -> None:
    done = last(tab.search(*FORM, None))
    found = done[tab.shown]
    assert [result.condition for result in found.results] == ["the sport", "the mood"]
    assert [len(result.hits) for result in found.results] == [3, 3]
    assert done[tab.result].count("cv-search-list") == 2
    assert str(plots.to_html(found)) in found._repr_html_()  # a notebook shows what the page does
    where, values = read_link(found.link)
    assert where == "search"
    again = last(tab.open_link(values, None))
    assert again[tab.query] == FORM[0]
    assert again[tab.shown].to_dict() == found.to_dict()


def test_hits_show_their_words_and_lead_to_other_tabs(tab: SearchTab) -> None:
    steps = [step for step in tab.search(*FORM, None) if tab.shown in step]
    assert [bool(step[tab.shown].results[0].hits[0].words) for step in steps] == [False, True]  # hits come first
    result = steps[-1][tab.shown].results[0]
    links = dict(view._open_hit(result.hits[0], result))
    assert read_link(links["Words"]) == ("words", read_link(links["Compare"])[1])
    assert "words=True" in steps[-1][tab.shown].script("hyper-cl")


def test_filters_restrict_and_markup_is_escaped(tab: SearchTab) -> None:
    done = last(tab.search(FORM[0], "", "scenes", "hyper-cl", "dog", 'domain == "x"', 9, None))
    assert [hit.text for hit in done[tab.shown].results[0].hits] == ["a <b>bold</b> dog"]
    assert "&lt;b&gt;bold" in done[tab.result]
    assert "<b>bold" not in done[tab.result]


def test_bad_input_is_told(tab: SearchTab) -> None:
    with pytest.raises(DataError, match="fit side by side"):
        last(tab.search(FORM[0], "a\nb\nc\nd", *FORM[2:], None))
    with pytest.raises(DataError, match="query is empty"):
        last(tab.search(" ", *FORM[1:], None))
    with pytest.raises(DataError, match="not here any more"):
        last(tab.search(*FORM[:2], "upload-9", *FORM[3:], None))
    for needs_a_result in (grouped(tab), crossed_by(tab), tab.show_twins, tab.show_sorting):
        with pytest.raises(DataError, match="Press Search first"):
            last(needs_a_result(None))


def test_own_texts_are_not_asked_the_question_of_an_example(tab: SearchTab, tmp_path: Path) -> None:
    file = tmp_path / "mine.txt"
    file.write_text("\n".join(SENTENCES), encoding="utf-8")
    query, conditions = TRIES[0]
    done = last(tab.upload(str(file), None, query, "\n".join(conditions), *FORM[2:], None))
    assert (done[tab.query], done[tab.conditions], tab.shown in done) == ("", "", False)
    assert "press Search" in done[tab.notice]
    assert last(tab.upload(str(file), None, query, "the mood", *FORM[2:], None))[tab.conditions] == "the mood"


def test_pasted_lines_are_searched_and_the_menu_leads_to_them(tab: SearchTab) -> None:
    opened = last(tab.choose(*FORM[:2], OWN, *FORM[3:], None))
    assert opened[tab.own_box].open
    assert opened[tab.corpus].value == SCENES
    done = last(tab.paste("\n\n".join(SENTENCES), *FORM, None))
    found = done[tab.shown]
    assert (found.corpus, found.results[0].total) == (done[tab.corpus].value, len(SENTENCES))
    assert last(tab.choose(*FORM[:2], OWN, *FORM[3:], found))[tab.corpus].value == found.corpus, "they stay chosen"
    assert last(tab.choose(*FORM, found))[tab.shown].corpus == SCENES
    filtered = last(tab.paste("\n".join(SENTENCES), *FORM[:4], "man", "", 3, None))
    again = last(tab.paste("\n".join(SENTENCES), *FORM[:4], "man", "", 3, filtered[tab.shown]))
    assert [one[tab.shown].results[0].contains for one in (filtered, again)] == ["man", ""], "of the texts before"
    with pytest.raises(DataError, match="2 to 5,000 lines are searched here, got 1"):
        last(tab.paste("One line.", *FORM, None))


def test_a_few_texts_are_read_by_the_best_model_that_many_would_wait_for(
    tab: SearchTab, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tab.pool, "choose", lambda budget, *_: "slow" if budget.share < 1 else "fast")
    for name, count in (("few", 20), ("many", 500)):
        tab._uploads[name] = Texts(name, ["A text."] * count, {})
    assert [tab._fitting("fast", corpus) for corpus in ("few", "many", SCENES)] == ["slow", "fast", "fast"]
    assert tab._fitting("slow", SCENES) == "fast"
    assert tab._fitting("hyper-cl", "few") == "hyper-cl", "which a visitor has chosen"


@pytest.mark.parametrize(
    ("query", "conditions", "corpus"), [(" ", "", ""), ("", "a\nb\nc\nd", ""), ("", "", "upload-9")]
)
def test_an_error_leaves_the_result_dimmed(tab: SearchTab, query: str, conditions: str, corpus: str) -> None:
    found = last(tab.search(*FORM, None))[tab.shown]
    asked = (query or FORM[0], conditions or FORM[1], corpus or FORM[2], *FORM[3:])
    left = last_before_error(tab.search(*asked, found))
    assert left[tab.result] == dimmed(view._picture(found))
    assert tab.shown not in left, "what was found before can still be handed out"


def test_ones_own_texts_are_searched(tab: SearchTab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "a.csv"
    file.write_text("text,stars\n" + "".join(f"{text},{i}\n" for i, text in enumerate(SENTENCES)))
    done = last(tab.upload(str(file), None, *FORM, None))
    found = done[tab.shown]
    assert "your texts" in done[tab.notice]
    assert found.corpus == done[tab.corpus].value
    assert "stars" in found.results[0].hits[0].cells
    script = found.script("hyper-cl")
    compile(script, "exported", "exec")
    assert "store build" in script
    assert f"{OWN_STORE!r}" in script
    values = read_link(found.link)[1]
    with pytest.raises(DataError, match="own texts"):
        last(tab.open_link(values, None))
    with pytest.raises(DataError, match="No file"):
        last(tab.upload(None, None, *FORM, None))
    monkeypatch.setenv("SPACE_ID", "someone/space")
    with pytest.raises(DataError, match="shared server"):
        last(tab.upload(str(file), None, *FORM, None))


def test_search_takes_a_file_that_waits_and_then_what_the_menu_says(tab: SearchTab, tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_text("text\n" + "".join(f"{text}\n" for text in SENTENCES))
    reading = Reading(str(file))
    own = [last(tab.search_here(None, str(file), waiting, *FORM, None)) for waiting in (None, reading)]
    assert all(done[tab.shown].corpus == done[tab.corpus].value != FORM[2] for done in own)
    for used, chosen in ((own[1][tab.used], str(file)), (None, None)):
        assert last(tab.search_here(used, chosen, reading, *FORM, None))[tab.shown].corpus == FORM[2]


def test_ones_own_texts_are_filtered_as_the_form_says(tab: SearchTab, tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_text("text,stars\n" + "".join(f"{text},{i}\n" for i, text in enumerate(SENTENCES)))
    found = last(tab.upload(str(file), None, *FORM[:5], "stars >= 2", 3, None))[tab.shown]
    assert {hit.cells["stars"] for hit in found.results[0].hits} <= {2, 3}
    assert read_link(found.link)[1]["where"] == ["stars >= 2"]


def test_another_column_of_the_same_file_does_not_take_the_place_of_the_first(tab: SearchTab, tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_text("first,second\n" + "".join(f"{text},another {text}\n" for text in SENTENCES))
    columns = [Reading(str(file), columns=(("text", name),)) for name in ["first", "second"] * 6]
    keys = [last(tab.upload(str(file), column, *FORM, None))[tab.corpus].value for column in columns]
    assert len(set(keys)) == len(columns)


def test_a_link_keeps_the_number_of_hits_that_was_asked_for(tab: SearchTab) -> None:
    found = last(tab.search(*FORM[:4], "bold", "", 3, None))[tab.shown]
    assert len(found.results[0].hits) == 1
    assert read_link(found.link)[1]["k"] == ["3"]


def test_a_model_that_was_trained_meanwhile_is_searched_by_its_own_vectors(
    tab: SearchTab, monkeypatch: pytest.MonkeyPatch
) -> None:
    trained = tiny_model("hyper-cl", seed=2, transform=False)
    trained.info = replace(registry.describe("hyper-cl"), name="my-model")
    load = tab.pool._load
    monkeypatch.setattr(tab.pool, "_load", lambda name: trained if name == "my-model" else load(name))
    monkeypatch.setattr(registry, "describe", lambda name: trained.info)
    tab.pool.add("my-model")
    found = last(tab.search(*FORM[:3], "my-model", *FORM[4:], None))[tab.shown]
    assert found.results[0].model.name == "my-model"
    assert "my-model" in replace(found, corpus="upload-1").script(tab._names("my-model")[-1])


def test_a_file_shows_its_first_rows_and_how_long_a_search_takes(two_models: SearchTab, tmp_path: Path) -> None:
    tab, file = two_models, tmp_path / "a.csv"
    file.write_text("number,remark\n" + "".join(f"{i},<b>{text}\n" for i, text in enumerate(SENTENCES * 3)))
    opened = tab.own.open(str(file))
    assert opened[tab.own.pickers["text"]]["value"] == "remark"
    assert "&lt;b&gt;" in opened[tab.own.view]
    reading = opened[tab.own.reading]
    shown = [
        str(step[tab.sample])
        for step in tab.estimate(str(file), reading, *FORM[:2], "bi-encoder")
        if tab.sample in step
    ]
    assert f"{3 * len(SENTENCES)} texts" in shown[0]
    assert "2 conditions" in shown[-1]
    nothing = Reading(str(file), columns=(("text", "nothing"),))
    with pytest.raises(DataError, match="no column 'nothing'"):
        last(tab.estimate(str(file), nothing, *FORM[:2], "bi-encoder"))


def test_sections_show_what_the_conditions_do(tab: SearchTab) -> None:
    found = last(tab.search(*FORM, None))[tab.shown]
    done = last(grouped(tab)(found))
    assert "groups" in done[tab.grouped]
    drawn = json.loads(done[tab.group_map]["figure"])["data"]
    assert sum(len(trace["ids"]) for trace in drawn) == 6
    assert "no group" in last(tab.show_groups(found, "hdbscan", 8))[tab.grouped]
    crossed = last(crossed_by(tab)(found))
    assert "the mood" in crossed[tab.crossing]
    assert sum(json.loads(crossed[tab.flows]["figure"])["data"][0]["counts"]) == 6
    assert "finds no two of these texts" in last(tab.show_twins(found))[tab.pairs], (
        "six of them, by models of no training"
    )
    assert "condviz.search" in tab.show_exports(found)[tab.hand_out]
    assert isinstance(found, Searches)
    assert set(found.to_frame()["condition"]) == {"the sport", "the mood"}


def test_a_model_that_reads_again_groups_by_its_own_vectors(two_models: SearchTab) -> None:
    tab, form = two_models, (*FORM[:3], "bi-encoder", *FORM[4:])
    done = last(tab.search(*form, None))
    found = done[tab.shown]
    assert (found.results[0].model.name, found.results[0].read) == ("bi-encoder", 6)
    assert "stored vectors" in done[tab.result]
    asked = []
    steps = tab._run(tab.groups, found, lambda corpus, *_, model, **__: asked.append((corpus, model)), 1, "")
    last(steps)
    last(tab._run(tab.groups, found, lambda corpus, *_, model, **__: asked.append((corpus, model)), 0, ""))
    assert [model.info.name for _, model in asked] == ["bi-encoder", "hyper-cl"]
    assert {corpus.identity.model for corpus, _ in asked} == {"hyper-cl"}


def test_the_headline_says_that_nothing_matches(tab: SearchTab) -> None:
    found, other = last(tab.search(*FORM, None))[tab.shown].results
    far, *near = (
        replace(found, applies=1.0, hits=(replace(found.hits[0], good=good, percentile=40.0),))
        for good in (False, True)
    )
    other = replace(other, applies=1.0, hits=tuple(replace(hit, good=False, percentile=40.0) for hit in other.hits))
    assert "None is close" in plots.headline([far])
    assert "None is close" not in plots.headline(near)
    blank = [replace(near[0], query="😡 🎉")]
    assert "no word in the query" in plots.headline(blank), "what the model cannot read is like nothing"
    assert plots.columns(blank) == ""
    both = plots.headline([far, other])
    assert both.count("None is close") == 1
    assert f"close under <em>{found.condition}" in both
    assert f"Nor is there a sure match under <em>{other.condition}" in both
    one = plots.headline([*near, other])
    assert f"Under <em>{found.condition}" in one
    assert f"no sure match under <em>{other.condition}" in one
    silent = plots.headline([*near, replace(other, applies=0.0)])
    assert f"may say nothing about <em>{other.condition}" in silent
    assert "no sure match" not in silent
    for place, told, said in (
        (40.0, "40 %", "None is close"),
        *((p, "94 %", "a sure match takes 95 %") for p in (93.6, 94.9)),
    ):
        missed = replace(far, hits=(replace(far.hits[0], percentile=place),))
        told_so = plots.headline([missed]).replace("\N{NO-BREAK SPACE}", " ").replace("&nbsp;", " ")
        assert f"{told} of pairs" in told_so
        assert found.hits[0].text.rstrip(".") in told_so, "the answer, whether it is sure or not"
        assert said in told_so
        assert told in plots.columns([missed]), "as the headline says it"
    assert plots.columns([far, other]).count("hardly alike</b> ·") == 1 + len(other.hits), "not by colour alone"
    common = replace(far, hits=(replace(far.hits[0], percentile=98.0),))
    assert "it does not stand out" in plots.headline([common]), "98 % and not sure would contradict each other"
    assert "not sure" not in plots.columns([common])
    assert "many pairs of these texts are as close" in plots.columns([common])


def test_the_endpoint_answers_plain_json(tab: SearchTab) -> None:
    answer = tab.api_search(FORM[0], "the sport", "hyper-cl", 2)
    assert json.loads(json.dumps(answer))["hits"][0]["rank"] == 1
    for k in (0, 1_001):
        with pytest.raises(CondvizError, match="from 1 to 1,000"):
            tab.api_search(FORM[0], "the sport", "hyper-cl", k)


def test_an_example_fills_the_whole_form_and_is_searched_as_it_says(tab: SearchTab) -> None:
    done = last(tab.example(SimpleNamespace(id="0"), "hyper-cl", None))
    assert (done[tab.query], done[tab.filters.components["contains"]], done[tab.k]) == (TRIES[0][0], "", HITS)
    assert done[tab.shown].k == HITS
    with pytest.raises(DataError, match="does not exist"):
        last(tab.example(SimpleNamespace(id="²"), "hyper-cl", None))


def test_searches_and_other_kinds_of_results_have_pictures(tab: SearchTab) -> None:
    found = last(tab.search(*FORM, None))[tab.shown]
    assert SENTENCES[0] in Markup(found._repr_html_()).striptags()

    class Mine(Hits):
        """Hits of a program of somebody's own."""

    assert SENTENCES[0] in Markup(Mine(**vars(found.results[0]))._repr_html_()).striptags()


def test_the_exported_script_searches_under_every_condition(tab: SearchTab, monkeypatch: pytest.MonkeyPatch) -> None:
    found = last(tab.search(*FORM, None))[tab.shown]
    asked: list[dict] = []

    def search(**options: object) -> object:
        asked.append(options)
        return found.results[len(asked) - 1]

    monkeypatch.setenv("CONDVIZ_BACKEND", "torch")
    monkeypatch.setattr("condviz.search", search, raising=False)
    exec(found.script("hyper-cl"), {})
    assert [call["condition"] for call in asked] == ["the sport", "the mood"]
    assert {call["store"] for call in asked} == {"scenes"}
