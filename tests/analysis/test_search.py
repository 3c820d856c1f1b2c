"""Search under a condition: equal to brute force, honest about what was read, and clear about bad input."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from condviz.analysis import groups
from condviz.analysis import search as module
from condviz.analysis.search import search
from condviz.errors import ConfigError, DataError
from condviz.methods.base import ConditionalScorer
from condviz.methods.baselines import TriEncoder, TriEncoderConfig
from condviz.methods.encoders import ConditionalEncoder, SeparableEncoder
from condviz.methods.hyper_cl import HyperCL, HyperCLConfig
from condviz.models import registry
from condviz.store import corpus as corpora
from condviz.store import disk
from condviz.store.build import build_store
from condviz.store.corpus import Corpus, encode_corpus
from tests.commands import Command
from tests.stand_ins import interrupt
from tests.tiny import SENTENCES, WORDS, tiny_backbone, tiny_model

QUERY, CONDITION = "a man rides a bike", "the sport"
SEPARABLE = {
    "hyper-cl, low rank": (HyperCL, HyperCLConfig(rank=4, transform=False)),
    "hyper-cl, full": (HyperCL, HyperCLConfig(rank=None)),
    "hadamard": (TriEncoder, TriEncoderConfig(composition="hadamard")),
    "concat": (TriEncoder, TriEncoderConfig(composition="concat")),
}


def make_texts(count: int = 60) -> list[str]:
    draw = np.random.default_rng(0)
    return [" ".join(draw.choice(WORDS, 4)) for _ in range(count)]


def make_corpus(model: ConditionalEncoder, count: int = 60) -> Corpus:
    texts = make_texts(count)
    return encode_corpus(
        model, texts, {"stars": range(count), "kind": ["cat" if i % 3 else "dog" for i in range(count)]}
    )


@pytest.fixture(params=SEPARABLE)
def separable(request: pytest.FixtureRequest) -> SeparableEncoder:
    method, config = SEPARABLE[request.param]
    return method(tiny_backbone(), config).eval()


@pytest.fixture(scope="module")
def hyper() -> HyperCL:
    return tiny_model("hyper-cl", transform=False)


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(corpora, "BLOCK_ROWS", 7)
    told = lambda _, sentences, conditions: np.array([[float("cat" in text)] for text in sentences])  # noqa: E731
    monkeypatch.setattr(ConditionalScorer, "applies", told)


def test_a_separable_method_scores_every_stored_vector(separable: SeparableEncoder) -> None:
    corpus = make_corpus(separable)
    vectors, norms = corpus.vectors(np.arange(len(corpus)))
    stored = vectors.astype(np.float32) * norms[:, None]
    query = separable.encode_sentences([QUERY])
    conditions = separable.encode_conditions([CONDITION])
    index = np.zeros(len(corpus), dtype=np.int64)
    rows, wanted = separable.compose(stored, conditions, index), separable.compose(query, conditions)
    brute = separable.similarity(rows, wanted)[:, 0]
    hits = search(corpus, QUERY, CONDITION, k=60, model=separable)
    assert hits.read == hits.searched
    assert hits.read == len(corpus)
    np.testing.assert_allclose([hit.score for hit in hits.hits], np.sort(brute)[::-1], atol=2e-6)
    np.testing.assert_allclose([brute[hit.row - 1] for hit in hits.hits], [hit.score for hit in hits.hits], atol=2e-6)


def test_vectors_are_read_once_with_and_without_the_condition(hyper: HyperCL, monkeypatch: pytest.MonkeyPatch) -> None:
    corpus, read = make_corpus(hyper), []
    blocks = corpus.blocks
    monkeypatch.setattr(corpus, "blocks", lambda: read.append(1) or blocks())
    hits = search(corpus, QUERY, CONDITION, k=60, model=hyper)
    assert read == [1]
    plain = [hit.unconditional for hit in search(corpus, QUERY, k=60, model=hyper).hits]
    assert [plain[hit.plain_rank - 1] for hit in hits.hits] == [hit.unconditional for hit in hits.hits]


def test_the_stored_vectors_are_nearly_those_of_the_model(hyper: HyperCL) -> None:
    hits = search(make_corpus(hyper), QUERY, CONDITION, model=hyper)
    texts = [hit.text for hit in hits.hits]
    direct = hyper.score([QUERY] * len(texts), texts, [CONDITION] * len(texts))
    np.testing.assert_allclose([hit.score for hit in hits.hits], direct, atol=2e-3)


def test_each_hit_says_whether_it_tells_the_condition(hyper: HyperCL, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "READ_FOR_TELLING", 8)
    hits = search(make_corpus(hyper), "a cat", CONDITION, model=hyper)
    assert [hit.applies for hit in hits.hits[:8]] == [float("cat" in hit.text) for hit in hits.hits[:8]]
    assert [hit.applies for hit in hits.hits[8:]] == [None, None]
    assert not hits.untold
    assert search(make_corpus(hyper), "two dogs", CONDITION, model=hyper).untold
    assert search(make_corpus(hyper), "two dogs", model=hyper).applies is None


def test_words_carry_a_hit_as_far_as_the_score_falls_without_them(
    hyper: HyperCL, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "READ_FOR_WORDS", 4)
    told = []
    corpus = make_corpus(hyper)
    hits = search(corpus, QUERY, CONDITION, model=hyper, k=6)
    found = module.add_words(hyper, hits, progress=lambda *now: told.append(now))
    assert told[-1] == (4, 4)
    assert [hit.words is None for hit in found.hits] == [False] * 4 + [True] * 2
    hit = found.hits[0]
    word, effect = hit.words.words2[1], hit.words.effects2[1]
    shorter = " ".join(w for place, w in enumerate(hit.text.split()) if place != 1)
    with_it, without = hyper.score([QUERY] * 2, [hit.text, shorter], [CONDITION] * 2)
    assert effect == pytest.approx(float(with_it - without), abs=1e-5)
    assert found.to_dict()["hits"][0]["words"][1]["text"] == word.text
    assert found.to_frame()["words"][0] == ", ".join(hit.carried_by)
    assert ("<mark" in found._repr_html_()) == any(hit.carried_by for hit in found.hits)
    assert search(corpus, QUERY, model=hyper, words=True).hits[0].words.condition is None


def test_without_a_condition_it_is_plain_search(hyper: HyperCL) -> None:
    hits = search(make_corpus(hyper), QUERY, "  ", model=hyper)
    assert hits.condition is None
    assert [hit.plain_rank for hit in hits.hits] == list(range(1, 11))
    direct = hyper.score_unconditional([QUERY], [hits.hits[0].text])
    assert hits.hits[0].score == pytest.approx(float(direct[0]), abs=2e-3)


def test_other_methods_rerank_the_nearest_and_say_how_many(monkeypatch: pytest.MonkeyPatch, hyper: HyperCL) -> None:
    monkeypatch.setattr(module, "RERANKED", 20)
    told = []
    bi = tiny_model("bi-encoder")
    corpus = make_corpus(bi)
    hits = search(corpus, QUERY, CONDITION, model=bi, progress=lambda *now: told.append(now))
    assert (hits.read, hits.searched) == (20, 60)
    assert "20 of 60" in hits.notes[0]
    assert all(hit.plain_rank <= 20 for hit in hits.hits)
    assert told[-1][0] == told[-1][1]
    assert told == sorted(told), "it never goes back"
    texts = [hit.text for hit in hits.hits]
    scores = bi.score([QUERY] * 10, texts, [CONDITION] * 10)
    np.testing.assert_allclose([hit.score for hit in hits.hits], scores, atol=1e-5)


def test_a_cross_encoder_reranks_what_another_model_found(hyper: HyperCL) -> None:
    cross = tiny_model("cross-encoder")
    told = []
    hits = search(make_corpus(hyper), QUERY, CONDITION, model=cross, k=3, progress=lambda *now: told.append(now))
    assert [hit.score for hit in hits.hits] == sorted((hit.score for hit in hits.hits), reverse=True)
    assert told == sorted(told), "texts first, then pairs of the corpus"
    assert told[-1][0] == told[-1][1]


def test_a_plain_search_is_that_of_the_model_of_the_vectors(hyper: HyperCL) -> None:
    corpus, cross = make_corpus(hyper), tiny_model("cross-encoder")
    assert search(corpus, QUERY, model=cross) == search(corpus, QUERY, model=hyper)


def test_filters_restrict_and_ranks_count_what_is_left(hyper: HyperCL) -> None:
    corpus = make_corpus(hyper)
    hits = search(corpus, QUERY, CONDITION, model=hyper, where='stars >= 30 and kind == "dog"', k=60)
    assert hits.searched == len(hits.hits) == 10
    assert all(hit.cells["stars"] >= 30 and hit.cells["kind"] == "dog" for hit in hits.hits)
    assert sorted(hit.plain_rank for hit in hits.hits) == list(range(1, 11))
    assert all("bike" in hit.text for hit in search(corpus, QUERY, model=hyper, contains="BIKE", k=60).hits)
    assert all(hit.text.startswith("a ") for hit in search(corpus, QUERY, model=hyper, contains="/^a /", k=60).hits)
    assert search(corpus, QUERY, model=hyper, where="stars > 99").notes


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"query": " "}, DataError, "query is empty"),
        ({"k": 0}, ConfigError, "from 1 to 1,000"),
        ({"where": "stars >"}, DataError, "cannot be read"),
        ({"where": "colour == 1"}, DataError, "no column 'colour'"),
        ({"contains": "/(/"}, DataError, "not a valid regular expression"),
    ],
)
def test_bad_input_is_told(hyper: HyperCL, options: dict, error: type, message: str) -> None:
    with pytest.raises(error, match=message):
        search(make_corpus(hyper, 4), **({"query": QUERY, "model": hyper} | options))


def test_a_pattern_that_never_ends_is_stopped(monkeypatch: pytest.MonkeyPatch, hyper: HyperCL) -> None:
    monkeypatch.setattr(module, "REGEX_SECONDS", 0.05)
    corpus = encode_corpus(hyper, ["a" * 40 + "!"] * 3)
    with pytest.raises(DataError, match="too long"):
        search(corpus, QUERY, model=hyper, contains="/^(a|aa|a?)+$/")


def test_vectors_of_another_model_are_refused(hyper: HyperCL) -> None:
    other = tiny_model("hyper-cl", seed=1, transform=False)
    with pytest.raises(DataError, match="makes others"):
        search(make_corpus(hyper), QUERY, CONDITION, model=other)


def test_stopping_ends_the_scan(hyper: HyperCL) -> None:
    with pytest.raises(KeyboardInterrupt):
        search(make_corpus(hyper), QUERY, CONDITION, model=hyper, progress=interrupt)


def test_the_corpus_that_ships_is_encoded_once(hyper: HyperCL, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disk, "_sentences", lambda: (make_texts(), {"domain": ["x"] * 60}))
    told = []
    first = search(
        "scenes", QUERY, CONDITION, model=hyper, where='domain == "x"', progress=lambda *now: told.append(now)
    )
    assert first.total == 60
    assert disk.open_corpus("scenes", hyper) is disk.open_corpus("scenes", hyper)
    cross = tiny_model("cross-encoder")
    monkeypatch.setattr(disk, "load", lambda name: hyper)
    assert search("scenes", QUERY, CONDITION, model=cross, k=2).hits


def test_a_result_travels(hyper: HyperCL) -> None:
    corpus = encode_corpus(hyper, ["a <b>cat</b>", *SENTENCES], {"note": ["<i>", "b", None, "d", "e"]})
    hits = search(corpus, QUERY, CONDITION, model=hyper)
    content = hits.to_dict()
    assert content["hits"][0]["rank"] == 1
    assert content["condition"] == CONDITION
    frame = hits.to_frame()
    assert list(frame["row"]) == [hit.row for hit in hits.hits]
    assert "note" in frame
    named = encode_corpus(hyper, list(SENTENCES), {"score": list("abcd"), "condition": list("efgh")})
    assert set(search(named, QUERY, model=hyper).to_frame()["score (column)"]) == set("abcd")
    assert set(search(named, QUERY, model=hyper).to_frame()["condition (column)"]) == set("efgh")
    page = hits._repr_html_()
    assert "&lt;b&gt;cat" in page
    assert "<b>cat" not in page


def test_commands_build_and_search(
    hyper: HyperCL, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cli: Command
) -> None:
    pytest.importorskip("lance")
    from condviz.store import build

    for place in (corpora, build, registry):
        monkeypatch.setattr(place, "load", lambda name, **_: hyper)
    (tmp_path / "a.csv").write_text("text,stars\n" + "".join(f"{text},{i}\n" for i, text in enumerate(make_texts())))
    store = str(tmp_path / "my.store")
    assert "60" in cli("store", "build", tmp_path / "a.csv", "--out", store).out
    lines = cli("search", store, QUERY, "--condition", CONDITION, "--where", "stars < 30", "-k", "3").out.splitlines()
    expected = search(store, QUERY, CONDITION, model=hyper, where="stars < 30", k=3)
    assert [line.split(None, 6)[-1] for line in lines[2:5]] == [hit.text for hit in expected.hits]
    assert "is not a store" in cli.refuse("search", tmp_path, QUERY)
    build_store(tmp_path / "a.csv", store, model=hyper)
    (tmp_path / "b.csv").write_text("text,stars\na new cat,7\n")
    assert "1 rows were added" in cli("store", "append", tmp_path / "b.csv", store).err
    assert "carried by" in cli("search", store, QUERY, "--condition", CONDITION, "--words").out


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (["groups", CONDITION, "--groups", "3"], "silhouette"),
        (["groups", CONDITION, "--method", "hdbscan"], "no group"),
        (["cross", CONDITION, "the mood", "--groups", "3"], "mutual information"),
        (["sorts", "--condition", CONDITION, "--groups", "3"], "random matrices"),
        (["twins", CONDITION, "the mood", "-k", "2"], CONDITION),
    ],
)
def test_commands_divide_a_corpus(
    hyper: HyperCL, monkeypatch: pytest.MonkeyPatch, cli: Command, command: list[str], said: str
) -> None:
    monkeypatch.setattr(groups, "open_corpus", lambda *_: make_corpus(hyper))
    monkeypatch.setattr(Corpus, "model", hyper)
    monkeypatch.setattr(
        ConditionalScorer, "applies", lambda _, texts, conditions: np.ones((len(texts), len(conditions)))
    )
    name, *rest = command
    assert said in cli("store", name, "scenes", *rest).out
    if name == "cross":  # the forms of all are written by the same lines
        assert json.loads(cli("store", name, "scenes", *rest, "--json").out)
        assert len(cli("store", name, "scenes", *rest, "--csv").out.splitlines()) > 1


def test_a_text_that_stands_several_times_is_one_hit(hyper: HyperCL) -> None:
    texts = [*SENTENCES[:3], SENTENCES[0], f" {SENTENCES[0]}", SENTENCES[3]]
    corpus = encode_corpus(hyper, texts)
    for condition in (None, CONDITION):
        found = search(corpus, SENTENCES[0], condition, model=hyper, k=2)
        assert len(found.hits) == 2
        assert sorted((found.hits[0].row, *found.hits[0].copies)) == [1, 4, 5]
        assert len({hit.text for hit in found.hits}) == 2
    assert found.to_dict()["hits"][0]["copies"]
    assert "3 copies" in found._repr_html_()
    assert len(search(corpus, SENTENCES[0], None, model=hyper, k=10).hits) == 4
    assert found.to_frame()["copies"][0]


def test_a_hit_that_does_not_tell_the_condition_is_no_match(hyper: HyperCL) -> None:
    found = search(make_corpus(hyper), "a cat", CONDITION, model=hyper, k=20)
    assert not any(hit.good for hit in found.hits if hit.applies < 0.5)


@pytest.mark.parametrize("method", ["hyper-cl", "bi-encoder", "cross-encoder"])
def test_a_match_is_closer_than_the_pairs_of_the_corpus(
    hyper: HyperCL, method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = {name: tiny_model(name) for name in ("bi-encoder", "cross-encoder")}
    model, texts = other.get(method, hyper), make_texts()
    copies = [text.upper() for text in texts[:40]]
    corpus = encode_corpus(hyper, [*texts, *copies])
    monkeypatch.setattr(Corpus, "model", hyper)
    first, second = np.triu_indices(60, 1)
    pairs = model.score([texts[row] for row in first], [texts[row] for row in second], CONDITION)
    mark = module.own_mark(model, corpus, CONDITION)
    if method == "cross-encoder":  # it reads some of the pairs only
        assert np.percentile(pairs, 90) < mark <= pairs.max()
    else:
        assert mark == pytest.approx(np.percentile(pairs, 97), abs=2e-3), "copies do not count"
    assert [module.own_share(size) for size in (2, 30, 100, 300, 10**6)] == [0, 90, 97, 99, 99]
    assert module.own_mark(model, encode_corpus(hyper, texts[:1]), CONDITION) == -np.inf
    monkeypatch.setattr(module, "GOOD_PERCENTILE", 0.0)
    monkeypatch.setattr(module, "TOLD", 0.0)
    found = search(corpus, texts[0], CONDITION, model=model, k=30)
    assert [hit.good for hit in found.hits] == [hit.score > mark for hit in found.hits]
    assert not found.hits[-1].good


def test_every_word_of_a_plain_query_makes_a_match(hyper: HyperCL) -> None:
    found = search(make_corpus(hyper), "cat", model=hyper, k=60)
    assert all(hit.good for hit in found.hits if "cat" in hit.text.split())


def test_a_query_in_another_language_or_of_unknown_words_is_said() -> None:
    model = tiny_model("hyper-cl", transform=False)
    corpus = make_corpus(model)
    assert "English" in search(corpus, "Der Mann geht heute Abend mit seinem Hund schwimmen", model=model)._repr_html_()
    assert "English" not in search(corpus, "The man is going for a swim with his dog", model=model)._repr_html_()
    assert any("😂" in note for note in module._notes(corpus, "", 1, 1, ("😂",)))
