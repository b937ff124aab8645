"""Which network addresses are on the public net.

The tables are written out instead of asking `ipaddress.is_global`: that answer has changed between Python releases,
and none of them looks inside addresses that carry another one.
"""

from __future__ import annotations

import asyncio
import ipaddress
import re
import socket
from collections.abc import Awaitable, Callable, Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network

from ragstone.core.errors import AddressRefused, FetchError, SettingsError

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

_NOT_PUBLIC_4 = tuple(
    IPv4Network(network)
    for network in (
        "0.0.0.0/8",  # this network
        "10.0.0.0/8",  # private
        "100.64.0.0/10",  # carrier-grade NAT
        "127.0.0.0/8",  # loopback
        "169.254.0.0/16",  # link-local, where clouds answer with credentials
        "172.16.0.0/12",  # private
        "192.0.0.0/24",  # protocol assignments
        "192.0.2.0/24",  # documentation
        "192.88.99.0/24",  # 6to4 relays
        "192.168.0.0/16",  # private
        "198.18.0.0/15",  # benchmarks
        "198.51.100.0/24",  # documentation
        "203.0.113.0/24",  # documentation
        "224.0.0.0/4",  # multicast
        "240.0.0.0/4",  # reserved and broadcast
    )
)
_PUBLIC_6 = IPv6Network("2000::/3")
_NOT_PUBLIC_6 = tuple(
    IPv6Network(network)
    for network in (
        "2001::/23",  # protocol assignments, ORCHID, benchmarks
        "2001:db8::/32",  # documentation
        "3fff::/20",  # documentation
    )
)
_NAT64 = IPv6Network("64:ff9b::/96")


def is_public(address: Address) -> bool:
    """Return whether an address is global unicast; one that carries another is judged by what it carries."""
    if inner := embedded_addresses(address):
        return all(map(is_public, inner))
    if isinstance(address, IPv4Address):
        return not any(address in network for network in _NOT_PUBLIC_4)
    return address in _PUBLIC_6 and not any(address in network for network in _NOT_PUBLIC_6)


def embedded_addresses(address: Address) -> tuple[IPv4Address, ...]:
    """Return the IPv4 addresses that packets to an IPv6 address end up at: mapped, NAT64, 6to4, Teredo."""
    if isinstance(address, IPv4Address):
        return ()
    if address.ipv4_mapped:
        return (address.ipv4_mapped,)
    if address in _NAT64:
        return (IPv4Address(int(address) & 0xFFFFFFFF),)
    if address.sixtofour:
        return (address.sixtofour,)
    return address.teredo or ()


def is_in_network(address: Address, network: Network) -> bool:
    """Return whether an address, or all that it carries, is in a network."""
    return address in network or bool((inner := embedded_addresses(address)) and all(ip in network for ip in inner))


def parse_literal(host: str) -> Address | None:
    """Return the address that a host is, in any spelling a resolver takes: `127.1`, `0x7f000001`, `2130706433`.

    None for a name. Raises ValueError for what looks like a number and cannot be one: resolvers disagree on those.
    """
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        labels = host.split(".")
    if not _is_number(labels[-1]):
        return None
    *front, last = [_number(label) for label in labels]
    if len(front) > 3 or any(part > 255 for part in front) or last >= 256 ** (4 - len(front)):
        raise ValueError(f"{host} is not an IPv4 address")
    return IPv4Address(sum(part << 24 - 8 * place for place, part in enumerate(front)) + last)


def _is_number(label: str) -> bool:
    return label.isdigit() or label[:2] in ("0x", "0X")


def _number(label: str) -> int:
    if not label.isascii() or not label.isalnum() or len(label) > 20:
        raise ValueError(f"{label!r:.40} is not a number")
    if label[:2] in ("0x", "0X"):
        return int(label[2:] or "0", 16)
    return int(label, 8) if label.startswith("0") else int(label)


Resolve = Callable[[str, int], Awaitable[Sequence[str]]]
"""Looks a name up: all addresses it has."""
_NAME = re.compile(r"(?=.{1,253}$)[a-z0-9_](?:[a-z0-9_-]{0,62})(?:\.[a-z0-9_](?:[a-z0-9_-]{0,62}))*")


class Unresolved(FetchError):
    """A name without an address; `transient` when asking again may help."""

    def __init__(self, message: str, *, hint: str = "", transient: bool = False) -> None:
        super().__init__(message, hint=hint)
        self.transient = transient


async def look_up(host: str, port: int) -> list[str]:
    """Ask the system's resolver, off the event loop."""
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


class Guard:
    """Lets connections out to public addresses, and to what the operator allows."""

    def __init__(self, allow: Sequence[str] = (), resolve: Resolve | None = None) -> None:
        self._hosts: set[str] = set()
        self._networks: list[Network] = []
        for entry in allow:
            self._allow(entry)
        self._resolve = resolve or look_up

    async def addresses(self, host: str, port: int) -> list[str]:
        """Return the addresses of a host, all of them checked: one that is not public refuses the host."""
        name = host.lower().removesuffix(".")
        try:
            address = parse_literal(name)
        except ValueError as problem:
            raise AddressRefused(f"{host!r:.100} is not a host", hint="check how it is written") from problem
        if address is None and not _NAME.fullmatch(name):
            raise AddressRefused(f"{host!r:.100} is not a host", hint="check how it is written")
        found = [address] if address else await self._look_up(name, port)
        for candidate in found:
            if not self._may_go_to(name, candidate):
                raise AddressRefused(
                    f"{name} leads to {candidate}, which is not a public address",
                    hint="an operator can allow the host, the address or its network with fetch.allow in "
                    "ragstone.yaml, as in allow: [10.1.0.0/16]",
                )
        # A mapped address is connected to as the IPv4 address it is.
        return [str(getattr(candidate, "ipv4_mapped", None) or candidate) for candidate in found]

    def _may_go_to(self, name: str, address: Address) -> bool:
        return (
            is_public(address)
            or name in self._hosts
            or any(is_in_network(address, network) for network in self._networks)
        )

    async def _look_up(self, name: str, port: int) -> list[Address]:
        try:
            found = await self._resolve(name, port)
        except (OSError, UnicodeError) as problem:
            transient = isinstance(problem, socket.gaierror) and problem.errno == socket.EAI_AGAIN
            raise Unresolved(
                f"{name} cannot be resolved", hint="check the host name and the DNS", transient=transient
            ) from problem
        if not found:
            raise Unresolved(f"{name} has no address", hint="check the host name and the DNS")
        return [ipaddress.ip_address(entry) for entry in found]

    def _allow(self, entry: str) -> None:
        try:
            self._networks.append(ipaddress.ip_network(entry, strict=False))
        except ValueError:
            name = entry.lower().removesuffix(".")
            if not _NAME.fullmatch(name):
                raise SettingsError(
                    f"fetch.allow: {entry!r:.100} is neither a host nor an address nor a network",
                    hint="write wiki.example, 10.1.2.3 or 10.1.0.0/16, without scheme, port or path",
                ) from None
            self._hosts.add(name)
