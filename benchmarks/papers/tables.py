"""Tables and figures of the papers: what they print, what stands for each row here, and what has been measured.

The tables are data, one file a paper in assets/papers; a row is added there, without code. Results are kept for each
run and seed in assets/papers/results.json, so that tables share runs and a stopped command goes on. Needs no torch.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from dataclasses import field
from functools import cache
from typing import Any, Literal

import numpy as np
from pydantic import ConfigDict, TypeAdapter
from pydantic.dataclasses import dataclass

from condviz.errors import ConfigError, DataError
from condviz.evaluation.scoreboard import FIGURES, LINK_FIGURES, NONE, PARTS, read_board, read_link_scores
from condviz.paths import ASSETS

PAPERS = ASSETS / "papers"
RESULTS = PAPERS / "results.json"
DIGITS = {"hits": 2, "cache_MB": 2, "IPC": 4, "variance": 4} | dict.fromkeys(("before", "after", "mean", "std"), 3)
"""Behind the point, where it is not one."""
CLOSED = ConfigDict(extra="forbid")
Figures = dict[str, dict[str, float | None]]
"""What one run and seed gave: measurement -> figure -> value."""


@dataclass(frozen=True, config=CLOSED)
class Run:
    """What stands for a row: a recipe to train by, a model, a method on an encoder, or an architecture to count."""

    recipe: str = ""
    """Name in assets/recipes; trained once for every seed."""
    changes: tuple[str, ...] = ()
    """As `--set` of `condviz train`."""
    model: str = ""
    """What `condviz.load` takes; with `backbone` a method, which is put on it untrained."""
    backbone: str = ""
    """Hub id of an encoder."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Of the method; needs `backbone`."""
    count: str = ""
    """Either "bi-encoder", "tri-encoder" or "hyper-cl": what it costs is counted, and nothing is loaded."""
    size: int = 0
    rank: int | None = None
    """Length of its vectors, and K; no rank is the whole matrix."""
    data: str = ""
    """What the count is of: a graph, or part of a corpus."""
    unique: tuple[int, ...] = ()
    """Where that is not at hand: its rows, different sequences of a bi-encoder, sentences and conditions."""

    def __post_init__(self) -> None:
        if sum(map(bool, (self.recipe, self.model, self.count))) != 1:
            raise ConfigError(f"A row needs one of recipe, model and count, got {self}.")

    @property
    def key(self) -> str:
        """Name under which results are kept."""
        if self.count:
            return f"{self.count} of {self.size} numbers{f', K = {self.rank}' if self.rank else ''} on {self.data}"
        settings = (f"{name}={json.dumps(value)}" for name, value in sorted(self.settings.items()))
        return " ".join(filter(None, (self.recipe or self.model, *self.changes, self.backbone, *settings)))

    def seeds(self, number: int) -> list[int]:
        """Return the seeds to run: those of a training from 42, one for what is not trained."""
        return list(range(42, 42 + number)) if self.recipe else [0]


@dataclass(frozen=True, config=CLOSED)
class Row:
    """A row: its name, what the paper prints in it, and its setting there and here."""

    name: str
    published: tuple[str, ...] = ()
    paper: Run | None = None
    here: Run | None = None


