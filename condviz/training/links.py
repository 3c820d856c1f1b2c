"""Training on the links of a knowledge graph: head and relation are sentence and condition, the tail is the answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils.rnn import pad_sequence

from condviz.data.kg import Graph
from condviz.data.kg_formats import load_graph
from condviz.encoder.backbone import BATCH_TOKENS as EVALUATION_TOKENS
from condviz.encoder.backbone import Backbone
from condviz.encoder.pooling import pool
from condviz.encoder.tokens import Tokens, batches_by_length, mask_rows
from condviz.errors import DataError
from condviz.evaluation import kgc
from condviz.evaluation.cards import link_card
from condviz.evaluation.ranking import RankingReport, TrueAnswers
from condviz.methods import ConditionalEncoder, ConditionalScorer, SeparableEncoder
from condviz.methods.encoders import number
from condviz.training.data import MixedOrder
from condviz.training.loop import Task
from condviz.training.losses import LinkContrast, TailQueue
from condviz.training.model import BATCH_TOKENS, TrainingModel, freeze_lowest, load_start, quick_attention
from condviz.training.recipes import LinkRecipe, Loss
from condviz.training.runs import Report
from condviz.types import Progress


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
        # What is shuffled, and what of it is a batch: triples, or triples that come with their inverses.
        both = recipe.tuning == "layers"
        rows = self.graph.splits["train"] if both else self.graph.directed("train")
        self.units = torch.from_numpy(rows)
        self.batch_units = min(max(1, recipe.batch_size // (1 + both)), len(rows))
        self.collate = partial(_collate, inverse=self.graph.num_relations if both else 0)
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
        self.module = LinkModel(self._vectors(told), self._loss(), recipe)
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
            vectors = kgc.encode_queries(self.method, self.graph, entities=entities, texts=self.texts, queries=queries)
            if not vectors.isfinite().all():
                raise ArithmeticError("a vector of the validation part is not a number")
            ranks = kgc.rank_queries(self.graph, vectors, entities, queries)
        self._ranked[owner] = RankingReport.from_ranks(*ranks.chunk(2)).mean.to_dict()
        return self._ranked[owner] | {"temperature": temperature}

    def sample(self, method: ConditionalScorer) -> np.ndarray:
        """Score 8 validation triples."""
        heads, relations, tails = kgc.split_queries(self.graph, "valid", limit=4).T
        alone = method.encode_sentences([self.texts[entity] for entity in (*heads.tolist(), *tails.tolist())])
        entities = torch.zeros(len(self.texts), alone.shape[1])
        entities[torch.cat([heads, tails])] = functional.normalize(torch.as_tensor(alone), dim=1)
        options = {"texts": self.texts, "heads": heads, "relations": relations}
        queries = kgc.query_vectors(method, self.graph, entities=entities, **options)
        return (queries * entities[tails]).sum(1).numpy()

    def describe_data(self) -> list[dict[str, Any]]:
        """Return name and triples of the graph."""
        return [{"graph": self.graph.name, **{split: len(rows) for split, rows in self.graph.splits.items()}}]

    def card(self, name: str, training: Mapping[str, Any], metrics: Mapping[str, Any]) -> str:
        """Format the model card."""
        return link_card(name, self.method.info, training, metrics, notice=self.graph.notice)

    def _entities(self, method: ConditionalEncoder) -> Tensor:
        if self.stored is not None:
            return kgc.project(method, self.stored)
        if isinstance(self.module.vectors, UpperLayers):
            return kgc.project(method, self.module.vectors.pooled(range(len(self.texts))))
        entities = torch.from_numpy(method.encode_sentences(self.texts))
        method.backbone.cache.clear()  # those vectors will not be asked for again
        return entities

    def _vectors(self, progress: Progress) -> nn.Module:
        method, recipe = self.method, self.recipe
        names = list(map(self.graph.relation_text, range(2 * self.graph.num_relations)))
        if recipe.tuning == "layers":  # what the frozen layers give for all texts is computed once
            freeze_lowest(method.backbone, recipe.frozen_layers)
            states = lower_states(method.backbone, self.texts + names, recipe.frozen_layers, progress=progress)
            return UpperLayers(method, states, recipe, entities=len(self.texts))
        if self.stored is None:
            return TripleEncoder(method, self.graph, recipe)
        method.backbone.requires_grad_(False)
        relations = method.backbone.encode([(name,) for name in names], pooling=method.method_config.pooling)
        return TripleHead(method, self.stored, relations)

    def _loss(self) -> LinkContrast:
        recipe, graph = self.recipe, self.graph
        size = recipe.pre_batch * self.batch_units * (1 + (recipe.tuning == "layers"))
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
        """Tokens encoded so far."""
        return getattr(self.vectors, "tokens", 0)

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

    @property
    def tokens(self) -> int:
        """Tokens encoded so far."""
        return self.inner.tokens

    def forward(self, triples: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Encode triples (b, 3), relations in [0, 2N).

        Returns:
            Vectors of (head, relation), of tails and of heads alone, (b, d) each; the last two of length 1.
        """
        rows = triples.tolist()
        heads = [self.text(head, tail) for head, _, tail in rows]
        tails = [self.text(tail, head) for head, _, tail in rows]
        relations = [self.graph.relation_text(relation) for _, relation, _ in rows]
        asked, ask = number(zip(heads, relations, strict=True))
        alone, place = number([*heads, *tails])
        device = self.inner.method.backbone.device
        with quick_attention(self.inner.method.backbone):
            queries = self.inner.embed(asked)[ask.to(device)]
            plain = functional.normalize(self.inner.embed_alone(alone).float(), dim=1)[place.to(device)]
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


