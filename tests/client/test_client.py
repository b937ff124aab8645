"""The client against a live service: results, errors, uploads, streams."""

from __future__ import annotations

import asyncio
import gzip
import io
import os
from pathlib import Path
from typing import Any

import pytest
from tests.client.conftest import LiveService

from ragstone import AsyncClient, Client, Question, SearchQuery
from ragstone.core.agents.replies import ReplyReady
from ragstone.core.answers import AnswerReady, CitationsReady, SentenceReady
from ragstone.core.errors import AccessDenied, InputError, NotFoundError, RemoteError
from ragstone.core.types import Document

GATE = b"# Gate\n\nThe tide gate opens at nine.\n"


@pytest.fixture(scope="module")
def gate(client: Client) -> str:
    """A document that can be found; its id."""
    taken = client.documents.upload(GATE, "gate.md", metadata={"category": "harbour"})
    assert taken.status == "pending"
    assert taken.job is not None
    assert [job.state for job in client.jobs.follow(taken.job.id)][-1] == "completed"
    return taken.document_id


async def test_results_are_those_of_the_engine(service: LiveService, client: Client, gate: str) -> None:
    """What comes over the network equals what the workspace returns, but for what its shapes leave out."""
    workspace = service.engine.workspace("acme")

    def here(work: Any) -> Any:
        return asyncio.to_thread(service.thread.run, work)

    document = (await here(workspace.documents.list()))[0]
    (listed,) = await asyncio.to_thread(lambda: client.documents.list(where={"category": "harbour"}))
    assert isinstance(listed, Document)
    assert {**_fields(listed), "recipe": document.recipe} == _fields(document)
    question = "When does the tide gate open?"
    assert await asyncio.to_thread(client.ask, question) == await here(workspace.ask(question))
    claim = "The tide gate opens at nine."
    assert await asyncio.to_thread(client.verify, claim) == await here(workspace.verify(claim))
    assert await asyncio.to_thread(client.knowledge_bases.stats, "default") == await here(
        workspace.knowledge_bases.stats("default")
    )
    assert (await asyncio.to_thread(client.usage)).stock == (await here(workspace.usage())).stock
    remote, local = await asyncio.to_thread(client.jobs.list), await here(workspace.jobs.list())
    left_out = {"external_id", "content_hash", "facts", "token", "progress"}
    for one, other in zip(remote, local, strict=True):
        assert _without(one, left_out) == _without(other, left_out)
        assert (one.progress.stage, one.progress.percent) == (other.progress.stage, 100)
    records = await asyncio.to_thread(client.documents.chunk_records, gate)
    assert list(records) == list(await here(workspace.documents.chunk_records(gate)))


def _fields(value: Any) -> dict[str, Any]:
    return {name: getattr(value, name) for name in type(value).__dataclass_fields__}


def _without(value: Any, names: set[str]) -> dict[str, Any]:
    return {name: field for name, field in _fields(value).items() if name not in names}


def test_the_agent_replies_whole_and_sentence_by_sentence(client: Client, gate: str) -> None:
    reply = client.chat("When does the tide gate open?")
    assert (reply.status, reply.citations[0].document_id, reply.sources) == ("answered", gate, ("documents",))
    *sentences, last = client.stream_chat("When does the tide gate open?", reply.conversation)
    assert isinstance(last, ReplyReady)
    assert last.reply.reply == reply.reply == " ".join(one.text for one in sentences if isinstance(one, SentenceReady))
    assert len(client.conversations.turns(reply.conversation)) == 2


def test_a_search_has_its_options(client: Client, gate: str) -> None:
    found = client.search(SearchQuery("tide gate", k=1, mode="fast", where={"category": "harbour"}))
    assert (found.mode, [hit.document_id for hit in found.hits]) == ("fast", [gate])
    assert found.trace[0].entered >= 0
    assert client.explain(SearchQuery("tide gate"), gate).found
    assert client.research("tide gate", depth="quick").findings[0].hit.document_id == gate
    assert client.documents.text(gate)[found.hits[0].start : found.hits[0].end] == found.hits[0].text


