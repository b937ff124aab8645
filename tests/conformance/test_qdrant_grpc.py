"""The shipped suite against Qdrant's gRPC protocol, in front of the double that checks every request."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pydantic import SecretStr
from tests.conformance.qdrant_grpc import grpc_in_front_of
from tests.doubles.qdrant import QdrantDouble

from ragstone.core.vectors import Isolation, VectorProvider
from ragstone.settings.tree import Adapter
from ragstone.stores.vectors.qdrant.provider import QdrantProvider
from ragstone.testing.suites.providers import ProviderSuite

KEY = "key-of-the-double"


class TestQdrantOverGrpc(ProviderSuite):
    isolations = ("filter",)  # only the way there differs from the server's own suite
    refuses = frozenset({"range of texts"})

    @pytest.fixture(autouse=True)
    def served(self) -> Iterator[None]:
        with QdrantDouble(KEY) as self.double, grpc_in_front_of(self.double) as self.port:
            yield
        assert self.double.violations == []
        assert self.double.requests == [], "something was sent by REST"

    async def open(self, folder: Path, isolation: Isolation) -> VectorProvider:
        options = {"prefer_grpc": True, "grpc_port": self.port}
        adapter = Adapter(kind="qdrant", url=self.double.url, api_key=SecretStr(KEY), options=options)
        return QdrantProvider(adapter, folder, isolation)
