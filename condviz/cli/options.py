"""What commands share: options as parents for `argparse`, the models that they name, tables, notes and bars.

Example:
    >>> add_command(commands, "score", run, models(), device(), form())
"""

from __future__ import annotations

import argparse
import inspect
import json
import os
import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, cast, get_args, get_origin

from condviz import spec
from condviz.data.files import check_target, write_text
from condviz.data.pairs import PairTable, read_pairs
from condviz.errors import CheckpointError, CondvizError, ConfigError
from condviz.models.registry import ON, load
from condviz.store.build import OnRay, build_store

if TYPE_CHECKING:
    from condviz.evaluation.dataset import Dataset
    from condviz.methods.base import ConditionalScorer


STDOUT = "-"
FILES = ("json", "out", "html", "figures", "left_out")
"""Options that name a file to be written."""
_SETTINGS = {str: "NAME=TEXT", float: "NAME=NUMBER"}
_quiet = False
Make = Callable[[], Any]
"""Makes one form of a result, when it is asked for."""
_Parent = partial(argparse.ArgumentParser, add_help=False)


def add_command(
    commands: argparse._SubParsersAction[argparse.ArgumentParser], name: str, run: Callable[[argparse.Namespace], None],
    *parents: argparse.ArgumentParser, aliases: Sequence[str] = (),
) -> argparse.ArgumentParser:  # fmt: skip
    """Add a command: its function says what it does, in the first line in short for the list of commands."""
    short, _, more = (inspect.getdoc(run) or "").partition("\n\n")
    brief, whole = f"{short[0].lower()}{short[1:]}".rstrip("."), f"{short} {more}".replace("%", "%%")
    parser = commands.add_parser(name, parents=parents, aliases=aliases, help=brief, description=whole)
    parser.set_defaults(command=run)
    return parser


def models(default: str = "all", *, required: bool = False, several: bool = True) -> argparse.ArgumentParser:
    """Return a parent with --model, a list where there may be `several`, and --backbone; see `settle`."""
    parser = _Parent(parents=[of_function(load, only=["backbone"])])
    text = "name, folder or hub id" + ("; may be repeated" if several else "")
    text += "" if required else f" (default: {default})"
    many: dict[str, Any] = (
        {"action": "append", "default": []} if several else {"default": None if " " in default else default}
    )
    parser.add_argument("--model", **many, required=required, metavar="NAME", help=text)
    return parser


def settle(options: argparse.Namespace) -> None:
    """Turn --model and --backbone into names such as "csr on intfloat/e5-base-v2"; keep --backend for all processes."""
    if backend := getattr(options, "backend", None):
        os.environ["CONDVIZ_BACKEND"] = backend  # it holds in those that are started, too
    encoder = getattr(options, "backbone", None)
    if not encoder or not hasattr(options, "model"):
        return
    named = options.model or getattr(options, "default_models", [])
    if not named:
        raise ConfigError("--backbone needs the method that is put on it. Name it, for instance with --model csr.")
    options.model = f"{named}{ON}{encoder}" if isinstance(named, str) else [f"{name}{ON}{encoder}" for name in named]


def device(precision: str | None = "auto") -> argparse.ArgumentParser:
    """Return a parent with --device, --backend and, unless `precision` is None, --precision with that default."""
    names = ("device", "backend", "precision") if precision else ("device", "backend")
    return of_function(load, only=names, defaults={"backend": None, "precision": precision})


def cluster() -> argparse.ArgumentParser:
    """Return a parent with --ray and --workers; see `on_cluster`."""
    return of_function(build_store, only=["ray", "workers"])


def on_cluster(model: ConditionalScorer, options: argparse.Namespace) -> ConditionalScorer:
    """Return a model that computes its scores and vectors where --ray says; machines there load it by its name."""
    if options.ray is None:
        return model
    return cast("ConditionalScorer", OnRay(model, options.ray, options.workers))


def form(json: str = "print JSON", csv: str = "", *, dash: bool = True) -> argparse.ArgumentParser:
    """Return a parent with the forms that `show` prints: --json (alone, with =FILE, or before a `dash`) and --csv."""
    parser = _Parent()
    forms = parser.add_mutually_exclusive_group()
    text = f"{json}; --json=FILE writes it"
    option: Any = forms.add_argument("--json", nargs="?", const=STDOUT, type=target, metavar="FILE", help=text)
    option.alone, option.dash = True, dash
    if csv:
        forms.add_argument("--csv", action="store_true", help=csv)
    return parser


