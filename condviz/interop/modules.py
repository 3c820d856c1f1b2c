"""Models of this package as modules of sentence-transformers, and an evaluator for its trainer."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from sentence_transformers import SentenceTransformer
from sentence_transformers.base.evaluation.evaluator import BaseEvaluator
from sentence_transformers.base.modules import InputModule
from torch import Tensor

from condviz.encoder.tokens import Tokens
from condviz.errors import ConfigError, DataError
from condviz.evaluation.metrics import pearson, spearman
from condviz.methods import ConditionalEncoder
from condviz.methods.base import list_rows
from condviz.models.checkpoints import save_checkpoint
from condviz.models.registry import load

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase


class ConditionalModule(InputModule):
    """A trained model with vectors: the one module of a SentenceTransformer.

    Inputs are pairs [sentence, condition], or texts. It is saved as a checkpoint of this package.

    Args:
        model: With vectors.
        condition: That of texts which come without one; None for none.
    """

    def __init__(self, model: ConditionalEncoder, condition: str | None = None) -> None:
        super().__init__()
        self.model, self.condition = model, condition

    @property
    def tokenizer(self) -> PreTrainedTokenizerBase | None:  # pyright: ignore[reportIncompatibleVariableOverride] (its own)
        """That of the encoder."""
        return self.model.backbone.tokenizer

    @property
    def max_seq_length(self) -> int:
        """Most tokens of a sequence."""
        return self.model.max_seq_length

    def get_embedding_dimension(self) -> int:
        """Return how many numbers a vector has under a condition."""
        return self.model.get_sentence_embedding_dimension()

    def preprocess(self, inputs: Sequence[Any], prompt: str | None = None, **options: object) -> dict[str, Any]:
        """Turn pairs, or texts, into tensors, named by sequence: "ids 0", "mask 0", "ids 1" ...

        Raises:
            ConfigError: If a prompt is given.
            DataError: If the inputs are neither pairs nor texts, or both.
        """
        if prompt:
            raise ConfigError(f"The prompt is {prompt!r}; a condition goes into the pair: [sentence, condition].")
        if self.condition is not None:
            inputs = [(row, self.condition) if isinstance(row, str) else row for row in inputs]
        alone = [isinstance(row, str) for row in inputs]
        if all(alone):
            rows = [(row,) for row in self.model.tokenize_sentences(list(inputs))]
        elif any(alone) or any(len(row) != 2 for row in inputs):
            raise DataError("Inputs are pairs [sentence, condition], or texts without a condition, not a mixture.")
        else:
            rows = self.model.tokenize([tuple(row) for row in inputs])
        found: dict[str, Any] = {"conditional": not all(alone)}
        for number, parts in enumerate(zip(*rows, strict=True)):
            tokens = vars(self.model.backbone.collate(parts))
            found |= {f"{name} {number}": value for name, value in tokens.items() if value is not None}
        return found

    def forward(self, features: dict[str, Any], **options: object) -> dict[str, Any]:
        """Encode what `preprocess` made; adds "sentence_embedding", (b, d) float32."""
        parts: dict[str, dict[str, Tensor]] = {}
        for key, value in features.items():
            name, _, number = key.partition(" ")
            if number:
                parts.setdefault(number, {})[name] = value
        tokens = [Tokens(**parts[number]) for number in sorted(parts)]
        if features["conditional"]:
            vectors = self.model.embed(*tokens)
        else:
            vectors = self.model.project_sentences(self.model.backbone(tokens[0], self.model.method_config.pooling))
        return features | {"sentence_embedding": vectors.float()}

    def save(self, output_path: str, *args: object, **options: object) -> None:
        """Save the model as a checkpoint.

        Raises:
            ConfigError: If its condition is fixed, of which a checkpoint knows nothing.
        """
        if self.condition is not None:
            raise ConfigError("A fixed condition cannot be saved. Save the model without it: model.save_pretrained.")
        save_checkpoint(self.model, Path(output_path))

    @classmethod
    def load(cls, model_name_or_path: str, subfolder: str = "", **options: Any) -> Self:  # noqa: ANN401 # pyright: ignore[reportIncompatibleMethodOverride] (its options are names)
        """Load a checkpoint, from a folder or the hub, in float32 on the CPU; the SentenceTransformer moves it.

        Its encoder is its own, so that it can be trained.
        """
        known = ("token", "cache_folder", "revision", "local_files_only")
        given = {name: options[name] for name in known if name in options}
        folder = cls.load_dir_path(model_name_or_path, subfolder=subfolder, **given)
        model = load(folder or model_name_or_path, device="cpu", precision="float32")
        return cls(copy.deepcopy(_encoder(model)).requires_grad_(True))


def to_sentence_transformer(
    model: str | Path | ConditionalEncoder, condition: str | None = None
) -> SentenceTransformer:
    """Return a model as a SentenceTransformer, on its device.

    Args:
        model: A name, a folder, or a loaded model.
        condition: Fixed for all texts, as in `ConditionalEncoder.under`; pairs [sentence, condition] bring their own.

    Raises:
        ConfigError: If the model has no vectors.
    """
    loaded = _encoder(load(model))
    return SentenceTransformer(modules=[ConditionalModule(loaded, condition)], device=str(loaded.device))


class ConditionalSTSEvaluator(BaseEvaluator):
    """Compares the cosines of a SentenceTransformer of pairs [sentence, condition] with ratings.

    The figures are "pearson_cosine" and "spearman_cosine", as in sentence-transformers' evaluator of plain similarity;
    the latter is the one by which its trainer chooses.

    Args:
        sentences1, sentences2, conditions: p texts each; a single condition goes with every pair.
        labels: p ratings, higher for more alike.
        name: Put before the names of the figures.
        batch_size: Rows of one pass.
    """

    def __init__(
        self,
        sentences1: Iterable[str],
        sentences2: Iterable[str],
        conditions: str | Iterable[str],
        labels: Iterable[float],
        *,
        name: str = "",
        batch_size: int = 32,
    ) -> None:
        super().__init__()
        first, second, under = list_rows(conditions, sentences1=sentences1, sentences2=sentences2)
        self.labels = list(labels)
        if len(self.labels) != len(first):
            raise DataError(f"Rows do not match: {len(first)} pairs, {len(self.labels)} labels.")
        self.rows = [list(pair) for pair in zip(first + second, under + under, strict=True)]
        self.name, self.batch_size, self.primary_metric = name, batch_size, "spearman_cosine"

    def __call__(  # pyright: ignore[reportIncompatibleMethodOverride] (models of pairs alone)
        self, model: SentenceTransformer, output_path: str | None = None, epoch: int = -1, steps: int = -1
    ) -> dict[str, float]:
        """Return the figures; sentence-transformers' trainer calls it."""
        vectors = model.encode(self.rows, batch_size=self.batch_size, convert_to_tensor=True, show_progress_bar=False)
        scores = model.similarity_pairwise(*vectors.chunk(2)).cpu().numpy()
        found = {"pearson_cosine": pearson(self.labels, scores), "spearman_cosine": spearman(self.labels, scores)}
        known = {name: float("nan") if value is None else value for name, value in found.items()}
        metrics = self.prefix_name_to_metrics(known, self.name)
        self.store_metrics_in_model_card_data(model, metrics, epoch, steps)
        return metrics


def _encoder(model: object) -> ConditionalEncoder:
    if not isinstance(model, ConditionalEncoder):
        raise ConfigError(f"{getattr(model, 'name', model)} has no vectors: it cannot be a SentenceTransformer.")
    return model
