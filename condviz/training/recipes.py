"""Recipes: everything that decides a training, in one TOML file that is checked before any work begins.

There are two kinds: rated sentence pairs, and the links of a knowledge graph (a recipe with the key `graph`).
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, fields, is_dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, TypeVar, get_args, get_type_hints

from pydantic import BeforeValidator, ConfigDict, Field, Strict, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass

from condviz.encoder import DEFAULT_BACKBONE
from condviz.errors import ConfigError, explain, suggest
from condviz.methods.catalog import CATALOG

NONE = "none"
"""How a recipe writes None, which TOML has no word for: `rank = "none"`."""
Batching = Literal["rows", "pairs", "blocks"]
Keep = Literal["best", "last"]
DiskType = Literal["float32", "float16"]
T = TypeVar("T")

# Strict: 2.0 epochs, "yes" and true for a number are mistakes of whoever wrote the recipe.
Int = Annotated[int, Strict()]
Number = Annotated[float, Strict(), Field(allow_inf_nan=False)]
Switch = Annotated[bool, Strict()]
OrNone = BeforeValidator(lambda value: None if value == NONE else value)
AtLeastOne = Annotated[Int, Field(ge=1)]
NotNegative = Annotated[Number, Field(ge=0)]
Positive = Annotated[Number, Field(gt=0)]
Rate = Annotated[Number, Field(gt=0, lt=1)]
Share = Annotated[Number, Field(ge=0, lt=1)]
CLOSED = ConfigDict(extra="forbid")


@dataclass(frozen=True, config=CLOSED)
class Source:
    """Where rows come from."""

    name: str
    """Key of `condviz.data.corpora.CORPORA`, for instance "scenes", or "csv" for a table."""
    split: str = "train"
    """Which part of a corpus; `python -m condviz data` lists them."""
    path: str = ""
    """File of a "csv"; looked for in the current folder, then in that of the corpora."""
    weight: Annotated[Number, Field(gt=0, le=1e6)] = 1.0
    """How often each row appears in an epoch; 0.5 takes another half of the pairs (or rows) in every epoch."""
    seed: Int = 0
    """Seed of sources that build pairs."""
    draws: AtLeastOne = 1
    """In blocks: how many times the corpus is divided and worded anew; an epoch has all of them."""
    rows: Annotated[Int, Field(ge=0)] = 0
    """Most rows that are taken, the first ones; 0 takes all."""
    columns: Mapping[str, str] = Field(default_factory=dict)
    condition: str = ""
    scale: Annotated[tuple[Number, Number] | None, OrNone] = None
    labels: Mapping[str, Number] = Field(default_factory=dict)
    header: Annotated[Switch | None, OrNone] = None
    separator: str = ""
    encoding: str = ""
    skip_bad: Switch = False
    """How a "csv" is read, from `columns` on: as `condviz.read_pairs` takes them."""

    @property
    def reading(self) -> dict[str, Any]:
        """What `read_pairs` takes."""
        names = ("columns", "condition", "scale", "labels", "header", "separator", "encoding", "skip_bad")
        return {name: getattr(self, name) for name in names}

    def __post_init__(self) -> None:
        if (self.name == "csv") != bool(self.path):
            raise ConfigError(
                f'Source {self.name!r}: path is {self.path!r}. name = "csv" needs a path, others take none.'
            )


@dataclass(frozen=True, config=CLOSED)
class Loss:
    """Weights of the terms of the loss; a term of weight 0 is left out."""

    mse: NotNegative = 1.0
    """Squared distance of score and rating, (label - 1) / 4 (C-STS, CSR, CASE)."""
    infonce: NotNegative = 0.0
    """Contrast of the two conditions of a sentence pair (Hyper-CL)."""
    quadruplet: NotNegative = 0.0
    """Hinge on the same two scores (C-STS)."""
    teacher: NotNegative = 0.0
    """Squared distance of the score and that of a teacher, on rows that have one (distillation)."""
    plain: NotNegative = 0.0
    """Keeps similarity without a condition: squared distance of the cosines of all sentences of a batch, encoded
    alone, and those of the pretrained encoder. Not for cross-encoders."""
    temperature: Positive = 1.5
    """Of infonce; Hyper-CL uses 1.5 to 1.9."""
    margin: Positive = 1.0
    """Of quadruplet."""

    def __post_init__(self) -> None:
        if not any((self.mse, self.infonce, self.quadruplet, self.teacher, self.plain)):
            raise ConfigError("Every term of the loss has weight 0. Give mse, infonce or quadruplet a weight.")

    @property
    def contrasts(self) -> bool:
        """Whether a term compares the two conditions of a sentence pair."""
        return self.infonce > 0 or self.quadruplet > 0


@dataclass(frozen=True, config=CLOSED)
class Lora:
    """Low-rank adapters of the encoder (Hu et al. 2021, arXiv:2106.09685), used by tuning = "lora"."""

    rank: AtLeastOne = 16
    alpha: Positive = 32.0
    """The update is alpha / rank times B A."""
    dropout: Share = 0.0
    """On the input of A."""
    targets: tuple[str, ...] = ()
    """Ends of the names of the linear layers that get one; empty takes all linear layers."""


@dataclass(frozen=True, kw_only=True, config=CLOSED)
class Recipe:
    """What both kinds of recipe decide."""

    name: str
    """Name of the model, and of its folder."""
    method: str
    """Key in `condviz.METHODS`."""
    config: Mapping[str, Any] = Field(default_factory=dict)
    backbone: str = DEFAULT_BACKBONE
    revision: str = ""
    """The pretrained encoder; an empty revision takes the pinned or newest one."""
    start: Literal["random", "identity"] = "random"
    """Either "random" head, or "identity": a head under which conditions change (almost) nothing at first."""
    init: str = ""
    """A model, by name or folder, whose trained encoder is the start; and its head, if it is the same method with
    the same settings. "" starts from the pretrained encoder."""
    epochs: AtLeastOne = 3
    lr: Rate = 3e-5
    """Peak learning rate of the encoder, or of its adapters."""
    clip: NotNegative = 0.0
    """Largest norm of the gradient; 0 does not clip."""
    precision: Literal["auto", "float32", "bfloat16", "float16"] = "auto"
    """With "auto" it computes in bfloat16 where the hardware has it; weights stay float32."""
    seed: Annotated[Int, Field(ge=0, le=2**32 - 1)] = 42
    """Decides the head, the order of the rows, and dropout."""
    disk: DiskType = "float32"
    """Number type of the stored weights."""

    def __post_init__(self) -> None:
        if not re.fullmatch(r"[^\s./\\][^/\\]{0,99}", self.name) or not self.name.isprintable():
            raise ConfigError(
                f"The name {self.name[:80]!r} cannot name a folder. Use letters a to z, digits and hyphens, up to 64."
            )
        if self.method not in CATALOG:
            raise ConfigError(f"method is {self.method!r}.{suggest(self.method, CATALOG)} Known: {', '.join(CATALOG)}.")
        self.method_config()
        for message in self._conflicts():
            raise ConfigError(message)

    def _conflicts(self) -> Iterable[str]:
        """Yield what does not go together, and what to do about it."""
        return ()

    def method_config(self) -> Any:  # noqa: ANN401 (one config class per method)
        """Build the settings of the method; raises ConfigError if one is unknown or not allowed."""
        return _build_config(CATALOG[self.method].config_cls, self.config)

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON with all keys; None is written as `NONE`, so that `from_dict` reads it again."""
        return _plain(asdict(self) | {"config": asdict(self.method_config())})


