"""The corpora that models are trained and tested on: where they are, what may be done with them, and their rated pairs.

Only the scenes belong to this project. All others are read from a folder and never copied into it: CONDVIZ_DATA, else
`shared/data` beside the checkout.
"""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from condviz.data import cebab, csts, e2e, mams, scene_blocks, scenes, splits
from condviz.data.scene_pairs import RatedPair, Shortcuts, build_pairs, measure_shortcuts
from condviz.data.scene_plain import build_plain_pairs
from condviz.errors import CondvizError, DataError

VARIABLE = "CONDVIZ_DATA"
_BESIDE = Path(__file__).resolve().parents[3] / "shared" / "data"
COLUMNS = ("sentence1", "sentence2", "condition", "label", "aspect", "pair", "family1", "family2")
RELEASE = ("train", "dev", "test")
CROSS = {"cebab": 12, "cebab-edits": 0, "mams": 12, "e2e": 1}
"""Partners tried for each sentence outside of its family. Reviews rarely share two aspects, so many are tried."""


@dataclass(frozen=True)
class Corpus:
    """What is known about a corpus before it is read.

    Attributes:
        name: What `build` and the command line take.
        title: One line.
        licence: Short name.
        source: Where the files come from.
        attribution: What has to be said where anything made from it is passed on.
        folder: Below the folder of the data; "" for what is part of this project.
        files: Expected files.
        parts: What `build` takes.
    """

    name: str
    title: str
    licence: str
    source: str
    attribution: str
    folder: str
    files: tuple[str, ...]
    parts: tuple[str, ...] = RELEASE

    @property
    def ours(self) -> bool:
        """Whether it is made from the scenes, which are part of this project."""
        return not self.folder


@dataclass(frozen=True)
class Part:
    """One part of a corpus as it was found.

    Attributes:
        name: For instance "train".
        rows: Texts found; for C-STS, rows of the file. None if they cannot be read.
        pairs: Sentence pairs with two rated conditions, or None.
        shortcuts: What wording and shared words alone give away, or None.
        problem: Why something is None; otherwise "".
    """

    name: str
    rows: int | None = None
    pairs: int | None = None
    shortcuts: Shortcuts | None = None
    problem: str = ""


@dataclass(frozen=True)
class Survey:
    """What was found of a corpus: the folder looked into, file -> found, and its parts."""

    corpus: Corpus
    folder: Path
    files: dict[str, bool]
    parts: tuple[Part, ...]

    def to_dict(self) -> dict:
        """Give plain JSON."""
        parts = [{**vars(part), "shortcuts": part.shortcuts and dict(vars(part.shortcuts))} for part in self.parts]
        corpus = {**vars(self.corpus), "files": self.files, "folder": str(self.folder)}
        return {**corpus, "parts": parts}


_CEBAB = (
    "CEBaB v1.1 by Abraham, D'Oosterlinck, Feder, Gat, Geiger, Potts, Reichart and Wu (arXiv:2205.14140), CC BY 4.0, "
    "changed: paired and rated"
)
CORPORA = {
    corpus.name: corpus
    for corpus in (
        Corpus(
            "scenes", "scenes of this project, with edits", "CC BY 4.0", "assets/scenes, written by a language model",
            "CondViz scenes, CC BY 4.0", "", ("aspects.json", "*.jsonl"), splits.PARTS,
        ),
        Corpus(
            "scenes-plain", "scenes without a condition: a paraphrase, and something else", "CC BY 4.0",
            "assets/scenes, written by a language model", "CondViz scenes, CC BY 4.0", "", ("*.jsonl",),
        ),
        Corpus(
            "cebab", "CEBaB: restaurant reviews, labels of people only", "CC BY 4.0", "github.com/CEBaBing/CEBaB",
            _CEBAB, "cebab", (cebab.FILE,),
        ),
        Corpus(
            "cebab-edits", "CEBaB: a review and its edits, with checked copies of labels (weak)", "CC BY 4.0",
            "github.com/CEBaBing/CEBaB", _CEBAB, "cebab", (cebab.FILE,),
        ),
        Corpus(
            "mams", "MAMS: sentences of restaurant reviews, polarities", "Apache-2.0",
            "github.com/siat-nlp/MAMS-for-ABSA, MAMS-ACSA",
            "MAMS by Jiang, Chen, Xu, Ao and Yang (EMNLP-IJCNLP 2019), Apache-2.0, changed: paired and rated",
            "mams", tuple(mams.FILES.values()),
        ),
        Corpus(
            "e2e", "E2E, cleaned: descriptions of restaurants", "CC BY-SA 4.0", "github.com/tuetschek/e2e-cleaning",
            "E2E by Novikova, Dušek and Rieser (arXiv:1706.09254), cleaned by Dušek, Howcroft and Rieser (INLG 2019), "
            "CC BY-SA 4.0, changed: paired and rated; pass on under the same licence",
            "e2e", tuple(e2e.FILES.values()),
        ),
        Corpus(
            "csts", "C-STS: the official files, and L-CSTS labels", "on request, not to be shared decrypted",
            "github.com/princeton-nlp/c-sts, github.com/brandeis-llc/L-CSTS",
            "nothing: C-STS must not be passed on decrypted", "csts",
            (csts.ARCHIVE, *csts.FILES.values(), csts.REANNOTATED[0]), csts.PARTS,
        ),
    )
}  # fmt: skip


def data_folder() -> Path:
    """Give the folder of the corpora that are not part of this project; it may not exist."""
    chosen = os.environ.get(VARIABLE)
    return Path(chosen) if chosen else _BESIDE


