"""The models that a command is to work with."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from condviz.cli.terminal import tell
from condviz.errors import CheckpointError, CondvizError, ConfigError

if TYPE_CHECKING:
    from condviz.methods.base import ConditionalScorer


def load_asked(
    names: Sequence[str], *, device: str, precision: str, backbone: str | None = None
) -> Iterator[tuple[str, ConditionalScorer]]:
    """Load models one after the other; if none is named, all, leaving out broken ones with a note.

    Args:
        names: Names, folders or hub ids; empty for all.
        device, precision, backbone: See `condviz.models.registry.load`.

    Yields:
        What was asked for, and the model.

    Raises:
        UnknownModelError: If there is no model of a name.
        CheckpointError: If a model that is asked for is broken.
        ConfigError: If there is a backbone and no name.
        CondvizError: If none could be loaded.
    """
    from condviz.models.registry import list_models, load

    if backbone and not names:
        raise ConfigError("--backbone needs the method that is put on it. Name it, for instance with --model csr.")
    options = {"device": device, "precision": precision} | ({"backbone": backbone} if backbone else {})
    none = True
    for name in dict.fromkeys(names or list_models()):
        try:
            model = load(name, **options)
        except CheckpointError as error:
            if names:
                raise
            tell(f"{name} is left out: {error}")
            continue
        none = False
        yield name, model
    if none:
        raise CondvizError("No model could be loaded. See the notes above, or name one with --model.")
