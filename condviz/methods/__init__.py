"""Every method, by name. To add one: a file in this folder, and a line here (see CONTRIBUTING.md)."""

from __future__ import annotations

from condviz.methods.base import ConditionalEncoder, ConditionalScorer, SeparableEncoder
from condviz.methods.bi_encoder import BiEncoder
from condviz.methods.case import CASE
from condviz.methods.cross_encoder import CrossEncoder
from condviz.methods.csr import CSR
from condviz.methods.csr_bi import CSRBi
from condviz.methods.csr_prefix import CSRPrefix
from condviz.methods.hyper_cl import HyperCL
from condviz.methods.routing import RoutedEncoder
from condviz.methods.tri_encoder import TriEncoder
from condviz.methods.unconditional import Unconditional

METHODS: dict[str, type[ConditionalScorer]] = {
    method.name: method
    for method in (Unconditional, CrossEncoder, BiEncoder, TriEncoder, HyperCL, CSR, CSRBi, CSRPrefix, CASE)
}

__all__ = ["METHODS", "ConditionalEncoder", "ConditionalScorer", "RoutedEncoder", "SeparableEncoder"]
