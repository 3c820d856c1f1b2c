"""Names of models, what is said about them, and how they are found."""

from __future__ import annotations

import json
import shutil
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import condviz
from condviz.encoder import pretrained
from condviz.encoder.pretrained import load_backbone
from condviz.errors import CheckpointError, CondvizError, ConfigError, UnknownModelError
from condviz.methods import (
    CATALOG,
    METHODS,
    ConditionalEncoder,
    ConditionalScorer,
    RoutedEncoder,
    SeparableEncoder,
    register,
)
from condviz.models import checkpoints, hub, manifest, registry
from tests.fresh import modules_after
from tests.tiny import CONDITIONS, SENTENCES, edit_json, tiny_folder

ROWS = (SENTENCES, SENTENCES[::-1], CONDITIONS)
OPTIONS = {"device": "cpu", "precision": "float32"}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder of checkpoints."""
    monkeypatch.setattr(registry, "MODEL_FOLDERS", (tmp_path / "checkpoints",))
    return tmp_path / "checkpoints"


@pytest.fixture
def tiny_default(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A tiny encoder in the place of the default one."""
    place = str(tiny_folder(tmp_path / "encoder"))
    monkeypatch.setattr(pretrained, "load_backbone", lambda **options: load_backbone(place, **options))


def trained(tmp_path: Path, method: str = "csr") -> ConditionalScorer:
    place = tmp_path / "encoder"
    if not place.exists():
        tiny_folder(place)
    return METHODS[method](load_backbone(str(place), **OPTIONS), METHODS[method].config_cls())


UNTRAINED = [
    "minilm", "bi-encoder-zero-shot", "tri-hadamard-zero-shot", "csr-zero-shot", "csr-bi-zero-shot",
    "csr-prefix-zero-shot", "case-zero-shot",
]  # fmt: skip


def test_untrained_models_are_there_at_once(folder: Path) -> None:
    assert registry.list_models() == UNTRAINED
    assert condviz.list_models is registry.list_models


@pytest.mark.parametrize("name", sorted(hub.REVISIONS))
def test_a_trained_name_never_means_untrained(folder: Path, name: str) -> None:
    for call in (registry.load, registry.describe, registry.find_folder):
        with pytest.raises(UnknownModelError, match="trained weights of") as caught:
            call(name)
        assert hub.hub_id(name) in str(caught.value)
        assert str(hub.CHECKPOINTS / name) in str(caught.value)
        assert "\n" not in str(caught.value)
    assert name not in [*registry.list_models(), *registry.link_models()]


def test_a_variant_of_a_trained_name_is_not_made_of_an_untrained_model(folder: Path, tiny_default: None) -> None:
    with pytest.raises(UnknownModelError, match="trained weights of csr"):
        registry.load("csr@hidden", **OPTIONS)
    assert registry.load("csr-zero-shot@hidden", **OPTIONS).info.name == "csr-zero-shot@hidden"


def test_the_models_that_ship_are_those_of_the_clone() -> None:
    shipped = Path(__file__).parents[2] / "checkpoints"
    assert set(hub.REVISIONS) == {folder.name for folder in shipped.iterdir() if (folder / "condviz.json").is_file()}


