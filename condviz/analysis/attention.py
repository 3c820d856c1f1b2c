"""Attention inside CSR models: the three pictures of the paper, and every layer and head.

Paper: Lin et al. 2024, "Varying Sentence Representations via Condition-Specified Routers", EMNLP 2024, Figures 5 to 7.
The numbers are those that the models compute with: a copy of the model over the same weights notes what enters each
attention, and the rows are read from that.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import torch
from torch import Tensor

from condviz.analysis.words import check_texts
from condviz.data.texts import add_up_words, split_words
from condviz.encoder.layers import LayerAccess, Mask
from condviz.encoder.tokens import Encoded
from condviz.errors import ConfigError
from condviz.methods import ConditionalScorer, RoutedEncoder
from condviz.types import Word

if TYPE_CHECKING:  # importing it takes seconds
    from transformers import PreTrainedModel


@dataclass(frozen=True)
class AttentionRow:
    """Where one first token looks under one condition: the mean of all heads of the last layer."""

    condition: str
    words: tuple[Word, ...]
    weights: np.ndarray
    """(w,) float32 >= 0."""
    condition_words: tuple[Word, ...]
    condition_weights: np.ndarray
    """Float32, one for each of them; 0 where the sentence cannot see the condition."""
    hidden_mass: float
    """Weight on special tokens. All weights and this sum to 1."""


@dataclass(frozen=True)
class RouterPictures:
    """The three pictures of the CSR paper (Figures 5 to 7) for one sentence; m rows each."""

    model: str
    without_router: tuple[AttentionRow, ...]
    """The sentence's first token, the router switched off."""
    router: tuple[AttentionRow, ...]
    """The condition's first token over the words of the sentence; none where the model does not compute it."""
    with_router: tuple[AttentionRow, ...]
    """The sentence's first token in the model as it is."""
    varies: bool
    """False if `with_router` is the same under every condition by construction."""

    @property
    def figures(self) -> dict[int, tuple[AttentionRow, ...]]:
        """The rows by the number of their figure in the paper."""
        return {5: self.without_router, 6: self.router, 7: self.with_router}


@dataclass(frozen=True)
class HeadMap:
    """Attention over the words of a sentence in every layer and head, the router switched off."""

    model: str
    condition: str
    words: tuple[Word, ...]
    sentence: np.ndarray
    """(T, heads, w) float32: from the sentence's first token."""
    from_condition: np.ndarray | None
    """The same from the condition's first token; None where the model does not compute it."""

    @property
    def sources(self) -> dict[str, np.ndarray]:
        """Attention by whose first token looks: "condition" where it is computed, and "sentence"."""
        found = {} if self.from_condition is None else {"condition": self.from_condition}
        return {**found, "sentence": self.sentence}


@torch.no_grad()
def read_pictures(model: ConditionalScorer, sentence: str, conditions: Sequence[str]) -> RouterPictures:
    """Compute the rows of attention of the paper's Figures 5, 6 and 7 for one sentence under m conditions.

    Figures 5 and 7 are the row of the sentence's first token in the last layer, mean over heads, without the router and
    with it. Figure 6 is the row of the condition's first token over the sentence: the router's weights. CSR-prefix has
    no such row: its router is the row of Figure 7.
    """
    model.check_able("has_router")
    model = cast("RoutedEncoder", model)
    (sentence,), conditions = check_texts([sentence], conditions)
    trace = _Trace(model, sentence, conditions)
    without, with_ = (trace.first_token(view) for view in (_watch(model, num_routed_layers=0), _watch(model)))
    router: tuple[AttentionRow, ...] = ()
    if model.meets != "prefix":
        weights = model.token_weights(sentence, conditions).weights[-1]
        router = tuple(trace.row(i, row, None) for i, row in enumerate(weights))
    # Attention of the first routed layer comes before the router: only what later layers see depends on the condition.
    varies = model.meets != "router" or model.method_config.num_routed_layers > 1
    return RouterPictures(model.info.name, without, router, with_, varies)


@torch.no_grad()
def read_heads(model: ConditionalScorer, sentence: str, condition: str) -> HeadMap:
    """Compute attention over the words of a sentence in every layer and head, the router switched off.

    For CSR, where both texts are encoded apart, the condition's row compares its query in each layer and head with the
    sentence's keys there: what a router could read. For CSR-bi it is the row that the model computes.
    """
    model.check_able("has_router")
    model = cast("RoutedEncoder", model)
    (sentence,), (condition,) = check_texts([sentence], [condition])
    trace = _Trace(model, sentence, [condition])
    view, watched = _watch(model, num_routed_layers=0)
    view.embed(trace.sentence, trace.condition)
    calls = watched.calls[-watched.num_layers :]
    first = torch.stack([call.row(watched, 0)[0] for call in calls])  # (T, heads, keys)
    return HeadMap(
        model=model.info.name,
        condition=condition,
        words=trace.words,
        sentence=trace.on_words(_array(first[..., calls[0].offset :])),
        from_condition=_condition_heads(model, trace, calls, watched),
    )


