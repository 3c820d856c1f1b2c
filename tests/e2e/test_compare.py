"""The Compare tab in a real browser, over the stand-in core."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, urlencode, urlparse

import pytest

from tests.e2e.conftest import open_tab

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page

expect = pytest.importorskip("playwright.sync_api").expect

HOSTILE = [
    "<img src=x onerror=alert(1)>",
    "${1+1} `x`",
    "{{7*7}}",
    "</textarea><b id=hurt>b</b>",
    "مرحبا بالعالم",
    "👩‍👩‍👧 🏄",
]


def field(page: Page, name: str) -> Locator:
    return page.locator(f"#cv-{name} textarea")


def type_into(page: Page, name: str, value: str) -> None:
    """Set a text as a paste does; the driver's own fill takes a minute for a very long one."""
    field(page, name).evaluate(
        """(area, value) => {
          area.focus(); area.value = value; area.dispatchEvent(new Event('input', { bubbles: true }));
        }""",
        value,
    )


def cells(page: Page) -> list[str]:
    return page.locator(".cv-cell .cv-score").all_inner_texts()


def wait_scored(page: Page, query_part: str) -> None:
    """Wait until the address bar shows a state with this text: it is set after each run."""
    page.wait_for_function(
        "part => decodeURIComponent(location.search.replaceAll('+', ' ')).includes(part)", arg=query_part
    )
    page.locator("html:not(.cv-opening) [data-testid=result][data-ready=true]").wait_for()


def test_first_screen_shows_a_matrix_words_and_the_form(open_page: Callable[..., Page]) -> None:
    page = open_page()
    assert len(cells(page)) == 5 * 3
    expect(page.locator("[data-testid=attribution] .cv-word").first).to_be_visible()
    expect(field(page, "sentence1")).to_have_value(re.compile("skis"))
    assert page.locator("#cv-models input:checked").count() == 5
    assert "s1=" not in page.url


def test_typing_scores_again_and_keeps_the_old_value_as_a_ghost(open_page: Callable[..., Page]) -> None:
    page = open_page()
    before = cells(page)
    field(page, "sentence1").fill("A man in a red jacket skis down a slope.")
    wait_scored(page, "a red jacket")
    assert cells(page) != before
    assert before[0] in page.locator(".cv-ghost").all_inner_texts()


def test_undo_and_redo_move_through_what_was_scored(open_page: Callable[..., Page]) -> None:
    page = open_page()
    before = cells(page)
    field(page, "conditions").fill("the mood\nthe place")
    wait_scored(page, "the mood")
    after = cells(page)
    page.locator("#cv-undo").click()
    wait_scored(page, "the sport")
    assert cells(page) == before
    expect(field(page, "conditions")).to_have_value("the sport\nthe colour of the jacket")
    page.locator("#cv-redo").click()
    wait_scored(page, "the mood")
    assert cells(page) == after


def test_choosing_models_changes_the_rows(open_page: Callable[..., Page]) -> None:
    page = open_page()
    page.get_by_test_id("model-minilm").uncheck()
    wait_scored(page, "m=bi-encoder")
    page.locator("tr[data-model=minilm]").wait_for(state="detached")
    assert page.locator("tr[data-model]").count() == 4


def test_example_fills_and_scores(open_page: Callable[..., Page]) -> None:
    page = open_page()
    card = page.locator(".cv-card").nth(1)
    sentence = card.locator(".cv-card-sentence").first.inner_text()
    card.click()
    wait_scored(page, sentence[:30])
    expect(field(page, "sentence1")).to_have_value(sentence)


def test_link_restores_everything(open_page: Callable[..., Page]) -> None:
    state = [
        ("s1", "One."),
        ("s2", "Two."),
        ("c", "a & b"),
        ("c", "c=d"),
        ("c", "e"),
        ("m", "csr"),
        ("m", "case"),
        ("d", "2-0"),
    ]
    page = open_page("?" + urlencode(state))
    wait_scored(page, "One.")
    expect(field(page, "conditions")).to_have_value("a & b\nc=d\ne")
    assert page.locator("tr[data-model]").evaluate_all("rows => rows.map(row => row.dataset.model)") == ["csr", "case"]
    assert page.locator("[data-pick=first]").input_value() == "2"
    assert parse_qs(urlparse(page.url).query) == parse_qs(urlencode(state))


