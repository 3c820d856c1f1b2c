"""The layers of encoders that are built otherwise than BERT: DeBERTa-v2, ModernBERT, and decoders.

Their attention has positions inside: rotations, or distances between tokens. So the library's own attention modules run
as they are, W_O included, and only what is around them is repeated here. A factor for each token commutes with W_O,
which is linear, once its bias is taken off: what `attend` returns may be multiplied like the joined heads of BERT.

Queries and keys are read before positions enter: they are compared between texts that were encoded apart. Attention
within a sequence, as `attention` tells it, has the positions in it.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from transformers.models.deberta_v2.modeling_deberta_v2 import make_log_bucket_position
from transformers.models.mistral.modeling_mistral import apply_rotary_pos_emb

from condviz.encoder.layers import LayerAccess, Mask, additive, attention_probabilities, exact
from condviz.encoder.tokens import Tokens
from condviz.errors import ConfigError

if TYPE_CHECKING:
    from transformers import PreTrainedModel

Block = Any
"""A layer of the library: torch types all its parts as Tensor | Module."""
Rows = slice | int | Tensor
"""Queries to read: some of all texts alike, or one of each text, (b,)."""
Pick = Callable[[Tensor], Tensor]
"""Chooses them: (b, heads, L, ...) -> (b, heads, r, ...)."""


@dataclass(frozen=True)
class Layout:
    """Where the n tokens of a sequence stand, and what each of them sees; those of a prefix come first."""

    positions: Tensor
    """(b, n), or (1, n) where those of all texts are alike."""
    visible: Tensor
    """(b, n, n) bool. Padding sees itself: a row of attention without any key would have no sum."""
    window: Tensor
    """The same in layers that see a window only."""

    def seen(self, *, window: bool) -> Tensor:
        """Return what a layer sees, with a window or without."""
        return self.window if window else self.visible


class LibraryLayers(LayerAccess):
    """Runs layers by the attention modules of `transformers`, each text by itself.

    Args:
        model: An encoder or decoder.
        bidirectional: A decoder that sees in both directions.
    """

    def __init__(self, model: PreTrainedModel, *, bidirectional: bool = False) -> None:
        self.model: Any = model  # as `Block`
        self.bidirectional = bidirectional
        self.num_layers: int = model.config.num_hidden_layers
        self.num_heads: int = model.config.num_attention_heads

    def query(self, layer: int, hidden: Tensor) -> Tensor:
        """Project states that enter `layer` with its W_q: (..., d) -> (..., e), heads side by side."""
        return self._project(self.blocks[layer], hidden)[0]

    def key(self, layer: int, hidden: Tensor) -> Tensor:
        """Project states that enter `layer` with its W_k: (..., d) -> (..., e), one key for each head of the query."""
        return self._project(self.blocks[layer], hidden)[1]

    def attend(self, layer: int, hidden: Tensor, mask: Mask, *, prefix: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Run the attention of one layer up to the bias of W_O; see `LayerAccess.attend`.

        A prefix takes part in the sequence of this one layer, and what it becomes there is left out.
        """
        memory = hidden if prefix is None else torch.cat([prefix, hidden], dim=1)
        attended = self._attend(self.blocks[layer], memory, self.visible(mask, memory))
        return attended[:, memory.shape[1] - hidden.shape[1] :], self.key(layer, memory)

    def finish(self, layer: int, attended: Tensor, hidden: Tensor) -> Tensor:
        """Run the rest of a layer after `attend`, and behind the last one the norm of the model: (b, L, d)."""
        state = self._finish(self.blocks[layer], attended, hidden)
        return state if layer < self.num_layers - 1 else self._close(state)

    def attention(
        self, layer: int, hidden: Tensor, mask: Mask, *, rows: Rows = slice(None), prefix: Tensor | None = None
    ) -> Tensor:
        """Compute attention probabilities of one layer in float32 or better; see `LayerAccess.attention`."""
        memory = hidden if prefix is None else torch.cat([prefix, hidden], dim=1)
        before = memory.shape[1] - hidden.shape[1]

        def pick(values: Tensor) -> Tensor:
            own = values[..., before:, :].expand(len(hidden), -1, -1, -1)
            if isinstance(rows, slice):
                return own[:, :, rows]
            texts = torch.arange(len(own), device=own.device)
            return own[texts, :, torch.as_tensor(rows, device=own.device).expand(len(own))][:, :, None]

        return self._attention(self.blocks[layer], memory, self.visible(mask, memory), pick)

    def visible(self, mask: Mask, hidden: Tensor) -> Layout:
        """Lay a mask out over positions 0, 1, 2, ...; see `LayerAccess.visible`. A prefix needs `lay_out`."""
        if isinstance(mask, Layout):
            return mask
        mask = torch.ones(hidden.shape[:2], dtype=torch.bool, device=hidden.device) if mask is None else mask
        return self.lay_out(mask, torch.arange(hidden.shape[1], device=hidden.device)[None])

    def lay_out(self, mask: Tensor, positions: Tensor) -> Layout:
        """Note who sees whom, with what the type of model adds; see `LayerAccess.lay_out`."""
        itself = torch.eye(mask.shape[-1], dtype=torch.bool, device=mask.device)
        visible = ((mask[:, None] if mask.dim() == 2 else mask) & self._order(itself)) | itself
        reach = self._reach()
        near = visible if reach is None else visible & ((positions[:, :, None] - positions[:, None]).abs() <= reach)
        return Layout(positions, visible, near)

    def _order(self, itself: Tensor) -> Tensor:
        """Return which of the tokens in a sequence may see which, (n, n); all by default."""
        return torch.ones_like(itself)

    def _reach(self) -> int | None:
        """Return how far layers see that have a window, or None if none has."""
        return None

    @abstractmethod
    def _project(self, block: Block, hidden: Tensor) -> tuple[Tensor, Tensor]:
        """Return queries and keys, both (..., e)."""

    @abstractmethod
    def _attend(self, block: Block, hidden: Tensor, layout: Layout) -> Tensor:
        """Run the attention module, up to the bias of W_O: (b, n, d)."""

    @abstractmethod
    def _attention(self, block: Block, hidden: Tensor, layout: Layout, pick: Pick) -> Tensor:
        """Return probabilities (b, heads, r, n) of those rows that `pick` chooses among (b, heads, n, ...)."""

    @abstractmethod
    def _finish(self, block: Block, attended: Tensor, hidden: Tensor) -> Tensor:
        """Run what comes behind it: (b, L, d)."""

    def _close(self, hidden: Tensor) -> Tensor:
        """Run what the model has behind its last layer: (b, L, d)."""
        return hidden


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

    def _project(self, block: Block, hidden: Tensor) -> tuple[Tensor, Tensor]:
        return block.attention.self.query_proj(hidden), block.attention.self.key_proj(hidden)

    def _attend(self, block: Block, hidden: Tensor, layout: Layout) -> Tensor:
        return self._run(block, hidden, layout)[0]

    def _attention(self, block: Block, hidden: Tensor, layout: Layout, pick: Pick) -> Tensor:
        return pick(exact(self._run(block, hidden, layout, output_attentions=True)[1]))

    def _run(self, block: Block, hidden: Tensor, layout: Layout, **options: object) -> tuple[Tensor, ...]:
        encoder = self.model.encoder
        if encoder.relative_attention:
            options |= {"relative_pos": self._distances(layout), "rel_embeddings": encoder.get_rel_embedding()}
        return block.attention.self(hidden, layout.visible[:, None], **options)

    def _distances(self, layout: Layout) -> Tensor:
        """Return the distance from each token to each, in buckets: (1, b * heads, n, n), or (1, 1, n, n) for all."""
        encoder, places = self.model.encoder, layout.positions
        found = places[:, :, None] - places[:, None]
        if encoder.position_buckets > 0:
            found = make_log_bucket_position(found, encoder.position_buckets, encoder.max_relative_positions)
        found = found.to(torch.long)
        return (found if len(found) == 1 else found.repeat_interleave(self.num_heads, dim=0))[None]

    def _finish(self, block: Block, attended: Tensor, hidden: Tensor) -> Tensor:
        middle = block.attention.output(attended, hidden)
        return block.output(block.intermediate(middle), middle)


