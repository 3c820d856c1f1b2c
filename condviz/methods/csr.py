"""CSR: the condition routes attention in the last layers of the sentence encoder.

Paper: Lin et al. 2024, "Varying Sentence Representations via Condition-Specified Routers", EMNLP 2024.
Differs from the released code (bigai-nlco/CSR), which computes something else (see csr_prefix.py): here the paper's
formula, average pooling, no sentence transform. (1 + w) multiplies the joined attention heads before W_O.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Unpack

import torch
from torch import Tensor
from torch.nn import functional
from torch.nn.utils.rnn import pad_sequence

from condviz.encoder.backbone import Backbone, Item
from condviz.encoder.pooling import pool
from condviz.encoder.tokens import Encoded, Tokens, rounded_up
from condviz.methods.base import Options, Passes, number
from condviz.methods.catalog import CATALOG
from condviz.methods.configs import CSRConfig
from condviz.methods.routing import ROUTERS, QueryKeyRouter, RoutedEncoder, SentenceState, factor
from condviz.methods.variants import VARIANTS, describe_variant

HEAVY_SEED = 0
"""Seed of the layers that the variant "heavy" adds: they are never trained here."""


@dataclass(frozen=True)
class Entered:
    """A sentence below the first routed layer, and what the router has read of a condition.

    Attributes:
        sentence: The text.
        state: (L, d), what enters the layer.
        reading: (R, e), see `Router.read`.
    """

    sentence: str
    state: Tensor
    reading: Tensor
    truncated: bool = False

    def __len__(self) -> int:
        return len(self.state)


class CSR(RoutedEncoder):
    """Routes attention with (1 + w), where w compares the condition's query with the sentence's keys."""

    about = CATALOG["csr"]

    def __init__(self, backbone: Backbone, method_config: CSRConfig) -> None:
        super().__init__(backbone, method_config)
        make = ROUTERS[method_config.router]
        arguments = {"query_layer": method_config.query_layer} if make is QueryKeyRouter else {}
        self.router = make(backbone, self.routed_layers, **arguments)

    # Tensors

    def embed_and_weigh(self, sentence: Tokens, condition: Tokens) -> tuple[Tensor, list[Tensor]]:
        """Encode sentences under conditions, row by row. See `RoutedEncoder.embed_and_weigh`."""
        return self.route(self.enter(sentence), sentence, self.read(condition))

    def enter(self, sentence: Tokens) -> Tensor:
        """Run sentences up to the first routed layer, without any condition: (b, L, d)."""
        layers = self.backbone.layers
        return layers.run(layers.embed(sentence), sentence.mask, stop=self.routed_layers.start)[-1]

    def read(self, condition: Tokens) -> Tensor:
        """Run conditions up to the last layer and keep what the router needs: (m, R, e)."""
        layers = self.backbone.layers
        if not self.routed_layers:
            return torch.zeros(len(condition), 0, 0, device=condition.ids.device)
        states = layers.run(layers.embed(condition), condition.mask, stop=layers.num_layers - 1)
        return self.router.read(layers, states[self.routed_layers.start :], condition)

    def route(
        self, hidden: Tensor, sentence: Tokens, condition: Tensor, *, rows: Tensor | None = None
    ) -> tuple[Tensor, list[Tensor]]:
        """Run the routed layers and pool.

        Args:
            hidden: State of the sentences that enters the first routed layer, (u, L, d).
            sentence: The sentences, for ids and masks.
            condition: From `read`, (b, R, e).
            rows: (b,) sentence of each row; None where u = b. The first attention is computed once per sentence.

        Returns:
            Embeddings (b, d), and the weights (b, L) of each routed layer.
        """
        layers, ids, mask = self.backbone.layers, sentence.ids, sentence.mask
        weights: list[Tensor] = []
        for layer in self.routed_layers:
            attended, keys = layers.attend(layer, hidden, mask)
            if rows is not None and layer == self.routed_layers.start:
                attended, keys, hidden, ids, mask = (part[rows] for part in (attended, keys, hidden, ids, mask))
            weight = self.router.weigh(layers, layer, SentenceState(ids, mask, hidden, keys), condition)
            weights.append(weight)
            scale = factor(weight, self.method_config.weighting)[..., None]
            hidden = layers.finish(layer, attended * scale.to(attended.dtype), hidden)
        return pool([hidden], Tokens(ids, mask), self.method_config.pooling), weights

    def make_variant(self, name: str) -> CSR:
        """Build a variant, see `condviz.methods.variants`. The encoder is shared.

        Raises:
            UnknownModelError: If there is no such variant.
            ConfigError: If the encoder does not fit, for instance its size the heads of "heavy".
        """
        described = describe_variant(self.info, name)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(HEAVY_SEED)
            made = CSR(self.backbone, replace(self.method_config, **VARIANTS[name].changes))
        made = made.to(self.backbone.device).eval()
        made.info = replace(described, revision=made.fingerprint[:12])
        return made

    def embed_items(self, items: list[Item], passes: Passes) -> Tensor:
        """Run each condition once, and each sentence once up to the first routed layer.

        See `ConditionalScorer.embed_items`.
        """
        if not self.routed_layers:
            return super().embed_items(items, passes)
        backbone, device = self.backbone, self.backbone.device
        (sentences, rows), (conditions, columns) = (number(texts) for texts in zip(*items, strict=True))
        readings = self._in_parts(
            backbone.tokenize([(text,) for text in conditions]), passes, lambda part: self.read(backbone.collate(part))
        )[columns.to(device)]
        encoded = backbone.tokenize([(text,) for text in sentences])
        order, vectors = [], []
        for part in passes.parts(encoded):
            tokens = backbone.collate([encoded[i] for i in part])
            places = {sentence: place for place, sentence in enumerate(part)}
            chosen = [i for i, row in enumerate(rows.tolist()) if row in places]
            index = torch.tensor([places[int(rows[i])] for i in chosen], device=device)
            reading = readings[torch.tensor(chosen, device=device)]
            vectors.append(self.route(self.enter(tokens), tokens, reading, rows=index)[0])
            order += chosen
        return torch.cat(vectors)[torch.tensor(order, device=device).argsort()]

    # Texts

    @torch.no_grad()
    def _encode(self, items: list[Item], **options: Unpack[Options]) -> Tensor:
        """Continue from the cached states below the first routed layer: one attention a sentence, one pass a row."""
        if not items or not self.routed_layers:
            return self._encode_plain([sentence for sentence, _ in items], **options)
        sentences, conditions = (list(dict.fromkeys(texts)) for texts in zip(*items, strict=True))
        states = dict(zip(sentences, self._states(sentences, **options), strict=True))
        readings = dict(zip(conditions, self._readings(conditions, **options), strict=True))
        vectors = self.backbone.map_texts(
            items,
            role="conditioned",
            owner=self.fingerprint,
            tokenize=lambda missing: [Entered(text, states[text], readings[under]) for text, under in missing],
            embed=self._route_rows,
            **options,
        )
        return self._stack(vectors)

    def _route_rows(self, rows: list[Entered]) -> Tensor:
        """Run the routed layers; the first attention of a sentence is computed once for all its conditions."""
        sentences = {row.sentence: row.state for row in rows}
        places = {sentence: place for place, sentence in enumerate(sentences)}
        tokens, hidden = self._pad(list(sentences), list(sentences.values()))
        index = torch.tensor([places[row.sentence] for row in rows], device=hidden.device)
        reading = torch.stack([row.reading for row in rows]).to(hidden.device)
        return self.route(hidden, tokens, reading, rows=index)[0]

    def _states(self, sentences: list[str], **options: Unpack[Options]) -> list[Tensor]:
        """Return the state (L, d) of each sentence below the first routed layer, from the cache where it is known."""

        def embed(rows: list[Encoded]) -> list[Tensor]:
            hidden = self.enter(self.backbone.collate(rows))
            return [state[: len(row)] for state, row in zip(hidden, rows, strict=True)]

        items = [(sentence,) for sentence in sentences]
        role = f"state below layer {self.routed_layers.start}"
        return self.backbone.map_texts(items, role=role, tokenize=self.backbone.tokenize, embed=embed, **options)

    def _readings(self, conditions: list[str], **options: Unpack[Options]) -> list[Tensor]:
        """Return what the router reads from each condition, (R, e), from the cache where it is known."""
        return self.backbone.map_texts(
            [(condition,) for condition in conditions],
            role="router reading",
            owner=self.fingerprint,
            tokenize=self.backbone.tokenize,
            embed=lambda rows: self.read(self.backbone.collate(rows)),
            **options,
        )

    def _pad(self, sentences: Sequence[str], states: list[Tensor]) -> tuple[Tokens, Tensor]:
        """Pad a batch of sentences whose states are known: tokens, and states (b, L, d)."""
        hidden = pad_sequence(states, batch_first=True).to(self.backbone.device)
        missing = rounded_up(hidden.shape[1], self.backbone.length_multiple) - hidden.shape[1]
        hidden = functional.pad(hidden, (0, 0, 0, missing))
        lengths = torch.tensor([len(state) for state in states], device=hidden.device)
        mask = torch.arange(hidden.shape[1], device=hidden.device) < lengths[:, None]
        ids = torch.zeros_like(mask, dtype=torch.long)
        if self.method_config.router == "random":  # the only router that looks at ids
            known = self.backbone.collate(self.backbone.tokenize([(sentence,) for sentence in sentences])).ids
            ids = known[:, : hidden.shape[1]]
        return Tokens(ids, mask), hidden
