"""What the Links tab and its endpoint ask of the core: graphs, suggestions, answers. The last few stay in memory."""

from __future__ import annotations

import hashlib
import shutil
import tempfile
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from condviz.errors import DataError
from condviz.types import ModelInfo
from condviz.ui.errors_service import Recent
from condviz.ui.links_answer import Record, build_answer
from condviz.ui.links_engine import EVERYDAY, TITLES, LinksEngine
from condviz.ui.links_examples import Example, find_examples
from condviz.ui.links_state import COUNTS, MAX_VALUE, LinksState
from condviz.ui.pool import ModelPool
from condviz.ui.service import Service, on_gpu

if TYPE_CHECKING:
    from condviz.data.kg import Graph
    from condviz.ui.links_predictor import LinkPredictor

TABLES = ("entities.tsv", "relations.tsv", "triples.tsv")
MAX_TABLE_BYTES = 5 * 2**20
MAX_ENTITIES, MAX_TRIPLES = 5_000, 100_000
"""Of an uploaded graph: what a visitor waits for, about a minute of encoding."""
UPLOADED = "your graph"
KEPT_UPLOADS, KEPT_PREDICTORS = 20, 4
"""A predictor of WN18RR takes 130 MB."""
SUGGESTIONS = 12
UNFIT = ("unconditional", "case")
"""Methods that do not read the relation, or whose projected vectors have another length than those of entities."""
PREFERRED = ("bi-encoder", "hyper-cl")
"""Models of sentences for graphs that no model was trained on."""

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Asked:
    """A checked question: the state, its graph, and the title of its model."""

    state: LinksState
    graph: Graph
    title: str


