"""Sources over HTTP: who sets them up has no access to the machine of the service."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
from tests.serve.http.conftest import Caller, Service

from ragstone.ingest.sources import KINDS, REMOTE_KINDS

WEB = {"urls": ["https://example.org/"]}
LOCAL = sorted(KINDS.keys() - REMOTE_KINDS)


def add(caller: Caller, kind: str, config: dict[str, Any]) -> Any:
    return caller("POST", "/v1/sources", json={"kind": kind, "name": "secrets", "config": config})


def names(caller: Caller) -> list[str]:
    return [source["name"] for source in caller("GET", "/v1/sources").json()["sources"]]


@pytest.mark.parametrize("kind", LOCAL)
def test_a_source_that_reads_the_machine_is_refused(acme: Caller, kind: str) -> None:
    refused = add(acme, kind, {"path": "/etc"})
    assert (refused.status_code, refused.json()["code"]) == (403, "access_denied")
    assert names(acme) == []


@pytest.mark.parametrize("value", ["https://example.org/${HOME}", "https://example.org/${NOT_SET:-x}"])
def test_a_source_that_reads_a_variable_is_refused(acme: Caller, value: str) -> None:
    assert add(acme, "web", {"urls": [value]}).status_code == 403
    assert names(acme) == []
    assert add(acme, "web", WEB).status_code == 201


def test_a_wrong_configuration_is_the_mistake_of_the_caller(acme: Caller) -> None:
    for kind, config in (("web", {"adresses": []}), ("no such kind", {}), ("web", {})):
        assert add(acme, kind, config).status_code == 422


def test_an_import_brings_no_source_that_reads_the_machine(service: Service, acme: Caller, tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("The gate is red.", encoding="utf-8")
    workspace = service.engine.workspace("acme")
    for name, kind, config in (("folder", "files", {"path": str(tmp_path)}), ("pages", "web", WEB)):
        service.run(lambda name=name, kind=kind, config=config: workspace.sources.add(kind, name, config))
    acme.upload("The gate is green.")
    place = tmp_path / "archive.zip"
    service.run(lambda: workspace.archive.export(place))
    globex = service.caller("globex")
    queued = globex("POST", "/v1/imports", files={"file": ("archive.zip", io.BytesIO(place.read_bytes()))})
    assert queued.status_code == 202, queued.text
    service.run(lambda: service.engine.worker().run(until_idle=True))
    result = globex("GET", f"/v1/jobs/{queued.json()['id']}/result")
    assert "reads from the machine of the service" in json.dumps(result.json()["remarks"])
    assert names(globex) == ["pages"]
