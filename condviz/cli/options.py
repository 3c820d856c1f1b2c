"""Options that several commands share, as parents for `argparse`, and the models that they name.

Example:
    >>> commands.add_parser("score", parents=[models(), device(), json_flag()])
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from condviz.cli.terminal import tell
from condviz.errors import CheckpointError, CondvizError, ConfigError

if TYPE_CHECKING:
    from condviz.methods.base import ConditionalScorer

DEVICE_HELP = "auto, cpu, cuda or mps (default: auto)"
PRECISION_HELP = "auto, float32, bfloat16 or float16"


def models(default: str = "all", *, required: bool = False, several: bool = True) -> argparse.ArgumentParser:
    """Return a parent with --model.

    Args:
        default: What happens without the option, for the help; "" if it is required.
        required: Whether at least one model must be named.
        several: Whether the option may be repeated. Then `options.model` is a list, empty if none is named; else it is
            `default`, or None where `default` is not a model's name.
    """
    parser = _parent()
    text = "name, folder or hub id" + ("; may be repeated" if several else "")
    text += f" (default: {default})" if default and not required else ""
    if several:
        parser.add_argument("--model", action="append", default=[], required=required, metavar="NAME", help=text)
    else:
        named = default if default and " " not in default else None
        parser.add_argument("--model", default=named, required=required, metavar="NAME", help=text)
    return parser


def device(precision: str | None = "auto") -> argparse.ArgumentParser:
    """Return a parent with --device and, unless `precision` is None, --precision with that default."""
    parser = _parent()
    parser.add_argument("--device", default="auto", help=DEVICE_HELP)
    if precision is not None:
        parser.add_argument("--precision", default=precision, help=f"{PRECISION_HELP} (default: {precision})")
    return parser


def backbone() -> argparse.ArgumentParser:
    """Return a parent with --backbone: the encoder that an untrained method is put on."""
    parser = _parent()
    parser.add_argument(
        "--backbone",
        default="",
        metavar="HUB_ID_OR_FOLDER",
        help="put the method, untrained, on this encoder instead of its own",
    )
    return parser


def cluster() -> argparse.ArgumentParser:
    """Return a parent with --ray and --workers; see `on_cluster`."""
    parser = _parent()
    text = "encode on a Ray cluster: its address, auto, or local for one on this machine"
    parser.add_argument("--ray", metavar="ADDRESS", help=text)
    parser.add_argument("--workers", type=int, default=0, metavar="N", help="models on the cluster (default: all fit)")
    return parser


def on_cluster(model: ConditionalScorer, options: argparse.Namespace) -> ConditionalScorer:
    """Return a model that computes its scores and vectors where --ray says.

    Raises:
        ConfigError: If the machines of the cluster could not load it.
    """
    if options.ray is None:
        return model
    if options.backbone:
        raise ConfigError("Every machine of a cluster loads the model by its name. Leave out --backbone, or --ray.")
    from condviz.store.scale import OnRay

    return OnRay(model, options.ray, options.workers)


def json_flag(text: str = "print JSON") -> argparse.ArgumentParser:
    """Return a parent with --json, which switches standard output to JSON."""
    parser = _parent()
    parser.add_argument("--json", action="store_true", help=text)
    return parser


def json_file(text: str = "write the result as JSON") -> argparse.ArgumentParser:
    """Return a parent with --json FILE."""
    parser = _parent()
    parser.add_argument("--json", metavar="FILE", help=text)
    return parser


def _parent() -> argparse.ArgumentParser:
    return argparse.ArgumentParser(add_help=False)


def load_asked(
    names: Sequence[str], *, device: str, precision: str, backbone: str = ""
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
    options = {"device": device, "precision": precision, "backbone": backbone}
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
