"""Train a model to predict the links of a knowledge graph, and leave a checkpoint.

One device, one loop: a batch holds the answers that count as wrong for each other, so it is never divided.
"""

from __future__ import annotations

import platform
import time
from collections.abc import Iterator, Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from transformers import get_linear_schedule_with_warmup

from condviz.data.kg import Graph
from condviz.data.kg_formats import load_graph
from condviz.encoder.pretrained import choose_device, choose_precision, load_backbone
from condviz.errors import DataError, TrainingError
from condviz.evaluation.kgc import encode_queries, rank_queries, split_queries
from condviz.evaluation.kgc_cards import link_card
from condviz.evaluation.kgc_vectors import entity_texts, project, relation_texts, stored_vectors
from condviz.evaluation.ranking import RankingReport, TrueAnswers
from condviz.methods import METHODS, ConditionalEncoder
from condviz.models import checkpoints
from condviz.models.registry import CHECKPOINTS
from condviz.training.kgc_model import TripleEncoder, TripleHead
from condviz.training.kgc_recipes import LinkRecipe
from condviz.training.losses import LinkContrast, TailQueue
from condviz.training.runs import Report, shareable_path
from condviz.training.tuning import start_as_identity
from condviz.version import __version__

LOG_STEPS = 10


def train_links(
    recipe: LinkRecipe,
    out: str | Path | None = None,
    *,
    device: str = "auto",
    report: Report | None = None,
    folder: Path | None = None,
) -> Path:
    """Train a model.

    Args:
        recipe: What and how.
        out: Folder of the checkpoint; None takes the recipe's name in the folder of all checkpoints.
        device: "auto", "cpu", "cuda" or "mps".
        report: Told each record: "event" is "encode", "step", "evaluation" or "end"; may raise to stop.
        folder: Where vectors of entities are kept, see `condviz.evaluation.kgc_vectors.stored_vectors`.

    Returns:
        The checkpoint with the weights of the epoch that ranks the validation part best.

    Raises:
        DataError: If the graph is missing, or its train or validation part is empty.
        CheckpointError: If the encoder cannot be found, or `out` is something else.
        TrainingError: If the loss is no longer a number.
    """
    graph = load_graph(recipe.graph)
    for split in ("train", "valid"):
        if not len(graph.splits[split]):
            raise DataError(f"The {split} part of {graph.name} has no triples. Training needs train and valid.")
    torch.manual_seed(recipe.seed)
    chosen = choose_device(device)
    backbone = load_backbone(
        recipe.backbone, revision=recipe.revision, device=chosen, precision="float32", shared=False
    )
    method = METHODS[recipe.method](backbone, recipe.method_config()).to(chosen)
    if recipe.start == "identity":
        start_as_identity(method)
    run = LinkRun(recipe, graph, method, report=report, folder=folder)
    started = time.time()
    best = run.train()
    seconds = round(time.time() - started, 1)
    training = {
        "recipe": recipe.to_dict() | {"graph": shareable_path(recipe.graph)},
        "seed": recipe.seed,
        "data": [{"graph": graph.name, **{split: len(rows) for split, rows in graph.splits.items()}}],
        "seconds": seconds,
        "steps": run.steps,
        "best_step": best["step"],
        "device": chosen,
        "precision": str(run.dtype).removeprefix("torch."),
        "versions": {"condviz": __version__, "python": platform.python_version(), "torch": torch.__version__},
    }
    place = CHECKPOINTS / recipe.name if out is None else Path(out)
    options = {"training": training, "metrics": {"valid": best["metrics"]}, "dtype": getattr(torch, recipe.disk)}
    card = link_card(place.name, method.info, options["training"], options["metrics"], notice=graph.notice)
    saved = checkpoints.save(method.eval(), place, card=card, **options)
    run.tell({"event": "end", "step": run.steps, "seconds": seconds})
    return saved


