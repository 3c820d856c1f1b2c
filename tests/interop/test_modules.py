"""Models as SentenceTransformers, and the evaluator for their trainer."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import condviz
from condviz import interop
from condviz.errors import ConfigError, DataError
from condviz.methods import METHODS, ConditionalEncoder
from tests.models.test_standard import OPTIONS, open_folder, trained
from tests.tiny import CONDITIONS, SENTENCES, tiny_model

ROWS = [list(pair) for pair in zip(SENTENCES, CONDITIONS, strict=True)]


@pytest.mark.parametrize("name", [name for name in METHODS if METHODS[name].encodes])
def test_a_loaded_model_is_a_sentence_transformer(name: str) -> None:
    from sentence_transformers import SentenceTransformer

    model = tiny_model(name)
    theirs = interop.to_sentence_transformer(model)
    assert isinstance(theirs, SentenceTransformer)
    np.testing.assert_allclose(theirs.encode(ROWS), model.encode(SENTENCES, CONDITIONS), atol=1e-5)
    np.testing.assert_allclose(theirs.encode(SENTENCES), model.encode(SENTENCES), atol=1e-5)
    fixed = interop.to_sentence_transformer(model, "the mood")
    np.testing.assert_allclose(fixed.encode(SENTENCES), model.encode(SENTENCES, "the mood"), atol=1e-5)
    with pytest.raises(ConfigError, match="cannot be saved"):
        fixed[0].save("somewhere")


def test_what_is_no_pair_and_no_text_is_refused() -> None:
    module = interop.ConditionalModule(tiny_model("csr"))
    for wrong in ([SENTENCES[0], ROWS[0]], [["one", "two", "three"]]):
        with pytest.raises(DataError, match=r"pairs \[sentence, condition\]"):
            module.preprocess(wrong)
    with pytest.raises(ConfigError, match="goes into the pair"):
        module.preprocess(SENTENCES, prompt="query: ")
    with pytest.raises(ConfigError, match="has no vectors"):
        interop.to_sentence_transformer(tiny_model("cross-encoder"))


def test_what_is_trained_there_is_saved_as_a_checkpoint(tmp_path: Path) -> None:
    trained(tmp_path, "hyper-cl").save_pretrained(tmp_path / "mine")
    theirs = open_folder(tmp_path / "mine", trust=True)
    before = condviz.load(tmp_path / "mine", **OPTIONS).encode(SENTENCES, CONDITIONS)
    theirs.train()
    for parameter in theirs.parameters():
        assert parameter.requires_grad
        parameter.data.mul_(1.01)
    theirs.eval()
    theirs.save_pretrained(str(tmp_path / "later"), create_model_card=False)
    again = condviz.load(tmp_path / "later", **OPTIONS)
    np.testing.assert_allclose(again.encode(SENTENCES, CONDITIONS), theirs.encode(ROWS), atol=1e-5)
    assert not np.allclose(again.encode(SENTENCES, CONDITIONS), before, atol=1e-2)


@pytest.fixture
def model() -> ConditionalEncoder:
    return tiny_model("bi-encoder")


def test_the_evaluator_compares_cosines_with_ratings(model: ConditionalEncoder) -> None:
    scores = model.score(SENTENCES, SENTENCES[::-1], CONDITIONS)
    evaluator = interop.ConditionalSTSEvaluator(SENTENCES, SENTENCES[::-1], CONDITIONS, scores, name="dev")
    found = evaluator(interop.to_sentence_transformer(model))
    assert found["dev_spearman_cosine"] == pytest.approx(1)
    assert found["dev_pearson_cosine"] == pytest.approx(1)
    assert evaluator.primary_metric == "dev_spearman_cosine"
    one = interop.ConditionalSTSEvaluator(SENTENCES, SENTENCES[::-1], "the mood", [1, 1, 1, 1])
    assert np.isnan(one(interop.to_sentence_transformer(model))["spearman_cosine"])


def test_rows_that_do_not_match_are_refused() -> None:
    with pytest.raises(DataError, match="4 pairs, 3 labels"):
        interop.ConditionalSTSEvaluator(SENTENCES, SENTENCES, CONDITIONS, [1, 2, 3])
    with pytest.raises(DataError, match="Rows do not match"):
        interop.ConditionalSTSEvaluator(SENTENCES, SENTENCES[:2], CONDITIONS, [1, 2, 3, 4])
