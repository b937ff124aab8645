"""Routes that pass on what a workspace does: files and versions, texts, golden queries, receipts, embeddings, keys."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest
from tests.serve.http.conftest import Service, open_service

from ragstone import Settings
from ragstone.settings.tree import LimitSettings

GATE = "# Gate\n\nThe tide gate opens at nine. The keeper has two keys.\n"


def test_the_file_comes_back_as_it_was_uploaded(shared: Service) -> None:
    caller = shared.caller("files")
    document_id = caller.upload(GATE, 'gâte "1"\r\nX-Evil: 1.md')
    answer = caller("GET", f"/v1/documents/{document_id}/file")
    assert (answer.status_code, answer.text, answer.headers["content-type"]) == (200, GATE, "application/octet-stream")
    disposition = answer.headers["content-disposition"]
    assert disposition.startswith("attachment; filename=")
    assert disposition.isascii()
    assert "x-evil" not in answer.headers
    assert "sandbox" in answer.headers["content-security-policy"]


def test_a_file_that_is_not_kept_is_not_found(shared: Service) -> None:
    caller = shared.caller("unkept")

    async def ingest() -> str:
        from ragstone.core.types import Item

        workspace = shared.engine.workspace("unkept")
        await workspace.documents.ingest_items([Item("files", "a", "a.md", GATE.encode(), modified_at=None)])
        return (await workspace.documents.list())[0].id

    answer = caller("GET", f"/v1/documents/{shared.run(ingest)}/file")
    assert (answer.status_code, answer.json()["code"]) == (404, "not_found")


def test_versions_are_listed_newest_first(shared: Service) -> None:
    caller = shared.caller("versions")
    document_id = caller.upload(GATE, external_id="gate")
    assert caller.upload(GATE + "\nIt closes at ten.\n", external_id="gate") == document_id
    newest, first = caller("GET", f"/v1/documents/{document_id}/versions").json()["versions"]
    assert [newest["is_live"], newest["is_kept"], newest["status"]] == [True, True, "completed"]
    assert [first["is_live"], first["is_kept"], first["status"]] == [False, False, "completed"]
    assert newest["file_size"] > first["file_size"]
    assert "closes" in caller("GET", f"/v1/documents/{document_id}/file").text


@pytest.mark.req("R-API-12")
def test_documents_are_listed_by_status_and_file_type(shared: Service) -> None:
    caller = shared.caller("lists")
    note = caller.upload("A note on tides.", "note.txt")
    page = caller.upload(GATE, "gate.MD")
    taken = caller("POST", "/v1/documents", files={"file": ("late.txt", b"Later.")}).json()["document_id"]

    def listed(**filters: str) -> list[str]:
        found = caller("GET", "/v1/documents", params=filters).json()["documents"]
        wanted = {"status": "completed"} | filters
        assert all(document[name] == value for document in found for name, value in wanted.items())
        return [document["id"] for document in found]

    assert listed() == sorted([note, page])
    assert listed(file_type="txt") == [note]
    assert listed(file_type="md", status="completed") == [page]
    assert listed(status="pending") == listed(status="pending", file_type="txt") == [taken]
    assert listed(status="failed") == listed(file_type="pdf") == []
    shared.run(_work(shared))
    assert listed(status="pending") == []
    assert listed(file_type="txt") == sorted([note, taken])
    assert caller("GET", "/v1/documents?status=lost").status_code == 422


def _work(service: Service) -> object:
    async def work() -> None:
        await service.engine.worker().run(until_idle=True)

    return work


def test_every_sentence_of_a_text_gets_a_verdict(shared: Service) -> None:
    caller = shared.caller("texts")
    caller.upload(GATE)
    text = "# Gates\n\nThe tide gate opens at nine. Who knows? The tide gate opens at eleven."
    done = caller("POST", "/v1/verify/text", json={"text": text}).json()
    assert [text[claim["start"] : claim["end"]] for claim in done["claims"]] == [
        "The tide gate opens at nine.",
        "The tide gate opens at eleven.",
    ]
    assert [claim["stance"] for claim in done["claims"]] == ["supported", "refuted"]
    assert done["skipped"] == 2
    assert sum(done["statuses"].values()) == 2
    assert [claim["outcome"] for claim in done["claims"]] == ["confirmed", "refuted"]
    assert done["outcomes"] == {"confirmed": 1, "refuted": 1, "open": 0}
    assert [claim["line"] for claim in done["claims"]] == [3, 3]


def test_of_a_long_text_the_first_sentences_are_checked_and_the_rest_counted(shared: Service) -> None:
    caller = shared.caller("texts")
    long = {"text": f"\n{'The tide gate opens at nine. ' * 101}Long {'x ' * 2000}."}
    done = caller("POST", "/v1/verify/text", json=long).json()
    assert (len(done["claims"]), done["unchecked"]) == (100, 2)
    assert (done["claims"][0]["start"], done["claims"][0]["line"]) == (1, 2)
    assert len(caller("POST", "/v1/verify/text", json={**long, "most": 2}).json()["claims"]) == 2
    assert caller("POST", "/v1/verify/text", json={**long, "most": 501}).json()["code"] == "invalid_input"


def test_the_votes_of_a_key_are_its_own(shared: Service) -> None:
    first, second = shared.caller("votes"), shared.caller("votes", "read")
    first.upload(GATE)
    hit = first("POST", "/v1/search", json={"query": "tide gate"}).json()["hits"][0]
    asked = {"query": "tide gate", "chunk_ids": [hit["chunk_id"]]}
    ids = [caller.token.split("_")[1] for caller in (first, second)]
    foreign = f"key:{ids[0]}"
    for caller, vote, named in (
        (first, "up", {}),
        (second, "down", {}),
        (first, "down", {"voter": "ada"}),
        (first, "up", {"voter": "ada"}),
        (second, "down", {"voter": "ada"}),
        (second, "down", {"voter": foreign}),
        (second, "down", {"voter": f"{foreign}\tada"}),
    ):
        assert caller("POST", "/v1/feedback", json=asked | {"vote": vote} | named).status_code == 201
    kept = {vote["voter"]: vote["vote"] for vote in first("GET", "/v1/feedback").json()["feedback"]}
    assert {voter: vote for voter, vote in kept.items() if voter.startswith(foreign)} == {
        foreign: "up",
        f"{foreign}\tada": "up",
    }
    others = ("", "\tada", f"\t{foreign}", f"\t{foreign}\tada")
    assert {voter for voter in kept if not voter.startswith(foreign)} == {f"key:{ids[1]}{name}" for name in others}
    long = second("POST", "/v1/feedback", json=asked | {"voter": "x" * 200})
    assert (long.status_code, "at most 179 fit" in long.json()["detail"]) == (422, True)


def test_golden_queries_are_added_made_and_removed(shared: Service) -> None:
    caller = shared.caller("golden")
    document_id = caller.upload(GATE)
    query = {"query": "When does the gate open?", "document_ids": [document_id]}
    assert caller("POST", "/v1/golden", json=query).status_code == 201
    (kept,) = caller("GET", "/v1/golden").json()["golden"]
    assert (kept["query"], kept["document_ids"], kept["origin"]) == (query["query"], [document_id], "manual")
    assert caller("POST", "/v1/golden/make", json={"count": 5}).json()["golden"]
    assert caller("POST", "/v1/golden", json=query | {"document_ids": ["0" * 32]}).status_code == 404
    assert caller("DELETE", "/v1/golden", params={"query": query["query"]}).json() == {"removed": 1}
    assert caller("DELETE", "/v1/golden", params={"query": query["query"]}).status_code == 404


def test_a_receipt_holds_until_its_document_changes(shared: Service) -> None:
    caller = shared.caller("receipts")
    document_id = caller.upload(GATE)
    given = caller("POST", "/v1/receipts", json={"question": "When does the tide gate open?"}).json()
    assert "nine" in given["answer"]["answer"]
    checked = caller("POST", "/v1/receipts/check", json={"receipt": given["receipt"]}).json()
    assert (checked["holds"], checked["intact"]) == (True, True)
    caller("DELETE", f"/v1/documents/{document_id}")
    checked = caller("POST", "/v1/receipts/check", json={"receipt": given["receipt"]}).json()
    assert (checked["holds"], checked["intact"]) == (False, True)
    assert caller("POST", "/v1/receipts/check", json={"receipt": {"receipt": 2}}).status_code == 422


def test_embeddings_are_made_again_by_a_job(shared: Service) -> None:
    caller = shared.caller("embeddings")
    caller.upload(GATE)
    (before,) = caller("GET", "/v1/kbs/default/spaces").json()["spaces"]
    queued = caller("POST", "/v1/kbs/default/reembed", json={})
    assert (queued.status_code, queued.json()["kind"]) == (202, "reembed")
    shared.run(_work(shared))
    assert caller("GET", queued.headers["location"]).json()["state"] == "completed"
    spaces = caller("GET", "/v1/kbs/default/spaces").json()["spaces"]
    assert [space["state"] for space in spaces if space["generation"] > before["generation"]] == ["live"]
    assert caller("POST", "/v1/kbs/none/reembed", json={}).status_code == 404


def test_notices_are_marked_as_read(shared: Service) -> None:
    caller = shared.caller("notices")
    caller.upload(GATE)
    (notice,) = caller("GET", "/v1/notices?unread=true").json()["notices"]
    assert caller("POST", "/v1/notices/read", json={"ids": [notice["id"]]}).json() == {"notices": []}


def test_a_key_is_rotated(shared: Service) -> None:
    caller = shared.caller("rotation")
    key_id = caller("GET", "/v1/keys").json()["keys"][0]["id"]
    issued = caller("POST", f"/v1/keys/{key_id}/rotate")
    assert issued.status_code == 201
    assert len(caller("GET", "/v1/keys").json()["keys"]) == 2
    assert caller("POST", "/v1/keys/none/rotate").status_code == 404


def test_a_full_disk_is_said_and_nothing_is_half_there(shared: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    caller = shared.caller("full")

    def fail(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("ragstone.stores.blobs._write", fail)
        for path, name in (("/v1/documents", "a.md"), ("/v1/imports", "a.zip")):
            answer = caller("POST", path, files={"file": (name, b"PK\x03\x04 text")})
            assert (answer.status_code, answer.json()["code"]) == (507, "store_full")
    assert caller("GET", "/v1/jobs").json()["jobs"] == []
    assert caller("POST", "/v1/documents", files={"file": ("a.md", b"text")}).status_code == 202


def test_a_file_larger_than_the_limit_is_refused(tmp_path: Path) -> None:
    with open_service(Settings(data_dir=tmp_path, limits=LimitSettings(file_mb=1))) as service:
        caller = service.caller("acme")
        for size, path in (
            (1024 * 1024 + 1, "/v1/documents"),
            (3 * 1024 * 1024, "/v1/documents"),
            (3 << 20, "/v1/imports"),
        ):
            answer = caller("POST", path, files={"file": ("a.txt", b"x" * size)})
            assert (answer.status_code, answer.json()["status"]) == (413, 413), answer.text
