"""Limits of a parser child: memory, time, open files, no network, and an end when its parent dies."""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import signal
import sys
from pathlib import Path

OPEN_FILES = 32
HEADROOM = 64 * 1024 * 1024
"""Memory that a child may always use on top of its own code, however small the limit."""
_CLONE_NEWUSER = 0x10000000
_CLONE_NEWNET = 0x40000000
_PR_SET_PDEATHSIG = 1
_PR_SET_NO_NEW_PRIVS = 38


def confine(memory_mb: int, parent: int) -> None:
    """Apply every limit that holds for the child's whole life."""
    die_with(parent)
    if sys.platform == "linux":
        _leave_network()
    for name, limit in (
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_NOFILE, OPEN_FILES),
        (resource.RLIMIT_AS, max(memory_mb * 1024 * 1024, address_space() + HEADROOM)),
    ):
        _lower(name, limit)


def allow_cpu(seconds: float) -> None:
    """Re-arm the processor limit: this many seconds from now on."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    _lower(resource.RLIMIT_CPU, int(usage.ru_utime + usage.ru_stime + seconds) + 1)


def address_space() -> int:
    """Return how many bytes the process has mapped; 0 where the system does not say."""
    try:
        pages = Path("/proc/self/statm").read_text().split()[0]
    except OSError:
        return 0
    return int(pages) * resource.getpagesize()


def die_with(parent: int) -> None:
    """Have the system end this process when that parent dies; for the start of a process."""
    if sys.platform != "linux":
        return
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    if os.getppid() != parent:
        # It died before the signal was asked for.
        os._exit(0)


def _lower(name: int, limit: int) -> None:
    """Set the soft limit, and the hard one with it unless it is the processor's, which is re-armed."""
    _, hard = resource.getrlimit(name)
    limit = limit if hard == resource.RLIM_INFINITY else min(limit, hard)
    # macOS refuses some of these limits; the wall clock still holds there.
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(name, (limit, hard if name == resource.RLIMIT_CPU else limit))


def _leave_network() -> None:
    """Move to a network namespace without interfaces, where the system permits it."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(_CLONE_NEWNET) != 0:
        libc.unshare(_CLONE_NEWUSER | _CLONE_NEWNET)
