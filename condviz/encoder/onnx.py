"""Layers by ONNX Runtime: in float32 on processors that are faster with it than with torch, and in int8.

The two halves of a layer are graphs without weights: those enter with each run from where torch keeps them. So the same
two small graphs serve every encoder with as many heads, no weight is held twice however many models there are, and no
file lies on a disk that could be damaged, read-only or made from other weights. Weights inside of the graphs, which the
library lays out anew, were 2 to 6 % faster, and take the memory of an encoder for each model.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING

import torch
from torch import Tensor

if TYPE_CHECKING:  # importing them takes time, and they may not be installed
    from onnxruntime import InferenceSession, OrtValue

OPSET, FUSED_OPSET, IR_VERSION = 17, 1, 8
FUSED = "com.microsoft"
"""Where the library's own operators are found: several steps of a layer in one pass over memory."""

CONSTANTS = f"""float step = {{{1 / 127}}}, uint8 zero = {{128}}, float least = {{1e-9}},
float small_step = {{{1 / 217}}}, uint8 low_zero = {{38}}, float one = {{1.0}}"""
"""Of int8. States of a token divided by the largest lie in -1 to 1, behind GELU and divided by no less than one in
-0.17 to 1: steps and zeros spread either over the 256 values of a byte. The least divisor is there since a router may
have set all states to 0."""

Weights = Mapping[str, "OrtValue"]


class Engine:
    """The two halves of a layer with post-norm and exact GELU, in float32 on the CPU, without gradient.

    With `int8` it multiplies in eight bits: weights are rounded by output channel, what enters them by token.
    """

    def __init__(self, heads: int, epsilon: float, *, int8: bool = False) -> None:
        self.heads, self.epsilon, self.int8 = heads, epsilon, int8

    def take(self, weights: Mapping[str, Tensor]) -> Weights:
        """Return weights of a layer, (out, in) and (out,), in the form in which `run` reads them."""
        given = {}
        for name, value in weights.items():
            given |= _rounded(name, value) if self.int8 and value.dim() == 2 else {name: value}
        return share(given)

    def run(self, half: str, inputs: Mapping[str, Tensor], weights: Weights) -> Tensor:
        """Run "attend", "attend with bias" or "finish"; see these in `LayerAccess`.

        Args:
            inputs: To attend, "hidden", the states of the queries (b, q, d), "memory", those of keys and values
                (b, k, d), and "bias", added to the scores: (b or 1, heads or 1, q, k). To finish, "attended", "hidden".
            weights: From `take`: NAME_weight and NAME_bias of query, key, value, merge (W_O), norm, wide and narrow
                (the feed-forward part), and last (its norm).
        """
        # A thread that computes on one core, beside others that do, has a session that starts no threads. After a fork
        # those of the parent are gone.
        session, names = _open(half, self.heads, self.epsilon, self.int8, torch.get_num_threads(), os.getpid())
        given = share(inputs)
        (found,) = session.run_with_ort_values(None, {name: given.get(name) or weights[name] for name in names})
        return torch.from_dlpack(found)


def share(tensors: Mapping[str, Tensor]) -> dict[str, OrtValue]:
    """Return tensors for the library, in the memory that they have where they are contiguous."""
    from onnxruntime import OrtValue

    # Copies are held by the result.
    return {name: OrtValue.ortvalue_from_numpy(value.detach().contiguous().numpy()) for name, value in tensors.items()}


def _rounded(name: str, weight: Tensor) -> dict[str, Tensor]:
    """Return a matrix (out, in) in seven bits as (in, out), its scale by output channel, and its zeros.

    With the eighth bit, products on processors without VNNI instructions overflow.
    """
    scale = weight.detach().abs().amax(dim=1) / 63
    whole = (weight.detach() / scale[:, None]).round().to(torch.int8)
    return {f"{name}_whole": whole.T, f"{name}_scale": scale, f"{name}_zero": torch.zeros_like(whole[:, 0])}


