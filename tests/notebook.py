"""Run notebooks without Jupyter, and look at what they show: python -P tests/notebook.py FILE ..."""

from __future__ import annotations

import ast
import json
import sys
from pathlib import Path

SHORTER = {
    '"epochs": 3': '"epochs": 1',
    "[:320]": "[:64]",
    "[320:]": "[380:]",
    "resamples=500": "resamples=50",
    "resamples=200": "resamples=50",
}
"""What takes long on the page, and shows the same here."""


def code_cells(path: Path) -> list[dict]:
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return [cell for cell in cells if cell["cell_type"] == "code"]


def run_cell(source: str, names: dict[str, object]) -> object:
    """Run a cell as a notebook does; returns the value of its last line, None where that is no expression."""
    *body, last = ast.parse(source).body
    if not isinstance(last, ast.Expr):
        body, last = [*body, last], ast.Expr(ast.parse("None", mode="eval").body)
    exec(compile(ast.Module(body, []), "cell", "exec"), names)
    return eval(compile(ast.Expression(last.value), "cell", "eval"), names)


def main(path: Path) -> None:
    """Run all cells of a notebook; of what they show, at least two pictures stand alone."""
    sys.stderr.write(f"{path}\n")
    names: dict[str, object] = {}
    shown = []
    for cell in code_cells(path):
        source = "".join(cell["source"])
        for long, short in SHORTER.items():
            source = source.replace(long, short)
        value = run_cell(source, names)
        shown += [value._repr_html_()] if hasattr(value, "_repr_html_") else []
    pictures = [one for one in shown if "cv-picture" in one]
    assert len(pictures) >= 2
    assert not any("<script" in one for one in pictures)
    assert sum(map(len, pictures)) < 500_000


if __name__ == "__main__":
    for file in sys.argv[1:]:
        main(Path(file))
