"""The official C-STS files: an archive of the same form, made here, and everything that can be wrong with it."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from condviz.data import csts
from condviz.errors import DataError, MissingExtraError
from condviz.types import Pair

PASSWORD = "a pässword with blanks"
HEADER = "sentence1,sentence2,condition,label\n"
TABLE = HEADER + "".join(
    f"A man runs {i}.,Two men swim {i}.,the sport,1\nA man runs {i}.,Two men swim {i}.,the weather {i % 7},4\n"
    for i in range(40)
)
HIDDEN = HEADER + "a b,c d,x,-1\na b,c d,y,-1\n"


def tar(files: dict[str, str]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for name, text in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(text.encode())
            archive.addfile(member, io.BytesIO(text.encode()))
    return buffer.getvalue()


def encrypt(content: bytes, password: str = PASSWORD) -> bytes:
    """Do what `openssl aes-256-cbc -a -salt -pbkdf2` does."""
    salt = b"\x01\x02\x03\x04\x05\x06\x07\x08"
    secret = hashlib.pbkdf2_hmac("sha256", password.encode(), salt, 10_000, dklen=48)
    padding = 16 - len(content) % 16
    encryptor = Cipher(algorithms.AES(secret[:32]), modes.CBC(secret[32:])).encryptor()
    encrypted = encryptor.update(content + bytes([padding]) * padding) + encryptor.finalize()
    text = base64.b64encode(b"Salted__" + salt + encrypted)
    return b"\n".join(text[start : start + 64] for start in range(0, len(text), 64)) + b"\n"


@pytest.fixture(scope="module")
def archive() -> bytes:
    return encrypt(tar({"csts_train.csv": TABLE, "./csts_validation.csv": TABLE, "csts_test.csv": HIDDEN, "._x": "-"}))


@pytest.fixture
def folder(tmp_path: Path, archive: bytes) -> Path:
    (tmp_path / csts.ARCHIVE).write_bytes(archive)
    return tmp_path


def password() -> str:
    return PASSWORD


def never() -> str:
    pytest.fail("the password was asked for")


def test_the_archive_is_read_in_memory(folder: Path) -> None:
    pairs = csts.load(folder, "train", password=password)
    assert len(pairs) == 80
    assert pairs[0] == Pair("A man runs 0.", "Two men swim 0.", "the sport", 1.0)
    assert [pair.label for pair in csts.load(folder, "test", password=password)] == [None, None]
    assert [path.name for path in folder.iterdir()] == [csts.ARCHIVE]


def test_plain_files_need_no_password(tmp_path: Path) -> None:
    (tmp_path / "csts_validation.csv").write_text(TABLE)
    assert len(csts.load(tmp_path, "dev", password=never)) == 80


@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl is not installed")
def test_what_openssl_makes_is_read(tmp_path: Path) -> None:
    (tmp_path / "csts.tar").write_bytes(tar({"csts_train.csv": TABLE}))
    options = ["-a", "-salt", "-pbkdf2", "-in", "csts.tar", "-out", csts.ARCHIVE, "-pass", f"pass:{PASSWORD}"]
    subprocess.run(["openssl", "aes-256-cbc", *options], cwd=tmp_path, check=True)
    files = csts.decrypt((tmp_path / csts.ARCHIVE).read_bytes(), PASSWORD)
    assert files == {"csts_train.csv": TABLE.encode()}


def test_base64_on_one_line_and_raw_bytes_are_read(archive: bytes) -> None:
    line = archive.replace(b"\n", b"")
    assert csts.decrypt(line, PASSWORD) == csts.decrypt(archive, PASSWORD)
    assert csts.decrypt(base64.b64decode(line), PASSWORD) == csts.decrypt(archive, PASSWORD)


@pytest.mark.parametrize("wrong", ["", "a password", PASSWORD + " ", PASSWORD.upper(), "\udcff"])
def test_a_wrong_password_is_told_from_a_cut_archive(archive: bytes, wrong: str) -> None:
    with pytest.raises(DataError, match=r"The password does not open csts\.tar\.enc\. Check it"):
        csts.decrypt(archive, wrong)


@pytest.mark.parametrize("kept", [0.1, 0.5, 0.9])
@pytest.mark.parametrize("unit", [1, 4, 64])
def test_a_cut_archive_is_told_from_a_wrong_password(archive: bytes, kept: float, unit: int) -> None:
    line = archive.replace(b"\n", b"")
    end = int(len(line) * kept) // unit * unit
    with pytest.raises(DataError, match="is cut off or damaged"):
        csts.decrypt(line[:end], PASSWORD)


def test_a_damaged_character_is_found(archive: bytes) -> None:
    with pytest.raises(DataError, match="is cut off or damaged"):
        csts.decrypt(archive[:200] + b"*" + archive[201:], PASSWORD)


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 a zip", b"<html>not found</html>", b"version https://git-lfs"])
def test_another_file_is_no_archive(content: bytes) -> None:
    with pytest.raises(DataError, match="is not an OpenSSL-encrypted archive"):
        csts.decrypt(content, PASSWORD)


def test_an_archive_without_the_file_names_what_it_has(tmp_path: Path) -> None:
    (tmp_path / csts.ARCHIVE).write_bytes(encrypt(tar({"readme.txt": "x"})))
    with pytest.raises(DataError, match=r"has no csts_train\.csv, only readme\.txt"):
        csts.load(tmp_path, "train", password=password)


def test_missing_files_say_where_to_get_them(tmp_path: Path) -> None:
    with pytest.raises(
        DataError, match=r"neither csts_train\.csv nor csts\.tar\.enc .* github\.com/princeton-nlp/c-sts"
    ):
        csts.load(tmp_path, "train", password=never)


def test_without_cryptography_the_extra_is_named(archive: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cryptography", None)
    with pytest.raises(MissingExtraError, match=r"\.\[csts\]"):
        csts.decrypt(archive, PASSWORD)


def test_labels_as_text_name_the_row(tmp_path: Path) -> None:
    (tmp_path / "csts_train.csv").write_text(HEADER + "a,b,c,2\na,b,d,very similar\n")
    with pytest.raises(DataError, match=r"csts_train\.csv: Row 2 .*column label must be a number .*'very similar'"):
        csts.load(tmp_path, "train", password=never)


def test_the_two_conditions_of_a_pair_are_put_side_by_side() -> None:
    pairs = [Pair("a", "b", "x", 1.0), Pair("c", "d", "x", 5.0), Pair("a", "b", "y", 4.0), Pair("e", "f", "x", 2.0)]
    rows = csts.pair_rows(pairs, "t")
    assert [(row.pair, row.sentence1, row.condition, row.label) for row in rows] == [
        (0, "a", "x", 1.0),
        (0, "a", "y", 4.0),
        (1, "c", "x", 5.0),
        (2, "e", "x", 2.0),
    ]


@pytest.mark.parametrize(
    ("pairs", "message"),
    [
        ([], "t is empty: no row is left"),
        ([Pair("a", "b", "x"), Pair("a", "b", "y")], "t has 2 rows but no label"),
        ([Pair("a", "b", "x", 1.0), Pair("c", "d", "y", 2.0)], "each sentence pair under one condition only"),
        ([Pair("a", "b", "x", 1.0), Pair("a", "b", "x ", 2.0)], "each sentence pair under one condition only"),
    ],
)
def test_tables_without_pairs_say_why(pairs: list[Pair], message: str) -> None:
    with pytest.raises(DataError, match=message):
        csts.pair_rows(pairs, "t")


def test_a_tenth_of_train_is_divided_off_by_sentence_pair(folder: Path) -> None:
    large, small = (csts.load(folder, part, password=password) for part in ("train90", "dev10"))
    assert (len(large), len(small)) == (72, 8)
    assert not {pair.sentence1 for pair in large} & {pair.sentence1 for pair in small}
    assert csts.load(folder, "dev10", password=password) == small


def test_seven_and_three_tenths_of_pairs_are_divided() -> None:
    rows = [Pair(f"a{number // 2}", "b", f"c{number}", 1.0) for number in range(40)]
    chosen, tested = csts.divide(rows, 3)
    assert (len(chosen), len(tested)) == (28, 12)
    assert not {pair.sentence1 for pair in chosen} & {pair.sentence1 for pair in tested}


def test_the_password_comes_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(csts.PASSWORD_VARIABLE, "secret")
    assert csts.environment_password() == "secret"
    monkeypatch.delenv(csts.PASSWORD_VARIABLE)
    with pytest.raises(DataError, match=r"set CONDVIZ_CSTS_PASSWORD"):
        csts.environment_password()


def test_a_submission_has_every_row_of_the_test_part() -> None:
    written = json.loads(csts.format_submission([0.5] * 4731 + [-0.25]))
    assert len(written) == csts.TEST_ROWS
    assert (written["0"], written["4731"]) == (0.5, -0.25)
    with pytest.raises(DataError, match=r"has the 4,732 rows of csts_test.csv, and here are 3"):
        csts.format_submission([0.1, 0.2, 0.3])