def test_a_shipped_model_comes_from_the_hub_at_its_pinned_commit(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit = "0123456789abcdef0123456789abcdef01234567"
    place = checkpoints.save(trained(tmp_path), tmp_path / commit)
    monkeypatch.setitem(hub.REVISIONS, "csr", commit)
    asked = []

    def download(repository: str, *, revision: str, local_files_only: bool = False, **_: object) -> str:
        asked.append((repository, revision))
        if local_files_only and len(asked) < 4:
            raise OSError("not here")
        return str(place)

    monkeypatch.setattr("huggingface_hub.snapshot_download", download)
    assert "csr" not in registry.list_models()
    model = registry.load("csr", **OPTIONS)
    assert set(asked) == {("condviz/condviz-csr", commit)}
    assert (model.info.name, model.info.source, model.info.trained) == ("csr", "hub", True)
    assert "csr" in registry.list_models()
    assert replace(model.info, revision="") == registry.describe("csr")


def test_a_shipped_model_that_was_downloaded_is_listed_whatever_else_its_repository_has(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit = "0123456789abcdef0123456789abcdef01234567"
    cache = tmp_path / "hub" / "models--condviz--condviz-csr"
    checkpoints.save(trained(tmp_path), cache / "snapshots" / commit)
    files = {name: {"size": 1, "blob_id": "0" * 40} for name in (*manifest.FILES, ".gitattributes", "modules.json")}
    (cache / "trees").mkdir()  # as the hub's client notes what a repository holds
    (cache / "trees" / f"{commit}.json").write_text(json.dumps({"format_version": 1, "files": files}))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setitem(hub.REVISIONS, "csr", commit)
    assert "csr" in registry.list_models()
    (cache / "snapshots" / commit / manifest.WEIGHTS).unlink()  # a download that was stopped
    assert "csr" not in registry.list_models()


def test_a_shipped_model_that_cannot_be_downloaded_says_where_it_belongs(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> str:
        raise OSError("no network")

    monkeypatch.setitem(hub.REVISIONS, "csr", "0123456789abcdef0123456789abcdef01234567")
    monkeypatch.setattr("huggingface_hub.snapshot_download", refuse)
    with pytest.raises(CondvizError, match="no network") as caught:
        registry.load("csr")
    assert "condviz/condviz-csr on the hub;" in str(caught.value)
    assert "CONDVIZ_CHECKPOINTS" in str(caught.value)


def test_a_revision_goes_with_a_hub_id(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tiny_default: None
) -> None:
    place = checkpoints.save(trained(tmp_path), tmp_path / "one")
    asked = {}
    monkeypatch.setattr("huggingface_hub.snapshot_download", lambda name, **given: asked.update(given) or str(place))
    assert registry.load("someone/one", revision="v1", **OPTIONS).info.source == "hub"
    assert asked["revision"] == "v1"
    for name, options in (("minilm", {}), ("csr", {"backbone": "someone/one"}), (str(place), {})):
        with pytest.raises(ConfigError, match="goes with a hub id"):
            registry.load(name, revision="v1", **options)


def test_own_folders_come_before_those_that_ship(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shipped = checkpoints.save(trained(tmp_path, "bi-encoder"), tmp_path / "shipped" / "csr").parent
    checkpoints.save(trained(tmp_path), folder / "csr")
    checkpoints.save(trained(tmp_path), shipped / "case")
    monkeypatch.setattr(registry, "MODEL_FOLDERS", (folder, shipped))
    assert registry.describe("csr").path == str(folder / "csr")
    assert {"csr", "case"} < set(registry.list_models())


def test_paths_are_taken_as_texts_are(folder: Path, tmp_path: Path) -> None:
    place = checkpoints.save(trained(tmp_path), tmp_path / "mine")
    assert registry.describe(place) == registry.describe(str(place))
    assert registry.load(place, **OPTIONS).info == registry.load(str(place), **OPTIONS).info
    built = registry.load("csr", backbone=tmp_path / "encoder", **OPTIONS)
    assert built.info.name == f"csr on {tmp_path / 'encoder'}"
    assert condviz.read_words(place, "a b", ["e"]).model.name == "mine"


def test_a_checkpoint_is_listed_beside_the_untrained(folder: Path, tmp_path: Path, tiny_default: None) -> None:
    checkpoints.save(trained(tmp_path), folder / "csr")
    checkpoints.save(trained(tmp_path), folder / "mine")
    assert registry.list_models() == ["minilm", "csr", "mine", *UNTRAINED[1:]]
    assert (registry.describe("csr").trained, registry.describe("csr").source) == (True, "checkpoint")
    info = registry.describe("csr-zero-shot")
    assert (info.trained, info.source, info.name) == (False, "zero-shot", "csr-zero-shot")
    assert registry.load("csr-zero-shot", **OPTIONS).info.trained is False


@pytest.mark.parametrize("name", UNTRAINED)
def test_what_is_described_is_what_is_loaded(folder: Path, tiny_default: None, name: str) -> None:
    model, info = registry.load(name, **OPTIONS), registry.describe(name)
    assert info.revision == ""
    assert replace(model.info, revision="") == info
    assert len(model.info.revision) == 12
    assert (info.name, info.kind, info.score_range, info.trained) == (name, model.kind, model.score_range, False)
    assert model.score(*ROWS).shape == (4,)


def test_untrained_models_do_not_depend_on_chance(folder: Path, tiny_default: None) -> None:
    for name in registry.list_models():
        one, other = (registry.load(name, **OPTIONS) for _ in range(2))
        assert one.backbone is other.backbone
        assert one.fingerprint == other.fingerprint
        np.testing.assert_array_equal(one.score(*ROWS), other.score(*ROWS))


def test_a_folder_is_a_model(folder: Path, tmp_path: Path) -> None:
    model = trained(tmp_path, "tri-encoder")
    place = checkpoints.save(model, tmp_path / "elsewhere" / "mine")
    loaded = registry.load(str(place), **OPTIONS)
    assert (loaded.info.name, loaded.info.source, loaded.info.path) == ("mine", "folder", str(place))
    assert loaded.info.added_parameters == model.added_parameters
    assert replace(loaded.info, revision="") == registry.describe(str(place))


def test_half_written_and_foreign_folders_are_not_listed(folder: Path, tmp_path: Path) -> None:
    place = checkpoints.save(trained(tmp_path), folder / "mine")
    shutil.copytree(place, folder / ".mine-old")
    (folder / "notes").mkdir()
    (folder / "README.md").write_text("text")
    assert [name for name in registry.list_models() if name not in registry.ZERO_SHOT] == ["mine"]


def test_a_damaged_checkpoint_is_listed_and_named(folder: Path, tmp_path: Path) -> None:
    place = checkpoints.save(trained(tmp_path), folder / "mine")
    edit_json(place / "condviz.json", format=9)
    assert "mine" in registry.list_models()
    for call in (registry.describe, registry.load):
        with pytest.raises(CheckpointError, match="format is 9"):
            call("mine")


@pytest.mark.parametrize(
    ("name", "hint"),
    [("minlm", "Did you mean minilm"), ("bi_encoder", "Did you mean bi-encoder"), ("?", "Models: minilm")],
)
def test_unknown_names_get_a_suggestion(folder: Path, name: str, hint: str) -> None:
    for call in (registry.describe, registry.load):
        with pytest.raises(UnknownModelError, match=hint):
            call(name)


@pytest.mark.parametrize("name", ["minilm", "csr-zero-shot", "csr on intfloat/e5-base-v2"])
def test_untrained_models_have_no_folder_and_are_not_called_unknown(folder: Path, tmp_path: Path, name: str) -> None:
    place = checkpoints.save(trained(tmp_path), folder / "mine")
    assert registry.find_folder("mine") == place
    with pytest.raises(UnknownModelError, match=r"nobody has trained it. Trained models: mine\."):
        registry.find_folder(name)


@pytest.mark.parametrize("name", ["", "  ", "a\0b", "\ud800", "x" * 5000, "x/" * 3000, None, 3, "<img onerror=1>"])
def test_names_that_cannot_be_are_unknown_in_one_line(folder: Path, name: object) -> None:
    for call in (registry.describe, registry.load):
        with pytest.raises(UnknownModelError) as caught:
            call(name)
        assert "\n" not in str(caught.value)
        assert len(str(caught.value)) < 400


@pytest.mark.parametrize("name", ["someone/something", "../up", "checkpoints/none"])
def test_a_hub_id_that_cannot_be_reached_is_one_line(folder: Path, name: str) -> None:
    with pytest.raises(CondvizError, match="not a model or folder here") as caught:
        registry.load(name)
    assert "\n" not in str(caught.value)
    with pytest.raises(UnknownModelError):
        registry.describe(name)


def test_device_and_precision_are_checked(folder: Path) -> None:
    with pytest.raises(
        ConfigError, match="device must be one of auto, cpu, cuda, mps, got 'tpu'; this machine has: cpu"
    ):
        registry.load("minilm", device="tpu")
    with pytest.raises(ConfigError, match=r"one of auto, float32, bfloat16, float16, int8, got 'int4'"):
        registry.load("minilm", precision="int4")


KINDS = ["bert", "roberta", "xlm-roberta", "mpnet", "deberta-v2", "modernbert", "qwen2", "qwen3", "mistral"]


ON = [(name, kind) for name in sorted({*registry.UNTRAINED, *CATALOG}) for kind in ("bert", "qwen3")]
ON += [(name, kind) for name in ("bi-encoder", "cross-encoder", "csr") for kind in KINDS if ("csr", kind) not in ON]
"""Every method on an encoder and on a decoder, and the three ways of reading two texts on all types."""


@pytest.mark.parametrize(("name", "kind"), ON)
def test_any_method_is_built_on_any_encoder(tmp_path: Path, kind: str, name: str) -> None:
    place = str(tiny_folder(tmp_path / "encoder", kind))
    settings = {"rank": 4} if name == "hyper-cl" else {}
    one, other = (condviz.load(name, backbone=place, **OPTIONS, **settings) for _ in range(2))
    assert one.fingerprint == other.fingerprint  # what is random has a fixed seed
    assert np.isfinite(one.score(*ROWS)).all()
    assert (one.info.trained, one.info.added_parameters) == (False, one.added_parameters)
    if not settings:  # its name says both
        assert registry.describe(one.info.name).title == one.info.title
        assert condviz.load(one.info.name, **OPTIONS).fingerprint == one.fingerprint
    if kind in ("qwen2", "qwen3", "mistral") and name not in ("csr", "csr-bi", "csr-prefix"):
        assert one.method_config.pooling == "last"


def test_settings_of_a_method_on_an_encoder(tmp_path: Path, folder: Path) -> None:
    place = str(tiny_folder(tmp_path / "bge-small-en"))
    assert condviz.load("bi-encoder", backbone=place, **OPTIONS).method_config.pooling == "cls"
    assert condviz.load("bi-encoder", backbone=place, pooling="top-2", **OPTIONS).method_config.pooling == "top-2"
    assert condviz.load("csr", backbone=place, **OPTIONS).method_config.pooling == "mean"  # it is the router's
    with pytest.raises(ConfigError, match=r"has no setting 'colour'\. Settings: pooling"):
        condviz.load("csr", backbone=place, colour="red")
    with pytest.raises(UnknownModelError, match="Did you mean hyper-cl"):
        condviz.load("hyper_cl", backbone=place)
    with pytest.raises(ConfigError, match="Name an encoder to build another"):
        condviz.load("csr", num_routed_layers=2)


def test_listing_and_describing_import_no_torch() -> None:
    code = (
        "import condviz\n"
        "from condviz.models.registry import describe, link_models\n"
        "from condviz.methods import METHODS\n"
        "found = [describe(name) for name in [*condviz.list_models(), *link_models()]]\n"
        "assert found and 'csr' in METHODS and list(METHODS)"
    )
    assert not modules_after(code) & {"torch", "transformers", "sklearn", "pandas"}


def test_what_is_described_is_what_the_class_can_do(folder: Path, tiny_default: None) -> None:
    for name in registry.list_models():
        model = registry.load(name, **OPTIONS)
        assert model.info.encodes == isinstance(model, ConditionalEncoder)
        assert model.info.has_router == model.has_router == isinstance(model, RoutedEncoder)
        assert model.separable == isinstance(model, SeparableEncoder)


def test_a_method_of_ones_own_is_one_file(folder: Path, tmp_path: Path) -> None:
    cls = type(
        "Own", (METHODS["bi-encoder"],), {"about": replace(CATALOG["bi-encoder"], name="own", title="Own", module="")}
    )
    register(cls)
    try:
        place = tmp_path / "encoder"
        tiny_folder(place)
        model = METHODS["own"](load_backbone(str(place), **OPTIONS), cls.config_cls())
        loaded = registry.load(str(checkpoints.save(model, folder / "mine")), **OPTIONS)
        assert (loaded.info.title, type(loaded)) == ("Own: mine", cls)
        assert type(registry.load("own", backbone=str(place), pooling="mean", **OPTIONS)) is cls
        with pytest.raises(ValueError, match="already"):
            register(type("Own", (METHODS["csr"],), {"about": cls.about}))
    finally:
        del CATALOG["own"]


DAMAGE = {
    "deep": lambda text: "[" * 100_000,
    "cut": lambda text: text[: len(text) // 2],
    "data": lambda text: json.dumps(json.loads(text) | {"training": {"recipe": {"graph": 5}, "data": [5]}}),
    "data is no list": lambda text: json.dumps(json.loads(text) | {"training": {"recipe": {"graph": "x"}, "data": 7}}),
    "scale": lambda text: text.replace('"adapter_scale": null', '"adapter_scale": NaN'),
    "config": lambda text: json.dumps(json.loads(text) | {"config": {"pooling": ["mean"]}}),
    "infinite": lambda text: json.dumps(json.loads(text) | {"config": {"num_routed_layers": float("inf")}}),
    "bytes": lambda text: "\0",
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_no_damage_keeps_the_others_from_being_listed(folder: Path, tmp_path: Path, damage: str) -> None:
    place = checkpoints.save(trained(tmp_path), folder / "mine")
    path = place / "condviz.json"
    path.write_text(DAMAGE[damage](path.read_text()))
    assert {"minilm", "mine"} <= {*registry.list_models(), *registry.link_models()}
    for call in (registry.describe, registry.load):
        with suppress(CheckpointError):
            call("mine")


@pytest.mark.parametrize("content", [b"", b"garbage", b"\xff" * 100, (10**15).to_bytes(8, "little") + b"{}"])
def test_damaged_weights_are_a_checkpoint_error(folder: Path, tmp_path: Path, content: bytes) -> None:
    place = checkpoints.save(trained(tmp_path), folder / "mine")
    (place / "model.safetensors").write_bytes(content)
    for call in (registry.describe, registry.load):
        with pytest.raises(CheckpointError, match="damaged or incomplete"):
            call("mine")
