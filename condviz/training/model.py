"""A method in training: the scores of a batch with their gradient, each different text encoded once, and the loss."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import nullcontext

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.attention import SDPBackend, sdpa_kernel

from condviz.encoder.backbone import Backbone, Item
from condviz.encoder.tokens import Encoded, Joined, batches_by_length
from condviz.errors import DataError
from condviz.methods import ConditionalScorer
from condviz.training.batching import Batch, number
from condviz.training.losses import info_nce, mean_squared_error, quadruplet
from condviz.training.recipes import Loss

BATCH_TOKENS = {"cpu": 8192, "mps": 16384, "cuda": 65536}
"""Tokens per forward pass, with padding. A batch is cut into such parts by length, which saves padding; each part
costs a gradient of the size of the weights, so that smaller parts were slower."""


class TrainingModel(nn.Module):
    """Gives the loss of a batch.

    Args:
        method: What is trained.
        loss: Its loss.
        frozen: The encoder is not trained: it runs without dropout, and its vectors come from the cache.
        pretrained: The encoder as it was, for `Loss.plain`.

    Attributes:
        tokens: Tokens encoded so far, without padding.
    """

    def __init__(
        self, method: ConditionalScorer, loss: Loss, *, frozen: bool, pretrained: Backbone | None = None
    ) -> None:
        super().__init__()
        self._pretrained = (pretrained,)  # in a tuple: its weights are not those of this module
        self.method = method
        self.loss = loss
        self.frozen = frozen
        self.tokens = 0

    def train(self, mode: bool = True) -> TrainingModel:
        """Switch between training and inference; a frozen encoder stays as it is."""
        super().train(mode)
        if self.frozen:
            self.method.backbone.eval()
        return self

    def forward(self, batch: Batch, labels: Tensor, teacher: Tensor) -> dict[str, Tensor]:
        """Give the loss.

        Args:
            batch: b rows; where the loss compares pairs, b / 2 highs and then their lows.
            labels: (b,) in [0, 1].
            teacher: (b,), NaN where a row has no teacher.

        Returns:
            "loss" of shape () and "scores" (b,).
        """
        # On CPUs the fused attention is slow backwards: 0.74 s against 0.23 s per batch of MiniLM in bfloat16.
        on_cpu = self.method.backbone.device.type == "cpu"
        with sdpa_kernel(SDPBackend.MATH) if on_cpu else nullcontext():
            scores = self.scores(batch).float()
        terms = []
        if self.loss.mse:
            terms.append(self.loss.mse * mean_squared_error(scores, labels))
        if self.loss.infonce:
            terms.append(self.loss.infonce * info_nce(scores, temperature=self.loss.temperature))
        if self.loss.quadruplet:
            terms.append(self.loss.quadruplet * quadruplet(scores, margin=self.loss.margin))
        known = ~teacher.isnan()
        if self.loss.teacher and bool(known.any()):
            terms.append(self.loss.teacher * mean_squared_error(scores[known], teacher[known]))
        if self.loss.plain:
            terms.append(self.loss.plain * self._plain_distance([*batch.sentences1, *batch.sentences2]))
        if not terms:
            raise DataError("A batch has no row with a teacher's score, and teacher is the only term of the loss.")
        return {"loss": torch.stack(terms).sum(), "scores": scores}

    def scores(self, batch: Batch) -> Tensor:
        """Score b rows, (b,), with gradient where it is switched on."""
        if not self.method.encodes:
            conditions = [condition or None for condition in batch.conditions]
            rows, index = number(zip(batch.sentences1, batch.sentences2, conditions, strict=True))
            return self.embed(rows)[self._move(index)]
        items = [
            *zip(batch.sentences1, batch.conditions, strict=True),
            *zip(batch.sentences2, batch.conditions, strict=True),
        ]
        different, index = number(items)
        vectors = self.embed(different)[self._move(index)]
        return self.method.similarity(vectors[: len(batch)], vectors[len(batch) :])

    def embed(self, items: list[Item]) -> Tensor:
        """Encode different items: (n, d), or scores (n,) of a cross-encoder. See `ConditionalScorer.embed_items`."""
        return self.method.embed_items(items, self)

    def embed_alone(self, texts: list[str]) -> Tensor:
        """Encode different sentences without a condition: (n, d), with gradient where it is switched on."""
        return self.method.embed_sentences(texts, self)

    def parts(self, rows: Sequence[Encoded | Joined]) -> Iterator[list[int]]:
        """Group rows of similar length for the passes through the encoder, and count their tokens."""
        self.tokens += sum(map(len, rows))
        limit = BATCH_TOKENS.get(self.method.backbone.device.type, BATCH_TOKENS["cpu"])
        return batches_by_length([len(row) for row in rows], limit)

    def _plain_distance(self, sentences: list[str]) -> Tensor:
        """Give the mean squared distance of the cosines of sentences without a condition to the pretrained ones: ()."""
        method, (pretrained,) = self.method, self._pretrained
        texts = list(dict.fromkeys(sentences))
        vectors = self.embed_alone(texts)
        known = self._move(pretrained.encode([(text,) for text in texts], pooling=method.method_config.pooling))
        cosines = [
            normalized @ normalized.T for normalized in (functional.normalize(v.float()) for v in (vectors, known))
        ]
        return functional.mse_loss(*cosines)

    def fill_cache(self, sentences: list[str], conditions: list[str]) -> None:
        """Encode texts, row by row, in one go sorted by length, where the encoder stays as it is."""
        if self.frozen:
            self.method.encode_frozen(sentences, conditions)

    def _move(self, values: Tensor) -> Tensor:
        return values.to(self.method.backbone.device)
