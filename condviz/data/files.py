"""Paths and URLs; files that are written whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path

from condviz.errors import DataError, first_line, require

ENDINGS = (".parquet", ".arrow", ".feather", ".csv", ".tsv", ".jsonl", ".ndjson", ".json", ".txt")
"""Of the files that are taken from a folder or a dataset of the hub; of the latter the first kind that is there."""
HUB = "hf://datasets/"


def open_path(path: str | Path) -> Path:
    """Return a path; for a URL such as s3://bucket/texts.csv a universal_pathlib.UPath, which is used like one.

    Raises:
        DataError: If it cannot be a path, or nothing that is installed knows this kind of URL.
        MissingExtraError: If it is a URL and universal_pathlib is not installed.
    """
    if "://" not in str(path):
        try:
            Path(path).exists()
            return Path(path)
        except TypeError:
            raise DataError(f"A file or a folder is expected, got {type(path).__name__}. Write it to a file.") from None
        except OSError as error:  # a table itself instead of its path: the name is too long
            what = f"{' '.join(str(path)[:60].split())!r} cannot be opened as a path"
            raise DataError(f"{what} ({error.strerror}). Give a path or an open file.") from error
    upath = require("upath", "scale")
    try:
        found = upath.UPath(path)
        _ = found.fs  # raises if the package of the backend is missing
        return Path(found.path) if found.protocol in ("file", "local") else found
    except (ImportError, ValueError, OSError) as error:
        raise DataError(f"{path} cannot be opened ({error}). Install what fsspec needs for it.") from error


def find_files(source: str | Path) -> list[Path]:
    """Return the files of a path, a folder, a URL or, only where it is given as a text, a dataset of the hub.

    Raises:
        DataError: If there is none.
    """
    if isinstance(source, str) and source.startswith(HUB):
        return _fetch(source.removeprefix(HUB))
    path = open_path(source)
    if path.is_dir():
        files = sorted(file for file in path.iterdir() if file.suffix.lower() in ENDINGS)
        if not files:
            raise DataError(f"There is no file of texts in {path}. Kinds that are read: {', '.join(ENDINGS)}.")
        return files
    if not path.exists():
        raise DataError(f"{path} does not exist. Pass a file of texts, or a folder of such files.")
    return [path]


def _fetch(name: str) -> list[Path]:
    """Download the files of a dataset that can be read, all of one kind. No code of a dataset is run."""
    import huggingface_hub
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError
    from huggingface_hub.utils import filter_repo_objects

    owner, _, rest = name.partition("/")
    dataset, _, part = rest.partition("/")
    wanted = [part, f"{part.rstrip('/')}/*"] if part else [f"*{ending}" for ending in ENDINGS]
    try:
        found = huggingface_hub.snapshot_download(f"{owner}/{dataset}", repo_type="dataset", allow_patterns=wanted)
    except HFValidationError as error:
        raise DataError(f"{name[:80]} is not the name of a dataset. Write {HUB}OWNER/NAME.") from error
    except (HfHubHTTPError, OSError) as error:
        raise DataError(
            f"{name[:80]} is not a file, and could not be fetched as a dataset of the hub ({first_line(error)}). "
            "Check the name and the network, or download its files and pass their folder."
        ) from error
    folder = Path(found)  # in which files of an earlier call can lie
    inside = (file.relative_to(folder).as_posix() for file in sorted(folder.rglob("*")) if file.is_file())
    files = [folder / file for file in filter_repo_objects(inside, allow_patterns=wanted)]
    for ending in ENDINGS:  # many datasets hold the same rows in several kinds
        if chosen := [file for file in files if file.suffix.lower() == ending]:
            return chosen
    raise DataError(f"{HUB}{name} has no file of texts there. Kinds that are read: {', '.join(ENDINGS)}.")


def check_target(path: str | Path) -> Path:
    """Check that a file can be written, before the long work that fills it.

    Raises:
        DataError: If its folder does not exist or cannot be written to, or the path is a folder.
    """
    target = Path(path)
    if target.is_dir():
        raise DataError(f"{path} is a folder. Give the name of a file in it.")
    if target.exists() and not target.is_file():  # a pipe or a device; what /dev/stdout leads to has no place
        return target
    target = target.resolve()
    if not target.parent.is_dir():
        raise DataError(f"The folder of {path} does not exist. Create it first: mkdir -p '{Path(path).parent}'")
    if not os.access(target.parent, os.W_OK) and not os.access(target, os.W_OK):
        raise DataError(f"{path} cannot be written: no permission in {target.parent}. Choose another folder.")
    return target


def write_text(path: str | Path, text: str) -> None:
    """Write UTF-8 text; a reader sees the old file or the new one, never half of it.

    Raises:
        DataError: If the file cannot be written.
    """
    if not isinstance(path, str | Path):  # what `open_path` made of a URL
        path.write_text(text, encoding="utf-8")
        return
    target = check_target(path)
    # A pipe or a device must not be replaced by a file; nor can a file be, in a folder without permission.
    direct = target.exists() and not (target.is_file() and os.access(target.parent, os.W_OK))
    written = target if direct else target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        written.write_text(text, encoding="utf-8", newline="")
        if not direct:
            os.replace(written, target)
    except OSError as error:
        raise DataError(f"{path} could not be written: {error.strerror}. Free some space or choose another.") from error
    finally:
        if not direct:
            written.unlink(missing_ok=True)


def read_utf8(path: Path, advice: str) -> str:
    """Read a UTF-8 file, with or without a byte order mark; all line breaks become line feeds.

    Raises:
        DataError: If it cannot be read, with this advice, or is not UTF-8.
    """
    try:
        return path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}. {advice}") from error
    except UnicodeDecodeError as error:
        raise DataError(f"{path} is not UTF-8 (byte {error.start:,}). Save it as UTF-8.") from error
