"""E2E: crowd-written descriptions of invented restaurants with their attributes, as families.

A family holds the texts of one meaning representation, so they say the same. Prices and ratings are in order, and each
is told in two vocabularies, words and figures, which are put on one scale of three steps: "cheap" is "less than £20",
"5 out of 5" is "high". An attribute that a text tells twice, with two values, is left out.

Source: Novikova et al. 2017, arXiv:1706.09254; cleaned by Dušek et al. 2019, INLG;
https://github.com/tuetschek/e2e-cleaning, CC BY-SA 4.0.
"""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import replace
from pathlib import Path

from condviz.data.corpus import Corpus, read_release
from condviz.data.families import Aspect, Family, Scene, from_families, wordings
from condviz.errors import DataError

FILES = {"train": "train-fixed.no-ol.csv", "dev": "devel-fixed.no-ol.csv", "test": "test-fixed.csv"}
_STEPS = ("low", "average", "high")
_ADVICE = (
    "Set CONDVIZ_DATA to the folder above, get the file from github.com/tuetschek/e2e-cleaning, or take another part."
)
_SLOT = re.compile(r"([\w ]+)\[([^\[\]]*)\]")
_NAMES = {
    "name": "name", "eatType": "kind", "food": "cuisine", "priceRange": "price", "rating": "rating",
    "customer rating": "rating", "area": "area", "familyFriendly": "families", "near": "neighbour",
}  # fmt: skip
_SCALES = {
    "price": {
        "cheap": "low", "less than £20": "low", "moderate": "average", "£20-25": "average", "high": "high",
        "more than £30": "high",
    },
    "rating": {
        "low": "low", "1 out of 5": "low", "average": "average", "3 out of 5": "average", "high": "high",
        "5 out of 5": "high",
    },
}  # fmt: skip
_CUISINES = {
    "asian": ("Chinese", "Japanese", "Indian"),
    "european": ("English", "French", "Italian"),
    "fast food": ("Fast food",),
}


def aspects() -> dict[str, Aspect]:
    """Return the aspects, with our wordings."""
    found = {name: Aspect(name, "categorical", phrasings) for name, phrasings in wordings("e2e").items()}
    found |= {name: replace(found[name], kind="ordinal", values=_STEPS) for name in _SCALES}
    return found | {"cuisine": replace(found["cuisine"], kind="nominal", groups=_CUISINES)}


def load(folder: Path, split: str) -> tuple[Family, ...]:
    """Read one split of the release; a family holds all texts of one meaning representation, each once.

    A DataError names the row whose attribute or step is not known.
    """
    path = folder / FILES[split]
    groups: dict[str, list[Scene]] = defaultdict(list)
    taken: set[str] = set()
    for place, row in read_release(path, ("mr", "ref"), advice=_ADVICE):
        if not row["mr"] or not row["ref"]:
            raise DataError(f"{place}: a cell is blank. The file is cut off; restore it.")
        text = " ".join(row["ref"].split())
        tags = _aspects(row["mr"], place)
        if tags and text not in taken:
            taken.add(text)
            groups[row["mr"]].append(Scene("base", text, tags))
    return tuple(
        Family(f"e2e-{split}-{number:04}", "restaurant descriptions", tuple(scenes))
        for number, scenes in enumerate(groups.values(), start=1)
    )


def _aspects(representation: str, place: str) -> dict[str, str]:
    values: dict[str, set[str]] = defaultdict(set)
    for slot, value in _SLOT.findall(representation):
        name = _NAMES.get(slot.strip())
        if name is None:
            raise DataError(f"{place}: {slot.strip()[:40]!r} is not an attribute. Known are {', '.join(_NAMES)}.")
        scale = _SCALES.get(name)
        if scale is not None and value not in scale:
            raise DataError(f"{place}: {value[:40]!r} is no {name}. Known are {', '.join(scale)}.")
        values[name].add(scale[value] if scale else value)
    return {name: found.pop() for name, found in values.items() if len(found) == 1}


CORPUS = Corpus(
    name="e2e",
    title="E2E, cleaned: descriptions of restaurants",
    licence="CC BY-SA 4.0",
    source="github.com/tuetschek/e2e-cleaning",
    attribution="E2E by Novikova, Dušek and Rieser (arXiv:1706.09254), cleaned by Dušek, Howcroft and Rieser "
    "(INLG 2019), CC BY-SA 4.0, changed: paired and rated; pass on under the same licence",
    files=tuple(FILES.values()),
    load=lambda folder, part, _: from_families(load(folder, part), aspects()),
    folder="e2e",
)
