"""Training on the links of a knowledge graph: head and relation are sentence and condition, the tail is the answer."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from condviz.data.kg import Graph
from condviz.data.kg_formats import load_graph
from condviz.errors import DataError
from condviz.evaluation import kgc
from condviz.evaluation.cards import link_card
from condviz.evaluation.kgc import TrueAnswers
from condviz.methods import ConditionalEncoder, ConditionalScorer, SeparableEncoder
from condviz.methods.encoders import number
from condviz.training.data import MixedOrder
from condviz.training.loop import Task
from condviz.training.losses import LinkContrast, TailQueue
from condviz.training.model import TrainingModel, load_start, quick_attention
from condviz.training.recipes import LinkRecipe, Loss
from condviz.training.trainer import Report


class LinkTask(Task):
    """Learns to rank the right tail first; judged by the filtered MRR on the validation part.

    `report` hears of "encode" while entities are encoded. DataError if the graph is missing, or its train or validation
    part is empty.
    """

    best, part, divisible, whole_batches, decays_all = "MRR", "valid", False, True, True  # decay as in SimKGC's code

    def __init__(self, recipe: LinkRecipe, device: str, *, report: Report | None = None) -> None:
        self.recipe, self.device, self.graph = recipe, device, load_graph(recipe.graph)
        if empty := [split for split in ("train", "valid") if not len(self.graph.splits[split])]:
            raise DataError(f"The {empty[0]} part of {self.graph.name} has no triples. Training needs train and valid.")
        rows = self.graph.directed("train")
        self.units, self.collate = torch.from_numpy(rows), _collate
        self.batch_units = min(recipe.batch_size, len(rows))
        self.order = MixedOrder([len(rows)], [1.0], seed=recipe.seed)
        self.method = load_start(recipe).to(device)
        self.texts = kgc.entity_texts(
            self.graph, self.method, neighbours=recipe.neighbours, max_tokens=recipe.max_tokens
        )

        def told(done: int, total: int) -> None:
            if report:
                report({"event": "encode", "step": done, "steps": total})

        frozen = recipe.tuning == "frozen"
        self.stored = kgc.stored_vectors(self.method, self.texts, progress=told) if frozen else None
        self.module = LinkModel(self._vectors(), self._loss(), recipe)
        self._ranked: dict[str, dict[str, float]] = {}

    def warmup(self, steps: int) -> float:
        """Return the steps of the recipe, at most a tenth of all."""
        return min(self.recipe.warmup, steps // 10)

    def validate(self) -> dict[str, float]:
        """Compute the mean of both directions, and the temperature that is learnt."""
        temperature, owner = round(float(self.module.loss.temperature.detach()), 4), self.method.weights_hash
        if owner in self._ranked:  # the best weights are measured once more at the end
            return self._ranked[owner] | {"temperature": temperature}
        with torch.autocast(self.device, enabled=False), torch.no_grad():
            entities = self._entities(self.method)
            queries = kgc.split_queries(self.graph, "valid", limit=self.recipe.validation_triples)
            vectors = kgc.query_vectors(self.method, self.graph, queries, entities=entities, texts=self.texts)
            if not vectors.isfinite().all():
                raise ArithmeticError("a vector of the validation part is not a number")
            ranks = kgc.rank_queries(self.graph, vectors, entities, queries)
        self._ranked[owner] = kgc.summarise_directions(*ranks.chunk(2))["mean"]
        return self._ranked[owner] | {"temperature": temperature}

    def sample(self, method: ConditionalScorer) -> np.ndarray:
        """Score 8 validation triples."""
        queries = kgc.split_queries(self.graph, "valid", limit=4)
        heads, _, tails = queries.T
        alone = method.encode_sentences([self.texts[entity] for entity in (*heads.tolist(), *tails.tolist())])
        entities = torch.zeros(len(self.texts), alone.shape[1])
        entities[torch.cat([heads, tails])] = functional.normalize(torch.as_tensor(alone), dim=1)
        vectors = kgc.query_vectors(method, self.graph, queries, entities=entities, texts=self.texts)
        return (vectors * entities[tails]).sum(1).numpy()

    def describe_data(self) -> list[dict[str, Any]]:
        """Return name and triples of the graph."""
        return [{"graph": self.graph.name, **{split: len(rows) for split, rows in self.graph.splits.items()}}]

    def card(self, name: str, training: Mapping[str, Any], metrics: Mapping[str, Any]) -> str:
        """Format the model card."""
        return link_card(name, self.method.info, training, metrics, notice=self.graph.notice)

    def _entities(self, method: ConditionalEncoder) -> Tensor:
        if self.stored is not None:
            return kgc.project(method, self.stored)
        entities = torch.from_numpy(method.encode_sentences(self.texts))
        method.backbone.cache.clear()  # those vectors will not be asked for again
        return entities

    def _vectors(self) -> nn.Module:
        method = self.method
        if self.stored is None:
            return TripleEncoder(method, self.graph, self.recipe)
        names = map(self.graph.relation_text, range(2 * self.graph.num_relations))
        method.backbone.requires_grad_(False)
        relations = method.backbone.encode([(name,) for name in names], pooling=method.method_config.pooling)
        return TripleHead(method, self.stored, relations)

    def _loss(self) -> LinkContrast:
        recipe, graph = self.recipe, self.graph
        size = recipe.pre_batch * self.batch_units
        return LinkContrast(
            TrueAnswers(graph.splits["train"], num_entities=graph.num_entities, num_relations=graph.num_relations),
            temperature=recipe.temperature,
            margin=recipe.margin,
            queue=TailQueue(size, self.method.backbone.hidden_size, seed=recipe.seed) if size else None,
            queue_weight=recipe.pre_batch_weight,
        )


class LinkModel(nn.Module):
    """Computes the loss of a batch of triples; `vectors` gives those of (head, relation), tails and heads alone.

    The temperature of the loss is trained, and its queue of earlier tails belongs to a saved state.
    """

    def __init__(self, vectors: nn.Module, loss: LinkContrast, recipe: LinkRecipe) -> None:
        super().__init__()
        self.vectors, self.loss, self.recipe = vectors, loss, recipe

    @property
    def tokens(self) -> int:
        """Tokens encoded so far; a head reads stored vectors."""
        return self.vectors.inner.tokens if isinstance(self.vectors, TripleEncoder) else 0

    def forward(self, triples: Tensor) -> dict[str, Tensor]:
        """Compute {"loss"} of triples (b, 3), relations in [0, 2N)."""
        # In single precision: a temperature of 0.05 multiplies rounding errors of half precision by twenty.
        queries, tails, heads = (vectors.float() for vectors in self.vectors(triples))
        with torch.autocast(queries.device.type, enabled=False):
            if self.recipe.normalize:
                queries = functional.normalize(queries, dim=1)
            own = heads if self.recipe.self_negatives else None
            return {"loss": self.loss(queries, tails, triples=triples.cpu(), heads=own)}


class TripleEncoder(nn.Module):
    """Reads the texts of triples with an encoder that is trained.

    The text of a head does not name the tail among its neighbours, nor the other way round: it would give the answer
    away (SimKGC, doc.py).
    """

    def __init__(self, method: ConditionalEncoder, graph: Graph, recipe: LinkRecipe) -> None:
        super().__init__()
        self.inner = TrainingModel(method, Loss(), frozen=False)
        self.graph, self.recipe = graph, recipe
        self.text = cache(self.text)  # every epoch asks for the same texts

    def forward(self, triples: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Encode triples (b, 3) into (head, relation), tails and heads alone: (b, d) each, the last two of length 1."""
        rows = triples.tolist()
        heads = [self.text(head, tail) for head, _, tail in rows]
        tails = [self.text(tail, head) for head, _, tail in rows]
        relations = [self.graph.relation_text(relation) for _, relation, _ in rows]
        asked, ask = number(zip(heads, relations, strict=True))
        alone, place = number([*heads, *tails])
        method, device = self.inner.method, self.inner.method.backbone.device
        with quick_attention(method.backbone):
            queries = method.embed_items(asked, self.inner)[ask.to(device)]
            vectors = method.embed_sentences(alone, self.inner)
            plain = functional.normalize(vectors.float(), dim=1)[place.to(device)]
        return queries, plain[len(rows) :], plain[: len(rows)]

    def text(self, entity: int, other: int) -> str:
        """Return the text of an entity beside another one."""
        text = self.graph.text(entity, neighbours=self.recipe.neighbours, without=other)
        return kgc.shorten(self.inner.method.backbone, [text], self.recipe.max_tokens)[0]


