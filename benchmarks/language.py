"""How often English is taken for another language, and other languages are found: python -m benchmarks.language.

Sentences are drawn from the templates of language.toml, which were written for this: English of ten fields, most of it
terms and names, and everyday sentences and headlines in five other languages. No corpus of the project is among them.
The threshold of condviz.data.texts was chosen on them, so figures for other texts may be a little worse.
"""

from __future__ import annotations

import random
import re
import tomllib
from functools import cache
from itertools import product
from pathlib import Path

from benchmarks.common import Result, options, report
from condviz.data.texts import looks_english

PER_TEMPLATE = 24
FALSE_ALARMS, FOUND = 0.01, 0.9


@cache
def sentences() -> dict[str, dict[str, list[str]]]:
    """Return language -> field -> up to `PER_TEMPLATE` different sentences of each template, always the same."""
    text = Path(__file__).with_suffix(".toml").read_text(encoding="utf-8")
    return {
        language: {
            field: [one for template in templates for one in _draw(template)] for field, templates in fields.items()
        }
        for language, fields in tomllib.loads(text).items()
    }


def _draw(template: str) -> list[str]:
    parts = re.split(r"\{([^}]*)\}", template)
    choices = [part.split("|") if number % 2 else [part] for number, part in enumerate(parts)]
    every = ["".join(chosen) for chosen in product(*choices)]
    return random.Random(0).sample(every, min(PER_TEMPLATE, len(every)))


def false_alarms() -> float:
    """Return the share of the English sentences that are taken for another language."""
    return _foreign([one for field in sentences()["english"].values() for one in field])


def found() -> dict[str, float]:
    """Return, for each other language, the share of its sentences that are told from English."""
    return {language: _foreign(fields["all"]) for language, fields in sentences().items() if language != "english"}


def _foreign(texts: list[str]) -> float:
    return sum(not looks_english(text) for text in texts) / len(texts)


def run() -> list[Result]:
    """Measure both sides; returns one result for each."""
    alarms, rates = false_alarms(), found()
    fields = {name: _foreign(texts) for name, texts in sentences()["english"].items()}
    english = sum(map(len, sentences()["english"].values()))
    worst = min(rates, key=rates.get)
    rows = (
        (
            f"false alarms, {english:,} English sentences",
            f"at most {FALSE_ALARMS:.0%}",
            alarms,
            alarms <= FALSE_ALARMS,
            fields,
        ),
        (
            f"found of {len(rates)} languages, worst: {worst}",
            f"at least {FOUND:.0%}",
            rates[worst],
            rates[worst] >= FOUND,
            rates,
        ),
    )
    return [
        Result(what, target, f"{value:.1%}", passed, value, details) for what, target, value, passed, details in rows
    ]


def main() -> None:
    """Measure and print one table."""
    report(run(), options(__doc__, docs=False).parse_args(), "language")


if __name__ == "__main__":
    main()
