"""The section "Try another encoder" of the Models tab: any method, untrained, on an encoder of the visitor's choice."""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import partial

import gradio as gr

from condviz.encoder import DEFAULT_BACKBONE
from condviz.errors import CondvizError, DataError
from condviz.models import registry
from condviz.training.job import is_shared
from condviz.ui.events import connect, follow
from condviz.ui.markup import html, noted, notice, render
from condviz.ui.page import Page, stop_button
from condviz.ui.pool import Work
from condviz.ui.state import Values, first

ENCODERS = (
    "intfloat/e5-small-v2",
    "intfloat/e5-base-v2",
    "BAAI/bge-small-en-v1.5",
    "thenlper/gte-small",
    "sentence-transformers/all-mpnet-base-v2",
    "intfloat/multilingual-e5-small",
    DEFAULT_BACKBONE,
)
"""All that a visitor of a shared page may ask for: at most 0.5 GB each."""
METHODS = (
    "unconditional",
    *(name.removesuffix(registry.ZERO_SHOT_SUFFIX) for name in registry.ZERO_SHOT if name != "minilm"),
)
KEPT = 3
"""Models of this section that are in memory; the one that was used longest ago goes when another is loaded."""


class EncoderForm:
    """Widgets and events of the section."""

    def __init__(self, page: Page) -> None:
        self.page, self.pool = page, page.pool
        self.local = local = not is_shared()
        html(render("models/encoder_help.html", local=local), elem_id="cv-models-encoder-help")
        on = f"{registry.ON}encoder"
        with gr.Row(elem_classes="cv-actions"):
            label = "Encoder" + (": hub id or folder" if local else "")
            own = {"allow_custom_value": local, "elem_id": "cv-models-encoder-name", "scale": 3, "min_width": 260}
            self.encoder = gr.Dropdown(list(ENCODERS), value=ENCODERS[0], label=label, **own)
            choices = [(registry.describe(name + on).title.removesuffix(on), name) for name in METHODS]
            self.method = gr.Dropdown(choices, value="bi-encoder", label="Method", scale=2, min_width=160)
            self.load = gr.Button("Load", min_width=80, scale=0, elem_id="cv-models-encoder-load")
            self.stop = stop_button(scale=0, elem_id="cv-models-encoder-stop")
        self.notice = html("", elem_id="cv-models-encoder-notice")
        told = {"notice": self.notice, "stop": self.stop, "heavy": True}
        connect(self.load.click, self.add, [self.encoder, self.method], [page.models_changed], **told)

    def add(self, request: gr.Request, encoder: str, method: str) -> Iterator[dict]:
        """Download the encoder if it is not here, put the method on it, and offer the model in all tabs."""
        from condviz.encoder.download import count_missing, fetch

        encoder = check_encoder(encoder, request)
        if method not in METHODS:
            raise DataError(f"There is no method {str(method)[:40]!r} here. Choose one of: {', '.join(METHODS)}.")
        name, wait = f"{method}{registry.ON}{encoder}", partial(follow, notice=self.notice, stop=self.stop)
        if name not in self.pool.names:
            total = yield from wait(Work(lambda _: count_missing(encoder)), f"Looking for {encoder}.")
            if total:
                size = f"{total / 1e6:,.0f} MB" if total < 1e9 else f"{total / 1e9:.1f} GB"
                message = f"Downloading {encoder}, {size}, once for this machine."
                yield from wait(Work(partial(fetch, encoder, total)), message)
            self.pool.add(name)
        try:
            yield from wait(Work(lambda _: self.pool.get(name)), f"Loading {encoder}.")
        except CondvizError:
            self.pool.remove(name)
            raise
        others = (other for other in self.pool.names if registry.ON in other and other != name)
        for other in self.pool.idle_longest(others)[: 1 - KEPT]:
            self.pool.remove(other)
        title = self.pool.info(name).title
        told = notice("", f"{title} is loaded, and now in the menus of all tabs. It is not trained.", tone="info")
        yield {self.notice: noted(told, enc=encoder, method=method), self.page.models_changed: time.time()}

    def restore(self, values: Values) -> dict:
        """Return updates of the fields that a link names; what is loaded stays the visitor's decision."""
        encoder, method = first(values, "enc"), first(values, "method")
        return {
            self.encoder: encoder if encoder in ENCODERS or (encoder and self.local) else gr.skip(),
            self.method: method if method in METHODS else gr.skip(),
        }


def check_encoder(encoder: object, request: gr.Request) -> str:
    """Return the encoder that a visitor asks for, if it may be loaded.

    Whoever sits at the machine may name any hub id or folder. Others choose from `ENCODERS`: the answer would tell them
    which folders there are, and a download of theirs would fill the disk.

    Raises:
        DataError: If it is none, or not among those.
    """
    asked = encoder.strip() if isinstance(encoder, str) else ""
    if not asked:
        raise DataError("No encoder is chosen. Choose one from the list.")
    if asked in ENCODERS:
        return asked
    here = request.client is not None and request.client.host in ("127.0.0.1", "::1")
    if not here or "x-forwarded-for" in request.headers or is_shared():
        raise DataError(
            f"{asked[:80]!r} is not offered here. On a page that others use, choose one of: {', '.join(ENCODERS)}. "
            "For any other, run CondViz on your own machine."
        )
    return asked