class LinkRun:
    """One training under way.

    Args:
        recipe: How.
        graph: The graph; its train triples are used in both directions.
        method: What is trained, on its device.
        report, folder: As in `train_links`.
    """

    def __init__(
        self,
        recipe: LinkRecipe,
        graph: Graph,
        method: ConditionalEncoder,
        *,
        report: Report | None = None,
        folder: Path | None = None,
    ) -> None:
        self.recipe, self.graph, self.method = recipe, graph, method
        self.report, self.folder = report, folder
        self.device = method.backbone.device
        self.triples = torch.from_numpy(graph.directed("train"))
        self.texts = entity_texts(graph, method, neighbours=recipe.neighbours)
        self.stored = self._encode() if recipe.tuning == "frozen" else None
        self.model = self._model()
        self.loss = LinkContrast(
            TrueAnswers(graph.splits["train"], num_entities=graph.num_entities, num_relations=graph.num_relations),
            temperature=recipe.temperature,
            margin=recipe.margin,
            queue=self._queue(),
            queue_weight=recipe.pre_batch_weight,
        ).to(self.device)
        dtype = choose_precision(recipe.precision, self.device.type)
        self.dtype = dtype if dtype == torch.bfloat16 else torch.float32  # float16 would need a scaled loss
        self.batches = len(list(self._order()))
        self.steps = self.batches * recipe.epochs

    def train(self) -> dict[str, Any]:
        """Run all epochs; the model then has the weights of the best one. Gives {"step", "metrics"} of that epoch."""
        weights = [value for value in self.model.parameters() if value.requires_grad]
        weights += list(self.loss.parameters())
        # On a CPU the fused form takes a tenth of the time, and hypernetworks have many weights.
        optimizer = torch.optim.AdamW(weights, lr=self.recipe.lr, weight_decay=self.recipe.weight_decay, fused=True)
        warmup = min(self.recipe.warmup, self.steps // 10)
        schedule = get_linear_schedule_with_warmup(optimizer, warmup, self.steps)
        best: dict[str, Any] = {}
        kept: dict[str, Tensor] = {}
        step = 0
        for epoch in range(1, self.recipe.epochs + 1):
            self.model.train()
            self.loss.train()
            for batch in self._order():
                loss = self._step(batch, optimizer, weights)
                schedule.step()
                step += 1
                if step % LOG_STEPS == 0:
                    record = {"loss": round(loss, 4), "learning_rate": schedule.get_last_lr()[0]}
                    self.tell({"event": "step", "step": step, "steps": self.steps, "epoch": epoch, **record})
            metrics = self.evaluate("valid").mean.to_dict()
            temperature = round(float(self.loss.temperature.detach()), 4)
            self.tell({"event": "evaluation", "step": step, "steps": self.steps, "epoch": epoch, **metrics,
                       "temperature": temperature})  # fmt: skip
            if not best or metrics["MRR"] > best["metrics"]["MRR"]:
                best, kept = {"step": step, "metrics": metrics}, self._weights()
        self.method.load_state_dict(kept, strict=False)
        return best

    @torch.no_grad()
    def evaluate(self, split: str) -> RankingReport:
        """Rank the answers of a split, or of its first triples where the recipe says so."""
        self.model.eval()
        method, limit = self.method, self.recipe.validation_triples
        if self.stored is None:
            entities = torch.from_numpy(method.encode_sentences(self.texts))
            method.backbone.cache.clear()  # those vectors will not be asked for again
        else:
            entities = project(method, self.stored)
        queries = split_queries(self.graph, split, limit=limit)
        vectors = encode_queries(method, self.graph, entities=entities, texts=self.texts, queries=queries)
        return RankingReport.from_ranks(*rank_queries(self.graph, vectors, entities, queries).chunk(2))

    def tell(self, record: Mapping[str, Any]) -> None:
        """Pass a record on."""
        if self.report:
            self.report(record)

    def _step(self, batch: Tensor, optimizer: torch.optim.Optimizer, weights: list[nn.Parameter]) -> float:
        half = torch.autocast(self.device.type, self.dtype) if self.dtype == torch.bfloat16 else nullcontext()
        with half:
            queries, tails, heads = self.model(batch)
        own = heads if self.recipe.self_negatives else None
        loss = self.loss(queries, tails, triples=batch, heads=own)
        if not bool(loss.isfinite()):
            raise TrainingError(f"The loss is {loss.item()}: nothing was written. Lower lr, or take float32.")
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        if self.recipe.clip:
            nn.utils.clip_grad_norm_(weights, self.recipe.clip)
        optimizer.step()
        return float(loss.detach())

    def _order(self) -> Iterator[Tensor]:
        """Yield the batches of an epoch: triples in both directions, shuffled; a last part batch is left out."""
        size = min(self.recipe.batch_size, len(self.triples))
        shuffled = self.triples[torch.randperm(len(self.triples))]
        return iter([part for part in shuffled.split(size) if len(part) == size])

    def _encode(self) -> Tensor:
        def told(done: int, total: int) -> None:
            self.tell({"event": "encode", "step": done, "steps": total})

        return stored_vectors(self.method, self.texts, folder=self.folder, progress=told)

    def _model(self) -> nn.Module:
        method, recipe = self.method, self.recipe
        if recipe.tuning == "full":
            return TripleEncoder(method, self.graph, recipe)
        method.backbone.requires_grad_(False)
        names = relation_texts(self.graph, range(2 * self.graph.num_relations))
        relations = method.backbone.encode([(name,) for name in names], pooling=method.method_config.pooling)
        return TripleHead(method, self.stored.to(self.device), relations.to(self.device), normalize=recipe.normalize)

    def _queue(self) -> TailQueue | None:
        if not self.recipe.pre_batch:
            return None
        size = min(self.recipe.batch_size, len(self.triples))
        return TailQueue(self.recipe.pre_batch * size, self.method.backbone.hidden_size, seed=self.recipe.seed)

    def _weights(self) -> dict[str, Tensor]:
        """Copy what is trained."""
        trained = {name for name, value in self.method.named_parameters() if value.requires_grad}
        state = self.method.state_dict()
        return {name: state[name].detach().cpu().clone() for name in trained}
