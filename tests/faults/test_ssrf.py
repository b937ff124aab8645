"""FAULTS 27 and 28: no address that a user or a document gives leads into the operator's own network.

A server listens on loopback and counts connections. Whatever is asked for, the count stays at zero; once
`fetch.allow` names the server, the same requests reach it. `RAGSTONE_REBINDS=1000 pytest tests/faults/test_ssrf.py` is
the long run.
"""

from __future__ import annotations

import ast
import random
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from tests.doubles.web import WebDouble, html, redirect
from tests.long_runs import take_rounds

import ragstone
from ragstone.core.errors import AddressRefused, FetchError
from ragstone.fetch.fetcher import Fetcher
from ragstone.fetch.guard import parse_literal
from ragstone.settings.tree import FetchSettings

REBINDS = take_rounds("RAGSTONE_REBINDS", 30)
LOOPBACK = [
    "127.0.0.1", "127.0.0.2", "127.1", "127.0.1", "127.255.255.254", "127.0.0.1.", "2130706433", "2130706434",
    "017700000001", "0x7f000001", "0x7F000001", "0X7f000001", "0x7f.0.0.1", "0x7f.0x0.0x0.0x1", "0x7f.1",
    "0177.0.0.1",
    "0177.0.0.01", "00177.0.0.1", "0177.1", "0x7f.0.1", "127.0.0.0x1", "127.0x0.1", "127.00.00.01", "0", "0.0.0.0",
    "0x0", "00", "0.0", "000.000.000.000", "[::1]", "[::]", "[0:0:0:0:0:0:0:1]", "[0000::0001]", "[::ffff:127.0.0.1]",
    "[::ffff:7f00:1]", "[::ffff:0.0.0.0]", "[::127.0.0.1]", "[::7f00:1]", "[::ffff:0:127.0.0.1]",
    "[64:ff9b::127.0.0.1]",
    "[64:ff9b::7f00:1]", "[64:ff9b:1::7f00:1]", "[2002:7f00:1::]", "[2002:7f00:1::1]", "[2001:0:7f00:1::]",
    "[2001:0:4136:e378:8000:63bf:80ff:fffe]", "[::1%25lo]", "[::1%lo]", "127。0。0。1", "127．0．0．1", "１２７.0.0.1",
    "①②⑦.⓪.⓪.①", "0x7f。1", "localhost", "LOCALHOST", "localhost.", "LocalHost.localdomain", "a.localhost",
    "ⓛocalhost", "loc\u00adalhost", "127.0.0.1.nip.io", "localtest.me", "lvh.me", "xn--n3h.example",
    "sub_domain.example",
]  # fmt: skip
INTERNAL = [
    "10.0.0.1", "10.255.255.255", "167772161", "0xa000001", "012.0.0.1", "10.1", "172.16.0.1", "172.31.255.255",
    "172.16.1", "0xac100001", "192.168.0.1", "192.168.1.1", "192.168.257", "3232235777", "0300.0250.1.1",
    "169.254.169.254",
    "169.254.43518", "2852039166", "0xa9fea9fe", "0251.0376.0251.0376", "[::ffff:169.254.169.254]",
    "[::ffff:a9fe:a9fe]",
    "[64:ff9b::a9fe:a9fe]", "[2002:a9fe:a9fe::]", "[fd00:ec2::254]", "100.64.0.1", "100.100.100.200",
    "100.127.255.255",
    "1681915905", "[::ffff:100.64.0.1]", "[64:ff9b::6440:1]", "[2002:6440:1::]", "192.0.0.192", "192.0.2.1",
    "192.88.99.1",
    "198.18.0.1", "198.19.255.255", "198.51.100.7", "203.0.113.9", "224.0.0.1", "239.255.255.250", "240.0.0.1",
    "255.255.255.255", "4294967295", "0xffffffff", "[fc00::1]", "[fd12:3456::1]", "[fe80::1]", "[fe80::1%25eth0]",
    "[fec0::1]", "[ff02::1]", "[ff0e::1]", "[2001:db8::1]", "[3fff::1]", "[100::1]", "[5f00::1]", "[2001:2::1]",
    "[2001:10::1]", "[64:ff9b::10.0.0.1]", "[2002:a00:1::]", "[::ffff:192.168.1.1]", "[::10.0.0.1]", "0.1.2.3",
    "1.2.3.4.5",
    "256.256.256.256", "4294967296", "0x100000000", "127.0.0.256", "08.0.0.1", "0xg", "1..1",
    "metadata.google.internal",
]  # fmt: skip
NOT_WEB = [
    "file:///etc/passwd", "file://127.0.0.1/etc/passwd", "FILE:///etc/passwd", "ftp://127.0.0.1:{port}/",
    "gopher://127.0.0.1:{port}/_GET%20/", "dict://127.0.0.1:{port}/", "ldap://127.0.0.1:{port}/",
    "ws://127.0.0.1:{port}/",
    "jar:http://127.0.0.1:{port}/!/", "view-source:http://127.0.0.1:{port}/", "data:text/html,x",
    "javascript:fetch('/')",
    "unix:///var/run/docker.sock", "http+unix://%2Fvar%2Frun%2Fdocker.sock/", "//127.0.0.1:{port}/",
    "127.0.0.1:{port}",
    "http:127.0.0.1:{port}/", "http:/127.0.0.1:{port}/", "http:///127.0.0.1:{port}/", "http:\\\\127.0.0.1:{port}\\",
    "http://user@127.0.0.1:{port}/", "http://example.com@127.0.0.1:{port}/",
    "http://example.com:80@127.0.0.1:{port}/",
    "http://127.0.0.1:{port}@example.com/", "http://example.com\\@127.0.0.1:{port}/", "http://:@127.0.0.1:{port}/",
    "http://127.0.0.1:{port}\\@example.com/", "http://example.com%40127.0.0.1:{port}/",
    "http://%31%32%37.0.0.1:{port}/",
    "http://127.0.0.1%2f:{port}/", "http://127.0.0.1%00.example.com:{port}/",
    "http://127.0.0.1\x00.example.com:{port}/",
    "http://127.0.0.1\t:{port}/", "http://127.0.0.1\r\n:{port}/", "\thttp://127.0.0.1:{port}/",
    " http://127.0.0.1:{port}/",
    "http://[127.0.0.1]:{port}/", "http://[::1]:{port}:{port}/", "http://127.0.0.1:0{port}/",
    "HTTP://127.0.0.1:{port}/",
    "http://127.0.0.1:{port}#@example.com/", "http://127.0.0.1:{port}?@example.com/", "http://127.0.0.1 :{port}/",
    "http://0000000000000000000000000000000000000127.0.0.1:{port}/", "http://" + "9" * 4000 + ":{port}/",
]  # fmt: skip
PUBLIC = "93.184.216.34"
ADDRESSES = [f"http://{host}:{{port}}/" for host in LOOPBACK + INTERNAL] + NOT_WEB


