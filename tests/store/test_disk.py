"""Stores on disk: what is kept, what is refused, and what a kill costs."""

from __future__ import annotations

import csv
import json
import resource
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from condviz.errors import ConfigError, DataError
from condviz.methods.hyper_cl import HyperCL
from condviz.store import build
from condviz.store.build import append_store, build_store
from condviz.store.disk import open_store
from tests.stand_ins import interrupt
from tests.tiny import SENTENCES, tiny_model

pytest.importorskip("lance")


def make_model(seed: int = 0) -> HyperCL:
    return tiny_model("hyper-cl", seed=seed, transform=False)


@pytest.fixture(scope="module")
def model() -> HyperCL:
    return make_model()


@pytest.fixture
def small_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build, "SLICE_ROWS", 4)


def write_csv(path: Path, rows: int = 10) -> Path:
    with path.open("w", newline="", encoding="utf-8") as file:
        table = csv.writer(file)
        table.writerow(["text", "stars", "kind of dog"])
        table.writerows([f"{SENTENCES[i % 4]} {i}", i, "" if i % 2 else "poodle"] for i in range(rows))
    return path


def contents(folder: Path) -> tuple:
    store = open_store(folder)
    return store.rows(range(len(store))), *store.vectors(np.arange(len(store)))


def test_a_store_holds_rows_and_vectors(model: HyperCL, tmp_path: Path, small_slices: None) -> None:
    told = []
    store = build_store(
        write_csv(tmp_path / "a.csv"), tmp_path / "s", model=model, progress=lambda *now: told.append(now)
    )
    assert told == [(4, 10), (8, 10), (10, 10)]
    assert store.complete
    assert store.columns == {"stars": "number", "kind_of_dog": "text"}
    first = store.rows([2])[0]
    assert first == {"row": 3, "text": f"{SENTENCES[2]} 2", "stars": 2.0, "kind_of_dog": "poodle"}
    vectors, norms = store.vectors(np.array([2]))
    expected = model.encode_sentences([first["text"]])
    np.testing.assert_allclose(vectors.astype(np.float32) * norms[:, None], expected, rtol=2e-3, atol=2e-3)
    starts, blocks, _ = zip(*store.blocks(), strict=True)
    assert starts == (0,)
    np.testing.assert_array_equal(np.concatenate(blocks)[2], vectors[0])
    assert store.column("stars").tolist() == list(range(10))
    assert store.column("row").tolist() == list(range(1, 11))


def test_without_its_flat_copy_a_store_reads_its_rows(model: HyperCL, tmp_path: Path) -> None:
    build_store(write_csv(tmp_path / "a.csv"), tmp_path / "s", model=model)
    mapped = [np.array(values) for _, *block in open_store(tmp_path / "s").blocks() for values in block]
    (tmp_path / "s" / "vectors.npy").unlink()
    read = [np.array(values) for _, *block in open_store(tmp_path / "s").blocks() for values in block]
    for one, other in zip(mapped, read, strict=True):
        np.testing.assert_array_equal(one, other)


def test_cancelling_keeps_what_is_done(model: HyperCL, tmp_path: Path, small_slices: None) -> None:
    source = write_csv(tmp_path / "a.csv")
    for rows in (4, 8):
        with pytest.raises(KeyboardInterrupt):
            build_store(source, tmp_path / "s", model=model, progress=interrupt)
        assert len(open_store(tmp_path / "s")) == rows
    build_store(source, tmp_path / "s", model=model)
    build_store(source, tmp_path / "whole", model=model)
    found, whole = contents(tmp_path / "s"), contents(tmp_path / "whole")
    assert found[0] == whole[0]
    np.testing.assert_array_equal(found[1], whole[1])


def test_a_killed_first_slice_leaves_nothing_in_the_way(model: HyperCL, tmp_path: Path) -> None:
    source = write_csv(tmp_path / "a.csv")
    build_store(source, tmp_path / "s", model=model)
    for manifest in (tmp_path / "s" / "rows.lance" / "_versions").iterdir():
        manifest.unlink()
    with pytest.raises(DataError, match="no rows yet"):
        open_store(tmp_path / "s")
    assert len(build_store(source, tmp_path / "s", model=model)) == 10


