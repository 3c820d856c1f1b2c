"""Links: the state of a tab as the query string of the page, and back.

A link is `?t=TAB&key=value&...`. The keys `t` (tab), `open` (open sections) and `__theme` belong to the page; all
others to the tab. The script of the page adds what is chosen in a result or a section. Links of the Compare tab that
were copied before it had a name carry no `t`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from urllib.parse import parse_qs, urlencode

MAX_TEXT = 5000
"""Characters of one value that a link carries; longer ones are cut, as browsers and proxies limit addresses."""
MAX_FIELDS = 200
Values = dict[str, list[str]]
_ALIASES = {"words": "router"}
"""What people type for a tab whose links were copied under another name."""
_COMPARE_KEYS = {"s1", "s2", "c"}


def write_link(tab: str, pairs: Iterable[tuple[str, str]]) -> str:
    """Return the query string, without "?", that opens a tab with these values; empty values are left out."""
    return urlencode([("t", tab), *((key, cut(value)) for key, value in pairs if value)])


def pair_link(
    tab: str, sentences: Sequence[str], conditions: Iterable[str], model: str = "", *, section: str = ""
) -> str:
    """Return the link that opens one or two sentences under conditions in Compare or Words, with a section open."""
    texts = [(f"s{place}", sentence) for place, sentence in enumerate(sentences, start=1)]
    asked = [("c", condition) for condition in conditions]
    return write_link(tab, [*texts, *asked, ("m", model), ("open", section)])


def read_link(query: str) -> tuple[str, Values]:
    """Read the query string of the page, however damaged: the tab, "" where none is named, and the values by key."""
    try:
        fields = parse_qs(query.removeprefix("?"), max_num_fields=MAX_FIELDS, errors="replace")
    except ValueError:
        return "", {}
    values = {key: [cut(value) for value in found] for key, found in fields.items()}
    tab = values.pop("t", [""])[0].lower()
    return _ALIASES.get(tab, tab) or ("compare" if _COMPARE_KEYS & values.keys() else ""), values


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
