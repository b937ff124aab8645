"""A Chroma client: its folder or server, retries, and errors of Chroma as errors of stores."""

from __future__ import annotations

import fcntl
import logging
import os
import shutil
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import IO, Any, TypeVar
from urllib.parse import urlsplit
from uuid import UUID

from ragstone.core.errors import (
    ModelMismatch,
    RagstoneError,
    SettingsError,
    StoreBusy,
    StoreCorrupt,
    StoreError,
    StoreFull,
)
from ragstone.core.remedies import Action, Remedy
from ragstone.fetch.calls import RetryPolicy, is_transient_status
from ragstone.settings.tree import Adapter
from ragstone.stores.vectors.checks import check_options, seconds_option

logger = logging.getLogger(__name__)

LOCK = "ragstone.lock"

DATABASE = "chroma.sqlite3"


def own(folder: Path) -> IO[bytes]:
    """Create the folder, deny access to other users, and lock it.

    Vectors that two processes write to one folder at a time cannot all be found again.
    """
    folder.mkdir(parents=True, exist_ok=True)
    folder.chmod(0o700)
    lock = (folder / LOCK).open("ab")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        lock.close()
        raise StoreBusy(
            f"Chroma's folder {folder} is in use",
            hint="close what uses it, or run one Chroma server for all and set store.vectors.url",
        ) from error
    return lock


def disown(lock: IO[bytes]) -> None:
    """Unlock the folder."""
    # A child forked in between holds the same open file, which closing alone would leave locked.
    fcntl.flock(lock, fcntl.LOCK_UN)
    lock.close()


def remove_dropped(folder: Path) -> None:
    """Remove the vectors of collections that were dropped, which Chroma leaves behind."""
    # In this order: a folder that is there now was in the database before, if it is not a dropped one's.
    found = [path for path in folder.iterdir() if path.is_dir() and not path.is_symlink() and _is_uuid(path)]
    if not found:
        return
    try:
        with closing(sqlite3.connect(f"{(folder / DATABASE).as_uri()}?mode=ro", uri=True)) as database:
            known = {row[0] for row in database.execute("SELECT id FROM segments")}
    except sqlite3.Error as error:
        logger.warning("the vectors of dropped collections stay in %s: %s", folder, error)
        return
    for path in found:
        if path.name not in known:
            shutil.rmtree(path)


def _is_uuid(path: Path) -> bool:
    try:
        return str(UUID(path.name)) == path.name
    except ValueError:
        return False


SERVER_HINT = "check that the server runs (chroma run) and that store.vectors.url is its address"
SIGNS: tuple[tuple[tuple[str, ...], type[StoreError], str], ...] = (
    (("database is locked", "busy"), StoreBusy, "close what else uses the folder"),
    (("disk is full", "no space left"), StoreFull, "make room on the device"),
    (
        ("malformed", "not a database", "corrupt", "loading hnsw", "pickle", "finding id"),
        StoreCorrupt,
        "remove the folder; it is rebuilt from the ledger at the next start",
    ),
)
"""Messages of the engine about its files."""


def translate_error(error: Exception, address: str) -> RagstoneError:
    """Return the error to raise instead. What a server said is not repeated: it may quote the key that it was sent."""
    import httpx
    from chromadb.errors import AuthorizationError, ChromaAuthError, ChromaError, RateLimitError

    where = f"Chroma ({address})"
    for cause in _causes(error):
        match cause:
            case httpx.HTTPStatusError():
                return _refusal(cause.response.status_code, where)
            case httpx.TimeoutException():
                return StoreBusy(
                    f"{where} did not answer in time", hint="raise store.vectors.options.timeout, or try again"
                )
            case httpx.HTTPError():
                return StoreBusy(f"{where} cannot be reached", hint=SERVER_HINT)
            case ChromaAuthError() | AuthorizationError():
                return _refusal(401, where)
            case RateLimitError():
                return _refusal(429, where)
            case ChromaError() if "dimension" in str(cause):
                return ModelMismatch(
                    f"{where} holds vectors of another dimension",
                    hint="use the embedding model that the space was built with",
                )
    return _engine_failure(error, where)


def _causes(error: BaseException) -> Iterator[BaseException]:
    """Yield the error and its causes: the client often hides the one that says what happened."""
    seen: BaseException | None = error
    while seen is not None:
        yield seen
        seen = seen.__cause__ or seen.__context__


def _refusal(status: int, where: str) -> StoreError:
    if status in (401, 403):
        return StoreError(f"{where} refused the key", hint="check store.vectors.api_key")
    if is_transient_status(status):
        return StoreBusy(f"{where} answered with {status}", hint="try again later")
    return StoreError(f"{where} answered with {status}", hint=SERVER_HINT)


def _engine_failure(error: Exception, where: str) -> StoreError:
    said = str(error)
    for signs, kind, hint in SIGNS:
        if any(sign in said.lower() for sign in signs):
            return kind(f"{where}: {said:.200}", hint=hint)
    return StoreError(f"{where} failed: {said:.200}", remedy=Remedy(Action.CHECK_STORES))


T = TypeVar("T")
Client = Any
"""A `chromadb.api.ServerAPI`; the library is imported when the first one is opened."""
_engine_pid: int | None = None
"""The process whose threads Chroma's engine runs in; a child that was forked from it has none of them."""


@dataclass
class _OpenClient:
    """The client that one process has open."""

    opening: threading.Lock = field(default_factory=threading.Lock)
    client: Client = None
    lock: IO[bytes] | None = None

    def release(self) -> None:
        if self.lock is not None:
            disown(self.lock)
            self.lock = None


