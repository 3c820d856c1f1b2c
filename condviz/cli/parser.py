"""The parser of commands: argparse with one-line errors, suggestions, examples, --quiet, and --json alone."""

from __future__ import annotations

import argparse
import difflib
import re
import sys
from collections.abc import Iterable, Iterator
from typing import Any, NoReturn

from condviz.cli.options import STDOUT, be_quiet

USER_ERROR = 2
EXAMPLES = {
    "": ('score "A man surfs." "A woman skis." --condition "the sport"', "serve"),
    "serve": ("serve --port 8000", "serve --host 0.0.0.0 --log-requests"),
    "completion": ("completion bash > ~/.local/share/bash-completion/completions/condviz",),
    "deploy": ("deploy OWNER/NAME", "deploy OWNER/NAME --out space --hardware zero-a10g"),
    "models": ("models", "models --json"),
    "push": ("push my-model OWNER/NAME --private",),
    "calibrate": ("calibrate --model bi-encoder",),
    "score": (
        'score "A man surfs." "A woman skis." --condition "the sport" --condition "the mood" --model csr',
        "score - --model bi-encoder < pairs.csv > scored.csv",
    ),
    "evaluate": (
        "evaluate --model bi-encoder --model csr --data pairs.csv",
        "evaluate --model csr --data tables:test --quiet --json - | jq .reports",
    ),
    "errors": ("errors pairs.csv --model bi-encoder --html report.html", "errors scenes:test --model csr --json"),
    "words": (
        'words "A man is surfing." --condition "the sport"',
        'words "A man is surfing." --condition "the sport" --model hyper-cl --csv',
    ),
    "map": ("map scenes --html map.html", 'map texts.csv --condition "the sport" --method pca --json map.json'),
    "search": ('search scenes "A man is surfing." --condition "the sport" -k 5',),
    "store": ("store build reviews.csv --column text --out reviews.store", 'store groups reviews.store "the food"'),
    "store build": ("store build reviews.csv --column text --out reviews.store",),
    "store append": ("store append more.csv reviews.store",),
    "store info": ("store info reviews.store --json",),
    "store groups": ('store groups scenes "the sport" --groups 6',),
    "store cross": ('store cross scenes "the sport" "the mood"',),
    "store sorts": ('store sorts scenes --condition "the sport" --condition "the mood"',),
    "store twins": ('store twins scenes "the sport" "the mood" -k 5',),
    "links": ("links bee produces", "links honey produces --inverse"),
    "data": ("data", "data build scenes --split dev --out dev.csv"),
    "data build": ("data build scenes --split dev --out -",),
    "data check-tables": ("data check-tables",),
    "lessons": ("lessons",),
    "train": (
        "train assets/recipes/quick.toml --out my-model",
        "train assets/recipes/quick.toml --set epochs=1 --follow",
    ),
    "jobs": ("jobs", "jobs stop ID"),
}
"""Command -> lines for its help, each without the name of the program."""


class _Help(argparse.HelpFormatter):
    """Leaves the lines of examples as they are."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        return text if text.startswith("examples:") else super()._fill_text(text, width, indent)


class _Quiet(argparse.Action):
    def __call__(self, *_: object) -> None:
        be_quiet(True)


class Parser(argparse.ArgumentParser):
    """A parser of commands or of one of them; its help ends with the `EXAMPLES` of that command."""

    def __init__(self, **options: Any) -> None:  # noqa: ANN401 - as argparse has them
        name = str(options.get("prog", ""))
        if name.startswith("condviz") and (lines := EXAMPLES.get(name.removeprefix("condviz").strip())):
            options["epilog"] = "\n  condviz ".join(["examples:", *lines])
        super().__init__(**options, formatter_class=_Help)
        text = "no notes and no bars on standard error"
        self.add_argument("-q", "--quiet", action=_Quiet, nargs=0, default=argparse.SUPPRESS, help=text)

    def parse_known_args(  # pyright: ignore[reportIncompatibleMethodOverride] (overloads that say the same)
        self,
        args: Iterable[str] | None = None,
        namespace: Any = None,  # noqa: ANN401
    ) -> tuple[Any, list[str]]:
        """Parse as argparse does, with a --json that takes no file from the words behind it (see `options.form`)."""
        words = list(sys.argv[1:] if args is None else args)
        option: Any = self._option_string_actions.get("--json")
        if getattr(option, "alone", False) and "--json" in words:
            place = words.index("--json")
            dash = option.dash and words[place + 1 : place + 2] == [STDOUT]
            words[place : place + 1 + dash] = [f"--json={STDOUT}"]
        return super().parse_known_args(words, namespace)

    def error(self, message: str) -> NoReturn:
        """Print what is wrong, what may have been meant and where the options are described; exit with code 2."""
        wrong, known = "", []
        if choice := re.search(r"invalid choice: '(.*?)' \(choose from (.*)\)", message):
            wrong, known = choice[1], re.findall(r"[\w.-]+", choice[2])
            message = f"there is no {wrong!r}; choose from {', '.join(known)}"
        elif option := re.search(r"unrecognized arguments: (?:.* )?(--[\w-]+)", message):
            wrong = option[1]
            known = {name for one in _parsers(self) for name in one._option_string_actions if name.startswith("--")}
        close = difflib.get_close_matches(wrong, sorted(known), 2, cutoff=0.7)
        meant = f". Did you mean {' or '.join(close)}?" if close else "."
        complain(f"{message}{meant} See: {self.prog} --help")
        sys.exit(USER_ERROR)


def complain(message: str) -> None:
    """Print an error, on one line."""
    print(f"condviz: {' '.join(message.split())}", file=sys.stderr)


def _parsers(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    yield parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for one in action.choices.values():
                yield from _parsers(one)
