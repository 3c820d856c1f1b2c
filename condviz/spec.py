"""Options, declared once: in the signature of the public function that takes them.

    @checked
    def build_map(model, sentences, *, n_neighbors: Annotated[
        int, Interval(ge=2, le=200), Doc("Neighbours that UMAP keeps together"), Key("near")
    ] = 15) -> EmbeddingMap: ...

An option is a parameter with a `Doc`. Its type, bounds and default are those of the signature: `annotated_types`, which
pydantic reads, and `Literal` for choices. From there come the check with its message (`checked`), a link and back
(`write_options`, `read_options`), the arguments of a script (`given_options`), the parameters of an endpoint (`takes`),
the options of a command (`condviz.cli.options.of_function`), and the fields of a form (`condviz.ui.page`).
"""

from __future__ import annotations

import functools
import inspect
import operator
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, TypeVar, Union, cast, get_args, get_origin

from annotated_doc import Doc
from annotated_types import BaseMetadata, GroupedMetadata

from condviz.errors import ConfigError

Function = TypeVar("Function", bound=Callable[..., Any])
Values = Mapping[str, Sequence[str]]
"""Of a link: key -> its values."""
_SIDES = ("ge", "gt", "le", "lt")
_KINDS = {bool: "true or false", int: "a whole number", float: "a number", str: "a text"}


@dataclass(frozen=True)
class Key:
    """The name of an option in links, and names it had there or in the API before."""

    name: str
    before: tuple[str, ...] = ()


@dataclass(frozen=True)
class Field:
    """How a form asks for an option: its label, by default made of the name, and the titles of its choices."""

    label: str = ""
    titles: Mapping[str, str] | None = None


@dataclass(frozen=True)
class Option:
    """One option of a function."""

    name: str
    hint: Any
    """Its type with all that is said of it."""
    type: type
    """Its type alone, without None."""
    default: Any
    """Its default; `inspect.Parameter.empty` where there is none."""
    help: str
    """What it means, in a few words."""
    key: Key
    field: Field
    choices: tuple[str, ...]
    """What it may be; () for anything of its type."""
    bounds: Mapping[str, float]
    """From "ge", "gt", "le", "lt" to a number."""

    @property
    def label(self) -> str:
        """As a visitor reads it."""
        return self.field.label or self.name.replace("_", " ").capitalize()

    @property
    def allowed(self) -> str:
        """What it may be, in words."""
        if self.choices:
            return f"one of {', '.join(self.choices)}"
        low, high = self.bounds.get("ge"), self.bounds.get("le")
        if low is not None and high is not None:
            return f"{_KINDS[self.type]} from {low:,} to {high:,}"
        words = {"ge": "at least {:,}", "gt": "more than {:,}", "le": "at most {:,}", "lt": "below {:,}"}
        limits = " and ".join(words[kind].format(bound) for kind, bound in self.bounds.items())
        return _KINDS.get(self.type, "of another type") + (f" of {limits}" if limits else "")

    def check(self, value: Any) -> Any:  # noqa: ANN401 - of any type, until it is checked
        """Return a value as the type of the option; raises ConfigError if it is none."""
        from pydantic import ValidationError

        plain = value.item() if hasattr(value, "item") and getattr(value, "ndim", 1) == 0 else value
        try:
            if isinstance(plain, bool) and self.type is not bool:
                raise ValueError("a truth value is not a number")
            return _adapter(self.hint).validate_python(plain)
        except (ValidationError, ValueError):
            raise ConfigError(f"{self.name} must be {self.allowed}, got {value!r:.80}.") from None

    def read(self, values: Values) -> Any:  # noqa: ANN401 - as the option
        """Return the value that a link has, a number kept within its bounds; the default where it has none."""
        found = next((values[key][0] for key in (self.key.name, *self.key.before) if values.get(key)), None)
        if found is None:
            return self.default
        with suppress(ValueError):
            for side, beyond in (("ge", operator.lt), ("le", operator.gt)):
                if side in self.bounds and beyond(self.type(found), self.bounds[side]):
                    return self.type(self.bounds[side])
        try:
            return self.check(found)
        except ConfigError:
            return self.default


@functools.cache
def _adapter(hint: Any) -> Any:  # noqa: ANN401 - a TypeAdapter; pydantic takes a moment to import
    from pydantic import ConfigDict, TypeAdapter

    return TypeAdapter(hint, config=ConfigDict(allow_inf_nan=False))


@functools.cache
def options_of(function: Callable[..., Any]) -> Mapping[str, Option]:
    """Read the options of a function, in the order of its signature."""
    hints, found = _hints(function), {}
    for name, parameter in inspect.signature(function).parameters.items():
        said = getattr(hints.get(name), "__metadata__", ())
        if doc := next((one for one in said if isinstance(one, Doc)), None):
            found[name] = _option(name, hints[name], parameter.default, doc, said)
    return found


def _hints(function: Callable[..., Any]) -> dict[str, Any]:
    """Return the type hints, that of the answer as "return"; what only type checkers import stays as it is written."""
    found, known = {}, getattr(inspect.unwrap(function), "__globals__", {})
    signature = inspect.signature(function)
    written = {name: one.annotation for name, one in signature.parameters.items()}
    for name, hint in (written | {"return": signature.return_annotation}).items():
        if hint is not signature.empty:
            found[name] = hint
            if isinstance(hint, str):
                with suppress(NameError):
                    found[name] = eval(hint, known)
    return found


