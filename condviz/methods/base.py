"""What a method can do, as three classes; text-level work (batching, cache, numpy) is written here once.

A method writes what happens to tensors; this file turns lists of texts into tensors and tensors into numpy arrays.
"""

from __future__ import annotations

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from condviz.encoder.backbone import Backbone, Item, Progress, hash_tensors
from condviz.encoder.tokens import Encoded, Joined, Tokens
from condviz.errors import DataError, UnknownModelError
from condviz.types import Kind, ModelInfo

COMPOSE_BYTES = 64 * 2**20
"""Memory for the matrices W_c or gathered rows of one step of `compose`."""


class ConditionalScorer(nn.Module, ABC):
    """Scores how similar two sentences are under a condition. A cross-encoder can do no more than this.

    Args:
        backbone: The encoder; shared with other methods as long as nobody trains it.
        method_config: Settings of the method. (Not `config`: the transformers Trainer writes into that.)
    """

    name: ClassVar[str]
    title: ClassVar[str]
    kind: ClassVar[Kind]
    summary: ClassVar[str]
    reference: ClassVar[str]
    config_cls: ClassVar[type]
    score_range: ClassVar[tuple[float, float]] = (-1.0, 1.0)
    has_router: bool = False
    """Whether the model weighs the words of a sentence by the condition, and shows the weights: `RoutedEncoder`."""

    def __init__(self, backbone: Backbone, method_config: Any) -> None:  # noqa: ANN401 (one config class per method)
        super().__init__()
        self.backbone = backbone
        self.method_config = method_config
        self._head_hash: str | None = None
        self._info: ModelInfo | None = None

    @property
    def info(self) -> ModelInfo:
        """Name, origin and size: what `condviz.load` has set, or what can be said of a model made by hand."""
        if self._info is not None:
            return self._info
        return ModelInfo(
            name=self.name,
            method=self.name,
            title=self.title,
            kind=self.kind,
            trained=False,
            source="memory",
            revision=self.fingerprint[:12],
            score_range=self.score_range,
            added_parameters=self.added_parameters,
            reference=self.reference,
            summary=self.summary,
        )

    @info.setter
    def info(self, info: ModelInfo) -> None:
        self._info = info

    @abstractmethod
    def score(
        self,
        sentences1: Sequence[str],
        sentences2: Sequence[str],
        conditions: Sequence[str],
        *,
        progress: Progress | None = None,
    ) -> np.ndarray:
        """Score p pairs, row by row.

        Args:
            sentences1, sentences2, conditions: p texts each.
            progress: Told (done, total) of the encodings that are not in the cache; may raise to stop.

        Returns:
            (p,) float32 within `score_range`, higher is more similar.

        Raises:
            DataError: If the three lists differ in length.
        """

    @abstractmethod
    def score_unconditional(self, sentences1: Sequence[str], sentences2: Sequence[str]) -> np.ndarray:
        """Score p pairs without any condition, by the same weights: (p,) float32."""

    @property
    def weights_hash(self) -> str:
        """Identity of weights and settings, 64 hex digits; the same in every precision."""
        if self._head_hash is None or self.training:
            self._head_hash = hash_tensors(self.head_state().items())
        settings = json.dumps([self.name, asdict(self.method_config)], sort_keys=True)
        # The backbone's is asked for each time: it may have been trained through another method that shares it.
        return hashlib.sha256(f"{settings} {self._head_hash} {self.backbone.weights_hash}".encode()).hexdigest()

    @property
    def fingerprint(self) -> str:
        """Identity of everything that decides the scores: weights, settings and precision; 64 hex digits."""
        return hashlib.sha256(f"{self.weights_hash} {self.backbone.dtype}".encode()).hexdigest()

    def match_precision(self) -> ConditionalScorer:
        """Let large layers compute in the precision of the encoder; for loaded models, never before training.

        The model keeps the identity of the weights as they were stored.
        """
        _ = self.weights_hash
        return self

    def make_variant(self, name: str) -> ConditionalScorer:
        """Make a variant: the same encoder under other settings of the method. Most methods have none.

        Raises:
            UnknownModelError: If there is no such variant.
        """
        raise UnknownModelError(
            f"{self.info.name} has no variant {name[:40]!r}: only models of the method csr have variants."
        )

    def head_state(self) -> dict[str, Tensor]:
        """Give the weights that the method adds to the encoder."""
        return {name: value for name, value in self.state_dict().items() if not name.startswith("backbone.")}

    @property
    def added_parameters(self) -> int:
        """Number of parameters that the method adds to the encoder."""
        return sum(value.numel() for name, value in self.named_parameters() if not name.startswith("backbone."))

    def train(self, mode: bool = True) -> ConditionalScorer:
        """Switch between training and inference."""
        if mode:
            self._head_hash = None
        return super().train(mode)


