from __future__ import annotations

import hashlib
import random
import re

import pytest

from ragstone.ingest.enrich import near_duplicates
from ragstone.ingest.enrich.near_duplicates import BANDS, NEAR, PLACES, WINDOW, bands, signature, similarity

VOCABULARY = [f"word{n}" for n in range(2000)]
FREQUENCIES = [1 / (n + 1) for n in range(2000)]
TEXTS = 150
LENGTH = 200
FERRY = "The ferry to Sula leaves Port Arden at nine and returns from the island at five in the evening."


def changed(words: list[str], share: float, rng: random.Random) -> list[str]:
    copy = list(words)
    for position in rng.sample(range(len(words)), round(share * len(words))):
        copy[position] = rng.choice(VOCABULARY)
    return copy


def runs(words: list[str]) -> set[tuple[str, ...]]:
    return {tuple(words[start : start + 3]) for start in range(len(words) - 2)}


def measured(share: float) -> str:
    """A row of the table: what becomes of copies with this share of their words replaced."""
    rng = random.Random(f"near duplicates {share}")
    common = keys = near = 0.0
    for _ in range(TEXTS):
        words = rng.choices(VOCABULARY, FREQUENCIES, k=LENGTH)
        copy = changed(words, share, rng)
        common += len(runs(words) & runs(copy)) / len(runs(words) | runs(copy))
        first, second = signature(" ".join(words)), signature(" ".join(copy))
        keys += not set(bands(first)).isdisjoint(bands(second))
        near += similarity(first, second) >= NEAR
    return f"| {share:.1%} | {common / TEXTS:.2f} | {keys / TEXTS:.3f} | {near / TEXTS:.3f} |"


@pytest.mark.parametrize("share", [0, 0.01, 0.02, 0.03, 0.05, 0.1, 0.2, 0.5, 1])
def test_the_table_says_what_is_measured(share: float) -> None:
    table = re.findall(r"\| [\d.]+% .*", near_duplicates.__doc__ or "")
    assert len(table) == 9
    assert measured(share) in table


def test_unrelated_texts_of_one_vocabulary_are_never_near() -> None:
    rng = random.Random(7)
    signatures = [signature(" ".join(rng.choices(VOCABULARY, FREQUENCIES, k=LENGTH))) for _ in range(150)]
    pairs = [(a, b) for place, a in enumerate(signatures) for b in signatures[:place]]
    assert max(similarity(a, b) for a, b in pairs) < 0.2


def test_a_signature_is_the_same_in_every_process() -> None:
    # Python's own hashes differ from run to run; a stored signature must not.
    digest = hashlib.sha256(signature(FERRY) + repr(bands(signature(FERRY))).encode()).hexdigest()
    assert digest == "82c6d128b414626d8534ce8c73c050e833061745890949ff688ee8b4fc85bd77"
    assert len(signature(FERRY)) == PLACES * 4


def test_case_marks_and_line_breaks_do_not_count() -> None:
    other = FERRY.upper().replace(" ", "\n").replace(".", "!!")
    assert similarity(signature(FERRY), signature(other)) == 1.0


def test_a_not_counts() -> None:
    assert similarity(signature("The pump is safe."), signature("The pump is not safe.")) < NEAR


@pytest.mark.parametrize("text", ["", " \n", "?!", "…"])
def test_a_text_without_words_resembles_nothing(text: str) -> None:
    assert signature(text) == b""
    assert bands(b"") == ()
    assert similarity(b"", b"") == 0.0
    assert similarity(b"", signature(FERRY)) == 0.0


@pytest.mark.parametrize("text", ["pump", "two words", "当天最后一班渡轮", "\ud800 lone", "x" * 500_000])
def test_any_text_with_words_resembles_itself(text: str) -> None:
    assert similarity(signature(text), signature(text)) == 1.0
    assert similarity(signature(text), signature(FERRY)) < NEAR


def test_scripts_without_spaces_are_compared_too() -> None:
    text = "当天最后一班渡轮在午夜前不久离开港口，乘客必须提前一个小时到达码头，并且带上他们的船票和行李。" * 2
    assert similarity(signature(text), signature(text.replace("港口", "城市", 1))) >= NEAR
    assert similarity(signature(text), signature("我们的图书馆每天早上九点开门，周末除外。")) < 0.2


def test_a_text_longer_than_a_window_is_compared_as_a_whole() -> None:
    rng = random.Random(3)
    words = rng.choices(VOCABULARY, k=WINDOW // 3)
    text = " ".join(words)
    assert len(text) > 2 * WINDOW
    assert similarity(signature(text), signature("one more at the start " + text)) >= 0.95
    half = " ".join(words[: len(words) // 2])
    assert 0.3 < similarity(signature(text), signature(half)) < 0.7


def test_band_keys_fit_a_signed_column_and_say_which_band_they_are_of() -> None:
    keys = bands(signature(FERRY))
    assert len(keys) == len(set(keys)) == BANDS
    assert all(0 <= key < 2**63 for key in keys)
    same_places = bytes(range(16)) * BANDS
    assert len(set(bands(same_places))) == BANDS
