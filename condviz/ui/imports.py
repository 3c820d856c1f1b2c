"""The import assistant: what was made of a visitor's table, shown before it is used, and open to change."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any

import gradio as gr
from pydantic import ConfigDict, StringConstraints, TypeAdapter, ValidationError, with_config
from typing_extensions import TypedDict

from condviz.data.files import write_text
from condviz.data.pairs import (
    LABEL_COLUMN,
    LABEL_RANGE,
    MOST_WORDS,
    PAIR_COLUMNS,
    POINT_ROLES,
    PairTable,
    check_texts,
    guess_columns,
    read_pairs,
    suggest_ratings,
)
from condviz.data.tables import Table, read_table
from condviz.data.tables.formats import SEPARATORS, fold_name
from condviz.data.tables.report import Report, is_missing
from condviz.errors import DataError, explain
from condviz.ui.events import connect
from condviz.ui.markup import html, notice, render

MAX_BYTES = 5 * 2**20
FILE_TYPES = [".csv", ".tsv", ".txt", ".json", ".jsonl", ".parquet", ".xlsx", ".xls"]
"""What may be chosen: of workbooks, which are not read, gradio's own message would not say what to do."""
SHOWN_ROWS, SHOWN_COLUMNS = 3, 12
HEADERS = [("automatic", ""), ("header: names of columns", "names"), ("no header: a row like the others", "row")]
IS_HEADER = {"names": True, "row": False}
ENCODINGS = [("automatic", ""), "utf-8", "cp1252", "utf-16", "gbk", "shift_jis", "cp1251"]


@dataclass(frozen=True)
class Kind:
    """What a view takes from a table: role -> how the page calls it, and which roles may be left without a column."""

    roles: Mapping[str, str]
    optional: frozenset[str] = frozenset()
    pairs: bool = True
    check: Callable[[PairTable, str], object] | None = None
    """Raises DataError where the view cannot use the pairs of a file of this name."""


def _check_trained(table: PairTable, name: str) -> None:
    from condviz.training.data import read_rated  # imports torch

    read_rated(table, name)


_PAIR = {"sentence1": "Sentence 1", "sentence2": "Sentence 2", "condition": "Condition"}
PAIRS = Kind(_PAIR, frozenset({"condition"}))
RATED = Kind(_PAIR | {"label": "Rating"}, frozenset({"condition", "label"}))
TRAINED = replace(RATED, optional=frozenset({"condition"}), check=_check_trained)
POINTS = Kind(
    {"text": "Sentence", "condition": "Condition", "value": "Value"}, frozenset({"condition", "value"}), pairs=False,
)  # fmt: skip
TEXTS = Kind({"text": "Text"}, pairs=False)


@dataclass(frozen=True)
class Reading:
    """How a file is read, as the visitor has it now (see `read_pairs`); small, as each session keeps its own."""

    path: str
    header: bool | None = None
    separator: str = ""
    encoding: str = ""
    columns: tuple[tuple[str, str], ...] = ()
    """(role, column) of those that have one."""
    condition: str = ""
    scale: tuple[float, float] | None = None
    labels: tuple[tuple[str, float], ...] = ()
    problem: str = ""
    """Why it cannot be used like this."""
    sure: bool = False
    """The names of the columns say which is which, and nothing else is in doubt."""
    new: bool = field(default=True, compare=False)
    """It comes with a file that was just chosen; else the visitor has changed something, or it is shown again."""
    stamp: int = field(default_factory=time.monotonic_ns)
    """Tells it from every other one, also where the same file comes again."""
    title: str = ""
    """What it is, where that is no file of the visitor's."""

    @property
    def name(self) -> str:
        return self.title or self.path.replace("\\", "/").rpartition("/")[2]

    @property
    def form(self) -> dict[str, Any]:
        """What `read_table` and `read_source` take."""
        return {"header": self.header, "separator": self.separator, "encoding": self.encoding, "skip_bad": True}

    def column(self, role: str) -> str:
        """Return the column that has a role, or ""."""
        return dict(self.columns).get(role, "")

    def table(self, kind: Kind) -> Table:
        """Read all cells; raises DataError as `read_table`."""
        names = PAIR_COLUMNS if kind.pairs else ("text",)  # of a file without a header
        return read_table(Path(self.path), names=names, max_bytes=MAX_BYTES, **self.form)

    def pairs(self, table: Table | None = None) -> PairTable:
        """Read the pairs; raises DataError with the problem, and as `read_pairs`."""
        if self.problem and table is None:
            raise DataError(self.problem)
        columns = dict.fromkeys(PAIR_COLUMNS, "") | dict(self.columns)
        told = {"condition": self.condition, "scale": self.scale, "labels": dict(self.labels)}
        return read_pairs(table or self.table(PAIRS), columns=columns, skip_bad=True, **told)


