"""What the page hands out: the comparison as JSON, as a Python script that prints the same numbers, and as CSV."""

from __future__ import annotations

import csv
import io
import json
import math
from typing import Any

import condviz
from condviz.data.texts import plain_cell
from condviz.types import Comparison, ModelInfo


def describe_revision(info: ModelInfo) -> str:
    """Name a model and the revision of the weights behind its scores."""
    return f"{info.name} @ {info.revision or 'not loaded'} ({'trained' if info.trained else 'not trained'})"


def to_record(comparison: Comparison) -> dict[str, Any]:
    """Give the comparison as plain JSON that states where its numbers come from; missing numbers become None."""
    models = [
        {"name": info.name, "title": info.title, "kind": info.kind, "trained": info.trained, "revision": info.revision}
        for info in comparison.models
    ]
    return {
        "condviz": condviz.__version__,
        "sentence1": comparison.sentence1,
        "sentence2": comparison.sentence2,
        **finite(comparison.to_dict()),
        "revisions": models,
        "notes": list(comparison.notes),
    }


def to_json(comparison: Comparison) -> str:
    """Write the record of `to_record` as text."""
    return json.dumps(to_record(comparison), ensure_ascii=False, indent=2)


def to_python(comparison: Comparison) -> str:
    """Write a script which, run where this package is installed, prints the numbers of the page.

    Texts appear as Python literals in ASCII, so nothing in them can end the string or change the script.
    """
    header = [
        f"# One sentence pair under {len(comparison.conditions)} condition(s), from CondViz {condviz.__version__}.",
        "# Models and revisions behind the numbers of the page:",
        *(f"#   {ascii(describe_revision(info))[1:-1]}" for info in comparison.models),
    ]
    names = ", ".join(ascii(info.name) for info in comparison.models)
    body = [
        "",
        "import condviz",
        "",
        f"sentence1 = {comparison.sentence1!a}",
        f"sentence2 = {comparison.sentence2!a}",
        "conditions = [",
        *(f"    {condition!a}," for condition in comparison.conditions),
        "]",
        "",
        f"for name in [{names}]:",
        "    model = condviz.load(name)",
        "    count = len(conditions)",
        "    base = model.score_unconditional([sentence1], [sentence2])[0]",
        "    scores = model.score([sentence1] * count, [sentence2] * count, conditions)",
        '    print(f"{name}  (revision {model.info.revision})")',
        '    print(f"  {base:.3f}           no condition")',
        "    for condition, score in zip(conditions, scores):",
        '        print(f"  {score:.3f}  {score - base:+.3f}   {condition}")',
        "",
    ]
    return "\n".join(header + body)


def to_csv(comparison: Comparison) -> str:
    """Write one row per model and condition; the row with an empty condition is the score without one.

    Texts that a spreadsheet would run as a formula get an apostrophe in front.
    """
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(
        ["model", "revision", "trained", "sentence1", "sentence2", "condition", "score", "change", "percentile"]
    )
    pair = [plain_cell(comparison.sentence1), plain_cell(comparison.sentence2)]
    for row, info in enumerate(comparison.models):
        start = [info.name, info.revision, info.trained, *pair]
        base = float(comparison.unconditional[row])
        writer.writerow([*start, "", f"{base:.6f}", "", ""])
        for column, condition in enumerate(comparison.conditions):
            score = float(comparison.scores[row, column])
            percentile = float(comparison.percentiles[row, column])
            shown = f"{percentile:.1f}" if math.isfinite(percentile) else ""
            writer.writerow([*start, plain_cell(condition), f"{score:.6f}", f"{score - base:.6f}", shown])
    return out.getvalue()


def finite(value: Any) -> Any:  # noqa: ANN401 - any JSON
    """Give the same JSON with None in place of numbers that are not finite, which JSON cannot hold."""
    if isinstance(value, dict):
        return {key: finite(item) for key, item in value.items()}
    if isinstance(value, list):
        return [finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
