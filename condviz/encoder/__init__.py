"""Text to token states to vectors. What is named here is needed where torch is not: recipes, settings of methods."""

from typing import Literal

DEFAULT_BACKBONE = "sentence-transformers/all-MiniLM-L6-v2"
"""The encoder of most shipped models."""
BASE_BACKBONE = "sentence-transformers/all-mpnet-base-v2"
"""The encoder of the size that the papers use, 110 M parameters."""
Pooling = Literal["cls", "mean", "first-last", "top-2", "last", "latent"]
"""How token states become one vector: first token; mean of the last layer; mean of the embedding layer and the last
layer; mean of the last two layers; last token; mean of what the latent attention of NV-Embed makes of the last layer.
Means leave out padding (C-STS official code, modeling_encoders.py)."""
