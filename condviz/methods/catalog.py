"""What every method is, can do and is set by: title, paper, abilities and settings together, readable without torch.

Listing models and building the page need no more. The classes take this over through `about` (see `ConditionalScorer`).
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields, replace
from functools import cache
from typing import Annotated, Any, ClassVar, Literal, get_type_hints

from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model

from condviz.encoder import Pooling
from condviz.errors import ConfigError, UnknownModelError, explain
from condviz.types import Kind, ModelInfo

Meeting = Literal["router", "sequence", "prefix"]
"""Through the router alone (the two are encoded apart), in one sequence, or as further keys in every layer."""
_UNBOUNDED = (float("-inf"), float("inf"))
_CSTS = "Deshpande et al. 2023, C-STS, arXiv:2305.15093"
_CSR = "Lin et al. 2024, CSR, EMNLP 2024"
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

    @property
    def fitted(self) -> bool:
        """Whether a model is fitted to vectors, without labels or gradients."""
        return False

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
class Method:
    """Title, paper and abilities of a method."""

    name: str
    """Key in `condviz.METHODS` and in condviz.json."""
    title: str
    kind: Kind
    summary: str
    reference: str
    config_cls: type[MethodConfig]
    module: str = ""
    """Where its class is, "module:Class"; "" for a method that was registered from elsewhere."""
    score_range: tuple[float, float] = (-1.0, 1.0)
    conditional: bool = True
    """The condition changes the score."""
    encodes: bool = True
    """Has vectors: `encode`, `encode_sentences`, maps, search."""
    separable: bool = False
    """Encodes sentence and condition apart: `encode_conditions`, `compose`."""
    meets: Meeting | None = None
    """How the condition meets the sentence in a method with a router (`token_weights`), None without one."""
    has_variants: bool = False
    """Its models have the variants of `condviz.methods.catalog`."""
    answers_links: bool = True
    """Its vectors of (head, relation) can be compared with those of entities."""
    condition_matrices: bool = False
    """Makes a matrix W_c from the condition (`condition_matrix`)."""

    def describe(self, name: str, **known: Any) -> ModelInfo:  # noqa: ANN401 (fields of `ModelInfo`)
        """Describe a model of this method; `known` holds what only the model itself has."""
        names = ("title", "kind", "score_range", "reference", "summary", "conditional", "encodes", "answers_links")
        given: dict[str, Any] = {key: getattr(self, key) for key in names} | known
        return ModelInfo(name, self.name, **given)


LACKS = {
    "encodes": "reads both sentences at once and has no vectors: no map, search or links. Choose another model, for "
    "instance hyper-cl.",
    "conditional": "does not read the condition, so nothing changes with it. Choose another model.",
    "separable": "reads every text again under each condition. Choose hyper-cl or a tri-encoder.",
    "has_router": "has no router. Choose a CSR model.",
}
"""What a model without an ability is told."""

CATALOG: dict[str, Method] = {}
"""Every method of the package by name, each entered behind its settings, and those that were registered."""


def _add(*described: Any, **abilities: Any) -> None:  # noqa: ANN401 - the fields of `Method`
    method = Method(*described, **abilities)
    CATALOG[method.name] = method


_add(
    "unconditional",
    "No condition",
    "tri",
    "Plain sentence similarity: the condition is ignored. What every other model has to differ from.",
    "Reimers and Gurevych 2019, Sentence-BERT, arXiv:1908.10084",
    MethodConfig,
    "condviz.methods.baselines:Unconditional",
    conditional=False,
    separable=True,
    answers_links=False,
)


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


_add(
    "cross-encoder",
    "Cross-encoder",
    "cross",
    "Reads both sentences and the condition in one sequence and predicts one number; has no embeddings.",
    _CSTS,
    CrossEncoderConfig,
    "condviz.methods.baselines:CrossEncoder",
    score_range=_UNBOUNDED,
    encodes=False,
    answers_links=False,
)


_add(
    "bi-encoder",
    "Bi-encoder",
    "bi",
    "Encodes each sentence in one sequence with the condition; slower with many conditions.",
    _CSTS,
    BiEncoderConfig,
    "condviz.methods.baselines:BiEncoder",
)


@dataclass(frozen=True)
class TriEncoderConfig(BiEncoderConfig):
    """Settings of the tri-encoder."""

    composition: Literal["hadamard", "concat", "hadamard-wide"] = "hadamard"
    """With "hadamard" it multiplies the two vectors, "concat" puts both through a linear layer and activation;
    "hadamard-wide" multiplies after two more layers on the condition, which give it as many parameters as Hyper-CL
    with K = d / 12 (Hyper-CL, Table 6)."""


_add(
    "tri-encoder",
    "Tri-encoder",
    "tri",
    "Encodes sentences and conditions apart and multiplies (or concatenates and mixes) the two vectors.",
    _CSTS,
    TriEncoderConfig,
    "condviz.methods.baselines:TriEncoder",
    separable=True,
)


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


_add(
    "hyper-cl",
    "Hyper-CL",
    "tri",
    "A hypernetwork makes a projection W_c from the condition; the embedding is W_c times the sentence.",
    "Yoo et al. 2024, Hyper-CL, ACL 2024, arXiv:2403.09490",
    HyperCLConfig,
    "condviz.methods.hyper_cl:HyperCL",
    separable=True,
    condition_matrices=True,
)


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


_add(
    "csr",
    "CSR",
    "tri",
    "The condition's query weighs the words of the sentence inside the last layers; adds no parameters.",
    _CSR,
    CSRConfig,
    "condviz.methods.csr:CSR",
    meets="router",
    has_variants=True,
)


@dataclass(frozen=True)
class CSRBiConfig(RoutedConfig):
    """Settings of the CSR bi-encoder: the released ones, pooled over the tokens of the sentence."""

    num_routed_layers: int = 3
    pooling: Pooling = "cls"


_add(
    "csr-bi",
    "CSR bi-encoder",
    "bi",
    "Sentence and condition in one sequence; the condition's attention weighs the sentence in the last layers.",
    _CSR,
    CSRBiConfig,
    "condviz.methods.csr:CSRBi",
    meets="sequence",
)


@dataclass(frozen=True)
class CSRPrefixConfig(RoutedConfig):
    """Settings of CSR-prefix: the released ones. "cls" is the separator in front; the condition enters every layer."""

    pooling: Pooling = "cls"


_add(
    "csr-prefix",
    "CSR-prefix",
    "bi",
    "The sentence attends to the condition's final states in every layer: what CSR's released code computes.",
    f"{_CSR} (released code)",
    CSRPrefixConfig,
    "condviz.methods.csr:CSRPrefix",
    meets="prefix",
)


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
        """Whether there is a projection of this kind."""
        return self.projection in ("pca", "ica")


_add(
    "case",
    "CASE",
    "bi",
    "Encodes the condition in the light of the sentence and subtracts the condition alone; may project the rest.",
    "Zhang et al. 2025, CASE, arXiv:2503.17279",
    CASEConfig,
    "condviz.methods.case:CASE",
    answers_links=False,
)


# ---- variants of CSR -------------------------------------------------------------------------------------------------

MARK = "@"
"""Between the name of a model and that of its variant."""


@dataclass(frozen=True)
class Variant:
    """Other settings of CSR, with what people are told about them."""

    title: str
    summary: str
    changes: dict[str, Any]


VARIANTS = {
    "hidden": Variant("Hidden", "Compares hidden states instead of query and key.", {"router": "hidden"}),
    "heavy": Variant("Heavy", "Query and key layers of its own, here at random.", {"router": "heavy"}),
    "random": Variant("Random Weight", "Random weights: a control.", {"router": "random"}),
    "only-weight": Variant("Only Weight", "Multiplies by w instead of 1 + w.", {"weighting": "only"}),
    "three-layers": Variant("three layers", "Routes the last three layers.", {"num_routed_layers": 3}),
}
"""Lin et al. 2024, Tables 1 and 3, Figure 4."""


def split_variant(name: str) -> tuple[str, str]:
    """Split "csr@hidden" into the names of model and variant; the latter is "" for any other name."""
    model, mark, variant = name.rpartition(MARK)
    return (model, variant) if mark and variant in VARIANTS else (name, "")


def describe_variant(info: ModelInfo, name: str) -> ModelInfo:
    """Describe a variant of a model. It counts as untrained: its weights were trained for another router."""
    if name not in VARIANTS or not CATALOG[info.method].has_variants:
        known = f"Models of the method csr have: {', '.join(VARIANTS)}."
        raise UnknownModelError(f"{info.name} has no variant {name[:40]!r}. {known}")
    variant = VARIANTS[name]
    return replace(
        info, name=f"{info.name}{MARK}{name}", title=f"{info.title}, {variant.title}", trained=False,
        summary=variant.summary, path="", calibration=None,
    )  # fmt: skip
