"""docs/interop.md: its examples run, each where its library is installed."""

from __future__ import annotations

import re
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.notebook import run_cell

ROOT = Path(__file__).parents[2]
SECTIONS = {
    title: code
    for title, code in re.findall(
        r"^## ([^\n]+)\n.*?```python\n(.*?)```",
        (ROOT / "docs" / "interop.md").read_text(encoding="utf-8"),
        re.DOTALL | re.MULTILINE,
    )
}
EXAMPLES = {
    "scikit-learn": ("sklearn", "[1]"),
    "sentence-transformers": ("sentence_transformers", "'spearman_cosine': 0.99"),
    "BERTopic": ("bertopic", "0, "),
    "KeyBERT": ("keybert", "[('surfs'"),
    "LangChain": ("langchain_core", "A man surfs at dawn."),
    "LlamaIndex": ("llama_index.core", "A man surfs at dawn."),
    "FAISS": ("faiss", "A man surfs at dawn."),
    "MTEB": ("mteb", "'spearman': 0.3"),
}
"""What each needs, and what is in the answer of its last line."""


def test_every_library_has_an_example_of_a_few_lines() -> None:
    assert set(SECTIONS) == set(EXAMPLES)
    assert max(len(code.splitlines()) for code in SECTIONS.values()) <= 8


@pytest.mark.slow
@pytest.mark.parametrize("title", EXAMPLES)
def test_the_example_runs(title: str, monkeypatch: pytest.MonkeyPatch) -> None:
    needed, said = EXAMPLES[title]
    if find_spec(needed.partition(".")[0]) is None:
        pytest.skip(f"{needed} is not installed")
    monkeypatch.chdir(ROOT)
    sport = ["A man surfs at dawn.", "Two women ski.", "Three boys play football.", "A girl swims in a lake."]
    other = ["A dog sleeps on the sofa.", "The cat hides under a car.", "A horse eats grass.", "Two birds sing."]
    names = {"texts": (sport + other) * 4, "labels": ([1] * 4 + [0] * 4) * 4}
    assert said in str(run_cell(SECTIONS[title], names))
