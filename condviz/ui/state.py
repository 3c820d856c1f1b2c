"""Links: the state of a page as its address, and back.

A link is `PAGE?key=value&...`, relative to the address of the server. The keys `open` (open sections) and `__theme`
belong to every page. The script of the page adds what is chosen in a result or a section. Links that were copied when
all views were tabs of one page name theirs as `t`; those of Compare may name none.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from urllib.parse import parse_qs, urlencode

from condviz.data.texts import fold

MAX_TEXT = 5000
"""Characters of one value that a link carries; longer ones are cut, as browsers and proxies limit addresses."""
MAX_FIELDS = 200
Values = dict[str, list[str]]
HOME = "compare"
"""The page that the address of the server itself opens."""
_ALIASES = {"router": "words"}
"""Pages whose links were copied under another name."""


def path_of(page: str) -> str:
    """Return the path of a page below the address of the server; "" for the first."""
    return "" if page == HOME else page


def write_link(page: str, pairs: Iterable[tuple[str, str]] = ()) -> str:
    """Return the relative address that opens a page with these values; empty values are left out."""
    query = urlencode([(key, cut(value)) for key, value in pairs if value])
    return (path_of(page) or "./") + (f"?{query}" if query else "")


def pair_link(
    page: str, sentences: Sequence[str], conditions: Iterable[str], model: str = "", *, section: str = ""
) -> str:
    """Return the link that opens one or two sentences under conditions in Compare or Words, with a section open."""
    texts = [(f"s{place}", sentence) for place, sentence in enumerate(sentences, start=1)]
    asked = [("c", condition) for condition in conditions]
    return write_link(page, [*texts, *asked, ("m", model), ("open", section)])


def read_link(link: str) -> tuple[str, Values]:
    """Read a relative address, or its query string alone, however damaged: the page, and the values by key."""
    path, mark, query = link.partition("?")
    if not mark and "=" in path:
        path, query = "", path
    values = read_query(query)
    named = [values.pop(key, [""])[0] for key in ("t", "tab")]
    return page_called(named[0] or named[1] or path.strip("./")), values


def page_called(name: str) -> str:
    """Return the page that a link means: its name now, where it had another one."""
    return _ALIASES.get(name.lower(), name.lower()) or HOME


def read_query(query: str) -> Values:
    """Read a query string, however damaged, as values by key."""
    try:
        fields = parse_qs(query, max_num_fields=MAX_FIELDS, errors="replace")
    except ValueError:
        return {}
    return {key: [cut(value) for value in found] for key, found in fields.items()}


def first(values: Values, key: str, default: str = "") -> str:
    """Return the first value of a key."""
    return values.get(key, [default])[0]


def joined(texts: Iterable[str]) -> str:
    """Return the texts of a link as a box has them: one per line, each on one line."""
    return "\n".join(" ".join(text.split()) for text in texts)


def number(values: Values, key: str, default: int, *, low: int, high: int) -> int:
    """Return a whole number of a link, kept within [low, high]; the default where it is none."""
    text = first(values, key)
    return min(max(int(text), low), high) if re.fullmatch(r"-?[0-9]{1,10}", text) else default


def write_rows(rows: Iterable[int]) -> str:
    """Return chosen positions as the value of a link: runs such as "2-5.9"; "" for more than fit (`MAX_TEXT`)."""
    runs: list[list[int]] = []
    for row in sorted(rows):
        if runs and row == runs[-1][1] + 1:
            runs[-1][1] = row
        else:
            runs.append([row, row])
    text = ".".join(str(low) if low == high else f"{low}-{high}" for low, high in runs)
    return text if len(text) <= MAX_TEXT else ""


def place(value: object, count: int) -> int | None:
    """Return a position below `count` that a browser sent, or None for anything else."""
    text = str(value)
    # isdigit alone takes "²", which int does not.
    found = int(text) if text.isascii() and text.isdigit() and len(text) < 10 else count
    return found if found < count else None


def read_rows(text: str, count: int) -> tuple[int, ...]:
    """Return those positions below `count`, ascending; whatever is none is left out."""
    rows: set[int] = set()
    for run in text.split("."):
        ends = run.split("-")
        if len(ends) <= 2 and all(end.isascii() and end.isdigit() and len(end) < 9 for end in ends):
            rows.update(range(int(ends[0]), min(int(ends[-1]) + 1, count)))
    return tuple(sorted(rows))


def cut(text: str) -> str:
    """Return a text that fits into a link: at most `MAX_TEXT` characters, no lone surrogates."""
    return text[:MAX_TEXT].encode("utf-8", "replace").decode("utf-8")


def lines(text: str) -> tuple[str, ...]:
    """Split the text of a box into its non-empty lines; what they hold is judged by the core, not here."""
    # Not splitlines and strip(): those would swallow control characters that the core has to report.
    parts = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    return tuple(stripped for part in parts if (stripped := part.strip(" \t\u00a0")))


def conditions_of(text: str) -> tuple[str, ...]:
    """Split the text of a box into conditions, each once but for case and blanks, where it stands first."""
    found: dict[str, str] = {}
    for line in lines(text):
        found.setdefault(fold(line), line)
    return tuple(found.values())
