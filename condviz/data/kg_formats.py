"""Readers of knowledge graphs: WN18RR, FB15k-237 in the files of SimKGC, and anybody's graph from one table or three.

The data sets are third-party: they are read from the folder CONDVIZ_DATA, else `shared/data` beside the checkout.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from hashlib import sha256
from pathlib import Path

from condviz.data.corpora import data_folder
from condviz.data.kg import SPLITS, Entity, Graph, Relation, build_graph
from condviz.data.tables.formats import Form, find_separator, fold_name, read_cells, read_lines, tell_encoding
from condviz.data.tables.report import Place, Report, find_fault
from condviz.errors import DataError
from condviz.paths import ASSETS

EVERYDAY = "everyday"
LARGE = ("wn18rr", "fb15k237")
"""The graphs of the papers; their files are other people's and come from `data_folder()`."""
TABLES = ("entities", "relations", "triples")
"""What the three tables of somebody's graph are called, with any of these endings."""
_ENDINGS = (".tsv", ".csv", ".tab", ".txt")
_NAMES = "name label text title"
ENTITY_HEADER = ("id entity", _NAMES, "description definition text")
RELATION_HEADER = ("id relation", f"{_NAMES} description")
TRIPLE_HEADER = (
    "head subject source from h s entity1 thing kopf subjekt quelle gegenstand ding sujet sujeto",
    "relation predicate r p edge beziehung prädikat relación prédicat predicado",
    "tail object target to t o entity2 ziel objekt objet objeto", "split",
)  # fmt: skip
"""What the cells of a first row have to be, all of them, to name the columns."""
PARTS = ("head", "relation", "tail")
MAX_TABLE_BYTES = 5 * 2**20
MAX_ENTITIES, MAX_TRIPLES = 5_000, 100_000
"""Of an uploaded graph: about a minute of encoding."""
FB_WORDS = 50
"""Words kept of a description of FB15k-237 (SimKGC, preprocess.py)."""
SENSE_FIELDS = 2
"""Part of speech and sense number at the end of a name of WN18RR: land_reform_NN_1."""
MAX_ROWS = 5_000_000
NOTICES = {
    "wn18rr": "WN18RR by Dettmers, Minervini, Stenetorp and Riedel (AAAI 2018, MIT licence), after WN18 by Bordes et "
    "al. (2013). WordNet 3.0 Copyright 2006 by Princeton University. All rights reserved.",
    "fb15k237": "FB15k-237 by Toutanova and Chen (2015), from Freebase (CC BY 2.5); descriptions as in SimKGC.",
}
"""Who has to be named, and the licence."""

Row = tuple[str, ...]
_AUTOMATIC = Form()
_ADVICE = "Put the files of the graph into this folder, or set CONDVIZ_DATA to the folder above."


def load_graph(
    name: str | Path = "wn18rr", header: bool | None = None, separator: str = "", encoding: str = "",
    skip_bad: bool = False,
) -> Graph:  # fmt: skip
    """Load a graph, once as long as its files stay the same.

    Args:
        name: "everyday" (the small graph that ships here), "wn18rr", "fb15k237", a folder of tables (see
            `read_tables`), or one file of triples.
        header, separator, encoding, skip_bad: Of somebody's tables, as `read_table` takes them; see `Graph.notes`.

    Raises:
        DataError: If there is no such graph on this machine, or its files cannot be used.
    """
    name = str(name)
    ours = {EVERYDAY: ASSETS / "graph" / EVERYDAY, **{large: data_folder() / large for large in LARGE}}
    if name not in ours and not os.path.exists(name):  # unlike Path.exists, also of a text too long for a path
        raise DataError(
            f"There is no graph {name[:200]!r}. Known: {', '.join(ours)}; or give a folder of tables, or one table."
        )
    place, form = ours.get(name, Path(name)), Form(header, separator, encoding)
    if name in ours and (form != Form() or skip_bad):
        raise DataError(f"{name} is read as it ships: leave out header, separator, encoding and skip_bad.")
    stats = (path.stat() for path in _find_tables(place)) if name not in LARGE else ()
    stamp = tuple((stat.st_mtime_ns, stat.st_size) for stat in stats)
    return _load(name, place, stamp, form, skip_bad)


