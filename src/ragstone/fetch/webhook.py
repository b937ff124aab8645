"""Messages to an address of the operator."""

from __future__ import annotations

import hashlib
import hmac
import json
from urllib.parse import urlsplit

from pydantic import SecretStr

from ragstone.core.types import Json
from ragstone.fetch.fetcher import Fetcher
from ragstone.settings.tree import FetchSettings

SIGNATURE = "X-Ragstone-Signature"


class Webhook:
    """Posts JSON, signed where there is a secret. The address is the operator's and so is trusted."""

    def __init__(self, address: str, secret: SecretStr | None, fetch: FetchSettings) -> None:
        host = urlsplit(address).hostname or ""
        self._address = address
        self._secret = secret
        self._fetcher = Fetcher(fetch.model_copy(update={"allow": (*fetch.allow, host)}))

    async def send(self, message: Json) -> None:
        """Post a message. Raises `FetchError` if it was not accepted; the caller sends it again later."""
        body = json.dumps(message).encode()
        headers = {"Content-Type": "application/json"}
        if self._secret:
            digest = hmac.new(self._secret.get_secret_value().encode(), body, hashlib.sha256).hexdigest()
            headers[SIGNATURE] = f"sha256={digest}"
        await self._fetcher.post(self._address, headers=headers, content=body, keep_body=True)

    async def close(self) -> None:
        await self._fetcher.close()
