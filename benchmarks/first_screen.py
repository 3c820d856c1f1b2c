"""What pages show before any model has loaded: results and pictures, computed with the models that they open with.

Run it again whenever the default model, the best router, the model of the small graph, or the look of Map or Errors
changes: python -m benchmarks.first_screen
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable
from typing import Any
from weakref import ref

from condviz.analysis.compare import compare
from condviz.analysis.errors.findings import analyse, stored_study
from condviz.analysis.links import describe_entity
from condviz.analysis.maps import EmbeddingMap, build_map
from condviz.analysis.points import scene_points
from condviz.analysis.search import search
from condviz.analysis.words import read_words
from condviz.data.examples import load_examples
from condviz.data.files import write_text
from condviz.data.kg_formats import EVERYDAY
from condviz.evaluation.scoreboard import best_encoder, fast_encoder
from condviz.models import registry
from condviz.paths import ASSETS
from condviz.plots.errors import residuals
from condviz.plots.maps import colouring, plot_side
from condviz.plots.svg import to_svg
from condviz.types import ModelInfo, Result
from condviz.ui import corpora, links, words
from condviz.ui import search as searching
from condviz.ui.errors import view as errors
from condviz.ui.errors.desk import Choice, resamples_for
from condviz.ui.export import pack, unpack
from condviz.ui.map import view as maps
from condviz.ui.map.view import Form, Shown
from condviz.ui.markup import read_asset
from condviz.ui.pool import ModelPool

FEW = 500
"""Points of a picture that stands until plotly has started."""


def main() -> None:
    """Compute with the models that the pages open with, in float32, and store the results."""
    pool, examples = ModelPool(), {one.id: one for one in load_examples()}

    def load(name: str) -> Any:  # noqa: ANN401 - a loaded model
        return registry.load(name, precision="float32")

    infos = pool.infos()
    routers = [info for info in infos if words.was_taught(info)]
    leading, reading = ([load(one) for one in leads(found)] for found in (infos, routers))
    example = next(iter(examples.values()))
    texts = example.sentence1, example.sentence2, example.conditions
    _write("compare_screen", leading, lambda model: compare(model, *texts, words=True))
    query, conditions = searching.TRIES[0]

    def hits(model: Any) -> corpora.Searches:  # noqa: ANN401
        options = {"model": model, "k": corpora.HITS, "words": True}
        found = tuple(search(corpora.SCENES, query, condition, **options) for condition in conditions)
        return corpora.Searches(corpora.SCENES, found, corpora.HITS)

    _write("search_screen", leading, hits)
    drawn = {model.info.name: pack(build_map(model, scene_points())) for model in leading}
    _store("map_screen", {name: map_screen(unpack(EmbeddingMap, one)) for name, one in drawn.items()}, indent=None)
    example = examples[words.WORKS[0]]
    _write("words_screen", reading, lambda model: read_words(model, example.sentence1, example.conditions))
    _store("errors_screen", {"model": pool.default, **errors_screen(pool.default)}, indent=None)
    graph = load(registry.link_models(EVERYDAY)[0])
    _write("links_screen", [graph], lambda model: describe_entity(model, links.START))


def leads(infos: Iterable[ModelInfo]) -> list[str]:
    """Return the models that a view may start with, given those that suit it: the fast one and the best."""
    infos = list(infos)
    return list(dict.fromkeys((fast_encoder(infos), best_encoder(infos))))


def errors_screen(model: str) -> dict[str, str]:
    """Render what Errors shows first, by the stored scores of a model."""
    study = stored_study(model)
    found, choice = analyse(study, resamples=resamples_for(study)), Choice(first=model)
    still = residuals(found, study.first, FEW)
    return {**errors.parts(found, choice), "figure": errors.figure(found, choice), "still": still}


def map_screen(result: EmbeddingMap) -> dict[str, Any]:
    """Return what Map shows first, rounded, with its pictures: they take plotly a second to start."""
    shown, colours = Shown(ref(result), Form(result.model["name"]), result.colour), colouring(result, result.colour)
    figures = {side: plot_side(result, side, colours) for side in ("before", "after")}
    return {
        "map": pack(result),
        "colours": maps.colours(result),
        "figures": {side: figure.to_json() for side, figure in figures.items()},
        "stills": {side: to_svg(figure, f"{side} the condition") for side, figure in figures.items()},
        "head": maps.head(shown),
        "legend": maps.legend(result, colours, ""),
        "reading": maps.reading(result, None, None, ""),
    }


def stored_map(model: str) -> EmbeddingMap:
    """Read the map of the first screen as it is stored: rounded, which moves a label now and then."""
    return unpack(EmbeddingMap, read_asset("map_screen.json")[model]["map"])


def _write(name: str, models: Iterable[Any], result: Callable[[Any], Result]) -> None:
    _store(name, {model.info.name: pack(result(model)) for model in models})


def _store(name: str, content: Any, indent: int | None = 1) -> None:  # noqa: ANN401 - JSON
    path = ASSETS / f"{name}.json"
    write_text(path, json.dumps(content, ensure_ascii=False, indent=indent) + "\n")
    sys.stdout.write(f"{path}\n")


if __name__ == "__main__":
    main()
