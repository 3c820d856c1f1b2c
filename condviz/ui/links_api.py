"""The endpoint /predict_links: what the Links tab finds, as plain JSON."""

from __future__ import annotations

from typing import Any

import gradio as gr

from condviz.ui.exports import finite
from condviz.ui.guard import api_error
from condviz.ui.links_export import public
from condviz.ui.links_service import LinksService
from condviz.ui.links_state import LinksState


def add_links_api(service: LinksService) -> None:
    """Add /predict_links to the page; call inside gr.Blocks.

    Args:
        service: Graphs and answers.
    """

    @api_error
    def predict_links(
        entity: str, relation: str, model: str, inverse: bool = False, k: int = 10, graph: str = "everyday"
    ) -> dict[str, Any]:
        """Rank the entities of a knowledge graph as answers to (entity, relation, ?) or (?, relation, entity).

        Args:
            entity: Id, label or name.
            relation: Id or text; "inverse" in front of a text is the same as `inverse`.
            model: Name as /models lists it, except cross-encoders.
            inverse: Ask for heads: which entities have this relation to the entity.
            k: How many answers, from 1 to 100.
            graph: "everyday", or "wn18rr" and "fb15k237" where their files are on the server.

        Returns:
            {"model", "graph", "entity", "relation", "rows", "answers"}: the best, and all answers that the graph knows
            (200 at most), with score, rank, filtered rank and the part of the graph they come from.
        """
        asked = service.check(LinksState(str(graph), str(model), str(entity), str(relation), bool(inverse), k))
        return finite(public(service.answer(asked)))

    gr.api(predict_links, api_name="predict_links", concurrency_limit=2, concurrency_id="model")
