"""Files are written whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from condviz.data.files import check_target, write_text
from condviz.errors import DataError


def test_text_replaces_the_old_file_unchanged(tmp_path: Path) -> None:
    target = tmp_path / "out.txt"
    target.write_text("old")
    write_text(target, "é\r\n")
    assert target.read_bytes() == "é\r\n".encode()
    assert os.listdir(tmp_path) == ["out.txt"]


def test_the_old_file_survives_a_failed_write(tmp_path: Path) -> None:
    target = tmp_path / "out.txt"
    target.write_text("old")
    with pytest.raises(UnicodeEncodeError):
        write_text(target, "half \ud800")
    assert target.read_text() == "old"
    assert os.listdir(tmp_path) == ["out.txt"]


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "real.txt").write_text("old")
    (tmp_path / "link.txt").symlink_to("real.txt")
    write_text(tmp_path / "link.txt", "new")
    assert (tmp_path / "link.txt").is_symlink()
    assert (tmp_path / "real.txt").read_text() == "new"


def test_a_device_is_written_to_and_not_replaced() -> None:
    write_text(os.devnull, "gone")
    assert not Path(os.devnull).is_file()


def test_impossible_targets_are_refused_beforehand(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="is a folder"):
        check_target(tmp_path)
    with pytest.raises(DataError, match="does not exist"):
        check_target(tmp_path / "no" / "out.csv")


def test_a_pipe_is_written_to() -> None:
    read, write = os.pipe()
    write_text(f"/dev/fd/{write}", "through")
    os.close(write)
    with open(read) as pipe:
        assert pipe.read() == "through"


def test_a_file_in_a_folder_without_permission_is_written_in_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "out.txt"
    target.write_text("old")
    monkeypatch.setattr(os, "access", lambda path, _: Path(path) == target)
    monkeypatch.setattr(os, "replace", lambda *_: pytest.fail("what is there may not be replaced"))
    write_text(target, "new")
    assert target.read_text() == "new"
