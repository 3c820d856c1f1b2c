"""The backbone against a plain forward of transformers, one row at a time; truncation, special tokens, threads."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import get_args

import pytest
import torch
from tokenizers import processors
from torch import Tensor
from transformers import XLMRobertaTokenizer

from condviz.encoder import Pooling
from condviz.encoder.backbone import DECODERS, Backbone, hash_tensors
from condviz.encoder.cache import EmbeddingCache
from condviz.errors import ConfigError, DataError, TruncationWarning
from tests.tiny import SENTENCES, SPECIAL, WORDS, encoded_rows, tiny_backbone

KINDS = list(SPECIAL)
POOLINGS = [name for name in get_args(Pooling) if name != "latent"]
"""That of NV-Embed has a test of its own."""
LONG = " ".join(WORDS * 10)


def reference(backbone: Backbone, ids: tuple[int, ...]) -> dict[str, Tensor]:
    """Pool one row by all the definitions, from the library's own forward without padding."""
    with torch.no_grad():
        output = backbone.model(input_ids=torch.tensor([ids]), output_hidden_states=True)
    first, before, last = output.hidden_states[0][0], output.hidden_states[-2][0], output.last_hidden_state[0]
    return {
        "cls": last[0],
        "mean": last.mean(dim=0),
        "first-last": ((first + last) / 2).mean(dim=0),
        "top-2": ((before + last) / 2).mean(dim=0),
        "last": last[-1],
    }


@pytest.mark.parametrize("kind", KINDS)
def test_poolings_are_those_of_a_plain_forward(kind: str) -> None:
    backbone = tiny_backbone(kind)
    expected = [reference(backbone, row.ids) for row in backbone.tokenize([(text,) for text in SENTENCES])]
    for pooling in POOLINGS:
        vectors = backbone.encode([(text,) for text in SENTENCES], pooling=pooling)
        assert vectors.dtype == torch.float32
        torch.testing.assert_close(vectors, torch.stack([row[pooling] for row in expected]), rtol=0, atol=1e-5)


@pytest.mark.parametrize("kind", ["bert", "roberta", "mpnet", "qwen2"])
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-12), (torch.bfloat16, 0.1)])
def test_other_precisions_agree(kind: str, dtype: torch.dtype, tolerance: float) -> None:
    backbone, exact = tiny_backbone(kind).to(dtype), tiny_backbone(kind).double()
    vectors = backbone.encode([(text,) for text in SENTENCES], pooling="mean")
    assert vectors.dtype == torch.promote_types(dtype, torch.float32)
    expected = torch.stack(
        [reference(exact, row.ids)["mean"] for row in exact.tokenize([(text,) for text in SENTENCES])]
    )
    torch.testing.assert_close(vectors.double(), expected, rtol=0, atol=tolerance)


@pytest.mark.parametrize("kind", KINDS)
def test_long_text_is_cut_and_said_to_be(kind: str) -> None:
    backbone = tiny_backbone(kind)
    with pytest.warns(TruncationWarning, match="1 of 2 texts are longer than 64 tokens"):
        vectors = backbone.encode([(LONG,), ("a cat",)], pooling="mean")
    assert vectors.isfinite().all()
    row, short = backbone.tokenize([(LONG,), ("a cat",)])
    assert (row.truncated, len(row)) == (True, 64)
    assert not short.truncated
    assert backbone.truncated([("a cat",), (LONG,), ("a cat",)]) == [(LONG,)]


@pytest.mark.parametrize("kind", KINDS)
def test_the_position_table_is_long_enough(kind: str) -> None:
    backbone = tiny_backbone(kind)
    backbone.tokenizer.model_max_length = 10**30  # as in tokenizers that state none
    with pytest.warns(TruncationWarning):
        vector = backbone.encode([(LONG,)], pooling="mean")
    assert vector.isfinite().all()
    assert len(backbone.tokenize([(LONG,)])[0]) == backbone.max_length > 60


@pytest.mark.parametrize("kind", ["bert", "roberta"])
def test_the_longer_text_of_a_pair_is_cut(kind: str) -> None:
    backbone = tiny_backbone(kind)
    (row,) = backbone.tokenize([(LONG, "the sport")])
    end = backbone.tokenizer.convert_tokens_to_ids(["the", "sport"])
    assert row.truncated
    assert list(row.ids[-3:-1]) == end


