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

LIKE_BERT = ("bert", "roberta", "xlm-roberta", "camembert", "mpnet")
DECODERS = ("llama", "mistral", "qwen2", "qwen3")
"""Types of decoder that serve as encoders; last-token pooling reads the end token of their sequences."""
ENGINE_TOLERANCE = 1e-4
"""How far a layer by ONNX Runtime may be from torch where it is opened: much more than it is."""
INT8_TOLERANCE = 1.0
"""The same in eight bits, of states that have a standard deviation near one."""

logger = logging.getLogger(__name__)
_tell_once = cache(logger.warning)

Reweigh = Callable[[int, Tensor], Tensor | None]
"""(layer, state entering it (b, L, d)) -> factor per attention output (b, L); None leaves it."""


class Layout(NamedTuple):
    """Where the n tokens of sequences stand, and what each sees, once for all layers; those of a prefix come first."""

    positions: Tensor
    """(b, n), or (1, n) where those of all texts are alike."""
    bias: Tensor | None
    """Added to attention scores, -inf where a key is not seen: (b or 1, heads or 1, n, n). None where all are, which is
    faster."""
    window: Tensor | None = None
    """The same in layers that see a window only."""


Mask = Tensor | Layout | None
"""True where a key may be seen, (b, L) or (b, L, L), None for everywhere; or what has been made of it."""


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
    """Runs the layers of an encoder one by one: of BERT and RoBERTa types here, of others in subclasses.

    The model is one of `transformers`; `bidirectional` is a decoder that sees in both directions.
    """

    engine: Engine | None = None
    """Computes float32 on the CPU without gradient in the place of torch; None: torch computes everything."""

    def __init__(self, model: PreTrainedModel, *, bidirectional: bool = False) -> None:
        self.model: Any = model  # torch types all its parts as Tensor | Module
        self.bidirectional = bidirectional
        self.causal = model.config.model_type in DECODERS and not bidirectional
        self.num_layers: int = model.config.num_hidden_layers
        self.num_heads: int = model.config.num_attention_heads
        self._shared: dict[int, tuple[object, Mapping[str, OrtValue]]] = {}

    @property
    def blocks(self) -> Any:  # noqa: ANN401 - as `model`
        """The layers themselves, lowest first."""
        return self.model.encoder.layer

    def embed(self, tokens: Tokens) -> Tensor:
        """Compute the state that enters layer 0, shape (b, L, d)."""
        embeddings = self.model.embeddings
        # Positions start behind that of padding in RoBERTa and MPNet.
        given = {"position_ids": tokens.counted_positions() + getattr(embeddings, "padding_idx", -1) + 1}
        if hasattr(embeddings, "token_type_embeddings"):  # MPNet has none
            given["token_type_ids"] = torch.zeros_like(tokens.ids) if tokens.types is None else tokens.types
        return embeddings(input_ids=tokens.ids, **given)

    def place(self, mask: Tensor) -> Tensor:
        """Return where the token is that stands for each text (b, L): the first, or the last if `causal`; (b,)."""
        return mask.sum(dim=1) - 1 if self.causal else torch.zeros(len(mask), dtype=torch.long, device=mask.device)

    def mark(self, hidden: Tensor, mask: Tensor) -> Tensor:
        """Return the state of the token that stands for each text: (b, L, d), (b, L) -> (b, d)."""
        return hidden[torch.arange(len(hidden), device=hidden.device), self.place(mask)]

    def lay_out(self, mask: Tensor | None, positions: Tensor) -> Layout:
        """Return what `run`, `attend` and `attention_row` take as the mask of a sequence with a layout of its own.

        Args:
            mask: As in `attend`.
            positions: (b, L), or (b, m + L) with a prefix; counted from 0. Here they enter with `embed` alone.
        """
        return Layout(positions, additive(mask, self.model.dtype))

    def visible(self, mask: Mask, hidden: Tensor) -> Layout:
        """Lay a mask out over positions 0, 1, 2, ...; a layout stays as it is. See `lay_out`, which a prefix needs."""
        if isinstance(mask, Layout):
            return mask
        return self.lay_out(mask, torch.arange(hidden.shape[1], device=hidden.device)[None])

    def parts(self, layer: int) -> Attention:
        """Return the modules of the attention of a layer."""
        part = self.blocks[layer].attention
        own, last = part.self, part.output
        return Attention(own.query, own.key, own.value, own.dropout, last.dense, last.dropout, last.LayerNorm)

    def query(self, layer: int, hidden: Tensor) -> Tensor:
        """Project states that enter `layer` with its W_q: (..., d) -> (..., e), heads side by side."""
        return self.parts(layer).query(hidden)

    def key(self, layer: int, hidden: Tensor) -> Tensor:
        """Project states that enter `layer` with its W_k: (..., d) -> (..., e), one key for each head of the query."""
        return self.parts(layer).key(hidden)

    def attend(self, layer: int, hidden: Tensor, mask: Mask, *, prefix: Tensor | None = None) -> Tensor:
        """Run the attention of one layer up to, and without, its output projection W_O.

        Args:
            layer: Index from 0.
            hidden: State that enters the layer, (b, L, d).
            mask: True where a key may be seen: (b, L), or (b, L, L) with one row per query. With a prefix of m states,
                (b, m + L). Or the result of `visible` or `lay_out`.
            prefix: (b, m, d) further states that serve as keys and values only, in front of the others.

        Returns:
            Attention output with heads joined, (b, L, d).
        """
        memory = hidden if prefix is None else torch.cat([prefix, hidden], dim=1)
        return self._attend(layer, hidden, memory, self.visible(mask, memory))

    def finish(self, layer: int, attended: Tensor, hidden: Tensor) -> Tensor:
        """Run the rest of a layer after `attend`: W_O, residual, norm and feed-forward: (b, L, d)."""
        if engine := self._usable_engine(hidden):
            return engine.run("finish", {"attended": attended, "hidden": hidden}, self._weights(layer, engine))
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
            attended = self.attend(layer, states[-1], visible, prefix=prefix)
            factor = reweigh(layer, states[-1]) if reweigh else None
            if factor is not None:
                attended = attended * factor[..., None].to(attended.dtype)
            states.append(self.finish(layer, attended, states[-1]))
        return states

    def attention_row(
        self, layer: int, hidden: Tensor, mask: Mask, places: Tensor, *, prefix: Tensor | None = None
    ) -> Tensor:
        """Compute the attention probabilities of one token of each text, in one layer, in float32 or better.

        `places` are the tokens, (b,), counted without the prefix; see `place`. Otherwise as in `attend`.

        Returns:
            (b, heads, m + L); each row sums to 1.
        """
        memory = hidden if prefix is None else torch.cat([prefix, hidden], dim=1)
        places = places + memory.shape[1] - hidden.shape[1]
        return self._attention(layer, memory, self.visible(mask, memory), places)[:, :, 0]

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

    def _attend(self, layer: int, hidden: Tensor, memory: Tensor, layout: Layout) -> Tensor:
        bias = None if layout.bias is None else layout.bias[:, :, -hidden.shape[1] :]
        if engine := self._usable_engine(hidden):
            inputs = {"hidden": hidden, "memory": memory} | ({} if bias is None else {"bias": bias})
            return engine.run("attend" if bias is None else "attend with bias", inputs, self._weights(layer, engine))
        part = self.parts(layer)
        output = functional.scaled_dot_product_attention(
            self._split(part.query(hidden)),
            self._split(part.key(memory)),
            self._split(part.value(memory)),
            attn_mask=bias,
            dropout_p=part.chance.p if self.model.training else 0.0,
        )
        return output.transpose(1, 2).reshape(hidden.shape)

    def _attention(self, layer: int, memory: Tensor, layout: Layout, places: Tensor) -> Tensor:
        state = memory[torch.arange(len(memory), device=memory.device), places][:, None]
        query, key = self._split(self.query(layer, state)), self._split(self.key(layer, memory))
        return attention_probabilities(query, key, None if layout.bias is None else rows_at(layout.bias, places))

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
        """(b, L, e) -> (b, heads, L, head size)."""
        return states.unflatten(-1, (self.num_heads, -1)).transpose(1, 2)


