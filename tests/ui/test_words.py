"""The Words tab, driven through its handlers over tiny models."""

from __future__ import annotations

import re
from dataclasses import replace

import gradio as gr
import pytest

import condviz
from condviz.analysis.words import WordReading
from condviz.data.examples import load_examples
from condviz.errors import CheckpointError, DataError, UnknownModelError
from condviz.methods import ConditionalScorer
from condviz.models import registry
from condviz.plots.words import heaviest_word
from condviz.ui import words
from condviz.ui.pool import ModelPool
from condviz.ui.state import read_link
from condviz.ui.words import TAB, WordsTab
from tests.pages import build_view, last
from tests.tiny import SENTENCES, tiny_backbone, tiny_model

NAMES = ("bi-encoder", "csr", "csr-bi", "cross-encoder", "hyper-cl")
ONE, TWO = SENTENCES[:2]
CONDITIONS = "the sport\nthe mood"


@pytest.fixture(scope="module")
def tab() -> WordsTab:
    backbone = tiny_backbone()

    def load(name: str) -> ConditionalScorer:
        if name == "hyper-cl":
            raise CheckpointError("The file is cut short.")
        info = registry.describe(name)
        model = tiny_model(info.method, backbone=backbone)
        model.info = replace(info, revision=model.fingerprint[:12])
        return model

    return build_view(TAB, ModelPool(NAMES, load))


def read(tab: WordsTab, sentence: str = ONE, second: str = "", model: str = "csr-bi") -> WordReading:
    return last(tab.read(sentence, second, CONDITIONS, model, None))[tab.shown]


def test_it_opens_on_the_best_trained_router_and_lists_routers_first(tab: WordsTab) -> None:
    assert tab.default == "csr-bi"
    assert {name for _, name in tab.choices()[:2]} == {"csr", "csr-bi"}
    assert tab.choices()[0][1] == tab.default
    assert "csr@hidden" in {name for _, name in tab._readers()}


def test_a_reading_shows_text_headline_and_link(tab: WordsTab) -> None:
    done = last(tab.read(ONE, "", CONDITIONS, "csr-bi", None))
    view = done[tab.result]
    assert 'data-ready="true"' in view
    assert view.count('type="radio"') == 2
    asked, values = read_link(words._link(done[tab.shown]))
    assert (asked, words._texts(values)) == ("words", (ONE, "", ["the sport", "the mood"], ["csr-bi"]))


def test_links_of_the_first_edition_still_open(tab: WordsTab) -> None:
    _, values = read_link("?t=router&rs1=a+man+runs&rs2=a+cat&rc=the+mood&rc=the+sport&rm=bi-encoder&rm=csr-bi&rd=0.1")
    done = last(tab.open_link(values, "csr", None))
    assert done[tab.model] == "csr-bi"  # the best router of those named leads
    assert [text.sentence for text in done[tab.shown].texts] == ["a man runs", "a cat"]


def test_a_link_names_the_condition_that_is_shown(tab: WordsTab) -> None:
    done = last(tab.open_link({"s1": [ONE], "c": ["the sport", "the mood"], "at": ["1"]}, "csr", None))
    assert 'value="1" checked' in done[tab.result]
    blank = last(tab.open_link({"s1": [ONE], "c": ["the sport", " "], "at": ["1"]}, "csr", None))
    assert blank[tab.shown].conditions == ("the sport",)


def test_every_example_fills_the_form(tab: WordsTab) -> None:
    for name in (*words.WORKS, *words.FAILING):
        event = gr.EventData(None, {"id": name})
        done = last(tab.example(event, None))
        assert done[tab.model] == tab.default
        assert done[tab.shown].texts[0].sentence == done[tab.sentence]


def test_an_example_that_is_gone_is_told(tab: WordsTab) -> None:
    with pytest.raises(DataError, match="does not exist"):
        last(tab.example(gr.EventData(None, {"id": "gone"}), None))


def test_sections_show_what_they_are_named_after(tab: WordsTab) -> None:
    reading = read(tab)
    assert "cv-word-strips" in tab.show_strips(reading, False, None)[tab.strips]
    assert tab.show_strips(reading, True, -2)[tab.layer].value == -2
    assert "cv-signed" in tab.show_difference(reading, None, None)[tab.difference]
    assert last(tab.show_heads(reading, 1))[tab.head_condition].value == 1
    assert "Figure 7" in last(tab.show_figures(reading, None))[tab.figures]
    assert "heaviest words" in last(tab.show_deletion(reading, 2))[tab.deletion]
    exports = tab.show_exports(reading)
    assert "condviz.read_words(" in exports[tab.hand_out]
    assert len(exports[tab.table]) == 2 * len(ONE.split())


