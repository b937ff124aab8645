"""A kb moves from one model to another and back."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from tests.unit.ingest.kit import Unlimited, counts, item
from tests.unit.ingest.move_kit import Deaf, MoveKit, Tired

from ragstone.core.clock import now
from ragstone.core.errors import InputError, ModelError, ModelMismatch, NotFoundError
from ragstone.engine.embeddings.refresh import Refresher, RefreshReport
from ragstone.evaluate.spaces import VALIDATION
from ragstone.ingest import backfill as fill
from ragstone.ingest.backfill import FillProgress, SpaceMaintenance
from ragstone.language.relevance import UNRELATED
from ragstone.models.embedders.pool import FallbackEmbedder
from ragstone.testing.fakes import FakeEmbedder

NAMES = ("pier", "buoy", "gull", "rope", "lamp", "oar")


@pytest.fixture
async def kit(data_dir: Path) -> AsyncIterator[MoveKit]:
    kit = MoveKit(data_dir)
    yield kit
    await kit.ledger.close()


@pytest.fixture
async def filled(kit: MoveKit) -> MoveKit:
    await kit.run([item(name) for name in NAMES])
    kit.embedder.calls.clear()
    return kit


@pytest.mark.req("R-EMB-21", "R-EMB-22", "R-EMB-24", "R-EMB-28", "R-REL-09")
async def test_a_new_generation_is_built_beside_the_live_one_and_takes_its_place(filled: MoveKit) -> None:
    report = await filled.reembed()
    assert (report.outcome, report.mode, report.model, report.generation) == ("promoted", "full", "other@1", 2)
    assert (report.replaced, report.written, report.refused, report.chunks) == ("fake@1", 6, 0, 6)
    assert await filled.states() == [("fake@1", 1, "retired", 6), ("other@1", 2, "live", 6)]
    kept = (await filled.spaces())[0].keep_until
    assert kept is not None
    assert timedelta(days=6.9) < kept - now() <= timedelta(days=7)
    assert await filled.near("pier") == set(NAMES)
    documents = [texts for texts, role in filled.embedder.calls if role == "document"]
    assert documents in ([], [UNRELATED]), "the old model embeds no passage"


async def test_the_next_ingest_with_the_new_model_has_nothing_to_read(filled: MoveKit) -> None:
    await filled.reembed()
    report = await filled.run([item(name) for name in NAMES], embedder=filled.models["other"])
    assert counts(report) == (0, 0, 6, 0)


async def test_equal_text_is_embedded_once(kit: MoveKit, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fill, "BATCH", 2)
    await kit.run([item(f"n{number}", "All of them say this here.") for number in range(6)])
    report = await kit.reembed(force=True)
    assert report.written == 6
    asked = [text for texts, role in kit.models["other"].calls if role == "document" for text in texts]
    assert asked.count("All of them say this here.") == 1


async def test_what_was_embedded_before_a_failure_is_not_embedded_again(
    filled: MoveKit, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fill, "BATCH", 1)
    tired = filled.models["tired"] = Tired(name="tired", after=4)
    with pytest.raises(ModelError, match="the model fell over"):
        await filled.reembed("tired")
    assert await filled.states() == [("fake@1", 1, "live", 6), ("tired@1", 2, "building", 3)]
    before = tired.documents()
    report = await filled.reembed("tired")
    assert (report.outcome, report.written, report.generation) == ("promoted", 3, 2)
    first, *rest = tired.documents()
    assert first == before[0]  # the sentence that asks what the model is
    assert set(rest).isdisjoint(before)


async def test_a_chunk_that_the_model_refuses_does_not_hold_up_the_others(filled: MoveKit) -> None:
    filled.models["other"].refuse = {"The gull is here."}
    report = await filled.reembed(force=True)
    assert (report.outcome, report.written, report.refused) == ("promoted", 5, 1)
    assert await filled.near("gull") == set(NAMES) - {"gull"}
    assert await filled.by_word("gull") == {"gull"}
    assert (await filled.document("gull")).embedded


async def test_a_model_that_finds_worse_is_not_promoted_unless_told_to(filled: MoveKit) -> None:
    filled.models["deaf"] = Deaf(name="deaf")
    report = await filled.reembed("deaf")
    assert report.outcome == "not promoted"
    assert report.comparison is not None
    assert (report.comparison.dataset, report.comparison.queries) == ("generated", 6)
    assert report.comparison.before["mrr@10"] == 1.0
    assert report.comparison.after["mrr@10"] < 0.5
    assert report.comparison.interval.high < 0
    assert await filled.states() == [("fake@1", 1, "live", 6), ("deaf@1", 2, "building", 6)]
    forced = await filled.reembed("deaf", force=True)
    assert (forced.outcome, forced.written) == ("promoted", 0)
    assert (await filled.states())[1] == ("deaf@1", 2, "live", 6)


@pytest.mark.req("R-EMB-23")
async def test_three_queries_are_asked_of_both_in_every_comparison(filled: MoveKit) -> None:
    report = await filled.reembed(mode="dual")
    assert report.comparison is not None
    assert [one.query for one in report.comparison.agreements] == [
        "prompt caching",
        "LangGraph tools",
        "vector databases",
    ]
    for one in report.comparison.agreements:
        assert (len(one.before), len(one.after)) == (5, 5)
        assert one.common == len(set(one.before) & set(one.after))
    for model in ("fake", "other"):
        asked = [text for texts, role in filled.models[model].calls if role == "query" for text in texts]
        assert asked[-len(VALIDATION) :] == list(VALIDATION)


async def test_labelled_queries_decide_when_they_are_given(filled: MoveKit, tmp_path: Path) -> None:
    file = tmp_path / "golden.jsonl"
    file.write_text(
        '{"query": "where is the pier", "relevant": ["test/pier"]}\n{"query": "gull", "relevant": ["nothing"]}\n'
    )
    report = await filled.reembed(mode="dual", queries=file)
    assert report.comparison is not None
    assert (report.comparison.dataset, report.comparison.queries) == ("golden.jsonl", 2)
    assert (report.comparison.before["mrr@10"], report.comparison.after["mrr@10"]) == (0.5, 0.5)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"query": "x"}\n', "'relevant' must be a list"),
        ('{"query": " ", "relevant": ["a"]}\n', "'query' is empty"),
        ("[]\n", "list instead of an object"),
        ("", "holds no query"),
    ],
)
async def test_queries_that_cannot_be_used_are_refused_before_anything_is_built(
    filled: MoveKit, tmp_path: Path, content: str, message: str
) -> None:
    file = tmp_path / "golden.jsonl"
    file.write_text(content)
    with pytest.raises(InputError, match=message):
        await filled.reembed(queries=file)
    assert len(await filled.spaces()) == 1


@pytest.mark.req("R-EMB-24")
async def test_dual_keeps_both_and_a_later_promotion_embeds_nothing_again(filled: MoveKit) -> None:
    report = await filled.reembed(mode="dual")
    assert (report.outcome, report.replaced) == ("beside", "")
    assert await filled.states() == [("fake@1", 1, "live", 6), ("other@1", 2, "building", 6)]
    await filled.run([item("mast")])
    report = await filled.reembed(mode="full")
    assert (report.outcome, report.written) == ("promoted", 1)
    assert await filled.near("mast") == {*NAMES, "mast"}


@pytest.mark.req("R-EMB-24")
async def test_incremental_fills_what_was_stored_without_a_model(filled: MoveKit) -> None:
    filled.embedder.errors = [ModelError("the model fell over")]
    await filled.run([item("mast"), item("pier", "The pier has gone.")])
    assert await filled.near("mast") == set(NAMES) - {"pier"}
    report = await filled.reembed(None)
    assert (report.mode, report.outcome, report.generation, report.written) == ("incremental", "filled", 1, 2)
    assert await filled.near("mast") == {*NAMES, "mast"}
    assert (await filled.document("mast")).embedded
    assert counts(await filled.run([item("mast")])) == (0, 0, 1, 0)


async def test_incremental_gives_a_kb_its_first_space(kit: MoveKit) -> None:
    kit.embedder.errors = [ModelError("the model fell over")]
    await kit.run([item("pier")])
    assert (await kit.kb()).space is None
    await kit.reembed(None, mode="incremental")
    assert await kit.states() == [("fake@1", 1, "live", 1)]
    assert await kit.near("pier") == {"pier"}


async def test_incremental_does_not_mix_models(filled: MoveKit) -> None:
    with pytest.raises(ModelMismatch, match=r"was built with fake@1 \(64 dimensions\), not with other@1 \(32\)"):
        await filled.reembed("other", mode="incremental")


async def test_a_full_run_with_the_same_model_shows_and_mends_what_went_wrong(filled: MoveKit) -> None:
    async with filled.ledger.file("t") as file, file.turn:
        await file.write(lambda db: db.execute("UPDATE vectors SET vector = (SELECT min(vector) FROM vectors)"))
    report = await filled.reembed("fake", mode="full")
    assert (report.outcome, report.generation, report.written) == ("promoted", 2, 6)
    assert report.comparison is not None
    assert report.comparison.before["mrr@10"] < 0.5
    assert report.comparison.after["mrr@10"] == 1.0
    assert await filled.states() == [("fake@1", 1, "retired", 6), ("fake@1", 2, "live", 6)]


async def test_without_a_mode_a_kb_that_has_the_model_is_left_as_it_is(filled: MoveKit) -> None:
    await filled.reembed()
    report = await filled.reembed()
    assert (report.mode, report.outcome, report.written, report.generation) == ("incremental", "filled", 0, 2)


@pytest.mark.parametrize("model", ["fake", None])
async def test_without_a_mode_another_dimension_of_the_model_is_a_new_generation(
    filled: MoveKit, model: str | None
) -> None:
    filled.models["fake"] = filled.pool.default = FakeEmbedder(dimension=32)
    report = await filled.reembed(model)
    assert (report.mode, report.outcome, report.written, report.generation) == ("full", "promoted", 6, 2)
    assert report.comparison is not None
    assert report.comparison.before["mrr@10"] == 1.0, "the live Space was searched in its own dimension"
    assert [one.space.dimension for one in await filled.spaces()] == [64, 32]
    assert await filled.near("pier") == set(NAMES)
    await filled.rollback()
    assert await filled.near("pier") == set(NAMES)


async def renew(kit: MoveKit) -> RefreshReport:
    """Embed everything again, as once a month."""
    refresher = Refresher(kit.ledger, kit.book, kit.pool, kit.reembedder, Unlimited())  # type: ignore[arg-type]
    return await refresher.run("t", "default", sample=1, full=True)


async def test_a_refresh_keeps_the_dimension_of_the_kb(filled: MoveKit) -> None:
    filled.models["fake"] = filled.pool.default = FakeEmbedder(dimension=32)
    assert (await renew(filled)).outcome == "promoted"
    assert [(one.space.dimension, one.space.state) for one in await filled.spaces()] == [(64, "retired"), (64, "live")]


@pytest.mark.parametrize("model", [None, "frail"])
async def test_a_kb_is_not_moved_to_a_fallback_of_the_model_that_was_asked_for(
    filled: MoveKit, model: str | None
) -> None:
    filled.models["frail"] = FakeEmbedder(name="frail", errors=[ModelError("the model fell over")])
    filled.pool.default = FallbackEmbedder(filled.models["frail"], FakeEmbedder(name="second"))
    with pytest.raises(ModelMismatch, match="second@1 answered instead of frail@1"):
        await filled.reembed(model)
    assert await filled.states() == [("fake@1", 1, "live", 6)]


async def test_a_kb_of_a_fallback_is_filled_while_that_answers(filled: MoveKit) -> None:
    await filled.reembed()
    frail = FakeEmbedder(name="frail", errors=[ModelError("the model fell over")])
    filled.pool.default = FallbackEmbedder(frail, filled.models["other"])
    assert (await filled.reembed(None)).outcome == "filled"


async def test_a_refresh_does_not_move_a_kb_to_a_fallback(filled: MoveKit) -> None:
    filled.embedder.errors = [ModelError("the model fell over")]
    filled.pool.default = FallbackEmbedder(filled.embedder, FakeEmbedder(name="second"))
    with pytest.raises(ModelMismatch, match="second@1 answered instead of fake@1"):
        await renew(filled)
    assert await filled.states() == [("fake@1", 1, "live", 6)]


async def test_a_refresh_takes_the_revision_that_is_installed(filled: MoveKit) -> None:
    newer = FakeEmbedder()
    newer.model = replace(newer.model, revision="2")
    filled.models["fake"] = filled.pool.default = newer
    assert (await renew(filled)).outcome == "promoted"
    assert [one[:3] for one in await filled.states()] == [("fake@1", 1, "retired"), ("fake@2", 2, "live")]


async def test_rolling_back_brings_what_came_in_since(filled: MoveKit) -> None:
    await filled.reembed()
    await filled.run([item("mast"), item("gull", "No gull any more.")], embedder=filled.models["other"])
    report = await filled.rollback()
    assert (report.outcome, report.model, report.replaced, report.written) == ("rolled back", "fake@1", "other@1", 2)
    assert await filled.states() == [("fake@1", 1, "live", 7), ("other@1", 2, "retired", 7)]
    assert await filled.near("mast") == {*NAMES, "mast"}
    assert (await filled.rollback()).model == "other@1"


async def test_there_is_nothing_to_roll_back_to_at_first(filled: MoveKit) -> None:
    with pytest.raises(NotFoundError, match="has no Space to go back to"):
        await filled.rollback()


@pytest.mark.req("R-EMB-22")
async def test_a_retired_space_goes_after_its_grace_period(filled: MoveKit) -> None:
    upkeep = SpaceMaintenance(filled.ledger, filled.book, filled.filler, Unlimited())
    await filled.reembed()
    await upkeep.clean("t")
    assert await filled.reembedder.clean("t", "default", retired=False, building=False) == 0
    assert len(await filled.spaces()) == 2
    await filled.rollback()
    await filled.reembed(mode="full", grace_days=0)
    await upkeep.clean("t")
    assert [one[:3] for one in await filled.states()] == [("other@1", 2, "retired"), ("other@1", 3, "live")]
    assert await filled.reembedder.clean("t", "default", retired=True, building=False) == 1
    async with filled.ledger.file("t") as file:
        held = await file.read(lambda db: db.execute("SELECT DISTINCT space_id FROM vectors").fetchall())
    assert held == [((await filled.spaces())[0].space.id,)]


async def test_the_live_space_is_never_removed(filled: MoveKit) -> None:
    space = (await filled.spaces())[0].space
    assert not await filled.book.of("t").drop(space)
    assert await filled.states() == [("fake@1", 1, "live", 6)]


async def test_workers_fill_what_is_found_by_word_only_some_at_a_time(
    filled: MoveKit, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fill, "AT_A_TIME", 2)
    monkeypatch.setattr(fill, "BATCH", 1)
    filled.embedder.errors = [ModelError("the model fell over")]
    await filled.run([item(f"n{number}") for number in range(3)])
    upkeep = SpaceMaintenance(filled.ledger, filled.book, filled.filler, Unlimited())
    left = []
    for _ in range(3):
        left.append((await filled.ledger.of("t").stats(await filled.kb())).unembedded)
        await upkeep.fill("t")
    assert left == [3, 1, 0]
    assert await filled.near("n1") == {*NAMES, "n0", "n1", "n2"}


async def test_chunks_that_the_model_refuses_keep_no_others_waiting_and_are_not_tried_again(
    filled: MoveKit, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fill, "AT_A_TIME", 2)
    monkeypatch.setattr(fill, "BATCH", 1)
    refused = [f"Mute {number} of all." for number in range(4)]
    filled.embedder.refuse = refused
    await filled.run([item(f"mute{number}", text) for number, text in enumerate(refused)])
    filled.embedder.errors = [ModelError("the model fell over")]
    await filled.run([item("mast", "The mast is behind them.")])
    upkeep = SpaceMaintenance(filled.ledger, filled.book, filled.filler, Unlimited())
    filled.embedded_texts()
    for _ in range(3):
        await upkeep.fill("t")
    assert (await filled.document("mast")).embedded
    assert filled.embedded_texts() == [*refused, "The mast is behind them."]
    filled.embedder.errors = [ModelError("the model fell over")]
    await filled.run([item("sail")])
    filled.embedded_texts()
    await upkeep.fill("t")
    assert (await filled.document("sail")).embedded
    assert filled.embedded_texts() == ["The sail is here."]


async def test_a_document_whose_refused_chunks_take_several_passes_is_done_in_the_end(
    filled: MoveKit, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fill, "AT_A_TIME", 2)
    monkeypatch.setattr(fill, "BATCH", 1)
    filled.embedder.errors = [ModelError("the model fell over")]
    await filled.run([item("mute", " ".join(f"One two three four five {n}." for n in range(5)))])
    filled.embedder.refuse = [f"One two three four five {n}." for n in range(5)]
    upkeep = SpaceMaintenance(filled.ledger, filled.book, filled.filler, Unlimited())
    filled.embedded_texts()
    for _ in range(5):
        await upkeep.fill("t")
    assert sorted(filled.embedded_texts()) == filled.embedder.refuse
    assert (await filled.document("mute")).embedded


async def test_a_kb_whose_model_is_away_does_not_stop_the_workers(filled: MoveKit) -> None:
    filled.embedder.errors = [ModelError("the model fell over")] * 2
    await filled.run([item("mast")])
    upkeep = SpaceMaintenance(filled.ledger, filled.book, filled.filler, Unlimited())
    await upkeep.fill("t")
    assert not (await filled.document("mast")).embedded
    await upkeep.fill("t")
    assert (await filled.document("mast")).embedded


async def test_progress_says_how_far_it_is(filled: MoveKit, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fill, "BATCH", 4)
    seen: list[FillProgress] = []
    await filled.reembed(on_progress=seen.append)
    assert [(one.done, one.total) for one in seen] == [(0, 6), (4, 6), (6, 6)]
    assert [one.seconds_left is None for one in seen] == [True, False, False]
    assert seen[-1].seconds_left == 0


@pytest.mark.parametrize("days", [-1, 3651])
async def test_a_grace_period_has_bounds(filled: MoveKit, days: int) -> None:
    with pytest.raises(InputError, match=f"grace_days is {days}; it must be from 0 to 3650"):
        await filled.reembed(grace_days=days)