class ConditionalEncoder(ConditionalScorer):
    """Gives a vector for a sentence under a condition; the score is the cosine of two vectors."""

    @abstractmethod
    def embed(self, *inputs: Tokens) -> Tensor:
        """Encode a batch of token ids: (b, d), with gradient where it is switched on."""

    def tokenize(self, items: Sequence[Item]) -> list[tuple[Encoded, ...]]:
        """Turn (sentence, condition) tuples into what `embed` takes, unpadded; by default two sequences."""
        sentences = self.backbone.tokenize([(sentence,) for sentence, _ in items])
        conditions = self.backbone.tokenize([(condition,) for _, condition in items])
        return list(zip(sentences, conditions, strict=True))

    def encode(
        self, sentences: Sequence[str], conditions: Sequence[str], *, progress: Progress | None = None
    ) -> np.ndarray:
        """Encode sentence i under condition i: (n, d) float32.

        Raises:
            DataError: If the two lists differ in length.
        """
        check_lengths(sentences=sentences, conditions=conditions)
        return self._encode(list(zip(sentences, conditions, strict=True)), progress).numpy()

    def encode_sentences(self, sentences: Sequence[str], *, progress: Progress | None = None) -> np.ndarray:
        """Encode sentences without any condition: (n, d) float32."""
        return self._encode_plain(list(sentences), progress).numpy()

    def encode_grid(
        self, sentences: Sequence[str], conditions: Sequence[str], *, progress: Progress | None = None
    ) -> np.ndarray:
        """Encode every sentence under every condition: (m, n, d) float32."""
        items = [(sentence, condition) for condition in conditions for sentence in sentences]
        vectors = self._encode(items, progress)
        return vectors.view(len(conditions), len(sentences), vectors.shape[-1]).numpy()

    def similarity_grid(
        self, sentences: Sequence[str], conditions: Sequence[str], *, progress: Progress | None = None
    ) -> np.ndarray:
        """Score all pairs of n sentences under m conditions: (m, n, n) float32, symmetric, 1 on the diagonals."""
        grid = torch.from_numpy(self.encode_grid(sentences, conditions, progress=progress))
        return cosine_tables(grid).numpy()

    def score(
        self,
        sentences1: Sequence[str],
        sentences2: Sequence[str],
        conditions: Sequence[str],
        *,
        progress: Progress | None = None,
    ) -> np.ndarray:
        """Score p pairs: cosine of the two conditioned vectors. See `ConditionalScorer.score`."""
        check_lengths(sentences1=sentences1, sentences2=sentences2, conditions=conditions)
        items = [*zip(sentences1, conditions, strict=True), *zip(sentences2, conditions, strict=True)]
        vectors = self._encode(items, progress)
        return self.similarity(vectors[: len(conditions)], vectors[len(conditions) :]).numpy()

    def score_unconditional(self, sentences1: Sequence[str], sentences2: Sequence[str]) -> np.ndarray:
        """Score p pairs without a condition: cosine of the plain sentence vectors, (p,) float32."""
        check_lengths(sentences1=sentences1, sentences2=sentences2)
        vectors = self._encode_plain([*sentences1, *sentences2], None)
        return self.similarity(vectors[: len(sentences1)], vectors[len(sentences1) :]).numpy()

    def similarity(self, embeddings1: Tensor, embeddings2: Tensor) -> Tensor:
        """Give the cosine of each row: (p, d), (p, d) -> (p,) in [-1, 1]."""
        return functional.cosine_similarity(embeddings1, embeddings2, dim=-1).clamp(-1, 1)

    def _encode(self, items: list[Item], progress: Progress | None) -> Tensor:
        """Encode (sentence, condition) tuples: (n, d) float32 on the CPU."""
        vectors = self.backbone.map_texts(
            items,
            role="conditioned",
            owner=self.fingerprint,
            tokenize=lambda missing: [Joined(parts) for parts in self.tokenize(missing)],
            embed=lambda rows: self.embed(*map(self.backbone.collate, zip(*rows, strict=True))),
            progress=progress,
        )
        return self._stack(vectors)

    def _encode_plain(self, sentences: list[str], progress: Progress | None) -> Tensor:
        """Encode sentences without a condition: (n, d) float32 on the CPU."""
        items = [(sentence,) for sentence in sentences]
        return self.backbone.encode(items, pooling=self.method_config.pooling, progress=progress)

    def _stack(self, vectors: list[Tensor]) -> Tensor:
        return torch.stack(vectors).float() if vectors else torch.zeros(0, self.backbone.hidden_size)


