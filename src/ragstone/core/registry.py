"""Adapters by name, imported when they are asked for."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from importlib import import_module
from typing import Any

from ragstone.core.errors import SettingsError


class UnknownAdapter(SettingsError, ValueError):
    """A name in the settings that no adapter has."""

    code = "unknown_adapter"


class Registry:
    """Names and where their factories live, as `module:name`."""

    def __init__(
        self, what: str, factories: Mapping[str, str], *, unknown: str = "there is no {what} '{name}'"
    ) -> None:
        self._what = what
        self._factories = factories
        self._unknown = unknown

    def load(self, name: str) -> Any:
        """Import and return the factory of that name."""
        if name not in self._factories:
            raise UnknownAdapter(
                self._unknown.format(what=self._what, name=name),
                hint=nearest(name, self._factories) or f"choose one of: {', '.join(self._factories)}",
            )
        module, _, attribute = self._factories[name].partition(":")
        return getattr(import_module(module), attribute)


def nearest(name: str, known: Iterable[str]) -> str:
    """Return a hint with the known name that looks most like this one; empty when none does."""
    close = difflib.get_close_matches(name, list(known), n=1)
    return f"did you mean '{close[0]}'?" if close else ""
