"""A model in training on a knowledge graph: the vectors of a batch of triples, with their gradient."""

from __future__ import annotations

from contextlib import nullcontext
from functools import cache

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.attention import SDPBackend, sdpa_kernel

from condviz.data.kg import Graph
from condviz.evaluation.kgc_vectors import shorten
from condviz.methods import ConditionalEncoder, SeparableEncoder
from condviz.methods.hyper_cl import HyperCL
from condviz.training.batching import number
from condviz.training.kgc_recipes import LinkRecipe
from condviz.training.model import TrainingModel
from condviz.training.recipes import Loss


class TripleEncoder(nn.Module):
    """Reads the texts of triples with an encoder that is trained.

    The text of a head does not name the tail among its neighbours, nor the other way round: it would give the answer
    away (SimKGC, doc.py).

    Args:
        method: What is trained.
        graph: The graph.
        recipe: For the form of texts and vectors.
    """

    def __init__(self, method: ConditionalEncoder, graph: Graph, recipe: LinkRecipe) -> None:
        super().__init__()
        self.inner = TrainingModel(method, Loss(), frozen=False)
        self.graph, self.recipe = graph, recipe
        self.text = cache(self._text)  # every epoch asks for the same texts

    def forward(self, triples: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Encode a batch.

        Args:
            triples: (b, 3), relations in [0, 2N).

        Returns:
            Vectors of (head, relation), of tails and of heads alone, (b, d) each; the last two of length 1.
        """
        rows = triples.tolist()
        heads = [self.text(head, tail) for head, _, tail in rows]
        tails = [self.text(tail, head) for head, _, tail in rows]
        relations = [self.graph.relation_text(relation) for _, relation, _ in rows]
        asked, ask = number(zip(heads, relations, strict=True))
        alone, place = number([*heads, *tails])
        # On CPUs the fused attention is slow backwards, see `TrainingModel.forward`.
        device = self.inner.method.backbone.device
        with sdpa_kernel(SDPBackend.MATH) if device.type == "cpu" else nullcontext():
            queries = self.inner.embed(asked)[ask.to(device)]
            plain = functional.normalize(self.inner.embed_alone(alone).float(), dim=1)[place.to(device)]
        return finish(queries, self.recipe.normalize), plain[len(rows) :], plain[: len(rows)]

    def _text(self, entity: int, other: int) -> str:
        text = self.graph.text(entity, neighbours=self.recipe.neighbours, without=other)
        return shorten(self.inner.method.backbone, [text])[0]


class TripleHead(nn.Module):
    """Trains the head of a method on vectors of entities and relations that were encoded once.

    Args:
        method: A method that encodes both apart; its encoder stays as it is.
        entities: What the encoder gives for each entity, (E, d).
        relations: The same for each relation and inverse relation, (2N, d).
        normalize: As in `LinkRecipe`.
    """

    def __init__(self, method: SeparableEncoder, entities: Tensor, relations: Tensor, *, normalize: bool) -> None:
        super().__init__()
        self.method, self.normalize = method, normalize
        self.register_buffer("entities", entities, persistent=False)
        self.register_buffer("relations", relations, persistent=False)

    def train(self, mode: bool = True) -> TripleHead:
        """Switch between training and inference; the encoder stays as it is."""
        super().train(mode)
        self.method.backbone.eval()
        return self

    def forward(self, triples: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Put a batch together; as `TripleEncoder.forward`."""
        triples = triples.to(self.entities.device)
        heads = self.method.project_sentences(self.entities[triples[:, 0]])
        tails = self.method.project_sentences(self.entities[triples[:, 2]])
        used, index = triples[:, 1].unique(return_inverse=True)
        conditions = self.method.project_conditions(self.relations[used])
        if isinstance(self.method, HyperCL):
            queries = self._project(heads, self.method.factors(conditions), index)
        else:
            queries = self.method.compose(heads, conditions, index)
        tails, heads = functional.normalize(tails, dim=1), functional.normalize(heads, dim=1)
        return finish(queries, self.normalize), tails, heads

    def _project(self, heads: Tensor, factors: tuple[Tensor, ...], index: Tensor) -> Tensor:
        """Give W_r times each head, one relation at a time: a copy of W_r per row takes ten times as long."""
        order = index.argsort(stable=True)
        sizes = index.bincount(minlength=len(factors[0])).tolist()
        parts = []
        for relation, rows in enumerate(heads[order].split(sizes)):
            for factor in factors:
                rows = rows @ factor[relation]
            parts.append(rows)
        return torch.cat(parts)[order.argsort()]


def finish(queries: Tensor, normalize: bool) -> Tensor:
    """Scale (head, relation) vectors to length 1 where that is wanted, in single precision."""
    return functional.normalize(queries.float(), dim=1) if normalize else queries.float()