@dataclass(frozen=True, kw_only=True, config=CLOSED)
class SentenceRecipe(Recipe):
    """How a model learns from rated sentence pairs."""

    train: tuple[Source, ...]
    validation: tuple[Source, ...] = ()
    """Sources of the rows that decide which weights are kept."""
    loss: Loss = Field(default_factory=Loss)
    teacher: tuple[str, ...] = ()
    """Models whose mean score is learnt too, see `Loss.teacher`."""
    batching: Batching = "rows"
    """Either "rows", shuffled singly, or "pairs": the two conditions of a sentence pair stay together; or "blocks": all
    pairs of some sentences, see `condviz.data.families`."""
    tuning: Literal["full", "layers", "lora", "frozen"] = "full"
    """What is trained: everything ("full"), all but the embeddings of tokens and positions ("layers"), adapters and
    head ("lora"), or the head alone ("frozen")."""
    frozen_layers: Annotated[Int, Field(ge=0)] = 0
    """How many of the lowest layers stay frozen, too, in tuning = "layers" and "lora"."""
    dropout: Annotated[Share | None, OrNone] = None
    """Of the encoder in training; None takes what it was pretrained with. 0 is faster on CPUs."""
    lora: Lora = Field(default_factory=Lora)
    blend: Annotated[Number, Field(gt=0, le=1)] = 1.0
    """How far the weights go from those of the start (0) to the trained ones (1) in the end. In between they often
    keep more of what the start knew (Wortsman et al. 2022, arXiv:2109.01903)."""
    batch_size: AtLeastOne = 32
    """Rows per forward pass and device; in blocks, sentences."""
    accumulation: AtLeastOne = 1
    """Forward passes per step of the optimizer."""
    head_lr: Annotated[Rate | None, OrNone] = None
    """Learning rate of the head; None takes `lr`."""
    weight_decay: NotNegative = 0.1
    """Not applied to biases and norms."""
    warmup: Share = 0.1
    """Share of the steps in which the rate rises to `lr`; then it falls linearly to 0."""
    evaluations: AtLeastOne = 1
    """How often the model is evaluated and saved in each epoch."""
    keep: Keep = "best"
    """Either "best" by Spearman on the validation rows, or "last"."""
    patience: Annotated[Int, Field(ge=0)] = 0
    """Stop after so many evaluations without a better one; 0 never stops early."""

    def _conflicts(self) -> Iterable[str]:
        alone = CATALOG[self.method].encodes
        if not self.train:
            yield "train is empty; it needs at least one source, [[train]]."
        yield from self._batching_conflicts()
        if self.frozen_layers and self.tuning not in ("layers", "lora"):
            yield f'frozen_layers is {self.frozen_layers}, which needs tuning = "layers" or "lora".'
        if self.loss.plain and (self.tuning == "frozen" or not alone):
            yield (
                "loss.plain keeps the vectors of sentences without a condition. A cross-encoder has none, and those of "
                "a frozen encoder cannot change: set loss.plain = 0."
            )
        if self.teacher and not self.loss.teacher:
            yield f"teacher is {list(self.teacher)}, but loss.teacher is 0. Give it a weight."
        if not self.validation and (self.keep == "best" or self.patience):
            yield 'The best weights are found on validation rows. Add [[validation]], or set keep = "last".'
        if self.patience and self.keep != "best":
            yield 'patience needs keep = "best".'
        if alone and any(source.name == "scenes-plain" for source in self.train):
            yield (
                "Rows without a condition (scenes-plain) are for a cross-encoder. Other encoders keep their vectors "
                "without a condition by loss.plain, for instance --set loss.plain=5."
            )

    def _batching_conflicts(self) -> Iterable[str]:
        if self.loss.contrasts and self.batching == "rows":
            yield 'infonce and quadruplet compare two conditions. Set batching = "pairs".'
        if self.batching == "pairs" and self.batch_size % 2:
            yield f"batch_size is {self.batch_size}; pairs of rows need an even number."
        if self.batching != "blocks" and any(source.draws > 1 for source in self.train):
            yield 'draws of a source needs batching = "blocks": single pairs are drawn once.'


