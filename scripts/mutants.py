"""Change the code in small ways and see whether its tests notice: `make mutants`.

Each mutant runs in a child that is forked from a process which has the libraries imported, but nothing of Ragstone: the
child imports Ragstone with the one change and runs the tests next to it until one fails. A sample, the same every time,
keeps it within 20 minutes on two idle cores; `--all` takes every mutant. A child has a limit of processor time, so a
busy machine makes no mutant look killed; only a test that hangs for a minute ends it as well.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.abc
import importlib.machinery
import json
import os
import random
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import CodeType

from scripts.mutate import Mutant, apply_mutant, find_mutants

SOURCE = Path("src/ragstone")
SAMPLE = 420
LEAST = 0.85
SEED = 16
CPU_SECONDS = 120
OWN = {"ragstone", "tests", "bench", "scripts", "conftest"}
WALL_SECONDS = 1200
HANGING_SECONDS = 60
"""A test that takes longer waits for something that a mutant keeps from happening; its own takes milliseconds."""


@dataclass(frozen=True)
class Part:
    """Modules of one kind, and the tests that should notice a change in them."""

    modules: tuple[str, ...]
    tests: tuple[str, ...]
    options: tuple[str, ...] = ()


SETTINGS = ("answers", "records", "targets", "web", "retrieval", "tenants", "load", "designs", "tree")
PARTS = {
    "fusion": Part(
        ("query/arms.py",),
        tuple(
            f"tests/unit/query/test_{name}.py"
            for name in ("fusion", "kind", "seldom", "deadline", "pipeline", "modes", "variants")
        ),
    ),
    "filters": Part(
        ("core/filters.py", "stores/sql/filters.py"),
        ("tests/unit/core/test_filters.py", "tests/unit/stores/test_filter_sqlite.py"),
    ),
    "pipeline": Part(
        ("query/pipeline.py", "query/context.py", "query/rerank.py"),
        ("tests/unit/query",),
        ("--ignore=tests/unit/query/transform", "--ignore=tests/unit/query/test_compress.py"),
    ),
    "tools": Part(
        tuple(f"agents/{name}.py" for name in ("tools", "toolbox", "arguments", "budget", "results")),
        ("tests/unit/agents",),
    ),
    "gate": Part(("engine/access.py",), ("tests/unit/test_gate.py", "tests/flow/test_tenants_limits.py")),
    "erasure": Part(
        ("engine/erasure.py", "stores/ledger/erasure.py"),
        ("tests/unit/stores/test_erasure.py", "tests/flow/test_erasure.py"),
        ("-k", "not postgres"),
    ),
    "settings": Part(
        tuple(f"settings/{name}.py" for name in SETTINGS),
        (
            "tests/unit/core/test_settings_contract.py",
            "tests/unit/core/test_settings.py",
            "tests/unit/core/test_targets.py",
            "tests/unit/core/test_tenant_settings.py",
            "tests/unit/core/test_web.py",
            "tests/unit/evaluate/test_targets.py",
            "tests/unit/test_configure.py",
            "tests/unit/test_design_keys.py",
            "tests/unit/test_profiles.py",
        ),
    ),
}


class MutatedFinder(importlib.abc.MetaPathFinder, importlib.abc.InspectLoader):
    """Loads one module from changed code, and no other."""

    def __init__(self, module: str, path: Path, code: CodeType) -> None:
        self._module, self._path, self._code = module, path, code

    def find_spec(self, fullname: str, path: object, target: object = None) -> importlib.machinery.ModuleSpec | None:
        """Return the spec of the changed module."""
        if fullname != self._module:
            return None
        return importlib.machinery.ModuleSpec(fullname, self, origin=str(self._path))

    def get_code(self, fullname: str) -> CodeType:
        """Return the changed code."""
        return self._code

    def get_source(self, fullname: str) -> str:
        """Return the source as it was, which tracebacks show."""
        return self._path.read_text()


@dataclass(frozen=True)
class Case:
    """A mutant of a module that belongs to a part."""

    part: str
    module: str
    mutant: Mutant

    @property
    def name(self) -> str:
        """Return where the change is and what it is."""
        return f"{self.module}:{self.mutant.line} {self.mutant.what}"


def find_cases(parts: Sequence[str]) -> list[Case]:
    """Return the mutants of all modules of these parts."""
    return [
        Case(part, module, mutant)
        for part in parts
        for module in PARTS[part].modules
        for mutant in find_mutants((SOURCE / module).read_text())
    ]


def draw_sample(cases: Sequence[Case], size: int) -> list[Case]:
    """Return so many of the cases, of each part its share, the same ones every time."""
    if size >= len(cases):
        return list(cases)
    chosen: list[Case] = []
    for part in dict.fromkeys(case.part for case in cases):
        own = [case for case in cases if case.part == part]
        random.Random(f"{SEED} {part}").shuffle(own)
        chosen += own[: max(1, round(size * len(own) / len(cases)))]
    return chosen


def preload_libraries(parts: Sequence[str]) -> None:
    """Import what the tests import, except Ragstone and the tests, so that children need not."""
    tests = [test for part in parts for test in PARTS[part].tests]
    script = (
        "import json, sys, pytest\n"
        f"pytest.main({['--collect-only', '-q', '-q', '-p', 'no:cacheprovider', *tests]!r})\n"
        "print('\\n' + json.dumps(sorted(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    names = {name.partition(".")[0] for name in json.loads(done.stdout.splitlines()[-1])}
    for name in sorted(names - OWN - sys.stdlib_module_names):
        with suppress(Exception):  # a module that only exists inside another program's run
            importlib.import_module(name)


def run_case(case: Case | None, part: str) -> int:
    """Fork a child that runs a part's tests with a change, or without one; return its process id."""
    child = os.fork()
    if child:
        return child
    status = 70
    try:
        _quieten()
        resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS))
        signal.alarm(WALL_SECONDS)
        if case is not None:
            path = SOURCE / case.module
            changed = compile(apply_mutant(path.read_text(), case.mutant), str(path), "exec")
            name = "ragstone." + case.module.removesuffix(".py").replace("/", ".")
            sys.meta_path.insert(0, MutatedFinder(name, path, changed))
        import pytest

        options = ["-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "--no-header", "--tb=no"]
        options += [
            f"--timeout={HANGING_SECONDS}",
            "-W",
            "ignore:Module already imported",
        ]  # that is the point of importing them before
        status = int(pytest.main([*options, *PARTS[part].options, *PARTS[part].tests]))
    except BaseException:
        status = 71
    finally:
        os._exit(status)


def _quieten() -> None:
    quiet = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(quiet, stream)


def run_all(cases: Sequence[Case], jobs: int, until: float) -> dict[Case, bool]:
    """Return whether each case was killed; cases that are not begun when the time is up have no entry."""
    waiting = list(reversed(cases))
    running: dict[int, Case] = {}
    killed: dict[Case, bool] = {}
    while waiting or running:
        while waiting and len(running) < jobs and time.monotonic() < until:
            case = waiting.pop()
            running[run_case(case, case.part)] = case
        if not running:
            break
        child, status = os.wait()
        case = running.pop(child)
        killed[case] = status != 0
        print(f"{len(killed)}/{len(cases)} {'killed  ' if status else 'SURVIVED'} {case.part} {case.name}", flush=True)
    return killed


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the sample and print how many were killed, by part; return 1 when too few were."""
    parser = argparse.ArgumentParser(prog="python -m scripts.mutants")
    parser.add_argument("parts", nargs="*", help=f"default: all of {', '.join(PARTS)}")
    parser.add_argument("--sample", type=int, default=SAMPLE)
    parser.add_argument("--all", action="store_true", help="every mutant, however long it takes")
    parser.add_argument("--jobs", type=int, default=2 * (os.cpu_count() or 1), help="some wait for what never comes")
    parser.add_argument("--minutes", type=float, default=20)
    options = parser.parse_args(arguments)
    parts = options.parts or list(PARTS)
    cases = find_cases(parts)
    sample = draw_sample(cases, len(cases) if options.all else options.sample)
    until = time.monotonic() + (10**9 if options.all else options.minutes * 60)
    preload_libraries(parts)
    for part in parts:
        if os.waitpid(run_case(None, part), 0)[1]:
            print(f"the tests of {part} fail without any change")
            return 2
    # Every part gets its turn when the time does not suffice for all.
    random.Random(SEED).shuffle(sample)
    killed = run_all(sample, options.jobs, until)
    print(f"\n{len(killed)} of {len(cases)} mutants tried, seed {SEED}")
    for part in parts:
        own = [was for case, was in killed.items() if case.part == part]
        print(f"{part:10} {sum(own):4} of {len(own):4} killed" + (f", {sum(own) / len(own):.0%}" if own else ""))
    share = sum(killed.values()) / len(killed)
    print(f"{'all':10} {sum(killed.values()):4} of {len(killed):4} killed, {share:.1%} (wanted: {LEAST:.0%})")
    for case, was in killed.items():
        if not was:
            print(f"survived: {case.name}")
    return 0 if share >= LEAST else 1


if __name__ == "__main__":
    raise SystemExit(main())