@with_config(ConfigDict(extra="forbid"))
class _Told(TypedDict, total=False):
    columns: dict[str, str]
    condition: str
    scale: tuple[float, float]
    labels: dict[str, float]
    header: bool
    separator: Annotated[str, StringConstraints(max_length=1)]
    encoding: str


def check_reading(reading: object) -> dict[str, Any]:
    """Return what a client says about a table, as `read_pairs` takes it; raises DataError for anything else."""
    try:
        return dict(TypeAdapter(_Told).validate_python(reading or {}))
    except ValidationError as error:
        raise DataError(f"reading: {explain(error)}") from None


@dataclass(frozen=True)
class Seen:
    """What the assistant has found in a file; `words` are as the field has them, `why` as role -> reason."""

    reading: Reading
    table: Table
    used: Table
    why: Mapping[str, str]
    words: str


def inspect(kind: Kind, asked: Reading, *, given: bool = False) -> Seen:
    """Read a file, and find out what was not said about it; raises DataError if it cannot be read.

    Its columns and ratings, where `given`, are what the visitor wants, as far as the file has them.
    """
    table = asked.table(kind)
    found = guess_columns(table, PAIR_COLUMNS if kind.pairs else POINT_ROLES)
    guess = {role: column for role, column in found.items() if column and role in kind.roles}
    if not (given and asked.columns and all(column in table.columns for _, column in asked.columns)):
        asked, given = replace(asked, columns=tuple(guess.items())), False
    words = "\n".join(f"{word} = {number:g}" for word, number in asked.labels)
    if (column := asked.column(LABEL_COLUMN)) and not (given and (asked.scale or words)):
        scale, ratings = suggest_ratings(table.column(column))
        words = "\n".join(f"{word} = {'' if one is None else format(one, 'g')}" for word, one in ratings.items())
        labels = tuple((word, float(one)) for word, one in ratings.items() if one is not None)
        asked = replace(asked, scale=scale, labels=labels)
    reasons = {role: table.report.roles[role].rpartition(", ")[2] for role in guess}
    why = {role: reasons[role] for role, column in asked.columns if guess.get(role) == column}
    named = all(fold_name(column) == role or role == LABEL_COLUMN for role, column in asked.columns)
    try:
        used, problem = _use(kind, asked, table), ""
    except DataError as error:
        used, problem = table, str(error)
        if column and (told := _in_words(table, column, words)) and not dict(asked.labels):
            problem = told if told.startswith("All") else f"{problem} {told}"
    sure = named and {*why.values()} <= {"by its name"} and not (problem or table.report.doubt or words or asked.scale)
    return Seen(replace(asked, problem=problem, sure=sure, stamp=time.monotonic_ns()), table, used, why, words)


def _in_words(table: Table, column: str, words: str) -> str:
    """Say which ratings are words that stand for no number yet; "" for none."""
    open_ = {line.removesuffix(" = ") for line in words.splitlines() if line.endswith(" = ")}
    rated = [(row, cell.strip()) for row, cell in enumerate(table.column(column)) if not is_missing(cell)]
    found = [(row, cell) for row, cell in rated if cell in open_]
    if not found:
        return ""
    count = "All" if len(found) == len(rated) else f"{len(found):,} of the {len(rated):,}"
    first = f"the first, {found[0][1]!r}, in {str(table.place(found[0][0])).lower()}"
    verb = "are words" if len(found) > 1 else "is a word"
    return f"{count} ratings in {column} {verb} ({first}). Write beside each, in Labels, the number it stands for."


def _use(kind: Kind, asked: Reading, table: Table) -> Table:
    """Return the rows that can be used; raises DataError where there is none, or a column is missing."""
    needed = {*kind.roles} - kind.optional
    needed |= {"condition"} if kind.pairs and not asked.condition else set()
    if missing := [title for role, title in kind.roles.items() if role in needed and not asked.column(role)]:
        other = " Or write one condition for all rows." if kind.pairs and "Condition" in missing else ""
        other += " A table with one text a row is for Map or Search." if "Sentence 2" in missing else ""
        raise DataError(f"Choose a column of {asked.name} for: {', '.join(missing).lower()}.{other}")
    if len({column for _, column in asked.columns}) < len(asked.columns):
        raise DataError("A column can have one role only. Choose different columns.")
    if kind.pairs:
        found = asked.pairs(table)
        if kind.check:
            kind.check(found, asked.name)
        return found
    columns = {role: column for role, column in asked.columns if role != "value"}
    every = ((row, (table.report, table.place(row), table.record(row), columns)) for row in range(len(table.rows)))
    kept = tuple(table.rows[row] for row, given in every if check_texts(*given) is not None)
    if not kept:
        raise table.report.error(f"{asked.name} has no row that can be used.")
    return replace(table, rows=kept)


