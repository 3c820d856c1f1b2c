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
_NAMES = {
    "cross_attend_blocks.0.norm.": "norm.",
    "cross_attend_blocks.0.norm_context.": "norm_latents.",
    "cross_attend_blocks.0.fn.to_q.": "query.",
    "cross_attend_blocks.0.fn.to_kv.": "keys_values.",
    "cross_attend_blocks.0.fn.to_out.": "merge.",
    "cross_attend_blocks.1.norm.": "norm_between.",
    "cross_attend_blocks.1.fn.net.0.": "widen.",
    "cross_attend_blocks.1.fn.net.2.": "narrow.",
}


class LatentAttention(nn.Module):
    """O = softmax(Q K^T) V over trained latents, then a gated MLP; each adds to what it reads.

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
        self.norm, self.norm_latents, self.norm_between = (nn.LayerNorm(size) for _ in range(3))
        self.query = nn.Linear(size, heads * head_size, bias=False)
        self.keys_values = nn.Linear(size, 2 * heads * head_size, bias=False)
        self.merge = nn.Linear(heads * head_size, size, bias=False)
        self.widen, self.narrow = nn.Linear(size, 2 * inner), nn.Linear(inner, size)

    def forward(self, states: Tensor) -> Tensor:
        """Let token states (b, L, d) attend to the latents: (b, L, d)."""
        keys, values = self.keys_values(self.norm_latents(self.latents)).chunk(2, dim=-1)
        query = self._split(self.query(self.norm(states)))
        keys, values = (self._split(part).expand(len(states), -1, -1, -1) for part in (keys, values))
        attended = functional.scaled_dot_product_attention(query, keys, values)
        states = states + self.merge(attended.transpose(-3, -2).flatten(-2))
        content, gate = self.widen(self.norm_between(states)).chunk(2, dim=-1)
        return states + self.narrow(content * functional.gelu(gate))

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
                    name = key.removeprefix(LATENT)
                    begin = next((begin for begin in _NAMES if name.startswith(begin)), "")
                    tensors[_NAMES.get(begin, "") + name.removeprefix(begin)] = opened.get_tensor(key).float()
    try:
        number, size = tensors["latents"].shape
        inner = tensors["narrow.weight"].shape[1]
        made = LatentAttention(size, number, heads, len(tensors["query.weight"]) // heads, inner)
        made.load_state_dict(tensors)
    except (KeyError, RuntimeError, ValueError) as error:
        raise CheckpointError(
            f"{folder} lacks part of the latent attention of NV-Embed: {first_line(error)}"
        ) from error
    return made.requires_grad_(False).eval()