@dataclass(frozen=True, kw_only=True, config=CLOSED)
class LinkRecipe(Recipe):
    """How a model learns to predict the links of a knowledge graph. The defaults are SimKGC's for WN18RR."""

    # A batch holds the negatives of its own queries, so accumulating smaller ones would be another loss; the weights
    # of the epoch that ranks the validation part best are kept, as in SimKGC.
    accumulation: ClassVar[int] = 1
    evaluations: ClassVar[int] = 1
    keep: ClassVar[Keep] = "best"
    patience: ClassVar[int] = 0

    graph: str = "wn18rr"
    """Either "wn18rr", "fb15k237" or a folder of tables, see `condviz.data.kg_formats`."""
    neighbours: Switch = True
    """Append names of neighbours to short definitions; in training without the answer."""
    max_tokens: Annotated[Int, Field(ge=4)] = 50
    """Tokens of an entity's text, special tokens included; what is longer loses its end."""
    tuning: Literal["full", "frozen"] = "full"
    """What is trained: all; with "frozen" only the head of the method, on entities encoded once."""
    dropout: Annotated[Share | None, OrNone] = None
    """As in `SentenceRecipe`."""
    normalize: Switch = True
    """Scale (head, relation) vectors to length 1 in the loss; False is Hyper-CL's code."""
    self_negatives: Switch = True
    """The head of a query is a wrong answer to it (SimKGC)."""
    pre_batch: Annotated[Int, Field(ge=0)] = 0
    """How many earlier batches serve their tails as more negatives."""
    pre_batch_weight: NotNegative = 0.5
    """What their logits are multiplied by."""
    temperature: Rate = 0.05
    """Initial value of the learnt temperature."""
    margin: NotNegative = 0.02
    """Subtracted from the score of the right answer."""
    epochs: AtLeastOne = 50
    batch_size: Annotated[Int, Field(ge=2)] = 1024
    """Triples of a batch; all other tails of the batch are negatives."""
    lr: Rate = 5e-5
    head_lr: Annotated[Rate | None, OrNone] = None
    """Learning rate of the head; None takes `lr`."""
    weight_decay: NotNegative = 1e-4
    """On all weights, as in SimKGC's code."""
    warmup: Annotated[Int, Field(ge=0)] = 400
    """Steps, at most a tenth of all, in which the rate rises; then it falls linearly to 0."""
    clip: NotNegative = 10.0
    validation_triples: Annotated[Int, Field(ge=0)] = 0
    """How many triples of the validation part decide which epoch is kept; 0 takes all."""
    disk: DiskType = "float16"

    def _conflicts(self) -> Iterable[str]:
        known = [name for name, method in CATALOG.items() if method.answers_links]
        if self.method not in known:
            yield f"method is {self.method!r}; encoders that can predict links: {', '.join(known)}."
        once = self.tuning == "frozen"
        if once and not CATALOG[self.method].separable:
            yield (
                f'tuning is "frozen" and method {self.method!r}, which has no head over the vectors of entities and '
                'relations. Use tri-encoder or hyper-cl, or set tuning = "full".'
            )
        if once and self.neighbours:
            yield (
                "A frozen encoder reads each entity once, so the answer to a train triple would be in the text of its "
                "head. Set neighbours = false."
            )


