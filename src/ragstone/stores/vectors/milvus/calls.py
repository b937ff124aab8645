"""Calls to Milvus: a server, or milvus-lite in this process behind a socket that only its own user can reach."""

from __future__ import annotations

import asyncio
import importlib
import logging
import os
import tempfile
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

from ragstone.core.errors import SettingsError, StoreBusy, StoreError, StoreFull
from ragstone.fetch.calls import RetryPolicy, redact
from ragstone.settings.tree import Adapter
from ragstone.stores.vectors.checks import check_options, seconds_option

LARGEST_EF = 32_768


@dataclass(frozen=True, slots=True)
class MilvusOptions:
    timeout: float = 30.0
    """Seconds for one call."""
    database: str = ""
    """A database of the server; its default one when empty."""
    ef: int = 128
    """The number of candidates that a search on a server keeps in view; twice `k` when that is more."""
    strong_reads: bool = False
    """Let every read wait for the server's clock: for collections that somebody loads in several replicas."""


def read_options(adapter: Adapter) -> MilvusOptions:
    """Return the options of `store.vectors`; raise `SettingsError` for values that cannot be used."""
    check_options(adapter, [field.name for field in fields(MilvusOptions)])
    _check_address(adapter)
    default = MilvusOptions()
    database = adapter.options.get("database", default.database)
    ef = adapter.options.get("ef", default.ef)
    strong = adapter.options.get("strong_reads", default.strong_reads)
    if not isinstance(database, str):
        raise _wrong("database", database, "give the name of a database")
    if isinstance(ef, bool) or not isinstance(ef, int) or not 1 <= ef <= LARGEST_EF:
        raise _wrong("ef", ef, f"give a whole number from 1 to {LARGEST_EF}")
    if not isinstance(strong, bool):
        raise _wrong("strong_reads", strong, "give true or false")
    return MilvusOptions(seconds_option(adapter, "timeout", default.timeout), database, ef, strong)


