"""The endpoint /router: what the Router tab shows, as plain JSON."""

from __future__ import annotations

from typing import Any

import gradio as gr

from condviz.ui.exports import finite
from condviz.ui.guard import api_error
from condviz.ui.router_service import RouterService


def add_router_api(service: RouterService) -> None:
    """Add /router to the page; call inside gr.Blocks.

    Args:
        service: Reads words.
    """

    @api_error
    def router(
        sentence1: str, sentence2: str, conditions: list[str], models: list[str], delete: int = 0
    ) -> dict[str, Any]:
        """Give the weight of every word of one or two sentences under every condition.

        Args:
            sentence1: First sentence.
            sentence2: Second sentence, or "" for a single one.
            conditions: One to twelve conditions.
            models: Names as /models lists them, or variants of a CSR model such as csr@hidden. For a model without a
                router the values are the effects of leaving out each word ("source": "leave-one-out").
            delete: Words to delete at once in the deletion test, from 1 to 10; 0 leaves it out.

        Returns:
            {"conditions", "models"}. Weights, ranks and shares have the shape (layers, conditions, words).
        """
        from condviz.analysis.router import to_record

        request = service.check(sentence1, sentence2, conditions=conditions, models=models)
        readings = [service.read(name, request.sentences, request.conditions) for name in request.names]
        tests = [service.delete(reading, delete) for reading in readings] if delete else []
        return finite(to_record(readings, tests))

    gr.api(router, api_name="router", concurrency_limit=2, concurrency_id="model")