_SENTENCES, _LINKS = TypeAdapter(SentenceRecipe), TypeAdapter(LinkRecipe)


def from_dict(content: Mapping[str, Any], overrides: Sequence[str] = ()) -> SentenceRecipe | LinkRecipe:
    """Build a recipe from a table.

    Stored recipes hold two keys of earlier versions, lora.init and, for links, frozen_layers: unset, they are ignored.

    Args:
        content: The keys of `SentenceRecipe`, or, with a key `graph`, of `LinkRecipe`.
        overrides: Texts "key=value", with dots for keys inside of tables ("loss.mse=0.5", "train.0.weight=2"); the
            value is read as TOML, else as text.

    Raises:
        ConfigError: If a key is unknown or missing, or a value is not allowed.
    """
    changed = _plain(content)
    if isinstance(lora := changed.get("lora"), dict) and lora.get("init") == "":
        del lora["init"]
    if "graph" in changed and changed.get("frozen_layers") == 0:
        del changed["frozen_layers"]
    for text in overrides:
        _override(changed, text)
    links = "graph" in changed
    try:
        return (_LINKS if links else _SENTENCES).validate_python(changed)
    except ValidationError as error:
        raise ConfigError(_explain(error, LinkRecipe if links else SentenceRecipe)) from None


def load_recipe(recipe: str | Path | Mapping[str, Any] | Recipe, overrides: Sequence[str] = ()) -> Recipe:
    """Return a recipe from a TOML file, a table, or a recipe, with overrides as in `from_dict`.

    Raises:
        ConfigError: If the file cannot be read, or a key or value is wrong.
    """
    if isinstance(recipe, Recipe):
        return from_dict(recipe.to_dict(), overrides) if overrides else recipe
    if isinstance(recipe, Mapping):
        return from_dict(recipe, overrides)
    try:
        return from_dict(tomllib.loads(Path(recipe).read_text(encoding="utf-8-sig")), overrides)
    except OSError as error:
        raise ConfigError(f"{recipe} cannot be read: {error.strerror}. Recipes are in assets/recipes.") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{recipe} is not valid TOML: {error}.") from error
    except ConfigError as error:
        raise ConfigError(f"{recipe}: {error}") from error


