"""What a webhook takes for an answer."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from tests.doubles.web import Reply, WebDouble, html, redirect

from ragstone.core.errors import FetchError
from ragstone.fetch.webhook import Webhook
from ragstone.settings.tree import FetchSettings


@pytest.fixture
async def webhook(web: WebDouble) -> AsyncIterator[Webhook]:
    made = Webhook(web.url("/hook"), None, FetchSettings(retries=0))
    yield made
    await made.close()


@pytest.mark.parametrize("status", [301, 302, 303])
async def test_a_redirect_that_drops_the_message_is_not_an_answer(
    web: WebDouble, webhook: Webhook, status: int
) -> None:
    web.on("/hook", redirect("/login", status))
    web.on("/login", html("Who are you?"))
    with pytest.raises(FetchError, match=rf"/hook answered {status} and leads on to http\S+/login") as failed:
        await webhook.send({"event": "job.failed"})
    assert failed.value.retryable
    assert web.paths == ["/hook"]


@pytest.mark.parametrize("status", [307, 308])
async def test_a_redirect_that_keeps_the_message_is_followed(web: WebDouble, webhook: Webhook, status: int) -> None:
    web.on("/hook", redirect("/there", status))
    web.on("/there", Reply(status=204))
    await webhook.send({"event": "job.failed"})
    assert (web.requests[1].method, web.requests[1].body) == ("POST", b'{"event": "job.failed"}')
