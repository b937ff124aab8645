"""Run all tests in groups, several at a time: `python -m scripts.suite --workers 6`.

A group is a process, so that every test is collected once and a server is started by the group that needs it. The
process is a copy of this one, which has imported Ragstone: importing it a dozen times would take a minute.
"""

from __future__ import annotations

import argparse
import gc
import importlib
import os
import pkgutil
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

import ragstone

ROOT = Path(__file__).resolve().parent.parent
RESULTS = Path(".pytest_cache/results")
COVERED = ("core", "query", "language")
"""Folders of Ragstone that their own tests must cover."""
FOLDERS = ("faults", "flow", "unit/ingest", "conformance", "serve", "serve/cli", "unit", "unit/stores", "quality")
LONGEST = (
    "faults",
    "flow",
    "unit-ingest",
    "conformance",
    "serve",
    "serve-cli",
    "postgres",
    "milvus",
    "unit",
    "unit-stores",
    "quality",
)
SUITES = "ragstone.testing.suites"
"""They import plugins of pytest, which are to be imported by pytest."""
LIBRARIES = (
    "chromadb",
    "docx",
    "hypothesis.strategies",
    "mammoth",
    "mcp",
    "openai",
    "openpyxl",
    "openvino",
    "pptx",
    "psycopg",
    "pytest",
    "qdrant_client",
    "redis",
    "reportlab.platypus",
)
"""What several groups import beside Ragstone; none of it starts a thread when it is imported."""


def list_groups() -> dict[str, list[str]]:
    """Return what pytest is told for each group, the longest first; every test is in one of them."""
    milvus = "tests/conformance/test_milvus.py"
    postgres = [
        str(path.relative_to(ROOT))
        for path in sorted((ROOT / "tests/conformance").glob("test_*.py"))
        if "postgres_server" in path.read_text(encoding="utf-8")
    ]
    covered = [f"tests/unit/{name}" for name in COVERED]
    groups = {"milvus": [milvus], "postgres": postgres, "covered": covered}
    apart = {"conformance": [milvus, *postgres], "unit": covered}
    for folder in FOLDERS:
        inner = [f"tests/{other}" for other in FOLDERS if other.startswith(f"{folder}/")]
        left_out = inner + apart.get(folder, [])
        groups[folder.replace("/", "-")] = [f"tests/{folder}", *(f"--ignore={path}" for path in left_out)]
    folders = {path.parent.name for path in (ROOT / "tests").glob("*/test_*.py")}
    groups["rest"] = [f"tests/{name}" for name in sorted(folders.difference(FOLDERS))]
    return {name: groups[name] for name in (*LONGEST, *sorted(groups.keys() - set(LONGEST)))}


def import_all() -> None:
    """Import what the groups would import one by one."""
    for module in pkgutil.walk_packages(ragstone.__path__, "ragstone."):
        if not module.name.endswith("__main__") and not module.name.startswith(SUITES):
            importlib.import_module(module.name)
    for name in LIBRARIES:
        importlib.import_module(name)
    from hypothesis.configuration import notice_initialization_restarted
    from hypothesis.internal.charmap import charmap
    from hypothesis.internal.conjecture.providers import _get_local_constants

    charmap()
    _get_local_constants()  # it reads the source of every module of Ragstone
    notice_initialization_restarted(warn=False)  # that it was slow is known
    gc.collect()
    gc.freeze()


def copy(run: Callable[[], int]) -> int:
    """Start a copy of this process that runs something and ends; return its id."""
    child = os.fork()
    if child == 0:
        from tests.leaving import leave

        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        leave(run())
    return child


def run_group(name: str, arguments: list[str]) -> int:
    """Run the tests of a group; return the status that pytest ends with."""
    with _path(name, "log").open("wb") as log:
        os.dup2(log.fileno(), 1)
        os.dup2(log.fileno(), 2)
    given = ["-q", f"--junit-xml={_path(name, 'xml')}", *arguments]
    if name == "covered":  # coverage sees nothing of what is imported before it begins
        source = ",".join(f"ragstone.{folder}" for folder in COVERED)
        os.execv(
            sys.executable, [sys.executable, "-m", "coverage", "run", f"--source={source}", "-m", "pytest", *given]
        )
    import pytest

    sys.argv = ["pytest", *given]
    return pytest.main(given)


def _path(name: str, kind: str) -> Path:
    return RESULTS / f"test-{name}.{kind}"


def serve_copies(writing: int, path: str) -> int:
    """Be the process that tests copy when they need one that has imported Ragstone; its first word says it is ready."""
    from tests.warm import serve

    os.dup2(writing, 1)
    serve(path)
    return 0


def start_warm_process(folder: Path) -> int:
    """Start the process that tests copy, tell the groups where it listens, and return its id."""
    path = str(folder / "s")
    reading, writing = os.pipe()
    child = copy(partial(serve_copies, writing, path))
    os.close(writing)
    with open(reading, "rb") as said:  # noqa: PTH123
        assert said.readline() == b"warm\n"
    os.environ["WARM_PYTHON"] = path
    return child


def report(name: str, status: int) -> bool:
    """Print how a group ended, with its log if it failed; return whether it failed."""
    log = _path(name, "log").read_text(encoding="utf-8", errors="replace")
    if status:
        print(log)
    print(f"{name}: {log.rstrip().rpartition(chr(10))[2] or status}", flush=True)
    return status != 0


def run_groups(groups: dict[str, list[str]], workers: int, warm: int) -> bool:
    """Run groups, so many at a time; return whether one failed. Who ends this process ends the groups."""
    waiting, running, failed = list(groups), dict[int, str](), False

    def stop(*_: object) -> None:
        for child in (*running, warm):
            os.kill(child, signal.SIGTERM)
        sys.exit(1)

    signal.signal(signal.SIGTERM, stop)
    while waiting or running:
        while waiting and len(running) < workers:
            name = waiting.pop(0)
            running[copy(partial(run_group, name, groups[name]))] = name
        child, status = os.wait()
        if child in running:
            failed |= report(running.pop(child), status)
    return failed


def main() -> int:
    """Return 1 if a test failed. Copies of this process end within `copy`, and do nothing of what comes after it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workers", type=int, default=6, help="how many groups run at a time")
    parser.add_argument("groups", nargs="*", help="names of groups; all of them unless given")
    given = parser.parse_args()
    shutil.rmtree(RESULTS, ignore_errors=True)
    RESULTS.mkdir(parents=True)
    import_all()
    folder = Path(tempfile.mkdtemp(prefix="warm"))
    warm = start_warm_process(folder)
    groups = list_groups()
    failed = run_groups({name: groups[name] for name in given.groups or groups}, given.workers, warm)
    os.kill(warm, signal.SIGKILL)
    shutil.rmtree(folder)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
