"""Claims about the shipped corpus, with the default models: true sentences and twins that say something else.

Measured when this was written: of 200 pairs no twin VERIFIED, and at least nine originals in ten VERIFIED or LIKELY.
Of these 200 an even choice is judged; `RAGSTONE_CLAIM_PAIRS=200 pytest tests/quality/test_claims.py` judges them all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from bench.twins import Pair, pairs
from tests.long_runs import take_rounds

from ragstone import Ragstone
from ragstone.core.answers import Verdict
from ragstone.language.sentences import sentence_spans
from ragstone.samples import corpus_path

pytestmark = pytest.mark.timeout(1200)
"""Up to four hundred verdicts by the real model, on a machine that may be busy."""
ALL_PAIRS = 200
PAIRS = take_rounds("RAGSTONE_CLAIM_PAIRS", 20)
LEAST_RIGHT = 0.9
FEWEST_WORDS, MOST_WORDS = 5, 40


@pytest.fixture(scope="module")
def stone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ragstone]:
    # The verdicts are made before a test can have its searches wait for a busy machine.
    with Ragstone(data_dir=tmp_path_factory.mktemp("claims"), retrieval={"timeout": 60}) as stone:
        assert stone.ingest(corpus_path()).failed == ()
        yield stone


@pytest.fixture(scope="module")
def verdicts(stone: Ragstone) -> list[tuple[Pair, Verdict, Verdict]]:
    """Each pair with the verdicts on the original and on the twin."""
    chosen = list(pairs(_sentences(stone)))[:ALL_PAIRS]
    assert len(chosen) == ALL_PAIRS
    chosen = [chosen[number * ALL_PAIRS // PAIRS] for number in range(PAIRS)]
    known = {text: stone.verify(text) for pair in chosen for text in (pair.original, pair.twin)}
    return [(pair, known[pair.original], known[pair.twin]) for pair in chosen]


def _sentences(stone: Ragstone) -> list[str]:
    texts = [stone.text(document.id) for document in stone.documents()]
    found = (" ".join(text[start:end].split()) for text in texts for start, end in sentence_spans(text))
    return [one for one in dict.fromkeys(found) if FEWEST_WORDS <= len(one.split()) <= MOST_WORDS and one.endswith(".")]


@pytest.mark.parametrize("change", ["negated", "number"])
def test_no_false_twin_is_verified(
    verdicts: list[tuple[Pair, Verdict, Verdict]], change: str, record_property: Callable[[str, object], None]
) -> None:
    twins = [(pair.twin, verdict.status) for pair, _, verdict in verdicts if pair.change == change]
    assert len(twins) >= PAIRS // 4
    record_property("injected", len(twins))
    assert [twin for twin, status in twins if status == "VERIFIED"] == []


def test_most_true_sentences_are_at_least_likely(
    verdicts: list[tuple[Pair, Verdict, Verdict]], record_property: Callable[[str, object], None]
) -> None:
    missed = [pair.original for pair, verdict, _ in verdicts if verdict.status == "UNVERIFIED"]
    record_property("injected", 0)
    record_property("noted", f"of {PAIRS} true sentences {PAIRS - len(missed)} are VERIFIED or LIKELY")
    assert len(missed) <= (1 - LEAST_RIGHT) * PAIRS, missed


@pytest.mark.parametrize(
    ("claim", "stance"),
    [
        ("The crossing to Sula takes 55 minutes.", "supported"),
        ("A bicycle costs 2 crowns, whatever the distance.", "supported"),
        ("A bicycle costs 5 crowns.", "refuted"),
        ("The fuel berth is open on 12 December 2025.", "refuted"),
        ("The Eiffel Tower is 330 metres tall.", "unknown"),
    ],
)
def test_claims_in_other_words(stone: Ragstone, claim: str, stance: str) -> None:
    assert stone.verify(claim).stance == stance
