"""The strips of the Router tab: words under every condition, one condition minus another, and the values as a table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from condviz.analysis.router import rank_words, share_words, to_csv
from condviz.encoder.words import MERGE_RULE
from condviz.errors import DataError
from condviz.types import TokenWeights, WordReading
from condviz.ui.form_state import FormState
from condviz.ui.html import badge, esc, is_cross, join, letter, number, signed, tag, text
from condviz.ui.result_view import hand_out
from condviz.ui.router_record import to_json, to_link, to_python, unpack_reading
from condviz.ui.strips import Scale, Strip, fit_scale, legend, render_strip

MAX_CHIPS = 6_000
"""Chips that a browser lays out without a pause."""
Record = dict[str, Any]


class RouterView:
    """Writes what `gr.State` keeps of the tab: readings, and how they are looked at.

    Args:
        shown: {"form", "readings", "failed", "depth", "units"}; see `condviz.ui.router_handlers`.

    Raises:
        DataError: If there are too many words to show.
    """

    def __init__(self, shown: Record) -> None:
        self.readings = [unpack_reading(record) for record in shown["readings"]]
        self.failed: dict[str, str] = shown.get("failed", {})
        self.form = FormState.from_dict(shown["form"])
        self.depth = int(shown.get("depth", 0))
        self.units = shown.get("units", "words")
        self.link = to_link(self.form) if shown.get("link") else ""
        chips = sum(text.weights.shape[1] * len(text.words) for r in self.readings for text in r.texts)
        if chips > MAX_CHIPS:
            raise DataError(
                f"The strips would hold {chips:,} words, and at most {MAX_CHIPS:,} can be shown at once. Leave out "
                "conditions or models, shorten the sentences, or use the command: python -m condviz router."
            )
        self.scales = self._fit_scales()

    def render(self) -> str:
        """Write the whole result."""
        failed = join(
            tag("p", text("strong", name), ": ", esc(reason), class_="cv-row-failed", data_testid="router-failed")
            for name, reason in self.failed.items()
        )
        if not self.readings:
            return failed
        count = len(self.readings[0].texts)
        parts = [
            tag("p", self._headline(), class_="cv-headline", data_testid="router-headline"),
            self._tools(),
            tag(
                "p", "Point at a word to see it in every strip; click to hold it, Esc to let go, arrows to move.",
                class_="cv-readout", role="status", data_testid="readout",
            ),
            *[self._sentence(i) for i in range(count)],
            self._legends(),
            failed,
            self._difference(count) if len(self.form.conditions) > 1 else "",
            self._table(),
            self._exports(),
        ]  # fmt: skip
        return tag("section", *parts, class_="cv-router", data_testid="router", data_query=self.link or None)

    # Values

    def _layer(self, reading: WordReading) -> int:
        """Give the position of the layer that is looked at, from the end."""
        return -1 - min(self.depth, reading.texts[0].weights.shape[0] - 1)

    def _values(self, reading: WordReading, place: int) -> tuple[list[str], np.ndarray]:
        """Give what stands on the chips of a sentence, and its values (m, chips)."""
        found, layer = reading.texts[place], self._layer(reading)
        if self.units == "tokens" and found.tokens:
            kept = [i for i, token in enumerate(found.tokens) if token.start < token.end]
            return [found.tokens[i].text for i in kept], found.token_weights[layer][:, kept]
        return [word.text for word in found.words], found.weights[layer]

    def _family(self, reading: WordReading) -> str:
        if reading.source == "router":
            return "weight"
        return "cross" if is_cross(reading.model) else "cosine"

    def _fit_scales(self) -> dict[str, Scale]:
        values: dict[str, list[np.ndarray]] = {}
        for reading in self.readings:
            found = values.setdefault(self._family(reading), [])
            found += [self._values(reading, place)[1] for place in range(len(reading.texts))]
        return {
            family: fit_scale(arrays, signed=family != "weight", family=family) for family, arrays in values.items()
        }

    # Parts

    def _headline(self) -> str:
        tops = [self._heaviest(reading) for reading in self.readings]
        moved = [place for place, words in enumerate(tops) if len(set(words)) > 1]
        chosen = moved[0] if moved else 0
        reading = self.readings[chosen]
        quotes = "\N{LEFT DOUBLE QUOTATION MARK}", "\N{RIGHT DOUBLE QUOTATION MARK}"
        words = [tag("b", quotes[0], esc(top), quotes[1]) for top in tops[chosen]]
        under = [text("em", reading.conditions[place]) for place in self._picked(reading)]
        title = text("strong", reading.model.title)
        verb = "weighs" if reading.source == "router" else "misses"
        if len(words) == 1:
            return f"Under {under[0]}, {title} {verb} {words[0]} most."
        if not moved:
            return f"Under {under[0]} and under {under[1]} alike, {title} {verb} {words[0]} most."
        if len(tops) == 1:
            return f"Under {under[0]}, {title} {verb} {words[0]} most; under {under[1]}, {words[1]}."
        count = f"{len(moved)} of {len(tops)} models turn to another word"
        return f"{count}: {title} {verb} {words[0]} most under {under[0]}, {words[1]} under {under[1]}."

    def _picked(self, reading: WordReading) -> tuple[int, ...]:
        return (self.form.first, self.form.second)[: len(reading.conditions)]

    def _heaviest(self, reading: WordReading) -> list[str]:
        """Give the heaviest word of the first sentence under each of the two chosen conditions."""
        words = [word.text for word in reading.texts[0].words]
        rows = np.abs(reading.texts[0].weights[self._layer(reading)])
        return [words[int(np.argmax(rows[place]))] for place in self._picked(reading)]

    def _tools(self) -> str:
        choices = join(
            tag(
                "label",
                f'<input type="radio" name="cv-units" value="{key}"{" checked" if key == self.units else ""}>',
                tag("span", label),
            )
            for key, label in (("words", "Words"), ("tokens", "Sub-tokens"))
        )
        units = tag("div", choices, class_="cv-segments", role="radiogroup", aria_label="What a chip is")
        most = max(reading.texts[0].weights.shape[0] for reading in self.readings)
        names = ["last", "second last", "third last", *[f"{i}th last" for i in range(4, most + 1)]]
        layers = pick("depth", "Routed layer", names[:most], self.depth) if most > 1 else ""
        rule = tag("span", esc(MERGE_RULE), class_="cv-muted cv-rule-note")
        return tag("div", units, layers, rule, class_="cv-router-tools")

    def _sentence(self, place: int) -> str:
        rows = []
        for condition, name in enumerate(self.form.conditions):
            head = tag("span", letter(condition), class_="cv-letter") + text("span", name, class_="cv-strip-condition")
            rows.append(tag("div", head, class_="cv-strip-head"))
            rows += [self._strip(reading, place, condition) for reading in self.readings]
        return self._block(f"Sentence {place + 1}", place, rows)

    def _block(self, title: str, place: int, rows: Sequence[str]) -> str:
        """Write strips of one sentence, whose words the script lights together."""
        linked = f"{place}{'t' if self.units == 'tokens' else ''}"
        return tag(
            "section", text("h3", title), *rows, class_="cv-strips", data_text=linked, data_testid=f"strips-{place}"
        )

    def _strip(self, reading: WordReading, place: int, condition: int) -> str:
        found, scale = reading.texts[place], self.scales[self._family(reading)]
        words, values = self._values(reading, place)
        strip = Strip(
            title=self._strip_title(reading, condition),
            name=f"{reading.model.title} under {reading.conditions[condition]}",
            words=words,
            values=values[condition],
            ranks=rank_words(values[condition]),
            shares=share_words(values[condition]),
            note=self._strip_note(reading, found, condition),
            short=f"{letter(condition)} {reading.model.title}",
        )
        return render_strip(strip, scale)

    def _strip_title(self, reading: WordReading, condition: int) -> str:
        untrained = "" if reading.model.trained else badge("not trained", tone="warn")
        score = ""
        if reading.scores is not None:
            score = tag("small", f"score {number(float(reading.scores[condition]))}", class_="cv-muted")
        return text("span", reading.model.title, class_="cv-strip-model") + untrained + score

    def _strip_note(self, reading: WordReading, found: TokenWeights, condition: int) -> str:
        cut = " The end of the sentence was cut." if found.truncated else ""
        if reading.source != "router":
            return f"No router: score with the word minus score without it.{cut}"
        layer = self._layer(reading)
        rest = "special tokens and condition" if reading.model.method == "csr-prefix" else "special tokens"
        share = 100 * found.hidden_mass[layer, condition]
        return f"Layer {found.layers[layer] + 1}. {share:.0f} % of the weight lies on {rest}.{cut}"

    def _legends(self) -> str:
        notes = {
            "weight": (
                "",
                "weight",
                "Router weights: one scale for all strips; with special tokens, each strip sums to 1.",
            ),
            "cosine": ("pulls apart", "makes alike", "Leave one word out: change of the cosine."),
            "cross": ("pulls apart", "makes alike", "Leave one word out: change of the cross-encoder's output."),
        }
        return join(legend(scale, *notes[family]) for family, scale in self.scales.items())

    def _difference(self, count: int) -> str:
        first, second = self.form.first, self.form.second
        pickers = [
            pick(key, label, list(self.form.conditions), value)
            for key, label, value in (("first", "Condition", first), ("second", "minus", second))
        ]
        head = tag("div", tag("h2", "Difference"), tag("div", *pickers, class_="cv-pickers"), class_="cv-section-head")
        gaps = {
            (i, place): self._values(reading, place)[1][first] - self._values(reading, place)[1][second]
            for i, reading in enumerate(self.readings)
            for place in range(count)
        }
        families = {i: self._family(reading) for i, reading in enumerate(self.readings)}
        scales = {
            family: fit_scale(
                [gap for (i, _), gap in gaps.items() if families[i] == family], signed=True,
                family="cross" if family == "cross" else "cosine",
            )
            for family in dict.fromkeys(families.values())
        }  # fmt: skip
        notes = {
            "weight": "Difference of router weights, on a scale of its own.",
            "cosine": "Difference of the effects on the cosine, on a scale of its own.",
            "cross": "Difference of the effects on the cross-encoder's output, on a scale of its own.",
        }
        blocks = []
        for place in range(count):
            rows = [
                render_strip(self._gap_strip(reading, place, gaps[i, place]), scales[families[i]])
                for i, reading in enumerate(self.readings)
            ]
            blocks.append(self._block(f"Sentence {place + 1}", place, rows))
        legends = [
            legend(scale, f"more under {letter(second)}", f"more under {letter(first)}", notes[family])
            for family, scale in scales.items()
        ]
        return tag("section", head, *blocks, *legends, class_="cv-router-part", data_testid="difference")

    def _gap_strip(self, reading: WordReading, place: int, gap: np.ndarray) -> Strip:
        names = [reading.conditions[i] for i in (self.form.first, self.form.second)]
        return Strip(
            title=text("span", reading.model.title, class_="cv-strip-model"),
            name=f"{reading.model.title}: {names[0]} minus {names[1]}",
            words=self._values(reading, place)[0],
            values=gap,
        )

    def _table(self) -> str:
        tables = join(self._reading_table(reading) for reading in self.readings)
        return tag(
            "details", tag("summary", "Values as a table"), tables, class_="cv-details", data_testid="router-table"
        )

    def _reading_table(self, reading: WordReading) -> str:
        show = signed if reading.source != "router" else number
        rows = []
        for place, found in enumerate(reading.texts):
            values = found.weights[self._layer(reading)]
            ranks, shares = rank_words(values), share_words(values)
            for w, word in enumerate(found.words):
                cells = [
                    tag(
                        "td",
                        f"{show(float(values[c, w]), 4)} ({ranks[c, w]}; {100 * shares[c, w]:.0f} %)",
                        class_="cv-num",
                    )
                    for c in range(len(values))
                ]
                rows.append(tag("tr", tag("td", str(place + 1)), text("th", word.text, scope="row"), *cells))
        columns = [tag("th", "Sentence", scope="col"), tag("th", "Word", scope="col")]
        columns += [text("th", name, scope="col", class_="cv-num") for name in reading.conditions]
        caption = tag("caption", text("strong", reading.model.title), ": value (rank; share of all words)")
        body = tag("table", caption, tag("thead", tag("tr", *columns)), tag("tbody", *rows), class_="cv-table")
        return tag("div", body, class_="cv-scroll cv-scroll-y")

    def _exports(self) -> str:
        payloads = {
            "link": (to_link(self.form), "Copy link"),
            "json": (to_json(self.readings), "Copy JSON"),
            "python": (to_python(self.readings), "Copy Python"),
            "csv": (to_csv(self.readings), "Save CSV"),
        }
        return hand_out(payloads, [reading.model for reading in self.readings])


def pick(key: str, label: str, names: Sequence[str], value: int) -> str:
    """Write a select whose choice the script sends as {key: position}."""
    options = [text("option", name, value=str(i), selected=i == value) for i, name in enumerate(names)]
    chosen = tag("select", *options, class_="cv-select", data_set=key, data_value=value)
    return tag("label", tag("span", esc(label)), " ", chosen, class_="cv-pick")