class TripleHead(nn.Module):
    """Trains the head of a method that encodes both apart, on vectors of entities (E, d) and relations (2N, d)."""

    def __init__(self, method: SeparableEncoder, entities: Tensor, relations: Tensor) -> None:
        super().__init__()
        self.method = method
        self.entities: Tensor
        self.relations: Tensor
        self.register_buffer("entities", entities, persistent=False)
        self.register_buffer("relations", relations, persistent=False)

    def train(self, mode: bool = True) -> TripleHead:
        """Switch between training and inference; the encoder stays as it is."""
        super().train(mode)
        self.method.backbone.eval()
        return self

    def forward(self, triples: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Compose a batch; as `TripleEncoder.forward`."""
        triples = triples.to(self.entities.device)
        heads = self.method.project_sentences(self.entities[triples[:, 0]])
        tails = self.method.project_sentences(self.entities[triples[:, 2]])
        used, index = triples[:, 1].unique(return_inverse=True)
        conditions = self.method.project_conditions(self.relations[used])
        queries = self.method.embed_by_condition(heads, conditions, index)
        return queries, functional.normalize(tails, dim=1), functional.normalize(heads, dim=1)


def _collate(triples: list[Tensor]) -> dict[str, Tensor]:
    return {"triples": torch.stack(triples)}
