"""Results: what pages show before any model has loaded, and what they hand out: link, JSON, CSV, a Python script."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from textwrap import indent
from types import NoneType, UnionType
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

import numpy as np

import condviz
from condviz.data.tables import to_csv
from condviz.errors import CondvizError
from condviz.models import registry
from condviz.types import ModelInfo, Result
from condviz.ui.markup import read_asset, render
from condviz.ui.pool import served_options

Stored = TypeVar("Stored", bound=Result)


def offer(result: Result, *, link: str, python: str, file: str = "") -> str:
    """Render the buttons that copy or save a result: its link, JSON, script, and CSV if a file is named."""
    csv = csv_text(result) if file else ""
    return render("export.html", link=link, python=python, json=json_text(result), csv=csv, file=file)


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
    name, values = each or ("", ())
    if each:
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


# ---- results as JSON and back, by the types of their fields ----------------------------------------------------------
def read_first(kind: type[Stored], page: str, model: str) -> Stored | None:
    """Return what `benchmarks.first_screen` stored for a page with a model; None where there is nothing that fits."""
    content = read_asset(f"{page}_screen.json")
    try:
        return unpack(kind, content[model])
    except (CondvizError, AttributeError, KeyError, TypeError, ValueError):
        return None


def show_first(view: Any, kind: type[Result], picture: Callable[[Any], str]) -> dict:  # noqa: ANN401 - of a page
    """Return what the page of a view shows first: the result that is stored for the model that it starts with."""
    page, model = view.page.tab.id, view.default
    stored = read_first(kind, page, model)
    shown = picture(stored) if stored else render(f"{page}/empty.html")
    menu = {"choices": view.choices(), "value": model}
    return {view.result: {"value": str(shown)}, view.shown: {"value": stored}, view.model: menu}


def pack(value: Any) -> Any:  # noqa: ANN401 - a field of a result
    """Return a result as JSON, field by field: numbers with six digits, a model by its name and revision."""
    if isinstance(value, ModelInfo):
        return {"name": value.name, "revision": value.revision}
    if is_dataclass(value):
        return {one.name: pack(getattr(value, one.name)) for one in fields(value)}
    if isinstance(value, Mapping):
        return {key: pack(item) for key, item in value.items()}
    if isinstance(value, np.ndarray | float):
        array = np.asarray(value)
        return (np.float64(array).round(6) if array.dtype.kind == "f" else array).tolist()
    return [pack(item) for item in value] if isinstance(value, tuple | list) else value


def unpack(kind: Any, content: Any) -> Any:  # noqa: ANN401 - the type of a field, its JSON, its value
    """Return what `pack` made, by its type; raises CondvizError if its model is not here."""
    if kind is ModelInfo:
        return replace(registry.describe(content["name"]), revision=content["revision"])
    if get_origin(kind) in (Union, UnionType):
        return None if content is None else unpack(next(x for x in get_args(kind) if x is not NoneType), content)
    if isinstance(kind, type) and is_dataclass(kind):
        hints = get_type_hints(kind)
        return kind(**{one.name: unpack(hints[one.name], content[one.name]) for one in fields(kind)})
    if get_origin(kind) is tuple:
        parts = get_args(kind)
        return tuple(unpack(parts[0 if parts[-1] is ... else place], one) for place, one in enumerate(content))
    if get_origin(kind) is Mapping:
        return {key: unpack(get_args(kind)[1], item) for key, item in content.items()}
    if kind is not np.ndarray:
        return content
    array = np.array(content)
    return array.astype(np.int32 if array.dtype.kind == "i" else np.float32)