class RotaryLayers(LibraryLayers):
    """Types whose queries and keys are turned by their positions."""

    @property
    def blocks(self) -> Any:  # noqa: ANN401 - as `model`
        """The layers themselves, lowest first."""
        return self.model.layers

    def _attention(self, block: Block, hidden: Tensor, layout: Layout, pick: Pick) -> Tensor:
        query, key = (
            exact(part).unflatten(-1, (self.num_heads, -1)).transpose(1, 2) for part in self._project(block, hidden)
        )
        query, key = apply_rotary_pos_emb(query, key, *self._turn(block, hidden, layout))
        visible = layout.seen(window=self._has_window(block))
        return attention_probabilities(pick(query), key, pick(visible[:, None]))

    @abstractmethod
    def _turn(self, block: Block, hidden: Tensor, layout: Layout) -> tuple[Tensor, Tensor]:
        """Return cosine and sine of the rotations, both (b, n, size of a head)."""

    @abstractmethod
    def _has_window(self, block: Block) -> bool:
        """Return whether a layer sees a window only."""

    def _given(self, block: Block, hidden: Tensor, layout: Layout) -> dict[str, object]:
        mask = additive(layout.seen(window=self._has_window(block)), hidden.dtype)
        return {"position_embeddings": self._turn(block, hidden, layout), "attention_mask": mask}


