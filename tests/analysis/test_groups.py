"""Groups, pairs and conditions of a corpus, on vectors whose structure is known."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from condviz.analysis import groups, sorting
from condviz.analysis.compare import library_conditions
from condviz.analysis.groups import cross_table, group_by
from condviz.analysis.sorting import ABOVE, find_twins, rank_sorting_conditions
from condviz.errors import ConfigError, DataError
from condviz.methods.hyper_cl import HyperCL
from condviz.store.corpus import Corpus, Identity
from tests.tiny import tiny_model

SPORT, COLOUR = "the sport", "the mood"


@pytest.fixture(scope="module")
def model() -> HyperCL:
    return tiny_model("hyper-cl", transform=False)


@pytest.fixture
def corpus(model: HyperCL) -> Corpus:
    """Nine combinations of three sports and three colours, ten texts each."""
    texts = [f"{sport} {colour}" for sport in ("tennis", "chess", "golf") for colour in ("red", "blue", "green")] * 10
    units = np.zeros((len(texts), 32), dtype=np.float16)
    units[:, 0] = 1
    sports = [text.split()[0] for text in texts]
    return Corpus(texts, units, np.ones(len(texts), np.float32), Identity.of(model), {"sport": ("text", sports)})


@pytest.fixture(autouse=True)
def known_vectors(monkeypatch: pytest.MonkeyPatch, corpus: Corpus) -> None:
    """Under one condition the vector is the sport and some noise, under the other the colour, under any other noise."""

    def embed(model: object, found: Corpus, condition: str, **_: object) -> np.ndarray:
        word = {SPORT: 0, COLOUR: 1}.get(condition)
        draw = np.random.default_rng(len(condition)).standard_normal((len(found), 6))
        names = sorted({text.split()[word or 0] for text in corpus.column("text")})
        if word is not None:
            places = [names.index(text.split()[word]) for text in corpus.column("text")]
            draw = 10 * np.eye(6)[places][: len(found)] + 0.1 * draw
        return (draw / np.linalg.norm(draw, axis=1, keepdims=True)).astype(np.float32)

    for place in (groups, sorting):
        monkeypatch.setattr(place, "embed_rows", embed)


def test_groups_follow_the_condition_and_have_names(model: HyperCL, corpus: Corpus) -> None:
    found = group_by(corpus, SPORT, groups=3, model=model)
    assert {group.words[0] for group in found.groups} == {"tennis", "chess", "golf"}
    assert [group.size for group in found.groups] == [30, 30, 30]
    assert found.purity["sport"][0] == 1
    assert 1 / 3 < found.purity["sport"][1] < 0.55, "groups of shuffled values have a most frequent one, too"
    assert found.silhouette > 0.9 > found.chance
    assert "fall into 3 groups" in found._repr_html_()
    other = group_by(corpus, COLOUR, groups=3, model=model)
    assert {group.words[0] for group in other.groups} == {"red", "blue", "green"}
    assert other.purity["sport"][0] < 0.4
    assert len(found.to_frame()) == 90
    assert "tennis" in found._repr_html_()


def test_few_texts_make_few_groups(model: HyperCL, corpus: Corpus) -> None:
    vectors, norms = corpus.vectors(np.arange(9))
    few = Corpus([row["text"] for row in corpus.rows(range(9))], vectors, norms, corpus.identity)
    assert [group.size for group in group_by(few, SPORT, groups=8, model=model).groups] == [6, 3], "not nine of one"


def test_groups_of_texts_that_say_nothing_about_the_condition_are_not_claimed(
    model: HyperCL, corpus: Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(HyperCL, "applies", lambda self, texts, asked: np.zeros((len(texts), len(asked))))
    found = group_by(corpus, SPORT, groups=3, model=model)
    assert found.told == 0
    assert "fall into" not in found._repr_html_()
    crossed = cross_table(corpus, SPORT, COLOUR, groups=3, model=model)._repr_html_()
    assert SPORT in crossed
    assert "mean" in crossed, "that the table means little"


def test_dense_groups_leave_out_what_belongs_to_none(
    model: HyperCL, corpus: Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    embed = groups.embed_rows

    def with_outliers(*given: object, **options: object) -> np.ndarray:
        vectors = embed(*given, **options)
        vectors[:3] = -np.eye(6)[3:]
        return vectors

    monkeypatch.setattr(groups, "embed_rows", with_outliers)
    found = group_by(corpus, SPORT, method="hdbscan", model=model)
    assert {group.words[0] for group in found.groups} == {"tennis", "chess", "golf"}
    assert found.left_over.rows == (1, 2, 3)
    assert found.purity["sport"][0] == 1
    assert (found.to_frame()["group"] == 0).sum() == 3
    assert "3 texts belong to no group" in found._repr_html_()


def test_a_cross_table_counts_how_groups_meet(model: HyperCL, corpus: Corpus) -> None:
    found = cross_table(corpus, SPORT, COLOUR, groups=3, model=model)
    assert found.counts == ((10, 10, 10),) * 3
    assert found.information == pytest.approx(0, abs=0.05)
    assert len(found.to_frame()) == 9
    assert found.to_dict()["second"]["condition"] == COLOUR
    assert "has little to do with how they divide" in found._repr_html_()


def test_twins_share_one_thing_and_not_the_other(
    model: HyperCL, corpus: Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(HyperCL, "applies", lambda _, texts, conditions: np.zeros((len(texts), len(conditions))))
    assert "finds no two of these texts" in find_twins(corpus, SPORT, COLOUR, model=model)._repr_html_()
    monkeypatch.setattr(HyperCL, "applies", lambda _, texts, conditions: np.ones((len(texts), len(conditions))))
    found = find_twins(corpus, SPORT, COLOUR, model=model)
    assert len(found.pairs) == 3
    for pair in found.pairs:
        (sport1, colour1), (sport2, colour2) = (text.split() for text in pair.texts)
        assert sport1 == sport2
        assert colour1 != colour2
        assert pair.alike >= ABOVE
        assert pair.different < 0
    texts = [text for pair in found.pairs for text in pair.texts]
    assert len(set(texts)) == len(texts)
    assert found.to_dict()["pairs"]
    row = found.to_frame().loc[0, ["alike_percentile", "different_percentile"]]
    assert tuple(row) == found.pairs[0].percentiles
    sure, unsure = (replace(found.pairs[0], percentiles=(share, 20.0)) for share in (97.0, 80.0))
    assert "Alike under <em>the sport</em>, different under" in replace(found, pairs=(sure,))._repr_html_()
    assert "1 of these 2 pairs is a sure match" in replace(found, pairs=(sure, unsure))._repr_html_()
    assert "none of these pairs is a sure match" in replace(found, pairs=(unsure,))._repr_html_()
    assert "80 % · 20 %" in replace(found, pairs=(unsure,))._repr_html_()
    assert pair.texts[0] in found._repr_html_()


def test_a_condition_that_divides_the_corpus_comes_before_noise(model: HyperCL, corpus: Corpus) -> None:
    told = []
    found = rank_sorting_conditions(
        corpus, ["nothing at all", SPORT, "whatever"], groups=3, model=model, progress=lambda *now: told.append(now)
    )
    assert found.conditions[0].condition == SPORT
    assert found.conditions[0].silhouette > found.conditions[1].silhouette + 0.3
    assert told[-1] == (3, 3)
    assert SPORT in found._repr_html_()


def test_of_the_library_those_are_tried_that_the_texts_tell(
    model: HyperCL, corpus: Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = ["the sport", "the weather", "the number of people", "the price", "the mood of the people"]
    told = np.array([name in known for name in library_conditions()])
    monkeypatch.setattr(
        sorting, "tell_library", lambda texts: (np.tile(told, (len(texts), 1)), np.tile(9.0 * told, (len(texts), 1)))
    )
    found = rank_sorting_conditions(corpus, groups=3, model=model)
    assert {item.condition for item in found.conditions} == set(known)
    assert all(item.applies == 1 for item in found.conditions)


def test_what_cannot_be_done_is_told(model: HyperCL, corpus: Corpus, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigError, match="from 2 to"):
        group_by(corpus, SPORT, groups=1, model=model)
    with pytest.raises(ConfigError, match="hdbscan"):
        group_by(corpus, SPORT, method="other", model=model)
    with pytest.raises(ConfigError, match="k must be"):
        find_twins(corpus, SPORT, COLOUR, k=0, model=model)
    with pytest.raises(DataError, match="are the same"):
        find_twins(corpus, SPORT, SPORT, model=model)
    monkeypatch.setattr(groups, "MOST_TEXTS", 10)
    with pytest.raises(DataError, match="90 texts"):
        group_by(corpus, SPORT, model=model)


def test_texts_without_groups_are_said_to_have_none(
    model: HyperCL, corpus: Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng, claims = np.random.default_rng(0), {"groups": 0, "purity": 0, "cross": 0}
    draws = 12
    spreads = np.linspace(2, 0.2, 6)
    monkeypatch.setattr(groups, "embed_rows", lambda *_, **__: rng.standard_normal((90, 6)) * spreads)
    for _ in range(draws):
        found = cross_table(corpus, SPORT, COLOUR, groups=3, model=model)
        claims["groups"] += found.first.silhouette > found.first.chance
        claims["purity"] += any(share > most for share, most in found.first.purity.values())
        claims["cross"] += found.p < 0.04
    assert max(claims.values()) <= 2, claims
    found = group_by(corpus, SPORT, groups=3, model=model)
    assert ("no groups stand out" in found._repr_html_()) == (found.silhouette <= found.chance)


def test_of_a_thousand_searches_among_random_matrices_one_in_twenty_finds_a_condition_that_sorts() -> None:
    rng = np.random.default_rng(0)
    draws = rng.normal(0.1, 0.02, size=(1_000, sorting.RANDOM_MATRICES + 30))
    found = [sorting.is_clearer(row[16:].max(), row[:16], 30) for row in draws]
    assert np.mean(found) <= 0.05
    assert sorting.is_clearer(0.5, draws[0, :16], 30)


@pytest.mark.slow
def test_columns_and_tables_by_chance_have_nothing_to_do_with_the_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(groups, "SHUFFLES", 99)  # as many false alarms as with more, at a tenth of the time
    rng = np.random.default_rng(0)
    claims = np.zeros(2)
    draws = 1_000
    for _ in range(draws):
        labels, cells = rng.integers(0, 4, 60), rng.integers(0, 3, 60)
        share, most = groups._purity(labels, cells.tolist())
        claims += share > most, groups._p_of_table(np.stack([labels, cells], axis=1)) < groups.ALPHA
    assert (claims / draws <= 0.05).all(), claims


def test_a_column_with_another_value_in_each_text_divides_nothing() -> None:
    assert groups._purity(np.array([0, 0, 1, 1]), ["1", "2", "3", "4"]) is None
    assert groups._purity(np.array([0, 0, 1, 1]), ["a", "a", "b", "b"]) is not None
