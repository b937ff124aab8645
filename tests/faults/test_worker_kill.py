"""kill -9 of workers at random moments: every document ends, and what is live equals an undisturbed run.

`RAGSTONE_WORKER_KILLS=500 RAGSTONE_KILL_PAUSE=1 pytest tests/faults/test_worker_kill.py -s` is the long run.
Leases last a second, and the number of attempts is raised: here every death is the test's doing, not the document's.
"""

from __future__ import annotations

import asyncio
import os
import random
import signal
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import pytest
from tests.faults import worker_process
from tests.faults.mixed_documents import mixed_documents
from tests.faults.worker_process import POISON, open_engine
from tests.warm import warm_python

from ragstone.core.jobs import Job
from ragstone.engine.engine import Engine
from ragstone.testing.workspaces import workspace_of

KILLS = int(os.environ.get("RAGSTONE_WORKER_KILLS", "12"))
DOCUMENTS = 200 if KILLS > 20 else 60
PAUSE = float(os.environ.get("RAGSTONE_KILL_PAUSE", "1.5"))
"""The longest time between two kills. A short one leaves the workers hardly any time to work."""
LEASE = 1.0
WORKERS = 4
Live = dict[str, tuple[str, tuple[str, ...]]]


class Wait(NamedTuple):
    """How many seconds after its worker's death a job could be taken up, and was (or had ended)."""

    given_back: float
    tried_again: float


class Workers:
    """Several worker processes; one that was killed is replaced."""

    def __init__(self, folder: Path, attempts: int = 1000, lease: float = LEASE) -> None:
        command = [*warm_python(), "-m", worker_process.__name__, str(folder), str(lease), str(attempts)]
        self._nursery = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.running = [self._start() for _ in range(WORKERS)]
        self.kills = 0

    def _start(self) -> int:
        assert self._nursery.stdin is not None
        assert self._nursery.stdout is not None
        self._nursery.stdin.write("start\n")
        self._nursery.stdin.flush()
        return int(self._nursery.stdout.readline())

    def kill_one(self, chance: random.Random) -> int:
        """Kill a worker and start another in its place; the process id of the one that is dead."""
        number = chance.randrange(len(self.running))
        dead = self.running[number]
        os.kill(dead, signal.SIGKILL)
        self.running[number] = self._start()
        self.kills += 1
        return dead

    def replace_dead(self) -> int:
        """Start anew what has ended by itself; how many had."""
        dead = [number for number, pid in enumerate(self.running) if not _is_alive(pid)]
        for number in dead:
            self.running[number] = self._start()
        return len(dead)

    def stop(self) -> None:
        for pid in self.running:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self._nursery.kill()
        self._nursery.communicate()


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


async def upload_all(engine: Engine, files: dict[str, bytes]) -> None:
    for name, content in files.items():
        await workspace_of(engine).documents.upload(content, name, external_id=name)


async def unfinished(engine: Engine) -> int:
    return len(await workspace_of(engine).jobs.list(states=("pending", "running"), limit=10_000))


async def what_is_live(engine: Engine) -> Live:
    """Content hash and chunk texts of every live document, by external id."""
    live: Live = {}
    after = ""
    while page := await workspace_of(engine).documents.list(after=after, limit=1000):
        for document in page:
            chunks = await workspace_of(engine).documents.chunks(document.id)
            live[document.external_id] = (document.content_hash, tuple(one.chunk.contextual for one in chunks))
        after = page[-1].id
    return live


async def outcomes(engine: Engine) -> dict[str, tuple[str, str]]:
    jobs: list[Job] = await workspace_of(engine).jobs.list(limit=10_000)
    return {job.external_id: (job.state, job.error_code) for job in jobs}


async def undisturbed(folder: Path, files: dict[str, bytes]) -> tuple[Live, dict[str, tuple[str, str]]]:
    async with open_engine(folder) as engine:
        await upload_all(engine, files)
        await engine.worker().run(until_idle=True)
        return await what_is_live(engine), await outcomes(engine)


