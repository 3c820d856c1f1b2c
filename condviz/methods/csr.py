"""CSR: the condition routes attention in the last layers of the sentence encoder.

Paper: Lin et al. 2024, "Varying Sentence Representations via Condition-Specified Routers", EMNLP 2024; `CSRBi` is its
Table 1 (bi). `CSR` is the formula of the paper, with average pooling and no sentence transform: (1 + w) multiplies the
joined attention heads before W_O. What the released code (bigai-nlco/CSR) computes instead is `CSRPrefix`.
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
from condviz.encoder.tokens import Encoded, Tokens, pool
from condviz.methods.base import Options, Passes
from condviz.methods.catalog import CATALOG, VARIANTS, CSRConfig, describe_variant
from condviz.methods.encoders import number
from condviz.methods.routing import ROUTERS, QueryKeyRouter, RoutedEncoder, SentenceState, factor

HEAVY_SEED = 0
"""Seed of the layers that the variant "heavy" adds: they are never trained here."""


@dataclass(frozen=True)
class Entered:
    """A sentence below the first routed layer, and what the router has read of a condition."""

    sentence: Encoded
    state: Tensor
    """(L, d), what enters the layer."""
    reading: Tensor
    """(R, e), see `Router.read`."""

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
            condition: From `read`, (b, R, e).
            rows: (b,) sentence of each row; None where u = b. The first attention is computed once per sentence.

        Returns:
            Embeddings (b, d), and the weights (b, L) of each routed layer.
        """
        layers, ids, mask = self.backbone.layers, sentence.ids, sentence.mask
        weights: list[Tensor] = []
        for place, layer in enumerate(self.routed_layers):
            attended, keys = layers.attend(layer, hidden, mask), layers.key(layer, hidden)
            if rows is not None and not place:
                attended, keys, hidden, ids, mask = (part[rows] for part in (attended, keys, hidden, ids, mask))
            weight = self.router.weigh(layers, layer, SentenceState(ids, mask, hidden, keys), condition[:, place])
            weights.append(weight)
            scale = factor(weight, self.method_config.weighting)[..., None]
            hidden = layers.finish(layer, attended * scale.to(attended.dtype), hidden)
        return pool([hidden], Tokens(ids, mask), self.method_config.pooling), weights

    def make_variant(self, name: str) -> CSR:
        """Build a variant, see `condviz.methods.catalog`. The encoder is shared."""
        described = describe_variant(self.info, name)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(HEAVY_SEED)
            made = CSR(self.backbone, replace(self.method_config, **VARIANTS[name].changes))
        made = made.to(self.backbone.device).eval()
        made.info = replace(described, revision=made.fingerprint[:12])
        return made

    def embed_items(self, items: list[Item], passes: Passes) -> Tensor:
        """Run each condition once, and each sentence once up to the first routed layer. See the base class."""
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

        def enter(missing: list[Item]) -> list[Entered]:
            texts = list(dict.fromkeys(sentence for sentence, _ in missing))
            rows = dict(zip(texts, self.tokenize_sentences(texts), strict=True))
            return [Entered(rows[text], states[text], readings[under]) for text, under in missing]

        vectors = self.backbone.map_texts(
            items, role="conditioned", owner=self.fingerprint, tokenize=enter, embed=self._route_rows, **options
        )
        return self._stack(vectors)

    def _route_rows(self, rows: list[Entered]) -> Tensor:
        """Run the routed layers; the first attention of a sentence is computed once for all its conditions."""
        states = {row.sentence: row.state for row in rows}
        places = {sentence: place for place, sentence in enumerate(states)}
        tokens = self.backbone.collate(list(states))
        hidden = pad_sequence(list(states.values()), batch_first=True).to(self.backbone.device)
        hidden = functional.pad(hidden, (0, 0, 0, tokens.ids.shape[1] - hidden.shape[1]))
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


