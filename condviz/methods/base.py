"""What every method can do; text-level work (batching, cache, numpy) is written here and in `encoders.py` once.

A method writes what happens to tensors (`embed*`); these files turn lists of texts into tensors, tensors into arrays.
"""

from __future__ import annotations

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol, Self, TypedDict, Unpack, overload

import numpy as np
import torch
from huggingface_hub import ModelHubMixin
from torch import Tensor, nn
from tqdm.auto import tqdm

from condviz.encoder.applies import applies
from condviz.encoder.backbone import Backbone, Item, hash_tensors
from condviz.encoder.pretrained import choose_device
from condviz.encoder.tokens import Encoded, Joined
from condviz.errors import CheckpointError, ConfigError, DataError
from condviz.methods.catalog import LACKS, Meeting, Method, MethodConfig, describe_variant
from condviz.types import Kind, ModelInfo, Progress

Texts = str | Iterable[str]


class Options(TypedDict, total=False):
    """How texts go through the encoder. See `Backbone.map_texts`."""

    batch_size: int | None
    progress: Progress | None


class EncodeOptions(Options, total=False):
    """Options of every call that takes texts; they mean what they mean in sentence-transformers.

    Attributes:
        batch_size: Rows of one pass through the encoder; None fills passes by tokens, which is faster.
        progress: Called with (done, total) of the encodings that are not in the cache, then, where there are many, of
            the rows that are composed from them; may raise to stop. Ours.
        show_progress_bar: Show a bar in the terminal or notebook; False.
        device: "cpu", "cuda" or "mps": moves the model there first; None leaves it where it is.
        convert_to_tensor: Return a tensor on the device of the model instead of an array; False.
        normalize_embeddings: Scale vectors to length one; False. Not for scores.
    """

    show_progress_bar: bool | None
    device: str | None
    normalize_embeddings: bool


class ToArray(EncodeOptions, total=False):
    """`EncodeOptions` of a call that returns an array."""

    convert_to_tensor: Literal[False]


class ToTensor(EncodeOptions):
    """`EncodeOptions` of a call that returns a tensor."""

    convert_to_tensor: Literal[True]


ALLOWED = ("batch_size", "progress", "show_progress_bar", "convert_to_tensor", "device")


class Passes(Protocol):
    """How training runs the encoder: whether it stays as it is, and which rows go through it together."""

    frozen: bool

    def parts(self, rows: Sequence[Encoded | Joined]) -> Iterable[list[int]]:
        """Group rows of similar length: positions in `rows`, each exactly once."""
        ...