def _option(name: str, hint: Any, default: Any, doc: Doc, said: Sequence[Any]) -> Option:  # noqa: ANN401
    whole = kind = get_args(hint)[0]
    if get_origin(kind) in (Union, UnionType):
        kind = next(one for one in get_args(kind) if one is not NoneType)
    choices = get_args(kind) if get_origin(kind) is Literal else ()
    limits = [one for one in said if isinstance(one, BaseMetadata | GroupedMetadata)]
    parts = [part for one in limits for part in (one if isinstance(one, GroupedMetadata) else [one])]
    bounds = {side: getattr(part, side) for part in parts for side in _SIDES if getattr(part, side, None) is not None}
    key = next((one for one in said if isinstance(one, Key)), Key(name))
    field = next((one for one in said if isinstance(one, Field)), Field())
    bare = Annotated[(whole, *limits)] if limits else whole  # of the rest pydantic need not know
    return Option(
        name, bare, type(choices[0]) if choices else kind, default, doc.documentation, key, field, choices, bounds
    )


# ---- check, link, script ---------------------------------------------------------------------------------------------
def checked(function: Function) -> Function:
    """Check the options of a function whenever it is called; raises ConfigError with what is allowed."""
    signature = inspect.signature(function)

    def call(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - as the function
        bound = signature.bind(*args, **kwargs)
        bound.arguments |= check_options(call, bound.arguments)
        return function(*bound.args, **bound.kwargs)

    return cast("Function", functools.wraps(function)(call))


def check_options(function: Callable[..., Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return those of the given values that are options of a function, each checked; raises ConfigError."""
    return {name: option.check(given[name]) for name, option in options_of(function).items() if name in given}


def given_options(function: Callable[..., Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options that differ from their defaults, as a script has to give them."""
    found = options_of(function).values()
    return {one.name: given[one.name] for one in found if one.name in given and given[one.name] != one.default}


def write_options(function: Callable[..., Any], given: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the options that differ from their defaults as a link has them: (key, text)."""
    keys = {name: option.key.name for name, option in options_of(function).items()}
    return [(keys[name], str(value)) for name, value in given_options(function, given).items() if value is not None]


def read_options(function: Callable[..., Any], values: Values) -> dict[str, Any]:
    """Return all options of a function from a link, however damaged; what it does not say keeps its default."""
    return {name: option.read(values) for name, option in options_of(function).items()}


# ---- endpoint --------------------------------------------------------------------------------------------------------
def takes(
    function: Callable[..., Any], *, but: Sequence[str] = (), before: Sequence[str] = (), **defaults: Any,  # noqa: ANN401
) -> Callable[[Function], Function]:  # fmt: skip
    """Give a function that has `**options` the options of another one, but for some, as parameters of its own.

    They are in its signature, its type hints and its docstring, which gradio reads for an endpoint; `defaults` are
    others than there. What an option was called before is accepted from Python; names in `before` are parameters, too,
    and behind them what its own signature has behind a star.
    """
    options = {
        name: replace(option, default=defaults.get(name, option.default))
        for name, option in options_of(function).items()
        if name not in but
    }
    hints = _hints(function)
    names = {old: name for name, option in options.items() for old in option.key.before}

    def decorate(own: Function) -> Function:
        def call(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - as the function
            bound = signature.bind(
                *args, **{name if name in before else names.get(name, name): kwargs[name] for name in kwargs}
            )
            bound.apply_defaults()
            given = bound.arguments
            return own(**given | {names[old]: value for old in before if (value := given.pop(old, None)) is not None})

        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        all_ = [one for one in inspect.signature(own).parameters.values() if one.kind is not one.VAR_KEYWORD]
        fixed = [one for one in all_ if one.kind is not one.KEYWORD_ONLY]
        last = [one.replace(kind=kind) for one in all_ if one.kind is one.KEYWORD_ONLY]
        extra = [inspect.Parameter(name, kind, default=one.default) for name, one in options.items()]
        old = [inspect.Parameter(name, kind, default=None) for name in before]
        known = _hints(own) | {name: hints[name] for name in options}
        known |= {name: options[names[name]].type | None for name in before}
        parameters = [
            one.replace(annotation=known.get(one.name, one.annotation)) for one in (*fixed, *extra, *old, *last)
        ]
        signature = inspect.Signature(parameters, return_annotation=known.get("return", inspect.Signature.empty))
        lines = [f"    {name}: {one.help}; {one.allowed}." for name, one in options.items()]
        lines += [f"    {name}: The former name of {names[name]}." for name in before]
        functools.update_wrapper(call, own)
        call.__doc__ = _with_lines(own.__doc__ or "", lines)
        return cast("Function", _with_signature(call, signature))

    return decorate


def _with_signature(function: Any, signature: inspect.Signature) -> Callable[..., Any]:  # noqa: ANN401 - a function
    function.__signature__ = signature
    told = {one.name: one.annotation for one in signature.parameters.values()} | {"return": signature.return_annotation}
    function.__annotations__ = {name: hint for name, hint in told.items() if hint is not inspect.Signature.empty}
    return function


def _with_lines(doc: str, lines: Sequence[str]) -> str:
    """Return a docstring with further lines at the end of its Args."""
    head, mark, rest = inspect.cleandoc(doc).partition("\nArgs:\n")
    own, gap, after = rest.partition("\n\n")
    return "\n".join([f"{head}{mark or chr(10) + chr(10) + 'Args:' + chr(10)}{own}".rstrip(), *lines]) + gap + after
