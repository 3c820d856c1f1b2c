"""What methods with vectors can do: a sentence under a condition, or both apart and composed."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar, Unpack, cast, overload

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from condviz.encoder.backbone import Backbone, Item
from condviz.encoder.tokens import Encoded, Joined, Tokens
from condviz.errors import DataError
from condviz.methods.base import ConditionalScorer, Options, Passes, Texts, ToArray, ToTensor, list_rows, list_texts
from condviz.methods.catalog import MethodConfig
from condviz.methods.under import Conditioned

T = TypeVar("T")
Array = TypeVar("Array", np.ndarray, Tensor)
COMPOSE_BYTES = 64 * 2**20
"""Memory for the matrices W_c or gathered rows of one step of `compose`."""


class ConditionalEncoder(ConditionalScorer):
    """Returns a vector for a sentence under a condition; the score is the cosine of two vectors."""

    def __init__(self, backbone: Backbone, method_config: Any) -> None:  # noqa: ANN401 (one config class per method)
        super().__init__(backbone, method_config)
        self.transform = sentence_transform(backbone, method_config)

    @abstractmethod
    def embed(self, *inputs: Tokens) -> Tensor:
        """Encode a batch of token ids: (b, d), with gradient where it is switched on."""

    def tokenize(self, items: Sequence[Item]) -> list[tuple[Encoded, ...]]:
        """Turn (sentence, condition) tuples into what `embed` takes, unpadded; by default two sequences."""
        sentences = self.backbone.tokenize([(sentence,) for sentence, _ in items])
        conditions = self.backbone.tokenize([(condition,) for _, condition in items])
        return list(zip(sentences, conditions, strict=True))

    def tokenize_sentences(self, sentences: Sequence[str]) -> list[Encoded]:
        """Turn sentences without a condition into token ids, unpadded."""
        return self.backbone.tokenize([(sentence,) for sentence in sentences])

    @property
    def is_plain_transformer(self) -> bool:
        """Whether its vectors are nothing but the pooled states of (sentence, condition) in one sequence."""
        return False

    def project_sentences(self, pooled: Tensor) -> Tensor:
        """Turn pooled vectors of sentences without a condition into those of `encode_sentences`: (b, d) -> (b, d)."""
        return self.transform(pooled)

    def embed_items(self, items: list[Item], passes: Passes) -> Tensor:
        """Encode (sentence, condition) tuples: (n, d). See `ConditionalScorer.embed_items`."""
        rows, collate = [Joined(parts) for parts in self.tokenize(items)], self.backbone.collate
        return self._in_parts(rows, passes, lambda part: self.embed(*map(collate, zip(*part, strict=True))))

    def embed_sentences(self, sentences: Sequence[str], passes: Passes) -> Tensor:
        """Encode different sentences without a condition: (n, d). See `ConditionalScorer.embed_items`."""
        return self.project_sentences(self._pooled_in([(text,) for text in sentences], passes))

    @overload
    def encode(self, sentences: Texts, conditions: Texts | None = None, **options: Unpack[ToArray]) -> np.ndarray: ...
    @overload
    def encode(self, sentences: Texts, conditions: Texts | None = None, **options: Unpack[ToTensor]) -> Tensor: ...
    def encode(self, sentences: Texts, conditions: Texts | None = None, **options: Any) -> np.ndarray | Tensor:
        """Encode sentence i under condition i.

        Args:
            sentences: n texts; a single one gives a single vector.
            conditions: n texts, a single one for all sentences, or None for none, as in `encode_sentences`.
            **options: As in `ConditionalScorer.score`, and normalize_embeddings. Errors are those of `score`, too.

        Returns:
            (n, d) float32, or (d,).
        """
        single = isinstance(sentences, str)
        texts = [sentences] if single else sentences
        if conditions is None:
            vectors = self.encode_sentences(texts, **options)
        else:
            items = list(zip(*list_rows(conditions, sentences=texts), strict=True))
            vectors = self._vectors(partial(self._encode, items), options)
        return vectors[0] if single else vectors

    @overload
    def encode_sentences(self, sentences: Iterable[str], **options: Unpack[ToArray]) -> np.ndarray: ...
    @overload
    def encode_sentences(self, sentences: Iterable[str], **options: Unpack[ToTensor]) -> Tensor: ...
    def encode_sentences(self, sentences: Iterable[str], **options: Any) -> np.ndarray | Tensor:
        """Encode sentences without any condition: (n, d) float32. Options as in `encode`."""
        (texts,) = list_texts(sentences=sentences)
        return self._vectors(partial(self._encode_plain, texts), options)

    @overload
    def encode_grid(
        self, sentences: Iterable[str], conditions: Iterable[str], **options: Unpack[ToArray]
    ) -> np.ndarray: ...
    @overload
    def encode_grid(
        self, sentences: Iterable[str], conditions: Iterable[str], **options: Unpack[ToTensor]
    ) -> Tensor: ...
    def encode_grid(self, sentences: Iterable[str], conditions: Iterable[str], **options: Any) -> np.ndarray | Tensor:
        """Encode every sentence under every condition: (m, n, d) float32. Options as in `encode`."""
        (texts,), (asked,) = list_texts(sentences=sentences), list_texts(conditions=conditions)
        return self._vectors(partial(self._encode_grid, texts, asked), options)

    def under(self, condition: str | None) -> Conditioned:
        """Return this model with its condition fixed; None for none. It has the methods of sentence-transformers."""
        return Conditioned(self, condition)

    def get_sentence_embedding_dimension(self) -> int:
        """Return how many numbers a vector of `encode` has under a condition."""
        return self.backbone.hidden_size

    def similarity(self, embeddings1: Array, embeddings2: Array) -> Array:
        """Compute the cosine of every row with every row, as sentence-transformers does.

        Args:
            embeddings1, embeddings2: (n, d) and (m, d); a vector (d,) counts as one row.

        Returns:
            (n, m) in [-1, 1]; arrays give an array, tensors a tensor.

        Raises:
            DataError: If the vectors differ in length.
        """
        return _cosines(embeddings1, embeddings2, lambda first, second: _units(first) @ _units(second).mT)

    def similarity_pairwise(self, embeddings1: Array, embeddings2: Array) -> Array:
        """Compute the cosine of row i with row i: (p, d), (p, d) -> (p,). Otherwise as `similarity`."""
        return _cosines(embeddings1, embeddings2, partial(functional.cosine_similarity, dim=-1))

    def _vectors(self, work: Callable[..., Tensor], options: Mapping[str, Any]) -> np.ndarray | Tensor:
        """Run the work of a public call that returns vectors. See `_run`."""
        others = {name: value for name, value in options.items() if name != "normalize_embeddings"}
        if options.get("normalize_embeddings"):
            return self._run(lambda **given: _units(work(**given)), others)
        return self._run(work, others)

    def _score(
        self, sentences1: list[str], sentences2: list[str], conditions: list[str] | None, **options: Unpack[Options]
    ) -> Tensor:
        texts = [*sentences1, *sentences2]
        if conditions is None:
            vectors = self._encode_plain(texts, **options)
        else:
            vectors = self._encode(list(zip(texts, [*conditions, *conditions], strict=True)), **options)
        return self.similarity_pairwise(*vectors.chunk(2))

    def _encode(self, items: list[Item], **options: Unpack[Options]) -> Tensor:
        """Encode (sentence, condition) tuples: (n, d) float32 on the CPU."""
        vectors = self.backbone.map_texts(
            items,
            role="conditioned",
            owner=self.fingerprint,
            tokenize=lambda missing: [Joined(parts) for parts in self.tokenize(missing)],
            embed=lambda rows: self.embed(*map(self.backbone.collate, zip(*rows, strict=True))),
            **options,
        )
        return self._stack(vectors)

    @torch.no_grad()
    def _encode_plain(self, sentences: list[str], **options: Unpack[Options]) -> Tensor:
        """Encode sentences without a condition: (n, d) float32 on the CPU."""
        return self.project_sentences(self._pool_cached([(sentence,) for sentence in sentences], **options)).cpu()

    def _encode_grid(self, sentences: list[str], conditions: list[str], **options: Unpack[Options]) -> Tensor:
        vectors = self._encode([(text, condition) for condition in conditions for text in sentences], **options)
        return vectors.view(len(conditions), len(sentences), vectors.shape[-1])

    def _stack(self, vectors: list[Tensor]) -> Tensor:
        return torch.stack(vectors).float() if vectors else torch.zeros(0, self.backbone.hidden_size)


def _cosines(first: Array, second: Array, compute: Callable[[Tensor, Tensor], Tensor]) -> Array:
    """Compute similarities of vectors of any kind, which come back as they came in."""
    try:
        rows = [given if isinstance(given, Tensor) else torch.from_numpy(np.array(given)) for given in (first, second)]
    except TypeError:
        raise DataError("Similarity is that of vectors of numbers. For texts use: score, or encode first.") from None
    kind = torch.promote_types(torch.promote_types(rows[0].dtype, rows[1].dtype), torch.float32)
    rows = [given.to(kind) for given in rows]
    if rows[0].shape[-1:] != rows[1].shape[-1:]:
        found = " and ".join(str(tuple(given.shape)) for given in rows)
        raise DataError(f"The vectors have the shapes {found}. Compare vectors of one length.")
    found = compute(rows[0], rows[1].to(rows[0].device)).clamp(-1, 1)
    return cast("Array", found if isinstance(first, Tensor) else found.numpy())


def _units(vectors: Tensor) -> Tensor:
    """Scale vectors to length one; a single one becomes a row."""
    return functional.normalize(torch.atleast_2d(vectors), dim=-1)


class SeparableEncoder(ConditionalEncoder):
    """Encodes sentences and conditions apart, |S| + |C| passes instead of |S| x |C|, and composes the two vectors."""

    def __init__(self, backbone: Backbone, method_config: Any) -> None:  # noqa: ANN401 (one config class per method)
        super().__init__(backbone, method_config)
        self.condition: nn.Module = nn.Identity()

    def project_conditions(self, pooled: Tensor) -> Tensor:
        """Turn pooled condition vectors into what `compose` takes, h_c': (m, d) -> (m, d)."""
        return self.condition(pooled)

    @abstractmethod
    def embed_composed(self, sentences: Tensor, conditions: Tensor, index: Tensor | None = None) -> Tensor:
        """Compose sentence vectors with conditions, with gradient where it is switched on. See `compose`."""

    def embed_by_condition(self, sentences: Tensor, conditions: Tensor, index: Tensor) -> Tensor:
        """Compute `embed_composed` in the way that is fastest for many rows under few conditions."""
        return self.embed_composed(sentences, conditions, index)

    def compose(self, sentences: Array, conditions: Array, index: Array | None = None) -> Array:
        """Compose sentence vectors with conditions; arrays give an array, tensors a tensor with its gradient.

        Args:
            sentences: (b, d), as `encode_sentences` returns them.
            conditions: (m, d), as `encode_conditions` returns them.
            index: (b,) which condition each sentence goes with; None where m = b, row by row.

        Returns:
            (b, d), as `encode` returns them.
        """
        if isinstance(sentences, Tensor):
            chosen = None if index is None else torch.as_tensor(index)
            return self.embed_composed(sentences, torch.as_tensor(conditions), chosen)
        rows = None if index is None else torch.tensor(np.array(index), device=self.backbone.device).long()
        with torch.no_grad():
            composed = self.embed_composed(self._to_tensor(sentences), self._to_tensor(conditions), rows)
        return composed.float().cpu().numpy()

    def projection(self, condition: Tensor) -> Callable[[Tensor, Tensor], Tensor]:
        """Return what turns many sentence vectors into vectors whose cosines are those under one condition.

        Args:
            condition: (1, d), as `encode_conditions` returns it.

        Returns:
            A function of sentence vectors of length one (b, d) and the lengths that they had (b,); its result has as
            few dimensions as the method allows.
        """

        def compose(units: Tensor, lengths: Tensor) -> Tensor:
            index = torch.zeros(len(units), dtype=torch.long, device=units.device)
            return self.embed_composed(units * lengths[:, None], condition, index)

        return compose

    def embed(self, *inputs: Tokens) -> Tensor:
        """Encode sentences under conditions, row by row: (b, d)."""
        sentence, condition = inputs
        pooling = self.method_config.pooling
        sentences = self.project_sentences(self.backbone(sentence, pooling))
        return self.embed_composed(sentences, self.project_conditions(self.backbone(condition, pooling)))

    def embed_items(self, items: list[Item], passes: Passes) -> Tensor:
        """Encode each sentence and each condition once, and compose them. See `ConditionalScorer.embed_items`."""
        (sentences, rows), (conditions, columns) = (number(texts) for texts in zip(*items, strict=True))
        pooled, device = self._pooled_in([(text,) for text in (*sentences, *conditions)], passes), self.backbone.device
        encoded = self.project_sentences(pooled[: len(sentences)])
        conditioning = self.project_conditions(pooled[len(sentences) :])
        return self.embed_composed(encoded[rows.to(device)], conditioning, columns.to(device))

    def encode_frozen(self, sentences: Sequence[str], conditions: Sequence[str]) -> None:
        """Encode each text alone. See `ConditionalScorer.encode_frozen`."""
        texts = dict.fromkeys([*sentences, *conditions])
        self.backbone.encode([(text,) for text in texts], pooling=self.method_config.pooling)

    @overload
    def encode_conditions(self, conditions: Iterable[str], **options: Unpack[ToArray]) -> np.ndarray: ...
    @overload
    def encode_conditions(self, conditions: Iterable[str], **options: Unpack[ToTensor]) -> Tensor: ...
    def encode_conditions(self, conditions: Iterable[str], **options: Any) -> np.ndarray | Tensor:
        """Encode conditions, as `compose` takes them: (m, d) float32. Options as in `encode`."""
        (texts,) = list_texts(conditions=conditions)
        return self._vectors(partial(self._encode_conditions, texts), options)

    @torch.no_grad()
    def embed_grid(self, sentences: Tensor, conditions: Tensor) -> Tensor:
        """Compose each of n sentence vectors with each of m conditions: (m, n, d) float32 on the CPU."""
        sentences, conditions = sentences.to(self.backbone.device), conditions.to(self.backbone.device)
        if not len(conditions):
            return torch.zeros(0, *sentences.shape)
        index = torch.zeros(len(sentences), dtype=torch.long, device=sentences.device)
        return torch.stack([self.embed_composed(sentences, condition[None], index).cpu() for condition in conditions])

    @torch.no_grad()
    def _encode(self, items: list[Item], **options: Unpack[Options]) -> Tensor:
        if not items:
            return self._stack([])
        (sentences, rows), (conditions, columns) = (number(texts) for texts in zip(*items, strict=True))
        device = self.backbone.device
        rows, columns = rows.to(device), columns.to(device)
        encoded = self._encode_plain(sentences, **options).to(device)
        conditioning = self._encode_conditions(conditions, **options).to(device)
        order = columns.argsort(stable=True)  # neighbours share their condition, whose W_c is then made once
        conditions_at_once = max(1, COMPOSE_BYTES // self._bytes_per_condition())
        parts, progress = [], options.get("progress")
        for block in order.split((columns // conditions_at_once).bincount().tolist()):
            for chunk in block.split(max(1, COMPOSE_BYTES // (16 * self.backbone.hidden_size))):
                used, index = columns[chunk].unique(return_inverse=True)
                parts.append(self.embed_by_condition(encoded[rows[chunk]], conditioning[used], index).float())
                if progress and len(chunk) < len(order):
                    progress(sum(map(len, parts)), len(order))
        composed = torch.cat(parts)
        return torch.empty_like(composed).index_copy_(0, order, composed).cpu()

    def _encode_grid(self, sentences: list[str], conditions: list[str], **options: Unpack[Options]) -> Tensor:
        """Encode with n + m passes instead of n x m."""
        encoded, conditioning = self._encode_plain(sentences, **options), self._encode_conditions(conditions, **options)
        return self.embed_grid(encoded, conditioning)

    def _to_tensor(self, values: np.ndarray | Tensor) -> Tensor:
        dtype = torch.promote_types(self.backbone.dtype, torch.float32)
        return torch.tensor(np.array(values), dtype=dtype, device=self.backbone.device)

    def _bytes_per_condition(self) -> int:
        """Memory that a condition takes while sentences are composed with it; more where it makes matrices."""
        return 4 * self.backbone.hidden_size

    @torch.no_grad()
    def _encode_conditions(self, conditions: list[str], **options: Unpack[Options]) -> Tensor:
        return self.project_conditions(self._pool_cached([(condition,) for condition in conditions], **options)).cpu()


def number(values: Iterable[T]) -> tuple[list[T], Tensor]:
    """Return the different values in order of appearance, and which of them each value is, (n,) int64."""
    places: dict[T, int] = {}
    index = [places.setdefault(value, len(places)) for value in values]
    return list(places), torch.tensor(index, dtype=torch.long)


# ---- small parts that several methods put on top of the encoder ------------------------------------------------------


def dropout_rate(backbone: Backbone) -> float:
    """Return the dropout of classification heads: classifier_dropout, else hidden_dropout_prob, else none."""
    config = backbone.model.config
    rate = getattr(config, "classifier_dropout", None)
    return float(getattr(config, "hidden_dropout_prob", 0.0) if rate is None else rate)


def activation(backbone: Backbone) -> nn.Module:
    """Return the activation function of the encoder."""
    from transformers.activations import ACT2FN  # loaded with the encoder; at the top it would slow `import condviz`

    config = backbone.model.config
    return ACT2FN[getattr(config, "hidden_act", None) or getattr(config, "hidden_activation", "gelu")]


def last_linear(head: nn.Module) -> nn.Linear:
    """Return the linear layer that a head is, or ends with."""
    return cast("nn.Linear", head[-1] if isinstance(head, nn.Sequential) else head)


def shrink(*layers: nn.Linear) -> None:
    """Scale weights down to a tenth in place, so that what does not depend on the input prevails at first."""
    for layer in layers:
        layer.weight.mul_(0.1)


def sentence_transform(backbone: Backbone, method_config: MethodConfig) -> nn.Sequential:
    """Build dropout, linear layer and activation on sentence vectors, never conditions: (b, d) -> (b, d); or nothing.

    Source: princeton-nlp/c-sts, option `transform`.
    """
    if not getattr(method_config, "transform", False):
        return nn.Sequential()
    size = backbone.hidden_size
    return nn.Sequential(nn.Dropout(dropout_rate(backbone)), nn.Linear(size, size), activation(backbone))


def condition_layer(backbone: Backbone) -> nn.Sequential:
    """Build h_c' = Linear(Dropout(h_c)), no activation: (m, d) -> (m, d).

    Source: princeton-nlp/c-sts TriEncoderForClassification, for every head; in Hyper-CL's code, but not in its paper.
    """
    return nn.Sequential(nn.Dropout(dropout_rate(backbone)), nn.Linear(backbone.hidden_size, backbone.hidden_size))
