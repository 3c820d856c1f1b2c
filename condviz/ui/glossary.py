"""The terms of the page, each explained in two sentences."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Term:
    """One entry of the glossary.

    Attributes:
        title: The term.
        text: At most three short sentences.
    """

    title: str
    text: str


TERMS = {
    "condition": Term(
        "Condition",
        "What two sentences are compared in, as a short phrase: “the sport”, “the number of people”. The same two "
        "sentences can be alike under one condition and unlike under another.",
    ),
    "cross-encoder": Term(
        "Cross-encoder",
        "Reads both sentences and the condition together and returns a score. Often accurate, but it makes no vectors, "
        "so every new pair has to be read from scratch.",
    ),
    "bi-encoder": Term(
        "Bi-encoder",
        "Reads each sentence together with the condition and returns one vector for it. A new condition means reading "
        "every sentence again.",
    ),
    "tri-encoder": Term(
        "Tri-encoder",
        "Reads sentence and condition separately and combines their vectors. Sentences are read once, however many "
        "conditions follow.",
    ),
    "hyper-cl": Term(
        "Hyper-CL",
        "A tri-encoder in which the condition becomes a matrix that the sentence’s vector is multiplied by "
        "(Yoo et al. 2024).",
    ),
    "csr": Term(
        "CSR",
        "A model in which the condition decides how much weight each word of the sentence gets: condition-specified "
        "routing.",
    ),
    "case": Term(
        "CASE",
        "Encodes the condition in the light of the sentence, subtracts the condition on its own, and projects what is "
        "left.",
    ),
    "router": Term(
        "Router",
        "The part of CSR that turns a condition into a weight for each word of the sentence. The weights of one "
        "sentence add up to 1.",
    ),
    "w_c": Term(
        "W_c",
        "The matrix that Hyper-CL computes from a condition. Multiplying a sentence’s vector by it keeps what the "
        "condition asks about.",
    ),
    "score": Term(
        "Score",
        "What a model returns for two sentences under a condition; for most models the cosine of two vectors, from −1 "
        "to 1. Scores of different models are not on one scale.",
    ),
    "percentile": Term(
        "Percentile",
        "The share of stored reference pairs that the same model scores lower. It tells whether a score is high for "
        "this model.",
    ),
    "impurity": Term(
        "Impurity",
        "How mixed the groups in clusters of vectors are, as entropy: 0 means each cluster holds one group. The "
        "Hyper-CL paper measures it before and after W_c.",
    ),
    "umap": Term(
        "UMAP",
        "A method that draws vectors with hundreds of dimensions in two, keeping close neighbours close. Distances "
        "between far clusters on the drawing mean little.",
    ),
    "pair-accuracy": Term(
        "Pair accuracy",
        "Two conditions are put to the same two sentences: is the one with the higher rating scored higher? Chance is "
        "50 %.",
    ),
    "spearman": Term(
        "Spearman correlation", "Agreement of two orders, here of scores and ratings: 100 means the same order, 0 none."
    ),
    "pearson": Term(
        "Pearson correlation",
        "How nearly scores and ratings lie on one straight line: 100 means exactly, 0 not at all. Unlike Spearman’s it "
        "depends on the distances between scores, not only on their order.",
    ),
    "ties": Term(
        "Ties left out",
        "Pair accuracy without the sentence pairs whose two conditions get the same score. In pair accuracy itself "
        "these count as wrong.",
    ),
    "mean-error": Term(
        "Mean error",
        "How far the rating that a score predicts lies from the rating given, on average, in steps from 1 to 5. The "
        "prediction is fitted on other sentence pairs.",
    ),
    "bias": Term(
        "Bias",
        "The mean error with its sign. Above 0 the model finds sentences more alike than the ratings do, below 0 less.",
    ),
    "interval": Term(
        "95 % interval",
        "The range in which the figure would fall in 95 of 100 samples of the same size. Figures whose intervals "
        "overlap widely may not differ.",
    ),
    "attribution": Term(
        "Effect of a word",
        "How much the score drops when the word is left out. Leaving out a word can break the grammar, so small "
        "effects mean little.",
    ),
}
