"""What is missing on this machine, and downloads in a process that can be stopped; the hub is played."""

from __future__ import annotations

import subprocess
from pathlib import Path
from types import SimpleNamespace

import huggingface_hub
import pytest
from huggingface_hub import constants

from condviz.encoder import download
from condviz.encoder.download import count_missing, fetch
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
