"""The command `serve`."""

from __future__ import annotations

import argparse
import os

from condviz.errors import ConfigError, require


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to a parser."""
    parser = commands.add_parser("serve", help="start the page", description="Start the page and print its address.")
    parser.add_argument("--host", help="address to listen on (default: 127.0.0.1, this machine only)")
    parser.add_argument("--port", type=int, help="port to listen on (default: 7860)")
    parser.set_defaults(command=run)


def run(options: argparse.Namespace) -> None:
    """Serve the page until the process is stopped.

    Raises:
        ConfigError: If the port is taken or the host is not this machine.
    """
    os.environ.setdefault("GRADIO_ANALYTICS_ENABLED", "False")
    require("gradio", "app")
    from condviz.ui.app import build_app, launch_options

    launch = launch_options(options.host, options.port)
    try:
        build_app().launch(**launch)
    except OSError as error:
        place = f"{launch['server_name']}:{launch['server_port']}"
        raise ConfigError(
            f"The page cannot be served at {place}: the port is taken, or the host is not this machine. "
            "Choose another --port or --host."
        ) from error
