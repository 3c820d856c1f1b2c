"""E2E: crowd-written descriptions of invented restaurants with their attributes, as families.

A family holds the texts of one meaning representation, so they say the same. Prices and ratings are in order, and each
is told in two vocabularies, words and figures, which are put on one scale of three steps: "cheap" is "less than £20",
"5 out of 5" is "high". An attribute that a text tells twice, with two values, is left out.

Source: Novikova et al. 2017, arXiv:1706.09254; cleaned by Dušek et al. 2019, INLG;
https://github.com/tuetschek/e2e-cleaning, CC BY-SA 4.0.
"""

from __future__ import annotations

import csv
import re
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path

from condviz.data.scenes import Aspect, Family, Scene
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

_PHRASINGS = {
    "name": (
        "the name of the place",
        "what it is called",
        "which restaurant it is",
        "Which place is described?",
        "the venue's name",
        "whether it is the same establishment",
        "the business that is named",
        "what name it goes by",
    ),
    "kind": (
        "the type of establishment",
        "what kind of venue it is",
        "Is it a pub, a restaurant or a coffee shop?",
        "the sort of place",
        "what type of business is described",
        "whether it is a pub or a restaurant",
        "the category of the venue",
        "pub, restaurant or coffee shop",
    ),
    "cuisine": (
        "the cuisine",
        "the kind of food served",
        "What food do they serve?",
        "the style of cooking on offer",
        "which country's food it is",
        "the nationality of the dishes",
        "what one can eat there",
        "the type of cooking",
    ),
    "price": (
        "the price range",
        "how expensive it is",
        "What does it cost to eat there?",
        "the price level of the venue",
        "whether it is cheap or dear",
        "how much one pays",
        "the cost of a meal",
        "the prices",
    ),
    "rating": (
        "the customer rating",
        "how guests rate it",
        "How many stars does it get?",
        "the score given by customers",
        "how well it is rated",
        "its rating out of five",
        "what customers think of it",
        "the reputation with guests",
    ),
    "area": (
        "the area",
        "the part of town",
        "Is it by the river or in the centre?",
        "which district it lies in",
        "riverside or city centre",
        "the quarter of the city",
        "whether it is central",
        "in which area it is found",
    ),
    "families": (
        "whether it suits families",
        "Are children welcome?",
        "how child-friendly it is",
        "whether you can bring the kids",
        "family-friendliness",
        "whether it is meant for families or adults",
        "suitability for children",
        "Is it a place for families?",
    ),
    "neighbour": (
        "what it is close to",
        "the landmark nearby",
        "What is it near?",
        "which business is next to it",
        "the neighbouring venue",
        "the place that it lies beside",
        "what one finds in the vicinity",
        "the nearest landmark",
    ),
}
_ORDINAL = {"price", "rating"}
ASPECTS: Mapping[str, Aspect] = {
    name: Aspect(
        name,
        "ordinal" if name in _ORDINAL else "nominal" if name == "cuisine" else "categorical",
        phrasings,
        _STEPS if name in _ORDINAL else (),
        _CUISINES if name == "cuisine" else {},
    )
    for name, phrasings in _PHRASINGS.items()
}


def load(folder: Path, split: str) -> tuple[Family, ...]:
    """Read one split; a family holds all texts of one meaning representation. Repeated texts are left out.

    Args:
        folder: Where the files are.
        split: "train", "dev" or "test", as in the release.

    Raises:
        DataError: If the file is missing, has other columns, or an attribute or step is not known; names the row.
    """
    path = folder / FILES[split]
    groups: dict[str, list[Scene]] = defaultdict(list)
    taken: set[str] = set()
    try:
        with path.open(encoding="utf-8", newline="") as file:
            reader = csv.DictReader(file, strict=True)
            missing = sorted({"mr", "ref"} - set(reader.fieldnames or ()))
            if missing:
                raise DataError(f"{path} has no column {', '.join(missing)}. Restore the file of the release.")
            for number, row in enumerate(reader, start=1):
                if not row["mr"] or not row["ref"]:
                    raise DataError(f"{path}, row {number}: a cell is blank. The file is cut off; restore it.")
                text = " ".join(row["ref"].split())
                aspects = _aspects(row["mr"], f"{path}, row {number}")
                if aspects and text not in taken:
                    taken.add(text)
                    groups[row["mr"]].append(Scene("base", text, aspects))
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}. {_ADVICE}") from error
    except (UnicodeDecodeError, csv.Error) as error:
        raise DataError(f"{path} is damaged: {error}. Restore the file.") from error
    return tuple(
        Family(f"e2e-{split}-{number:04}", "restaurant descriptions", tuple(scenes))
        for number, scenes in enumerate(groups.values(), start=1)
    )


def _aspects(representation: str, place: str) -> dict[str, str]:
    values: dict[str, set[str]] = defaultdict(set)
    for slot, value in _SLOT.findall(representation):
        name = _NAMES.get(slot.strip())
        if name is None:
            raise DataError(f"{place}: {slot.strip()[:40]!r} is no attribute. Known are {', '.join(_NAMES)}.")
        scale = _SCALES.get(name)
        if scale is not None and value not in scale:
            raise DataError(f"{place}: {value[:40]!r} is no {name}. Known are {', '.join(scale)}.")
        values[name].add(scale[value] if scale else value)
    return {name: found.pop() for name, found in values.items() if len(found) == 1}
