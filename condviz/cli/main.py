"""The command line: python -m condviz serve | models | score | evaluate | words | ...

User errors print one line on standard error and exit with code 2. Results go to standard output, everything else to
standard error, so that output can be piped.
"""

from __future__ import annotations

import argparse
import difflib
import gc
import os
import re
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn, get_args

import shtab

from condviz import __version__
from condviz.cli.options import STDOUT, add_command, be_quiet, of_function, output_taken, settle, tell
from condviz.errors import CondvizError, ConfigError, require
from condviz.models.registry import load
from condviz.ui import speed

COMMANDS = "inventory score show store train"
"""Files of this folder, in the order of the help: `add_to` of each adds its parsers."""
USER_ERROR, INTERRUPTED, BROKEN_PIPE = 2, 130, 141
"""Exit codes; the last two are what a shell reports for a program that a signal stopped."""
MOVED = {
    "benchmark": "models, gallery or links", "papers": "papers", "deploy": "deploy", "data check-tables": "tables",
}  # fmt: skip
"""Commands that were here once -> words behind `python -m benchmarks`, in a clone."""

EXAMPLES = {
    "": ('score "A man surfs." "A woman skis." --condition "the sport"', "serve"),
    "serve": ("serve --port 8000", "serve --host 0.0.0.0 --log-requests"),
    "completion": ("completion bash > ~/.local/share/bash-completion/completions/condviz",),
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
    "lessons": ("lessons",),
    "train": (
        "train assets/recipes/quick.toml --out my-model",
        "train assets/recipes/quick.toml --set epochs=1 --follow",
    ),
    "jobs": ("jobs", "jobs stop ID"),
}
"""Command -> lines for its help, each without the name of the program."""


def main(arguments: Sequence[str] | None = None, *, parser: Callable[[], argparse.ArgumentParser] | None = None) -> int:
    """Run one command, of this program or of another `parser`, and return its exit code; 0 means that it went well."""
    try:
        words = sys.argv[1:] if arguments is None else arguments
        moved = next((name for name in MOVED if [*words][: len(name.split())] == name.split()), "")
        if parser is None and moved:
            raise ConfigError(f"`{moved}` is in a clone of the project now: python -m benchmarks {MOVED[moved]}.")
        options = (parser or build_parser)().parse_args(words)
        be_quiet(getattr(options, "quiet", False))
        with warnings.catch_warnings():  # each on one line, without the place in our code
            warnings.showwarning = lambda message, *_, **__: tell(" ".join(str(message).split()))
            output_taken(options)  # before the long work
            settle(options)
            options.command(options)
        sys.stdout.flush()
    except CondvizError as error:
        complain(str(error))
        return USER_ERROR
    except KeyboardInterrupt:
        complain("stopped.")
        return INTERRUPTED
    except BrokenPipeError:
        _close_output()
        return BROKEN_PIPE
    except UnicodeEncodeError as error:
        letter = error.object[error.start]
        complain(
            f"The output is {error.encoding}, which has no {letter!r}. Set PYTHONIOENCODING=utf-8, or PYTHONUTF8=1."
        )
        return USER_ERROR
    except OSError as error:  # a full disk, a folder without permission
        complain(f"{error.strerror or error}{f': {error.filename}' if error.filename else ''}. Fix it and try again.")
        _close_output()
        return USER_ERROR
    return 0