def test_other_rows_and_other_models_are_refused(model: HyperCL, tmp_path: Path) -> None:
    source = write_csv(tmp_path / "a.csv")
    build_store(source, tmp_path / "s", model=model)
    with pytest.raises(DataError, match="other rows"):
        build_store(write_csv(tmp_path / "b.csv", 11), tmp_path / "s", model=model)
    with pytest.raises(DataError, match="makes others"):
        build_store(source, tmp_path / "s", model=make_model(seed=1))
    with pytest.raises(DataError, match="is not a store"):
        build_store(source, tmp_path, model=model)


def make_more(path: Path) -> Path:
    """Rows of which two have texts that `write_csv` writes, and two have the same text."""
    texts = [f"{SENTENCES[0]} 0", "a new bike", "the wet park", f"{SENTENCES[3]} 3", "a new bike", "grass"]
    path.write_text("stars,text\n" + "".join(f"{number},{text}\n" for number, text in enumerate(texts)))
    return path


def test_rows_are_added_and_no_text_is_encoded_twice(
    model: HyperCL, tmp_path: Path, small_slices: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    build_store(write_csv(tmp_path / "a.csv"), tmp_path / "s", model=model)
    more = make_more(tmp_path / "b.csv")
    encoded: list[str] = []
    encode = HyperCL.encode_sentences
    monkeypatch.setattr(
        HyperCL, "encode_sentences", lambda self, texts, **kw: encoded.extend(texts) or encode(self, texts, **kw)
    )

    with pytest.raises(KeyboardInterrupt):
        append_store(more, tmp_path / "s", model=model, progress=interrupt)
    begun = open_store(tmp_path / "s")
    assert (len(begun), begun.complete) == (14, False)
    with pytest.raises(DataError, match="does not hold all rows"):
        append_store(write_csv(tmp_path / "c.csv", 3), tmp_path / "s", model=model)
    for _ in range(2):  # the second time there is nothing left to add
        store = append_store(more, tmp_path / "s", model=model)
    assert (len(store), store.complete) == (16, True)
    assert sorted(encoded) == ["a new bike", "grass", "the wet park"]
    assert store.rows([10])[0] == {"row": 11, "text": f"{SENTENCES[0]} 0", "stars": 0.0, "kind_of_dog": None}
    vectors, norms = store.vectors(np.arange(16))
    for one, other in ((10, 0), (13, 3), (14, 11)):
        np.testing.assert_array_equal(vectors[one], vectors[other])
        assert norms[one] == norms[other]
    np.testing.assert_array_equal(np.concatenate([block for _, block, _ in store.blocks()]), vectors)
    expected = encode(model, ["grass"])[0]
    np.testing.assert_allclose(vectors[15].astype(np.float32) * norms[15], expected, rtol=2e-3, atol=2e-3)
    assert build_store(tmp_path / "a.csv", tmp_path / "s", model=model).complete


def test_rows_that_do_not_fit_are_not_added(model: HyperCL, tmp_path: Path) -> None:
    build_store(write_csv(tmp_path / "a.csv"), tmp_path / "s", model=model)
    for content, message in (
        ("text,colour\na cat,red\n", "has a column colour"),
        ("text,stars\na cat,many\n", "in .* it holds numbers"),
        ("title\na cat\n", "no column 'text'"),
    ):
        (tmp_path / "b.csv").write_text(content)
        with pytest.raises(DataError, match=message):
            append_store(tmp_path / "b.csv", tmp_path / "s", model=model)
    with pytest.raises(DataError, match="makes others"):
        append_store(make_more(tmp_path / "b.csv"), tmp_path / "s", model=make_model(seed=1))
    with pytest.raises(DataError, match="is not a store"):
        append_store(tmp_path / "b.csv", tmp_path / "nothing", model=model)
    assert not (tmp_path / "nothing").exists()
    assert len(open_store(tmp_path / "s")) == 10


def test_a_store_of_the_first_version_is_read(model: HyperCL, tmp_path: Path) -> None:
    source = write_csv(tmp_path / "a.csv")
    build_store(source, tmp_path / "s", model=model)
    meta = tmp_path / "s" / "store.json"
    content = json.loads(meta.read_text())
    [part] = content.pop("parts")
    meta.write_text(json.dumps(content | part | {"version": 1}))
    assert open_store(tmp_path / "s").complete
    assert len(append_store(make_more(tmp_path / "b.csv"), tmp_path / "s", model=model)) == 16


@pytest.fixture
def small_files() -> Iterator[None]:
    """Let no file grow beyond what a slice takes: to the writer this is a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_full_disk_keeps_what_is_stored(
    model: HyperCL, tmp_path: Path, small_slices: None, small_files: None
) -> None:
    def fill(done: int, total: int) -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (64, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))

    source = write_csv(tmp_path / "a.csv")
    with pytest.raises(DataError, match="Free some space"):
        build_store(source, tmp_path / "s", model=model, progress=fill)
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))
    assert len(open_store(tmp_path / "s")) == 4
    assert build_store(source, tmp_path / "s", model=model).complete


def test_a_damaged_store_says_so(model: HyperCL, tmp_path: Path) -> None:
    build_store(write_csv(tmp_path / "a.csv"), tmp_path / "s", model=model)
    data = next((tmp_path / "s" / "rows.lance" / "data").iterdir())
    data.write_bytes(data.read_bytes()[:100])
    for left in (b"", b"cut off"):
        (tmp_path / "s" / "vectors.npy").write_bytes(left)
        with pytest.raises(DataError, match="damaged or incomplete"):
            list(open_store(tmp_path / "s").blocks())
    meta = tmp_path / "s" / "store.json"
    meta.write_text(json.dumps(json.loads(meta.read_text()) | {"version": 99}))
    with pytest.raises(DataError, match="version 99"):
        open_store(tmp_path / "s")
    meta.write_text("{")
    with pytest.raises(DataError, match="is damaged"):
        open_store(tmp_path / "s")
    with pytest.raises(DataError, match="is not a store"):
        open_store(tmp_path)


def test_vectors_need_a_model_that_has_them(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="has no vectors"):
        build_store(write_csv(tmp_path / "a.csv"), tmp_path / "s", model="cross-encoder")


def test_a_store_keeps_cells_as_they_are_and_lists_what_was_left_out(model: HyperCL, tmp_path: Path) -> None:
    table = tmp_path / "a.csv"
    table.write_text(
        'text,id,stars,zip\nA cat.,1234567890123456789,4,02134\n"Open,2,4.5,1\nA dog.,1234567890123456788,5.0,\n'
    )
    store = build_store(table, tmp_path / "s", model=model, skip_bad=True)
    assert store.columns == {"id": "text", "stars": "number", "zip": "text"}
    assert [[str(cell) for cell in list(row.values())[2:]] for row in store.rows([0, 1])] == [
        ["1234567890123456789", "4", "02134"],
        ["1234567890123456788", "5.0", "None"],
    ]
    assert store.column("stars").tolist() == [4, 5]
    left_out = list(csv.DictReader((tmp_path / "s" / "left_out.csv").open()))
    assert [(row["line"], row["content"]) for row in left_out] == [("3", '"Open,2,4.5,1')]


def test_a_store_of_an_earlier_version_goes_on_with_numbers(
    model: HyperCL, tmp_path: Path, small_slices: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    import pyarrow as pa

    def with_numbers(rows: list, meta: object, *rest: object) -> pa.Table:
        found = disk.to_table(rows, meta, *rest[:2])
        stars = pa.array([float(row.cells["stars"]) for row in rows], pa.float64())
        return found.set_column(found.schema.get_field_index("stars"), "stars", stars)

    path, disk = write_csv(tmp_path / "a.csv"), build.disk
    with monkeypatch.context() as patch:
        patch.setattr(build, "disk", SimpleNamespace(**vars(disk) | {"to_table": with_numbers}))
        with pytest.raises(KeyboardInterrupt):
            build_store(path, tmp_path / "s", model=model, progress=interrupt)
    store = build_store(path, tmp_path / "s", model=model)
    assert store.complete
    assert [row["stars"] for row in store.rows(range(10))] == list(range(10))
