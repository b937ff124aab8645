from __future__ import annotations

import asyncio
import gzip
import json
import socket
import zlib
from collections.abc import Callable
from datetime import timedelta
from email.utils import format_datetime

import pytest
from tests.doubles.web import Reply, WebDouble, html, redirect
from tests.unit.fetch.conftest import MakeFetcher, Patience

from ragstone.core.clock import now
from ragstone.core.errors import AddressRefused, FetchError
from ragstone.fetch.fetcher import Fetcher
from ragstone.settings.tree import FetchSettings

SECRET = "canary-5f2a"


async def test_a_page_comes_with_its_address_and_headers(web: WebDouble, make_fetcher: MakeFetcher) -> None:
    web.on("/page", html("<p>hello</p>", ETag='"1"'))
    fetched = await make_fetcher().get(web.url("/page#part"), params={"q": "a b", "n": 2})
    assert fetched.url == web.url("/page?q=a+b&n=2")
    assert (fetched.status, fetched.content) == (200, b"<p>hello</p>")
    assert fetched.headers["etag"] == '"1"'
    (request,) = web.requests
    assert request.query == {"q": "a b", "n": "2"}
    assert request.headers["user-agent"] == "ragstone"
    assert request.headers["host"] == f"127.0.0.1:{web.port}"


async def test_a_name_is_connected_to_where_it_was_resolved(web: WebDouble, make_fetcher: MakeFetcher) -> None:
    web.on("/", html("x"))
    fetcher = make_fetcher(allow=("wiki.example",))
    assert (await fetcher.get(web.url(host="wiki.example"))).status == 200
    assert web.requests[0].headers["host"] == f"wiki.example:{web.port}"
    assert await fetcher.address("wiki.example", 993) == "127.0.0.1"


async def test_tls_is_for_the_name_and_not_for_the_address(make_fetcher: MakeFetcher) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        fetcher = make_fetcher(timeout=2.0)

        async def hello() -> bytes:
            loop = asyncio.get_running_loop()
            server.setblocking(False)
            connection, _ = await loop.sock_accept(server)
            with connection:
                return await loop.sock_recv(connection, 4096)

        listening = asyncio.create_task(hello())
        with pytest.raises(FetchError):
            await fetcher.get(f"https://wiki.example:{server.getsockname()[1]}/")
        assert b"wiki.example" in await listening


async def test_a_form_and_json_are_posted(web: WebDouble, make_fetcher: MakeFetcher) -> None:
    web.on("/token", html("ok"))
    fetcher = make_fetcher()
    await fetcher.post(web.url("/token"), form={"grant": "a&b"}, headers={"Authorization": "Bearer x"})
    await fetcher.post(web.url("/token"), json={"ids": [1]})
    await fetcher.post(web.url("/token"), content=b"\x00raw", headers={"Content-Type": "application/x"})
    form, data, raw = web.requests
    assert (form.method, form.body, form.headers["authorization"]) == ("POST", b"grant=a%26b", "Bearer x")
    assert form.headers["content-type"] == "application/x-www-form-urlencoded"
    assert (json.loads(data.body), data.headers["content-type"]) == ({"ids": [1]}, "application/json")
    assert (raw.body, raw.headers["content-type"]) == (b"\x00raw", "application/x")


async def test_no_cookie_is_kept(web: WebDouble, make_fetcher: MakeFetcher) -> None:
    web.on("/", html("x", Set_Cookie="session=1"))
    fetcher = make_fetcher()
    await fetcher.get(web.url())
    await fetcher.get(web.url())
    assert "cookie" not in web.requests[1].headers


async def test_no_proxy_is_taken_from_the_environment(
    web: WebDouble, make_fetcher: MakeFetcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, web.url())
    with pytest.raises(AddressRefused):
        await make_fetcher(allow=()).get("http://intranet.example/")
    assert web.connections == 0


async def test_not_modified_is_an_answer(web: WebDouble, make_fetcher: MakeFetcher) -> None:
    web.on("/", Reply(status=304, headers={"etag": '"1"'}))
    fetched = await make_fetcher().get(web.url(), headers={"If-None-Match": '"1"'})
    assert (fetched.status, fetched.content) == (304, b"")
    assert web.requests[0].headers["if-none-match"] == '"1"'


@pytest.mark.parametrize(
    ("encoding", "body"),
    [
        ("gzip", gzip.compress(b"text" * 100, mtime=0)),
        ("GZip ", gzip.compress(b"text" * 50, mtime=0) + gzip.compress(b"text" * 50, mtime=0)),
        ("deflate", zlib.compress(b"text" * 100)),
        ("deflate", zlib.compress(b"text" * 100, wbits=-15)),
        ("identity", b"text" * 100),
    ],
)
async def test_bodies_are_unpacked(web: WebDouble, make_fetcher: MakeFetcher, encoding: str, body: bytes) -> None:
    web.on("/", Reply(body, headers={"content-encoding": encoding}))
    assert (await make_fetcher().get(web.url())).content == b"text" * 100


