"""Losses and measures against the golden values: what the original programs give for stored vectors and tables."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
import torch

from condviz.analysis.geometry import cosines_to_mean, log_partition, partition_isotropy
from condviz.analysis.impurity import KMeansImpurity, Table, impurity
from condviz.evaluation.kgc import Neighbourhoods, TrueAnswers, filtered_ranks, rerank, summarise_directions
from condviz.evaluation.metrics import pair_accuracy, pearson, spearman
from condviz.training import losses
from tests.golden import (
    GOLDEN,
    Case,
    Precision,
    case_names,
    each_precision,
    load_case,
    load_evaluation,
    requires_golden,
)

pytestmark = requires_golden

EXACT = 1e-12


def of(case: Case, array: str, precision: Precision) -> torch.Tensor:
    return case.expected(array).to(precision.dtype)


def targets_of(case: Case, precision: Precision) -> torch.Tensor:
    return case.arrays["input.labels"].to(precision.dtype)


@each_precision
@pytest.mark.parametrize("name", case_names("csts_tri") + case_names("csts_bi"))
def test_losses_of_the_csts_baselines(name: str, precision: Precision) -> None:
    case = load_case(name)
    cosine, targets = of(case, "cosine", precision), targets_of(case, precision)
    case.check("loss_mse", losses.mean_squared_error(cosine, targets), precision)
    case.check("loss_quadruplet", losses.quadruplet(cosine), precision)
    case.check(
        "loss_quadruplet_plus_mse", losses.quadruplet(cosine) + losses.mean_squared_error(cosine, targets), precision
    )


@each_precision
@pytest.mark.parametrize("name", case_names("csts_cross"))
def test_loss_of_the_cross_encoder(name: str, precision: Precision) -> None:
    case = load_case(name)
    loss = losses.mean_squared_error(of(case, "logits", precision), targets_of(case, precision))
    case.check("loss_mse", loss, precision)


@each_precision
@pytest.mark.parametrize("name", case_names("hyper_cl"))
def test_losses_of_hyper_cl(name: str, precision: Precision) -> None:
    case = load_case(name)
    cosine, targets = of(case, "cosine", precision), targets_of(case, precision)
    temperature = case.settings["temperature"]
    case.check("loss_infonce", losses.info_nce(cosine, temperature=temperature), precision)
    case.check("loss_mse", losses.mean_squared_error(cosine, targets), precision)
    total = losses.info_nce(cosine, temperature=temperature) + losses.mean_squared_error(cosine, targets)
    case.check("loss_total", total, precision)


@each_precision
@pytest.mark.parametrize("name", case_names("csr"))
def test_losses_of_csr(name: str, precision: Precision) -> None:
    case = load_case(name)
    found = [key for key in case.group("expected") if "loss_mse" in key]
    assert found
    for array in found:
        cosine = of(case, array.replace("loss_mse", "cosine"), precision)
        case.check(array, losses.mean_squared_error(cosine, targets_of(case, precision)), precision)


def known_of(case: Case) -> TrueAnswers:
    known, batch = case.arrays["input.known_triples"], case.arrays["input.triples"]
    relations = int(max(known[:, 1].max() + 1, (batch[:, 1].max() + 2) // 2))
    entities = int(torch.cat([known, batch])[:, [0, 2]].max()) + 1
    return TrueAnswers(known, num_entities=entities, num_relations=relations)


@pytest.mark.parametrize("name", case_names("kgc"))
def test_masks_of_false_negatives(name: str) -> None:
    case = load_case(name)
    triples, known = case.arrays["input.triples"], known_of(case)
    assert torch.equal(losses.false_negative_mask(triples, known), case.arrays["input.triplet_mask"].bool())
    assert torch.equal(losses.self_negative_mask(triples, known), case.arrays["input.self_negative_mask"].bool())


@each_precision
@pytest.mark.parametrize("name", case_names("kgc"))
def test_logits_and_losses_of_link_prediction(name: str, precision: Precision) -> None:
    case = load_case(name)
    queries, tails, heads = (of(case, f"{which}_vector", precision) for which in ("hr", "tail", "head"))
    temperature, margin = case.settings["temperature"], case.settings["margin"]
    triples, known = case.arrays["input.triples"], known_of(case)

    logits = losses.in_batch_logits(queries, tails, temperature=temperature)
    case.check("logits_eval", logits, precision)
    # The stored figure for evaluation counts the rows only.
    rows = torch.nn.functional.cross_entropy(logits, torch.arange(len(logits)))
    case.check("loss_eval", rows, precision)

    keep = losses.false_negative_mask(triples, known)
    block = losses.in_batch_logits(queries, tails, temperature=temperature, margin=margin, keep=keep)
    case.check("logits_train", block, precision)
    case.check("loss_train", losses.symmetric_cross_entropy(block), precision)

    keep_self = losses.self_negative_mask(triples, known)
    own = losses.self_negative_logits(queries, heads, temperature=temperature, keep=keep_self)
    if "expected.logits_train_self_negative" in case.arrays:
        logits = torch.cat([block, own], dim=1)
        case.check("logits_train_self_negative", logits, precision)
        case.check("loss_train_self_negative", losses.symmetric_cross_entropy(logits), precision)

    if "expected.logits_train_pre_batch" in case.arrays:
        vectors, weight = case.arrays["input.pre_batch_vectors"], case.settings["pre_batch_weight"]
        earlier = losses.pre_batch_logits(queries, vectors, temperature=temperature, weight=weight)
        logits = torch.cat([block, earlier, own], dim=1)
        case.check("logits_train_pre_batch", logits, precision)
        case.check("loss_train_pre_batch", losses.symmetric_cross_entropy(logits), precision)


@each_precision
@pytest.mark.parametrize("name", case_names("kgc"))
def test_module_gives_the_same_loss(name: str, precision: Precision) -> None:
    case = load_case(name)
    queries, tails, heads = (of(case, f"{which}_vector", precision) for which in ("hr", "tail", "head"))
    settings, triples = case.settings, case.arrays["input.triples"]
    queue = None
    own = "expected.loss_train_self_negative" in case.arrays
    expected = "loss_train_self_negative" if own else "loss_train"
    if settings["pre_batch"]:
        vectors = case.arrays["input.pre_batch_vectors"]
        queue, expected = losses.TailQueue(len(vectors), vectors.shape[1]), "loss_train_pre_batch"
        queue.vectors.copy_(vectors)
    loss = losses.LinkContrast(
        known_of(case),
        temperature=settings["temperature"],
        margin=settings["margin"],
        queue=queue,
        queue_weight=settings.get("pre_batch_weight", 0.5),
    ).to(precision.dtype)
    if queue is not None:
        queue.vectors = case.arrays["input.pre_batch_vectors"].to(precision.dtype)
    with torch.no_grad():  # The starting value passes through single precision.
        loss.log_inverse_temperature.copy_(-torch.tensor(settings["temperature"], dtype=torch.float64).log())
    case.check(expected, loss(queries, tails, triples=triples, heads=heads if own else None), precision)


class Ranking:
    """The ranking task of evaluation.json."""

    def __init__(self) -> None:
        stored = load_evaluation()["filtered_ranking"]
        self.stored = stored
        self.queries: list[dict[str, Any]] = stored["queries"]
        triples = np.concatenate([np.array(split) for split in stored["splits"].values()])
        self.scores = torch.tensor([query["scores"] for query in self.queries], dtype=torch.float64)
        self.targets = torch.tensor([query["target"] for query in self.queries])
        self.entities = torch.tensor([query["entity"] for query in self.queries])
        relations = torch.tensor([query["relation"] for query in self.queries])
        num_relations = max(int(triples[:, 1].max()) + 1, (int(relations.max()) + 2) // 2)
        num_entities = self.scores.shape[1]
        self.truth = TrueAnswers(triples, num_entities=num_entities, num_relations=num_relations)
        self.known = self.truth.answers(self.entities, relations)
        hops = re.fullmatch(r"within_(\d+)_hops", next(key for key in self.queries[0] if key.startswith("within")))
        self.hops_key, num_hops = hops[0], int(hops[1])
        graph = Neighbourhoods(np.array(stored["splits"]["train"]), num_entities=num_entities, hops=num_hops)
        self.neighbours = [graph.of(query["entity"]) for query in self.queries]

    def check(self, ranks: torch.Tensor, *, key: str, expected: str) -> None:
        assert ranks.tolist() == [query[key] for query in self.queries]
        forward = torch.tensor([query["direction"] == "forward" for query in self.queries])
        report = summarise_directions(ranks[forward], ranks[~forward])
        for direction, figures in self.stored[expected].items():
            for name, value in figures.items():
                assert report[direction][name] == pytest.approx(value, abs=EXACT), (expected, direction, name)


def test_known_answers_are_left_out() -> None:
    task = Ranking()
    for query, known in zip(task.queries, task.known, strict=True):
        assert sorted(set(known.tolist()) - {query["target"]}) == query["filtered_out"]


def test_filtered_ranks_and_their_figures() -> None:
    task = Ranking()
    task.check(filtered_ranks(task.scores, task.targets, task.known), key="rank", expected="expected")


def test_unfiltered_ranks_and_their_figures() -> None:
    task = Ranking()
    nothing = [torch.empty(0, dtype=torch.int64)] * len(task.queries)
    ranks = filtered_ranks(task.scores, task.targets, nothing)
    task.check(ranks, key="rank_unfiltered", expected="expected_unfiltered")


def test_ranks_with_the_bonus_of_close_entities() -> None:
    task = Ranking()
    for query, members in zip(task.queries, task.neighbours, strict=True):
        assert members.tolist() == query[task.hops_key]
    ranks = filtered_ranks(rerank(task.scores, task.neighbours), task.targets, task.known)
    task.check(ranks, key="rank_with_bonus", expected="expected_with_bonus")


def test_accuracy_on_condition_pairs() -> None:
    stored = load_evaluation()["condition_pair_accuracy"]
    found = pair_accuracy(*(stored[key] for key in ("rating_a", "rating_b", "similarity_a", "similarity_b")))
    for name, value in stored["expected"].items():
        assert getattr(found, name) == (value if isinstance(value, int) else pytest.approx(value, abs=EXACT)), name


def test_correlations() -> None:
    stored = load_evaluation()["correlation"]
    rating, prediction, expected = stored["rating"], stored["prediction"], stored["expected"]
    assert spearman(rating, prediction) == pytest.approx(expected["spearman"], abs=EXACT)
    assert pearson(rating, prediction) == pytest.approx(expected["pearson"], abs=EXACT)
    constant = stored["constant_prediction"]
    assert spearman(rating, constant["prediction"]) is constant["expected"]
    assert pearson(rating, constant["prediction"]) is constant["expected"]


@pytest.mark.parametrize("which", load_evaluation()["impurity"]["examples"] if GOLDEN.is_dir() else [])
def test_impurity(which: str) -> None:
    example = load_evaluation()["impurity"]["examples"][which]
    expected = dict(example["expected"])
    divided = next(key for key in expected if key.startswith("divided_by_log_"))
    found = impurity(example["group"], example["cluster"])
    assert found == pytest.approx(expected["natural_log"], abs=EXACT)
    clusters = int(divided.rsplit("_", 1)[1])
    whole = KMeansImpurity(found, 0.0, (found,), found, 1.0, clusters, Table((), (), np.zeros(0)), np.zeros(0))
    assert whole.bits == pytest.approx(expected["base_2"], abs=EXACT)
    assert whole.normalised == pytest.approx(expected[divided], abs=EXACT)


def test_isotropy() -> None:
    stored = load_evaluation()["isotropy"]
    vectors, directions, expected = np.array(stored["vectors"]), np.array(stored["directions"]), stored["expected"]
    cosines = cosines_to_mean(vectors)
    np.testing.assert_allclose(cosines, expected["cosine_to_mean"], rtol=0, atol=EXACT)
    assert cosines.mean() == pytest.approx(expected["mean"], abs=EXACT)
    assert cosines.std() == pytest.approx(expected["std"], abs=EXACT)
    assert cosines.std(ddof=1) == pytest.approx(expected["std_sample"], abs=EXACT)

    scaled = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    np.testing.assert_allclose(np.exp(log_partition(scaled, directions)), expected["F"], rtol=0, atol=EXACT)
    assert partition_isotropy(vectors, directions) == pytest.approx(expected["ipc"], abs=EXACT)
    unscaled = log_partition(vectors, directions)
    assert np.exp(unscaled.min() - unscaled.max()) == pytest.approx(expected["ipc_unscaled"], abs=EXACT)
