"""The endpoint /errors of the Gradio API: what the Errors tab finds, as plain JSON."""

from __future__ import annotations

import io
from typing import Any

import gradio as gr

from condviz.errors import DataError
from condviz.ui.errors_service import MAX_ROWS, MAX_TABLE_BYTES, ErrorsService
from condviz.ui.guard import api_error

MAX_RESAMPLES = 10_000


def add_errors_api(service: ErrorsService) -> None:
    """Add /errors to the page; call inside gr.Blocks.

    Args:
        service: Datasets, scores and studies.
    """

    @api_error
    def errors(data: str, models: list[str], filter: str = "", resamples: int = 1000) -> dict[str, Any]:
        """Find where one or two models are wrong.

        Args:
            data: A part of a corpus such as "scenes:test", or the content of a CSV file.
            models: One name or two, as /models lists them or as columns score_NAME of the table.
            filter: The slice, for instance 'gold >= 4 and "dog" in shared'; "" for all rows.
            resamples: Of the bootstrap, 0 to 10,000.
        """
        from condviz.analysis.errors.findings import analyse

        if not isinstance(models, list) or not 1 <= len(models) <= 2:
            raise DataError(f"One model or two can be analysed, got {models!r:.80}. Give a list of names.")
        if not isinstance(resamples, int) or not 0 <= resamples <= MAX_RESAMPLES:
            raise DataError(f"resamples must be a whole number from 0 to {MAX_RESAMPLES:,}, got {resamples!r:.20}.")
        key = data if "\n" not in data and ":" in data else _read(service, data)
        for name in models:
            for _ in service.score(service.dataset(key), name):
                pass
        study = service.study(key, models[0], models[1] if len(models) == 2 else None)
        return analyse(study, filter=filter, resamples=resamples).to_dict()

    gr.api(errors, api_name="errors", concurrency_limit=2, concurrency_id="model")


def _read(service: ErrorsService, content: str) -> str:
    from condviz.evaluation.dataset import read_dataset

    dataset = read_dataset(io.StringIO(content), max_rows=MAX_ROWS, max_bytes=MAX_TABLE_BYTES)
    return service.keep(dataset)
