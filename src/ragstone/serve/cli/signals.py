"""Work that goes on until somebody says stop."""

from __future__ import annotations

import signal
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any

STOP = (signal.SIGINT, signal.SIGTERM)


async def until_signal(work: Coroutine[Any, Any, None], on_stop: Callable[[], None] = lambda: None) -> bool:
    """Run until the work is done or the process is told to stop; whether it was told to.

    The work is cancelled and may tidy up, after `on_stop`. A second signal does not wait for that.
    """
    import asyncio

    loop = asyncio.get_running_loop()
    task = asyncio.ensure_future(work)
    told = False

    def stop() -> None:
        nonlocal told
        told = True
        for number in STOP:
            loop.remove_signal_handler(number)
        on_stop()
        task.cancel()

    for number in STOP:
        loop.add_signal_handler(number, stop)
    try:
        await task
    except asyncio.CancelledError:
        if not told:
            raise
    finally:
        for number in STOP:
            loop.remove_signal_handler(number)
    return told


@contextmanager
def interruptible() -> Iterator[None]:
    """Let Ctrl-C end what waits without the loop, such as a question: asyncio only cancels what awaits."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
