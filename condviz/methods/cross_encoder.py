"""Cross-encoder: both sentences and the condition in one sequence, one number out.

Paper: Deshpande et al. 2023, "C-STS: Conditional Semantic Textual Similarity", arXiv:2305.15093.
Code followed: princeton-nlp/c-sts, CrossEncoderForClassification.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Unpack

import torch
from torch import Tensor, nn

from condviz.encoder.backbone import Backbone, Item
from condviz.encoder.tokens import Encoded, Tokens
from condviz.errors import ConfigError
from condviz.methods.base import ConditionalScorer, Options, Passes
from condviz.methods.catalog import CATALOG
from condviz.methods.configs import CrossEncoderConfig
from condviz.methods.heads import SentenceTransform, dropout_rate


class CrossEncoder(ConditionalScorer):
    """Reads sentence 1, sentence 2 and the condition together and predicts the similarity directly."""

    about = CATALOG["cross-encoder"]

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
        """Join the texts into one string, separated by the separator token and blanks, as the official code does.

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

    def reads_all(self, sentence1: str, sentence2: str, condition: str) -> bool:
        """Return whether the joint sequence is read to its end."""
        ((row,),) = self.tokenize([(sentence1, sentence2, condition)])
        return not row.truncated

    def embed_items(self, items: list[Item], passes: Passes) -> Tensor:
        """Score (sentence 1, sentence 2, condition or None) tuples. See `ConditionalScorer.embed_items`."""
        return self.classify(self._pooled_in([(self.join(*item),) for item in items], passes, separators=True))

    @torch.no_grad()
    def _score(
        self, sentences1: list[str], sentences2: list[str], conditions: list[str] | None, **options: Unpack[Options]
    ) -> Tensor:
        rows = zip(sentences1, sentences2, conditions or [None] * len(sentences1), strict=True)
        items, pooling = [(self.join(*row),) for row in rows], self.method_config.pooling
        pooled = self.backbone.encode(items, pooling=pooling, separators=True, **options)
        return self.classify(pooled.to(self.backbone.device)).float().cpu()
