"""The models that a command is to work with."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from condviz.cli.terminal import tell
from condviz.errors import CheckpointError, CondvizError

if TYPE_CHECKING:
    from condviz.methods.base import ConditionalScorer


def load_asked(names: Sequence[str], *, device: str, precision: str) -> Iterator[tuple[str, ConditionalScorer]]:
    """Load models one after the other; where none is asked for, all, and a broken one among them is only told of.

    Args:
        names: Names, folders or hub ids; empty for all.
        device, precision: See `condviz.models.registry.load`.

    Yields:
        What was asked for, and the model.

    Raises:
        UnknownModelError: If there is no model of a name.
        CheckpointError: If a model that is asked for is broken.
        CondvizError: If none could be loaded.
    """
    from condviz.models.registry import list_models, load

    none = True
    for name in dict.fromkeys(names or list_models()):
        try:
            model = load(name, device=device, precision=precision)
        except CheckpointError as error:
            if names:
                raise
            tell(f"{name} is left out: {error}")
            continue
        none = False
        yield name, model
    if none:
        raise CondvizError("No model could be loaded. See the notes above, or name one with --model.")
