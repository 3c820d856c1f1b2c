"""CEBaB: restaurant reviews and edits of one aspect each, as families of scenes.

Only two kinds of labels were given by people looking at the text: those of an original, and that of the edited aspect
of an edit. The three other labels of an edit are copies of its original's, wrong wherever the edit changed more than
its own aspect. So there are two readings:

    labels of people only    an edit has one aspect; only two originals can be compared under two aspects
    with checked copies      an edit keeps a copied label if a clause that tells it stands in both texts, word for word,
                             and what changed tells nothing about this aspect, nor about everything at once

Majority labels are used, never the goal an editor was given. "unknown" and "no majority" tell nothing. A text called
positive for its noise although it says loud or noisy has no label for noise: a quarter of them are praise of a lively
place, and wordings that ask how loud it is would be answered wrongly.

Source: Abraham et al. 2022, arXiv:2205.14140; https://github.com/CEBaBing/CEBaB, release v1.1, CC BY 4.0.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path

from condviz.data.corpus import Corpus, Material, Password, read_release
from condviz.data.families import Aspect, Family, Scene, from_families, wordings
from condviz.errors import DataError

FILE = "cebab.csv"
VALUES = ("negative", "positive")
_NOTHING = {"", "unknown", "no majority"}
NAMES = ("food", "service", "ambiance", "noise")
_LOUD = re.compile(r"\b(loud|noisy)", re.IGNORECASE)
_WORD = re.compile(r"[a-z]+")
_STOP = re.compile(r"[.,;:!?()\n]|\bbut\b|-{2,}| - ")
_NOISE_STEMS = "nois loud quiet hear convers talk music sound peaceful"
_STEMS = {
    "food": "food meal dish eat ate tast delicious flavo cook kitchen chef menu steak fish seafood burger pizza pasta "
    "salad dessert soup sauce meat chicken lobster shrimp sushi bread appeti entree portion bland overcook undercook "
    "salt dry cold lunch dinner brunch breakfast wine drink cuisine yum tender fresh stale wait",
    "service": "serv wait staff host hostess manager bartender rude friend attent slow prompt courte polite inattent "
    "reserv seat treat helpful",
    "ambiance": "ambian ambien atmosph decor setting cozy cosy romantic view vibe light interior beautiful charm "
    f"environment room crowd dirty clean elegant intimate table place {_NOISE_STEMS}",
    "noise": _NOISE_STEMS,
}
"""Beginnings of words that may tell an aspect: generous, since a word too many costs a pair and one too few a label."""
_SWEEPING = (
    "all both everything every nothing neither nor overall experience evening night visit except however although "
    "though too also as well either same"
)


def aspects() -> dict[str, Aspect]:
    """Return the aspects, with our wordings."""
    return {name: Aspect(name, "categorical", wordings("cebab")[name], VALUES) for name in NAMES}


def load(folder: Path, split: str, *, copies: bool) -> tuple[Family, ...]:
    """Read one split; a family is an original with its edits, which keep `copies` of labels that pass the check.

    Texts that also occur in another split, and repeated ones, are left out. A DataError names the row.
    """
    groups: dict[str, list[Mapping[str, str]]] = defaultdict(list)
    rows = _rows(folder / FILE)
    taken = {"", *(_text(row) for row in rows if row["split"] != split and split == "train")}
    for row in rows:
        text = _text(row)
        if row["split"] == split and text not in taken:
            taken.add(text)
            groups[row["original_id"]].append(row)
    families = (_family(name, group, copies) for name, group in groups.items())
    return tuple(family for family in families if family.scenes)


def kept_aspects(original: str, edit: str, values: Mapping[str, str]) -> dict[str, str]:
    """Return the labels of an original that an edit surely keeps."""
    before, after = _clauses(original), _clauses(edit)
    words = set().union(*before - after) ^ set().union(*after - before)
    if words.intersection(_SWEEPING.split()):
        return {}
    kept, changed = set().union(*before & after), set().union(*before ^ after)
    return {name: value for name, value in values.items() if _tells(kept, name) and not _tells(changed, name)}


def _clauses(text: str) -> set[tuple[str, ...]]:
    return {tuple(words) for part in _STOP.split(text.casefold()) if (words := _WORD.findall(part))}


def _tells(words: Iterable[str], aspect: str) -> bool:
    return any(word.startswith(tuple(_STEMS[aspect].split())) for word in words)


def _text(row: Mapping[str, str]) -> str:
    return " ".join(row["description"].split())


def _rows(path: Path) -> Sequence[Mapping[str, str]]:
    needed = {"original_id", "is_original", "split", "edit_type", "description"}
    needed |= {f"{name}_aspect_majority" for name in NAMES}
    rows = read_release(path, needed, advice="Set CONDVIZ_DATA to the folder above.")
    for place, row in rows:
        for name in NAMES:
            label = row[f"{name}_aspect_majority"]
            if label not in _NOTHING and label.casefold() not in VALUES:
                raise DataError(
                    f"{place}, column {name}_aspect_majority: {label[:40]!r} is not a label. Allowed are "
                    "Positive, Negative, unknown, no majority and blank."
                )
        if row["is_original"] != "1" and row["edit_type"] not in NAMES:
            raise DataError(
                f"{place}, column edit_type: {row['edit_type'][:40]!r} is not an aspect. Allowed: {', '.join(NAMES)}."
            )
    return [row for _, row in rows]


def _labels(row: Mapping[str, str], names: Sequence[str]) -> dict[str, str]:
    labels = {}
    for name in names:
        label = row[f"{name}_aspect_majority"]
        if label not in _NOTHING and not (name == "noise" and label == "Positive" and _LOUD.search(row["description"])):
            labels[name] = label.casefold()
    return labels


def _family(name: str, rows: Sequence[Mapping[str, str]], copies: bool) -> Family:
    original = next((row for row in rows if row["is_original"] == "1"), None)
    values = _labels(original, NAMES) if original else {}
    scenes = []
    for row in rows:
        edited = row["edit_type"]
        labels = values if row is original else _labels(row, (edited,))
        if copies and original and row is not original:
            others = {aspect: value for aspect, value in values.items() if aspect != edited}
            labels |= kept_aspects(original["description"], row["description"], others)
        if labels:
            scenes.append(Scene("base" if row is original else "edit", _text(row), labels))
    return Family(f"cebab-{name}", "restaurant reviews", tuple(scenes))


def _load(folder: Path, part: str, _: Password, *, copies: bool) -> Material:
    # Reviews rarely share two aspects, so many partners are tried; a review and its edits are enough by themselves.
    return from_families(load(folder, part, copies=copies), aspects(), cross=0 if copies else 12)


_cebab = partial(
    Corpus,
    licence="CC BY 4.0",
    source="github.com/CEBaBing/CEBaB",
    attribution="CEBaB v1.1 by Abraham, D'Oosterlinck, Feder, Gat, Geiger, Potts, Reichart and Wu (arXiv:2205.14140), "
    "CC BY 4.0, changed: paired and rated",
    folder="cebab",
    files=(FILE,),
)
_people, _weak = "restaurant reviews, labels of people only", "a review and its edits, with checked copies of labels"
CORPUS = _cebab(name="cebab", title=f"CEBaB: {_people}", load=partial(_load, copies=False))
EDITS_CORPUS = _cebab(name="cebab-edits", title=f"CEBaB: {_weak} (weak)", load=partial(_load, copies=True))
