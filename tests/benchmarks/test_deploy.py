"""`python -m benchmarks deploy`: what it writes, and what it sends to a stand-in of the hub."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import yaml
from gradio_client import Client
from gradio_client.exceptions import AppError
from huggingface_hub import HfApi

import condviz
from benchmarks import deploy
from condviz import paths
from condviz.errors import ConfigError
from condviz.ui.pool import load_served
from tests.commands import Command
from tests.hub import Hub
from tests.ports import free_ports

SPACE = "somebody/condviz"


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Leave all models out but one, and add what must never be sent."""
    models = tmp_path / "checkpoints"
    models.mkdir()
    (models / "bi-encoder").symlink_to(paths.CHECKPOINTS / "bi-encoder")
    (models / ".half-written").mkdir()
    (models / ".half-written" / "secret").touch()
    monkeypatch.setattr(paths, "MODEL_FOLDERS", (models,))
    return tmp_path


def front_matter(folder: Path) -> dict:
    return yaml.safe_load((folder / "README.md").read_text(encoding="utf-8").split("---\n")[1])


@pytest.mark.parametrize("hardware", deploy.HARDWARE)
def test_the_folder_fits_the_hardware_and_holds_nothing_private(checkout: Path, hardware: str) -> None:
    folder = checkout / "space"
    files = deploy.write_space(folder, hardware)
    assert {"app.py", "requirements.txt", "condviz/ui/app.py", "checkpoints/bi-encoder/model.safetensors"} <= set(files)
    assert {name.split("/")[0] for name in files} == {"condviz", "docs", "assets", "checkpoints", *deploy.FILES}
    assert not [name for name in files if re.search(r"(^|/)\.|__pycache__|\.pyc$|secret", name)]
    space = front_matter(folder)
    wanted = (folder / "requirements.txt").read_text().splitlines()
    assert space["suggested_hardware"] == hardware
    assert space["sdk"] == "gradio"
    assert f"gradio=={space['sdk_version']}" in wanted
    assert (folder / space["app_file"]).is_file()
    assert len(space["short_description"]) <= 60
    assert (folder / "README.md").read_text(encoding="utf-8").split("---\n\n")[1].startswith("# CondViz")
    zero = hardware == deploy.ZERO
    assert isinstance(space["python_version"], str)
    assert (space["python_version"] == deploy.ZERO_PYTHON) is zero
    torch = next(line for line in wanted if line.startswith("torch=="))
    assert ("spaces" in wanted) is zero
    assert any(line.startswith("starlette==") for line in wanted) is not zero, "all packages of all packages are pinned"
    assert not zero or torch.removeprefix("torch==") in deploy.ZERO_TORCH


def test_a_space_is_written_into_a_folder_of_ones_choice(checkout: Path, bench: Command) -> None:
    folder = checkout / "mine"
    assert f"files in {folder}" in bench("deploy", SPACE, "--out", folder).out
    assert (folder / "app.py").is_file()
    assert "not empty" in bench.refuse("deploy", SPACE, "--out", folder)


def test_a_torch_above_the_list_of_zerogpu_is_replaced_by_its_newest(tmp_path: Path) -> None:
    (tmp_path / "r.txt").write_text("numpy==2.4.6\ntorch==2.20.1\ntqdm==4\n")
    deploy._edit_requirements(tmp_path / "r.txt")
    assert (tmp_path / "r.txt").read_text() == f"numpy==2.4.6\ntorch=={deploy.ZERO_TORCH[-1]}\ntqdm==4\nspaces\n"


def test_a_space_is_made_and_updated(hub: Hub, checkout: Path) -> None:
    folder, api = checkout / "space", HfApi(endpoint=hub.address, token="hf_test")
    files = deploy.write_space(folder, "cpu-basic")
    assert deploy.send(api, folder, SPACE, "cpu-basic") == f"{hub.address}/spaces/{SPACE}"
    assert (hub.made["type"], hub.made["sdk"], hub.made["hardware"]) == ("space", "gradio", "cpu-basic")
    assert hub.variables == {"CONDVIZ_TRAINING": "0"}
    assert set(hub.files) == set(files)
    assert all(hub.files[name] == (folder / name).read_bytes() for name in files)
    assert len(hub.objects) >= 2, "the weights and the pictures went the way of large files"
    assert hub.hardware == "cpu-basic"

    hub.files |= {"condviz/old.py": b"", ".gitattributes": b"*.png"}
    deploy.send(api, folder, SPACE, "zero-a10g")
    assert set(hub.files) == {*files, ".gitattributes"}
    assert hub.hardware == "zero-a10g"


def test_a_refusal_is_one_line(hub: Hub, checkout: Path) -> None:
    hub.refuses = True
    (checkout / "README.md").write_text("---\n---\n")
    with pytest.raises(ConfigError, match="403"):
        deploy.send(HfApi(endpoint=hub.address, token="hf_test"), checkout, SPACE, "cpu-basic")
    hub.shutdown()
    hub.server_close()
    with pytest.raises(ConfigError, match="did not take"):
        deploy.send(HfApi(endpoint="http://127.0.0.1:9", token="hf_test"), checkout, SPACE, "cpu-basic")


@pytest.mark.slow
def test_what_was_written_starts_as_a_space(checkout: Path) -> None:
    folder, log = checkout / "space", checkout / "processes"
    deploy.write_space(folder, deploy.ZERO)
    hidden = {name: value for name, value in os.environ.items() if not name.startswith(("CONDVIZ_", "PYTHON"))}
    (port,) = free_ports()
    given = {"SPACE_ID": SPACE, "CONDVIZ_TRAINING": "0", "GRADIO_SERVER_PORT": str(port), "HF_HUB_OFFLINE": "1"}
    given |= {"PYTHONPATH": str(Path(__file__).parent / "zero_gpu"), "ZERO_GPU_LOG": str(log)}
    command = [sys.executable, "-u", "app.py"]
    with subprocess.Popen(command, cwd=folder, env=hidden | given, stdout=subprocess.PIPE, text=True) as server:
        try:
            address = next(found[0] for line in server.stdout if (found := re.search(r"http://[\w.:]+", line)))
            client = Client(address, verbose=False, httpx_kwargs={"timeout": 120})
            names = [model["name"] for model in client.predict(api_name="/models")]
            assert "bi-encoder" in names
            assert "hyper-cl" not in names
            texts = ("A man surfs.", "A woman skis.", ["the sport"])
            found = client.predict(*texts, ["bi-encoder"], api_name="/compare")
            expected = condviz.compare([load_served("bi-encoder")], *texts)
            np.testing.assert_allclose(found["scores"], expected.scores, atol=1e-6)
            assert client.predict(*texts, ["csr-zero-shot"], 0, api_name="/router")["models"]
            points = (["One.", "Two.", "Three.", "Four."], ["a", "b"], "bi-encoder", None, True, "pca", 15, 0.1, 0)
            assert len(client.predict(*points, api_name="/embedding_map")["texts"]) == 8
            with pytest.raises(AppError, match="Sentence 1"):
                client.predict(" ", "A woman skis.", ["the sport"], ["bi-encoder"], api_name="/compare")
        finally:
            server.terminate()
    processes = log.read_text().split()
    assert len(processes) >= 4
    assert str(server.pid) not in processes
