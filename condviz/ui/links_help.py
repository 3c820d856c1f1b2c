"""What the Links tab says about graphs that are not here, and about the tables of one's own."""

from __future__ import annotations

from collections.abc import Sequence

from condviz.ui.html import join, tag, text

HOW = {
    "wn18rr": (
        "WN18RR (40,943 word senses of WordNet)",
        "https://github.com/TimDettmers/ConvE",
        "(WN18RR.tar.gz, MIT licence) has the triples; names and definitions are wordnet-mlj12-definitions.txt in the "
        "folder data/WN18RR of github.com/intfloat/SimKGC.",
    ),
    "fb15k237": (
        "FB15k-237 (14,541 people, films, places)",
        "https://github.com/intfloat/SimKGC",
        "(folder data/FB15k237) has the triples, FB15k_mid2name.txt and FB15k_mid2description.txt.",
    ),
}
"""Key of a graph -> title, official address, what is there."""


def render_others(missing: Sequence[str]) -> str:
    """Write how to get the graphs of the papers that are not here.

    Args:
        missing: Keys of `HOW`.
    """
    if not missing:
        return ""
    parts = [
        tag(
            "p",
            text("strong", HOW[key][0]),
            " is not installed here: it is other people’s data, and this project does not pass it on. ",
            tag("a", HOW[key][1], href=HOW[key][1], target="_blank", rel="noopener noreferrer"),
            " ",
            text("span", HOW[key][2]),
        )
        for key in missing
    ]
    names = " or ".join(missing)
    line = "Put the files into a folder "
    end = " below the one that the environment variable "
    return tag(
        "div",
        join(parts),
        tag("p", line, tag("code", names), end, tag("code", "CONDVIZ_DATA"), " names, and start again."),
        class_="cv-links-help",
    )


def render_files() -> str:
    """Write what the three tables of one's own graph hold."""
    rows = (
        ("entities.tsv", "id, name, description"),
        ("relations.tsv", "id, text"),
        ("triples.tsv", "head, relation, tail and, if wanted, split: train, valid or test"),
    )
    items = [tag("li", tag("code", name), ": ", text("span", columns)) for name, columns in rows]
    lead = "Your own graph: three tables in UTF-8, columns separated by tabs, with or without a line of column names."
    limits = (
        "At most 5 MB a file, 5,000 entities and 100,000 triples. It stays in the memory of this server until others "
        "push it out."
    )
    return tag("div", text("p", lead), tag("ul", *items), text("p", limits), class_="cv-links-help")
