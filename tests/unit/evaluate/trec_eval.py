"""What trec_eval answers on collections with every hard case; run as a script, it asks trec_eval anew.

The answers are recorded because the package is not made for every platform: `pip install pytrec-eval-terrier`
(0.5.11 gave these), then `python -m tests.unit.evaluate.trec_eval`.
"""

from __future__ import annotations

import json
import random
from pathlib import Path

SEEDS = range(3)
CUTOFFS = (1, 3, 5, 10, 100)
RECORDED = Path(__file__).with_name("trec_eval.json")

Answers = dict[str, dict[str, float]]
"""Of each query, its measures: `ndcg_cut_10`, `recall_10`, `P_10`, `success_10`, `recip_rank_10`."""


def collection(seed: int) -> tuple[dict[str, dict[str, int]], dict[str, dict[str, float]]]:
    """Graded judgements and a run with tied scores, unjudged documents and queries that found nothing."""
    choose = random.Random(seed)
    documents = [f"d{number}" for number in range(60)]
    grades = {
        f"q{query}": {doc: choose.choice([-1, 0, 0, 1, 1, 2, 3]) for doc in choose.sample(documents, 12)}
        for query in range(20)
    }
    run = {
        query: {doc: float(choose.randrange(8)) for doc in choose.sample(documents, choose.randrange(1, 50))}
        for query in grades
        if choose.random() > 0.1
    }
    return grades, run


def ranking(scores: dict[str, float]) -> list[str]:
    """The order trec_eval sees: by score, ties by document id from the end."""
    return sorted(scores, key=lambda doc: (scores[doc], doc), reverse=True)


def recorded(seed: int) -> Answers:
    """What trec_eval said of this collection."""
    answers: dict[str, Answers] = json.loads(RECORDED.read_text())
    return answers[str(seed)]


def _ask(seed: int) -> Answers:
    import pytrec_eval

    grades, run = collection(seed)
    measures = {f"{name}.{k}" for name in ("ndcg_cut", "recall", "P", "success") for k in CUTOFFS}
    answers: Answers = pytrec_eval.RelevanceEvaluator(grades, measures).evaluate(run)
    for k in CUTOFFS:
        # It has no cutoff for this measure, so it sees only the first k.
        cut = {query: {doc: scores[doc] for doc in ranking(scores)[:k]} for query, scores in run.items()}
        for query, found in pytrec_eval.RelevanceEvaluator(grades, {"recip_rank"}).evaluate(cut).items():
            answers[query][f"recip_rank_{k}"] = found["recip_rank"]
    return answers


if __name__ == "__main__":
    RECORDED.write_text(json.dumps({seed: _ask(seed) for seed in SEEDS}, indent=0, sort_keys=True) + "\n")
