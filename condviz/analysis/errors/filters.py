"""Filters that people write: `gold >= 4 and error < -1 and "dog" in shared`. Read as a tree, never run as code.

Names are columns. Numbers compare with < <= == != >= >, and + - * / abs() work on them; texts compare with == != and
with `in`, upper and lower case alike; `"dog" in shared` asks for a whole word, `"dog" in sentence1` for a part of the
text; `condition in ("the sport", "the mood")` for one of several. `and`, `or`, `not` and brackets join. What is not
known (the error of a row without a rating) is neither true nor false, and a row is kept only where the filter is true.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any

import numpy as np

from condviz.analysis.errors.columns import FLAGS
from condviz.errors import DataError

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


def select(expression: str, columns: Columns) -> np.ndarray:
    """Return the rows for which a filter is true: (p,) bool; a blank filter keeps all.

    Args:
        expression: The filter.
        columns: Name -> (p,) values, as `condviz.analysis.errors.study.Study.columns`.

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
        raise DataError(f"The filter cannot be read{near}. {_EXAMPLE}") from error
    except (RecursionError, MemoryError, ValueError, OverflowError) as error:
        raise DataError(f"The filter is nested too deeply, or has a damaged character. {_EXAMPLE}") from error


def quote(text: str) -> str:
    """Quote a text as a filter takes it."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ")
    return f'"{escaped}"'


_EXAMPLE = 'For instance: gold >= 4 and error < -1 and "dog" in shared'


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
        if isinstance(node, ast.Name) and node.id in FLAGS:
            return self._known(self._column(node) == 1, self._column(node))
        if isinstance(node, ast.Constant) and isinstance(node.value, bool):
            return np.full(self.size, TRUE if node.value else FALSE)
        if isinstance(node, ast.Name):
            self._column(node)
            raise DataError(f"The column {node.id} alone is no condition; compare it: {node.id} == ...")
        raise _refused(node)

    def _compare(self, left: ast.expr, op: ast.cmpop, right: ast.expr) -> np.ndarray:
        if isinstance(op, ast.In | ast.NotIn):
            found = self._within(left, right)
            return found if isinstance(op, ast.In) else TRUE - found
        if type(op) not in _NUMERIC:
            raise DataError(f"`is` is not part of a filter; write == instead. {_EXAMPLE}")
        one, two = self._value(left), self._value(right)
        if _is_text(one) != _is_text(two):
            text, number = (left, right) if _is_text(one) else (right, left)
            raise DataError(
                f"{ast.unparse(text)[:60]} is text and {ast.unparse(number)[:60]} is none: they cannot be compared."
            )
        if _is_text(one):
            if not isinstance(op, ast.Eq | ast.NotEq):
                raise DataError(
                    f"Texts are equal or not; they have no order. Use == or != with {ast.unparse(left)[:60]}."
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
                f'Before "in" stands a text in quotes, after it a column of texts, got {ast.unparse(right)[:60]}.'
            )
        wanted = needle.casefold()
        found = [wanted in (value if isinstance(value, frozenset) else value.casefold()) for value in column]
        return np.where(found, TRUE, FALSE)

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
                raise DataError("abs takes one number: abs(error) > 1")
            return np.abs(self._number(node.args[0]))
        raise _refused(node)

    def _number(self, node: ast.expr) -> Any:  # noqa: ANN401 - a number or a column of numbers
        value = self._value(node)
        if _is_text(value):
            raise DataError(f"{ast.unparse(node)[:60]} is text; arithmetic needs numbers.")
        return np.asarray(value, dtype=np.float64)

    def _column(self, node: ast.Name) -> np.ndarray:
        if node.id not in self.columns:
            near = get_close_matches(node.id, self.columns, n=1)
            hint = f" Did you mean {near[0]}?" if near else ""
            quoted = " Texts stand in double quotes." if not near else ""
            raise DataError(f"There is no column {node.id!r}.{hint}{quoted} Columns: {', '.join(self.columns)}.")
        return self.columns[node.id]

    def _known(self, result: np.ndarray, *operands: Any) -> np.ndarray:  # noqa: ANN401
        unknown = np.zeros(self.size, dtype=bool)
        for operand in operands:
            unknown |= np.isnan(operand)
        return np.where(unknown, UNKNOWN, np.where(result, TRUE, FALSE))


def _is_text(value: Any) -> bool:  # noqa: ANN401
    return isinstance(value, str) or (isinstance(value, np.ndarray) and value.dtype == object)


def _fold(value: Any) -> Any:  # noqa: ANN401
    if isinstance(value, str):
        return value.casefold()
    result = np.empty(len(value), dtype=object)
    result[:] = [item.casefold() if isinstance(item, str) else item for item in value]
    return result


def _refused(node: ast.AST) -> DataError:
    shown = ast.unparse(node)[:60]
    return DataError(
        f"`{shown}` is not part of a filter: columns, numbers, texts in quotes, comparisons, and, or, not. {_EXAMPLE}"
    )
