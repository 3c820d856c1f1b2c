"""The state of the Compare form, and its form as a query string: what a link restores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any
from urllib.parse import parse_qs, urlencode

from condviz.ui.link import without_surrogates

MAX_TEXT = 5000
"""Characters of a sentence that a link carries; longer texts are cut, browsers and proxies limit addresses."""
MAX_LINK_CONDITIONS = 20
MAX_LINK_MODELS = 40


@dataclass(frozen=True)
class FormState:
    """What stands in the form of the Compare tab.

    Attributes:
        sentence1, sentence2: The two texts as typed.
        conditions: The conditions as typed, without empty lines.
        models: Names of the chosen models, in the order of the page.
        first, second: Positions of the two conditions whose difference is the headline.
        words: Model whose words are shown first, under the first condition; "" for the first model.
    """

    sentence1: str = ""
    sentence2: str = ""
    conditions: tuple[str, ...] = ()
    models: tuple[str, ...] = ()
    first: int = 0
    second: int = 1
    words: str = ""

    def to_query(self) -> str:
        """Give the state as a query string without "?"; `from_query` reads it back."""
        pairs = [
            ("s1", without_surrogates(self.sentence1)[:MAX_TEXT]),
            ("s2", without_surrogates(self.sentence2)[:MAX_TEXT]),
        ]
        pairs += [("c", without_surrogates(text)[:MAX_TEXT]) for text in self.conditions[:MAX_LINK_CONDITIONS]]
        pairs += [("m", without_surrogates(name)) for name in self.models[:MAX_LINK_MODELS]]
        if (self.first, self.second) != (0, 1):
            pairs.append(("d", f"{self.first}-{self.second}"))
        if self.words:
            pairs.append(("w", without_surrogates(self.words)))
        return urlencode(pairs)

    def to_dict(self) -> dict[str, Any]:
        """Give plain JSON, for gr.State."""
        return {key: list(value) if isinstance(value, tuple) else value for key, value in asdict(self).items()}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> FormState:
        """Read what `to_dict` wrote."""
        lists = {key: tuple(data.get(key, ())) for key in ("conditions", "models")}
        single = {key: data[key] for key in ("sentence1", "sentence2", "first", "second", "words") if key in data}
        return cls(**single, **lists)

    def with_models(self, known: Sequence[str]) -> FormState:
        """Keep only known models, in the order of the page."""
        return self.replace(models=tuple(name for name in known if name in self.models))

    def replace(self, **changes: Any) -> FormState:  # noqa: ANN401 - any field
        """Give a copy with some fields changed."""
        return FormState(**{**{name: getattr(self, name) for name in self.__dataclass_fields__}, **changes})


def from_query(query: str) -> FormState | None:
    """Read a state from a query string, however damaged.

    Args:
        query: With or without "?". Keys it does not know are ignored.

    Returns:
        The state, or None if the query holds neither a sentence nor a condition.
    """
    try:
        fields = parse_qs(query.removeprefix("?"), keep_blank_values=True, max_num_fields=200, errors="replace")
    except ValueError:
        return None
    conditions = [text for raw in fields.get("c", []) if (text := _one_line(raw))]
    sentence1, sentence2 = (without_surrogates(fields.get(key, [""])[0])[:MAX_TEXT] for key in ("s1", "s2"))
    if not (sentence1.strip() or sentence2.strip() or conditions):
        return None
    models = dict.fromkeys(without_surrogates(name) for name in fields.get("m", [])[:MAX_LINK_MODELS])
    first, second = _read_pair(fields.get("d", [""])[0], min(len(conditions), MAX_LINK_CONDITIONS))
    words = without_surrogates(fields.get("w", [""])[0])
    return FormState(sentence1, sentence2, tuple(conditions[:MAX_LINK_CONDITIONS]), tuple(models), first, second, words)


def split_conditions(text: str) -> tuple[str, ...]:
    """Give the non-empty lines of the condition box; duplicates and lengths are judged by the core, not here."""
    # Not splitlines and strip(): those would swallow control characters that the core has to report.
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    return tuple(stripped for line in lines if (stripped := line.strip(" \t\u00a0")))


def _one_line(text: str) -> str:
    return " ".join(without_surrogates(text)[:MAX_TEXT].split())


def _read_pair(text: str, count: int) -> tuple[int, int]:
    first, _, second = text.partition("-")
    if first.isascii() and second.isascii() and first.isdigit() and second.isdigit() and len(text) < 8:
        pair = int(first), int(second)
        if max(pair) < count and pair[0] != pair[1]:
            return pair
    return 0, 1
