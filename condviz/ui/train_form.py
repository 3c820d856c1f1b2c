"""The form of the Train tab: one component per key of the recipe, with help in place."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, get_args

import gradio as gr
from gradio.components.textbox import InputHTMLAttributes

from condviz.encoder.pooling import Pooling
from condviz.encoder.pretrained import PRECISIONS
from condviz.training.recipes import Batching, DiskType, Keep
from condviz.ui.components import markup
from condviz.ui.html import tag, text
from condviz.ui.train_recipe import FIRST, TRAINABLE, backbones, parse, presets, read_fields

DATA = {"scenes": "Scenes of this project", "table": "My table", "csts": "C-STS", "other": "As the recipe says"}
SHARES = {"10 %": 0.1, "20 %": 0.2, "30 %": 0.3}
_HELP = {
    "method": "What the model does with the condition.",
    "backbone": "The pretrained encoder. Small ones train on a CPU.",
    "tuning": "Frozen trains the head alone, on stored vectors: by far the fastest.",
    "rank": "K of the low-rank form; empty makes the whole matrix.",
    "projection": "Of the offset. PCA and ICA are fitted, without labels.",
    "routed_layers": "How many of the last layers weigh words. Paper: 1.",
    "mse": "Distance of score and rating.",
    "infonce": "Contrast of two conditions of one pair. Hyper-CL: 1.",
    "quadruplet": "Hinge on the same two scores. C-STS: 1.",
    "temperature": "Of InfoNCE. Hyper-CL: 1.5 to 1.9.",
    "batching": "Pairs keep two conditions together, which InfoNCE and the hinge need. Blocks: scenes only.",
    "batch_size": "Rows; in blocks, sentences.",
    "lr": "Encoders 1e-5 to 1e-4; heads alone up to 1e-3.",
    "head_lr": "Empty: the same.",
    "evaluations": "In each epoch. Stopping and resuming work at any time.",
    "patience": "Stop after so many evaluations without a better one; 0 never.",
    "clip": "Greatest norm of the gradient; 0 does not clip.",
    "dropout": "Of the encoder; empty takes its own.",
    "warmup": "Share of the steps.",
    "disk": "float16 halves the file.",
    "keep": "Best: by Spearman on the rows kept for measuring.",
}
_TUNINGS = {
    "frozen": "Head alone (frozen encoder)",
    "lora": "Adapters (LoRA)",
    "layers": "Upper layers",
    "full": "Everything",
}
_COMPOSITIONS = ("hadamard", "concat")
_PROJECTIONS = {"none": "none", "linear": "linear", "mlp": "non-linear", "pca": "PCA", "ica": "ICA"}
_PRECISIONS = ("auto", *PRECISIONS)


def build_form(*, local: bool, csts: bool) -> dict[str, Any]:
    """Lay the form out; call inside gr.Blocks.

    Args:
        local: Whether a folder of this machine may be the encoder.
        csts: Whether the files of C-STS are there.

    Returns:
        The components by name; those of the recipe's keys are "field_" and the name in `FIELDS`.
    """
    shipped = presets()
    values = read_fields(parse(shipped[FIRST].text)) | {"name": "my-hyper-cl"}
    parts: dict[str, Any] = {}
    parts["preset"] = gr.Dropdown(
        [(preset.title, name) for name, preset in shipped.items()], value=FIRST, label="Start from",
        elem_id="cv-train-preset",
    )  # fmt: skip
    parts["note"] = markup(text("p", shipped[FIRST].note, class_="cv-muted"), elem_id="cv-train-note")
    parts["field_name"] = gr.Textbox(
        values["name"], label="Name of the model", max_length=64, elem_id="cv-train-name",
        html_attributes=InputHTMLAttributes(spellcheck=False, autocapitalize="off"),
    )  # fmt: skip
    parts |= _method(values)
    parts["field_backbone"] = gr.Dropdown(
        backbones(), value=values["backbone"], label="Encoder", elem_id="cv-train-backbone", allow_custom_value=True,
        info=_HELP["backbone"] + (" Or type a folder of this machine." if local else ""),
    )  # fmt: skip
    parts |= _data(csts)
    parts |= _how(values)
    parts |= _losses(values)
    parts |= _advanced(values)
    return parts


def field_visibility(values: dict[str, Any], shown: Sequence[str]) -> dict[str, Any]:
    """Give the updates that fill all fields and hide those that the method does not have.

    Args:
        values: From `read_fields`.
        shown: Names of the fields that belong to the method.
    """
    hidden = {"lora_rank": values["tuning"] != "lora", "frozen_layers": values["tuning"] != "layers"}
    return {
        f"field_{name}": gr.update(value=value, visible=name in shown and not hidden.get(name, False))
        for name, value in values.items()
    }


def _method(values: dict[str, Any]) -> dict[str, Any]:
    parts: dict[str, Any] = {}
    parts["field_method"] = _dropdown("method", "Method", [(t, n) for n, t in TRAINABLE.items()], values)
    parts["field_rank"] = _number("rank", "Rank", values, minimum=1)
    parts["field_composition"] = _radio("composition", "Composition", _COMPOSITIONS, values, visible=False)
    choices = [(title, name) for name, title in _PROJECTIONS.items()]
    parts["field_projection"] = _radio("projection", "Projection", choices, values, visible=False)
    parts["field_projection_dim"] = _number("projection_dim", "Numbers in a vector", values, visible=False)
    parts["field_routed_layers"] = _number("routed_layers", "Routed layers", values, visible=False)
    return parts


def _data(csts: bool) -> dict[str, Any]:
    parts: dict[str, Any] = {}
    choices = [(title, name) for name, title in DATA.items() if name != "csts" or csts]
    parts["data"] = gr.Radio(choices, value="scenes", label="Data", elem_id="cv-train-data")
    with gr.Column(visible=False, elem_classes="cv-train-box") as parts["box_table"]:
        parts["upload"] = gr.File(
            label="CSV or TSV of rated pairs",
            file_types=[".csv", ".tsv", ".txt"],
            elem_id="cv-train-upload",
            height=110,
        )
        needs = "Columns sentence1, sentence2, condition and label, 1 (different) to 5 (same). At most 5 MB."
        markup(text("p", needs, class_="cv-muted"), elem_id="cv-train-upload-help")
        parts["share"] = gr.Radio(list(SHARES.items()), value=0.2, label="Kept for measuring", elem_id="cv-train-share")
    return parts


def _how(values: dict[str, Any]) -> dict[str, Any]:
    parts: dict[str, Any] = {}
    tunings = [(_TUNINGS[name], name) for name in _TUNINGS]
    parts["field_tuning"] = _dropdown("tuning", "What is trained", tunings, values)
    parts["field_lora_rank"] = _number("lora_rank", "Rank of the adapters", values, visible=False)
    parts["field_frozen_layers"] = _number("frozen_layers", "Lowest layers left alone", values, visible=False)
    with gr.Row(elem_classes="cv-train-row"):
        parts["field_epochs"] = _number("epochs", "Epochs", values)
        parts["field_batch_size"] = _number("batch_size", "Batch size", values)
    with gr.Row(elem_classes="cv-train-row"):
        parts["field_lr"] = _number("lr", "Learning rate", values)
        parts["field_head_lr"] = _number("head_lr", "… of the head", values)
    return parts


def _losses(values: dict[str, Any]) -> dict[str, Any]:
    parts: dict[str, Any] = {}
    with gr.Accordion("Losses", open=False, elem_id="cv-train-losses"):
        parts["field_mse"] = _number("mse", "Squared error", values)
        parts["field_infonce"] = _number("infonce", "InfoNCE", values)
        parts["field_temperature"] = _number("temperature", "Temperature", values)
        parts["field_quadruplet"] = _number("quadruplet", "Quadruplet hinge", values)
        parts["field_batching"] = _radio("batching", "Batches", get_args(Batching), values)
    return parts


def _advanced(values: dict[str, Any]) -> dict[str, Any]:
    parts: dict[str, Any] = {}
    with gr.Accordion("Advanced", open=False, elem_id="cv-train-advanced"):
        parts["field_evaluations"] = _number("evaluations", "Evaluations", values)
        parts["field_patience"] = _number("patience", "Patience", values)
        parts["field_keep"] = _radio("keep", "Weights to keep", get_args(Keep), values)
        parts["field_accumulation"] = _number("accumulation", "Batches per step", values)
        parts["field_weight_decay"] = _number("weight_decay", "Weight decay", values)
        parts["field_warmup"] = _number("warmup", "Warm-up", values)
        parts["field_clip"] = _number("clip", "Clipping", values)
        parts["field_dropout"] = _number("dropout", "Dropout", values)
        parts["field_pooling"] = _dropdown("pooling", "Pooling", get_args(Pooling), values)
        parts["field_precision"] = _dropdown("precision", "Precision", _PRECISIONS, values)
        parts["field_seed"] = _number("seed", "Seed", values)
        parts["field_disk"] = _radio("disk", "Stored numbers", get_args(DiskType), values)
    return parts


def recipe_box() -> dict[str, Any]:
    """Lay out the recipe as text, with what can be done with it."""
    parts: dict[str, Any] = {}
    text_ = presets()[FIRST].text
    with gr.Accordion("Recipe", open=False, elem_id="cv-train-recipe-box"):
        lead = "The form writes this file, and reads it. It reproduces the run: "
        command = tag("code", "python -m condviz train recipe.toml")
        markup(tag("p", lead, command, class_="cv-muted"), elem_id="cv-train-recipe-help")
        parts["recipe"] = gr.Textbox(
            text_.replace(f'name = "{FIRST}"', 'name = "my-hyper-cl"', 1), label="recipe.toml", lines=12, max_lines=30,
            buttons=["copy"], elem_id="cv-train-recipe",
            html_attributes=InputHTMLAttributes(spellcheck=False, autocapitalize="off", autocorrect="off"),
        )  # fmt: skip
        with gr.Row(elem_classes="cv-actions"):
            parts["download"] = gr.Button("Download", elem_id="cv-train-download", min_width=90)
            parts["load"] = gr.UploadButton(
                "Load a recipe", file_types=[".toml", ".txt"], elem_id="cv-train-load", min_width=90
            )
    return parts


def _number(name: str, label: str, values: dict[str, Any], **options: Any) -> gr.Number:  # noqa: ANN401 - as gr.Number
    return gr.Number(
        values[name], label=label, info=_HELP.get(name), elem_id=f"cv-train-{name.replace('_', '-')}", min_width=90,
        **options,
    )  # fmt: skip


def _radio(
    name: str, label: str, choices: Sequence[Any], values: dict[str, Any], **options: Any  # noqa: ANN401
) -> gr.Radio:  # fmt: skip
    return gr.Radio(
        list(choices), value=values[name], label=label, info=_HELP.get(name),
        elem_id=f"cv-train-{name.replace('_', '-')}", **options,
    )  # fmt: skip


def _dropdown(name: str, label: str, choices: Sequence[Any], values: dict[str, Any]) -> gr.Dropdown:
    return gr.Dropdown(
        list(choices), value=values[name], label=label, info=_HELP.get(name),
        elem_id=f"cv-train-{name.replace('_', '-')}",
    )  # fmt: skip
