"""Knowledge-graph completion: how high a model ranks the right entity among all, in both directions, by its vectors.

A triple (head, relation, tail) gives two queries: (head, relation) asks for the tail (forward), (tail, inverse
relation) asks for the head (inverse). Relations are numbered 0 to N - 1, the inverse of relation r is r + N.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor
from torch.nn import functional

from condviz.data.kg import Graph
from condviz.encoder.backbone import Backbone
from condviz.errors import ConfigError, DataError
from condviz.methods import ConditionalScorer
from condviz.models.manifest import read_manifest
from condviz.paths import cache_folder
from condviz.types import Progress

_BLOCK_ELEMENTS = 8_000_000
"""Scores held at once: 32 MB in single precision, 195 queries of WN18RR."""
HITS = (1, 3, 10)
"""Limits k of hits@k."""


class TrueAnswers:
    """The triples that are known to hold, in both directions, as one sorted array of numbers.

    Answers of a query are neighbours in that array, so that a look-up is a binary search and 93,003 triples of WN18RR
    take 1.5 MB.

    Heads and tails of the triples, (t, 3) in forward direction, lie in [0, E), their relations in [0, N); the inverses,
    N to 2 N - 1, are added here.
    """

    def __init__(self, triples: Tensor | np.ndarray, *, num_entities: int, num_relations: int) -> None:
        self.num_entities, self.num_relations = num_entities, num_relations
        forward = torch.as_tensor(triples, dtype=torch.int64).cpu().reshape(-1, 3)
        inverse = torch.stack([forward[:, 2], forward[:, 1] + num_relations, forward[:, 0]], dim=1)
        self._keys = torch.unique(self._key(*torch.cat([forward, inverse]).unbind(1)))

    def contains(self, heads: Tensor, relations: Tensor, tails: Tensor) -> Tensor:
        """Return which triples are known: bool of the common shape; arguments broadcast, relations in [0, 2N)."""
        keys = self._key(heads, relations, tails)
        position = torch.searchsorted(self._keys, keys)
        # A search past the end has no key to compare with.
        padded = torch.cat([self._keys, self._keys.new_full((1,), -1)])
        return padded[position] == keys

    def answers(self, entities: Tensor, relations: Tensor) -> list[Tensor]:
        """Return the known answers of p queries (entity asked about, relation in [0, 2N)): their numbers, ascending."""
        first = self._key(entities, relations, torch.zeros_like(entities))
        starts = torch.searchsorted(self._keys, first).tolist()
        ends = torch.searchsorted(self._keys, first + self.num_entities).tolist()
        return [self._keys[start:end] % self.num_entities for start, end in zip(starts, ends, strict=True)]

    def __len__(self) -> int:
        """Count the known triples; each direction counts."""
        return len(self._keys)

    def _key(self, heads: Tensor, relations: Tensor, tails: Tensor) -> Tensor:
        return (heads * (2 * self.num_relations) + relations) * self.num_entities + tails


class Neighbourhoods:
    """Entities within a number of steps of an entity, in the undirected graph of the train triples, (t, 3).

    Source:
        SimKGC (Wang et al. 2022), section 3.4, and rerank.py of its repository.
        Differs: there a neighbourhood of more than 100,000 entities counts as empty, which no benchmark graph reaches.
    """

    def __init__(self, triples: Tensor | np.ndarray, *, num_entities: int, hops: int) -> None:
        from scipy.sparse import csr_array

        rows = np.asarray(triples)
        self.hops = hops
        ends = np.concatenate([rows[:, [0, 2]], rows[:, [2, 0]]])
        self._graph = csr_array((np.ones(len(ends)), (ends[:, 0], ends[:, 1])), shape=(num_entities,) * 2)

    def of(self, entity: int) -> Tensor:
        """Return the entities at most `hops` steps away, the entity itself included, ascending, int64."""
        from scipy.sparse.csgraph import dijkstra

        steps = dijkstra(self._graph, indices=entity, unweighted=True, limit=self.hops)
        return torch.from_numpy(np.flatnonzero(np.isfinite(steps)))


def filtered_ranks(scores: Tensor, targets: Tensor, known: Sequence[Tensor]) -> Tensor:
    """Rank each target among all entities, leaving out the other known answers: (p,) float64 from 1, may end in .5.

    Ties get the mean of the best and worst rank, so a model that scores every entity alike earns (E + 1) / 2, not 1.

    Args:
        scores: Plausibility of every candidate, shape (p, E), finite, higher is better. Not modified.
        targets: Index of the right entity per row, shape (p,), int64 in [0, E).
        known: Per row, the indices of all entities right in any split; the target itself may be among them.

    Source:
        Filtered setting: Bordes et al. 2013 (TransE). Ties: Berrendorf et al. 2020, arXiv:2002.06914.
        Differs from Hyper-CL sim-kgc/evaluate.py:80, which writes -1 over known answers.

    Example:
        >>> filtered_ranks(torch.tensor([[0.9, 0.5, 0.7]]), torch.tensor([1]), [torch.tensor([0, 1])])
        tensor([2.], dtype=torch.float64)
    """
    targets = targets.to(scores.device)
    bad = (~torch.isfinite(scores)).any(dim=1).nonzero().flatten()
    if len(bad):
        raise DataError(f"Scores must be finite to be ranked; row {int(bad[0])} holds a NaN or an infinity.")
    target_scores = scores.gather(1, targets.unsqueeze(1))
    # Counting everything and taking the known answers off again needs no second table of scores.
    greater = (scores > target_scores).sum(1)
    equal = (scores == target_scores).sum(1) - 1
    rows, columns = _cells([torch.unique(row) for row in known], scores.device)
    others = columns != targets[rows]
    rows, columns = rows[others], columns[others]
    left_out, limit = scores[rows, columns], target_scores[rows, 0]
    greater.index_add_(0, rows, (left_out > limit).to(greater.dtype), alpha=-1)
    equal.index_add_(0, rows, (left_out == limit).to(equal.dtype), alpha=-1)
    return (1 + greater.double() + equal.double() / 2).cpu()


def _cells(sets: Sequence[Tensor], device: torch.device) -> tuple[Tensor, Tensor]:
    """Return row and column of every entity of every row's set, both (cells,) int64."""
    columns = torch.cat([torch.empty(0, dtype=torch.int64), *(row.cpu().to(torch.int64) for row in sets)])
    rows = torch.repeat_interleave(torch.tensor([len(row) for row in sets], dtype=torch.int64))
    return rows.to(device), columns.to(device)