def test_files_texts_golden_queries_receipts_and_spaces(client: Client, gate: str) -> None:
    assert client.documents.original(gate).content == GATE
    assert client.documents.original(gate).filename == "gate.md"
    assert [version.is_live for version in client.documents.versions(gate)] == [True]
    assert [document.id for document in client.documents.list(status="completed", file_type="md")] == [gate]
    checked = client.verify_text("The tide gate opens at nine.")
    assert [claim.verdict.stance for claim in checked.claims] == ["supported"]
    client.feedback.add_golden("When does the gate open?", [gate])
    assert [golden.document_ids for golden in client.feedback.golden()] == [(gate,)]
    assert client.feedback.remove_golden() == 1
    assert client.feedback.remove_golden("never asked") == 0
    assert client.feedback.make_golden(1)[0].document_ids == (gate,)
    answer, receipt = client.receipts.ask("When does the tide gate open?")
    assert answer.status == "answered"
    assert client.receipts.check(receipt).holds
    assert [space.space.state for space in client.embeddings.spaces(kb="default")] == ["live"]
    client.jobs.mark_read([notice.id for notice in client.jobs.notices()])
    assert client.jobs.notices(unread=True) == []


def test_an_archive_moves_a_tenant(service: LiveService, client: Client, gate: str) -> None:
    exported = client.tasks.export(kbs=["default"])
    assert [job.state for job in client.jobs.follow(exported.id)][-1] == "completed"
    archive = client.tasks.result(exported.id)
    assert archive.media_type == "application/zip"
    with Client(service.url, service.key("globex")) as other:
        imported = other.tasks.import_archive(archive.content, kbs=["default"])
        assert [job.state for job in other.jobs.follow(imported.id)][-1] == "completed"
        assert other.search("tide gate").hits[0].text.endswith("opens at nine.")


def test_an_answer_is_streamed(client: Client, gate: str) -> None:
    events = list(client.stream(Question("When does the tide gate open?")))
    assert [type(event) for event in events] == [SentenceReady, CitationsReady, AnswerReady]
    assert isinstance(events[-1], AnswerReady)
    assert events[-1].answer == client.ask("When does the tide gate open?")


def test_a_stream_that_is_left_early_ends(client: Client, gate: str) -> None:
    for event in client.stream("When does the tide gate open?"):
        assert isinstance(event, SentenceReady)
        break
    assert client.ask("When does the tide gate open?").status == "answered"


@pytest.mark.parametrize("form", ["path", "file", "pipe", "numbered pipe", "packed file"])
def test_files_are_uploaded_in_every_form(client: Client, tmp_path: Path, form: str) -> None:
    path = tmp_path / f"{form}.md"
    path.write_text(f"# Ferry\n\nThe {form} ferry leaves at ten.\n", encoding="utf-8")
    if form == "path":
        taken = client.documents.upload(path)
    elif form == "file":
        with path.open("rb") as file:
            taken = client.documents.upload(file)
    elif form == "numbered pipe":
        source, target = os.pipe()
        with os.fdopen(source, "rb") as reader, os.fdopen(target, "wb") as writer:
            writer.write(path.read_bytes())
            writer.close()
            taken = client.documents.upload(reader, path.name)
    elif form == "packed file":
        packed = tmp_path / "packed.gz"
        packed.write_bytes(gzip.compress(path.read_bytes() * 100))
        with gzip.open(packed) as unpacked:
            taken = client.documents.upload(unpacked, path.name)
    else:
        taken = client.documents.upload(_Pipe(path.read_bytes()), path.name)
    assert taken.filename == path.name
    assert client.documents.delete(taken.document_id)
    assert not client.documents.delete(taken.document_id)


@pytest.mark.parametrize("name", ["Grüße 文.md", 'the "best" notes.md', "100%.md", "caf\udce9.md"])
def test_a_file_comes_back_under_its_name(client: Client, name: str) -> None:
    content = f"# Notes\n\nThe ferry leaves at ten: {name!a}.\n"  # the same content is the same document
    taken = client.documents.upload(content.encode(), name)
    kept = client.documents.original(taken.document_id)
    assert kept.filename == taken.filename == name.replace("\udce9", "?")


