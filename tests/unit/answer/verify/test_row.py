"""Claims about facts that stand in a table."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from ragstone.answer.quotes import rows
from ragstone.answer.verify import ClaimVerifier
from ragstone.answer.verify.row import render_with_units
from ragstone.answer.verify.statements import find_evidence
from ragstone.core.answers import Verdict
from ragstone.core.model_types import Entailment
from ragstone.core.protocols import Embedder, Entailer
from ragstone.core.search import SearchResult
from ragstone.core.types import Hit, TableHead

MakeHit = Callable[..., Hit]

HEAD = "| Region | Revenue Q2 | Revenue Q3 | Employees |\n|---|---|---|---|"
ROWS = "| North | 3.9 million | 4.2 million | 120 |\n| West | 5.5 million | 5.8 million | 210 |"
STOCK = (
    "| SKU | Name | Price EUR | Warehouse |\n|---|---|---|---|\n"
    "| BX-300 | Submersible pump | 399.50 | Hamburg |\n| CX-400 | Garden hose | 1,039.90 | Berlin |"
)


async def verified(embedder: Embedder, claim: str, *hits: Hit, entailer: Entailer | None = None) -> Verdict:
    async def search(query: str) -> SearchResult:
        return SearchResult(query, query, "balanced", hits, (), (), 0.0)

    return await ClaimVerifier(embedder, lambda: entailer).verify(claim, search)


@pytest.mark.parametrize(
    "claim",
    [
        "The revenue of North in Q3 was 4.2 million.",
        "The revenue of North in Q3 was 4,200,000.",
        "North had revenue of 3.9 million in Q2.",
        "West has 210 employees.",
        "The price of the submersible pump is 399.50 EUR.",
        "The price of the garden hose is 1039.90 EUR.",
        "The warehouse of the garden hose is Berlin.",
    ],
)
async def test_what_a_row_says_is_verified(embedder: Embedder, make_hit: MakeHit, claim: str) -> None:
    verdict = await verified(embedder, claim, make_hit(f"{HEAD}\n{ROWS}"), make_hit(STOCK, "stock"))
    assert (verdict.status, verdict.stance) == ("VERIFIED", "supported")
    first = verdict.evidence[0]
    text = STOCK if first.document_id == "stock" else f"{HEAD}\n{ROWS}"
    assert text[first.start : first.end] == first.text
    assert first.text.startswith("|")


@pytest.mark.parametrize(
    "claim",
    [
        "The revenue of North in Q3 was 5.2 million.",
        "The revenue of North in Q3 was 3.9 million.",
        "The revenue of North in Q3 was not 4.2 million.",
        "West has 120 employees.",
        "The price of the submersible pump is 249 EUR.",
    ],
)
async def test_another_figure_is_refuted(embedder: Embedder, make_hit: MakeHit, claim: str) -> None:
    verdict = await verified(embedder, claim, make_hit(f"{HEAD}\n{ROWS}"), make_hit(STOCK, "stock"))
    assert (verdict.status, verdict.stance) == ("UNVERIFIED", "refuted")


@pytest.mark.parametrize(
    "claim",
    [
        "The revenue of Atlantis in Q3 was 4.2 million.",
        "The revenue of North in Q4 was 4.2 million.",
        "The revenue of North in Q3 fell to 4.2 million.",
        "The revenue in Q3 was 4.2 million.",
        "The company has 120 employees.",
        "North has more employees than West.",
        "The warehouse of the garden hose is Hamburg.",
        "The price of the BX-900 is 399.50 EUR.",
        "The revenue of North in Q3 is 8 percent.",
    ],
)
async def test_what_no_row_says_is_not_supported(embedder: Embedder, make_hit: MakeHit, claim: str) -> None:
    verdict = await verified(embedder, claim, make_hit(f"{HEAD}\n{ROWS}"), make_hit(STOCK, "stock"))
    assert (verdict.status, verdict.stance) == ("UNVERIFIED", "unknown")


ROOMS = "| Room | Seats | Rent |\n|---|---|---|\n| Room 5 | 12 | 40 |\n| Room 12 | 80 | 5 |"
PRICES = "| Product | Price Retail | Price Export |\n|---|---|---|\n| Butter 250 g | 2.90 | 2.60 |"
DEPOTS = (
    "| Depot | Trucks | Manager | Town | Parking |\n|---|---|---|---|---|\n"
    "| Marsden | 22 | Omar Reyes | York | yes |\n| Selby | 9 | Nora Quist | Selby | no |"
)


@pytest.mark.parametrize(
    ("claim", "stance"),
    [
        ("Room 5 has 12 seats.", "supported"),
        ("Room 12 has 80 seats.", "supported"),
        ("Room 12 has 12 seats.", "refuted"),
        ("Room 5 has 40 seats.", "refuted"),
        ("Room 7 has 12 seats.", "unknown"),
        ("The export price of Butter 250 g is 2.60.", "supported"),
        ("The export price of Butter 250 g is 2.90.", "refuted"),
        ("The export price of Butter 500 g is 2.60.", "unknown"),
    ],
)
async def test_the_number_in_the_name_of_a_row_counts_nothing(
    embedder: Embedder, make_hit: MakeHit, claim: str, stance: str
) -> None:
    verdict = await verified(embedder, claim, make_hit(ROOMS), make_hit(PRICES, "prices"))
    assert verdict.stance == stance
    assert (verdict.status == "VERIFIED") == (stance == "supported")


@pytest.mark.parametrize(
    ("claim", "stance"),
    [
        ("The manager of the Marsden depot is Omar Reyes.", "supported"),
        ("Omar Reyes is the manager of the Marsden depot.", "supported"),
        ("The Marsden depot has parking.", "supported"),
        ("The manager of the Marsden depot is York.", "unknown"),
        ("The town of the Marsden depot is Omar Reyes.", "unknown"),
        ("The town of the Selby depot is Nora Quist.", "unknown"),
    ],
)
async def test_a_name_is_read_in_its_column_wherever_it_stands(
    embedder: Embedder, make_hit: MakeHit, claim: str, stance: str
) -> None:
    assert (await verified(embedder, claim, make_hit(DEPOTS))).stance == stance


PUMPS = (
    "| Code | Product | Unit price (GBP) | Minimum order | Lead time (weeks) | Warranty (months) | Tank in l | Note |\n"
    "|---|---|---|---|---|---|---|---|\n"
    "| P-1 | Bilge Pump 4 | 690.00 | 1 | 3 | 36 | 20 | Four valves |\n"
    "| P-2 | Bilge Pump 8 | 1140.00 | 1 | 5 | 36 | 48 | Eight valves |\n"
    "| P-3 | Hand Pump | 329.00 | 2 | 2 | 24 | 12 | Its seal lasts five years |"
)


@pytest.mark.parametrize(
    ("claim", "stance"),
    [
        ("The Bilge Pump 8 has a warranty of 36 months.", "supported"),
        ("The Bilge Pump 4 has a warranty of three years.", "supported"),
        ("The Bilge Pump 4 costs £690.", "supported"),
        ("The unit price of the Bilge Pump 4 is 690 GBP.", "supported"),
        ("The Bilge Pump 8 has a lead time of five weeks.", "supported"),
        ("The tank of the Bilge Pump 8 holds 48 litres.", "supported"),
        ("The Bilge Pump 8 has a warranty of 24 months.", "refuted"),
        ("The Bilge Pump 8 has a lead time of three weeks.", "refuted"),
        ("The tank of the Bilge Pump 8 holds 20 litres.", "refuted"),
        ("The Bilge Pump 8 has a warranty of 36 days.", "refuted"),
        ("The Bilge Pump 8 has a lead time of 36 months.", "refuted"),
        ("The Bilge Pump 4 costs £36.", "refuted"),
        ("The Bilge Pump 4 costs £1.", "refuted"),
        ("The Bilge Pump 4 costs £1140.", "refuted"),
        ("The unit price of the Bilge Pump 4 is €690.", "unknown"),
        ("The tank of the Bilge Pump 8 holds 48 kg.", "unknown"),
    ],
)
async def test_a_figure_has_the_unit_in_the_name_of_its_column(
    embedder: Embedder, make_hit: MakeHit, claim: str, stance: str
) -> None:
    assert (await verified(embedder, claim, make_hit(PUMPS))).stance == stance


@pytest.mark.parametrize(
    ("columns", "cells", "said"),
    [
        ("Oven | Pause (min) | Heat (°C)", "Ember | 40 | 5–7", "Oven: Ember; Pause: 40 min; Heat: 5–7 °C"),
        ("Oven | Heat (min) | Heat (max)", "Ember | 40 | 90", "Oven: Ember; Heat (min): 40; Heat (max): 90"),
        ("Oven | Price (£) | Size in mm", "Ember | 1,140 | 30 cm", "Oven: Ember; Price: £1,140; Size in mm: 30 cm"),
        ("Oven | Load, kg | Rent (EUR per month)", "Ember | 5 | 9", "Oven: Ember; Load: 5 kg; Rent: 9 EUR per month"),
        ("Oven | Name(s) | Made (year)", "Ember | Coal 2 | 1990", "Oven: Ember; Name(s): Coal 2; Made (year): 1990"),
    ],
)
def test_the_unit_of_a_column_is_put_behind_its_figures(make_hit: MakeHit, columns: str, cells: str, said: str) -> None:
    (row,) = [row for row in rows(make_hit(f"| {columns} |\n|---|---|---|\n| {cells} |")).values() if row]
    assert render_with_units(row) == said


async def test_a_later_part_of_a_table_is_read_with_its_columns(embedder: Embedder, make_hit: MakeHit) -> None:
    hit = make_hit(ROWS, start=900, table_head=TableHead(10, None, HEAD))
    verdict = await verified(embedder, "The revenue of West in Q3 was 5.8 million.", hit)
    assert (verdict.status, verdict.evidence[0].text) == ("VERIFIED", ROWS.split("\n")[1])


def test_neither_what_names_the_columns_nor_the_rule_is_evidence(make_hit: MakeHit) -> None:
    assert [unit.text for unit in find_evidence([make_hit(f"{HEAD}\n{ROWS}")])] == ROWS.split("\n")


class Listening:
    """An entailer that keeps what it is shown."""

    name = "listening"

    def __init__(self) -> None:
        self.premises: list[str] = []

    async def label(self, premises: Sequence[str], hypothesis: str) -> Sequence[Entailment]:
        self.premises += premises
        return [Entailment("entails", 0.95)] * len(premises)

    async def close(self) -> None: ...


async def test_a_model_is_shown_a_row_with_its_columns(embedder: Embedder, make_hit: MakeHit) -> None:
    entailer = Listening()
    hit = make_hit(f"{HEAD}\n{ROWS}", section="Results")
    await verified(embedder, "North has 120 employees.", hit, entailer=entailer)
    row = "Region: North; Revenue Q2: 3.9 million; Revenue Q3: 4.2 million; Employees: 120"
    assert entailer.premises == [f"Doc\nResults\n{row}"]


async def test_a_column_that_says_no_supports_nothing(embedder: Embedder, make_hit: MakeHit) -> None:
    table = "| Quality | Fail | Meaning |\n|---|---|---|\n| 2 | Yes | Almost right |\n| 3 | No | Right with effort |"
    verdict = await verified(embedder, "The quality 3 counts as a fail.", make_hit(table))
    assert (verdict.status, verdict.stance == "supported") == ("UNVERIFIED", False)
    assert (await verified(embedder, "The quality 2 counts as a fail.", make_hit(table))).stance == "supported"
