"""`ragstone tenants`."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.serve.cli.conftest import watched

from ragstone import Settings, open_engine
from ragstone.core.model_types import add_cost, collect_costs

if TYPE_CHECKING:
    from tests.serve.cli.conftest import Cli

UNLIMITED = dict.fromkeys(("documents", "chunks", "bytes", "queries_per_minute", "cost_per_month"))


def test_a_rate_limit_says_when_to_come_back(filled: Cli) -> None:
    assert filled("tenants", "set", "default", "quotas.queries_per_minute=0").code == 0
    told = filled("search", "dogs", "--json")
    assert (told.code, told.json["error"]["code"]) == (1, "quota_exceeded")
    assert 1 <= told.json["error"]["retry_after"] <= 60


def test_a_tenant_from_its_making_to_its_end(cli: Cli, pages: Path) -> None:
    made = cli("tenants", "create", "acme", "--json")
    assert made.code == 0
    assert {**made.json, "id": "", "created_at": ""} == {
        "id": "",
        "name": "acme",
        "state": "active",
        "created_at": "",
        "quotas": UNLIMITED,
        "retention_days": None,
        "settings": {},
    }
    assert cli("ingest", pages, "--tenant", "acme", "-q").code == 0
    listed = cli("tenants", "--json")
    assert listed.json == {"tenants": [made.json]}
    assert cli("tenants", "list", "--json").json == listed.json
    shown = cli("tenants", "show", "acme", "--json").json
    usage = shown.pop("usage")
    assert shown == made.json
    assert (usage["documents"], usage["chunks"], usage["queued"]) == (3, 4, {"documents": 0, "bytes": 0})
    renamed = cli("tenants", "rename", "acme", "apex", "--json").json
    assert renamed == {**made.json, "name": "apex"}
    assert cli("search", "dogs", "--tenant", "apex", "--json").json["hits"] != []
    gone = cli("tenants", "delete", "apex", "--yes", "--json")
    told = gone.json
    (receipt,) = told.pop("receipts")
    assert told == {"deleted": "apex", "documents": 3, "tenant": renamed}
    assert receipt["complete"]
    assert cli("tenants", "list").code == 4
    assert cli("search", "dogs", "--tenant", "apex").code == 4
    refused = cli("tenants", "create", "apex")
    assert refused.code == 2
    assert "is given to nobody else until 20" in " ".join(refused.err.split())
    assert cli("ingest", pages, "--tenant", "apex", "-q").code == 4
    assert cli("tenants", "list").code == 4


def test_people_see_tables(filled: Cli) -> None:
    filled("tenants", "set", "default", "quotas.documents=5000", "retention_days=30", "flags.new=25%")
    listed = filled("tenants").out
    assert "default" in listed
    assert "active" in listed
    assert "30 days" in listed
    shown = filled("tenants", "show", "default").out
    assert "documents are kept for 30 days" in shown
    assert "5,000" in shown
    assert "flags.new = 25.0" in shown


def test_large_limits_are_shown_in_full(filled: Cli) -> None:
    limits = ("quotas.documents=1234567", "quotas.bytes=10737418240", "quotas.cost_per_month=2.5")
    filled("tenants", "set", "default", *limits)
    rows = [line.split() for line in filled("tenants", "show", "default").out.splitlines()]
    assert ["documents", "3", "1,234,567"] in rows
    assert [row[2] for row in rows if row[0] == "bytes"] == ["10,737,418,240"]
    assert ["cost_per_month", "0.00", "2.50"] in rows


@pytest.mark.req("R-SEC-12")
def test_what_is_set_is_kept_and_taken_back(filled: Cli) -> None:
    ran = filled(
        *("tenants", "set", "default", "quotas.documents=7", "quotas.cost_per_month=2.5", "retention_days=30"),
        *("retrieval.k=3", "embedding.model=potion-base-8M", "flags.a=true", "flags.b=12.5%", "--json"),
    )
    assert ran.code == 0
    assert ran.json["quotas"] == {**UNLIMITED, "documents": 7, "cost_per_month": 2.5}
    assert ran.json["retention_days"] == 30
    settings = {"embedding.model": "potion-base-8M", "flags.a": True, "flags.b": 12.5, "retrieval.k": 3}
    assert ran.json["settings"] == settings
    again = filled(
        *("tenants", "set", "default", "quotas.documents=none", "retention_days=none", "flags.a=none"),
        *("retrieval.k=none", "embedding.model=none", "--json"),
    )
    assert again.json["quotas"] == {**UNLIMITED, "cost_per_month": 2.5}
    assert (again.json["retention_days"], again.json["settings"]) == (None, {"flags.b": 12.5})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("quotas.documents", "'quotas.documents' is not KEY=VALUE"),
        ("quotas.documents=many", "quotas.documents cannot be 'many'"),
        ("quotas.documents=-1", "quotas.documents cannot be -1"),
        ("quotas.cost_per_month=nan", "quotas.cost_per_month cannot be nan"),
        ("quotas.pages=1", "there is no quota 'pages'"),
        ("retention_days=0", "retention_days cannot be 0"),
        ("retrieval.k=0", "setting 'retrieval.k'"),
        ("retrieval.fusion=best", "setting 'retrieval.fusion'"),
        ("profile=nobody", "there is no profile 'nobody'"),
        ("store.ledger=postgres", "'store.ledger' cannot be set for one tenant"),
        ("llm.api_key=sk", "'llm.api_key' cannot be set for one tenant"),
        ("flags.x=101%", "flags.x cannot be '101%'"),
    ],
)
def test_nothing_is_set_when_one_value_is_wrong(filled: Cli, change: str, message: str) -> None:
    ran = filled("tenants", "set", "default", "quotas.chunks=9", "flags.y=true", change, "--json")
    assert ran.code == 2
    assert message in ran.json["error"]["message"]
    shown = filled("tenants", "show", "default", "--json").json
    assert (shown["quotas"], shown["settings"]) == (UNLIMITED, {})


@pytest.mark.parametrize(
    "arguments",
    [
        ("show", "nobody"),
        ("suspend", "nobody"),
        ("resume", "nobody"),
        ("rename", "nobody", "new"),
        ("delete", "nobody", "--yes"),
        ("set", "nobody", "quotas.documents=1"),
    ],
)
def test_a_tenant_that_is_not_there(filled: Cli, arguments: tuple[str, ...]) -> None:
    ran = filled("tenants", *arguments)
    assert ran.code == 4
    assert "there is no tenant 'nobody'" in ran.err
    assert "hint: list them with: ragstone tenants" in ran.err


def test_looking_makes_no_folder(cli: Cli, tmp_path: Path) -> None:
    assert cli("tenants").code == 4
    assert not (tmp_path / "ragstone-data").exists()


def test_a_name_is_checked(filled: Cli) -> None:
    for arguments in (("create", "../x"), ("rename", "default", "A")):
        ran = filled("tenants", *arguments)
        assert ran.code == 2
        assert "is not a valid name" in ran.err
    assert filled("tenants", "create", "default").code == 2


def test_a_suspended_tenant_is_refused_with_the_way_back(filled: Cli) -> None:
    assert "Tenant 'default' is suspended." in filled("tenants", "suspend", "default").out
    ran = filled("search", "dogs", "--json")
    assert ran.code == 1
    assert ran.json["error"] == {
        "code": "tenant_suspended",
        "message": "tenant 'default' is suspended",
        "hint": "ragstone tenants resume default ends that",
    }
    assert filled("tenants", "show", "default", "--json").json["state"] == "suspended"
    assert filled("tenants", "resume", "default").code == 0
    assert filled("search", "dogs").code == 0


@pytest.mark.parametrize(("answer", "code", "left"), [(True, 0, []), (False, 1, ["default"])])
def test_it_asks_before_it_deletes(
    filled: Cli, monkeypatch: pytest.MonkeyPatch, answer: bool, code: int, left: list[str]
) -> None:
    asked: list[str] = []

    def confirm(question: str, *, err: bool) -> bool:
        asked.append(question)
        return answer

    with monkeypatch.context() as patch:
        watched(patch)
        patch.setattr("typer.confirm", confirm)
        assert filled("tenants", "delete", "default").code == code
    assert asked == ["Delete tenant 'default' with 3 documents?"]
    assert [one["name"] for one in filled("tenants", "--json").json["tenants"]] == left


def test_a_tenant_whose_documents_are_lost_is_deleted_as_its_error_advises(filled: Cli, data_dir: Path) -> None:
    (ledger,) = (data_dir / "tenants").glob("*/ledger.db")
    ledger.unlink()
    advised = filled("search", "dogs")
    assert (advised.code, "delete the tenant" in " ".join(advised.err.split())) == (1, True)
    gone = filled("tenants", "delete", "default", "--yes")
    assert gone.code == 3
    assert "ledger.db is missing: what goes with it was not counted" in " ".join(gone.err.split())
    assert filled("tenants", "--json").json == {"tenants": []}
    assert not ledger.parent.exists()


@pytest.mark.req("R-OBS-10", "R-OBS-24")
def test_usage_shows_costs_by_kind_and_month(filled: Cli, data_dir: Path) -> None:
    assert "Nothing has cost anything." in filled("usage").out

    async def charge() -> None:
        with collect_costs() as bill:
            add_cost("llm", 1.5, 900)
            add_cost("web", 0.25, 50)
        async with open_engine(Settings(data_dir=data_dir)) as engine:
            await engine.tenants.charge_bill("default", bill)

    asyncio.run(charge())
    told = filled("usage", "--json").json
    assert told["cost_by_kind"] == {"llm": 1.5, "web": 0.25}
    assert list(told["cost_by_month"].values()) == [{"llm": 1.5, "web": 0.25}]
    assert list(told["web_queries"].values()) == [50]
    shown = filled("usage").out
    for words in ("1.5000", "1.7500", "web searches: 50 on ", "expected"):
        assert words in shown
    assert filled("usage", "--tenant", "nobody").code == 4