class ModernBertLayers(RotaryLayers):
    """ModernBERT: rotations, norm in front, and most layers see a window only."""

    def embed(self, tokens: Tokens) -> Tensor:
        """Compute the state that enters layer 0, (b, L, d)."""
        return self.model.embeddings(input_ids=tokens.ids)

    def _reach(self) -> int | None:
        return self.model.config.sliding_window

    def _project(self, block: Block, hidden: Tensor) -> tuple[Tensor, Tensor]:
        return block.attn.Wqkv(block.attn_norm(hidden)).chunk(3, dim=-1)[:2]

    def _attend(self, block: Block, hidden: Tensor, layout: Layout) -> Tensor:
        found = block.attn(block.attn_norm(hidden), **self._given(block, hidden, layout))[0]
        return found - _bias(block.attn.Wo)

    def _turn(self, block: Block, hidden: Tensor, layout: Layout) -> tuple[Tensor, Tensor]:
        return self.model.rotary_emb(hidden, layout.positions, block.attention_type)

    def _has_window(self, block: Block) -> bool:
        return block.attention_type == "sliding_attention"

    def _finish(self, block: Block, attended: Tensor, hidden: Tensor) -> Tensor:
        middle = hidden + attended + _bias(block.attn.Wo)
        return middle + block.mlp(block.mlp_norm(middle))

    def _close(self, hidden: Tensor) -> Tensor:
        return self.model.final_norm(hidden)


class DecoderLayers(RotaryLayers):
    """Llama, Mistral, Qwen2, Qwen3: rotations, norm in front, heads share keys; without `bidirectional` causal."""

    def embed(self, tokens: Tokens) -> Tensor:
        """Compute the state that enters layer 0, (b, L, d)."""
        return self.model.embed_tokens(tokens.ids)

    def place(self, mask: Tensor) -> int | Tensor:
        """Return the place of the last token where only that one sees the whole text, (b,); see `LayerAccess.place`."""
        return 0 if self.bidirectional else mask.sum(dim=1) - 1

    def _order(self, itself: Tensor) -> Tensor:
        everywhere = torch.ones_like(itself)
        return everywhere if self.bidirectional else everywhere.tril()

    def _reach(self) -> int | None:
        window = getattr(self.model.config, "sliding_window", None)  # Llama has none
        return None if self.bidirectional or window is None else window - 1

    def _project(self, block: Block, hidden: Tensor) -> tuple[Tensor, Tensor]:
        module, state = block.self_attn, block.input_layernorm(hidden)
        query, key = (
            part.unflatten(-1, (-1, module.head_dim)) for part in (module.q_proj(state), module.k_proj(state))
        )
        if hasattr(module, "q_norm"):
            query, key = module.q_norm(query), module.k_norm(key)
        return query.flatten(-2), key.repeat_interleave(module.num_key_value_groups, dim=-2).flatten(-2)

    def _attend(self, block: Block, hidden: Tensor, layout: Layout) -> Tensor:
        state = block.input_layernorm(hidden)
        found = block.self_attn(hidden_states=state, **self._given(block, hidden, layout))[0]
        return found - _bias(block.self_attn.o_proj)

    def _turn(self, block: Block, hidden: Tensor, layout: Layout) -> tuple[Tensor, Tensor]:
        return self.model.rotary_emb(hidden, layout.positions)

    def _has_window(self, block: Block) -> bool:
        """Return whether a layer sees a window: of Mistral all do where there is one, of Qwen those of its kind."""
        kind = getattr(block.self_attn, "layer_type", None)
        window = getattr(self.model.config, "sliding_window", None)
        return window is not None if kind is None else kind == "sliding_attention"

    def _finish(self, block: Block, attended: Tensor, hidden: Tensor) -> Tensor:
        middle = hidden + attended + _bias(block.self_attn.o_proj)
        return middle + block.mlp(block.post_attention_layernorm(middle))

    def _close(self, hidden: Tensor) -> Tensor:
        return self.model.norm(hidden)


def _bias(module: Block) -> Tensor | float:
    return 0.0 if module.bias is None else module.bias


TYPES: dict[str, type[LibraryLayers]] = {
    "deberta-v2": DebertaLayers,
    "modernbert": ModernBertLayers,
    "llama": DecoderLayers,
    "mistral": DecoderLayers,
    "qwen2": DecoderLayers,
    "qwen3": DecoderLayers,
}
"""Type of model -> how its layers are run."""
