"""States of texts below the trained layers of an encoder: computed once, kept in half precision and read from disk."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from condviz.encoder.backbone import BATCH_TOKENS, Backbone
from condviz.encoder.tokens import batches_by_length, mask_rows
from condviz.evaluation.kgc import PART, read_tensors, write_tensors
from condviz.paths import cache_folder
from condviz.types import Progress


class LowerStates:
    """Token states of n texts after the lowest layers.

    Args:
        parts: In the order of the texts: "states" (tokens, d), one text behind the other, and "lengths" (texts,).

    Attributes:
        lengths: Tokens of each text.
    """

    def __init__(self, parts: Sequence[Mapping[str, Tensor]]) -> None:
        self._rows = [row for part in parts for row in part["states"].split(part["lengths"].tolist())]
        self.lengths = list(map(len, self._rows))

    def __len__(self) -> int:
        return len(self._rows)

    def batch(self, texts: Sequence[int], *, device: torch.device, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
        """Return states and mask of some texts, padded: (b, L, d) and (b, L)."""
        rows = [self._rows[text] for text in texts]
        padded = pad_sequence(rows, batch_first=True)
        return padded.to(device, dtype), mask_rows(rows, padded.shape[1]).to(device)


def lower_states(
    backbone: Backbone,
    texts: Sequence[str],
    layers: int,
    *,
    folder: Path | None = None,
    progress: Progress | None = None,
) -> LowerStates:
    """Run texts through the lowest layers of an encoder, or read what was kept of that.

    Args:
        backbone: The encoder, with the weights it was pretrained with.
        texts: Any texts, read one by one.
        layers: How many layers; 0 gives the states that enter the first one.
        folder: As in `condviz.evaluation.kgc.stored_vectors`: where there is none, the states stay in memory.
        progress: As there.
    """
    owner = f"{backbone.fingerprint} {layers}"
    digest = hashlib.sha256("\n".join([owner, *texts]).encode()).hexdigest()[:24]
    parts, place = [], (folder or cache_folder()) / "states" / digest
    for start in range(0, len(texts), PART):
        chunk = texts[start : start + PART]
        file = place / f"{start:07d}.safetensors"
        part = _whole(read_tensors(file), len(chunk))
        if part is None:
            part = _compute(backbone, chunk, layers)
            write_tensors(file, part)
            part = _whole(read_tensors(file), len(chunk)) or part  # what comes from a file need not stay in memory
        parts.append(part)
        if progress:
            progress(start + len(chunk), len(texts))
    return LowerStates(parts)


@torch.no_grad()
def _compute(backbone: Backbone, texts: Sequence[str], layers: int) -> dict[str, Tensor]:
    rows, access = backbone.tokenize([(text,) for text in texts]), backbone.layers
    found: dict[int, Tensor] = {}
    limit = BATCH_TOKENS.get(backbone.device.type, BATCH_TOKENS["cpu"])
    for part in batches_by_length(list(map(len, rows)), limit):
        tokens = backbone.collate([rows[i] for i in part])
        states = access.run(access.embed(tokens), tokens.mask, stop=layers)[-1].half().cpu()
        found |= {i: state[: len(rows[i])] for i, state in zip(part, states, strict=True)}
    return {"states": torch.cat([found[i] for i in range(len(rows))]), "lengths": torch.tensor(list(map(len, rows)))}


def _whole(part: Mapping[str, Tensor] | None, texts: int) -> Mapping[str, Tensor] | None:
    """Return stored states, or None where they are not those of so many texts."""
    if part is None or not {"states", "lengths"} <= part.keys() or len(part["lengths"]) != texts:
        return None
    return part if int(part["lengths"].sum()) == len(part["states"]) else None
