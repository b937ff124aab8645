"""Feature flags: on, off, or on for a share of the tenants."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping

from ragstone.core.types import Json

PHASES = ("data_layer", "hybrid", "reranking", "tools", "agentic")
"""Flags of the phases in which search is rolled out, in their order. They are on unless something else is set."""
SERVICE_AGENT = "service_agent"
"""The flag of the customer-service agent: on for all tenants, unless it is rolled out step by step."""
ON = (*PHASES, SERVICE_AGENT)
PERCENT = re.compile(r"(\d{1,3}(?:\.\d{1,4})?)%?")


def read_flag(value: Json) -> bool | float:
    """Return the value of a flag: true, false, or the percentage of tenants it is on for; or raise `ValueError`."""
    match value:
        case True | "true":
            return True
        case False | "false":
            return False
        case int() | float() | str() if (found := PERCENT.fullmatch(str(value))) and float(found[1]) <= 100:
            return float(found[1])
    raise ValueError(f"a flag cannot be {value!r:.40}: give true, false, or a share such as 25%")


def is_on(flag: str, tenant_id: str, own: bool | float | None, flags: Mapping[str, bool | float]) -> bool:
    """Return whether a feature is on for a tenant, by its own setting or else by that of all.

    A tenant stays in as the share of tenants grows.
    """
    value = flags.get(flag, flag in ON) if own is None else own
    if isinstance(value, bool):
        return value
    digest = hashlib.sha256(f"{flag}:{tenant_id}".encode()).digest()
    return int.from_bytes(digest[:8], "big") / 2**64 * 100 < value
