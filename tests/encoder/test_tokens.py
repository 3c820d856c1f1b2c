"""Batches of token ids."""

from __future__ import annotations

import torch
from hypothesis import given
from hypothesis import strategies as st

from condviz.encoder.tokens import Encoded, Joined, Tokens, batches_by_length, collate

SHORT, LONG = Encoded((1, 2), (0, 0)), Encoded((3, 4, 5), (0, 1, 1), pooled=(False, True, True))


def test_shorter_rows_are_padded_on_the_right() -> None:
    tokens = collate([SHORT, LONG], pad_id=9)
    assert tokens.ids.tolist() == [[1, 2, 9], [3, 4, 5]]
    assert tokens.mask.tolist() == [[True, True, False], [True, True, True]]
    assert tokens.types.tolist() == [[0, 0, 0], [0, 1, 1]]
    assert tokens.pooled.tolist() == [[True, True, False], [False, True, True]]
    assert tokens.counted_positions().tolist() == [[0, 1, 1], [0, 1, 2]]


def test_what_all_rows_lack_is_left_out() -> None:
    tokens = collate([SHORT], pad_id=0)
    assert tokens.types is None
    assert tokens.pooled is None
    assert len(tokens) == 1


def test_given_positions_win_and_move_along() -> None:
    positions = torch.tensor([[5, 6]])
    tokens = Tokens(torch.ones(1, 2).long(), torch.ones(1, 2).bool(), positions=positions).to("cpu")
    assert tokens.counted_positions() is tokens.positions
    assert tokens.types is None


@given(st.lists(st.integers(1, 50), max_size=60), st.integers(1, 200))
def test_batches_hold_every_row_once_within_the_limit(lengths: list[int], limit: int) -> None:
    batches = list(batches_by_length(lengths, limit))
    assert sorted(i for batch in batches for i in batch) == list(range(len(lengths)))
    for batch in batches:
        assert len(batch) == 1 or len(batch) * max(lengths[i] for i in batch) <= limit
    tops = [max(lengths[i] for i in batch) for batch in batches]
    assert tops == sorted(tops, reverse=True)


def test_joined_records_count_and_warn_together() -> None:
    both = Joined((SHORT, Encoded((1,), (0,), truncated=True)))
    assert len(both) == 3
    assert both.truncated
    assert not Joined((SHORT, LONG)).truncated
    assert len(Joined((SHORT,))) == 2
