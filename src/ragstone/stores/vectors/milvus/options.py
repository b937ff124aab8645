"""Options of Milvus, checked before anything is opened."""

from __future__ import annotations

from dataclasses import dataclass, fields
from urllib.parse import urlsplit

from ragstone.core.errors import SettingsError
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
    """How many candidates a search on a server keeps in view; twice `k` when that is more."""
    strong_reads: bool = False
    """Let every read wait for the server's clock: for collections that somebody loads in several replicas."""


def read_options(adapter: Adapter) -> MilvusOptions:
    """The options of `store.vectors`; what cannot be meant is a `SettingsError`."""
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
    """The address of a server as people may see it."""
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
