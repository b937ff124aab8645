"""`make release`: build the packages, install them in an empty environment, and try them there.

Afterwards the wheel and the source distribution are in `dist`; their sizes and SHA-256 are printed. With
`--since`, data that an earlier revision wrote is opened as well, as the upgrade guide says.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Mapping, Sequence
from pathlib import Path

import ragstone
from ragstone.serve.probe import probe

ROOT = Path(__file__).resolve().parent.parent
SECONDS = 120
CLIENT = """
import sys
from ragstone import Client
with Client(sys.argv[1], sys.argv[2]) as client:
    taken = client.documents.upload(b"The tide gate opens at nine.", "gate.md")
    state = [job.state for job in client.jobs.follow(taken.job.id)][-1]
    print(state, client.ask("When does the tide gate open?").answer)
"""


class ReleaseError(Exception):
    """A package is not as it should be."""


def build(folder: Path) -> tuple[Path, Path]:
    """Build the source distribution and from it the wheel, and return both; the tree must give the same wheel."""
    newest = _run(["git", "log", "-1", "--format=%ct"], cwd=ROOT).strip()
    environment = {**os.environ, "SOURCE_DATE_EPOCH": newest}
    make = [sys.executable, "-m", "build", "--no-isolation"]
    _run([*make, "--outdir", str(folder), str(ROOT)], environment=environment)
    name = f"ragstone-{ragstone.__version__}"
    source, wheel = folder / f"{name}.tar.gz", folder / f"{name}-py3-none-any.whl"
    with tempfile.TemporaryDirectory() as other:
        _run([*make, "--wheel", "--outdir", other, str(ROOT)], environment=environment)
        if digest(Path(other) / wheel.name) != digest(wheel):
            raise ReleaseError("the source distribution builds another wheel than the checkout")
    return source, wheel


def digest(path: Path) -> str:
    """Return the SHA-256 of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def install(wheel: Path, folder: Path) -> Path:
    """Install a wheel and the pinned packages that it needs into an empty environment; return its `bin`."""
    venv.create(folder, with_pip=True)
    pip = [str(folder / "bin" / "python"), "-I", "-m", "pip", "--quiet", "--disable-pip-version-check", "install"]
    _run([*pip, "--require-hashes", "--requirement", str(ROOT / "requirements" / "runtime.txt")])
    _run([*pip, "--no-deps", str(wheel)])
    _run([*pip[:-1], "check"])
    return folder / "bin"


def try_out(programs: Path, folder: Path) -> list[str]:
    """Run the demo and the service of an installed package; return a line for each step that passed."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "RAGSTONE_"))}
    program = str(programs / "ragstone")
    version = _run([program, "--version"], cwd=folder, environment=environment).split()[-1]
    if version != ragstone.__version__:
        raise ReleaseError(f"the installed package says version {version}")
    started = time.monotonic()
    _run([program, "demo"], cwd=folder, environment=environment)
    passed = [f"ragstone demo: {time.monotonic() - started:.1f} s"]
    started = time.monotonic()
    command = [program, "serve", "--port", "0", "--json", "--data-dir", str(folder / "served")]
    process = subprocess.Popen(
        command, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    try:
        assert process.stdout is not None
        told = json.loads(process.stdout.readline())
        passed.append(f"ragstone serve: address and keys after {time.monotonic() - started:.1f} s")
        while problem := probe(f"{told['url']}/readyz"):  # a model may have to be compiled for this machine first
            if time.monotonic() - started > SECONDS:
                raise ReleaseError(problem)
            time.sleep(0.5)
        passed.append(f"/readyz: ready after {time.monotonic() - started:.1f} s")
        call = [str(programs / "python"), "-c", CLIENT, told["url"], told["keys"]["default"]]
        said = _run(call, cwd=folder, environment=environment).strip()
        if said != "completed The tide gate opens at nine. [1]":
            raise ReleaseError(f"the client printed: {said}")
        passed.append("ragstone.Client: a document was uploaded and a question answered")
    finally:
        process.send_signal(signal.SIGTERM)
        code = process.wait(SECONDS)
    if code:
        raise ReleaseError(f"the service ended with {code}")
    return passed


def _run(command: Sequence[str], *, cwd: Path | None = None, environment: Mapping[str, str] | None = None) -> str:
    done = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise ReleaseError(f"{' '.join(command)} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="make release", description=__doc__)
    parser.add_argument("--out", type=Path, default=ROOT / "dist", help="folder for the packages")
    parser.add_argument("--build-only", action="store_true", help="do not install anything")
    parser.add_argument("--since", metavar="REVISION", help="also upgrade data that this revision has written")
    options = parser.parse_args(arguments)
    try:
        packages = build(options.out)
        print("the source distribution and the checkout build the same wheel", flush=True)
        if not options.build_only:
            with tempfile.TemporaryDirectory() as folder:
                programs = install(packages[1], Path(folder) / "environment")
                print("the wheel and its pinned packages install in an empty environment", flush=True)
                for line in try_out(programs, Path(folder)):
                    print(line, flush=True)
        if options.since:
            print(_run([sys.executable, "-m", "scripts.upgrade", options.since], cwd=ROOT).strip())
    except ReleaseError as error:
        print(error, file=sys.stderr)
        return 1
    for package in packages:
        print(f"{digest(package)}  {package.stat().st_size:>10,}  {package.name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
