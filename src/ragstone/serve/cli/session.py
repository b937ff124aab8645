"""The session of a command: its options, the settings they lead to, an engine, and a place to write."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Literal

from ragstone.core.errors import InputError, NotFoundError
from ragstone.serve.cli.options import Common
from ragstone.serve.cli.render.output import console, say, write_json

if TYPE_CHECKING:
    from rich.console import Console

    from ragstone.engine.engine import Engine
    from ragstone.engine.workspace import Workspace
    from ragstone.schemas.schema import Schema
    from ragstone.settings.tree import Settings

Warm = Literal["search", "answers"]
"""The use that a command will make of the models, which are loaded while the store is being opened."""
SLOW_SECONDS = 1.0
"""Seconds after which a line says what is going on."""
CATCHING_UP = "bringing the vector store up to date …"


class CliSession:
    """One run of a command."""

    def __init__(self, options: Common) -> None:
        self.options = options

    def settings(self, **overrides: Any) -> Settings:
        """Return the settings in force; overrides are for keys the command itself decides."""
        from ragstone.settings.load import load_settings

        options = self.options
        given = {"data_dir": options.data_dir, "tenant": options.tenant, "kb": options.kb, "profile": options.profile}
        return load_settings(config=options.config, overrides={**given, **overrides})

    @asynccontextmanager
    async def engine(
        self, settings: Settings | None = None, *, warm: Warm | None = None, create: bool = False
    ) -> AsyncIterator[Engine]:
        """Yield an open engine. `warm` says for what models are loaded while the store is being opened.

        Only with `create` may there be no data yet: looking for something must not leave a folder behind.
        """
        settings = settings or self.settings()
        if not create and settings.store.ledger.kind == "sqlite" and not settings.data_dir.exists():
            raise NotFoundError(
                f"there is no data in {settings.data_dir} yet",
                hint="ragstone ingest PATH makes it; --data-dir names another folder",
            )
        import asyncio

        from ragstone.engine.engine import open_engine

        async with open_engine(settings) as engine:
            loading = asyncio.ensure_future(engine.warm(settings.tenant, answers=warm == "answers")) if warm else None
            try:
                yield engine
            finally:
                if loading:
                    # A model that cannot be loaded is reported by whatever needs it.
                    async with self.slow_notice(CATCHING_UP):
                        await asyncio.gather(loading, return_exceptions=True)

    @asynccontextmanager
    async def workspace(
        self, settings: Settings | None = None, *, warm: Warm | None = None, create: bool = False
    ) -> AsyncIterator[Workspace]:
        """Open an engine and give it as the tenant of the settings sees it; the options are those of `engine`."""
        chosen = settings or self.settings()
        async with self.engine(chosen, warm=warm, create=create) as engine:
            yield engine.workspace(chosen.tenant)

    @property
    def shows_progress(self) -> bool:
        """Return True when progress is to be shown."""
        return sys.stderr.isatty() and not (self.options.quiet or self.options.json)

    @asynccontextmanager
    async def slow_notice(self, message: str) -> AsyncIterator[None]:
        """Say what is going on when the block takes its time."""
        if not self.shows_progress:
            yield
            return
        import asyncio

        saying = asyncio.ensure_future(_say_later(message))
        try:
            yield
        finally:
            saying.cancel()
            await asyncio.gather(saying, return_exceptions=True)

    def show(self, shape: Schema, draw: Callable[[Console], None]) -> None:
        """Print the result: as JSON, or drawn for people."""
        if self.options.json:
            write_json(shape)
        else:
            draw(console())

    def warn(self, messages: Iterable[str]) -> None:
        """Remarks on stderr; JSON carries them itself."""
        for message in messages:
            self.remark("warning", message)

    def remark(self, kind: str, message: str) -> None:
        """Print one line on stderr for people."""
        if not (self.options.quiet or self.options.json):
            say(kind, message)

    def confirms(self, question: str, *, yes: bool) -> bool:
        """Return True to go on: ask on a terminal, unless the answer was given with `--yes`."""
        if yes:
            return True
        if self.options.json or not (sys.stdin.isatty() and sys.stderr.isatty()):
            raise InputError(f"{question} There is nobody to ask here", hint="add --yes")
        import typer

        from ragstone.serve.cli.signals import interruptible

        try:
            with interruptible():
                if typer.confirm(question, err=True):
                    return True
        except typer.Abort:
            raise KeyboardInterrupt from None
        self.remark("note", "nothing was removed")
        return False


async def _say_later(message: str) -> None:
    import asyncio

    await asyncio.sleep(SLOW_SECONDS)
    with console(stderr=True).status(message):
        await asyncio.Event().wait()