async def this_machine(host: str, port: int) -> list[str]:
    """A hostile zone: every name leads home."""
    return ["127.0.0.1"]


@pytest.fixture(scope="module")
def server() -> Iterator[WebDouble]:
    with WebDouble() as double:
        yield double


@pytest.fixture(scope="module")
def outside() -> Iterator[WebDouble]:
    with WebDouble() as double:
        yield double


@pytest.fixture
def web(server: WebDouble) -> WebDouble:
    server.connections = 0
    server.requests.clear()
    server.on("/", html("the crown jewels"))
    return server


def test_there_are_enough_forms() -> None:
    assert len(set(ADDRESSES)) >= 150


@pytest.mark.parametrize("address", ADDRESSES, ids=range(len(ADDRESSES)))
async def test_no_spelling_reaches_the_inside(web: WebDouble, address: str) -> None:
    fetcher = Fetcher(FetchSettings(timeout=5), this_machine)
    for attempt in (fetcher.get, fetcher.post):
        with pytest.raises(AddressRefused):
            await attempt(address.replace("{port}", str(web.port)))
    await fetcher.close()
    assert web.connections == 0


@pytest.mark.parametrize("address", ADDRESSES, ids=range(len(ADDRESSES)))
@pytest.mark.parametrize("status", [302, 307])
async def test_no_redirect_reaches_the_inside(web: WebDouble, outside: WebDouble, address: str, status: int) -> None:
    location = address.replace("{port}", str(web.port)).encode("ascii", "xmlcharrefreplace").decode()
    location = location.translate({9: None, 10: None, 13: None, 0: None})
    outside.requests.clear()
    outside.on("/start", redirect(location, status))
    # Only the server outside is allowed, by its name: where it leads to is not.
    fetcher = Fetcher(FetchSettings(allow=("outside.example",), retries=0, timeout=5), this_machine)
    with pytest.raises(FetchError):
        await fetcher.get(outside.url("/start", host="outside.example"))
    await fetcher.close()
    assert outside.paths[0] == "/start"
    assert web.connections == 0


