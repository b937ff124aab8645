"""kill -9 during an import: every document is whole or absent, and the next import makes up the rest.

`RAGSTONE_MOVE_KILLS=50 pytest tests/faults/test_import_kill.py -s` is the long run.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.unit.moves.sites import Site, contents, site, stock
from tests.warm import warm_python

KILLS = int(os.environ.get("RAGSTONE_MOVE_KILLS", "2"))
DOCUMENTS = 60


async def lines_of(one: Site, archive: Path, what: str) -> dict[str, bytes]:
    """What an export of a site holds, by id."""
    await one.mover.export_archive(archive, overwrite=True)
    members = contents(archive)
    lines = b"".join(content for name, content in sorted(members.items()) if what in name).splitlines()
    return {json.loads(line)["id"]: line for line in lines}


@pytest.mark.parametrize("vectors", ["sqlite", "chroma"])
async def test_an_import_that_is_killed_leaves_nothing_half_done(
    tmp_path: Path, vectors: str, monkeypatch: pytest.MonkeyPatch, record_property: Callable[[str, object], None]
) -> None:
    monkeypatch.setattr("ragstone.transfer.compare.ledger.CHUNKS", 15)
    seed = random.randrange(10**6)
    print(f"seed {seed}")
    choose = random.Random(seed)
    async with site(tmp_path / "a") as here:
        await stock(here, DOCUMENTS)
        ours = {what: await lines_of(here, tmp_path / "x.zip", what) for what in ("documents", "chunks")}
    for turn in range(KILLS):
        folder = tmp_path / f"b{turn}"
        _kill_one(tmp_path / "x.zip", folder, vectors, choose)
        async with site(folder, store={"vectors": vectors}) as there:
            if await there.stores.ledger.of("default").kbs():
                theirs = {what: await lines_of(there, tmp_path / "y.zip", what) for what in ours}
                for what, lines in theirs.items():
                    assert lines.items() <= ours[what].items(), f"{what} differ after a kill"
            report = await there.mover.import_archive(tmp_path / "x.zip")
            assert report.added + report.unchanged == DOCUMENTS
            for what, lines in ours.items():
                assert await lines_of(there, tmp_path / "y.zip", what) == lines
            kb = await there.kb()
            stats = await there.stores.ledger.of("default").stats(kb)
            assert (stats.documents, stats.chunks) == (DOCUMENTS, 3 * DOCUMENTS)
    record_property("injected", KILLS)


def _kill_one(archive: Path, folder: Path, vectors: str, choose: random.Random) -> None:
    """Let an import run until some time after one of its parts."""
    part = choose.choice(["check", *(f"import default {done}" for done in (5, 20, 35))])
    ended = subprocess.run(
        [
            *(*warm_python(), "-m", "tests.faults.import_process"),
            *(str(archive), str(folder), vectors, part, str(choose.uniform(0.001, 0.02))),
        ],
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    assert ended.returncode == -signal.SIGKILL, ended.stderr
