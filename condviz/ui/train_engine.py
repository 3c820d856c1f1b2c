"""The calls that the Train tab makes into the core; heavy modules are imported inside the functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from condviz.training.jobs import Jobs
    from condviz.training.recipes import SentenceRecipe


def _jobs() -> Jobs:
    from condviz.training.jobs import Jobs

    return Jobs()


def _enabled() -> bool:
    from condviz.training.jobs import is_enabled

    return is_enabled()


def _read(content: Mapping[str, Any]) -> SentenceRecipe:
    from condviz.training.recipes import from_dict

    return from_dict(content)


def _check(recipe: SentenceRecipe) -> Any:  # noqa: ANN401 - a Preflight; its module imports torch
    from condviz.training.preflight import check

    return check(recipe, roots=_jobs().roots)


def _push(folder: Path, repository: str, *, token: str, private: bool) -> str:
    from huggingface_hub import HfApi

    hub = HfApi(token=token)
    address = hub.create_repo(repository, private=private, exist_ok=True)
    hub.upload_folder(repo_id=repository, folder_path=folder, commit_message="Add a model trained with CondViz")
    return str(address)


def _has_csts() -> bool:
    from condviz.data import corpora

    corpus = corpora.CORPORA["csts"]
    return any((corpora.data_folder() / corpus.folder / file).is_file() for file in corpus.files)


@dataclass(frozen=True)
class TrainEngine:
    """What the tab needs from the core. Tests put a small stand-in here.

    Attributes:
        jobs: Gives the jobs of this machine.
        enabled: Whether trainings may be started here.
        read: Table to a checked recipe; raises ConfigError.
        check: Recipe to a Preflight: measures a few steps, so it takes seconds.
        push: Folder of a model to a repository on the hub; gives its address.
        has_csts: Whether the files of C-STS are there.
    """

    jobs: Callable[[], Any] = _jobs
    enabled: Callable[[], bool] = _enabled
    read: Callable[[Mapping[str, Any]], Any] = _read
    check: Callable[[Any], Any] = _check
    push: Callable[..., str] = _push
    has_csts: Callable[[], bool] = _has_csts