def show(options: argparse.Namespace, text: Make, json: Make, csv: Make | None = None) -> None:
    """Print a result in the form that is asked for (see `form`); only that one is made."""
    if options.json:
        write(options.json, format_json(json()))
    if csv and options.csv:
        sys.stdout.write(csv())
    elif not output_taken(options) and (shown := text()):
        print(shown)


def write(path: str, text: str) -> None:
    """Write a file, or with "-" to standard output."""
    if path == STDOUT:
        sys.stdout.write(text)
    else:
        write_text(path, text)


def output_taken(options: argparse.Namespace) -> bool:
    """Return whether an option sends its file to standard output, which then has nothing else; refuse two."""
    taken = [name for name in FILES if getattr(options, name, None) == STDOUT]
    if len(taken) > 1:
        both = " and ".join(f"--{name.replace('_', '-')}" for name in taken)
        raise ConfigError(f"Standard output takes one of them: {both} are both -. Name a file for the other.")
    return bool(taken)


def reading(function: Callable[..., Any] = read_pairs, *, but: Sequence[str] = ()) -> argparse.ArgumentParser:
    """Return a parent with the options on how `read_pairs`, or another function, reads a table."""
    parser = of_function(function, but=but, title="the table")
    if function is read_pairs:
        parser.add_argument("--left-out", type=target, metavar="FILE", help="write the rows that were left out as CSV")
    return parser


def tell_table(options: argparse.Namespace, data: PairTable | Dataset) -> None:
    """Print what was found while rows were read, and write those that were left out where that is asked for."""
    tell(*data.notes)
    table = data if isinstance(data, PairTable) else data.table
    if options.left_out and table is not None:
        write(options.left_out, table.report.left_out_csv())


def of_function(
    function: Callable[..., Any],
    *,
    only: Collection[str] = (),
    but: Collection[str] = (),
    defaults: Mapping[str, Any] = MappingProxyType({}),
    title: str = "",
    **before: str,
) -> argparse.ArgumentParser:
    """Return a parent with the options of a public function (`condviz.spec`), whose values `given` returns.

    Args:
        function: Whose options are declared in its signature.
        only, but: Those that are taken, and those that are not.
        defaults: Others than there.
        title: Of their group in the help.
        **before: Former names.
    """
    parser = _Parent()
    group = parser.add_argument_group(title) if title else parser
    for name, one in spec.options_of(function).items():
        if name not in but and (not only or name in only):
            names = [f"{'--'[: len(each)]}{each.replace('_', '-')}" for each in (name, before.get(name)) if each]
            default = defaults.get(name, one.default)
            shown = f" (default: {default})" if default not in (None, "", {}) and one.type is not bool else ""
            allowed = f": {one.allowed}" if one.choices or one.type in (int, float) else ""
            text = f"{one.help}{allowed}{shown}".replace("%", "%%")
            group.add_argument(*names, dest=name, default=default, help=text, **_values(one))
    return parser


def _values(option: spec.Option) -> dict[str, Any]:
    """Return what argparse has to know of the values of an option."""
    kind, parts = get_origin(option.type), get_args(option.type)
    if option.type is bool:
        return {"action": "store_true" if option.default is False else argparse.BooleanOptionalAction}
    if kind is Mapping:
        return {"nargs": "+", "type": partial(_setting, parts[1]), "action": _Settings, "metavar": _SETTINGS[parts[1]]}
    if kind is tuple:
        return {"nargs": len(parts), "type": parts[0], "metavar": option.name.upper()}
    return {"type": option.type, "metavar": option.name.upper()}


class _Settings(argparse.Action):
    def __call__(self, parser: object, namespace: argparse.Namespace, values: Any, option: object = None) -> None:  # noqa: ANN401
        setattr(namespace, self.dest, dict(values))


def _setting(kind: type, text: str) -> tuple[str, Any]:
    key, sign, value = text.rpartition("=")
    with suppress(ValueError):
        if sign:
            return key, kind(value)
    raise argparse.ArgumentTypeError(f"{text!r} is not {_SETTINGS[kind]}")


def given(options: argparse.Namespace, function: Callable[..., Any], *, but: Collection[str] = ()) -> dict[str, Any]:
    """Return the options that `of_function` added, checked; raises ConfigError for one that is not allowed."""
    names = [name for name in spec.options_of(function) if name not in but and hasattr(options, name)]
    return spec.check_options(function, {name: getattr(options, name) for name in names})


