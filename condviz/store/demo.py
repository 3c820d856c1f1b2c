"""The corpus that ships: sentences of the scenes on which no model was trained, encoded when it is first asked for."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from condviz.data.scenes import group_of, load_families
from condviz.models.registry import load
from condviz.store.build import DEFAULT_MODEL
from condviz.store.corpus import Corpus, encode_corpus
from condviz.store.disk import open_store
from condviz.types import Progress

if TYPE_CHECKING:
    from condviz.methods import ConditionalScorer

NAME = "scenes"
ASPECTS = ("number_of_people", "gender", "age_group", "time_of_day", "weather", "animal", "object_colour")
"""What its sentences tell: a search under a condition that a text does not tell puts that text anywhere."""
_corpora: WeakKeyDictionary[ConditionalScorer, Corpus] = WeakKeyDictionary()
_lock = Lock()


def open_corpus(
    store: str | Path | Corpus, model: ConditionalScorer | None = None, *, progress: Progress | None = None
) -> Corpus:
    """Open a store, or the corpus that ships.

    Args:
        store: Folder of a store, an open corpus, or `NAME`, unless a store has that name.
        model: Encodes the corpus that ships, if it encodes sentences apart; else `DEFAULT_MODEL` does.
        progress: Told (texts encoded, texts); may raise to stop.
    """
    if isinstance(store, Corpus):
        return store
    if str(store) != NAME or Path(store).is_dir():
        return open_store(store)
    if model is None or not model.separable:
        model = load(DEFAULT_MODEL)
    with _lock:  # a second visitor waits for the first one's vectors
        if model not in _corpora:
            texts, columns = _sentences()
            _corpora[model] = encode_corpus(model, texts, columns, name=NAME, progress=progress)
        return _corpora[model]


@cache
def _sentences() -> tuple[list[str], dict[str, list[str]]]:
    """Return sentences of families outside of training, each telling two of `ASPECTS` or more, and these as columns."""
    families = [family for family in load_families() if group_of(family) in ("test", "unseen_domains")]
    found = {
        scene.text: {"domain": family.domain, **{name: scene.aspects.get(name, "") for name in ASPECTS}}
        for family in families
        for scene in family.scenes[:3]
        if sum(name in scene.aspects for name in ASPECTS) >= 2
    }
    return list(found), {name: [row[name] for row in found.values()] for name in ("domain", *ASPECTS)}
