"""A transformer encoder layer by layer: stop below a layer, go on from a stored state, read and re-weigh attention.

One mechanism for CSR (which multiplies attention outputs), for the caches (which keep the state below the first routed
layer) and for the router views (which read queries, keys and attention). The model's own modules do the arithmetic.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from condviz.encoder.tokens import Tokens
from condviz.errors import ConfigError

if TYPE_CHECKING:  # importing them takes seconds
    from onnxruntime import OrtValue
    from transformers import PreTrainedModel

    from condviz.encoder.onnx import Engine

POSITION_OFFSET = {"bert": 0, "roberta": 1, "xlm-roberta": 1, "camembert": 1, "mpnet": 1}
"""Supported model types; 1 where positions start behind the padding index, as in RoBERTa."""
ENGINE_TOLERANCE = 1e-4
"""How far a layer by ONNX Runtime may be from torch where it is opened: much more than it is."""
INT8_TOLERANCE = 1.0
"""The same in eight bits, of states that have a standard deviation near one."""

logger = logging.getLogger(__name__)

Reweigh = Callable[[int, Tensor], Tensor | None]
"""(layer, state entering it (b, L, d)) -> factor per attention output (b, L); None leaves it."""


Mask = Any
"""True where a key may be seen, (b, L) or (b, L, L), None for everywhere; or what `visible` has made of it, which is
another thing for each type of layers."""


class Attention(NamedTuple):
    """The modules of a layer's attention: three projections, dropout of probabilities, W_O, and what follows it."""

    query: nn.Linear
    key: nn.Linear
    value: nn.Linear
    chance: nn.Dropout
    merge: nn.Linear
    dropout: nn.Dropout
    norm: nn.LayerNorm


