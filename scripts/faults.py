"""Inject every fault in its long form and write docs/faults.md: `make faults`, or `make faults ARGS="ssrf deletion"`.

The faults are the tests of tests/faults, which inject few of each in the test suite and as many as an environment
variable says here. A test records how many it injected (`record_property("injected", …)`); of one that records nothing
every passed case counts as one. Results are kept in docs/faults.json, so a run of some rows leaves the others.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from xml.etree import ElementTree as ET

from bench.report import machine

RESULTS = Path(".pytest_cache/faults")
PAGE = Path("docs/faults.md")
RECORDS = Path("docs/faults.json")
SECONDS = 7200
"""A row that takes longer has failed."""
TENANT_MACHINE = "tests/faults/test_tenant_machine.py"
LONG_LIVES = {"RAGSTONE_MACHINE_EXAMPLES": "36", "RAGSTONE_MACHINE_STEPS": "100"}
UNFINISHED = '<testsuite time="{:.0f}"><testcase name="a run without results"><error/></testcase></testsuite>'


@dataclass(frozen=True)
class Fault:
    """A kind of fault, the tests that inject it, and how often it must be injected without harm."""

    goal: str
    wanted: int
    unit: str
    tests: str
    long_form: Mapping[str, str] = field(default_factory=dict)

    @property
    def command(self) -> str:
        """Return what a person types to repeat this row alone."""
        variables = (f"{name}={value}" for name, value in self.long_form.items())
        return " ".join([*variables, "pytest", self.tests])


FAULTS = {
    "kill": Fault(
        "kill -9 of a writer at a random moment: nothing acknowledged is lost or half there",
        1000,
        "kills",
        "tests/faults/test_kill.py",
        {"RAGSTONE_KILL_ROUNDS": "1000"},
    ),
    "workers": Fault(
        "kill -9 of workers: every job ends, no chunk is double, p95 of redelivery ≤ 60 s",
        500,
        "kills",
        "tests/faults/test_worker_kill.py",
        {"RAGSTONE_WORKER_KILLS": "500", "RAGSTONE_KILL_PAUSE": "1"},
    ),
    "service": Fault(
        "kill -9 of the service, its worker or both: every acknowledged upload is found by id, word and vector",
        200,
        "kills",
        "tests/faults/test_service_kill.py",
        {"RAGSTONE_SERVICE_KILLS": "200"},
    ),
    "points": Fault(
        "crash at each named point of building and renaming a collection, 20 times: old or new, whole",
        440,
        "crashes",
        "tests/faults/test_corpus_kill.py tests/faults/test_rename_kill.py",
        {"RAGSTONE_CRASHES": "20"},
    ),
    "article": Fault(
        "kill -9 at each node of the article pipeline: the run resumes there and ends in the same state",
        9,
        "kills",
        "tests/faults/test_article_kill.py",
        {"RAGSTONE_ARTICLE_NODES": "9"},
    ),
    "reembed": Fault(
        "kill -9 while a kb moves to another model: searches see one model, the next run goes on",
        100,
        "kills",
        "tests/faults/test_reembed_kill.py",
        {"RAGSTONE_REEMBED_KILLS": "100"},
    ),
    "import": Fault(
        "kill -9 of an import (SQLite, Chroma): every document is whole or absent, the next import adds the rest",
        50,
        "kills",
        "tests/faults/test_import_kill.py",
        {"RAGSTONE_MOVE_KILLS": "25"},
    ),
    "machine": Fault(
        "20 tenants do random things at once, against a model, on files of three kinds: nothing of another is seen",
        6_000,
        "steps",
        f"{TENANT_MACHINE}::test_nobody_is_told_what_is_anothers",
        LONG_LIVES,
    ),
    "machine-postgres": Fault(
        "the same in one PostgreSQL database, with its own full-text search and with BM25",
        4_000,
        "steps",
        f"{TENANT_MACHINE}::test_nobody_is_told_what_is_anothers_in_one_database",
        LONG_LIVES,
    ),
    "tenants": Fault(
        "attacks of one tenant on another, on every kind of store: nothing is read or changed",
        40,
        "attacks",
        "tests/faults/test_tenant_attacks.py",
    ),
    "processes": Fault(
        "two processes on one data folder: each sees what the other has committed",
        2,
        "cases",
        "tests/faults/test_two_processes.py",
    ),
    "hostile": Fault(
        "hostile files: text or a typed error, ≤ 60 s, child ≤ 1 GiB, the parent grows < 50 MB, nothing else happens",
        300,
        "files",
        "tests/faults/test_hostile_300.py",
        {"RAGSTONE_HOSTILE": "all"},
    ),
    "inputs": Fault(
        "empty, damaged, wrongly encoded and endless input: a typed failure",
        50,
        "inputs",
        "tests/faults/test_inputs.py tests/faults/test_hostile_files.py tests/faults/test_hung_readers.py",
    ),
    "ssrf": Fault(
        "forms of internal addresses, given or redirected to, and names that rebind: 0 connections",
        1500,
        "attempts",
        "tests/faults/test_ssrf.py",
        {"RAGSTONE_REBINDS": "1000"},
    ),
    "injection": Fault(
        "orders in a retrieved passage to a model that obeys: no call, no link, no unquoted sentence",
        500,
        "payloads",
        "tests/faults/test_injection.py",
        {"RAGSTONE_INJECTIONS": "500"},
    ),
    "claims": Fault(
        "negated or number-swapped twins of true sentences: none is VERIFIED",
        200,
        "twins",
        "tests/quality/test_claims.py",
        {"RAGSTONE_CLAIM_PAIRS": "200"},
    ),
    "hostile-claims": Fault(
        "claims and replies made to take long: each within its budget of steps and 1 s of processor time, what was "
        "not read is said, and other searches go on",
        2000,
        "checks",
        "tests/faults/test_hostile_claims.py",
        {"RAGSTONE_HOSTILE_CLAIMS": "1000"},
    ),
    "deletion": Fault(
        "documents that were used and erased: in no search, store, log or file",
        1000,
        "canaries",
        "tests/faults/test_deletion.py",
        {"RAGSTONE_CANARIES": "1000"},
    ),
    "grid": Fault(
        "vector database, LLM, embedder, source and web search behind the service that are down, hang, reset, drip, "
        "answer 500, 429, half or off schema: a typed answer within the deadline and a second, back within 10 s",
        120,
        "faults",
        "tests/faults/test_dependencies.py",
        {"RAGSTONE_DEPENDENCY_ROUNDS": "3"},
    ),
    "leaks": Fault(
        "ids of another tenant on every route and tool: answered as unknown ones are, medians of 200 calls within 10 %",
        100,
        "cases",
        "tests/serve/http/test_leaks.py",
        {"RAGSTONE_LEAK_ROUNDS": "200"},
    ),
    "api": Fault(
        "requests made from the OpenAPI document by schemathesis, right and wrong: no 5xx, every answer as described",
        20_000,
        "requests",
        "tests/serve/http/test_openapi.py",
        {"RAGSTONE_API_EXAMPLES": "200"},
    ),
    "dependencies": Fault(
        "vector databases, PostgreSQL, LLM, embedder and web search that are down, slow, cut off or wrong",
        100,
        "cases",
        "tests/unit/stores/vectors/qdrant tests/unit/stores/vectors/test_rest.py"
        " tests/unit/stores/test_postgres_faults.py tests/unit/stores/test_sqlite_faults.py"
        " tests/unit/models/test_llm.py tests/unit/models/test_remote.py tests/unit/websearch",
    ),
}
NOT_RUN = {
    "kill -9 of the whole service, 500 rounds": "The row of the service asks for 200.",
    "load, 50k chunks and 20 tenants at 20 requests a second": "`make load` measures it and writes docs/load.md.",
}


@dataclass(frozen=True)
class Result:
    """What came of a row: how much was injected, how many cases failed, and what the tests noted."""

    injected: int
    failed: tuple[str, ...]
    noted: tuple[str, ...]
    seconds: float
    commit: str
    date: str

    def is_met(self, fault: Fault) -> bool:
        """Return whether nothing failed, and as much was injected as was wanted."""
        return not self.failed and self.injected >= fault.wanted


def read_result(path: Path, commit: str = "") -> Result:
    """Return the result that a run of pytest left in a JUnit file."""
    injected, failed, noted = 0, [], []
    # The file is one that pytest wrote on this machine a moment ago, not one that came from outside.
    root = ET.parse(path).getroot()
    for case in root.iter("testcase"):
        if case.find("failure") is not None or case.find("error") is not None:
            failed.append(case.get("name", ""))
            continue
        if case.find("skipped") is not None:
            continue
        told = {entry.get("name"): entry.get("value", "") for entry in case.findall("properties/property")}
        injected += int(told.get("injected", "1"))
        noted += [told["noted"]] if "noted" in told else []
    seconds = sum(float(suite.get("time", "0")) for suite in root.iter("testsuite"))
    return Result(injected, tuple(failed), tuple(noted), round(seconds), commit, f"{datetime.now(UTC):%Y-%m-%d}")


def read_records() -> dict[str, Result]:
    """Return the newest result of each row that has one."""
    records = json.loads(RECORDS.read_text(encoding="utf-8")) if RECORDS.exists() else {}
    return {
        name: Result(**record | {"failed": tuple(record["failed"]), "noted": tuple(record["noted"])})
        for name, record in records.items()
        if name in FAULTS
    }


def run_fault(name: str, fault: Fault, commit: str) -> Result:
    """Run the tests of a row in their long form, and return what came of it."""
    place = RESULTS / f"{name}.xml"
    place.unlink(missing_ok=True)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--timeout={SECONDS}", "--tb=short"]
    command += [f"--junit-xml={place}", *fault.tests.split()]
    started = time.monotonic()
    print(f"{name}: {fault.command}", flush=True)
    with (RESULTS / f"{name}.log").open("w") as log:
        try:
            ended = subprocess.run(
                command,
                env={**os.environ, **fault.long_form},
                stdout=log,
                stderr=subprocess.STDOUT,
                timeout=SECONDS,
                check=False,
            ).returncode
        except subprocess.TimeoutExpired:
            ended = -1
    print(f"{name}: ended with {ended} after {time.monotonic() - started:.0f} s", flush=True)
    if not place.exists() or (ended and not read_result(place).failed):
        place.write_text(UNFINISHED.format(time.monotonic() - started))
    return read_result(place, commit)


def current_commit() -> str:
    """Return the short name of the commit that is checked out, with a `+` when files of code differ from it."""

    def git(*arguments: str) -> str:
        return subprocess.run(["git", *arguments], capture_output=True, text=True, check=True).stdout.strip()

    return git("rev-parse", "--short=12", "HEAD") + ("+" if git("status", "--porcelain", "src", "tests") else "")


def render_page(results: Mapping[str, Result], kind: str) -> str:
    """Return the page about all rows that have a result."""
    lines = [
        "# Faults that were injected",
        "",
        "Written by `make faults`. Each row is a test that also runs in `make test`, there with few rounds. With no",
        "failure in N rounds the rate of failure is below 3/N, with 95 % confidence.",
        "",
        f"**Machine:** {kind}. It is shared with other work, so times are upper bounds.",
        "",
        "| Fault, and what must be so | Injected | Wanted | Result | Noted | Took | Commit, date |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, fault in FAULTS.items():
        if (result := results.get(name)) is None:
            lines.append(f"| {fault.goal} | 0 | {fault.wanted:,} | **not run** | | | |")
            continue
        lines.append(
            f"| {fault.goal} | {result.injected:,} {fault.unit} | {fault.wanted:,} | {_verdict(fault, result)} "
            f"| {'; '.join(result.noted)} | {result.seconds:.0f} s | {result.commit}, {result.date} |"
        )
    lines += ["", "## Commands", "", "Each row alone:", "", "```sh"]
    lines += [FAULTS[name].command for name in FAULTS]
    lines += ["```", "", "## Figures that no run here covers", ""]
    lines += [f"- **{figure}.** {reason}" for figure, reason in NOT_RUN.items()]
    return "\n".join(lines) + "\n"


def _verdict(fault: Fault, result: Result) -> str:
    if result.failed:
        return f"**failed**: {len(result.failed)} ({', '.join(f'`{name}`' for name in result.failed[:5])})"
    return "0 failures" if result.is_met(fault) else "**failed**: too few were injected"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the rows that are named, or all; return 1 when a row of the page is not met."""
    parser = argparse.ArgumentParser(prog="python -m scripts.faults")
    parser.add_argument("rows", nargs="*", help=f"default: all of {', '.join(FAULTS)}")
    parser.add_argument("--jobs", type=int, default=2, help="rows that run side by side")
    options = parser.parse_args(arguments)
    if unknown := set(options.rows) - set(FAULTS):
        parser.error(f"no such row: {', '.join(sorted(unknown))}")
    RESULTS.mkdir(parents=True, exist_ok=True)
    commit = current_commit()
    rows = options.rows or list(FAULTS)
    results = read_records()
    with ThreadPoolExecutor(options.jobs) as pool:
        results |= zip(rows, pool.map(lambda name: run_fault(name, FAULTS[name], commit), rows), strict=True)
    records = {name: asdict(results[name]) for name in FAULTS if name in results}
    RECORDS.write_text(json.dumps(records, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    PAGE.write_text(render_page(results, machine()), encoding="utf-8")
    missed = [name for name, fault in FAULTS.items() if name not in results or not results[name].is_met(fault)]
    print(f"{PAGE} is written; " + (f"not met: {', '.join(missed)}" if missed else "all rows are met"))
    return 1 if missed else 0


if __name__ == "__main__":
    raise SystemExit(main())
