"""A model with its condition fixed, in the form in which libraries of sentence embeddings expect a model."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, TypeVar, Unpack, overload

import numpy as np
from torch import Tensor, device

from condviz.errors import ConfigError

if TYPE_CHECKING:
    from condviz.methods.base import Texts, ToArray, ToTensor
    from condviz.methods.encoders import ConditionalEncoder

Array = TypeVar("Array", np.ndarray, Tensor)


class Conditioned:
    """A model under one condition: what `ConditionalEncoder.under` returns.

    Names and meanings are those of a SentenceTransformer. It is a transformer of scikit-learn (texts in, vectors out; a
    clone shares the model), and has the two methods of LangChain's embeddings. It can be pickled, with all weights.

    Args:
        model: With vectors.
        condition: A text, or None for none.

    Example:
        >>> sport = condviz.load("bi-encoder").under("the sport")
        >>> sport.similarity(sport.encode(["A man surfs."]), sport.encode(["A woman skis.", "Two people surf."])).shape
        (1, 2)
    """

    def __init__(self, model: ConditionalEncoder, condition: str | None) -> None:
        if not (condition is None or isinstance(condition, str)):
            raise ConfigError(f"The condition is {condition!r}; it has to be one text, or None for none.")
        self.model, self.condition = model, condition

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.model.info.name}, {self.condition!r})"

    @overload
    def encode(self, sentences: Texts, **options: Unpack[ToArray]) -> np.ndarray: ...
    @overload
    def encode(self, sentences: Texts, **options: Unpack[ToTensor]) -> Tensor: ...
    def encode(self, sentences: Texts, **options: Any) -> np.ndarray | Tensor:
        """Encode sentences under the condition.

        Args:
            sentences: n texts, or one.
            **options: As in `ConditionalEncoder.encode`. Others of sentence-transformers may have the values that mean
                no change: convert_to_numpy=True, or None.

        Returns:
            (n, d) float32, or (d,) for one text.

        Raises:
            ConfigError: If an option is unknown or not allowed.
            DataError: If something is not text.
        """
        given = {name: value for name, value in options.items() if not (value is None or (name, value) == _DEFAULT)}
        return self.model.encode(sentences, self.condition, **given)

    def similarity(self, embeddings1: Array, embeddings2: Array) -> Array:
        """Compute the cosine of every row with every row: (n, d), (m, d) -> (n, m). See `ConditionalEncoder`."""
        return self.model.similarity(embeddings1, embeddings2)

    def similarity_pairwise(self, embeddings1: Array, embeddings2: Array) -> Array:
        """Compute the cosine of row i with row i: (p, d), (p, d) -> (p,)."""
        return self.model.similarity_pairwise(embeddings1, embeddings2)

    def get_sentence_embedding_dimension(self) -> int:
        """Return d."""
        plain = self.condition is None  # CASE projects only what has a condition
        return self.model.backbone.hidden_size if plain else self.model.get_sentence_embedding_dimension()

    get_embedding_dimension = get_sentence_embedding_dimension
    """The name since version 6 of sentence-transformers."""

    @property
    def max_seq_length(self) -> int:
        """Most tokens of a sequence."""
        return self.model.max_seq_length

    @property
    def device(self) -> device:
        """Where the weights are."""
        return self.model.device

    # scikit-learn

    def fit(self, texts: Iterable[str], labels: object = None) -> Conditioned:
        """Return itself: it is trained."""
        return self

    def transform(self, texts: Iterable[str], labels: object = None) -> np.ndarray:
        """Encode texts: (n, d) float32."""
        return self.encode(texts)

    fit_transform = transform

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return model and condition; a search over conditions sets the latter."""
        return {"model": self.model, "condition": self.condition}

    def set_params(self, **params: Any) -> Conditioned:  # noqa: ANN401 (as scikit-learn has it)
        """Set model or condition."""
        self.__init__(**(self.get_params() | params))
        return self

    def __sklearn_clone__(self) -> Conditioned:
        return type(self)(self.model, self.condition)

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def __sklearn_tags__(self) -> object:
        from sklearn.base import BaseEstimator, TransformerMixin

        return type("Texts", (TransformerMixin, BaseEstimator), {})().__sklearn_tags__()

    # LangChain

    def embed_documents(self, texts: Iterable[str]) -> list[list[float]]:
        """Encode texts, as lists."""
        return self.encode(texts).tolist()

    def embed_query(self, text: str) -> list[float]:
        """Encode a text, as a list."""
        return self.encode(text).tolist()


_DEFAULT = ("convert_to_numpy", True)
