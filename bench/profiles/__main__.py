"""`python -m bench.profiles [PROFILE…] [--data DIR]`: each profile in its own process, then the record and the page."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import time
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path

from scripts.faults import current_commit

from bench.profiles.measure import TRIAL, WHOLE, Size, measure_profile
from bench.profiles.page import judge, render_page
from bench.profiles.record import PROFILES, Record, read_records, write_records
from bench.report import machine

PAGE = Path("docs/profiles.md")
DATA = Path("../shared/data/takaro-docs")


def main() -> int:
    """Measure the profiles that are named, or all; return 1 when a target of one of them is missed."""
    parser = argparse.ArgumentParser(prog="python -m bench.profiles")
    parser.add_argument("profiles", nargs="*", choices=[*PROFILES, []], help="default: all")
    parser.add_argument("--data", type=Path, default=DATA, help="the folder takaro-docs")
    parser.add_argument("--trial", action="store_true", help="measure little, print it, and write nothing")
    parser.add_argument("--page", action="store_true", help="write the page from the record, and measure nothing")
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.here or options.trial:
        for name in options.profiles or PROFILES:
            print(json.dumps(asdict(measure(name, options.data, TRIAL if options.trial else WHOLE))), flush=True)
        return 0
    records = read_records()
    for name in () if options.page else options.profiles or PROFILES:
        print(f"measuring {name} …", file=sys.stderr)
        command = [sys.executable, "-m", "bench.profiles", name, "--here", "--data", str(options.data)]
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
        records[name] = Record(**json.loads(done.stdout.splitlines()[-1]))
        write_records(records.values())
    PAGE.write_text(render_page(read_records().values()), encoding="utf-8")
    missed = [
        f"{record.profile}: {judgement.name} {judgement.target}, measured {judgement.measured}"
        for record in records.values()
        for _, judgement in judge(record)
        if judgement.verdict != "met"
    ]
    print("\n".join(missed) or "every target is met")
    return 1 if missed else 0


def measure(name: str, pages: Path, size: Size) -> Record:
    """Return the record of one profile, measured in this process."""
    if not pages.is_dir():
        raise SystemExit(f"{pages} does not exist: name the folder takaro-docs with --data")
    started = time.monotonic()
    made = {"machine": machine(), "load": round(os.getloadavg()[0], 1), "commit": current_commit()}
    made["date"] = f"{datetime.now(UTC):%Y-%m-%d}"
    record = asyncio.run(measure_profile(name, pages, made, size))
    return replace(record, made={**made, "minutes": round((time.monotonic() - started) / 60, 1)})


if __name__ == "__main__":
    raise SystemExit(main())
