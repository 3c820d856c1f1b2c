"""Small parts that several methods put on top of the encoder."""

from __future__ import annotations

from torch import nn

from condviz.encoder.backbone import Backbone
from condviz.methods.configs import BiEncoderConfig


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


def shrink(*layers: nn.Linear) -> None:
    """Scale weights down to a tenth in place, so that what does not depend on the input prevails at first."""
    for layer in layers:
        layer.weight.mul_(0.1)


class SentenceTransform(nn.Sequential):
    """Dropout, linear layer and activation on sentence vectors, never on conditions: (b, d) -> (b, d).

    Does nothing unless the settings ask for it.

    Source: princeton-nlp/c-sts, option `transform`.
    """

    def __init__(self, backbone: Backbone, method_config: BiEncoderConfig) -> None:
        super().__init__()
        if method_config.transform:
            size = backbone.hidden_size
            self.extend([nn.Dropout(dropout_rate(backbone)), nn.Linear(size, size), activation(backbone)])


class ConditionLayer(nn.Sequential):
    """h_c' = Linear(Dropout(h_c)), no activation: (m, d) -> (m, d).

    Source: princeton-nlp/c-sts TriEncoderForClassification, for every head; in Hyper-CL's code, but not in its paper.
    """

    def __init__(self, backbone: Backbone) -> None:
        size = backbone.hidden_size
        super().__init__(nn.Dropout(dropout_rate(backbone)), nn.Linear(size, size))
