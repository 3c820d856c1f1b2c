"""Does a text look like a condition at all? Nonsense, other languages and whole sentences get scores as well.

A logistic regression on the plain embedding of the text, fitted on the wordings of conditions written for this project
against words, values, statements, other languages and random letters. To fit it again, and to see its error rates:
python -m condviz.analysis.familiar
"""

from __future__ import annotations

import json
import random
import string
import sys
from collections.abc import Iterable, Sequence
from functools import cache

import numpy as np

from condviz.data.files import write_text
from condviz.models.registry import load
from condviz.paths import ASSETS

WEIGHTS = ASSETS / "familiar.json"
THRESHOLD = 0.2
"""Probability below which a text counts as no condition: one in thirty true conditions is flagged, see `main`."""


def unfamiliar(conditions: Sequence[str]) -> np.ndarray:
    """Return (m,) bool: True where a condition is unlike those that the shipped models were trained on.

    Args:
        conditions: m texts.
    """
    weights, bias = _weights()
    likely = 1 / (1 + np.exp(-(_embed(conditions) @ weights + bias)))
    known = np.array([_bare(text) in _wordings() for text in conditions])
    return (likely < THRESHOLD) & ~known


@cache
def _weights() -> tuple[np.ndarray, float]:
    content = json.loads(WEIGHTS.read_text(encoding="utf-8"))
    return np.array(content["weights"], dtype=np.float32), content["bias"]


@cache
def _wordings() -> frozenset[str]:
    return frozenset(_bare(text) for text, _ in _shared_wordings())


def _bare(text: str) -> str:
    words = text.casefold().strip(" .?!").split()
    return " ".join(words[1:] if words[:1] == ["the"] else words)


def _embed(texts: Sequence[str]) -> np.ndarray:
    vectors = load("minilm").encode_sentences(list(texts))
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


# ---- fitting ---------------------------------------------------------------------------------------------------------
Texts = list[tuple[str, str]]
"""Texts with the group that they belong to: a group is never split between fitting and testing."""


def _shared_wordings() -> Texts:
    aspects = json.loads((ASSETS / "scenes" / "aspects.json").read_text(encoding="utf-8"))
    library = json.loads((ASSETS / "conditions.json").read_text(encoding="utf-8"))
    wordings = [(text, name) for name, aspect in aspects.items() for text in aspect["phrasings"]]
    return [*wordings, *((row["condition"], "library") for row in library)]


def _rows(folder: str) -> Iterable[dict]:
    for path in sorted((ASSETS / folder).glob("*.jsonl")):
        with path.open(encoding="utf-8") as file:
            yield from map(json.loads, file)


def _examples() -> tuple[Texts, Texts, Texts]:
    """Return conditions to fit on, conditions of tables to test on, and texts that are none."""
    draw = random.Random(0)
    families = [row for row in _rows("scenes") if len(row.get("sentences", ())) > 1]
    families = draw.sample(families, min(len(families), 400))
    local = [
        (text, row["id"]) for row in families for found in row.get("local_phrasings", {}).values() for text in found
    ]
    asked = [(text, row["id"]) for row in _rows("tables") for aspect in row["aspects"] for text in aspect["wordings"]]
    held_out = {name for name in {name for _, name in asked} if draw.random() < 0.5} if asked else set()
    none = json.loads((ASSETS / "not_conditions.json").read_text(encoding="utf-8"))
    others = [(text, kind) for kind in ("other_languages", "words", "nonsense", "statements") for text in none[kind]]
    others += [(row["sentences"][0]["text"], "sentences") for row in families]
    values = {str(value).replace("_", " ") for row in families for value in row["sentences"][0]["aspects"].values()}
    others += [(value, "values") for value in sorted(values)]
    others += [(_letters(draw), "letters") for _ in range(200)]
    fitted = [*_shared_wordings(), *local, *(item for item in asked if item[1] not in held_out)]
    return fitted, [item for item in asked if item[1] in held_out], others


def _letters(draw: random.Random) -> str:
    return " ".join(
        "".join(draw.choices(string.ascii_lowercase, k=draw.randint(3, 8))) for _ in range(draw.randint(1, 3))
    )


def main() -> None:
    """Fit the weights, store them, and print how often it errs on texts that it has not seen."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.metrics import roc_auc_score
    from sklearn.model_selection import GroupKFold, cross_val_predict

    conditions, held_out, others = _examples()
    texts = [*conditions, *others]
    vectors = _embed([text for text, _ in texts])
    labels = np.arange(len(texts)) < len(conditions)
    # Wordings of one condition stay together; of the other texts, each stands alone.
    groups = np.unique([name for _, name in conditions] + [text for text, _ in others], return_inverse=True)[1]
    model = LogisticRegression(C=10, max_iter=2000, class_weight="balanced")
    found = cross_val_predict(model, vectors, labels, groups=groups, cv=GroupKFold(5), method="predict_proba")[:, 1]
    model.fit(vectors, labels)
    content = {"weights": model.coef_[0].round(5).tolist(), "bias": round(float(model.intercept_[0]), 5)}
    write_text(WEIGHTS, json.dumps(content) + "\n")
    flagged = model.predict_proba(_embed([text for text, _ in held_out]))[:, 1] < THRESHOLD
    write = sys.stdout.write
    write(f"{len(conditions):,} conditions, {len(others):,} other texts; by 5-fold cross-validation:\n")
    write(f"AUROC {roc_auc_score(labels, found):.3f}; conditions flagged {(found[labels] < THRESHOLD).mean():.1%}\n")
    write(f"{len(held_out):,} conditions of tables that were kept out: flagged {flagged.mean():.1%}\n")
    for kind in dict.fromkeys(name for _, name in others):
        chosen = np.array([name == kind for _, name in texts]) & ~labels
        write(f"{kind}: {chosen.sum():,}, flagged {(found[chosen] < THRESHOLD).mean():.1%}\n")


if __name__ == "__main__":
    main()
