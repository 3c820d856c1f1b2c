"""The texts that Search searches, those that ship or uploaded ones, what models do with them, and what they find."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any, TypeVar

from condviz.analysis.answers import Hits
from condviz.analysis.layout import part
from condviz.analysis.search import RERANKED, search
from condviz.analysis.search import add_words as add_hit_words
from condviz.errors import DataError
from condviz.spec import given_options, write_options
from condviz.types import Progress, Result
from condviz.ui import export
from condviz.ui.imports import Reading
from condviz.ui.state import write_link

if TYPE_CHECKING:
    import pandas as pd

MAX_UPLOADED_TEXTS = 5_000
TIMED = 16
"""Texts of a file that are encoded to estimate how long all of them take."""
SCENES = "scenes"
HITS = 5
"""In each column, unless a visitor wants others."""
OWN_STORE = "my.store"
"""What the exported script calls a store of uploaded texts."""
FILTERS = ("contains", "where")
"""Options of `search` in the form."""
Found = TypeVar("Found", bound=Result)


@dataclass
class Texts:
    """Uploaded texts, and the corpora of their vectors by the weights of the model, once they are needed."""

    name: str
    texts: list[str]
    columns: dict[str, list[Any]]
    corpora: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Searches(Result):
    """One query under several conditions.

    Attributes:
        corpus: Key of the corpus.
        results: One for each condition; a single one without a condition where there is none.
        k: How many hits were asked for; filters may let fewer through.
    """

    corpus: str
    results: tuple[Hits, ...]
    k: int

    @property
    def link(self) -> str:
        """The link that repeats the searches; uploaded texts are not part of it."""
        result, own = self.results[0], self.corpus != SCENES
        conditions = [("c", item.condition or "") for item in self.results]
        asked = [("m", result.model.name), *write_options(search, {name: getattr(result, name) for name in FILTERS})]
        hits = [("k", str(self.k) if self.k != HITS else ""), ("in", "own texts" if own else "")]
        return write_link("search", [("q", result.query), *conditions, *asked, *hits])

    def script(self, vectors_of: str) -> str:
        """Return a script that searches the same texts under each of the conditions."""
        result, own = self.results[0], self.corpus != SCENES
        asked = {"k": self.k, "where": result.where, "contains": result.contains, "words": bool(result.hits[:1])}
        options = {"model": result.model.name, **given_options(search, asked)}
        call = [("store", OWN_STORE if own else SCENES), ("query", result.query), *options.items()]
        searched = export.python_call("search", call, each=("condition", [item.condition for item in self.results]))
        build = f"# Store the texts first: condviz store build YOUR_FILE --out {OWN_STORE} --model {vectors_of}\n"
        return build + searched if own else searched

    def to_dict(self) -> dict[str, Any]:
        return {"searches": [result.to_dict() for result in self.results]}

    def to_frame(self) -> pd.DataFrame:
        import pandas as pd

        frames = [result.to_frame().assign(condition=result.condition or "") for result in self.results]
        return pd.concat(frames, ignore_index=True)


def opened(models: Sequence[Any], texts: str | Texts, *, progress: Progress | None = None) -> Any:  # noqa: ANN401
    """Return the corpus of some texts with the vectors of the last model, which are computed once."""
    from condviz.store.corpus import encode_corpus
    from condviz.store.disk import open_corpus

    model = models[-1]
    if not isinstance(texts, Texts):
        return open_corpus(texts, model, progress=progress)
    if (key := model.weights_hash) not in texts.corpora:
        own = {"name": "your texts", "progress": progress}
        texts.corpora[key] = encode_corpus(model, texts.texts, texts.columns, **own)
    return texts.corpora[key]


def search_all(
    models: Sequence[Any], texts: str | Texts, query: str, conditions: Sequence[str], options: dict, *,
    progress: Progress | None = None,
) -> tuple[Hits, ...]:  # fmt: skip
    """Search under each condition with the first model; the last one's vectors are searched."""
    corpus, model, count = opened(models, texts), models[0], len(conditions)
    told = [None if model.separable else part(progress, at / count, (at + 1) / count) for at in range(count)]
    return tuple(
        search(corpus, query, condition or None, model=model, progress=stage, **options)
        for condition, stage in zip(conditions, told, strict=True)  # a scan of so few vectors takes no time
    )


def measure_seconds(models: Sequence[Any], texts: Sequence[str], query: str, conditions: Sequence[str]) -> float:
    """Return about how many seconds a search of the texts takes, judged by a few of them."""
    few, reader = list(texts[:TIMED]), models[0]
    start = monotonic()
    models[-1].encode_sentences(few)
    seconds = (monotonic() - start) * len(texts) / len(few)
    for condition in () if reader.separable else conditions:
        start = monotonic()
        reader.score([query] * len(few), few, [condition] * len(few))
        seconds += (monotonic() - start) * min(len(texts), RERANKED) / len(few)
    return seconds


def add_words(models: Sequence[Any], results: Sequence[Hits], *, progress: Progress | None = None) -> tuple[Hits, ...]:
    """Find the words of every hit; without a condition by the model whose vectors were searched."""
    return tuple(add_hit_words(models[0 if item.condition else -1], item, progress=progress) for item in results)


def of_corpus(
    models: Sequence[Any], function: Callable[..., Found], texts: str | Texts, conditions: Sequence[str],
    options: dict, *, progress: Progress | None = None,
) -> Found:  # fmt: skip
    """Call a function of a corpus and conditions with the first model."""
    return function(opened(models, texts), *conditions, model=models[0], progress=progress, **options)


def read_texts(reading: Reading) -> tuple[list[str], dict[str, list[Any]], tuple[str, ...]]:
    """Return the texts of a file, its columns, and what is to be said of them; raises DataError."""
    from condviz.store.corpus import read_source

    source = read_source(Path(reading.path), reading.column("text"), **reading.form)
    if source.total > MAX_UPLOADED_TEXTS:
        raise DataError(
            f"The file has {source.total:,} texts; at most {MAX_UPLOADED_TEXTS:,} are searched here. For more: "
            "python -m condviz store build FILE --out my.store"
        )
    rows = list(source.rows())
    columns = {name: [row.cells[name] for row in rows] for name in source.columns}
    return [row.text for row in rows], columns, source.report.notes
