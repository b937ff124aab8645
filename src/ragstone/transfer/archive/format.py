"""The archive format and the checks on what an archive says."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any, TypeVar, cast, get_args

from ragstone.core.clock import canonical, parse_moment
from ragstone.core.errors import InputError, RagstoneError
from ragstone.core.ids import check_name
from ragstone.core.remedies import Action, Remedy
from ragstone.core.types import Json, SpaceState
from ragstone.stores.ledger.snapshots import KbFacts, SpaceFacts

C = TypeVar("C", bound=str)
ID = re.compile(r"[0-9a-f]{32}")
LARGEST = 2**63 - 1
DEEPEST = 64
LONG = 1 << 20
"""Bytes of JSON from which on it has to be text for the most part: other values take many times as much memory."""
MOST_QUOTES, MOST_MARKS = 1 << 20, 1 << 22
"""The number of quotation marks it may then have, and of bytes that are not inside of them."""
MEMBER_QUOTES, MEMBER_MARKS = 8, 40
"""The same for each member that a manifest lists."""
AGAIN = "copy it again from where it was made, or export it again"


def refusal(reason: str, hint: str = AGAIN) -> InputError:
    """Return the error for an archive that cannot be imported; the reader puts its name before the reason."""
    return InputError(reason, hint=hint)


def not_an_archive() -> InputError:
    """Return the error for a file that is something else."""
    return InputError("it is not a Ragstone archive", remedy=Remedy(Action.EXPORT))


@dataclass(frozen=True, slots=True)
class Facts:
    """A JSON object, and what it is called when something in it is wrong."""

    value: Mapping[str, Json]
    what: str

    def __post_init__(self) -> None:
        if not isinstance(self.value, dict):
            raise refusal(f"{self.what} is not a JSON object")

    @classmethod
    def parse(cls, line: bytes, what: str, members: int = 0) -> Facts:
        """Return the object that a line or a file of JSON holds, which may list so many members."""
        if len(line) > LONG:
            _check_weight(line, what, members)
        try:
            value = json.loads(line, parse_constant=_refuse_constant)
        except (ValueError, RecursionError) as error:
            raise refusal(f"{what} is not JSON: {error!s:.200}") from error
        _check(value, what)
        return cls(value, what)

    def text(self, name: str, *, most: int = LARGEST) -> str:
        value = self.value.get(name)
        if not isinstance(value, str) or len(value) > most:
            raise self._wrong(name, "text" if most == LARGEST else f"text of at most {most} characters")
        return value

    def number(self, name: str, *, least: int = 0, most: int = LARGEST) -> int:
        value = self.value.get(name)
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            raise self._wrong(name, f"a whole number from {least} to {most}")
        return value

    def optional_number(self, name: str, *, most: int = LARGEST) -> int | None:
        return None if self.value.get(name) is None else self.number(name, most=most)

    def flag(self, name: str) -> bool:
        value = self.value.get(name)
        if not isinstance(value, bool):
            raise self._wrong(name, "true or false")
        return value

    def choice(self, name: str, choices: Collection[C]) -> C:
        value = self.value.get(name)
        if value not in choices:
            raise self._wrong(name, f"one of {', '.join(choices)}")
        return cast("C", value)

    def identity(self, name: str, *, needed: bool = True) -> str:
        """Return an id as Ragstone makes them."""
        value = self.text(name)
        if not ID.fullmatch(value) and (needed or value):
            raise self._wrong(name, "an id")
        return value

    def moment(self, name: str) -> str:
        """Return a time in its canonical form."""
        moment = parse_moment(self.text(name, most=40))
        if moment is None or canonical(moment) != self.value[name]:
            raise self._wrong(name, "a time such as 2026-01-31T09:00:00+00:00")
        return canonical(moment)

    def optional_moment(self, name: str) -> str | None:
        return None if self.value.get(name) is None else self.moment(name)

    def octets(self, name: str) -> bytes:
        try:
            return bytes.fromhex(self.text(name))
        except ValueError as error:
            raise self._wrong(name, "hexadecimal") from error

    def texts(self, name: str) -> list[str]:
        values = self._list(name)
        if not all(isinstance(value, str) for value in values):
            raise self._wrong(name, "a list of texts")
        return values

    def numbers(self, name: str) -> list[int]:
        values = self._list(name)
        if not all(type(number) is int and -LARGEST <= number <= LARGEST for number in values):
            raise self._wrong(name, "a list of whole numbers")
        return values

    def object(self, name: str) -> Facts:
        return Facts(cast("Mapping[str, Json]", self.value.get(name)), f"'{name}' of {self.what}")

    def objects(self, name: str) -> Iterator[Facts]:
        return (Facts(entry, f"an entry of '{name}' of {self.what}") for entry in self._list(name))

    def _list(self, name: str) -> list[Any]:
        value = self.value.get(name)
        if not isinstance(value, list):
            raise self._wrong(name, "a list")
        return value

    def _wrong(self, name: str, wanted: str) -> InputError:
        return refusal(f"'{name}' of {self.what} is not {wanted}")


def _refuse_constant(name: str) -> Json:
    raise ValueError(f"{name} is not JSON")


def _check_weight(line: bytes, what: str, members: int) -> None:
    """Refuse a few megabytes that would become a few hundred, before they do."""
    most_quotes, most_marks = MOST_QUOTES + MEMBER_QUOTES * members, MOST_MARKS + MEMBER_MARKS * members
    bare = line.replace(b"\\\\", b"").replace(b'\\"', b"")
    quotes = bare.count(b'"')
    if quotes > most_quotes or sum(map(len, bare.split(b'"')[::2])) > most_marks:
        raise refusal(f"{what} holds more values than anything of its kind")


def _check(value: Json, what: str) -> None:
    """Refuse what no store can keep: text that is no Unicode, numbers without an end, depths without one."""
    level = [value]
    for _ in range(DEEPEST):
        inner: list[Json] = []
        for item in level:
            match item:
                case str():
                    _check_text(item, what)
                case dict():
                    for key in item:
                        _check_text(key, what)
                    inner += item.values()
                case list():
                    inner += item
                case int() if not -LARGEST - 1 <= item <= LARGEST:
                    raise refusal(f"{what} holds a number that is too large")
                case float() if abs(item) == float("inf"):
                    raise refusal(f"{what} holds a number that is too large")
        level = inner
        if not level:
            return
    raise refusal(f"{what} is nested more than {DEEPEST} deep")


def _check_text(text: str, what: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise refusal(f"{what} holds text that is not valid Unicode") from error


FORMAT = "ragstone-archive"
VERSION = 1
MANIFEST = "manifest.json"
ORIGINALS = "originals/"
HEX = re.compile(r"[0-9a-f]{64}")
MOST_DIMENSIONS = 65_536


@dataclass(frozen=True, slots=True)
class Member:
    """The expected hash and size of an archive member."""

    sha256: str
    bytes: int


@dataclass(frozen=True, slots=True)
class ArchivedKb:
    """A kb in an archive."""

    facts: KbFacts
    documents: int
    chunks: int
    parts: int
    sources: int


@dataclass(frozen=True, slots=True)
class Manifest:
    """The contents of an archive."""

    ragstone: str
    """The version that wrote it."""
    created_at: str
    tenant: str
    kbs: tuple[ArchivedKb, ...]
    members: Mapping[str, Member]
    remarks: tuple[str, ...]


def part_member(kb: str, part: int, what: str) -> str:
    """Return the name of a part of a kb."""
    return f"kbs/{kb}/{part:06d}.{what}"


def sources_member(kb: str) -> str:
    return f"kbs/{kb}/sources.jsonl"


def original_member(document_id: str) -> str:
    return f"{ORIGINALS}{document_id}"


def packed_manifest(manifest: Manifest) -> bytes:
    """Return the manifest as its member holds it."""
    value = {"format": FORMAT, "version": VERSION, **asdict(manifest)}
    return json.dumps(value, ensure_ascii=False, indent=1).encode()


def read_manifest(content: bytes, members: int) -> Manifest:
    """Return the manifest of an archive of so many members; raise `InputError` when it cannot be read here."""
    facts = Facts.parse(content, "its manifest", members)
    if facts.value.get("format") != FORMAT:
        raise not_an_archive()
    version = facts.number("version", most=2**31)
    if version > VERSION:
        raise refusal(
            f"it was written in version {version} of the format; this Ragstone reads up to {VERSION}",
            hint="update Ragstone, then import it again",
        )
    kbs = tuple(_kb(entry) for entry in facts.objects("kbs"))
    names = [kb.facts.name for kb in kbs]
    if len(set(names)) != len(names):
        raise refusal("its manifest names a knowledge base twice")
    return Manifest(
        ragstone=facts.text("ragstone"),
        created_at=facts.text("created_at"),
        tenant=facts.text("tenant"),
        kbs=kbs,
        members=_members(facts),
        remarks=tuple(facts.texts("remarks")),
    )


def _kb(entry: Facts) -> ArchivedKb:
    facts = entry.object("facts")
    spaces = tuple(_space(space) for space in facts.objects("spaces"))
    if sum(space.state == "live" for space in spaces) > 1:
        raise refusal("a knowledge base of it has two live Spaces")
    try:
        name = check_name(facts.text("name"), "knowledge base")
    except RagstoneError as error:
        raise refusal(str(error)) from error
    return ArchivedKb(
        facts=KbFacts(name, facts.moment("created_at"), spaces),
        documents=entry.number("documents"),
        chunks=entry.number("chunks"),
        parts=entry.number("parts", most=999_999),
        sources=entry.number("sources"),
    )


def _space(facts: Facts) -> SpaceFacts:
    return SpaceFacts(
        model=facts.text("model", most=255),
        dimension=facts.number("dimension", least=1, most=MOST_DIMENSIONS),
        generation=facts.number("generation", least=1, most=2**31 - 1),
        state=facts.choice("state", get_args(SpaceState)),
        created_at=facts.moment("created_at"),
        retired_at=facts.optional_moment("retired_at"),
        keep_until=facts.optional_moment("keep_until"),
    )


def _members(facts: Facts) -> dict[str, Member]:
    found: dict[str, Member] = {}
    given: Json = facts.value.get("members")
    if not isinstance(given, dict):
        raise refusal("its manifest lists no members")
    for name in given:
        member = Facts(given[name], f"the entry of {name!r:.80} in its manifest")
        digest = member.text("sha256")
        if not HEX.fullmatch(digest):
            raise refusal(f"{member.what} has no checksum")
        found[name] = Member(digest, member.number("bytes"))
    return found
