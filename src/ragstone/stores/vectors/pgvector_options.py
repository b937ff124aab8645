"""How vectors in PostgreSQL are searched: what can be set under `store.vectors.options`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal, get_args

from ragstone.core.errors import SettingsError

Kind = Literal["hnsw", "ivfflat", "none"]
LARGEST_INDEXED = 4_000
LARGEST = 16_000
"""How many dimensions pgvector takes in a `halfvec` with an index and without one."""
MOST = {"exact_below": 10_000_000, "lists": 32_768, "probes": 32_768, "ef_search": 1_000}


@dataclass(frozen=True, slots=True)
class PgVectorOptions:
    """The options, checked."""

    index: Kind = "hnsw"
    exact_below: int = 20_000
    """A Space, or what a filter leaves of one, is sorted exactly as long as it has fewer vectors."""
    ef_search: int = 100
    lists: int = 100
    probes: int = 20

    @classmethod
    def checked(cls, given: Mapping[str, Any]) -> PgVectorOptions:
        """The options that were given, the others as they are by default."""
        known = [field.name for field in fields(cls)]
        for name, value in given.items():
            if name not in known:
                raise _refused(name, "is not an option of pgvector", f"its options are: {', '.join(known)}")
            if name == "index":
                if value not in get_args(Kind):
                    raise _refused(name, f"is {value!r:.40}", f"choose one of: {', '.join(get_args(Kind))}")
                continue
            least = 0 if name == "exact_below" else 1
            if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= MOST[name]:
                raise _refused(
                    name, f"is {value!r:.40}", f"give a whole number from {least} to {MOST[name]:,}"
                )
        return cls(**given)

    @property
    def largest_dimension(self) -> int:
        """The longest vectors that a Space may have."""
        return LARGEST if self.index == "none" else LARGEST_INDEXED

    @property
    def definition(self) -> str:
        """What the index is made with."""
        return f"lists = {self.lists}" if self.index == "ivfflat" else "m = 16, ef_construction = 100"


def _refused(name: str, what: str, hint: str) -> SettingsError:
    return SettingsError(f"store.vectors.options.{name} {what}", hint=hint)
