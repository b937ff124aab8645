"""What every test gets: no network but loopback, no model hub, a data folder of its own."""

from __future__ import annotations

import gc
import ipaddress
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

sys.path.append(str(Path(__file__).resolve().parent.parent))  # scripts and bench are not installed
os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["TOKENIZERS_PARALLELISM"] = "false"

from tests.scratch import own_folder

_own_folder = own_folder()
gc.disable()  # until everything is collected: there is no garbage in it
SELDOM = (20_000, 20, 20)
"""Objects made, and collections of younger ones, between two collections: tests are short, and have little garbage."""


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Give the tests folders with short paths, unless somebody says where they should be."""
    if _own_folder is not None and config.option.basetemp is None:
        config.option.basetemp = _own_folder.path / "t"


def pytest_collection_finish() -> None:
    """Keep the collector of garbage off what was collected: thousands of tests and all modules stay to the end."""
    gc.freeze()
    gc.set_threshold(*SELDOM)
    gc.enable()


class NetworkBlocked(RuntimeError):
    """A test tried to leave the machine. Not an OSError, so that no retry takes it for bad weather."""


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.partition("%")[0]).is_loopback
    except ValueError:
        return False


def _is_name(host: str) -> bool:
    try:
        ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return host != "localhost"
    return False


def _stay_on_this_machine(event: str, arguments: tuple[Any, ...]) -> None:
    # An audit hook sees every way out of the socket module: connect, connect_ex, UDP and name lookups.
    if event in ("socket.connect", "socket.sendto", "socket.sendmsg"):
        address = arguments[1]
        if isinstance(address, tuple) and not _is_loopback(_text(address[0])):
            raise NetworkBlocked(f"{event} to {address[0]!r}: tests may only use loopback")
    elif event in ("socket.getaddrinfo", "socket.gethostbyname"):
        host = arguments[0]
        if host and _is_name(_text(host)):
            raise NetworkBlocked(f"{event} of {host!r}: tests may only use loopback")


def _text(host: str | bytes) -> str:
    return host.decode() if isinstance(host, bytes) else host


sys.addaudithook(_stay_on_this_machine)


@pytest.fixture(scope="session", autouse=True)
def patient_search() -> Iterator[None]:
    """No busy machine cuts a search that a test looks at; tests of the hard limit set one of their own."""
    from ragstone.query import cache
    from ragstone.query.context import HARD_SECONDS, FirstReads, Recorder

    def longer(seconds: float) -> float:
        return 60.0 if seconds == HARD_SECONDS else seconds

    limit_search, limit_reads = Recorder.__init__, FirstReads.__init__
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Recorder, "__init__", lambda self, mode, *given: limit_search(self, mode, *map(longer, given)))
        patch.setattr(FirstReads, "__init__", lambda self, seconds: limit_reads(self, longer(seconds)))
        patch.setattr(cache, "WORTH", 30.0)
        yield


@pytest.fixture
def data_dir(tmp_path: Path) -> Path:
    """A folder of the test's own that does not exist yet, as a first run finds it."""
    return tmp_path / "ragstone-data"