def _condition_heads(
    model: RoutedEncoder, trace: _Trace, calls: Sequence[_Call], layers: LayerAccess
) -> np.ndarray | None:
    if model.meets == "prefix":
        return None
    if model.meets == "sequence":
        mark = trace.sentence.ids.shape[1] + 1  # behind the separator in front of the condition
        return trace.on_words(_array(torch.stack([call.row(layers, mark)[0] for call in calls])))
    states = layers.run(layers.embed(trace.condition), trace.condition.mask)
    visible = torch.cat([trace.sentence.mask, torch.zeros_like(trace.condition.mask)], dim=1)
    first = torch.zeros(1, dtype=torch.long, device=visible.device)
    rows = [
        layers.attention_row(call.layer, state, visible, first, prefix=call.hidden)[0]
        for call, state in zip(calls, states[:-1], strict=True)
    ]
    return trace.on_words(_array(torch.stack(rows)))


@dataclass(frozen=True)
class _Call:
    """What entered the attention of one layer. As the arguments of `LayerAccess.attend`."""

    layer: int
    hidden: Tensor
    mask: Mask
    prefix: Tensor | None

    @property
    def offset(self) -> int:
        """Where the keys of the sequence itself begin."""
        return 0 if self.prefix is None else self.prefix.shape[1]

    def row(self, layers: LayerAccess, place: int) -> Tensor:
        """Compute the probabilities of one query: (b, heads, keys)."""
        places = torch.full((len(self.hidden),), place, device=self.hidden.device)
        return layers.attention_row(self.layer, self.hidden, self.mask, places, prefix=self.prefix)


class _Watched(LayerAccess):
    """The layers of an encoder; notes what enters each attention."""

    def __init__(self, model: PreTrainedModel) -> None:
        super().__init__(model)
        self.calls: list[_Call] = []

    def attend(self, layer: int, hidden: Tensor, mask: Mask, *, prefix: Tensor | None = None) -> Tensor:
        self.calls.append(_Call(layer, hidden, mask, prefix))
        return super().attend(layer, hidden, mask, prefix=prefix)


def _watch(model: RoutedEncoder, **changes: Any) -> tuple[RoutedEncoder, _Watched]:  # noqa: ANN401 - any setting
    """Return a copy of a model over its weights, with changed settings and watched layers: others use the original."""
    if type(model.backbone.layers) is not LayerAccess:
        raise ConfigError(
            f"Attention inside a {model.backbone.model.config.model_type!r} model cannot be read, only the router's "
            "weights. Choose an encoder that is built like BERT or RoBERTa."
        )
    backbone, view = copy.copy(model.backbone), copy.copy(model)
    backbone._layers = watched = _Watched(model.backbone.model)
    view._modules = {**model._modules, "backbone": backbone}
    view.method_config = replace(model.method_config, **changes)
    return view, watched


class _Trace:
    """One sentence under m conditions as tokens, and the way back from tokens to words."""

    def __init__(self, model: RoutedEncoder, sentence: str, conditions: Sequence[str]) -> None:
        rows = model.tokenize([(sentence, condition) for condition in conditions])
        self.sentence, self.condition = (model.backbone.collate(part) for part in zip(*rows, strict=True))
        self.conditions = tuple(conditions)
        self.words = split_words(sentence)
        self.spans = _spans(model, sentence, rows[0][0])
        self.condition_words = [split_words(condition) for condition in conditions]
        self.condition_spans = [_spans(model, text, row[1]) for text, row in zip(conditions, rows, strict=True)]

    def first_token(self, watched: tuple[RoutedEncoder, _Watched]) -> tuple[AttentionRow, ...]:
        """Compute the row of the sentence's first token in the last layer under each condition."""
        view, layers = watched
        view.embed(self.sentence, self.condition)
        call = layers.calls[-1]  # the last attention of every method is that of the sentence in the last layer
        values = _array(call.row(layers, 0).mean(dim=1))
        length = self.sentence.ids.shape[1]
        others = values[:, : call.offset] if call.offset else values[:, length:]
        own = self.on_words(values[:, call.offset : call.offset + length])
        return tuple(self.row(i, own[i], others[i]) for i in range(len(self.conditions)))

    def row(self, place: int, weights: np.ndarray, others: np.ndarray | None) -> AttentionRow:
        """Assemble a condition's row from weights of the words, (w,), and of `others`, tokens (L,) or None."""
        words, spans = self.condition_words[place], self.condition_spans[place]
        seen = np.zeros(len(spans), dtype=np.float32) if others is None or not others.size else others[: len(spans)]
        condition = add_up_words(words, spans, seen)
        hidden = float(np.clip(1 - weights.sum() - condition.sum(), 0, 1))
        return AttentionRow(self.conditions[place], self.words, weights, words, condition, hidden)

    def on_words(self, values: np.ndarray) -> np.ndarray:
        """Add the weights of the sentence's tokens up over its words: (..., keys) -> (..., w) float32."""
        return add_up_words(self.words, self.spans, values)


def _spans(model: RoutedEncoder, text: str, row: Encoded) -> list[tuple[int, int]]:
    """Return the characters of each token; special tokens that the method puts in front have an empty span."""
    spans = model.backbone.spans(text)
    return [(0, 0)] * (len(row) - len(spans)) + spans


def _array(values: Tensor) -> np.ndarray:
    return values.float().cpu().numpy()
