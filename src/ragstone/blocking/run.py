"""How a coroutine is waited for on the loop of a `Ragstone`."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any, Protocol, TypeVar

T = TypeVar("T")


class Run(Protocol):
    """Runs work on the loop and gives what it returns."""

    def __call__(self, work: Coroutine[Any, Any, T]) -> T: ...