@pytest.mark.parametrize("query", ["?s1=%FF%00&c=%zz&m=nobody&d=99-x", "?s1=&c=&m=csr", "?d=0-0&s2=%ED%A0%80"])
def test_damaged_links_do_not_break_the_page(open_page: Callable[..., Page], query: str) -> None:
    page = open_page(query)
    page.locator("#cv-run").wait_for()
    assert len(cells(page)) == 15


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("sentence1", "   ", "Sentence 1 is empty"),
        ("sentence2", "x" * 100_000, "Sentence 2 has 100,000 characters"),
        ("conditions", "", "There is no condition"),
        ("conditions", "the sport\nThe  Sport", "Conditions 1 and 2 are the same"),
        ("conditions", "\n".join(f"condition {i}" for i in range(500)), "There are 500 conditions"),
        ("sentence1", "a\u0007b", "control character (U+0007)"),
    ],
)
def test_bad_input_gives_one_message_and_loses_nothing(
    open_page: Callable[..., Page], name: str, value: str, message: str
) -> None:
    page = open_page()
    before = cells(page)
    type_into(page, name, value)
    page.locator("#cv-run").click()
    expect(page.get_by_test_id("notice-error")).to_contain_text(message)
    expect(page.get_by_test_id("notice-error")).to_be_in_viewport()
    assert page.get_by_test_id("notice-error").count() == 1
    assert field(page, name).input_value() == value
    assert cells(page) == before


@pytest.mark.parametrize("text", HOSTILE)
def test_text_is_shown_as_text(open_page: Callable[..., Page], text: str) -> None:
    page = open_page()
    field(page, "sentence1").fill(text)
    field(page, "conditions").fill(f"{text}\nplain")
    wait_scored(page, text)
    expect(page.locator(".cv-matrix .cv-condition").nth(1)).to_have_text(text)
    page.wait_for_function("text => document.querySelector('.cv-sentence').textContent === text", arg=text)
    assert page.locator("#hurt").count() == 0
    assert page.locator("#cv-output img").count() == 0
    assert json.loads(page.get_by_test_id("export-json").input_value())["conditions"][0] == text


def test_no_model_is_a_message(open_page: Callable[..., Page]) -> None:
    page = open_page()
    page.locator("[data-all='0']").click()
    expect(page.get_by_test_id("notice-error")).to_contain_text("No model is chosen")


def test_a_model_that_fails_leaves_the_others(open_page: Callable[..., Page]) -> None:
    page = open_page()
    page.get_by_test_id("model-broken").check()
    expect(page.locator("tr[data-model=broken]")).to_contain_text("is truncated")
    assert len(cells(page)) == 15


def test_stop_keeps_the_rows_that_were_ready(open_page: Callable[..., Page], address: str) -> None:
    page = open_page()
    page.get_by_test_id("model-slow").check()
    slow = page.locator("tr[data-model=slow]")
    slow.wait_for()
    stop = page.locator("#cv-cancel")
    if stop.is_visible():
        stop.click()
        expect(slow).to_contain_text("stopped")
    assert len(cells(page)) >= 15


def test_words_of_a_cell_by_click_and_by_keyboard(open_page: Callable[..., Page]) -> None:
    page = open_page()
    page.locator(".cv-cell[data-model=hyper-cl][data-column='1']").click()
    expect(page.get_by_test_id("attribution")).to_contain_text("under the colour of the jacket")
    assert page.get_by_test_id("attribution").get_attribute("data-model") == "hyper-cl"
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("Enter")
    expect(page.get_by_test_id("attribution")).to_contain_text("under the sport")
    assert page.get_by_test_id("attribution").get_attribute("data-model") == "csr"
    page.get_by_text("Values as a table").click()
    assert page.get_by_test_id("attr-table").locator("tbody tr").count() == 19


def test_picking_the_other_condition_swaps_the_headline(open_page: Callable[..., Page]) -> None:
    page = open_page()
    gap = page.get_by_test_id("gap").first.inner_text()
    page.locator("[data-pick=first]").select_option("1")
    page.wait_for_function("gap => document.querySelector('[data-testid=gap]').innerText !== gap", arg=gap)
    assert page.get_by_test_id("gap").first.inner_text().translate(str.maketrans("+−", "−+")) == gap
    assert page.locator("[data-pick=second]").input_value() == "0"
    assert "d=1-0" in page.url


