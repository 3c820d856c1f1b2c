"""The folder of a training that is under way: its recipe, its log, and the states that it can go on from."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from condviz.data import corpora
from condviz.errors import ConfigError
from condviz.models.manifest import MANIFEST, check_replaceable, read_manifest
from condviz.training.recipes import Recipe, from_dict

Report = Callable[[Mapping[str, Any]], None]
"""Called with each record of the log; may raise to stop the training."""
COMPLETE = "complete"
"""Empty file that is put into a saved state last: without it, the program was killed while it wrote."""


class Run:
    """The folder beside a checkpoint in which its training keeps its states; hidden, so that it is not taken for one.

    It is `.NAME.run` beside the checkpoint `out` unless another `folder` is given. `log` has one JSON object per line:
    "event" is "start", "step", "evaluation" or "end".
    """

    def __init__(self, out: Path, recipe: Recipe, folder: Path | None = None) -> None:
        self.out, self.recipe = out, recipe
        self.folder = out.parent / f".{out.name}.run" if folder is None else folder
        self.log = self.folder / "log.jsonl"
        self._recipe = self.folder / "recipe.json"

    def is_finished(self) -> bool:
        """Return whether the checkpoint is there and comes from this very recipe, wherever its tables are."""
        if not (self.out / MANIFEST).is_file():
            return False
        stored = read_manifest(self.out)["training"].get("recipe")
        # Both are made shareable, as older checkpoints hold whole paths.
        return isinstance(stored, dict) and shareable(_current(stored)) == shareable(self.recipe.to_dict())

    def last_state(self) -> Path | None:
        """Return the newest saved state that is complete."""
        states = [path for path in self.folder.glob("checkpoint-*") if (path / COMPLETE).is_file()]
        return max(states, key=lambda path: int(path.name.rpartition("-")[2]), default=None)

    def find_state(self, *, resume: bool) -> Path | None:
        """Find the state from which, with `resume`, an earlier training of the same recipe goes on; None to begin.

        Raises:
            ConfigError: If there is an unfinished training that would be lost, or one by another recipe.
            CheckpointError: If the checkpoint could not be written in the end.
        """
        check_replaceable(self.out)
        state = self.last_state()
        if state is not None and not resume:
            raise ConfigError(
                f"{self.folder} holds an unfinished training ({state.name}). Go on with --resume, or delete the "
                "folder to begin again."
            )
        if state is None:
            return None
        try:
            stored = _current(json.loads(self._recipe.read_text(encoding="utf-8")))
        except (OSError, ValueError) as error:
            raise ConfigError(
                f"{self._recipe} cannot be read ({error}). Delete {self.folder} to begin again."
            ) from error
        wanted = self.recipe.to_dict()
        if changed := sorted(key for key in {*stored, *wanted} if stored.get(key) != wanted.get(key)):
            raise ConfigError(
                f"{self.folder} was begun with another recipe: {', '.join(changed)} differ. Take the same recipe, or "
                "delete that folder to begin again."
            )
        return state

    def begin(self) -> None:
        """Create the folder anew."""
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        self._recipe.write_text(json.dumps(self.recipe.to_dict(), indent=2) + "\n", encoding="utf-8")

    def mend(self) -> None:
        """Remove what a killed program left half written: states, and the last line of the log."""
        for path in self.folder.glob("checkpoint-*"):
            if not (path / COMPLETE).is_file():
                shutil.rmtree(path)
        if self.log.is_file():
            whole, newline, _ = self.log.read_bytes().rpartition(b"\n")
            self.log.write_bytes(whole + newline)

    def complete(self, state: Path) -> None:
        """Mark a saved state as whole."""
        (state / COMPLETE).touch()

    def write(self, record: Mapping[str, Any]) -> None:
        """Add a record to the log."""
        with self.log.open("a", encoding="utf-8") as file:
            file.write(json.dumps(record) + "\n")

    def close(self) -> None:
        """Remove the saved states of a finished training; recipe and log stay."""
        for path in self.folder.glob("*/"):
            shutil.rmtree(path)


def shareable(recipe: Mapping[str, Any]) -> dict[str, Any]:
    """Return a recipe as a checkpoint keeps it, which may be published: without folders of this machine.

    The encoder alone keeps its folder, since the checkpoint is loaded with it.
    """
    places: dict[str, Any] = {
        part: [{**source, "path": shareable_path(source["path"])} for source in recipe[part]]
        for part in ("train", "validation")
        if part in recipe
    }
    places |= {key: shareable_path(recipe[key]) for key in ("init", "graph") if key in recipe}
    if "lora" in recipe:
        places["lora"] = {**recipe["lora"], "init": shareable_path(recipe["lora"].get("init", ""))}
    if "teacher" in recipe:
        places["teacher"] = list(map(shareable_path, recipe["teacher"]))
    return {**recipe, **places}


def shareable_path(path: str) -> str:
    """Return a whole path as one below the folder of the corpora, else as the name of the file; others as they are."""
    if not Path(path).is_absolute():
        return path
    whole, folder = Path(path).resolve(), corpora.data_folder().resolve()
    return whole.relative_to(folder).as_posix() if whole.is_relative_to(folder) else whole.name


def _current(stored: dict[str, Any]) -> dict[str, Any]:
    """Add the defaults of keys that recipes did not have when this one was stored."""
    try:
        return from_dict(stored).to_dict()
    except ConfigError:  # of a newer version
        return stored
