"""Carries prepared documents from where they are read to where they are embedded."""

from __future__ import annotations

import asyncio

from ragstone.ingest.prepare import Prepared

WAVE_CHUNKS = 64
"""Few enough that progress shows on a slow machine, enough for batches of like length."""
LONG_CHUNKS = 256
"""From this many chunks on a document is a wave of its own, embedded slice by slice."""
AHEAD_CHUNKS = 4096
"""How many chunks may wait for the model."""


class Belt:
    """Holds a bounded number of chunks; a document larger than that travels alone."""

    def __init__(self) -> None:
        self._queue: asyncio.Queue[Prepared | None] = asyncio.Queue()
        self._held: Prepared | None = None
        self._waiting = 0
        self._room = asyncio.Condition()

    async def put(self, document: Prepared) -> None:
        """Wait for room, then hand over."""
        async with self._room:
            await self._room.wait_for(
                lambda: not self._waiting or self._waiting + len(document.chunks) <= AHEAD_CHUNKS
            )
            self._waiting += len(document.chunks)
        self._queue.put_nowait(document)

    def end(self) -> None:
        """Nothing more will come."""
        self._queue.put_nowait(None)

    async def wave(self) -> list[Prepared]:
        """The next documents, as many as fill the model's batches, a long one alone; empty at the end."""
        wave: list[Prepared] = []
        chunks = 0
        while chunks < WAVE_CHUNKS:
            document = self._held or await self._queue.get()
            self._held = None
            if document is None:
                self.end()
                break
            if wave and len(document.chunks) >= LONG_CHUNKS:
                self._held = document
                break
            wave.append(document)
            chunks += len(document.chunks)
        async with self._room:
            self._waiting -= chunks
            self._room.notify_all()
        return wave
