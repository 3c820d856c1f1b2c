"""The Words tab: one sentence as running text, tinted by what a model reads under the chosen condition."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import gradio as gr

from condviz.analysis.words import WordReading, check_texts, delete_words, read_words, to_record
from condviz.data.examples import Example, load_examples
from condviz.data.texts import check_sentence
from condviz.encoder import DEFAULT_BACKBONE
from condviz.errors import CondvizError, DataError
from condviz.methods.catalog import CATALOG, VARIANTS, describe_variant, split_variant
from condviz.plots import words
from condviz.types import ModelInfo
from condviz.ui import export
from condviz.ui.events import connect, publish, steps_of
from condviz.ui.export import show_first
from condviz.ui.markup import busy, dimmed, html, noted, render
from condviz.ui.page import Fields, Page, Section, Tab, closed, model_row, text_box, tries
from condviz.ui.pool import Work
from condviz.ui.speed import Budget
from condviz.ui.state import Values, conditions_of, first, joined, lines, number, pair_link

BUDGET = Budget(1.0)
MAX_MODELS = 8
"""Lines below one another that can be compared by eye."""
MAX_TOKENS = 6_000
"""Words that a browser lays out without a pause."""
TABLE_ROWS = 1_000
WORKS = ("monks-and-grandmothers", "cat-on-piano", "boat-two-five")
FAILING = {"camel-tram": (1, "camel")}
"""Examples of the gallery whose words the best router reads; those where it reads a wrong one: the position of the
condition, and the word that a person would pick."""


def was_taught(info: ModelInfo) -> bool:
    """Whether a model has a router that was trained: on other encoders it has the weights of a bi-encoder alone."""
    return info.has_router and info.trained and info.encoder == DEFAULT_BACKBONE


class WordsTab:
    """Widgets and events of the tab."""

    def __init__(self, page: Page) -> None:
        self.page, self.pool = page, page.pool
        gallery = {example.id: example for example in load_examples()}
        self.examples = {name: gallery[name] for name in (*WORKS, *FAILING) if name in gallery}
        with gr.Row(elem_classes="cv-split"):
            with gr.Column(elem_classes="cv-form cv-inputs", scale=0, min_width=320):
                self._form(next(iter(self.examples.values()), None))
            with gr.Column(elem_classes="cv-output", scale=1, min_width=320):
                script = "condviz.running(element, watch);"
                self.result = html("", elem_id="cv-words-result", script=script)
                fails = {name: " (where it fails)" for name in FAILING}
                chips = [(name, f"{one.title}{fails.get(name, '')}") for name, one in self.examples.items()]
                script = "condviz.examples(element, (data) => trigger('example', data));"
                offered = tries(chips, carried="Your texts from Compare")
                self.tries = html(offered, elem_id="cv-words-tries", script=script)
        self.shown, self.carried = gr.State(None), gr.State("")
        self._sections()
        self._connect()
        page.site.first.append(partial(show_first, self, WordReading, partial(self._picture, first=True)))

    # ---- layout ------------------------------------------------------------------------------------------------------
    def _form(self, start: Example | None) -> None:
        boxed = {"lines": 3, "max_lines": 5, "elem_classes": "cv-sentence-box"}
        self.sentence = text_box(start.sentence1 if start else "", "Sentence", "cv-words-sentence", **boxed)
        under = "\n".join(start.conditions) if start else ""
        self.conditions = text_box(under, "Conditions, one per line", "cv-words-conditions", lines=3, max_lines=8)
        self.model, self.run, self.stop = model_row("cv-words", "Show", min_width=70)
        self.notice = html("", elem_id="cv-words-main-notice")
        boxed = {"lines": 1, "max_lines": 6, "elem_classes": "cv-sentence-box", "scale": 4}
        self.sentence2 = text_box("", "Second sentence", "cv-words-sentence2", render=False, **boxed)
        self.form = [self.sentence, self.sentence2, self.conditions, self.model]

    def _sections(self) -> None:
        self.parts: dict[str, Section] = {}
        with self._part("strips", "All conditions, one below the other", self.show_strips) as part:
            with gr.Row(elem_classes="cv-actions"):
                self.tokens = gr.Checkbox(False, label="Show the model’s sub-tokens instead of words", container=False)
                self.layer = gr.Dropdown([], label="Routed layer", visible=False, min_width=160)
            part.ask(self.tokens, self.layer)
            self.strips = html("", elem_id="cv-words-strips-view")
        with self._part("pair", "Two sentences", self.show_pair, self.result, self.shown) as part:
            with gr.Row(elem_classes="cv-actions"):
                self.sentence2.render()
                part.on(gr.Button("Show both", scale=0, min_width=120, elem_id="cv-words-both").click)
            self.pair = html("", elem_id="cv-words-pair-view")
        with self._part("difference", "Difference between two conditions", self.show_difference) as part:
            with gr.Row(elem_classes="cv-actions"):
                self.more = gr.Dropdown([], label="Condition", min_width=160)
                self.less = gr.Dropdown([], label="minus", min_width=160)
            part.ask(self.more, self.less)
            self.difference = html("", elem_id="cv-words-difference-view")
        with self._part("models", "Other models and variants of the router", self.show_models) as part:
            self.others = gr.CheckboxGroup([], label=f"Models, up to {MAX_MODELS}")
            part.ask(self.others)
            self.side = html("", elem_id="cv-words-models-view")
        with self._part("deletion", "Does the model use these words? The deletion test", self.show_deletion) as part:
            self.deleting = Fields(delete_words, prefix="cv-words")
            part.ask(*self.deleting.components.values(), event="release")
            self.deletion = html("", elem_id="cv-words-deletion-view")
        with self._part("heads", "Layers and heads", self.show_heads) as part:
            self.head_condition = gr.Dropdown([], label="Condition", min_width=160)
            part.ask(self.head_condition)
            self.heads = html("", elem_id="cv-words-heads-view", script="condviz.heads(element, watch);")
        with self._part("figures", "Figures 5 to 7 of the CSR paper", self.show_figures) as part:
            self.figure_condition = gr.Dropdown([], label="Condition of Figures 5 and 6", min_width=160)
            part.ask(self.figure_condition)
            self.figures = html("", elem_id="cv-words-figures-view")
        with self._part("export", "Table, link, JSON, CSV, Python", self.show_exports):
            self.hand_out = html("", elem_id="cv-words-hand-out")
            self.table = gr.Dataframe(interactive=False, max_height=420, elem_id="cv-words-table")

    def _part(self, name: str, title: str, handler: Callable, *also: Any) -> Section:  # noqa: ANN401 - components
        """Lay out a section whose handler takes a reading; a link may open it before the sentence has been read."""

        def show(*inputs: Any) -> Iterator[dict]:  # noqa: ANN401
            form, (reading, *chosen) = inputs[:4], inputs[4:]
            if reading is None:
                reading = yield from self.parts[name].follow(self._start_reading(*form), "Reading the words.")
            yield from steps_of(handler(reading, *(form[:2] if name == "pair" else ()), *chosen))

        self.parts[name] = Section(self.page, name, title, show, [*self.form, self.shown], also=also)
        return self.parts[name]

    # ---- events ------------------------------------------------------------------------------------------------------
    def _connect(self) -> None:
        asked = [*self.form, self.shown]
        done = [self.result, self.shown, self.pair, *self.page.folded]
        controls = [self.tokens, self.layer, self.more, self.less, self.others, self.head_condition]
        controls += [self.figure_condition, *self.deleting.components.values()]
        main = {"notice": self.notice, "stop": self.stop, "heavy": True}
        typed = [self.run.click, self.model.input]
        connect(typed, self.read_own, [*asked, self.carried], [self.sentence2, *done], **main)
        connect(self.tries.example, self.example, [self.shown], [*self.form, *done], **main)
        filled = [*self.form, self.carried, *done, *controls]
        self.page.on_link(self.open_link, asked, filled, needs=("s1", "rs1", "c", "rc"), **main)
        self.page.on_models(self.model, self.choices)
        publish(self.api_router, "router")

    def read_own(
        self, sentence: str, sentence2: str, conditions: str, model: str, shown: WordReading | None, carried: str
    ) -> Iterator[dict]:
        """Read what the form holds; a second sentence that a link has carried here goes with the first one it had."""
        if shown and carried and sentence2 == carried and sentence.strip() != shown.texts[0].sentence:
            sentence2 = ""
            yield {self.sentence2: ""}
        yield from self.read(sentence, sentence2, conditions, model, shown)

    def read(
        self, sentence: str, sentence2: str, conditions: str, model: str, shown: WordReading | None, chosen: int = 0,
        expected: str = "", link: Values | None = None,
    ) -> Iterator[dict]:  # fmt: skip
        """Read the sentence under every condition.

        Args:
            sentence, sentence2, conditions, model: The form.
            shown: The reading before.
            chosen: Position of the condition that is shown first.
            expected: The word that a person would pick under it, if that is to be told.
            link: Values of the link that asks for it.
        """
        # Not dimmed at once: where the result follows closely, the page would lose the word that its address holds.
        before = dimmed(self._picture(shown) if shown else "")
        try:
            work = self._start_reading(sentence, sentence2, conditions, model)
            for done, total in work.steps():
                doing = "Reading with" if self.pool.loaded(model) else "Loading"
                message = busy(f"{doing} {self.pool.info(model).title}.", done, total)
                yield {self.notice: message, self.result: before, self.stop: gr.update(visible=True)}
            reading = work.result()
        except Exception:
            yield {self.result: before}
            raise
        pair, both = self.parts["pair"].accordion, len(reading.texts) == 2
        yield {
            self.result: self._picture(reading, chosen, expected, asked="1"),
            self.shown: reading,
            **(closed(part for part in self.page.folded if not (both and part is pair)) if shown else {}),
            **({self.pair: words.strips([reading])} if both else {}),
            **(self._controls(reading, link) if link else {}),
        }
        if both:  # what is read is to be seen
            yield {pair: gr.Accordion(open=True)}

    def example(self, event: gr.EventData, shown: WordReading | None) -> Iterator[dict]:
        """Fill the form with an example, and read it with the best router."""
        example = self.examples.get(name := str(event.id))
        if example is None:
            raise DataError("This example does not exist any more. Reload the page.")
        form = example.sentence1, "", "\n".join(example.conditions), self.default
        yield dict(zip(self.form, form, strict=True))
        chosen, expected = FAILING.get(name, (0, ""))
        yield from self.read(*form, shown, chosen, expected)

    def open_link(self, values: Values, *given: Any) -> Iterator[dict]:  # noqa: ANN401 - the form and what is shown
        *_, model, shown = given
        sentence, sentence2, conditions, names = _texts(values)
        known = [base for base, _ in map(split_variant, names) if base in self.pool.names]  # a variant opens its model
        # Links of the first edition name several models; the best router leads.
        model = self.default if self.default in known else next(iter(known), model)
        form = sentence, sentence2, joined(conditions), model
        yield dict(zip(self.form, form, strict=True)) | {self.carried: sentence2}
        chosen = number(values, "at", 0, low=0, high=max(0, len(lines(form[2])) - 1))
        yield from self.read(*form, shown, chosen=chosen, link=values)

    def _controls(self, reading: WordReading, link: Values) -> dict:
        """Set the controls of the sections as a link has them."""
        choices, layers, last = self._readers(), _layers(reading), len(reading.conditions) - 1
        conditions = (
            (self.more, "more", 0), (self.less, "less", min(1, last)),
            (self.head_condition, "heads", 0), (self.figure_condition, "figures", 0),
        )  # fmt: skip
        return {
            self.tokens: "tokens" in link,
            self.layer: gr.Dropdown(layers, value=number(link, "layer", -1, low=-len(layers), high=-1)),
            self.others: gr.CheckboxGroup(choices, value=_known(choices, link.get("others", []))),
            **self.deleting.updates(self.deleting.read(link)),
            **{menu: _menu(reading, number(link, key, place, low=0, high=last)) for menu, key, place in conditions},
        }

    # ---- sections; what is chosen in them becomes part of the address ------------------------------------------------
    def show_strips(self, reading: WordReading, tokens: bool, layer: int | None) -> dict:
        _check_size([reading])
        depth = len(reading.texts[0].weights)
        layer = layer if layer is not None and layer in range(-depth, 0) else -1
        first = replace(reading, texts=reading.texts[:1], scores=None)  # both stand in a section of their own
        strips = words.strips([first], layer=layer, tokens=bool(tokens))
        return {
            self.strips: noted(strips, tokens="1" if tokens else "", layer=_unless(layer, -1)),
            self.layer: gr.Dropdown(_layers(reading), value=layer, visible=depth > 1),
        }

    def show_pair(self, reading: WordReading, sentence: str, sentence2: str) -> Iterator[dict]:
        """Read a second sentence beside the first."""
        if len(reading.texts) == 2 and not sentence2.strip():
            sentence2 = reading.texts[1].sentence
        if not sentence2.strip():
            yield {self.pair: render("words/second.html")}
            return
        known = [text.sentence for text in reading.texts] == [sentence.strip(), sentence2.strip()]
        if not known:
            work = self._start_reading(sentence, sentence2, "\n".join(reading.conditions), reading.model.name)
            reading = yield from self.parts["pair"].follow(work, "Reading both sentences.")
        _check_size([reading])
        # Of what was known already the section alone: it may be opened late, when other texts are being read.
        new = {self.shown: reading, self.result: self._picture(reading, keep="1", replace="1")}
        yield {self.pair: words.strips([reading])} | ({} if known else new)

    def show_difference(self, reading: WordReading, more: int | None, less: int | None) -> dict:
        if len(reading.conditions) < 2:
            raise DataError("There is only one condition. Add a second one to see a difference.")
        more, less = _place(reading, more), _place(reading, less, 1)
        shown = words.difference([reading], more, less)
        return {
            self.difference: noted(shown, more=_unless(more, 0), less=_unless(less, 1)),
            self.more: _menu(reading, more),
            self.less: _menu(reading, less),
        }

    def show_models(self, reading: WordReading, others: list[str]) -> Iterator[dict]:
        choices = self._readers()
        infos = [self._info(name) for _, name in choices]
        routers = [info.name for info in infos if info.has_router and info.trained][:MAX_MODELS]
        chosen = _known(choices, others) or routers
        if len(chosen) > MAX_MODELS:
            raise DataError(f"{len(chosen)} models are chosen, and at most {MAX_MODELS} can be shown. Leave some out.")
        yield {self.others: gr.CheckboxGroup(choices, value=chosen)}
        texts = [text.sentence for text in reading.texts]
        readings, failed = [], {}
        for name in chosen:
            title = self._info(name).title
            try:
                work = self._run(name, read_words, texts, reading.conditions)
                readings.append((yield from self.parts["models"].follow(work, f"Reading with {title}.")))
            except CondvizError as error:
                failed[title] = str(error)
            _check_size(readings)
            side = render("words/models.html", strips=words.strips(readings) if readings else "", failed=failed)
            yield {self.side: noted(side, others=_unless(chosen, routers))}

    def show_deletion(self, reading: WordReading, *fields: Any) -> Iterator[dict]:  # noqa: ANN401
        options = self.deleting.check(fields)
        work = self._run(reading.model.name, partial(delete_words, **options), reading)
        test = yield from self.parts["deletion"].follow(work, "Deleting words and scoring again.")
        shown = words.deletion(test, reading.model.title)
        yield {self.deletion: noted(shown, **self.deleting.note(options))}

    def show_heads(self, reading: WordReading, condition: int | None) -> Iterator[dict]:
        from condviz.analysis.attention import read_heads

        place = _place(reading, condition)
        work = self._run(reading.model.name, read_heads, reading.texts[0].sentence, reading.conditions[place])
        found = yield from self.parts["heads"].follow(work, "Reading layers and heads.")
        shown = noted(words.heads(found), heads=_unless(place, 0))
        yield {self.heads: shown, self.head_condition: _menu(reading, place)}

    def show_figures(self, reading: WordReading, condition: int | None) -> Iterator[dict]:
        from condviz.analysis.attention import read_pictures

        place = _place(reading, condition)
        work = self._run(reading.model.name, read_pictures, reading.texts[0].sentence, reading.conditions)
        pictures = yield from self.parts["figures"].follow(work, "Reading the attention.")
        shown = noted(words.figures(pictures, place), figures=_unless(place, 0))
        yield {self.figures: shown, self.figure_condition: _menu(reading, place)}

    def show_exports(self, reading: WordReading) -> dict:
        texts = [text.sentence for text in reading.texts]
        call = [("model", reading.model.name), ("sentences", texts), ("conditions", list(reading.conditions))]
        frame = reading.to_frame().drop(columns=["model", "revision", "source", "start", "end"])
        last = frame[frame["layer"] == frame["layer"].max()] if reading.source == "router" else frame
        offered = {"link": _link(reading), "python": export.python_call("read_words", call), "file": "words.csv"}
        return {self.hand_out: export.offer(reading, **offered), self.table: last.head(TABLE_ROWS).round(3)}

    # ---- endpoint ----------------------------------------------------------------------------------------------------
    def api_router(
        self, sentence1: str, sentence2: str, conditions: list[str], models: list[str], delete: int = 0
    ) -> dict[str, Any]:
        """Return the weight of every word of one or two sentences under every condition.

        Args:
            sentence1: First sentence.
            sentence2: Second sentence, or "" for a single one.
            conditions: One to twelve conditions.
            models: Names as /models lists them, or variants of a CSR model such as csr@hidden. For a model without a
                router the values are the effects of leaving out each word ("source": "leave-one-out").
            delete: Words to delete at once in the deletion test, from 1 to 10; 0 leaves it out.

        Returns:
            {"conditions", "models"}. Weights, ranks and shares have the shape (layers, conditions, words).
        """
        texts, conditions = check_texts(_sentences(sentence1, sentence2), conditions)
        names = list(dict.fromkeys(models))
        if not 1 <= len(names) <= MAX_MODELS:
            raise DataError(f"Choose 1 to {MAX_MODELS} models, got {len(names)}, for instance csr.")
        readings = [self._run(name, read_words, texts, conditions).result() for name in names]
        tests = [self._run(r.model.name, delete_words, r, delete).result() for r in readings] if delete else []
        return to_record(readings, tests)

    # ---- models ------------------------------------------------------------------------------------------------------
    @property
    def default(self) -> str:
        """The trained router that the page starts with; without one, the default of all pages."""
        return self.pool.choose(BUDGET, was_taught)

    def choices(self) -> list[tuple[str, str]]:
        return [*self.pool.choices(was_taught, BUDGET), *self.pool.choices(lambda info: not was_taught(info))]

    def _readers(self) -> list[tuple[str, str]]:
        """Return the models of the main menu and, behind each CSR model, its variants."""
        found = []
        for _, name in self.choices():
            info = self.pool.info(name)
            found.append((info.full_title, name))
            if info.trained and CATALOG[info.method].has_variants:
                found += [(f"{info.title}, {variant.title}", f"{name}@{key}") for key, variant in VARIANTS.items()]
        return found

    def _info(self, name: str) -> ModelInfo:
        base, variant = split_variant(name)
        return describe_variant(self.pool.info(base), variant) if variant else self.pool.info(base)

    def _run(self, name: str, function: Callable[..., Any], *args: Any) -> Work:  # noqa: ANN401
        base, variant = split_variant(name)
        return self.pool.run(_on_model, base, variant, function, *args)

    def _start_reading(self, sentence: str, sentence2: str, conditions: str, model: str) -> Work:
        # Named as the fields are; `check_texts` would count the sentences.
        names = ("the sentence", "the second sentence")
        texts = [check_sentence(text, name) for text, name in zip(_sentences(sentence, sentence2), names, strict=False)]
        texts, under = check_texts(texts, conditions_of(conditions))
        return self._run(model, read_words, texts, under)

    def _picture(
        self, reading: WordReading, chosen: int = 0, expected: str = "", *, first: bool = False, **flags: str
    ) -> str:
        """Render a reading; `first` is the stored one, in English."""
        wrong = expected and words.heaviest_word(reading.texts[0], chosen) != expected
        return render(
            "words/result.html", headline=words.headline(reading, english=first), reading=reading, link=_link(reading),
            running=words.running_text(reading, chosen=chosen), condition=reading.conditions[chosen],
            expected=expected if wrong else "", flags=flags,
        )  # fmt: skip


def _on_model(model: Any, variant: str, function: Callable[..., Any], *args: Any, progress: Any = None) -> Any:  # noqa: ANN401
    model = model.make_variant(variant) if variant else model
    told = {"progress": progress} if "progress" in inspect.signature(function).parameters else {}
    return function(model, *args, **told)


def _sentences(sentence: str, sentence2: str) -> list[str]:
    second = [sentence2] if isinstance(sentence2, str) and sentence2.strip() else []
    return [sentence, *second]


def _place(reading: WordReading, chosen: int | None, default: int = 0) -> int:
    """Return the position of a condition that was chosen, perhaps for a reading before; the default if it is none."""
    return chosen if chosen is not None and chosen in range(len(reading.conditions)) else default


def _menu(reading: WordReading, place: int) -> gr.Dropdown:
    """Offer the conditions by their positions."""
    return gr.Dropdown([(condition, number) for number, condition in enumerate(reading.conditions)], value=place)


def _layers(reading: WordReading) -> list[tuple[str, int]]:
    """Return the choices of routed layers, counted from the end."""
    layers = reading.texts[0].layers
    return [(f"Layer {index + 1}", place - len(layers)) for place, index in enumerate(layers)]


def _known(choices: Sequence[tuple[str, str]], wanted: Sequence[str]) -> list[str]:
    return [name for _, name in choices if name in wanted]


def _unless(value: Any, default: Any) -> Any:  # noqa: ANN401 - a value of a control
    """Return what a link holds for a value: nothing for the default."""
    return "" if value == default else value


def _check_size(readings: Sequence[WordReading]) -> None:
    count = sum(len(text.words) * len(text.conditions) for reading in readings for text in reading.texts)
    if count > MAX_TOKENS:
        raise DataError(
            f"This would show {count:,} words, and at most {MAX_TOKENS:,} can be shown at once. Leave out conditions "
            "or models, shorten the sentences, or use the command: python -m condviz router"
        )


def _texts(values: Values) -> tuple[str, str, list[str], list[str]]:
    """Return sentence, second sentence, conditions and models of a link; those of the first edition begin with r."""
    sentence, sentence2 = (first(values, key) or first(values, f"r{key}") for key in ("s1", "s2"))
    conditions, names = (values.get(key, values.get(f"r{key}", [])) for key in ("c", "m"))
    return sentence, sentence2, conditions, names


def _link(reading: WordReading) -> str:
    return pair_link("words", [text.sentence for text in reading.texts], reading.conditions, reading.model.name)


TAB = Tab("words", "Words", WordsTab)
