"""Send notices of ended jobs to the operator's webhook."""

from __future__ import annotations

import hashlib
import hmac
import json
from urllib.parse import urlsplit

from ragstone.core.jobs import Notice
from ragstone.fetch.fetcher import Fetcher
from ragstone.schemas.jobs import WebhookSchema
from ragstone.settings.tree import FetchSettings, JobSettings

SIGNATURE = "X-Ragstone-Signature"


class Webhook:
    """Posts notices as JSON, at least once each, oldest first. The address is the operator's and so is trusted."""

    def __init__(self, jobs: JobSettings, fetch: FetchSettings) -> None:
        assert jobs.webhook is not None
        host = urlsplit(jobs.webhook).hostname or ""
        self._address = jobs.webhook
        self._secret = jobs.webhook_secret
        self._fetcher = Fetcher(fetch.model_copy(update={"allow": (*fetch.allow, host)}))

    async def send(self, tenant: str, notice: Notice) -> None:
        """Post a notice. Raises `FetchError` if it was not accepted; the caller sends it again later."""

        body = json.dumps(WebhookSchema.of_notice(tenant, notice).as_json()).encode()
        headers = {"Content-Type": "application/json"}
        if self._secret:
            digest = hmac.new(self._secret.get_secret_value().encode(), body, hashlib.sha256).hexdigest()
            headers[SIGNATURE] = f"sha256={digest}"
        await self._fetcher.post(self._address, headers=headers, content=body)

    async def close(self) -> None:
        await self._fetcher.close()