@pytest.mark.parametrize(
    ("encoding", "body", "complaint"),
    [
        ("gzip", gzip.compress(b"text" * 100, mtime=0)[:-9], "cut off"),
        ("gzip", b"not gzip", "not packed the way it says"),
        ("br", b"x", "packed as 'br'"),
        ("gzip, gzip", gzip.compress(gzip.compress(b"x", mtime=0), mtime=0), "packed as"),
    ],
)
async def test_a_damaged_body_is_an_error(
    web: WebDouble, make_fetcher: MakeFetcher, encoding: str, body: bytes, complaint: str
) -> None:
    web.on("/", Reply(body, headers={"content-encoding": encoding}))
    with pytest.raises(FetchError, match=complaint):
        await make_fetcher().get(web.url())


@pytest.mark.parametrize(
    "make_reply",
    [
        lambda: Reply(b"x" * (1024 * 1024 + 1)),
        lambda: Reply(gzip.compress(bytes(200 * 1024 * 1024), mtime=0), headers={"content-encoding": "gzip"}),
        lambda: Reply(gzip.compress(b"", mtime=0) * 1001, headers={"content-encoding": "gzip"}),
        lambda: Reply(b"x", headers={"content-length": "9" * 15}),
    ],
    ids=["large", "bomb", "many", "declared"],
)
async def test_too_much_is_refused_and_not_tried_again(
    web: WebDouble, make_fetcher: MakeFetcher, make_reply: Callable[[], Reply]
) -> None:
    web.on("/", make_reply())
    with pytest.raises(FetchError, match="is larger than 1 MB") as refused:
        await make_fetcher(max_mb=1, retries=2).get(web.url())
    assert "fetch.max_mb" in refused.value.hint
    assert len(web.requests) == 1


async def test_a_caller_may_ask_for_less(web: WebDouble, make_fetcher: MakeFetcher) -> None:
    web.on("/", Reply(b"x" * 11))
    fetcher = make_fetcher()
    assert len((await fetcher.get(web.url(), max_bytes=11)).content) == 11
    with pytest.raises(FetchError, match="larger than"):
        await fetcher.get(web.url(), max_bytes=10)


@pytest.mark.parametrize(
    "trouble",
    [
        Reply(status=429),
        Reply(status=500),
        Reply(status=503),
        Reply(reset=True),
        Reply(b"half of it", cut=True),
        Reply(gzip.compress(b"x", mtime=0)[:-1], headers={"content-encoding": "gzip"}),
    ],
    ids=["429", "500", "503", "reset", "cut", "damaged"],
)
async def test_passing_troubles_are_tried_again(
    web: WebDouble, make_fetcher: MakeFetcher, patience: Patience, trouble: Reply
) -> None:
    web.on("/", trouble, trouble, html("there"))
    assert (await make_fetcher(retries=2).get(web.url())).content == b"there"
    assert patience.waits == [0.5, 1.0]


@pytest.mark.parametrize(
    ("trouble", "status"),
    [(Reply(status=429), 429), (Reply(status=502), 502), (Reply(reset=True), 0), (Reply(b"half", cut=True), 0)],
)
async def test_a_lasting_trouble_is_an_error(
    web: WebDouble, make_fetcher: MakeFetcher, trouble: Reply, status: int
) -> None:
    web.on("/", trouble)
    with pytest.raises(FetchError) as failed:
        await make_fetcher(retries=2).get(web.url())
    assert (failed.value.status, failed.value.code) == (status, "fetch_failed")
    assert f"http://127.0.0.1:{web.port}/" in str(failed.value)
    assert len(web.requests) == 3


@pytest.mark.parametrize("status", [400, 401, 403, 404, 410, 418])
async def test_a_refusal_is_not_tried_again(web: WebDouble, make_fetcher: MakeFetcher, status: int) -> None:
    web.on("/", Reply(status=status))
    with pytest.raises(FetchError, match=f"answered {status}") as failed:
        await make_fetcher(retries=2).get(web.url())
    assert failed.value.status == status
    assert len(web.requests) == 1


async def test_a_silent_server_is_given_up(web: WebDouble, make_fetcher: MakeFetcher) -> None:
    web.on("/", Reply(hang=True))
    with pytest.raises(FetchError, match=r"did not answer within 0\.2 s") as failed:
        await make_fetcher(timeout=0.2).get(web.url())
    assert failed.value.status == 0


async def test_a_closed_port_is_an_error(make_fetcher: MakeFetcher) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    with pytest.raises(FetchError, match="cannot be reached"):
        await make_fetcher().get(f"http://127.0.0.1:{port}/")


@pytest.mark.parametrize(
    ("asked", "waited"),
    [("7", 7.0), ("0", 0.0), ("-3", 0.0), ("86400", 60.0), ("inf", 0.5), ("nonsense", 0.5), ("", 0.5)],
)
async def test_the_wait_that_a_server_asks_for_is_kept_up_to_a_minute(
    web: WebDouble, make_fetcher: MakeFetcher, patience: Patience, asked: str, waited: float
) -> None:
    web.on("/", Reply(status=429, headers={"retry-after": asked}), html("ok"))
    await make_fetcher(retries=1).get(web.url())
    assert patience.waits == [waited]


