"""Cross-encoder: both sentences and the condition in one sequence, one number out.

Paper: Deshpande et al. 2023, "C-STS: Conditional Semantic Textual Similarity", arXiv:2305.15093.
Code followed: princeton-nlp/c-sts, CrossEncoderForClassification.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
import torch
from torch import Tensor, nn

from condviz.encoder.backbone import Backbone, Item, Progress
from condviz.encoder.pooling import Pooling, check_pooling
from condviz.encoder.tokens import Encoded, Tokens
from condviz.errors import ConfigError
from condviz.methods.base import ConditionalScorer, check_lengths
from condviz.methods.heads import SentenceTransform, dropout_rate

Inputs = Literal["all", "sentences", "condition"]


@dataclass(frozen=True)
class CrossEncoderConfig:
    """Settings of the cross-encoder.

    Attributes:
        pooling: How token states become one vector.
        transform: Put Dropout, Linear(d, d) and the activation between pooling and classifier.
        inputs: "all", or an ablation of C-STS that leaves out the condition ("sentences") or the sentences.
    """

    pooling: Pooling = "cls"
    transform: bool = False
    inputs: Inputs = "all"

    def __post_init__(self) -> None:
        check_pooling(self.pooling)
        if self.inputs not in get_args(Inputs):
            raise ConfigError(f"inputs must be one of {', '.join(get_args(Inputs))}, got {self.inputs!r}.")


class CrossEncoder(ConditionalScorer):
    """Reads sentence 1, sentence 2 and the condition together and predicts the similarity directly."""

    name = "cross-encoder"
    title = "Cross-encoder"
    kind = "cross"
    summary = "Reads both sentences and the condition in one sequence and predicts one number; has no embeddings."
    reference = "Deshpande et al. 2023, C-STS, arXiv:2305.15093"
    config_cls = CrossEncoderConfig
    score_range = (float("-inf"), float("inf"))

    def __init__(self, backbone: Backbone, method_config: CrossEncoderConfig) -> None:
        super().__init__(backbone, method_config)
        self.transform = SentenceTransform(backbone) if method_config.transform else nn.Identity()
        self.dropout = nn.Dropout(dropout_rate(backbone))
        self.classifier = nn.Linear(backbone.hidden_size, 1)

    def predict(self, tokens: Tokens) -> Tensor:
        """Score a batch of joint sequences: (b,), unbounded, with gradient where it is switched on."""
        return self.classify(self.backbone(tokens, self.method_config.pooling))

    def classify(self, pooled: Tensor) -> Tensor:
        """Turn pooled vectors into scores: (b, d) -> (b,)."""
        return self.classifier(self.dropout(self.transform(pooled))).squeeze(-1)

    def join(self, sentence1: str, sentence2: str, condition: str | None) -> str:
        """Write the texts into one string, parted by the separator token and blanks, as the official code does.

        The result is tokenized with `separators=True`; special tokens inside of the texts are broken up.

        Raises:
            ConfigError: If the encoder has no separator token.
        """
        separator = self.backbone.tokenizer.sep_token
        if separator is None:
            raise ConfigError(f"{self.backbone.name} has no separator token. Choose a BERT or RoBERTa type.")
        both = [self.backbone.without_special_tokens(text) for text in (sentence1, sentence2)]
        last = [] if condition is None else [self.backbone.without_special_tokens(condition)]
        parts = {"all": [*both, *last], "sentences": both, "condition": last}[self.method_config.inputs]
        return f" {separator} ".join(parts)

    def tokenize(self, items: Sequence[Item]) -> list[tuple[Encoded, ...]]:
        """Turn (sentence 1, sentence 2, condition) tuples into what `predict` takes, unpadded."""
        joined = [(self.join(*item),) for item in items]
        return [(row,) for row in self.backbone.tokenize(joined, separators=True)]

    def score(
        self,
        sentences1: Sequence[str],
        sentences2: Sequence[str],
        conditions: Sequence[str],
        *,
        progress: Progress | None = None,
    ) -> np.ndarray:
        """Score p pairs: (p,) float32; trained towards [0, 1], but not bounded. See `ConditionalScorer.score`."""
        check_lengths(sentences1=sentences1, sentences2=sentences2, conditions=conditions)
        return self._score([self.join(*row) for row in zip(sentences1, sentences2, conditions, strict=True)], progress)

    def score_unconditional(self, sentences1: Sequence[str], sentences2: Sequence[str]) -> np.ndarray:
        """Score p pairs from a sequence without the condition: (p,) float32."""
        check_lengths(sentences1=sentences1, sentences2=sentences2)
        return self._score([self.join(one, two, None) for one, two in zip(sentences1, sentences2, strict=True)], None)

    @torch.no_grad()
    def _score(self, texts: list[str], progress: Progress | None) -> np.ndarray:
        pooled = self.backbone.encode(
            [(text,) for text in texts], pooling=self.method_config.pooling, separators=True, progress=progress
        )
        return self.classify(pooled.to(self.backbone.device)).float().cpu().numpy()
