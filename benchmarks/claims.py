"""How often Search calls a text a match where every text is unlike the query, and where some are alike.

python -m benchmarks.claims [--model NAME] [--draws 60] [--percentile 95] [--no-own] [--texts N]

Queries are sentences of the corpus that ships. Under each aspect that its texts tell, the best hit is looked for once
among the texts that the ratings' rule calls unlike the query (1 or 2 of 5), once among those it calls alike (4 or 5).
`--no-own` asks the reference pairs alone, and not those of the corpus; `--texts` draws a small corpus for each query.
"""

from __future__ import annotations

import argparse
import sys

import numpy as np
import pandas as pd

from condviz.analysis.reference import percentile, reference_scores
from condviz.analysis.search import GOOD_PERCENTILE, embed_rows, own_mark, own_share
from condviz.data.families import gold
from condviz.data.scenes import load_aspects
from condviz.evaluation.scoreboard import fast_encoder
from condviz.models.registry import describe, list_models, load
from condviz.store.disk import ASPECTS, open_corpus

LEAST_TEXTS, LEAST_OF_FEW = 20, 3
"""A draw with fewer texts to search is left out."""


def best_places(name: str, draws: int, few: int = 0) -> pd.DataFrame:
    """Return a row per draw: aspect, texts ("alike", "unlike"), percentile of the best hit, is it above `own_mark`?"""
    model = load(name)
    corpus, reference = open_corpus("scenes", model), reference_scores(model)
    aspects, draw, found = load_aspects(), np.random.default_rng(0), []
    for name_ in ASPECTS:
        aspect, values = aspects[name_], np.array(corpus.column(name_))
        told = np.flatnonzero(values != "")
        vectors, mark = embed_rows(model, corpus, aspect.phrasings[0]), own_mark(model, corpus, aspect.phrasings[0])
        for query in draw.choice(told, draws, replace=False):
            rated = {value: gold(aspect, values[query], value) for value in set(values[told])}
            ratings = np.array([rated.get(value, 0) for value in values])
            ratings[query] = 0
            scores = vectors @ vectors[query]
            if few:
                chosen = draw.choice(np.delete(np.arange(len(values)), query), few, replace=False)
                ratings = np.where(np.isin(np.arange(len(values)), chosen), ratings, 0)
                pairs = (vectors[chosen] @ vectors[chosen].T)[np.triu_indices(few, 1)]
                mark = np.percentile(pairs, own_share(few))
            for texts, kept in (("unlike", (ratings > 0) & (ratings <= 2)), ("alike", ratings >= 4)):
                if kept.sum() >= (LEAST_OF_FEW if few else LEAST_TEXTS):
                    best = scores[kept].max()
                    found.append((name_, texts, percentile(best[None], reference)[0], best > mark))
    return pd.DataFrame(found, columns=["aspect", "texts", "percentile", "own"])


def main() -> int:
    """Print the share of draws in which the best hit is called a match."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--model", default=fast_encoder(map(describe, list_models())))
    parser.add_argument("--draws", type=int, default=60, help="queries for each aspect")
    parser.add_argument("--percentile", type=float, default=GOOD_PERCENTILE, help="from which a hit is a match")
    parser.add_argument("--own", action=argparse.BooleanOptionalAction, default=True, help="ask the corpus, too")
    parser.add_argument("--texts", type=int, default=0, help="of a small corpus that is drawn for each query")
    options = parser.parse_args()
    found = best_places(options.model, options.draws, options.texts)
    found["match"] = (found.percentile >= options.percentile) & (found.own | (not options.own))
    found = pd.concat([found, found.assign(aspect="all")])
    table = found.groupby(["texts", "aspect"])["match"].agg(["mean", "size"]).round(3)
    sys.stdout.write(f"{options.model}: a match from percentile {options.percentile:g}\n{table.to_string()}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
