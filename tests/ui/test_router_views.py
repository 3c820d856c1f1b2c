"""Strips, pictures, grid and handlers of the Router tab, over the stand-in core."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from condviz.errors import DataError
from condviz.types import WordReading
from condviz.ui.form_state import FormState
from condviz.ui.html import notice
from condviz.ui.pool import ModelPool
from condviz.ui.router_handlers import RouterHandlers
from condviz.ui.router_pictures import render_deletion, render_heads, render_pictures
from condviz.ui.router_record import from_link, pack_reading, to_json, to_link, to_python, unpack_reading
from condviz.ui.router_service import RouterService
from condviz.ui.router_view import MAX_CHIPS, RouterView
from condviz.ui.service import Service
from condviz.ui.strips import MIN_LIMIT, Scale, fit_scale
from tests.ui import fakes, router_fakes
from tests.ui.test_html import read
from tests.ui.test_views import HOSTILE

PAIR = ("A man skis downhill.", "A woman surfs.")
CONDITIONS = ("the sport", "the mood")


def reading(name: str, pair: tuple[str, ...] = PAIR, conditions: tuple[str, ...] = CONDITIONS) -> WordReading:
    return router_fakes.read(fakes.FakeModel(name), pair, conditions)


def record(*names: str, pair: tuple[str, ...] = PAIR, conditions: tuple[str, ...] = CONDITIONS, **changes: Any) -> dict:
    form = FormState(pair[0], pair[-1], conditions, names)
    readings = [pack_reading(reading(name, pair, conditions)) for name in names]
    return {"form": form.to_dict(), "readings": readings, "failed": {}, "depth": 0, "units": "words", **changes}


def make_handlers(broken: tuple[str, ...] = ()) -> RouterHandlers:
    engine = fakes.make_engine(("minilm", "csr", "csr-bi", "cross-encoder"), broken=broken)
    service = Service(engine, ModelPool(engine.list_models(), engine.load))
    return RouterHandlers(RouterService(service, router_fakes.make_router_engine()))


def last(steps: Any) -> dict[str, Any]:
    merged: dict[str, Any] = {}
    for step in steps:
        merged |= step
    return merged


def run(handlers: RouterHandlers, *models: str, pair: tuple[str, str] = PAIR, shown: dict | None = None) -> dict:
    return last(handlers.run(*pair, "\n".join(CONDITIONS), list(models), shown))


# ---- strips ------------------------------------------------------------------------------------------------------


def test_every_word_is_a_button_with_its_number() -> None:
    markup = RouterView(record("csr")).render()
    chips = markup.count('class="cv-tok"')
    assert chips == (2 + 1) * (4 + 3)  # two conditions and their difference, words of both sentences
    found = reading("csr").texts[0]
    value = f"{found.weights[-1, 0, 1]:.3f}".removeprefix("0")
    assert f"<small>{value}</small>" in markup
    assert "rank 1 of 4" in markup
    assert "20 % of the weight lies on special tokens" in markup


def test_models_without_a_router_stand_on_a_scale_of_their_own_and_say_so() -> None:
    markup = RouterView(record("csr", "minilm", "cross-encoder")).render()
    assert markup.count("No router: score with the word minus score without it") == 2 * 2 * 2
    for family in ("weight", "cosine", "cross"):
        assert f"cv-legend cv-scale-{family}" in markup


def test_one_scale_holds_all_strips() -> None:
    view = RouterView(record("csr", "csr@hidden", "csr-bi"))
    largest = max(text.weights[-1].max() for r in view.readings for text in r.texts)
    assert set(view.scales) == {"weight"}
    assert largest <= view.scales["weight"].limit <= 5 * largest


@pytest.mark.parametrize(("largest", "limit"), [(0.0, MIN_LIMIT), (0.013, 0.02), (0.1, 0.1), (0.11, 0.2), (3, 5)])
def test_scales_end_at_round_numbers(largest: float, limit: float) -> None:
    assert fit_scale([np.array([[-largest]])]).limit == pytest.approx(limit)


def test_signs_stand_on_diverging_scales_only() -> None:
    assert Scale(1.0).show(0.25) == ".250"
    assert Scale(1.0, signed=True).show(-0.25) == "−.250"
    assert Scale(1.0).attributes(0.5)["data_sign"] == "use"
    assert Scale(1.0, signed=True).attributes(-0.5)["data_sign"] == "neg"


def test_sub_tokens_and_lower_layers_are_other_looks_at_the_same_reading() -> None:
    pair = ("Two men ski.", "Some women surf.")  # the stand-in cuts every word in two
    words, tokens, lower = (
        RouterView(record("csr-bi", pair=pair, **look)).render() for look in ({}, {"units": "tokens"}, {"depth": 1})
    )
    assert tokens.count('class="cv-tok"') == 2 * words.count('class="cv-tok"')
    assert "Layer 6." in words
    assert "Layer 5." in lower
    assert 'data-text="0t"' in tokens  # held apart from the words of pictures and heads


def test_the_headline_names_the_heaviest_words() -> None:
    found = reading("csr").texts[0]
    tops = [found.words[int(place)].text for place in found.weights[-1].argmax(axis=-1)]
    assert all(top in read(RouterView(record("csr")).render().split("</p>")[0]).text for top in tops)
    single = RouterView(record("csr", conditions=("the sport",))).render()
    assert 'data-testid="difference"' not in single


def test_the_headline_of_several_models_counts_those_whose_word_changes() -> None:
    deaf = reading("csr")
    same = [replace(found, weights=found.weights[:, [0, 0]]) for found in deaf.texts]
    shown = record("csr", "csr-bi", "csr-prefix")
    shown["readings"][0] = pack_reading(replace(deaf, texts=tuple(same)))
    headline = read(RouterView(shown).render().split("</p>")[0]).text
    found = reading("csr-bi").texts[0]
    first, second = (found.words[int(place)].text for place in found.weights[-1].argmax(axis=-1))
    assert "2 of 3 models turn to another word: " in headline
    assert f"weighs \N{LEFT DOUBLE QUOTATION MARK}{first}" in headline
    assert f"\N{LEFT DOUBLE QUOTATION MARK}{second}" in headline
    shown["readings"] = shown["readings"][:1]
    assert "alike" in read(RouterView(shown).render().split("</p>")[0]).text


def test_failed_models_leave_the_others() -> None:
    markup = RouterView(record("csr", failed={"CSR, Heavy": "does not fit"})).render()
    assert "does not fit" in markup
    assert "strips-1" in markup


def test_too_many_words_for_a_browser_are_refused() -> None:
    long = " ".join(f"word{i}" for i in range(MAX_CHIPS // 2))
    with pytest.raises(DataError, match="at most 6,000 can be shown"):
        RouterView(record("csr", pair=(long, "b")))


@pytest.mark.parametrize("kind", ["strips", "tokens", "pictures", "heads", "deletion"])
def test_no_text_becomes_markup(kind: str) -> None:
    pair, conditions = (HOSTILE, "b c"), (HOSTILE, "d")
    model = fakes.FakeModel("csr-bi")
    model.info = fakes.make_info("csr-bi", title=HOSTILE)
    found = router_fakes.read(model, pair, conditions)
    shown = record("csr-bi", pair=pair, conditions=conditions) | {"readings": [pack_reading(found)]}
    markup = {
        "strips": lambda: RouterView(shown).render(),
        "tokens": lambda: RouterView(shown | {"units": "tokens"}).render(),
        "pictures": lambda: render_pictures(router_fakes.pictures(model, HOSTILE, conditions), place=0, condition=0),
        "heads": lambda: render_heads(router_fakes.heads(model, HOSTILE, HOSTILE), place=0),
        "deletion": lambda: render_deletion([(model.info, router_fakes.delete(model, found, 2))], 2, pair=True),
    }[kind]()
    assert "<img" not in markup
    assert not {"img", "script"} & set(read(markup).tags)


def test_pictures_say_what_cannot_be_seen_in_them() -> None:
    one = render_pictures(router_fakes.pictures(fakes.FakeModel("csr"), *PAIR[:1], CONDITIONS), place=0, condition=1)
    assert "cannot see the condition" in one
    assert "The same under every condition" in one
    prefix = router_fakes.pictures(fakes.FakeModel("csr-prefix"), PAIR[0], CONDITIONS)
    assert "does not compute this row" in render_pictures(prefix, place=0, condition=0)


def test_heads_are_a_grid_of_buttons_with_the_values_beside_them() -> None:
    markup = render_heads(router_fakes.heads(fakes.FakeModel("csr"), PAIR[0], "the sport"), place=1)
    assert markup.count('class="cv-head"') == 3 * 4
    values = next(value for value in read(markup).values if value and value.startswith("{"))
    assert np.array(json.loads(values)["condition"]).shape == (3, 4, 4)


# ---- records -----------------------------------------------------------------------------------------------------


def test_readings_come_back_exactly() -> None:
    for name in ("csr-bi", "minilm"):
        before = reading(name)
        after = unpack_reading(json.loads(json.dumps(pack_reading(before), allow_nan=False)))
        assert after.model == before.model
        for old, new in zip(before.texts, after.texts, strict=True):
            assert new.words == old.words
            np.testing.assert_array_equal(new.weights, old.weights)
            np.testing.assert_allclose(new.token_weights, old.token_weights, atol=1e-7)
        np.testing.assert_array_equal(after.scores, before.scores)


def test_links_come_back_and_keep_clear_of_the_compare_tab() -> None:
    form = FormState("a & b", "c=d", ("x", "y", "z"), ("csr", "csr@hidden"), 2, 0)
    query = to_link(form)
    assert from_link("?s1=other&" + query) == form
    assert from_link("?s1=other&c=x") is None
    assert from_link("t=router&rs1=%FF&rd=9-9") is not None
    assert from_link("t=router&" + "rc=a&" * 500) is None


def test_exports_name_models_and_revisions() -> None:
    readings = [reading("csr"), reading("minilm")]
    for payload in (to_json(readings), to_python(readings)):
        assert all(r.model.name in payload and r.model.revision in payload for r in readings)
    compile(to_python([reading("csr", (HOSTILE, 'quote " \u2028'), (HOSTILE, "b"))]), "copied", "exec")


# ---- handlers ----------------------------------------------------------------------------------------------------


def test_a_run_shows_strips_pictures_and_the_test() -> None:
    done = run(make_handlers(), "csr", "csr@random", "minilm")
    assert done["notice"] == ""
    assert "strips-1" in done["result"]
    assert 'data-testid="pictures"' in done["detail"]
    assert done["deletion"].count('class="cv-deletion"') == 3
    assert done["cancel"]["visible"] is False


def test_a_single_sentence_is_enough() -> None:
    done = run(make_handlers(), "csr", pair=("A man skis.", "  "))
    assert "strips-0" in done["result"]
    assert "strips-1" not in done["result"]
    assert "the embedding" in done["deletion"]


def test_one_broken_model_or_part_leaves_the_rest() -> None:
    done = run(make_handlers(broken=("csr-bi",)), "csr", "csr-bi")
    assert "is truncated" in done["result"]
    assert "strips-1" in done["result"]
    done = run(make_handlers(), "csr", pair=("boom one", "b c"))
    assert "Unexpected error" in done["deletion"]
    assert "strips-1" in done["result"]


def test_without_a_router_there_is_a_word_instead_of_pictures() -> None:
    assert "Choose a CSR model" in run(make_handlers(), "minilm")["detail"]


@pytest.mark.parametrize(
    ("models", "pair", "message"),
    [
        ((), PAIR, "Choose 1 to 8 models"),
        (("nobody",), PAIR, "No model is called 'nobody'"),
        (("csr@magic",), PAIR, "No model is called 'csr@magic'"),
        (("csr",), ("", "b"), "Sentence 1 is empty"),
    ],
)
def test_requests_that_cannot_be(models: tuple, pair: tuple, message: str) -> None:
    with pytest.raises(DataError, match=message):
        run(make_handlers(), *models, pair=pair)


def test_looks_change_the_picture_and_not_the_reading() -> None:
    handlers = make_handlers()
    shown = run(handlers, "csr-bi")["shown"]
    swapped = last(handlers.look({"first": 1}, shown))["shown"]
    assert (swapped["form"]["first"], swapped["form"]["second"]) == (1, 0)
    assert "Layer 5." in last(handlers.look({"depth": 1}, shown))["result"]
    assert last(handlers.look({"units": 1}, shown))["shown"]["units"] == "tokens"
    detail = last(handlers.detail({"text": 1}, shown))
    assert detail["shown"]["detail"] == [0, 1, 0]
    again = last(handlers.delete({"delete": 0}, shown))
    assert "heaviest word," in again["deletion"]


@pytest.mark.parametrize("data", [None, {}, {"first": "1"}, {"first": -1}, {"first": True}, {"a": 1, "b": 2}, [1]])
def test_what_the_browser_sends_is_checked(data: Any) -> None:
    handlers = make_handlers()
    shown = run(handlers, "csr")["shown"]
    with pytest.raises(DataError, match="no such choice"):
        last(handlers.look(data, shown))
    with pytest.raises(DataError, match="no condition number 8"):
        last(handlers.look({"first": 7}, shown))


def test_the_example_is_read_once_and_never_over_a_link() -> None:
    handlers = make_handlers()
    form = (*PAIR, "\n".join(CONDITIONS), ["csr"])
    shown = last(handlers.first("", *form, None))["shown"]
    assert shown["link"] is False
    assert set(last(handlers.first("", *form, shown))) == {"notice"}
    assert set(last(handlers.first("t=router&rs1=a", *form, None))) == {"notice"}


def test_a_link_fills_the_form_and_opens_the_tab() -> None:
    done = last(make_handlers().open_link("t=router&rs1=One.&rc=a&rc=b&rm=csr%40hidden&rm=nobody", None))
    assert done["tabs"]["selected"] == "router"
    assert done["models"] == ["csr@hidden"]
    assert done["shown"]["form"]["sentence1"] == "One."
    assert set(last(make_handlers().open_link("s1=One.", None))) == {"notice"}


def test_a_stopped_run_says_so() -> None:
    assert last(make_handlers().stop())["notice"] == notice("Stopped", "What was ready stays.", tone="info")
