"""Inside the router of CSR: scores, shares, new states, the paper's pictures, the deletion test."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from markupsafe import Markup
from pydantic import Field

from condviz.ui.learn.figures.base import Figure, Lines, Sentence
from condviz.ui.state import write_link

SHOWN_NUMBERS = 3
Layer = Annotated[int, Field(ge=3, le=6)]
Temperature = Annotated[float, Field(ge=0.25, le=16, multiple_of=0.25)]


class _Router(Figure):
    """A figure of the shipped CSR model, which routes layers 3 to 6."""

    layer: Layer = 4

    def models(self, default: str) -> list[str]:
        """See `Figure`."""
        return ["csr"]

    def place(self, model: Any) -> int:  # noqa: ANN401 - loaded; its module is heavy
        """Return the place of the layer among the routed ones; another model may have fewer."""
        layers = list(model.routed_layers)
        return min(max(self.layer - 1 - layers[0], 0), len(layers) - 1)


class RouterChoice(_Router):
    """Choose a word, then see which one the router weighs."""

    name: ClassVar[str] = "router-choice"
    sentence: Sentence = Field(title="Sentence")
    condition: Sentence = Field(title="Condition")

    def compute(self, models: list[Any]) -> dict[str, Any]:
        """Read the weights of the words."""
        found = models[0].token_weights(self.sentence, [self.condition])
        weights = found.weights[self.place(models[0]), 0]
        return {"words": [[word.text, float(weight)] for word, weight in zip(found.words, weights, strict=True)]}

    def view(self, data: dict[str, Any]) -> dict[str, Any]:
        """Leave marks out of the choice, and give the three heaviest words."""
        words = [word for word in data["words"] if any(map(str.isalnum, word[0]))]
        return {"words": words, "top": sorted(words, key=lambda word: -word[1])[:3]}

    def link(self) -> str:
        """Open the Words tab."""
        return write_link("router", [("s1", self.sentence), ("c", self.condition), ("m", "csr")])


class RouterScores(_Router):
    """The score of every token."""

    name: ClassVar[str] = "router-scores"
    sentence: Sentence = Field(title="Sentence")
    condition: Sentence = Field(title="Condition")
    layer: Layer = Field(4, title="Layer")
    temperature: Temperature = 1.0

    def compute(self, models: list[Any]) -> dict[str, Any]:
        """Follow the sentence to the layer."""
        from condviz.analysis.lessons.routing import trace_router

        model = models[0]
        layer = model.routed_layers[self.place(model)] + 1
        trace = trace_router(model, self.sentence, self.condition, layer=layer, temperature=self.temperature)
        # Those numbers of the state that are largest over all tokens: most are near 0.
        places = np.sort(np.argsort(-np.abs(trace.before).mean(axis=0))[:SHOWN_NUMBERS])
        return {
            "tokens": trace.tokens, "scores": trace.scores.round(3).tolist(),
            "weights": trace.weights.round(4).tolist(), "places": (places + 1).tolist(), "size": trace.before.shape[1],
            "before": trace.before[:, places].round(3).tolist(),
        }  # fmt: skip

    def view(self, data: dict[str, Any]) -> dict[str, Any]:
        """Give one row per token, and the heaviest."""
        names = ("token", "score", "weight", "before")
        rows = [
            dict(zip(names, row, strict=True))
            for row in zip(data["tokens"], data["scores"], data["weights"], data["before"], strict=True)
        ]
        return {
            "rows": rows, "top": max(rows, key=lambda row: row["weight"]), "places": data["places"],
            "size": data["size"], "largest": max(abs(row["score"]) for row in rows) or 1,
            "total": sum(np.exp(row["score"] / self.temperature) for row in rows),
        }  # fmt: skip

    def link(self) -> str:
        """Open the Words tab."""
        return write_link("router", [("s1", self.sentence), ("c", self.condition), ("m", "csr")])


class RouterShares(RouterScores):
    """Softmax: scores become shares of one."""

    name: ClassVar[str] = "router-shares"
    temperature: Temperature = Field(1.0, title="Temperature")


class RouterStates(RouterScores):
    """The factor, and what it makes of the state of each token."""

    name: ClassVar[str] = "router-states"
    factor: Literal["1 + w", "w alone", "1, no router"] = Field("1 + w", title="Multiply by")

    def view(self, data: dict[str, Any]) -> dict[str, Any]:
        """Add the factor of each token."""
        shown = super().view(data)
        for row in shown["rows"]:
            row["factor"] = {"1 + w": 1 + row["weight"], "w alone": row["weight"]}.get(self.factor, 1.0)
        return shown


class RouterScore(_Router):
    """The score of a pair when the router is made blunt, or a word is dropped."""

    name: ClassVar[str] = "router-score"
    sentence1: Sentence = Field(title="Sentence 1")
    sentence2: Sentence = Field(title="Sentence 2")
    condition: Sentence = Field(title="Condition")
    temperature: Temperature = Field(1.0, title="Temperature")
    without: Sentence = Field("", title="Word dropped from sentence 1")

    def compute(self, models: list[Any]) -> dict[str, Any]:
        """Score the pair as it is asked for, as the model was trained, and without a condition."""
        from condviz.analysis.errors.rewrites import replace_word
        from condviz.analysis.lessons.routing import cosine, trace_router
        from condviz.encoder.words import split_words

        model, second, dropped = models[0], self.sentence2, self.without.strip()
        shorter = replace_word(self.sentence1, dropped, "") if dropped else None
        vectors = [
            trace_router(model, text, self.condition, temperature=self.temperature).vector
            for text in (shorter or self.sentence1, second)
        ]
        return {
            "score": cosine(*vectors),
            "trained": float(model.score([self.sentence1], [second], [self.condition])[0]),
            "plain": float(model.score_unconditional([self.sentence1], [second])[0]),
            "words": [word.text for word in split_words(self.sentence1) if any(map(str.isalnum, word.text))],
            "missing": bool(dropped) and shorter is None,
        }

    def link(self) -> str:
        """Open the Compare tab."""
        texts = [("s1", self.sentence1), ("s2", self.sentence2), ("c", self.condition)]
        return write_link("compare", [*texts, ("m", "csr")])


class RouterPictures(_Router):
    """Figures 5 to 7 of the paper."""

    name: ClassVar[str] = "router-pictures"
    button: ClassVar[str] = "Draw"
    sentence: Sentence = Field(title="Sentence")
    conditions: Lines = Field(title="Conditions, one per line")

    def compute(self, models: list[Any]) -> dict[str, Any]:
        """Read the attention and draw it."""
        from condviz.analysis.attention import read_pictures
        from condviz.plots import router

        return {"drawn": str(router.figures(read_pictures(models[0], self.sentence, list(self.conditions))))}

    def view(self, data: dict[str, Any]) -> dict[str, Any]:
        """Mark what was rendered, and escaped, as markup."""
        return {"drawn": Markup(data["drawn"])}

    def link(self) -> str:
        """Open the section of the Words tab."""
        conditions = [("c", text) for text in self.conditions]
        return write_link("router", [("s1", self.sentence), *conditions, ("m", "csr"), ("open", "figures")])


class Deletion(_Router):
    """The deletion test of the Words tab."""

    name: ClassVar[str] = "deletion"
    sentence1: Sentence = Field(title="Sentence 1")
    sentence2: Sentence = Field(title="Sentence 2")
    condition: Sentence = Field(title="Condition")
    layer: Layer = Field(6, title="Words that weigh most in layer")
    count: Annotated[int, Field(ge=1, le=5)] = Field(1, title="Words deleted")

    def compute(self, models: list[Any]) -> dict[str, Any]:
        """Delete the heaviest words, and as many random ones."""
        from condviz.analysis.words import delete_words, read_words
        from condviz.plots import router

        reading = read_words(models[0], [self.sentence1, self.sentence2], [self.condition])
        layer = self.place(models[0])
        test = delete_words(models[0], reading, self.count, layer=layer)
        words = [
            [text.words[i].text for i in np.argsort(-text.weights[layer, 0])[: self.count]] for text in reading.texts
        ]
        return {"drawn": str(router.deletion([test], [reading.model.title])), "words": words}

    def view(self, data: dict[str, Any]) -> dict[str, Any]:
        """Mark what was rendered, and escaped, as markup."""
        return data | {"drawn": Markup(data["drawn"])}

    def link(self) -> str:
        """Open the section of the Words tab."""
        texts = [("s1", self.sentence1), ("s2", self.sentence2), ("c", self.condition), ("m", "csr")]
        return write_link("router", [*texts, ("open", "deletion")])


FIGURES = (RouterChoice, RouterScores, RouterShares, RouterStates, RouterScore, RouterPictures, Deletion)
