"""The Train tab without a browser: the form writes recipes, the runs are read, and nobody changes those of others."""

from __future__ import annotations

import html
import json
import re
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import gradio as gr
import pytest

from condviz.errors import ConfigError, DataError, TrainingError
from condviz.models.registry import describe
from condviz.training.data import MIN_ROWS
from condviz.training.job import write_status
from condviz.training.recipes import LinkRecipe, from_dict
from condviz.ui.app import Settings, build_app
from condviz.ui.page import Tab
from condviz.ui.pool import ModelPool
from condviz.ui.state import read_link
from condviz.ui.train import recipe as recipe_text
from condviz.ui.train import runs, view
from condviz.ui.train import tab as train
from tests.pages import last
from tests.training.toy import toy_recipe, write_table
from tests.training.toy_jobs import end, pretend_jobs

NOTHING = runs.NOTHING


def make_tab() -> train.TrainTab:
    found = []
    build = Tab("train", "Train", lambda page: found.append(train.TrainTab(page)))
    build_app(Settings(pool=lambda: ModelPool(("minilm",)), tabs=(build,), preload=False))
    return found[0]


@pytest.fixture
def tab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[train.TrainTab]:
    monkeypatch.setattr(runs.Runs, "_add_models", lambda self: [])
    jobs = pretend_jobs(tmp_path, monkeypatch)
    made = make_tab()
    made.jobs = made.runs.jobs = made.runs.model.jobs = jobs
    return made


def submit(tab: train.TrainTab, folder: Path, **options: Any) -> Any:
    return tab.jobs.submit(toy_recipe(folder), device="cpu", **options)