class ChromaClient:
    """One Chroma, opened when it is first asked for something. Its methods block."""

    def __init__(self, adapter: Adapter, folder: Path) -> None:
        check_options(adapter, ("in_memory", "timeout"))
        if find_spec("chromadb") is None:
            raise SettingsError("Chroma is not installed", hint="pip install 'ragstone[chroma]'")
        self._in_memory = _in_memory(adapter)
        self._url = _checked_url(adapter)
        self._folder = (adapter.path or folder).absolute()
        self._key = adapter.api_key
        self._timeout = seconds_option(adapter, "timeout", 30.0)
        self._closed = False
        # By process: after a fork the connections and locks in here are still the parent's.
        self._held: dict[int, _OpenClient] = {}

    @property
    def address(self) -> str:
        """Return its location, for messages."""
        return self._url or ("memory" if self._in_memory else str(self._folder))

    def run(self, work: Callable[[Client], T]) -> T:
        """Return the result of `work` for the open client; repeat it when a failure may pass, and translate errors."""
        policy = RetryPolicy(first_wait=0.05, longest_wait=1.0, seconds=self._timeout)
        return policy.call_blocking(lambda: self._attempt(work), _may_pass)

    def tidy(self) -> None:
        """Remove from the folder what Chroma leaves of dropped collections."""
        if not self._url and not self._in_memory:
            remove_dropped(self._folder)

    def close(self) -> None:
        """Release folder, threads and connections; what was in memory is gone."""
        self._closed = True
        held = self._held.pop(os.getpid(), None)
        if held is None:
            return
        with held.opening:
            if held.client is not None:
                _stop(held.client)
            held.release()

    def _attempt(self, work: Callable[[Client], T]) -> T:
        try:
            return work(self._connect())
        except RagstoneError:
            raise
        except Exception as error:
            raise translate_error(error, self.address) from error

    def _connect(self) -> Client:
        held = self._held.setdefault(os.getpid(), _OpenClient())
        with held.opening:
            if self._closed:
                raise StoreError(f"Chroma ({self.address}) was closed")
            if held.client is None:
                held.client = self._open_server() if self._url else self._open_embedded(held)
                self.tidy()
            return held.client

    def _open_server(self) -> Client:
        key = self._key.get_secret_value() if self._key else ""
        return _start(
            self._timeout,
            chroma_api_impl="chromadb.api.fastapi.FastAPI",
            chroma_server_host=self._url,
            chroma_server_http_port=urlsplit(self._url).port or 8000,
            chroma_server_ssl_enabled=self._url.startswith("https:"),
            chroma_server_headers={"Authorization": f"Bearer {key}", "X-Chroma-Token": key} if key else {},
        )

    def _open_embedded(self, held: _OpenClient) -> Client:
        global _engine_pid
        if _engine_pid not in (None, os.getpid()):
            raise StoreError(
                "Chroma's engine was running in the process that this one was forked from, and hangs in this one",
                hint="start workers by spawn, or run a Chroma server and set store.vectors.url",
            )
        _engine_pid = os.getpid()
        held.lock = None if self._in_memory else own(self._folder)
        try:
            return _start(
                self._timeout,
                chroma_api_impl="chromadb.api.rust.RustBindingsAPI",
                is_persistent=not self._in_memory,
                persist_directory=str(self._folder),
            )
        except BaseException:
            held.release()
            raise


def _start(timeout: float, **settings: Any) -> Client:
    from chromadb.api import ServerAPI
    from chromadb.config import Settings, System

    # Neither a `.env` of the current folder nor an OpenTelemetry variable may send data anywhere.
    quiet: dict[str, Any] = {"anonymized_telemetry": False, "chroma_otel_collection_endpoint": "", "allow_reset": False}
    # Chroma's own clients share what they open and leave connections behind: this is what they are made of.
    configured: Any = Settings
    abstract: type[Any] = ServerAPI
    system = System(configured(_env_file=None, **quiet, **settings))
    client: Client = system.instance(abstract)
    system.start()
    if (session := _session(client)) is not None:
        session.timeout = timeout
    return client


def _stop(client: Client) -> None:
    client._system.stop()
    if (session := _session(client)) is not None:
        session.close()


def _session(client: Client) -> Any:
    """Return the HTTP session of a server's client: Chroma makes it without a timeout, and never closes it."""
    return getattr(client, "_session", None)


def _in_memory(adapter: Adapter) -> bool:
    wanted = adapter.options.get("in_memory", False)
    if not isinstance(wanted, bool):
        raise SettingsError("store.vectors.options.in_memory is true or false", hint=f"not {wanted!r:.40}")
    if sum((wanted, adapter.url is not None, adapter.path is not None)) > 1:
        raise SettingsError(
            "store.vectors: Chroma is in a folder, in memory or at an address",
            hint="give one of path, url and options.in_memory",
        )
    return wanted


def _checked_url(adapter: Adapter) -> str:
    if adapter.url is None:
        return ""
    try:
        parts = urlsplit(adapter.url)
        usable = parts.scheme in ("http", "https") and parts.hostname and (parts.port or 1)
    except ValueError:
        usable = False
    if not usable or parts.username or parts.password or parts.query or parts.fragment:
        raise SettingsError(
            "store.vectors.url is not the address of a Chroma server",
            hint="such as http://localhost:8000; a key goes into store.vectors.api_key",
        )
    return adapter.url.rstrip("/")


def _may_pass(error: BaseException) -> bool:
    # A search beside writers may meet a row that is just going; only a row that stays lost means damage.
    return isinstance(error, StoreBusy) or (isinstance(error, StoreCorrupt) and "finding id" in str(error))
