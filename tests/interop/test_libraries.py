"""docs/interop.md: its examples run, each where its library is installed."""

from __future__ import annotations

import re
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SECTIONS = {
    title: code
    for title, code in re.findall(
        r"^## ([^\n]+)\n.*?```python\n(.*?)```",
        (ROOT / "docs" / "interop.md").read_text(encoding="utf-8"),
        re.DOTALL | re.MULTILINE,
    )
}
NEEDED = {
    "scikit-learn": "sklearn",
    "sentence-transformers": "sentence_transformers",
    "BERTopic": "bertopic",
    "KeyBERT": "keybert",
    "LangChain": "langchain_core",
    "LlamaIndex": "llama_index.core",
    "FAISS": "faiss",
    "MTEB": "mteb",
}


def test_every_library_has_an_example_of_a_few_lines() -> None:
    assert set(SECTIONS) == set(NEEDED)
    assert max(len(code.splitlines()) for code in SECTIONS.values()) <= 8


@pytest.mark.slow
@pytest.mark.parametrize("title", NEEDED)
def test_the_example_runs(title: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if find_spec(NEEDED[title].partition(".")[0]) is None:
        pytest.skip(f"{NEEDED[title]} is not installed")
    monkeypatch.chdir(ROOT)
    sport = ["A man surfs at dawn.", "Two women ski.", "Three boys play football.", "A girl swims in a lake."]
    other = ["A dog sleeps on the sofa.", "The cat hides under a car.", "A horse eats grass.", "Two birds sing."]
    exec(SECTIONS[title], {"texts": (sport + other) * 4, "labels": ([1] * 4 + [0] * 4) * 4})