class UpperLayers(nn.Module):
    """Trains the upper layers of an encoder, and the head, on the states that the layers below gave once.

    `states` are those of the texts of all E `entities`, then of all relations and inverse relations; `tokens` counts
    what was encoded in training, without padding.
    """

    def __init__(self, method: SeparableEncoder, states: LowerStates, recipe: LinkRecipe, *, entities: int) -> None:
        super().__init__()
        self.method, self.states, self.recipe, self.entities = method, states, recipe, entities
        self.tokens = 0

    def forward(self, triples: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Encode a batch, each different text once; as `TripleEncoder.forward`."""
        triples = triples.cpu()
        entities, place = torch.cat([triples[:, 0], triples[:, 2]]).unique(return_inverse=True)
        relations, index = triples[:, 1].unique(return_inverse=True)
        device = self.method.backbone.device
        with quick_attention(self.method.backbone):
            pooled = self.pooled([*entities.tolist(), *(self.entities + relations).tolist()])
        vectors = self.method.project_sentences(pooled[: len(entities)])
        heads = vectors[place[: len(triples)].to(device)]
        conditions = self.method.project_conditions(pooled[len(entities) :])
        queries = self.method.embed_by_condition(heads, conditions, index.to(device))
        plain = functional.normalize(vectors.float(), dim=1)[place.to(device)]
        return queries, plain[len(triples) :], plain[: len(triples)]

    def pooled(self, texts: Sequence[int]) -> Tensor:
        """Run the trained layers on texts by their number: (n, d), with gradient where it is switched on."""
        backbone, lengths = self.method.backbone, [self.states.lengths[text] for text in texts]
        limits = BATCH_TOKENS if torch.is_grad_enabled() else EVALUATION_TOKENS
        self.tokens += sum(lengths) if torch.is_grad_enabled() else 0
        order, results = [], []
        for part in batches_by_length(lengths, limits.get(backbone.device.type, limits["cpu"])):
            chosen = [texts[i] for i in part]
            states, mask = self.states.batch(chosen, device=backbone.device, dtype=backbone.dtype)
            top = backbone.layers.run(states, mask, start=self.recipe.frozen_layers)[-1:]
            results.append(pool(top, Tokens(mask.long(), mask), self.method.method_config.pooling))
            order += part
        return torch.cat(results)[torch.tensor(order, device=backbone.device).argsort()]


class LowerStates:
    """Token states of n texts after the lowest layers; computed once, in half precision, and read from disk.

    Args:
        parts: In the order of the texts: "states" (tokens, d), one text behind the other, and "lengths" (texts,).
    """

    def __init__(self, parts: Sequence[Mapping[str, Tensor]]) -> None:
        self._rows = [row for part in parts for row in part["states"].split(part["lengths"].tolist())]
        self.lengths = list(map(len, self._rows))

    def __len__(self) -> int:
        return len(self._rows)

    def batch(self, texts: Sequence[int], *, device: torch.device, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
        """Return states and mask of some texts, padded: (b, L, d) and (b, L)."""
        rows = [self._rows[text] for text in texts]
        padded = pad_sequence(rows, batch_first=True)
        return padded.to(device, dtype), mask_rows(rows, padded.shape[1]).to(device)


def lower_states(
    backbone: Backbone,
    texts: Sequence[str],
    layers: int,
    *,
    folder: Path | None = None,
    progress: Progress | None = None,
) -> LowerStates:
    """Run texts through the `layers` lowest layers of an encoder, or read what was kept of that.

    The encoder has the weights it was pretrained with. `folder` and `progress` as in
    `condviz.evaluation.kgc.stored_vectors`: where there is no folder, the states stay in memory.
    """

    def compute(chunk: list[str], _: int) -> dict[str, Tensor]:
        return _compute_states(backbone, chunk, layers)

    def whole(part: Mapping[str, Tensor], size: int) -> bool:
        known = {"states", "lengths"} <= part.keys() and len(part["lengths"]) == size
        return known and int(part["lengths"].sum()) == len(part["states"])

    owner = f"{backbone.fingerprint} {layers}"
    return LowerStates(kgc.stored_parts("states", owner, texts, compute, whole, folder=folder, progress=progress))


@torch.no_grad()
def _compute_states(backbone: Backbone, texts: Sequence[str], layers: int) -> dict[str, Tensor]:
    rows, access = backbone.tokenize([(text,) for text in texts]), backbone.layers
    found: dict[int, Tensor] = {}
    limit = EVALUATION_TOKENS.get(backbone.device.type, EVALUATION_TOKENS["cpu"])
    for part in batches_by_length(list(map(len, rows)), limit):
        tokens = backbone.collate([rows[i] for i in part])
        states = access.run(access.embed(tokens), tokens.mask, stop=layers)[-1].half().cpu()
        found |= {i: state[: len(rows[i])] for i, state in zip(part, states, strict=True)}
    return {"states": torch.cat([found[i] for i in range(len(rows))]), "lengths": torch.tensor(list(map(len, rows)))}


def _collate(triples: list[Tensor], *, inverse: int) -> dict[str, Tensor]:
    """Build a batch of triples (b, 3); where `inverse` is the number of relations N, with the inverse of each."""
    rows = torch.stack(triples)
    if not inverse:
        return {"triples": rows}
    return {"triples": torch.cat([rows, (rows + torch.tensor([0, inverse, 0]))[:, [2, 1, 0]]])}
