"""Writes small files of the old Office container, workbooks and messages in it: no library we have does."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

SECTOR, MINI, CUTOFF = 512, 64, 4096
FREE, END, FAT = 0xFFFFFFFF, 0xFFFFFFFE, 0xFFFFFFFD
Tree = Mapping[str, "bytes | Tree"]
Cell = str | float | None


@dataclass
class _Entry:
    name: str
    kind: int
    data: bytes = b""
    child: int = FREE
    right: int = FREE
    start: int = END

    def packed(self) -> bytes:
        name = (self.name + "\0").encode("utf-16-le")
        tail = struct.pack("<16sIQQIQ", b"", 0, 0, 0, self.start, len(self.data))
        return (
            name.ljust(64, b"\0") + struct.pack("<HBBIII", len(name), self.kind, 1, FREE, self.right, self.child) + tail
        )


@dataclass
class _Chains:
    """Sectors with the table that links them."""

    size: int
    data: bytearray = field(default_factory=bytearray)
    table: list[int] = field(default_factory=list)

    def add(self, data: bytes) -> int:
        count = -(-len(data) // self.size)
        if not count:
            return END
        start = len(self.table)
        self.table += [*range(start + 1, start + count), END]
        self.data += data.ljust(count * self.size, b"\0")
        return start


def write_ole(tree: Tree) -> bytes:
    """Return a compound file with these streams; a mapping in it is a folder."""
    entries = [_Entry("Root Entry", 5)]
    _add(entries, 0, tree)
    big, mini = _Chains(SECTOR), _Chains(MINI)
    for entry in entries[1:]:
        if entry.kind == 2:
            entry.start = (mini if len(entry.data) < CUTOFF else big).add(entry.data)
    entries[0].data = bytes(mini.data)
    entries[0].start = big.add(entries[0].data)
    mini_table = struct.pack(f"<{len(mini.table)}I", *mini.table)
    mini_fat = big.add(mini_table + b"\xff" * (-len(mini_table) % SECTOR))
    directory = big.add(b"".join(entry.packed() for entry in entries))
    fats = -(-(len(big.table) + 8) // (SECTOR // 4 - 1))
    first_fat = len(big.table)
    table = [*big.table, *[FAT] * fats]
    table += [FREE] * (fats * SECTOR // 4 - len(table))
    header = struct.pack(
        "<8s16sHHHHH6xIIIIIIIII", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", b"", 0x3E, 3, 0xFFFE, 9, 6, 0, fats, directory,
        0, CUTOFF, mini_fat, len(mini_table) // SECTOR + 1 if mini_table else 0, END, 0,
    )  # fmt: skip
    places = [*range(first_fat, first_fat + fats), *[FREE] * (109 - fats)]
    return header + struct.pack("<109I", *places) + bytes(big.data) + struct.pack(f"<{len(table)}I", *table)


def _add(entries: list[_Entry], parent: int, tree: Tree) -> None:
    before = -1
    for name, content in tree.items():
        place = len(entries)
        entries.append(_Entry(name, 2, content) if isinstance(content, bytes) else _Entry(name, 1))
        if before < 0:
            entries[parent].child = place
        else:
            entries[before].right = place
        before = place
        if not isinstance(content, bytes):
            _add(entries, place, content)


def write_xls(
    rows: Sequence[Sequence[Cell]],
    *,
    formats: Mapping[int, str] | None = None,
    merged: Sequence[int] = (),
    password: bool = False,
) -> bytes:
    """Return a workbook of one sheet; `formats` gives columns a format, `merged` is first and last row and column."""
    styles = [(0, "General"), *((164 + n, text) for n, text in enumerate((formats or {}).values()))]
    columns = {column: number for number, column in enumerate(formats or {}, start=1)}
    lock = _record(0x2F, struct.pack("<HHHHH", 0, 1, 1, 0, 0)) if password else b""
    font = _record(0x31, struct.pack("<HHHHHBBBB", 200, 0, 0x7FFF, 400, 0, 0, 0, 0, 0) + _text("Arial", "<B"))
    named = b"".join(_record(0x41E, struct.pack("<H", key) + _text(text, "<H")) for key, text in styles[1:])
    looks = b"".join(_record(0xE0, struct.pack("<HHHBBBBIIH", 0, key, 0, 0, 0, 0, 0, 0, 0, 0)) for key, _ in styles)
    opening = _record(0x809, struct.pack("<HHHHII", 0x600, 5, 0, 1997, 0, 0)) + lock + font + named + looks
    place = len(opening) + len(_record(0x85, bytes(6) + _text("Fares", "<B"))) + 4
    globals_ = opening + _record(0x85, struct.pack("<IBB", place, 0, 0) + _text("Fares", "<B")) + _record(0x0A, b"")
    sheet = _record(0x809, struct.pack("<HHHHII", 0x600, 0x10, 0, 1997, 0, 0))
    for row, cells in enumerate(rows):
        for column, cell in enumerate(cells):
            at = struct.pack("<HHH", row, column, columns.get(column, 0))
            if isinstance(cell, str):
                sheet += _record(0x204, at + _text(cell, "<H"))
            elif cell is not None:
                sheet += _record(0x203, at + struct.pack("<d", cell))
    if merged:
        sheet += _record(0xE5, struct.pack("<HHHHH", 1, *merged))
    stream = globals_ + sheet + _record(0x0A, b"")
    return write_ole({"Workbook": stream.ljust(CUTOFF, b"\0")})


def _record(kind: int, data: bytes) -> bytes:
    return struct.pack("<HH", kind, len(data)) + data


def _text(text: str, length: str) -> bytes:
    return struct.pack(length, len(text)) + b"\x01" + text.encode("utf-16-le")


def write_msg(texts: Mapping[int, str], **parts: object) -> bytes:
    """Return a message of Outlook's with these properties."""
    return write_ole(msg_tree(texts, **parts))


def msg_tree(
    texts: Mapping[int, str],
    *,
    numbers: Mapping[int, int] | None = None,
    binaries: Mapping[int, bytes] | None = None,
    folders: Tree | None = None,
    header: int = 32,
    ansi: str = "",
) -> Tree:
    """Return the streams of a message, a recipient or an attachment; texts are in a codec of old if one is named."""
    kind, codec = ("001E", ansi) if ansi else ("001F", "utf-16-le")
    fixed = b"".join(struct.pack("<HHIQ", 3, tag, 6, value) for tag, value in (numbers or {}).items())
    return {
        "__properties_version1.0": bytes(header) + fixed,
        **{f"__substg1.0_{tag:04X}{kind}": text.encode(codec) for tag, text in texts.items()},
        **{f"__substg1.0_{tag:04X}0102": data for tag, data in (binaries or {}).items()},
        **(folders or {}),
    }
