"""Embedders of several models at once."""

from __future__ import annotations

import asyncio

import pytest

from ragstone.core.errors import ModelMismatch, ModelUnavailable, SettingsError
from ragstone.models.embedders.pool import EmbedderShelf
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
def shelf(workshop: Workshop) -> EmbedderShelf:
    return EmbedderShelf(FakeEmbedder(name="own"), workshop)


async def test_the_configured_model_is_not_built_again(shelf: EmbedderShelf, workshop: Workshop) -> None:
    assert await shelf.of("own@1") is shelf.own
    assert workshop.built == []
    assert await shelf.named("own") is shelf.own
    assert [one.closed for one in workshop.built] == [True]


async def test_another_is_built_once_however_many_ask_for_it(
    shelf: EmbedderShelf, workshop: Workshop
) -> None:
    found = await asyncio.gather(*(shelf.of("other@1") for _ in range(5)))
    assert {id(one) for one in found} == {id(workshop.built[0])}
    assert await shelf.named("other") is workshop.built[0]
    assert [one.closed for one in workshop.built] == [False, True]
    assert await shelf.named("third") is await shelf.of("third@1")


async def test_closing_lets_go_of_the_others_only(shelf: EmbedderShelf, workshop: Workshop) -> None:
    await shelf.of("other@1")
    await shelf.named("third")
    await shelf.close()
    assert [one.closed for one in workshop.built] == [True, True]
    assert not shelf.own.closed  # type: ignore[attr-defined]


async def test_other_weights_of_the_same_name_are_refused(shelf: EmbedderShelf, workshop: Workshop) -> None:
    with pytest.raises(
        ModelMismatch, match=r"this index was built with other@2; other@1 is what is installed"
    ):
        await shelf.of("other@2")
    assert [one.closed for one in workshop.built] == [True]


async def test_a_model_that_cannot_be_built_is_not_available(shelf: EmbedderShelf) -> None:
    with pytest.raises(
        ModelUnavailable, match="this index was built with nowhere@1: 'nowhere' has no address"
    ):
        await shelf.of("nowhere@1")
