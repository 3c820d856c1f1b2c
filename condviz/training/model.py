"""A method in training: the scores of a batch with their gradient, each different text encoded once, and the loss."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.attention import SDPBackend, sdpa_kernel

from condviz.encoder.backbone import Backbone, Item
from condviz.encoder.tokens import Encoded, Joined, batches_by_length
from condviz.errors import DataError
from condviz.methods import ConditionalEncoder, ConditionalScorer, SeparableEncoder
from condviz.methods.bi_encoder import BiEncoder
from condviz.methods.case import CASE
from condviz.methods.cross_encoder import CrossEncoder
from condviz.methods.csr import CSR
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
        if not isinstance(self.method, ConditionalEncoder):
            conditions = [condition or None for condition in batch.conditions]
            rows, index = number(zip(batch.sentences1, batch.sentences2, conditions, strict=True))
            return self._predict(rows)[self._move(index)]
        items = [
            *zip(batch.sentences1, batch.conditions, strict=True),
            *zip(batch.sentences2, batch.conditions, strict=True),
        ]
        different, index = number(items)
        vectors = self.embed(different)[self._move(index)]
        return self.method.similarity(vectors[: len(batch)], vectors[len(batch) :])

    def embed(self, items: list[Item]) -> Tensor:
        """Encode different (sentence, condition) tuples: (n, d), with gradient where it is switched on."""
        method = self.method
        if isinstance(method, SeparableEncoder):
            return self._compose(method, items)
        if isinstance(method, CSR) and method.routed_layers:
            return self._route(method, items)
        if self.frozen and isinstance(method, CASE):
            offsets = method.encode_offsets(*(list(texts) for texts in zip(*items, strict=True)))
            return method.projection(self._move(offsets))
        if self.frozen and isinstance(method, BiEncoder):
            return method.transform(self._move(method.backbone.encode(items, pooling=method.method_config.pooling)))
        rows = [Joined(parts) for parts in method.tokenize(items)]
        collate = method.backbone.collate
        return self._in_parts(rows, lambda part: method.embed(*map(collate, zip(*part, strict=True))))

    def embed_alone(self, texts: list[str]) -> Tensor:
        """Encode different sentences without a condition: (n, d), with gradient where it is switched on."""
        vectors = self._pool([(text,) for text in texts])
        if isinstance(self.method, SeparableEncoder):
            return self.method.project_sentences(vectors)
        return self.method.transform(vectors) if isinstance(self.method, BiEncoder) else vectors

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

    @torch.no_grad()
    def fill_cache(self, sentences: list[str], conditions: list[str]) -> None:
        """Encode texts, row by row, in one go sorted by length, where the encoder stays as it is."""
        if not self.frozen:
            return
        if isinstance(self.method, SeparableEncoder):
            self._pool([(text,) for text in dict.fromkeys([*sentences, *conditions])])
        elif isinstance(self.method, CASE):
            self.method.encode_offsets(sentences, conditions)

    def _predict(self, rows: list[Item]) -> Tensor:
        """Score different (sentence 1, sentence 2, condition) tuples by a cross-encoder: (n,)."""
        method = self.method
        assert isinstance(method, CrossEncoder)
        if self.frozen:
            texts = [(method.join(*row),) for row in rows]
            pooled = method.backbone.encode(texts, pooling=method.method_config.pooling, separators=True)
            return method.classify(self._move(pooled))
        encoded = [row for (row,) in method.tokenize(rows)]
        return self._in_parts(encoded, lambda part: method.predict(method.backbone.collate(part)))

    def _compose(self, method: SeparableEncoder, items: list[Item]) -> Tensor:
        """Encode each sentence and each condition once, and put them together."""
        sentences, rows = number(sentence for sentence, _ in items)
        conditions, columns = number(condition for _, condition in items)
        pooled = self._pool([(text,) for text in (*sentences, *conditions)])
        encoded = method.project_sentences(pooled[: len(sentences)])
        conditioning = method.project_conditions(pooled[len(sentences) :])
        return method.compose(encoded[self._move(rows)], conditioning, self._move(columns))

    def _pool(self, texts: list[Item]) -> Tensor:
        backbone, pooling = self.method.backbone, self.method.method_config.pooling
        if self.frozen:
            return self._move(backbone.encode(texts, pooling=pooling))
        return self._in_parts(backbone.tokenize(texts), lambda part: backbone(backbone.collate(part), pooling))

    def _route(self, method: CSR, items: list[Item]) -> Tensor:
        """Run each condition once, and each sentence once up to the first routed layer."""
        backbone = method.backbone
        sentences, rows = number((sentence,) for sentence, _ in items)
        conditions, columns = number((condition,) for _, condition in items)
        readings = self._in_parts(backbone.tokenize(conditions), lambda part: method.read(backbone.collate(part)))[
            self._move(columns)
        ]
        encoded = backbone.tokenize(sentences)
        order, vectors = [], []
        for part in batches_by_length([len(row) for row in encoded], self._max_tokens()):
            tokens = self._collate([encoded[i] for i in part])
            places = {sentence: place for place, sentence in enumerate(part)}
            chosen = [i for i, row in enumerate(rows.tolist()) if row in places]
            index = self._move(torch.tensor([places[int(rows[i])] for i in chosen]))
            vectors.append(
                method.route(method.enter(tokens), tokens, readings[self._move(torch.tensor(chosen))], rows=index)[0]
            )
            order += chosen
        return torch.cat(vectors)[self._move(torch.tensor(order).argsort())]

    def _in_parts(self, rows: Sequence[Encoded | Joined], run: Callable[[list], Tensor]) -> Tensor:
        """Run rows of similar length together, and put the results into the order of the rows."""
        order, results = [], []
        for part in batches_by_length([len(row) for row in rows], self._max_tokens()):
            results.append(run([rows[i] for i in part]))
            order += part
        self.tokens += sum(map(len, rows))
        return torch.cat(results)[self._move(torch.tensor(order).argsort())]

    def _collate(self, rows: list[Encoded]) -> Tensor:
        self.tokens += sum(map(len, rows))
        return self.method.backbone.collate(rows)

    def _max_tokens(self) -> int:
        return BATCH_TOKENS.get(self.method.backbone.device.type, BATCH_TOKENS["cpu"])

    def _move(self, values: Tensor) -> Tensor:
        return values.to(self.method.backbone.device)
