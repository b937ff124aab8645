"""Documents over HTTP: taken in, listed, read, deleted."""

from __future__ import annotations

import json

import pytest
from tests.serve.http.conftest import Caller

GATE = "# Gate\n\nThe tide gate opens at nine.\n"


@pytest.mark.req("R-API-09", "R-API-10", "R-API-11")
def test_a_file_is_taken_in_found_and_deleted(acme: Caller) -> None:
    taken = acme("POST", "/v1/documents", files={"file": ("gate.md", GATE.encode())}, data={"title": "The gate"})
    assert taken.status_code == 202
    waiting = taken.json()
    assert (waiting["status"], waiting["filename"], waiting["job"]["state"]) == ("pending", "gate.md", "pending")
    assert taken.headers["location"] == f"/v1/documents/{waiting['document_id']}"
    assert acme("GET", taken.headers["location"]).json()["status"] == "pending"
    document_id = acme.upload(GATE, title="The gate")
    assert document_id == waiting["document_id"]
    done = acme("GET", taken.headers["location"]).json()
    assert (done["status"], done["title"], done["chunk_count"]) == ("completed", "The gate", 1)
    assert acme("GET", f"/v1/documents/{document_id}/text").text == GATE.strip()
    (chunk,) = acme("GET", f"/v1/documents/{document_id}/chunks").json()["chunks"]
    assert "opens at nine" in chunk["content"]
    assert acme("DELETE", f"/v1/documents/{document_id}").json() == {"deleted": [document_id], "not_found": []}
    assert acme("GET", f"/v1/documents/{document_id}").status_code == 404
    assert acme("POST", "/v1/search", json={"query": "tide gate"}).json()["hits"] == []


def test_a_file_that_is_live_already_is_not_taken_in_again(acme: Caller) -> None:
    document_id = acme.upload(GATE)
    again = acme("POST", "/v1/documents", files={"file": ("gate.md", GATE.encode())})
    assert (again.status_code, again.json()["document_id"], again.json()["status"]) == (200, document_id, "completed")


def test_an_erasure_returns_a_receipt(acme: Caller) -> None:
    document_id = acme.upload(GATE)
    receipt = acme("DELETE", f"/v1/documents/{document_id}?erase=true").json()
    assert (receipt["complete"], receipt["target"]) == (True, {"kind": "document", "name": document_id})


@pytest.mark.req("R-API-12")
def test_documents_are_listed_by_pages_and_filters(acme: Caller) -> None:
    for number in range(3):
        kind = "manual" if number else "note"
        acme.upload(f"# Page {number}\n\nText {number}.\n", f"{number}.md", metadata=json.dumps({"category": kind}))
    first = acme("GET", "/v1/documents?limit=2").json()
    second = acme("GET", f"/v1/documents?limit=2&after={first['next']}").json()
    titles = [document["title"] for document in first["documents"] + second["documents"]]
    assert (sorted(titles), second["next"]) == (["Page 0", "Page 1", "Page 2"], None)
    assert acme("GET", "/v1/documents?limit=3").json()["next"] is None
    notes = acme("GET", "/v1/documents", params={"where": json.dumps({"category": "note"})}).json()["documents"]
    assert [document["title"] for document in notes] == ["Page 0"]


@pytest.mark.parametrize(
    ("name", "content", "status", "code"),
    [
        ("empty.md", b"", 422, "empty_document"),
        ("program.exe", b"MZ\x90\x00\x03", 415, "unsupported_format"),
        ("../../etc/passwd.md", b"x", 202, ""),
    ],
)
def test_what_cannot_be_read_is_refused(acme: Caller, name: str, content: bytes, status: int, code: str) -> None:
    answer = acme("POST", "/v1/documents", files={"file": (name, content)})
    assert answer.status_code == status, answer.text
    assert answer.json().get("code", "") == code
    if status == 202:
        assert answer.json()["filename"] == "passwd.md"


@pytest.mark.parametrize("metadata", ["no json", "[1]", "3"])
def test_metadata_is_an_object(acme: Caller, metadata: str) -> None:
    answer = acme("POST", "/v1/documents", files={"file": ("a.md", b"x")}, data={"metadata": metadata})
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid_input")


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("/v1/documents", "file"),
        ("/v1/documents", "kb"),
        ("/v1/shop/import", "file"),
        ("/v1/shop/import", "kind"),
        ("/v1/imports", "file"),
    ],
)
def test_a_field_of_a_form_is_given_once(acme: Caller, path: str, name: str) -> None:
    """Only the last one would be read."""
    form = {"file": ("a.md", b"PK"), name: ("a.md", b"PK") if name == "file" else (None, b"products")}
    answer = acme("POST", path, files=[*form.items(), (name, form[name])])
    assert (answer.status_code, answer.json()["detail"]) == (422, f"the form gives '{name}' more than once")
    assert acme("GET", "/v1/jobs").json()["jobs"] == []


def test_an_import_of_several_kbs_names_each(acme: Caller) -> None:
    several = [("file", ("a.zip", b"PK")), ("kb", (None, b"default")), ("kb", (None, b"wiki"))]
    assert acme("POST", "/v1/imports", files=several).status_code == 202


@pytest.mark.parametrize("path", ["/v1/documents", "/v1/shop/import", "/v1/imports"])
def test_a_field_that_no_route_reads_is_refused(acme: Caller, path: str) -> None:
    """A document with a mistyped `external_id` would be uploaded a second time."""
    answer = acme("POST", path, files={"file": ("a.md", b"PK")}, data={"externalid": "a"})
    assert (answer.status_code, answer.json()["detail"]) == (422, "the form has no field 'externalid'")
    assert answer.json()["hint"].startswith("its fields are: file")
    assert acme("GET", "/v1/jobs").json()["jobs"] == []


@pytest.mark.parametrize("number", ["NaN", "1e999", "-Infinity"])
def test_a_number_that_json_does_not_have_is_refused_at_once(acme: Caller, number: str) -> None:
    given = {"files": {"file": ("a.md", b"x")}, "data": {"metadata": f'{{"size": {number}}}'}}
    answer = acme("POST", "/v1/documents", **given)
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid_input")
    assert answer.json()["detail"] == "metadata 'size' holds float, which is not JSON"
    assert acme("GET", "/v1/jobs").json()["jobs"] == []


def test_an_address_on_this_machine_is_not_fetched(acme: Caller) -> None:
    done = acme("POST", "/v1/documents/urls", json={"urls": ["http://127.0.0.1:1/secret"]}).json()
    assert [failure["code"] for failure in done["failed"]] == ["address_refused"]


@pytest.mark.parametrize("address", ["https://ada:canary@docs.example/a", "docs.example/a", "https://"])
def test_an_address_that_cannot_be_fetched_is_the_callers_mistake(acme: Caller, address: str) -> None:
    refused = acme("POST", "/v1/documents/urls", json={"urls": [address]})
    assert (refused.status_code, refused.json()["code"]) == (422, "invalid_input")
    assert "canary" not in refused.text


def test_another_version_of_a_live_document_is_waited_for(acme: Caller) -> None:
    acme.upload("The gate is red.", external_id="gate")
    again = {"files": {"file": ("gate.md", b"The gate is green.")}, "data": {"external_id": "gate"}}
    taken = acme("POST", "/v1/documents", **again)
    assert (taken.status_code, taken.json()["status"]) == (202, "completed")
