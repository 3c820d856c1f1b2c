"""Checkpoint folders: what is written, how it comes back, and every kind of damage."""

from __future__ import annotations

import gc
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from condviz.encoder.backbone import Backbone
from condviz.encoder.pretrained import load_backbone
from condviz.errors import CheckpointError
from condviz.methods import METHODS, ConditionalScorer
from condviz.models import checkpoints
from condviz.models.manifest import CARD, MANIFEST, WEIGHTS, hash_file, parameter_count, read_manifest
from tests.tiny import CONDITIONS, SENTENCES, edit_json, tiny_backbone, tiny_folder

ROWS = (SENTENCES, SENTENCES[::-1], CONDITIONS)


def encoder(folder: Path) -> Backbone:
    if not folder.exists():
        tiny_folder(folder)
    return load_backbone(str(folder), device="cpu", precision="float32")


def hyper(backbone: Backbone, seed: int = 0) -> ConditionalScorer:
    torch.manual_seed(seed)
    cls = METHODS["hyper-cl"]
    return cls(backbone, cls.config_cls(rank=2)).eval()


def load(folder: Path) -> ConditionalScorer:
    return checkpoints.load(folder, device="cpu", precision="float32")


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    return checkpoints.save(hyper(encoder(tmp_path / "encoder")), tmp_path / "models" / "mine")


def rewrite(folder: Path, change: Callable[[dict[str, torch.Tensor]], None]) -> None:
    tensors = load_file(folder / WEIGHTS)
    change(tensors)
    save_file(tensors, folder / WEIGHTS)
    edit_json(folder / MANIFEST, weights_sha256=hash_file(folder / WEIGHTS))


def test_a_folder_holds_three_readable_files(tmp_path: Path) -> None:
    model = hyper(encoder(tmp_path / "encoder"))
    folder = checkpoints.save(model, tmp_path / "mine", training={"data": "scenes"}, metrics={"spearman": 41.5})
    assert sorted(file.name for file in folder.iterdir()) == sorted([MANIFEST, WEIGHTS, CARD])
    manifest = json.loads((folder / MANIFEST).read_text())
    assert (manifest["method"], manifest["config"]["rank"]) == ("hyper-cl", 2)
    assert len(manifest["backbone"]["digest"]) == 64
    assert {"# mine", "- data: scenes", "- spearman: 41.5"} <= set((folder / CARD).read_text().splitlines())
    assert set(load_file(folder / WEIGHTS)) == {f"head.{name}" for name in model.head_state()}  # nothing of the encoder
    assert oct(folder.stat().st_mode & 0o777) == "0o755"
    assert oct((folder / WEIGHTS).stat().st_mode & 0o777) == "0o644"
    assert parameter_count(folder, read_manifest(folder)) == model.added_parameters


def test_half_precision_halves_the_file_and_keeps_the_scores(tmp_path: Path) -> None:
    model = hyper(encoder(tmp_path / "encoder"))
    full = checkpoints.save(model, tmp_path / "full")
    half = checkpoints.save(model, tmp_path / "half", dtype=torch.float16, card="# written by hand\n")
    assert (half / WEIGHTS).stat().st_size < 0.6 * (full / WEIGHTS).stat().st_size
    assert (half / CARD).read_text() == "# written by hand\n"
    loaded = load(half)
    assert loaded.hyper_left.weight.dtype == torch.float32
    np.testing.assert_allclose(loaded.score(*ROWS), model.score(*ROWS), atol=2e-3)


def test_an_encoder_trained_in_place_is_saved_and_not_taken_for_the_pretrained_one(tmp_path: Path) -> None:
    model = hyper(encoder(tmp_path / "encoder"))
    before = model.score(*ROWS)
    model.train()
    with torch.no_grad():
        for parameter in model.backbone.parameters():
            parameter.add_(0.3 * torch.randn(parameter.shape))
    after = model.eval().score(*ROWS)
    assert np.abs(after - before).max() > 1e-3
    loaded = load(checkpoints.save(model, tmp_path / "mine"))
    np.testing.assert_allclose(loaded.score(*ROWS), after, atol=1e-5)
    fresh = hyper(encoder(tmp_path / "encoder"))
    assert fresh.backbone is not model.backbone
    np.testing.assert_allclose(fresh.score(*ROWS), before, atol=1e-5)


