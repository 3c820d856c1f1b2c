"""The layers of encoders that are built otherwise than BERT: DeBERTa-v2, ModernBERT, and decoders.

Their attention has positions inside: rotations, or distances between tokens. So the library's own attention modules run
as they are, W_O included, and only what is around them is repeated here. A factor for each token commutes with W_O,
which is linear, once its bias is taken off: what `attend` returns may be multiplied like the joined heads of BERT. A
prefix takes part in the sequence of a layer, and what it becomes there is left out.

Queries and keys are read before positions enter: they are compared between texts that were encoded apart. Attention
within a sequence, as `attention_row` tells it, has the positions in it.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from transformers.models.deberta_v2.modeling_deberta_v2 import make_log_bucket_position
from transformers.models.mistral.modeling_mistral import apply_rotary_pos_emb

from condviz.encoder.layers import (
    DECODERS,
    Attention,
    LayerAccess,
    Layout,
    additive,
    attention_probabilities,
    exact,
    rows_at,
)
from condviz.encoder.tokens import Tokens
from condviz.errors import ConfigError

if TYPE_CHECKING:
    from transformers import PreTrainedModel

Block = Any
"""A layer of the library: torch types all its parts as Tensor | Module."""


class LibraryLayers(LayerAccess):
    """Runs layers by the attention modules of `transformers`, each text by itself."""

    def lay_out(self, mask: Tensor | None, positions: Tensor) -> Layout:
        """Note who sees whom, with what the type of model adds; see `LayerAccess.lay_out`.

        Padding sees itself: a row of attention without any key would have no sum.
        """
        size, device = positions.shape[1], positions.device
        order = torch.ones(size, size, dtype=torch.bool, device=device)
        order, itself = order.tril() if self.causal else order, torch.eye(size, dtype=torch.bool, device=device)
        seen = order[None] if mask is None else ((mask[:, None] if mask.dim() == 2 else mask) & order) | itself
        near, window = seen, getattr(self.model.config, "sliding_window", None)
        if window is not None and not self.bidirectional:
            # Those of decoders count the token itself.
            near = seen & ((positions[:, :, None] - positions[:, None]).abs() <= window - self.causal)
        bias, window = (additive(one, self.model.dtype) for one in (seen, near))
        return Layout(positions, bias, window)


class DebertaLayers(LibraryLayers):
    """DeBERTa-v2 and v3: scores have parts of distance. The module ends below W_O.

    Raises:
        ConfigError: If there is a convolution beside the first layer (DeBERTa-v2-xlarge).
    """

    def __init__(self, model: PreTrainedModel, *, bidirectional: bool = False) -> None:
        super().__init__(model, bidirectional=bidirectional)
        if self.model.encoder.conv is not None:
            raise ConfigError(
                "Layers of a 'deberta-v2' model cannot be run one by one beside a convolution. Choose an encoder of "
                "the type BERT or RoBERTa."
            )

    def embed(self, tokens: Tokens) -> Tensor:
        """Compute the state that enters layer 0, (b, L, d)."""
        given = {"token_type_ids": tokens.types, "position_ids": tokens.counted_positions(), "mask": tokens.mask}
        return self.model.embeddings(input_ids=tokens.ids, **given)

    def parts(self, layer: int) -> Attention:
        """Return the modules of the attention of a layer."""
        part = self.blocks[layer].attention
        own, last = part.self, part.output
        merge, dropout, norm = last.dense, last.dropout, last.LayerNorm
        return Attention(own.query_proj, own.key_proj, own.value_proj, own.dropout, merge, dropout, norm)

    def _attend(self, layer: int, hidden: Tensor, memory: Tensor, layout: Layout) -> Tensor:
        return self._run(layer, memory, layout)[0][:, -hidden.shape[1] :]

    def _attention(self, layer: int, memory: Tensor, layout: Layout, places: Tensor) -> Tensor:
        return rows_at(exact(self._run(layer, memory, layout, output_attentions=True)[1]), places)

    def _run(self, layer: int, hidden: Tensor, layout: Layout, **options: object) -> tuple[Tensor, ...]:
        encoder = self.model.encoder
        if encoder.relative_attention:
            options |= {"relative_pos": self._distances(layout), "rel_embeddings": encoder.get_rel_embedding()}
        return self.blocks[layer].attention.self(hidden, layout.bias == 0, **options)

    def _distances(self, layout: Layout) -> Tensor:
        """Return the distance from each token to each, in buckets: (1, b * heads, n, n), or (1, 1, n, n) for all."""
        encoder, places = self.model.encoder, layout.positions
        found = places[:, :, None] - places[:, None]
        if encoder.position_buckets > 0:
            found = make_log_bucket_position(found, encoder.position_buckets, encoder.max_relative_positions)
        found = found.to(torch.long)
        return (found if len(found) == 1 else found.repeat_interleave(self.num_heads, dim=0))[None]


class RotaryLayers(LibraryLayers):
    """Types whose queries and keys are turned by their positions, with norms in front of attention and MLP."""

    @property
    def blocks(self) -> Any:  # noqa: ANN401 - as `model`
        """The layers themselves, lowest first."""
        return self.model.layers

    def query(self, layer: int, hidden: Tensor) -> Tensor:
        """Project states that enter `layer` with its W_q; see `LayerAccess.query`."""
        return self._project(self.blocks[layer], hidden)[0]

    def key(self, layer: int, hidden: Tensor) -> Tensor:
        """Project states that enter `layer` with its W_k; see `LayerAccess.key`."""
        return self._project(self.blocks[layer], hidden)[1]

    @abstractmethod
    def _project(self, block: Block, hidden: Tensor) -> tuple[Tensor, Tensor]:
        """Return queries and keys, both (..., e)."""

    def finish(self, layer: int, attended: Tensor, hidden: Tensor) -> Tensor:
        """Run the rest of a layer after `attend`, and behind the last one the norm of the model: (b, L, d)."""
        block = self.blocks[layer]
        *_, merge, norm, last = self._parts(block)
        middle = hidden + attended + _bias(merge)
        state = middle + block.mlp(norm(middle))
        return state if layer < self.num_layers - 1 else last(state)

    def _attend(self, layer: int, hidden: Tensor, memory: Tensor, layout: Layout) -> Tensor:
        block = self.blocks[layer]
        given = {"position_embeddings": self._turn(block, memory, layout), "attention_mask": self._seen(layer, layout)}
        norm, attention, merge, *_ = self._parts(block)
        return attention(hidden_states=norm(memory), **given)[0][:, -hidden.shape[1] :] - _bias(merge)

    def _attention(self, layer: int, memory: Tensor, layout: Layout, places: Tensor) -> Tensor:
        block = self.blocks[layer]
        query, key = (self._split(exact(part)) for part in self._project(block, memory))
        query, key = apply_rotary_pos_emb(query, key, *self._turn(block, memory, layout))
        return attention_probabilities(rows_at(query, places), key, rows_at(self._seen(layer, layout), places))

    def _seen(self, layer: int, layout: Layout) -> Any:  # noqa: ANN401 (a tensor: `lay_out` leaves none out)
        """Return what a layer sees: through a window those of that kind, or all, as in Mistral, where there is one."""
        config = self.model.config
        kinds = getattr(config, "layer_types", None)
        has_window = kinds[layer] == "sliding_attention" if kinds else getattr(config, "sliding_window", None)
        return layout.window if has_window else layout.bias

    @abstractmethod
    def _parts(self, block: Block) -> tuple[Any, ...]:
        """Return a layer's norm, attention, W_O and norm in front of the MLP, and the norm behind the last layer."""

    @abstractmethod
    def _turn(self, block: Block, hidden: Tensor, layout: Layout) -> tuple[Tensor, Tensor]:
        """Return cosine and sine of the rotations, both (b, n, size of a head)."""


