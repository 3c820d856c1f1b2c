"""Pictures of every page, to be looked at: python -m benchmarks.screens [--out FOLDER] [--tab ID ...] [--address URL].

Each page in light and dark at 1440, 1024 and 380 pixels, with an error, with a table of the visitor's own, and with
scroll bars as Windows draws them. A page that is wider than its window, or has a bar that scrolls nothing, fails the
command. With `--docs` it takes the pictures of the documents instead: light, 1280 x 800, small files.

Starts the page on a free port, unless it is told the address of one that runs. Needs what the tests need: a Chromium on
this machine, or playwright's own.
"""

from __future__ import annotations

import argparse
import io
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from PIL import Image

from benchmarks.page import serve
from condviz.data.examples import load_examples
from condviz.evaluation.scoreboard import best_encoder
from condviz.models.registry import describe, list_models
from condviz.paths import ASSETS
from condviz.ui.app import TABS
from condviz.ui.state import pair_link, path_of

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

LOOKS = {f"{theme}-{width}": (theme, width) for theme in ("light", "dark") for width in (1440, 1024, 380)}
HEIGHTS = {1440: 900, 1024: 768, 380: 800}
LONG = "word+" * 1_500
ERRORS = {
    "compare": f"?s1={LONG}&s2=Two&c=the+sport", "words": f"?s1={LONG}&c=the+sport",
    "map": "?from=table", "search": "?q=One&in=lost", "errors": "?ed=upload", "learn": "?lesson=none",
    "links": "?le=asdfgh+qwer", "train": "?run=none", "models": "?m=none",
}  # fmt: skip
"""Links that show what a page says of something it cannot do."""
WAYS = {
    "compare": "#cv-compare-table > button", "search": "#cv-search-own > button", "map": "label:has-text('My table')",
    "errors": "", "train": "", "links": "#cv-links-own > button",
}  # fmt: skip
"""Pages that take a file -> what has to be pressed before."""
PAIRS = "sentence1,sentence2,condition,label\n" + "".join(
    f"{one} {three} {place}.,{two} {three} {other}.,{asked},{rating}\n"
    for one, two in (("Two men", "Two women"), ("A girl", "Three girls"), ("Some people", "A crowd"))
    for three in ("play tennis", "row a boat", "cook soup")
    for place, other in (("at dawn", "at noon"), ("in the park", "in the park"))
    for asked, rating in (("the activity", 5), ("the place or time", 5 if place == other else 1))
)
GRAPH = "".join(f"{one}\tproduces\t{two}\n" for one, two in (("cow", "milk"), ("bee", "honey"), ("hen", "eggs")))
FAULTS = """() => [...document.querySelectorAll("body *")].flatMap((e) => {
  if (!e.checkVisibility()) return [];
  const style = getComputedStyle(e), found = [];
  const bars = [
    ["across", style.overflowX, e.offsetHeight - e.clientHeight - parseFloat(style.borderTopWidth) - parseFloat(style.borderBottomWidth), e.scrollWidth - e.clientWidth],
    ["down", style.overflowY, e.offsetWidth - e.clientWidth - parseFloat(style.borderLeftWidth) - parseFloat(style.borderRightWidth), e.scrollHeight - e.clientHeight]];
  for (const [way, overflow, bar, hidden] of bars)
    if (/auto|scroll/.test(overflow) && bar > 4 && hidden < 12) found.push(`a bar ${way} that scrolls ${hidden} pixels: ${e.tagName.toLowerCase()}#${e.id}.${e.className}`);
  return found;
}).concat(document.documentElement.scrollWidth > innerWidth ? [`${document.documentElement.scrollWidth} pixels wide in a window of ${innerWidth}`] : [])"""  # noqa: E501
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
"""What other sites show of a link to the page."""
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


