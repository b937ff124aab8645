"""Requests made from the OpenAPI document, right and wrong: no route fails, and each answers as it is described."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from hypothesis.errors import Unsatisfiable
from schemathesis import Case, GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.core.failures import FailureGroup
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)
from tests.long_runs import take_rounds
from tests.serve.http.conftest import Caller, Service, articles_without_a_model

EXAMPLES = take_rounds("RAGSTONE_API_EXAMPLES", 2)
"""Requests of each operation, right ones and as many wrong ones."""
BASE = "http://testserver"
REQUEST = ("method", "url", "headers", "params", "data", "json", "files", "cookies")
CHECKS: list[Any] = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]
MODES = (GenerationMode.POSITIVE, GenerationMode.NEGATIVE)
GATE = "# Gate\n\nThe tide gate opens at nine. The keeper has two keys.\n"
KEEPING = ("DELETE /v1/documents/{document_id}", "DELETE /v1/kbs/{kb}", "PATCH /v1/kbs/{kb}")
"""Operations that are not given what the others need."""


@pytest.fixture(scope="module")
def callers(shared: Service) -> Iterator[tuple[Caller, Caller]]:
    """An administrator of a tenant that has something of everything, and the operator."""
    caller = shared.caller("acme")
    document_id = caller.upload(GATE)
    caller("POST", "/v1/golden", json={"query": "When does the gate open?", "document_ids": [document_id]})
    caller("POST", "/v1/ask", json={"question": "When does the gate open?", "conversation": "talk"})
    caller("POST", "/v1/sources", json={"kind": "web", "name": "pages", "config": {"urls": ["https://example.org/"]}})
    with articles_without_a_model():
        yield caller, shared.caller("", "admin")


def known_ids(caller: Caller) -> dict[str, str]:
    """Return ids that exist, by the names of the parameters that take them."""
    document = caller("GET", "/v1/documents").json()["documents"][0]
    job_id = caller("GET", "/v1/jobs").json()["jobs"][0]["id"]
    return {"document_id": document["id"], "job_id": job_id, "kb": "default", "kbId": "default"}


def send(case: Case, caller: Caller) -> Any:
    """Send a request as it was made, and return the answer."""
    made = case.as_transport_kwargs(base_url=BASE)
    prepared = requests.Request(**{name: value for name, value in made.items() if name in REQUEST}).prepare()
    assert prepared.url is not None
    named = {"Authorization": f"Bearer {caller.token}"} | dict(prepared.headers)
    headers = [(name.encode(), _as_bytes(value)) for name, value in named.items()]
    return caller.service.client.request(prepared.method, prepared.url, headers=headers, content=prepared.body)


def _as_bytes(value: str | bytes) -> bytes:
    return value if isinstance(value, bytes) else value.encode("latin-1", "replace")


def operations(service: Service) -> Iterator[Any]:
    document = service.client.get("/openapi.json").json()
    for result in schemathesis.openapi.from_dict(document).get_all_operations():
        yield result.ok()


def requests_of(operation: Any, mode: GenerationMode, ids: dict[str, str]) -> st.SearchStrategy[Case]:
    """Return requests of an operation, some of them with ids that exist."""
    made = operation.as_strategy(generation_mode=mode)
    named = re.findall(r"\{(\w+)\}", operation.path)
    if not named or operation.label in KEEPING or not ids.keys() >= set(named):
        return made
    return made | operation.as_strategy(generation_mode=mode, path_parameters={name: ids[name] for name in named})


def check(operation: Any, cases: st.SearchStrategy[Case], caller: Caller) -> None:
    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        database=None,
        derandomize=True,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=cases)
    def run(case: Case) -> None:
        case.validate_response(send(case, caller), checks=CHECKS)

    run()


@pytest.mark.parametrize("mode", MODES, ids=str)
def test_every_operation_answers_as_it_is_described(
    callers: tuple[Caller, Caller], mode: GenerationMode, record_property: Callable[[str, object], None]
) -> None:
    caller, operator = callers
    ids = known_ids(caller)
    failed: dict[str, FailureGroup] = {}
    count = 0
    for operation in operations(caller.service):
        used = operator if "/tenants" in operation.path else caller
        count += EXAMPLES
        try:
            check(operation, requests_of(operation, mode, ids), used)
        except Unsatisfiable:
            count -= EXAMPLES  # nothing can be wrong about an operation without parameters
        except FailureGroup as error:
            failed[operation.label] = error  # the others are tried as well
    record_property("injected", count)
    assert not failed, "\n\n".join(f"{label}: {error!s:.1500}" for label, error in failed.items())
