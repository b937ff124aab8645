"""A real Redis for tests, reached over a socket in a folder of its own."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
from pathlib import Path

import redis

PROGRAM = next(
    filter(None, (shutil.which("redis-server", path=Path(sys.prefix) / "bin"), shutil.which("redis-server"))), ""
)
"""The one that requirements/servers.in installs, or that of the system; empty where there is neither."""
SECONDS = 30


class RedisServer:
    """A server that keeps nothing on the disk, and that can be stopped, started again and suspended."""

    def __init__(self, folder: Path) -> None:
        self.socket = folder / "redis.sock"
        self.url = f"unix://{self.socket}"
        self._process: subprocess.Popen[bytes] | None = None
        self.start()

    def start(self) -> None:
        options = ["--port", "0", "--unixsocket", str(self.socket), "--save", "", "--daemonize", "no"]
        self._process = subprocess.Popen([PROGRAM, *options], stdout=subprocess.PIPE, cwd=self.socket.parent)
        assert self._process.stdout is not None
        while b"ready to accept connections" not in (line := self._process.stdout.readline()):
            assert line, "the server has ended"
        # Its log must not fill the pipe; it says little after this.

    def stop(self) -> None:
        if self._process:
            self._process.kill()
            self._process.communicate(timeout=SECONDS)
            self._process = None

    def suspend(self) -> None:
        """Accept connections and never answer, as a server does that swaps or hangs."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)

    def client(self) -> redis.Redis:
        return redis.Redis(unix_socket_path=str(self.socket))

    def values(self) -> dict[bytes, bytes]:
        """Return all keys with what they hold."""
        with self.client() as client:
            return {key: client.get(key) for key in client.scan_iter()}
