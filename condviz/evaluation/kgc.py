"""Knowledge-graph completion: vectors of all entities, and how high a model ranks the right one, in both directions."""

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
from condviz.evaluation.ranking import Neighbourhoods, TrueAnswers, rank_links
from condviz.methods import ConditionalScorer
from condviz.models.manifest import read_manifest
from condviz.paths import cache_folder
from condviz.types import Progress


def check_comparable(model: ConditionalScorer, under: Tensor | np.ndarray, alone: Tensor | np.ndarray) -> None:
    """Raise ConfigError where vectors under a relation and those without one differ in length."""
    if under.shape[1] != alone.shape[1]:
        raise ConfigError(
            f"{model.info.name} makes vectors of {under.shape[1]} numbers under a relation and of {alone.shape[1]} "
            "without, so they cannot be compared. Choose another model."
        )


def split_queries(graph: Graph, split: str, *, limit: int = 0) -> Tensor:
    """Return the questions of a split: (2 t, 3) int64, all tails and then all heads asked for.

    Raises:
        ConfigError: If there is no such split, or `limit` is negative.
        DataError: If it is empty.
    """
    if limit < 0:
        raise ConfigError(f"limit is {limit}, allowed is 0 (all triples) or more.")
    if split not in graph.splits:
        raise ConfigError(f"There is no split {split!r}; there are {', '.join(graph.splits)}.")
    queries = torch.from_numpy(graph.directed(split))
    if not len(queries):
        raise DataError(f"The {split} part of {graph.name} has no triples, so there is nothing to rank. Add some.")
    half = len(queries) // 2
    kept = min(limit or half, half)
    return torch.cat([queries[:kept], queries[half : half + kept]])


def encode_queries(
    model: ConditionalScorer,
    graph: Graph,
    *,
    entities: Tensor,
    texts: list[str],
    queries: Tensor,
    progress: Progress | None = None,
) -> Tensor:
    """Return the vectors of questions, (p, d), each different (head, relation) once; see `query_vectors`."""
    pairs, index = queries[:, :2].unique(dim=0, return_inverse=True)
    vectors = query_vectors(
        model, graph, entities=entities, texts=texts, heads=pairs[:, 0], relations=pairs[:, 1], progress=progress
    )
    return vectors[index]


def rank_queries(
    graph: Graph, vectors: Tensor, entities: Tensor, queries: Tensor, *, neighbourhoods: Neighbourhoods | None = None
) -> Tensor:
    """Rank the answers of questions by the cosine.

    Args:
        graph: All its triples count as known.
        vectors: Of the questions, (p, d), of length 1.
        entities: Of all entities, (E, d), any length.
        queries: (p, 3): head, relation in [0, 2N), answer.
        neighbourhoods: Whose members get the bonus; None for the plain ranking.

    Returns:
        Filtered ranks, (p,) float64.
    """
    known = TrueAnswers(graph.triples, num_entities=graph.num_entities, num_relations=graph.num_relations)
    around = cache(neighbourhoods.of) if neighbourhoods else None
    return rank_links(
        vectors,
        functional.normalize(entities, dim=1),
        targets=queries[:, 2],
        known=known.answers(queries[:, 0], queries[:, 1]),
        neighbours=around and [around(head) for head in queries[:, 0].tolist()],
    )


def neighbourhoods(graph: Graph) -> Neighbourhoods:
    """Return what is close by in the train part, within the steps that the graph asks for."""
    return Neighbourhoods(graph.splits["train"], num_entities=graph.num_entities, hops=graph.hops)


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
    """Return what is kept on disk for each entity, (E, d) float32: where the head comes on top, what the encoder gives.

    Args:
        model: Any encoder.
        texts: From `entity_texts`.
        folder: Where vectors are kept; `cache_folder()` by default. A folder that cannot be written to is not used.
        progress: Told how many are done; may raise to stop, what is done stays.
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


def query_vectors(
    model: ConditionalScorer,
    graph: Graph,
    *,
    entities: Tensor,
    texts: Sequence[str],
    heads: Tensor,
    relations: Tensor,
    progress: Progress | None = None,
) -> Tensor:
    """Return the vectors of (head, relation) pairs, scaled to length 1: (p, d) float32 on the CPU.

    Args:
        model: Any encoder. One that encodes sentence and condition apart starts from `entities`, others from the texts.
        graph: For the texts of relations.
        entities: From `entity_vectors`, (E, d).
        texts: From `entity_texts`.
        heads: (p,) entity numbers.
        relations: (p,) in [0, 2N).
        progress: Told how many encodings are done.

    Raises:
        DataError: If a number is out of range.
    """
    if ((heads < 0) | (heads >= graph.num_entities)).any():
        raise DataError(f"Entities are numbered 0 to {graph.num_entities - 1}.")
    if ((relations < 0) | (relations >= 2 * graph.num_relations)).any():
        raise DataError(f"Relations are numbered 0 to {2 * graph.num_relations - 1}, inverses included.")
    if not model.separable:
        names = list(map(graph.relation_text, relations.tolist()))
        vectors = model.encode([texts[int(head)] for head in heads], names, progress=progress)
        return functional.normalize(torch.from_numpy(vectors), dim=1)
    result = torch.zeros(len(heads), entities.shape[1])
    for relation in relations.unique().tolist():  # one matrix W_r at a time
        rows = (relations == relation).nonzero().flatten()
        condition = torch.from_numpy(model.encode_conditions([graph.relation_text(relation)]))
        result[rows] = model.compose_grid(entities[heads[rows]], condition)[0]
    return functional.normalize(result, dim=1)


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
