"""Trainings on a toy set: they learn, can be interrupted, and leave checkpoints that score as the trained model."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest
import tomlkit
import torch
from safetensors.torch import load_file

import condviz
from condviz.data import corpora
from condviz.errors import CheckpointError, ConfigError, DataError
from condviz.models import checkpoints
from condviz.models.manifest import CARD, FILES, MANIFEST, WEIGHTS, read_manifest
from condviz.training import model as model_module
from condviz.training import trainer as trainer_module
from condviz.training.data import collate, load_source, make_units
from condviz.training.loop import Loop, TrainingError
from condviz.training.model import TrainingModel, build_model
from condviz.training.recipes import SentenceRecipe, Source
from condviz.training.trainer import carry_out, shareable, shareable_path
from tests.commands import Command
from tests.tiny import CONDITIONS, SENTENCES
from tests.training.toy import HEADER, toy_recipe

ROWS = (SENTENCES, SENTENCES[::-1], CONDITIONS)
LEARNERS: list[tuple[str, dict]] = [
    ("bi-encoder", {}),
    ("cross-encoder", {"tuning": "layers"}),
    ("tri-encoder", {"start": "identity", "head_lr": 1e-2}),
    ("tri-encoder", {"config": {"composition": "concat"}, "batching": "rows", "loss": {"mse": 1.0}}),
    ("hyper-cl", {"config": {"rank": 8}, "tuning": "lora", "lora": {"rank": 4}, "lr": 1e-3, "epochs": 12}),
    ("hyper-cl", {"config": {"rank": "none"}, "tuning": "frozen", "lr": 1e-2}),
    ("csr", {"config": {"num_routed_layers": 2}, "loss": {"mse": 0.0, "quadruplet": 1.0}}),
    ("csr", {"config": {"router": "multihead"}, "tuning": "lora"}),
    ("csr-bi", {"config": {"num_routed_layers": 2}}),
    ("csr-prefix", {"accumulation": 2, "clip": 1.0}),
    ("case", {"config": {"projection": "linear", "projection_dim": 8}, "tuning": "frozen", "lr": 1e-2}),
    ("case", {"config": {"projection": "mlp", "projection_dim": 8, "hidden_dim": 8}}),
]


class Stopped(Exception):
    """Somebody pulled the plug."""


def quick(folder: Path, method: str = "bi-encoder", **changes: Any) -> SentenceRecipe:
    return toy_recipe(folder, method, **{"dropout": 0.0, **changes})


def train(recipe: SentenceRecipe, out: Path, **options: Any) -> Path:
    return carry_out(recipe, out, device="cpu", **options)


def stop_at(event: str, step: int) -> Callable[[Mapping[str, Any]], None]:
    def report(record: Mapping[str, Any]) -> None:
        if (record["event"], record["step"]) == (event, step):
            raise Stopped

    return report


def load(folder: Path) -> checkpoints.ConditionalScorer:
    return checkpoints.load(folder, device="cpu", precision="float32")


def loss_of(model: checkpoints.ConditionalScorer, recipe: SentenceRecipe) -> float:
    inputs = collate(make_units(load_source(recipe.train[0]), recipe.batching))
    with torch.no_grad():
        return float(TrainingModel(model, recipe.loss, frozen=False).eval()(**inputs)["loss"])


@pytest.mark.parametrize(("method", "changes"), LEARNERS, ids=str)
def test_every_method_learns(tmp_path: Path, method: str, changes: dict) -> None:
    recipe = quick(tmp_path, method, **{"epochs": 5, "keep": "last", "validation": [], **changes})
    before = loss_of(build_model(recipe), recipe)
    folder = train(recipe, tmp_path / "out" / "toy")
    assert loss_of(load(folder), recipe) < before - 0.005
    tensors = set(load_file(folder / WEIGHTS))
    assert any(name.startswith("backbone.") for name in tensors) == (recipe.tuning in ("full", "layers"))
    assert any(name.startswith("adapter.") for name in tensors) == (recipe.tuning == "lora")
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [".toy.run", "toy"]
    assert sorted(path.name for path in (tmp_path / "out" / ".toy.run").iterdir()) == ["log.jsonl", "recipe.json"]


def test_the_checkpoint_tells_how_it_was_made(tmp_path: Path) -> None:
    records: list[Mapping[str, Any]] = []
    recipe = quick(tmp_path)
    folder = train(recipe, tmp_path / "toy", report=records.append)
    manifest = read_manifest(folder)
    training = manifest["training"]
    assert training["recipe"] == shareable(recipe.to_dict())
    assert [(part["source"], part["rows"], len(part["sha256"])) for part in training["data"]] == [("csv", 24, 64)] * 2
    assert training["steps"] == 6
    assert training["best_step"] in (3, 6)
    assert {"condviz", "torch", "transformers", "python"} <= set(training["versions"])
    best = max(record["spearman"] for record in records if record["event"] == "evaluation")
    assert manifest["metrics"]["validation"]["spearman"] == pytest.approx(best, abs=0.01)
    assert manifest["metrics"]["validation"]["rows"] == 24
    lines = (tmp_path / ".toy.run" / "log.jsonl").read_text().splitlines()
    assert [json.loads(line) for line in lines] == records
    assert [record["event"] for record in records] == ["start", *["step", "evaluation"] * 2, "end"]
    assert all(record["tokens_per_second"] > 0 for record in records if record["event"] == "step")


@pytest.mark.parametrize(
    ("stop", "weight", "changes"),
    [
        (12, 2.0, {"epochs": 3}),  # in the second epoch of three, states at the end of each
        (4, 2.0, {"evaluations": 3, "accumulation": 2, "batch_size": 4}),  # in the middle of an epoch
        (10, 1.5, {"epochs": 3, "tuning": "lora", "patience": 3}),
    ],
    ids=str,
)
def test_an_interrupted_training_ends_as_an_uninterrupted_one(
    tmp_path: Path, stop: int, weight: float, changes: dict
) -> None:
    source = {"name": "csv", "path": str(tmp_path / "rows.csv"), "weight": weight}
    recipe = toy_recipe(tmp_path, "hyper-cl", config={"rank": 4}, train=[source], keep="best", **changes)
    straight = train(recipe, tmp_path / "straight")
    steps = read_manifest(straight)["training"]["steps"]
    assert steps > stop
    with pytest.raises(Stopped):
        train(recipe, tmp_path / "broken", report=stop_at("step", stop))
    assert not (tmp_path / "broken").exists()
    with pytest.raises(ConfigError, match=r"holds an unfinished training \(checkpoint-.*Go on with --resume"):
        train(recipe, tmp_path / "broken")
    records: list[Mapping[str, Any]] = []
    resumed = train(recipe, tmp_path / "broken", resume=True, report=records.append)
    assert 0 < records[0]["step"] < stop
    torch.testing.assert_close(load_file(resumed / WEIGHTS), load_file(straight / WEIGHTS), rtol=0, atol=0)


@pytest.mark.parametrize("batching", ["rows", "pairs"])
def test_accumulated_batches_are_one_large_batch(tmp_path: Path, batching: str) -> None:
    scores = []
    for size, accumulation in ((8, 1), (4, 2)):
        recipe = quick(tmp_path, batching=batching, loss={"mse": 1.0}, batch_size=size, accumulation=accumulation)
        scores.append(load(train(recipe, tmp_path / f"toy{size}")).score(*ROWS))
    np.testing.assert_allclose(*scores, atol=1e-2)  # Adam enlarges rounding errors of gradients that are almost 0
    assert np.abs(scores[0] - build_model(recipe).eval().score(*ROWS)).max() > 0.05


def test_the_lowest_layers_stay_as_they_are(tmp_path: Path) -> None:
    folder = train(quick(tmp_path, tuning="layers", frozen_layers=1, epochs=1), tmp_path / "toy")
    changed = set(load_file(folder / WEIGHTS))
    assert any("layer.1." in name for name in changed)
    assert not any("layer.0." in name or ".embeddings.word" in name for name in changed)
    with pytest.raises(ConfigError, match=r"frozen_layers is 99, but .* has 3 layers"):
        build_model(quick(tmp_path, tuning="layers", frozen_layers=99))


def test_trained_weights_are_blended_with_those_of_the_start(tmp_path: Path) -> None:
    start = load(train(quick(tmp_path), tmp_path / "start")).state_dict()
    again = {"init": str(tmp_path / "start"), "seed": 7, "validation": [], "keep": "last"}
    trained, blended = (
        load(train(quick(tmp_path, blend=blend, **again), tmp_path / f"blend-{blend}")).state_dict()
        for blend in (1.0, 0.25)
    )
    torch.testing.assert_close(blended, {key: old + 0.25 * (trained[key] - old) for key, old in start.items()})
    assert sum(not torch.equal(blended[key], trained[key]) for key in start) > 5


def test_a_trained_encoder_is_the_start_of_another_method(tmp_path: Path) -> None:
    first = train(quick(tmp_path, tuning="layers", epochs=1), tmp_path / "first")
    model = build_model(quick(tmp_path, "csr", tuning="layers", init=str(first)))
    torch.testing.assert_close(model.backbone.model.state_dict(), load(first).backbone.model.state_dict())
    assert any(value.requires_grad for value in model.backbone.parameters())
    plain = build_model(quick(tmp_path, "csr", tuning="layers")).eval().score(*ROWS)
    assert np.abs(model.eval().score(*ROWS) - plain).max() > 1e-3


def test_adapters_are_added_to_the_weights_of_a_trained_start(tmp_path: Path) -> None:
    first = train(quick(tmp_path, tuning="layers", frozen_layers=1, epochs=1), tmp_path / "first")
    recipe = quick(tmp_path, tuning="lora", frozen_layers=1, lr=1e-2, init=str(first))
    second = train(recipe, tmp_path / "second")  # which compares the scores of the loaded files
    before, after = load_file(first / WEIGHTS), load_file(second / WEIGHTS)
    assert all(torch.equal(after[name], value) for name, value in before.items())
    added = set(after) - set(before)
    assert {name.startswith("adapter.") and "layer.0." not in name for name in added} == {True}
    assert np.abs(load(second).score(*ROWS) - load(first).score(*ROWS)).max() > 1e-3


def test_adapters_blended_add_less(tmp_path: Path) -> None:
    part, whole = (
        train(quick(tmp_path, tuning="lora", lr=1e-2, blend=blend), tmp_path / f"{blend}") for blend in (0.25, 1.0)
    )
    plain = build_model(quick(tmp_path)).backbone.model.state_dict()
    name = "encoder.layer.1.attention.self.query.weight"
    part, whole = (load(one).backbone.model.state_dict()[name] - plain[name] for one in (part, whole))
    torch.testing.assert_close(part, 0.25 * whole, atol=1e-6, rtol=1e-4)


def test_a_head_goes_on_from_one_with_the_same_settings(tmp_path: Path) -> None:
    settings = {"tuning": "frozen", "config": {"rank": 4}, "lr": 1e-2, "epochs": 1}
    first = train(quick(tmp_path, "hyper-cl", **settings), tmp_path / "first")
    before = load(first).score(*ROWS)
    for changes, equal in (({}, True), ({"config": {"rank": 8}}, False)):
        recipe = quick(tmp_path, "hyper-cl", **settings | changes, init=str(first))
        scores = build_model(recipe).eval().score(*ROWS)
        assert np.allclose(scores, before, atol=1e-5) == equal


def test_a_finished_training_is_not_repeated(tmp_path: Path) -> None:
    recipe = quick(tmp_path, epochs=1)
    folder = train(recipe, tmp_path / "toy", resume=True)  # nothing to go on from
    time = (folder / WEIGHTS).stat().st_mtime_ns
    train(recipe, folder, resume=True)
    assert (folder / WEIGHTS).stat().st_mtime_ns == time
    manifest = read_manifest(folder)
    manifest["training"]["recipe"] = recipe.to_dict()  # as older versions kept it: with whole paths
    (folder / MANIFEST).write_text(json.dumps(manifest), encoding="utf-8")
    train(recipe, folder, resume=True)
    assert (folder / WEIGHTS).stat().st_mtime_ns == time
    train(quick(tmp_path, epochs=1, seed=1), folder, resume=True)
    assert read_manifest(folder)["training"]["seed"] == 1


def test_a_checkpoint_names_no_folder_but_that_of_its_encoder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recipe = quick(tmp_path, epochs=1)
    folder = train(recipe, tmp_path / "toy")
    for name in (MANIFEST, CARD):
        content = (folder / name).read_text(encoding="utf-8")
        assert "rows.csv" in content
        assert str(tmp_path) not in content.replace(recipe.backbone, "")
    monkeypatch.setenv(corpora.VARIABLE, str(tmp_path.parent))
    assert shareable_path(f"{tmp_path}/rows.csv") == f"{tmp_path.name}/rows.csv"
    assert shareable_path("rows.csv") == "rows.csv"


def test_another_recipe_does_not_go_on_from_a_state(tmp_path: Path) -> None:
    with pytest.raises(Stopped):
        train(quick(tmp_path), tmp_path / "toy", report=stop_at("step", 6))
    with pytest.raises(ConfigError, match="begun with another recipe: lr, seed differ"):
        train(quick(tmp_path, seed=1, lr=1e-4), tmp_path / "toy", resume=True)


def test_adapters_score_the_same_when_loaded(tmp_path: Path) -> None:
    recipe = quick(tmp_path, tuning="lora", lr=1e-2)
    model = build_model(recipe)
    torch.manual_seed(0)
    for value in (value for name, value in model.named_parameters() if "lora_B" in name):
        torch.nn.init.normal_(value, std=0.1)
    plain = build_model(quick(tmp_path)).eval().score(*ROWS)
    model.train().eval()
    folder = checkpoints.save(model, tmp_path / "toy")
    assert read_manifest(folder)["adapter_scale"] == 2.0
    loaded = load(folder).score(*ROWS)
    np.testing.assert_allclose(loaded, model.score(*ROWS), atol=1e-5)
    assert np.abs(loaded - plain).max() > 1e-3


@pytest.mark.filterwarnings("ignore:FastICA did not converge")
@pytest.mark.parametrize("projection", ["pca", "ica"])
def test_case_can_be_fitted(tmp_path: Path, projection: str) -> None:
    recipe = quick(tmp_path, "case", tuning="frozen", config={"projection": projection, "projection_dim": 3})
    folder = train(recipe, tmp_path / "toy")
    assert read_manifest(folder)["metrics"]["validation"]["rows"] == 24
    assert load(folder).encode(SENTENCES, CONDITIONS).shape == (4, 3)


def test_half_precision_on_disk(tmp_path: Path) -> None:
    folder = train(quick(tmp_path, epochs=1, disk="float16"), tmp_path / "toy")
    assert {value.dtype for value in load_file(folder / WEIGHTS).values()} == {torch.float16}


def test_the_files_that_were_tried_are_the_ones_that_are_shipped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried, save, load_one = [], Mock(wraps=checkpoints.save), checkpoints.load

    def note(folder: Path, **options: Any) -> checkpoints.ConditionalScorer:
        tried.append((folder / WEIGHTS).read_bytes())
        return load_one(folder, **options)

    monkeypatch.setattr(checkpoints, "load", note)
    monkeypatch.setattr(checkpoints, "save", save)
    folder = train(quick(tmp_path, epochs=1), tmp_path / "toy")
    assert tried == [(folder / WEIGHTS).read_bytes()]
    save.assert_called_once()
    assert sorted(path.name for path in folder.iterdir()) == sorted(FILES)


def test_the_public_function_returns_the_curve(tmp_path: Path) -> None:
    recipe = quick(tmp_path)
    done = condviz.train(recipe.to_dict(), out=tmp_path / "toy", device="cpu")
    assert (done.folder, done.name) == (tmp_path / "toy", "toy")
    assert done.metrics["rows"] == 24
    frame = done.to_frame()
    assert frame["step"].tolist() == [0, 3, 3, 6, 6]
    assert frame["spearman"].notna().tolist() == [True, False, True, False, True]
    json.dumps(done.to_dict())
    assert "<svg" in done._repr_html_()


def test_a_checkpoint_that_scores_differently_is_not_put_into_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(trainer_module.TOLERANCE, "float32", -1.0)
    with pytest.raises(TrainingError, match="apart from the trained one"):
        train(quick(tmp_path, epochs=1), tmp_path / "toy")
    assert not (tmp_path / "toy").exists()
    assert (tmp_path / ".toy.run" / "model" / "toy" / MANIFEST).is_file()


def test_a_loss_that_is_no_number_stops_and_keeps_the_last_state(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    factors = itertools.chain([1.0] * 4, itertools.repeat(float("nan")))
    monkeypatch.setattr(model_module, "mean_squared_error", lambda scores, targets: scores.mean() * next(factors))
    with pytest.raises(TrainingError, match=r"after step 4: the loss is nan.*kept in .*checkpoint-3.*Lower the"):
        train(quick(tmp_path), tmp_path / "toy")
    assert (tmp_path / ".toy.run" / "checkpoint-3" / "model.safetensors").is_file()


def test_weights_that_are_no_numbers_are_not_saved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    create = Loop.create_optimizer

    def poisoned(self: Loop, model: torch.nn.Module | None = None) -> torch.optim.Optimizer:
        optimizer = create(self, model)
        optimizer.register_step_post_hook(lambda *_: next(self.model.parameters()).data.fill_(float("nan")))
        return optimizer

    monkeypatch.setattr(Loop, "create_optimizer", poisoned)
    with pytest.raises(TrainingError, match="No state had been saved yet"):
        train(quick(tmp_path, batch_size=24), tmp_path / "toy")
    with pytest.raises(TrainingError, match="a weight is not a number"):
        train(quick(tmp_path, batch_size=24, validation=[], keep="last"), tmp_path / "toy")


@pytest.fixture
def pretend_validation(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    def give(*values: float) -> None:
        told, rest = iter(values), {"pearson": 0.0, "pair_accuracy": 0.0, "rows": 1}
        monkeypatch.setattr(Loop, "validate", lambda self: {"spearman": next(told), **rest})

    return give


def test_early_stopping(tmp_path: Path, pretend_validation: Callable[..., None]) -> None:
    pretend_validation(0.0, 10.0, 30.0, 20.0, 25.0, 99.0)
    folder = train(quick(tmp_path, epochs=9, patience=2), tmp_path / "toy")
    training = read_manifest(folder)["training"]
    assert (training["steps"], training["best_step"]) == (12, 6)


def test_early_stopping_is_final(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pretend_validation: Callable[..., None]
) -> None:
    pretend_validation(0.0, 10.0, 5.0, 99.0, 98.0)
    recipe = quick(tmp_path, epochs=9, patience=1)
    with monkeypatch.context() as patch:
        patch.setattr(trainer_module, "_save", Mock(side_effect=Stopped))
        with pytest.raises(Stopped):
            train(recipe, tmp_path / "toy")
    training = read_manifest(train(recipe, tmp_path / "toy", resume=True))["training"]
    assert (training["steps"], training["best_step"]) == (6, 3)


def test_a_constant_model_has_no_correlation_but_trains(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("condviz.training.model.spearman", lambda *_: None)
    records: list[Mapping[str, Any]] = []
    folder = train(quick(tmp_path, epochs=1), tmp_path / "toy", report=records.append)
    assert next(record for record in records if record["event"] == "evaluation")["spearman"] is None
    assert read_manifest(folder)["metrics"]["validation"]["spearman"] is None


def test_teachers_score_rows_without_a_score(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def load(name: str, **_: object) -> Any:
        value = {"low": 0.0, "high": 0.5}[name]
        return SimpleNamespace(score=lambda sentences1, *_: np.full(len(sentences1), value, np.float32))

    monkeypatch.setattr(model_module, "load", load)
    losses = {}
    for teacher in ((), ("low",), ("low", "high")):
        records: list[Mapping[str, Any]] = []
        loss = {"mse": 1.0, "teacher": 1.0} if teacher else {"mse": 1.0}
        recipe = quick(tmp_path, teacher=list(teacher), loss=loss, epochs=1, lr=1e-9)
        train(recipe, tmp_path / f"toy{len(teacher)}", report=records.append)
        losses[teacher] = records[1]["loss"]
    assert len({round(value, 5) for value in losses.values()}) == 3
    assert min(losses.values()) == losses[()]


def test_tables_can_bring_the_teachers_scores(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("sentence1,sentence2,condition,label,teacher\na,b,x,1,0.25\na,b,y,5,\nc,d,x,,0.5\n")
    assert [row.teacher for row in load_source(Source("csv", path=str(path)))] == [0.25, None]
    for cell in ("good", "inf"):
        path.write_text(f"sentence1,sentence2,condition,label,teacher\na,b,x,1,{cell}\n")
        with pytest.raises(DataError, match=rf"Row 1 \(line 2\): teacher is '{cell}'"):
            load_source(Source("csv", path=str(path)))


def test_a_teacher_alone_teaches_what_it_has_scored(tmp_path: Path) -> None:
    recipe = quick(tmp_path, loss={"mse": 0.0, "teacher": 1.0}, epochs=1)
    with pytest.raises(DataError, match="No row has a teacher's score"):
        train(recipe, tmp_path / "toy")
    header, first, *others = (tmp_path / "rows.csv").read_text().splitlines()
    (tmp_path / "rows.csv").write_text("\n".join([f"{header},teacher", f"{first},0.5", *(f"{row}," for row in others)]))
    records: list[Mapping[str, Any]] = []
    train(recipe, tmp_path / "toy", report=records.append)  # two of three batches have no such row
    assert records[1]["loss"] > 0


def test_data_that_cannot_be_used(tmp_path: Path) -> None:
    recipe = quick(tmp_path)
    rows = tmp_path / "rows.csv"
    for content, message in (
        (HEADER + "a,b,x,\n", "no row has a label"),
        (HEADER + "a,b,x,1\nc,d,x,2\n", "None of 2 sentence pairs has exactly two rated conditions"),
        (HEADER + "a,b,x,great\n", "Row 1"),
    ):
        rows.write_text(content)
        with pytest.raises(DataError, match=message):
            train(recipe, tmp_path / "toy")
    rows.unlink()
    with pytest.raises(DataError, match=r"rows\.csv is neither in"):
        train(recipe, tmp_path / "toy")
    with pytest.raises(DataError, match="no corpus 'scene'"):
        load_source(Source("scene"))
    with pytest.raises(DataError, match="no part 'x'"):
        load_source(Source("scenes", split="x"))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["encoder"]


def test_other_folders_are_left_alone(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="is not a checkpoint"):
        train(quick(tmp_path), tmp_path / "encoder")


def test_command(tmp_path: Path, cli: Command) -> None:
    (tmp_path / "toy.toml").write_text(tomlkit.dumps(quick(tmp_path, "tri-encoder").to_dict()), encoding="utf-8")
    command = ["train", tmp_path / "toy.toml", "--out", tmp_path / "toy", "--device", "cpu"]
    trained = cli(*command, "--set", "epochs=1")
    assert trained.out.strip() == str(tmp_path / "toy")
    assert "step 3 of 3: spearman" in trained.err
    assert "Unknown key epoch. Did you mean epochs?" in cli.refuse(*command, "--set", "epoch=1")
    (tmp_path / "encoder").rename(tmp_path / "other")
    cli(*command, "--set", "epochs=1", "--backbone", tmp_path / "other")
    cli.refuse(*command)
