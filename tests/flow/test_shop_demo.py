"""The demo shop: its five conversations under each of the four configurations, played by the program itself."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ragstone.samples import shop
from ragstone.serve.cli.main import main

RETURNS, SPICE, SERVICES, MASSAGE, ROMANTIC = shop.CONVERSATIONS
WITH_WEB = ("full attribution", "no attribution", "internet enrichment")
OWN = "own data only"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("demo")


@pytest.fixture(scope="module")
def played(folder: Path) -> dict[str, dict[str, Any]]:
    """The replies by configuration and message."""
    with pytest.MonkeyPatch.context() as patch:
        # No busy machine cuts off a source.
        patch.setattr(
            "ragstone.agents.service.agent.SECONDS", dict.fromkeys(("documents", "database", "internet"), 60.0)
        )
        written: list[str] = []
        patch.chdir(folder)
        own = ["shop", "put-product", "Our gift box", "--id", "gift-box", "--price", "7"]
        assert main([*own, "--data-dir", str(folder / "data")]) == 0
        patch.setattr("builtins.print", lambda *words, **_: written.extend(map(str, words)))
        assert main(["demo", "--shop", "--json", "--data-dir", str(folder / "data")]) == 0
    told = json.loads("".join(written))
    assert (told["ingest"]["documents"], told["ingest"]["failed"]) == (4, [])
    return {name: {reply["message"]: reply for reply in replies} for name, replies in told["conversations"].items()}


@pytest.mark.req("R-TST-41", "R-TST-42", "R-TST-43", "R-TST-44", "R-TST-45")
@pytest.mark.parametrize("name", WITH_WEB)
def test_each_conversation_has_the_sources_of_the_design(played: dict[str, dict[str, Any]], name: str) -> None:
    assert {message: reply["sources"] for message, reply in played[name].items()} == {
        RETURNS: ["documents"],
        SPICE: ["database", "internet"],
        SERVICES: ["database"],
        MASSAGE: ["database"],
        ROMANTIC: ["documents", "database", "internet"],
    }
    assert {reply["status"] for reply in played[name].values()} == {"answered"}
    said = {message: reply["reply"] for message, reply in played[name].items()}
    assert "within 30 days" in said[RETURNS]
    assert "$42" in said[SPICE]
    assert "oud and amber base notes" in said[SPICE]
    assert all(service.name in said[SERVICES] for service in shop.services())
    assert "Relaxing massage is free on " in said[MASSAGE]
    assert "Rose Velvet by Juniper Lane costs $38" in said[ROMANTIC]
    assert {citation["uri"].rpartition("/")[2] for citation in played[name][RETURNS]["citations"]} == {
        "business-policies.txt"
    }


def test_the_shop_of_the_user_stays_as_it_was(
    played: dict[str, dict[str, Any]], folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["shop", "products", "--json", "--data-dir", str(folder / "data")]) == 0
    (product,) = json.loads(capsys.readouterr().out)["products"]
    assert (product["id"], product["name"], product["price"]) == ("gift-box", "Our gift box", "7.00")


@pytest.mark.req("R-TST-46", "R-TST-47", "R-TST-48", "R-TST-49")
def test_each_configuration_names_its_sources_in_its_way(played: dict[str, dict[str, Any]]) -> None:
    said = {name: replies[SPICE]["reply"] for name, replies in played.items()}
    assert "[Source: Product Catalog]" in said["full attribution"]
    assert "[Source: Internet - FragranceNet]" in said["full attribution"]
    assert "Source" not in said["no attribution"]
    assert "[" not in said["no attribution"]
    assert said["internet enrichment"].endswith(
        "\n\nSources:\n1. Product Catalog - Oriental Spice product details\n"
        "2. Internet (FragranceNet) - Fragrance composition details"
    )
    assert "Internet" not in said[OWN]
    assert said[OWN].endswith("\n\n[1] Product Catalog - Oriental Spice product details") or "\n[2] " in said[OWN]
    assert {source for reply in played[OWN].values() for source in reply["sources"]} == {"documents", "database"}


def test_nothing_disagrees_with_the_shop(played: dict[str, dict[str, Any]]) -> None:
    assert [reply["conflicts"] for replies in played.values() for reply in replies.values() if reply["conflicts"]] == []


def test_the_demo_can_be_played_again_and_drawn(
    played: dict[str, dict[str, Any]], folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = ["--data-dir", str(folder / "data")]
    assert main(["demo", "--shop", "--quiet", *data]) == 0
    drawn = capsys.readouterr().out
    assert drawn.startswith("The shop Juniper Lane: 4 documents, 17 products and 6 services.\n")
    assert drawn.count("? What is your return policy?") == 4
    assert "── own data only ──" in drawn
    assert main(["chat", "How much is Rose Velvet?", "--tenant", "demo-shop", *data]) == 0
    assert "Rose Velvet by Juniper Lane costs $38" in capsys.readouterr().out
