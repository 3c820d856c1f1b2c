"""Conditions that mean the same, whatever their wording: what is asked, so that few rows of each wording make many."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from condviz.data.texts import fold

if TYPE_CHECKING:
    from condviz.methods.base import ConditionalScorer

APART = 0.35
"""Mean cosine distance of two groups of wordings from which they count as two questions: "the place" and "the location"
are nearer under every shipped encoder, "the mood" and "the weather" are not."""
MOST = 1_000
"""Wordings that are compared, the most frequent ones; others stand for themselves."""


def group_conditions(model: ConditionalScorer, conditions: Sequence[str], *, apart: float = APART) -> dict[str, str]:
    """Group the wordings of conditions by the model's embeddings of them.

    Args:
        model: Any with vectors; those of conditions where it has such, else of sentences.
        conditions: One per row, as they are worded.
        apart: Cosine distance, 0 to 2, from which two groups stay apart (average linkage).

    Returns:
        Each condition -> the most frequent wording of its group. A dictionary to change, and to pass to `find_errors`.

    Raises:
        ConfigError: If the model has no vectors.
    """
    from scipy.cluster.hierarchy import fcluster, linkage

    model.check_able("encodes")
    counts = Counter(fold(condition) for condition in conditions)
    worded = {fold(condition): condition for condition in reversed(conditions)}
    common = [folded for folded, _ in counts.most_common(MOST)]
    named = dict(worded)
    texts = [worded[folded] for folded in common]
    own = model.separable and model.conditional
    vectors = np.asarray(model.encode_conditions(texts) if own else model.encode_sentences(texts), dtype=np.float64)
    pointing = np.flatnonzero(np.linalg.norm(vectors, axis=1) > 0)
    if len(pointing) > 1:
        groups = fcluster(linkage(vectors[pointing], "average", "cosine"), apart, "distance")
        # The first of each group is the most frequent one.
        _, first = np.unique(groups, return_index=True)
        named |= {common[i]: texts[pointing[first[group - 1]]] for i, group in zip(pointing, groups, strict=True)}
    return {condition: named[fold(condition)] for condition in conditions}
