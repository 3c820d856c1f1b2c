"""The command line: python -m condviz serve | models | score | evaluate | words | ...

User errors print one line on standard error and exit with code 2. Results go to standard output, everything else to
standard error, so that output can be piped.
"""

from __future__ import annotations

import argparse
import gc
import os
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import Any

import shtab

from condviz.cli.options import backend, be_quiet, on_encoder, output_taken, tell
from condviz.cli.parser import USER_ERROR, Parser, complain
from condviz.errors import CondvizError, ConfigError, require

COMMANDS = "deploy models score errors words map store links data train"
"""Files of this folder, in the order of the help: `add_to` of each adds its parsers."""
INTERRUPTED, BROKEN_PIPE = 130, 141
"""Exit codes beside USER_ERROR: what a shell reports for a program that a signal stopped."""
MOVED = {"benchmark": "models, gallery or links", "papers": "papers"}
"""Commands that were here once -> words behind `python -m benchmarks`, in a clone."""


def main(arguments: Sequence[str] | None = None, *, parser: Callable[[], argparse.ArgumentParser] | None = None) -> int:
    """Run one command.

    Args:
        arguments: Words after the program's name; None takes them from the process.
        parser: Makes the parser of other commands than these; each sets `command`.

    Returns:
        Exit code: 0; 2 after a message about wrong input; 130 after Ctrl-C; 141 if the reader of a pipe went away.
    """
    be_quiet(False)
    try:
        words = sys.argv[1:] if arguments is None else arguments
        if parser is None and words and words[0] in MOVED:
            raise ConfigError(f"`{words[0]}` is in a clone of the project now: python -m benchmarks {MOVED[words[0]]}.")
        options = (parser or build_parser)().parse_args(words)
        with _short_warnings():
            output_taken(options)  # before the long work
            on_encoder(options)
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
    from condviz.version import __version__

    parser = Parser(prog="condviz", description="How similar are two sentences, given a condition?")
    parser.add_argument("--version", action="version", version=f"condviz {__version__}")
    commands: Any = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    serve = commands.add_parser(
        "serve", help="start the page", description="Start the page and print its address.", parents=[backend()]
    )
    serve.add_argument("--host", help="address to listen on (default: 127.0.0.1, this machine only)")
    serve.add_argument("--port", type=int, help="port to listen on (default: 7860)")
    serve.add_argument("--mcp", action="store_true", help="offer the endpoints as tools of an MCP server, too")
    serve.add_argument("--log-requests", action="store_true", help="log method, path, status and time; never texts")
    text = "addresses or networks of proxies, with commas, whose X-Forwarded-For is believed (default: 127.0.0.1)"
    serve.add_argument("--forwarded-allow-ips", metavar="ADDRESSES", help=text)
    serve.set_defaults(command=_serve)
    completion = commands.add_parser(
        "completion", help="print a script that completes commands", description="Print a script for a shell to read."
    )
    completion.add_argument("shell", choices=("bash", "zsh", "tcsh"))
    completion.set_defaults(command=lambda options: print(shtab.complete(parser, options.shell)))
    for name in COMMANDS.split():
        import_module(f"condviz.cli.{name}").add_to(commands)
    return parser


def _serve(options: argparse.Namespace) -> None:
    """Serve the page until the process is stopped."""
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


@contextmanager
def _short_warnings() -> Iterator[None]:
    """Print warnings, for instance about truncated texts, on one line without the place in our code."""
    with warnings.catch_warnings():
        warnings.showwarning = lambda message, *_, **__: tell(" ".join(str(message).split()))
        yield
