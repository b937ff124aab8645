"""The end of a process that was copied from one with much in memory.

An interpreter frees every object that it has before it ends: 0.3 seconds for Ragstone and its libraries, most of which
a copy shares with its parent until then. The system takes the memory back at once.
"""

from __future__ import annotations

import atexit
import gc
import os
import sys
import threading
from typing import NoReturn


def leave(status: int) -> NoReturn:
    """End threads, run what waits for the exit, throw away garbage and flush, as an interpreter does; free no more."""
    threading._shutdown()  # type: ignore[attr-defined]  # waits for threads, and has executors end theirs
    atexit._run_exitfuncs()
    gc.collect()  # whatever complains when it is thrown away does so
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except OSError:
        sys.exit(status)  # an interpreter says what it could not write, and ends with another status
    os._exit(status)