def test_adapters_add_scaled_products_to_the_weights(saved: Path) -> None:
    name, scale = "encoder.layer.1.attention.self.query", 0.5
    torch.manual_seed(1)
    right, left = torch.randn(2, 32), torch.randn(32, 2)
    rewrite(saved, lambda tensors: tensors.update({f"adapter.{name}.lora_A": right, f"adapter.{name}.lora_B": left}))
    edit_json(saved / MANIFEST, adapter_scale=scale)
    loaded, base = load(saved), encoder(saved.parent.parent / "encoder")
    weight = loaded.backbone.model.get_submodule(name).weight
    torch.testing.assert_close(weight, base.model.get_submodule(name).weight + scale * left @ right)
    assert loaded.backbone.fingerprint != base.fingerprint
    again = load(checkpoints.save(loaded, saved.with_name("merged")))
    np.testing.assert_allclose(again.score(*ROWS), loaded.score(*ROWS), atol=1e-6)


@pytest.fixture
def going_on(saved: Path) -> Path:
    """Return a checkpoint that begins with the weights of another, whose encoder was trained, and lies beside it."""
    weight = {"backbone.encoder.layer.0.output.dense.weight": torch.full((32, 48), 0.1)}
    rewrite(saved, lambda tensors: tensors.update(weight))
    whole = saved.with_name("whole")
    shutil.copytree(saved, whole)
    rewrite(whole, lambda tensors: tensors.update({"head.condition.1.bias": torch.ones(32)}))
    (second := saved.with_name("second")).mkdir()
    shutil.copytree(whole, second, dirs_exist_ok=True)
    rewrite(second, lambda tensors: [tensors.pop(name) for name in weight])
    edit_json(second / MANIFEST, start={"model": saved.name, "weights_sha256": hash_file(saved / WEIGHTS)})
    return second


def test_a_checkpoint_that_begins_with_another_is_the_same_as_a_whole_one(going_on: Path) -> None:
    whole, second = going_on.with_name("whole"), load(going_on)
    np.testing.assert_array_equal(second.score(*ROWS), load(whole).score(*ROWS))
    assert second.weights_hash == load(whole).weights_hash
    assert len({parameter_count(folder, read_manifest(folder)) for folder in (whole, going_on)}) == 1
    moved = checkpoints.save(second, going_on.parent.parent / "elsewhere")  # and whole when it is saved again
    assert set(load_file(moved / WEIGHTS)) == set(load_file(whole / WEIGHTS))


def test_a_checkpoint_that_leaves_the_encoder_of_another_as_it_is_shares_it(saved: Path) -> None:
    name = "encoder.layer.0.attention.self.query"
    adapters = {f"adapter.{name}.lora_A": torch.ones(2, 32), f"adapter.{name}.lora_B": torch.ones(32, 2)}
    shutil.copytree(saved, second := saved.with_name("second"))
    rewrite(saved, lambda tensors: tensors.update(adapters))
    edit_json(saved / MANIFEST, adapter_scale=0.5, identity="file", weights_sha256=hash_file(saved / WEIGHTS))
    rewrite(second, lambda tensors: tensors.update({"head.condition.1.bias": torch.ones(32)}))
    told = {"model": saved.name, "weights_sha256": hash_file(saved / WEIGHTS)}
    own = {"adapter_scale": 0.5, "identity": "file", "weights_sha256": hash_file(second / WEIGHTS)}
    edit_json(second / MANIFEST, start=told, **own)
    one, other = load(saved), load(second)
    assert one.backbone is other.backbone
    assert one.backbone.fingerprint != encoder(saved.parent.parent / "encoder").fingerprint
    assert one.weights_hash != other.weights_hash


