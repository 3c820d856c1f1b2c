"""The training that ships to be replayed."""

from __future__ import annotations

import json

from condviz.training.recipes import from_dict
from condviz.ui.train_recording import PAIRS, RECIPE, write_recording
from condviz.ui.train_run import REPLAY_SECONDS, load_recording, replay


def test_the_shipped_recording_is_whole() -> None:
    records = load_recording()
    whole, begun = replay(records, None), replay(records, REPLAY_SECONDS / 2)
    assert whole.step == whole.steps == records[-1]["step"]
    assert len(whole.evaluations) == RECIPE["epochs"] * RECIPE["evaluations"]
    assert [len(probe.scores) for probe in whole.probes] == [len(whole.evaluations) + 1] * 5
    assert 0 < begun.step < whole.step
    assert begun.left > 0
    times = [record["time"] for record in records[1:]]
    assert times == sorted(times)


def test_the_shipped_recording_comes_from_the_recipe_of_its_command() -> None:
    recipe = load_recording()[0]["recipe"]
    sources = {
        key: [{"name": "csv", "path": f"scenes-{part}.csv"}]
        for key, part in zip(("train", "validation"), PAIRS, strict=True)
    }
    assert from_dict(recipe).to_dict() == from_dict({**RECIPE, **sources}).to_dict()


def test_a_recording_names_no_folder_of_the_machine() -> None:
    source = {"name": "csv", "path": "/home/ada/rows.csv"}
    text = write_recording({"train": [source], "validation": [source]}, [], [{"event": "end", "time": 1.0}])
    assert "ada" not in text
    assert json.loads(text.splitlines()[1]) == {"event": "end", "time": 1.0}
