from __future__ import annotations

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragstone.core.errors import AddressRefused, FetchError, SettingsError
from ragstone.fetch.guard import Guard, Resolve, is_in_network, is_public, look_up, parse_literal


def everything_is(*addresses: str) -> Resolve:
    """A resolver for which every name has these addresses."""

    async def resolve(host: str, port: int) -> list[str]:
        return list(addresses)

    return resolve


@pytest.mark.parametrize(
    "address",
    [
        "8.8.8.8", "1.1.1.1", "93.184.216.34", "100.63.255.255", "100.128.0.0", "172.15.0.1", "172.32.0.1", "192.0.1.1",
        "198.17.0.1", "198.20.0.1", "223.255.255.255", "2606:4700::1111", "2a00:1450::1", "2001:4860:4860::8888",
        "::ffff:8.8.8.8", "64:ff9b::8.8.8.8", "2002:808:808::1",
    ],
)  # fmt: skip
def test_public_addresses(address: str) -> None:
    assert is_public(ipaddress.ip_address(address))


@pytest.mark.parametrize(
    "address",
    [
        "0.0.0.0", "0.1.2.3", "10.0.0.1", "100.64.0.1", "100.127.255.255", "127.0.0.1", "127.255.255.254",
        "169.254.169.254", "172.16.0.1", "172.31.255.255", "192.0.0.8", "192.0.2.1", "192.88.99.1", "192.168.1.1",
        "198.18.0.1", "198.19.255.255", "198.51.100.1", "203.0.113.1", "224.0.0.1", "239.1.1.1", "240.0.0.1",
        "255.255.255.255", "::", "::1", "::127.0.0.1", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "::ffff:0:127.0.0.1",
        "64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe", "64:ff9b:1::7f00:1", "2002:7f00:1::", "2002:a9fe:a9fe::1",
        "2001:0:4136:e378:8000:63bf:80ff:fffe", "2001::1", "2001:10::1", "2001:db8::1", "3fff::1", "100::1",
        "fc00::1", "fd00:ec2::254", "fe80::1", "fe80::1%eth0", "fec0::1", "ff02::1", "5f00::1", "4000::1",
    ],
)  # fmt: skip
def test_addresses_that_are_not_public(address: str) -> None:
    assert not is_public(ipaddress.ip_address(address))


@pytest.mark.parametrize(
    ("host", "address"),
    [
        ("127.0.0.1", "127.0.0.1"), ("127.1", "127.0.0.1"), ("127.0.1", "127.0.0.1"), ("2130706433", "127.0.0.1"),
        ("0x7f000001", "127.0.0.1"), ("0x7f.0.0.1", "127.0.0.1"), ("0x7f.1", "127.0.0.1"), ("0177.0.0.1", "127.0.0.1"),
        ("017700000001", "127.0.0.1"), ("0", "0.0.0.0"), ("0x", "0.0.0.0"), ("8.8.2056", "8.8.8.8"), ("::1", "::1"),
    ],
)  # fmt: skip
def test_numbers_are_addresses(host: str, address: str) -> None:
    assert parse_literal(host) == ipaddress.ip_address(address)


@pytest.mark.parametrize("host", ["example.com", "1.example", "0x7f.example", "a", "dead.beef", "127.0.0.1.nip.io"])
def test_names_are_not(host: str) -> None:
    assert parse_literal(host) is None


@pytest.mark.parametrize(
    "host", ["1.2.3.4.5", "256.1.1.1.1", "256.256.256.256", "1..2", "08.0.0.1", "0xg", "4294967296", "9" * 5000]
)
async def test_what_looks_like_a_number_and_is_none_is_refused(host: str) -> None:
    with pytest.raises(AddressRefused, match="is not a host"):
        await Guard(resolve=everything_is("8.8.8.8")).addresses(host, 80)


