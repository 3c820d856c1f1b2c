"""Write assets/first_screen.json: the result that the page shows before any model has loaded.

Run it again whenever shipped models change: python -m condviz.ui.first_screen
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from condviz.data.examples import load_examples
from condviz.errors import CondvizError, DataError
from condviz.paths import ASSETS
from condviz.ui.engine import Engine
from condviz.ui.form_state import FormState
from condviz.ui.model_pool import ModelPool
from condviz.ui.record import pack_attribution
from condviz.ui.result_view import column_condition, make_shown
from condviz.ui.service import Service


def compute(engine: Engine, form: FormState) -> dict[str, Any]:
    """Score a state of the form with real models and give the record of the first screen.

    Args:
        engine: The core.
        form: What to show; without models, all are scored.

    Raises:
        CondvizError: If a model fails: the first screen has to be complete.
    """
    pool = ModelPool(engine.list_models(), engine.load)
    service = Service(engine, pool)
    form = form.replace(models=form.models or pool.names)
    request = service.check(form.sentence1, form.sentence2, conditions=form.conditions, models=form.models)
    *_, last = service.compare_steps(request)
    if last.failed:
        raise CondvizError("; ".join(f"{name}: {reason}" for name, reason in last.failed.items()))
    infos = [service.info(name) for name in request.names]
    shown = make_shown(last, form, infos, before=None)
    # Paths of the machine that computed it mean nothing elsewhere.
    for info in [*shown["infos"], *shown["comparison"]["models"]]:
        info["path"] = ""
    name, column = shown["selected"]
    condition = column_condition(shown, column)
    words = service.attribute(name, request.sentence1, sentence2=request.sentence2, condition=condition)
    return {"shown": shown, "attribution": pack_attribution(words)}


def _without_twins(names: Sequence[str]) -> tuple[str, ...]:
    """Leave out the untrained forms of models that are there trained: they would make the first table twice as long."""
    from condviz.models.registry import ZERO_SHOT_SUFFIX  # imports torch

    return tuple(name for name in names if not name.endswith(ZERO_SHOT_SUFFIX))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; gives the exit code."""
    parser = argparse.ArgumentParser(prog="python -m condviz.ui.first_screen", description=__doc__)
    parser.add_argument("--example", help="id of the card in assets/examples.json; the first one by default")
    parser.add_argument(
        "--model",
        action="append",
        default=[],
        help="a model to show, may be repeated; all but untrained twins by default",
    )
    parser.add_argument("--out", type=Path, default=ASSETS / "first_screen.json")
    options = parser.parse_args(arguments)
    try:
        examples = load_examples()
        chosen = [e for e in examples if options.example in (None, e.id)]
        if not chosen:
            raise DataError(f"No example is called {options.example!r}; see {ASSETS / 'examples.json'}.")
        example = chosen[0]
        models = tuple(options.model) or _without_twins(Engine().list_models())
        form = FormState(example.sentence1, example.sentence2, example.conditions, models)
        record = compute(Engine(), form)
    except CondvizError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    options.out.write_text(json.dumps(record, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    sys.stdout.write(f"{options.out}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