def build(
    name: str, part: str, *, seed: int = 0, folder: Path | None = None, password: Callable[[], str] | None = None
) -> list[RatedPair]:
    """Build the rated rows of one part of a corpus, the two conditions of a sentence pair side by side.

    Args:
        name: Key of `CORPORA`.
        part: One of its parts. Splits are those of the release; groups never cross.
        seed: Decides the pairs; the same seed and files give the same rows. C-STS has its own pairs.
        folder: In place of `data_folder()`.
        password: Asked for the password of C-STS, if it is needed; None takes CONDVIZ_CSTS_PASSWORD.

    Raises:
        DataError: If name or part do not exist, files are missing or damaged, or no pair is left.
        MissingExtraError: If C-STS has to be decrypted and `cryptography` is not installed.
    """
    corpus = _corpus(name, part)
    if name == "scenes":
        rows = splits.build_part(scenes.load_families(), scenes.load_aspects(), part, seed=seed)
    elif name == "scenes-plain":
        families = [family for family in scenes.load_families() if splits.group_of(family) == part]
        rows = build_plain_pairs(families, seed=seed)
    elif name == "csts":
        pairs = csts.load(_place(corpus, folder), part, password=password or csts.environment_password)
        return csts.pair_rows(pairs, f"csts {part}")
    else:
        families, aspects = _families(corpus, part, folder)
        rows = build_pairs(families, aspects, seed=seed, cross=CROSS[name])
    rows = _without_repeats(rows)
    if not rows:
        raise DataError(
            f"The part {part} of {name} is empty: no two of its texts agree under one aspect and differ under another. "
            f"Check that the files in {_place(corpus, folder)} are whole, or take another part."
        )
    return rows


def build_blocks(
    name: str, part: str, *, sentences: int, seed: int = 0, folder: Path | None = None
) -> list[list[RatedPair]]:
    """Build blocks of rated rows that share sentences and wordings, for training.

    Args:
        name: Key of `CORPORA`; C-STS has single pairs only.
        part: One of its parts; of the scenes only "train".
        sentences: How many sentences a block has, at least.
        seed: Decides blocks and wordings.
        folder: In place of `data_folder()`.

    Raises:
        DataError: As `build`, or if the corpus or part has no blocks.
    """
    corpus = _corpus(name, part)
    if name in ("csts", "scenes-plain") or (name == "scenes" and part != "train"):
        raise DataError(
            f'{name} {part} has no blocks: only single pairs. Set batching = "pairs", or take another part.'
        )
    if name == "scenes":
        return splits.build_training_blocks(
            scenes.load_families(), scenes.load_aspects(), seed=seed, sentences=sentences
        )
    families, aspects = _families(corpus, part, folder)
    return scene_blocks.build_blocks(families, aspects, seed=seed, sentences=sentences)


def survey(name: str, *, seed: int = 0, folder: Path | None = None) -> Survey:
    """Look for a corpus, read it, build its pairs and count; what cannot be read is reported, not raised."""
    corpus = CORPORA[name]
    place = _place(corpus, folder)
    found = {file: any(place.glob(file)) for file in corpus.files}
    return Survey(corpus, place, found, tuple(_survey_part(corpus, part, seed, folder) for part in corpus.parts))


def format_rows(rows: Sequence[RatedPair]) -> str:
    """Give rows as CSV, with the columns that `condviz evaluate` and `train` read, and where each row comes from."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(COLUMNS)
    writer.writerows(
        [f"{row.label:g}" if column == "label" else getattr(row, column) for column in COLUMNS] for row in rows
    )
    return buffer.getvalue()


def _corpus(name: str, part: str) -> Corpus:
    if name not in CORPORA:
        raise DataError(f"There is no corpus {name!r}. There are: {', '.join(CORPORA)}.")
    corpus = CORPORA[name]
    if part not in corpus.parts:
        raise DataError(f"There is no part {part!r} of {name}. There are: {', '.join(corpus.parts)}.")
    return corpus


def _place(corpus: Corpus, folder: Path | None) -> Path:
    return scenes.SCENES if corpus.ours else (folder or data_folder()) / corpus.folder


def _families(
    corpus: Corpus, part: str, folder: Path | None
) -> tuple[tuple[scenes.Family, ...], dict[str, scenes.Aspect]]:
    place = _place(corpus, folder)
    if corpus.name == "mams":
        return mams.load(place, part), dict(mams.ASPECTS)
    if corpus.name == "e2e":
        return e2e.load(place, part), dict(e2e.ASPECTS)
    return cebab.load(place, part, copies=corpus.name == "cebab-edits"), dict(cebab.ASPECTS)


def _without_repeats(rows: Sequence[RatedPair]) -> list[RatedPair]:
    """Keep the first of pairs that were drawn twice: readers of the table find the two rows by their sentences."""
    seen: set[frozenset[str]] = set()
    kept = []
    for first, second in zip(rows[::2], rows[1::2], strict=True):
        texts = frozenset((first.sentence1, first.sentence2))
        if len(texts) == 2 and texts not in seen:
            seen.add(texts)
            kept += [first, second]
    return kept


def _survey_part(corpus: Corpus, part: str, seed: int, folder: Path | None) -> Part:
    count = None
    try:
        if corpus.name == "csts":
            count = len(csts.load(_place(corpus, folder), part, password=csts.environment_password))
        elif not corpus.ours:
            count = sum(len(family.scenes) for family in _families(corpus, part, folder)[0])
        rows = build(corpus.name, part, seed=seed, folder=folder)
    except CondvizError as error:
        return Part(part, rows=count, problem=str(error))
    if count is None:
        count = len({text for row in rows for text in (row.sentence1, row.sentence2)})
    return Part(part, count, len(rows) // 2, measure_shortcuts(rows))
