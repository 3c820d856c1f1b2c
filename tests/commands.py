"""Commands of `condviz` and of `python -m benchmarks`, run in the process of the test."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable
from typing import NamedTuple

import pytest


class Ended(NamedTuple):
    """How a command has ended, and what it has written."""

    code: int
    out: str
    err: str


class Command:
    """Run a command by calling this with its words; it has to go well."""

    def __init__(
        self, main: Callable[[list[str]], int], capsys: pytest.CaptureFixture[str], patch: pytest.MonkeyPatch
    ) -> None:
        self._main, self._capsys, self._patch = main, capsys, patch

    def __call__(self, *words: object, stdin: str | None = None) -> Ended:
        ended = self.run(*words, stdin=stdin)
        assert ended.code == 0, ended.err
        return ended

    def refuse(self, *words: object, stdin: str | None = None) -> str:
        """Run a command that cannot do what is asked: exit code 2, and one line, which is returned."""
        code, out, err = self.run(*words, stdin=stdin)
        error = err.splitlines()[-1]
        assert (code, out, err.count("condviz: ")) == (2, "", 1), err
        assert error.startswith("condviz: ")
        return error

    def run(self, *words: object, stdin: str | None = None) -> Ended:
        """Run a command that may end in any way; what was written before is forgotten."""
        self._capsys.readouterr()
        if stdin is not None:
            self._patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin.encode())))
        try:
            code = self._main([str(word) for word in words])
        except SystemExit as exit_:  # of argparse
            code = int(exit_.code or 0)
        return Ended(code, *self._capsys.readouterr())
