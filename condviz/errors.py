"""The errors of this package. Each message says what is wrong, the value, what is allowed, and what to do next."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType


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
    """A training was asked to stop, and has saved a state to go on from."""


class TruncationWarning(UserWarning):
    """A text was longer than the encoder can read, and its end was cut off."""


def explain(error: Exception) -> str:
    """Return what pydantic found wrong first, in one line; the message of any other error."""
    from pydantic import ValidationError

    if not isinstance(error, ValidationError):
        return str(error)
    found = error.errors(include_url=False)[0]
    key = ".".join(str(part) for part in found["loc"])
    return f"{key}: {found['msg']}, got {str(found.get('input'))[:60]!r}."


def require(module: str, extra: str) -> ModuleType:
    """Import an optional module.

    Args:
        module: Dotted name, for instance "umap".
        extra: The extra of this package that installs it.

    Raises:
        MissingExtraError: If the module is not installed.
    """
    try:
        return import_module(module)
    except ImportError as error:
        raise MissingExtraError(
            f"{module} is not installed. Install it from a clone with: pip install -e '.[{extra}]'"
        ) from error
