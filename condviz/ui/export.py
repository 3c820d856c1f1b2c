"""What the page hands out: a link, JSON, CSV and a Python script that prints the same."""

from __future__ import annotations

import json
from collections.abc import Sequence
from textwrap import indent
from typing import Any

import condviz
from condviz.data.tables import to_csv
from condviz.types import Result
from condviz.ui.markup import render
from condviz.ui.pool import served_options


def offer(result: Result, *, link: str, python: str, file: str) -> str:
    """Render the buttons that copy or save a result: its link, JSON, script, and CSV as a file of that name."""
    return render("export.html", link=link, python=python, json=json_text(result), csv=csv_text(result), file=file)


def json_text(result: Result) -> str:
    """Return a result as JSON, with the version that computed it."""
    return json.dumps({"condviz": condviz.__version__, **result.to_dict()}, ensure_ascii=False, indent=2)


def csv_text(result: Result) -> str:
    """Return the table of a result as CSV; an apostrophe keeps a spreadsheet from running a text as a formula."""
    return to_csv(result.to_frame())


def python_call(
    function: str, arguments: Sequence[tuple[str, Any]], *, each: tuple[str, Sequence[Any]] | None = None
) -> str:
    """Return a script that calls a function of `condviz`, for `each` value of one argument, and prints its table.

    Values appear as Python literals in ASCII, so nothing in a text can end the string or change the script.
    """
    call = [f"    {name}={value!a}," for name, value in arguments]
    if each:
        name, values = each
        call.append(f"    {name}={name},")
    body = "\n".join([f"result = condviz.{function}(", *call, ")", "print(result.to_frame().to_string())"])
    if each:
        body = f"for {name} in {list(values)!a}:\n{indent(body, '    ')}"
    head = "import condviz"
    if options := served_options():  # bfloat16, which may be what is automatic, differs in the third decimal
        told = "".join(f'os.environ.setdefault("CONDVIZ_{key.upper()}", "{one}")\n' for key, one in options.items())
        head = f"import os\n\n# As the page computes.\n{told}\nimport condviz"
    return (
        f"# CondViz {condviz.__version__}. Run it with the Python of a clone, .venv/bin/python after make run,\n"
        f"# or of any environment after pip install -e . there.\n{head}\n\n{body}\n"
    )
