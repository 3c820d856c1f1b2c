"""Recipes of knowledge-graph completion: a TOML file with the key `graph`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from condviz.encoder.pretrained import DEFAULT_BACKBONE, PRECISIONS
from condviz.errors import ConfigError
from condviz.methods import METHODS, ConditionalEncoder, SeparableEncoder
from condviz.training.recipes import DiskType, Start, build, check_name, override


@dataclass(frozen=True)
class LinkRecipe:
    """How a model is trained to predict links. The defaults are SimKGC's for WN18RR.

    Attributes:
        name: Name of the model, and of its folder.
        method: Key in `condviz.METHODS` of an encoder.
        graph: "wn18rr", "fb15k237" or a folder of tables, see `condviz.data.kg_formats`.
        config: Settings of the method.
        backbone, revision: The pretrained encoder, shared by heads, relations and tails.
        neighbours: Put names of neighbours behind short definitions, in training without the answer.
        tuning: "full", or "frozen": entities are encoded once and only the head of the method is trained.
        start: "random" head, or "identity": relations change (almost) nothing at first, see `TrainRecipe`.
        normalize: Scale (head, relation) vectors to length 1 in the loss; False is Hyper-CL's code.
        self_negatives: The head of a question is a wrong answer to it (SimKGC).
        pre_batch: How many earlier batches give their tails as more wrong answers.
        pre_batch_weight: What their logits are multiplied by.
        temperature: Where the learnt temperature starts.
        margin: Taken off the right answer.
        epochs: Passes over all train triples, in both directions.
        batch_size: Triples of a batch; all other tails of the batch are wrong answers.
        lr: Highest learning rate.
        weight_decay: On all weights, as in SimKGC's code.
        warmup: Steps, at most a tenth of all, in which the rate rises; then it falls to 0 in a line.
        clip: Greatest norm of the gradient.
        precision: "auto" computes in bfloat16 where the hardware has it.
        seed: Decides the head, the order of the triples, and dropout.
        validation_triples: How many triples of the validation part decide which epoch is kept; 0 takes all.
        disk: Number type of the stored weights.
    """

    name: str
    method: str
    graph: str = "wn18rr"
    config: Mapping[str, Any] = field(default_factory=dict)
    backbone: str = DEFAULT_BACKBONE
    revision: str = ""
    neighbours: bool = True
    tuning: Literal["full", "frozen"] = "full"
    start: Start = "random"
    normalize: bool = True
    self_negatives: bool = True
    pre_batch: int = 0
    pre_batch_weight: float = 0.5
    temperature: float = 0.05
    margin: float = 0.02
    epochs: int = 50
    batch_size: int = 1024
    lr: float = 5e-5
    weight_decay: float = 1e-4
    warmup: int = 400
    clip: float = 10.0
    precision: str = "auto"
    seed: int = 42
    validation_triples: int = 0
    disk: DiskType = "float16"

    def __post_init__(self) -> None:
        check_name(self.name)
        method = METHODS.get(self.method)
        if method is None or not issubclass(method, ConditionalEncoder):
            known = [name for name, cls in METHODS.items() if issubclass(cls, ConditionalEncoder)]
            raise ConfigError(f"method is {self.method!r}; encoders that can predict links: {', '.join(known)}.")
        self.method_config()
        limits = {"epochs": 1, "batch_size": 2, "pre_batch": 0, "warmup": 0, "seed": 0, "validation_triples": 0}
        limits |= {"weight_decay": 0, "margin": 0, "clip": 0, "pre_batch_weight": 0}
        for name, least in limits.items():
            if getattr(self, name) < least:
                raise ConfigError(f"{name} is {getattr(self, name)}, allowed is {least} or more.")
        for name in ("lr", "temperature"):
            if not 0 < getattr(self, name) < 1:
                raise ConfigError(f"{name} is {getattr(self, name)}, allowed is above 0 and below 1.")
        if self.precision not in ("auto", *PRECISIONS):
            raise ConfigError(f"precision is {self.precision!r}, allowed is auto, {', '.join(PRECISIONS)}.")
        if self.tuning == "frozen" and not issubclass(method, SeparableEncoder):
            raise ConfigError(
                f'tuning is "frozen" and method {self.method!r}, which has no head over the vectors of entities and '
                'relations. Take tri-encoder or hyper-cl, or set tuning = "full".'
            )
        if self.tuning == "frozen" and self.neighbours:
            raise ConfigError(
                "A frozen encoder reads each entity once, so the answer to a train triple would stand in the text of "
                "its head. Set neighbours = false."
            )

    def method_config(self) -> Any:  # noqa: ANN401 (one config class per method)
        """Build the settings of the method; raises ConfigError if one is not allowed."""
        return build(METHODS[self.method].config_cls, self.config, "config")

    def to_dict(self) -> dict[str, Any]:
        """Give plain JSON, all keys; None of a setting is written as "none", as recipes do."""
        settings = {key: "none" if value is None else value for key, value in asdict(self.method_config()).items()}
        return asdict(self) | {"config": settings}


def is_link_recipe(content: Mapping[str, Any]) -> bool:
    """Tell a recipe of this kind by its key `graph`."""
    return "graph" in content


def from_dict(content: Mapping[str, Any], overrides: Sequence[str] = ()) -> LinkRecipe:
    """Build a recipe from a table; arguments and errors as in `condviz.training.recipes.from_dict`."""
    return build(LinkRecipe, override(content, overrides), "")