def test_a_second_sentence_is_read_beside_the_first(tab: WordsTab) -> None:
    reading = read(tab)
    assert "second sentence" in last(tab.show_pair(reading, ONE, ""))[tab.pair]
    done = last(tab.show_pair(reading, ONE, TWO))
    assert len(done[tab.shown].texts) == 2
    # Under each condition one below the other, with how alike they are once.
    assert re.findall(r'<h4>(.*?)</h4>|data-place="(.)"|the two (together)', done[tab.pair]) == [
        found for condition in CONDITIONS.splitlines() for found in
        [(condition, "", ""), ("", "", "together"), ("", "0", ""), ("", "1", "")]
    ]  # fmt: skip
    assert 'data-place="1"' not in tab.show_strips(done[tab.shown], False, None)[tab.strips]


def test_a_second_sentence_stays_and_is_seen_beside_another_first_one(tab: WordsTab) -> None:
    both = read(tab, ONE, TWO)
    assert len(both.texts) == 2
    steps = list(tab.read("A cat sleeps.", TWO, CONDITIONS, "csr-bi", both))
    section, done = tab.parts["pair"].accordion, next(step for step in steps if tab.shown in step)
    assert [text.sentence for text in done[tab.shown].texts] == ["A cat sleeps.", TWO]
    assert "sleeps" in done[tab.pair]
    assert section not in done
    assert steps[-1][section].open


def test_a_second_sentence_of_another_page_goes_with_the_first_that_it_came_with(tab: WordsTab) -> None:
    both = read(tab, ONE, TWO)
    again = last(tab.read_own(ONE, TWO, "the weather", "csr-bi", both, TWO))
    assert len(again[tab.shown].texts) == 2
    steps = list(tab.read_own("A cat sleeps.", TWO, CONDITIONS, "csr-bi", both, TWO))
    assert steps[0] == {tab.sentence2: ""}
    assert [text.sentence for text in steps[-1][tab.shown].texts] == ["A cat sleeps."]
    typed = last(tab.read_own("A cat sleeps.", "A dog runs.", CONDITIONS, "csr-bi", both, TWO))
    assert len(typed[tab.shown].texts) == 2


def test_models_without_a_router_say_so(tab: WordsTab) -> None:
    reading = read(tab, second=TWO, model="bi-encoder")
    assert "has no router" in tab._picture(reading)
    assert "no router" in last(tab.show_deletion(reading, 1))[tab.deletion]
    with pytest.raises(Exception, match="has no router"):
        last(tab.show_heads(reading, 0))


def test_models_are_read_side_by_side_and_a_broken_one_stands_alone(
    tab: WordsTab, monkeypatch: pytest.MonkeyPatch
) -> None:
    reading = read(tab)
    view = last(tab.show_models(reading, ["csr@three-layers", "hyper-cl", "bi-encoder", "magic"]))[tab.side]
    assert "CSR, three layers (untrained)" in view
    assert "The file is cut short." in view
    with pytest.raises(DataError, match="at most 8"):
        last(tab.show_models(reading, [name for _, name in tab._readers()]))
    monkeypatch.setattr(words, "MAX_MODELS", 1)
    assert last(tab.show_models(reading, []))[tab.others].value == [tab.default]  # of more routers, the first


def test_the_endpoint_answers_plain_json(tab: WordsTab) -> None:
    answer = tab.api_router(ONE, TWO, ["the sport"], ["csr", "csr@hidden", "bi-encoder"], 1)
    assert [model["source"] for model in answer["models"]] == ["router", "router", "leave-one-out"]
    assert answer["models"][2]["deletion"]["held_out"]
    with pytest.raises(UnknownModelError):
        tab.api_router(ONE, "", ["the sport"], ["../secret"])
    with pytest.raises(DataError, match="1 to 8 models"):
        tab.api_router(ONE, "", ["the sport"], [])


def test_too_many_words_for_a_browser_are_refused(tab: WordsTab) -> None:
    reading = read(tab)
    with pytest.raises(DataError, match="at most"):
        words._check_size([reading] * 2_000)


@pytest.mark.slow
def test_the_shipped_router_reads_the_right_words_where_the_tab_says_so() -> None:
    model = condviz.load("csr-bi", precision="float32")
    examples = {example.id: example for example in load_examples()}

    def tops(name: str) -> list[str]:
        reading = condviz.read_words(model, examples[name].sentence1, examples[name].conditions)
        return [heaviest_word(reading.texts[0], place) for place in range(len(reading.conditions))]

    right = {"monks-and-grandmothers": ["Two", "tennis"], "cat-on-piano": ["asleep", "cat", "ginger"]}
    right["boat-two-five"] = ["Two", "fishermen", "dawn"]
    assert {name: tops(name) for name in words.WORKS} == right
    for name, (place, expected) in words.FAILING.items():
        assert tops(name)[place] != expected
