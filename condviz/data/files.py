"""Write a file whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path

from condviz.errors import DataError


def check_target(path: str | Path) -> Path:
    """Check that a file can be written, before the long work that fills it.

    Raises:
        DataError: If its folder does not exist or cannot be written to, or the path is a folder.
    """
    target = Path(path).resolve()
    if target.is_dir():
        raise DataError(f"{path} is a folder. Give the name of a file in it.")
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
    target = check_target(path)
    # A pipe or a device must not be replaced by a file.
    direct = target.exists() and not target.is_file()
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
