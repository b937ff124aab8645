"""What an ingest run does when its model fails, refuses, falls back or is another one than before."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from tests.unit.ingest.kit import Kit, counts, item

from ragstone.core.errors import ModelError, ModelMismatch, ModelUnavailable
from ragstone.core.model_types import Embeddings
from ragstone.core.remedies import Action, Remedy
from ragstone.core.types import Role
from ragstone.ingest.embed import FIRST_CHUNKS, WAVE_CHUNKS
from ragstone.models.embedders.pool import FallbackEmbedder
from ragstone.stores.indexes import IndexCache
from ragstone.stores.vectors.sqlite import SqliteVectorIndex
from ragstone.testing.fakes import FakeEmbedder


@pytest.mark.req("R-EMB-19", "R-REL-21")
async def test_a_chunk_that_the_model_refuses_is_skipped_and_counted(kit: Kit) -> None:
    kit.embedder.refuse = {"It has nine lamps."}
    report = await kit.run([item("pier", "The pier is made of oak. It has nine lamps."), item("buoy")])
    assert counts(report) == (2, 0, 0, 0)
    assert report.skipped_chunks == 1
    assert await kit.by_word("lamps") == {"pier"}
    index = SqliteVectorIndex(kit.ledger, IndexCache(16))
    vector = (await FakeEmbedder().embed(["lamps"], "query")).vectors[0]
    assert len(await index.search("t", await kit.kb(), vector, 50)) == 2
    assert counts(await kit.run([item("buoy")])) == (0, 0, 1, 0)


async def test_without_a_model_documents_are_found_by_word_and_the_next_run_heals_them(kit: Kit) -> None:
    items = [item("pier"), item("buoy")]
    kit.embedder.errors = [ModelError("the model fell over")]
    report = await kit.run(items)
    assert counts(report) == (2, 0, 0, 0)
    assert report.degraded == ("embedding: the model fell over",)
    assert not (await kit.document("pier")).embedded
    assert (await kit.ledger.of("t").stats(await kit.kb())).unembedded == 2
    assert (await kit.kb()).space is None
    assert await kit.by_word("pier") == {"pier"}
    healed = await kit.run(items)
    assert (counts(healed), healed.degraded) == ((0, 2, 0, 0), ())
    assert (await kit.document("pier")).embedded
    assert await kit.by_meaning("pier") == {"pier", "buoy"}
    assert counts(await kit.run(items)) == (0, 0, 2, 0)


async def test_a_document_that_loses_its_model_in_an_update_is_still_found_by_word(kit: Kit) -> None:
    await kit.run([item("pier"), item("buoy")])
    kit.embedder.errors = [ModelError("the model fell over")]
    report = await kit.run([item("pier", "The pier has gone."), item("buoy")])
    assert (counts(report), report.degraded) == ((0, 1, 1, 0), ("embedding: the model fell over",))
    assert await kit.by_word("gone") == {"pier"}
    assert await kit.by_meaning("pier") == {"buoy"}


async def test_a_model_that_is_not_installed_is_an_error_before_anything_is_stored(kit: Kit) -> None:
    kit.embedder.errors = [ModelUnavailable("no weights")]
    with pytest.raises(ModelUnavailable, match="no weights"):
        await kit.run([item("pier")])
    assert await kit.names() == []


@pytest.mark.req("R-EMB-18")
async def test_vectors_of_a_fallback_never_enter_a_space_of_another_model(kit: Kit) -> None:
    await kit.run([item("pier")])
    broken = FakeEmbedder(errors=[ModelError("the model fell over")])
    both = FallbackEmbedder(broken, FakeEmbedder(name="other", dimension=32))
    configured = both.model.id
    reports = [await kit.run([item(name)], embedder=both, model=configured) for name in ("buoy", "gull")]
    for report in reports:
        assert counts(report) == (1, 0, 0, 0)
        assert report.degraded == ("embedding: other@1 answered, but this index is of fake@1",)
    space = (await kit.kb()).space
    assert space is not None
    assert (space.model, space.dimension) == ("fake@1", 64)
    assert await kit.by_meaning("buoy") == {"pier"}
    assert await kit.by_word("buoy") == {"buoy"}


@pytest.mark.req("R-EMB-18")
async def test_a_fallback_may_open_a_space_of_its_own(kit: Kit) -> None:
    broken = FakeEmbedder(errors=[ModelError("the model fell over")])
    both = FallbackEmbedder(broken, FakeEmbedder(name="other", dimension=32))
    configured = both.model.id
    for name in ("buoy", "gull"):
        report = await kit.run([item(name)], embedder=both, model=configured)
        assert (counts(report), report.degraded) == ((1, 0, 0, 0), ())
    space = (await kit.kb()).space
    assert space is not None
    assert (space.model, space.dimension) == ("other@1", 32)


class Dying(FakeEmbedder):
    """Answers once, then never again."""

    async def embed(self, texts: Sequence[str], role: Role = "document") -> Embeddings:
        made = await super().embed(texts, role)
        self.errors = [ModelError("the model fell over")]
        return made


@pytest.mark.req("R-EMB-18")
async def test_a_model_that_dies_amid_the_first_run_leaves_one_space(kit: Kit) -> None:
    both = FallbackEmbedder(Dying(), FakeEmbedder(name="other", dimension=32))
    report = await kit.run([item(f"n{number}") for number in range(3 * WAVE_CHUNKS)], embedder=both)
    assert counts(report) == (3 * WAVE_CHUNKS, 0, 0, 0)
    assert report.degraded == ("embedding: other@1 answered, but this index is of fake@1",)
    space = (await kit.kb()).space
    assert space is not None
    assert space.model == "fake@1"
    assert (await kit.ledger.of("t").stats(await kit.kb())).unembedded == 3 * WAVE_CHUNKS - FIRST_CHUNKS


async def test_another_configured_model_is_refused_before_anything_is_written(kit: Kit) -> None:
    await kit.run([item("pier")])
    before = await kit.ledger.of("t").sequence()
    with pytest.raises(ModelMismatch) as caught:
        await kit.run([item("buoy")], embedder=FakeEmbedder(name="other"))
    assert str(caught.value) == "knowledge base 'default' was built with fake@1, not with other@1"
    assert caught.value.remedy == Remedy(Action.REEMBED, model="other", kb="default", current_model="fake")
    assert await kit.ledger.of("t").sequence() == before
    assert await kit.names() == ["pier"]


@pytest.mark.req("R-EMB-18")
@pytest.mark.parametrize("text", ["The buoy is here.", "The pier is here. The buoy is here."], ids=["new", "shared"])
async def test_another_dimension_of_the_model_is_refused_with_what_to_do(kit: Kit, text: str) -> None:
    await kit.run([item("pier")])
    with pytest.raises(ModelMismatch) as caught:
        await kit.run([item("buoy", text)], embedder=FakeEmbedder(dimension=32))
    said = "knowledge base 'default' was built with fake@1 (64 dimensions), not with fake@1 (32)"
    assert (str(caught.value), caught.value.hint) == (said, "set embedding.dimensions to 64, or")
    assert caught.value.remedy == Remedy(Action.REEMBED, model="fake", kb="default")
    assert await kit.names() == ["pier"]
