"""Transforms inside a search: several texts, one list, judged by what was asked."""

from __future__ import annotations

import pytest
from tests.unit.query.doubles import KB, Index, Shelf, ask, candidates, fake_embedder

from ragstone.core.errors import SettingsError
from ragstone.core.filters import Filter
from ragstone.core.types import Candidate, KnowledgeBase
from ragstone.query.pipeline import SearchPipeline
from ragstone.query.transform import Transformer
from ragstone.settings.load import load_settings
from ragstone.settings.retrieval import RerankingSettings, RetrievalSettings, Transform
from ragstone.settings.tenants import packed_settings
from ragstone.testing.fakes import FakeLLM, FakeReranker

SHELF = Shelf({name: f"text of {name}" for name in ("a#0", "b#0", "c#0")})


class ByText(Index):
    """Finds what each text is said to find."""

    def __init__(self, found: dict[str, list[Candidate]]) -> None:
        super().__init__([])
        self.by_text = found

    async def search(
        self, tenant: str, kb: KnowledgeBase, query: object, k: int, where: Filter | None = None
    ) -> list[Candidate]:
        return self.by_text.get(str(query), [])


def pipeline(
    lexical: Index, *transforms: Transform, replies: list[str], judge: FakeReranker | None = None
) -> SearchPipeline:
    return SearchPipeline(
        SHELF,
        Index([]),
        lexical,
        fake_embedder,
        judge,
        RetrievalSettings(),
        RerankingSettings(),
        transformer=Transformer(transforms, llm=FakeLLM(replies)),
    )


@pytest.mark.req("R-HYB-24", "R-QRY-16")
async def test_a_chunk_that_several_variants_find_is_one_hit_with_its_best_score() -> None:
    lexical = ByText(
        {
            "query": [Candidate("a#0", 3.0), Candidate("b#0", 1.0)],
            "query two": [Candidate("b#0", 5.0), Candidate("a#0", 2.0)],
            "query three": [Candidate("c#0", 4.0)],
        }
    )
    search = pipeline(lexical, replies=["query two\nquery three"])
    result = await search.search("default", KB, ask("query", strategy="expand"))
    assert [(hit.chunk_id, hit.scores["lexical"]) for hit in result.hits] == [("b#0", 5.0), ("c#0", 4.0), ("a#0", 3.0)]
    assert result.rewritten_query == "query | query two | query three"


@pytest.mark.req("R-QRY-06", "R-QRY-14")
@pytest.mark.parametrize(
    ("strategy", "reply"),
    [("rewrite", "a fuller query a"), ("expand", "query a"), ("hyde", "The query is answered by a.")],
)
async def test_passages_are_judged_by_what_was_asked(strategy: str, reply: str) -> None:
    judge = FakeReranker()
    search = pipeline(Index(candidates("a#0", "b#0")), replies=[reply], judge=judge)
    result = await search.search("default", KB, ask("query b", strategy=strategy))
    assert [hit.chunk_id for hit in result.hits] == ["b#0", "a#0"]
    assert {query for query, _ in judge.calls} == {"query b"}
    assert result.query == "query b"
    assert reply in result.rewritten_query


@pytest.mark.parametrize("key", ["retrieval.dictionary", "retrieval.wordnet"])
def test_a_tenant_cannot_name_files_of_the_machine(key: str) -> None:
    with pytest.raises(SettingsError, match="cannot be set for one tenant"):
        packed_settings({key: "/etc/passwd"})


def test_a_tenant_can_choose_its_transforms() -> None:
    assert packed_settings({"retrieval.transforms": ["hyde"]}) == '{"retrieval.transforms": ["hyde"]}'


@pytest.mark.req("R-QRY-09")
def test_the_rpg_profile_expands_and_does_nothing_else() -> None:
    settings = load_settings(overrides={"profile": "rpg"}, environment={})
    assert settings.retrieval.transforms == ("entities",)
    assert settings.llm.model is None
