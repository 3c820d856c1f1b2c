"""Losses of the papers: pure functions of scores or vectors, and two modules that keep state.

C-STS batches: where a loss speaks of pairs, the rows come as b / 2 highs followed by their b / 2 lows. Row i and row
i + b / 2 are the same two sentences, under the condition that people rated more and less similar. Losses of pairs raise
DataError for an odd or empty batch. Every loss has shape (), in the precision of its scores.
Ratings from 1 to 5 become targets y = (rating - 1) / 4 in [0, 1]; a cosine in [-1, 1] is regressed on them as it is.
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from condviz.errors import DataError
from condviz.evaluation.kgc import TrueAnswers

MASKED_LOGIT = -1e4
"""Logit of a column that must not count as a negative; SimKGC's value, small enough to vanish and safe in fp16."""


def mean_squared_error(scores: Tensor, targets: Tensor) -> Tensor:
    """Return the mean of (score - target)^2.

    Args:
        scores: Shape (b,): cosines, or the cross-encoder's numbers.
        targets: Shape (b,), in [0, 1].

    Raises:
        DataError: If the batch is empty or the shapes differ.

    Source:
        C-STS (Deshpande et al. 2023); CSR uses it alone.
    """
    if scores.shape != targets.shape or scores.numel() == 0:
        raise DataError(
            f"Scores {tuple(scores.shape)} and targets {tuple(targets.shape)} must have one shape, not empty."
        )
    return F.mse_loss(scores, targets.to(scores.dtype))


def high_low_halves(scores: Tensor) -> tuple[Tensor, Tensor]:
    """Split the scores of a batch of pairs, (b,), into highs and lows, (b / 2,) each."""
    if scores.ndim != 1 or len(scores) == 0 or len(scores) % 2:
        raise DataError(
            f"A batch of pairs holds b / 2 highs and then b / 2 lows; a batch of shape {tuple(scores.shape)} cannot be "
            "halved. Group the rows by sentence pair and drop those without a partner."
        )
    high, low = scores.chunk(2)
    return high, low


def quadruplet(scores: Tensor, *, margin: float = 1.0) -> Tensor:
    """Return the mean of max(0, margin + d_high - d_low) with the distance d = 1 - score.

    Args:
        scores: Cosines, shape (b,): highs, then lows.
        margin: By how much the high one should be closer.

    Source:
        C-STS (Deshpande et al. 2023), objective "triplet" of princeton-nlp/c-sts; "triplet_mse" adds the squared error.
    """
    high, low = high_low_halves(scores)
    return F.relu(margin - high + low).mean()


def info_nce(scores: Tensor, *, temperature: float) -> Tensor:
    """Return the mean of -log(e^(p / t) / (e^(p / t) + e^(n / t))): one positive, one negative, of the same sentences.

    Args:
        scores: Cosines, shape (b,): p are the highs, n the lows. There are no negatives from other pairs.
        temperature: t; Hyper-CL uses 1.5 to 1.9.

    Source:
        Hyper-CL (Yoo et al. 2024), section 3.3; HYU-NLP/Hyper-CL c-sts, class InfoNCE.
    """
    high, low = high_low_halves(scores)
    # -log sigmoid((p - n) / t), in the form that does not overflow.
    return F.softplus((low - high) / temperature).mean()


def false_negative_mask(triples: Tensor, known: TrueAnswers, *, columns: Tensor | None = None) -> Tensor:
    """Mark which tails may serve as negatives of which (head, relation).

    Args:
        triples: Rows of the batch, shape (b, 3), int64; relations in [0, 2N), N and above are inverses.
        known: The train triples.
        columns: Triples that the tails of the columns come from, shape (c, 3); None for those of the batch itself,
            whose diagonal holds the positives and always counts.

    Returns:
        Shape (b, b) or (b, c), bool: False where the column's tail is the row's own, or is known to be right for it.

    Source:
        SimKGC, triplet_mask.py. Differs: that looks no further where it knows a single tail of a query, which matters
        only for triples outside the train set.
    """
    heads, relations, tails = triples.unsqueeze(1).unbind(-1)
    others = (triples if columns is None else columns)[:, 2].unsqueeze(0)
    keep = (tails != others) & ~known.contains(heads, relations, others)
    return keep | torch.eye(len(keep), dtype=torch.bool, device=keep.device) if columns is None else keep


