"""What every command shows in a terminal: tables, notes and progress bars; plain text where it is not a terminal."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager

_PIPE_WIDTH = 100_000
"""Columns of a table that goes into a file or a pipe: never wrapped, so that every row stays one line."""


def format_table(head: Sequence[str], rows: Sequence[Sequence[str]], *, right: Collection[int] | None = None) -> str:
    """Format a table for standard output: styled and wrapped to the window in a terminal, plain text otherwise.

    Args:
        head: Column names.
        rows: Cells, as many in each row as in `head`. Shown as they are, without markup.
        right: Columns to align right; by default all but the first.

    Returns:
        Lines without a final line break: the names, a rule, the rows.
    """
    from rich.box import SIMPLE_HEAD
    from rich.cells import cell_len
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    right = range(1, len(head)) if right is None else right
    terminal = sys.stdout.isatty()
    box = SIMPLE_HEAD if terminal else None
    table = Table(box=box, show_edge=False, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
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


def tell(*notes: str) -> None:
    """Write notes to standard error, each on its own line."""
    for note in notes:
        sys.stderr.write(f"note: {note}\n")


@contextmanager
def progress_bar(name: str, unit: str) -> Iterator[Callable[[int, int], None]]:
    """Show a bar on standard error if that is a terminal; yields a function to call with (done, total)."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(), TextColumn(unit)
    console = Console(stderr=True)
    disable = not sys.stderr.isatty()
    with Progress(*columns, TimeRemainingColumn(), console=console, transient=True, disable=disable) as progress:
        task = progress.add_task(name, total=None)

        def update(done: int, total: int) -> None:
            progress.update(task, completed=done, total=total)

        yield update
