"""A real Milvus server for the tests of one run, shared by its processes and ended with the last of them.

Run as a script it starts the server and stays behind to end it: it waits for a lock that every user of the server
shares, and that the system releases for those which die. So nothing is left running, however a test run ends.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import platform
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

MADE_HERE = (sys.platform, platform.machine()) in {("linux", "x86_64"), ("darwin", "arm64")}
"""Whether there is a package of the server for this platform, as requirements/servers.in says."""
BINARIES = Path(sys.prefix) / "milvus" / "bin"
PATIENCE = 90.0
TRIES = 3
BRISK = {"proxy.timeTickInterval": 50, "queryCoord.checkInterval": 200, "queryCoord.distPullInterval": 200}
"""Milliseconds between the ticks that a test would wait for; much less and an idle server is a busy one."""


@contextmanager
def running(folder: Path) -> Iterator[str]:
    """The address of the server that belongs to this folder, started unless it runs already."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "users").open("w") as users:
        with (folder / "starting").open("w") as starting:
            fcntl.flock(starting, fcntl.LOCK_EX)
            fcntl.flock(users, fcntl.LOCK_SH)
            if not (folder / "address").exists():
                subprocess.run([sys.executable, __file__, str(folder)], check=True, timeout=TRIES * PATIENCE)
        yield (folder / "address").read_text()


def run_folder(basetemp: Path) -> Path:
    """A folder that the processes of one test run share, and no other run."""
    return (basetemp.parent if os.environ.get("PYTEST_XDIST_WORKER") else basetemp) / "milvus-server"


@dataclass(frozen=True, slots=True)
class Prepared:
    """A server that can be started, and started again on the same data."""

    data: Path
    address: str
    health: str
    environment: Mapping[str, str]

    def start(self) -> subprocess.Popen[bytes] | None:
        """The process when it is up; None when it did not come up."""
        with (self.data / "logs" / "server.log").open("ab") as log:
            process = subprocess.Popen(
                [str(BINARIES / "milvus"), "run", "standalone"],
                cwd=self.data,
                env=self.environment,
                stdout=log,
                stderr=log,
                preexec_fn=_die_with_parent,
            )
        if _is_up(process, self.health):
            return process
        process.kill()
        process.wait()
        return None


def prepare(data: Path, settings: Mapping[str, int]) -> Prepared:
    """Write the configuration of a server with ports that are free at this moment."""
    from milvus import MilvusServerConfig

    names = [name for name in MilvusServerConfig().configurable_items if name.endswith("_port")]
    peer, metrics, *ports = _free_ports(len(names) + 2)
    chosen = dict(zip(names, ports, strict=True))
    config = MilvusServerConfig(data_dir=str(data), **chosen)
    for name, value in ({**BRISK, **settings}).items():
        config.set(name, value)
    config.resolve()
    (data / "etcd.yaml").write_text(_etcd(chosen["etcd_port"], peer))
    environment = os.environ | {
        "DEPLOY_MODE": "STANDALONE",
        "ETCD_CONFIG_PATH": str(data / "etcd.yaml"),
        "LD_LIBRARY_PATH": str(BINARIES),
        "METRICS_PORT": str(metrics),
        "MILVUS_RUN_DIR": str(data / "run"),
    }
    health = f"http://127.0.0.1:{metrics}/healthz"
    return Prepared(data, f"http://127.0.0.1:{chosen['proxy_port']}", health, environment)


def start(data: Path, **settings: int) -> tuple[Prepared, subprocess.Popen[bytes]]:
    """Start a new server, again when another process was quicker to take one of its ports."""
    for _ in range(TRIES):
        shutil.rmtree(data, ignore_errors=True)
        prepared = prepare(data, settings)
        process = prepared.start()
        if process is not None:
            return prepared, process
    log = (data / "logs" / "server.log").read_text(errors="replace")
    raise RuntimeError(f"Milvus does not start (`make setup` installs it):\n{log[-3000:]}")


def _etcd(client: int, peer: int) -> str:
    urls = {
        "listen-client-urls": client,
        "advertise-client-urls": client,
        "listen-peer-urls": peer,
        "initial-advertise-peer-urls": peer,
    }
    lines = [f"{name}: http://127.0.0.1:{port}" for name, port in urls.items()]
    return "\n".join([*lines, f"initial-cluster: default=http://127.0.0.1:{peer}", ""])


def _free_ports(count: int) -> list[int]:
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]


def _is_up(process: subprocess.Popen[bytes], health: str) -> bool:
    ends = time.monotonic() + PATIENCE
    while process.poll() is None and time.monotonic() < ends:
        try:
            with urllib.request.urlopen(health, timeout=5) as answer:
                if b"OK" in answer.read():
                    return True
        except OSError:
            pass
        time.sleep(0.1)
    return False


def _die_with_parent() -> None:
    death_signal = 1
    ctypes.CDLL(None).prctl(death_signal, signal.SIGKILL)


def _keep(folder: Path, ready: int) -> None:
    prepared, process = start(folder / "data")
    (folder / "address").write_text(prepared.address)
    os.close(ready)
    with (folder / "users").open("w") as users:
        fcntl.flock(users, fcntl.LOCK_EX)
        # It takes its time when asked nicely, and nothing of it is needed any more.
        process.kill()
        process.wait()
        (folder / "address").unlink(missing_ok=True)
        shutil.rmtree(folder / "data", ignore_errors=True)


def main() -> None:
    """Leave a keeper behind, and return when its server is up."""
    folder = Path(sys.argv[1])
    wait, ready = os.pipe()
    if os.fork() == 0:
        os.close(wait)
        os.setsid()
        nothing = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1):
            os.dup2(nothing, stream)
        _keep(folder, ready)
        return
    os.close(ready)
    os.read(wait, 1)
    if not (folder / "address").exists():
        raise SystemExit("the Milvus server did not start; see above")


if __name__ == "__main__":
    main()
