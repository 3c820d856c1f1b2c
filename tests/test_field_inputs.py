"""Inputs that other projects' users reported as broken, through every way in: Python, command line, HTTP, page.

A table gives the same cells everywhere. One with a bad row is an error with its place from Python and in a terminal;
over HTTP and on the page the row is left out, and the same reason is told.
"""

from __future__ import annotations

import csv
import html
import io
import json
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from pyarrow import parquet

import condviz
from condviz.analysis.errors.filters import quote
from condviz.analysis.points import points_from_table
from condviz.data.pairs import read_pairs
from condviz.data.tables import kind_of, read_table
from condviz.errors import CondvizError, DataError
from condviz.models import registry
from condviz.store.corpus import read_source
from condviz.ui.corpora import read_texts as read_for_search
from condviz.ui.errors.tab import TAB as ERRORS
from condviz.ui.imports import PAIRS, POINTS, RATED, TEXTS, TRAINED, Reading, inspect
from condviz.ui.links import LinksTab
from condviz.ui.pool import ModelPool
from tests.commands import Command
from tests.pages import build_view, last
from tests.tiny import tiny_model

COLUMNS = ("sentence1", "sentence2", "condition", "label", "score_m")
HEAD = ",".join((*COLUMNS, "id"))
LAST = ("7", "8")
"""Cells of the last rows of every table: a map takes no fewer than three texts."""


def row(number: int, cell: str = "x", *, separator: str = ",", text: str = "") -> str:
    cells = (text or f"A man surfs {number}.", "A girl skis.", "the sport", str(number % 5 + 1), f"0.{number + 1}")
    return separator.join((*cells, cell))


def table(*cells: str, separator: str = ",", end: str = "\n", head: str = HEAD) -> str:
    rows = [row(number, cell, separator=separator) for number, cell in enumerate((*cells, *LAST))]
    return end.join([head.replace(",", separator), *rows, ""])


def records(*cells: Any) -> list[dict[str, Any]]:
    cells = (*cells, *map(type(cells[0]), LAST)) if isinstance(cells[0], int) else (*cells, *LAST)
    made = (dict(zip(COLUMNS, row(number).split(","), strict=False)) for number, _ in enumerate(cells))
    return [{**one, "id": cell} for one, cell in zip(made, cells, strict=True)]


def as_lines(*cells: Any) -> str:
    return "".join(json.dumps(one) + "\n" for one in records(*cells))


def as_parquet(*cells: Any) -> bytes:
    import pyarrow as pa

    sink = io.BytesIO()
    parquet.write_table(pa.Table.from_pylist(records(*cells)), sink)
    return sink.getvalue()


@dataclass(frozen=True)
class Case:
    """A file; which cells of its column `id` can be used, but for `LAST`; a pattern for what is told of it."""

    name: str
    content: str | bytes
    cells: Sequence[str] = ()
    message: str = ""
    said: dict[str, Any] = field(default_factory=dict)
    file: str = "mine.csv"

    @property
    def kept(self) -> list[str]:
        return [*self.cells, *LAST] if self.cells else []

    def write(self, folder: Path) -> Path:
        path = folder / self.file
        path.write_bytes(self.content if isinstance(self.content, bytes) else self.content.encode())
        return path