@pytest.mark.parametrize(
    "host", ["", ".", "a..b", "-a.example", "a b", "a%41", "a/b", "é", "a" * 64, "a." * 128, "a\n"]
)
async def test_what_cannot_be_a_name_is_refused(host: str) -> None:
    with pytest.raises(AddressRefused, match="is not a host"):
        await Guard(resolve=everything_is("8.8.8.8")).addresses(host, 80)


async def test_every_address_of_a_name_must_be_public() -> None:
    assert await Guard(resolve=everything_is("8.8.8.8", "1.1.1.1")).addresses("a.example", 80) == ["8.8.8.8", "1.1.1.1"]
    with pytest.raises(AddressRefused, match=r"a\.example leads to 10\.0\.0\.1") as refused:
        await Guard(resolve=everything_is("8.8.8.8", "10.0.0.1")).addresses("a.example", 80)
    assert "fetch.allow" in refused.value.hint


@pytest.mark.parametrize(
    ("allow", "host", "address"),
    [
        ("wiki.example", "WIKI.example.", "10.1.2.3"),
        ("10.1.2.3", "wiki.example", "10.1.2.3"),
        ("10.1.0.0/16", "wiki.example", "10.1.2.3"),
        ("10.1.0.0/16", "wiki.example", "::ffff:10.1.2.3"),
        ("10.1.0.0/16", "10.66051", "10.1.2.3"),
        ("fd00::/8", "wiki.example", "fd12::1"),
        ("FD12::1", "fd12::1", "fd12::1"),
    ],
)
async def test_an_operator_can_allow_what_is_not_public(allow: str, host: str, address: str) -> None:
    assert await Guard((allow,), everything_is(address)).addresses(host, 80) == [address.removeprefix("::ffff:")]


@pytest.mark.parametrize(
    ("allow", "host", "address"),
    [
        ("wiki.example", "evil.wiki.example", "10.1.2.3"),
        ("wiki.example", "wiki.example.evil.example", "10.1.2.3"),
        ("10.1.0.0/16", "wiki.example", "10.2.0.1"),
        ("10.1.2.3", "wiki.example", "10.1.2.4"),
    ],
)
async def test_what_is_allowed_is_no_more_than_that(allow: str, host: str, address: str) -> None:
    with pytest.raises(AddressRefused):
        await Guard((allow,), everything_is(address)).addresses(host, 80)


@pytest.mark.parametrize("entry", ["http://wiki.example", "wiki.example:80", "10.0.0.0/33", "*.example", "", "a/b"])
def test_a_wrong_entry_is_named(entry: str) -> None:
    with pytest.raises(SettingsError, match=r"fetch\.allow"):
        Guard((entry,))


async def test_a_name_without_addresses_is_an_error() -> None:
    with pytest.raises(FetchError, match="has no address"):
        await Guard(resolve=everything_is()).addresses("a.example", 80)


async def test_the_system_resolver_is_asked_by_default() -> None:
    assert "127.0.0.1" in await look_up("localhost", 80)
    with pytest.raises(AddressRefused, match="localhost leads to"):
        await Guard().addresses("localhost", 80)


@given(st.ip_addresses())
def test_what_is_public_is_global_for_python_too(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> None:
    if is_public(address):
        assert not address.is_private
        assert not address.is_loopback
        assert not address.is_link_local
        assert not address.is_multicast


@given(st.ip_addresses(v=4))
def test_an_address_inside_another_is_judged_alike(inner: ipaddress.IPv4Address) -> None:
    number = int(inner)
    for outer in (0xFFFF << 32 | number, 0x64FF9B << 96 | number, 0x2002 << 112 | number << 80):
        wrapped = ipaddress.IPv6Address(outer)
        assert is_public(wrapped) == is_public(inner)
        assert is_in_network(wrapped, ipaddress.ip_network(inner))
    assert parse_literal(str(number)) == parse_literal(hex(number)) == parse_literal(f"0{number:o}") == inner
