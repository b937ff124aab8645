"""The generator of corpora with known answers."""

from __future__ import annotations

import pytest

from ragstone.testing.corpora import ACTS, BETWEEN, NAMES, SCENES_PER_CHAPTER, TestDataGenerator


@pytest.mark.req("R-TST-17")
def test_a_corpus_has_chapters_and_is_the_same_each_time() -> None:
    corpus = TestDataGenerator().generate_test_corpus()
    assert corpus == TestDataGenerator().generate_test_corpus(num_chapters=5)
    assert corpus != TestDataGenerator(seed=1).generate_test_corpus()
    paragraphs = corpus.split(BETWEEN)
    assert len(paragraphs) == len(set(paragraphs)) == 5 * SCENES_PER_CHAPTER
    assert [n for n, text in enumerate(paragraphs) if text.startswith("Chapter ")] == [0, 6, 12, 18, 24]
    assert TestDataGenerator().generate_test_corpus(2).split(BETWEEN) == paragraphs[:12]


@pytest.mark.req("R-TST-18", "R-TST-15")
@pytest.mark.parametrize("seed", range(5))
def test_a_query_has_one_answer_and_names_it(seed: int) -> None:
    generator = TestDataGenerator(seed)
    corpus = generator.generate_test_corpus(16)
    paragraphs = corpus.split(BETWEEN)
    queries = generator.generate_test_queries(corpus, len(paragraphs))
    assert queries == generator.generate_test_queries(corpus, len(paragraphs))
    assert len(generator.generate_test_queries(corpus)) == 10
    assert len({query.query for query in queries}) == len(queries)
    assert [query.id for query in queries[:2]] == ["q1", "q2"]
    for query in queries:
        (expected,) = query.expected_chunk_ids
        answers = [n for n, text in enumerate(paragraphs) if query.is_answered_by(text)]
        assert answers == [int(expected.removeprefix("chunk_"))]
        assert query.min_relevant_results == 1


def test_a_corpus_is_as_long_as_there_are_facts() -> None:
    most = len(NAMES) * len(ACTS) // SCENES_PER_CHAPTER
    for chapters in (0, most + 1):
        with pytest.raises(ValueError, match=f"from 1 to {most} chapters"):
            TestDataGenerator().generate_test_corpus(chapters)
    corpus = TestDataGenerator().generate_test_corpus(1)
    for count in (0, 7):
        with pytest.raises(ValueError, match="facts for 6 queries"):
            TestDataGenerator().generate_test_queries(corpus, count)
    with pytest.raises(ValueError, match="facts for 0 queries"):
        TestDataGenerator().generate_test_queries("Nothing of the kind.", 1)
