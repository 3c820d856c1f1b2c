"""Trained models as folders that other programs read: ours, which sentence-transformers opens as it is.

A folder holds the checkpoint (see `checkpoints.py`) and the list of modules of sentence-transformers. A model that is
one transformer with pooling is written out for it in full, and needs nothing of ours; for others the list names
`condviz.interop.ConditionalModule`, which reads the checkpoint.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from tempfile import TemporaryDirectory

from condviz.errors import ConfigError
from condviz.methods import ConditionalScorer
from condviz.models import checkpoints, manifest

MODULES, SETTINGS = "modules.json", "config_sentence_transformers.json"
_OURS = "condviz.interop.ConditionalModule"
_THEIRS = "sentence_transformers.models"
_TRANSFORMER, _POOLING = "0_Transformer", "1_Pooling"
_HEADING = "\n## With sentence-transformers\n"
_USE = """
```python
from sentence_transformers import SentenceTransformer

model = SentenceTransformer("OWNER/NAME"{switch})
model.encode([["A man surfs.", "the sport"], ["A woman skis.", "the sport"]])  # pairs of sentence and condition
```
"""


def save(model: ConditionalScorer, folder: Path) -> None:
    """Write a model into a folder: a new one, an empty one, or that of an earlier checkpoint.

    Raises:
        CheckpointError: If the folder holds something else, or the model cannot be saved.
        ConfigError: If nobody has trained the model.
    """
    manifest.check_replaceable(folder)
    save_checkpoint(model, folder)
    if model.encodes:
        _add_modules(folder)
        # Else sentence-transformers would not import condviz; no code comes from the folder.
        switch = "" if model.is_plain_transformer else ", trust_remote_code=True"
        card = folder / manifest.CARD
        own = card.read_text(encoding="utf-8").partition(_HEADING)[0]  # that of a folder saved before has it already
        card.write_text(own + _HEADING + _USE.format(switch=switch), encoding="utf-8")


def save_checkpoint(model: ConditionalScorer, folder: Path) -> None:
    """Write the files of a checkpoint alone, whatever else the folder holds. See `save`."""
    info = model.info
    unchanged = info.source != "memory" and info.revision == model.fingerprint[:12]
    if unchanged and not info.trained:
        raise ConfigError(f"{info.name} is not trained: under a name of its own it would pass for a trained model.")
    folder.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory() as place:
        made = Path(info.path) if unchanged and info.path else checkpoints.save(model, Path(place) / folder.name)
        for name in manifest.FILES:
            shutil.copy2(made / name, folder / name)


def _add_modules(folder: Path) -> None:
    """Write what sentence-transformers reads."""
    model = checkpoints.load(folder, device="cpu", precision="float32")  # with adapters added to the weights
    if model.is_plain_transformer:
        inside = folder / _TRANSFORMER
        model.backbone.model.save_pretrained(inside)
        if model.backbone.tokenizer is not None:
            model.backbone.tokenizer.save_pretrained(inside)
        if getattr(model.backbone.model.config, "type_vocab_size", 0) > 1:
            # Some tokenizers would not tell sentence and condition apart.
            settings = json.loads((inside / "tokenizer_config.json").read_text(encoding="utf-8"))
            names = ["input_ids", "token_type_ids", "attention_mask"]
            _write(inside / "tokenizer_config.json", settings | {"model_input_names": names})
        _write(inside / "sentence_bert_config.json", {"max_seq_length": model.max_seq_length, "do_lower_case": False})
        pooling = model.method_config.pooling
        modes = {"mean": "pooling_mode_mean_tokens", "cls": "pooling_mode_cls_token"}
        chosen = {mode: name == pooling for name, mode in modes.items()}
        _write(folder / _POOLING / "config.json", {"word_embedding_dimension": model.backbone.hidden_size} | chosen)
        modules = [(_TRANSFORMER, f"{_THEIRS}.Transformer"), (_POOLING, f"{_THEIRS}.Pooling")]
    else:
        modules = [("", _OURS)]
    listed = [
        {"idx": number, "name": str(number), "path": path, "type": kind} for number, (path, kind) in enumerate(modules)
    ]
    _write(folder / MODULES, listed)
    _write(folder / SETTINGS, {"prompts": {}, "default_prompt_name": None, "similarity_fn_name": "cosine"})


def _write(path: Path, content: object) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
