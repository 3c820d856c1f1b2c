"""What architectures cost, by counts that follow from the texts alone; times are positive, and offline is less."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.papers.costs import Demand, count_costs, count_csr, graph_demand, row_demand, time_costs
from condviz.data.corpora import data_folder
from condviz.data.kg_formats import load_graph
from condviz.errors import ConfigError
from condviz.types import Pair
from tests.commands import Command
from tests.kg_toy import toy_graph
from tests.tiny import tiny_backbone

MB = 2**20
ROWS = [Pair("a cat", "a man", "the mood"), Pair("a cat", "a man", "the sport"), Pair("a man", "a bike", "the mood")]


@pytest.mark.skipif(not (data_folder() / "wn18rr" / "train.txt").is_file(), reason="no WN18RR here")
@pytest.mark.parametrize(("size", "megabytes"), [(768, [295.29, 121.86, 146.57]), (1024, [392.20, 161.85, 205.81])])
def test_cache_columns_of_hyper_cl_table_4(size: int, megabytes: list[float]) -> None:
    costs = count_costs(graph_demand(load_graph("wn18rr")), size)
    assert {name: (cost.requests, cost.sequences) for name, cost in costs.items()} == {
        "bi-encoder": (186_006, 99_241),
        "tri-encoder": (279_009, 40_954),
        "hyper-cl": (279_009, 40_954),
    }
    assert round(100 * costs["bi-encoder"].hit_rate, 2) == 46.65
    assert round(100 * costs["tri-encoder"].hit_rate, 2) == 85.32
    assert [round(cost.bytes / MB, 2) for cost in costs.values()] == megabytes


def test_rows_by_hand() -> None:
    demand = row_demand(ROWS)
    assert (demand.rows, demand.compositions, demand.joint, demand.texts, demand.conditions) == (3, 6, 5, 3, 2)
    costs = count_costs(demand, 10)
    assert [cost.sequences for cost in costs.values()] == [5, 5, 5]
    assert [cost.requests for cost in costs.values()] == [6, 9, 9]
    assert costs["bi-encoder"].bytes == 5 * (40 + 48)
    assert costs["hyper-cl"].bytes == 3 * (40 + 48) + 2 * (400 + 48)
    assert count_costs(demand, 10, rank=2)["hyper-cl"].bytes == 3 * 88 + 2 * (4 * 40 + 2 * 48)
    # [CLS] a cat [SEP] are 4 tokens, as are the other two texts; two routed layers keep two vectors a condition.
    assert count_csr(demand, tiny_backbone(), 2).bytes == 4 * 32 * (12 + 2 * 2) + 48 * 5


def test_no_rows_ask_for_nothing() -> None:
    assert {cost.hit_rate for cost in count_costs(row_demand([]), 10).values()} == {0.0}


def test_times_of_rows_and_graphs(tmp_path: Path) -> None:
    tri = {"hadamard", "concat", "hyper-cl", "hyper-cl, rank 4"}
    rows = time_costs(row_demand(ROWS), tiny_backbone(), rank=4, calls=2)
    assert set(rows) == {"bi-encoder", *tri, *(f"csr, {number} routed" for number in (1, 2, 3))}
    graph = graph_demand(toy_graph(tmp_path / "graph"), samples=2)
    found = time_costs(graph, tiny_backbone("mpnet"), rank=4, calls=2)
    assert set(found) == {"bi-encoder", *tri}
    for name, (online, offline) in (rows | found).items():
        assert online > 0
        assert (offline is None) == (name == "bi-encoder")
        assert offline is None or 0 < offline < online
    with pytest.raises(ConfigError, match="cannot be timed"):
        time_costs(row_demand(ROWS), tiny_backbone(), calls=0)
    with pytest.raises(ConfigError, match="cannot be timed"):
        time_costs(Demand(3, 6, 5, 0, 3, 2), tiny_backbone())


def test_the_command_takes_any_table(tmp_path: Path, bench: Command) -> None:
    table = tmp_path / "rows.csv"
    lines = (f"{row.sentence1},{row.sentence2},{row.condition}" for row in ROWS)
    table.write_text("\n".join(["sentence1,sentence2,condition", *lines]), encoding="utf-8")
    shown = bench("papers", "costs", table, "--calls", "1", "--rank", "8").out
    assert "csr, 6 routed" in shown
    assert "hyper-cl, rank 8" in shown
    bench.refuse("papers", "costs", tmp_path / "none.csv")
