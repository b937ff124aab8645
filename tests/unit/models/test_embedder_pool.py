"""Embedders of several models at once."""

from __future__ import annotations

import asyncio

import pytest

from ragstone.core.errors import ModelError, ModelMismatch, ModelUnavailable, SettingsError
from ragstone.core.types import Space
from ragstone.models.embedders.pool import CachedEmbedder, EmbedderPool, FallbackEmbedder
from ragstone.testing.fakes import FakeEmbedder


class Workshop:
    """Builds embedders and remembers them."""

    def __init__(self) -> None:
        self.built: list[FakeEmbedder] = []

    def __call__(self, name: str, dimension: int | None) -> FakeEmbedder:
        if name == "nowhere":
            raise SettingsError("'nowhere' has no address", hint="set one")
        self.built.append(FakeEmbedder(name=name, dimension=dimension or 64))
        return self.built[-1]


def space(model: str, dimension: int = 64) -> Space:
    return Space(1, model, dimension, 1, "live")


@pytest.fixture
def workshop() -> Workshop:
    return Workshop()


@pytest.fixture
def pool(workshop: Workshop) -> EmbedderPool:
    return EmbedderPool(FakeEmbedder(name="own"), workshop)


async def test_the_configured_model_is_not_built_again(pool: EmbedderPool, workshop: Workshop) -> None:
    assert await pool.for_space(space("own@1")) is pool.default
    assert workshop.built == []
    assert await pool.get("own") is pool.default
    assert [one.closed for one in workshop.built] == [True]


async def test_another_is_built_once_however_many_ask_for_it(pool: EmbedderPool, workshop: Workshop) -> None:
    found = await asyncio.gather(*(pool.for_space(space("other@1")) for _ in range(5)))
    assert {id(one) for one in found} == {id(workshop.built[0])}
    assert await pool.get("other") is workshop.built[0]
    assert [one.closed for one in workshop.built] == [False, True]
    assert await pool.get("third") is await pool.for_space(space("third@1"))


@pytest.mark.req("R-EMB-18")
@pytest.mark.parametrize("model", ["own@1", "other@1"])
async def test_a_space_of_another_dimension_has_an_embedder_of_its_own(pool: EmbedderPool, model: str) -> None:
    dimensions = [16, 64, 32, 16]
    found = [await pool.for_space(space(model, dimension)) for dimension in dimensions]
    assert [(one.model.id, one.model.dimension) for one in found] == [(model, dimension) for dimension in dimensions]
    assert found[0] is found[3]
    await pool.close()
    assert [one.closed for one in (found[0], found[2])] == [True, True]  # type: ignore[attr-defined]


async def test_a_fallback_stays_in_the_place_of_its_model(workshop: Workshop) -> None:
    first = FakeEmbedder(name="first", errors=[ModelError("it fell over")])
    pool = EmbedderPool(CachedEmbedder(FallbackEmbedder(first, FakeEmbedder(name="second", dimension=32))), workshop)
    assert (await pool.default.embed(["cat"])).model == pool.default.model.id == "second@1"
    assert pool.default_id == "first@1"
    assert await pool.for_space(space("first@1")) is pool.default
    assert await pool.for_space(space("second@1", 32)) is pool.default
    assert workshop.built == []


async def test_a_dimension_that_is_not_known_yet_is_taken_for_that_of_the_space(workshop: Workshop) -> None:
    pool = EmbedderPool(FakeEmbedder(name="remote", dimension=0), workshop)
    assert await pool.for_space(space("remote@1")) is pool.default


async def test_closing_lets_go_of_the_others_only(pool: EmbedderPool, workshop: Workshop) -> None:
    await pool.for_space(space("other@1"))
    await pool.get("third")
    await pool.close()
    assert [one.closed for one in workshop.built] == [True, True]
    assert not pool.default.closed  # type: ignore[attr-defined]


async def test_other_weights_of_the_same_name_are_refused(pool: EmbedderPool, workshop: Workshop) -> None:
    with pytest.raises(ModelMismatch, match=r"this index was built with other@2; other@1 is what is installed"):
        await pool.for_space(space("other@2"))
    assert [one.closed for one in workshop.built] == [True]


async def test_a_model_that_cannot_be_built_is_not_available(pool: EmbedderPool) -> None:
    with pytest.raises(ModelUnavailable, match="this index was built with nowhere@1: 'nowhere' has no address"):
        await pool.for_space(space("nowhere@1"))