class SeparableEncoder(ConditionalEncoder):
    """Encodes sentences and conditions apart, |S| + |C| passes instead of |S| x |C|, and composes the two vectors."""

    def project_sentences(self, pooled: Tensor) -> Tensor:
        """Turn pooled sentence vectors into what `compose` takes: (b, d) -> (b, d)."""
        return pooled

    def project_conditions(self, pooled: Tensor) -> Tensor:
        """Turn pooled condition vectors into what `compose` takes: (m, d) -> (m, d)."""
        return pooled

    @abstractmethod
    def compose(self, sentences: Tensor, conditions: Tensor, index: Tensor | None = None) -> Tensor:
        """Put sentence vectors under conditions, with gradient where it is switched on.

        Args:
            sentences: (b, d), as `encode_sentences` gives them.
            conditions: (m, d), as `encode_conditions` gives them.
            index: (b,) which condition each sentence goes with; None where m = b, row by row.

        Returns:
            (b, d).
        """

    def embed(self, sentence: Tokens, condition: Tokens) -> Tensor:
        """Encode sentences under conditions, row by row: (b, d)."""
        pooling = self.method_config.pooling
        sentences = self.project_sentences(self.backbone(sentence, pooling))
        return self.compose(sentences, self.project_conditions(self.backbone(condition, pooling)))

    def encode_conditions(self, conditions: Sequence[str], *, progress: Progress | None = None) -> np.ndarray:
        """Encode conditions, as `compose` takes them: (m, d) float32."""
        return self._encode_conditions(list(conditions), progress).numpy()

    def encode_grid(
        self, sentences: Sequence[str], conditions: Sequence[str], *, progress: Progress | None = None
    ) -> np.ndarray:
        """Encode n sentences under m conditions with n + m passes: (m, n, d) float32."""
        encoded = self._encode_plain(list(sentences), progress)
        return self.compose_grid(encoded, self._encode_conditions(list(conditions), progress)).numpy()

    def similarity_grid(
        self, sentences: Sequence[str], conditions: Sequence[str], *, progress: Progress | None = None
    ) -> np.ndarray:
        """Score all pairs of n sentences under m conditions with n + m passes: (m, n, n) float32."""
        encoded = self._encode_plain(list(sentences), progress)
        conditioning = self._encode_conditions(list(conditions), progress)
        return cosine_tables(self.compose_grid(encoded, conditioning, scores_only=True)).numpy()

    @torch.no_grad()
    def compose_grid(self, sentences: Tensor, conditions: Tensor, *, scores_only: bool = False) -> Tensor:
        """Put each of n sentence vectors under each of m conditions.

        Args:
            sentences: (n, d).
            conditions: (m, d).
            scores_only: Allows vectors of another length with the same inner products, where those are cheaper.

        Returns:
            (m, n, d) float32 on the CPU.
        """
        sentences, conditions = sentences.to(self.backbone.device), conditions.to(self.backbone.device)
        if not len(conditions):
            return torch.zeros(0, *sentences.shape)
        index = torch.zeros(len(sentences), dtype=torch.long, device=sentences.device)
        return torch.stack([self.compose(sentences, condition[None], index).cpu() for condition in conditions])

    @torch.no_grad()
    def _encode(self, items: list[Item], progress: Progress | None) -> Tensor:
        sentences = {text: i for i, text in enumerate(dict.fromkeys(sentence for sentence, _ in items))}
        conditions = {text: i for i, text in enumerate(dict.fromkeys(condition for _, condition in items))}
        if not items:
            return self._stack([])
        device = self.backbone.device
        encoded = self._encode_plain(list(sentences), progress).to(device)
        conditioning = self._encode_conditions(list(conditions), progress).to(device)
        rows = torch.tensor([sentences[sentence] for sentence, _ in items], device=device)
        columns = torch.tensor([conditions[condition] for _, condition in items], device=device)
        order = columns.argsort(stable=True)  # neighbours share their condition, whose W_c is then made once
        parts = []
        for chunk in order.split(max(1, COMPOSE_BYTES // self._bytes_per_row())):
            used, index = columns[chunk].unique(return_inverse=True)
            parts.append(self.compose(encoded[rows[chunk]], conditioning[used], index).float())
        composed = torch.cat(parts)
        return torch.empty_like(composed).index_copy_(0, order, composed).cpu()

    def _bytes_per_row(self) -> int:
        """Memory that `compose` takes for one sentence; more where it makes matrices."""
        return 16 * self.backbone.hidden_size

    @torch.no_grad()
    def _encode_conditions(self, conditions: list[str], progress: Progress | None) -> Tensor:
        items = [(condition,) for condition in conditions]
        pooled = self.backbone.encode(items, pooling=self.method_config.pooling, progress=progress)
        return self.project_conditions(pooled.to(self.backbone.device)).cpu()

    @torch.no_grad()
    def _encode_plain(self, sentences: list[str], progress: Progress | None) -> Tensor:
        pooled = super()._encode_plain(sentences, progress)
        return self.project_sentences(pooled.to(self.backbone.device)).cpu()


def check_lengths(**columns: Sequence[str]) -> None:
    """Raise DataError unless all lists of texts have the same length."""
    lengths = {name: len(values) for name, values in columns.items()}
    if any(isinstance(values, str) for values in columns.values()):
        raise DataError(f"{', '.join(columns)} must be lists of texts, not single texts. Put each text into a list.")
    if len(set(lengths.values())) > 1:
        found = ", ".join(f"{length} {name}" for name, length in lengths.items())
        raise DataError(f"Rows do not match: {found}. Give lists of equal length.")


def cosine_tables(grid: Tensor) -> Tensor:
    """Give all cosines inside each of m groups: (m, n, d) -> (m, n, n)."""
    unit = functional.normalize(grid, dim=-1)
    return (unit @ unit.transpose(1, 2)).clamp_(-1, 1)
