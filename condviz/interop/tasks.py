"""Conditional similarity as a task of MTEB: tables with sentence1, sentence2, condition and label."""

# pyright: reportMissingImports=false
# An extra, which development does not install.
from __future__ import annotations

from pathlib import Path
from typing import Any

from datasets import Dataset
from mteb.abstasks.sts import AbsTaskSTS
from mteb.abstasks.task_metadata import TaskMetadata
from mteb.models import EncoderProtocol
from torch.utils.data import DataLoader

from condviz.data.pairs import read_pairs
from condviz.errors import DataError
from condviz.evaluation.metrics import pearson, spearman


class ConditionalSTS(AbsTaskSTS):
    """Compares the cosines of two sentences under a condition with ratings: Spearman and Pearson correlation.

    A model of MTEB gets pairs [sentence, condition] in the place of texts, as a SentenceTransformer does that
    `condviz.interop.to_sentence_transformer` returns or that opened a folder of ours. Encoders of others read a pair as
    their tokenizer joins it.

    Args:
        table: A file with the columns, or what else `condviz.evaluate` takes; rows without a label are left out.
        seed: As in MTEB.

    Example:
        >>> model = to_sentence_transformer("bi-encoder")
        >>> mteb.evaluate(model, ConditionalSTS("assets/reference_pairs.csv"), cache=None)
    """

    metadata = TaskMetadata(
        name="ConditionalSTS",
        description="How similar are two sentences with respect to a condition?",
        dataset={"path": "own", "revision": "1"},
        type="STS",
        eval_splits=["test"],
        eval_langs=["eng-Latn"],
        main_score="spearman",
        is_public=False,
    )
    column_names = ("input1", "input2")

    def __init__(self, table: str | Path, *, seed: int = 42) -> None:
        super().__init__(seed=seed)
        self.table = table

    def load_data(self, *args: object, **options: object) -> None:
        """Read the table.

        Raises:
            DataError: If it cannot be read, or no row has a label.
        """
        rows = [pair for pair in read_pairs(self.table).pairs if pair.label is not None]
        if not rows:
            raise DataError(f"No row of {self.table} has a label. Ratings belong into the column label.")
        columns = {
            "input1": [[row.sentence1, row.condition] for row in rows],
            "input2": [[row.sentence2, row.condition] for row in rows],
            "score": [float(label) for row in rows if (label := row.label) is not None],
        }
        self.dataset, self.data_loaded = {"test": Dataset.from_dict(columns)}, True

    def _evaluate_subset(
        self,
        model: EncoderProtocol,
        data_split: Dataset,
        *,
        encode_kwargs: dict[str, Any],
        hf_split: str,
        hf_subset: str,
        **others: object,
    ) -> dict[str, float]:
        where = {"task_metadata": self.metadata, "hf_split": hf_split, "hf_subset": hf_subset}
        vectors = []
        for column in self.column_names:
            texts: Any = Dataset.from_dict({"text": data_split[column]})
            batches = DataLoader(texts, batch_size=encode_kwargs.get("batch_size", 32), collate_fn=_as_columns)
            vectors.append(model.encode(batches, **where, **encode_kwargs))
        scores = [float(score) for score in model.similarity_pairwise(*vectors)]
        found = {"pearson": pearson(data_split["score"], scores), "spearman": spearman(data_split["score"], scores)}
        return {name: float("nan") if value is None else value for name, value in found.items()}


def _as_columns(rows: list[dict[str, Any]]) -> dict[str, list[Any]]:
    """Make a batch without turning pairs into columns."""
    return {"text": [row["text"] for row in rows]}
