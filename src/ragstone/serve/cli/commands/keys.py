"""`ragstone keys`: the key that original files and stored secrets are encrypted with."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ragstone.serve.cli.exits import OK, PARTIAL
from ragstone.serve.cli.render.output import pluralize, text
from ragstone.serve.cli.session import CliSession

if TYPE_CHECKING:
    from rich.console import Console

    from ragstone.stores.factory import Renewal


async def new_encryption_key(session: CliSession) -> None:
    """Create a key for `security.key`. It is printed once and not stored."""
    from ragstone.engine.installation import create_key
    from ragstone.schemas.tenants import NewKeySchema

    key = create_key()

    session.show(NewKeySchema.of(key=key), lambda out: out.print(key, soft_wrap=True))


async def rotate_encryption(session: CliSession) -> int:
    """Encrypt the files and secrets of all tenants with the current key.

    First move the former `security.key` to `security.old_keys`. Remove it there once nothing failed.
    """
    from ragstone.engine.installation import rotate_keys
    from ragstone.schemas.tenants import RotationSchema

    done = await rotate_keys(session.settings())
    session.show(RotationSchema.of(tenants=done), lambda out: _draw(out, done))
    return PARTIAL if any(renewal.failed for renewal in done.values()) else OK


def _draw(out: Console, done: dict[str, Renewal]) -> None:
    for tenant, renewal in done.items():
        files, sources = pluralize(renewal.files, "file"), pluralize(renewal.sources, "source")
        out.print(text(f"{tenant}: {files} and {sources} brought under the present key"))
        for reason in renewal.failed:
            out.print(text(f"  {reason}", "red"))
    if not done:
        out.print("There are no tenants yet.")