class LayerAccess:
    """Runs the layers of a BERT or RoBERTa type encoder one by one.

    Args:
        model: An encoder of `transformers`.
    """

    engine: Engine | None = None
    """Computes float32 on the CPU without gradient in the place of torch; None: torch computes everything."""

    def __init__(self, model: PreTrainedModel) -> None:
        config = model.config
        self.model: Any = model  # torch types all its parts as Tensor | Module
        self.num_layers: int = config.num_hidden_layers
        self.num_heads: int = config.num_attention_heads
        self._first_position = config.pad_token_id + 1 if POSITION_OFFSET[config.model_type] else 0
        self._shared: dict[int, tuple[object, Mapping[str, OrtValue]]] = {}

    @property
    def blocks(self) -> Any:  # noqa: ANN401 - as `model`
        """The layers themselves, lowest first."""
        return self.model.encoder.layer

    def embed(self, tokens: Tokens) -> Tensor:
        """Compute the state that enters layer 0, shape (b, L, d)."""
        types = torch.zeros_like(tokens.ids) if tokens.types is None else tokens.types
        positions = tokens.counted_positions() + self._first_position
        return self.model.embeddings(input_ids=tokens.ids, token_type_ids=types, position_ids=positions)

    def place(self, mask: Tensor) -> int | Tensor:
        """Return where the token is that stands for each text (b, L): here the first one; or (b,) places."""
        return 0

    def mark(self, hidden: Tensor, mask: Tensor) -> Tensor:
        """Return the state of the token that stands for each text: (b, L, d), (b, L) -> (b, d)."""
        place = self.place(mask)
        rows = slice(None) if isinstance(place, int) else torch.arange(len(hidden), device=hidden.device)
        return hidden[rows, place]

    def lay_out(self, mask: Tensor, positions: Tensor) -> Mask:
        """Return what `run`, `attend` and `attention` take as the mask of a sequence with a layout of its own.

        Args:
            mask: As in `attend`.
            positions: (b, L), or (b, m + L) with a prefix; counted from 0. Here they enter with `embed` alone.
        """
        return mask

    def visible(self, mask: Mask, hidden: Tensor) -> Mask:
        """Turn a mask into what is added to scores, once for all layers; a result of this method stays as it is."""
        return additive(mask, hidden.dtype)

    def parts(self, layer: int) -> Attention:
        """Return the modules of the attention of a layer."""
        part = self.blocks[layer].attention
        read, written = part.self, part.output
        return Attention(
            read.query, read.key, read.value, read.dropout, written.dense, written.dropout, written.LayerNorm
        )

    def query(self, layer: int, hidden: Tensor) -> Tensor:
        """Project states that enter `layer` with its W_q: (..., d) -> (..., d), heads side by side."""
        return self.parts(layer).query(hidden)

    def key(self, layer: int, hidden: Tensor) -> Tensor:
        """Project states that enter `layer` with its W_k: (..., d) -> (..., d), heads side by side."""
        return self.parts(layer).key(hidden)

    def attend(self, layer: int, hidden: Tensor, mask: Mask, *, prefix: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Run the attention of one layer up to, and without, its output projection W_O.

        Args:
            layer: Index from 0.
            hidden: State that enters the layer, (b, L, d).
            mask: True where a key may be seen: (b, L), or (b, L, L) with one row per query. With a prefix of m states,
                (b, m + L). Or the result of `visible`.
            prefix: (b, m, d) further states that serve as keys and values only, in front of the others.

        Returns:
            Attention output with heads joined (b, L, d), and the keys (b, m + L, d).
        """
        part, memory = self.parts(layer), hidden if prefix is None else torch.cat([prefix, hidden], dim=1)
        bias = self._bias(mask, memory, hidden.shape[1])
        if engine := self._usable_engine(hidden):
            return engine.attend(self._weights(layer, engine), hidden, memory, bias)
        keys = part.key(memory)
        output = functional.scaled_dot_product_attention(
            self._split(part.query(hidden)),
            self._split(keys),
            self._split(part.value(memory)),
            attn_mask=bias,
            dropout_p=part.chance.p if self.model.training else 0.0,
        )
        return output.transpose(1, 2).reshape(hidden.shape), keys

    def finish(self, layer: int, attended: Tensor, hidden: Tensor) -> Tensor:
        """Run the rest of a layer after `attend`: W_O, residual, norm and feed-forward: (b, L, d)."""
        if engine := self._usable_engine(hidden):
            return engine.finish(self._weights(layer, engine), attended, hidden)
        module, part = self.blocks[layer], self.parts(layer)
        middle = part.norm(part.dropout(part.merge(attended)) + hidden)
        return module.output(module.intermediate(middle), middle)

    def run(
        self,
        hidden: Tensor,
        mask: Mask,
        *,
        start: int = 0,
        stop: int | None = None,
        prefix: Tensor | None = None,
        reweigh: Reweigh | None = None,
    ) -> list[Tensor]:
        """Run the layers from `start` up to and without `stop`.

        Args:
            hidden: State that enters layer `start`, (b, L, d).
            mask: As in `attend`.
            start, stop: Layer indices from 0; stop None means all.
            prefix: As in `attend`, the same states in every layer.
            reweigh: Returns factors for the attention outputs, called in each layer.

        Returns:
            States [entering start, after start, ..., after stop - 1]; stop - start + 1 tensors (b, L, d).
        """
        states, visible = [hidden], self.visible(mask, hidden)
        for layer in range(start, self.num_layers if stop is None else stop):
            attended, _ = self.attend(layer, states[-1], visible, prefix=prefix)
            factor = reweigh(layer, states[-1]) if reweigh else None
            if factor is not None:
                attended = attended * factor[..., None].to(attended.dtype)
            states.append(self.finish(layer, attended, states[-1]))
        return states

    def attention(
        self,
        layer: int,
        hidden: Tensor,
        mask: Mask,
        *,
        rows: slice | int | Tensor = slice(None),
        prefix: Tensor | None = None,
    ) -> Tensor:
        """Compute attention probabilities of one layer in float32 or better.

        Args:
            layer: Index from 0.
            hidden: State that enters the layer, (b, L, d).
            mask: As in `attend`.
            rows: Queries to read, all by default; or one of each text, as `place` returns it.
            prefix: As in `attend`.

        Returns:
            (b, heads, queries, m + L); each row sums to 1.
        """
        rows = slice(rows, rows + 1) if isinstance(rows, int) else rows
        memory = hidden if prefix is None else torch.cat([prefix, hidden], dim=1)
        query, key = self._split(self.query(layer, hidden[:, rows])), self._split(self.key(layer, memory))
        scores = exact(query) @ exact(key).transpose(-1, -2) / query.shape[-1] ** 0.5
        bias = self._bias(mask, memory, hidden.shape[1])
        if bias is not None:
            scores = scores + exact(bias if bias.shape[2] == 1 else bias[:, :, rows])
        return scores.softmax(dim=-1)

    def use_engine(self, *, int8: bool = False) -> None:
        """Compute by ONNX Runtime where it gives what torch does; else, with a line in the log, stay with torch."""
        try:
            from condviz.encoder.onnx import Engine

            hidden = torch.randn(2, 3, self.model.config.hidden_size, generator=torch.Generator().manual_seed(0))
            mask = torch.tensor([[True, True, True], [True, True, False]])
            with torch.no_grad():
                expected = self.run(hidden, mask, stop=1)[-1]
                self.engine = Engine(self.num_heads, self.model.config.layer_norm_eps, int8=int8)
                error = float((self.run(hidden, mask, stop=1)[-1] - expected).abs().max())
            if error > (INT8_TOLERANCE if int8 else ENGINE_TOLERANCE):
                raise ArithmeticError(f"a layer differs by {error:.2g}")
        except Exception as error:  # not installed, too old, an operator that this build lacks
            self.engine = None
            _tell_once(f"ONNX Runtime cannot be used ({type(error).__name__}: {error}): torch takes over.")

    def _bias(self, mask: Mask, memory: Tensor, queries: int) -> Tensor | None:
        """Return what is added to the scores of so many queries, the last ones of a sequence: those behind a prefix."""
        bias = self.visible(mask, memory)
        return bias if bias is None or bias.shape[2] == 1 else bias[:, :, -queries:]

    def _usable_engine(self, hidden: Tensor) -> Engine | None:
        """Return the engine where it computes these states."""
        plain = hidden.dtype == torch.float32 and hidden.device.type == "cpu"
        return self.engine if plain and not torch.is_grad_enabled() and not self.model.training else None

    def _weights(self, layer: int, engine: Engine) -> Mapping[str, OrtValue]:
        """Return the weights of a layer for the engine, in the memory of torch: changes of the values are seen.

        What the engine rounds is a copy, made anew where the values have changed.
        """
        block, part = self.blocks[layer], self.parts(layer)
        modules = {name: getattr(part, name) for name in ("query", "key", "value", "merge", "norm")}
        modules |= {"wide": block.intermediate.dense, "narrow": block.output.dense, "last": block.output.LayerNorm}
        named = {f"{name}_{leaf}": one for name, module in modules.items() for leaf, one in module.named_parameters()}
        version = tuple((one.data_ptr(), one._version) for one in named.values())
        if self._shared.get(layer, (None,))[0] != version:
            self._shared[layer] = version, engine.take(named)
        return self._shared[layer][1]

    def _split(self, states: Tensor) -> Tensor:
        """(b, L, d) -> (b, heads, L, head size)."""
        return states.unflatten(-1, (self.num_heads, -1)).transpose(1, 2)


@cache
def _tell_once(message: str) -> None:
    logger.warning(message)


class MPNetLayers(LayerAccess):
    """MPNet: scores have a bias by the distance of two tokens, the same in all layers."""

    def embed(self, tokens: Tokens) -> Tensor:
        """Compute the state that enters layer 0, (b, L, d)."""
        first = self.model.embeddings.padding_idx + 1
        return self.model.embeddings(input_ids=tokens.ids, position_ids=tokens.counted_positions() + first)

    def lay_out(self, mask: Tensor | None, positions: Tensor) -> Mask:
        """Return what is added to scores; see `LayerAccess.lay_out`."""
        encoder = self.model.encoder
        bucket = encoder.relative_position_bucket(positions[:, None] - positions[:, :, None])
        bias, hidden = encoder.relative_attention_bias(bucket).permute(0, 3, 1, 2), additive(mask, self.model.dtype)
        return bias if hidden is None else bias + hidden

    def visible(self, mask: Tensor | None, hidden: Tensor) -> Tensor:
        """Turn a mask into what is added to scores, over positions 0, 1, 2, ...; a prefix needs `lay_out`."""
        if mask is not None and mask.dim() == 4:
            return mask
        return self.lay_out(mask, torch.arange(hidden.shape[1], device=hidden.device)[None])

    def parts(self, layer: int) -> Attention:
        """Return the modules of the attention of a layer."""
        part = self.blocks[layer].attention
        return Attention(
            part.attn.q, part.attn.k, part.attn.v, part.attn.dropout, part.attn.o, part.dropout, part.LayerNorm
        )


def is_like_bert(model: PreTrainedModel) -> bool:
    """Return whether `LayerAccess` can run the layers of a model."""
    return model.config.model_type in POSITION_OFFSET and not getattr(model.config, "is_decoder", False)


def open_layers(
    model: PreTrainedModel, *, bidirectional: bool = False, engine: bool = False, int8: bool = False
) -> LayerAccess:
    """Return the layers of an encoder, to be run one by one; with `engine` by ONNX Runtime, if their type allows it.

    Raises:
        ConfigError: If there is no way to run those of its type.
    """
    if is_like_bert(model):
        layers = (MPNetLayers if model.config.model_type == "mpnet" else LayerAccess)(model)
        if engine:
            layers.use_engine(int8=int8)
        return layers
    from condviz.encoder.transformers_layers import TYPES  # imports transformers

    if (kind := TYPES.get(model.config.model_type)) is None:
        raise ConfigError(
            f"Layers of a {model.config.model_type!r} model cannot be run one by one. Supported types: "
            f"{', '.join(sorted((*POSITION_OFFSET, *TYPES)))}. Choose such an encoder, or a method without a router."
        )
    return kind(model, bidirectional=bidirectional)


def attention_probabilities(query: Tensor, key: Tensor, visible: Tensor) -> Tensor:
    """Softmax of scaled dot products, float32 or better: (..., q, e), (..., k, e), bool (..., q, k) -> (..., q, k)."""
    scores = exact(query) @ exact(key).transpose(-1, -2) / query.shape[-1] ** 0.5
    return scores.masked_fill(~visible, float("-inf")).softmax(dim=-1)


def exact(values: Tensor) -> Tensor:
    """Return values in float32, or as they are where they are more precise."""
    return values.to(torch.promote_types(values.dtype, torch.float32))


def additive(mask: Tensor | None, dtype: torch.dtype) -> Tensor | None:
    """Turn a mask into what is added to attention scores, once for all layers.

    Args:
        mask: True where a key may be seen, (b, L) or (b, L, L); a result of this function is returned as it is.
        dtype: Number type of the states.

    Returns:
        0 or -inf, (b, 1, 1, L) or (b, 1, L, L); None where everything is visible, which is faster.
    """
    if mask is None or mask.dim() == 4:
        return mask
    if mask.dim() == 2 and bool(mask.all()):
        return None
    return _minus_infinity(mask[:, None, None] if mask.dim() == 2 else mask[:, None], dtype)


def _minus_infinity(visible: Tensor, dtype: torch.dtype) -> Tensor:
    return torch.zeros(visible.shape, dtype=dtype, device=visible.device).masked_fill_(~visible, float("-inf"))


def both_ways(mask: Tensor, dtype: torch.dtype) -> Tensor:
    """Return a mask (b, 1, L, L) that takes the place of a decoder's causal one in the library: 0, -inf at padding."""
    return _minus_infinity(mask[:, None].expand(-1, mask.shape[1], -1)[:, None], dtype)
