"""Below the strips: the deletion test, the three pictures of the CSR paper, and every layer and head."""

from __future__ import annotations

import json
from collections.abc import Sequence

import numpy as np

from condviz.types import AttentionRow, DeletionTest, HeadMap, ModelInfo, RouterPictures
from condviz.ui.html import esc, join, letter, number, tag, text
from condviz.ui.router_view import pick
from condviz.ui.strips import Scale, Strip, fit_scale, legend, render_strip

DELETE_CHOICES = (1, 2, 3, 5)
CAPTIONS = {
    "5": "Where the sentence’s own first token looks without the router",
    "6": "Where the condition’s first token looks in the sentence: the router",
    "7": "Where the sentence’s own first token looks with the router, under each condition",
}


def render_deletion(tests: Sequence[tuple[ModelInfo, DeletionTest]], num_words: int, *, pair: bool) -> str:
    """Write one line per model: what the top words do to the score against random ones, with the draws as ticks.

    Args:
        tests: Models with their tests.
        num_words: Words deleted at once, as chosen.
        pair: True if two sentences were scored, False if a sentence was compared with itself.
    """
    choice = pick("delete", "Words deleted", [str(n) for n in DELETE_CHOICES], DELETE_CHOICES.index(num_words))
    head = tag("div", tag("h2", "Does the model use these words?"), choice, class_="cv-section-head")
    what = "the score of the pair" if pair else "the embedding (1 minus cosine, against the whole sentence)"
    note = (
        f"Mean absolute change of {what} when words are deleted, over all sentences and conditions. Ticks: random "
        "draws; words with a letter or digit only. A deleted word also leaves a strange sentence behind."
    )
    most = max((max(test.top_move, float(test.random_moves.max())) for _, test in tests), default=0.0) or 1.0
    lines = join(_deletion_line(info, test, most) for info, test in tests)
    return tag(
        "section", head, lines, tag("p", esc(note), class_="cv-muted cv-part-note"), class_="cv-router-part",
        data_testid="deletion",
    )  # fmt: skip


def _deletion_line(info: ModelInfo, test: DeletionTest, most: float) -> str:
    moves, (low, high) = test.random_moves, test.interval
    words = "heaviest word" if test.num_words == 1 else f"{test.num_words} heaviest words"
    random = "a random one" if test.num_words == 1 else f"{test.num_words} random ones"
    draws = f"{test.as_far or 'None'} of {len(moves)} draws {'change' if test.as_far > 1 else 'changes'} as much."
    line = (
        f"without its {words}, the change is {number(test.top_move)}; without {random}, {number(float(moves.mean()))} "
        f"(95 % of the draws: {number(low)} to {number(high)}). {draws}"
    )
    ticks = join(tag("span", class_="cv-tick", style=f"left:{100 * move / most:.2f}%") for move in moves.tolist())
    band = tag("span", class_="cv-band", style=f"left:{100 * low / most:.2f}%;width:{100 * (high - low) / most:.2f}%")
    top = tag("span", class_="cv-top-mark", style=f"left:{100 * test.top_move / most:.2f}%")
    return tag(
        "div",
        tag("p", text("strong", info.title), ": ", esc(line)),
        tag("span", band, ticks, top, class_="cv-spread-line cv-deletion-line", aria_hidden="true"),
        class_="cv-deletion",
    )


def render_pictures(pictures: RouterPictures, *, place: int, condition: int) -> str:
    """Write the three pictures on one scale, with what each shows.

    Args:
        pictures: From `condviz.analysis.attention.read_pictures`.
        place: Position of the sentence: its words are lit together with those of the strips.
        condition: Position of the condition whose row stands in the first two pictures.
    """
    groups = {
        "5": pictures.without_router[condition : condition + 1],
        "6": pictures.router[condition : condition + 1],
        "7": pictures.with_router,
    }
    scale = fit_scale([row.weights for rows in groups.values() for row in rows])
    figures = join(_picture(figure, rows, pictures, scale, place) for figure, rows in groups.items())
    note = "Mean over the heads of the last layer. One scale for the three pictures; special tokens are not shown."
    return tag("div", figures, legend(scale, "", "attention", note), class_="cv-pictures", data_testid="pictures")


def _picture(figure: str, rows: Sequence[AttentionRow], pictures: RouterPictures, scale: Scale, place: int) -> str:
    strips = join(_attention(row, scale, place, figure=figure) for row in rows)
    caption = tag(
        "figcaption", tag("b", f"Figure {figure} of the paper"), ". ", esc(CAPTIONS[figure]), ". ",
        esc(_remark(figure, rows, pictures)),
    )  # fmt: skip
    return tag("figure", caption, strips, class_="cv-picture", data_testid=f"figure-{figure}")