@cache
def _load(name: str, place: Path, stamp: tuple[tuple[int, int], ...], form: Form, skip_bad: bool) -> Graph:
    """Read a graph; `stamp` says which state of its files."""
    if name in LARGE:
        return (read_wn18rr if name == "wn18rr" else read_fb15k237)(place)
    return read_tables(place, form, Report(skip_bad=skip_bad))


def list_graphs() -> list[str]:
    """Return the names of the graphs on this machine, the one that ships here first."""
    return [EVERYDAY, *(name for name in LARGE if (data_folder() / name / "train.txt").is_file())]


def read_wn18rr(folder: Path) -> Graph:
    """Read WN18RR: triples, and names and definitions from entities.tsv or SimKGC's wordnet-mlj12-definitions.txt."""
    names = folder / "entities.tsv"
    if not names.is_file() and (other := folder / "wordnet-mlj12-definitions.txt").is_file():
        names = other
    entities = [
        Entity(number, name.removeprefix("__"), parse_wordnet_name(name), description)
        for number, name, description in _rows(names, 3)
    ]
    triples = _splits(folder)
    relations = [Relation(kind, kind.replace("_", " ").strip()) for kind in _kinds(triples)]
    return build_graph("wn18rr", entities, relations, triples, hops=5, notice=NOTICES["wn18rr"])


def parse_wordnet_name(name: str) -> str:
    """Return the name that encoders read: "__family_alcidae_NN_1" -> "family alcidae" (SimKGC, preprocess.py)."""
    return " ".join(name.replace("__", "").split("_")[:-SENSE_FIELDS])


def read_fb15k237(folder: Path) -> Graph:
    """Read FB15k-237: triples, FB15k_mid2name.txt and FB15k_mid2description.txt."""
    descriptions = {}
    for key, text in _rows(folder / "FB15k_mid2description.txt", 2):  # a literal: "..."@en
        text = text.removesuffix("@en").strip().removeprefix('"').removesuffix('"')
        descriptions[key] = text.replace("\\n", " ").replace('\\"', '"')
    triples = _splits(folder)
    used = {end for rows in triples.values() for head, _, tail in rows for end in (head, tail)}
    found = [(key, name) for key, name in _rows(folder / "FB15k_mid2name.txt", 2) if key in used]
    entities = [
        Entity(key, label, name.replace("_", " ").strip(), " ".join(descriptions.get(key, "").split()[:FB_WORDS]))
        for (key, name), label in zip(found, _labels(found), strict=True)
    ]
    relations = [Relation(kind, parse_freebase_relation(kind)) for kind in _kinds(triples)]
    return build_graph("fb15k237", entities, relations, triples, hops=2, notice=NOTICES["fb15k237"])


def parse_freebase_relation(relation: str) -> str:
    """Return what encoders read: "/film/film/genre" -> "genre film" (SimKGC, preprocess.py: reversed, no repeats)."""
    parts: list[str] = []
    for part in relation.replace("./", "/").replace("_", " ").strip().split("/"):
        if part not in parts[-3:]:
            parts.append(part)
    return " ".join(reversed(parts)).strip()


def read_tables(place: Path, form: Form = _AUTOMATIC, report: Report | None = None) -> Graph:
    """Read anybody's graph from a folder of three tables, with tabs unless no line has one, or from one of triples.

    entities.tsv: id, name, description (may be blank). relations.tsv: id, text. triples.tsv: head, relation, tail, and,
    if wanted, split: train, valid or test; without it, all triples are train. triples.tsv is enough: what it names are
    the entities and relations then. Names may end in .csv, .tab or .txt as well; names of columns are not needed.

    Raises:
        DataError: If a file is missing or cannot be used; the message names file and line.
    """
    name = place.stem if place.is_file() else place.name
    return _read_graph(name, _choose(_find_tables(place)), form, report or Report())


def _find_tables(place: Path) -> list[Path]:
    if place.is_file():
        return [place]
    return sorted(path for path in place.iterdir() if path.stem.lower() in TABLES and path.suffix.lower() in _ENDINGS)


