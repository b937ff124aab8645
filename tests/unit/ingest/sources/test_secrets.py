"""Values of variables in addresses are used, and neither stored nor shown."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping

import pytest
from tests.doubles.web import html, xml
from tests.unit.ingest.sources.source_kit import context
from tests.unit.ingest.sources.web_kit import Run, Site, open_site

from ragstone.core.errors import FetchError, SettingsError
from ragstone.ingest.sources import build_source
from ragstone.ingest.sources.secrets import SecretMask
from ragstone.ingest.sources.web.pages import WebSource

SECRET = "canary-4711"
FEED = """<rss version="2.0"><channel><item><title>Tides</title><guid>7</guid>
<description>High tide is at nine.</description></item></channel></rss>"""


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    async with open_site(retries=0) as site:
        yield site


async def read(site: Site, kind: str, path: str, cursor: object = None, env: Mapping[str, str] | None = None) -> Run:
    config = {"urls": [site.url("").rstrip("/") + path]}
    return await site.run(build_source(kind, "s", config, site.context, env or {"TOKEN": SECRET}), cursor)


def mask(address: str, value: str) -> SecretMask:
    made = SecretMask()
    made.learn(address + value, [("TOKEN", len(address), len(address + value))])
    return made


async def test_a_page_is_read_with_the_value_and_kept_with_the_name(site: Site) -> None:
    site.web.on(f"/a?token={SECRET}", html("<p>Words.</p>", ETag='"1"'))
    run = await read(site, "web", "/a?token=${TOKEN}")
    hidden = site.url("/a?token=${TOKEN}")
    (item,) = run.items
    assert (item.external_id, item.uri, item.metadata["url"]) == (hidden, hidden, hidden)
    assert item.metadata["domain"] == "127.0.0.1"
    assert run.listed == {hidden}
    assert SECRET not in repr(run.pages)
    again = await read(site, "web", "/a?token=${TOKEN}", run.cursor)
    assert site.web.requests[-1].headers["if-none-match"] == '"1"'
    assert again.cursor == run.cursor


async def test_a_page_stays_the_same_when_the_value_changes(site: Site) -> None:
    for value in (SECRET, "another-0815"):
        site.web.on(f"/a?token={value}", html("<p>Words.</p>"))
    first = await read(site, "web", "/a?token=${TOKEN}")
    second = await read(site, "web", "/a?token=${TOKEN}", first.cursor, {"TOKEN": "another-0815"})
    assert first.ids == second.ids
    assert second.removed == []
    assert second.cursor == first.cursor


async def test_an_entry_of_a_feed_does_not_say_it(site: Site) -> None:
    site.web.on(f"/private/{SECRET}/rss", xml(FEED))
    run = await read(site, "feeds", "/private/${TOKEN}/rss")
    assert len(run.items) == 1
    assert SECRET not in repr(run.pages)


@pytest.mark.parametrize("kind", ["web", "feeds"])
async def test_no_message_says_it(site: Site, kind: str) -> None:
    try:
        told = repr((await read(site, kind, "/private/${TOKEN}/a")).pages)
    except FetchError as error:
        told = f"{error} {error.hint}"
    assert "/private/${TOKEN}/a" in told
    assert SECRET not in told
    with pytest.raises(SettingsError) as caught:
        build_source("web", "s", {"urls": ["http://u@h/x/${TOKEN}"]}, context(), {"TOKEN": SECRET})
    assert SECRET not in str(caught.value)


async def test_what_a_page_says_cannot_bring_a_value_out(site: Site) -> None:
    site.web.on(f"/a?token={SECRET}", html("<p>Words.</p>", ETag='"x://${TOKEN}"'))
    run = await read(site, "web", "/a?token=${TOKEN}")
    await read(site, "web", "/a?token=${TOKEN}", json.loads(json.dumps(run.cursor)))
    assert site.web.requests[-1].headers["if-none-match"] == '"x://${TOKEN}"'


async def test_a_cursor_from_before_is_read_from_the_beginning(site: Site) -> None:
    site.web.on(f"/a?token={SECRET}", html("<p>Words.</p>", ETag='"1"'))
    before = await read(site, "web", f"/a?token={SECRET}")
    run = await read(site, "web", "/a?token=${TOKEN}", before.cursor)
    assert "if-none-match" not in site.web.requests[-1].headers
    assert run.ids == [site.url("/a?token=${TOKEN}")]


@pytest.mark.parametrize(
    ("settings", "env"),
    [
        ("https://${HOST}/a", {"HOST": "harbour.example"}),
        ("${BASE}/a", {"BASE": "https://harbour.example/"}),
        ("https://harbour.example/${PART}", {"PART": "abc"}),
        ("https://harbour.example/${PART:-handbook}", {}),
    ],
)
async def test_hosts_short_values_and_defaults_are_no_secrets(
    site: Site, settings: str, env: Mapping[str, str]
) -> None:
    assert isinstance(build_source("web", "s", {"urls": [settings]}, site.context, env), WebSource)


@pytest.mark.parametrize(
    ("address", "value", "text", "hidden"),
    [
        ("https://h.example/?t=", "pa ss/wörd", "https://h.example/?t=pa%20ss/w%C3%B6rd&b", "?t=${TOKEN}&b"),
        ("https://h.example/?t=", "pa ss/wörd", "https://h.example/?t=pa%20ss%2Fw%C3%B6rd", "~"),
        ("", "https://h.example/feed?t=1234", "https://h.example/feed?t=1234#7", "h.example/${TOKEN}#7"),
        ("https://h.example/", "h.example", "https://h.example/h.example", "https://h.example/${TOKEN}"),
        ("https://h.example/", "TOKEN", "https://h.example/TOKEN", "https://h.example/${TOKEN}"),
        ("https://h.example/", "word", "https://h.example/?x=${TOKEN}", "https://h.example/?x=${}TOKEN}"),
        ("https://h.example/", "word", "https://${TOKEN}/word${}", "https://${}TOKEN}/${TOKEN}${}}"),
    ],
)
def test_what_is_hidden_can_be_shown_again(address: str, value: str, text: str, hidden: str) -> None:
    known = mask(address, value)
    assert hidden in known.hide(text)
    assert known.show(known.hide(text)) == text
    assert not known.contains_secret({"pages": [known.hide(text)]})


def test_only_addresses_are_changed() -> None:
    known = mask("https://h.example/", "lighthouse")
    assert known.hide_in_addresses("The lighthouse") == "The lighthouse"
    assert known.hide_in_addresses("See https://h.example/lighthouse") == "See https://h.example/${TOKEN}"
