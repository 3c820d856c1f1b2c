"""A picture of every page for the documents: python -m benchmarks.screenshots [--out FOLDER] [--tab ID ...].

Starts the page on a free port, opens each tab in Chromium (light, 1280 x 800) and waits until it shows its first
result. Needs what the tests need: a Chromium on this machine, or playwright's own.
"""

from __future__ import annotations

import argparse
import io
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from PIL import Image

from benchmarks.page import serve
from condviz.paths import ASSETS
from condviz.ui.app import TABS
from condviz.ui.state import path_of

if TYPE_CHECKING:
    from playwright.sync_api import Page

WIDTH, HEIGHT = 1280, 800
COLOURS, AREAS = 256, 4
MAX_BYTES = 150_000
STILL_MS, MOVES = 700, 20
"""Time between two looks at a page, and how often it may have changed; after that it is taken as it is."""
PATIENCE_MS = 180_000
"""The first result of a tab waits for its model, on a busy machine for minutes."""
READY = "#cv-page :is([data-ready=true], .cv-headline):visible"
IDLE = "() => ![...document.querySelectorAll('[data-ready=false], .cv-notice-busy')].some((e) => e.checkVisibility())"
LOADED = "() => /All \\d+ models are loaded/.test(document.querySelector('#cv-status')?.textContent ?? '')"
PREVIEW = ASSETS / "images" / "preview.png"
"""What other sites show of a link to the page: the first tab."""
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


def take(address: str, folder: Path, tabs: Sequence[str]) -> None:
    """Save a picture of each tab as FOLDER/TAB.png; that of the first also as the preview of links.

    Args:
        address: Of the running page.
        folder: Where the pictures go.
        tabs: Ids of tabs.

    Raises:
        RuntimeError: If a picture has more than `MAX_BYTES`.
    """
    from playwright.sync_api import sync_playwright

    folder.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        context = browser.new_context(viewport={"width": WIDTH, "height": HEIGHT}, reduced_motion="reduce")
        context.set_default_timeout(PATIENCE_MS)
        page = context.new_page()
        for tab in tabs:
            open_tab(page, f"{address}{path_of(tab)}?__theme=light")
            content = compress(picture(page))
            if len(content) > MAX_BYTES:
                raise RuntimeError(f"The picture of {tab} has {len(content):,} bytes, allowed are {MAX_BYTES:,}.")
            (folder / f"{tab}.png").write_bytes(content)
            if tab == TABS[0].id:
                PREVIEW.write_bytes(content)
            print(f"{folder / tab}.png: {len(content):,} bytes", flush=True)
        browser.close()


def open_tab(page: Page, address: str) -> None:
    """Open a tab and wait until all models are loaded and it shows a result."""
    page.goto(address, wait_until="commit")
    page.wait_for_function(LOADED)
    page.locator(READY).first.wait_for()
    page.wait_for_function(IDLE)
    page.evaluate("document.fonts.ready")


def picture(page: Page) -> bytes:
    """Take a screenshot once nothing moves any more: two in a row are equal."""
    before = page.screenshot()
    for _ in range(MOVES):
        page.wait_for_timeout(STILL_MS)
        now = page.screenshot()
        if now == before:
            break
        before = now
    return before


def compress(picture: bytes) -> bytes:
    """Reduce a PNG to a palette that keeps rare colours; it hardly shows, and takes a third of the bytes."""
    whole = Image.open(io.BytesIO(picture)).convert("RGB")
    reduced = whole.quantize(COLOURS, method=Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)
    # Large areas keep their own colour: there a tint would show.
    palette, entries, pixels = reduced.getpalette(), np.asarray(reduced), np.asarray(whole)
    for _, colour in sorted(whole.getcolors(whole.width * whole.height))[-AREAS:]:
        entry = int(entries[(pixels == colour).all(axis=-1)][0])
        palette[3 * entry : 3 * entry + 3] = colour
    reduced.putpalette(palette)
    found = io.BytesIO()
    reduced.save(found, "PNG", optimize=True)
    return found.getvalue()


def main() -> None:
    """Run from the command line."""
    known = [tab.id for tab in TABS]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("docs/images"), help="folder (default: %(default)s)")
    parser.add_argument("--tab", action="append", choices=known, help="may be repeated (default: all)")
    parser.add_argument("--port", type=int, default=0, help="of the page (default: a free one)")
    chosen = parser.parse_args()
    with serve(chosen.port) as address:
        try:
            take(address, chosen.out, chosen.tab or known)
        except RuntimeError as error:
            sys.exit(str(error))


if __name__ == "__main__":
    main()
