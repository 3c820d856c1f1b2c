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
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

if TYPE_CHECKING:  # importing them takes time, and they may not be installed
    from onnxruntime import InferenceSession, OrtValue

OPSET, FUSED_OPSET, IR_VERSION = 17, 1, 8
FUSED = "com.microsoft"
"""Where the library's own operators are found: several steps of a layer in one pass over memory."""

CONSTANTS = {"step": 1 / 127, "zero": 128, "small_step": 1 / 217, "low_zero": 38, "least": 1e-9, "one": 1.0}
"""Of int8. States of a token divided by the largest lie in -1 to 1, behind GELU and divided by no less than one in
-0.17 to 1: steps and zeros spread either over the 256 values of a byte."""

Weights = Mapping[str, "OrtValue"]


class Engine:
    """The two halves of a layer with post-norm and exact GELU, in float32 on the CPU, without gradient.

    Args:
        heads: Of the attention.
        epsilon: Of the norms.
        int8: Multiply in eight bits: weights are rounded by output channel, what enters them by token.
    """

    def __init__(self, heads: int, epsilon: float, *, int8: bool = False) -> None:
        self.heads, self.epsilon, self.int8 = heads, epsilon, int8

    def take(self, weights: Mapping[str, Tensor]) -> Weights:
        """Return weights of a layer, (out, in) and (out,), in the form in which `attend` and `finish` read them."""
        given = {}
        for name, value in weights.items():
            given |= _rounded(name, value) if self.int8 and value.dim() == 2 else {name: value}
        return share(given)

    def attend(self, weights: Weights, hidden: Tensor, memory: Tensor, bias: Tensor | None) -> tuple[Tensor, Tensor]:
        """Run the attention up to W_O; see `LayerAccess.attend`.

        Args:
            weights: From `take`: NAME_weight and NAME_bias of query, key, value, merge (W_O), norm, wide and narrow
                (the feed-forward part), and last (its norm).
            hidden: States of the queries, (b, q, d).
            memory: States of keys and values, (b, k, d).
            bias: Added to the scores: (b or 1, heads or 1, q or 1, k), or None.
        """
        inputs = {"hidden": hidden, "memory": memory}
        if bias is not None:
            inputs["bias"] = bias.expand(-1, -1, hidden.shape[1], -1)
        attended, keys = self._run("attend" if bias is None else "attend with bias", inputs, weights)
        return attended, keys

    def finish(self, weights: Weights, attended: Tensor, hidden: Tensor) -> Tensor:
        """Run the rest of a layer; see `LayerAccess.finish`."""
        return self._run("finish", {"attended": attended, "hidden": hidden}, weights)[0]

    def _run(self, half: str, inputs: Mapping[str, Tensor], weights: Weights) -> list[Tensor]:
        # A thread that computes on one core, beside others that do, has a session that starts no threads. After a fork
        # those of the parent are gone.
        session, names = _open(half, self.heads, self.epsilon, self.int8, torch.get_num_threads(), os.getpid())
        given = share(inputs)
        found = session.run_with_ort_values(None, {name: given.get(name) or weights[name] for name in names})
        return [torch.from_dlpack(value) for value in found]


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
    return {name: whole.T, f"{name}_scale": scale, f"{name}_zero": torch.zeros(len(weight), dtype=torch.int8)}


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
    from onnx import TensorProto, helper

    nodes, sizes, integers = [], set(), set()

    def add(operator: str, inputs: str, output: str, domain: str = FUSED, **attributes: Any) -> None:  # noqa: ANN401 - of the operator
        names = ["" if name == "-" else name for name in inputs.split()]
        nodes.append(helper.make_node(operator, names, [output], domain=domain, **attributes))

    def times(states: str, weight: str, output: str) -> None:
        if not int8:
            add("FusedMatMul", f"{states} {weight}_weight", output, transB=1)
            return
        size, whole, matrix = f"{states}_size", f"{states}_whole", f"{weight}_weight"
        step, zero = ("small_step", "low_zero") if states == "inner" else ("step", "zero")
        if states not in sizes:
            sizes.add(states)
            if states != "inner":  # GELU returns no less than -0.17
                add("Abs", states, f"{states}_positive", domain="")
            largest = states if states == "inner" else f"{states}_positive"
            add("ReduceMax", largest, f"{states}_largest", domain="", axes=[-1])
            least = "one" if states == "inner" else "least"  # a router may have set all to 0
            add("Max", f"{states}_largest {least}", size, domain="")
            add("Div", f"{states} {size}", f"{states}_even", domain="")
            add("QuantizeLinear", f"{states}_even {step} {zero}", whole, domain="")
        given = f"{whole} {matrix} {step} {matrix}_scale {zero} {matrix}_zero"
        add("MatMulIntegerToFloat", given, f"{output}_even")
        add("Mul", f"{output}_even {size}", output, domain="")
        integers.update((matrix, f"{matrix}_zero"))

    def normalize(inputs: str, output: str) -> None:
        add("SkipLayerNormalization", inputs, output, epsilon=epsilon)

    if half == "finish":
        outputs = ["state"]
        times("attended", "merge", "merged")
        normalize("merged hidden norm_weight norm_bias merge_bias", "middle")
        times("middle", "wide", "widened")
        add("BiasGelu", "widened wide_bias", "inner")
        times("inner", "narrow", "narrowed")
        normalize("narrowed middle last_weight last_bias narrow_bias", "state")
    else:
        outputs = ["attended", "keys"]
        times("hidden", "query", "queries")
        times("memory", "key", "plain_keys")
        times("memory", "value", "values")
        add("Add", "plain_keys key_bias", "keys", domain="")
        add("Concat", "query_bias key_bias value_bias", "biases", domain="", axis=0)
        added = "- bias" if half == "attend with bias" else ""
        add("MultiHeadAttention", f"queries plain_keys values biases {added}", "attended", num_heads=heads)
    if int8:
        for name, value in CONSTANTS.items():
            kind = TensorProto.UINT8 if name.endswith("zero") else TensorProto.FLOAT
            given = helper.make_tensor("", kind, [], [value])
            nodes.insert(0, helper.make_node("Constant", [], [name], value=given))
    made = {output for node in nodes for output in node.output}
    inputs = dict.fromkeys(name for node in nodes for name in node.input if name and name not in made)
    inputs, outputs = (
        [
            helper.make_tensor_value_info(name, TensorProto.INT8 if name in integers else TensorProto.FLOAT, None)
            for name in names
        ]
        for names in (inputs, outputs)
    )
    versions = [helper.make_opsetid("", OPSET), helper.make_opsetid(FUSED, FUSED_OPSET)]
    graph = helper.make_graph(nodes, half, inputs, outputs)
    return helper.make_model(graph, opset_imports=versions, ir_version=IR_VERSION).SerializeToString()