class Rebinding:
    """A name server that gives a public address first and this machine from then on, or both at once."""

    def __init__(self, *answers: list[str]) -> None:
        self._answers = list(answers)
        self.asked = 0

    async def __call__(self, host: str, port: int) -> list[str]:
        self.asked += 1
        return self._answers[min(self.asked, len(self._answers)) - 1]


async def test_a_name_is_looked_up_once_for_each_connection(web: WebDouble) -> None:
    """Were it looked up again to connect, the second answer would lead elsewhere than what was checked."""
    resolver = Rebinding(["127.0.0.1"], ["127.0.0.9"])
    fetcher = Fetcher(FetchSettings(allow=("127.0.0.1",), retries=0), resolver)
    assert (await fetcher.get(web.url(host="rebind.example"))).content == b"the crown jewels"
    assert (resolver.asked, web.connections) == (1, 1)
    await fetcher.close()


@pytest.mark.parametrize(
    "answers",
    [
        [PUBLIC, "127.0.0.1"], ["127.0.0.1", PUBLIC], [PUBLIC, "::1"], [PUBLIC, "::ffff:127.0.0.1"],
        [PUBLIC, "64:ff9b::7f00:1"], [PUBLIC, "100.64.0.1"], [PUBLIC, "fe80::1%lo"], ["0.0.0.0", PUBLIC],
    ],
)  # fmt: skip
async def test_one_bad_answer_refuses_the_name(web: WebDouble, answers: list[str]) -> None:
    fetcher = Fetcher(FetchSettings(timeout=5), Rebinding(answers))
    with pytest.raises(AddressRefused):
        await fetcher.get(web.url(host="rebind.example"))
    with pytest.raises(AddressRefused):
        await fetcher.address("rebind.example", web.port)
    await fetcher.close()
    assert web.connections == 0


async def test_a_name_that_rebinds_between_redirects_is_refused(web: WebDouble) -> None:
    resolver = Rebinding(["127.0.0.1"], ["127.0.0.2"])
    web.on("/start", redirect(web.url("/next", host="rebind.example")))
    web.on("/next", html("the crown jewels"))
    fetcher = Fetcher(FetchSettings(allow=("127.0.0.1",), retries=0, timeout=5), resolver)
    with pytest.raises(AddressRefused, match=r"leads to 127\.0\.0\.2"):
        await fetcher.get(web.url("/start", host="first.example"))
    await fetcher.close()
    assert web.paths == ["/start"]


_connects: list[list[Any]] = []


def _note_connects(event: str, arguments: tuple[Any, ...]) -> None:
    if event == "socket.connect":
        for noted in _connects:
            noted.append(arguments[1])


sys.addaudithook(_note_connects)


@pytest.fixture
def connects() -> Iterator[list[Any]]:
    """The addresses that this process connects to during a test."""
    _connects.append([])
    yield _connects[-1]
    _connects.pop()


async def test_no_name_that_changes_its_mind_leads_inside(
    web: WebDouble, connects: list[Any], record_property: Callable[[str, object], None]
) -> None:
    """A name that was harmless once, twice or three times leads inside at its next look-up, alone or among others.

    Loopback's first address, which is allowed, stands for the public net: 0 connections go anywhere else.
    """
    choose = random.Random(27)
    inside = _internal_addresses()
    assert len(inside) > 50
    for attempt in range(REBINDS):
        harmless, name = choose.randrange(1, 4), f"rebind{attempt}.example"
        turned = [choose.choice(inside), *choose.sample([PUBLIC, "127.0.0.1"], choose.randrange(3))]
        choose.shuffle(turned)
        resolver = Rebinding(*[["127.0.0.1"]] * harmless, turned)
        for step in range(harmless):
            web.on(f"/{step}", redirect(web.url(f"/{step + 1}", host=name), choose.choice([301, 302, 303, 307, 308])))
        settings = FetchSettings(allow=("127.0.0.1",), retries=0, timeout=5, seconds_per_host=0)
        fetcher = Fetcher(settings, resolver)
        with pytest.raises(AddressRefused):
            await fetcher.get(web.url("/0", host=name))
        await fetcher.close()
        assert resolver.asked == harmless + 1
    record_property("injected", REBINDS)
    assert set(connects) == {("127.0.0.1", web.port)}
    assert web.connections == len(connects) >= REBINDS


