"""The table of corpora that models are trained and tested on, and the rated rows built from them.

Scenes and tables belong to this project. All others are read from a folder and never copied into it: CONDVIZ_DATA, else
`shared/data` beside the checkout. A new corpus is one file with a `Corpus`, and one line in `CORPORA`.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

from annotated_doc import Doc

from condviz.data import cebab, csts, e2e, mams, scene_tables, scenes
from condviz.data.corpus import VARIABLE as VARIABLE
from condviz.data.corpus import Corpus, Material, Password, RatedPair, count_contrasts
from condviz.data.corpus import data_folder as data_folder
from condviz.data.corpus import format_rows as format_rows
from condviz.errors import CondvizError, DataError

CORPORA = {
    corpus.name: corpus
    for corpus in (
        scenes.SCENES_CORPUS,
        scenes.PLAIN_CORPUS,
        *scene_tables.CORPORA,
        cebab.CORPUS,
        cebab.EDITS_CORPUS,
        mams.CORPUS,
        e2e.CORPUS,
        csts.CORPUS,
        csts.REANNOTATED,
    )
}


@dataclass(frozen=True)
class CorpusPart:
    """One part of a corpus as it was found; `problem` says why a number is None."""

    name: str
    rows: int | None = None
    """Texts; for C-STS, rows of the file."""
    pairs: int | None = None
    """Contrasts: sentence pairs with two rated conditions."""
    problem: str = ""


@dataclass(frozen=True)
class CorpusSurvey:
    """What was found of a corpus: the folder looked into, file -> found, and its parts."""

    corpus: Corpus
    folder: Path
    files: dict[str, bool]
    parts: tuple[CorpusPart, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON."""
        about = {name: getattr(self.corpus, name) for name in ("name", "title", "licence", "source", "attribution")}
        parts = [asdict(part) for part in self.parts]
        return {**about, "folder": str(self.folder), "files": self.files, "parts": parts}


def build(
    name: str,
    part: str,
    *,
    seed: Annotated[int, Doc("Decides the pairs; the same seed and files give the same rows")] = 0,
    password: Password | None = None,
) -> list[RatedPair]:
    """Build the rated rows of one part of a corpus, the two rows of a contrast side by side; no group is in two parts.

    C-STS has its own pairs, and rows without a partner behind them; None as `password` takes CONDVIZ_CSTS_PASSWORD.

    Raises:
        DataError: If name or part do not exist, files are missing or damaged, or no pair is left.
        MissingExtraError: If C-STS has to be decrypted and `cryptography` is not installed.
    """
    rows = _read(name, part, password).rows(seed=seed)
    if not rows:
        raise DataError(
            f"The part {part} of {name} is empty: no two of its texts agree under one aspect and differ under another. "
            f"Check that the files in {CORPORA[name].place} are whole, or take another part."
        )
    return rows


def build_blocks(name: str, part: str, *, sentences: int, seed: int = 0) -> list[list[RatedPair]]:
    """Build blocks of rated rows that share wordings and at least so many `sentences`, for training; else as `build`.

    Raises DataError where there are only single pairs: of C-STS, and of all parts of the scenes but "train".
    """
    material = _read(name, part)
    if material.blocks is None:
        advice = 'Set batching = "pairs", or take another part.'
        raise DataError(f"{name} {part} has no blocks: only single pairs. {advice}")
    return material.blocks(seed=seed, sentences=sentences)


def conditions(name: str, part: str) -> frozenset[str]:
    """Collect the conditions that rows of a part may ask for, building these only where needed; errors as `build`."""
    material = _read(name, part)
    if material.conditions is not None:
        return material.conditions
    return frozenset(row.condition for row in material.rows(seed=0) if row.condition)


def survey(name: str) -> CorpusSurvey:
    """Look for a corpus, read it, build its pairs and count; what cannot be read is reported, not raised."""
    corpus, parts = CORPORA[name], []
    for part in corpus.parts:
        count = None
        if corpus.downloads:
            advice = f"`condviz data build {name} --split {part} --out -` downloads it."
            parts.append(
                CorpusPart(part, problem=f"{name} is neither in {corpus.place} nor in the hub's cache. {advice}")
            )
            continue
        try:
            material = _read(name, part)
            count = material.texts
            rows = material.rows(seed=0)
        except CondvizError as error:
            parts.append(CorpusPart(part, rows=count, problem=str(error)))
            continue
        if count is None:
            count = len({text for row in rows for text in (row.sentence1, row.sentence2)})
        parts.append(CorpusPart(part, count, count_contrasts(rows)))
    return CorpusSurvey(corpus, corpus.place, corpus.found(), tuple(parts))


def _read(name: str, part: str, password: Password | None = None) -> Material:
    if name not in CORPORA:
        raise DataError(f"There is no corpus {name!r}. There are: {', '.join(CORPORA)}.")
    return CORPORA[name].read(part, password or csts.environment_password)