def self_negative_mask(triples: Tensor, known: TrueAnswers) -> Tensor:
    """Mark which heads may serve as a negative tail of their own query: (b,) bool, False where that triple is known."""
    heads, relations, tails = triples.unbind(-1)
    return ~(known.contains(heads, relations, heads) | (heads == tails))


def in_batch_logits(
    queries: Tensor, tails: Tensor, *, temperature: float | Tensor, margin: float = 0.0, keep: Tensor | None = None
) -> Tensor:
    """Score every (head, relation) of a batch against every tail: (b, b).

    Args:
        queries: (head, relation) vectors, shape (b, d).
        tails: Vectors of the right tails, shape (b, d); row i belongs to query i.
        temperature: What the dot products are divided by, a positive number or shape ().
        margin: Taken off the positives (the diagonal) before the division; for training only.
        keep: Shape (b, b), bool, see `false_negative_mask`; the other columns get `MASKED_LOGIT`. None keeps all.

    Source:
        SimKGC (Wang et al. 2022), equation 4, and models.py, compute_logits.
    """
    logits = queries @ tails.T
    if margin:
        logits = logits - margin * torch.eye(len(logits), dtype=logits.dtype, device=logits.device)
    return _masked(logits / temperature, keep)


def self_negative_logits(
    queries: Tensor, heads: Tensor, *, temperature: float | Tensor, keep: Tensor | None = None
) -> Tensor:
    """Score every (head, relation) against its own head, which is hardly ever the tail: one more column, (b, 1).

    `heads` are vectors (b, d) of the encoder of tails; the other arguments as in `in_batch_logits`.
    """
    logits = (queries * heads).sum(1) / temperature
    return _masked(logits, keep).unsqueeze(1)


def pre_batch_logits(
    queries: Tensor, vectors: Tensor, *, temperature: float | Tensor, weight: float = 0.5, keep: Tensor | None = None
) -> Tensor:
    """Score every (head, relation) against the tails of earlier batches, `vectors` (c, d): more columns, (b, c).

    No gradient flows into old vectors, and their logits are multiplied by `weight`, which makes them count less (SimKGC
    takes 0.5). The other arguments as in `in_batch_logits`.
    """
    return _masked(queries @ vectors.detach().to(queries.dtype).T / temperature * weight, keep)


def _masked(logits: Tensor, keep: Tensor | None) -> Tensor:
    return logits if keep is None else logits.masked_fill(~keep.bool(), MASKED_LOGIT)


def symmetric_cross_entropy(logits: Tensor) -> Tensor:
    """Return the cross-entropy of the rows over all columns plus that of the columns of the first b x b block.

    Args:
        logits: Shape (b, b + extra); the positives are on the diagonal.

    Source:
        SimKGC, trainer.py. The papers print the first term only; all released code trains with both.
    """
    targets = torch.arange(len(logits), device=logits.device)
    return F.cross_entropy(logits, targets) + F.cross_entropy(logits[:, : len(logits)].T, targets)


