"""The columns of a table that somebody brings are guessed, and no model's scores are taken for ratings."""

from __future__ import annotations

import io

import pytest

from condviz.data.pairs import PAIR_COLUMNS, guess_columns
from condviz.data.tables import read_table


@pytest.mark.parametrize(
    ("table", "expected"),
    [
        ("label,condition,sentence2,sentence1\n1,c,b,a", "sentence1,sentence2,condition,label"),
        ("id,Text A,Text B,Question,Rating\n7,a,b,c,1", "Text A,Text B,Question,Rating"),
        ("n,premise,hypothesis,aspect,score\n7,a,b,c,1", "premise,hypothesis,aspect,score"),
        ("n,u,v,criterion,gold\n7,a long text,another,c,1", "u,v,criterion,gold"),
        ("one,two,asked,points,score_m\nshort one,a longer one,x,1,0.123456789", "one,two,asked,points"),
        ("sentence1,gold,condition,label\na,b,c,1", "sentence1,gold,condition,label"),
        ("sentence1,sentence2,condition,score_case\na,b,c,0.5", "sentence1,sentence2,condition,"),
        ("only\na", "only,,,"),
        ("nr,Satz,Urteil\n0,a,2\n7,b,5", "Satz,,,Urteil"),
    ],
)
def test_columns_are_guessed_by_name_then_by_what_they_hold(table: str, expected: str) -> None:
    guess = guess_columns(read_table(io.StringIO(table)))
    assert list(guess) == list(PAIR_COLUMNS)
    assert ",".join(guess.values()) == expected