def without_credentials(url: str) -> str:
    """Return the address of a server without credentials."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"


def _check_address(adapter: Adapter) -> None:
    if adapter.url is not None and not _is_address(adapter.url):
        raise SettingsError(
            "store.vectors.url is not the address of a Milvus server",
            hint="write it as http://host:19530; a database goes to store.vectors.options.database",
        )
    if adapter.dsn or (adapter.url and adapter.path) or (adapter.api_key and not adapter.url):
        raise SettingsError(
            "store.vectors: milvus takes a url with an api_key, or a path, or neither",
            hint="leave out what does not belong together, and dsn",
        )


def _is_address(url: str) -> bool:
    try:
        parts = urlsplit(url)
        named = bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False
    return named and parts.scheme in ("http", "https", "tcp") and not parts.path.strip("/")


def _wrong(name: str, value: object, hint: str) -> SettingsError:
    return SettingsError(f"store.vectors.options.{name} is {value!r:.40}", hint=hint)


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
                hint="a file from milvus-lite 2 must be moved away; the index is then rebuilt from the ledger",
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
        """Return the address for pymilvus."""
        return f"unix:{self._socket}"

    def close(self) -> None:
        """End the threads and release the folder."""
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


Answer = TypeVar("Answer")
THREADS = 8
FOLDER = "milvus.db"
NO_CONNECTION, RATE_LIMITED, NO_COLLECTION, NOT_LOADED, NO_PARTITION = 2, 8, 100, 101, 200
PASSING = ("UNAVAILABLE", "DEADLINE_EXCEEDED", "RESOURCE_EXHAUSTED", "ABORTED")
FORBIDDEN = ("UNAUTHENTICATED", "PERMISSION_DENIED")
CHECK_ADDRESS = "check store.vectors.url and that the server runs"


class Absent(StoreError):
    """The collection or partition that was asked for does not exist."""


class MilvusCalls:
    """One Milvus. It is opened by the first call, and again by the first call after a fork."""

    def __init__(self, adapter: Adapter, folder: Path, options: MilvusOptions) -> None:
        self.embedded = adapter.url is None
        self.address = without_credentials(adapter.url) if adapter.url else str(adapter.path or folder / FOLDER)
        self._url = adapter.url
        self._token = adapter.api_key.get_secret_value() if adapter.api_key else ""
        self._options = options
        self._closed = False
        self._grpc = _load_library(self.embedded)
        self._start()

    def __repr__(self) -> str:
        return f"MilvusCalls({self.address})"

    async def ask(self, request: Callable[[Any], Answer], *, collection: str = "") -> Answer:
        """Give a request the client, again when a failure may pass; a collection that lies idle is loaded first."""
        if self._pid != os.getpid():
            self._start()
        if self._closed:
            raise StoreError(f"Milvus at {self.address} was closed", hint="open a new engine")
        return await asyncio.get_running_loop().run_in_executor(self._threads, self._answer, request, collection)

    async def close(self) -> None:
        """End threads and connections. After a fork they are the parent's, and left to it."""
        self._closed = True
        if self._pid == os.getpid():
            await asyncio.to_thread(self._end)

    def _start(self) -> None:
        self._pid = os.getpid()
        self._client: Any = None
        self._engine: EmbeddedMilvus | None = None
        self._opening = threading.Lock()
        self._threads = ThreadPoolExecutor(1 if self.embedded else THREADS, thread_name_prefix="milvus")

    def _end(self) -> None:
        self._threads.shutdown()
        client, self._client = self._client, None
        engine, self._engine = self._engine, None
        if client is not None:
            client.close()
        if engine is not None:
            engine.close()

    def _answer(self, request: Callable[[Any], Answer], collection: str) -> Answer:
        policy = RetryPolicy(first_wait=0.1, longest_wait=2.0, seconds=self._options.timeout)
        return policy.call_blocking(
            lambda: self._attempt(request, collection), lambda error: isinstance(error, StoreBusy)
        )

    def _attempt(self, request: Callable[[Any], Answer], collection: str) -> Answer:
        from pymilvus.exceptions import MilvusException

        try:
            client = self._connect()
            try:
                return request(client)
            except MilvusException as error:
                if error.code != NOT_LOADED or not collection:
                    raise
            client.load_collection(collection, timeout=self._options.timeout)
            return request(client)
        except (MilvusException, self._grpc.RpcError) as error:
            raise self._translate(error) from error

    def _connect(self) -> Any:
        with self._opening:
            if self._client is None:
                from pymilvus import MilvusClient

                uri = self._url
                if self.embedded:
                    self._engine = self._engine or EmbeddedMilvus(Path(self.address))
                    uri = self._engine.address
                self._client = MilvusClient(
                    uri=uri,
                    token=self._token,
                    db_name=self._options.database,
                    timeout=self._options.timeout,
                    dedicated=True,
                )
            return self._client

    def _translate(self, error: Exception) -> StoreError:
        code, status, reason = _code(error), self._status(error), self._reason(error)
        where = f"Milvus at {self.address}"
        if code in (NO_COLLECTION, NO_PARTITION) or _names_no_partition(reason):
            return Absent(f"{where} does not have it: {reason}", hint="open the partition before it is written to")
        if status in FORBIDDEN:
            return StoreError(
                f"{where} refuses the key", hint="check store.vectors.api_key (a token, or user:password)"
            )
        if "no space left" in reason.lower():
            return StoreFull(f"{where} has no space left: {reason}", hint="free some space on its disk")
        if status in PASSING or code in (NO_CONNECTION, RATE_LIMITED) or getattr(error, "retriable", False):
            return StoreBusy(f"{where} does not answer: {reason}", hint=CHECK_ADDRESS)
        if "timeout" in reason.lower():
            return StoreBusy(f"{where} was not ready in {self._options.timeout:g} s: {reason}", hint=CHECK_ADDRESS)
        return StoreError(f"{where} failed: {reason}", hint="look into the log of the server")

    def _status(self, error: BaseException) -> str:
        """Return the name of the gRPC status of an error or of its cause."""
        for cause in (error, error.__cause__):  # no further: pymilvus names errors as their own cause
            code = getattr(cause, "code", None)
            status = code() if callable(code) else code
            if isinstance(status, self._grpc.StatusCode):
                return str(status.name)
        return ""

    def _reason(self, error: Exception) -> str:
        """Return what Milvus said, without the key that it may have quoted."""
        said = str(getattr(error, "message", "") or error)
        return redact(said, self._token, urlsplit(self._url or "").password, most=300)


def _load_library(embedded: bool) -> Any:
    """Import what is needed, and give gRPC, whose errors come through pymilvus."""
    if not embedded:
        # gRPC reads this once, at its first import. Without it no child of a fork reaches the server; with it no child
        # of a process that holds an embedded engine could live.
        os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "1")
    try:
        for name in ("pymilvus", "milvus_lite") if embedded else ("pymilvus",):
            importlib.import_module(name)
        grpc = importlib.import_module("grpc")
    except ImportError as error:
        raise SettingsError(
            f"store.vectors: milvus needs {error.name}, which is not installed", hint="pip install 'ragstone[milvus]'"
        ) from error
    # It writes a traceback to stderr for every failure, even one that is expected; they all come back as errors.
    logging.getLogger("pymilvus").setLevel(logging.CRITICAL)
    logging.getLogger("milvus_lite").setLevel(logging.CRITICAL)
    return grpc


def _code(error: Exception) -> object:
    code = getattr(error, "code", None)
    return None if callable(code) else code


def _names_no_partition(reason: str) -> bool:
    return "partition name" in reason and "not found" in reason
