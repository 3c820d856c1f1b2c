"""States below the trained layers: those of the encoder, kept on disk, computed again where a file is damaged."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from condviz.evaluation import kgc
from condviz.training import links
from condviz.training.links import LowerStates, lower_states
from tests.tiny import SENTENCES, tiny_backbone


def test_states_are_those_of_the_encoder(tmp_path: Path) -> None:
    backbone = tiny_backbone()
    found = lower_states(backbone, SENTENCES, 2, folder=tmp_path)
    rows = backbone.tokenize([(text,) for text in SENTENCES])
    assert found.lengths == [len(row) for row in rows]
    states, mask = found.batch([3, 1], device=torch.device("cpu"), dtype=torch.float32)
    tokens = backbone.collate([rows[3], rows[1]])
    assert torch.equal(mask, tokens.mask)
    with torch.no_grad():
        expected = backbone.layers.run(backbone.layers.embed(tokens), tokens.mask, stop=2)[-1]
        torch.testing.assert_close(states[mask], expected[mask], rtol=1e-3, atol=2e-3)
        assert not states[~mask].any()
        top = backbone.layers.run(states, mask, start=2)[-1]
        torch.testing.assert_close(top[mask], backbone.states(tokens)[-1][mask], rtol=1e-2, atol=5e-3)


def everything(found: LowerStates) -> torch.Tensor:
    return found.batch(range(len(found)), device=torch.device("cpu"), dtype=torch.float32)[0]


def test_states_are_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kgc, "PART", 3)
    backbone, told = tiny_backbone(), []
    first = lower_states(backbone, SENTENCES, 1, folder=tmp_path, progress=lambda *now: told.append(now))
    assert told == [(3, 4), (4, 4)]
    kept = everything(first)  # before the file is damaged that `first` still reads
    files = sorted(tmp_path.rglob("*.safetensors"))
    assert len(files) == 2
    files[0].write_bytes(b"damaged")
    computed, compute = [], links._compute_states
    monkeypatch.setattr(links, "_compute_states", lambda *given: computed.append(len(given[1])) or compute(*given))
    again = lower_states(backbone, SENTENCES, 1, folder=tmp_path)
    assert computed == [3], "the damaged part alone"
    lower_states(backbone, SENTENCES, 2, folder=tmp_path)
    lower_states(tiny_backbone(seed=1), SENTENCES, 1, folder=tmp_path)
    assert computed == [3, 3, 1, 3, 1], "other layers, other weights"
    assert torch.equal(everything(again), kept)


def test_states_stay_in_memory_where_nothing_can_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert len(lower_states(tiny_backbone(), SENTENCES, 1, folder=tmp_path / "file")) == len(SENTENCES)