@pytest.mark.parametrize("kind", KINDS)
def test_special_tokens_typed_by_people_are_letters(kind: str) -> None:
    backbone = tiny_backbone(kind)
    tokenizer, special = backbone.tokenizer, set(SPECIAL[kind].values())
    typed = " ".join(sorted(special - {tokenizer.unk_token}))
    marks = {tokenizer.convert_tokens_to_ids(token) for token in special} - {tokenizer.unk_token_id}
    plain, row = backbone.tokenize([("a cat",), (f"a {typed} cat {typed}",)])
    assert [i for i in row.ids if i in marks] == [i for i in plain.ids if i in marks]
    assert backbone.encode([(typed,)], pooling="mean").isfinite().all()


@pytest.mark.parametrize("kind", ["bert", "roberta", "qwen2"])
def test_odd_texts_have_a_vector(kind: str) -> None:
    odd = ["", " ", "zzz qqq", "🏄🏽‍♀️", "[SEP]", "</s>", "<end>", "مرحبا", "<img onerror=1>", "{{7*7}}", "a cat"]
    together, alone = tiny_backbone(kind), tiny_backbone(kind)
    for pooling in POOLINGS:
        vectors = together.encode([(text,) for text in odd], pooling=pooling)
        assert vectors.isfinite().all()
        torch.testing.assert_close(alone.encode([("",)], pooling=pooling), vectors[:1], rtol=0, atol=1e-5)
    single = torch.cat([alone.encode([(text,)], pooling=POOLINGS[-1]) for text in odd])
    torch.testing.assert_close(single, vectors, rtol=0, atol=1e-5)


@pytest.mark.parametrize("text", [None, 3, float("nan"), "\ud83d half"])
def test_what_is_not_text_is_named(text: object) -> None:
    with pytest.raises(DataError, match="cannot be encoded"):
        tiny_backbone().encode([("a cat",), (text,)], pooling="mean")


@pytest.mark.parametrize("kind", DECODERS)
def test_decoders_read_an_end_token_last_and_pad_behind_it(kind: str) -> None:
    backbone = tiny_backbone(kind)
    end = backbone.tokenizer.eos_token_id
    rows = backbone.tokenize([("a",), ("",), (LONG,)])
    assert all(row.ids[-1] == end for row in rows)
    assert [len(row) for row in rows] == [2, 1, 64]
    tokens = backbone.collate(rows)
    assert tokens.mask[0].tolist() == [True] * 2 + [False] * 62
    assert (tokens.ids[0, 2:] == backbone.tokenizer.pad_token_id).all()


def test_an_end_token_that_the_tokenizer_writes_is_not_doubled() -> None:
    backbone = tiny_backbone("qwen3")
    tokenizer = backbone.tokenizer
    tokenizer.backend_tokenizer.post_processor = processors.TemplateProcessing(
        single="$A <pad>", pair="$A $B <pad>", special_tokens=[("<pad>", tokenizer.pad_token_id)]
    )
    closing = Backbone(backbone.model, tokenizer)  # as Qwen3-Embedding, whose last token is not its eos_token
    assert closing.tokenize([("a",)])[0].ids == (tokenizer.convert_tokens_to_ids("a"), tokenizer.pad_token_id)


def test_an_end_token_is_not_pooled_where_the_pooler_chooses() -> None:
    backbone = tiny_backbone("qwen3")
    (row,) = backbone.tokenize([("a cat", "the mood")], pool_text=1)
    assert row.ids[-1] == backbone.tokenizer.eos_token_id
    assert row.pooled == (False, False, True, True, False)
    assert row.types == (0, 0, 1, 1, 0)
    assert backbone.tokenize([("a cat",)], pool_from=[1])[0].pooled == (False, True, False)


def test_special_tokens_that_are_pieces_of_the_vocabulary_are_letters_too() -> None:
    pieces = [*SPECIAL["xlm-roberta"].values(), "▁a", "▁b", "▁", "(", "<", "/", "s", ">"]
    tokenizer = XLMRobertaTokenizer(vocab=[(piece, -float(i)) for i, piece in enumerate(pieces)], mask_token="<unk>")
    backbone = Backbone(tiny_backbone("xlm-roberta").model, tokenizer)
    (row,) = backbone.tokenize([("a </s> b",)])
    assert tokenizer.convert_ids_to_tokens(row.ids) == ["<s>", "▁a", "▁", "(", "/", "s", ">", "▁b", "</s>"]
    assert backbone.spans("a </s> b")[3:7] == [(2, 3), (3, 4), (4, 5), (5, 6)]


def test_each_text_is_encoded_once_however_many_threads_ask() -> None:
    texts = [(" ".join(WORDS[i : i + 3]),) for i in range(10)]
    expected = tiny_backbone().encode(texts, pooling="mean")
    backbone = tiny_backbone()
    with encoded_rows(backbone) as rows, ThreadPoolExecutor(8) as threads:
        results = list(threads.map(lambda _: backbone.encode(texts * 2, pooling="mean"), range(8)))
    assert sum(rows) == len(texts)
    for result in results:
        torch.testing.assert_close(result, expected.repeat(2, 1), rtol=0, atol=0)