class LinksService:
    """Graphs, predictors and answers for all visitors; uploads are known by the hash of their content alone."""

    def __init__(self, service: Service, engine: LinksEngine, first: Record | None = None) -> None:
        """Join the models of the page and the core.

        Args:
            service: The models.
            engine: The calls into the core.
            first: A stored answer that the tab opens with, or None.
        """
        self.service, self.engine, self.first = service, engine, first
        self._uploads, self._predictors = Recent(KEPT_UPLOADS), Recent(KEPT_PREDICTORS)
        self._making = threading.Lock()
        self.pool = ModelPool(engine.models(), engine.load_model)
        # Names and texts go in, not models, as a ZeroGPU worker is forked; nor can it report progress.
        self._answer = on_gpu(self._answer_here)
        self._tells = self._answer == self._answer_here

    # ---- models and graphs

    def infos(self, graph: str = "") -> list[ModelInfo]:
        """Describe the models that put an entity under a relation into the space of entities.

        Args:
            graph: Name of a graph; models trained on its links come first, then other models of links, then those of
                sentences.
        """
        for name in self.engine.models():
            self.pool.add(name)  # one may have been trained since the start
        trained = [self.engine.describe(name) for name in self.pool.names]
        plain = [info for info in self.service.infos() if info.kind != "cross" and info.method not in UNFIT]
        return [*sorted(trained, key=lambda info: info.graph != graph), *plain]

    def choices(self, graph: str = "") -> list[tuple[str, str]]:
        """Give the models as (title, name), those for a graph first; arguments as in `infos`."""
        return [
            (f"{info.name if info.graph else info.title} ({_training(info)})", info.name) for info in self.infos(graph)
        ]

    def graphs(self) -> list[tuple[str, str]]:
        """Give (title, key) of the graphs on this machine."""
        return [(TITLES[name], name) for name in self.engine.graphs()]

    def graph(self, key: str) -> Graph:
        """Give a graph.

        Raises:
            DataError: If there is none of this key, or an upload is not kept any more.
        """
        if key in self.engine.graphs():
            return self.engine.load(key)
        found = self._uploads.get(key)
        if found is None:
            known = ", ".join(self.engine.graphs())
            raise DataError(
                f"The graph {key[:60]!r} is not here. Graphs on this machine: {known}. An uploaded graph stays for a "
                "while only: upload it again."
            )
        return found

    def upload(self, paths: Sequence[str]) -> tuple[str, str]:
        """Read the three tables of a graph; gives its key and a title.

        Raises:
            DataError: If a table is missing, too large or not usable; names the row.
        """
        found = {Path(path).name.lower(): Path(path) for path in paths}
        missing = [name for name in TABLES if name not in found]
        if missing:
            got = ", ".join(sorted(found)) or "nothing"
            raise DataError(f"{' and '.join(missing)} did not come. Choose {', '.join(TABLES)} together; came: {got}.")
        for name in TABLES:
            if found[name].stat().st_size > MAX_TABLE_BYTES:
                raise DataError(f"{name} is larger than {MAX_TABLE_BYTES // 2**20} MB. Take a part of the graph.")
        content = hashlib.sha256()
        with tempfile.TemporaryDirectory() as place:
            folder = Path(place) / UPLOADED
            folder.mkdir()
            for name in TABLES:
                shutil.copyfile(found[name], folder / name)
                content.update((folder / name).read_bytes())
            try:
                graph = self.engine.read(folder)
            except DataError as error:
                raise DataError(str(error).replace(f"{folder}/", "")) from error
        self._limit(graph)
        key = f"upload-{content.hexdigest()[:24]}"
        self._uploads.put(key, graph)
        return key, f"Your graph, {graph.num_entities:,} entities"

    def find(self, asked: Any) -> list[dict[str, str]]:  # noqa: ANN401 - from the browser
        """Suggest entities for what is being typed; nothing for anything that cannot be read."""
        asked = asked if isinstance(asked, dict) else {}
        try:
            graph = self.graph(str(asked.get("graph") or EVERYDAY))
        except DataError:
            return []
        found = graph.search(str(asked.get("text") or "")[:MAX_VALUE], limit=SUGGESTIONS)
        entities = [graph.entities[number] for number in found]
        return [{"id": e.id, "name": e.label, "label": e.label, "description": e.description} for e in entities]

    def examples(self, key: str) -> list[Example]:
        """Give questions worth asking of a graph."""
        return find_examples(key, self.graph(key))

    # ---- questions

    def start(self) -> LinksState:
        """Give the question that the tab starts with."""
        return LinksState.from_dict(self.first["state"]) if self.first else self.complete(LinksState())

    def complete(self, state: LinksState) -> LinksState:
        """Fill what a question leaves open: graph, model, and entity and relation of the first example."""
        graph = state.graph or EVERYDAY
        if graph not in self.engine.graphs() and self._uploads.get(graph) is None:
            return state.change(graph=graph)
        name = self.graph(graph).name
        known = state.model in {info.name for info in self.infos(name)}
        state = state.change(graph=graph, model=state.model if known else self._preferred(name))
        if state.entity and state.relation:
            return state
        example = self.examples(graph)[0]
        return state.change(entity=example.entity, relation=example.relation, inverse=example.inverse)

    def check(self, state: LinksState) -> Asked:
        """Check a question before anything is encoded; gives it with the ids of entity and relation.

        Raises:
            DataError: If graph, model, entity or relation do not exist, or the number of answers is not allowed.
        """
        graph = self.graph(state.graph)
        titles = {info.name: info.title for info in self.infos()}
        if state.model not in titles:
            raise DataError(
                f"No model that predicts links is called {state.model[:60]!r}. Models: {', '.join(titles)}."
            )
        if not state.relation:
            raise DataError("No relation is chosen. Choose one from the list.")
        if not isinstance(state.count, int) or not 1 <= state.count <= COUNTS[-1]:
            raise DataError(f"{state.count!r:.20} answers cannot be given; from 1 to {COUNTS[-1]} can.")
        number = graph.find_relation(state.relation)
        inverse = state.inverse != (number >= graph.num_relations)
        relation = graph.relations[number % graph.num_relations].id
        entity = graph.entities[graph.find_entity(state.entity)].id
        return Asked(state.change(entity=entity, relation=relation, inverse=inverse), graph, titles[state.model])

    def ready(self, asked: Asked) -> bool:
        """Say whether an answer takes no loading and no encoding of the graph."""
        model = self._pool(asked.state.model).loaded(asked.state.model)
        found = None if model is None else self._predictors.get((asked.state.graph, model.info.revision))
        return found is not None and found.ready

    def answer(self, asked: Asked, progress: Progress | None = None) -> Record:
        """Answer a question.

        Args:
            asked: From `check`.
            progress: Told (done, total) while the entities of the graph are encoded; may raise to stop.

        Raises:
            CondvizError: If the model cannot be loaded or used.
        """
        return self._answer(asked.state, progress if self._tells else None)

    def _answer_here(self, state: LinksState, progress: Progress | None) -> Record:
        predictor = self._predictor(state).prepare(progress)
        title = TITLES.get(state.graph, UPLOADED.capitalize())
        return build_answer(predictor, state, title)

    def _predictor(self, state: LinksState) -> LinkPredictor:
        graph, model = self.graph(state.graph), self._pool(state.model).get(state.model)

        def make() -> LinkPredictor:
            return self.engine.predictor(graph, model, state.graph in TITLES)

        with self._making:  # two visitors at once must not encode the same graph twice
            return self._predictors.get((state.graph, model.info.revision), make)

    def _pool(self, name: str) -> ModelPool:
        return self.pool if name in self.pool.names else self.service.pool

    def _preferred(self, graph: str) -> str:
        infos = self.infos(graph)
        trained = [info.name for info in infos if info.graph == graph]
        names = [info.name for info in infos]
        chosen = [name for name in (*trained, *PREFERRED, *names) if name in names]
        return chosen[0] if chosen else ""

    def _limit(self, graph: Graph) -> None:
        number = len(graph.triples)
        if not number:
            raise DataError("triples.tsv has no rows, so the graph has no links to learn from or to mark. Add some.")
        if graph.num_entities > MAX_ENTITIES or number > MAX_TRIPLES:
            raise DataError(
                f"The graph has {graph.num_entities:,} entities and {number:,} triples; at most {MAX_ENTITIES:,} and "
                f"{MAX_TRIPLES:,} can be read here. Take a part of it, or use: python -m condviz links"
            )


def _training(info: ModelInfo) -> str:
    if info.graph:
        return f"trained on {TITLES.get(info.graph, info.graph).partition(' (')[0]}"
    return "trained on sentences" if info.trained else "not trained"
