"""Transforms inside a search: several texts, one list, judged by what was asked."""

from __future__ import annotations

import json

import pytest
from tests.unit.query.doubles import EMBEDDER, KB, Index, Shelf, ask, candidates, fake_embedder

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
        self.texts: list[str] = []

    async def search(
        self, tenant: str, kb: KnowledgeBase, query: object, k: int, where: Filter | None = None
    ) -> list[Candidate]:
        self.texts.append(str(query))
        return self.by_text.get(str(query), [])


def pipeline(
    lexical: Index,
    *transforms: Transform,
    replies: list[str],
    judge: FakeReranker | None = None,
    llm: FakeLLM | None = None,
    shelf: Shelf = SHELF,
) -> SearchPipeline:
    return SearchPipeline(
        shelf,
        Index([]),
        lexical,
        fake_embedder,
        judge,
        RetrievalSettings(),
        RerankingSettings(),
        transformer=Transformer(transforms, llm=llm or FakeLLM(replies)),
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
async def test_the_rpg_profile_expands_and_does_nothing_else() -> None:
    settings = load_settings(overrides={"profile": "rpg"}, environment={})
    assert settings.llm.model is None
    query = "What is RBAC? How do cronjobs work?"
    lexical, llm = ByText({query: [Candidate("a#0", 1.0)]}), FakeLLM()
    shelf = Shelf({"a#0": "Role Based Access Control (RBAC) says who may do what."})
    search = pipeline(lexical, *settings.retrieval.transforms, replies=[], llm=llm, shelf=shelf)
    await search.search("default", KB, ask(query, mode="thorough"))
    assert lexical.texts == [query, f"{query} Role Based Access Control"]
    assert llm.requests == []


@pytest.mark.req("R-QRY-11")
async def test_the_parts_of_a_compound_question_are_searched_for_and_their_results_are_one_list() -> None:
    query, parts = "What is a hook? How do cronjobs work?", ("What is a hook", "How do cronjobs work")
    lexical = ByText({query: candidates("c#0"), parts[0]: candidates("a#0"), parts[1]: candidates("b#0", "a#0")})
    whole = await pipeline(lexical, replies=[]).search("default", KB, ask(query))
    split = await pipeline(lexical, "decompose", replies=[]).search("default", KB, ask(query))
    assert [hit.chunk_id for hit in whole.hits] == ["c#0"]
    assert sorted(hit.chunk_id for hit in split.hits) == ["a#0", "b#0", "c#0"]
    assert sorted(lexical.texts) == sorted((query, query, *parts))


@pytest.mark.req("R-QRY-13", "R-TST-24", "R-FUT-22")
async def test_a_statement_is_searched_for_as_the_fuller_one_that_an_llm_makes_of_it() -> None:
    said = "Arthur Dent lies in front of bulldozer"
    fuller = "Arthur Dent protests demolition of his house by lying in front of bulldozer"
    lexical, llm = ByText({said: candidates("b#0"), fuller: candidates("a#0")}), FakeLLM([fuller])
    search = pipeline(lexical, "rewrite", replies=[], llm=llm)
    result = await search.search("default", KB, ask(said, mode="thorough"))
    assert [hit.chunk_id for hit in result.hits] == ["a#0"]
    assert (result.query, result.rewritten_query, lexical.texts) == (said, fuller, [fuller])
    ((system, user),) = llm.requests
    assert "one more specific query" in system.content
    assert json.loads(user.content) == said


@pytest.mark.req("R-QRY-18", "R-QRY-02")
@pytest.mark.parametrize(
    ("strategy", "reply", "searched"),
    [
        (
            "expand",
            "Claude cache_control API\nprompt caching token costs\nephemeral prompt caching implementation",
            [
                "Claude prompt caching",
                "Claude cache_control API",
                "prompt caching token costs",
                "ephemeral prompt caching implementation",
            ],
        ),
        (
            "rewrite",
            "How does Anthropic Claude implement prompt caching?",
            ["How does Anthropic Claude implement prompt caching?"],
        ),
    ],
)
async def test_the_example_is_searched_for_in_its_other_wordings(
    strategy: Transform, reply: str, searched: list[str]
) -> None:
    lexical = ByText({text: candidates("a#0") for text in searched})
    search = pipeline(lexical, replies=[reply])
    result = await search.search("default", KB, ask("Claude prompt caching", strategy=strategy))
    assert lexical.texts == searched
    assert [hit.chunk_id for hit in result.hits] == ["a#0"]


@pytest.mark.req("R-QRY-03")
async def test_a_passage_that_an_llm_makes_up_is_embedded_and_not_matched_by_word() -> None:
    passage = "Prompt caching stores a prefix. Claude reads it again at a lower price."
    before, lexical = len(EMBEDDER.queries), ByText({})
    search = pipeline(lexical, replies=[passage])
    await search.search("default", KB, ask("Claude prompt caching", strategy="hyde"))
    assert EMBEDDER.queries[before:] == [("Claude prompt caching", passage)]
    assert lexical.texts == ["Claude prompt caching"]


@pytest.mark.req("R-NRM-11", "R-TST-24")
@pytest.mark.parametrize(
    ("cleaning", "embedded"),
    [
        ((), "What are the EFFECTS of Vaccinations?"),
        (("normalize",), "what are the effects of vaccinations"),
        (("normalize", "stop_words"), "effects vaccinations"),
        (("normalize", "stem"), "what are the effect of vaccin"),
        (("normalize", "stop_words", "stem"), "effect vaccin"),
    ],
)
async def test_a_query_is_lower_cased_and_loses_stop_words_and_endings_where_that_is_set(
    cleaning: tuple[Transform, ...], embedded: str
) -> None:
    before = len(EMBEDDER.queries)
    search = pipeline(ByText({}), *cleaning, replies=[])
    await search.search("default", KB, ask("What are the EFFECTS of Vaccinations?"))
    assert EMBEDDER.queries[before:] == [(embedded,)]
