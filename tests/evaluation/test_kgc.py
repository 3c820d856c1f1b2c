"""Link prediction: vectors kept on disk, figures of both directions, what architectures cost, stored results."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from benchmarks.board import format_link_scores, write_link_scores
from benchmarks.ranks import evaluate_links
from condviz.data.kg import Graph
from condviz.errors import ConfigError, DataError
from condviz.evaluation.kgc import entity_vectors, shorten, split_queries
from condviz.evaluation.scoreboard import PUBLISHED, LinkScores, read_link_scores
from condviz.methods import ConditionalEncoder, ConditionalScorer
from tests.kg_toy import ENTITIES, toy_graph
from tests.tiny import encoded_rows, tiny_backbone, tiny_model

MB = 2**20


def make(name: str) -> ConditionalScorer:
    return tiny_model(name, **({} if name == "cross-encoder" else {"pooling": "mean"}))


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    return toy_graph(tmp_path / "graph")


@pytest.mark.parametrize("name", ["hyper-cl", "tri-encoder", "bi-encoder", "csr", "case", "unconditional"])
def test_figures_are_those_of_the_definition(name: str, graph: Graph, tmp_path: Path) -> None:
    model = make(name)
    assert isinstance(model, ConditionalEncoder)
    report = evaluate_links(model, graph, "test", folder=tmp_path / "cache")
    texts = graph.texts(neighbours=False)
    entities = torch.nn.functional.normalize(torch.from_numpy(model.encode_sentences(texts)), dim=1)
    known = {tuple(row) for split in graph.splits for row in graph.directed(split).tolist()}
    ranks = []
    for head, relation, tail in graph.directed("test").tolist():
        query = torch.from_numpy(model.encode([texts[head]], [graph.relation_text(relation)]))[0]
        scores = entities @ torch.nn.functional.normalize(query, dim=0)
        rivals = [i for i in range(ENTITIES) if i != tail and (head, relation, i) not in known]
        ranks.append(1 + sum(float(scores[i]) > float(scores[tail]) for i in rivals))
    assert report.plain["forward"]["MR"] == pytest.approx(ranks[0])
    assert report.plain["inverse"]["MR"] == pytest.approx(ranks[1])
    assert report.plain["mean"]["MRR"] == pytest.approx(sum(1 / rank for rank in ranks) / 2)
    assert set(report.by_relation) == {"the park"}


def test_vectors_are_encoded_once(graph: Graph, tmp_path: Path) -> None:
    texts, first, second = graph.texts(neighbours=False), make("tri-encoder"), make("hyper-cl")
    told: list[tuple[int, int]] = []
    with encoded_rows(first.backbone) as rows:
        found = entity_vectors(first, texts, folder=tmp_path, progress=lambda *now: told.append(now))
    assert sum(rows) == len(set(texts))
    assert told[-1] == (ENTITIES, ENTITIES)
    with encoded_rows(second.backbone) as rows:  # another model on the same encoder, in another process say
        again = entity_vectors(second, texts, folder=tmp_path)
    assert not rows
    torch.testing.assert_close(again, found)


def test_damaged_and_forbidden_folders_only_cost_time(graph: Graph, tmp_path: Path) -> None:
    texts, model = graph.texts(neighbours=False), make("unconditional")
    found = entity_vectors(model, texts, folder=tmp_path)
    (file,) = tmp_path.rglob("*.safetensors")
    file.write_bytes(b"broken")
    torch.testing.assert_close(entity_vectors(model, texts, folder=tmp_path), found)
    (tmp_path / "file").write_text("no folder")
    torch.testing.assert_close(entity_vectors(model, texts, folder=tmp_path / "file"), found)


def test_long_texts_are_cut_at_a_token() -> None:
    backbone = tiny_backbone()
    text = "the man rides a bike in the park"
    assert shorten(backbone, [text, "a cat"], 6) == ["the man rides a", "a cat"]
    assert max(len(row) for row in backbone.tokenize([(cut,) for cut in shorten(backbone, [text], 6)])) == 6


def test_what_cannot_be_evaluated(graph: Graph, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="has no vectors"):
        evaluate_links(make("cross-encoder"), graph, folder=tmp_path)
    empty = Graph("toy", graph.entities, graph.relations, {**graph.splits, "test": graph.splits["test"][:0]})
    with pytest.raises(DataError, match="test part of toy has no triples"):
        split_queries(empty, "test")


def test_vectors_of_other_lengths_are_refused_before_the_graph_is_encoded(graph: Graph, tmp_path: Path) -> None:
    model = tiny_model("case", pooling="mean", projection="linear", projection_dim=8)
    with encoded_rows(model.backbone) as rows, pytest.raises(ConfigError, match="8 numbers under a relation and of 32"):
        evaluate_links(model, graph, folder=tmp_path)
    assert sum(rows) < ENTITIES


def test_first_triples_only(graph: Graph) -> None:
    queries = split_queries(graph, "train", limit=3)
    assert queries[:3].tolist() == graph.splits["train"][:3].tolist()
    assert queries[3:, [2, 0]].tolist() == graph.splits["train"][:3][:, [0, 2]].tolist()


def test_stored_results(tmp_path: Path) -> None:
    figures = {"MRR": 0.25, "hits@1": 0.2, "hits@3": 0.3, "hits@10": 0.4, "MR": 9.0, "queries": 4}
    report = {"graph": "wn18rr", "model": "mine", "split": "test", "plain": {"mean": figures}, "reranked": None,
              "by_relation": {"of": figures}}  # fmt: skip
    scores = LinkScores("mine", "Mine", "abc", "a/MiniLM", "not trained", "cpu", None, report)
    write_link_scores([scores], tmp_path / "kgc.json")
    assert read_link_scores(tmp_path / "kgc.json") == [scores]
    assert read_link_scores(tmp_path / "none.json") == []
    table = format_link_scores([scores]).splitlines()
    assert len(table) == 2 + 1 + len(PUBLISHED)
    assert "| `mine` | not trained | MiniLM, cpu | plain | 25.0 | 20.0 | 30.0 | 40.0 |" in table
    assert table[2].startswith("| SimKGC")
    (tmp_path / "kgc.json").write_text('{"format": 7}')
    with pytest.raises(DataError, match="format 7"):
        read_link_scores(tmp_path / "kgc.json")
