"""The id that a document has, or will have: whoever works on the same one at the same time comes to the same."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count

from ragstone.core.ids import document_id
from ragstone.core.ledger import Ledger
from ragstone.core.types import KnowledgeBase


async def identified(
    ledger: Ledger, tenant: str, seed: str, kb: KnowledgeBase, source: str, external_ids: Sequence[str]
) -> dict[str, str]:
    """Ids by what the source calls the documents; `seed` is what those of the tenant's new ones are derived from."""
    found: dict[str, str] = {}
    unknown = list(dict.fromkeys(external_ids))
    for turn in count():
        found.update(await ledger.identities(tenant, kb, source, unknown))
        root = f"{seed}/{kb.id}/{turn}" if turn else seed
        new = {one: document_id(root, kb.name, source, one) for one in unknown if one not in found}
        taken = await ledger.existing(tenant, list(new.values())) if new else set()
        found.update({one: identity for one, identity in new.items() if identity not in taken})
        # Somebody was faster, and it is known now; or what had this place before took the id along to another one.
        unknown = [one for one, identity in new.items() if identity in taken]
        if not unknown:
            break
    return found
