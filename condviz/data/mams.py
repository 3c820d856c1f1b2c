"""MAMS: sentences of restaurant reviews with at least two aspects that differ in polarity, as families of one scene.

The polarities are in order: negative, neutral, positive. So equal ones are rated 5, neighbours 3, opposites 1.
The category "miscellaneous" is left out: it is no question that one could ask.

Source: Jiang et al. 2019, EMNLP-IJCNLP, "A Challenge Dataset and Effective Models for Aspect-Based Sentiment Analysis";
https://github.com/siat-nlp/MAMS-for-ABSA, ACSA part, Apache-2.0.
"""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from pathlib import Path

from condviz.data.corpus import Corpus
from condviz.data.families import Aspect, Family, Scene, from_families, wordings
from condviz.errors import DataError

FILES = {"train": "train.xml", "dev": "val.xml", "test": "test.xml"}
_ADVICE = (
    "Set CONDVIZ_DATA to the folder above, get the file from github.com/siat-nlp/MAMS-for-ABSA, or take another part."
)
POLARITIES = ("negative", "neutral", "positive")
LEFT_OUT = "miscellaneous"


def aspects() -> dict[str, Aspect]:
    """Return the aspects, with our wordings."""
    return {name: Aspect(name, "ordinal", phrasings, POLARITIES) for name, phrasings in wordings("mams").items()}


def load(folder: Path, split: str) -> tuple[Family, ...]:
    """Read one split of the release; a family is one sentence. A DataError names the sentence that cannot be used."""
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
        tags = _aspects(element, f"{path}, sentence {number}")
        if tags:
            scene = Scene("base", text, tags)
            families.append(Family(f"mams-{split}-{number:04}", "restaurant reviews", (scene,)))
    return tuple(families)


def _aspects(element: ElementTree.Element, place: str) -> dict[str, str]:
    found, allowed = {}, wordings("mams")
    for entry in element.iter("aspectCategory"):
        category, polarity = entry.get("category", ""), entry.get("polarity", "")
        if category == LEFT_OUT:
            continue
        if category not in allowed:
            raise DataError(f"{place}: {category[:40]!r} is not a category. Allowed: {', '.join(allowed)}, {LEFT_OUT}.")
        if polarity not in POLARITIES:
            raise DataError(f"{place}: {polarity[:40]!r} is not a polarity. Allowed are {', '.join(POLARITIES)}.")
        found[category] = polarity
    return found


CORPUS = Corpus(
    name="mams",
    title="MAMS: sentences of restaurant reviews, polarities",
    licence="Apache-2.0",
    source="github.com/siat-nlp/MAMS-for-ABSA, MAMS-ACSA",
    attribution="MAMS by Jiang, Chen, Xu, Ao and Yang (EMNLP-IJCNLP 2019), Apache-2.0, changed: paired and rated",
    files=tuple(FILES.values()),
    # Sentences rarely share two aspects, so many partners are tried.
    load=lambda folder, part, _: from_families(load(folder, part), aspects(), cross=12),
    folder="mams",
)
