"""Customers who want the same time at the same moment, in several processes: one gets it."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from tests.warm import warm_python

from ragstone import Settings, open_engine
from ragstone.core.shop import Service
from ragstone.core.shop.windows import parse_windows

PROCESSES, ATTEMPTS, SLOTS = 3, 170, 20
CUSTOMERS = """
import asyncio, json, sys
from datetime import datetime
from pathlib import Path
from ragstone import Settings, open_engine
from ragstone.core.errors import SlotTaken

async def main(folder, name, attempts, starts):
    got, lost = [], 0
    async with open_engine(Settings(data_dir=Path(folder))) as engine:
        shop = engine.workspace("acme").shop

        async def try_one(number):
            nonlocal lost
            start = starts[(number * 7) % len(starts)]
            try:
                made = await shop.book("massage", datetime.fromisoformat(start), f"{name} {number}")
                got.append([start, made.id])
            except SlotTaken:
                lost += 1

        print("ready", flush=True)
        sys.stdin.readline()
        for first in range(0, int(attempts), 17):
            await asyncio.gather(*(try_one(number) for number in range(first, first + 17)))
    print(json.dumps({"got": got, "lost": lost}))

asyncio.run(main(*sys.argv[1:4], json.loads(sys.argv[4])))
"""


@pytest.mark.req("R-DOM-38")
async def test_no_slot_is_booked_twice_in_500_attempts_of_several_processes(tmp_path: Path) -> None:
    async with open_engine(Settings(data_dir=tmp_path)) as engine:
        shop = engine.workspace("acme").shop
        hours = parse_windows("mon-sun 00:00-24:00")
        await shop.put_service(Service("massage", "Massage", minutes=60, windows=hours))
        tomorrow = (datetime.now(UTC) + timedelta(days=1)).date()
        free = await shop.free_slots("massage", tomorrow, tomorrow)
        starts = json.dumps([slot.starts_at.isoformat() for slot in free[:SLOTS]])
        racing = [
            await asyncio.create_subprocess_exec(
                *(*warm_python(), "-c", CUSTOMERS, str(tmp_path), f"customer {number}", str(ATTEMPTS), starts),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
            )
            for number in range(PROCESSES)
        ]
        for process in racing:
            assert process.stdout
            assert (await process.stdout.readline()).strip() == b"ready"
        ended = await asyncio.gather(*(process.communicate(b"go\n") for process in racing))
        results = [json.loads(out) for out, _ in ended]
        assert sum(len(one["got"]) + one["lost"] for one in results) == PROCESSES * ATTEMPTS
        won = Counter(start for one in results for start, _ in one["got"])
        assert sorted(won.values()) == [1] * SLOTS
        kept = await shop.appointments(service_id="massage")
        assert {one.id for one in kept} == {made for one in results for _, made in one["got"]}
        left = await shop.free_slots("massage", tomorrow, tomorrow)
        assert [slot.starts_at for slot in left] == [slot.starts_at for slot in free[SLOTS:]]
