"""The columns of a table that somebody brings are guessed, and no model's scores are taken for ratings."""

from __future__ import annotations

import io

import pytest

from condviz.data.pairs import PAIR_COLUMNS, POINT_ROLES, guess_columns
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
        ("Text,Topic,Verdict\na b c,room,bad\nd e f,food,bad\ng h i,room,good", "Text,,Topic,"),  # one text a row
        ("nr,Satz,Urteil\n0,a,2\n7,b,5", "Satz,,,Urteil"),
        ("id,text_a,text_b,score\nID-1,a,b,1\nID-2,c,d,5", "text_a,text_b,,score"),  # an id is no condition
        ("Nr,Satz 1,Satz 2,Bedingung,Bewertung\n7,a,b,c,1", "Satz 1,Satz 2,Bedingung,Bewertung"),
        ("n,phrase 1,phrase 2,critère,note\n7,a,b,c,1", "phrase 1,phrase 2,critère,note"),
        (
            "Ort,Bewertung A,Bewertung B,Frage\nSee,Das Zelt stand schief.,Es war dort laut.,die Ruhe",
            "Bewertung A,Bewertung B,Frage,",
        ),  # a review, no rating
        ("n,frase_a,frase_b,criterio,puntuación\n7,a,b,c,1", "frase_a,frase_b,criterio,puntuación"),
    ],
)
def test_columns_are_guessed_by_name_then_by_what_they_hold(table: str, expected: str) -> None:
    guess = guess_columns(read_table(io.StringIO(table)))
    assert list(guess) == list(PAIR_COLUMNS)
    assert ",".join(guess.values()) == expected


def test_an_id_before_the_texts_of_a_table_without_names_is_none_of_them() -> None:
    rows = "ID-1,A man surfs.,A girl skis.,the sport,1\nID-2,A man surfs.,A girl skis.,the time of day,3\n"
    table = read_table(io.StringIO(rows), names=PAIR_COLUMNS)
    assert [table.column(column)[1] for column in guess_columns(table).values()] == rows.splitlines()[1].split(",")[1:]
    assert not any("by its name" in why for why in table.report.roles.values())


@pytest.mark.parametrize("names", ["Satz,Bedingung,Wert", "texte,critère,valeur", "Frase,Criterio,Valor"])
def test_headers_of_points_in_other_languages_are_known(names: str) -> None:
    guess = guess_columns(read_table(io.StringIO(f"id,{names}\n1,Es regnet heute.,das Wetter,Regen")), POINT_ROLES)
    assert ",".join(guess.values()) == names


def test_questions_alone_are_the_texts() -> None:
    guess = guess_columns(read_table(io.StringIO("id,Frage\n1,Wo ist mein Paket?\n2,Wann kommt es?")), POINT_ROLES)
    assert (guess["text"], guess["condition"]) == ("Frage", "")
    rows = "".join(f"Die Pumpe leckt seit {row} Tagen.,{'das Teil' if row % 2 else 'der Fehler'}\n" for row in range(8))
    asked = guess_columns(read_table(io.StringIO("Reparatur,Frage\n" + rows)), POINT_ROLES)
    assert list(asked.values()) == ["Reparatur", "Frage", ""]
