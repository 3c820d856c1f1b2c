"""Whether a sentence tells what a condition asks for: what the shipped head says, and how it reads texts."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch

from condviz.encoder.applies import WEIGHTS, AppliesHead, applies, token_states
from condviz.encoder.pretrained import load_backbone
from condviz.paths import ASSETS
from condviz.types import TOLD
from tests.tiny import SENTENCES, encoded_rows, tiny_backbone

SURFING = "Three men are surfing big waves at sunrise."


def test_each_text_is_encoded_once_and_alone() -> None:
    backbone = tiny_backbone()
    with encoded_rows(backbone) as rows:
        first = token_states(backbone, [*SENTENCES, SENTENCES[0]])
        again = token_states(backbone, SENTENCES[1:2])
    assert sum(rows) == len(SENTENCES)
    assert torch.equal(first[1], again[0])
    assert [len(states) for states in first] == [len(text.split()) for text in (*SENTENCES, SENTENCES[0])]


@pytest.mark.parametrize("half", [False, True])
def test_means_of_the_same_texts_come_from_the_same_pass_where_they_are_exact(half: bool) -> None:
    backbone, alone = tiny_backbone(), tiny_backbone()
    backbone, items = backbone.to(torch.bfloat16) if half else backbone, [(text,) for text in SENTENCES]
    token_states(backbone, SENTENCES)
    with encoded_rows(backbone) as rows:
        vectors = backbone.encode(items, pooling="mean")
        backbone.encode(items, pooling="cls")
    assert sum(rows) == len(SENTENCES) * (2 if half else 1)
    if not half:
        torch.testing.assert_close(vectors, alone.encode(items, pooling="mean"), rtol=0, atol=1e-6)


def test_a_grid_says_what_single_pairs_say() -> None:
    torch.manual_seed(0)
    head = AppliesHead(8, width=4, code=2).eval()
    texts = [torch.randn(length, 8) for length in (1, 7, 3)]
    asked = [torch.randn(length, 8) for length in (2, 1)]
    with torch.no_grad():
        grid = head(texts, asked)
        single = torch.stack([torch.cat([head([text], [one])[0] for text in texts]) for one in asked])
    torch.testing.assert_close(grid, single)


def test_nothing_gives_an_empty_grid() -> None:
    assert applies([], ["the sport"]).shape == (0, 1)
    assert applies([SURFING], []).shape == (1, 0)


@pytest.mark.slow
def test_what_a_sentence_tells_stands_above_what_it_does_not() -> None:
    told = applies([SURFING], ["the sport", "the number of people", "the time of day"])
    untold = applies([SURFING], ["banana", "asdf qwer", "die Farbe der Jacke", "the terms of payment", ""])
    assert told.dtype == np.float32
    assert (told >= TOLD).all()
    assert (untold < TOLD).all()


@pytest.mark.slow
def test_plain_texts_of_other_domains_raise_no_alarm() -> None:
    lines = (ASSETS / "applies_pairs.tsv").read_text(encoding="utf-8").splitlines()[1:]
    rows = [line.split("\t") for line in lines]
    assert len(rows) == 212
    found = applies([row[1] for row in rows], [row[2] for row in rows]).diagonal()
    assert (found < TOLD).mean() <= 0.03
    # Every text can be judged, and a sentence unlike all that was learnt from takes a far clearer case.
    assert (applies([SURFING, "Disk /dev/sda1 is 91 % full."], ["the sentiment", "the severity"]) >= TOLD).all()
    assert (applies(["Disk /dev/sda1 is 91 % full."], ["asdf qwer"]) < TOLD).all()


@pytest.mark.slow
def test_states_of_the_default_encoder_fit_the_head() -> None:
    states = token_states(load_backbone(precision="float32"), ["banana", "."])
    assert all(state.shape[1] == AppliesHead().center.shape[0] for state in states)


def test_its_error_rates_are_stored_with_it() -> None:
    figures = json.loads(WEIGHTS.with_suffix(".json").read_text(encoding="utf-8"))["figures"]
    assert all(0.5 < row["auroc"] <= 1 and row["others"] for row in figures)
    assert WEIGHTS.stat().st_size < 2**20


def test_a_number_may_be_the_measure_that_is_asked_for() -> None:
    texts, asked = (
        ["The Millers want breakfast at six.", "The Millers want their breakfast."],
        ["the time", "the price"],
    )
    assert (applies(texts, asked) >= TOLD).tolist() == [[True, False], [False, False]]