@cache
def _open(
    half: str, heads: int, epsilon: float, int8: bool, threads: int, process: int
) -> tuple[InferenceSession, list[str]]:
    """Return a session of one half of a layer, and the names of what it takes."""
    from onnxruntime import InferenceSession, SessionOptions  # pyright: ignore[reportAttributeAccessIssue] (in C)

    options = SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = threads, 3
    options.enable_cpu_mem_arena = False  # each session would keep the memory of its largest batch
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")  # the other sessions' turn is next
    session = InferenceSession(_graph(half, heads, epsilon, int8), options, providers=["CPUExecutionProvider"])
    return session, [item.name for item in session.get_inputs()]


def _graph(half: str, heads: int, epsilon: float, int8: bool) -> bytes:
    """Return one half of a layer as a model of ONNX, without weights."""
    from onnx import TensorProto, helper, parser

    even, times = (_even, _times_even) if int8 else (lambda *_, **__: "", _times)
    norm = f"{FUSED}.SkipLayerNormalization <epsilon = {epsilon:e}>"
    if half == "finish":
        body = f"""
            {even("attended")} {times("merged", "attended", "merge")}
            middle = {norm} (merged, hidden, norm_weight, norm_bias, merge_bias)
            {even("middle")} {times("widened", "middle", "wide")}
            inner = {FUSED}.BiasGelu (widened, wide_bias)
            {even("inner", gelu=True)} {times("narrowed", "inner", "narrow", gelu=True)}
            result = {norm} (narrowed, middle, last_weight, last_bias, narrow_bias)"""
    else:
        bias = "bias" if half == "attend with bias" else '""'
        body = f"""
            {even("hidden")} {times("queries", "hidden", "query")}
            {even("memory")} {times("keys", "memory", "key")} {times("values", "memory", "value")}
            biases = Concat <axis = 0> (query_bias, key_bias, value_bias)
            result = {FUSED}.MultiHeadAttention <num_heads = {heads}> (queries, keys, values, biases, "", {bias})"""
    versions = f'<ir_version: {IR_VERSION}, opset_import: ["": {OPSET}, "{FUSED}": {FUSED_OPSET}]>'
    model = parser.parse_model(f"{versions} layer () => (float[] result) <{CONSTANTS}> {{{body}}}")
    made = {name for node in model.graph.node for name in node.output}
    made |= {constant.name for constant in model.graph.initializer}
    for name in dict.fromkeys(name for node in model.graph.node for name in node.input if name and name not in made):
        kind = TensorProto.INT8 if name.endswith(("_whole", "_zero")) else TensorProto.FLOAT
        model.graph.input.append(helper.make_tensor_value_info(name, kind, None))
    return model.SerializeToString()


def _times(output: str, states: str, weight: str, **_: bool) -> str:
    """Return the product of states and a matrix (out, in), as text of ONNX."""
    return f"{output} = {FUSED}.FusedMatMul <transB = 1> ({states}, {weight}_weight)"


def _even(states: str, *, gelu: bool = False) -> str:
    """Return what rounds states to bytes, token by token; `gelu`: those behind GELU, which are no less than -0.17."""
    largest = f"{states}_largest = ReduceMax <axes = [-1]> ({states if gelu else f'{states}_plus'})"
    return f"""
        {"" if gelu else f"{states}_plus = Abs ({states})"} {largest}
        {states}_size = Max ({states}_largest, {"one" if gelu else "least"})
        {states}_even = Div ({states}, {states}_size)
        {states}_bytes = QuantizeLinear ({states}_even, {"small_step, low_zero" if gelu else "step, zero"})"""


def _times_even(output: str, states: str, weight: str, *, gelu: bool = False) -> str:
    """Return the product of what `_even` has rounded and a matrix that `_rounded` has."""
    step, zero = ("small_step", "low_zero") if gelu else ("step", "zero")
    return f"""
        {output}_even = {FUSED}.MatMulIntegerToFloat ({states}_bytes, {weight}_weight_whole, {step},
                                                      {weight}_weight_scale, {zero}, {weight}_weight_zero)
        {output} = Mul ({output}_even, {states}_size)"""