IDS = ("1234567890123456789", "1234567890123456788", "1234567890123456789")
ODD = ("02134", "1E5", "1.10", "1.1", "Infinity", "Nan", "-0", "4.0", "2024-01-02", "=1+1")
BOM = b"\xef\xbb\xbf"
CASES = [
    # turicreate 1692, FastCSV 173, tatoeba2 2973, pandas 22661
    Case("open quote", table("y", "z").replace("\n", '\n"Hello, he said,b,c,3,0.5,x\n', 1), ("y", "z"),
         r"line 2\) cannot be read .*double quote that is not closed"),
    Case("backslash quotes", table("x") + r'"He said \"go\"",b,c,3,0.5,y' + "\n", ("x",), r"line 5\) cannot be read"),
    Case("quotes in a TSV", table("x", separator="\t") + '"A man" said\tb\tc\t3\t0.5\ty\n', ("x",), r"line 5\) cannot"),
    Case("download cut off", table("x", "y") + "A man", ("x", "y"), r"line 6\) has 1 cell, but the header has 6.*cut"),
    Case("a comma too many", table("x") + row(3, "y,z") + "\n", ("x",), r"line 5\) has 7 cells.*in double quotes"),
    # evidence 2966, csvkit 977, rows 302, sketch 4
    Case("long ids", table(*IDS), IDS),
    Case("what only looks like a number", table(*ODD), ODD),
    Case("long ids of JSON lines", as_lines(*map(int, IDS)), IDS, file="mine.jsonl"),
    Case("long ids of Parquet", as_parquet(*map(int, IDS)), IDS, file="mine.parquet"),
    Case("lists as cells", as_lines(["a", 1], {"b": None}), ('["a", "1"]', '{"b": null}'), file="mine.jsonl"),
    # PowerShell 7776, csvtk 13; league/csv 543, arlo 525
    Case("sep= of Excel", "sep=;\r\n" + table("a, b", "c", separator=";", end="\r\n"), ("a, b", "c")),
    Case("sep= in quotes behind a mark", BOM + b'"sep=;"\n' + table("a", "b", separator=";").encode(), ("a", "b")),
    Case("empty columns at the end", re.sub("\n", ",,,\n", table("x", "y")), ("x", "y")),
    # weave 6731, sqlite-utils 507
    Case("half an emoji beside the texts", as_lines("Bob \ud83d", "x"), ("x",), "half of a char", file="mine.jsonl"),
    # lib-cl-sii 1057, csv-viewer 4
    Case("a broken byte", table("Zürich é", "ü!", "Genf").encode().replace("ü!".encode(), b"\xfc!"),
         ("Zürich é", "Genf"), r"line 3\), column id has a broken byte"),
    Case("two marks and a blank nobody sees", BOM + BOM + ("\u200b" + table("x")).encode(), ("x",)),
    Case("UTF-16", table("Ü", "x").encode("utf-16"), ("Ü", "x")),
    Case("UTF-16 without a mark", table("Ü", "x").encode("utf-16-le"), ("Ü", "x")),
    Case("GBK by name", table("今日天", "好明").encode("gbk"), ("今日天", "好明"), said={"encoding": "gbk"}),
    Case("Shift-JIS", table("今日天気良好", "明日雨天中止").encode("shift-jis"), (), "set its encoding"),
    Case("cp1251", table("Съешь ещё этих мягких", "булок").encode("cp1251"), (), "set its encoding"),
    Case("Windows-1252", table("Crème brûlée", "x").encode("cp1252"), ("Crème brûlée", "x")),
    # pandas 5500, dgl-ke 207, query2labels 7
    Case("Ctrl-Z in a text", table("x") + row(1, "y", text="A man\x1a surfs.") + "\n", ("x",), r"control char.*001A"),
    Case("old line ends", table("x", "y", end="\r"), ("x", "y")),
    Case("upright bars", table("a,b", "c", separator="|"), ("a,b", "c")),
    Case("another separator", table("a,b", "c", separator="#"), ("a,b", "c"), said={"separator": "#"}),
    Case("the wrong separator", table("x", separator="#"), (), "has no column sentence1|Choose a column"),
    Case("a blank text", table("x") + ",b,c,3,0.5,y\n", ("x",), r"line 5\), column sentence1 is empty"),
    Case("a rating that is none", table("x") + "a,b,c,seven,0.5,y\n", ("x",), r"line 5\), column label must be a num"),
    # duplicate columns; gradio 2681; tokenizers 787, transformers 31337; gradio 4325
    Case("a column twice", table("x").replace("score_m", "id"), (), "two columns called 'id'"),
    Case("a long name", table("x", "y"), ("x", "y"), file=f"{'🙂' * 45}.csv"),
    Case("marks of the model", table("[SEP]", "x").replace("A girl", "[CLS] a [SEP] girl"), ("[SEP]", "x")),
    Case("other scripts", table("مرحبا", "😀").replace("A girl skis", "她滑雪 😀"), ("مرحبا", "😀")),
    # files that are no table
    Case("Excel", b"PK\x03\x04" + bytes(100), (), "is an Excel or zip file"),
    Case("nothing", "", (), "is empty|has no rows"),
    Case("names alone", HEAD + "\n", (), "header but no rows|corpus: it has no rows"),
    Case("JSON in one line", json.dumps(records("x", "y")), ("x", "y"), file="mine.json"),
]  # fmt: skip
ONLY_PAIRS = ("the wrong separator", "a blank text", "a rating that is none")
"""What is wrong with these is not wrong with a table of texts."""
FILES = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)


