from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import pytest

from ragstone.answer import cache as answer_cache
from ragstone.answer.cache import AnswerCache, Asked, says_the_same
from ragstone.core.answers import Answer
from ragstone.core.documents import place_metadata
from ragstone.core.errors import ModelError
from ragstone.core.search import WebResult, web_hits
from ragstone.core.types import Chunk, Hit, KnowledgeBase, LiveChunk, PageStart, Space
from ragstone.models.embedders.pool import FallbackEmbedder
from ragstone.testing.fakes import FakeEmbedder

EMBEDDER = FakeEmbedder()
KB = KnowledgeBase(1, "default", Space(1, EMBEDDER.model.id, 64, 1, "live"))
QUESTION = "When does the ferry leave the north pier?"
TEXT = "The ferry leaves the north pier at nine."
HIT = Hit("c1", "d1", "Ferry", "ferry.md", "Guide > Times", 2, TEXT, 0.9, {}, {}, 7, 7 + len(TEXT))
ANSWER = Answer(QUESTION, f"{TEXT} [1]", (), (), "answered")


class Shelf:
    """What is live: by tenant and chunk id."""

    def __init__(self) -> None:
        chunk = Chunk(0, TEXT, 7, 7 + len(TEXT), page=2, section=("Guide", "Times"))
        live = LiveChunk("c1", "d1", 1, chunk, "Ferry", "ferry.md", "files", {})
        self.live: dict[str, dict[str, LiveChunk]] = {"acme": {"c1": live}, "globex": {"c1": live}}

    def of(self, tenant: str) -> TenantShelf:
        return TenantShelf(self.live[tenant])


@dataclass
class TenantShelf:
    """What is live for one tenant: by chunk id."""

    live: dict[str, LiveChunk]

    async def chunks(self, kb: KnowledgeBase, chunk_ids: Sequence[str]) -> Mapping[str, LiveChunk]:
        return {name: self.live[name] for name in chunk_ids if name in self.live}


@pytest.fixture
def shelf() -> Shelf:
    return Shelf()


@pytest.fixture
def cache(shelf: Shelf) -> AnswerCache:
    return AnswerCache(shelf, 0.9)


def asked(question: str = QUESTION, tenant: str = "acme", kb: KnowledgeBase = KB, way: str = "") -> Asked:
    return Asked(tenant, kb, way, question, EMBEDDER)


@pytest.mark.req("R-FUT-04")
async def test_nearly_the_same_question_gets_the_answer_again(cache: AnswerCache) -> None:
    await cache.keep(asked(), [HIT], ANSWER)
    again = "when does the ferry leave the north pier"
    assert await cache.find(asked(again)) == replace(ANSWER, question=again)


async def test_a_question_that_a_fallback_embeds_is_like_no_other(cache: AnswerCache) -> None:
    await cache.keep(asked(), [HIT], ANSWER)
    failing = FakeEmbedder(errors=[ModelError("the model fell over")])
    both = FallbackEmbedder(failing, FakeEmbedder(name="second", dimension=32))
    assert await cache.find(replace(asked(), embedder=both)) is None


@pytest.mark.parametrize(
    "other",
    [
        asked("What does the museum show on Sundays?"),
        asked(tenant="globex"),
        asked(kb=replace(KB, id=2)),
        asked(kb=replace(KB, space=None)),
        asked(way="k=3"),
    ],
    ids=lambda one: one.question + one.tenant + one.way,
)
@pytest.mark.req("R-MOD-16")
async def test_no_other_question_tenant_kb_or_way_does(cache: AnswerCache, other: Asked) -> None:
    await cache.keep(asked(), [HIT], ANSWER)
    assert await cache.find(other) is None
    assert await cache.find(asked()) == ANSWER


@pytest.mark.parametrize(
    "change",
    [
        {"chunk": Chunk(0, "The ferry leaves at ten.", 7, 31, page=2, section=("Guide", "Times"))},
        {"chunk": Chunk(0, TEXT, 8, 8 + len(TEXT), page=2, section=("Guide", "Times"))},
        {"uri": "moved/ferry.md"},
        {"title": "Ships"},
    ],
    ids=lambda change: next(iter(change)),
)
async def test_an_answer_goes_exactly_when_its_evidence_changes(
    cache: AnswerCache, shelf: Shelf, change: dict[str, object]
) -> None:
    await cache.keep(asked(), [HIT], ANSWER)
    shelf.live["acme"]["new"] = shelf.live["acme"]["c1"]
    assert await cache.find(asked()) == ANSWER
    before = shelf.live["acme"]["c1"]
    shelf.live["acme"]["c1"] = replace(before, **change)
    assert await cache.find(asked()) is None
    shelf.live["acme"]["c1"] = before
    assert await cache.find(asked()) is None
    assert len(cache) == 0


async def test_a_deleted_passage_takes_its_answer_along(cache: AnswerCache, shelf: Shelf) -> None:
    await cache.keep(asked(), [HIT], ANSWER)
    del shelf.live["acme"]["c1"]
    assert await cache.find(asked()) is None