class MPNetLayers(LayerAccess):
    """MPNet: scores have a bias by the distance of two tokens, the same in all layers."""

    def lay_out(self, mask: Tensor | None, positions: Tensor) -> Layout:
        """Return what is added to scores; see `LayerAccess.lay_out`."""
        encoder = self.model.encoder
        bucket = encoder.relative_position_bucket(positions[:, None] - positions[:, :, None])
        near, unseen = encoder.relative_attention_bias(bucket).permute(0, 3, 1, 2), additive(mask, self.model.dtype)
        return Layout(positions, near if unseen is None else near + unseen)

    def parts(self, layer: int) -> Attention:
        """Return the modules of the attention of a layer."""
        part = self.blocks[layer].attention
        own = part.attn
        return Attention(own.q, own.k, own.v, own.dropout, own.o, part.dropout, part.LayerNorm)


def is_like_bert(model: PreTrainedModel) -> bool:
    """Return whether `LayerAccess` can run the layers of a model."""
    return model.config.model_type in LIKE_BERT and not getattr(model.config, "is_decoder", False)


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
            f"{', '.join(sorted((*LIKE_BERT, *TYPES)))}. Choose such an encoder, or a method without a router."
        )
    return kind(model, bidirectional=bidirectional)


def attention_probabilities(query: Tensor, key: Tensor, mask: Tensor | None) -> Tensor:
    """Compute the softmax of scaled dot products, in float32 or better: (..., q, e), (..., k, e) -> (..., q, k).

    The mask (..., q, k) is True where a key is seen, or added to the scores; None for all.
    """
    scores = exact(query) @ exact(key).transpose(-1, -2) / query.shape[-1] ** 0.5
    if mask is not None:
        scores = scores.masked_fill(~mask, float("-inf")) if mask.dtype == torch.bool else scores + exact(mask)
    return scores.softmax(dim=-1)


def rows_at(values: Tensor, places: Tensor) -> Tensor:
    """Return one of n rows for each text, in all heads: (b or 1, heads or 1, n, e), (b,) -> (b, heads or 1, 1, e)."""
    rows = torch.arange(len(places), device=places.device)
    return values.expand(len(places), -1, -1, -1)[rows, :, places][:, :, None]


def exact(values: Tensor) -> Tensor:
    """Return values in float32, or as they are where they are more precise."""
    return values.to(torch.promote_types(values.dtype, torch.float32))


def additive(mask: Tensor | None, dtype: torch.dtype) -> Tensor | None:
    """Turn a mask, (b, L) or (b, L, L), into what is added to attention scores: 0 or -inf, (b, 1, L, L).

    None where everything is visible, which is faster.
    """
    if mask is None or (mask.dim() == 2 and bool(mask.all())):
        return None
    added = torch.zeros(mask.shape, dtype=dtype, device=mask.device).masked_fill_(~mask, float("-inf"))
    return added[:, None] if mask.dim() == 3 else added[:, None, None].expand(-1, 1, mask.shape[1], -1)