class Import:
    """The assistant below an upload: what was read and why, fields for all decisions, rows left out for download.

    Views read `reading`, a state with a `Reading`, or None while there is no file. What is wrong with a table is `told`
    here, beside the file, and above the `action`, if that is a button. A table that leaves no doubt `folds`.
    """

    def __init__(self, upload: gr.File | gr.UploadButton, kind: Kind, prefix: str, action: str = "") -> None:
        self.kind, self.upload, self.folds = kind, upload, kind is RATED  # Errors takes it without a press
        self.reading = gr.State(None)
        look: dict[str, Any] = {"elem_id": f"{prefix}-import", "elem_classes": "cv-form cv-inputs cv-import"}
        with gr.Accordion("How the table is read", visible=False, **look) as self.box:
            self.told = html("", elem_id=f"{prefix}-import-told")
            self.use = gr.Button(action, variant="primary", elem_id=f"{prefix}-use", visible=bool(action))
            self.view = html("", elem_id=f"{prefix}-import-view")
            with gr.Row(elem_classes="cv-import-row"):
                self.pickers = {
                    role: gr.Dropdown([], label=title, min_width=110, elem_id=f"{prefix}-column-{role}")
                    for role, title in kind.roles.items()
                }
            one = {"placeholder": "for instance: the topic", "visible": False, "max_lines": 1}
            self.condition = gr.Textbox(label="One condition for all rows", elem_id=f"{prefix}-one-condition", **one)
            with gr.Row(visible=False, elem_classes="cv-import-row") as self.ratings:
                self.low = gr.Number(None, label="Scale: different", min_width=90, elem_id=f"{prefix}-low")
                self.high = gr.Number(None, label="Scale: same", min_width=90, elem_id=f"{prefix}-high")
                label = "Labels: words that stand for ratings, one a line"
                self.words = gr.Textbox(
                    label=label, lines=2, max_lines=MOST_WORDS, min_width=160, elem_id=f"{prefix}-words"
                )
            self.header, self.separator, self.encoding, self.left_out = form_fields(prefix)
        self._connect()

    def _connect(self) -> None:
        pickers = list(self.pickers.values())
        fields = [self.header, self.separator, self.encoding, self.condition, self.low, self.high, self.words]
        always = [self.upload, self.box, self.told, self.view, self.use, self.ratings, self.left_out, self.reading]
        self.shown = shown = [*always, *fields, *pickers]
        events = [self.upload.upload, *filter(None, [getattr(self.upload, "clear", None)])]  # a button has none
        light: dict[str, Any] = {"notice": self.told, "trigger_mode": "always_last"}
        connect(events, self.open, [self.upload], shown, **light)
        changes = [one.input for one in (self.header, self.separator, self.encoding, *pickers)]
        changes += [event for one in (self.low, self.high) for event in (one.submit, one.blur)]
        # What waits for a condition is ready while it is typed; what is pasted comes with the blur alone.
        changes += [self.words.blur, self.condition.input, self.condition.blur]
        connect(changes, self.change, [self.upload, self.reading, *fields, *pickers], shown, **light)

    def open(self, file: str | None) -> dict:
        """Read a file that has just come, or forget one that was taken away."""
        if not file:
            return {self.box: gr.update(visible=False), self.reading: None, self.told: ""}
        return self._look(Reading(file))

    def restore(self, reading: Reading) -> dict:
        """Show again what was shown of a file before the visitor left the page."""
        again = {self.upload: gr.update(value=reading.path), self.reading: replace(reading, new=False)}
        return self._look(reading, given=True) | again

    def change(self, file: str | None, before: Reading | None, *fields: Any) -> dict:  # noqa: ANN401 - of the fields
        if not file:
            return {}
        header, separator, encoding, condition, low, high, words, *columns = fields
        asked = Reading(
            file, *form_of(header, separator, encoding),
            tuple((role, column) for role, column in zip(self.pickers, columns, strict=True) if column),
            (condition or "").strip(), new=False,
        )  # fmt: skip
        if before is None or before.column(LABEL_COLUMN) == asked.column(LABEL_COLUMN):
            scale = None if low is None or high is None else (float(low), float(high))
            asked = replace(asked, scale=None if scale == LABEL_RANGE else scale, labels=tuple(_read_words(words)))
            if before and replace(asked, stamp=0) == replace(before, new=False, sure=False, problem="", stamp=0):
                return {self.told: gr.skip()}  # a field was left as it was
        return self._look(asked, given=True)

    def current(self, file: str | None, reading: Reading | None) -> Reading:
        """Return how a file is read, also while the assistant is still at it; raises DataError where there is none."""
        if not file:
            raise DataError(f"No file is chosen. Choose a CSV or TSV file of at most {MAX_BYTES // 2**20} MB.")
        if reading is None or reading.path != file:
            return inspect(self.kind, Reading(file)).reading
        return reading

    def _look(self, asked: Reading, *, given: bool = False) -> dict:
        form = {
            self.box: gr.update(visible=True, open=True),
            self.header: {True: "names", False: "row", None: ""}[asked.header],
            self.separator: asked.separator,
            self.encoding: asked.encoding,
        }
        try:
            seen = inspect(self.kind, asked, given=given)
        except DataError as error:
            none = {picker: gr.update(choices=[], value=None) for picker in self.pickers.values()}
            hidden = dict.fromkeys((self.left_out, self.ratings), gr.update(visible=False))
            told = {self.view: "", self.reading: replace(asked, problem=str(error)), self.told: notice("", str(error))}
            return {**form, **none, **hidden, **told, self.use: gr.update(interactive=False)}
        asked, report = seen.reading, seen.table.report
        told = [note for note in seen.used.notes if note not in asked.problem]
        # Where a column has to be chosen, or can be, all are shown; else those that count, which are then in sight.
        choosing = asked.problem or ("value" in self.kind.roles and not asked.column("value"))
        others = [one for one in seen.table.columns if choosing and one not in dict(asked.columns).values()]
        shown = {"notes": told, "rows": seen.table.rows[:SHOWN_ROWS], "others": others[:SHOWN_COLUMNS]}
        shown |= {"separator": SEPARATORS.get(report.separator, ""), "kind": self.kind}
        low, high = asked.scale or LABEL_RANGE
        rated = bool(asked.scale or seen.words) or "the ratings in column" in asked.problem
        return {
            **form,
            self.box: gr.update(visible=True, open=not (asked.sure and self.folds)),
            self.view: render("imports.html", seen=seen, **shown),
            self.told: notice("", asked.problem) if asked.problem else "",
            self.use: gr.update(interactive=not asked.problem),
            self.reading: asked,
            self.ratings: gr.update(visible=rated),
            self.low: low,
            self.high: high,
            self.words: seen.words,
            self.condition: gr.update(visible=self.kind.pairs and not asked.column("condition")),
            self.left_out: offer(seen.used.report, Path(asked.path)),
            **{picker: self._menu(role, asked, seen.table) for role, picker in self.pickers.items()},
        }

    def _menu(self, role: str, asked: Reading, table: Table) -> dict:
        none = [("none", "")] if role in self.kind.optional else []
        return gr.update(choices=[*none, *table.columns], value=asked.column(role) or ("" if none else None))