def refused(case: Case, read: Callable[[], Any]) -> None:
    with pytest.raises(CondvizError, match=case.message) as caught:
        read()
    assert "\n" not in str(caught.value)


# ---- Python and the command line: the first bad row is an error, unless it is said that bad rows are left out --------
@FILES
def test_python(case: Case, tmp_path: Path) -> None:
    path, further = case.write(tmp_path), case.name not in ONLY_PAIRS
    readers = [read_pairs, partial(read_source, column="sentence1")][: 1 + further]
    for read in readers if case.message else ():
        refused(case, lambda read=read: read(path, **case.said))
        if not case.cells:
            refused(case, lambda read=read: read(path, **case.said, skip_bad=True))
    if case.cells:
        pairs = read_pairs(path, **case.said, skip_bad=True)
        assert pairs.column("id") == case.kept
        assert bool(pairs.report.left_out) == bool(case.message)
        assert read_table(pairs.to_frame()).column("id") == case.kept
    if case.cells and further:
        rows = read_source(path, "sentence1", **case.said, skip_bad=True).rows()
        assert [one.cells["id"] for one in rows] == case.kept
        read = read_table(path, **case.said, skip_bad=True)
        points = points_from_table(read, text_column="sentence1", value_column="")
        assert list(points.columns["id"]) == case.kept


@FILES
def test_command_line(case: Case, tmp_path: Path, cli: Command) -> None:
    path = case.write(tmp_path)
    said = [word for name, value in case.said.items() for word in (f"--{name}", value)]
    words = ["errors", path, "--resamples", "0", "--out", "-", *said]
    if case.message:
        assert re.search(case.message, cli.refuse(*words))
        words.append("--skip-bad")
    if case.cells:
        found = csv.DictReader(io.StringIO(cli(*words).out, newline=""))
        assert [one["id"] for one in found] == case.kept
    else:
        cli.refuse(*words)


@pytest.mark.parametrize(
    "case", [case for case in CASES if case.name in ("open quote", "long ids")], ids=lambda case: case.name
)
def test_commands_with_a_model(
    case: Case, tmp_path: Path, model: Any, monkeypatch: pytest.MonkeyPatch, cli: Command
) -> None:
    monkeypatch.setattr(registry, "load", lambda *_, **__: model)
    path, store = case.write(tmp_path), tmp_path / "store"
    build = ["store", "build", path, "--out", store, "--column", "sentence1"]
    score = ["score", "-", "--model", "hyper-cl"]
    for words in (build, ["map", path, "--text-column", "sentence1", "--method", "pca"], score):
        if case.message:
            assert re.search(case.message, cli.refuse(*words, stdin=path.read_text()))
        printed = cli(*words, "--skip-bad", stdin=path.read_text()).out
    scored = csv.DictReader(io.StringIO(printed))
    assert [one["id"] for one in scored] == case.kept
    kept = condviz.open_store(store)
    assert [one["id"] for one in kept.rows(range(len(kept)))] == case.kept


# ---- HTTP and page: what cannot be used is left out and told ---------------------------------------------------------
@pytest.fixture(scope="module")
def errors() -> Any:
    return build_view(ERRORS, ModelPool(["minilm"], load=lambda name: pytest.fail(f"{name} was loaded")))


@pytest.fixture(scope="module")
def model() -> Any:
    made = tiny_model("hyper-cl", pooling="mean")
    made.info = registry.describe("hyper-cl")
    return made


@pytest.fixture(scope="module")
def links(model: Any) -> Any:
    return build_view(LinksTab, ModelPool(["hyper-cl"], lambda name: model))


@pytest.mark.parametrize("case", [case for case in CASES if isinstance(case.content, str)], ids=lambda case: case.name)
def test_http(case: Case, errors: Any) -> None:
    def ask(filter_: str = "") -> dict[str, Any]:
        return errors.api_errors(case.content, ["m"], reading=case.said, filter=filter_, resamples=0)

    if not case.content:
        refused(replace(case, message="There are no rows called"), ask)
    elif not case.cells:
        refused(case, ask)
    else:
        told = ask()["dataset"]
        assert told["rows"] == len(case.kept)
        assert bool(case.message) == bool(re.search(case.message or "left out", " ".join(told["notes"])))
        kind = None
        for cell in case.kept:
            kind = kind_of(cell, kind)
        for cell, count in Counter(case.kept).items():
            found = ask(f"id == {cell if kind == 'number' else quote(cell)}")
            assert found["figures"]["part"]["n"] == count


