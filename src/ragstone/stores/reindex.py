"""Making indexes anew at will."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

from ragstone.core.errors import NotFoundError
from ragstone.core.types import KnowledgeBase
from ragstone.stores.opening import Stores


@runtime_checkable
class Rebuildable(Protocol):
    """An index that can be made anew from the ledger while it answers."""

    async def rebuild(self, tenant: str, kb: KnowledgeBase) -> Any:
        """Whatever is true if there was something to make."""
        ...


async def reindex(stores: Stores, tenant: str, name: str) -> list[str]:
    """Make a kb's indexes anew; which of them, `vectors` and `lexical`, there was something to make of."""
    kb = await stores.ledger.kb(tenant, name)
    if kb is None:
        raise NotFoundError(f"there is no knowledge base '{name}'", hint="list them with: ragstone kb list")
    rebuilt = []
    for part, index in (("vectors", stores.vectors), ("lexical", stores.lexical)):
        if isinstance(index, Rebuildable) and await index.rebuild(tenant, kb):
            rebuilt.append(part)
    return rebuilt
