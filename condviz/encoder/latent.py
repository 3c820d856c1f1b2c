"""The latent attention of NV-Embed: tokens attend to trained vectors before their states are averaged.

Paper: Lee et al. 2024, "NV-Embed: Improved Techniques for Training LLMs as Generalist Embedding Models",
arXiv:2405.17428, section 3.1. Sizes and layout are those of the weights of NV-Embed-v2. Differs from its program:
vectors keep their length, since CASE subtracts them as they are.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from torch import Tensor, nn
from torch.nn import functional
from transformers import AutoConfig, PreTrainedConfig

from condviz.errors import CheckpointError, first_line

MODEL_TYPE = "nvembed"
ENCODER, LATENT = "embedding_model.", "latent_attention_model."
"""How the names of the two parts begin in the weights."""


class LatentAttention(nn.Module):
    """O = softmax(Q K^T) V over trained latents, then a gated MLP; each adds to what it reads.

    Its parts have the names of the published weights.

    Args:
        size: d.
        latents: Number r of trained vectors.
        heads, head_size: Of the attention.
        inner: Width of the MLP.
    """

    def __init__(self, size: int, latents: int, heads: int, head_size: int, inner: int) -> None:
        super().__init__()
        self.heads = heads
        self.latents = nn.Parameter(torch.randn(latents, size))
        wide = heads * head_size
        sizes = {"to_q": (size, wide), "to_kv": (size, 2 * wide), "to_out": (wide, size)}
        reading = nn.ModuleDict({name: nn.Linear(*shape, bias=False) for name, shape in sizes.items()})
        net = nn.ModuleDict({"net": nn.ModuleDict({"0": nn.Linear(size, 2 * inner), "2": nn.Linear(inner, size)})})
        first = nn.ModuleDict({"norm": nn.LayerNorm(size), "norm_context": nn.LayerNorm(size), "fn": reading})
        self.cross_attend_blocks = nn.ModuleList([first, nn.ModuleDict({"norm": nn.LayerNorm(size), "fn": net})])

    def forward(self, states: Tensor) -> Tensor:
        """Let token states (b, L, d) attend to the latents: (b, L, d)."""
        blocks: Any = self.cross_attend_blocks  # torch types what they hold as Module
        first, second = blocks
        reading, net = first["fn"], second["fn"]["net"]
        keys, values = reading["to_kv"](first["norm_context"](self.latents)).chunk(2, dim=-1)
        query = self._split(reading["to_q"](first["norm"](states)))
        keys, values = (self._split(part).expand(len(states), -1, -1, -1) for part in (keys, values))
        attended = functional.scaled_dot_product_attention(query, keys, values)
        states = states + reading["to_out"](attended.transpose(-3, -2).flatten(-2))
        content, gate = net["0"](second["norm"](states)).chunk(2, dim=-1)
        return states + net["2"](content * functional.gelu(gate))

    def _split(self, rows: Tensor) -> Tensor:
        """Divide (..., n, h e) among the heads: (..., h, n, e)."""
        return rows.unflatten(-1, (self.heads, -1)).transpose(-3, -2)


def read_config(folder: Path) -> tuple[PreTrainedConfig | None, int]:
    """Return the configuration of the decoder inside an NV-Embed and its heads of latent attention; else (None, 0)."""
    try:
        content: dict[str, Any] = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        if content.get("model_type") != MODEL_TYPE:
            return None, 0
        own = ("model_type", "auto_map", "architectures", "_name_or_path")
        settings = {key: value for key, value in content["text_config"].items() if key not in own}
        return AutoConfig.for_model("mistral", **settings), int(content["latent_attention_config"]["num_cross_heads"])
    except (OSError, ValueError, AttributeError):
        return None, 0  # the library says what is wrong
    except KeyError as error:
        raise CheckpointError(f"{folder}/config.json is that of an NV-Embed without {error}. Load it again.") from error


def read_latents(folder: Path, heads: int) -> LatentAttention:
    """Read the latent attention from the weights of an NV-Embed.

    Raises:
        CheckpointError: If a tensor is missing or has another shape.
    """
    tensors = {}
    for file in sorted(folder.glob("*.safetensors")):
        with safe_open(file, "pt") as opened:
            for key in opened.keys():  # noqa: SIM118 (it is no dict)
                if key.startswith(LATENT):
                    tensors[key.removeprefix(LATENT)] = opened.get_tensor(key).float()
    try:
        number, size = tensors["latents"].shape
        inner = tensors["cross_attend_blocks.1.fn.net.2.weight"].shape[1]
        width = len(tensors["cross_attend_blocks.0.fn.to_q.weight"])
        made = LatentAttention(size, number, heads, width // heads, inner)
        made.load_state_dict(tensors)
    except (KeyError, RuntimeError, ValueError) as error:
        raise CheckpointError(
            f"{folder} lacks part of the latent attention of NV-Embed: {first_line(error)}"
        ) from error
    return made.requires_grad_(False).eval()
