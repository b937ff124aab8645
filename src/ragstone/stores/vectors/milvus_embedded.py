"""Milvus inside this process: the engine of milvus-lite behind a socket that only its own user can reach."""

from __future__ import annotations

import importlib
import os
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from ragstone.core.errors import StoreBusy, StoreError

LARGEST_MESSAGE = 256 * 1024 * 1024
LONGEST_FOLDER = 90
"""Bytes of a folder's name beyond which the address of a socket in it would be too long for the system."""
REST = 5.0
"""Seconds that a call in progress gets to end when the engine is closed."""


class EmbeddedMilvus:
    """Holds the data folder from its making to `close`; one process at a time can."""

    def __init__(self, path: Path) -> None:
        from milvus_lite import DataDirLockedError, MilvusLite
        from milvus_lite.adapter.grpc.servicer import MilvusServicer
        from pymilvus.grpc_gen.milvus_pb2_grpc import add_MilvusServiceServicer_to_server

        try:
            path.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._engine = MilvusLite(str(path))
        except DataDirLockedError as error:
            raise StoreBusy(
                f"another process uses the Milvus data in {path}",
                hint="stop it, or run a Milvus server and set store.vectors.url",
            ) from error
        except OSError as error:
            raise StoreError(
                f"the Milvus data in {path} cannot be opened: {error.strerror}",
                hint="a file from milvus-lite 2 must be moved away; the index is then built anew from the ledger",
            ) from error
        # The engine takes one writer at a time, so it gets one thread; pymilvus's own starter would give it ten, and
        # a TCP port that every user of the machine could read all tenants through.
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="milvus-lite")
        sizes = [(f"grpc.max_{way}_message_length", LARGEST_MESSAGE) for way in ("receive", "send")]
        self._server = importlib.import_module("grpc").server(self._thread, options=sizes)
        add_MilvusServiceServicer_to_server(MilvusServicer(self._engine), self._server)
        self._socket = _socket_in(path.absolute())
        self._borrowed = self._socket.parent if self._socket.parent != path.absolute() else None
        self._server.add_insecure_port(self.address)
        self._server.start()

    @property
    def address(self) -> str:
        """Where pymilvus reaches it."""
        return f"unix:{self._socket}"

    def close(self) -> None:
        """End the threads and let go of the folder."""
        self._server.stop(grace=REST).wait()
        self._thread.shutdown()
        self._engine.close()
        self._socket.unlink(missing_ok=True)
        if self._borrowed:
            self._borrowed.rmdir()


def _socket_in(folder: Path) -> Path:
    if len(os.fsencode(folder)) > LONGEST_FOLDER:
        folder = Path(tempfile.mkdtemp(prefix="ragstone-"))
    socket = folder / "socket"
    socket.unlink(missing_ok=True)  # of a process that was killed
    return socket