class ConditionalScorer(ModelHubMixin, nn.Module, ABC, library_name="condviz"):
    """Scores how similar two sentences are under a condition. A cross-encoder can do no more than this.

    Args:
        backbone: The encoder; shared with other methods as long as nobody trains it.
        method_config: Settings of the method. (Not `config`: the transformers Trainer writes into that.)

    A subclass states what it is and can do as `about`; each field of it becomes an attribute of the class.
    """

    about: ClassVar[Method]
    name: ClassVar[str]
    title: ClassVar[str]
    kind: ClassVar[Kind]
    summary: ClassVar[str]
    reference: ClassVar[str]
    config_cls: ClassVar[type[MethodConfig]]
    score_range: ClassVar[tuple[float, float]]
    conditional: ClassVar[bool]
    encodes: ClassVar[bool]
    separable: ClassVar[bool]
    meets: ClassVar[Meeting | None]
    has_variants: ClassVar[bool]
    answers_links: ClassVar[bool]
    condition_matrices: ClassVar[bool]

    def __init_subclass__(cls, **options: Any) -> None:  # noqa: ANN401 (as Python passes it)
        super().__init_subclass__(**options)
        if "about" in cls.__dict__:
            for field in fields(cls.about):
                if field.name != "module":
                    setattr(cls, field.name, getattr(cls.about, field.name))

    def __init__(self, backbone: Backbone, method_config: Any) -> None:  # noqa: ANN401 (one config class per method)
        super().__init__()
        self.backbone = backbone
        self.method_config = method_config
        self._hub_mixin_config = None  # the settings are in condviz.json; a config.json would say them once more
        self._head_hash: str | None = None
        self._info: ModelInfo | None = None

    def __repr__(self) -> str:
        name, encoder = self.info.name, self.backbone
        trained = "" if self.info.trained else ", not trained"
        return f"{type(self).__name__}({name!r}{trained}; {encoder.name}, {encoder.device.type}, {encoder.precision})"

    @property
    def has_router(self) -> bool:
        """Whether this model weighs words by the condition: `token_weights`."""
        return False

    @property
    def info(self) -> ModelInfo:
        """Name, origin and size: what `condviz.load` has set, or what is known of a model made by hand."""
        if self._info is not None:
            return self._info
        return self.about.describe(
            self.name,
            trained=False,
            source="memory",
            revision=self.fingerprint[:12],
            added_parameters=self.added_parameters,
            has_router=self.has_router,
        )

    @info.setter
    def info(self, info: ModelInfo) -> None:
        self._info = info

    def check_able(self, *abilities: str) -> None:
        """Raise ConfigError unless this model has all abilities that something needs, by their names in `LACKS`."""
        for ability in abilities:
            if not getattr(self, ability):
                raise ConfigError(f"{self.info.name} {LACKS[ability]}")

    if TYPE_CHECKING:  # what a model can do beyond this class is asked with `check_able`

        def __getattr__(self, name: str) -> Any: ...  # noqa: ANN401

    # Texts to scores

    @overload
    def score(
        self, sentences1: Iterable[str], sentences2: Iterable[str], conditions: Texts, **options: Unpack[ToArray]
    ) -> np.ndarray: ...
    @overload
    def score(
        self, sentences1: Iterable[str], sentences2: Iterable[str], conditions: Texts, **options: Unpack[ToTensor]
    ) -> Tensor: ...
    def score(
        self, sentences1: Iterable[str], sentences2: Iterable[str], conditions: Texts, **options: Any
    ) -> np.ndarray | Tensor:
        """Score p pairs, row by row.

        Args:
            sentences1, sentences2, conditions: p texts each; a single condition goes with every pair.
            **options: batch_size, show_progress_bar, convert_to_tensor, device, progress: see `EncodeOptions`.

        Returns:
            (p,) float32 within `score_range`, higher is more similar.

        Raises:
            ConfigError: If an option is not allowed.
            DataError: If the three lists differ in length, or hold something that is not text.
        """
        texts = list_rows(conditions, sentences1=sentences1, sentences2=sentences2)
        return self._run(partial(self._score, *texts), options)

    def rate(
        self, sentences1: Iterable[str], sentences2: Iterable[str], conditions: Texts, **options: Unpack[EncodeOptions]
    ) -> np.ndarray:
        """Rate p pairs from 1 (different) to 5 (same): the calibrated scores, (p,) float64, in the order of `score`.

        Arguments as in `score`; always an array.

        Raises:
            ConfigError: If nobody has calibrated this model, or an option is not allowed.
            DataError: As in `score`.
        """
        if self.info.calibration is None:
            raise ConfigError(
                f"{self.info.name} is not calibrated. Run: python -m condviz calibrate --model FOLDER, with the folder "
                "of its checkpoint, or use `score`."
            )
        return self.info.rate(self.score(sentences1, sentences2, conditions, **options))

    def applies(self, sentences: str | Sequence[str], conditions: str | Sequence[str]) -> np.ndarray:
        """Estimate whether each sentence tells what each condition asks for; the same for all methods.

        Args:
            sentences: n texts, or one.
            conditions: m texts, or one.

        Returns:
            (n, m) float32 in [0, 1]. Below `condviz.types.SILENT` the sentence may not tell it, and scores mean little.

        Raises:
            DataError: If something is not text.
        """
        texts, asked = ([given] if isinstance(given, str) else list(given) for given in (sentences, conditions))
        return applies(texts, asked, self.backbone)

    def score_unconditional(self, sentences1: Iterable[str], sentences2: Iterable[str]) -> np.ndarray:
        """Score p pairs without any condition, by the same weights: (p,) float32."""
        texts = list_texts(sentences1=sentences1, sentences2=sentences2)
        return self._score(texts[0], texts[1], None).detach().numpy()

    @abstractmethod
    def _score(
        self, sentences1: list[str], sentences2: list[str], conditions: list[str] | None, **options: Unpack[Options]
    ) -> Tensor:
        """Score p pairs, with None without any condition: (p,) float32 on the CPU."""

    @abstractmethod
    def tokenize(self, items: Sequence[Item]) -> list[tuple[Encoded, ...]]:
        """Turn items into token ids, unpadded: (sentence, condition), or for a cross-encoder with both sentences."""

    # Hooks of training

    @abstractmethod
    def embed_items(self, items: list[Item], passes: Passes) -> Tensor:
        """Compute what the loss needs of different items, with gradient where it is switched on.

        Args:
            items: n different tuples, as `tokenize` takes them.
            passes: How the encoder is run. Where it is frozen, its vectors come from the cache.

        Returns:
            Vectors (n, d), or the scores (n,) of a cross-encoder.
        """

    def encode_frozen(self, sentences: Sequence[str], conditions: Sequence[str]) -> None:
        """Fill the cache with what a frozen encoder gives for these rows, in one go sorted by length."""

    def start_identity(self) -> None:
        """Set the head so that conditions change almost nothing: a start for training.

        Raises:
            ConfigError: If the method has no such head.
        """
        raise ConfigError(
            f'start = "identity" is for hyper-cl and for tri-encoder with hadamard, got {self.name}. '
            'Use start = "random".'
        )

    def start_untrained(self) -> None:
        """Set the head to values that make sense without training, where such values exist; else it stays random."""

    def _in_parts(self, rows: Sequence[Encoded | Joined], passes: Passes, run: Callable[[list], Tensor]) -> Tensor:
        """Run rows of similar length together, and return the results in the order of the rows."""
        order: list[int] = []
        results = []
        for part in passes.parts(rows):
            results.append(run([rows[i] for i in part]))
            order += part
        return torch.cat(results)[torch.tensor(order, device=self.backbone.device).argsort()]

    def _pooled_in(self, items: list[Item], passes: Passes, *, separators: bool = False) -> Tensor:
        """Pool sequences: from the cache where the encoder is frozen, else with gradient."""
        if passes.frozen:
            return self._pool_cached(items, separators=separators)
        backbone, rows = self.backbone, self.backbone.tokenize(items, separators=separators)
        return self._in_parts(rows, passes, lambda part: backbone(backbone.collate(part), self.method_config.pooling))

    def _pool_cached(self, items: Sequence[Item], *, separators: bool = False, **options: Unpack[Options]) -> Tensor:
        """Pool sequences, through the cache: (n, d) float32 on the device of the encoder, without gradient."""
        pooling, device = self.method_config.pooling, self.backbone.device
        return self.backbone.encode(items, pooling=pooling, separators=separators, **options).to(device)

    # Identity

    @property
    def weights_hash(self) -> str:
        """Identity of weights and settings, 64 hex digits; the same in every precision."""
        if self._head_hash is None or self.training:
            self._head_hash = hash_tensors(self.head_state().items())
        settings = json.dumps([self.name, self.method_config.identity()], sort_keys=True)
        # The backbone's is asked for each time: it may have been trained through another method that shares it.
        return hashlib.sha256(f"{settings} {self._head_hash} {self.backbone.weights_hash}".encode()).hexdigest()

    @property
    def fingerprint(self) -> str:
        """Identity of everything that decides the scores: weights, settings and precision; 64 hex digits."""
        return hashlib.sha256(f"{self.weights_hash} torch.{self.backbone.precision}".encode()).hexdigest()

    def match_precision(self) -> ConditionalScorer:
        """Let large layers compute in the precision of the encoder; for loaded models, never before training.

        The model keeps the identity of the weights as they were stored.
        """
        _ = self.weights_hash
        return self

    def make_variant(self, name: str) -> ConditionalScorer:
        """Build a variant: the same encoder under other settings of the method. Most methods have none.

        Raises:
            UnknownModelError: If there is no such variant.
        """
        describe_variant(self.info, name)  # says that there is none
        raise NotImplementedError

    # The hub: `push_to_hub` is that of the mixin

    def save_pretrained(self, save_directory: str | Path, **options: Any) -> str | None:  # noqa: ANN401 (the mixin's)
        """Save it as a folder that `condviz.load` and sentence-transformers open.

        Args:
            save_directory: A new or empty folder, or one with an earlier version; its last part is the name.
            **options: Of huggingface_hub's `ModelHubMixin`: push_to_hub=True and those of `push_to_hub`.

        Returns:
            The address of the commit on the hub, or None.

        Raises:
            CheckpointError: If the folder holds something else, or the model cannot be saved.
            ConfigError: If nobody has trained it.
        """
        from condviz.models.manifest import check_replaceable

        check_replaceable(Path(save_directory))  # before the mixin removes anything there
        return super().save_pretrained(save_directory, **options)

    def _save_pretrained(self, save_directory: Path) -> None:
        from condviz.models.checkpoints import export

        export(self, save_directory)

    @classmethod
    def from_pretrained(cls, pretrained_model_name_or_path: str | Path, **options: Any) -> Self:  # noqa: ANN401
        """Load a model of this class, as `condviz.load` does, which takes the same options.

        Raises:
            CheckpointError: If it is a model of another class; otherwise as `condviz.load`.
        """
        from condviz.models.registry import load

        model = load(pretrained_model_name_or_path, **options)
        if not isinstance(model, cls):
            raise CheckpointError(f"{pretrained_model_name_or_path} is a {type(model).__name__}, not a {cls.__name__}.")
        return model

    def head_state(self) -> dict[str, Tensor]:
        """Return the weights that the method adds to the encoder."""
        return {name: value for name, value in self.state_dict().items() if not name.startswith("backbone.")}

    @property
    def added_parameters(self) -> int:
        """Number of parameters that the method adds to the encoder."""
        return sum(value.numel() for name, value in self.named_parameters() if not name.startswith("backbone."))

    def train(self, mode: bool = True) -> ConditionalScorer:
        """Switch between training and inference."""
        if mode:
            self._head_hash = None
        return super().train(mode)

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return self.backbone.device

    @property
    def max_seq_length(self) -> int:
        """Most tokens of a sequence; longer texts lose their end."""
        return self.backbone.max_length

    def _run(self, work: Callable[..., Tensor], options: Mapping[str, Any]) -> np.ndarray | Tensor:
        """Check the options of a public call, and run its work with those that concern the encoder."""
        if unknown := set(options) - set(ALLOWED):
            raise ConfigError(f"Unknown option {min(unknown)}. Options: {', '.join(ALLOWED)}.")
        size, progress = options.get("batch_size"), options.get("progress")
        if size is not None and (not isinstance(size, int) or size < 1):
            raise ConfigError(f"batch_size must be a positive integer, or None to fill passes, got {size!r}.")
        self._place(options.get("device"))
        if options.get("show_progress_bar"):
            with tqdm(desc="Encoding", unit="text") as bar:

                def told(done: int, total: int) -> None:
                    bar.total, bar.n = total, done
                    bar.refresh()
                    if progress:
                        progress(done, total)

                values = work(batch_size=size, progress=told)
        else:
            values = work(batch_size=size, progress=progress)
        if options.get("convert_to_tensor"):
            return values.detach().to(self.backbone.device)
        return values.detach().cpu().numpy()

    def _place(self, device: str | None) -> None:
        target = self.backbone.device if device is None else torch.device(choose_device(device))
        head = (value for name, part in self.named_children() if name != "backbone" for value in part.parameters())
        if self.backbone.device != target or any(value.device != target for value in head):
            with self.backbone.lock:  # the head follows where another model has moved the encoder that they share
                self.to(target)


def list_texts(**columns: Iterable[str]) -> list[list[str]]:
    """Return columns of texts as lists; raises DataError unless all have the same length."""
    wrong = [name for name, values in columns.items() if isinstance(values, str) or not isinstance(values, Iterable)]
    if wrong:
        raise DataError(f"{', '.join(columns)} must be lists of texts, not single texts. Put each text into a list.")
    lists = {name: list(values) for name, values in columns.items()}
    if len({len(values) for values in lists.values()}) > 1:
        found = ", ".join(f"{len(values)} {name}" for name, values in lists.items())
        raise DataError(f"Rows do not match: {found}. Pass lists of equal length.")
    return list(lists.values())


def list_rows(conditions: Texts, **sentences: Iterable[str]) -> list[list[str]]:
    """Return sentences and conditions as `list_texts` does; a single condition is repeated for every row."""
    lists = list_texts(**sentences)
    given = [conditions] * len(lists[0]) if isinstance(conditions, str) else conditions
    return list_texts(**dict(zip(sentences, lists, strict=True)), conditions=given)
