"""Search a corpus under a condition.

A method that encodes sentences and conditions apart scores every stored vector under a new condition: one product over
the corpus, exact. A method that reads them together would have to read every text again; it re-ranks the texts that are
nearest without the condition, and the result says how many it has read.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import regex
from annotated_doc import Doc
from annotated_types import Interval

from condviz.analysis.answers import Hit, Hits
from condviz.analysis.errors.filters import explain_nothing, select
from condviz.analysis.layout import part
from condviz.analysis.reference import percentile, reference_scores
from condviz.analysis.words import MAX_WORDS, count_words, leave_one_word_out
from condviz.data.texts import check_condition, check_sentence, fold, split_words
from condviz.errors import DataError
from condviz.models.registry import load
from condviz.spec import Field, Key, checked
from condviz.store.corpus import Corpus, FilterColumns
from condviz.store.disk import open_corpus
from condviz.types import TOLD, Progress, reporting

if TYPE_CHECKING:
    from torch import Tensor

    from condviz.methods import ConditionalScorer

RERANKED = 1_000
"""Texts that a method which reads sentence and condition together scores again."""
MAX_HITS = 1_000
MOST_COPIES = 64
"""Texts that are looked at for each hit, so that one that stands often in the corpus does not fill the list."""
GOOD_PERCENTILE = 95.0
"""Under a condition a hit counts as a match above this share of the reference pairs."""
CLOSEST, CLOSEST_TEXTS = 0.01, 3
"""It also has to be among this share of the closest pairs of the corpus, or, of a small one, among the closest three
texts of an average text: where many share a value, as with gender, reference pairs alone call most of them a match. How
often either is wrong: `benchmarks.claims`."""
READ_FOR_WORDS = 10
"""Hits whose words are left out one by one: some twenty scores each."""
READ_FOR_TELLING = 50
"""Hits that are read once more, to see whether they say anything about the condition."""
TYPICAL_PERCENTILE, PLAIN_PERCENTILE = 50.0, 95.0
"""Without one, it has to be more alike than a typical reference pair and than this share of the pairs of the corpus, or
to have every word of the query."""
SAMPLED_TEXTS, READ_PAIRS = 128, 256
"""Of a corpus, whose pairs are compared; of a method that reads both texts together, so many of these pairs."""
REGEX_SECONDS = 5.0
"""For one pattern over one corpus: some patterns take for ever."""


@checked
def search(
    store: str | Path | Corpus,
    query: str,
    condition: str | None = None,
    *,
    k: Annotated[int, Interval(ge=1, le=MAX_HITS), Doc("Number of hits")] = 10,
    model: str | ConditionalScorer | None = None,
    where: Annotated[
        str | None,
        Doc('Keep texts that meet this: "dog" in text; if they have a column stars, stars >= 4'),
        Field("Filter"),
    ] = "",
    contains: Annotated[
        str | None, Doc("Keep texts with this, in upper or lower case; or with a pattern: /rain|snow/"), Key("has")
    ] = "",
    words: Annotated[bool, Doc("Also find the words that carry the first ten hits")] = False,
    progress: Progress | None = None,
) -> Hits:
    """Find the texts of a corpus that are most like a query under a condition.

    Args:
        store: Folder of a store, an open corpus, or "scenes" for the one that ships.
        query: Query text.
        condition: With respect to what, for instance "the sport"; None or blank for a plain search.
        model: A name or a loaded model; None for the one whose vectors are stored. Another one has to be a method that
            reads sentence and condition together: it re-ranks.
        k, where, contains, words: As the signature says.
        progress: Told (texts scored under the condition, texts to score); may raise to stop.

    Raises:
        DataError: If a text or a filter cannot be used, or the vectors are those of another model.
        ConfigError: If k is not allowed, or the model takes no condition.

    Example:
        >>> condviz.search("scenes", "A man surfs.", "the sport").to_frame()
    """
    query, where, contains = check_sentence(query, "the query"), where or "", contains or ""
    condition = check_condition(condition, "the condition") if condition and condition.strip() else None
    given = None if model is None else load(model)
    corpus = open_corpus(store, given, progress=progress)
    allowed = filter_rows(corpus, where, contains)
    given = given or corpus.model
    owner = given if given.weights_hash == corpus.identity.weights else _reads_vectors(corpus, given)
    if condition is not None:
        given.check_able("conditional")
    scorer = owner if condition is None else given

    searched = read = int(allowed.sum())
    under = [condition] if condition is not None and given.separable else []
    plain, *found = score_rows(owner, corpus, query, None, *under, progress=progress if under else None)
    plain[~allowed] = -np.inf
    scores = np.where(allowed, found[0], -np.inf) if under else plain
    if condition is not None and not under:
        read = min(searched, max(RERANKED, k))
        # A cross-encoder reads pairs of the corpus behind its texts, to see what is close there.
        end = 1.0 if given.encodes else read / (read + READ_PAIRS)
        scores = _rerank(given, corpus, query, condition, _top(plain, read), part(progress, 0, end))
        progress = part(progress, end, 1)
    best, rows, copies = _different(corpus, scores, k, read)
    places = percentile(scores[best], reference_scores(scorer))
    query_applies, *applies = _told(given, [query, *(row["text"] for row in rows)], condition)
    if condition is None:
        asked = _words(query)
        verbatim = np.array([bool(asked) and asked <= _words(row["text"]) for row in rows], dtype=bool)
        good = verbatim | ((places >= TYPICAL_PERCENTILE) & (scores[best] > own_mark(scorer, corpus, None)))
    else:
        close = (places >= GOOD_PERCENTILE) & (scores[best] > own_mark(scorer, corpus, condition, progress))
        good = close & np.array([says is None or says >= TOLD for says in applies], dtype=bool)
    plain_ranks = 1 + len(plain) - np.searchsorted(np.sort(plain), plain[best], side="right")
    hits = [
        Hit(
            row=found.pop("row"), text=found.pop("text"), score=float(scores[row]), percentile=float(place),
            unconditional=float(plain[row]), plain_rank=int(rank), good=bool(match), applies=says, cells=found,
            copies=tuple(same),
        )
        for row, rank, place, match, says, found, same in zip(
            best, plain_ranks, places, good, applies, rows, copies, strict=True
        )
    ]  # fmt: skip
    found = Hits(
        query=query, condition=condition, model=scorer.info, corpus=corpus.name, hits=tuple(hits), total=len(corpus),
        searched=searched, read=read, where=where, contains=contains,
        applies=query_applies, notes=_notes(corpus, where, searched, read, scorer.backbone.unknown_words(query)),
    )  # fmt: skip
    return add_words(scorer, found) if words else found


def add_words(model: ConditionalScorer, hits: Hits, *, progress: Progress | None = None) -> Hits:
    """Add to the first `READ_FOR_WORDS` hits what each word does to the score, by leaving it out.

    `progress` is told (hits done, hits to do).
    """
    first = [hit for hit in hits.hits[:READ_FOR_WORDS] if count_words(hits.query, hit.text) <= MAX_WORDS]
    read = reporting(first, progress)
    found = {hit.row: leave_one_word_out(model, hits.query, hit.text, hits.condition) for hit in read}
    return replace(hits, hits=tuple(replace(hit, words=found.get(hit.row)) for hit in hits.hits))


def filter_rows(corpus: Corpus, where: str, contains: str) -> np.ndarray:
    """Return which texts the filters let through, (n,) bool."""
    allowed = np.ones(len(corpus), dtype=bool)
    if where.strip():
        allowed &= select(where, FilterColumns(corpus))
    if contains.strip():
        allowed &= _contains(corpus.column("text"), contains.strip())
    return allowed


def score_rows(
    model: ConditionalScorer, corpus: Corpus, query: str, *conditions: str | None, progress: Progress | None = None
) -> np.ndarray:
    """Score every text of a corpus against a checked query by its stored vectors, which are read once: (m, n) cosines.

    The m conditions are checked texts, for a `SeparableEncoder`; None, which is also taken where there are none, scores
    without a condition. `progress` is told (texts scored, n), and may raise to stop.
    """
    import torch

    projections = [projection(model, condition) for condition in conditions or (None,)]
    found = np.empty((len(projections), len(corpus)), dtype=np.float32)
    wanted = torch.from_numpy(model.encode_sentences([query]))
    targets = [project(wanted / wanted.norm(), wanted.norm()[None])[0] for project in projections]
    targets = [target / target.norm().clamp(min=1e-12) for target in targets]
    for start, vectors, norms in corpus.blocks():
        block = _to_tensors(vectors, norms)
        for scores, project, target in zip(found, projections, targets, strict=True):
            rows = project(*block)
            cosines = (rows @ target).div_(rows.norm(dim=1).clamp_(min=1e-12)).clamp_(-1, 1)
            scores[start : start + len(norms)] = cosines.numpy()
        if progress:
            progress(start + len(norms), len(corpus))
    return found


def embed_rows(
    model: ConditionalScorer, corpus: Corpus, condition: str, *, progress: Progress | None = None
) -> np.ndarray:
    """Return the vectors of a corpus under a condition, of length one: (n, r) float32.

    A separable method projects the stored vectors; any other reads every text again.
    """
    if not model.separable:
        texts = [row["text"] for row in corpus.rows(range(len(corpus)))]
        found = model.encode(texts, [condition] * len(texts), progress=progress)
        return found / np.maximum(np.linalg.norm(found, axis=1, keepdims=True), 1e-12)
    import torch

    project = projection(model, condition)
    parts = [
        torch.nn.functional.normalize(project(*_to_tensors(vectors, norms)), dim=1).numpy()
        for _, vectors, norms in corpus.blocks()
    ]
    return np.concatenate(parts)


def projection(model: ConditionalScorer, condition: str | None) -> Callable[[Tensor, Tensor], Tensor]:
    """Return what takes stored vectors and their lengths to vectors under a condition; None leaves them as they are."""
    if condition is None:
        return lambda units, _: units
    import torch

    encoded = torch.from_numpy(model.encode_conditions([condition]))
    device = model.backbone.device
    project = model.projection(encoded.to(device))

    @torch.no_grad()
    def run(units: Tensor, lengths: Tensor) -> Tensor:
        return project(units.to(device), lengths.to(device)).float().cpu()

    return run


def _to_tensors(vectors: np.ndarray, norms: np.ndarray) -> tuple[Tensor, Tensor]:
    import torch

    # Torch warns of arrays that cannot be written, as those that come straight from disk.
    own = [values if values.flags.writeable else np.array(values) for values in (vectors, norms)]
    return torch.from_numpy(own[0]).float(), torch.from_numpy(own[1])


def own_share(size: int) -> float:
    """Return the share in % of the pairs of a corpus of so many texts that a match has to be closer than."""
    return 100 * max(0.0, 1 - max(CLOSEST, CLOSEST_TEXTS / size))


def own_mark(
    model: ConditionalScorer, corpus: Corpus, condition: str | None, progress: Progress | None = None
) -> float:
    """Return the score below which `own_share` of the pairs of a corpus stay, or `PLAIN_PERCENTILE` of plain ones.

    Pairs of `SAMPLED_TEXTS` different texts, the same at each call; minus infinity where there are too few. A method
    that reads them tells `progress`.
    """
    draw = np.random.default_rng(0)
    places = np.sort(draw.choice(len(corpus), min(len(corpus), SAMPLED_TEXTS), replace=False))
    found: dict[str, tuple[int, str]] = {}
    for place, row in zip(places.tolist(), corpus.rows(places), strict=True):
        found.setdefault(fold(row["text"]), (place, row["text"]))
    share = PLAIN_PERCENTILE if condition is None else own_share(len(corpus))
    if len(found) < 2 or not share:
        return -np.inf
    places, texts = map(np.array, zip(*found.values(), strict=True))
    first, second = np.triu_indices(len(texts), 1)
    if condition is None or model.separable:
        rows = projection(model, condition)(*_to_tensors(*corpus.vectors(places)))
        units = (rows / rows.norm(dim=1, keepdim=True).clamp(min=1e-12)).numpy()
        scores = np.einsum("ij,ij->i", units[first], units[second])
    else:
        if not model.encodes:
            first, second = draw.choice([first, second], min(READ_PAIRS, len(first)), axis=1, replace=False)
        scores = model.score(texts[first].tolist(), texts[second].tolist(), condition, progress=progress)
    return float(np.percentile(scores, share))


def _reads_vectors(corpus: Corpus, model: ConditionalScorer) -> ConditionalScorer:
    """Return the model of the stored vectors, if `model` can re-rank what it finds."""
    if model.separable or not model.conditional:
        corpus.identity.check(model)
    return corpus.model


def _rerank(
    model: ConditionalScorer, corpus: Corpus, query: str, condition: str, nearest: np.ndarray, progress: Progress | None
) -> np.ndarray:
    """Score the texts nearest without the condition, by their places; all others get -inf."""
    texts = [row["text"] for row in corpus.rows(nearest.tolist())]
    scores = np.full(len(corpus), -np.inf, dtype=np.float32)
    scores[nearest] = model.score([query] * len(texts), texts, condition, progress=progress)
    return scores


def _told(model: ConditionalScorer, texts: list[str], condition: str | None) -> list[float | None]:
    """Return whether each text tells what the condition asks for; None without one, and far down a long list."""
    read = [] if condition is None else texts[: 1 + READ_FOR_TELLING]
    found = model.applies(read, condition)[:, 0].tolist() if read and condition is not None else []
    return found + [None] * (len(texts) - len(found))


def _top(scores: np.ndarray, count: int) -> np.ndarray:
    """Return the places of the highest scores, highest first; of equal ones, the first."""
    if count == 0:
        return np.zeros(0, dtype=np.int64)
    worst = np.partition(scores, len(scores) - count)[len(scores) - count]
    above, equal = np.flatnonzero(scores > worst), np.flatnonzero(scores == worst)
    chosen = np.concatenate([above, equal[: count - len(above)]])
    return chosen[np.lexsort((chosen, -scores[chosen]))]


def _different(
    corpus: Corpus, scores: np.ndarray, k: int, read: int
) -> tuple[np.ndarray, list[dict[str, Any]], list[list[int]]]:
    """Return the places of the k best different texts, their rows, and the rows of the copies of each."""
    wanted = k
    while True:
        places = _top(scores, min(wanted, read))
        groups: dict[str, list[tuple[int, dict[str, Any]]]] = {}
        for place, row in zip(places.tolist(), corpus.rows(places.tolist()), strict=True):
            groups.setdefault(fold(row["text"]), []).append((place, row))
        if len(groups) > k or wanted >= min(read, MOST_COPIES * k):  # one more, so that the last has all its copies
            break
        wanted *= 2
    found = list(groups.values())[:k]
    copies = [[row["row"] for _, row in same[1:]] for same in found]
    return np.array([same[0][0] for same in found], dtype=np.int64), [same[0][1] for same in found], copies


def _words(text: str) -> set[str]:
    return {fold(word.text) for word in split_words(text) if any(map(str.isalnum, word.text))}


def _contains(texts: np.ndarray, wanted: str) -> np.ndarray:
    if not (len(wanted) > 2 and wanted.startswith("/") and wanted.endswith("/")):
        folded = wanted.casefold()
        return np.array([folded in text.casefold() for text in texts])
    end = monotonic() + REGEX_SECONDS
    try:
        pattern = regex.compile(wanted[1:-1], regex.IGNORECASE)
        return np.array([bool(pattern.search(text, timeout=max(1e-3, end - monotonic()))) for text in texts])
    except regex.error as error:
        raise DataError(f"{wanted} is not a valid regular expression: {error}. Without slashes it is text.") from error
    except TimeoutError as error:
        raise DataError(f"{wanted} takes too long on these texts. Simplify it.") from error


def _notes(corpus: Corpus, where: str, searched: int, read: int, unknown: Sequence[str]) -> tuple[str, ...]:
    notes = []
    if unknown:
        notes.append(f"The model cannot read {', '.join(map(repr, unknown[:3]))} in the query: it counts as blank.")
    if not searched:
        why = explain_nothing(where, FilterColumns(corpus))
        notes.append(f"The filters let none of the {len(corpus):,} texts through.{why}")
    if read < searched:
        notes.append(
            f"This model reads each text together with the condition: it read the {read:,} of {searched:,} texts that "
            "are nearest without the condition."
        )
    return tuple(notes)
