"""C-STS re-annotated: train corrected and rated anew with language models, validation rated anew by people.

Validation without the 214 rows that cannot be judged (-1) is the set of the CASE paper: 2,620 rows. Conditions of 2,025
of them occur in train, too, and a sentence of 1,212; "validation-unshared" leaves the latter out.

Source: Zhang, Zhou and Bollegala 2025, arXiv:2509.14399; validation: Tu et al. 2024, arXiv:2406.03673; sentences:
Deshpande et al. 2023, arXiv:2305.15093, whose owners ask that rows are not shown.
"""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path

from condviz.data.corpus import Corpus, Material, Password
from condviz.data.csts import divide, pair_rows
from condviz.data.pairs import read_pairs
from condviz.errors import DataError, first_line
from condviz.types import Pair

HUB = ("LivNLP/C-STS-Reannotated", "LivNLP/C-STS_updated")
"""Both names of the dataset. What is read is pinned by the sums below, whatever the revision."""
TRAIN, VALIDATION = "csts_train_reannotated.csv", "csts_validation_reannotated.csv"
SUMS = {
    TRAIN: "118ef935443531a60f3dd5652afd946869f47b134c83fd8da38779912167b652",
    VALIDATION: "84602c1bcbbe1e6410a78c9cb1cb0f3dac4bf48c0c55ad42dc19558370e4821f",
}
PARTS = ("train", "train90", "dev10", "validation", "validation-unshared", "reannotated70", "reannotated30")
"""As those of C-STS: a tenth of train to choose by; validation divided to choose and to test, as in the CASE paper."""


def load(folder: str | Path, part: str, *, seed: int = 0) -> tuple[Pair, ...]:
    """Read one part, without the rows that cannot be judged.

    Args:
        folder: Where the files are; those that are not there come from the hub.
        part: One of `PARTS`.
        seed: Draws the sentence pairs of "reannotated70" and "reannotated30"; decides nothing else.

    Raises:
        DataError: If a file is neither here nor on the hub, or is another one.
    """
    train = part in ("train", "train90", "dev10")
    pairs = _read(Path(folder), TRAIN if train else VALIDATION)
    if part in ("train90", "dev10"):
        return divide(pairs)[part == "dev10"]
    if part in ("reannotated70", "reannotated30"):
        return divide(pairs, 3, seed=seed)[part == "reannotated30"]
    if part == "validation-unshared":
        known = {text for pair in _read(Path(folder), TRAIN) for text in (pair.sentence1, pair.sentence2)}
        return tuple(pair for pair in pairs if known.isdisjoint((pair.sentence1, pair.sentence2)))
    return pairs


def locate(folder: Path, file: str) -> Path | None:
    """Return the file in the folder or in the hub's cache, None where it has to be downloaded."""
    if (folder / file).is_file():
        return folder / file
    from huggingface_hub import try_to_load_from_cache

    cached = (try_to_load_from_cache(name, file, repo_type="dataset") for name in HUB)
    return next((Path(path) for path in cached if isinstance(path, str)), None)


def _read(folder: Path, file: str) -> tuple[Pair, ...]:
    path = locate(folder, file) or _download(file)
    if isinstance(path, str):
        raise DataError(f"{file} is not in {folder} and did not come from the hub ({path}). Put it there.")
    if (found := hashlib.sha256(path.read_bytes()).hexdigest()) != SUMS[file]:
        raise DataError(f"{path} has SHA-256 {found}, expected {SUMS[file]}. Get the file of {HUB[0]} again.")
    return tuple(pair for pair in read_pairs(path).pairs if pair.label is not None)


@cache  # a machine without the hub waits once
def _download(file: str) -> Path | str:
    """Return the downloaded file, or why it did not come."""
    from huggingface_hub import hf_hub_download
    from huggingface_hub.errors import EntryNotFoundError, LocalEntryNotFoundError, RepositoryNotFoundError

    said = ""
    for name in HUB:
        try:
            return Path(hf_hub_download(name, file, repo_type="dataset"))
        except LocalEntryNotFoundError as error:  # no connection: the other name would not help
            return f"{name}: {first_line(error)}"
        except (EntryNotFoundError, RepositoryNotFoundError, OSError) as error:
            said = f"{name}: {first_line(error)}"
    return said


def _load(folder: Path, part: str, _: Password) -> Material:
    pairs = load(folder, part)
    return Material(
        rows=lambda seed: pair_rows(load(folder, part, seed=seed), f"csts-reannotated {part}"), texts=len(pairs)
    )


CORPUS = Corpus(
    name="csts-reannotated",
    title="C-STS re-annotated: train with language models, validation by people",
    licence="CC BY 4.0",
    source=f"the hub's dataset {HUB[0]}, github.com/LivNLP/CSTS-reannotation",
    attribution="C-STS re-annotated by Zhang, Zhou and Bollegala (arXiv:2509.14399) and by Tu et al. "
    "(arXiv:2406.03673), from C-STS by Deshpande et al. (arXiv:2305.15093), CC BY 4.0",
    files=tuple(SUMS),
    load=_load,
    locate=locate,
    folder="csts_reannotated",
    parts=PARTS,
    ratings="ratings by people; of the training parts by people and language models",
)
