"""The trained models that this project publishes on the Hugging Face hub, each at a pinned commit."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from condviz.encoder.download import find_cached
from condviz.errors import CheckpointError, CondvizError, ConfigError, UnknownModelError, first_line
from condviz.models import manifest
from condviz.paths import CHECKPOINTS

OWNER = "condviz"
"""Of the repositories; the only place that says it."""
REVISIONS: dict[str, str] = dict.fromkeys((
    "bi-encoder", "bi-encoder-csts", "bi-encoder-mpnet", "case", "case-csts", "case-mpnet", "cross-encoder",
    "cross-encoder-csts", "csr", "csr-bi", "csr-bi-mpnet", "csr-csts", "csr-prefix", "everyday-concat", "hyper-cl",
    "hyper-cl-csts", "tri-concat", "tri-hadamard", "wn18rr-concat", "wn18rr-hyper-cl",
), "")  # fmt: skip
"""The shipped models, and the commit of each on the hub; "" until it is published."""


def hub_id(name: str) -> str:
    """Return the hub id of a shipped model."""
    return f"{OWNER}/condviz-{name}"


def is_hub_id(name: str) -> bool:
    """Return whether a text can be the id of a repository, OWNER/NAME."""
    return re.fullmatch(r"[\w.-]+/[\w.-]+", name, re.ASCII) is not None


@contextmanager
def refusals(repository: str, token: str = "") -> Iterator[None]:
    """Turn what goes wrong while something is sent to a repository into one line, which never holds the token."""
    if not is_hub_id(repository):
        raise ConfigError(f"{repository[:80]!r} is not a repository. Name it as OWNER/NAME.")
    try:
        yield
    except CondvizError:
        raise
    except Exception as error:  # the client raises errors of several libraries
        # Before the line is cut, which could leave the half of a token.
        said = first_line(OSError(str(error).replace(token, "(token)")) if token else error)
        raise ConfigError(f"The hub did not take {repository}: {said} Is the token allowed to write there?") from (
            None if token else error
        )


def explain_missing(name: str) -> str:
    """Say where a shipped model can be had that is not on this machine."""
    found = f"{hub_id(name)} on the hub" + ("" if REVISIONS[name] else ", which is not published yet")
    return (
        f"The trained weights of {name} are not on this machine. They are those of {found}; or copy checkpoints/{name} "
        f"of a clone of CondViz to {CHECKPOINTS / name}, or let CONDVIZ_CHECKPOINTS name the folder of a clone."
    )


def fetch_shipped(name: str) -> Path:
    """Return the folder of a shipped model that is not in the folders of models: downloaded, once.

    Raises:
        UnknownModelError: If it is not published yet.
        CheckpointError: If it cannot be downloaded.
    """
    if not REVISIONS[name]:
        raise UnknownModelError(explain_missing(name))
    return download(hub_id(name), REVISIONS[name], advice=explain_missing(name))


def find_downloaded(name: str) -> Path | None:
    """Return the folder of a shipped model that was downloaded before; None where it was not."""
    return find_cached(hub_id(name), REVISIONS[name], list(manifest.FILES)) if REVISIONS[name] else None


def download(repository: str, revision: str = "", *, advice: str) -> Path:
    """Return the folder with the checkpoint of a repository; what is there already is not downloaded again.

    Args:
        repository: Hub id.
        revision: Commit, branch or tag; "" takes the newest.
        advice: What to do where it cannot be downloaded.

    Raises:
        CheckpointError: If it cannot be downloaded.
    """
    from huggingface_hub import snapshot_download

    try:
        return Path(snapshot_download(repository, revision=revision or None, allow_patterns=list(manifest.FILES)))
    except Exception as error:  # the hub client raises errors of several libraries
        raise CheckpointError(
            f"{repository} could not be fetched from the hub ({type(error).__name__}: {first_line(error)}). {advice}"
        ) from error