def _choose(paths: Sequence[Path]) -> list[Path]:
    """Return all of `TABLES` in their order, or one table of triples of any name; raises DataError for others."""
    found = {path.stem.lower(): path for path in paths}
    got = ", ".join(sorted(path.name for path in paths)) or "nothing"
    if len(found) < len(paths):
        raise DataError(f"Two tables have the same name but for its ending: {got}. Leave out one of them.")
    if len(paths) == 1 and not found.keys() & {*TABLES[:2]}:
        return list(paths)
    if missing := [name for name in TABLES if name not in found]:
        raise DataError(
            f"Missing: {', '.join(missing)}; received: {got}. Choose one table of triples (head, relation, tail), or "
            f"all three together: {', '.join(TABLES)}, each for instance with the ending .tsv."
        )
    return [found[name] for name in TABLES]


def read_files(paths: Sequence[Path], form: Form = _AUTOMATIC, report: Report | None = None) -> tuple[str, Graph]:
    """Read the files that a visitor uploaded, triples alone or all of `TABLES`: return their SHA-256, and the graph.

    Raises DataError if a table is missing, cannot be used, or is larger than what a visitor waits for.
    """
    content, files = sha256(str(form).encode()), _choose(paths)
    for path in files:
        if path.stat().st_size > MAX_TABLE_BYTES:
            raise DataError(f"{path.name} is larger than {MAX_TABLE_BYTES // 2**20} MB. Take a part of the graph.")
        content.update(path.read_bytes())
    graph = _read_graph("yours", files, form, report or Report())
    if not len(graph.triples):
        raise DataError(f"{files[-1].name} has no rows, so nothing shows which questions make sense. Add some.")
    if graph.num_entities > MAX_ENTITIES or len(graph.triples) > MAX_TRIPLES:
        raise DataError(
            f"The graph has {graph.num_entities:,} entities and {len(graph.triples):,} triples; at most "
            f"{MAX_ENTITIES:,} and {MAX_TRIPLES:,} are read here. Take a part of it, or use: "
            "python -m condviz links --graph FOLDER"
        )
    return content.hexdigest(), graph


def _read_graph(name: str, paths: Sequence[Path], form: Form, report: Report) -> Graph:
    """Read a graph from all of `TABLES`, or from its triples alone: what they name is what there is then."""
    *others, last = paths
    splits, place = _split(last, form, report)
    if others:
        found = [(*row, "")[:3] for _, row in _table(others[0], ENTITY_HEADER, 2, form, report)]
        labels = _labels([(key, name) for key, name, _ in found])
        nodes = [Entity(key, label, *rest) for (key, *rest), label in zip(found, labels, strict=True)]
        kinds = [Relation(*row) for _, row in _table(others[1], RELATION_HEADER, 2, form, report)]
    else:
        keys = dict.fromkeys(end for split in SPLITS for head, _, tail in splits[split] for end in (head, tail))
        if not keys:
            raise report.error(f"{last.name} has no row that can be used. Give triples: head, relation, tail.")
        nodes = [Entity(key, key, key.replace("_", " ").strip() or key) for key in keys]
        kinds = [Relation(kind, kind.replace("_", " ").strip() or kind) for kind in _kinds(splits)]
    return replace(build_graph(name, nodes, kinds, splits, place=place), notes=report.notes)


def _split(triples: Path, form: Form, report: Report) -> tuple[dict[str, list[Row]], Callable[[str, int], str]]:
    """Return the triples of each split, and what says where one of them stands."""
    splits: dict[str, list[Row]] = {split: [] for split in SPLITS}
    lines: dict[str, list[int]] = {split: [] for split in SPLITS}
    for line, row in _table(triples, TRIPLE_HEADER, 3, form, report):
        split = (*row, "train")[3].strip().lower()
        if blank := next((part for part, cell in zip(PARTS, row, strict=False) if not cell.strip()), ""):
            _reject(report, triples, line, f"has no {blank}.", row)
        elif split not in splits:
            _reject(report, triples, line, f"has the split {row[3]!r}; allowed are {', '.join(SPLITS)}.", row)
        else:
            splits[split].append(row[:3])
            lines[split].append(line)
    return splits, lambda split, number: f"{triples.name}, line {lines[split][number]}"


