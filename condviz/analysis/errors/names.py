"""Names that filters, the slice finder and rewrites take, each with a line of help. Loads nothing else."""

from __future__ import annotations

FEATURE_HELP = {
    "row": "number of the row in the source",
    "sentence1": "the first sentence",
    "sentence2": "the second sentence",
    "condition": "the condition",
    "gold": "rating by people, 1 (different) to 5 (same)",
    "seen": "the condition occurs in training",
    "length": "mean number of words of the two sentences",
    "length_gap": "difference of the two numbers of words",
    "overlap": "shared words divided by all words, 0 to 1",
    "negation": "one sentence has a negation, the other has none",
    "numerals": "a sentence has a number",
    "numerals_differ": "the two sentences have different numbers",
    "shared": "words in both sentences",
    "words": "words in either sentence",
}
"""Columns that say something about a row without any model."""

COLUMN_HELP = {
    **FEATURE_HELP,
    "score": "score of the model, in its own range",
    "fitted": "the rating that the score stands for, 1 to 5",
    "error": "fitted minus gold: positive means too similar",
    "right": "the two conditions of the item are in the right order",
    "margin": "fitted rating of the higher condition minus that of the lower one; negative means wrong",
    "score_b": "score of the second model",
    "fitted_b": "fitted of the second model",
    "error_b": "error of the second model",
    "right_b": "right of the second model",
    "margin_b": "margin of the second model",
}
"""All columns."""

FLAGS = frozenset({"seen", "negation", "numerals", "numerals_differ", "right", "right_b"})
"""Columns that are true, false or not known; they may stand alone in a filter."""

TARGETS: dict[str, str] = {
    "over": "finds pairs too similar",
    "under": "finds pairs too different",
    "large": "is far off, either way",
    "order": "orders the two conditions wrongly",
    "first": "is closer to people than the other model",
    "second": "is further from people than the other model",
}
"""What slices are looked for: those in which a model ..."""

RULES: dict[str, str] = {
    "number": "Replace numbers in the second sentence by the next one",
    "negate": "Negate the second sentence, or take its negation away",
    "word": "Replace a word",
    "swap_conditions": "Swap the two conditions of the item",
    "swap_sentences": "Swap the two sentences",
}
"""How the rows of a slice may be changed."""
