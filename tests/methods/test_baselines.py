"""The baselines: token layout of the joint sequences, separators in user text, control without condition."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from condviz.errors import ConfigError, TruncationWarning
from condviz.methods import ConditionalScorer
from tests.tiny import CONDITIONS, SENTENCES, WORDS, encoded_rows, tiny_model

LONG = " ".join(WORDS * 3)


def tokens(method: ConditionalScorer, *items: tuple[str, ...]) -> list[str]:
    return method.backbone.tokenizer.convert_ids_to_tokens(method.tokenize(list(items))[0][0].ids)


@pytest.mark.parametrize(("kind", "cls", "sep"), [("bert", "[CLS]", "[SEP]"), ("roberta", "<s>", "</s>")])
def test_the_cross_encoder_reads_one_string(kind: str, cls: str, sep: str) -> None:
    item, condition = ("a man", "a cat", "the mood"), [cls, "the", "mood", sep]
    sentences = [cls, "a", "man", sep, "a", "cat", sep]
    assert tokens(tiny_model("cross-encoder", kind), item) == [*sentences, *condition[1:]]
    assert tokens(tiny_model("cross-encoder", kind, inputs="sentences"), item) == sentences
    assert tokens(tiny_model("cross-encoder", kind, inputs="condition"), item) == condition


@pytest.mark.parametrize(("kind", "sep"), [("bert", "[SEP]"), ("roberta", "</s>")])
def test_separators_typed_by_people_do_not_part_the_texts(kind: str, sep: str) -> None:
    method = tiny_model("cross-encoder", kind)
    typed = f"a {sep} man"
    found = tokens(method, (typed, "a cat", f"{sep}{sep}"))
    assert found.count(sep) == 3  # two written by the method, one by the tokenizer
    one, other = method.score([typed], ["a cat"], ["the mood"]), method.score(["a"], [f"man {sep} a cat"], ["the mood"])
    assert one != other
    plain = method.backbone.encode([(method.join("a", "cat", None),)], pooling="cls")
    assert not torch.equal(
        plain, method.backbone.encode([(method.join("a", "cat", None),)], pooling="cls", separators=True)
    )


def test_the_cross_encoder_of_a_decoder_puts_end_tokens_between_the_texts() -> None:
    method = tiny_model("cross-encoder", "qwen2", pooling="last")
    ((row,),) = method.tokenize([("a <end> cat", "a man", "the mood")])
    found = method.backbone.tokenizer.convert_ids_to_tokens(row.ids)
    assert [place for place, token in enumerate(found) if token == "<end>"] == [5, 8, 11]  # that of the text is broken
    one, other = method.score(["a"], ["man a cat"], ["the mood"]), method.score(["a man"], ["a cat"], ["the mood"])
    assert np.isfinite(one).all()
    assert one != other


def test_texts_that_nothing_can_part_are_refused() -> None:
    method = tiny_model("cross-encoder", "qwen2")
    method.backbone.tokenizer.eos_token = None
    with pytest.raises(ConfigError, match="neither a separator nor an end token"):
        method.score(["a"], ["a"], ["a"])


def test_the_cross_encoder_without_condition_reads_two_sentences() -> None:
    method, ablation = tiny_model("cross-encoder"), tiny_model("cross-encoder", inputs="sentences")
    ablation.load_state_dict(method.state_dict())
    np.testing.assert_array_equal(
        method.score_unconditional(SENTENCES, SENTENCES[::-1]), ablation.score(SENTENCES, SENTENCES[::-1], CONDITIONS)
    )


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("bert", ["[CLS]", "a", "man", "[SEP]", "the", "mood", "[SEP]"]),
        ("roberta", ["<s>", "a", "man", "</s>", "</s>", "the", "mood", "</s>"]),
    ],
)
def test_the_bi_encoder_reads_a_pair(kind: str, expected: list[str]) -> None:
    method = tiny_model("bi-encoder", kind)
    assert tokens(method, ("a man", "the mood")) == expected
    types = method.tokenize([("a man", "the mood")])[0][0].types
    assert sum(types) == (3 if kind == "bert" else 0)


def test_a_long_sentence_leaves_the_condition_in_a_pair() -> None:
    method = tiny_model("bi-encoder")
    with pytest.warns(TruncationWarning):
        one, other = (method.encode([LONG * 2], [text]) for text in ("the mood", "the sport"))
    assert np.abs(one - other).max() > 1e-4


@pytest.mark.parametrize("name", ["tri-encoder", "unconditional"])
def test_tri_encoders_cost_one_pass_per_text(name: str) -> None:
    method = tiny_model(name)
    with encoded_rows(method.backbone) as rows:
        method.encode_grid(SENTENCES, CONDITIONS[:3])
        method.score(SENTENCES, SENTENCES[::-1], CONDITIONS)
    assert sum(rows) == len(SENTENCES) + 3


def test_models_of_one_encoder_encode_a_text_once() -> None:
    one = tiny_model("tri-encoder", pooling="mean")
    other = tiny_model("unconditional", backbone=one.backbone)
    one.score(SENTENCES, SENTENCES[::-1], CONDITIONS)
    with encoded_rows(one.backbone) as rows:
        other.score(SENTENCES, SENTENCES[::-1], CONDITIONS)
    assert rows == []


@torch.no_grad()
def test_hadamard_multiplies() -> None:
    method = tiny_model("tri-encoder")
    expected = method.encode_sentences(SENTENCES) * method.encode_conditions(CONDITIONS)
    np.testing.assert_allclose(method.encode(SENTENCES, CONDITIONS), expected, atol=1e-6)


def test_training_one_model_changes_the_identity_of_all_that_share_its_encoder() -> None:
    one = tiny_model("tri-encoder")
    other = tiny_model("bi-encoder", backbone=one.backbone)
    before, score = other.fingerprint, other.score(SENTENCES, SENTENCES[::-1], CONDITIONS)
    one.train()
    with torch.no_grad():
        for parameter in one.backbone.parameters():
            parameter.add_(0.1 * torch.randn(parameter.shape))
    one.eval()
    assert other.fingerprint != before
    assert not np.allclose(other.score(SENTENCES, SENTENCES[::-1], CONDITIONS), score)


@pytest.mark.parametrize(
    ("name", "settings", "message"),
    [
        ("tri-encoder", {"composition": "none"}, "composition is 'none', allowed is one of hadamard, concat"),
        ("cross-encoder", {"inputs": "both"}, "inputs is 'both', allowed is one of all, sentences or condition"),
        ("unconditional", {"pooling": "max"}, "pooling is 'max', allowed is one of"),
    ],
)
def test_settings_that_cannot_be(name: str, settings: dict, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        tiny_model(name, **settings)
