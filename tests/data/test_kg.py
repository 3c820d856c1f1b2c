"""Knowledge graphs: formats, texts as SimKGC writes them, search, and what is refused."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from condviz.data.corpora import data_folder
from condviz.data.kg import Entity, Graph, Relation, build_graph, parse_question, phrase
from condviz.data.kg_formats import (
    load_graph,
    parse_freebase_relation,
    parse_wordnet_name,
    read_fb15k237,
    read_files,
    read_tables,
    read_wn18rr,
)
from condviz.data.tables.report import Report
from condviz.errors import DataError
from tests.kg_toy import write_graph

requires_wn18rr = pytest.mark.skipif(not (data_folder() / "wn18rr" / "train.txt").is_file(), reason="no WN18RR here")


def graph(entities: Sequence[Entity], triples: Sequence[tuple[str, str, str]] = ()) -> Graph:
    return build_graph("toy", entities, [Relation("_of", "of")], {"train": triples})


def animals() -> Graph:
    return graph(
        [
            Entity("1", "dog_NN_1", "dog", "dog that barks"),
            Entity("2", "cat_NN_1", "cat", ""),
            Entity("3", "cat_NN_2", "cat", "a whip"),
            Entity("4", "wild_cat_NN_1", "wild cat", " ".join(["word"] * 20)),
        ],
        [("1", "_of", "4"), ("2", "_of", "1"), ("1", "_of", "3")],
    )


@pytest.mark.parametrize(
    ("name", "parsed"),
    [("__family_alcidae_NN_1", "family alcidae"), ("land_reform_NN_1", "land reform"), ("cover_VB_19", "cover")],
)
def test_names_of_wordnet(name: str, parsed: str) -> None:
    assert parse_wordnet_name(name) == parsed


@pytest.mark.parametrize(
    ("relation", "parsed"),
    [
        ("/film/film/genre", "genre film"),
        ("/people/person/places_lived./people/place_lived/location", "location place lived places lived person people"),
    ],
)
def test_relations_of_freebase(relation: str, parsed: str) -> None:
    assert parse_freebase_relation(relation) == parsed


def test_text_of_an_entity() -> None:
    found = animals()
    assert found.text(0, neighbours=False) == "dog: that barks"  # the name is not said twice
    assert found.text(0) == "dog: that barks cat cat wild cat"
    assert found.text(0, without=3) == "dog: that barks cat cat"
    assert found.text(1, neighbours=False) == "cat"
    assert found.text(1) == "cat: dog"
    assert found.text(3) == found.text(3, neighbours=False)  # twenty words are not short


def test_at_most_ten_neighbours_in_the_order_of_ids_and_the_answer_is_cut_afterwards() -> None:
    others = [Entity(f"{i:02}", f"n{i}", f"n{i}") for i in range(20)]
    hub = Entity("99", "hub", "hub", "short")
    found = graph([hub, *others], [("99", "_of", f"{i:02}") for i in reversed(range(20))])
    assert found.text(0) == "hub: short " + " ".join(f"n{i}" for i in range(10))
    assert found.text(0, without=1) == "hub: short " + " ".join(f"n{i}" for i in range(1, 10))


def test_both_directions() -> None:
    found = animals()
    assert found.directed("train").tolist() == [[0, 0, 3], [1, 0, 0], [0, 0, 2], [3, 1, 0], [0, 1, 1], [2, 1, 0]]
    assert [found.relation_text(number) for number in range(2)] == ["of", "inverse of"]
    assert found.splits["test"].shape == (0, 3)


def test_search() -> None:
    found = animals()
    assert found.find_entity("3") == 2
    assert found.find_entity("CAT_nn_2") == 2
    assert found.find_entity(" wild  cat ") == 3
    assert found.search("cat") == [1, 2, 3]  # the whole name before a part of it
    assert found.search("wld cat")[0] == 3
    with pytest.raises(DataError, match=r"There are 2 entities named 'cat'. Name one of: cat_NN_1.*cat_NN_2: a whip"):
        found.find_entity("cat")
    with pytest.raises(DataError, match=r"no entity 'dgo' in toy. Similar: dog_NN_1"):
        found.find_entity("dgo")


def test_search_for_relations() -> None:
    found = animals()
    assert [found.find_relation(text) for text in ("of", "_of", "OF", "inverse of")] == [0, 0, 0, 1]
    with pytest.raises(DataError, match="There is no relation 'fo'"):
        found.find_relation("fo")


@pytest.mark.parametrize(
    ("entities", "triples", "message"),
    [
        ([], [], "has 0 entities"),
        ([Entity("1", "a", "a"), Entity("1", "b", "b")], [], "entity '1' is in rows 1 and 2"),
        ([Entity("1", "a", "a"), Entity("2", "a", "a")], [], "label 'a' is in rows 1 and 2"),
        ([Entity("1", "a", " ")], [], "entity '1' has no name"),
        ([Entity("1", "a", "a")], [("1", "_of", "1"), ("1", "_of", "7")], "toy train, row 2: entity '7' is not listed"),
        ([Entity("1", "a", "a")], [("1", "_on", "1")], "row 1: relation '_on' is not listed"),
    ],
)
def test_wrong_graphs_are_refused(entities: list[Entity], triples: list[tuple[str, str, str]], message: str) -> None:
    with pytest.raises(DataError, match=message):
        graph(entities, triples)


def test_tables_of_anybody(tmp_path: Path) -> None:
    found = read_tables(write_graph(tmp_path / "mine"))
    assert (found.name, found.num_entities, found.num_relations) == ("mine", 12, 2)
    assert {split: len(rows) for split, rows in found.splits.items()} == {"train": 22, "valid": 1, "test": 1}
    assert load_graph(str(tmp_path / "mine")).triples.tolist() == found.triples.tolist()


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        ("triples.tsv", "e00\t_in\tnowhere\n", "triples.tsv, line 1: entity 'nowhere'"),
        ("triples.tsv", "e00\t_in\te01\ttest\ne00\t_in\tnowhere\n", "triples.tsv, line 2: entity 'nowhere'"),
        ("triples.tsv", "e00\t_in\n", "triples.tsv: line 1 has 2 columns, not 3 to 4"),
        ("triples.tsv", "e00\t_in\te01\tlater\n", "line 1 has the split 'later'; allowed are train, valid, test"),
        ("entities.tsv", "e00\t\tnothing\n", "entity 'e00' has no name"),
        ("entities.tsv", "e00\ta\ne00\tb\n", "entity 'e00' is in rows 1 and 2"),
    ],
)
def test_wrong_tables_are_refused(tmp_path: Path, file: str, content: str, message: str) -> None:
    folder = write_graph(tmp_path / "mine")
    (folder / file).write_text(content, encoding="utf-8")
    with pytest.raises(DataError, match=message):
        read_tables(folder)


def test_tables_have_any_ending_but_one_each(tmp_path: Path) -> None:
    folder = write_graph(tmp_path / "mine")
    expected = read_tables(folder)
    for name in ("entities", "relations", "triples"):
        content = (folder / f"{name}.tsv").read_text(encoding="utf-8")
        (folder / f"{name}.tsv").unlink()
        (folder / f"{name.title()}.csv").write_text(content.replace("\t", ";"), encoding="utf-8")
    (folder / "README.txt").write_text("About this graph.", encoding="utf-8")
    found = load_graph(folder)
    assert (found.entities, found.relations) == (expected.entities, expected.relations)
    assert found.triples.tolist() == expected.triples.tolist()
    assert len(read_files(sorted(folder.glob("*.csv")))[1].triples) == len(expected.triples)
    (folder / "triples.tsv").write_text("e00\t_in\te01\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"same name but for its ending: .*Triples\.csv, triples\.tsv"):
        load_graph(folder)


def test_a_graph_whose_files_have_changed_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "capitals.tsv"
    path.write_text("Rome\tcapital of\tItaly\n", encoding="utf-8")
    before = load_graph(path)
    assert load_graph(path) is before
    path.write_text("Rome\tcapital of\tItaly\nParis\tcapital of\tFrance\n", encoding="utf-8")
    assert len(load_graph(path).triples) == 2


def test_same_names_get_their_id_as_label(tmp_path: Path) -> None:
    folder = write_graph(tmp_path / "mine")
    (folder / "entities.tsv").write_text("a\tjaguar\ta cat\nb\tJaguar\ta car\n", encoding="utf-8")
    (folder / "triples.tsv").write_text("a\t_in\tb\n", encoding="utf-8")
    assert [entity.label for entity in read_tables(folder).entities] == ["jaguar (a)", "Jaguar (b)"]


def test_only_line_breaks_end_a_row(tmp_path: Path) -> None:
    folder = write_graph(tmp_path / "mine")
    (folder / "entities.tsv").write_text("a\tjaguar\ta cat\x0c of\u2028 prey\nb\tcar\t\n", encoding="utf-8")
    (folder / "triples.tsv").write_text("a\t_in\tb\n", encoding="utf-8")
    assert read_tables(folder).entities[0].description == "a cat\x0c of\u2028 prey"


def test_missing_files_and_graphs(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"entities\.tsv cannot be read: No such file.*CONDVIZ_DATA"):
        read_wn18rr(tmp_path)
    for name in ("nowhere", "x" * 5_000, "a\0b"):
        with pytest.raises(DataError, match=r"There is no graph '.*'\. Known: .*wn18rr, fb15k237"):
            load_graph(name)


def test_fb15k237_as_simkgc_has_it(tmp_path: Path) -> None:
    long = " ".join(f"w{i}" for i in range(60))
    files = {
        "FB15k_mid2name.txt": "/m/1\tJane_Doe\n/m/2\tA_Film\n/m/3\tnever used\n",
        "FB15k_mid2description.txt": f'/m/1\t"{long}"@en\n',
        "train.txt": "/m/1\t/film/actor/film\t/m/2\n",
        "valid.txt": "",
        "test.txt": "",
    }
    for name, content in files.items():
        (tmp_path / name).write_text(content, encoding="utf-8")
    found = read_fb15k237(tmp_path)
    assert [entity.name for entity in found.entities] == ["Jane Doe", "A Film"]
    assert found.entities[0].description.split() == [f"w{i}" for i in range(50)]
    assert found.entities[1].description == ""
    assert (found.relations[0].text, found.hops) == ("actor film", 2)


@requires_wn18rr
def test_wn18rr() -> None:
    found = load_graph("wn18rr")
    assert (found.num_entities, found.num_relations, found.hops) == (40_943, 11, 5)
    assert {split: len(rows) for split, rows in found.splits.items()} == {
        "train": 86_835,
        "valid": 3_034,
        "test": 3_134,
    }
    assert found.text(found.find_entity("land reform"), neighbours=False) == (
        "land reform: a redistribution of agricultural land (especially by government action)"
    )
    assert {relation.text for relation in found.relations} >= {"hypernym", "member of domain usage"}
    seen = set(found.splits["train"][:, [0, 2]].ravel().tolist())
    test = found.splits["test"]
    assert sum(head not in seen or tail not in seen for head, _, tail in test.tolist()) == 210


def metals() -> Graph:
    """Ids, labels and names that differ only in case, in the form of an accent, or by a prefix."""
    kinds = [("in", "is in"), ("inverse in", "inverse is in"), ("_part_of", "part of"), ("part_of", "holds"),
             ("a", "x"), ("b", "x")]  # fmt: skip
    items = [("Co", "Co", "a metal"), ("CO", "CO", "a gas"), ("Fe", "Fe", ""), ("caf\u00e9", "Caf\u00e9", ""),
             ("x1", "Fe2", ""), ("Fe2", "rust", "")]  # fmt: skip
    entities = [
        Entity(key, f"{name} ({key})" if name in ("Co", "CO") else name, name, text) for key, name, text in items
    ]
    return build_graph("metals", entities, [Relation(*kind) for kind in kinds], {"train": [("Co", "in", "Fe")]})


def test_entities_that_differ_are_different() -> None:
    found = metals()
    asked = ("Co", "CO", "Co (Co)", "CO (CO)", "fe", "cafe\u0301", "CAFE\u0301", "Fe2", "Fe2 (x1)", "rust")
    assert [found.find_entity(text) for text in asked] == [0, 1, 0, 1, 2, 3, 3, 5, 4, 5]
    assert all(found.find_entity(item.label) == number for number, item in enumerate(found.entities))
    assert found.search("Co")[:2] == [0, 1]
    with pytest.raises(DataError, match=r"2 entities named 'co'. Name one of: Co \(Co\): a metal; CO \(CO\): a gas"):
        found.find_entity("co")


def test_relations_that_differ_are_different() -> None:
    found = metals()
    asked = (
        "in",
        "is in",
        "inverse in",
        "Inverse is  in",
        "inverse inverse in",
        "_part_of",
        "part_of",
        "PART OF",
        "holds",
    )
    assert [found.find_relation(text) for text in asked] == [0, 0, 1, 1, 7, 2, 3, 2, 3]
    assert found.find_relation("inverse part_of") == 9
    with pytest.raises(DataError, match=r"2 relations called 'x'. Name one by its id: a, b"):
        found.find_relation("inverse x")


def test_one_table_of_triples_is_enough(tmp_path: Path) -> None:
    path = tmp_path / "capitals.tsv"
    path.write_text("head\trelation\ttail\tsplit\nRome\tcapital_of\tItaly\ttrain\nParis\tcapital_of\tFrance\ttest\n")
    graph = load_graph(str(path))
    assert [item.name for item in graph.entities] == ["Rome", "Italy", "Paris", "France"]
    assert [item.text for item in graph.relations] == ["capital of"]
    assert {split: len(rows) for split, rows in graph.splits.items()} == {"train": 1, "valid": 0, "test": 1}
    path.rename(tmp_path / "triples.tsv")
    assert load_graph(str(tmp_path)).num_entities == 4
    _, uploaded = read_files([tmp_path / "triples.tsv"])
    assert uploaded.num_relations == 1
    for header in ("Kopf;Relation;Ziel", "sujet;relation;objet", "sujeto;relación;objeto"):
        (tmp_path / "other.csv").write_text(f"{header}\nRom;Hauptstadt von;Italien\n", encoding="utf-8")
        assert read_files([tmp_path / "other.csv"])[1].num_entities == 2, "its header is none of the triples"
    own = ["drug,effect,target", "aspirin,treats,pain", "ibuprofen,treats,fever", "ramipril,lowers,pressure"]
    (tmp_path / "own.csv").write_text("\n".join([*own, "lisinopril,lowers,pressure"]))
    _, uploaded = read_files([tmp_path / "own.csv"])
    assert (uploaded.num_entities, uploaded.num_relations) == (7, 2)
    assert "(drug, effect, target) was taken as names of the columns" in " ".join(uploaded.notes)
    (tmp_path / "own.csv").write_text("\n".join(own))
    assert read_files([tmp_path / "own.csv"])[1].num_relations == 3, "the last row stands apart as well"
    (tmp_path / "blank.tsv").write_text("Rome\tcapital of\tItaly\n\tcapital of\tFrance\nOslo\tcapital of\t \n")
    with pytest.raises(DataError, match="line 2 has no head"):
        read_files([tmp_path / "blank.tsv"])
    _, uploaded = read_files([tmp_path / "blank.tsv"], report=Report(skip_bad=True))
    assert uploaded.num_entities == 2
    assert "line 3 has no tail" in " ".join(uploaded.notes)
    (tmp_path / "none.tsv").write_text("head\trelation\ttail\n")
    with pytest.raises(DataError, match="has no row that can"):
        read_files([tmp_path / "none.tsv"])


@pytest.mark.parametrize(
    ("text", "thing", "relation"),
    [
        ("What does a cow eat?", "cow", "eats"),
        ("what does the cow eat", "cow", "eats"),
        ("What eats grass?", "grass", "inverse eats"),
        ("Which animals eat grass?", "grass", "inverse eats"),
        ("Where do bees live?", "bees", "lives in"),
        ("What do butterflies eat?", "butterflies", "eats"),
        ("Is a cow a kind of animal?", "cow", "kind of"),
        ("Where does a yak live?", "yak", "lives in"),
        ("What can a knife be used for?", "knife", "used for"),
        ("Which animals have wings?", "wings", "inverse has part"),
    ],
)
def test_a_question_is_read_as_thing_and_relation(text: str, thing: str, relation: str) -> None:
    graph = load_graph("everyday")
    found = parse_question(graph, text)
    assert found is not None
    assert (found[0], graph.relation_text(found[1])) == (thing, relation)


@pytest.mark.parametrize(
    ("text", "label"),
    [("bees", "bee"), ("Wolves", "wolf"), ("knives", "knife"), ("berries", "berries"), ("bus", "bus")],
)
def test_a_plural_names_its_thing_unless_it_is_a_name_itself(text: str, label: str) -> None:
    graph = load_graph("everyday")
    assert graph.entities[graph.find_entity(text)].label == label
    assert graph.entities[graph.search(text)[0]].label == label
    assert not graph.named("buss"), "no plural ends so, as glass does not"


def test_an_article_may_stand_in_the_name_in_the_question_or_in_neither(tmp_path: Path) -> None:
    (tmp_path / "own.tsv").write_text("the brake pad\tfits\tthe bike\nthe gas\tfits\tbike\ngas\tfits\tthe bike\n")
    _, graph = read_files([tmp_path / "own.tsv"])

    def named(text: str) -> list[str]:
        return [graph.entities[place].name for place in graph.named(text)]

    assert named("brake pad") == named("A brake pad") == named("the brake pads") == ["the brake pad"]
    assert named("the gas") == ["the gas"], "the name to the letter comes first"
    assert named("gas") == ["gas"]
    assert set(named("a bike")) == {"the bike", "bike"}
    thing, relation = parse_question(graph, "the brake pad fits ...?")
    assert named(thing) == ["the brake pad"]
    assert graph.relation_text(relation) == "fits"


@pytest.mark.parametrize("options", [{"header": True}, {"separator": ";"}, {"encoding": "utf-16"}, {"skip_bad": True}])
def test_how_a_table_is_read_is_no_question_for_a_graph_that_ships(options: dict[str, object]) -> None:
    with pytest.raises(DataError, match="everyday is read as it ships: leave out header"):
        load_graph("everyday", **options)


def test_a_name_is_no_question_and_what_cannot_be_answered_asks_for_a_thing() -> None:
    graph = load_graph("everyday")
    assert all(parse_question(graph, name) is None for name in ("bee", "unicorn", "brown bear cub", "why not"))
    for text in ("How old is a cow?", "list all animals"):
        with pytest.raises(DataError, match="Name a thing"):
            parse_question(graph, text)


def test_questions_about_a_graph_of_ones_own_go_by_the_words_of_its_relations() -> None:
    nodes = [Entity(name, name, name) for name in ("Rome", "Italy", "Latium")]
    kinds = [Relation("capital_of", "capital of"), Relation("located_in", "located in")]
    graph = build_graph("own", nodes, kinds, {"train": [("Rome", "capital_of", "Italy")]})
    assert parse_question(graph, "What is the capital of Italy?") == ("italy", 2)
    assert parse_question(graph, "Which country is Rome the capital of?") == ("rome", 0)
    assert parse_question(graph, "Where is Vienna located?") == ("vienna", 1)
    for inverse, thing in enumerate(("Rome", "Italy")):  # as the page words them
        question = phrase(thing, "capital_of", "capital of", inverse=bool(inverse))
        assert parse_question(graph, question) == (thing.lower(), 2 * inverse)
