"""Every method gives the golden values: what the original programs, or the formulas of the papers, give."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from condviz.encoder.backbone import Backbone
from condviz.encoder.tokens import Tokens, pool
from condviz.methods.base import ConditionalScorer
from condviz.methods.baselines import BiEncoder, CrossEncoder, CrossEncoderConfig, TriEncoder, TriEncoderConfig
from condviz.methods.catalog import BiEncoderConfig, CSRBiConfig
from condviz.methods.csr import CSR, CSRBi, CSRConfig
from condviz.methods.hyper_cl import HyperCL, HyperCLConfig
from tests.golden import DOUBLE, Case, Precision, case_names, each_precision, load_case, requires_golden, tiny_encoder

pytestmark = requires_golden

POOLINGS = {"avg": "mean", "cls": "cls"}
HEAD_NAMES = {"condition": "condition.1", "concat": "concat.1"}
ADDED_BY_THE_ORIGINAL = 1e-10
"""The released CSR code adds this constant to averages (golden/README.md)."""


def backbone(case: Case, precision: Precision) -> Backbone:
    """Build the encoder of a case without a tokenizer."""
    name = case.backbone if "backbone" in case.meta else case.name
    return Backbone(tiny_encoder(name, precision.dtype))


def tokens(case: Case, field: str, padding: int = 0) -> Tokens:
    """Read ids, mask and segments of a field, with some more columns of padding."""
    stored = case.group("input")
    prefix = f"{field}_" if field else ""
    arrays = {name: stored.get(f"{prefix}{name}") for name in ("ids", "mask", "types")}
    arrays = {name: functional.pad(value, (0, padding)) for name, value in arrays.items() if value is not None}
    if padding and (pad := load_case(case.backbone).meta["special_ids"]["pad"]):
        arrays["ids"][:, -padding:] = pad
    return Tokens(arrays["ids"], arrays["mask"].bool(), types=arrays.get("types"))


def load_head(method: ConditionalScorer, case: Case, precision: Precision) -> ConditionalScorer:
    """Copy the stored head weights into ours by name, strictly."""
    state = {}
    for name, value in case.group("head", dtype=precision.dtype).items():
        part, _, leaf = name.rpartition(".")
        state[f"{HEAD_NAMES.get(part, part)}.{leaf}"] = value
    method = method.to(precision.dtype).eval()
    assert set(state) == set(method.head_state())
    method.load_state_dict(state, strict=False)
    return method


@each_precision
@pytest.mark.parametrize("name", case_names("backbone"))
@torch.no_grad()
def test_backbone(name: str, precision: Precision) -> None:
    case = load_case(name)
    encoder, batch = backbone(case, precision), tokens(case, "")
    states = torch.stack(encoder.states(batch))
    case.check("hidden_states", states * batch.mask[..., None], precision)
    case.check("average", pool(list(states), batch, "mean"), precision)
    case.check("average", encoder(batch, "mean"), precision)


@each_precision
@pytest.mark.parametrize("name", case_names("csts_tri"))
@torch.no_grad()
def test_tri_encoder(name: str, precision: Precision) -> None:
    case = load_case(name)
    config = TriEncoderConfig(composition=case.settings["head"], pooling=POOLINGS[case.settings["pooling"]])
    method = load_head(TriEncoder(backbone(case, precision), config), case, precision)
    check_separable(method, case, precision)


@each_precision
@pytest.mark.parametrize("name", case_names("hyper_cl"))
@torch.no_grad()
def test_hyper_cl(name: str, precision: Precision) -> None:
    case = load_case(name)
    config = HyperCLConfig(rank=case.settings["rank"], pooling=POOLINGS[case.settings["pooling"]])
    method = load_head(HyperCL(backbone(case, precision), config), case, precision)
    conditions = check_separable(method, case, precision)
    factors = method.factors(conditions)
    if len(factors) == 2:
        case.check("factor_left", factors[0], precision)
        case.check("factor_right", factors[1], precision)
    case.check("W_c", (factors[0] if len(factors) == 1 else factors[0] @ factors[1]).transpose(1, 2), precision)


def check_separable(method: TriEncoder | HyperCL, case: Case, precision: Precision) -> Tensor:
    """Check every step of a tri-encoder and give its projected conditions."""
    pooling, embeddings = method.method_config.pooling, []
    condition = tokens(case, "condition")
    pooled = method.backbone(condition, pooling)
    case.check("condition_pooled", pooled, precision)
    case.check("condition_projected", method.project_conditions(pooled), precision)
    for number in ("1", "2"):
        sentence = tokens(case, f"sentence{number}")
        case.check(f"sentence{number}_pooled", method.backbone(sentence, pooling), precision)
        embeddings.append(method.embed(sentence, condition))
        case.check(f"embedding{number}", embeddings[-1], precision)
    case.check("cosine", method.similarity_pairwise(*embeddings), precision)
    return method.project_conditions(pooled)


@each_precision
@pytest.mark.parametrize("name", case_names("csts_bi"))
@torch.no_grad()
def test_bi_encoder(name: str, precision: Precision) -> None:
    case = load_case(name)
    method = BiEncoder(backbone(case, precision), BiEncoderConfig(pooling=POOLINGS[case.settings["pooling"]])).eval()
    embeddings = [method.embed(tokens(case, f"pair{number}")) for number in ("1", "2")]
    case.check("embedding1", embeddings[0], precision)
    case.check("embedding2", embeddings[1], precision)
    case.check("cosine", method.similarity_pairwise(*embeddings), precision)


@each_precision
@pytest.mark.parametrize("name", case_names("csts_cross"))
@torch.no_grad()
def test_cross_encoder(name: str, precision: Precision) -> None:
    case = load_case(name)
    config = CrossEncoderConfig(pooling=POOLINGS[case.settings["pooling"]])
    method = load_head(CrossEncoder(backbone(case, precision), config), case, precision)
    case.check("pooled", method.backbone(tokens(case, ""), method.method_config.pooling), precision)
    case.check("logits", method.predict(tokens(case, "")), precision)


def variants(case: Case) -> list[str]:
    """Give the parts of a CSR file: r0, r1, r2_only_weight, ..."""
    parts = {name.split(".")[1] for name in case.arrays if name.startswith("expected.r")}
    return sorted(parts)


@each_precision
@pytest.mark.parametrize("name", case_names("csr_paper"))
@torch.no_grad()
def test_csr_by_the_formula_of_the_paper(name: str, precision: Precision) -> None:
    case = load_case(name)
    encoder, condition = backbone(case, precision), tokens(case, "condition")
    layers = encoder.layers
    states = layers.run(layers.embed(condition), condition.mask)
    queries = torch.stack([layers.query(layer, states[layer][:, 0]) for layer in range(layers.num_layers)])
    case.check("query_per_layer", queries, precision)
    case.check("query_last", queries[-1], precision)
    for variant in variants(case):
        config = CSRConfig(
            num_routed_layers=int(variant[1]),
            query_layer="same" if "same_layer" in variant else "last",
            weighting="only" if "only_weight" in variant else "one-plus",
            pooling=POOLINGS[case.settings["pooling"]],
        )
        check_csr(CSR(encoder, config).eval(), case, variant, precision)


@each_precision
@pytest.mark.parametrize("name", case_names("csr_tri"))
@pytest.mark.parametrize("pooling", ["avg", "cls"])
@torch.no_grad()
def test_csr_variants(name: str, pooling: str, precision: Precision) -> None:
    case, router = load_case(name), name.rsplit("_", 1)[-1]
    for variant in variants(case):
        method = make_csr(case, router, int(variant[1]), POOLINGS[pooling], precision)
        check_csr(method, case, variant, precision, suffix=f"_{pooling}")


def make_csr(case: Case, router: str, num_routed_layers: int, pooling: str, precision: Precision) -> CSR:
    """Build CSR with a router and its stored weights; with CLS pooling and R = 1, past the check that forbids it."""
    config = CSRConfig(num_routed_layers=num_routed_layers, router=router)
    object.__setattr__(config, "pooling", pooling)
    method = CSR(backbone(case, precision), config).to(precision.dtype).eval()
    state = {}
    for name, value in case.group("router", dtype=precision.dtype).items():
        layer, part, leaf = name.split(".")
        if int(layer) in method.routed_layers:
            state[f"router.{part}.{layer}.{leaf}"] = value
    assert set(state) == set(method.head_state())
    method.load_state_dict(state, strict=False)
    return method


def check_csr(method: CSR, case: Case, variant: str, precision: Precision, *, suffix: str = "") -> None:
    """Check weights, embeddings and cosine of one variant."""
    condition, embeddings = tokens(case, "condition"), []
    for number in ("1", "2"):
        sentence = tokens(case, f"sentence{number}")
        embedding, weights = method.route(method.enter(sentence), sentence, method.read(condition))
        embeddings.append(embedding + (ADDED_BY_THE_ORIGINAL if suffix == "_avg" else 0))
        case.check(f"{variant}.embedding{number}{suffix}", embeddings[-1], precision)
        if weights:
            case.check(f"{variant}.weights{number}", torch.stack(weights), precision)
    case.check(f"{variant}.cosine{suffix}", method.similarity_pairwise(*embeddings), precision)


@each_precision
@pytest.mark.parametrize("name", case_names("csr_bi"))
@pytest.mark.parametrize("pooling", ["avg", "cls"])
@torch.no_grad()
def test_csr_bi_encoder(name: str, pooling: str, precision: Precision) -> None:
    case = load_case(name)
    for variant in variants(case):
        config = CSRBiConfig(num_routed_layers=int(variant[1]), pooling=POOLINGS[pooling])
        method, embeddings = CSRBi(backbone(case, precision), config).eval(), []
        for number in ("1", "2"):
            embedding, weights = method.embed_and_weigh(tokens(case, f"sentence{number}"), tokens(case, "condition"))
            embeddings.append(embedding + (ADDED_BY_THE_ORIGINAL if pooling == "avg" else 0))
            case.check(f"{variant}.embedding{number}_{pooling}", embeddings[-1], precision)
            case.check(f"{variant}.weights{number}", torch.stack(weights), precision)
        case.check(f"{variant}.cosine_{pooling}", method.similarity_pairwise(*embeddings), precision)


@each_precision
@pytest.mark.parametrize("name", case_names("kgc_tri"))
@torch.no_grad()
def test_heads_of_link_prediction(name: str, precision: Precision) -> None:
    case = load_case(name)
    head, rank = case.settings["head"], case.settings["rank"]
    encoder = backbone(case, precision)
    if head == "hypernet" or "hypernet" in name:
        method = HyperCL(encoder, HyperCLConfig(rank=rank))
    else:
        method = TriEncoder(encoder, TriEncoderConfig(composition=head))
    method = load_head(method, case, precision)
    vectors = {field: unit(encoder(tokens(case, field), "cls")) for field in ("head", "relation", "tail")}
    for field, value in vectors.items():
        case.check(f"{field}_vector", value, precision)
    relations = method.project_conditions(vectors["relation"])
    case.check("relation_projected", relations, precision)
    if isinstance(method, HyperCL):
        factors = method.factors(relations)
        case.check("W_r", (factors[0] if rank is None else factors[0] @ factors[1]).transpose(1, 2), precision)
    # Differs from our default: the original does not scale hr to length 1.
    case.check("hr_vector", method.compose(vectors["head"], relations), precision)


@each_precision
@pytest.mark.parametrize("name", case_names("kgc_bi"))
@torch.no_grad()
def test_vectors_of_simkgc(name: str, precision: Precision) -> None:
    case, pooling = load_case(name), load_case(name).settings["pooling"].split(",")[0]
    second = load_case(case_names("kgc_bi_mean")[0]).group("tail_encoder")
    tail_encoder = Backbone(tiny_encoder(case.backbone, precision.dtype, weights=second))
    for field, encoder in (("hr", backbone(case, precision)), ("tail", tail_encoder), ("head", tail_encoder)):
        case.check(f"{field}_vector", unit(encoder(tokens(case, field), pooling)), precision)


@pytest.mark.parametrize("name", [*case_names("csr_paper"), *case_names("csr_bi"), *case_names("csr_tri")])
@torch.no_grad()
def test_padding_and_order_of_the_batch_change_nothing(name: str) -> None:
    case, order = load_case(name), torch.tensor([3, 0, 5, 1, 4, 2])
    if "_bi" in name:
        method = CSRBi(backbone(case, DOUBLE), CSRBiConfig(pooling="mean")).eval()
    else:
        router = "query_key" if "paper" in name else name.rsplit("_", 1)[-1]
        method = make_csr(case, router, 2, "mean", DOUBLE)
    plain = method.embed(tokens(case, "sentence1"), tokens(case, "condition"))
    padded = [tokens(case, field, padding=3) for field in ("sentence1", "condition")]
    shuffled = method.embed(*(Tokens(batch.ids[order], batch.mask[order]) for batch in padded))
    torch.testing.assert_close(shuffled, plain[order], rtol=0, atol=1e-10)
    one = [Tokens(batch.ids[:1], batch.mask[:1]) for batch in padded]
    torch.testing.assert_close(method.embed(*one), plain[:1], rtol=0, atol=1e-10)


def test_every_case_is_used() -> None:
    prefixes = ("backbone", "csts_tri", "csts_bi", "csts_cross", "hyper_cl", "csr_paper", "csr_tri", "csr_bi", "kgc_")
    assert case_names("")
    assert all(name.startswith(prefixes) for name in case_names(""))


def unit(vectors: Tensor) -> Tensor:
    """Scale rows to length 1."""
    return functional.normalize(vectors, dim=-1)
