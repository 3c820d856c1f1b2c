"""C-STS: the official files, as their owners give them out, and C-STS re-annotated, which may be passed on.

The archive is what `openssl aes-256-cbc -a -salt -pbkdf2` makes of a tar file: base64 of "Salted__", eight bytes of
salt and the encrypted file; key and initial vector come from the password by PBKDF2 with SHA-256 and 10,000 rounds.
Python has PBKDF2 but no AES, so `cryptography` (extra "csts") decrypts, in memory: nothing readable is written.

Whoever uses C-STS agrees not to share its decrypted content or the password.

Source: Deshpande et al. 2023, arXiv:2305.15093, https://github.com/princeton-nlp/c-sts; seen and unseen conditions: Yoo
et al. 2024, arXiv:2403.09490; re-annotated: Zhang, Zhou and Bollegala 2025, arXiv:2509.14399, with the labels of
validation by Tu et al. 2024, arXiv:2406.03673. The owners of C-STS ask that rows are not shown.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import io
import json
import os
import random
import tarfile
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import cast

from condviz.data.corpus import Corpus, Material, Password, RatedPair
from condviz.data.pairs import read_pairs
from condviz.errors import DataError, first_line, require
from condviz.types import Pair

ARCHIVE = "csts.tar.enc"
FILES = {"train": "csts_train.csv", "dev": "csts_validation.csv", "test": "csts_test.csv"}
DIVIDED = ("train90", "dev10")
"""Train without the tenth that is held back, and that tenth."""
PARTS = (*FILES, *DIVIDED)
PASSWORD_VARIABLE = "CONDVIZ_CSTS_PASSWORD"
TEST_ROWS = 4732

_MAGIC, _SALT_BYTES, _ROUNDS = b"Salted__", 8, 10_000
_BLOCK, _TAR_HEADER = 16, 512


def load(folder: str | Path, part: str, *, password: Callable[[], str]) -> tuple[Pair, ...]:
    """Read one part, from its CSV file if that is there, else from the archive, which takes the password.

    "test" has no labels; "train90" and "dev10" are train, divided for the study of unseen conditions (Hyper-CL, section
    5.3) that has dev as its test.

    Raises:
        DataError: If files are missing or damaged, the password is wrong, or a label is no number; says which.
        MissingExtraError: If the archive is needed and `cryptography` is not installed.
    """
    folder = Path(folder)
    if part in DIVIDED:
        return divide(load(folder, "train", password=password))[DIVIDED.index(part)]
    plain, archive = folder / FILES[part], folder / ARCHIVE
    if plain.is_file():
        return read_pairs(plain).pairs
    if not archive.is_file():
        raise DataError(
            f"There is neither {FILES[part]} nor {ARCHIVE} in {folder}. Get the archive from "
            "github.com/princeton-nlp/c-sts and its password from the form named there."
        )
    files = decrypt(archive.read_bytes(), password(), name=str(archive))
    if FILES[part] not in files:
        raise DataError(f"{archive} has no {FILES[part]}, only {', '.join(sorted(files)) or 'no file'}. Get it again.")
    content = io.BytesIO(files[FILES[part]])
    content.name = FILES[part]
    return read_pairs(content).pairs


def format_submission(scores: Iterable[float]) -> str:
    """Format scores of the official test part as the JSON that its owners take: number of the row, from 0 -> score.

    Raises:
        DataError: If there are not as many as the test part has rows.
    """
    content = {str(row): float(score) for row, score in enumerate(scores)}
    check_submission(len(content))
    return json.dumps(content) + "\n"


def check_submission(rows: int) -> None:
    """Raise DataError if a table has not as many rows as the official test part."""
    if rows != TEST_ROWS:
        raise DataError(
            f"A submission has the {TEST_ROWS:,} rows of {FILES['test']}, and here are {rows:,}. Score that."
        )


def environment_password() -> str:
    """Return the password of C-STS from the environment; raises DataError if it is not set."""
    password = os.environ.get(PASSWORD_VARIABLE)
    if not password:
        raise DataError(
            f"{ARCHIVE} needs its password: set {PASSWORD_VARIABLE}, or run `condviz data build csts` in a "
            "terminal, which asks for it."
        )
    return password


def decrypt(content: bytes, password: str, *, name: str = ARCHIVE) -> dict[str, bytes]:
    """Decrypt the files in an archive of the official form, in base64 or raw: file name without folders -> content.

    Raises:
        DataError: If the archive is cut off or no such archive, or the password is wrong.
        MissingExtraError: If `cryptography` is not installed.
    """
    cut = f"{name} is cut off or damaged. Get it again from github.com/princeton-nlp/c-sts."
    if not content.startswith(_MAGIC):
        content = b"".join(content.split())
        if not content.startswith(base64.b64encode(_MAGIC)[:10]):
            raise DataError(f"{name} is not an OpenSSL-encrypted archive. Get {ARCHIVE} again, unchanged.")
        try:
            content = base64.b64decode(content, validate=True)
        except binascii.Error as error:
            raise DataError(cut) from error
    salt, encrypted = content[len(_MAGIC) :][:_SALT_BYTES], content[len(_MAGIC) + _SALT_BYTES :]
    if len(encrypted) < _TAR_HEADER or len(encrypted) % _BLOCK:
        raise DataError(cut)
    require("cryptography", "csts")
    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

    secret = hashlib.pbkdf2_hmac("sha256", password.encode("utf-8", "surrogateescape"), salt, _ROUNDS, dklen=48)
    decryptor = Cipher(algorithms.AES(secret[:32]), modes.CBC(secret[32:])).decryptor()
    data = decryptor.update(encrypted) + decryptor.finalize()
    # The right password gives a tar header, checksum and all, even where the end is missing.
    try:
        tarfile.TarInfo.frombuf(data[:_TAR_HEADER], "utf-8", "surrogateescape")
    except tarfile.HeaderError as error:
        raise DataError(
            f"The password does not open {name}. Check it for blanks and capital letters, or request it again."
        ) from error
    padding = data[-1]
    if not 1 <= padding <= _BLOCK or data[-padding:] != bytes([padding]) * padding:
        raise DataError(cut)
    try:
        with tarfile.open(fileobj=io.BytesIO(data[:-padding])) as archive:
            parts = {Path(member.name).name: archive.extractfile(member) for member in archive if member.isfile()}
            files = {name: file.read() for name, file in parts.items() if file is not None}
    except tarfile.TarError as error:
        raise DataError(cut) from error
    return {file: found for file, found in files.items() if not file.startswith(".")}


def pair_rows(pairs: Sequence[Pair], name: str) -> list[RatedPair]:
    """Arrange the two conditions of each sentence pair side by side, with the label as it is and no aspect.

    Sentence pairs keep their order; behind them come rows without a partner, each with a number of its own.

    Raises:
        DataError: If there is no row, no label, or no sentence pair with two conditions.
    """
    if not pairs:
        raise DataError(f"{name} is empty: no row is left. Loosen the filter, or take another part.")
    groups: dict[tuple[str, str], list[Pair]] = defaultdict(list)
    for pair in pairs:
        if pair.label is not None:
            groups[pair.sentence1, pair.sentence2].append(pair)
    if not groups:
        raise DataError(f"{name} has {len(pairs):,} rows but no label (the labels of C-STS's test are kept secret).")
    twos = [two for group in groups.values() for two in zip(group[::2], group[1::2], strict=False)]
    twos = [(first, second) for first, second in twos if first.condition.strip() != second.condition.strip()]
    paired = {id(row) for two in twos for row in two}
    alone = [(row,) for group in groups.values() for row in group if id(row) not in paired]
    if not twos:
        raise DataError(
            f"{name} has {len(pairs):,} rows, but each sentence pair under one condition only. Training on pairs needs "
            "two conditions for the same two sentences: add a second row for each, or train with the loss mse alone."
        )
    rows = []
    for number, group in enumerate([*twos, *alone]):
        family = f"{name}:{number}"
        for row in group:
            label = cast("int", row.label)  # those without one are out
            rows.append(RatedPair(number, row.sentence1, row.sentence2, row.condition, label, "", family, family))
    return rows


def divide(pairs: Sequence[Pair], tenths: int = 1, *, seed: int = 0) -> tuple[tuple[Pair, ...], tuple[Pair, ...]]:
    """Hold back some tenths of the rows, with one seed always the same, by sentence pair.

    Hyper-CL holds one of train back to choose by, since official validation rows are the test in its study of unseen
    conditions: a validation row is unseen if its condition does not occur in the nine tenths. CASE chooses on seven
    tenths of the re-annotated rows and tests on three.
    """
    keys = list(dict.fromkeys((pair.sentence1, pair.sentence2) for pair in pairs))
    held = set(random.Random(seed).sample(keys, len(keys) * tenths // 10))
    sides = [[pair for pair in pairs if ((pair.sentence1, pair.sentence2) in held) == side] for side in (False, True)]
    return tuple(sides[0]), tuple(sides[1])


def _load(folder: Path, part: str, password: Password) -> Material:
    """Read one part; its rows have their own pairs, and the seed decides nothing."""
    pairs = load(folder, part, password=password)
    return Material(rows=lambda seed: pair_rows(pairs, f"csts {part}"), texts=len(pairs))


CORPUS = Corpus(
    name="csts",
    title="C-STS: the official files",
    licence="on request, not to be shared decrypted",
    source="github.com/princeton-nlp/c-sts",
    attribution="nothing: C-STS must not be passed on decrypted",
    files=(ARCHIVE, *FILES.values()),
    load=_load,
    folder="csts",
    parts=PARTS,
    ratings="ratings by people",
)


# ---- re-annotated: train corrected and rated anew with language models, validation rated anew by people --------------

HUB = ("LivNLP/C-STS-Reannotated", "LivNLP/C-STS_updated")
"""Both names of the dataset. What is read is pinned by the sums below, whatever the revision."""
TRAIN, VALIDATION = "csts_train_reannotated.csv", "csts_validation_reannotated.csv"
SUMS = {
    TRAIN: "118ef935443531a60f3dd5652afd946869f47b134c83fd8da38779912167b652",
    VALIDATION: "84602c1bcbbe1e6410a78c9cb1cb0f3dac4bf48c0c55ad42dc19558370e4821f",
}
CHOSEN = ("reannotated70", "reannotated30")
"""Validation divided to choose and to test, as in the CASE paper."""


def load_reannotated(folder: str | Path, part: str, *, seed: int = 0) -> tuple[Pair, ...]:
    """Read one part of `REANNOTATED`, without the rows that cannot be judged; what is not in the folder is downloaded.

    Of validation, 2,620 rows remain, the set of the CASE paper. Conditions of 2,025 of them occur in train, too, and a
    sentence of 1,212; "validation-unshared" leaves the latter out. The seed draws the sentence pairs of "reannotated70"
    and "reannotated30" alone. Raises DataError if a file is neither here nor on the hub, or is another one.
    """
    pairs = _read(Path(folder), TRAIN if part in ("train", *DIVIDED) else VALIDATION)
    if part in DIVIDED:
        return divide(pairs)[DIVIDED.index(part)]
    if part in CHOSEN:
        return divide(pairs, 3, seed=seed)[CHOSEN.index(part)]
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


def _load_reannotated(folder: Path, part: str, _: Password) -> Material:
    pairs = load_reannotated(folder, part)
    return Material(
        rows=lambda seed: pair_rows(load_reannotated(folder, part, seed=seed), f"csts-reannotated {part}"),
        texts=len(pairs),
    )


REANNOTATED = Corpus(
    name="csts-reannotated",
    title="C-STS re-annotated: train with language models, validation by people",
    licence="CC BY 4.0",
    source=f"the hub's dataset {HUB[0]}, github.com/LivNLP/CSTS-reannotation",
    attribution="C-STS re-annotated by Zhang, Zhou and Bollegala (arXiv:2509.14399) and by Tu et al. "
    "(arXiv:2406.03673), from C-STS by Deshpande et al. (arXiv:2305.15093), CC BY 4.0",
    files=tuple(SUMS),
    load=_load_reannotated,
    locate=locate,
    folder="csts_reannotated",
    parts=("train", *DIVIDED, "validation", "validation-unshared", *CHOSEN),
    ratings="ratings by people; of the training parts by people and language models",
)