class _Pipe(io.RawIOBase):
    """Can be read once."""

    def __init__(self, content: bytes) -> None:
        self._content = io.BytesIO(content)

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        return self._content.read(size)


def test_errors_are_those_of_the_engine(service: LiveService, client: Client) -> None:
    with pytest.raises(NotFoundError) as unknown:
        client.jobs.get("0" * 32)
    assert (unknown.value.code, unknown.value.hint) == ("not_found", "list the jobs")
    assert len(unknown.value.request_id) == 32
    with pytest.raises(InputError) as wrong:
        client.search(SearchQuery("tide", k=0))
    assert wrong.value.code == "invalid_input"
    with Client(service.url, "rgs_wrong") as stranger, pytest.raises(AccessDenied) as refused:
        stranger.usage()
    assert refused.value.code == "unauthenticated"
    with Client(service.url, service.key("acme", "read")) as reader, pytest.raises(AccessDenied, match="scope write"):
        reader.documents.upload(GATE, "gate.md")


def test_a_stream_raises_what_ended_it(service: LiveService) -> None:
    with Client(service.url, service.key("empty")) as client, pytest.raises(NotFoundError) as unknown:
        list(client.stream("What?"))
    assert unknown.value.code == "not_found"


def test_sources_kbs_and_conversations_are_managed(
    service: LiveService, client: Client, gate: str, tmp_path: Path
) -> None:
    (tmp_path / "a.md").write_text("# Pier\n\nThe pier has nine lamps.\n", encoding="utf-8")
    with pytest.raises(AccessDenied, match="reads from the machine"):
        client.sources.add("files", "pier", {"path": str(tmp_path)}, kb="pier")
    made = service.thread.run(
        service.engine.workspace("acme").sources.add("files", "pier", {"path": str(tmp_path)}, kb="pier")
    )
    assert (made.name, client.sources.get("pier", kb="pier")) == ("pier", made)
    assert [job.state for job in client.jobs.follow(client.sources.sync("pier", kb="pier").id)][-1] == "completed"
    client.sources.pause("pier", kb="pier")
    assert [source.state for source in client.sources.list(kb="pier")] == ["paused"]
    client.sources.resume("pier", kb="pier")
    assert client.knowledge_bases.rename("pier", "jetty").name == "jetty"
    assert {kb.name for kb in client.knowledge_bases.list()} == {"default", "jetty"}
    assert client.erase("kb", "jetty", "nothing")[0].target.name == "jetty"
    hit = client.search(SearchQuery("tide gate", conversation="support/42")).hits[0]
    assert client.feedback.vote("tide gate", [hit.chunk_id], "up") == 1
    assert client.feedback.votes()[0].chunk_id == hit.chunk_id
    assert [turn.question for turn in client.conversations.turns("support/42")] == ["tide gate"]
    assert client.conversations.forget("support/42") == 1
    assert client.audit.list(limit=1)[0].tenant == "acme"
    assert client.jobs.counts()["completed"] >= 1
    assert client.jobs.notices()[0].job_id
    assert not client.jobs.cancel(client.jobs.list()[0].id)
    assert not client.jobs.retry(client.jobs.list()[0].id)


async def test_calls_run_side_by_side(service: LiveService, key: str, gate: str) -> None:
    async with AsyncClient(service.url, key) as client:
        found = await asyncio.gather(*(client.search("tide gate") for _ in range(5)))
    assert {result.hits[0].document_id for result in found} == {gate}


def test_a_closed_client_says_so(service: LiveService, key: str) -> None:
    client = Client(service.url, key)
    client.close()
    client.close()
    with pytest.raises(InputError, match="this Client is closed"):
        client.usage()
    with pytest.raises(InputError, match="not the address of a service"):
        Client("localhost:8000", key)
    with Client("http://127.0.0.1:9", key, retries=0) as nobody, pytest.raises(RemoteError, match="cannot be reached"):
        nobody.usage()