@dataclass(frozen=True, config=CLOSED)
class Table:
    """A table or figure of a paper."""

    id: str
    title: str
    shows: str
    """Its name in commands, its number in the paper, and what it says."""
    rows: tuple[Row, ...] = ()
    """Its rows."""
    columns: tuple[str, ...] = ()
    """Headings of what the paper prints."""
    paper_figures: tuple[str, ...] = ()
    here_figures: tuple[str, ...] = ()
    """What is measured in either setting, as "measurement.figure"."""
    needs: str = ""
    time: str = ""
    """What the paper's setting takes."""
    where: str = ""
    """What is measured here, and how."""
    absent: str = ""
    """Why rows cannot be run here."""
    compared: tuple[str, ...] = ()
    """Two rows whose difference is tested."""
    series: Literal["figures", "rows"] = "figures"
    """What one series of its picture is: a figure over all rows, or "rows" over all figures."""

    def runs(self, setting: str) -> list[tuple[Row, Run]]:
        """Return the rows that can be run in a setting, "paper" or "here"."""
        return [(row, run) for row in self.rows if (run := getattr(row, setting)) is not None]

    def measurements(self, setting: str) -> list[str]:
        """Return what has to be measured, each name once."""
        return list(dict.fromkeys(name.rpartition(".")[0] for name in getattr(self, f"{setting}_figures")))

    def wanted(self, run: Run, setting: str) -> list[str]:
        """Return what has to be measured of a run: of a training also what other tables show, as it is not kept."""
        tables = [self, *(table for _, table in find_tables(""))] if run.recipe else [self]
        found = (table.measurements(setting) for table in tables for _, other in table.runs(setting) if other == run)
        return list(dict.fromkeys(name for names in found for name in names))


@dataclass(frozen=True, config=CLOSED)
class Claim:
    """What a paper says, whether it holds here (yes, no, in part, not settled, not tested), and how we know."""

    says: str
    holds: str
    because: str


@dataclass(frozen=True, config=CLOSED)
class Paper:
    """One paper."""

    id: str
    title: str
    citation: str
    tables: tuple[Table, ...]
    claims: tuple[Claim, ...] = ()


@cache
def papers() -> tuple[Paper, ...]:
    """Read what is known of the papers."""
    reader = TypeAdapter(Paper)
    return tuple(
        reader.validate_python({"id": path.stem, **tomllib.loads(path.read_text(encoding="utf-8"))})
        for path in sorted(PAPERS.glob("*.toml"))
    )


def find_tables(name: str) -> list[tuple[Paper, Table]]:
    """Return the tables of a name such as "hyper-cl:table-5"; all of a paper without ":", all of all for "".

    Raises:
        ConfigError: If there is none.
    """
    paper, _, table = name.partition(":")
    found = [(one, two) for one in papers() for two in one.tables if paper in ("", one.id) and table in ("", two.id)]
    if not found:
        known = ", ".join(f"{one.id}:{two.id}" for one in papers() for two in one.tables)
        raise ConfigError(f"There is no table {name!r}. There are: {known}.")
    return found


def read_results() -> dict[str, dict[str, Any]]:
    """Read the results: run -> seed -> {"minutes", "figures"}; with what the benchmarks have stored of shipped models.

    Raises:
        DataError: If a file cannot be read.
    """
    results, board = read_own_results(), read_board()
    stored: dict[str, Figures] = {
        name: {
            part: {key: getattr(found, key).value for key in FIGURES}
            for part in PARTS
            if (found := board.find(name, part))
        }
        for name in board.models
    }
    for item in read_link_scores():
        stored.setdefault(item.model, {})["wn18rr"] = dict(zip(LINK_FIGURES, item.figures(reranked=True), strict=True))
    for name, figures in stored.items():
        results.setdefault(name, {}).setdefault("0", {"figures": {}})["figures"] |= figures
    return results


