"""A figure of a lesson: parameters that a lesson sets and a student changes, and what is computed from them.

To add one, write a subclass of `Figure` in a file of this folder, and draw it in
`condviz/ui/templates/learn/figures/NAME.html`; the class ErrorRows is the figure "error-rows". A parameter with a title
gets a control: text a field, `Lines` a larger one, a `Literal` a menu, a bool a switch, and a number with ge and le a
slider. One without belongs to the lesson alone; one marked `HIDDEN` is set by clicks on the picture.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, ClassVar

from jinja2 import UndefinedError
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator
from pydantic.config import JsonDict

from condviz.data.lessons import explain
from condviz.errors import DataError
from condviz.models.registry import describe
from condviz.ui.state import lines


def _split(value: Any) -> Any:  # noqa: ANN401 - what a lesson or a form holds
    return lines(value) if isinstance(value, str) else value


Sentence = Annotated[str, Field(max_length=1000)]
Lines = Annotated[tuple[str, ...], BeforeValidator(_split), Field(max_length=12)]
"""Several texts; in a form one per line."""


FIGURES: dict[str, type[Figure]] = {}
"""All, by the names that lessons call them by."""
OUTDATED = (LookupError, TypeError, ValueError, UndefinedError)
"""Raised by a figure or its template for a result that an older version has stored."""
HIDDEN: JsonDict = {"hidden": True}
"""`json_schema_extra` of a field with a title that gets no control of its own."""


class Figure(BaseModel):
    """A figure with its parameters."""

    model_config = ConfigDict(extra="forbid", frozen=True, protected_namespaces=())
    name: ClassVar[str]
    """That of its class, in a lesson."""
    button: ClassVar[str] = ""
    """Label of a button; without one the figure follows every change."""
    kept: ClassVar[bool] = True
    """What was computed for the same parameters still holds."""
    show: tuple[str, ...] = ()
    """Controls to show, in this order; all where the lesson names none."""

    @classmethod
    def __pydantic_init_subclass__(cls, **_: Any) -> None:  # noqa: ANN401 - as pydantic passes it
        if not cls.__name__.startswith("_"):
            cls.name = re.sub(r"(?<!^)(?=[A-Z])", "-", cls.__name__).lower()
            FIGURES[cls.name] = cls

    @model_validator(mode="after")
    def _check_shown(self) -> Figure:
        known = [key for key, info in type(self).model_fields.items() if info.title]
        if unknown := set(self.show) - set(known):
            raise ValueError(f"show names {min(unknown)!r}; controls are: {', '.join(known)}")
        return self

    def models(self, default: str) -> list[str]:
        """Return the names of the models it needs: its parameter `model`, or all of `names`; else none.

        Args:
            default: The model that leads the page, for an empty `model`.
        """
        model = getattr(self, "model", None)
        return list(getattr(self, "names", ())) if model is None else [model or default]

    def compute(self, models: list[Any]) -> dict[str, Any]:
        """Compute what its template draws, as plain JSON, by public functions; {} where the browser does it all.

        Args:
            models: Loaded, in the order of `models`.
        """
        return {}

    def view(self, data: dict[str, Any]) -> dict[str, Any]:
        """Turn what `compute` returned into what its template takes."""
        return data

    def link(self) -> str:
        """Return the query string that opens the same in its tab; "" where no tab shows it."""
        return ""

    @property
    def key(self) -> str:
        """What decides the picture."""
        return f"{self.name} {self.model_dump_json(exclude={'show'})}"

    def changed(self, values: dict[str, Any]) -> Figure:
        """Return the figure with values of its controls, as a form or a link holds them.

        Raises:
            DataError: If a value is not allowed.
        """
        kept, fields = {key: value for key, value in values.items() if key in self._shown()}, type(self).model_fields
        if empty := [key for key, value in kept.items() if fields[key].is_required() and not str(value).strip()]:
            raise DataError(f"{fields[empty[0]].title} is empty. Write something there.")
        try:
            return type(self)(**(self.model_dump() | kept))
        except ValidationError as error:
            titles = {key: field.title or key for key, field in fields.items()}
            raise DataError(f"This figure cannot show that. {explain(error, titles)}") from error

    def controls(self) -> list[dict[str, Any]]:
        """Describe its controls for the template: name, title, kind, value, and what is allowed."""
        described, fields = type(self).model_json_schema()["properties"], type(self).model_fields
        return [
            {"name": key, "title": fields[key].title, "value": getattr(self, key), **_control(key, described[key])}
            for key in self._shown()
        ]

    def _shown(self) -> tuple[str, ...]:
        return self.show or tuple(key for key, info in type(self).model_fields.items() if info.title)

    def changes(self, start: Figure) -> list[tuple[str, str]]:
        """Return which controls differ from another figure of this kind, as texts for a link."""
        pairs = [(key, getattr(self, key)) for key in self._shown() if getattr(self, key) != getattr(start, key)]
        return [(f"p.{key}", "\n".join(value) if isinstance(value, tuple) else str(value)) for key, value in pairs]


def _control(key: str, schema: dict[str, Any]) -> dict[str, Any]:
    if schema.get("hidden"):
        return {"kind": "hidden"}
    if "enum" in schema:
        titles = {name: describe(name).full_title if key == "model" else name for name in schema["enum"]}
        return {"kind": "menu", "choices": titles}
    kinds = {"boolean": "switch", "array": "lines", "string": "text", "integer": "slider", "number": "slider"}
    found = {"kind": kinds[schema["type"]]}
    if found["kind"] == "slider":
        step = 1 if schema["type"] == "integer" else (schema["maximum"] - schema["minimum"]) / 100
        found |= {"low": schema["minimum"], "high": schema["maximum"], "step": schema.get("multipleOf", step)}
    return found
