"""The named endpoints of the Gradio API: the functions of the page as plain JSON."""

from __future__ import annotations

from typing import Any

import gradio as gr

from condviz.types import ModelInfo
from condviz.ui.exports import finite
from condviz.ui.guard import api_error
from condviz.ui.record import pack_attribution, pack_info
from condviz.ui.service import Service


def add_api(service: Service) -> None:
    """Add /compare, /attribution and /models to the page; call inside gr.Blocks.

    Args:
        service: Scores.
    """

    @api_error
    def compare(sentence1: str, sentence2: str, conditions: list[str], models: list[str]) -> dict[str, Any]:
        """Score one pair under every condition with every model.

        Args:
            sentence1: First sentence.
            sentence2: Second sentence.
            conditions: One to twenty conditions.
            models: Names as /models lists them.

        Returns:
            {"models", "conditions", "scores", "unconditional", "percentiles"}; missing numbers are null.
        """
        request = service.check(sentence1, sentence2, conditions=conditions, models=models)
        return finite(service.compare(request).to_dict())

    @api_error
    def attribution(sentence1: str, sentence2: str, condition: str, model: str) -> dict[str, Any]:
        """Give the effect of every word on the score of one model.

        Args:
            sentence1: First sentence.
            sentence2: Second sentence.
            condition: A condition, or "" for the score without one.
            model: Name as /models lists it.
        """
        texts = service.check(sentence1, sentence2, conditions=[condition] if condition else ["none"], models=[model])
        wanted = texts.conditions[0] if condition else None
        return pack_attribution(service.attribute(model, texts.sentence1, sentence2=texts.sentence2, condition=wanted))

    @api_error
    def models() -> list[dict[str, Any]]:
        """List all models with their state."""
        states = service.pool.states()
        return [_public(info) | {"state": states[info.name].phase} for info in service.infos()]

    gr.api(compare, api_name="compare", concurrency_limit=2, concurrency_id="model")
    gr.api(attribution, api_name="attribution", concurrency_limit=2, concurrency_id="model")
    gr.api(models, api_name="models")


def _public(info: ModelInfo) -> dict[str, Any]:
    # gradio takes any object with a "path" for a file to serve; the folder is nobody's business anyway.
    return {key: value for key, value in pack_info(info).items() if key != "path"}
