"""kill -9 at any moment of a move to another model: the kb stays whole, and the next run goes on.

`RAGSTONE_REEMBED_KILLS=100 pytest tests/faults/test_reembed_kill.py -s` is the long run.
"""

from __future__ import annotations

import asyncio
import os
import random
import signal
import sqlite3
import subprocess
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from tests.faults import reembed_process
from tests.unit.ingest.kit import item
from tests.unit.ingest.move_kit import MoveKit
from tests.warm import warm_python

from ragstone.testing.fakes import FakeEmbedder

KILLS = int(os.environ.get("RAGSTONE_REEMBED_KILLS", "4"))
DOCUMENTS = 48
LINES = DOCUMENTS // reembed_process.BATCH + DOCUMENTS + 8
"""About as many as a run has: it is killed while it builds, while it compares, and around the flip."""
CONTRADICTIONS = {
    "a vector has no chunk": (
        "SELECT v.chunk_seq FROM vectors v LEFT JOIN chunks c ON c.seq = v.chunk_seq WHERE c.seq IS NULL"
    ),
    "a vector has no Space": (
        "SELECT v.space_id FROM vectors v LEFT JOIN spaces s ON s.id = v.space_id WHERE s.id IS NULL"
    ),
    "a live chunk has no vector in the live Space": (
        "SELECT c.seq FROM knowledge_bases k JOIN chunks c ON c.kb_id = k.id LEFT JOIN vectors v "
        "ON v.chunk_seq = c.seq AND v.space_id = k.live_space WHERE v.chunk_seq IS NULL"
    ),
    "the pointer and the states disagree": (
        "SELECT s.id FROM spaces s JOIN knowledge_bases k ON k.id = s.kb_id "
        "WHERE (s.state = 'live') <> (s.id = k.live_space)"
    ),
}


@pytest.mark.req("R-EMB-22")
async def test_a_move_that_is_killed_goes_on(
    tmp_path: Path, record_property: Callable[[str, object], None], capsys: pytest.CaptureFixture[str]
) -> None:
    seed = random.randrange(10**6)
    print(f"seed {seed}")
    choose = random.Random(seed)
    kit = MoveKit(tmp_path)
    await kit.run([item(f"n{number}") for number in range(DOCUMENTS)])
    await kit.ledger.close()
    moves, built, killed = 1, 0, 0
    while killed < KILLS:
        ended = await asyncio.to_thread(_run, tmp_path, f"model{moves}", choose.randrange(1, LINES))
        spaces = await _check(tmp_path)
        live = f"model{moves}@1" in {model for model, state, _ in spaces if state == "live"}
        assert live or not ended
        killed += not ended
        now_built = next((count for model, _, count in spaces if model == f"model{moves}@1"), 0)
        assert now_built >= built
        moves, built = (moves + 1, 0) if live else (moves, now_built)
    assert await asyncio.to_thread(_run, tmp_path, f"model{moves}", None)
    assert await _check(tmp_path) == [(f"model{moves}@1", "live", DOCUMENTS)]
    record_property("injected", killed)
    record_property("noted", f"{moves} moves, all complete")
    with capsys.disabled():
        print(f" [{KILLS} kills, {moves} moves]", end="")


def _run(folder: Path, model: str, kill_at: int | None) -> bool:
    """Let a process move the kb, and kill it when it has said so many lines; whether it came to its end."""
    child = subprocess.Popen(
        [*warm_python(), "-m", "tests.faults.reembed_process", str(folder), model],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert child.stdout is not None
    assert child.stderr is not None
    last, said = "", 0
    with child.stdout, child.stderr:
        for line in child.stdout:
            last, said = line.strip(), said + 1
            if said == kill_at:
                child.send_signal(signal.SIGKILL)
                break
        problem = child.stderr.read()
    code = child.wait()
    assert code in (0, -signal.SIGKILL), problem
    assert code or last in ("done promoted", "done filled")
    return code == 0


async def _check(folder: Path) -> list[tuple[str, str, int]]:
    """The file holds no contradiction, and everything is found; model, state and vectors of each Space."""
    kit = MoveKit(folder)
    spaces = await kit.spaces()
    for one in spaces:
        name = one.space.model.partition("@")[0]
        kit.models.setdefault(name, FakeEmbedder(name=name))
    assert len(await kit.near("n1")) == DOCUMENTS
    async with kit.ledger.file("t") as file:
        path = file.path
    await kit.ledger.close()
    with closing(sqlite3.connect(path)) as connection:
        for what, query in CONTRADICTIONS.items():
            assert connection.execute(query).fetchall() == [], what
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    return [(one.space.model, one.space.state, one.vectors) for one in spaces]
