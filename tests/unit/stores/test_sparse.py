"""Words as numbers and weights."""

from __future__ import annotations

import numpy as np
import pytest

from ragstone.stores.lexical.postings import K1, B, word_numbers, words_asked, words_of


def test_a_word_keeps_its_number() -> None:
    """Points are stored under it: another number would hide every one of them."""
    assert word_numbers("server hook.player.connected größe").tolist() == [1731028424, 1581588996, 1726281197]
    assert word_numbers("").tolist() == []


def test_weights_are_those_of_bm25_without_the_rarity() -> None:
    words = words_of("map server map", 6.0)
    norm = K1 * (1 - B + B * 3 / 6.0)
    expected = {"server": (K1 + 1) / (1 + norm), "map": 2 * (K1 + 1) / (2 + norm)}
    found = dict(zip(words.numbers, words.weights, strict=True))
    assert found == pytest.approx({int(word_numbers(word)[0]): gain for word, gain in expected.items()})


def test_an_empty_chunk_has_no_words() -> None:
    assert words_of("", 100.0) == ([], [])


def test_a_query_asks_each_word_once() -> None:
    asked = words_asked([["map"], ["server"], ["map"]])
    assert sorted(asked.numbers) == sorted(word_numbers("map server").tolist())
    assert asked.weights == [1.0, 1.0]


def test_few_words_have_a_namesake() -> None:
    """About as many as chance gives 32 bits, which is one pair of 100,000 words."""
    names = " ".join(f"sku-{n} item{n}x" for n in range(50_000))
    numbers = word_numbers(names)
    assert len(numbers) - len(np.unique(numbers)) <= 10