class ModernBertLayers(RotaryLayers):
    """ModernBERT: most layers see a window only."""

    def embed(self, tokens: Tokens) -> Tensor:
        """Compute the state that enters layer 0, (b, L, d)."""
        return self.model.embeddings(input_ids=tokens.ids)

    def _parts(self, block: Block) -> tuple[Any, ...]:
        return block.attn_norm, block.attn, block.attn.Wo, block.mlp_norm, self.model.final_norm

    def _project(self, block: Block, hidden: Tensor) -> tuple[Tensor, Tensor]:
        return block.attn.Wqkv(block.attn_norm(hidden)).chunk(3, dim=-1)[:2]

    def _turn(self, block: Block, hidden: Tensor, layout: Layout) -> tuple[Tensor, Tensor]:
        return self.model.rotary_emb(hidden, layout.positions, block.attention_type)


class DecoderLayers(RotaryLayers):
    """Llama, Mistral, Qwen2, Qwen3: heads share keys; without `bidirectional` causal."""

    def embed(self, tokens: Tokens) -> Tensor:
        """Compute the state that enters layer 0, (b, L, d)."""
        return self.model.embed_tokens(tokens.ids)

    def _parts(self, block: Block) -> tuple[Any, ...]:
        attention = block.self_attn
        return block.input_layernorm, attention, attention.o_proj, block.post_attention_layernorm, self.model.norm

    def _project(self, block: Block, hidden: Tensor) -> tuple[Tensor, Tensor]:
        module, state = block.self_attn, block.input_layernorm(hidden)
        query, key = (
            part.unflatten(-1, (-1, module.head_dim)) for part in (module.q_proj(state), module.k_proj(state))
        )
        if hasattr(module, "q_norm"):
            query, key = module.q_norm(query), module.k_norm(key)
        return query.flatten(-2), key.repeat_interleave(module.num_key_value_groups, dim=-2).flatten(-2)

    def _turn(self, block: Block, hidden: Tensor, layout: Layout) -> tuple[Tensor, Tensor]:
        return self.model.rotary_emb(hidden, layout.positions)


def _bias(module: Block) -> Tensor | float:
    return 0.0 if module.bias is None else module.bias


TYPES: dict[str, type[LibraryLayers]] = {
    "deberta-v2": DebertaLayers,
    "modernbert": ModernBertLayers,
    **dict.fromkeys(DECODERS, DecoderLayers),
}
"""Type of model -> how its layers are run."""
