"""The errors of this package. Each message says what is wrong, the value, what is allowed, and what to do next."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from importlib import import_module
from numbers import Integral
from types import MappingProxyType, ModuleType


class CondvizError(Exception):
    """Base of the errors that a user can cause and mend: one line on the command line, a notice on the page."""


class ConfigError(CondvizError):
    """A setting has a value that is not allowed, or asks a model for something that it cannot do."""


class CheckpointError(CondvizError):
    """A checkpoint folder is incomplete, damaged, unsafe, or was made for something else. Names file and key."""


class DataError(CondvizError):
    """Text or a table given by the user cannot be used. Names the field or the row."""


class UnknownModelError(CondvizError):
    """No model has this name. Lists the names that exist."""


class MissingExtraError(CondvizError):
    """An optional package is not installed. Names the extra that brings it."""


class TrainingError(CondvizError):
    """A training cannot start or go on, or its result cannot be trusted. Says where the last good state is."""


class TrainingStopped(TrainingError):
    """A training was asked to stop by a signal, 0 for none, and has saved a state to go on from."""

    def __init__(self, message: str, signal: int = 0) -> None:
        super().__init__(message)
        self.signal = signal


class TruncationWarning(UserWarning):
    """A text was longer than the encoder can read, and its end was cut off."""


def explain(error: Exception, titles: Mapping[str, str] = MappingProxyType({})) -> str:
    """Return what pydantic found wrong first, in one line; the message of any other error.

    What is wrong is called by its key, or by that of its `titles`.
    """
    from pydantic import ValidationError

    if not isinstance(error, ValidationError):
        return str(error)
    found = error.errors(include_url=False)[0]
    name, value, limits = ".".join(map(str, found["loc"])), found["input"], found.get("ctx", {})
    name = titles.get(name, name)
    if found["type"] == "missing":
        return f"Key {name} is missing."
    if found["type"] in ("extra_forbidden", "unexpected_keyword_argument"):
        return f"Unknown key {name}."
    if "expected" in limits:
        return f"{name} is {value!r}, allowed is one of {limits['expected'].replace(chr(39), '')}."
    words = {"ge": "{} or more", "gt": "above {}", "le": "{} or less", "lt": "below {}"}
    if bound := next((key for key in words if key in limits), None):
        return f"{name} is {value!r}, allowed is {words[bound].format(f'{limits[bound]:,}')}."
    sizes = {"max_length": "allowed are at most", "min_length": "needed are at least"}
    if bound := next((key for key in sizes if key in limits), None):
        what = "characters" if isinstance(value, str) else "entries"
        return f"{name} has {len(value):,} {what}, {sizes[bound]} {limits[bound]:,}."
    kinds = {"dataclass_type": "a table", "dict_type": "a table", "tuple_type": "a list", "bool_type": "true or false"}
    text = kinds.get(found["type"], found["msg"])
    if text is found["msg"] and not text.startswith("Input should be "):
        return f"{name or 'The input'}: {text.removeprefix('Value error, ')}, got {str(value)[:60]!r}."
    expected = text.removeprefix("Input should be ").removeprefix("a valid ")
    return f"{name or 'The input'} is {repr(value)[:60]}, expected {expected}."


def suggest(name: str, known: Iterable[str]) -> str:
    """Return " Did you mean NAME?" with the known name that a wrong one is most like; "" if it is like none."""
    found = get_close_matches(str(name), list(known), n=1)
    return f" Did you mean {found[0]}?" if found else ""


def check_count(name: str, value: int, low: int, high: int) -> None:
    """Raise ConfigError unless a number of things is allowed."""
    if not isinstance(value, Integral) or isinstance(value, bool) or not low <= value <= high:
        raise ConfigError(f"{name} must be a whole number from {low} to {high:,}, got {value!r}.")


def first_line(error: BaseException) -> str:
    """Return the first line of what a library says went wrong, cut to fit into a message of ours; or its type."""
    return next(iter(str(error).strip().splitlines()), type(error).__name__)[:200]


def require(module: str, extra: str) -> ModuleType:
    """Import an optional module by its dotted name; raises MissingExtraError, with the extra that installs it."""
    try:
        return import_module(module)
    except ImportError as error:
        raise MissingExtraError(
            f"{module} is not installed. Install it from a clone with: pip install -e '.[{extra}]'"
        ) from error
