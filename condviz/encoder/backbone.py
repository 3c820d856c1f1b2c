"""Backbone: a tokenizer and a pretrained transformer that turn texts into vectors, in batches and through a cache."""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Callable, Iterable, Sequence, Sized
from functools import partial
from threading import RLock
from typing import TYPE_CHECKING, Literal, TypeVar, cast

import torch
from torch import Tensor, nn

from condviz.encoder import Pooling
from condviz.encoder.cache import EmbeddingCache, hash_tensors
from condviz.encoder.layers import DECODERS, LayerAccess, is_like_bert, open_layers
from condviz.encoder.tokens import Encoded, Item, Tokens, batches_by_length, collate, pool, warn_truncated
from condviz.encoder.visitors import VISITOR, share_cores
from condviz.errors import ConfigError, DataError
from condviz.types import Progress

if TYPE_CHECKING:  # importing them takes seconds
    from tokenizers import Encoding
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

    from condviz.encoder.pretrained import LatentAttention

Backend = Literal["torch", "onnx"]
Row = TypeVar("Row", bound=Sized)
"""What is encoded together, and counted by its tokens: `Encoded`, `Joined`, or what a method makes of them."""

MAX_LENGTH = 512
"""Maximum tokens per sequence; the official scripts of C-STS pass the same limit."""
BATCH_TOKENS = {"cpu": 1024, "mps": 8192, "cuda": 32768}
"""Tokens per batch with padding. On CPUs small batches stay in cache: 1,024 was faster than 256 and 8,192."""
CORES = torch.get_num_threads()
"""Those that the visitors of a server share."""
CPU_HALF_MULTIPLE = 8
"""Lengths in half precision on CPUs are rounded up to this: each new shape compiles a kernel, rounded ones repeat."""
SMALL_REQUEST = 64
"""Texts up to which a request in half precision is computed as a whole; see `Backbone.map_texts`."""
TOKENIZED_AT_ONCE = 100
"""Texts; those of others are tokenized in between, and wait for no more than these."""
_tokenizing = RLock()
"""Held while texts are tokenized: setting truncation changes the tokenizer, which several backbones share."""