def _remark(figure: str, rows: Sequence[AttentionRow], pictures: RouterPictures) -> str:
    if figure == "5":
        seen = float(rows[0].condition_weights.sum()) if rows else 0.0
        if not seen:
            return "The sentence cannot see the condition, which has a weight of 0."
        return f"This model lets the sentence see the condition, which gets {100 * seen:.0f} % of the attention."
    if figure == "6" and not rows:
        return "CSR-prefix does not compute this row: its router is the row of Figure 7."
    if figure == "7" and not pictures.varies:
        return (
            "The same under every condition: one routed layer scales what comes out of the attention, not the "
            "attention. It differs with “three layers”, "
            "CSR-prefix (what the released code draws) and the bi-encoder."
        )
    return ""


def _attention(row: AttentionRow, scale: Scale, place: int, *, figure: str) -> str:
    words = [word.text for word in row.words]
    title = text("span", row.condition, class_="cv-strip-condition")
    strip = render_strip(
        Strip(title, f"Figure {figure} under {row.condition}", words, row.weights, note=_rest(row)), scale
    )
    return tag("div", strip, class_="cv-strips", data_text=place)


def _rest(row: AttentionRow) -> str:
    seen = "".join(
        tag("span", text("span", word.text), " ", number(float(weight)), class_="cv-seen")
        for word, weight in zip(row.condition_words, row.condition_weights, strict=True)
    )
    special = f"{100 * row.hidden_mass:.0f} % on special tokens."
    return f"Condition: {seen}{special}" if row.condition_weights.any() else special


def render_heads(heads: HeadMap, *, place: int) -> str:
    """Write layers x heads as a grid of buttons, and the words of one head below; the script fills both.

    Args:
        heads: From `condviz.analysis.attention.read_heads`.
        place: Position of the sentence.
    """
    sources = {"sentence": heads.sentence}
    if heads.from_condition is not None:
        sources = {"condition": heads.from_condition, **sources}
    labels = {"condition": "the condition’s first token",
              "sentence": "the sentence’s first token"}  # fmt: skip
    scale = fit_scale(list(sources.values()))
    choices = join(
        tag(
            "label",
            f'<input type="radio" name="cv-heads" value="{key}"{" checked" if i == 0 else ""}>',
            tag("span", f"From {labels[key]}"),
        )
        for i, key in enumerate(sources)
    )
    switch = tag("div", choices, class_="cv-segments", role="radiogroup", aria_label="Whose attention")
    first = next(iter(sources.values()))
    words = [word.text for word in heads.words]
    detail = render_strip(Strip("", "Words of the chosen head", words, first[-1].mean(axis=0)), scale)
    payload = {key: np.round(values, 4).tolist() for key, values in sources.items()}
    note = (
        "Router switched off. A cell shows its strongest word, or the word that is held or pointed at. "
        "Choose a cell to see all words."
    )
    return tag(
        "section",
        tag("div", tag("h2", "Layers and heads"), switch, class_="cv-section-head"),
        tag("div", _grid(first, scale), class_="cv-scroll cv-heads-box"),
        tag("p", "", class_="cv-heads-said", role="status", data_testid="heads-said"),
        tag("div", detail, class_="cv-strips", data_text=place, data_testid="head-words"),
        legend(scale, "", "attention", note),
        class_="cv-router-part cv-heads",
        data_testid="heads",
        data_limit=scale.limit,
        data_values=json.dumps(payload),
    )


def _grid(values: np.ndarray, scale: Scale) -> str:
    peaks = values.max(axis=2, initial=0)
    layers, heads = peaks.shape
    head = tag("tr", tag("th", "", scope="col"), *[tag("th", str(h + 1), scope="col") for h in range(heads)])
    rows = [
        tag(
            "tr",
            tag("th", f"Layer {layer + 1}", scope="row"),
            *[_cell(layer, h, float(peaks[layer, h]), scale) for h in range(heads)],
        )
        for layer in reversed(range(layers))
    ]
    return tag("table", tag("thead", head), tag("tbody", *rows), class_="cv-heads-grid")


def _cell(layer: int, head: int, value: float, scale: Scale) -> str:
    return tag(
        "td",
        tag(
            "button", number(value, 2).replace("0.", ".", 1), type="button", class_="cv-head", tabindex="-1",
            data_layer=layer, data_head=head, aria_pressed="false", aria_label=f"Layer {layer + 1}, head {head + 1}",
            **scale.attributes(value),
        ),
    )  # fmt: skip


def render_detail_head(
    infos: Sequence[ModelInfo], sentences: Sequence[str], conditions: Sequence[str], chosen: tuple[int, int, int]
) -> str:
    """Write the selects of model, sentence and condition that the pictures and the heads are about."""
    names = [f"{letter(i)} \N{MIDDLE DOT} {condition}" for i, condition in enumerate(conditions)]
    pickers = [
        pick("model", "Model", [info.title for info in infos], chosen[0]),
        pick("text", "Sentence", [str(i + 1) for i in range(len(sentences))], chosen[1]),
        pick("condition", "Condition", names, chosen[2]),
    ]
    head = tag("h2", "The three pictures of the CSR paper")
    return tag("div", head, tag("div", *pickers, class_="cv-pickers"), class_="cv-section-head")