def test_copying_works_with_and_without_permission(open_page: Callable[..., Page]) -> None:
    page = open_page(permissions=["clipboard-read", "clipboard-write"])
    page.get_by_test_id("copy-python").click()
    expect(page.locator(".cv-said")).to_have_text("Python copied")
    script = page.evaluate("navigator.clipboard.readText()")
    assert "condviz.load(name)" in script
    compile(script, "copied", "exec")
    refused = open_page()
    refused.evaluate("() => { navigator.clipboard.writeText = () => Promise.reject(new Error('no')); }")
    refused.get_by_test_id("copy-json").click()
    area = refused.locator("dialog[open] textarea")
    assert json.loads(area.input_value())["revisions"][0]["revision"]
    assert area.evaluate("area => area.selectionEnd - area.selectionStart === area.value.length")


def test_csv_is_saved(open_page: Callable[..., Page]) -> None:
    page = open_page()
    with page.expect_download() as download:
        page.get_by_test_id("copy-csv").click()
    text = download.value.path().read_text(encoding="utf-8-sig")
    assert text.startswith("model,revision,trained,")
    assert len(text.splitlines()) == 1 + 5 * 3


def test_lines_of_conditions_move_by_keyboard(open_page: Callable[..., Page]) -> None:
    page = open_page()
    field(page, "conditions").focus()
    page.keyboard.press("Control+Home")
    page.keyboard.press("Alt+ArrowDown")
    expect(field(page, "conditions")).to_have_value("the colour of the jacket\nthe sport")
    page.keyboard.press("Control+Enter")
    wait_scored(page, "c=the colour of the jacket&c=the sport")


def test_finder_ranks_and_adds(open_page: Callable[..., Page]) -> None:
    page = open_page()
    page.locator("#cv-finder-run").click()
    row = page.locator("[data-add]").first
    condition = row.get_attribute("data-add")
    row.click()
    wait_scored(page, condition)
    expect(field(page, "conditions")).to_have_value(re.compile(re.escape(condition) + "$"))


def test_twenty_conditions_and_all_models_scroll_inside_the_table(open_page: Callable[..., Page]) -> None:
    page = open_page()
    page.locator("[data-all='1']").click()
    field(page, "conditions").fill("\n".join(f"the aspect number {i} of the scene" for i in range(20)))
    wait_scored(page, "number 19")
    sticky = page.locator("tbody .cv-model-col").first
    left = sticky.bounding_box()["x"]
    page.locator(".cv-scroll").first.evaluate("box => { box.scrollLeft = 2000; }")
    assert sticky.bounding_box()["x"] == pytest.approx(left, abs=1)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


@pytest.mark.parametrize("width", [320, 380, 768])
def test_narrow_screens_do_not_scroll_sideways(open_page: Callable[..., Page], width: int) -> None:
    page = open_page(width=width)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    open_tab(page, "Models")
    page.get_by_test_id("models").wait_for()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_dark_follows_the_system_and_the_switch_is_kept(open_page: Callable[..., Page]) -> None:
    page = open_page(color_scheme="dark")
    page.wait_for_function("document.body.classList.contains('dark')")
    page.get_by_test_id("theme-toggle").click()
    assert not page.evaluate("document.body.classList.contains('dark')")
    page.reload(wait_until="commit")
    page.get_by_test_id("theme-toggle").wait_for()
    page.wait_for_function("!document.body.classList.contains('dark')")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_on_every_tint_has_contrast(open_page: Callable[..., Page], scheme: str) -> None:
    page = open_page(color_scheme=scheme)
    page.locator(".cv-cell").first.wait_for()
    worst = page.evaluate(
        """() => {
          const draw = document.createElement('canvas').getContext('2d', { willReadFrequently: true });
          const light = (colour) => {
            draw.fillStyle = colour; draw.fillRect(0, 0, 1, 1);
            const [r, g, b] = [...draw.getImageData(0, 0, 1, 1).data].slice(0, 3)
              .map(v => v / 255).map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
            return 0.2126 * r + 0.7152 * g + 0.0722 * b;
          };
          let low = 99;
          for (const row of ['.cv-group-cosine', '.cv-group-cross']) {
            const cell = document.querySelector(`${row} .cv-cell`);
            cell.style.transition = 'none';
            for (const sign of ['pos', 'neg']) for (let t = 0; t <= 1; t += 0.05) {
              cell.dataset.sign = sign; cell.style.setProperty('--t', t);
              const style = getComputedStyle(cell);
              const [a, b] = [light(style.color), light(style.backgroundColor)].sort((x, y) => y - x);
              low = Math.min(low, (a + 0.05) / (b + 0.05));
            }
          }
          return low;
        }"""
    )
    assert worst >= 4.5