@contextmanager
def chromium(*options: str, drawn_bars: bool = False) -> Iterator[Browser]:
    """Start a Chromium; by default it hides scroll bars, as a phone does."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        shown = {"ignore_default_args": ["--hide-scrollbars"]} if drawn_bars else {}
        options = ("--no-sandbox", *(["--disable-features=OverlayScrollbar"] if drawn_bars else []), *options)
        with closing(playwright.chromium.launch(executable_path=CHROMIUM, args=list(options), **shown)) as browser:
            yield browser


@contextmanager
def window(browser: Browser, width: int, height: int) -> Iterator[Page]:
    """Open a window in a fresh profile, in which nothing moves."""
    with closing(browser.new_context(viewport={"width": width, "height": height}, reduced_motion="reduce")) as context:
        context.set_default_timeout(PATIENCE_MS)
        yield context.new_page()


def look(address: str, folder: Path, tabs: Sequence[str]) -> list[str]:
    """Save pictures of each tab as FOLDER/TAB-LOOK.png, and return what is wrong with it by what can be counted."""
    folder.mkdir(parents=True, exist_ok=True)
    found = []

    def keep(page: Page, tab: str, name: str, *, full: bool = True) -> None:
        page.screenshot(path=folder / f"{tab}-{name}.png", full_page=full)
        found.extend(f"{tab}-{name}: {fault}" for fault in page.evaluate(FAULTS))

    with chromium() as browser:
        for name, (theme, width) in LOOKS.items():
            with window(browser, width, HEIGHTS[width]) as page:
                for tab in tabs:
                    open_tab(page, f"{address}{path_of(tab)}?__theme={theme}")
                    keep(page, tab, name)
        with window(browser, 1440, 900) as page:
            for tab in tabs:
                page.goto(f"{address}{path_of(tab)}{ERRORS[tab]}&__theme=light", wait_until="commit")
                page.wait_for_function(LOADED)
                picture(page)
                page.wait_for_function(IDLE)
                keep(page, tab, "error", full=False)
            for tab in filter(WAYS.__contains__, tabs):
                open_tab(page, f"{address}{path_of(tab)}?__theme=light")
                upload(page, tab)
                keep(page, tab, "table")
    with chromium(drawn_bars=True) as browser:
        for width in (1440, 380):
            with window(browser, width, HEIGHTS[width]) as page:
                for tab in tabs:
                    open_tab(page, f"{address}{path_of(tab)}?__theme=light")
                    keep(page, tab, f"bars-{width}", full=False)
    return found


def upload(page: Page, tab: str) -> None:
    """Give a page a table of our own, and wait until it has answered."""
    if WAYS[tab]:
        page.locator(WAYS[tab]).click()
    name, text = ("graph.tsv", GRAPH) if tab == "links" else ("pairs.csv", PAIRS)
    file = {"name": name, "mimeType": "text/csv", "buffer": text.encode()}
    page.locator("#cv-page input[type=file]").first.set_input_files(file)
    picture(page)
    page.wait_for_function(IDLE)
    picture(page)


def document(address: str, folder: Path, tabs: Sequence[str]) -> None:
    """Save a picture of each tab as FOLDER/TAB.png; with the first, the preview of links as well.

    Raises:
        RuntimeError: If a picture has more than `MAX_BYTES`.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with chromium() as browser, window(browser, WIDTH, HEIGHT) as page:
        for tab in tabs:
            open_tab(page, f"{address}{path_of(tab)}?__theme=light")
            content = compress(picture(page))
            if len(content) > MAX_BYTES:
                raise RuntimeError(f"The picture of {tab} has {len(content):,} bytes, allowed are {MAX_BYTES:,}.")
            (folder / f"{tab}.png").write_bytes(content)
            if tab == TABS[0].id:
                PREVIEW.write_bytes(compress(preview(page, address)))
            print(f"{folder / tab}.png: {len(content):,} bytes", flush=True)


def preview(page: Page, address: str) -> bytes:
    """Take the picture that other sites show of a link: the first example by the best model, and nothing cut off."""
    example, best = load_examples()[0], best_encoder(map(describe, list_models()))
    pair = pair_link(TABS[0].id, (example.sentence1, example.sentence2), example.conditions, best)
    page.set_viewport_size({"width": 1200, "height": 630})
    open_tab(page, f"{address}{pair.removeprefix('./')}&__theme=light")
    page.locator(f"[data-model={best}] .cv-attr").first.wait_for()  # the words, which come after the bars
    page.wait_for_function(IDLE)
    page.add_style_tag(content=".cv-tries, .cv-section, #cv-status, #cv-footer { display: none !important }")
    return picture(page)


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
    parser.add_argument("--out", type=Path, help="folder (default: a new one; docs/images for the documents)")
    parser.add_argument("--tab", action="append", choices=known, help="may be repeated (default: all)")
    parser.add_argument("--address", default="", help="of a page that runs (default: one is started)")
    parser.add_argument("--docs", action="store_true", help="the pictures of the documents")
    chosen = parser.parse_args()
    out = chosen.out or (Path("docs/images") if chosen.docs else Path(tempfile.mkdtemp(prefix="condviz-screens-")))
    with nullcontext(chosen.address) if chosen.address else serve() as address:
        try:
            faults = (document if chosen.docs else look)(address, out, chosen.tab or known)
        except RuntimeError as error:
            sys.exit(str(error))
    print(f"The pictures are in {out}.")
    if faults:
        sys.exit("\n".join(dict.fromkeys(faults)))


if __name__ == "__main__":
    main()