def test_a_checkpoint_that_begins_with_another_needs_it_unchanged(going_on: Path) -> None:
    first = going_on.with_name("mine")
    rewrite(first, lambda tensors: tensors.update({"backbone.pooler.dense.bias": torch.ones(32)}))
    with pytest.raises(CheckpointError, match=r"mine.*is damaged.*second"):
        load(going_on)
    shutil.rmtree(first)
    with pytest.raises(CheckpointError, match="begins with the weights of mine"):
        load(going_on)
    edit_json(going_on / MANIFEST, start={"model": "../mine", "weights_sha256": ""})
    with pytest.raises(CheckpointError, match="start"):
        load(going_on)


@pytest.mark.parametrize(
    ("name", "a", "b", "scale", "message"),
    [
        ("encoder.layer.1.attention.self.query", (2, 32), None, 1.0, "lora_B.*is missing"),
        ("encoder.layer.1.attention.self.query", None, (32, 2), 1.0, "lora_A.*is missing"),
        ("encoder.layer.1.attention.self.query", (2, 32), (32, 2), None, "adapter_scale .*is missing"),
        ("encoder.layer.1.attention.self.query", (2, 32), (32, 3), 1.0, "rank 2 and lora_B 3"),
        ("encoder.layer.1.attention.self.query", (2, 31), (32, 2), 1.0, "does not fit the encoder"),
        ("encoder.layer.9.attention.self.query", (2, 32), (32, 2), 1.0, "does not fit the encoder"),
        ("encoder.layer.1.output.LayerNorm", (2, 32), (32, 2), 1.0, "does not fit the encoder"),
    ],
)
def test_adapters_that_do_not_fit(
    saved: Path, name: str, a: tuple | None, b: tuple | None, scale: float | None, message: str
) -> None:
    parts = {"lora_A": a, "lora_B": b}
    extra = {f"adapter.{name}.{part}": torch.ones(shape) for part, shape in parts.items() if shape}
    rewrite(saved, lambda tensors: tensors.update(extra))
    if scale is not None:
        edit_json(saved / MANIFEST, adapter_scale=scale)
    with pytest.raises(CheckpointError, match=message):
        load(saved)


DAMAGE: dict[str, tuple[Callable[[dict], object], str]] = {
    "missing": (lambda t: t.pop("head.hyper_left.bias"), "tensor head.hyper_left.bias is missing"),
    "left over": (lambda t: t.update({"head.more": torch.ones(1)}), "unknown tensor head.more"),
    "unknown part": (lambda t: t.update({"more": torch.ones(1)}), "unknown tensor more"),
    "unknown layer": (lambda t: t.update({"backbone.x.weight": torch.ones(1)}), "unknown tensor backbone.x.weight"),
    "shape": (lambda t: t.update({"head.hyper_left.bias": torch.ones(3)}), r"head.hyper_left.bias has shape \(3,\)"),
    "encoder's shape": (
        lambda t: t.update({"backbone.embeddings.LayerNorm.weight": torch.ones(3)}),
        r"has shape \(3,\), expected \(32,\)",
    ),
    "not a number": (
        lambda t: t["head.hyper_left.bias"].fill_(float("nan")),
        "head.hyper_left.bias has infinite or NaN values",
    ),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_damaged_tensors_are_named(saved: Path, damage: str) -> None:
    change, message = DAMAGE[damage]
    rewrite(saved, change)
    with pytest.raises(CheckpointError, match=rf"{WEIGHTS}.*{message}"):
        load(saved)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"format": 2}, "format is 2, made by version .*reads format 1. Install"),
        ({"format": None}, "Key format is missing"),
        ({"extra": 1}, "Unknown key extra"),
        ({"metrics": None}, "Key metrics is missing"),
        ({"metrics": [1]}, "metrics is"),
        ({"adapter_scale": "2"}, "adapter_scale is '2'"),
        ({"method": "magic"}, "method is 'magic'; known are unconditional"),
        ({"method": ["csr"]}, "method is"),
        ({"config": {"rank": 2, "colour": 1}}, "unknown keys .'colour'."),
        ({"config": [1]}, r"config is \[1\], expected"),
        ({"config": {"rank": -2}}, "config: rank is -2, allowed is 1 or more"),
        ({"config": {"rank": 1000}}, "config: rank must be at most"),
        ({"config": {"pooling": "max"}}, "config: pooling is .max., allowed is one of"),
        ({"backbone": {"name": "x"}}, r"Key backbone\.revision is missing"),
        ({"backbone": {"name": 1, "revision": "", "digest": ""}}, r"backbone\.name is 1"),
    ],
)
def test_damaged_manifests_are_named(saved: Path, changes: dict, message: str) -> None:
    edit_json(saved / MANIFEST, **changes)
    with pytest.raises(CheckpointError, match=rf"{MANIFEST}.*({message})"):
        load(saved)


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"\xff\xfe\x00", b"null"])
def test_a_manifest_that_is_no_json_object(saved: Path, content: bytes) -> None:
    (saved / MANIFEST).write_bytes(content)
    with pytest.raises(CheckpointError, match=MANIFEST):
        load(saved)