def _build_config(cls: type[T], table: Mapping[str, Any]) -> T:
    """Build the settings of a method, which check their own values."""
    hints = get_type_hints(cls)
    for key in table:
        if key not in hints:
            raise ConfigError(f"Unknown key config.{key}.{suggest(key, hints)} Known: {', '.join(hints)}.")
    optional = {name for name, hint in hints.items() if type(None) in get_args(hint)}
    return cls(**{key: None if value == NONE and key in optional else value for key, value in table.items()})


def _explain(error: ValidationError, cls: type) -> str:
    """Describe what is wrong with the first wrong entry; unknown keys go first, as they are most often the cause."""
    found = sorted(error.errors(), key=lambda item: item["type"] != "unexpected_keyword_argument")[0]
    path = tuple(map(str, found["loc"]))
    name = ".".join(path)
    if found["type"] == "unexpected_keyword_argument":
        known = _known_keys(cls, path[:-1])
        return f"Unknown key {name}.{suggest(path[-1], known)} Known: {', '.join(known)}."
    if found["type"] == "missing" and name == "name":
        return "The model has no name (name). Give it one, for instance my-model."
    if found["type"] == "missing":
        return f"Key {name} is missing. The recipes in assets/recipes show how it is written."
    return explain(error)


def _known_keys(cls: type, path: Sequence[str]) -> list[str]:
    """List the keys of the table at a place inside of a recipe."""
    for key in path:
        if not key.isdecimal():
            hint = get_type_hints(cls)[key]
            cls = next((part for part in (hint, *get_args(hint)) if isinstance(part, type) and is_dataclass(part)), cls)
    return [item.name for item in fields(cls)]


def _override(content: dict[str, Any], text: str) -> None:
    path, equals, written = text.partition("=")
    if not equals or not path.strip():
        raise ConfigError(f"--set {text}: expected key=value, for instance --set epochs=2.")
    try:
        value = tomllib.loads(f"value = {written}")["value"]
    except tomllib.TOMLDecodeError:
        value = written.strip()
    *parents, last = path.strip().split(".")
    table: Any = content
    for key in parents:
        table = table[_index(table, key, text)] if isinstance(table, list) else table.setdefault(key, {})
        if not isinstance(table, dict | list):
            raise ConfigError(f"--set {text}: {key} is {table!r}, which has no keys inside.")
    place: Any = _index(table, last, text) if isinstance(table, list) else last
    table[place] = value


def _index(table: list, key: str, text: str) -> int:
    if not key.isdecimal() or int(key) >= len(table):
        raise ConfigError(f"--set {text}: {key!r} is not a valid index into a list of {len(table)}; the first is 0.")
    return int(key)


def _plain(value: object) -> Any:  # noqa: ANN401 (any JSON)
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return NONE if value is None else value
