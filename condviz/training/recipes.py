"""Recipes: everything that decides a training, in one TOML file that is checked before any work begins."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, asdict, dataclass, field, fields
from difflib import get_close_matches
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from condviz.encoder.pretrained import DEFAULT_BACKBONE, PRECISIONS
from condviz.errors import ConfigError
from condviz.methods import METHODS

NONE = "none"
"""How a recipe writes None, which TOML has no word for: `rank = "none"`."""
Tuning = Literal["full", "layers", "lora", "frozen"]
Batching = Literal["rows", "pairs", "blocks"]
Start = Literal["random", "identity"]
Keep = Literal["best", "last"]
DiskType = Literal["float32", "float16"]
T = TypeVar("T")


@dataclass(frozen=True)
class Source:
    """Where rows come from.

    Attributes:
        name: Key of `condviz.data.corpora.CORPORA`, for instance "scenes", or "csv" for a table.
        split: Which part of a corpus; `python -m condviz data` lists them.
        path: File of a "csv"; looked for in the current folder, then in that of the corpora.
        weight: How often each row appears in an epoch; 0.5 takes another half of the pairs (or rows) in every epoch.
        seed: Seed of sources that build pairs.
        draws: In blocks: how many times the corpus is divided and worded anew; an epoch has all of them.
    """

    name: str
    split: str = "train"
    path: str = ""
    weight: float = 1.0
    seed: int = 0
    draws: int = 1

    def __post_init__(self) -> None:
        _require(self.weight > 0, "weight of a source", self.weight, "above 0")
        _require(self.draws >= 1, "draws of a source", self.draws, "1 or more")
        if (self.name == "csv") != bool(self.path):
            raise ConfigError(
                f'Source {self.name!r}: path is {self.path!r}. name = "csv" needs a path, others take none.'
            )


@dataclass(frozen=True)
class Loss:
    """Weights of the terms of the loss; a term of weight 0 is left out.

    Attributes:
        mse: Squared distance of score and rating, (label - 1) / 4 (C-STS, CSR, CASE).
        infonce: Contrast of the two conditions of a sentence pair (Hyper-CL).
        quadruplet: Hinge on the same two scores (C-STS).
        teacher: Squared distance of the score and that of a teacher, on rows that have one (distillation).
        plain: Keeps similarity without a condition: squared distance of the cosines of all sentences of a batch,
            encoded alone, and those of the pretrained encoder. Not for cross-encoders.
        temperature: Of infonce; Hyper-CL uses 1.5 to 1.9.
        margin: Of quadruplet.
    """

    mse: float = 1.0
    infonce: float = 0.0
    quadruplet: float = 0.0
    teacher: float = 0.0
    plain: float = 0.0
    temperature: float = 1.5
    margin: float = 1.0

    def __post_init__(self) -> None:
        terms = {name: getattr(self, name) for name in ("mse", "infonce", "quadruplet", "teacher", "plain")}
        for name, value in terms.items():
            _require(value >= 0, f"loss.{name}", value, "0 or more")
        if not any(terms.values()):
            raise ConfigError("Every term of the loss has weight 0. Give one of mse, infonce, quadruplet a weight.")
        _require(self.temperature > 0, "loss.temperature", self.temperature, "above 0")
        _require(self.margin > 0, "loss.margin", self.margin, "above 0")

    @property
    def contrasts(self) -> bool:
        """Whether a term compares the two conditions of a sentence pair."""
        return self.infonce > 0 or self.quadruplet > 0


@dataclass(frozen=True)
class Lora:
    """Low-rank adapters of the encoder (Hu et al. 2021, arXiv:2106.09685), used by tuning = "lora".

    Attributes:
        rank: r.
        alpha: The update is alpha / r times B A.
        dropout: On the input of A.
        targets: Ends of the names of the linear layers that get one; empty takes all linear layers.
    """

    rank: int = 16
    alpha: float = 32.0
    dropout: float = 0.0
    targets: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        _require(self.rank >= 1, "lora.rank", self.rank, "1 or more")
        _require(self.alpha > 0, "lora.alpha", self.alpha, "above 0")
        _require(0 <= self.dropout < 1, "lora.dropout", self.dropout, "in [0, 1)")


@dataclass(frozen=True)
class TrainRecipe:
    """How a model is trained.

    Attributes:
        name: Name of the model, and of its folder.
        method: Key in `condviz.METHODS`.
        train: Sources of training rows.
        config: Settings of the method.
        validation: Sources of the rows that decide which weights are kept.
        backbone, revision: The pretrained encoder; an empty revision takes the pinned or newest one.
        init: A model, by name or folder, whose trained encoder is the start; and its head, if it is the same method
            with the same settings. "" starts from the pretrained encoder.
        start: "random" head, or "identity": a head under which conditions change (almost) nothing at first.
        loss: The loss.
        teacher: Models whose mean score is learnt too, see `Loss.teacher`.
        batching: "rows", shuffled singly, or "pairs": the two conditions of a sentence pair stay together; or
            "blocks": all pairs of some sentences, see `condviz.data.pairs`.
        tuning: What is trained: everything ("full"), all but the embeddings of tokens and positions ("layers"),
            adapters and head ("lora"), or the head alone ("frozen").
        frozen_layers: How many of the lowest layers stay as they are, too, in tuning = "layers".
        dropout: Of the encoder in training; None takes what it was pretrained with. 0 is faster on CPUs.
        lora: The adapters.
        epochs: Passes over the data.
        batch_size: Rows per forward pass and device; in blocks, sentences.
        accumulation: Forward passes per step of the optimizer.
        lr: Highest learning rate of the encoder, or of its adapters.
        head_lr: That of the head; None takes `lr`.
        weight_decay: None on biases and norms.
        warmup: Share of the steps in which the rate rises to `lr`; then it falls to 0 in a line.
        clip: Greatest norm of the gradient; 0 does not clip (papers).
        precision: "auto" computes in bfloat16 where the hardware has it; weights stay float32.
        seed: Decides the head, the order of the rows, and dropout.
        evaluations: How often the model is evaluated and saved in each epoch.
        keep: "best" by Spearman on the validation rows, or "last".
        patience: Stop after so many evaluations without a better one; 0 never stops early.
        disk: Number type of the stored weights.
    """

    name: str
    method: str
    train: tuple[Source, ...]
    config: Mapping[str, Any] = field(default_factory=dict)
    validation: tuple[Source, ...] = ()
    backbone: str = DEFAULT_BACKBONE
    revision: str = ""
    init: str = ""
    start: Start = "random"
    loss: Loss = field(default_factory=Loss)
    teacher: tuple[str, ...] = ()
    batching: Batching = "rows"
    tuning: Tuning = "full"
    frozen_layers: int = 0
    dropout: float | None = None
    lora: Lora = field(default_factory=Lora)
    epochs: int = 3
    batch_size: int = 32
    accumulation: int = 1
    lr: float = 3e-5
    head_lr: float | None = None
    weight_decay: float = 0.1
    warmup: float = 0.1
    clip: float = 0.0
    precision: str = "auto"
    seed: int = 42
    evaluations: int = 1
    keep: Keep = "best"
    patience: int = 0
    disk: DiskType = "float32"

    def __post_init__(self) -> None:
        check_name(self.name)
        if self.method not in METHODS:
            raise ConfigError(f"method is {self.method!r}{_near(self.method, METHODS)}. Known: {', '.join(METHODS)}.")
        self.method_config()
        _require(bool(self.train), "train", self.train, "at least one source, [[train]]")
        for name in ("epochs", "batch_size", "accumulation", "evaluations"):
            _require(getattr(self, name) >= 1, name, getattr(self, name), "1 or more")
        for name in ("weight_decay", "clip", "patience", "seed", "frozen_layers"):
            _require(getattr(self, name) >= 0, name, getattr(self, name), "0 or more")
        for name in ("lr", "head_lr"):
            value = getattr(self, name)
            allowed = "above 0 and below 1: 1e-5 to 1e-4 for an encoder, up to 1e-3 for a head alone"
            _require(value is None or 0 < value < 1, name, value, allowed)
        _require(self.dropout is None or 0 <= self.dropout < 1, "dropout", self.dropout, "in [0, 1)")
        _require(0 <= self.warmup < 1, "warmup", self.warmup, "in [0, 1), a share of the steps")
        allowed = ("auto", *PRECISIONS)
        _require(self.precision in allowed, "precision", self.precision, f"one of {', '.join(allowed)}")
        self._check_combinations()
        self._check_sources()

    def _check_combinations(self) -> None:
        if self.loss.contrasts and self.batching == "rows":
            raise ConfigError('infonce and quadruplet compare two conditions. Set batching = "pairs".')
        if self.frozen_layers and self.tuning != "layers":
            raise ConfigError(f'frozen_layers is {self.frozen_layers}, which needs tuning = "layers".')
        if self.init and self.tuning == "lora":
            raise ConfigError(
                f"init is {self.init!r}, but adapters of a checkpoint change the pretrained encoder only. Set "
                'tuning = "layers", "full" or "frozen".'
            )
        if self.batching == "pairs" and self.batch_size % 2:
            raise ConfigError(f"batch_size is {self.batch_size}; pairs of rows need an even number.")
        if self.loss.plain and (self.method == "cross-encoder" or self.tuning == "frozen"):
            raise ConfigError(
                "loss.plain keeps what an encoder gives for a sentence alone. A cross-encoder gives nothing there, and "
                "a frozen encoder cannot change: set loss.plain = 0."
            )
        if self.teacher and not self.loss.teacher:
            raise ConfigError(f"teacher is {list(self.teacher)}, but loss.teacher is 0. Give it a weight.")
        if not self.validation and (self.keep == "best" or self.patience):
            raise ConfigError(
                'The best weights are found on validation rows. Add [[validation]], or set keep = "last".'
            )
        if self.patience and self.keep != "best":
            raise ConfigError('patience needs keep = "best".')

    def _check_sources(self) -> None:
        if any(source.draws > 1 for source in self.train) and self.batching != "blocks":
            raise ConfigError('draws of a source needs batching = "blocks": single pairs are drawn once.')
        if self.method != "cross-encoder" and any(source.name == "scenes-plain" for source in self.train):
            raise ConfigError(
                "Rows without a condition (scenes-plain) are for a cross-encoder. An encoder of single sentences keeps "
                "what it gives without a condition by loss.plain, for instance --set loss.plain=5."
            )

    def method_config(self) -> Any:  # noqa: ANN401 (one config class per method)
        """Build the settings of the method.

        Raises:
            ConfigError: If one is unknown or not allowed.
        """
        return build(METHODS[self.method].config_cls, self.config, "config")

    def to_dict(self) -> dict[str, Any]:
        """Give plain JSON, all keys; None is written as `NONE`, so that `from_dict` reads it again."""
        content = asdict(self) | {"config": asdict(self.method_config())}
        return _plain(content)


def from_dict(content: Mapping[str, Any], overrides: Sequence[str] = ()) -> TrainRecipe:
    """Build a recipe from a table.

    Args:
        content: The keys of `TrainRecipe`.
        overrides: Texts "key=value", with dots for keys inside of tables ("loss.mse=0.5", "train.0.weight=2"); the
            value is read as TOML, else as text.

    Raises:
        ConfigError: If a key is unknown or missing, or a value is not allowed.
    """
    return build(TrainRecipe, override(content, overrides), "")


def override(content: Mapping[str, Any], texts: Sequence[str]) -> dict[str, Any]:
    """Give a copy of a table with keys changed as `from_dict` says."""
    changed = _plain(content)
    for text in texts:
        _override(changed, text)
    return changed


def load_recipe(path: str | Path, overrides: Sequence[str] = ()) -> TrainRecipe:
    """Read a recipe.

    Args:
        path: A TOML file.
        overrides: As in `from_dict`.

    Raises:
        ConfigError: If the file cannot be read, or a key or value is wrong.
    """
    content = read_toml(path)
    try:
        return from_dict(content, overrides)
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from error


def read_toml(path: str | Path) -> dict[str, Any]:
    """Read the table of a file; raises ConfigError if there is none in it."""
    try:
        return tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}. Recipes lie in assets/recipes.") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} is not valid TOML: {error}.") from error


def check_name(name: str) -> None:
    """Check the name of a model, which becomes that of a folder.

    Raises:
        ConfigError: If it cannot be one.
    """
    if not name or name.startswith(".") or set(name) & set("/\\\0"):
        raise ConfigError(f"name is {name!r}; it names a folder. Use letters, digits and hyphens.")


def build(cls: type[T], table: object, place: str) -> T:
    """Build a dataclass from a table, with names and types checked.

    Args:
        cls: A dataclass.
        table: Its fields; those with a default may be missing.
        place: Where the table stands, for messages; "" is the top.

    Raises:
        ConfigError: If the table has unknown or missing keys, or values of another type.
    """
    if not isinstance(table, Mapping):
        raise ConfigError(f"{place} is {table!r}, expected a table of keys and values.")
    hints, known = get_type_hints(cls), {item.name: item for item in fields(cls)}
    prefix = f"{place}." if place else ""
    for key in table:
        if key not in known:
            raise ConfigError(f"Unknown key {prefix}{key}{_near(key, known)}. Known: {', '.join(known)}.")
    for key, item in known.items():
        if key not in table and item.default is MISSING and item.default_factory is MISSING:
            raise ConfigError(f"Key {prefix}{key} is missing. The recipes in assets/recipes show how it is written.")
    return cls(**{key: _convert(value, hints[key], f"{prefix}{key}") for key, value in table.items()})


def _convert(value: object, hint: Any, place: str) -> Any:  # noqa: ANN401 (any field)
    """Check a value against a type hint; lists become tuples and tables dataclasses."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        if value is None or value == NONE:
            return None
        return _convert(value, next(argument for argument in arguments if argument is not NoneType), place)
    if origin is Literal:
        _require(value in arguments, place, value, f"one of {', '.join(map(str, arguments))}")
        return value
    if origin is tuple:
        if not isinstance(value, list | tuple):
            raise ConfigError(f"{place} is {value!r}, expected a list.")
        return tuple(_convert(item, arguments[0], f"{place}.{i}") for i, item in enumerate(value))
    if hasattr(hint, "__dataclass_fields__"):
        return build(hint, value, place)
    if origin is not None:  # a mapping with keys of its own
        _require(isinstance(value, Mapping), place, value, "a table")
        return dict(value)
    if hint is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if not isinstance(value, hint) or (isinstance(value, bool) and hint is not bool) or value != value:
        raise ConfigError(f"{place} is {value!r}, expected {hint.__name__}.")
    return value


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
        if isinstance(table, list):
            table = _item(table, key, text)
        else:
            table = table.setdefault(key, {})
            _require(isinstance(table, dict | list), f"--set {text}: {key}", table, "a table or a list")
    if isinstance(table, list):
        _item(table, last, text)
        table[int(last)] = value
    else:
        table[last] = value


def _item(table: list, key: str, text: str) -> Any:  # noqa: ANN401 (any item)
    if not key.isdecimal() or int(key) >= len(table):
        raise ConfigError(f"--set {text}: {key!r} is no place in a list of {len(table)}; the first is 0.")
    return table[int(key)]


def _plain(value: object) -> Any:  # noqa: ANN401 (any JSON)
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return NONE if value is None else value


def _near(key: str, known: Mapping[str, object]) -> str:
    found = get_close_matches(str(key), known, n=1)
    return f" (did you mean {found[0]}?)" if found else ""


def _require(holds: bool, name: str, value: object, allowed: str) -> None:
    if not holds:
        raise ConfigError(f"{name} is {value!r}, allowed is {allowed}.")