class TailQueue(nn.Module):
    """The tails of the last batches, to serve as more negatives: a ring that starts with random unit vectors.

    Args:
        capacity: How many tails are kept, c; SimKGC keeps 2 batches for FB15k-237.
        dimension: d.
        seed: Decides the vectors at the start.

    Source:
        SimKGC (Wang et al. 2022), section 3.3, pre-batch negatives; models.py, pre_batch_vectors.
    """

    vectors: Tensor
    triples: Tensor
    next: Tensor

    def __init__(self, capacity: int, dimension: int, *, seed: int = 0) -> None:
        super().__init__()
        start = torch.randn(capacity, dimension, generator=torch.Generator().manual_seed(seed))
        self.register_buffer("vectors", F.normalize(start, dim=1))
        self.register_buffer("triples", torch.full((capacity, 3), -1))
        # Buffers, so that a resumed training goes on with the same tails.
        self.register_buffer("next", torch.tensor(0))

    @property
    def full(self) -> bool:
        """Whether every random vector has been replaced; only then can columns be masked."""
        return bool((self.triples[-1] >= 0).all())

    def add(self, tails: Tensor, triples: Tensor) -> None:
        """Replace the oldest entries by the tails of a batch, shape (b, d), and their triples, shape (b, 3); b <= c."""
        places = (self.next + torch.arange(len(tails), device=self.vectors.device)) % len(self.vectors)
        self.vectors[places] = tails.detach().to(self.vectors.dtype)
        self.triples[places] = triples.to(self.triples.device)
        self.next.add_(len(tails)).remainder_(len(self.vectors))


class LinkContrast(nn.Module):
    """The loss of knowledge-graph completion: every other tail of the batch is a negative, with a learnt temperature.

    Args:
        known: The train triples, which are never used as negatives.
        temperature: Where the temperature starts; it is learnt as log(1 / temperature).
        margin: Taken off the positives in training mode.
        queue: Tails of earlier batches as more negatives in training mode; None for none.
        queue_weight: What their logits are multiplied by.

    Source:
        SimKGC (Wang et al. 2022), section 3.3. The temperature, margin and weight are its defaults. Whether a query's
        own head is a negative is decided by passing `heads`: SimKGC and, by its text, Hyper-CL do; see spec D8.
    """

    def __init__(
        self,
        known: TrueAnswers,
        *,
        temperature: float = 0.05,
        margin: float = 0.02,
        queue: TailQueue | None = None,
        queue_weight: float = 0.5,
    ) -> None:
        super().__init__()
        self.known, self.margin, self.queue, self.queue_weight = known, margin, queue, queue_weight
        self.log_inverse_temperature = nn.Parameter(torch.tensor(-math.log(temperature)))

    @property
    def temperature(self) -> Tensor:
        """The temperature as it stands, shape (), with gradient."""
        return torch.exp(-self.log_inverse_temperature)

    def forward(self, queries: Tensor, tails: Tensor, *, triples: Tensor, heads: Tensor | None = None) -> Tensor:
        """Return the loss of one batch; in training mode the tails then join the queue.

        Args:
            queries: (head, relation) vectors, shape (b, d).
            tails: Shape (b, d).
            triples: What they stand for, shape (b, 3), int64, on the CPU; relations in [0, 2N).
            heads: Heads alone, shape (b, d), as self-negatives in training mode; None for none.
        """
        device, temperature = queries.device, self.temperature
        keep = false_negative_mask(triples, self.known).to(device)
        margin = self.margin if self.training else 0.0
        columns = [in_batch_logits(queries, tails, temperature=temperature, margin=margin, keep=keep)]
        if self.training and self.queue is not None:
            earlier = self.queue.triples.cpu()
            keep = false_negative_mask(triples, self.known, columns=earlier).to(device) if self.queue.full else None
            vectors = self.queue.vectors.clone()  # The queue changes before the backward pass reads them.
            options = {"temperature": temperature, "weight": self.queue_weight, "keep": keep}
            columns.append(pre_batch_logits(queries, vectors, **options))
            self.queue.add(tails, triples)
        if self.training and heads is not None:
            keep = self_negative_mask(triples, self.known).to(device)
            columns.append(self_negative_logits(queries, heads, temperature=temperature, keep=keep))
        return symmetric_cross_entropy(torch.cat(columns, dim=1))
