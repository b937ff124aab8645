"""Tenants without async."""

from __future__ import annotations

from ragstone.blocking.run import Run
from ragstone.core.tenants import UNLIMITED, Quotas, Tenant, TenantBook, Usage
from ragstone.core.types import Metadata


class BlockingTenants:
    """`TenantBook` without async, for the loop of a `Ragstone`."""

    def __init__(self, book: TenantBook, run: Run) -> None:
        self._book = book
        self._run = run

    def create(self, name: str, quotas: Quotas = UNLIMITED) -> Tenant:
        return self._run(self._book.create(name, quotas))

    def get(self, name: str) -> Tenant | None:
        return self._run(self._book.get(name))

    def all(self) -> list[Tenant]:
        return self._run(self._book.all())

    def rename(self, old: str, new: str) -> Tenant:
        return self._run(self._book.rename(old, new))

    def suspend(self, name: str) -> Tenant:
        return self._run(self._book.suspend(name))

    def resume(self, name: str) -> Tenant:
        return self._run(self._book.resume(name))

    def delete(self, name: str) -> Tenant:
        return self._run(self._book.delete(name))

    def set_quotas(self, name: str, quotas: Quotas) -> Tenant:
        return self._run(self._book.set_quotas(name, quotas))

    def set_retention(self, name: str, days: int | None) -> Tenant:
        return self._run(self._book.set_retention(name, days))

    def set_settings(self, name: str, settings: Metadata) -> Tenant:
        return self._run(self._book.set_settings(name, settings))

    def usage(self, name: str) -> Usage:
        return self._run(self._book.usage(name))
