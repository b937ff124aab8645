"""PostgreSQL's errors in Ragstone's words. A password is never part of them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
from psycopg.conninfo import conninfo_to_dict

from ragstone.core.errors import (
    RagstoneError,
    SettingsError,
    StoreBusy,
    StoreCorrupt,
    StoreError,
    StoreFull,
    deleted_meanwhile,
)

LOCK_SECONDS = 60
STATEMENT_SECONDS = 600
IDLE_SECONDS = 600
"""Limits of waiting for a lock, running a statement, and leaving a transaction idle."""

REFUSED = {
    "authentication failed": "check the user and the password in store.ledger.dsn",
    "no password supplied": "give a password in store.ledger.dsn, or in PGPASSWORD",
    "no pg_hba.conf entry": "let this host and user in, in the server's pg_hba.conf",
    'role "': "make the role that store.ledger.dsn names, or name another",
    'database "': "make the database first: CREATE DATABASE … OWNER …",
}
"""Messages of a server that refuses a connection, and the advice for each."""
BUSY = {
    "40001": "others changed the same rows",
    "40P01": "two transactions waited for each other",
    "53200": "the server is out of memory",
    "53300": "the server has no connection left",
    "55P03": f"somebody held it for {LOCK_SECONDS} s",
    "57014": f"a statement took longer than {STATEMENT_SECONDS} s, or was cancelled",
}
PASSING = ("08", "25P03", "28", "3D", "57P")
"""States of a connection that was refused or lost, or a server that stops or starts."""


def describe_database(dsn: str) -> str:
    """Return the server and database of a connection string, without its secrets."""
    try:
        parts = conninfo_to_dict(dsn)
    except psycopg.Error:
        # The error quotes what it could not read, which may be the password.
        raise SettingsError(
            "store.ledger.dsn is not a PostgreSQL connection string",
            hint="write it as postgresql://user:password@host:5432/database",
        ) from None
    host = parts.get("host") or parts.get("hostaddr") or "the local socket"
    return f"PostgreSQL database '{parts.get('dbname') or parts.get('user') or ''}' at {host}"


@contextmanager
def translate_errors(place: str) -> Iterator[None]:
    """Turn the client's errors into Ragstone's."""
    try:
        yield
    except RagstoneError:
        raise
    except psycopg.Error as error:
        raise _meaning(place, error) from error


def _meaning(place: str, error: psycopg.Error) -> RagstoneError:
    state, said = error.sqlstate or "", _read_message(error)
    if state in BUSY:
        return StoreBusy(f"{place} is busy: {BUSY[state]}", hint="try again; see pg_stat_activity if it stays")
    match state:
        case "23503":
            return deleted_meanwhile()
        case "53100":
            return StoreFull(f"{place}: {said}", hint="free some space; nothing that was acknowledged is lost")
        case "XX001" | "XX002":
            return StoreCorrupt(f"{place} cannot be read: {said}", hint="restore it from a backup")
        case "25P02":
            return StoreError("the transaction was undone by an earlier failure", hint="begin another")
        case "25006":
            return StoreError(f"{place} only reads", hint="it may be a standby: name the primary in store.ledger.dsn")
        case "42501":
            return StoreError(f"{place} refused: {said}", hint="connect as the owner of the schema 'ragstone'")
    if state.startswith(PASSING) or (not state and _is_connection(error)):
        return _unreachable(place, said)
    return StoreError(f"{place}: {said}")


def _is_connection(error: psycopg.Error) -> bool:
    return isinstance(error, psycopg.OperationalError | psycopg.InterfaceError)


def _unreachable(place: str, said: str) -> StoreError:
    for sign, hint in REFUSED.items():
        if sign in said:
            return StoreError(f"{place} refused: {said}", hint=hint)
    failure = StoreError(f"{place} cannot be reached: {said}", hint="check that the server runs and its address")
    failure.retryable = True
    return failure


def _read_message(error: psycopg.Error) -> str:
    return (error.diag.message_primary or str(error) or type(error).__name__).strip().splitlines()[0]