@FILES
def test_page(case: Case, errors: Any, tmp_path: Path) -> None:
    asked = Reading(str(case.write(tmp_path)), **case.said)
    opened = errors.own._look(asked)
    told = html.unescape(f"{opened.get(errors.own.told, '')} {opened[errors.own.view]}")
    assert re.search(case.message, told)
    if not case.cells:
        return
    done = last(errors.use_upload(opened[errors.own.reading], "m", "", None))
    assert list(errors.desk.dataset(done[errors.choice].source).extra["id"]) == case.kept
    for kind in (RATED, TRAINED) if case.name == "a rating that is none" else (PAIRS, RATED, TRAINED):
        found = inspect(kind, asked).reading
        assert bool(found.problem) == (kind is TRAINED), "these are too few rows to learn from"
        assert found.pairs(found.table(kind) if found.problem else None).column("id") == case.kept
    if case.name not in ONLY_PAIRS:
        assert read_for_search(inspect(TEXTS, asked).reading)[1]["id"] == case.kept
        assert [cells[5] for cells in inspect(POINTS, asked).used.rows] == case.kept


# ---- graphs: names that differ are different ones, and no first row vanishes -----------------------------------------
CASES_OF_ENTITIES = {
    "entities.tsv": "Co\tCo\ta metal\nCO\tCO\ta gas\nFe\tFe\tiron\nO2\tO2\toxygen\n",
    "relations.tsv": "in\tis contained in\n",
    "triples.tsv": "Co\tin\tFe\nCO\tin\tO2\n",
}
RELATIONS = {
    "entities.tsv": "a\tthe whole\nb\tthe half\nc\tthe rest\n",
    "relations.tsv": "part of\tpart of\ninverse part of\tinverse part of\n_part_of\tis inside\n",
    "triples.tsv": "a\tpart of\tb\na\tinverse part of\tc\nb\t_part_of\tc\n",
}
BODY = {
    "entities.tsv": "id\tIndonesia\nhead\tthe head\nnose\tthe nose\n",
    "relations.tsv": "id\tis called\nhas\thas\n",
    "triples.tsv": "head\thas\tnose\nnose\tid\tid\n",
}
QUOTED = {"entities.tsv": 'a\t"the ""big"" one"\nb\tcafé\n', "relations.tsv": "in\tin\n", "triples.tsv": "a\tin\tb\n"}
QUESTIONS = [
    # graphify 3726, kg-bioportal 145
    (CASES_OF_ENTITIES, "Co", "in", ("Co", "Fe")),
    (CASES_OF_ENTITIES, "CO", "in", ("CO", "O2")),
    (CASES_OF_ENTITIES, "Co (Co)", "in", ("Co", "Fe")),
    (CASES_OF_ENTITIES, "co", "in", "There are 2 entities named 'co'"),
    # SimKGC 34, pykeen 677, 1247
    (RELATIONS, "a", "part of", ("a", "b")),
    (RELATIONS, "a", "inverse part of", ("a", "c")),
    (RELATIONS, "b", "_part_of", ("b", "c")),
    (RELATIONS, "a", "inverse of", "There is no relation 'inverse of'"),
    # pykeen 475, DRKG 29, arcadedb 7345, langchain 6460
    (BODY, "head", "has", ("head", "nose")),
    (BODY, "nose", "id", ("nose", "id")),
    # miller 922; an accent in two characters
    (QUOTED, 'the "big" one', "in", ("a", "b")),
    (QUOTED, "cafe\u0301", "inverse in", ("b", "a")),
]  # fmt: skip
GRAPHS = pytest.mark.parametrize(("tables", "entity", "relation", "expected"), QUESTIONS)


def write_graph(folder: Path, tables: Mapping[str, str]) -> Path:
    for name, content in tables.items():
        (folder / name).write_text(content, encoding="utf-8")
    return folder


def facts(answer: Mapping[str, Any]) -> tuple[str, str]:
    """Return the entity that was asked about, and what the graph answers."""
    (known,) = answer["known"]
    return answer["entity_id"], known["id"]