def records(job: Any) -> None:
    (job.folder / "run").mkdir(exist_ok=True)
    lines = [
        {"event": "start", "step": 0, "steps": 4, "spearman": 10.0, "pair_accuracy": 55.0, "probes": [0.1] * 5},
        {"event": "step", "step": 2, "steps": 4, "loss": 0.5, "tokens_per_second": 10},
        {"event": "evaluation", "step": 2, "steps": 4, "spearman": 30.0, "pair_accuracy": 71.4, "probes": [0.9] * 5},
        {"event": "evaluation", "step": 4, "steps": 4, "spearman": 20.0, "pair_accuracy": None, "probes": [0.2] * 5},
    ]
    (job.folder / "run" / "log.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))


def test_the_choice_of_thoroughness_promises_no_time() -> None:
    assert not any(re.search(r"\d|minute|hour", label) for label, _ in view.label_qualities({}))
    (quick, _), (better, _) = view.label_qualities({"better": 2.5})
    assert "min" not in quick
    assert "2 min 30 s" in better


@pytest.mark.parametrize("preset", recipe_text.QUALITIES)
def test_both_thoroughnesses_are_recipes_for_any_data(preset: str) -> None:
    pairs = {"table": ["a.csv", "b.csv"], "batching": "pairs", "rows": 5000}
    for table in (None, pairs, {**pairs, "batching": "rows", "rows": 40}):
        recipe = from_dict(recipe_text.parse(recipe_text.compose(preset, "mine", table)))
        assert recipe.name == "mine"
        assert [source.name for source in recipe.train] == (["csv"] if table else ["scenes"])
        assert recipe.batch_size <= (5 if table and table["rows"] == 40 else 80) + 3
        assert recipe.init == (recipe_text.best_start() if table else "")


@pytest.mark.parametrize("preset", recipe_text.QUALITIES)
def test_a_training_starts_from_any_model_that_is_offered_with_its_method(preset: str) -> None:
    table = {"table": ["a.csv", "b.csv"], "batching": "pairs", "rows": 400}
    names = [name for _, name in recipe_text.starts(ModelPool().infos())]
    assert recipe_text.best_start() in names
    assert names[-1] == recipe_text.PRETRAINED
    for name in names:
        recipe = from_dict(recipe_text.parse(recipe_text.compose(preset, "mine", table, name)))
        assert recipe.init == name
        assert recipe.method == (describe(name).method if name else "hyper-cl")


def test_every_shipped_recipe_fills_the_fields(tab: train.TrainTab) -> None:
    for path in sorted(recipe_text.RECIPES.glob("*.toml")):
        updates = tab.choose("example", path.stem, "mine", None)
        assert updates[tab.fields["epochs"]] >= 1
        recipe = from_dict(recipe_text.parse(updates[tab.recipe]))
        assert isinstance(recipe, LinkRecipe) == ("graph" in recipe_text.parse(path.read_text()))


def test_a_field_changes_its_key_and_leaves_the_rest() -> None:
    text = "# mine\n" + recipe_text.compose("quick", "mine", None)
    assert 'name = "bank-desk"' in recipe_text.compose("quick", " bank desk", None), "no space in a folder's name"
    changed = recipe_text.write_field(text, ("loss", "temperature"), 0.5)
    assert changed.startswith("# mine\n")
    assert recipe_text.parse(changed)["loss"]["temperature"] == 0.5
    assert recipe_text.parse(recipe_text.write_field(text, ("epochs",), 7.0))["epochs"] == 7
    with_rate = recipe_text.write_field(text, ("head_lr",), 1e-3)
    assert "head_lr" not in recipe_text.write_field(with_rate, ("head_lr",), None)
    with pytest.raises(ConfigError, match="not valid TOML"):
        recipe_text.write_field("name = ", ("epochs",), 3)
    with pytest.raises(ConfigError, match="There is no recipe"):
        recipe_text.read_preset("../../etc/passwd")


def test_an_uploaded_table_is_shown_once_and_divided(tab: train.TrainTab, tmp_path: Path) -> None:
    path = write_table(tmp_path / "mine.csv", pairs=40)
    path.write_text(path.read_text().replace("sentence1,sentence2,condition,label", "text a,text b,question,rating"))
    opened = tab.own.open(str(path))
    assert [opened[one]["value"] for one in tab.own.pickers.values()] == ["text a", "text b", "question", "rating"]
    updates = tab.read_table(str(path), opened[tab.own.reading], 20, "quick", "mine")
    assert "52 rows" in updates[tab.sample]
    assert "<tr>" not in updates[tab.sample], "the assistant shows its rows"
    kept = updates[tab.table]["table"]
    assert all(tab.jobs.uploads in Path(part).parents for part in kept)
    recipe = from_dict(recipe_text.parse(updates[tab.recipe]))
    assert [source.path for source in (*recipe.train, *recipe.validation)] == kept
    fields = ("", "", "", "", None, None, "", "text a", "text a", "question", "rating")
    again = tab.own.change(str(path), opened[tab.own.reading], *fields)
    assert "one role only" in again[tab.own.told]
    refused = tab.read_table(str(path), again[tab.own.reading], 20, "quick", "mine")[tab.table]
    assert "one role only" in refused["refused"]
    token = re.search('data-own="own=(.*?)"', str(updates[tab.help]))[1]
    again = tab.open_link({"own": [token]}, NOTHING, "", "mine", None)
    assert again[tab.upload]["value"] == str(path)
    assert again[tab.own.pickers["label"]]["value"] == "rating"
    assert "52 rows" in tab.read_table(None, again[tab.own.reading], 20, "quick", "mine")[tab.sample]
    linked = tab.open_link({"own": [token], "name": ["other"], "epochs": ["7"]}, NOTHING, "", "mine", None)
    found = tab.read_table(None, linked[tab.own.reading], 20, "quick", "mine", None, linked[tab.written])
    recipe = from_dict(recipe_text.parse(found[tab.recipe]))
    assert (recipe.name, recipe.epochs, len(recipe.train)) == ("other", 7, 1), (
        "the table comes later, and changes nothing"
    )


def test_texts_of_tables_and_runs_are_escaped(tab: train.TrainTab, tmp_path: Path) -> None:
    evil = "<img src=x onerror=alert(1)>"
    path = write_table(tmp_path / "mine.csv", pairs=40)
    path.write_text(path.read_text().replace("\n", f"\n{evil} ", 1))
    assert "<img" not in str(tab.read_table(str(path), None, 20, "quick", evil)[tab.sample])
    assert "<img" not in str(tab.own.open(str(path))[tab.own.view])
    job = submit(tab, tmp_path, probes=[(evil, evil, evil)] * 5)
    records(job)
    end(tab.jobs, job, "failed", evil)
    (job.folder / "log.txt").write_text(evil)
    shown = tab.runs.refresh({**NOTHING, "run": job.id}, "")
    parts = (tab.runs.run, tab.runs.learned, tab.runs.listed, tab.runs.log)
    assert not any("<img" in str(shown[part]) for part in parts)


def test_the_headline_compares_with_the_start(tab: train.TrainTab, tmp_path: Path) -> None:
    job = submit(tab, tmp_path)
    records(job)
    end(tab.jobs, job)
    run = view.view_job(tab.jobs.get(job.id), "")
    assert "71 %" in view.headline(run)
    assert "55" in view.headline(run)
    assert run.kept["step"] == 2
    learned = view.render_learned(run, {})
    assert "0.90" in learned
    assert "m=toy" in learned
    assert view.render_learned(replace(run, records=()), {}) == ""


def test_a_run_is_stopped_resumed_and_deleted_with_its_uploads(tab: train.TrainTab, tmp_path: Path) -> None:
    job = submit(tab, tmp_path)
    assert 'data-act="stop"' in tab.runs.refresh(NOTHING, "")[tab.runs.run]
    tab.runs.act(SimpleNamespace(act="stop", run=job.id), NOTHING, "")
    assert tab.jobs.get(job.id).state == "stopping"
    end(tab.jobs, job, "stopped", "Stopped after step 2.")
    tab.runs.act(SimpleNamespace(act="resume", run=job.id), NOTHING, "")
    end(tab.jobs, job, "failed", "The disk is full.")
    said = tab.runs.act(SimpleNamespace(act="delete", run=job.id), NOTHING, "")[tab.notice]
    assert "uploads" in said
    assert tab.jobs.list() == []
    with pytest.raises(DataError, match="cannot 'explode'"):
        tab.runs.act(SimpleNamespace(act="explode", run="x"), NOTHING, "")


@pytest.mark.parametrize("after", [None, "sentence,mood\na,b\n"])
def test_a_table_that_was_taken_away_is_not_trained_on(tab: train.TrainTab, tmp_path: Path, after: str | None) -> None:
    table = write_table(tmp_path / "rows.csv")
    form = (20, "quick", "mine")
    assert recipe_text.parse(tab.read_table(str(table), None, *form)[tab.recipe])["train"][0]["name"] == "csv"
    if after is not None:
        table.write_text(after)
    emptied = tab.read_table(after and str(table), None, *form)
    with pytest.raises(DataError, match="cannot be used yet" if after else "No table yet"):
        last(tab.begin("table", emptied[tab.table], emptied[tab.recipe], NOTHING, ""))


def test_a_table_with_too_few_rows_is_not_said_to_be_missing(tab: train.TrainTab, tmp_path: Path) -> None:
    found = tab.read_table(str(write_table(tmp_path / "few.csv", pairs=1)), None, 20, "quick", "mine")
    assert "few.csv has 2 rows" in found[tab.own.told]
    with pytest.raises(DataError) as told:
        last(tab.begin("table", found[tab.table], found[tab.recipe], NOTHING, ""))
    assert "No table" not in str(told.value)
    assert "few.csv has" not in str(told.value), "one error stands at one place"


def test_before_a_table_comes_the_recipe_waits_for_one(tab: train.TrainTab) -> None:
    fields = recipe_text.parse(tab.recipe.value)
    assert fields["init"] == recipe_text.best_start()
    assert fields["train"][0]["name"] == "csv"
    assert str(MIN_ROWS) in tab.help.value, "what a table needs is said before it comes"
    example = tab.choose_source("example", "quick", "mine", None)
    assert (example[tab.own_box]["visible"], recipe_text.parse(example[tab.recipe])["train"][0]["name"]) == (
        False,
        "scenes",
    )


def test_a_deleted_training_leaves_other_models_in_the_menus(tab: train.TrainTab, tmp_path: Path) -> None:
    job = submit(tab, tmp_path)
    end(tab.jobs, job, "failed", "The disk is full.")
    for name in (job.name, "csr on intfloat/e5-small-v2"):
        tab.pool.add(name)
    tab.runs.act(SimpleNamespace(act="delete", run=job.id), NOTHING, "")
    assert tab.pool.names == ("minilm", "csr on intfloat/e5-small-v2")


@pytest.mark.parametrize("setting", ["SPACE_ID", "CONDVIZ_PASSWORD", "CONDVIZ_HOSTS", "GRADIO_SERVER_NAME"])
def test_where_others_come_trainings_belong_to_who_started_them(
    tab: train.TrainTab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, setting: str
) -> None:
    job = submit(tab, tmp_path, owner="mine")
    fresh, again = (tab.runs.refresh(NOTHING, token) for token in ("yours", "mine"))
    assert "whoever started it" in fresh[tab.runs.listed], "on one's own machine all are listed for all"
    assert 'data-state="recorded"' in fresh[tab.runs.run], "and a browser begins with the newest of its own"
    assert job.id in again[tab.runs.run]
    (job.folder / "log.txt").write_text("secret")
    monkeypatch.setenv(setting, "0.0.0.0" if setting == "GRADIO_SERVER_NAME" else "somebody/condviz")
    monkeypatch.setenv("CONDVIZ_TRAINING", "1")
    stranger, owner = (tab.runs.refresh({**NOTHING, "run": job.id}, token) for token in ("yours", "mine"))
    assert 'data-state="recorded"' in stranger[tab.runs.run]
    assert job.id not in f"{stranger[tab.runs.listed]}{stranger[tab.runs.run]}"
    assert "belong to this browser" in stranger[tab.runs.listed]
    assert "secret" not in stranger[tab.runs.log]
    assert ('data-act="stop"' in owner[tab.runs.run], "secret" in owner[tab.runs.log]) == (True, True)
    assert (tab.runs.api_status()["jobs"], len(tab.runs.api_status(owner="mine")["jobs"])) == ([], 1)
    for call in (
        lambda: tab.runs.api_status(job.id),
        lambda: tab.open_link({"run": [job.id]}, NOTHING, "yours", "m", None),
    ):
        with pytest.raises(DataError, match="somebody else"):
            call()
    assert tab.runs.api_status(job.id, "mine")["probes"]
    assert [job.name in tab.jobs.models_of_others(token) for token in ("yours", "", "mine")] == [True, True, False]
    with pytest.raises(DataError, match="not the password"):
        tab.runs.unlock("", NOTHING, "yours")
    monkeypatch.setenv(runs.OPERATOR, "boss")
    unlocked = tab.runs.unlock("boss", NOTHING, "yours")
    assert job.id in unlocked[tab.runs.run]
    assert unlocked[tab.runs.shown]["operator"]
    record = {"event": "start", "step": 0, "probes": [0.5] * len(job.status.probes)}
    seen = [replace(view.view_job(job, token), records=(record,)) for token in ("yours", "mine")]
    assert [bool(view.render_learned(run, {})) for run in seen] == [False, True], "its rows are the owner's, too"
    for call in (
        lambda: tab.runs.api_stop(job.id),
        lambda: tab.runs.act(SimpleNamespace(act="delete", run=job.id), NOTHING, "yours"),
    ):
        with pytest.raises(TrainingError, match="somebody else"):
            call()
    assert tab.runs.api_stop(job.id, "mine")["state"] == "stopping"


def test_on_a_space_only_the_owner_packs_a_model(
    tab: train.TrainTab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = submit(tab, tmp_path, owner="mine")
    write_status(job.folder, replace(job.status, state="done"))
    job.out.mkdir(parents=True)
    (job.out / "condviz.json").write_text("{}")
    monkeypatch.setenv("SPACE_ID", "somebody/condviz")
    shown = {**NOTHING, "run": job.id}
    for call in (lambda: tab.runs.model.make_zip(shown, "yours"),
                 lambda: tab.runs.model.send("a/b", "t", True, shown, "yours")):  # fmt: skip
        with pytest.raises(DataError, match="somebody else"):
            call()
    assert tab.runs.model.zip in tab.runs.model.make_zip(shown, "mine")


def test_other_trainings_are_drawn_beside_the_one_that_is_shown(tab: train.TrainTab, tmp_path: Path) -> None:
    first, second = submit(tab, tmp_path), tab.jobs.submit(toy_recipe(tmp_path, name="other"), device="cpu")
    for job in (first, second):
        records(job)
    shown = {**NOTHING, "run": first.id}
    alone, both = tab.runs.refresh(shown, ""), tab.runs.act(SimpleNamespace(act="over", run=second.id), shown, "")
    assert (alone[tab.runs.curve].count("<path"), both[tab.runs.curve].count("<path")) == (1, 2)
    assert "other" in both[tab.runs.curve]
    assert "by chance" in alone[tab.runs.curve]
    again = tab.runs.act(SimpleNamespace(act="over", run=second.id), both[tab.runs.shown], "")
    assert again[tab.runs.curve].count("<path") == 1


def test_the_rows_that_were_kept_back_open_in_errors(tab: train.TrainTab, tmp_path: Path) -> None:
    job = submit(tab, tmp_path)
    records(job)
    assert "to-errors" not in tab.runs.refresh({**NOTHING, "run": job.id}, "")[tab.runs.learned]
    end(tab.jobs, job)
    ended = tab.runs.refresh({**NOTHING, "run": job.id}, "")
    learned = ended[tab.runs.learned]
    token = re.search(r"errors\?ed=([^&]*)&", html.unescape(str(learned)))[1]
    assert train.KEPT[token].path == job.recipe["validation"][0]["path"]
    assert job.name in train.KEPT[token].name, "nobody has uploaded this file"
    assert train.KEPT[token].pairs().pairs, "fewer rows than a training needs can be looked at"
    assert "run-example" in ended[tab.runs.run]
    shown = tab.runs.act(SimpleNamespace(act="show", run=""), ended[tab.runs.shown], "")
    assert "recorded" in shown[tab.runs.run], "the example stays within reach"


def test_ratings_that_could_not_be_read_are_read_when_they_can(tab: train.TrainTab, tmp_path: Path) -> None:
    run = view.view_job(submit(tab, tmp_path), None)
    source = tmp_path / "later.csv"
    run = replace(run, recipe={**run.recipe, "validation": [{"name": "csv", "path": str(source)}]})
    assert view.find_ratings(run) == {}
    source.write_text("sentence1,sentence2,condition,label\na,b,x,1\na,b,y,5\n")
    assert view.find_ratings(run) == {("a", "b", "x"): 1.0, ("a", "b", "y"): 5.0}


def test_where_training_is_off_a_recording_is_replayed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPACE_ID", "somebody/condviz")
    monkeypatch.delenv("CONDVIZ_TRAINING", raising=False)
    monkeypatch.setattr(runs.Runs, "_add_models", lambda self: [])
    tab = make_tab()
    assert not tab.start.interactive
    monkeypatch.setattr(tab, "jobs", SimpleNamespace(list=list))
    begun = tab.runs.act(SimpleNamespace(act="replay", run=""), NOTHING, "")
    assert begun[tab.runs.timer].active
    assert 'data-state="recorded"' in begun[tab.runs.run]
    ended = tab.runs.refresh({**begun[tab.runs.shown], "replay": time.time() - 100}, "")
    assert not ended[tab.runs.timer].active


def test_endpoints_return_plain_json(tab: train.TrainTab, tmp_path: Path) -> None:
    job = submit(tab, tmp_path)
    records(job)
    told = tab.runs.api_status(job.id)
    keys = "id name method state reason phase step steps elapsed left speed"
    assert {*keys.split()} <= told.keys()
    assert [entry["step"] for entry in told["evaluations"]] == [0, 2]
    assert [entry["loss"] for entry in told["losses"]] == [0.5]
    assert "path" not in json.dumps(told)
    assert [one["id"] for one in tab.runs.api_status()["jobs"]] == [job.id]
    with pytest.raises(ConfigError, match="Did you mean method"):
        tab.api_train('name = "x"\nmethodd = "csr"\n')


def test_a_link_opens_its_training_and_tells_when_it_is_gone(tab: train.TrainTab, tmp_path: Path) -> None:
    first = submit(tab, tmp_path)
    tab.jobs.submit(toy_recipe(tmp_path, name="other"), device="cpu")
    assert f"run={first.id}" in tab.open_link({"run": [first.id]}, NOTHING, "", "m", None)[tab.runs.run]
    with pytest.raises(TrainingError, match="may have been deleted"):
        tab.open_link({"run": ["gone"]}, NOTHING, "", "m", None)


def test_a_link_fills_in_data_and_thoroughness(tab: train.TrainTab) -> None:
    tab.enabled = False  # nothing is read ahead
    found = tab.open_link({"data": ["example"], "quality": ["better"]}, NOTHING, "", "mine", None)
    assert (found[tab.source], found[tab.quality]) == ("example", "better")
    assert found[tab.recipe] == recipe_text.compose("better", "mine", None)
    assert found[tab.upload_box]["visible"] is False
    assert "data-asked" in found[tab.runs.run]
    odd = tab.open_link({"data": ["moon"], "quality": ["<b>"]}, NOTHING, "", "mine", None)
    assert (odd[tab.source], odd[tab.quality]) == ("table", "quick")
    assert tab.recipe not in tab.open_link({}, NOTHING, "", "mine", None)


@pytest.mark.parametrize("table", [None, {"table": ["/up/a.csv", "/up/b.csv"], "batching": "rows", "rows": 40}])
def test_a_link_holds_what_was_changed_in_the_form(tab: train.TrainTab, table: dict | None) -> None:
    tab.enabled = False
    base = recipe_text.compose("better", recipe_text.NAME, table or recipe_text.WAITING)

    def link(text: str) -> dict[str, list[str]]:
        shown = str(tab.note("table", "better", "better", table, None, text)[tab.noted])
        query = html.unescape(re.search('data-noted="(.*?)"', shown)[1])
        assert "up%2Fa.csv" not in query  # nobody learns where an upload lies
        return {key: found for key, found in read_link(f"?t=train&{query}")[1].items() if found != [""]}

    def opened(values: dict[str, list[str]]) -> dict[str, Any]:
        return recipe_text.parse(tab.open_link(values, NOTHING, "", recipe_text.NAME, table)[tab.recipe])

    assert link(base) == {"quality": ["better"]}
    fields = recipe_text.write_field(recipe_text.write_field(base, ("epochs",), 7.0), ("name",), "mine")
    assert link(fields) == {"quality": ["better"], "epochs": ["7"], "name": ["mine"]}
    assert opened(link(fields)) == recipe_text.parse(fields)
    other = recipe_text.write_field(fields, ("warmup",), 0.3)
    assert opened(link(other)) == recipe_text.parse(other)
    emptied = recipe_text.write_field(base, ("init",), "")
    assert opened(link(emptied)) == recipe_text.parse(emptied)
    long = other + f"# {'long ' * 2000}"
    assert opened(link(long)) == recipe_text.parse(other)  # a remark is no difference
    assert "recipe" not in link(long.replace("# ", "note = '") + "'")
    with pytest.raises(ConfigError, match="Epochs is 'many'"):
        opened({"epochs": ["many"]})


def test_a_model_is_packed_only_when_it_is_there(tab: train.TrainTab, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no model yet"):
        tab.runs.model.make_zip(NOTHING, "")
    job = submit(tab, tmp_path)
    with pytest.raises(DataError, match="has no model"):
        tab.runs.model.make_zip({**NOTHING, "run": job.id}, "")
    assert not tab.runs.refresh(NOTHING, "")[tab.runs.model.box]["visible"]
    write_status(job.folder, replace(job.status, state="done"))
    assert tab.runs.refresh(NOTHING, "")[tab.runs.model.box]["visible"]
    job.out.mkdir(parents=True)
    (job.out / "condviz.json").write_text("{}")
    packed = tab.runs.model.make_zip({**NOTHING, "run": job.id}, "")[tab.runs.model.zip]
    assert isinstance(packed, gr.DownloadButton)
    with pytest.raises(ConfigError, match="OWNER/NAME"):
        tab.runs.model.send("bad name", "t", True, {**NOTHING, "run": job.id}, "")


def test_the_tab_runs_without_a_recording(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(view, "RECORDING", tmp_path / "none.jsonl")
    view.load_recording.cache_clear()
    try:
        assert view.replay() is None
        assert make_tab().runs.refresh(NOTHING, "") is not None
    finally:
        view.load_recording.cache_clear()