def _internal_addresses() -> list[str]:
    """Return what a resolver could answer among the forms above, except for the allowed address and its carriers."""
    found = {}
    for host in [*LOOPBACK, *INTERNAL]:
        with suppress(ValueError):
            found[str(parse_literal(host.strip("[]")))] = host
    return [address for address in found if not re.search(r"^None$|127\.0\.0\.1$|7f00:1\b", address)]


@pytest.mark.parametrize(
    ("allow", "host"),
    [
        ("127.0.0.1", "127.0.0.1"), ("127.0.0.0/8", "127.1"), ("127.0.0.1", "2130706433"), ("127.0.0.1", "0x7f.1"),
        ("127.0.0.1", "anything.example"), ("wiki.example", "wiki.example"), ("localhost", "LocalHost."),
        ("127.0.0.1", "[::ffff:127.0.0.1]"),
    ],
)  # fmt: skip
async def test_what_the_operator_allows_is_reached(web: WebDouble, allow: str, host: str) -> None:
    fetcher = Fetcher(FetchSettings(allow=(allow,)), this_machine)
    assert (await fetcher.get(web.url(host=host))).content == b"the crown jewels"
    await fetcher.close()
    assert web.connections == 1


NETWORK = {
    "socket", "ssl", "httpx", "httpx2", "httpcore", "httpcore2", "urllib.request", "urllib3", "requests", "aiohttp",
    "http.client", "imaplib", "poplib", "smtplib", "ftplib", "telnetlib", "xmlrpc.client", "websockets", "asyncssh",
    "anyio", "boto3", "paramiko", "opentelemetry.exporter.otlp.proto.http.trace_exporter",
}  # fmt: skip
MAY = {
    "client": "runs in the program of its user, who gives it the address",
    "fetch": "the guarded fetcher itself, and calls to services of the operator's own",
    "models": "addresses of models are the operator's own",
    "testing": "doubles that listen on loopback",
}
CONNECTS = {"open_connection", "create_connection", "create_datagram_endpoint", "urlopen", "urlretrieve"}
NAMED = re.compile(rf"\b({'|'.join(sorted(CONNECTS | {name.partition('.')[0] for name in NETWORK}))})\b")
"""What a module has to name before anything is found in it."""


IMAP = "ingest/sources/mail/imap_session.py"
ALLOWED = {
    *((f"stores/vectors/{name}.py", "httpx") for name in ("qdrant/server", "chroma/client")),
    *((IMAP, name) for name in ("imaplib", "socket", "ssl", "create_connection")),
    ("serve/server.py", "socket"),
    ("serve/probe.py", "http.client"),
    ("serve/http/tracing.py", "opentelemetry.exporter.otlp.proto.http.trace_exporter"),
}
"""Ways out that were looked at: IMAP connects to the address that the guard has checked, and to no name.

Two stores only know the names of their library's errors, and the service opens the socket it listens at.
The probe of a container asks the service beside it. The collector of traces is the operator's own, and redirects of it
are not followed.
"""


def test_nothing_else_opens_connections() -> None:
    root = Path(ragstone.__file__).parent
    found = {
        (path.relative_to(root).as_posix(), what)
        for path in sorted(root.rglob("*.py"))
        if path.relative_to(root).parts[0] not in MAY
        for what in _ways_out(path)
    }
    assert found == ALLOWED


def _ways_out(path: Path) -> Iterator[str]:
    text = path.read_text()
    if not NAMED.search(text):  # reading the syntax of all modules takes seconds
        return
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.Import(names=names):
                modules = [name.name for name in names]
            case ast.ImportFrom(module=str(module), names=names, level=0):
                modules = [module, *(f"{module}.{name.name}" for name in names)]
            case ast.Attribute(attr=attribute) if attribute in CONNECTS:
                yield attribute
                continue
            case _:
                continue
        for module in modules:
            if module in NETWORK or module.split(".")[0] in NETWORK:
                yield module


def test_the_check_sees_a_way_out(tmp_path: Path) -> None:
    file = tmp_path / "leak.py"
    file.write_text("import httpx2\nfrom urllib import request\nfrom urllib.parse import quote\nx.open_connection()\n")
    assert set(_ways_out(file)) == {"httpx2", "urllib.request", "open_connection"}