async def test_a_date_to_wait_for_is_kept(web: WebDouble, make_fetcher: MakeFetcher, patience: Patience) -> None:
    date = format_datetime(now() + timedelta(seconds=40), usegmt=True)
    web.on("/", Reply(status=503, headers={"retry-after": date}), html("ok"))
    await make_fetcher(retries=1).get(web.url())
    assert 30 < patience.waits[0] <= 40


async def test_redirects_are_followed_so_many_times(web: WebDouble, make_fetcher: MakeFetcher) -> None:
    web.on("/1", redirect("/2"))
    web.on("/2", redirect("3?x=1", 301))
    web.on("/3", html("end"))
    fetcher = make_fetcher(redirects=2)
    assert (await fetcher.get(web.url("/1"))).url == web.url("/3?x=1")
    web.on("/3", redirect("/1", 307))
    with pytest.raises(FetchError, match="leads on more than 2 times"):
        await fetcher.get(web.url("/1"))


@pytest.mark.req("R-SEC-20")
async def test_what_was_meant_for_one_host_is_not_sent_to_another(web: WebDouble, make_fetcher: MakeFetcher) -> None:
    web.on("/here", redirect("/there"))
    web.on("/there", html("x"))
    fetcher = make_fetcher(allow=("127.0.0.1", "other.example"))
    web.on("/away", redirect(web.url("/there", host="other.example")))
    headers = {"Authorization": SECRET, "x-api-key": SECRET, "Cookie": SECRET, "If-None-Match": '"1"'}
    await fetcher.get(web.url("/away"), headers=headers)
    assert SECRET not in web.requests[1].headers.values()
    assert web.requests[1].headers["if-none-match"] == '"1"'
    await fetcher.get(web.url("/here"), headers=headers)
    assert web.requests[3].headers["x-api-key"] == SECRET


@pytest.mark.parametrize(("status", "method"), [(301, "GET"), (302, "GET"), (303, "GET"), (307, "POST"), (308, "POST")])
async def test_a_post_is_led_on_as_the_status_says(
    web: WebDouble, make_fetcher: MakeFetcher, status: int, method: str
) -> None:
    web.on("/a", redirect("/b", status))
    web.on("/b", html("x"))
    await make_fetcher().post(web.url("/a"), json={"a": 1})
    assert web.requests[1].method == method
    assert web.requests[1].body == (b'{"a": 1}' if method == "POST" else b"")


async def test_a_body_is_not_sent_on_to_another_host(web: WebDouble, make_fetcher: MakeFetcher) -> None:
    web.on("/a", redirect(web.url("/b", host="other.example"), 307))
    with pytest.raises(AddressRefused, match=r"send the request's content on to other\.example"):
        await make_fetcher().post(web.url("/a"), form={"client_secret": SECRET})
    assert len(web.requests) == 1


@pytest.mark.req("R-SEC-20")
@pytest.mark.parametrize(
    "reply", [Reply(status=404), Reply(status=500), Reply(reset=True), Reply(hang=True), redirect("ftp://x/")]
)
async def test_no_secret_stands_in_a_message(web: WebDouble, make_fetcher: MakeFetcher, reply: Reply) -> None:
    web.on("/", reply)
    with pytest.raises(FetchError) as failed:
        await make_fetcher(timeout=0.5).get(web.url(), params={"api_key": SECRET, "q": "shown"})
    assert SECRET not in f"{failed.value} {failed.value.hint}"


async def test_a_header_that_cannot_be_sent_is_an_error(web: WebDouble, make_fetcher: MakeFetcher) -> None:
    with pytest.raises(FetchError, match="cannot be sent"):
        await make_fetcher(retries=2).get(web.url(), headers={"x-a": "1\r\nx-b: 2"})
    assert web.requests == []


async def test_the_next_address_is_tried_when_one_does_not_answer(web: WebDouble) -> None:
    async def two(host: str, port: int) -> list[str]:
        return ["127.0.0.9", "127.0.0.1"]

    web.on("/", html("x"))
    fetcher = Fetcher(FetchSettings(allow=("pair.example",), retries=0), two)
    assert (await fetcher.get(web.url(host="pair.example"))).status == 200
    await fetcher.close()


@pytest.mark.parametrize(("error", "tries"), [(socket.EAI_AGAIN, 3), (socket.EAI_NONAME, 1)])
async def test_a_name_without_an_address_is_an_error(patience: Patience, error: int, tries: int) -> None:
    asked: list[str] = []

    async def broken(host: str, port: int) -> list[str]:
        asked.append(host)
        raise socket.gaierror(error, "no such name")

    fetcher = Fetcher(FetchSettings(retries=2), broken, wait=patience)
    with pytest.raises(FetchError, match=r"nowhere\.example cannot be resolved"):
        await fetcher.get("http://nowhere.example/")
    assert asked == ["nowhere.example"] * tries
    await fetcher.close()