def rerank(scores: Tensor, neighbours: Sequence[Tensor], *, bonus: float = 0.05) -> Tensor:
    """Return scores (p, E) with a bonus for every entity close to that of the query: the `neighbours` of each row.

    Source:
        SimKGC (Wang et al. 2022), section 3.4: 0.05. The published figures for WN18RR and FB15k-237 include it.
    """
    rows, columns = _cells(neighbours, scores.device)
    scores = scores.clone()
    scores[rows, columns] += bonus
    return scores


def split_queries(graph: Graph, split: str, *, limit: int = 0) -> Tensor:
    """Return the questions of a split: (2 t, 3) int64, all tails and then all heads asked for.

    With a `limit` above 0 those of its first triples; raises DataError if there is none.
    """
    queries = torch.from_numpy(graph.directed(split))
    if not len(queries):
        raise DataError(f"The {split} part of {graph.name} has no triples, so there is nothing to rank. Add some.")
    half = len(queries) // 2
    kept = min(limit or half, half)
    return torch.cat([queries[:kept], queries[half : half + kept]])


@torch.inference_mode()
def rank_queries(
    graph: Graph, vectors: Tensor, entities: Tensor, queries: Tensor, *, neighbourhoods: Neighbourhoods | None = None
) -> Tensor:
    """Rank the answers of questions by the cosine, a block at a time: (p,) float64 on the CPU, as `filtered_ranks`.

    The full table of WN18RR (6,268 x 40,943) would take a gigabyte; a block takes 32 MB.

    Args:
        graph: All its triples count as known.
        vectors: Of the questions, (p, d), of length 1.
        entities: Of all entities, (E, d), any length.
        queries: (p, 3): head, relation in [0, 2N), answer.
        neighbourhoods: Whose members get the bonus; None for the plain ranking.
    """
    truth = TrueAnswers(graph.triples, num_entities=graph.num_entities, num_relations=graph.num_relations)
    known, unit = truth.answers(queries[:, 0], queries[:, 1]), functional.normalize(entities, dim=1)
    around = cache(neighbourhoods.of) if neighbourhoods else None
    rows, ranks = max(1, _BLOCK_ELEMENTS // len(unit)), [torch.empty(0, dtype=torch.float64)]
    for start in range(0, len(queries), rows):
        block = slice(start, start + rows)
        scores = vectors[block] @ unit.T
        if around is not None:
            scores = rerank(scores, [around(head) for head in queries[block, 0].tolist()])
        ranks.append(filtered_ranks(scores, queries[block, 2], known[block]))
    return torch.cat(ranks)


def neighbourhoods(graph: Graph) -> Neighbourhoods:
    """Return what is close by in the train part, within the steps that the graph asks for."""
    return Neighbourhoods(graph.splits["train"], num_entities=graph.num_entities, hops=graph.hops)


# ---- figures ---------------------------------------------------------------------------------------------------------


def summarise_ranks(ranks: Tensor | np.ndarray) -> dict[str, float]:
    """Summarise ranks, (p,) from 1, by the field's names.

    Returns:
        "MR", the mean rank, at least 1; "MRR", the mean reciprocal rank, in (0, 1]; "hits@k", the share of ranks that
        are at most k, in [0, 1], for k in `HITS`; "queries", p.
    """
    values = np.asarray(ranks, dtype=np.float64)
    hits = {f"hits@{k}": float(np.mean(values <= k)) for k in HITS}
    return {"MR": float(values.mean()), "MRR": float(np.mean(1 / values)), **hits, "queries": len(values)}


def summarise_directions(forward: Tensor | np.ndarray, inverse: Tensor | np.ndarray) -> dict[str, dict[str, float]]:
    """Summarise the ranks of queries for the tail and of queries for the head, shapes (p,).

    Returns:
        "forward", "inverse", and "mean": the plain mean of the two, as SimKGC's evaluate.py prints it, of all queries.
    """
    one, two = summarise_ranks(forward), summarise_ranks(inverse)
    mean = {name: (one[name] + two[name]) / 2 for name in one} | {"queries": one["queries"] + two["queries"]}
    return {"forward": one, "inverse": two, "mean": mean}


# ---- vectors ---------------------------------------------------------------------------------------------------------

MAX_TOKENS = 50
"""Tokens of an entity's text where a recipe does not say (SimKGC, --max-num-tokens)."""
PART = 4096
"""Entities of one file: an interrupted encoding goes on behind the last one."""


def shorten(backbone: Backbone, texts: Sequence[str], max_tokens: int = MAX_TOKENS) -> list[str]:
    """Cut texts behind so many tokens, special tokens included, at the end of a token."""
    rows = backbone.tokenize([(text,) for text in texts])
    cut = []
    for text, row in zip(texts, rows, strict=True):
        spans = [span for span in backbone.spans(text) if span[1] > span[0]] if len(row) > max_tokens else []
        special = len(row) - len(spans)
        cut.append(text[: spans[max_tokens - special - 1][1]] if spans else text)
    return cut


def entity_texts(
    graph: Graph, model: ConditionalScorer, *, neighbours: bool | None = None, max_tokens: int | None = None
) -> list[str]:
    """Return the text of each entity as a model reads it; `neighbours` and `max_tokens` None ask its recipe."""
    recipe = read_manifest(Path(model.info.path))["training"].get("recipe") if model.info.path else None
    recipe = recipe if isinstance(recipe, dict) else {}  # a model may say nothing of its training
    chosen = bool(recipe.get("neighbours", False)) if neighbours is None else neighbours
    limit = recipe.get("max_tokens", MAX_TOKENS) if max_tokens is None else max_tokens
    return shorten(model.backbone, graph.texts(neighbours=chosen), limit)


def entity_vectors(
    model: ConditionalScorer, texts: Sequence[str], *, folder: Path | None = None, progress: Progress | None = None
) -> Tensor:
    """Return the vector of each entity without a relation, as `encode_sentences` does: (E, d) float32 on the CPU.

    Arguments as in `stored_vectors`.
    """
    vectors = stored_vectors(model, texts, folder=folder, progress=progress)
    return project(model, vectors) if model.separable else vectors


def stored_vectors(
    model: ConditionalScorer, texts: Sequence[str], *, folder: Path | None = None, progress: Progress | None = None
) -> Tensor:
    """Return what is kept on disk for each text, (E, d) float32: where the head comes on top, what the encoder gives.

    A folder that cannot be written to, by default `cache_folder()`, is not used. `progress` is told how many are done,
    and may raise to stop; what is done stays.
    """
    backbone, pooling = model.backbone, model.method_config.pooling
    plain = model.separable or not (model.added_parameters or backbone.instruction)

    def compute(chunk: list[str], start: int) -> Tensor:
        report = progress
        told = report and (lambda done, _: report(start + done, len(texts)))
        if plain:
            return backbone.encode([(text,) for text in chunk], pooling=pooling, progress=told)
        return torch.from_numpy(model.encode_sentences(chunk, progress=told))

    owner = f"{backbone.fingerprint} {pooling}" if plain else model.fingerprint
    digest = hashlib.sha256("\n".join([owner, *texts]).encode()).hexdigest()[:24]
    place, parts = (folder or cache_folder()) / "entities" / digest, [torch.zeros(0, backbone.hidden_size)]
    for start in range(0, len(texts), PART):
        chunk, file = list(texts[start : start + PART]), place / f"{start:07d}.safetensors"
        if (part := _read(file, len(chunk))) is None:
            part = compute(chunk, start)
            _write(file, part)
        parts.append(part)
        if progress:
            progress(start + len(chunk), len(texts))
    return torch.cat(parts)


@torch.no_grad()
def project(model: ConditionalScorer, pooled: Tensor) -> Tensor:
    """Apply what a model puts on pooled sentences: (E, d) -> (E, d) on the CPU."""
    return torch.cat([model.project_sentences(part.to(model.backbone.device)).cpu() for part in pooled.split(PART)])


def check_comparable(model: ConditionalScorer, under: Tensor | np.ndarray, alone: Tensor | np.ndarray) -> None:
    """Raise ConfigError where vectors under a relation and those without one differ in length."""
    if under.shape[1] != alone.shape[1]:
        raise ConfigError(
            f"{model.info.name} makes vectors of {under.shape[1]} numbers under a relation and of {alone.shape[1]} "
            "without, so they cannot be compared. Choose another model."
        )


def query_vectors(
    model: ConditionalScorer,
    graph: Graph,
    queries: Tensor,
    *,
    entities: Tensor,
    texts: Sequence[str],
    progress: Progress | None = None,
) -> Tensor:
    """Return the vectors of questions, scaled to length 1: (p, d) float32 on the CPU; equal ones are computed once.

    The queries are (p, 2) or more: head, relation in [0, 2N). A model that encodes sentence and condition apart starts
    from the `entities`, (E, d) of `entity_vectors`, others from their texts.
    """
    pairs, index = queries[:, :2].unique(dim=0, return_inverse=True)
    heads, relations = pairs.T
    if not model.separable:
        names = list(map(graph.relation_text, relations.tolist()))
        vectors = model.encode([texts[head] for head in heads.tolist()], names, progress=progress)
        return functional.normalize(torch.from_numpy(vectors), dim=1)[index]
    result = torch.zeros(len(heads), entities.shape[1])
    for relation in relations.unique().tolist():  # one matrix W_r at a time
        rows = (relations == relation).nonzero().flatten()
        condition = torch.from_numpy(model.encode_conditions([graph.relation_text(relation)]))
        result[rows] = model.embed_grid(entities[heads[rows]], condition)[0]
    return functional.normalize(result, dim=1)[index]


def _read(file: Path, size: int) -> Tensor | None:
    """Read the vectors of so many entities; None where they are not there, or damaged."""
    try:
        found = load_file(file).get("vectors", torch.empty(0))
    except (OSError, SafetensorError):
        return None
    return found if len(found) == size else None


def _write(file: Path, vectors: Tensor) -> None:
    """Keep vectors; where that is not possible they are computed again the next time."""
    partial = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        save_file({"vectors": vectors.contiguous()}, partial)
        os.replace(partial, file)
    except (OSError, SafetensorError):
        with suppress(OSError):
            partial.unlink(missing_ok=True)
