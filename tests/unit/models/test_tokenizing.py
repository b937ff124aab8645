from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from tests.unit.models.tiny import tiny_tokenizer

from ragstone.core.errors import ModelError
from ragstone.models.runtime.inference import ModelTokenizer
from ragstone.models.weights.packages import GRANITE, GranitePack, installed_file


@pytest.fixture(scope="module")
def granite() -> ModelTokenizer:
    pack = GranitePack(installed_file(*GRANITE, "granite-embedding-30m-english"))
    return ModelTokenizer("granite", pack.tokenizer_json())


@pytest.fixture
def tiny() -> ModelTokenizer:
    return ModelTokenizer("tiny", tiny_tokenizer().to_str().encode())


def test_offsets_count_characters_not_bytes(granite: ModelTokenizer) -> None:
    text = "naïve café 😀 日本語 end"
    offsets = granite.offsets(text)
    assert text[slice(*offsets[-1])] == "end"
    assert {text[start:end] for start, end in offsets} >= {"😀", "日", "本", "語"}


def test_offsets_are_not_cut_at_the_published_limit(tiny: ModelTokenizer) -> None:
    assert tiny.offsets("the cat") == [(0, 3), (4, 7)]
    assert len(tiny.offsets("the " * 500)) == 500


def test_a_long_text_without_spaces_is_tokenised(granite: ModelTokenizer) -> None:
    text = "ab" * 100_000
    offsets = granite.offsets(text)
    assert offsets[0][0] == 0
    assert offsets[-1][1] == len(text)


def test_ids_have_no_special_tokens_and_no_padding(tiny: ModelTokenizer) -> None:
    first, second = tiny.ids(["the", "the cat"])
    assert first is not None
    assert second is not None
    assert (len(first), len(second)) == (1, 2)
    assert tiny.brackets == (1, 2)
    assert tiny.padding == 0


def test_an_invalid_text_is_the_only_one_without_ids(tiny: ModelTokenizer) -> None:
    made = tiny.ids(["the", "\ud800", "cat"])
    assert [entry is None for entry in made] == [False, True, False]


def test_only_the_passage_of_a_pair_is_cut(tiny: ModelTokenizer) -> None:
    (whole, _), (cut, types) = tiny.pairs("the cat", ["mat", "mat " * 50], longest=12)
    assert len(whole) == 6
    assert len(cut) == 12
    assert cut[:4] == whole[:4]
    assert (cut[0], cut[3], cut[-1]) == (1, 2, 2)
    assert types == [0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1]


def test_a_query_that_is_too_long_leaves_room_for_the_passage(tiny: ModelTokenizer) -> None:
    ((ids, types),) = tiny.pairs("the " * 100, ["mat"], longest=12)
    assert len(ids) == 10
    assert sum(types) == 2


def test_many_threads_agree(granite: ModelTokenizer) -> None:
    texts = [f"text number {number}" for number in range(50)]
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(granite.offsets, texts)) == [granite.offsets(text) for text in texts]


def test_a_broken_tokenizer_is_named() -> None:
    with pytest.raises(ModelError, match="the tokenizer of mine cannot be read"):
        ModelTokenizer("mine", b"{}")
