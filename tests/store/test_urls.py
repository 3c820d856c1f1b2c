"""Texts and stores at URLs: a bucket is served on this machine. Skipped where the packages for it are not installed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from condviz.errors import DataError
from condviz.methods.hyper_cl import HyperCL
from condviz.store import build
from condviz.store.build import append_store, build_store
from condviz.store.disk import open_store
from tests.stand_ins import interrupt
from tests.store.test_disk import contents, make_model, make_more, write_csv

pytest.importorskip("lance")
upath = pytest.importorskip("upath")


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> HyperCL:
    monkeypatch.setattr(build, "SLICE_ROWS", 4)
    return make_model()


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Return the URL of an empty bucket."""
    files, server = pytest.importorskip("s3fs"), pytest.importorskip("moto.server")
    started = server.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    started.start()
    host, port = started.get_host_and_port()
    for name in ("AWS_ENDPOINT_URL", "AWS_ENDPOINT"):  # of fsspec and of Lance
        monkeypatch.setenv(name, f"http://{host}:{port}")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_ALLOW_HTTP"):
        monkeypatch.setenv(name, "true")
    for name in ("AWS_DEFAULT_REGION", "AWS_REGION"):
        monkeypatch.setenv(name, "us-east-1")
    files.S3FileSystem(skip_instance_cache=True).mkdir("box")
    yield "s3://box"
    started.stop()


def test_texts_are_read_from_a_url(model: HyperCL, tmp_path: Path) -> None:
    source = write_csv(tmp_path / "a.csv")
    upath.UPath("memory://texts/a.csv").write_bytes(source.read_bytes())
    build_store("memory://texts/a.csv", tmp_path / "s", model=model)
    build_store(f"file://{source}", f"file://{tmp_path}/t", model=model)
    assert contents(tmp_path / "s")[0] == contents(tmp_path / "t")[0]
    with pytest.raises(DataError, match="does not exist"):
        build_store("memory://texts/b.csv", tmp_path / "u", model=model)
    with pytest.raises(DataError, match="cannot be opened"):
        build_store("nothing://texts/b.csv", tmp_path / "u", model=model)


def test_a_store_in_a_bucket_is_built_goes_on_and_grows(model: HyperCL, tmp_path: Path, bucket: str) -> None:
    source, store = write_csv(tmp_path / "a.csv"), f"{bucket}/my.store"
    upath.UPath(f"{bucket}/texts/a.csv").write_bytes(source.read_bytes())
    with pytest.raises(KeyboardInterrupt):
        build_store(f"{bucket}/texts", store, model=model, progress=interrupt)
    assert len(open_store(store)) == 4
    build_store(f"{bucket}/texts", store, model=model)
    build_store(source, tmp_path / "s", model=model)
    found, whole = contents(store), contents(tmp_path / "s")
    assert found[0] == whole[0]
    np.testing.assert_array_equal(found[1], whole[1])
    assert len(append_store(make_more(tmp_path / "b.csv"), store, model=model)) == 16
    with pytest.raises(DataError, match="is not a store"):
        build_store(source, f"{bucket}/texts", model=model)