@pytest.mark.req("R-ING-16", "R-ING-18")
@pytest.mark.timeout(3600)
async def test_workers_may_die_at_any_moment(
    tmp_path: Path, record_property: Callable[[str, object], None], capsys: pytest.CaptureFixture[str]
) -> None:
    files = mixed_documents(DOCUMENTS)
    expected, ends = await undisturbed(tmp_path / "undisturbed", files)
    assert {state for state, _ in ends.values()} == {"completed", "failed"}
    chance = random.Random(7)
    kills = rounds = 0
    waited: list[Wait] = []
    while kills < KILLS:
        rounds += 1
        waits: list[asyncio.Task[list[Wait]]] = []
        folder = tmp_path / f"round {rounds}"
        async with open_engine(folder) as engine:
            await upload_all(engine, files)
            workers = Workers(folder)
            try:
                while await unfinished(engine):
                    await asyncio.sleep(chance.uniform(0.05, PAUSE))
                    if workers.kills + kills < KILLS:
                        running = await workspace_of(engine).jobs.list(states=("running",), limit=1000)
                        killed = f":{workers.kill_one(chance)}:"
                        held = {job.id: job.attempts for job in running if killed in job.worker}
                        waits.append(asyncio.create_task(redelivered(engine, held)))
            finally:
                workers.stop()
            waited += [wait for one in await asyncio.gather(*waits) for wait in one]
            kills += workers.kills
            assert await outcomes(engine) == ends
            assert await what_is_live(engine) == expected
    record_property("injected", kills)
    again = _spread([wait.tried_again for wait in waited])
    record_property("noted", f"they held {len(waited)} jobs; tried again: {again}")
    with capsys.disabled():
        print(f"\n{kills} workers killed in {rounds} rounds of {len(files)} files, which held {len(waited)} jobs")
        print(f"given back to the queue: {_spread([wait.given_back for wait in waited])}")
        print(f"tried again: {again}")


def _spread(seconds: list[float]) -> str:
    if not seconds:
        return "none"
    ordered = sorted(seconds)
    p95 = ordered[int(len(ordered) * 0.95)]
    soon = sum(wait <= 2 * LEASE for wait in ordered) / len(ordered)
    return f"95 % within {p95:.2f} s, the last after {ordered[-1]:.2f} s; {soon:.1%} within two leases of {LEASE:g} s"


async def redelivered(engine: Engine, held: dict[str, int]) -> list[Wait]:
    """How long each job that a killed worker held had to wait."""
    started = time.monotonic()
    given_back: dict[str, float] = {}
    waits = []
    while held:
        for identity, attempts in list(held.items()):
            job = await workspace_of(engine).jobs.get(identity)
            after = time.monotonic() - started
            again = job.attempts > attempts or job.state not in ("pending", "running")
            if again or job.state == "pending":
                given_back.setdefault(identity, after)
            if again:
                waits.append(Wait(given_back[identity], after))
                del held[identity]
        await asyncio.sleep(0.05)
    return waits


async def test_a_document_that_ends_its_workers_is_put_aside_and_the_others_go_on(
    tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    """FAULTS 5: three deaths, then a dead letter with a reason."""
    files = {f"{number}.txt": f"Document {number} is harmless.".encode() for number in range(20)}
    files["7.txt"] = f"A {POISON} document.".encode()
    async with open_engine(tmp_path) as engine:
        await upload_all(engine, files)
        # A lease that no worker outlives by being slow: each attempt counts.
        workers = Workers(tmp_path, attempts=3, lease=20)
        deaths = 0
        try:
            while await unfinished(engine):
                await asyncio.sleep(0.1)
                deaths += workers.replace_dead()
        finally:
            workers.stop()
        ends = await outcomes(engine)
        assert ends.pop("7.txt") == ("failed", "worker_died")
        assert set(ends.values()) == {("completed", "")}
        assert deaths == 3
        record_property("injected", deaths)
        (failed,) = await workspace_of(engine).jobs.list(states=("failed",))
        assert failed.error == "7.txt ended its worker 3 times; it is put aside until someone retries it"
