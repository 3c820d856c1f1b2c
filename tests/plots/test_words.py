"""Pictures of words: what a reader can check in them, and that no text becomes markup."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

from condviz.analysis.attention import read_heads, read_pictures
from condviz.analysis.words import WordReading, read_words
from condviz.data.texts import is_content
from condviz.methods import CSRPrefix
from condviz.methods.baselines import BiEncoder
from condviz.methods.catalog import BiEncoderConfig, CSRPrefixConfig
from condviz.methods.csr import CSR
from condviz.plots import words
from condviz.types import Word
from tests.tiny import SENTENCES, tiny_model

TEXT = "The man <b>surfs</b>, 3 times & more."
CONDITIONS = ["the sport", "the <i>mood</i>"]


@pytest.fixture(scope="module")
def csr() -> CSR:
    return tiny_model("csr", num_routed_layers=2)


@pytest.fixture(scope="module")
def reading(csr: CSR) -> WordReading:
    return read_words(csr, [TEXT, SENTENCES[1]], CONDITIONS)


def numbers(markup: str, word: str) -> list[str]:
    """The printed numbers of a word."""
    found = re.search(rf">{re.escape(word)}</span><small[^>]*>(.*?)</small>", markup)
    assert found, word
    return re.findall(r"<i>(.*?)</i>", found.group(1))


def test_every_picture_escapes_what_was_typed(csr: CSR, reading: WordReading) -> None:
    prefix = CSRPrefix(csr.backbone, CSRPrefixConfig()).eval()
    pictures = [
        words.running_text(reading), words.strips([reading]), words.strips([reading], tokens=True),
        words.difference([reading], 0, 1), words.headline(reading),
        *(words.figures(read_pictures(model, TEXT, CONDITIONS)) for model in (csr, prefix)),
        words.heads(read_heads(csr, TEXT, CONDITIONS[1])), reading._repr_html_(),
    ]  # fmt: skip
    for markup in pictures:
        assert "<b>surfs" not in markup
        assert "<i>mood" not in markup


def test_content_words_carry_a_number_for_each_condition_and_others_none(reading: WordReading) -> None:
    markup = words.running_text(reading)
    place = [word.text for word in reading.texts[0].words].index("surfs")
    values = reading.texts[0].weights[-1, :, place]
    assert numbers(markup, "surfs") == [f"{value:.2f}".replace("0.", ".", 1) for value in values]
    assert len(numbers(markup, "3")) == 2
    assert numbers(markup, "The") == numbers(markup, ",") == []
    # What is not printed can still be read: in the account of each word, under every condition.
    account = re.search(r'data-said="([^"]*)"[^>]*><span dir="auto">The<', markup)
    assert account
    assert [line.partition(":")[0] for line in account.group(1).splitlines()[1:]] == [
        "the sport",
        "the &lt;i&gt;mood&lt;/i&gt;",
    ]


def test_the_text_stays_as_it_was_typed(reading: WordReading) -> None:
    line = re.search(r"<p class=\"cv-line .*?</p>", words.running_text(reading), re.DOTALL)
    assert line
    plain = re.sub(r"<small.*?</small>|<[^>]*>", "", line.group())
    assert plain.strip() == TEXT.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def test_the_headline_names_the_heaviest_words(reading: WordReading) -> None:
    tops = {words.heaviest_word(reading.texts[0], i) for i in range(2)}
    trained = replace(reading, model=replace(reading.model, trained=True))
    assert all(top in words.headline(trained) for top in tops)
    assert words.headline(under_one_condition(trained)).count("<em>") == 1


def test_untrained_models_and_untold_conditions_make_no_headline(reading: WordReading) -> None:
    top = words.heaviest_word(reading.texts[0], 0)
    assert f"“{top}”" not in words.headline(reading)
    trained = replace(reading, model=replace(reading.model, trained=True), untold=(0, 1))
    assert f"“{top}”" not in words.headline(trained)
    assert "cv-caution" in words.headline(replace(trained, untold=(1,)))
    assert 'class="cv-untold"' in words.running_text(replace(trained, untold=(1,)))


def test_the_headline_tells_what_was_not_read(reading: WordReading) -> None:
    trained = replace(reading, model=replace(reading.model, trained=True))
    top, [text, *rest] = words.heaviest_word(reading.texts[0], 0), reading.texts
    cut = words.headline(replace(trained, texts=(replace(text, truncated=True), *rest)))
    assert cut.count("cv-caution") == words.headline(trained).count("cv-caution") + 1
    assert f"“{top}”" not in words.headline(replace(trained, texts=(replace(text, sentence="🏖️ !"), *rest)))


def test_the_headline_names_the_word_that_the_picture_shows_darkest(csr: CSR) -> None:
    reading = read_words(csr, ["so 😡 !"], ["the mood"])
    model, text = replace(reading.model, trained=True), reading.texts[0]

    def told(*weights: float) -> str:
        shown = replace(text, weights=np.full_like(text.weights, weights))
        return words.headline(replace(reading, model=model, texts=(shown,), untold=()))

    assert "“so”" in told(0.3, 0.1, 0.6), "a mark says nothing"
    assert "“😡” is no word to these models" in told(0.1, 0.8, 0.1)
    assert "no word has more than 4 %" in told(0.04, 0.01, 0.01)
    assert "spread thinly" not in told(0.3, 0.1, 0.1)
    twice = read_words(csr, ["Tennis or chess."], ["the mood"])
    near = replace(twice.texts[0], weights=np.full_like(twice.texts[0].weights, [0.23, 0.0, 0.22, 0.0]))
    assert "“Tennis”</strong> and <strong>“chess”" in words.headline(
        replace(twice, model=model, texts=(near,), untold=())
    )


def under_one_condition(reading: WordReading) -> WordReading:
    """The reading under its first condition only."""
    texts = tuple(replace(text, conditions=text.conditions[:1], weights=text.weights[:, :1]) for text in reading.texts)
    return replace(reading, texts=texts, untold=())


def test_a_scale_holds_all_values_and_ends_round() -> None:
    assert words.fit_scale([np.array([0.31, -0.2])]).limit == 0.5
    assert words.fit_scale([np.zeros(3)]).limit == words.MIN_LIMIT
    scale = words.Scale(0.5, signed=True)
    assert (scale.tint(0.25), scale.tint(-9), scale.tint(float("nan"))) == ("0.500", "-1.000", "0")
    assert (scale.show(-0.25), scale.show(2)) == ("−.250", "+2.000")


def test_without_a_router_the_scale_has_two_sides(csr: CSR) -> None:
    plain = read_words(BiEncoder(csr.backbone, BiEncoderConfig()).eval(), SENTENCES[:2], ["the sport"])
    markup = words.strips([plain])
    assert "cv-scale-cosine cv-signed" in markup
    assert "of the weight" not in markup


def test_the_difference_is_that_of_the_two_conditions(reading: WordReading) -> None:
    weights = reading.texts[1].weights.copy()
    place = next(i for i, word in enumerate(reading.texts[1].words) if is_content(word.text))
    weights[-1, :, place] = 0.1, 0.4
    changed = replace(reading, texts=(reading.texts[0], replace(reading.texts[1], weights=weights)))
    word = reading.texts[1].words[place].text
    assert numbers(words.difference([changed], 0, 1).rpartition("<section")[2], word) == ["−.30"]


def test_a_dark_word_has_its_number_even_if_it_is_a_function_word() -> None:
    spoken = (Word("before", 0, 6), Word("the", 7, 10), Word("exam", 11, 15))
    values = np.array([[0.8, 0.1, 0.2]], np.float32)
    cells = words.make_cells("before the exam", spoken, values, words.Scale(1.0, "weight", signed=False))
    assert [any(cell.shown) for cell in cells] == [True, False, True]
    cells = words.make_cells("before the exam", spoken, values / 10, words.Scale(1.0, "weight", signed=False))
    assert [any(cell.shown) for cell in cells] == [True, False, True], "the darkest, pale as it is"
