"""kill -9 of the service and of its worker at random moments: no acknowledged upload or deletion is lost.

`RAGSTONE_SERVICE_KILLS=200 pytest tests/faults/test_service_kill.py` is the long run.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import signal
import socket
import subprocess
from collections import Counter
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2
import pytest
from tests.faults import service_process
from tests.faults.worker_process import open_engine
from tests.long_runs import take_rounds
from tests.warm import warm_python

from ragstone.core.keys import SCOPES, NewApiKey

KILLS = take_rounds("RAGSTONE_SERVICE_KILLS", 4)
CLIENTS = 3
LONGEST_PAUSE = 0.8
HANG_SECONDS = 120
TENANT = "acme"


class Processes:
    """A service and a worker; one that is killed is replaced at once."""

    def __init__(self, folder: Path, port: int) -> None:
        command = [*warm_python(), "-m", service_process.__name__, str(folder), str(port)]
        self._nursery = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self._running = {kind: self._start(kind) for kind in ("serve", "work")}

    def kill(self, *kinds: str) -> None:
        """Kill processes of these kinds at the same moment, and start others."""
        for kind in kinds:
            os.kill(self._running[kind], signal.SIGKILL)
        for kind in kinds:
            self._running[kind] = self._start(kind)

    def stop(self) -> None:
        for pid in self._running.values():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self._nursery.kill()
        self._nursery.communicate()

    def _start(self, kind: str) -> int:
        assert self._nursery.stdin is not None
        assert self._nursery.stdout is not None
        self._nursery.stdin.write(f"{kind}\n")
        self._nursery.stdin.flush()
        return int(self._nursery.stdout.readline())


@dataclass
class Acknowledged:
    """What the service has said it took in, by the word that only this document has, and what it has deleted."""

    documents: dict[str, str] = field(default_factory=dict)
    deleted: dict[str, str] = field(default_factory=dict)
    unknown: set[str] = field(default_factory=set)
    """Words of uploads and deletions that were cut off: either outcome is right."""


def sentence(word: str) -> str:
    return f"The stone {word} lies in drawer {word[::-1]}."


async def send_uploads(client: httpx2.AsyncClient, number: int, told: Acknowledged, ended: asyncio.Event) -> None:
    """Upload one file after the other and delete some of them, whatever happens to the service."""
    chance = random.Random(number)
    count = 0
    while not ended.is_set():
        count += 1
        word = f"quartz{number}x{count}"
        text = f"{sentence(word)} " * chance.choice([1, 30])
        try:
            reply = await client.post("/v1/documents", files={"file": (f"{word}.txt", text.encode())})
            if reply.status_code in (200, 202):
                told.documents[word] = reply.json()["document_id"]
            else:
                assert reply.status_code == 503, reply.text
            if told.documents and chance.random() < 0.1:
                await delete_one(client, chance, told)
        except httpx2.TransportError:
            told.unknown.add(word)
            await asyncio.sleep(0.05)  # the service is being started again


async def delete_one(client: httpx2.AsyncClient, chance: random.Random, told: Acknowledged) -> None:
    word = chance.choice(sorted(told.documents))
    document_id = told.documents.pop(word)
    told.unknown.add(word)
    reply = await client.delete(f"/v1/documents/{document_id}")
    if reply.status_code == 200:
        told.unknown.remove(word)
        told.deleted[word] = document_id


@contextlib.asynccontextmanager
async def connect(folder: Path, port: int) -> AsyncIterator[httpx2.AsyncClient]:
    async with open_engine(folder) as engine:
        await engine.tenants.create(TENANT)
        issued = await engine.keys.create(NewApiKey(TENANT, SCOPES))
    headers = {"Authorization": f"Bearer {issued.token}"}
    address = f"http://{service_process.HOST}:{port}"
    async with httpx2.AsyncClient(base_url=address, headers=headers, timeout=HANG_SECONDS) as client:
        yield client


async def ask(client: httpx2.AsyncClient, method: str, path: str, **options: Any) -> Any:
    """Return the JSON of a call, waiting for a service that is being started."""
    while True:
        try:
            return (await client.request(method, path, **options)).json()
        except httpx2.TransportError:
            await asyncio.sleep(0.1)


async def wait_for_jobs(client: httpx2.AsyncClient) -> Counter[str]:
    while True:
        counts = Counter((await ask(client, "GET", "/v1/jobs", params={"limit": 1}))["counts"])
        if not counts["pending"] and not counts["running"]:
            return counts
        await asyncio.sleep(0.2)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind((service_process.HOST, 0))
        return int(probe.getsockname()[1])


async def check(client: httpx2.AsyncClient, told: Acknowledged) -> None:
    """Every document that was taken in is found by id, by word and by meaning; a deleted one by none of them."""
    for word, document_id in told.documents.items():
        status = await ask(client, "GET", f"/v1/documents/{document_id}")
        assert status["status"] == "completed", (word, status)
        for arms in ("lexical", "dense"):
            query = {"query": sentence(word), "arms": arms, "k": 3, "mode": "fast"}
            hits = (await ask(client, "POST", "/v1/search", json=query))["hits"]
            assert document_id in [hit["document_id"] for hit in hits], (word, arms)
        chunks = (await ask(client, "GET", f"/v1/documents/{document_id}/chunks"))["chunks"]
        places = [chunk["chunk_index"] for chunk in chunks]
        assert places == list(range(len(places))), (word, "a chunk is missing or double")
    for word, document_id in told.deleted.items():
        gone = await client.get(f"/v1/documents/{document_id}")
        assert gone.status_code == 404, (word, gone.text)
        found = await ask(client, "POST", "/v1/search", json={"query": word, "arms": "lexical"})
        assert document_id not in [hit["document_id"] for hit in found["hits"]], word


@pytest.mark.timeout(3600)
async def test_a_service_may_die_at_any_moment(tmp_path: Path, record_property: Callable[[str, object], None]) -> None:
    """FAULTS 1 to 3 and 10, over HTTP."""
    told, ended, chance, port = Acknowledged(), asyncio.Event(), random.Random(11), free_port()
    async with connect(tmp_path, port) as client:
        processes = Processes(tmp_path, port)
        try:
            await ask(client, "GET", "/healthz")
            senders = [asyncio.create_task(send_uploads(client, n, told, ended)) for n in range(CLIENTS)]
            for _ in range(KILLS):
                await asyncio.sleep(chance.uniform(0.05, LONGEST_PAUSE))
                processes.kill(*chance.choice([("serve",), ("work",), ("serve", "work")]))
            ended.set()
            await asyncio.gather(*senders)
            counts = await wait_for_jobs(client)
            assert told.documents, "nothing was taken in between the kills"
            assert counts["failed"] == 0
            await check(client, told)
        finally:
            processes.stop()
    record_property("injected", KILLS)
    record_property("noted", f"{len(told.documents)} uploads and {len(told.deleted)} deletions were acknowledged")