class CSRBi(RoutedEncoder):
    """Reads sentence and condition together and routes the last layers by the condition's attention.

    Code followed: bigai-nlco/CSR, my_encoder.py, router type 3 and mask type 0, with its token layout and positions.
    """

    about = CATALOG["csr-bi"]

    def embed_and_weigh(self, sentence: Tokens, condition: Tokens) -> tuple[Tensor, list[Tensor]]:
        """Encode sentences under conditions, row by row. See `RoutedEncoder.embed_and_weigh`."""
        layers, joint = self.backbone.layers, self.join(sentence, condition)
        length, places = sentence.ids.shape[1], torch.arange(joint.ids.shape[1], device=joint.ids.device)
        mark = length + 1 + layers.place(condition.mask[:, 1:])  # stands for the condition, behind its separator
        marked = places == mark[:, None]
        visible = joint.mask[:, None] & (marked[..., None] | ~marked[:, None])  # nobody else sees it
        visible = layers.lay_out(visible, joint.counted_positions())

        def weigh(layer: int, hidden: Tensor) -> Tensor:
            weight = layers.attention_row(layer, hidden, visible, mark).mean(dim=1) * (places < length)
            return weight / weight.sum(dim=1, keepdim=True)

        reweigh, weights = self.keep_weights(weigh)
        states = layers.run(layers.embed(joint), visible, reweigh=reweigh)
        vectors = pool([state[:, :length] for state in states], sentence, self.method_config.pooling)
        return vectors, [weight[:, :length] for weight in weights]

    def join(self, sentence: Tokens, condition: Tokens) -> Tokens:
        """Concatenate both: padded sentence, then padded condition.

        Positions count the real tokens of both. As in the official code, the condition's first token repeats the
        position of the separator in front of it.
        """
        lengths = sentence.mask.sum(dim=1, keepdim=True)
        behind = (torch.arange(condition.ids.shape[1], device=lengths.device) - 1).clamp_min(0)
        positions = torch.cat([sentence.counted_positions(), lengths + behind], dim=1)
        types = None
        if getattr(self.backbone.model.config, "type_vocab_size", 0) > 1:
            types = torch.cat([torch.zeros_like(sentence.ids), torch.ones_like(condition.ids)], dim=1)
        return Tokens(
            ids=torch.cat([sentence.ids, condition.ids], dim=1),
            mask=torch.cat([sentence.mask, condition.mask], dim=1),
            types=types,
            positions=positions.clamp_max(self.backbone.max_length - 1),
        )

    def tokenize(self, items: Sequence[Item]) -> list[tuple[Encoded, ...]]:
        """Tokenize the sentence, and the condition with one more separator in front."""
        return [(sentence, self.behind_separator(condition)) for sentence, condition in super().tokenize(items)]


class CSRPrefix(RoutedEncoder):
    """Lets the sentence attend to the condition's final states in every layer, as further keys and values.

    Code followed: bigai-nlco/CSR, tri_encoder.py and modeling_router.py, where the router is the sentence's own first
    row of attention. Differs: positions start behind the real length of the condition; the code takes its padded
    length, so that scores change with the batch.
    """

    about = CATALOG["csr-prefix"]

    def embed_and_weigh(self, sentence: Tokens, condition: Tokens) -> tuple[Tensor, list[Tensor]]:
        """Encode as `RoutedEncoder.embed_and_weigh`; weights do not sum to 1, as the rest lies on the condition."""
        layers, width = self.backbone.layers, condition.ids.shape[1]
        prefix = self.backbone.states(condition, all_layers=False)[-1]
        positions = sentence.counted_positions() + condition.mask.sum(dim=1, keepdim=True)
        placed = replace(sentence, positions=positions.clamp_max(self.backbone.max_length - 1))
        visible = layers.lay_out(
            torch.cat([condition.mask, sentence.mask], dim=1),
            torch.cat([condition.counted_positions(), placed.counted_positions()], dim=1),
        )
        mark = layers.place(sentence.mask)

        def weigh(layer: int, hidden: Tensor) -> Tensor:
            return layers.attention_row(layer, hidden, visible, mark, prefix=prefix).mean(dim=1)[:, width:]

        reweigh, weights = self.keep_weights(weigh)
        states = layers.run(layers.embed(placed), visible, prefix=prefix, reweigh=reweigh)
        return pool(states, sentence, self.method_config.pooling), weights

    def tokenize(self, items: Sequence[Item]) -> list[tuple[Encoded, ...]]:
        """Tokenize the sentence with one more separator in front, and the condition."""
        return [(self.behind_separator(sentence), condition) for sentence, condition in super().tokenize(items)]