@GRAPHS
def test_graphs(
    tables: Mapping[str, str], entity: str, relation: str, expected: tuple | str, model: Any, links: Any,
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cli: Command,
) -> None:  # fmt: skip
    monkeypatch.setenv("CONDVIZ_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(registry, "load", lambda *_, **__: model)
    folder = write_graph(tmp_path, tables)
    words = ["links", entity, relation, "--graph", folder, "--json"]
    done = last(links.read_upload([str(folder / name) for name in tables], "", "", "", None))
    key = done[links.graph].value
    if isinstance(expected, str):
        with pytest.raises(DataError, match=expected):
            condviz.predict_links(model, entity, relation, graph=str(folder))
        assert expected in cli.refuse(*words)
        return
    assert facts(condviz.predict_links(model, entity, relation, graph=folder).to_dict()) == expected
    assert facts(json.loads(cli(*words).out)[0]) == expected
    graph = links._graph(key)
    asked = graph.find_relation(relation)
    number, inverse = asked % graph.num_relations, asked >= graph.num_relations
    pressed = SimpleNamespace(entity="", relation=graph.relations[number].id, direction="head" if inverse else "tail")
    shown = last(links.click(pressed, entity, "hyper-cl", key, None))[links.shown]
    assert facts(shown.answers[0].to_dict()) == expected


# ---- what only Python can hold ---------------------------------------------------------------------------------------
TEXTS_HELD = ["a man rides a bike", "two dogs run", "a cat", "the man is happy"]
MOOD = "the mood"
RECORDS = [{"text": text, "condition": MOOD} for text in TEXTS_HELD]
GOOD: dict[str, Callable[[Any], Any]] = {
    "a map of records": lambda model: condviz.build_map(model, RECORDS, method="pca"),
    "a map of columns": lambda model: condviz.build_map(model, pd.DataFrame(RECORDS), method="pca"),
    "conditions as a column": lambda model: condviz.compare([model], "a", "b", pd.Series([MOOD])),
    "texts as columns": lambda model: model.score(*map(pd.Series, (TEXTS_HELD, TEXTS_HELD, [MOOD] * 4))),
    "vectors of two kinds": lambda model: model.similarity(np.ones((2, 3)), np.ones((2, 3), np.int8)),
    "vectors of zeros": lambda model: model.similarity(np.zeros((2, 3)), np.ones((2, 3))),
    "no rows": lambda model: model.score([], [], []),
    "equal ratings": lambda model: condviz.find_errors(model, [{**one, "label": 3} for one in PAIRS_HELD], resamples=0),
}
PAIRS_HELD = [{"sentence1": text, "sentence2": "a cat", "condition": MOOD} for text in TEXTS_HELD]
BAD: dict[str, tuple[Callable[[Any], Any], str]] = {
    "lists as texts": (lambda model: condviz.build_map(model, {"text": [["a"]] * 4}, [MOOD]), "a list or a record"),
    "a column as a table": (lambda model: condviz.evaluate(model, pd.Series([1, 2])), "Pass a table"),
    "texts as a store": (lambda model: condviz.search(TEXTS_HELD, "a cat", MOOD, model=model), "A file or a folder"),
    "texts as a folder": (lambda model: condviz.group_by(pd.Series(TEXTS_HELD), MOOD, model=model), "or a folder"),
    "texts as vectors": (lambda model: model.similarity("a cat", "a man"), "vectors of numbers"),
    "vectors of two widths": (lambda model: model.similarity(np.ones((2, 3)), np.ones((2, 4))), "of one length"),
    "gaps": (lambda model: model.score(pd.Series(["a", None]), ["a", "b"], [MOOD] * 2), "nan cannot be encoded"),
    "one text": (lambda model: model.score("a", "b", MOOD), "Put each text into a list"),
    "no graph": (lambda model: condviz.predict_links(model, "a", "b", graph=Path("missing")), "no graph 'missing'"),
    "no entity": (lambda model: condviz.predict_links(model, None, "eats"), "entity must be text"),
    "few points": (lambda model: condviz.build_map(model, ["a"] * 5, [MOOD]), "at least 3 different sentences"),
}


@pytest.mark.parametrize("name", GOOD)
def test_python_objects(name: str, model: Any) -> None:
    assert GOOD[name](model) is not None


@pytest.mark.parametrize("name", BAD)
def test_python_objects_that_cannot_be_used(name: str, model: Any) -> None:
    call, message = BAD[name]
    with pytest.raises(CondvizError, match=message):
        call(model)