class Backbone(nn.Module):
    """A pretrained encoder with its tokenizer, shared by every method that does not change its weights.

    Args:
        model: Encoder or decoder of `transformers`, without a task head.
        tokenizer: Its fast tokenizer; None if only tensors will be given.
        name: Hub id or folder the weights came from.
        revision: Commit on the hub, or "".
        digest: SHA-256 of the weight file, or "" to hash the weights when it is needed.
        instruction: Template with {instruction} and {text} of an instruction-tuned encoder, or None.
        prefix: What the encoder was trained to see in front of each text, for instance "query: ".
        pooling: How the encoder was trained to pool, where that is known.
        latent: The latent attention of an NV-Embed, for pooling "latent".
        bidirectional: A decoder that was trained to see in both directions; only with attention of the library.
    """

    backend: Backend = "torch"
    """With "onnx", what ONNX Runtime can compute is computed by it."""
    int8: bool = False
    """It multiplies weights of the layers and what enters them in eight bits."""
    _layers: LayerAccess | None

    def __init__(
        self,
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase | None = None,
        *,
        name: str = "in memory",
        revision: str = "",
        digest: str = "",
        instruction: str | None = None,
        prefix: str = "",
        pooling: Pooling | None = None,
        latent: LatentAttention | None = None,
        bidirectional: bool = False,
    ) -> None:
        super().__init__()
        if tokenizer is not None and not tokenizer.is_fast:
            raise ConfigError(f"{name} has a slow tokenizer without offsets. Choose an encoder with a tokenizer.json.")
        self.model, self.latent = model, latent
        self.tokenizer = tokenizer
        self.name, self.revision, self.digest = name, revision, digest
        self.instruction, self.prefix, self.pooling = instruction, prefix, pooling
        self.bidirectional = bidirectional
        self.cache = EmbeddingCache()
        # Held while texts are encoded in the caller's own thread, or the weights are moved. One thread encodes a batch
        # at a time: the second finds the result in the cache.
        self.lock = RLock()
        self._base: tuple[Backbone, ...] = ()  # in a tuple, where torch takes it for no part of this one
        self._end_token = _missing_end_token(model, tokenizer)
        added = tokenizer.added_tokens_decoder.values() if tokenizer is not None else ()
        self._special_names = tuple(token.content for token in added if token.special and token.content)
        self._hash: str | None = None
        model.config.use_cache = False
        self.eval()

    def __getstate__(self) -> dict[str, object]:
        """Return what a copy or a pickle holds: all but the lock, and what is made when it is needed."""
        return self.__dict__ | {"lock": None, "_base": (), "_layers": None}

    def __setstate__(self, state: dict[str, object]) -> None:
        """Take over the state of another, with a lock of its own."""
        super().__setstate__(state)
        self.lock = RLock()

    def with_model(self, model: PreTrainedModel, digest: str) -> Backbone:
        """Return one like this around a model that shares most weights with it; both have the same cache and lock.

        This one stays in memory, so that the next model that changes some weights finds it, instead of loading all of
        them once more.
        """
        made = copy.copy(self)
        made._modules = self._modules | {"model": model}
        made.lock, made.digest, made._hash, made._base = self.lock, digest, None, (self,)
        return made.eval()

    # What it is

    @property
    def hidden_size(self) -> int:
        """Dimension d of the vectors."""
        return self.model.config.hidden_size

    @property
    def num_layers(self) -> int:
        """Number T of transformer layers."""
        return self.model.config.num_hidden_layers

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return next(self.model.parameters()).device

    @property
    def dtype(self) -> torch.dtype:
        """Number type of the weights."""
        return next(self.model.parameters()).dtype

    @property
    def precision(self) -> str:
        """What the layers compute in: "float32", "bfloat16", "float16" or "int8"."""
        return "int8" if self.int8 else str(self.dtype).removeprefix("torch.")

    @property
    def layers(self) -> LayerAccess:
        """The encoder layer by layer.

        Raises:
            ConfigError: If this type of model cannot be run that way.
        """
        if self._layers is None:
            engine = self.backend == "onnx" and not self.training
            self._layers = open_layers(self.model, bidirectional=self.bidirectional, engine=engine, int8=self.int8)
        return self._layers

    @property
    def weights_hash(self) -> str:
        """Identity of the weights, 64 hex digits. Changes when they are trained."""
        if self._hash is None or (self.training and not self.digest):
            part = self.model if self.latent is None else self
            self._hash = self.digest or hash_tensors(part.state_dict().items())
        return self._hash

    @property
    def fingerprint(self) -> str:
        """Identity of weights, precision and prefix, 64 hex digits."""
        parts = [self.weights_hash, f"torch.{self.precision}", *([self.prefix] if self.prefix else [])]
        return hashlib.sha256(" ".join(parts).encode()).hexdigest()

    def copy_weights(self, other: Backbone) -> None:
        """Take over the weights of an encoder of the same kind, and with them its identity."""
        self.model.load_state_dict(other.model.state_dict())
        self.digest, self._hash = other.weights_hash, None

    def train(self, mode: bool = True) -> Backbone:
        """Switch between training and inference; after training the cache no longer answers for the old weights.

        A frozen backbone (no parameter requires a gradient) keeps its identity.
        """
        if mode and any(parameter.requires_grad for parameter in self.parameters()):
            self.digest, self._hash = "", None
        self._layers = None  # what runs them holds on to the weights that there were
        return super().train(mode)

    # Texts to tokens

    def tokenize(
        self,
        items: Sequence[Item],
        *,
        pool_text: int | None = None,
        pool_from: Sequence[int] | None = None,
        separators: bool = False,
    ) -> list[Encoded]:
        """Turn texts into token ids with the special tokens of the encoder, at most `MAX_LENGTH` each.

        Args:
            items: Tuples of one text, or of two texts that share a sequence (the longer one is cut first).
            pool_text: Pool only over the tokens of this text (0 or 1) of each tuple.
            pool_from: Pool only over tokens that end behind this character, one number for each item.
            separators: Read the name of a special token in a text, such as "[SEP]", as that token. Only for texts that
                a program joined; see `without_special_tokens`.

        Raises:
            DataError: If an item is not text, or has unpaired surrogates.
        """
        rows, end = [], () if self._end_token is None else (self._end_token,)
        for i, encoding in enumerate(self._encodings(items, separators)):
            pooled = None
            if pool_text is not None:
                pooled = (*(sequence == pool_text for sequence in encoding.sequence_ids), *(False for _ in end))
            elif pool_from is not None:
                pooled = (*(place > pool_from[i] for _, place in encoding.offsets), *(False for _ in end))
            ids, types = (*encoding.ids, *end), (*encoding.type_ids, *(0 for _ in end))
            rows.append(Encoded(ids, types, pooled, bool(encoding.overflowing)))
        return rows

    def without_special_tokens(self, text: str) -> str:
        """Turn the names of special tokens, such as "[SEP]", into plain text of the same length: "(SEP]".

        The tokenizers' own option for this is not enough: vocabularies of sentencepiece hold the names as pieces.

        Raises:
            DataError: If it is not text, or has unpaired surrogates.
        """
        try:
            text.encode()
        except (AttributeError, UnicodeEncodeError) as error:
            raise DataError(f"{repr(text)[:80]} cannot be encoded. Give valid Unicode text.") from error
        for name in self._special_names:
            if name in text:
                text = text.replace(name, f"({name[1:]}")
        return text

    def _encodings(self, items: Sequence[Item], separators: bool) -> list[Encoding]:
        if self.tokenizer is None:
            raise ConfigError("This backbone has no tokenizer and reads token ids only. Load it by name or folder.")
        plain = self.without_special_tokens
        texts = items if separators else [(self.prefix + plain(first), *map(plain, rest)) for first, *rest in items]
        encodings = []
        for start in range(0, len(texts), TOKENIZED_AT_ONCE):
            part = texts[start : start + TOKENIZED_AT_ONCE]
            with _tokenizing:
                batch = self.tokenizer(
                    [item[0] for item in part],
                    [item[1] for item in part] if len(part[0]) == 2 else None,
                    truncation="longest_first",
                    max_length=self.max_length - (self._end_token is not None),
                )
            encodings += batch.encodings or ()  # a fast tokenizer has them
        return encodings

    def spans(self, text: str) -> list[tuple[int, int]]:
        """Return the characters of each token of one text, half open; empty for special tokens and the prefix."""
        encoding, skip = self._encodings([(text,)], separators=False)[0], len(self.prefix)
        shifted = [(max(0, start - skip), max(0, end - skip)) for start, end in encoding.offsets]
        special = encoding.special_tokens_mask
        return [(0, 0) if mark else span for span, mark in zip(shifted, special, strict=True)]

    @property
    def separator(self) -> str:
        """The token between two texts: the separator, or the end token where there is none, as in decoders.

        Raises:
            ConfigError: If there is neither.
        """
        token = self.tokenizer and (self.tokenizer.sep_token or self.tokenizer.eos_token)
        if not token:
            raise ConfigError(f"{self.name} has neither a separator nor an end token. Choose another encoder.")
        return str(token)

    @property
    def max_length(self) -> int:
        """Maximum tokens per sequence."""
        positions = getattr(self.model.config, "max_position_embeddings", MAX_LENGTH)
        table = getattr(getattr(self.model, "embeddings", None), "position_embeddings", None)
        if (padding := getattr(table, "padding_idx", None)) is not None:  # RoBERTa and MPNet count from behind it
            positions -= padding + 1
        return min(MAX_LENGTH, positions, getattr(self.tokenizer, "model_max_length", MAX_LENGTH))

    def collate(self, rows: Sequence[Encoded]) -> Tokens:
        """Pad token ids to a batch on the device of the model."""
        pad, half = self.model.config.pad_token_id, self.device.type == "cpu" and self.dtype.itemsize == 2
        return collate(rows, pad or 0, multiple=CPU_HALF_MULTIPLE if half else 1).to(self.device)

    def truncated(self, items: Iterable[Item]) -> list[Item]:
        """Return the texts that are too long for the encoder and lose their end."""
        unique = list(dict.fromkeys(items))
        return [item for item, row in zip(unique, self.tokenize(unique), strict=True) if row.truncated]

    def unknown_words(self, text: str) -> tuple[str, ...]:
        """Return the parts of a text that the tokenizer has no token for, such as emoji, each once, in their order."""
        spans = zip(self.tokenize([(text,)])[0].ids, self.spans(text), strict=False)  # an end token has no span
        unknown = getattr(self.tokenizer, "unk_token_id", None)
        found = (text[start:end] for token, (start, end) in spans if token == unknown)
        return tuple(dict.fromkeys(word for word in found if word))

    # Tokens to vectors

    def forward(self, tokens: Tokens, pooling: Pooling) -> Tensor:
        """Encode a batch: (b, d), float32 or better, with gradient where it is switched on."""
        states = self.states(tokens, all_layers=pooling in ("first-last", "top-2"))
        if pooling == "latent":
            if self.latent is None:
                raise ConfigError(f"pooling is latent, but {self.name} has no latent attention. Only NV-Embed has one.")
            states = [self.latent(states[-1])]
        return pool(states, tokens, pooling)

    def states(self, tokens: Tokens, *, all_layers: bool = True) -> list[Tensor]:
        """Compute hidden states (b, L, d): the embedding layer and each layer, or only the last."""
        if is_like_bert(self.model) or self.bidirectional:  # a decoder of the library sees one way only
            states = self.layers.run(self.layers.embed(tokens), tokens.mask)
            return states if all_layers else states[-1:]
        given = {"input_ids": tokens.ids, "attention_mask": tokens.mask.long(), "output_hidden_states": all_layers}
        if getattr(self.model.config, "type_vocab_size", 0) > 1:
            given["token_type_ids"] = tokens.types
        output = self.model(**given)
        return [*output.hidden_states[:-1], output.last_hidden_state] if all_layers else [output.last_hidden_state]

    # Texts to vectors

    def encode(
        self,
        items: Sequence[Item],
        *,
        pooling: Pooling,
        separators: bool = False,
        batch_size: int | None = None,
        progress: Progress | None = None,
    ) -> Tensor:
        """Encode texts, each different one once: (n, d) float32 on the CPU, no gradient.

        Args:
            items: n tuples of one or two texts.
            pooling: How token states become a vector.
            separators: As in `tokenize`.
            batch_size, progress: As in `map_texts`.
        """
        vectors = self.map_texts(
            items,
            role=f"{pooling} with separators" if separators else pooling,
            tokenize=partial(self.tokenize, separators=separators),
            embed=lambda rows: self(self.collate(rows), pooling),
            batch_size=batch_size,
            progress=progress,
        )
        return torch.stack(vectors) if vectors else torch.zeros(0, self.hidden_size)

    def map_texts(
        self,
        items: Sequence[Item],
        *,
        role: str,
        tokenize: Callable[[list[Item]], list[Row]],
        embed: Callable[[list[Row]], Iterable[Tensor]],
        owner: str = "",
        batch_size: int | None = None,
        progress: Progress | None = None,
    ) -> list[Tensor]:
        """Compute one tensor per text: each different text once, in batches of similar length, through the cache.

        Args:
            items: n texts or tuples of texts, repeats allowed.
            role: What the tensor is; part of the cache key.
            tokenize: Turns those texts that the cache lacks into token ids.
            embed: Turns a batch of records into one tensor per record.
            owner: Fingerprint that decides the result; that of the backbone if empty.
            batch_size: Texts of one pass; None fills passes up to `BATCH_TOKENS`.
            progress: Called with (done, total) of the missing texts.

        Returns:
            n tensors on the CPU without gradient; equal texts share one.
        """
        unique = list(dict.fromkeys(items))
        key = (owner or self.fingerprint, role, self._together(unique))
        known = dict(zip(unique, self._recall(key, unique, count=True), strict=True))
        missing = [item for item, value in known.items() if value is None]
        if not missing:
            return cast("list[Tensor]", [known[item] for item in items])
        rows, visitor = tokenize(missing), VISITOR.get()
        warn_truncated(missing, rows, self.max_length)
        if visitor is not None:
            visitor.charge(sum(map(len, rows)))
        limit, done = BATCH_TOKENS.get(self.device.type, 1024), 0
        for batch in batches_by_length([len(row) for row in rows], limit, batch_size):
            if visitor is not None:
                visitor.check()
            texts = [missing[i] for i in batch]
            with (
                share_cores(CORES) if visitor is not None and self.device.type == "cpu" else self.lock,
                torch.no_grad(),
            ):
                # While they waited, others may have had the same texts encoded.
                found = dict(zip(texts, self._recall(key, texts), strict=True))
                if left := [i for i in batch if found[missing[i]] is None]:
                    values = [value.detach().cpu().clone() for value in embed([rows[i] for i in left])]
                    made = dict(zip((missing[i] for i in left), values, strict=True))
                    found |= made
                    if not self.training:  # batch by batch: what is done stays known if `progress` stops the work
                        self.cache.put_many(((*key, *text), value) for text, value in made.items())
            known |= found
            done += len(batch)
            if progress:
                progress(done, len(missing))
        return cast("list[Tensor]", [known[item] for item in items])

    def keep(self, items: Sequence[Item], pooling: Pooling, vectors: Iterable[Tensor]) -> None:
        """Keep vectors that came about on the way, as `encode` would compute them; only where they are exact."""
        if self.dtype.itemsize > 2 and not self.training:
            keys = ((self.fingerprint, pooling, None, *item) for item in items)
            self.cache.put_many(zip(keys, vectors, strict=True))

    def _recall(self, key: tuple, items: Sequence[Item], *, count: bool = False) -> Sequence[Tensor | None]:
        if self.training:  # dropout makes vectors that must not be kept
            return [None] * len(items)
        return self.cache.get_many([(*key, *item) for item in items], count=count)

    def _together(self, items: Sequence[Item]) -> int | None:
        """Return a mark of the texts that are computed together, where that shows in the result; else None.

        In half precision a vector depends in its third digit on the other texts of its batch. So a small request, such
        as one comparison, shares vectors only with requests for the same texts: the same call gives the same numbers,
        whatever was asked before. Large ones share by text, and in float32 all do.
        """
        return None if self.dtype.itemsize > 2 or len(items) > SMALL_REQUEST else hash(tuple(items))


def _missing_end_token(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase | None) -> int | None:
    """Return the end token of a decoder whose tokenizer does not append it itself; else None."""
    if tokenizer is None or model.config.model_type not in DECODERS:
        return None
    encodings = tokenizer("a").encodings
    written = encodings is not None and encodings[0].special_tokens_mask[-1]
    return None if written else getattr(tokenizer, "eos_token_id", None)
