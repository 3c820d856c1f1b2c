"""Guess which column of somebody's table holds the sentences, the condition and the rating."""

from __future__ import annotations

import re

from condviz.data.tables import LABEL_COLUMN, LABEL_RANGE, TEXT_COLUMNS, TextTable

PAIR_COLUMNS = (*TEXT_COLUMNS, LABEL_COLUMN)
SAMPLED = 100
"""Rows that tell long texts from short ones."""
_NAMES = {
    "sentence1": r"(sent|text).*[ _-]?(1|a)$|first|premise|anchor|^a$|^s1$",
    "sentence2": r"(sent|text).*[ _-]?(2|b)$|second|hypothesis|^b$|^s2$",
    "condition": r"cond|aspect|criter|respect|question|^c$",
    "label": r"label|rating|score|similar|gold|^y$",
}
"""What columns are often called."""
_NUMBER = r"\s*(-?\d+([.,]\d+)?)?\s*"
_SCORES = re.compile(r"score_.", re.IGNORECASE)
"""What a model says of a row is no rating of it."""


def guess_pair_columns(table: TextTable) -> dict[str, str]:
    """Choose for each of `PAIR_COLUMNS` the column that is probably meant.

    First by name; then the longest texts are the sentences and the condition, and numbers from 1 to 5 the rating.

    Returns:
        Role -> column, "" where nothing fits; no column twice.
    """
    columns = [column for column in table.columns if column and not _SCORES.match(column)]
    found: dict[str, str] = {}
    for role in PAIR_COLUMNS:
        free = [column for column in columns if column not in found.values()]
        exact = [column for column in free if column.casefold() == role]
        found[role] = next(iter([*exact, *filter(lambda column: is_named(role, column), free)]), "")
    sample = table.to_frame().head(SAMPLED)
    left = [column for column in columns if column not in found.values()]
    numbers = [column for column in left if sample[column].str.fullmatch(_NUMBER).all()]
    lengths = {column: sample[column].str.len().mean() for column in left if column not in numbers}
    texts = sorted(lengths, key=lengths.__getitem__, reverse=True)
    missing = [role for role in TEXT_COLUMNS if not found[role]]
    sentences = [role for role in missing if role != "condition"]
    # The longer of two sentences is not always the first.
    texts[: len(sentences)] = sorted(texts[: len(sentences)], key=columns.index)
    found |= dict(zip([*sentences, *missing[len(sentences) :]], texts, strict=False))
    values = sample[numbers].map(lambda cell: float(cell.replace(",", ".").strip() or "nan"))
    rated = [column for column in numbers if (values[column].isna() | values[column].between(*LABEL_RANGE)).all()]
    found[LABEL_COLUMN] = found[LABEL_COLUMN] or next(iter(rated), "")
    return found


def is_named(role: str, column: str) -> bool:
    """Whether the name of a column says that it has this role."""
    return re.search(_NAMES[role], column, re.IGNORECASE) is not None
