"""Which network addresses are on the public net.

The tables are written out instead of asking `ipaddress.is_global`: that answer has changed between Python releases,
and none of them looks inside addresses that carry another one.
"""

from __future__ import annotations

import ipaddress
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network

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
    """Whether an address is global unicast; one that carries another is judged by what it carries."""
    if inner := carried(address):
        return all(map(is_public, inner))
    if isinstance(address, IPv4Address):
        return not any(address in network for network in _NOT_PUBLIC_4)
    return address in _PUBLIC_6 and not any(address in network for network in _NOT_PUBLIC_6)


def carried(address: Address) -> tuple[IPv4Address, ...]:
    """The IPv4 addresses that packets to an IPv6 address end up at: mapped, NAT64, 6to4, Teredo."""
    if isinstance(address, IPv4Address):
        return ()
    if address.ipv4_mapped:
        return (address.ipv4_mapped,)
    if address in _NAT64:
        return (IPv4Address(int(address) & 0xFFFFFFFF),)
    if address.sixtofour:
        return (address.sixtofour,)
    return address.teredo or ()


def lies_in(address: Address, network: Network) -> bool:
    """Whether an address, or all that it carries, is of a network."""
    return address in network or bool((inner := carried(address)) and all(ip in network for ip in inner))


def literal(host: str) -> Address | None:
    """The address that a host is, in any spelling a resolver takes: `127.1`, `0x7f000001`, `2130706433`.

    None for a name. Raises ValueError for what looks like a number and is none: resolvers disagree on those.
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
