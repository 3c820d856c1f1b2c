"""Links to a tab other than Compare: query strings with `t`, the name of the tab, and its own keys."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import parse_qsl, urlencode


def write_link(tab: str, pairs: Sequence[tuple[str, str]]) -> str:
    """Give the query string, without "?", that opens a tab with these values."""
    return urlencode([("t", tab), *((key, without_surrogates(value)) for key, value in pairs)])


def read_link(tab: str, query: str) -> dict[str, str] | None:
    """Give the values of the query string of the page, however damaged; None if it is not a link to this tab."""
    try:
        found = dict(parse_qsl(query.removeprefix("?"), max_num_fields=200, errors="replace"))
    except ValueError:
        return None
    return found if found.get("t") == tab else None


def without_surrogates(text: str) -> str:
    """Replace lone surrogates, which no encoding of an address can hold."""
    return text.encode("utf-8", "replace").decode("utf-8")