def _close_output() -> None:
    """Let what is left go nowhere: the interpreter flushes once more when it ends."""
    with suppress(OSError):
        sys.stdout.flush()
        return
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of all commands."""
    parser = Parser(prog="condviz", description="How similar are two sentences, given a condition?")
    parser.add_argument("--version", action="version", version=f"condviz {__version__}")
    commands: Any = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    serve = add_command(commands, "serve", _serve, of_function(load, only=["backend"], defaults={"backend": None}))
    serve.add_argument("--host", help="address to listen on (default: 127.0.0.1, this machine only)")
    serve.add_argument("--port", type=int, help="port to listen on (default: 7860)")
    serve.add_argument("--mcp", action="store_true", help="offer the endpoints as tools of an MCP server, too")
    serve.add_argument("--log-requests", action="store_true", help="log method, path, status and time; never texts")
    text = "what each view starts with: the best model that answers in time here (auto), the best, or the fast one"
    serve.add_argument("--default", choices=get_args(speed.Preference), help=text)
    text = "addresses or networks of proxies, with commas, whose X-Forwarded-For is believed (default: 127.0.0.1)"
    serve.add_argument("--forwarded-allow-ips", metavar="ADDRESSES", help=text)
    completion = add_command(commands, "completion", _complete)
    completion.add_argument("shell", choices=("bash", "zsh", "tcsh"))
    for name in COMMANDS.split():
        import_module(f"condviz.cli.{name}").add_to(commands)
    return parser


def _complete(options: argparse.Namespace) -> None:
    """Print a script with which a shell completes commands."""
    print(shtab.complete(build_parser(), options.shell))


def _serve(options: argparse.Namespace) -> None:
    """Start the page and print its address."""
    os.environ.setdefault("GRADIO_ANALYTICS_ENABLED", "False")
    port = options.port if options.port is not None else os.environ.get("GRADIO_SERVER_PORT", "7860")
    if not str(port).isdecimal() or not 0 < int(port) < 2**16:
        raise ConfigError(f"The port is {port!r}; a port is a number from 1 to 65535: --port, or GRADIO_SERVER_PORT.")
    if uploads := os.environ.get("GRADIO_TEMP_DIR"):
        try:
            Path(uploads).mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=uploads):
                pass
        except OSError as error:
            raise ConfigError(f"GRADIO_TEMP_DIR, the folder for uploads, cannot be written: {error}.") from error
    if options.forwarded_allow_ips:
        os.environ["FORWARDED_ALLOW_IPS"] = options.forwarded_allow_ips
    if options.default:
        os.environ[speed.VARIABLE] = options.default
    if options.log_requests:
        os.environ["CONDVIZ_LOG"] = "1"
    require("gradio", "app")
    if options.mcp:
        require("mcp", "mcp")
    gc.disable()  # what a page is built of stays: looking for garbage in it takes a tenth of a second
    try:
        from condviz.ui.app import build_app, launch_options

        os.environ["GRADIO_SERVER_NAME"] = options.host or os.environ.get("GRADIO_SERVER_NAME", "127.0.0.1")
        launch = launch_options(None, options.port)
        launch |= {"prevent_thread_lock": True, "quiet": True} | ({"mcp_server": True} if options.mcp else {})
        blocks = build_app()
        try:
            blocks.launch(**launch)
        except OSError as error:
            place = f"{launch['server_name']}:{launch['server_port']}"
            raise ConfigError(
                f"The page cannot be served at {place}: the port is taken, or the host is not this machine. "
                "Choose another --port or --host."
            ) from error
    finally:
        gc.enable()
    if blocks.mcp_error:
        tell(blocks.mcp_error)
    print(f"Running on http://{blocks.server_name}:{blocks.server_port}", flush=True)
    blocks.block_thread()


# ---- the parser: argparse with one-line errors, suggestions, examples, --quiet, and --json alone ---------------------
class _Help(argparse.HelpFormatter):
    """Leaves the lines of examples as they are."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        return text if text.startswith("examples:") else super()._fill_text(text, width, indent)


class Parser(argparse.ArgumentParser):
    """A parser of commands or of one of them; its help ends with the `EXAMPLES` of that command."""

    def __init__(self, **options: Any) -> None:  # noqa: ANN401 - as argparse has them
        name = str(options.get("prog", ""))
        if name.startswith("condviz") and (lines := EXAMPLES.get(name.removeprefix("condviz").strip())):
            options["epilog"] = "\n  condviz ".join(["examples:", *lines])
        super().__init__(**options, formatter_class=_Help)
        text = "no notes and no bars on standard error"
        self.add_argument("-q", "--quiet", action="store_true", default=argparse.SUPPRESS, help=text)

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
