"""Small parts that several methods put on top of the encoder."""

from __future__ import annotations

from typing import cast

from torch import nn

from condviz.encoder.backbone import Backbone
from condviz.methods.catalog import BiEncoderConfig


def dropout_rate(backbone: Backbone) -> float:
    """Return the dropout of classification heads: classifier_dropout, else hidden_dropout_prob, else none."""
    config = backbone.model.config
    rate = getattr(config, "classifier_dropout", None)
    return float(getattr(config, "hidden_dropout_prob", 0.0) if rate is None else rate)


def activation(backbone: Backbone) -> nn.Module:
    """Return the activation function of the encoder."""
    from transformers.activations import ACT2FN  # loaded with the encoder; at the top it would slow `import condviz`

    config = backbone.model.config
    return ACT2FN[getattr(config, "hidden_act", None) or getattr(config, "hidden_activation", "gelu")]


def last_linear(head: nn.Module) -> nn.Linear:
    """Return the linear layer that a head is, or ends with."""
    return cast("nn.Linear", head[-1] if isinstance(head, nn.Sequential) else head)


def shrink(*layers: nn.Linear) -> None:
    """Scale weights down to a tenth in place, so that what does not depend on the input prevails at first."""
    for layer in layers:
        layer.weight.mul_(0.1)


def sentence_transform(backbone: Backbone, method_config: BiEncoderConfig) -> nn.Sequential:
    """Build dropout, linear layer and activation on sentence vectors, never on conditions: (b, d) -> (b, d).

    They do nothing unless the settings ask for them.

    Source: princeton-nlp/c-sts, option `transform`.
    """
    if not method_config.transform:
        return nn.Sequential()
    size = backbone.hidden_size
    return nn.Sequential(nn.Dropout(dropout_rate(backbone)), nn.Linear(size, size), activation(backbone))


def condition_layer(backbone: Backbone) -> nn.Sequential:
    """Build h_c' = Linear(Dropout(h_c)), no activation: (m, d) -> (m, d).

    Source: princeton-nlp/c-sts TriEncoderForClassification, for every head; in Hyper-CL's code, but not in its paper.
    """
    return nn.Sequential(nn.Dropout(dropout_rate(backbone)), nn.Linear(backbone.hidden_size, backbone.hidden_size))