def form_fields(prefix: str) -> tuple[Any, ...]:
    """Lay out the fields of `form_of` and the button of `offer`, the same for every table."""
    marks = [("automatic", ""), *((name, mark) for mark, name in SEPARATORS.items())]
    small: dict[str, Any] = {"value": "", "min_width": 110}
    with gr.Accordion("Header, separator, encoding", open=False, elem_id=f"{prefix}-form"), gr.Row():
        header = gr.Dropdown(HEADERS, label="Header", elem_id=f"{prefix}-header", **small)
        separator = gr.Dropdown(marks, label="Separator", elem_id=f"{prefix}-separator", **small)
        free: dict[str, Any] = {"allow_custom_value": True, "elem_id": f"{prefix}-encoding"}
        encoding = gr.Dropdown(ENCODINGS, label="Encoding", **free, **small)
    label = "Download the rows left out (CSV)"
    left_out = gr.DownloadButton(label, visible=False, size="sm", elem_id=f"{prefix}-left-out")
    return header, separator, encoding, left_out


def form_of(header: str | None, separator: str | None, encoding: str | None) -> tuple[bool | None, str, str]:
    """Return header, separator and encoding as readers take them."""
    return IS_HEADER.get(header or ""), separator or "", (encoding or "").strip()


def offer(report: Report, upload: Path) -> dict:
    """Offer the rows that were left out as a file, which lies beside the upload and goes with it."""
    if not report.left_out:
        return gr.update(visible=False)
    target = upload.with_name(f"{upload.stem}-left-out.csv")
    write_text(target, report.left_out_csv())
    return gr.update(visible=True, value=str(target))


def _read_words(text: str | None) -> Iterator[tuple[str, float]]:
    for line in filter(str.strip, (text or "").splitlines()):
        word, _, rating = line.rpartition("=")
        try:
            if rating.strip() or not word.strip():
                yield word.strip(), float(rating.replace(",", "."))
        except ValueError:
            said = f"{line.strip()[:60]!r} is not a word with its rating."
            raise DataError(f"{said} Write one a line, as: yes = 5") from None