def test_missing_files_are_named(saved: Path, tmp_path: Path) -> None:
    (saved / WEIGHTS).unlink()
    with pytest.raises(CheckpointError, match=rf"{WEIGHTS} is missing"):
        load(saved)
    for nothing in (tmp_path / "nothing", tmp_path):
        with pytest.raises(CheckpointError, match=f"no {MANIFEST}: it is not a checkpoint"):
            load(nothing)


@pytest.mark.parametrize("size", [0, 4, 100, -10])
def test_cut_weight_files_are_named(saved: Path, size: int) -> None:
    content = (saved / WEIGHTS).read_bytes()
    (saved / WEIGHTS).write_bytes(content[:size])
    with pytest.raises(CheckpointError, match=f"{WEIGHTS} is damaged or incomplete"):
        load(saved)


@pytest.mark.parametrize("name", ["model.bin", "optimizer.pt", "x.PKL"])
def test_pickles_beside_the_weights_are_refused(saved: Path, name: str) -> None:
    (saved / name).write_bytes(b"")
    with pytest.raises(CheckpointError, match=f"{name}, a pickle, which can run code"):
        load(saved)


def test_another_encoder_under_the_same_name_is_noticed(saved: Path, tmp_path: Path) -> None:
    tiny_folder(tmp_path / "other", seed=5)
    os.replace(tmp_path / "other" / WEIGHTS, tmp_path / "encoder" / WEIGHTS)
    with pytest.raises(CheckpointError, match=r"was trained on .*encoder with hash .*Load that revision"):
        load(saved)


def test_a_model_whose_encoder_has_no_source_cannot_be_saved(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="can only be saved if its encoder can be loaded again"):
        checkpoints.save(hyper(tiny_backbone()), tmp_path / "mine")
    assert list(tmp_path.iterdir()) == []


def test_what_is_not_finite_is_not_saved(tmp_path: Path) -> None:
    cls = METHODS["case"]
    unfitted = cls(encoder(tmp_path / "encoder"), cls.config_cls(projection="pca", projection_dim=2))
    with pytest.raises(CheckpointError, match=r"projection.weight has infinite.*not fitted yet"):
        checkpoints.save(unfitted, tmp_path / "mine")
    model = hyper(unfitted.backbone)
    torch.nn.init.constant_(model.hyper_left.bias, 1e6)
    with pytest.raises(CheckpointError, match=r"hyper_left\.bias"):
        checkpoints.save(model, tmp_path / "mine", dtype=torch.float16)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["encoder"]


def test_saving_again_replaces_the_whole_folder(saved: Path, tmp_path: Path) -> None:
    other = hyper(encoder(tmp_path / "encoder"), seed=3)
    (saved / "notes.txt").write_text("old")
    checkpoints.save(other, saved)
    assert not (saved / "notes.txt").exists()
    np.testing.assert_array_equal(load(saved).score(*ROWS), other.score(*ROWS))
    assert [path.name for path in saved.parent.iterdir()] == ["mine"]


