"""Filters that people write: `gold >= 4 and error < -1 and "dog" in shared`. Read as a tree, never run as code.

Names are columns. Numbers compare with < <= == != >= >, and + - * / abs() work on them; texts compare with == != and
with `in`, upper and lower case alike, and for == and != also runs of blanks; `"dog" in shared` asks for a whole word,
`"dog" in sentence1` for a part of the text; `condition in ("the sport", "the mood")` for one of several. `and`, `or`,
`not` and brackets join. A word, or a text in quotes, that stands alone is looked for in the texts. What is not known
(the error of a row without a rating) is neither true nor false, and a row is kept only where the filter is true.

The columns, too, are made here: what can be said about a row without any model.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from condviz.data.tables import to_number
from condviz.data.texts import fold
from condviz.errors import DataError, suggest

if TYPE_CHECKING:
    from condviz.evaluation.dataset import Dataset

MAX_CHARACTERS = 2000
FALSE, UNKNOWN, TRUE = 0, 1, 2
"""Truth as numbers: and is the smaller, or the larger, not is 2 - x (Kleene's logic)."""
_NUMERIC = {
    ast.Lt: np.less,
    ast.LtE: np.less_equal,
    ast.Gt: np.greater,
    ast.GtE: np.greater_equal,
    ast.Eq: np.equal,
    ast.NotEq: np.not_equal,
}
_ARITHMETIC = {ast.Add: np.add, ast.Sub: np.subtract, ast.Mult: np.multiply, ast.Div: np.divide}

Columns = Mapping[str, np.ndarray]

FLAGS = frozenset({"seen", "trained", "negation", "numerals", "numerals_differ", "right", "right_b"})
"""Columns that are true, false or not known; they may stand alone in a filter."""

TARGETS: dict[str, str] = {
    "over": "finds pairs too similar",
    "under": "finds pairs too different",
    "large": "is far off",
    "order": "orders the two conditions wrongly",
    "first": "is closer to the ratings than the other model",
    "second": "is further from the ratings than the other model",
}
"""What slices are looked for: those in which a model ..."""

RULES: dict[str, str] = {
    "number": "Raise the numbers of the second sentence by one, from two on",
    "negate": "Negate the second sentence, or take its negation away",
    "word": "Replace a word",
    "swap_conditions": "Swap the two conditions of the item",
    "swap_sentences": "Swap the two sentences",
}
"""How the rows of a slice may be changed."""

_NEGATIONS = (
    "no not never none nobody nothing nowhere neither nor without cannot isn't aren't wasn't weren't don't doesn't "
    "didn't hasn't haven't hadn't can't couldn't won't wouldn't shouldn't mustn't needn't hardly barely"
)
NEGATIONS = frozenset(_NEGATIONS.split())
_COUNTING = (
    "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen twenty"
)
COUNTING = tuple(_COUNTING.split())
_OTHER_NUMBERS = (
    "zero thirty forty fifty sixty seventy eighty ninety hundred thousand million dozen both couple single pair twice "
    "half"
)
NUMBER_WORDS = frozenset([*COUNTING, *_OTHER_NUMBERS.split()])
_WORD = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*")


@lru_cache(maxsize=100_000)
def word_list(text: str) -> tuple[str, ...]:
    """Return the words of a text in lower case, contractions and hyphenated words in one piece."""
    return tuple(word.replace("’", "'") for word in _WORD.findall(text.casefold()))


def has_negation(text: str) -> bool:
    """Return whether a text has a word of negation."""
    return not NEGATIONS.isdisjoint(word_list(text))


def numerals(text: str) -> frozenset[str]:
    """Return the number words and figures of a text."""
    return frozenset(word for word in word_list(text) if word in NUMBER_WORDS or any(map(str.isdigit, word)))


def describe_rows(dataset: Dataset) -> dict[str, np.ndarray]:
    """Compute a column per feature, (p,) each.

    Numbers are float64, flags float64 with 1, 0 or NaN (not known), texts and sets of words objects. `FEATURE_HELP`
    says what each one means.
    """
    sentences1, sentences2, conditions = dataset.texts()
    texts = list(zip(sentences1, sentences2, strict=True))
    words = [(word_list(one), word_list(two)) for one, two in texts]
    lengths = np.array([(len(one), len(two)) for one, two in words], dtype=float)
    shared = [frozenset(one) & frozenset(two) for one, two in words]
    either = [frozenset(one) | frozenset(two) for one, two in words]
    counts = [(numerals(one), numerals(two)) for one, two in texts]
    return {
        "row": dataset.numbers.astype(float),
        "sentence1": _objects(sentences1),
        "sentence2": _objects(sentences2),
        "condition": _objects(conditions),
        "gold": dataset.gold,
        "seen": np.full(len(words), np.nan) if dataset.seen is None else dataset.seen.astype(float),
        "trained": dataset.trained.astype(float),
        "length": lengths.mean(axis=1),
        "length_gap": np.abs(lengths[:, 0] - lengths[:, 1]),
        "overlap": np.array([len(s) / len(e) if e else 0.0 for s, e in zip(shared, either, strict=True)]),
        "negation": np.array([has_negation(one) != has_negation(two) for one, two in texts], dtype=float),
        "numerals": np.array([bool(one or two) for one, two in counts], dtype=float),
        "numerals_differ": np.array([one != two for one, two in counts], dtype=float),
        "shared": _objects(shared),
        "words": _objects(either),
        **{name: typed_cells(values) for name, values in dataset.extra.items()},
    }


def typed_cells(values: Sequence[str]) -> np.ndarray:
    """Return a column of a table as numbers if all its cells that are not blank are, else as its texts."""
    numbers = [to_number(value) for value in values]
    if all(number is not None or not value.strip() for number, value in zip(numbers, values, strict=True)):
        return np.array([np.nan if number is None else number for number in numbers], dtype=np.float64)
    return _objects(values)


def _objects(values: Sequence) -> np.ndarray:
    # Not np.array(values, dtype=object): that would turn equally long tuples into a second axis.
    result = np.empty(len(values), dtype=object)
    result[:] = values
    return result


def select(expression: str, columns: Columns) -> np.ndarray:
    """Return the rows for which a filter is true: (p,) bool; a blank filter keeps all.

    Raises:
        DataError: If the filter cannot be read, is too long, or names something that does not exist; says where.
    """
    if not expression.strip():
        return np.ones(len(next(iter(columns.values()))), dtype=bool)
    if len(expression) > MAX_CHARACTERS:
        raise DataError(f"The filter has {len(expression):,} characters, and at most {MAX_CHARACTERS:,} are allowed.")
    try:
        tree = ast.parse(expression.strip(), mode="eval").body
        return _Reader(columns).truth(tree) == TRUE
    except SyntaxError as error:
        place = expression.strip()[max(0, (error.offset or 1) - 1) :][:20]
        near = f" near {place!r}" if place else " at the end"
        advice = "Write == for “is”. " if re.search(r"(?<![<>=!])=(?!=)", expression) else ""
        raise DataError(f"The filter cannot be read{near}. {advice}{_example(columns)}") from error
    except (RecursionError, MemoryError, ValueError, OverflowError) as error:
        told = f"The filter is nested too deeply, or has a damaged character. {_example(columns)}"
        raise DataError(told) from error


def explain_nothing(expression: str, columns: Columns) -> str:
    """Return which texts of a filter that no row meets are in no row of their column, and what is like them; or ""."""
    told = []
    for node in ast.walk(ast.parse(expression.strip() or "True", mode="eval")):
        if not isinstance(node, ast.Compare) or not isinstance(node.left, ast.Name) or len(node.ops) > 1:
            continue
        column = columns.get(_known_as(node.left.id, columns))
        given = getattr(node.comparators[0], "elts", node.comparators)
        if column is None or column.dtype != object or not isinstance(node.ops[0], ast.Eq | ast.In):
            continue
        known = {fold(cell): cell for cell in column if isinstance(cell, str)}
        for text in (item.value for item in given if isinstance(item, ast.Constant) and isinstance(item.value, str)):
            if fold(text) not in known:
                near = get_close_matches(fold(text), known, n=1)
                told.append(
                    f" No row has {node.left.id} {quote(text)}{f'; one has {quote(known[near[0]])}' if near else ''}."
                )
    return "".join(told)


def quote(text: str) -> str:
    """Quote a text as a filter takes it."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ")
    return f'"{escaped}"'


def _known_as(name: str, columns: Columns) -> str:
    """Return the column that a filter names, in any case, or as the page calls it; "" where there is none."""
    return next((one for one in (name, name.lower(), "gold" if name == "rating" else "") if one in columns), "")


def _example(columns: Columns) -> str:
    """Return an example with columns that there are: of pairs, or of a corpus of texts."""
    shown = 'rating >= 4 and "dog" in sentence1' if "sentence1" in columns else 'row <= 50 and "dog" in text'
    return f"For instance: {shown}"


class _Reader:
    """Walks a tree; whatever is not listed here is refused."""

    def __init__(self, columns: Columns) -> None:
        self.columns = columns
        self.size = len(next(iter(columns.values())))

    def truth(self, node: ast.expr) -> np.ndarray:
        """Return (p,) of FALSE, UNKNOWN, TRUE."""
        if isinstance(node, ast.BoolOp):
            join = np.minimum if isinstance(node.op, ast.And) else np.maximum
            return join.reduce([self.truth(value) for value in node.values])
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            return TRUE - self.truth(node.operand)
        if isinstance(node, ast.Compare):
            terms = [node.left, *node.comparators]
            steps = [self._compare(*step) for step in zip(terms, node.ops, terms[1:], strict=False)]
            return np.minimum.reduce(steps)
        if isinstance(node, ast.Constant) and isinstance(node.value, bool):
            return np.full(self.size, TRUE if node.value else FALSE)
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            return self._somewhere(node.value)
        if isinstance(node, ast.Name):
            if not _known_as(node.id, self.columns) and not suggest(node.id, FLAGS):
                return self._somewhere(node.id)
            column = self._column(node)
            if node.id in FLAGS:
                return self._known(column == 1, column)
            raise DataError(f"The column {node.id} alone is not a condition of a filter; compare it: {node.id} == ...")
        raise self._refused(node)

    def _compare(self, left: ast.expr, op: ast.cmpop, right: ast.expr) -> np.ndarray:
        if isinstance(op, ast.In | ast.NotIn):
            found = self._within(left, right)
            return found if isinstance(op, ast.In) else TRUE - found
        if type(op) not in _NUMERIC:
            raise DataError(f"`is` is not part of a filter; write == instead. {_example(self.columns)}")
        one, two = self._value(left), self._value(right)
        if _is_text(one) != _is_text(two):
            text, number = (left, right) if _is_text(one) else (right, left)
            advice = "Compare numbers with numbers, and texts with texts."
            if isinstance(number, ast.Constant):  # what stands for a number in the file may be an id or a version
                advice = f"The column holds texts: write {quote(ast.unparse(number))}."
            elif isinstance(text, ast.Constant) and to_number(str(text.value)) is not None:
                advice = f"The column holds numbers: write {text.value}."
            raise DataError(
                f"{ast.unparse(text)[:60]} is text and {ast.unparse(number)[:60]} is none: a filter cannot compare "
                f"the two. {advice}"
            )
        if _is_text(one):
            if not isinstance(op, ast.Eq | ast.NotEq):
                raise DataError(
                    "For a filter, texts are equal or not; they have no order. Use == or != with "
                    f"{ast.unparse(left)[:60]}."
                )
            equal = np.broadcast_to(_fold(one) == _fold(two), self.size)
            return np.where(equal == isinstance(op, ast.Eq), TRUE, FALSE)
        return self._known(_NUMERIC[type(op)](one, two), one, two)

    def _within(self, left: ast.expr, right: ast.expr) -> np.ndarray:
        if isinstance(right, ast.Tuple | ast.List | ast.Set):
            if not right.elts:
                return np.full(self.size, FALSE)
            return np.maximum.reduce([self._compare(left, ast.Eq(), item) for item in right.elts])
        needle, column = self._value(left), self._value(right)
        if not isinstance(needle, str) or not isinstance(column, np.ndarray) or column.dtype != object:
            raise DataError(
                'In a filter, before "in" stands a text in quotes, after it a column of texts, got '
                f"{ast.unparse(right)[:60]}."
            )
        wanted = needle.casefold()
        found = [wanted in (value if isinstance(value, frozenset) else value.casefold()) for value in column]
        return np.where(found, TRUE, FALSE)

    def _somewhere(self, text: str) -> np.ndarray:
        """Look for a text in the texts of the rows."""
        names = [name for name in ("sentence1", "sentence2", "text") if name in self.columns]
        found = [self._within(ast.Constant(text), ast.Name(name)) for name in names]
        return np.maximum.reduce([np.full(self.size, FALSE), *found])

    def _value(self, node: ast.expr) -> Any:  # noqa: ANN401 - a number, a text, or a column
        if isinstance(node, ast.Name):
            return self._column(node)
        if isinstance(node, ast.Constant) and isinstance(node.value, str | int | float):
            return node.value if isinstance(node.value, str) else float(node.value)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            return -self._number(node.operand)
        if isinstance(node, ast.BinOp) and type(node.op) in _ARITHMETIC:
            with np.errstate(all="ignore"):
                return _ARITHMETIC[type(node.op)](self._number(node.left), self._number(node.right))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "abs":
            if len(node.args) != 1 or node.keywords:
                raise DataError("abs takes one number, in a filter so: abs(error) > 1")
            return np.abs(self._number(node.args[0]))
        raise self._refused(node)

    def _number(self, node: ast.expr) -> Any:  # noqa: ANN401 - a number or a column of numbers
        value = self._value(node)
        if _is_text(value):
            raise DataError(f"{ast.unparse(node)[:60]} is text; arithmetic in a filter needs numbers.")
        return np.asarray(value, dtype=np.float64)

    def _column(self, node: ast.Name) -> np.ndarray:
        if not (name := _known_as(node.id, self.columns)):
            names = ["rating" if name == "gold" else name for name in self.columns]
            hint = suggest(node.id, names)
            raise DataError(f"There is no column {node.id!r} for the filter.{hint} Columns: {', '.join(names)}.")
        return self.columns[name]

    def _known(self, result: np.ndarray, *operands: Any) -> np.ndarray:  # noqa: ANN401
        unknown = np.zeros(self.size, dtype=bool)
        for operand in operands:
            unknown |= np.isnan(operand)
        return np.where(unknown, UNKNOWN, np.where(result, TRUE, FALSE))

    def _refused(self, node: ast.AST) -> DataError:
        allowed = f"columns, numbers, texts in quotes, comparisons, and, or, not. {_example(self.columns)}"
        return DataError(f"`{ast.unparse(node)[:60]}` is not part of a filter: {allowed}")


def _is_text(value: Any) -> bool:  # noqa: ANN401
    return isinstance(value, str) or (isinstance(value, np.ndarray) and value.dtype == object)


def _fold(value: Any) -> Any:  # noqa: ANN401
    if isinstance(value, str):
        return fold(value)
    return _objects([fold(item) if isinstance(item, str) else item for item in value])
