"""What the Search tab shows: searches side by side, and the link and the script that repeat them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from condviz.methods.catalog import CATALOG
from condviz.plots import search as plots
from condviz.types import Hit, Hits, Result
from condviz.ui import export
from condviz.ui.markup import render
from condviz.ui.state import pair_link, write_link

if TYPE_CHECKING:
    import pandas as pd

SCENES = "scenes"
HITS = 5
OWN_STORE = "my.store"
"""What the exported script calls a store of uploaded texts."""


@dataclass(frozen=True)
class Searches(Result):
    """One query under several conditions, as the page shows it.

    Attributes:
        corpus: Key of the corpus.
        results: One for each condition; a single one without a condition where there is none.
        k: How many hits were asked for; filters may let fewer through.
    """

    corpus: str
    results: tuple[Hits, ...]
    k: int

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON."""
        return {"searches": [result.to_dict() for result in self.results]}

    def to_frame(self) -> pd.DataFrame:
        """Return the hits of all conditions."""
        import pandas as pd

        return pd.concat(
            [result.to_frame().assign(condition=result.condition or "") for result in self.results], ignore_index=True
        )


def show(found: Searches, *, asked: bool = True) -> str:
    """Render the hits side by side; `asked` says whether a visitor asked for them."""
    first = found.results[0]
    drawn = {"headline": plots.headline(found.results), "columns": plots.columns(found.results, open_hit=_open_hit)}
    separable = CATALOG[first.model.method].separable
    return render(
        "search/result.html",
        link=link(found),
        own=found.corpus if found.corpus != SCENES else "",
        first=first,
        asked=asked,
        by_vectors=separable,
        **drawn,
    )


def link(found: Searches) -> str:
    """Return the link that repeats the searches."""
    result = found.results[0]
    conditions = [("c", item.condition or "") for item in found.results]
    return write_link(
        "search",
        [("q", result.query), *conditions, ("m", result.model.name), ("has", result.contains),
         ("where", result.where), ("k", str(found.k) if found.k != HITS else ""),
         ("in", "own texts" if found.corpus != SCENES else "")],
    )  # fmt: skip


def script(found: Searches, vectors_of: str) -> str:
    """Return a script that searches the same texts under each of the conditions."""
    result = found.results[0]
    own = found.corpus != SCENES
    arguments = [("store", OWN_STORE if own else SCENES), ("query", result.query), ("k", found.k),
                 ("model", result.model.name), ("where", result.where), ("contains", result.contains),
                 ("words", any(hit.words for hit in result.hits))]  # fmt: skip
    call = [(name, value) for name, value in arguments if value]
    searched = export.python_call("search", call, each=("condition", [item.condition for item in found.results]))
    build = f"# Store the texts first: condviz store build YOUR_FILE --out {OWN_STORE} --model {vectors_of}\n"
    return build + searched if own else searched


def _open_hit(hit: Hit, result: Hits) -> list[tuple[str, str]]:
    fields = (result.query, hit.text), [result.condition or ""], result.model.name
    tabs = [("Compare", "compare"), *([("Words", "words")] if result.condition else [])]
    return [(name, pair_link(tab, *fields)) for name, tab in tabs]