def test_poolings_and_parts_do_not_answer_for_each_other() -> None:
    backbone = tiny_backbone()
    vectors = [backbone.encode([("a cat", "the mood")], pooling=pooling) for pooling in POOLINGS]
    parts = (backbone.collate(backbone.tokenize([("a cat", "the mood")], pool_text=part)) for part in (0, 1))
    vectors += [backbone(part, "mean").detach() for part in parts]
    vectors += [backbone.encode([("a [SEP] cat",)], pooling="mean", separators=flag) for flag in (False, True)]
    assert len({tuple(vector[0].tolist()) for vector in vectors}) == len(vectors)


def test_work_can_be_stopped_and_goes_on_where_it_was() -> None:
    class StopWorkError(Exception):
        pass

    def stop(done: int, total: int) -> None:
        raise StopWorkError(f"{done} of {total}")

    backbone = tiny_backbone()
    with pytest.raises(StopWorkError, match="2 of 2"):
        backbone.encode([("a cat",), ("a man",)], pooling="mean", progress=stop)
    with encoded_rows(backbone) as rows:
        backbone.encode([("a cat",), ("a man",)], pooling="mean")
    assert rows == []


def test_changes_by_a_caller_do_not_reach_the_cache() -> None:
    backbone = tiny_backbone()
    first = backbone.encode([("a cat",)], pooling="mean")
    kept = first.clone()
    first.zero_()
    torch.testing.assert_close(backbone.encode([("a cat",)], pooling="mean"), kept, rtol=0, atol=0)


def test_training_changes_the_identity_and_freezing_keeps_it() -> None:
    backbone = tiny_backbone()
    before, vector = backbone.fingerprint, backbone.encode([("a cat",)], pooling="mean")
    assert backbone.eval().fingerprint == before
    backbone.requires_grad_(False).train()
    assert backbone.fingerprint == before
    backbone.requires_grad_(True).train()
    with torch.no_grad():
        next(backbone.parameters()).add_(0.1)
    backbone.eval()
    assert backbone.fingerprint != before
    assert not torch.equal(backbone.encode([("a cat",)], pooling="mean"), vector)


def test_what_dropout_made_is_not_kept() -> None:
    backbone, expected = tiny_backbone(), tiny_backbone().encode([("a cat",)], pooling="mean")
    backbone.requires_grad_(False).train()
    assert not torch.equal(backbone.encode([("a cat",)], pooling="mean"), expected)
    torch.testing.assert_close(backbone.eval().encode([("a cat",)], pooling="mean"), expected, rtol=0, atol=0)
    backbone.train()
    with encoded_rows(backbone) as rows:
        backbone.encode([("a cat",)], pooling="mean")
    assert rows == [1]


def test_each_step_of_training_is_another_identity() -> None:
    backbone = tiny_backbone().train()
    first = backbone.fingerprint
    with torch.no_grad():
        next(backbone.parameters()).add_(0.1)
    assert backbone.fingerprint != first


def test_precision_and_seed_are_part_of_the_identity() -> None:
    backbone, other = tiny_backbone(), tiny_backbone(seed=1)
    before = backbone.fingerprint
    assert before == tiny_backbone().fingerprint != other.fingerprint
    assert backbone.to(torch.bfloat16).fingerprint != before


def test_tensor_hash_sees_names_shapes_types_and_values() -> None:
    value = torch.arange(4.0)
    variants = [("a", value), ("b", value), ("a", value.view(2, 2)), ("a", value.double()), ("a", value + 1)]
    assert len({hash_tensors([variant]) for variant in variants}) == len(variants)
    assert hash_tensors([("a", value), ("b", value)]) == hash_tensors([("b", value), ("a", value)])


def test_what_it_cannot_do_is_said() -> None:
    backbone = tiny_backbone()
    with pytest.raises(ConfigError, match="pooling must be one of cls, mean"):
        backbone.encode([("a",)], pooling="max")
    with pytest.raises(ConfigError, match="has no tokenizer"):
        Backbone(backbone.model).encode([("a",)], pooling="mean")
    assert backbone.encode([], pooling="mean").shape == (0, 32)


def test_without_cache_repeats_are_still_encoded_once() -> None:
    backbone = tiny_backbone()
    backbone.cache = EmbeddingCache(max_bytes=0)
    with encoded_rows(backbone) as rows:
        backbone.encode([("a",), ("a",), ("the",)], pooling="mean")
    assert sum(rows) == 2