RUNS = "The ferry leaves the north pier at nine. Bread is sold. It takes cars."


async def test_an_answer_from_runs_of_a_passage_is_given_until_one_of_them_changes(
    cache: AnswerCache, shelf: Shelf
) -> None:
    pages = place_metadata([PageStart(7 + RUNS.index("It takes"), 3)], None)
    chunk = Chunk(0, RUNS, 7, 7 + len(RUNS), page=2, section=("Guide", "Times"), metadata=pages)
    before = replace(shelf.live["acme"]["c1"], chunk=chunk)
    start = 7 + RUNS.index("It takes")
    second = replace(HIT, text="It takes cars.", start=start, end=start + len("It takes cars."), page=3)
    shelf.live["acme"]["c1"] = before
    await cache.keep(asked(), [HIT, second], ANSWER)
    assert await cache.find(asked()) == ANSWER
    shelf.live["acme"]["c1"] = replace(before, chunk=replace(chunk, text=RUNS.replace("cars", "vans")))
    assert await cache.find(asked()) is None


@pytest.mark.parametrize(
    "less", [replace(ANSWER, status="no_evidence"), replace(ANSWER, degraded=("llm: it is down",))]
)
async def test_less_than_a_whole_answer_is_not_kept(cache: AnswerCache, less: Answer) -> None:
    await cache.keep(asked(), [HIT], less)
    assert len(cache) == 0


async def test_an_answer_from_the_web_is_not_kept(cache: AnswerCache) -> None:
    page = WebResult("Ferry", "https://ferry.example/", TEXT)
    await cache.keep(asked(), [HIT, *web_hits([page])], ANSWER)
    assert len(cache) == 0


async def test_without_a_vector_nothing_is_kept_or_found(cache: AnswerCache) -> None:
    broken = replace(asked(), embedder=FakeEmbedder(errors=[ModelError("broken")] * 2))
    await cache.keep(broken, [HIT], ANSWER)
    assert len(cache) == 0
    await cache.keep(asked(), [HIT], ANSWER)
    assert await cache.find(broken) is None


async def test_memory_is_bounded(cache: AnswerCache, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answer_cache, "MOST_ANSWERS", 2)
    for number in range(4):
        await cache.keep(asked(f"What is number {number}?"), [HIT], ANSWER)
    assert len(cache) == 2


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("When does the ferry leave?", "when does the ferry leave"),
        ("When does the ferry leave?", "Please, when does ferry leave?"),
        ("Doesn't it leave?", "doesn’t it leave?"),
        ("Is C++ fast?", "Is C++ fast"),
        ("¿Cuándo sale el ferry?", "cuándo sale el ferry"),
        ("In winter, when does it leave?", "in winter when does it leave."),
    ],
)
def test_questions_that_say_the_same(before: str, after: str) -> None:
    assert says_the_same(before, after)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("What did it cost in 2023?", "What did it cost in 2024?"),
        ("Does the ferry leave the pier?", "Does the ferry not leave the pier?"),
        ("Does the ferry leave the pier?", "Doesn't the ferry leave the pier?"),
        ("Does Acme refund Globex?", "Does Globex refund Acme?"),
        ("do cats chase dogs", "do dogs chase cats"),
        ("refund of the ferry", "refund of the train"),
        ("What does the Basic plan cost?", "What does the Pro plan cost?"),
        ("What is the minimum fare?", "What is the maximum fare?"),
        ("what is the hotel price in berlin", "what is the hotel price in paris"),
        ("What happens before lunch?", "What happens after lunch?"),
        ("Why is it open?", "When is it open?"),
        ("How many members?", "Which members?"),
        ("Can I import wine?", "Must I import wine?"),
        ("from berlin to paris", "to berlin from paris"),
        ("What can it be?", "What can it do?"),
        ("what is vitamin a", "what is vitamin"),
        ("Who is the employer?", "Who is the employee?"),
        ("Is C++ fast?", "Is C fast?"),
        ("Does it freeze at 5 degrees?", "Does it freeze at -5 degrees?"),
        ("How much water for .5 kg of rice?", "How much water for 5 kg of rice?"),
        ("What does {} mean in bash?", "What does [] mean in bash?"),
        ("What does ! mean here?", "What does ? mean here?"),
        ("What does the option . do", "What does the option : do"),
        ("What is $?", "What is $"),
        ("Where is a/..?", "Where is a/.?"),
        ("What is 5! here?", "What is 5 here?"),
        ('Who sells a 5" pipe?', "Who sells a 5' pipe?"),
        ("What does (x) mean?", "What does [x] mean?"),
        ("Do they polish it?", "Do they Polish it?"),
        ("WHO rules?", "Who rules?"),
    ],
)
def test_questions_that_do_not(before: str, after: str) -> None:
    assert not says_the_same(before, after)
