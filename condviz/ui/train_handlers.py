"""What the form of the Train tab does on each event. Every handler yields {component name: update}; no layout here."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import gradio as gr

from condviz.errors import ConfigError, DataError
from condviz.ui.background import Background
from condviz.ui.html import notice, text
from condviz.ui.train_form import field_visibility
from condviz.ui.train_preflight import render_preflight
from condviz.ui.train_recipe import (
    FIELDS,
    MAX_CHARACTERS,
    belongs,
    data_kind,
    edit,
    parse,
    presets,
    read_fields,
    set_data,
)
from condviz.ui.train_service import TrainService
from condviz.ui.train_view import render_table

Step = dict[str, Any]
_SOURCES: dict[str, tuple[list[dict[str, Any]], list[dict[str, Any]]]] = {
    "scenes": ([{"name": "scenes"}], [{"name": "scenes", "split": "dev"}]),
    "csts": ([{"name": "csts", "split": "train"}], [{"name": "csts", "split": "dev"}]),
}
_SETTLED = {"notice": "", "preflight": "", "checked": ""}


class FormHandlers:
    """The behaviour of the form over a service; holds nothing of any visitor."""

    def __init__(self, service: TrainService) -> None:
        """Keep the service."""
        self.service = service

    def preset(self, name: str, kind: str, uploaded: dict[str, str] | None) -> Iterator[Step]:
        """Put a shipped recipe into the form, under a name that is free; an uploaded table stays."""
        shipped = presets()
        if name not in shipped:
            raise DataError(f"There is no recipe {str(name)[:60]!r}. Reload the page.")
        recipe = edit(shipped[name].text, {"name": self._free_name(f"my-{name}")})
        filled = self._use_table(recipe, uploaded) if kind == "table" and uploaded else self._fill(recipe)
        yield {**filled, "note": text("p", shipped[name].note, class_="cv-muted")}

    def text(self, text: str) -> Iterator[Step]:
        """Show in the form what was written into the recipe; what is wrong is kept, too, and refused by a check."""
        yield {"written": text, **_unchecked()}
        yield self._fill(text)

    def load(self, path: str | None) -> Iterator[Step]:
        """Take a recipe from a file."""
        if not path:
            yield {"notice": gr.skip()}
            return
        try:
            with Path(path).open(encoding="utf-8") as file:
                text = file.read(MAX_CHARACTERS + 1)
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(f"{Path(path).name} is no text file in UTF-8. Choose a recipe, for instance one that was "
                              "downloaded here.") from error  # fmt: skip
        yield self._fill(text, note=f"From {Path(path).name}.")

    def take(self, data: Any) -> Iterator[Step]:  # noqa: ANN401 - from the browser
        """Put the recipe of a run into the form, under a name that is free."""
        recipe = self.service.recipe_text(str((data or {}).get("run", "")))
        name = str(parse(recipe).get("name", "model"))
        yield self._fill(edit(recipe, {"name": self._free_name(name)}), note=f"The recipe of the run {name}.")

    def field(self, recipe: str, value: Any, *, name: str) -> Iterator[Step]:  # noqa: ANN401 - of any field
        """Write one field into the recipe; another method brings other fields."""
        changed = edit(recipe, {name: value})
        if name in ("method", "tuning"):
            values = read_fields(parse(changed))
            yield {"recipe": changed, **self._fields(values), **_unchecked()}
        else:
            yield {"recipe": changed, **_unchecked()}

    def data(self, kind: str, recipe: str, uploaded: dict[str, str] | None) -> Iterator[Step]:
        """Take other data, with batches that fit them."""
        box = {"box_table": gr.update(visible=kind == "table"), "table": gr.update(visible=kind == "table")}
        if kind == "table" and uploaded:
            yield {**self._use_table(recipe, uploaded), **box}
        elif kind in _SOURCES:
            yield {**self._fill(self._with_data(recipe, *_SOURCES[kind], paired=True)), **box}
        else:
            yield {**box, **_unchecked()}

    def upload(self, path: str | None, share: float, recipe: str) -> Iterator[Step]:
        """Check an uploaded table, show what is in it, and train on it."""
        # The former table goes at once: what is trained on is what the form shows, or nothing.
        yield {**_unchecked(), "table": "", "uploaded": None, "recipe": set_data(recipe, [], [])}
        if not path:
            return
        yield {"notice": notice("Reading", "The table is being checked.", tone="busy")}
        facts, stored = self.service.add_table(path, share)
        yield {
            **self._use_table(recipe, stored),
            "uploaded": stored,
            "table": gr.update(value=render_table(facts), visible=True),
        }

    def share(self, path: str | None, share: float, recipe: str) -> Iterator[Step]:
        """Divide the uploaded table anew; tables that came with a recipe stay as they are."""
        if path:
            yield from self.upload(path, share, recipe)
        else:
            yield {"notice": gr.skip()}

    def settle(self) -> Iterator[Step]:
        """Wait, by its place among the edits, until all of them are in the recipe."""
        yield _unchecked()

    def check(self, recipe: str, kind: str) -> Iterator[Step]:
        """Measure what the training takes; only then can it be started."""
        if kind == "table" and data_kind(parse(recipe)) != "table":
            raise DataError("There is no table to train on yet. Upload one, or choose the scenes as data.")
        yield {
            "notice": "",
            "checked": "",
            "start": gr.update(interactive=False),
            "preflight": notice("Checking", "Reading the data and measuring a few steps.", tone="busy"),
        }
        try:
            work = Background(lambda _: self.service.check(recipe))
            for _ in work.steps():
                pass
            found = work.result()
        except Exception:
            yield {"preflight": ""}
            raise
        fits = not found.problems
        yield {
            "preflight": render_preflight(found),
            "checked": recipe if fits else "",
            "start": gr.update(interactive=fits),
        }

    def start(self, recipe: str, checked: str) -> Iterator[Step]:
        """Put the training into the queue."""
        if not checked or recipe != checked:
            raise ConfigError("The recipe has changed since it was checked, or was never checked. Press Check first.")
        run = self.service.start(recipe)
        line = "It runs on when this page is closed, and every browser that opens this page sees it."
        title = f"{run.name} waits for its turn" if run.state == "queued" else f"{run.name} has begun"
        yield {
            "notice": notice(title, line, tone="info"),
            "preflight": "",
            "checked": "",
            "start": gr.update(interactive=False),
            "wanted": run.id,
        }

    def download(self, recipe: str) -> Iterator[Step]:
        """Hand out the recipe as a file."""
        name = parse(recipe).get("name")
        stem = "".join(c for c in str(name or "recipe") if c.isalnum() or c in "-_.")[:64] or "recipe"
        yield {"out": gr.update(file={"name": f"{stem}.toml", "content": recipe, "at": time.monotonic_ns()})}

    def _fill(self, recipe: str, *, note: str | None = None) -> Step:
        content = parse(recipe)
        self.service.engine.read(content)
        kind = data_kind(content)
        return {
            "recipe": recipe,
            "data": kind,
            "box_table": gr.update(visible=kind == "table"),
            **self._fields(read_fields(content)),
            **({} if note is None else {"note": text("p", note + _tables(content), class_="cv-muted")}),
            **_unchecked(),
        }

    def _fields(self, values: dict[str, Any]) -> Step:
        return field_visibility(values, [name for name in FIELDS if belongs(name, values["method"])])

    def _use_table(self, recipe: str, stored: dict[str, str]) -> Step:
        sources = ([{"name": "csv", "path": stored[part]}] for part in ("train", "validation"))
        return self._fill(self._with_data(recipe, *sources, paired=stored["batching"] == "pairs"))

    def _with_data(self, recipe: str, train: list[dict], validation: list[dict], *, paired: bool) -> str:
        """Change the data, and what of the batches and losses does not go with them."""
        changed = set_data(recipe, train, validation)
        values = read_fields(parse(changed))
        if values["batching"] == "blocks":  # sentences, which only scenes have
            changed = edit(changed, {"batching": "pairs", "batch_size": 32})
        if not paired:
            changed = edit(changed, {"batching": "rows", "infonce": 0.0, "quadruplet": 0.0})
            changed = changed if values["mse"] else edit(changed, {"mse": 1.0})
        return changed

    def _free_name(self, wanted: str) -> str:
        taken = {*self.service.service.pool.names, *(run.name for run in self.service.runs())}
        names = (wanted, *(f"{wanted}-{number}" for number in range(2, 1000)))
        return next((name for name in names if name not in taken), wanted)


def _tables(content: Mapping[str, Any]) -> str:
    """Name the tables that a recipe brings along, since no file is shown for them."""
    if data_kind(content) != "table":
        return ""
    names = [Path(source.get("path", "")).name for part in ("train", "validation") for source in content.get(part, ())]
    return f" Its tables: {', '.join(filter(None, names))}."


def _unchecked() -> Step:
    return {**_SETTLED, "start": gr.update(interactive=False)}
