"""Answers about a knowledge graph: order, ranks, known answers, both directions, entities that are typed."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import condviz
from condviz.analysis.answers import LinkAnswers
from condviz.analysis.links import BONUS, LinkPredictor, describe_entity, get_predictor
from condviz.data.kg import Entity, Relation, build_graph, phrase, with_article
from condviz.data.kg_formats import load_graph, read_files
from condviz.errors import ConfigError, DataError
from condviz.plots.links import cards, headline, neighbourhood
from tests.kg_toy import ENTITIES, toy_graph
from tests.tiny import encoded_rows, tiny_model

CONFIGS = {"hyper-cl": {"pooling": "mean"}, "csr": {}, "bi-encoder": {"pooling": "mean"}}


@pytest.fixture(params=sorted(CONFIGS))
def predictor(request: pytest.FixtureRequest, tmp_path: Path) -> LinkPredictor:
    model = tiny_model(request.param, **CONFIGS[request.param])
    return LinkPredictor(toy_graph(tmp_path / "graph"), model, folder=tmp_path / "cache").prepare()


def test_answers_are_ordered_by_the_cosine(predictor: LinkPredictor) -> None:
    found = predictor.ask("e00", "the park", k=ENTITIES)
    scores = [item.score for item in found.answers]
    assert scores == sorted(scores, reverse=True)
    assert {item.id for item in found.answers} == {f"e{i:02}" for i in range(1, ENTITIES)}
    texts = [predictor.graph.text(i, neighbours=False) for i in range(ENTITIES)]
    query = predictor.model.encode(texts[:1], ["the park"])[0]
    own = predictor.model.encode_sentences(texts)[int(found.answers[0].id[1:])]
    assert own @ query / np.linalg.norm(query) / np.linalg.norm(own) == pytest.approx(scores[0], abs=1e-5)


def test_known_answers_are_marked_in_both_directions(predictor: LinkPredictor) -> None:
    found = predictor.ask("e07", "_in", k=3)
    assert [(answer.id, answer.split) for answer in found.known] == [("e08", "test")]
    assert found.known[0].filtered_rank == found.known[0].rank
    back = predictor.ask("e08", "_in", direction="head")
    assert back.direction == "head"
    assert [(answer.id, answer.split) for answer in back.known] == [("e07", "test")]
    assert predictor.ask("e08", "inverse the park") == back


def test_filtered_rank_leaves_other_answers_out(tmp_path: Path) -> None:
    graph = toy_graph(tmp_path / "graph")
    triples = np.array([[0, 0, tail] for tail in range(2, 8)])
    many = type(graph)("many", graph.entities, graph.relations, {**graph.splits, "train": triples})
    model = tiny_model("unconditional")
    found = LinkPredictor(many, model, folder=tmp_path / "cache").ask("e00", 0)
    assert len(found.known) == 6
    for place, answer in enumerate(found.known):
        assert answer.filtered_rank == answer.rank - place


def with_answers(predictor: LinkPredictor, size: int = ENTITIES, **answers: list[int]) -> LinkPredictor:
    """Keep some entities, and as triples only answers to one question about the first one."""
    splits = {
        name: np.array([[0, 0, answer] for answer in answers.get(name, [])], dtype=np.int64).reshape(-1, 3)
        for name in ("train", "valid", "test")
    }
    graph = replace(predictor.graph, entities=predictor.graph.entities[:size], splits=splits)
    return LinkPredictor(graph, predictor.model, folder=predictor.folder)


def test_answers_of_the_train_part_do_not_count_for_the_test_part(predictor: LinkPredictor) -> None:
    first, second, *_, last = (int(answer.id[1:]) for answer in predictor.ask("e00", 0, k=ENTITIES).answers)
    assert with_answers(predictor, train=[first], test=[second]).reliability.first == 1
    assert with_answers(predictor, train=[first], test=[last]).reliability.first == 0
    assert with_answers(predictor, train=[first], test=[first]).reliability is None


def test_an_entity_is_not_among_those_like_it(predictor: LinkPredictor) -> None:
    assert with_answers(predictor, size=4, train=[1]).ask("e00", 0).fit == 0


def test_bonus_for_entities_close_by(predictor: LinkPredictor) -> None:
    plain, near = (predictor.ask("e00", 0, k=ENTITIES, reranked=flag) for flag in (False, True))
    moved = {item.id: item.score for item in near.answers}
    assert {round(moved[item.id] - item.score, 4) for item in plain.answers} <= {0.0, BONUS}
    assert max(moved.values()) > plain.answers[0].score


def test_any_text_can_be_asked_about(predictor: LinkPredictor) -> None:
    found = predictor.ask("a man over the grass", 0, k=ENTITIES)
    assert (found.entity, found.entity_id, found.known) == ("man over the grass", "", ())
    assert len(found.answers) == ENTITIES
    same = predictor.ask(f"The {predictor.graph.entities[3].name.upper()}", 0)
    assert same.entity_id == "e03"
    for blank in ("", "  ", "\x07"):
        with pytest.raises(DataError, match="entity"):
            predictor.ask(blank, 0)


def test_an_article_may_be_part_of_a_name(predictor: LinkPredictor) -> None:
    entities = list(predictor.graph.entities)
    entities[2] = replace(entities[2], name="the hill")
    graph = replace(predictor.graph, entities=tuple(entities))
    named = LinkPredictor(graph, predictor.model, folder=predictor.folder)
    assert named.ask("The  Hill", 0).entity_id == "e02"
    assert named.ask("the park", 0).entity_id == named.ask("park", 0).entity_id == "e10"
    assert named.ask("hill", 0).entity_id == "e02"


def test_entities_are_encoded_once(predictor: LinkPredictor) -> None:
    predictor.ask("e00", 0)
    with encoded_rows(predictor.model.backbone) as rows:
        predictor.ask("e00", 0)
        predictor.nearest("e03")
    assert not rows
    again = get_predictor(predictor.model, predictor.graph)
    assert get_predictor(predictor.model, predictor.graph) is again


def test_a_result_is_plain_json_a_table_and_a_picture(predictor: LinkPredictor) -> None:
    found = predictor.ask("<b>dogs</b>", 0, k=3)
    assert json.loads(json.dumps(found.to_dict()))["answers"][0]["id"] == found.answers[0].id
    assert list(found.to_frame()["score"]) == [item.score for item in found.answers]
    assert "<b>dogs" not in found._repr_html_()
    assert found.leading[0] == found.answers[0]


def test_what_is_told_of_a_table_in_doubt_can_be_decided(tmp_path: Path) -> None:
    path = tmp_path / "own.tsv"
    path.write_text("head\tverb\ttail\nRome\tis in\tItaly\nParis\tis in\tFrance\n", encoding="utf-8")
    model = tiny_model("unconditional")
    with pytest.warns(UserWarning, match=r"taken as a row.*header.*condviz\.load_graph"):
        assert condviz.predict_links(model, "Rome", "is in", graph=path).num_entities == 6
    graph = condviz.load_graph(path, header=True)
    assert condviz.predict_links(model, "Rome", "is in", graph=graph).num_entities == 4


def test_wrong_questions(predictor: LinkPredictor) -> None:
    with pytest.raises(DataError, match="no relation 'beside'"):
        predictor.ask("e00", "beside")
    for wrong in (4, None):
        with pytest.raises(DataError, match=f"no relation {wrong}"):
            predictor.ask("e00", wrong)
    with pytest.raises(DataError, match="entity must be text, got NoneType"):
        predictor.ask(None, 0)
    with pytest.raises(ConfigError, match="got 0"):
        predictor.ask("e00", 0, k=0)
    with pytest.raises(ConfigError, match="direction"):
        condviz.predict_links(predictor.model, "e00", "_in", graph=predictor.graph, direction="up")
    cross = tiny_model("cross-encoder")
    with pytest.raises(ConfigError, match="vectors"):
        LinkPredictor(predictor.graph, cross)
    with pytest.raises(DataError, match="has one entity"):
        with_answers(predictor, size=1)


@pytest.mark.parametrize(
    ("name", "phrased"),
    [("owl", "an owl"), ("bee", "a bee"), ("honey", "honey"), ("leaves", "leaves"), ("octopus", "an octopus"),
     ("unicorn", "a unicorn"), ("Berlin", "Berlin"), ("my old bike", "my old bike"),
     ("a cow", "a cow")],
)  # fmt: skip
def test_articles(name: str, phrased: str) -> None:
    assert with_article(name) == phrased


def test_questions_in_words() -> None:
    assert phrase("bee", "produces", "produces") == "What does a bee produce?"
    assert phrase("honey", "produces", "produces", inverse=True) == "What produces honey?"
    assert phrase("{a} b", "_x", "is {near}") == "{a} b is {near} …?"
    assert phrase("{a} b", "_x", "is {near}", inverse=True) == "… is {near} {a} b?"
    for relation in load_graph("everyday").relations:
        for inverse in (False, True):
            assert relation.text not in ("", phrase("bee", relation.id, relation.text, inverse=inverse))
            assert phrase("bee", relation.id, relation.text, inverse=inverse).endswith("?")


@pytest.fixture(scope="module")
def everyday(tmp_path_factory: pytest.TempPathFactory) -> LinkPredictor:
    model = condviz.load("everyday-concat", device="cpu")
    return LinkPredictor(load_graph("everyday"), model, folder=tmp_path_factory.mktemp("cache")).prepare()


def test_the_shipped_model_answers_sensibly(everyday: LinkPredictor) -> None:
    def best(head: str, relation: str, **options: str) -> LinkAnswers:
        return everyday.ask(head, relation, **options)

    assert best("bee", "produces").answers[0].name == "honey"
    assert best("honey", "produces", direction="head").answers[0].split == "train"
    kangaroo = best("kangaroo", "eats")
    assert (kangaroo.answers[0].name, kangaroo.sensible, kangaroo.familiar) == ("grass", True, True)
    assert best("brown bear cub", "kind of").answers[0].name == "mammal"
    assert not best("hammer", "eats").sensible
    assert not best("asdf qwer", "eats").familiar
    found = everyday.reliability
    assert found.questions > 100
    assert found.first / found.questions > 0.4
    assert found.clear_first / found.clear > 0.65


def test_entities_and_relations_that_differ_only_in_case_or_a_prefix_are_asked_about_themselves() -> None:
    entities = [Entity(key, key, name, f"{name} dogs") for key, name in (("Co", "cat"), ("CO", "man"), ("Fe", "park"))]
    relations = [Relation("in", "the park"), Relation("inverse in", "the mood")]
    graph = build_graph("mine", entities, relations, {"train": [("Co", "in", "Fe"), ("CO", "inverse in", "Fe")]})
    model = tiny_model("bi-encoder", pooling="mean")
    asked = LinkPredictor(graph, model)
    assert [asked.ask(head, "in").entity_id for head in ("Co", "CO")] == ["Co", "CO"]
    assert [answer.id for answer in asked.ask("Co", "in").known] == ["Fe"]
    assert [answer.id for answer in asked.ask("CO", "inverse in").known] == ["Fe"]
    assert asked.ask("Fe", "in", direction="head").direction == "head"
    with pytest.raises(DataError, match="2 entities named 'co'"):
        asked.ask("co", "in")
    assert asked.ask("CO", "inverse in").relation == "inverse in"


def test_answers_of_another_kind_are_kept_out(tmp_path: Path) -> None:
    nodes = [Entity(name, name, name) for name in ("cat", "dogs", "park", "mood", "grass")]
    triples = [("cat", "in", "park"), ("dogs", "in", "grass"), ("park", "like", "mood")]
    graph = build_graph("own", nodes, [Relation("in", "in"), Relation("like", "like")], {"train": triples})
    model = tiny_model("unconditional")
    own = LinkPredictor(graph, model, folder=tmp_path)
    assert {item.name for item in own.ask("cat", "in").answers} == {"park", "grass"}
    assert len(own.ask("cat", "like").answers) == 4  # one answer tells no kind


@pytest.mark.slow
def test_unknown_things_are_guesses_or_not_known_at_all(everyday: LinkPredictor) -> None:
    bee, oboe, day = (everyday.ask(name, "kind_of") for name in ("bee", "oboe", "Tuesday"))
    assert (bee.guess, bee.told) == (False, True)
    assert (oboe.guess, oboe.told, oboe.answers[0].name) == (True, True, "musical instrument")
    assert (day.guess, day.told) == (True, False)
    assert 0 < everyday.least_strong < 1
    shown = cards([oboe, day])
    assert shown.count("is not in the graph") == 1
    assert shown.count("I don’t know") == 1
    hound = describe_entity(everyday.model, "Hund")
    assert any(one.told for one in hound.answers), "like a hoe, it would be found in the garden"
    assert "I don’t know “Hund”" in headline(hound)
    assert "cv-guess" not in neighbourhood(hound)


@pytest.mark.slow
def test_a_question_is_answered_first_and_drawn(everyday: LinkPredictor) -> None:
    found = condviz.predict_links(everyday.model, "What does a cow eat?", k=3)
    assert (found.entity, found.relation, found.answers[0].name) == ("cow", "eats", "grass")
    profile = describe_entity(everyday.model, "What does a poodle eat?")
    assert (profile.entity, profile.answers[0].relation) == ("poodle", "eats")
    drawn = neighbourhood(profile)
    assert "<svg" in drawn
    assert "cv-guess" in drawn
    assert "not in the graph" in headline(profile)
    assert "eat? I don’t know. “hiker”" in headline(describe_entity(everyday.model, "What does a hiker eat?"))
    assert "cv-guess" not in neighbourhood(describe_entity(everyday.model, "bee"))
    with pytest.raises(DataError, match="is a question"):
        condviz.predict_links(everyday.model, "What does a cow eat?", "eats")
    with pytest.raises(DataError, match="No relation is given"):
        condviz.predict_links(everyday.model, "bee")


def test_bars_of_all_questions_are_on_one_scale(predictor: LinkPredictor) -> None:
    found = [predictor.ask("e00", number, k=3) for number in (0, 1)]
    scores = [item.score for result in found for item in result.leading[:3]]
    shown = cards(found)
    assert all(f"width: {round(100 * min(max(score, 0.02), 1), 1)}%" in shown for score in scores)


@pytest.mark.slow
def test_of_a_graph_that_the_model_has_not_learnt_the_headline_tells_what_it_holds(
    everyday: LinkPredictor, tmp_path: Path
) -> None:
    rows = "Anna\tsings\talto\nBerta\tsings\talto\nAnna\tlives in\tUlm\nEmil\tsings\t<b>bass</b>\n"
    (tmp_path / "choir.tsv").write_text(rows)
    _, graph = read_files([tmp_path / "choir.tsv"])

    def said(text: str) -> str:
        return headline(describe_entity(everyday.model, text, graph=graph, folder=tmp_path))

    asked = said("Who sings alto?")
    assert "In the graph: " in asked
    assert all(f"{name}" in asked.partition(" → sings → alto")[0] for name in ("Anna", "Berta"))
    assert "Anna → lives in → Ulm" in said("Anna")
    assert "&lt;b&gt;" in said("Emil")