def _labels(entities: Sequence[tuple[str, str]]) -> list[str]:
    """Return unique labels: the name, with the id behind it where several entities share the name."""
    counts = Counter(name.casefold() for _, name in entities)
    return [f"{name} ({key})" if counts[name.casefold()] > 1 else name for key, name in entities]


def _splits(folder: Path) -> dict[str, list[Row]]:
    return {split: _rows(folder / f"{split}.txt", 3) for split in SPLITS}


def _kinds(triples: dict[str, list[Row]]) -> list[str]:
    """Return the relations in the order of their first triple."""
    return list(dict.fromkeys(kind for rows in triples.values() for _, kind, _ in rows))


def _rows(path: Path, count: int) -> list[Row]:
    """Read the rows of a published file, in which quotes are common characters."""
    return [row for _, row in _table(path, [""] * count, count, Form(False, "\t"), Report(), quotings=(False,))]


def _table(
    path: Path, headers: Sequence[str], least: int, form: Form, report: Report, quotings: Sequence[bool] = (True, False)
) -> list[tuple[int, Row]]:
    """Return (line, cells) of a table of somebody's; its first row names the columns if all cells do, or stand apart.

    Quotes are common characters, unless the whole file has them as CSV does: so pandas writes names with quotes.
    """
    rows = _cells(path, form, quotings, report)
    allowed = [names.split() for names in headers]
    like = [fold_name(cell) in names for cell, names in zip(rows[0][1], allowed, strict=False)] if rows else []
    apart = _stands_apart([row for _, row, _ in rows])
    if form.header is None and (apart or any(like)) and not (like and all(like)):
        first = ", ".join(cell[:30] for cell in rows[0][1])
        taken = "as names of the columns. If it is" if apart else "as a row. If it names the columns"
        report.remarks.append(
            f"{path.name}: the first row ({first}) was taken {taken}{' a row' * apart}, say so (header)."
        )
    if like and (all(like) or apart if form.header is None else form.header):
        rows = rows[1:]
    if len(rows) > MAX_ROWS:
        raise DataError(
            f"{path.name} has {len(rows):,} rows, and at most {MAX_ROWS:,} are read. Take a part of the graph."
        )
    kept, wanted = [], str(least) if least == len(headers) else f"{least} to {len(headers)}"
    for line, row, broken in rows:
        advice = "" if least <= len(row) <= len(headers) else "Separate them by tabs, or say by what (separator)."
        wrong = advice and f"has {len(row)} column{'s' * (len(row) != 1)}, not {wanted}. {advice}"
        if fault := broken or wrong or next(filter(None, map(find_fault, row)), ""):
            _reject(report, path, line, fault, row)
        else:
            kept.append((line, row))
    return kept


def _stands_apart(rows: Sequence[Row]) -> bool:
    """Return whether nothing in the first row comes again, though each of three or more others shares a cell."""
    cells = Counter(cell.casefold() for row in rows for cell in set(row))
    shared = [any(cells[cell.casefold()] > 1 for cell in row) for row in rows]
    return len(rows) > 3 and not shared[0] and all(shared[1:])


def _cells(path: Path, form: Form, quotings: Sequence[bool], report: Report) -> list[tuple[int, Row, str]]:
    """Return (line, cells, fault) of the rows of a file, in the first reading without fault; blank ones left out."""
    try:
        with path.open("rb") as file:
            lines = list(read_lines(path.name, file, tell_encoding(path.name, file, form.encoding, report)))
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}. {_ADVICE}") from error
    separator = form.separator or ("\t" if any("\t" in line for line in lines[:50]) else find_separator(lines[:50]))
    found: list[tuple[int, Row, str]] = []
    for quoted in quotings:
        read = read_cells(iter(lines), separator, quoted=quoted)
        found = [(line, (str(cells),) if fault else tuple(cells), fault) for line, cells, fault in read]
        if not any(fault for *_, fault in found):
            break
    return [one for one in found if any(map(str.strip, one[1]))]


def _reject(report: Report, path: Path, line: int, fault: str, row: Row) -> None:
    report.reject(Place(line, line, path.name), f"line {line} {fault}", row)