@pytest.mark.parametrize("step", ["save_file", "_card", "Path.rename"])
def test_an_interrupted_save_leaves_the_old_model(saved: Path, monkeypatch: pytest.MonkeyPatch, step: str) -> None:
    expected, other = load(saved).score(*ROWS), hyper(encoder(saved.parent.parent / "encoder"), seed=3)
    rename = Path.rename

    def fail(*args: object, **_: object) -> Path | None:
        if not args[0].name.startswith(".mine-") or args[0].name.endswith("-old"):
            return rename(*args)
        raise OSError("No space left on device")

    if step == "Path.rename":
        monkeypatch.setattr(Path, "rename", fail)
    else:
        monkeypatch.setattr(checkpoints, step, lambda *args, **_: (_ for _ in ()).throw(OSError("No space left")))
    with pytest.raises(OSError, match="No space left"):
        checkpoints.save(other, saved)
    monkeypatch.undo()
    np.testing.assert_array_equal(load(saved).score(*ROWS), expected)
    assert [path.name for path in saved.parent.iterdir()] == ["mine"]


def test_folders_with_something_else_are_not_replaced(tmp_path: Path) -> None:
    model = hyper(encoder(tmp_path / "encoder"))
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter.txt").write_text("years of work")
    (tmp_path / "file").write_text("text")
    for name in ("thesis", "file"):
        with pytest.raises(CheckpointError, match="exists and is not a checkpoint: nothing was written"):
            checkpoints.save(model, tmp_path / name)
    assert (tmp_path / "thesis" / "chapter.txt").exists()
    (tmp_path / "empty").mkdir()
    assert load(checkpoints.save(model, tmp_path / "empty")).name == "hyper-cl"


def test_changed_weights_share_the_rest_and_the_cache() -> None:
    base = tiny_backbone()
    name = "encoder.layer.2.output.dense.weight"
    other = checkpoints.with_weights(base, {name: torch.zeros(32, 48)})
    shared = {
        key: other.model.state_dict()[key].data_ptr() == value.data_ptr()
        for key, value in base.model.state_dict().items()
    }
    assert [key for key, same in shared.items() if not same] == [name]
    assert (other.cache, other.lock) == (base.cache, base.lock)
    assert other.fingerprint != base.fingerprint
    one, two = (backbone.encode([("a cat",)], pooling="mean") for backbone in (base, other))
    assert not torch.equal(one, two)


def test_models_that_change_some_weights_share_one_base_in_either_order(saved: Path, tmp_path: Path) -> None:
    changed = load(saved)
    changed.backbone = checkpoints.with_weights(changed.backbone, {"encoder.layer.0.output.dense.bias": torch.ones(32)})
    one = load(checkpoints.save(changed, tmp_path / "one"))
    del changed
    gc.collect()  # nothing holds the base but the model that was made from it
    assert load(checkpoints.save(one, tmp_path / "two")).backbone.cache is one.backbone.cache


def test_a_flipped_bit_is_noticed(saved: Path) -> None:
    content = bytearray((saved / WEIGHTS).read_bytes())
    content[-1] ^= 1
    (saved / WEIGHTS).write_bytes(content)
    with pytest.raises(CheckpointError, match=r"is damaged: its SHA-256 is \w{12}"):
        load(saved)


def test_a_checkpoint_without_a_hash_loads_unless_it_is_empty(saved: Path) -> None:
    edit_json(saved / MANIFEST, weights_sha256=None)
    assert load(saved).name == "hyper-cl"
    save_file({}, saved / WEIGHTS)
    with pytest.raises(CheckpointError, match="holds no tensor"):
        load(saved)


@pytest.mark.parametrize("scale", [float("nan"), float("inf"), "2", [2]])
def test_the_scale_of_adapters_is_a_finite_number(saved: Path, scale: object) -> None:
    edit_json(saved / MANIFEST, adapter_scale=scale)
    with pytest.raises(CheckpointError, match="adapter_scale is"):
        load(saved)
