"""Embedders of several models at once."""

from __future__ import annotations

import asyncio

import pytest

from ragstone.core.errors import ModelMismatch, ModelUnavailable, SettingsError
from ragstone.models.embedders.pool import EmbedderPool
from ragstone.testing.fakes import FakeEmbedder


class Workshop:
    """Builds embedders and remembers them."""

    def __init__(self) -> None:
        self.built: list[FakeEmbedder] = []

    def __call__(self, name: str) -> FakeEmbedder:
        if name == "nowhere":
            raise SettingsError("'nowhere' has no address", hint="set one")
        self.built.append(FakeEmbedder(name=name))
        return self.built[-1]


@pytest.fixture
def workshop() -> Workshop:
    return Workshop()


@pytest.fixture
def pool(workshop: Workshop) -> EmbedderPool:
    return EmbedderPool(FakeEmbedder(name="own"), workshop)


async def test_the_configured_model_is_not_built_again(pool: EmbedderPool, workshop: Workshop) -> None:
    assert await pool.for_space("own@1") is pool.default
    assert workshop.built == []
    assert await pool.get("own") is pool.default
    assert [one.closed for one in workshop.built] == [True]


async def test_another_is_built_once_however_many_ask_for_it(pool: EmbedderPool, workshop: Workshop) -> None:
    found = await asyncio.gather(*(pool.for_space("other@1") for _ in range(5)))
    assert {id(one) for one in found} == {id(workshop.built[0])}
    assert await pool.get("other") is workshop.built[0]
    assert [one.closed for one in workshop.built] == [False, True]
    assert await pool.get("third") is await pool.for_space("third@1")


async def test_closing_lets_go_of_the_others_only(pool: EmbedderPool, workshop: Workshop) -> None:
    await pool.for_space("other@1")
    await pool.get("third")
    await pool.close()
    assert [one.closed for one in workshop.built] == [True, True]
    assert not pool.default.closed  # type: ignore[attr-defined]


async def test_other_weights_of_the_same_name_are_refused(pool: EmbedderPool, workshop: Workshop) -> None:
    with pytest.raises(ModelMismatch, match=r"this index was built with other@2; other@1 is what is installed"):
        await pool.for_space("other@2")
    assert [one.closed for one in workshop.built] == [True]


async def test_a_model_that_cannot_be_built_is_not_available(pool: EmbedderPool) -> None:
    with pytest.raises(ModelUnavailable, match="this index was built with nowhere@1: 'nowhere' has no address"):
        await pool.for_space("nowhere@1")
