"""What every command shows in a terminal: tables, notes, and bars of progress."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager


def format_table(head: Sequence[str], rows: Sequence[Sequence[str]], *, right: Collection[int] | None = None) -> str:
    """Align columns with blanks; those in `right` to the right, by default all but the first."""
    columns = range(len(head))
    right = columns[1:] if right is None else right
    widths = [max(len(row[column]) for row in (head, *rows)) for column in columns]

    def line(row: Sequence[str]) -> str:
        cells = [
            cell.rjust(width) if column in right else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        return "  ".join(cells).rstrip()

    return "\n".join([line(head), line(["-" * width for width in widths]), *map(line, rows)])


def tell(*notes: str) -> None:
    """Write notes to standard error, each on a line of its own."""
    for note in notes:
        sys.stderr.write(f"note: {note}\n")


@contextmanager
def progress_bar(name: str, unit: str) -> Iterator[Callable[[int, int], None]]:
    """Show a bar on standard error, unless it is no terminal; yields what is to be told (done, total)."""
    from tqdm import tqdm

    with tqdm(desc=name, unit=unit, disable=not sys.stderr.isatty(), leave=False) as bar:

        def update(done: int, total: int) -> None:
            bar.total = total
            bar.update(done - bar.n)

        yield update
