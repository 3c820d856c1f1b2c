"""What the package takes of libraries that they do not promise to keep: a new version that changes it fails here.

Each was read in the version that stands beside it.
"""

from __future__ import annotations

import argparse
import inspect

import gradio as gr
import pytest
import torch
from gradio import routes
from gradio.blocks import BlocksConfig
from transformers import Trainer

TRAINER = {  # transformers 5.23, for condviz.training.loop: its own parameters come behind self
    "_run_epoch": ("model", "epoch", "train_dataloader", "steps_in_epoch", "num_update_steps_per_epoch", "trial"),
    "_get_train_sampler": ("train_dataset",),
    "_get_grad_norm": ("model", "grad_norm"),
    "_save_checkpoint": ("model", "trial"),
}
QUEUE = (  # gradio 6.31, for condviz.ui.limits and events
    "event_ids_to_events",
    "pending_messages_per_session",
    "default_concurrency_limit",
    "sleep_when_free",
    "progress_update_sleep_when_free",
    "ANAYLTICS_CACHE_FREQUENCY",
)


@pytest.mark.parametrize("name", TRAINER)
def test_the_trainer_has_the_steps_that_the_loop_replaces(name: str) -> None:
    parameters = [*inspect.signature(getattr(Trainer, name)).parameters][1:]
    assert tuple(parameters[: len(TRAINER[name])]) == TRAINER[name]


@pytest.mark.parametrize("name", QUEUE)
def test_the_queue_of_gradio_has_what_limits_and_events_read(name: str) -> None:
    assert hasattr(gr.Blocks()._queue, name)


def test_gradio_copies_the_configuration_of_a_page_for_each_session() -> None:
    assert isinstance(gr.Blocks().default_config, BlocksConfig)
    assert callable(BlocksConfig.__copy__)
    assert callable(BlocksConfig.config_for_block)
    assert callable(routes.templates.env.loader.get_source)


def test_the_product_of_onednn_is_that_of_torch() -> None:
    """Torch 2.13, for condviz.methods.hyper_cl: where the operator is missing an ordinary product takes its place."""
    rows, weight = torch.randn(3, 4), torch.randn(5, 4)
    product = torch.ops.mkldnn._linear_pointwise(rows, weight, None, "none", [], "")
    torch.testing.assert_close(product, rows @ weight.T)


def test_argparse_has_what_the_parser_of_commands_reads() -> None:
    """Python 3.11, for condviz.cli.main."""
    assert callable(argparse.HelpFormatter._fill_text)
    parser = argparse.ArgumentParser()
    action = parser.add_subparsers()
    assert isinstance(action, argparse._SubParsersAction)
    assert "--help" in parser._option_string_actions
    assert action in parser._actions
