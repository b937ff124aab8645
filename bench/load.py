"""`make load`: requests at a fixed rate on many tenants while an ingest runs, and whether memory stays as it was.

Requests are sent when their time has come, whether or not earlier ones were answered, and the time of a request counts
from that moment. The chunks are synthetic, under the name of the default model; that model embeds the queries and what
is ingested meanwhile. The ingest replaces the same documents again and again, so that what is stored stays the same.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import httpx2
import numpy as np

from bench.load_plot import draw_plot
from bench.report import machine
from bench.synthetic import SyntheticText, fill
from ragstone.core.keys import NewApiKey
from ragstone.core.types import Mode
from ragstone.engine.engine import open_engine
from ragstone.models import build_embedder
from ragstone.settings.tree import Settings
from ragstone.stores.factory import open_stores

PAGE, PLOT = Path("docs/load.md"), Path("docs/load.svg")
TENANTS, CHUNKS, RATE = 20, 50_000, 20
REPLACED = 100
"""Documents that the ingest replaces, in turn."""
DOCUMENT_WORDS = 600
QUEUED = 4
"""Uploads that the ingest keeps waiting in the queue."""
SAMPLE_SECONDS = 5
GOALS = {"fast": 200, "balanced": 500}
"""Milliseconds that 95 of 100 searches of a mode may take."""
FLAT = 1.1
"""Memory at the end over memory after the first third."""


@dataclass(frozen=True)
class Phase:
    """A time in which all searches have one mode."""

    mode: Mode
    seconds: float


@dataclass
class Reading:
    """What was measured: a row for each request, and memory and documents at intervals."""

    requests: list[tuple[float, Mode, float, int, bool]] = field(default_factory=list)
    """When it was due, its mode, its seconds, its status (0 for none), and whether its result was degraded."""
    memory: list[tuple[float, float]] = field(default_factory=list)
    ingested: int = 0

    def milliseconds(self, mode: str) -> list[float]:
        return [took * 1000 for _, asked, took, status, _ in self.requests if asked == mode and status == 200]


async def prepare(folder: Path) -> list[str]:
    """Fill a data folder with tenants and chunks, and return a key of each tenant."""
    settings = Settings(data_dir=folder)
    embedder = build_embedder(settings.embedding)
    stores = open_stores(settings)
    for number in range(TENANTS):
        await stores.tenants.create(_tenant(number))
        await fill(stores, CHUNKS // TENANTS, number, tenant=_tenant(number), model=embedder.model)
        print(f"\rfilled {number + 1} of {TENANTS} tenants", end="", flush=True)
    print()
    await embedder.close()
    await stores.ledger.close()
    async with open_engine(settings) as engine:
        wanted = [NewApiKey(_tenant(number), ("read", "write")) for number in range(TENANTS)]
        return [(await engine.keys.create(key)).token for key in wanted]


def _tenant(number: int) -> str:
    return f"tenant-{number}"


@contextmanager
def serve(folder: Path) -> Iterator[tuple[str, int]]:
    """Run `ragstone serve`; give its address and its process id."""
    command = [sys.executable, "-m", "ragstone", "serve", "--port", "0", "--json", "--data-dir", str(folder)]
    log = (folder / "serve.log").open("w")
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True)
    try:
        assert process.stdout is not None
        yield json.loads(process.stdout.readline())["url"], process.pid
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(60)
        log.close()


async def measure(url: str, pid: int, keys: Sequence[str], phases: Sequence[Phase]) -> Reading:
    """Send requests through all phases while documents are replaced."""
    reading, started = Reading(), time.monotonic()
    limits = httpx2.Limits(max_connections=500, max_keepalive_connections=100)
    async with httpx2.AsyncClient(base_url=url, timeout=30, limits=limits) as client:
        for key in keys:  # a tenant's first search reads its index
            await client.post("/v1/search", headers=_headers(key), json={"query": "warm", "mode": "fast"})
        background = [
            asyncio.create_task(_ingest(client, keys, reading)),
            asyncio.create_task(_sample(pid, reading, started)),
        ]
        await asyncio.sleep(10)  # the ingest is under way
        pending: set[asyncio.Task[None]] = set()
        due = time.monotonic()
        for mode in (phase.mode for phase in phases for _ in range(int(phase.seconds * RATE))):
            due += 1 / RATE
            await asyncio.sleep(max(0, due - time.monotonic()))
            task = asyncio.create_task(_search(client, keys, mode, reading, due, started))
            pending.add(task)
            task.add_done_callback(pending.discard)
        await asyncio.gather(*pending)
        for task in background:
            task.cancel()
        ended = await asyncio.gather(*background, return_exceptions=True)
        for error in ended:
            if isinstance(error, Exception):
                raise error
    return reading


_text = SyntheticText(time.time_ns())  # other texts than in a run before on the same data
_chance = random.Random(4711)


async def _search(
    client: httpx2.AsyncClient, keys: Sequence[str], mode: Mode, reading: Reading, due: float, started: float
) -> None:
    body = {"query": _text.query(), "mode": mode, "k": 10}
    status, degraded = 0, False
    try:
        reply = await client.post("/v1/search", headers=_headers(_chance.choice(keys)), json=body)
        status = reply.status_code
        degraded = bool(reply.json().get("degraded"))
    except httpx2.TransportError as error:
        print(f"\n{error!r}")
    reading.requests.append((due - started, mode, time.monotonic() - due, status, degraded))


async def _ingest(client: httpx2.AsyncClient, keys: Sequence[str], reading: Reading) -> None:
    """Replace documents one after the other, as fast as the service takes them in."""
    number = 0
    while True:
        key = keys[number % len(keys)]
        name = f"replaced-{number % REPLACED}.txt"
        content = _text.words(DOCUMENT_WORDS).encode()
        files, data = {"file": (name, content)}, {"external_id": name}
        reply = await client.post("/v1/documents", headers=_headers(key), files=files, data=data)
        if reply.status_code != 202:
            raise RuntimeError(f"an upload ended with {reply.status_code}: {reply.text}")
        number += 1
        while True:
            jobs = (await client.get("/v1/jobs", headers=_headers(key), params={"limit": 1})).json()["counts"]
            if jobs.get("pending", 0) + jobs.get("running", 0) < max(1, QUEUED // 2):
                break
            await asyncio.sleep(0.1)
        reading.ingested = number


async def _sample(pid: int, reading: Reading, started: float) -> None:
    while True:
        reading.memory.append((time.monotonic() - started, _resident_mb(pid)))
        said = f"{time.monotonic() - started:.0f} s, {len(reading.requests)} requests, {reading.ingested} documents"
        print(f"\r{said}, {reading.memory[-1][1]:.0f} MB ", end="", flush=True)
        await asyncio.sleep(SAMPLE_SECONDS)


def _resident_mb(pid: int) -> float:
    """Memory of a process and its children."""
    parents = {}
    for place in Path("/proc").glob("[0-9]*"):
        try:
            status = (place / "stat").read_text().rpartition(")")[2].split()
            parents[int(place.name)] = int(status[1]), int(status[21])
        except OSError:
            continue  # it has just ended
    family, pages = {pid}, 0
    for child in sorted(parents):
        if child in family or parents[child][0] in family:
            family.add(child)
            pages += parents[child][1]
    return pages * os.sysconf("SC_PAGESIZE") / 1024 / 1024


def _headers(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"}


def report(reading: Reading, phases: Sequence[Phase]) -> tuple[str, bool]:
    """Return the page, and whether every figure is as it should be."""
    statuses = Counter(status for *_, status, _ in reading.requests)
    failed = sum(count for status, count in statuses.items() if status == 0 or status >= 500)
    rows = []
    for mode, goal in GOALS.items():
        if not (times := reading.milliseconds(mode)):
            continue
        low, high, most = np.percentile(times, [50, 95, 99])
        degraded = sum(flag for _, asked, *_, flag in reading.requests if asked == mode)
        figures = f"{len(times):,} requests; p50 {low:.0f} ms, **p95 {high:.0f} ms**, p99 {most:.0f} ms"
        rows.append((f"{mode} search", f"{figures}; {degraded} degraded", f"p95 ≤ {goal} ms", high <= goal))
    rows.append(("answers with 5xx, or none", f"{failed} of {len(reading.requests):,}", "0", failed == 0))
    other = {status: count for status, count in statuses.items() if status != 200}
    rows.append(("other statuses than 200", str(other or "none"), "", True))
    first, last = _memory_levels(reading)
    rows.append(
        (
            "memory of the service",
            f"{first:.0f} MB after a third, {last:.0f} MB at the end",
            f"≤ {FLAT}×",
            last <= first * FLAT,
        )
    )
    rows.append(("documents replaced meanwhile", f"{reading.ingested:,} of {DOCUMENT_WORDS} words", "> 0", True))
    length = ", ".join(f"{phase.seconds / 60:g} min {phase.mode}" for phase in phases)
    done = (
        f"{CHUNKS:,} chunks of {TENANTS} tenants, {RATE} searches a second whether or not earlier ones were answered "
        f"({length}), each with a query of its own, while documents are replaced without a pause."
    )
    lines = [
        "# Load",
        "",
        "Written by `make load`: `ragstone serve` with its worker, on SQLite, and a client on the same machine.",
        "",
        f"**Machine:** {machine()}. Other work on it makes the times longer.",
        "",
        done,
        "",
        "| What | Measured | Goal | |",
        "|---|---|---|---|",
        *(f"| {what} | {value} | {goal} | {'met' if met else '**missed**'} |" for what, value, goal, met in rows),
        "",
        "![Latency and memory over time](load.svg)",
        "",
    ]
    return "\n".join(lines), all(met for *_, met in rows)


def _memory_levels(reading: Reading) -> tuple[float, float]:
    """Return the median memory around the end of the first third, and at the end."""
    values = [value for _, value in reading.memory]
    tenth = max(1, len(values) // 10)
    third = len(values) // 3
    return float(np.median(values[third : third + tenth])), float(np.median(values[-tenth:]))


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, write the page and its plot, and return 1 if a goal is missed."""
    parser = argparse.ArgumentParser(prog="python -m bench.load")
    parser.add_argument("--minutes", type=float, default=15, help="in all; a third fast, then some balanced, then fast")
    parser.add_argument("--data-dir", type=Path, help="where to keep the filled data folder, or find one")
    options = parser.parse_args(arguments)
    whole = options.minutes * 60
    phases = [Phase("fast", whole / 3), Phase("balanced", whole / 7.5), Phase("fast", whole * (2 / 3 - 1 / 7.5))]
    with tempfile.TemporaryDirectory() as temporary:
        folder: Path = options.data_dir or Path(temporary)
        place = folder / "keys.json"
        if not place.exists():
            folder.mkdir(parents=True, exist_ok=True)
            place.write_text(json.dumps(asyncio.run(prepare(folder))))
        with serve(folder) as (url, pid):
            reading = asyncio.run(measure(url, pid, json.loads(place.read_text()), phases))
    page, met = report(reading, phases)
    PAGE.write_text(page, encoding="utf-8")
    PLOT.write_text(draw_plot(reading.requests, reading.memory), encoding="utf-8")
    print(f"\n{page}")
    return 0 if met else 1


if __name__ == "__main__":
    raise SystemExit(main())
