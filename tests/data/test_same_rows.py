"""Rows built from the corpora never change: stored scores and shipped models rest on them."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from condviz.data import corpora
from tests.data.built import build

KNOWN = json.loads((Path(__file__).parent / "rows.json").read_text(encoding="utf-8"))
"""Corpus, part, seed and, for blocks, sentences -> first 16 hex digits of the SHA-256 of the table."""


def fingerprint(key: str) -> str:
    name, part, seed, *sentences = key.split()
    if sentences:
        blocks = corpora.build_blocks(name, part, sentences=int(sentences[0]), seed=int(seed))
        text = "\n".join(map(corpora.format_rows, blocks))
    else:
        text = corpora.format_rows(build(name, part, int(seed)))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


@pytest.mark.parametrize("key", KNOWN)
def test_rows_are_the_same_byte_for_byte(key: str) -> None:
    corpus = corpora.CORPORA[key.split()[0]]
    folder = corpora.data_folder() / corpus.folder
    if corpus.folder and not any((folder / file).is_file() for file in corpus.files):
        pytest.skip(f"{corpus.name} is not in {folder}")
    assert fingerprint(key) == KNOWN[key]
