"""Services and workers that can be killed: `service_process FOLDER PORT` starts one for each line that it reads."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path

from tests.faults.worker_process import open_engine

import ragstone.ingest.jobs.worker
import ragstone.serve.http.app
from ragstone.serve.server import run_app

HOST = "127.0.0.1"


async def serve(folder: Path, port: int) -> None:
    """Serve without a worker."""
    async with open_engine(folder) as engine:
        await run_app(ragstone.serve.http.app.build_app(engine, worker=False), HOST, port, lambda _: asyncio.sleep(0))


async def work(folder: Path) -> None:
    """Do queued jobs."""
    async with open_engine(folder) as engine:
        await engine.worker().run()


def nursery(folder: Path, port: int) -> None:
    """Fork a process for each line (`serve` or `work`) and say its id: a copy starts sooner than an interpreter."""
    ragstone.ingest.jobs.worker.MOST_JOBS = 4
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    for line in sys.stdin:
        pid = os.fork()
        if pid == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            asyncio.run(serve(folder, port) if line.strip() == "serve" else work(folder))
            os._exit(0)
        print(pid, flush=True)


if __name__ == "__main__":
    nursery(Path(sys.argv[1]), int(sys.argv[2]))
