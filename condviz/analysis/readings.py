"""What `condviz.read_words` and the views of a router return. Free of torch, as all results are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from condviz.types import ModelInfo, Result, TokenWeights, Word, table

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class WordReading(Result):
    """How much the words of one or two sentences count for one model under m conditions."""

    model: ModelInfo
    """The model; a variant made from it has a name such as "csr@hidden"."""
    source: Literal["router", "leave-one-out"]
    """The "router", or "leave-one-out" without one. Then `weights` (1, m, w) holds what each word does to the
    score, signed, as in `Attribution`; there are no layers, no sub-tokens and no hidden mass."""
    texts: tuple[TokenWeights, ...]
    scores: np.ndarray | None = None
    """(m,) float32, scores of the pair; of a single sentence, None."""
    unconditional: float | None = None
    """Score of the pair without any condition, or None."""
    untold: tuple[int, ...] = ()
    """Positions of conditions that the sentences may say nothing about: what is read under them is a guess."""

    @property
    def conditions(self) -> tuple[str, ...]:
        """The m conditions."""
        return self.texts[0].conditions

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON. Weights, ranks and shares have the shape (layers, conditions, words)."""
        return {
            "model": self.model.name,
            "revision": self.model.revision,
            "trained": self.model.trained,
            "source": self.source,
            "scores": None if self.scores is None else [float(score) for score in self.scores],
            "unconditional": self.unconditional,
            "untold": [self.conditions[place] for place in self.untold],
            "sentences": [
                {
                    "sentence": text.sentence,
                    "words": [[word.text, word.start, word.end] for word in text.words],
                    "layers": [layer + 1 for layer in text.layers],
                    "weights": text.weights.tolist(),
                    "ranks": text.ranks.tolist(),
                    "shares": text.shares.tolist(),
                    "special_tokens": text.hidden_mass.tolist(),
                    "truncated": text.truncated,
                }
                for text in self.texts
            ],
        }

    def to_frame(self) -> pd.DataFrame:
        """Return one row per sentence, routed layer, condition and word. Layers count from 1; None without a router."""
        rows = []
        for number, text in enumerate(self.texts, start=1):
            ranks, shares = text.ranks, text.shares
            for cell in np.ndindex(text.weights.shape):
                layer, condition, place = cell
                word = text.words[place]
                rows.append({
                    "model": self.model.name, "revision": self.model.revision, "source": self.source,
                    "sentence": number, "condition": text.conditions[condition],
                    "layer": text.layers[layer] + 1 if text.layers else None, "position": place + 1,
                    "start": word.start, "end": word.end, "word": word.text, "value": float(text.weights[cell]),
                    "rank": int(ranks[cell]), "share": float(shares[cell]),
                })  # fmt: skip
        return table(rows).astype({"layer": "Int64"}) if rows else table([])


@dataclass(frozen=True)
class AttentionRow:
    """Where one first token looks under one condition: the mean of all heads of the last layer."""

    condition: str
    words: tuple[Word, ...]
    """w words of the sentence."""
    weights: np.ndarray
    """(w,) float32 >= 0."""
    condition_words: tuple[Word, ...]
    condition_weights: np.ndarray
    """Float32, one for each of them; 0 where the sentence cannot see the condition."""
    hidden_mass: float
    """Weight on special tokens. All weights and this sum to 1."""


@dataclass(frozen=True)
class RouterPictures(Result):
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

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON: per figure, a row for each condition."""
        return {
            "model": self.model,
            "varies": self.varies,
            "figures": {
                str(number): [
                    {
                        "condition": row.condition,
                        "words": [word.text for word in row.words],
                        "weights": row.weights.tolist(),
                        "condition_words": [word.text for word in row.condition_words],
                        "condition_weights": row.condition_weights.tolist(),
                        "special_tokens": row.hidden_mass,
                    }
                    for row in rows
                ]
                for number, rows in self.figures.items()
            },
        }

    def to_frame(self) -> pd.DataFrame:
        """Return one row per figure, condition and word of the sentence."""
        return table(
            [
                {"figure": number, "condition": row.condition, "word": word.text, "weight": float(weight)}
                for number, rows in self.figures.items()
                for row in rows
                for word, weight in zip(row.words, row.weights, strict=True)
            ]
        )


@dataclass(frozen=True)
class HeadMap(Result):
    """Attention over the words of a sentence in every layer and head, the router switched off."""

    model: str
    condition: str
    words: tuple[Word, ...]
    """w words of the sentence."""
    sentence: np.ndarray
    """(T, heads, w) float32: from the sentence's first token."""
    from_condition: np.ndarray | None
    """The same from the condition's first token; None where the model does not compute it."""

    @property
    def sources(self) -> dict[str, np.ndarray]:
        """Attention by whose first token looks: "condition" where it is computed, and "sentence"."""
        found = {} if self.from_condition is None else {"condition": self.from_condition}
        return {**found, "sentence": self.sentence}

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON; attention has the shape (layers, heads, words)."""
        return {
            "model": self.model,
            "condition": self.condition,
            "words": [word.text for word in self.words],
            "attention": {source: values.tolist() for source, values in self.sources.items()},
        }

    def to_frame(self) -> pd.DataFrame:
        """Return one row per source, layer, head and word; layers and heads count from 1."""
        return table([
            {"from": source, "layer": layer + 1, "head": head + 1, "word": self.words[w].text,
             "attention": float(values[layer, head, w])}
            for source, values in self.sources.items()
            for layer, head, w in np.ndindex(values.shape)
        ])  # fmt: skip


@dataclass(frozen=True)
class DeletionTest(Result):
    """Does the score depend on the words that a model points at? Top words against random ones."""

    model: str
    num_words: int
    top: np.ndarray
    """(m, s) float32: change of the score without the top words, signed, in s pairs."""
    random: np.ndarray
    """(draws, m, s) float32: the same without as many random words."""
    held_out: tuple[str, ...] = ()
    """Sentences that the shortened ones were compared with in place of the pair, because the words were chosen by
    the score of the pair. Empty where they were chosen by a router."""

    @property
    def top_move(self) -> float:
        """Mean absolute change without the top words."""
        return float(np.abs(self.top).mean())

    @property
    def random_moves(self) -> np.ndarray:
        """Mean absolute change in each draw, (draws,)."""
        return np.abs(self.random).mean(axis=(1, 2))

    @property
    def interval(self) -> tuple[float, float]:
        """The middle 95 % of the draws."""
        low, high = np.quantile(self.random_moves, (0.025, 0.975))
        return float(low), float(high)

    @property
    def as_far(self) -> int:
        """How many draws moved the score at least as far as the top words."""
        return int((self.random_moves >= self.top_move).sum())

    def to_frame(self) -> pd.DataFrame:
        """Return the figures of the test as one row."""
        return table([{"model": self.model, **self.to_dict()}])

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON: the figures of the test."""
        return {
            "words": self.num_words,
            "top": self.top_move,
            "random": float(self.random_moves.mean()),
            "interval": list(self.interval),
            "draws": len(self.random_moves),
            "as_far": self.as_far,
            "held_out": list(self.held_out),
        }