def read_own_results() -> dict[str, dict[str, Any]]:
    """Read what runs have given, without what is known of shipped models; errors as in `read_results`."""
    try:
        return json.loads(RESULTS.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        advice = "Remove it, and run: python -m benchmarks papers run"
        raise DataError(f"{RESULTS} cannot be read: {error}. {advice}") from error


def values(results: Mapping[str, Any], run: Run | None, figure: str) -> np.ndarray:
    """Return a figure of a run over its seeds, (n,); empty where it has not been measured."""
    measurement, _, name = figure.rpartition(".")
    found = results.get(run.key, {}).values() if run else ()
    measured = (one["figures"].get(measurement, {}).get(name) for one in found)
    return np.array([value for value in measured if value is not None])


def is_done(results: Mapping[str, Any], table: Table, setting: str, run: Run) -> bool:
    """Return whether a row of a table has been measured in a setting, with one seed at least."""
    wanted = set(table.measurements(setting))
    return any(wanted <= set(one["figures"]) for one in results.get(run.key, {}).values())


def count_done(results: Mapping[str, Any], table: Table, setting: str) -> int:
    """Count the rows of a table that have been measured in a setting."""
    return sum(is_done(results, table, setting, run) for _, run in table.runs(setting))


def format_state(results: Mapping[str, Any], table: Table, setting: str) -> str:
    """Say how many rows of a table have been measured in a setting; a dash where none can be."""
    total = len(table.runs(setting)) if getattr(table, f"{setting}_figures") else 0
    return f"{count_done(results, table, setting)} of {total}" if total else NONE


@dataclass(frozen=True)
class Filled:
    """A table as it is shown: headings behind that of the rows, rows with their names, and what tests say."""

    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    tests: tuple[str, ...]


def fill_table(results: Mapping[str, Any], table: Table) -> Filled:
    """Put together what the paper prints, then what was measured in its setting, and here."""
    shown = [
        (name, figure)
        for name in ("paper", "here")
        for figure in getattr(table, f"{name}_figures")
        if any(len(values(results, getattr(row, name), figure)) for row in table.rows)
    ]
    heads = [f"{name}, paper" for name in table.columns] + [heading(*item) for item in shown]
    rows = []
    for row in table.rows if heads else ():
        printed = (*row.published, *[NONE] * (len(table.columns) - len(row.published)))
        measured = (_cell(values(results, getattr(row, one), two), two) for one, two in shown)
        rows.append((row.name, *printed, *measured))
    tests = (f"{heading(*item)}: {text}" for item in shown if (text := _test(results, table, *item)))
    return Filled(tuple(heads), tuple(rows), tuple(tests))


def heading(setting: str, figure: str) -> str:
    """Name a figure for people, and the setting that it was measured in."""
    part, _, name = figure.rpartition(".")
    words = (name if part == "csts" else f"{part}: {name}").replace("_", " ")
    words = words.replace("spearman", "Spearman").replace("pearson", "Pearson")
    if setting == "paper":
        return f"{words}, our run"
    kind = ", C-STS re-annotated" if part.startswith("csts") else ", our texts" if part in PARTS else ""
    return f"{words}, here{kind}"


def _cell(found: np.ndarray, figure: str) -> str:
    """Format mean and standard deviation over seeds."""
    if not len(found):
        return NONE
    digits = 3 if figure.startswith("study.") else DIGITS.get(figure.rpartition(".")[2], 1)
    shown = f"{found.mean():,.{digits}f}"
    if not float(shown.replace(",", "")) and found.any():  # a variance of norms is far below what digits show
        shown = f"{found.mean():.2g}"
    form = ".1g" if "e" in shown else f".{digits}f"
    return f"{shown} ± {found.std(ddof=1):{form}} ({len(found)})" if len(found) > 1 else shown


def _test(results: Mapping[str, Any], table: Table, setting: str, figure: str) -> str:
    """Compare two rows by a z-test that counts seeds and test rows; "" without two seeds and a standard error each.

    The errors over test rows are taken as those of different samples, which for the same rows is too wide: p is not
    too small.
    """
    from scipy.stats import norm

    rows = {row.name: getattr(row, setting) for row in table.rows}
    pairs = [values(results, rows[name], figure) for name in table.compared]
    errors = [values(results, rows[name], f"{figure}_error") for name in table.compared]
    if min(map(len, [*pairs, *errors]), default=0) < 2:
        return ""
    variance = sum(
        found.var(ddof=1) / len(found) + (error**2).mean() for found, error in zip(pairs, errors, strict=True)
    )
    p = 2 * norm.sf(abs(pairs[0].mean() - pairs[1].mean()) / np.sqrt(variance))
    sizes = " and ".join(f"{len(found)}" for found in pairs)
    return f"{table.compared[0]} against {table.compared[1]}: p = {p:.2g} ({sizes} seeds and the sample of test rows)."
