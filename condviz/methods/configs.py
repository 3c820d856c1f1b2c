"""The settings of every method: frozen, checked when they are made, and readable without torch."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from functools import cache
from typing import Annotated, Any, ClassVar, Literal, get_type_hints

from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model

from condviz.encoder.pooling import Pooling
from condviz.errors import ConfigError, explain

Weighting = Literal["one-plus", "only"]
"""h = (1 + w) h', or the ablation Only Weight, h = w h' (CSR, Table 3)."""
ProjectionName = Literal["linear", "mlp", "pca", "ica"]
AtLeastOne = Annotated[int, Field(ge=1)]


@cache
def _checker(cls: type) -> type[BaseModel]:
    """Return what checks each setting by its annotation."""
    hints = get_type_hints(cls, include_extras=True)
    config = ConfigDict(strict=True, allow_inf_nan=False)
    settings: dict[str, Any] = {one.name: (hints[one.name], ...) for one in fields(cls)}
    return create_model(cls.__name__, __config__=config, **settings)


@dataclass(frozen=True)
class MethodConfig:
    """Settings that every method has."""

    LATER: ClassVar[tuple[str, ...]] = ()
    """Settings that came after checkpoints had shipped."""

    pooling: Pooling = "mean"
    """How token states become one vector."""

    def identity(self) -> dict[str, Any]:
        """Return what makes a model another one: a later setting at its default does not, so stored scores hold."""
        unset = {one.name for one in fields(self) if one.name in self.LATER and getattr(self, one.name) == one.default}
        return {name: value for name, value in asdict(self).items() if name not in unset}

    def __post_init__(self) -> None:
        try:
            _checker(type(self))(**vars(self))
        except ValidationError as error:
            raise ConfigError(explain(error)) from None


@dataclass(frozen=True)
class BiEncoderConfig(MethodConfig):
    """Settings of the bi-encoder, and what other heads share with it."""

    pooling: Pooling = "cls"
    transform: bool = False
    """Put Dropout, Linear(d, d) and the activation behind the pooling of sentences."""


@dataclass(frozen=True)
class CrossEncoderConfig(BiEncoderConfig):
    """Settings of the cross-encoder: `transform` stands between pooling and classifier."""

    inputs: Literal["all", "sentences", "condition"] = "all"
    """Either "all", or an ablation of C-STS that leaves out the condition ("sentences") or the sentences."""


@dataclass(frozen=True)
class TriEncoderConfig(BiEncoderConfig):
    """Settings of the tri-encoder."""

    composition: Literal["hadamard", "concat", "hadamard-wide"] = "hadamard"
    """With "hadamard" it multiplies the two vectors, "concat" puts both through a linear layer and activation;
    "hadamard-wide" multiplies after two more layers on the condition, which give it as many parameters as Hyper-CL
    with K = d / 12 (Hyper-CL, Table 6)."""


@dataclass(frozen=True)
class HyperCLConfig(BiEncoderConfig):
    """Settings of Hyper-CL."""

    LATER: ClassVar[tuple[str, ...]] = ("generator_rank",)

    rank: AtLeastOne | None = 64
    """K of the low-rank form, where two hypernetworks make d x K and K x d; None makes the whole d x d matrix."""
    condition_transform: bool = True
    """Put Linear(d, d) in front of the hypernetwork, as the code does and the paper does not say."""
    generator_rank: AtLeastOne | None = None
    """Each hypernetwork is a product of two layers with so many numbers in between, small enough to ship at K = 64;
    None is the paper's single layer. Ours."""


@dataclass(frozen=True)
class RoutedConfig(MethodConfig):
    """Settings of every method with a router."""

    num_routed_layers: Annotated[int, Field(ge=0)] = 1
    """R, how many of the last layers are routed; 0 is the encoder without a router."""
    weighting: Weighting = "one-plus"
    """Either "one-plus" for (1 + w), "only" for the ablation Only Weight."""


@dataclass(frozen=True)
class CSRConfig(RoutedConfig):
    """Settings of CSR. The paper recommends one routed layer and pools by "mean".

    "cls" and "last" take the last layer; with them and one routed layer the condition could hardly reach the embedding.
    """

    router: Literal["query_key", "multihead", "hidden", "heavy", "random"] = "query_key"
    """How weights are made: "query_key" (paper), "multihead" (released code family), or the variants "hidden",
    "heavy" and "random"."""
    query_layer: Literal["last", "same"] = "last"
    """Layer whose W_q makes the condition's query: "last" (paper) or the routed layer itself, "same"."""

    def __post_init__(self) -> None:
        super().__post_init__()
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
    """Settings of CASE."""

    LATER: ClassVar[tuple[str, ...]] = ("alone",)

    prompt: Literal["cond", "sent"] = "cond"
    """Which text is encoded in the light of the other: the condition ("cond", paper's best) or the sentence."""
    subtract: bool = True
    """Subtract the vector of the condition alone: x = e(c|s) - e(c)."""
    alone: Literal["plain", "empty"] = "plain"
    """How an encoder with instructions reads the condition alone: under the instruction of plain similarity, or
    under that of the joint text with nothing in the place of the other one (version 4 of the paper)."""
    order: Literal["sentence-first", "condition-first"] = "sentence-first"
    """Which text comes first in the sequence of an encoder without instructions."""
    pool_over: Literal["text", "all"] = "text"
    """Pool over the tokens of the encoded text only, or over all."""
    pooling: Pooling = "mean"
    projection: ProjectionName | None = None
    """Trained on x ("linear", "mlp") or fitted to it without labels ("pca", "ica"), or none."""
    projection_dim: AtLeastOne = 512
    """Dimension of the projected vector; paper: 512."""
    hidden_dim: AtLeastOne = 512
    """Width of the hidden layer of "mlp"."""
    dropout: Annotated[float, Field(ge=0, lt=1)] = 0.2
    """On the input of "linear" and behind the hidden layer of "mlp"."""

    @property
    def fitted(self) -> bool:
        """Whether the projection is fitted to vectors, without labels or gradients."""
        return self.projection in ("pca", "ica")
