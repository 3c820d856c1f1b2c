"""What every method is and can do, readable without torch: listing models and building the page need no more.

The classes take this over through `about` (see `ConditionalScorer`), so that nothing is stated twice.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

from condviz.errors import UnknownModelError
from condviz.methods import configs
from condviz.methods.configs import MethodConfig
from condviz.types import Kind, ModelInfo

Meeting = Literal["router", "sequence", "prefix"]
"""Through the router alone (the two are encoded apart), in one sequence, or as further keys in every layer."""
_UNBOUNDED = (float("-inf"), float("inf"))
_CSTS = "Deshpande et al. 2023, C-STS, arXiv:2305.15093"
_CSR = "Lin et al. 2024, CSR, EMNLP 2024"


@dataclass(frozen=True)
class Method:
    """Title, paper and abilities of a method."""

    name: str
    """Key in `condviz.METHODS` and in condviz.json."""
    title: str
    """Name for people."""
    kind: Kind
    """Either "cross", "bi" or "tri"."""
    summary: str
    """How it works, in one sentence."""
    reference: str
    """Paper."""
    config_cls: type[MethodConfig]
    """Its settings."""
    module: str = ""
    """Where its class is, "module:Class"; "" for a method that was registered from elsewhere."""
    score_range: tuple[float, float] = (-1.0, 1.0)
    """Lowest and highest score."""
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


CATALOG: dict[str, Method] = {
    method.name: method
    for method in (
        Method(
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
        ),
        Method(
            "cross-encoder",
            "Cross-encoder",
            "cross",
            "Reads both sentences and the condition in one sequence and predicts one number; has no embeddings.",
            _CSTS,
            configs.CrossEncoderConfig,
            "condviz.methods.baselines:CrossEncoder",
            score_range=_UNBOUNDED,
            encodes=False,
            answers_links=False,
        ),
        Method(
            "bi-encoder",
            "Bi-encoder",
            "bi",
            "Encodes each sentence in one sequence with the condition; slower with many conditions.",
            _CSTS,
            configs.BiEncoderConfig,
            "condviz.methods.baselines:BiEncoder",
        ),
        Method(
            "tri-encoder",
            "Tri-encoder",
            "tri",
            "Encodes sentences and conditions apart and multiplies (or concatenates and mixes) the two vectors.",
            _CSTS,
            configs.TriEncoderConfig,
            "condviz.methods.baselines:TriEncoder",
            separable=True,
        ),
        Method(
            "hyper-cl",
            "Hyper-CL",
            "tri",
            "A hypernetwork makes a projection W_c from the condition; the embedding is W_c times the sentence.",
            "Yoo et al. 2024, Hyper-CL, ACL 2024, arXiv:2403.09490",
            configs.HyperCLConfig,
            "condviz.methods.hyper_cl:HyperCL",
            separable=True,
            condition_matrices=True,
        ),
        Method(
            "csr",
            "CSR",
            "tri",
            "The condition's query weighs the words of the sentence inside the last layers; adds no parameters.",
            _CSR,
            configs.CSRConfig,
            "condviz.methods.csr:CSR",
            meets="router",
            has_variants=True,
        ),
        Method(
            "csr-bi",
            "CSR bi-encoder",
            "bi",
            "Sentence and condition in one sequence; the condition's attention weighs the sentence in the last layers.",
            _CSR,
            configs.CSRBiConfig,
            "condviz.methods.csr:CSRBi",
            meets="sequence",
        ),
        Method(
            "csr-prefix",
            "CSR-prefix",
            "bi",
            "The sentence attends to the condition's final states in every layer: what CSR's released code computes.",
            f"{_CSR} (released code)",
            configs.CSRPrefixConfig,
            "condviz.methods.csr:CSRPrefix",
            meets="prefix",
        ),
        Method(
            "case",
            "CASE",
            "bi",
            "Encodes the condition in the light of the sentence and subtracts the condition alone; may project the "
            "rest.",
            "Zhang et al. 2025, CASE, arXiv:2503.17279",
            configs.CASEConfig,
            "condviz.methods.case:CASE",
            answers_links=False,
        ),
    )
}


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
    if name not in VARIANTS:
        raise UnknownModelError(f"There is no variant {name[:40]!r}. Variants: {', '.join(VARIANTS)}.")
    variant = VARIANTS[name]
    return replace(
        info, name=f"{info.name}{MARK}{name}", title=f"{info.title}, {variant.title}", trained=False,
        summary=variant.summary, path="", calibration=None,
    )  # fmt: skip
