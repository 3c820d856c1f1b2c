"""Inside the router of CSR: scores, shares, new states, the paper's pictures, the deletion test."""

# Choices of menus are the keys of tables, which are no literals to pyright.
# pyright: reportInvalidTypeForm=false
from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from markupsafe import Markup
from pydantic import Field

from condviz.ui.learn.figures.base import HIDDEN, Figure, Lines, Sentence
from condviz.ui.state import pair_link

FACTORS = {"1 + w": lambda weight: 1 + weight, "w alone": lambda weight: weight, "1, no router": lambda _: 1.0}
Layer = Annotated[int, Field(ge=3, le=6)]
Temperature = Annotated[float, Field(ge=0.25, le=16, multiple_of=0.25)]


class _Router(Figure):
    """A figure of the shipped CSR model, which routes layers 3 to 6."""

    section: ClassVar[str] = ""
    """Of the Words tab, which the link opens."""
    model: str = "csr"
    layer: Layer = 4

    def place(self, model: Any) -> int:  # noqa: ANN401 - loaded; its module is heavy
        """Return the place of the layer among the routed ones; another model may have fewer."""
        layers = list(model.routed_layers)
        return min(max(self.layer - 1 - layers[0], 0), len(layers) - 1)

    def link(self) -> str:
        values = self.model_dump()
        texts = [values[name] for name in ("sentence", "sentence1", "sentence2") if name in values]
        conditions = values.get("conditions") or [values["condition"]]
        return pair_link("words", texts, conditions, self.model, section=self.section)


class RouterChoice(_Router):
    """Choose a word, then see which one the router weighs."""

    sentence: Sentence = Field(title="Sentence")
    condition: Sentence = Field(title="Condition")

    def compute(self, models: list[Any]) -> dict[str, Any]:
        found = models[0].token_weights(self.sentence, [self.condition])
        weights = found.weights[self.place(models[0]), 0].round(4).tolist()
        return {"words": [[word.text, weight] for word, weight in zip(found.words, weights, strict=True)]}

    def view(self, data: dict[str, Any]) -> dict[str, Any]:
        """Leave marks out of the choice, and give the three heaviest words."""
        words = [word for word in data["words"] if any(map(str.isalnum, word[0]))]
        return {"words": words, "top": sorted(words, key=lambda word: -word[1])[:3]}


class RouterTokens(_Router):
    """The formula, a row per token."""

    columns: tuple[Literal["score", "power", "share", "state"], ...]
    sentence: Sentence = Field(title="Sentence")
    condition: Sentence = Field(title="Condition")
    layer: Layer = Field(4, title="Layer")
    temperature: Temperature = Field(1.0, title="Temperature")
    factor: Literal[*FACTORS] = Field("1 + w", title="Multiply by")

    def compute(self, models: list[Any]) -> dict[str, Any]:
        from condviz.analysis.lessons import trace_router

        layer = models[0].routed_layers[self.place(models[0])] + 1
        trace = trace_router(models[0], self.sentence, self.condition, layer=layer, temperature=self.temperature)
        # The number of the state that is largest over all tokens: most are near 0.
        place = int(np.abs(trace.before).mean(axis=0).argmax())
        numbers = trace.scores.round(3), trace.weights.round(4), trace.before[:, place].round(3)
        rows = list(zip(trace.tokens, *(column.tolist() for column in numbers), strict=True))
        return {"rows": rows, "place": place + 1, "size": trace.before.shape[1]}

    def view(self, data: dict[str, Any]) -> dict[str, Any]:
        """Name the numbers of each row, add its factor, and give the heaviest."""
        names = ("token", "score", "weight", "before")
        rows: list[dict[str, Any]] = [dict(zip(names, row, strict=True)) for row in data["rows"]]
        for row in rows:
            power = np.exp(row["score"] / self.temperature)
            row["power"] = f"{power:,.{2 if power < 1e4 else 0}f}" if 0.01 <= power < 1e9 else f"{power:.1e}"
            row["factor"] = FACTORS[self.factor](row["weight"])
        top = max(rows, key=lambda row: row["weight"])
        return data | {"rows": rows, "top": top, "largest": max(abs(row["score"]) for row in rows) or 1}


class RouterScore(_Router):
    """The score of a pair when the router is made blunt, or a word is dropped."""

    sentence1: Sentence = Field(title="Sentence 1")
    sentence2: Sentence = Field(title="Sentence 2")
    condition: Sentence = Field(title="Condition")
    temperature: Temperature = Field(1.0, title="Temperature")
    without: Sentence = Field("", title="Word dropped from sentence 1", json_schema_extra=HIDDEN)

    def compute(self, models: list[Any]) -> dict[str, Any]:
        from condviz.analysis.errors.rewrites import replace_word
        from condviz.analysis.lessons import cosine, trace_router
        from condviz.data.texts import split_words

        model, one, two = models[0], self.sentence1, self.sentence2
        dropped = self.without.strip()
        shorter = replace_word(one, dropped, "") if dropped else one
        traces = [
            trace_router(model, text, self.condition, temperature=self.temperature) for text in (shorter or one, two)
        ]
        return {
            "score": cosine(*(trace.vector for trace in traces)),
            "trained": float(model.score([one], [two], [self.condition])[0]),
            "plain": float(model.score_unconditional([one], [two])[0]),
            "words": [word.text for word in split_words(one) if any(map(str.isalnum, word.text))],
            "missing": shorter is None,
        }


class _Drawn(_Router):
    """A picture of the Words tab, kept as markup: rendered, and escaped, by its own template."""

    def view(self, data: dict[str, Any]) -> dict[str, Any]:
        return data | {"drawn": Markup(data["drawn"])}


class RouterPictures(_Drawn):
    """Figures 5 to 7 of the paper."""

    button: ClassVar[str] = "Draw"
    section: ClassVar[str] = "figures"
    sentence: Sentence = Field(title="Sentence")
    conditions: Lines = Field(title="Conditions, one per line")

    def compute(self, models: list[Any]) -> dict[str, Any]:
        from condviz.analysis.attention import read_pictures
        from condviz.plots import words

        return {"drawn": str(words.figures(read_pictures(models[0], self.sentence, list(self.conditions))))}


class Deletion(_Drawn):
    """The deletion test of the Words tab."""

    section: ClassVar[str] = "deletion"
    sentence1: Sentence = Field(title="Sentence 1")
    sentence2: Sentence = Field(title="Sentence 2")
    condition: Sentence = Field(title="Condition")
    layer: Layer = Field(6, title="Words that weigh most in layer")
    count: Annotated[int, Field(ge=1, le=5)] = Field(1, title="Words deleted")

    def compute(self, models: list[Any]) -> dict[str, Any]:
        """Delete the heaviest words, and as many random ones."""
        from condviz.analysis.words import delete_words, read_words
        from condviz.plots.words import deletion

        reading = read_words(models[0], [self.sentence1, self.sentence2], [self.condition])
        # The test takes the last layer that it is given.
        end = self.place(models[0]) + 1
        reading = replace(reading, texts=tuple(replace(text, weights=text.weights[:end]) for text in reading.texts))
        test = delete_words(models[0], reading, self.count)
        order = [np.argsort(-text.weights[-1, 0])[: self.count] for text in reading.texts]
        words = [[text.words[i].text for i in places] for text, places in zip(reading.texts, order, strict=True)]
        return {
            "drawn": str(deletion(test, reading.model.title)), "words": words,
            "moved": test.top_move, "random": float(test.random_moves.mean()),
        }  # fmt: skip
