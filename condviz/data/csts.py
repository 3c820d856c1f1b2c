"""C-STS: the official files, as their owners give them out, and the re-annotated labels of L-CSTS.

The archive is what `openssl aes-256-cbc -a -salt -pbkdf2` makes of a tar file: base64 of "Salted__", eight bytes of
salt and the encrypted file; key and initial vector come from the password by PBKDF2 with SHA-256 and 10,000 rounds.
Python has PBKDF2 but no AES, so `cryptography` (extra "csts") decrypts, in memory: nothing readable is written.

Whoever uses C-STS agrees not to share its decrypted content or the password.

Source: Deshpande et al. 2023, arXiv:2305.15093, https://github.com/princeton-nlp/c-sts; labels: Tu et al. 2024,
arXiv:2406.03673, https://github.com/brandeis-llc/L-CSTS; seen and unseen conditions: Yoo et al. 2024, arXiv:2403.09490.
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
from dataclasses import replace
from pathlib import Path
from typing import cast

from condviz.data.corpus import Corpus, Material, Password, RatedPair, read_release
from condviz.data.pairs import read_pairs
from condviz.errors import DataError, require
from condviz.types import Pair

ARCHIVE = "csts.tar.enc"
FILES = {"train": "csts_train.csv", "dev": "csts_validation.csv", "test": "csts_test.csv"}
REANNOTATED = ("csts-val-reannotated.tsv", "csts_dev_reannotated.tsv")
"""Names of the L-CSTS file: in its repository, and in its README."""
_SHARES = {
    "train90": ("train", 1, 0),
    "dev10": ("train", 1, 1),
    "reannotated70": ("reannotated", 3, 0),
    "reannotated30": ("reannotated", 3, 1),
}
"""Part -> what it is a share of, tenths that are held back, and which of the two it is."""
PARTS = (*FILES, "reannotated", *_SHARES)
PASSWORD_VARIABLE = "CONDVIZ_CSTS_PASSWORD"
TEST_ROWS = 4732

_MAGIC, _SALT_BYTES, _ROUNDS = b"Salted__", 8, 10_000
_BLOCK, _TAR_HEADER = 16, 512


def load(folder: str | Path, part: str, *, password: Callable[[], str]) -> tuple[Pair, ...]:
    """Read one part, from its CSV file if that is there, else from the archive.

    Args:
        folder: Where the files are.
        part: "train", "dev" (official validation), "test" (no labels), or "reannotated": dev with the labels of L-CSTS,
            without the rows that its authors found invalid; "train90" and "dev10": train, divided for the study of
            unseen conditions (Hyper-CL, section 5.3), with dev as its test; "reannotated70" and "reannotated30":
            reannotated, divided to choose and to test as CASE does.
        password: Asked for the password of the archive, if the archive is needed.

    Raises:
        DataError: If files are missing or damaged, the password is wrong, or a label is no number; says which.
        MissingExtraError: If the archive is needed and `cryptography` is not installed.
    """
    folder = Path(folder)
    if part == "reannotated":
        path = next((folder / name for name in REANNOTATED if (folder / name).is_file()), None)
        if path is None:
            raise DataError(f"There is no {REANNOTATED[0]} in {folder}. Get it from github.com/brandeis-llc/L-CSTS.")
        return reannotate(load(folder, "dev", password=password), path)
    if part in _SHARES:
        whole, tenths, which = _SHARES[part]
        return divide(load(folder, whole, password=password), tenths)[which]
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


def reannotate(pairs: Sequence[Pair], path: str | Path) -> tuple[Pair, ...]:
    """Replace official validation labels by those of L-CSTS, joined by position; drop rows labelled -1 (invalid).

    Raises:
        DataError: If the file cannot be read, has another number of rows, or a label is not -1 or from 1 to 5.
    """
    rows = read_release(Path(path), ["reannotated-label"], advice="Get it from github.com/brandeis-llc/L-CSTS.")
    labels = [row["reannotated-label"] for _, row in rows]
    if len(labels) != len(pairs):
        raise DataError(
            f"{path} has {len(labels):,} labels, but the official validation file has {len(pairs):,} rows. "
            "They are joined by position: use both files whole and in their order."
        )
    values = [_label(label, f"{path}, row {number}") for number, label in enumerate(labels, start=1)]
    return tuple(replace(pair, label=value) for pair, value in zip(pairs, values, strict=True) if value is not None)


def _label(text: str | None, place: str) -> float | None:
    try:
        value = float(text or "")
    except ValueError:
        value = 0.0
    if value == -1:
        return None
    if not 1 <= value <= 5:
        raise DataError(f"{place}, column reannotated-label: {str(text)[:40]!r} is not a number from 1 to 5, nor -1.")
    return value


def pair_rows(pairs: Sequence[Pair], name: str) -> list[RatedPair]:
    """Arrange the two conditions of each sentence pair side by side.

    Returns:
        The rated rows with the label as it is and no aspect: two rows a pair, side by side, sentence pairs in their
        order; behind them those without a partner, each with a number of its own.

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
    title="C-STS: the official files, and L-CSTS labels",
    licence="on request, not to be shared decrypted",
    source="github.com/princeton-nlp/c-sts, github.com/brandeis-llc/L-CSTS",
    attribution="nothing: C-STS must not be passed on decrypted",
    files=(ARCHIVE, *FILES.values(), REANNOTATED[0]),
    load=_load,
    folder="csts",
    parts=PARTS,
    ratings="ratings by people",
)
