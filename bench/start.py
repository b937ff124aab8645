"""How long a new process takes."""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

from bench.report import Row

ROUNDS = 5
IMPORT_LIMIT_S = 0.3


def run() -> list[Row]:
    ragstone = [sys.executable, "-m", "ragstone"]
    imports = statistics.median(run_timed([sys.executable, "-c", "import ragstone"])[1] for _ in range(ROUNDS))
    with tempfile.TemporaryDirectory() as place:
        run_timed([*ragstone, "demo", "--data-dir", place, "--quiet"])
        search = [*ragstone, "search", "ferry timetable", "--kb", "demo", "--data-dir", place, "--json"]
        runs = [run_timed(search) for _ in range(ROUNDS)]
    wall = statistics.median(run[0] for run in runs)
    cpu = statistics.median(run[1] for run in runs)
    return [
        Row("start", "import ragstone, CPU", f"{imports:.3f} s", f"< {IMPORT_LIMIT_S} s", imports < IMPORT_LIMIT_S),
        Row("start", "cold `ragstone search`, wall / CPU", f"{wall:.2f} / {cpu:.2f} s", "best peer: LanceDB 1.4–1.8 s"),
    ]


def run_timed(command: list[str], environment: Mapping[str, str] = os.environ) -> tuple[float, float]:
    """Return the wall and CPU seconds of a process."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    started = time.perf_counter()
    subprocess.run(
        command, check=True, stdout=subprocess.DEVNULL, env={**environment, "NO_COLOR": "1"}, cwd=Path.home()
    )
    wall = time.perf_counter() - started
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
