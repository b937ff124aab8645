"""The context that every source is built with besides its own configuration."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pydantic import SecretStr

from ragstone.settings.tree import LimitSettings

if TYPE_CHECKING:
    from ragstone.fetch.fetcher import Fetcher


@dataclass(frozen=True, slots=True)
class SourceContext:
    """The means that the operator gives to sources: a guarded fetcher, bounds and named databases."""

    fetcher: Fetcher
    limits: LimitSettings
    databases: Mapping[str, SecretStr]
