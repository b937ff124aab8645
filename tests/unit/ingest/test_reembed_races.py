"""What is written while a kb is moved to another model: nothing is lost, and no Space holds vectors of another."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from pathlib import Path

import pytest
from tests.unit.ingest.kit import Unlimited, counts, item
from tests.unit.ingest.move_kit import Interrupted, MoveKit

from ragstone.core.documents import IngestReport
from ragstone.core.errors import ModelMismatch, ModelUnavailable, NotFoundError, StoreBusy
from ragstone.core.protocols import Embedder
from ragstone.core.types import Item, Space
from ragstone.ingest.backfill import FillResult
from ragstone.ingest.embed import ModelChoice
from ragstone.ingest.pipeline import IngestPipeline
from ragstone.settings.tree import LimitSettings
from ragstone.stores.ledger import spaces
from ragstone.stores.ledger.spaces import SqlTenantSpaces
from ragstone.testing.builders import make_version
from ragstone.testing.fakes import FakeEmbedder

NAMES = ("pier", "buoy", "gull")


@pytest.fixture
async def kit(data_dir: Path) -> AsyncIterator[MoveKit]:
    kit = MoveKit(data_dir)
    await kit.run([item(name) for name in NAMES])
    yield kit
    await kit.ledger.close()


async def ingest(kit: MoveKit, items: list[Item], choice: ModelChoice) -> IngestReport:
    """As a process does that may follow the kb to another model."""
    made = kit.pipeline(choice.own, choice.configured)
    pipeline = IngestPipeline(kit.ledger, made._preparer, choice, made._verifier, LimitSettings(), Unlimited())
    return await pipeline.run("t", "default", items)


async def test_what_comes_in_while_a_space_is_built_is_in_it_when_it_is_live(kit: MoveKit) -> None:
    async def meanwhile() -> None:
        await kit.run([item("mast"), item("gull", "No gull any more.")])
        async with kit.ledger.transaction("t") as tx:
            await tx.delete((await kit.document("buoy")).id)

    kit.models["slow"] = Interrupted(name="slow", happens=meanwhile)
    report = await kit.reembed("slow")
    assert (report.outcome, report.chunks) == ("promoted", 3)
    assert await kit.near("mast") == {"pier", "gull", "mast"}
    assert (await kit.states())[1] == ("slow@1", 2, "live", 3)


async def test_the_last_few_are_embedded_while_nobody_writes(kit: MoveKit, monkeypatch: pytest.MonkeyPatch) -> None:
    promote, attempts = SqlTenantSpaces.promote, []

    async def at_the_last_moment(*given, **options):  # type: ignore[no-untyped-def]
        attempts.append(await kit.run([item(f"mast{number}") for number in range(3)]))
        return await promote(*given, **options)

    monkeypatch.setattr(SqlTenantSpaces, "promote", at_the_last_moment)
    report = await kit.reembed()
    assert (len(attempts), report.written) == (1, 6)
    assert (await kit.states())[1] == ("other@1", 2, "live", 6)


async def test_what_is_too_much_for_the_last_moment_is_embedded_first(
    kit: MoveKit, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spaces, "FEW", 2)
    promote, attempts = SqlTenantSpaces.promote, []

    async def at_the_last_moment(*given, **options):  # type: ignore[no-untyped-def]
        if not attempts:
            await kit.run([item(f"mast{number}") for number in range(3)])
        attempts.append(await promote(*given, **options))
        return attempts[-1]

    monkeypatch.setattr(SqlTenantSpaces, "promote", at_the_last_moment)
    report = await kit.reembed()
    assert (attempts, report.written) == ([False, True], 6)


async def test_writers_that_are_faster_than_the_model_are_told(kit: MoveKit, monkeypatch: pytest.MonkeyPatch) -> None:
    async def never(*given, **options):  # type: ignore[no-untyped-def]
        return False

    monkeypatch.setattr(SqlTenantSpaces, "promote", never)
    with pytest.raises(StoreBusy, match="documents come into 'default' faster than other@1 embeds them"):
        await kit.reembed()
    assert (await kit.states())[0][2] == "live"


async def shorten(kit: MoveKit) -> None:
    """Move the kb to 32 dimensions of its model, which were 64."""
    kit.models["fake"] = kit.pool.default = FakeEmbedder(dimension=32)
    await kit.reembed("fake")


@pytest.mark.parametrize(("move", "model"), [(MoveKit.reembed, "other@1"), (shorten, "fake@1")])
async def test_a_wave_that_was_embedded_before_the_flip_is_embedded_anew(
    kit: MoveKit, move: Callable[[MoveKit], Awaitable[object]], model: str
) -> None:
    late = Interrupted(lambda: move(kit))
    report = await ingest(kit, [item("mast")], kit.following(late))
    assert (counts(report), report.degraded) == ((1, 0, 0, 0), ())
    assert (await kit.document("mast")).embedded
    assert await kit.near("mast") == {*NAMES, "mast"}
    assert await kit.states() == [("fake@1", 1, "retired", 3), (model, 2, "live", 4)]


@pytest.mark.parametrize(
    ("move", "answered", "live"),
    [(MoveKit.reembed, "fake@1", "other@1"), (shorten, "fake@1 (64 dimensions)", "fake@1 (32)")],
)
async def test_without_the_new_model_it_is_found_by_word_until_somebody_fills_it(
    kit: MoveKit, move: Callable[[MoveKit], Awaitable[object]], answered: str, live: str
) -> None:
    async def unreachable(space: Space) -> Embedder:
        raise ModelUnavailable(f"no weights of {space.model}")

    late = Interrupted(lambda: move(kit))
    choice = ModelChoice(late.model.id, late, kit.book, unreachable)
    report = await ingest(kit, [item("mast")], choice)
    assert counts(report) == (1, 0, 0, 0)
    assert report.degraded == (f"embedding: {answered} answered, but this index is of {live}",)
    assert not (await kit.document("mast")).embedded
    assert await kit.by_word("mast") == {"mast"}
    assert await kit.near("mast") == set(NAMES)
    # Its vectors are in the Space they belong to, should the kb be moved back.
    assert await kit.states() == [("fake@1", 1, "retired", 4), (live.split()[0], 2, "live", 3)]
    await kit.filler.catch_up("t", await kit.kb())
    assert (await kit.document("mast")).embedded
    assert await kit.near("mast") == {*NAMES, "mast"}


@pytest.mark.parametrize(("move", "model"), [(MoveKit.reembed, "other@1"), (shorten, "fake@1")])
async def test_a_process_of_before_the_move_goes_on_with_the_new_model(
    kit: MoveKit, move: Callable[[MoveKit], Awaitable[object]], model: str
) -> None:
    await move(kit)
    report = await ingest(kit, [item("mast")], kit.following(kit.embedder))
    assert (counts(report), report.degraded) == ((1, 0, 0, 0), ())
    assert await kit.states() == [("fake@1", 1, "retired", 3), (model, 2, "live", 4)]


async def test_a_model_that_a_tenant_has_chosen_by_name_has_the_dimension_of_the_kb(kit: MoveKit) -> None:
    async def of_tenant(tenant: str) -> Embedder:
        return FakeEmbedder(name="other", dimension=64)

    await kit.reembed()
    choice = replace(kit.following(FakeEmbedder(name="third")), of_tenant=of_tenant)
    assert counts(await ingest(kit, [item("mast")], choice)) == (1, 0, 0, 0)
    assert await kit.states() == [("fake@1", 1, "retired", 3), ("other@1", 2, "live", 4)]


async def test_a_dimension_that_the_kb_never_had_is_refused(kit: MoveKit) -> None:
    await kit.reembed("fake", mode="full")
    with pytest.raises(ModelMismatch, match=r"was built with fake@1 \(64 dimensions\), not with fake@1 \(32\)"):
        await ingest(kit, [item("mast")], kit.following(FakeEmbedder(dimension=32)))


async def test_a_version_that_was_staged_before_the_flip_counts_as_found_by_word_only(kit: MoveKit) -> None:
    texts = ["The mast is here."]
    vectors = (await FakeEmbedder().embed(texts)).vectors
    version = make_version("mast", texts, vectors=vectors, tenant="t")
    async with kit.ledger.transaction("t") as tx:
        number = await tx.stage(await kit.kb(), version)
    await kit.reembed()
    async with kit.ledger.transaction("t") as tx:
        await tx.activate(await kit.kb(), version.document_id, number)
    assert not (await kit.document("mast")).embedded
    assert (await kit.filler.catch_up("t", await kit.kb())).written == 1
    assert (await kit.document("mast")).embedded


async def test_vectors_of_what_was_deleted_meanwhile_are_not_written(kit: MoveKit) -> None:
    space = await kit.book.of("t").open(await kit.kb(), "other@1", 32)
    lacking = await kit.book.of("t").lacking(await kit.kb(), space, 0, 10)
    rows = await kit.filler.complete("t", space, lacking, FillResult())
    async with kit.ledger.transaction("t") as tx:
        await tx.delete((await kit.document("buoy")).id)
    assert await kit.book.of("t").add(space, rows) == 2
    assert await kit.book.of("t").add(space, rows) == 0


async def test_a_space_that_was_removed_takes_no_vectors(kit: MoveKit) -> None:
    space = await kit.book.of("t").open(await kit.kb(), "other@1", 32)
    await kit.book.of("t").drop(space)
    with pytest.raises(NotFoundError, match="the Space of other@1, generation 2, was removed meanwhile"):
        await kit.filler.fill("t", await kit.kb(), space, FillResult())


async def test_a_search_sees_the_space_that_was_live_when_it_began(kit: MoveKit) -> None:
    before = await kit.kb()
    vector = (await kit.embedder.embed(["pier"], "query")).vectors[0]
    expected = await kit.vectors.search("t", before, vector, 10)
    await kit.reembed()
    assert await kit.vectors.search("t", before, vector, 10) == expected
    assert (await kit.kb()).space != before.space


async def test_an_index_in_memory_learns_of_vectors_that_come_after_their_chunks(kit: MoveKit) -> None:
    space = await kit.book.of("t").open(await kit.kb(), "other@1", 32)
    scope = replace(await kit.kb(), space=space)
    vector = (await kit.models["other"].embed(["pier"], "query")).vectors[0]
    assert await kit.vectors.search("t", scope, vector, 10) == []
    await kit.filler.fill("t", scope, space, FillResult())
    assert len(await kit.vectors.search("t", scope, vector, 10)) == 3
