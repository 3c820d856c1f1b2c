"""Does a sentence tell what a condition asks for? One small head on the frozen pretrained encoder, for all methods.

Each text is encoded alone, once, and cached: n sentences and m conditions cost n + m passes. Then every token of the
condition looks for the token of the sentence that is most like it (late interaction), in learnt projections of the
states; what it finds, the plain similarity and short codes of both texts go through a small perceptron.

It warns only where it can be trusted: a sentence unlike all that it learnt from takes a far clearer answer, and what
every text tells, such as its tone, is never missed.

What it learnt from, and how often it errs: `benchmarks.applies`, which writes assets/applies.safetensors.
Source: late interaction is that of ColBERT, Khattab and Zaharia 2020, arXiv:2004.12832; the head is ours.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache

import numpy as np
import torch
from safetensors.torch import load_file
from torch import Tensor, nn
from torch.nn.functional import normalize
from torch.nn.utils.rnn import pad_sequence

from condviz.encoder.backbone import Backbone
from condviz.encoder.pretrained import load_backbone
from condviz.encoder.tokens import Encoded, mask_rows
from condviz.paths import ASSETS

WEIGHTS = ASSETS / "applies.safetensors"
BLOCK = 2**24
"""Token similarities computed at once."""
FAR = 2.5
"""Logits added for a sentence unlike all that were trained on: there, little but nonsense is still marked."""
JUDGED = frozenset({
    "attitude", "comfort", "decision", "experience", "formal", "formality", "genre", "language", "loser", "lost",
    "mood", "negative", "opinion", "outcome", "positive", "quality", "rating", "result", "sentiment", "service",
    "severity", "tone", "topic", "urgency", "verdict", "winner", "won",
})  # fmt: skip
"""Conditions with these words ask for a reader's judgement, which no single word tells and every text allows, or for
what a reader concludes: a rude waiter is the service, a dismissed claim says who won."""

MEASURED = frozenset(
    ["date", "distance", "duration", "height", "hour", "length", "speed", "temperature", "time", "weight"]
)
"""Conditions with these words ask for a measure, which a text with `NUMBERS` may give, its unit left out."""
NUMBERS = re.compile(
    r"\d|\b(one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|half|dozen|hundred|thousand|noon|midnight)\b"
)


class AppliesHead(nn.Module):
    """Scores whether sentences tell what conditions ask for.

    Args:
        size: Dimension d of the token states.
        width, views: Dimension and number of the projections in which tokens are compared.
        code: Dimension of the code of a text.
    """

    def __init__(self, size: int = 384, *, width: int = 128, views: int = 2, code: int = 16) -> None:
        super().__init__()
        self.views = views
        self.center = nn.Parameter(torch.zeros(size))
        self.of_sentence = nn.Linear(size, width * views, bias=False)
        self.of_condition = nn.Linear(size, width * views, bias=False)
        self.attention = nn.Linear(size, views)
        self.sentence_code, self.condition_code = nn.Linear(size, code), nn.Linear(size, code)
        self.is_condition = nn.Linear(size, 1)
        found = 3 * views + 1
        self.mlp = nn.Sequential(nn.Linear(found + 3 * code + 1, 48), nn.GELU(), nn.Linear(48, 1))
        self.direct = nn.Linear(found, 1)
        self.dropout = nn.Dropout(0.2)

    def forward(self, sentences: Sequence[Tensor], conditions: Sequence[Tensor]) -> Tensor:
        """Compute logits (m, n) of m conditions and n sentences, each the states (L, d) of its tokens."""
        states, asking = pad_sequence(list(sentences), True), pad_sequence(list(conditions), True)
        there, asked = mask_rows(sentences, states.shape[1]), mask_rows(conditions, asking.shape[1])
        found = self._found(normalize(states, dim=-1), there, normalize(asking, dim=-1), asked, self.attention(asking))
        pooled, pooled_condition = _pool(states, there), _pool(asking, asked)
        plain = normalize(pooled_condition, dim=-1) @ normalize(pooled, dim=-1).T
        found = torch.stack([*found, plain], dim=-1)
        gate = self.is_condition(pooled_condition)[:, None].expand(*found.shape[:2], 1)
        of_sentence = self.dropout(self.sentence_code(pooled)).expand(*found.shape[:2], -1)
        of_condition = self.dropout(self.condition_code(pooled_condition))[:, None].expand_as(of_sentence)
        every = torch.cat([found, of_condition, of_sentence, of_condition * of_sentence, gate], dim=-1)
        return (self.mlp(every) + 4 * self.direct(found) + gate)[..., 0]

    def _found(self, states: Tensor, there: Tensor, asking: Tensor, asked: Tensor, attention: Tensor) -> list[Tensor]:
        """Return what the tokens of each condition find in each sentence, a view at a time: mean, best and worst."""
        shape = (*asking.shape[:2], *states.shape[:2])
        keys = normalize(self.of_sentence(states - self.center).unflatten(-1, (self.views, -1)), dim=-1)
        queries = normalize(self.of_condition(asking - self.center).unflatten(-1, (self.views, -1)), dim=-1)
        weights = attention.masked_fill(~asked[..., None], -torch.inf).softmax(dim=1)
        found = []
        for view in range(self.views):
            alike = (queries[:, :, view].flatten(0, 1) @ keys[:, :, view].flatten(0, 1).T).view(shape)
            best = alike.masked_fill(~there, -1).amax(dim=-1)
            found.append((best * weights[:, :, view, None]).sum(dim=1))
            found += [best.masked_fill(~asked[..., None], -1).amax(1), best.masked_fill(~asked[..., None], 1).amin(1)]
        return found


def applies(sentences: Sequence[str], conditions: Sequence[str], backbone: Backbone | None = None) -> np.ndarray:
    """Estimate whether each sentence tells what each condition asks for.

    Args:
        sentences, conditions: n and m texts.
        backbone: Encodes them if it is the encoder that the head was trained on: a model that pools means finds its
            vectors of the same texts in the cache then.

    Returns:
        (n, m) float32 in [0, 1]; below `condviz.types.SILENT` the sentence may not tell it.
    """
    if not len(sentences) or not len(conditions):
        return np.zeros((len(sentences), len(conditions)), dtype=np.float32)
    return logits(sentences, conditions, backbone, lenient=True).sigmoid().T.numpy()


def logits(
    sentences: Sequence[str], conditions: Sequence[str], backbone: Backbone | None = None, *, lenient: bool = False
) -> Tensor:
    """Compute the logits of m conditions and n sentences, (m, n); `lenient` ones raise no alarm where in doubt."""
    usual, head, known, least = _parts()
    same = backbone is not None and (backbone.digest, backbone.prefix) == (usual.digest, usual.prefix)
    states = token_states(backbone if backbone is not None and same else usual, [*sentences, *conditions])
    texts, asked = states[: len(sentences)], states[len(sentences) :]
    step = max(1, BLOCK // (sum(map(len, asked)) * max(map(len, texts))))
    with torch.no_grad():
        found = torch.cat([head(texts[start : start + step], asked) for start in range(0, len(texts), step)], dim=1)
    if not lenient:
        return found
    found += FAR * ((places(head, texts) @ known.T).amax(dim=1) < least)
    numbered = torch.tensor([bool(NUMBERS.search(text.casefold())) for text in sentences])
    words = [re.findall(r"\w+", text.casefold()) for text in conditions]
    judged, measured = (torch.tensor([not kind.isdisjoint(one) for one in words]) for kind in (JUDGED, MEASURED))
    doubtful = judged[:, None] | (measured[:, None] & numbered)
    return torch.where(doubtful, found.clamp(min=0), found)


def places(head: AppliesHead, states: Sequence[Tensor]) -> Tensor:
    """Return where texts lie among others: their mean states as seen from the centre, of length one, (n, d)."""
    return normalize(torch.stack([text.mean(dim=0) for text in states]) - head.center, dim=-1)


def token_states(backbone: Backbone, texts: Sequence[str]) -> list[Tensor]:
    """Encode texts one by one, each different one once: the states (L, d) of their tokens, without special ones."""

    def embed(rows: list[Encoded]) -> list[Tensor]:
        states = backbone.states(backbone.collate(rows), all_layers=False)[-1].float()
        return [state[: len(row)] for state, row in zip(states, rows, strict=True)]

    items = [(text,) for text in texts]
    states = backbone.map_texts(items, role="token states", tokenize=backbone.tokenize, embed=embed)
    backbone.keep(items, "mean", [state.mean(dim=0) for state in states])
    return [state[min(1, len(state) - 2) : max(len(state) - 1, 2)] for state in states]


@cache
def _parts() -> tuple[Backbone, AppliesHead, Tensor, Tensor]:
    """Return encoder, head, the middles (c, d) of what it learnt from, and how near to one of them a text should be."""
    stored = {name: value.float() for name, value in load_file(WEIGHTS).items()}
    known, least = stored.pop("known"), stored.pop("least")
    head = AppliesHead()
    head.load_state_dict(stored)
    return load_backbone(), head.eval(), known, least


def _pool(states: Tensor, mask: Tensor) -> Tensor:
    """Return the mean state of each text: (b, d)."""
    return (states * mask[..., None]).sum(dim=1) / mask.sum(dim=1, keepdim=True)