def files(**options: str) -> argparse.ArgumentParser:
    """Return a parent with options of `FILES`; the values are their help. --json may stand alone, for "-"."""
    parser = _Parent()
    for name, text in options.items():
        alone: dict[str, Any] = {"nargs": "?", "const": STDOUT} if name == "json" else {}
        parser.add_argument(f"--{name}", type=target, metavar="FILE", help=f"{text}; - for standard output", **alone)
    return parser


def target(path: str) -> str:
    """Return a file to be written, checked before the long work that fills it; "-" is standard output."""
    if path != STDOUT:
        check_target(path)
    return path


def seen(text: str) -> argparse.ArgumentParser:
    """Return a parent with --train-data and this help, for `seen_conditions`."""
    parser = _Parent()
    parser.add_argument("--train-data", metavar="FILE", help=f"{text}; or CORPUS:PART")
    return parser


def seen_conditions(options: argparse.Namespace) -> set[str] | None:
    """Return the conditions of the table, or of the part of a corpus, that --train-data names; or None."""
    from condviz.evaluation.dataset import open_data

    return (
        {pair.condition for pair in open_data(options.train_data, max_rows=None).pairs} if options.train_data else None
    )


def load_asked(options: argparse.Namespace) -> Iterator[tuple[str, ConditionalScorer]]:
    """Load models one after the other; if none is named, all, leaving out broken ones with a note."""
    from condviz.models.registry import list_models, load

    settings = {"device": options.device, "precision": getattr(options, "precision", "float32")}
    taken: set[str] = set()
    for name in dict.fromkeys(options.model or list_models()):
        try:
            model = load(name, **settings)
        except CheckpointError as error:
            if options.model:
                raise
            tell(f"{name} is left out: {error}")
            continue
        if model.info.name in taken:  # results go by the names
            raise ConfigError(f"Two of the models are called {model.info.name!r}: {name} is the second. Rename it.")
        taken.add(model.info.name)
        yield name, model
    if not taken:
        raise CondvizError("No model could be loaded. See the notes above, or name one with --model.")


# ---- in a terminal: tables, notes and progress bars; plain text where it is not a terminal ---------------------------

_PIPE_WIDTH = 100_000
"""Columns of a table that goes into a file or a pipe: never wrapped, so that every row stays one line."""


def format_table(head: Sequence[str], rows: Sequence[Sequence[str]], *, right: Collection[int] | None = None) -> str:
    """Format a table: wrapped to the window in a terminal, else plain text; numbers, all but the first, align right."""
    from rich.box import SIMPLE_HEAD
    from rich.cells import cell_len
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    right = range(1, len(head)) if right is None else right
    terminal = sys.stdout.isatty()
    look = {"box": SIMPLE_HEAD if terminal else None, "padding": (0, 2, 0, 0), "header_style": "bold"}
    table = Table(show_edge=False, pad_edge=False, **look)
    for number, name in enumerate(head):
        table.add_column(Text(name), justify="right" if number in right else "left", overflow="fold")
    if not terminal:
        table.add_row(*("-" * max(map(cell_len, column)) for column in zip(head, *rows, strict=True)))
    for row in rows:
        table.add_row(*map(Text, row))
    console = Console(width=None if terminal else _PIPE_WIDTH, color_system="auto" if terminal else None)
    with console.capture() as capture:
        console.print(table)
    return "\n".join(line.rstrip() for line in capture.get().splitlines())


def format_json(content: object) -> str:
    """Format JSON for people and programs: letters of all languages as they are, and a final line break."""
    return json.dumps(content, indent=2, ensure_ascii=False) + "\n"


def be_quiet(quiet: bool) -> None:
    """Leave out notes and bars from now on, or not."""
    global _quiet
    _quiet = quiet


def tell(*notes: str) -> None:
    """Write notes to standard error, each on its own line; none with --quiet."""
    for note in () if _quiet else notes:
        sys.stderr.write(f"note: {note}\n")


@contextmanager
def progress_bar(name: str, unit: str) -> Iterator[Callable[[int, int], None]]:
    """Show a bar on standard error if that is a terminal; yields a function to call with (done, total)."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(), TextColumn(unit)
    console = Console(stderr=True)
    disable = _quiet or not sys.stderr.isatty()
    with Progress(*columns, TimeRemainingColumn(), console=console, transient=True, disable=disable) as progress:
        task = progress.add_task(name, total=None)
        yield lambda done, total: progress.update(task, completed=done, total=total)
