"""State of the Router tab as plain JSON, its link, and what the page hands out of it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any
from urllib.parse import parse_qsl, urlencode

import numpy as np

import condviz
from condviz.analysis.router import to_record
from condviz.types import TokenWeights, Word, WordReading
from condviz.ui.exports import describe_revision, finite
from condviz.ui.form_state import FormState, from_query
from condviz.ui.record import pack_info, unpack_info

TAB = "router"
_PREFIX = "r"


def pack_reading(reading: WordReading) -> dict[str, Any]:
    """Give a reading as JSON."""
    return {
        "model": pack_info(reading.model),
        "source": reading.source,
        "texts": [_pack_text(text) for text in reading.texts],
        "scores": None if reading.scores is None else reading.scores.tolist(),
        "unconditional": reading.unconditional,
    }


def unpack_reading(record: dict[str, Any]) -> WordReading:
    """Read what `pack_reading` wrote."""
    scores = record["scores"]
    return WordReading(
        model=unpack_info(record["model"]),
        source=record["source"],
        texts=tuple(_unpack_text(text) for text in record["texts"]),
        scores=None if scores is None else np.array(scores, dtype=np.float32),
        unconditional=record["unconditional"],
    )


def to_link(form: FormState) -> str:
    """Give the query string that opens the tab with this state; apart from the keys of the Compare tab."""
    pairs = parse_qsl(form.to_query(), keep_blank_values=True)
    return urlencode([("t", TAB), *((_PREFIX + key, value) for key, value in pairs)])


def from_link(query: str) -> FormState | None:
    """Read a state from the query string of the page; None if it is not a link to this tab."""
    try:
        pairs = parse_qsl(query.removeprefix("?"), keep_blank_values=True, max_num_fields=400, errors="replace")
    except ValueError:
        return None
    if ("t", TAB) not in pairs:
        return None
    return from_query(urlencode([(key[1:], value) for key, value in pairs if key.startswith(_PREFIX)]))


def to_json(readings: Sequence[WordReading]) -> str:
    """Write readings as `/router` gives them, with the version."""
    return json.dumps(finite({"condviz": condviz.__version__, **to_record(readings)}), ensure_ascii=False, indent=1)


def to_python(readings: Sequence[WordReading]) -> str:
    """Write a script which prints the numbers of the page. Texts are Python literals in ASCII."""
    first = readings[0]
    lines = [
        f"# Words under {len(first.conditions)} condition(s), from CondViz {condviz.__version__}.",
        "# Models and revisions behind the numbers of the page:",
        *(f"#   {ascii(describe_revision(reading.model))[1:-1]}" for reading in readings),
        "",
        "from condviz import load, read_words",
        "",
        f"sentences = [{', '.join(ascii(text.sentence) for text in first.texts)}]",
        f"conditions = [{', '.join(ascii(condition) for condition in first.conditions)}]",
        "",
        f"for name in [{', '.join(ascii(reading.model.name) for reading in readings)}]:",
        "    reading = read_words(load(name), sentences, conditions)",
        '    print(name, "revision", reading.model.revision)',
        "    for text in reading.texts:",
        "        for condition, row in zip(conditions, text.weights[-1]):",
        '            print(f"  {condition}:")',
        "            for word, value in zip(text.words, row):",
        '                print(f"    {value:.3f}  {word.text}")',
        "",
    ]
    return "\n".join(lines)


def _pack_text(text: TokenWeights) -> dict[str, Any]:
    arrays = {name: getattr(text, name).tolist() for name in ("weights", "hidden_mass", "token_weights")}
    spans = {name: [[w.text, w.start, w.end] for w in getattr(text, name)] for name in ("words", "tokens")}
    single = {"sentence": text.sentence, "conditions": list(text.conditions), "layers": list(text.layers)}
    return {**arrays, **spans, **single, "truncated": text.truncated}


def _unpack_text(record: dict[str, Any]) -> TokenWeights:
    conditions, words, tokens = record["conditions"], record["words"], record["tokens"]
    rows = len(record["weights"]), len(conditions)
    return TokenWeights(
        sentence=record["sentence"],
        conditions=tuple(conditions),
        words=tuple(Word(*word) for word in words),
        weights=np.array(record["weights"], dtype=np.float32).reshape(*rows, len(words)),
        layers=tuple(record["layers"]),
        hidden_mass=np.array(record["hidden_mass"], dtype=np.float32).reshape(rows),
        tokens=tuple(Word(*token) for token in tokens),
        token_weights=np.array(record["token_weights"], dtype=np.float32).reshape(*rows, len(tokens)),
        truncated=record["truncated"],
    )
