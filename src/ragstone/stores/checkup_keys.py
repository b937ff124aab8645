"""Look whether the keys at hand open what is stored: original files, and the secrets of sources."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ragstone.core.errors import RagstoneError
from ragstone.core.health import Finding
from ragstone.core.tenants import Tenant

if TYPE_CHECKING:
    from ragstone.stores.opening import Stores

WHAT = "encryption"
MISSING_KEY = "set that key as security.key, or add it to security.old_keys"


async def check_encryption(stores: Stores, store: str, tenants: Sequence[Tenant]) -> list[Finding]:
    """Files and secrets under a key that is not configured. Of files only the beginning is read."""
    findings: list[Finding] = []
    for tenant in tenants:
        blobs = await stores.ledger.blobs(tenant.name)
        missing = await asyncio.to_thread(blobs.missing_keys)
        findings += [
            Finding(
                store,
                WHAT,
                "fail",
                f"tenant '{tenant.name}': original files under key {key_id}, which is not configured: {files}",
                MISSING_KEY,
            )
            for key_id, files in sorted(missing.items())
        ]
        try:
            await stores.book.all(tenant.name)
        except RagstoneError as error:
            findings.append(
                Finding(store, WHAT, "fail", f"tenant '{tenant.name}': secrets of {error}", error.hint)
            )
    return findings or [Finding(store, WHAT, "ok", "everything stored can be opened")]
