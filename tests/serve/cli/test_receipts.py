"""Deletions come with a receipt, and one that is not complete says so in words and in its exit code."""

from __future__ import annotations

import pytest
from tests.serve.cli.conftest import Cli

from ragstone.core.errors import StoreBusy
from ragstone.stores.ledger.sqlite.ledger import SqliteLedger


def document_ids(cli: Cli) -> list[str]:
    return [one["id"] for one in cli("documents", "--json").json["documents"]]


@pytest.mark.req("R-SEC-11")
def test_a_receipt_says_what_went_where(filled: Cli) -> None:
    first, second, third = document_ids(filled)
    ran = filled("documents", "delete", first, second, "nope", first, "--receipt", "--json")
    assert (ran.code, ran.json["deleted"], ran.json["not_found"]) == (3, [first, second], ["nope"])
    for receipt, document_id in zip(ran.json["receipts"], (first, second), strict=True):
        assert receipt["target"] == {"kind": "document", "name": document_id}
        assert (receipt["complete"], receipt["requery"], receipt["scrubbed"]) == (True, 0, True)
        assert receipt["removed"]["ledger"]["documents"] == 1
        assert {number for counts in receipt["remaining"].values() for number in counts.values()} == {0}
    assert document_ids(filled) == [third]


def test_it_is_told_in_a_line(filled: Cli) -> None:
    first, *_ = document_ids(filled)
    ran = filled("documents", "delete", first, "--receipt")
    message, line = ran.out.splitlines()
    assert (ran.code, message) == (0, "Deleted 1 document.")
    assert line.startswith(f"{first}: removed ledger: 1 documents, ")
    assert line.endswith("; nothing is left")


def test_what_is_left_is_told_and_is_exit_code_3(filled: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    async def busy(*_: object) -> bool:
        raise StoreBusy("the log cannot be emptied", hint="try again")

    first, second, _ = document_ids(filled)
    monkeypatch.setattr(SqliteLedger, "scrub", busy)
    ran = filled("documents", "delete", first, "--receipt")
    assert ran.code == 3
    assert ran.out.startswith("It cannot be found any more, but not all of it is gone yet.")
    assert "warning: ledger: the log cannot be emptied; try again" in ran.err
    told = filled("documents", "delete", second, "--receipt", "--json")
    assert (told.code, told.json["receipts"][0]["complete"]) == (3, False)


def test_a_tenant_s_receipt(filled: Cli) -> None:
    ran = filled("tenants", "delete", "default", "--yes", "--json")
    (receipt,) = ran.json["receipts"]
    assert (ran.code, receipt["complete"], receipt["removed"]["ledger"]["documents"]) == (0, True, 3)
    assert receipt["target"] == {"kind": "tenant", "name": "default"}
