"""Decides where a connection may go. A name is looked up once, and what was checked is what is connected to."""

from __future__ import annotations

import asyncio
import ipaddress
import re
import socket
from collections.abc import Awaitable, Callable, Sequence

from ragstone.core.errors import AddressRefused, FetchError, SettingsError
from ragstone.fetch.addresses import Address, Network, is_public, lies_in, literal

Resolve = Callable[[str, int], Awaitable[Sequence[str]]]
"""Looks a name up: all addresses it has."""
_NAME = re.compile(r"(?=.{1,253}$)[a-z0-9_](?:[a-z0-9_-]{0,62})(?:\.[a-z0-9_](?:[a-z0-9_-]{0,62}))*")


class Unresolved(FetchError):
    """A name without an address; `passing` when asking again may help."""

    def __init__(self, message: str, *, hint: str = "", passing: bool = False) -> None:
        super().__init__(message, hint=hint)
        self.passing = passing


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
        """The addresses of a host, all of them checked: one that is not public refuses the host."""
        name = host.lower().removesuffix(".")
        try:
            address = literal(name)
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
            or any(lies_in(address, network) for network in self._networks)
        )

    async def _look_up(self, name: str, port: int) -> list[Address]:
        try:
            found = await self._resolve(name, port)
        except (OSError, UnicodeError) as problem:
            passing = isinstance(problem, socket.gaierror) and problem.errno == socket.EAI_AGAIN
            raise Unresolved(
                f"{name} cannot be resolved", hint="check the host name and the DNS", passing=passing
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
