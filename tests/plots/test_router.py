"""Pictures of the inside of a router."""

from __future__ import annotations

import numpy as np
import pytest

from condviz.analysis.attention import read_heads, read_pictures
from condviz.analysis.words import DeletionTest, delete_words, read_words
from condviz.methods.catalog import CSRPrefixConfig
from condviz.methods.csr import CSR, CSRPrefix
from condviz.plots import words
from tests.tiny import SENTENCES, tiny_model

TEXT = SENTENCES[1]
CONDITIONS = ["the sport", "the mood"]


@pytest.fixture(scope="module")
def csr() -> CSR:
    return tiny_model("csr", num_routed_layers=2)


def test_figures_show_what_the_model_computes(csr: CSR) -> None:
    assert "does not compute this row" in words.figures(
        read_pictures(CSRPrefix(csr.backbone, CSRPrefixConfig()).eval(), TEXT, CONDITIONS)
    )
    markup = words.figures(read_pictures(csr, TEXT, CONDITIONS), 1)
    assert [markup.count(f"Figure {i} under") for i in (5, 6, 7)] == [1, 1, 2]


def test_heads_have_a_button_each(csr: CSR) -> None:
    markup = words.heads(read_heads(csr, TEXT, CONDITIONS[0]))
    assert markup.count('class="cv-head"') == 3 * 4


def test_a_deletion_test_says_whether_it_was_held_out(csr: CSR) -> None:
    def shown(test: DeletionTest) -> str:
        return words.deletion(test, test.model)

    assert "no router" not in shown(delete_words(csr, read_words(csr, TEXT, CONDITIONS), 1, draws=3))
    random = np.full((20, 1, 1), 0.1, dtype=np.float32)
    strong = DeletionTest("m", 2, np.array([[0.5]]), random, held_out=("a", "b"))
    assert "depends on" in shown(strong)
    assert "2 other sentences" in shown(strong)
    assert "does not clearly depend" in shown(DeletionTest("m", 2, np.array([[0.1]]), random))
