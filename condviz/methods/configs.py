"""The settings of every method: frozen, checked when they are made, and readable without torch."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields
from math import isfinite
from typing import Literal, get_args

from condviz.encoder.pooling import Pooling, check_pooling
from condviz.errors import ConfigError

Weighting = Literal["one-plus", "only"]
"""h = (1 + w) h', or the ablation Only Weight, h = w h' (CSR, Table 3)."""
RouterName = Literal["query_key", "multihead", "hidden", "heavy", "random"]
Composition = Literal["hadamard", "concat", "hadamard-wide"]
Inputs = Literal["all", "sentences", "condition"]
Prompt = Literal["cond", "sent"]
Order = Literal["sentence-first", "condition-first"]
PoolOver = Literal["text", "all"]
ProjectionName = Literal["linear", "mlp", "pca", "ica"]


@dataclass(frozen=True)
class MethodConfig:
    """Settings that every method has.

    Attributes:
        pooling: How token states become one vector.
    """

    pooling: Pooling = "mean"

    def __post_init__(self) -> None:
        check_pooling(self.pooling)
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, float) and not isfinite(value):
                raise ConfigError(f"{field.name} must be a finite number, got {value!r}.")

    def _check_choice(self, name: str, allowed: Iterable[object]) -> None:
        value = getattr(self, name)
        if not isinstance(value, str | None) or value not in (allowed := tuple(allowed)):
            raise ConfigError(f"{name} must be one of {', '.join(map(str, allowed))}, got {value!r}.")

    def _check_count(self, name: str, least: int = 1) -> None:
        value = getattr(self, name)
        if not isinstance(value, int) or isinstance(value, bool) or value < least:
            raise ConfigError(f"{name} must be an integer of at least {least}, got {value!r}.")

    def _check_flags(self, *names: str) -> None:
        for name in names:
            if not isinstance(getattr(self, name), bool):
                raise ConfigError(f"{name} must be true or false, got {getattr(self, name)!r}.")


@dataclass(frozen=True)
class BiEncoderConfig(MethodConfig):
    """Settings of the bi-encoder, and what other heads share with it.

    Attributes:
        pooling: How token states become one vector.
        transform: Put Dropout, Linear(d, d) and the activation behind the pooling of sentences.
    """

    pooling: Pooling = "cls"
    transform: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check_flags("transform")


@dataclass(frozen=True)
class CrossEncoderConfig(BiEncoderConfig):
    """Settings of the cross-encoder: `transform` stands between pooling and classifier.

    Attributes:
        inputs: "all", or an ablation of C-STS that leaves out the condition ("sentences") or the sentences.
    """

    inputs: Inputs = "all"

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check_choice("inputs", get_args(Inputs))


@dataclass(frozen=True)
class TriEncoderConfig(BiEncoderConfig):
    """Settings of the tri-encoder.

    Attributes:
        composition: "hadamard" multiplies the two vectors, "concat" puts both through a linear layer and activation;
            "hadamard-wide" multiplies after two more layers on the condition, which give it as many parameters as
            Hyper-CL with K = d / 12 (Hyper-CL, Table 6).
    """

    composition: Composition = "hadamard"

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check_choice("composition", get_args(Composition))


@dataclass(frozen=True)
class HyperCLConfig(BiEncoderConfig):
    """Settings of Hyper-CL.

    Attributes:
        rank: K of the low-rank form, where two hypernetworks make d x K and K x d; None makes the whole d x d matrix.
        condition_transform: Put Linear(d, d) in front of the hypernetwork, as the code does and the paper does not say.
    """

    rank: int | None = 64
    condition_transform: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check_flags("condition_transform")
        if self.rank is not None and (not isinstance(self.rank, int) or self.rank < 1):
            raise ConfigError(f"rank must be a positive integer, or None for the full matrix, got {self.rank!r}.")


@dataclass(frozen=True)
class RoutedConfig(MethodConfig):
    """Settings of every method with a router.

    Attributes:
        num_routed_layers: R, how many of the last layers are routed; 0 is the encoder without a router.
        weighting: "one-plus" for (1 + w), "only" for the ablation Only Weight.
    """

    num_routed_layers: int = 1
    weighting: Weighting = "one-plus"

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check_count("num_routed_layers", least=0)
        self._check_choice("weighting", get_args(Weighting))


@dataclass(frozen=True)
class CSRConfig(RoutedConfig):
    """Settings of CSR. The paper recommends one routed layer and pools by "mean".

    "cls" and "last" take the last layer; with them and one routed layer the condition could hardly reach the embedding.

    Attributes:
        router: How weights are made: "query_key" (paper), "multihead" (released code family), or the variants "hidden",
            "heavy" and "random".
        query_layer: Layer whose W_q makes the condition's query: "last" (paper) or the routed layer itself, "same".
    """

    router: RouterName = "query_key"
    query_layer: Literal["last", "same"] = "last"

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check_choice("router", get_args(RouterName))
        self._check_choice("query_layer", ("last", "same"))
        if self.pooling in ("first-last", "top-2"):
            raise ConfigError(
                f"pooling {self.pooling!r} needs more than the routed state of the last layer. Use mean, cls or last."
            )
        if self.pooling in ("cls", "last") and self.num_routed_layers == 1:
            raise ConfigError(
                f"pooling {self.pooling!r} with one routed layer is all but blind to the condition: one number could "
                "reach the embedding. Use pooling 'mean' (as the paper does), or route more layers."
            )


@dataclass(frozen=True)
class CSRBiConfig(RoutedConfig):
    """Settings of the CSR bi-encoder: the released ones, pooled over the tokens of the sentence."""

    num_routed_layers: int = 3
    pooling: Pooling = "cls"


@dataclass(frozen=True)
class CSRPrefixConfig(RoutedConfig):
    """Settings of CSR-prefix: the released ones. "cls" is the separator in front; the condition enters every layer."""

    pooling: Pooling = "cls"


@dataclass(frozen=True)
class CASEConfig(MethodConfig):
    """Settings of CASE.

    Attributes:
        prompt: Which text is encoded in the light of the other: the condition ("cond", paper's best) or the sentence.
        subtract: Subtract the vector of the condition alone: x = e(c|s) - e(c).
        order: Which text comes first in the sequence of an encoder without instructions.
        pool_over: Pool over the tokens of the encoded text only, or over all.
        pooling: How token states become one vector.
        projection: Trained on x ("linear", "mlp") or fitted to it without labels ("pca", "ica"), or none.
        projection_dim: Dimension of the projected vector; paper: 512.
        hidden_dim: Width of the hidden layer of "mlp".
        dropout: On the input of "linear" and behind the hidden layer of "mlp".
    """

    prompt: Prompt = "cond"
    subtract: bool = True
    order: Order = "sentence-first"
    pool_over: PoolOver = "text"
    pooling: Pooling = "mean"
    projection: ProjectionName | None = None
    projection_dim: int = 512
    hidden_dim: int = 512
    dropout: float = 0.2

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, allowed in (("prompt", Prompt), ("order", Order), ("pool_over", PoolOver)):
            self._check_choice(name, get_args(allowed))
        self._check_choice("projection", (None, *get_args(ProjectionName)))
        self._check_flags("subtract")
        self._check_count("projection_dim")
        self._check_count("hidden_dim")
        if not isinstance(self.dropout, int | float) or not 0 <= self.dropout < 1:
            raise ConfigError(f"dropout must be a number in [0, 1), got {self.dropout!r}.")

    @property
    def fitted(self) -> bool:
        """Whether the projection is fitted to vectors, without labels or gradients."""
        return self.projection in ("pca", "ica")
