"""The baseline queries of the takaro design, over a small manual of a game server written for this test."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from ragstone import Item, Ragstone, load_settings
from ragstone.agents.toolbox import Toolbox

PAGES = {
    "api/modules.md": """# Module API

## Create a module

Call `moduleControllerCreate` with a name and a description to create a module. It returns the module and its id.

## Remove a module

`moduleControllerRemove` takes the id of a module and removes it with all of its parts.
""",
    "api/players.md": """# Player API

## Search players

`playerControllerSearch` returns players by name, last visit or role, a page at a time.
""",
    "guide/hooks.md": """# Hooks

A hook is code that runs when an event happens on the game server.

## Events

`hook.player.connected` fires when a player joins. `hook.player.disconnected` fires when a player leaves.

## Hooks and commands

A hook may run a command of the same module: it calls the command by its name, and the command runs as if a player
had typed it.
""",
    "guide/commands.md": """# Commands

A command is code that runs when a player types its trigger in the chat.

## Arguments

Arguments have a type and may have a default. A command can also be started by a hook of its module.
""",
    "guide/cronjobs.md": """# Cronjobs

A cronjob runs code at a fixed time. Its schedule has five fields, from the minute to the day of the week, and the
times are in UTC.
""",
    "guide/moderation.md": """# Moderation

## Ban a player

Open the profile, choose Ban and write the reason. The player sees the reason when the ban takes effect.

## Kick a player

A kick ends the visit of a player, who may come back at once.
""",
    "guide/economy.md": """# Economy

Players earn currency for the time they play, and spend it in the shop. An admin may grant or take currency.
""",
    "guide/shop.md": """# Shop

A listing has a price and the items that a player receives. Orders are claimed with a command in the chat.
""",
    "guide/roles.md": """# Roles and permissions

A role holds permissions. A permission may be granted for all servers or for one of them.
""",
    "guide/variables.md": """# Variables

A module stores values under a key. A variable may belong to a player, to a server or to the module itself.
""",
    "install.md": """# Install

The platform runs in containers. Set the address of the database and start the services.
""",
    "release-notes.md": """# Release notes

The new version loads the dashboard in half the time and fixes the sorting of players.
""",
}


@pytest.fixture(scope="module")
def manual(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ragstone]:
    """The manual, found as the takaro profile finds it, in embedded stores and by the default model."""
    stores = {"store.ledger": "sqlite", "store.vectors": "sqlite", "store.lexical": "sqlite"}
    model = {"embedding.model": load_settings(environment={}).embedding.model, "embedding.dimensions": 384}
    place = {"profile": "takaro", "data_dir": tmp_path_factory.mktemp("manual"), "llm.base_url": None}
    settings = load_settings(overrides={**place, **stores, **model, "reranking.kind": "none"}, environment={})
    with Ragstone(settings) as stone:
        report = stone.ingest_items(
            [Item("manual", path, path, text.encode(), media_type="text/markdown") for path, text in PAGES.items()]
        )
        assert (report.added, report.failed) == (len(PAGES), ())
        yield stone


@pytest.mark.parametrize(
    ("query", "page"),
    [
        pytest.param("moduleControllerCreate", "api/modules.md", marks=pytest.mark.req("R-TST-01")),
        pytest.param("hook.player.connected", "guide/hooks.md", marks=pytest.mark.req("R-TST-02")),
        pytest.param("how do cronjobs work", "guide/cronjobs.md", marks=pytest.mark.req("R-TST-03")),
        pytest.param("ban player with reason", "guide/moderation.md", marks=pytest.mark.req("R-TST-04")),
    ],
)
def test_a_baseline_query_finds_its_page_first(manual: Ragstone, query: str, page: str) -> None:
    found = manual.search(query)
    assert (found.hits[0].uri, found.degraded) == (page, ())


@pytest.mark.req("R-TST-05")
def test_a_query_about_two_things_finds_both(manual: Ragstone) -> None:
    hits = manual.search("how do hooks work with commands").hits
    assert len(hits) == 5
    assert {"guide/hooks.md", "guide/commands.md"} == {hit.uri for hit in hits[:3]}
    assert any("A hook may run a command" in hit.text for hit in hits[:3])


@pytest.mark.req("R-TST-11")
async def test_research_finds_more_than_one_search_of_the_same_words(manual: Ragstone) -> None:
    topic = "How do hooks work with commands? How are cronjobs scheduled? How is a player banned?"
    box = Toolbox(manual, ["researchTopic"])
    said: dict[str, Any] = json.loads(await box.call("researchTopic", {"topic": topic}))
    needed = {"guide/hooks.md", "guide/commands.md", "guide/cronjobs.md", "guide/moderation.md"}
    assert said["searchesPerformed"] > 1
    assert needed <= {finding["source"] for finding in said["findings"]}
    assert not needed <= {hit.uri for hit in manual.search(topic).hits}
