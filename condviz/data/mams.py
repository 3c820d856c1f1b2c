"""MAMS: sentences of restaurant reviews with at least two aspects that differ in polarity, as families of one scene.

The polarities are in order: negative, neutral, positive. So equal ones are rated 5, neighbours 3, opposites 1.
The category "miscellaneous" is left out: it is no question that one could ask.

Source: Jiang et al. 2019, EMNLP-IJCNLP, "A Challenge Dataset and Effective Models for Aspect-Based Sentiment Analysis";
https://github.com/siat-nlp/MAMS-for-ABSA, ACSA part, Apache-2.0.
"""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from collections.abc import Mapping
from pathlib import Path

from condviz.data.scenes import Aspect, Family, Scene
from condviz.errors import DataError

FILES = {"train": "train.xml", "dev": "val.xml", "test": "test.xml"}
_ADVICE = (
    "Set CONDVIZ_DATA to the folder above, get the file from github.com/siat-nlp/MAMS-for-ABSA, or take another part."
)
POLARITIES = ("negative", "neutral", "positive")
LEFT_OUT = "miscellaneous"

_PHRASINGS = {
    "food": (
        "the sentiment towards the food",
        "what is thought of the food",
        "how the food comes off",
        "Is the food praised?",
        "the judgement passed on the dishes",
        "attitude to the food",
        "whether the food pleases",
        "how the writer talks about the food",
        "the rating of the meal",
        "feelings about what was eaten",
    ),
    "service": (
        "the sentiment towards the service",
        "what is thought of the service",
        "how the service comes off",
        "Is the service praised?",
        "the judgement passed on the service",
        "attitude to the service",
        "whether the service pleases",
        "how the writer talks about the service",
        "the rating of the service",
        "feelings about being served",
    ),
    "staff": (
        "the sentiment towards the staff",
        "what is thought of the waiters and hosts",
        "how the staff come off",
        "Are the employees praised?",
        "the judgement passed on the people who work there",
        "attitude to the personnel",
        "whether the staff please",
        "how the writer talks about the staff",
        "the rating of the employees",
        "feelings about the waiter, host or manager",
    ),
    "price": (
        "the sentiment towards the price",
        "what is thought of the prices",
        "how the price comes off",
        "Is the price praised?",
        "the judgement passed on the cost",
        "attitude to what it costs",
        "whether the price pleases",
        "how the writer talks about the bill",
        "the rating of the prices",
        "feelings about the money spent",
    ),
    "menu": (
        "the sentiment towards the menu",
        "what is thought of the choice of dishes",
        "how the menu comes off",
        "Is the menu praised?",
        "the judgement passed on the selection",
        "attitude to the menu",
        "whether the menu pleases",
        "how the writer talks about what is on offer",
        "the rating of the menu",
        "feelings about the variety of dishes and drinks",
    ),
    "ambience": (
        "the sentiment towards the ambience",
        "what is thought of the atmosphere",
        "how the atmosphere comes off",
        "Is the ambience praised?",
        "the judgement passed on the decor and mood",
        "attitude to the atmosphere",
        "whether the surroundings please",
        "how the writer talks about the ambience",
        "the rating of the atmosphere",
        "feelings about decor, music and mood",
    ),
    "place": (
        "the sentiment towards the place",
        "what is thought of the restaurant itself",
        "how the place comes off",
        "Is the location or the room praised?",
        "the judgement passed on the premises",
        "attitude to the place",
        "whether the place pleases",
        "how the writer talks about the restaurant as a place",
        "the rating of the premises",
        "feelings about the rooms, the bar or the location",
    ),
}
ASPECTS: Mapping[str, Aspect] = {
    name: Aspect(name, "ordinal", phrasings, POLARITIES) for name, phrasings in _PHRASINGS.items()
}


def load(folder: Path, split: str) -> tuple[Family, ...]:
    """Read one split; a family is one sentence.

    Args:
        folder: Where the files are.
        split: "train", "dev" or "test", as in the release.

    Raises:
        DataError: If the file is missing, is damaged, or has another category or polarity; names the sentence.
    """
    path = folder / FILES[split]
    try:
        root = ElementTree.parse(path).getroot()
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}. {_ADVICE}") from error
    except ElementTree.ParseError as error:
        raise DataError(f"{path} is not whole XML ({error}). It may be cut off; restore the file.") from error
    families = []
    for number, element in enumerate(root.iter("sentence"), start=1):
        text = " ".join((element.findtext("text") or "").split())
        if not text:
            raise DataError(f"{path}, sentence {number} has no text. Restore the file.")
        aspects = _aspects(element, f"{path}, sentence {number}")
        if aspects:
            scene = Scene("base", text, aspects)
            families.append(Family(f"mams-{split}-{number:04}", "restaurant reviews", (scene,)))
    return tuple(families)


def _aspects(element: ElementTree.Element, place: str) -> dict[str, str]:
    aspects = {}
    for entry in element.iter("aspectCategory"):
        category, polarity = entry.get("category", ""), entry.get("polarity", "")
        if category == LEFT_OUT:
            continue
        if category not in ASPECTS:
            raise DataError(f"{place}: {category[:40]!r} is no category. Allowed are {', '.join(ASPECTS)}, {LEFT_OUT}.")
        if polarity not in POLARITIES:
            raise DataError(f"{place}: {polarity[:40]!r} is no polarity. Allowed are {', '.join(POLARITIES)}.")
        aspects[category] = polarity
    return aspects
