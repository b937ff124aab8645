"""Reading JSON that nobody vouches for: every value is looked at before it is believed."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar, cast

from ragstone.core.clock import canonical, parse_moment
from ragstone.core.errors import InputError
from ragstone.core.types import Json

C = TypeVar("C", bound=str)
ID = re.compile(r"[0-9a-f]{32}")
LARGEST = 2**63 - 1
DEEPEST = 64
LONG = 1 << 20
"""Bytes of JSON from which on it has to be text for the most part: other values take many times as much memory."""
MOST_QUOTES, MOST_MARKS = 1 << 20, 1 << 22
"""How many quotation marks it then may have, and how many bytes that are not inside of them."""
AGAIN = "copy it again from where it was made, or export it anew"


def refused(reason: str, hint: str = AGAIN) -> InputError:
    """The archive cannot be taken; its name is put before the reason by whoever has it."""
    return InputError(reason, hint=hint)


@dataclass(frozen=True, slots=True)
class Facts:
    """A JSON object, and what it is called when something in it is wrong."""

    value: Mapping[str, Json]
    what: str

    def __post_init__(self) -> None:
        if not isinstance(self.value, dict):
            raise refused(f"{self.what} is not a JSON object")

    @classmethod
    def parsed(cls, line: bytes, what: str) -> Facts:
        """The object that a line or a file of JSON holds."""
        if len(line) > LONG:
            _check_weight(line, what)
        try:
            value = json.loads(line, parse_constant=_refuse_constant)
        except (ValueError, RecursionError) as error:
            raise refused(f"{what} is not JSON: {error!s:.200}") from error
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

    def optional_number(self, name: str, *, least: int = 0, most: int = LARGEST) -> int | None:
        return None if self.value.get(name) is None else self.number(name, least=least, most=most)

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
        """An id as Ragstone makes them."""
        value = self.text(name)
        if not ID.fullmatch(value) and (needed or value):
            raise self._wrong(name, "an id")
        return value

    def moment(self, name: str) -> str:
        """A time in its canonical form."""
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
        if not all(isinstance(one, str) for one in values):
            raise self._wrong(name, "a list of texts")
        return values

    def numbers(self, name: str) -> list[int]:
        values = self._list(name)
        if not all(type(one) is int and -LARGEST <= one <= LARGEST for one in values):
            raise self._wrong(name, "a list of whole numbers")
        return values

    def object(self, name: str) -> Facts:
        return Facts(cast("Mapping[str, Json]", self.value.get(name)), f"'{name}' of {self.what}")

    def objects(self, name: str) -> Iterator[Facts]:
        return (Facts(one, f"an entry of '{name}' of {self.what}") for one in self._list(name))

    def _list(self, name: str) -> list[Any]:
        value = self.value.get(name)
        if not isinstance(value, list):
            raise self._wrong(name, "a list")
        return value

    def _wrong(self, name: str, wanted: str) -> InputError:
        return refused(f"'{name}' of {self.what} is not {wanted}")


def _refuse_constant(name: str) -> Json:
    raise ValueError(f"{name} is not JSON")


def _check_weight(line: bytes, what: str) -> None:
    """Refuse a few megabytes that would become a few hundred, before they do."""
    bare = line.replace(b"\\\\", b"").replace(b'\\"', b"")
    quotes = bare.count(b'"')
    if quotes > MOST_QUOTES or sum(map(len, bare.split(b'"')[::2])) > MOST_MARKS:
        raise refused(f"{what} holds more values than anything of its kind")


def _check(value: Json, what: str) -> None:
    """Refuse what no store can keep: text that is no Unicode, numbers without an end, depths without one."""
    level = [value]
    for _ in range(DEEPEST):
        inner: list[Json] = []
        for one in level:
            match one:
                case str():
                    _check_text(one, what)
                case dict():
                    for key in one:
                        _check_text(key, what)
                    inner += one.values()
                case list():
                    inner += one
                case int() if not -LARGEST - 1 <= one <= LARGEST:
                    raise refused(f"{what} holds a number that is too large")
                case float() if abs(one) == float("inf"):
                    raise refused(f"{what} holds a number that is too large")
        level = inner
        if not level:
            return
    raise refused(f"{what} is nested more than {DEEPEST} deep")


def _check_text(text: str, what: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise refused(f"{what} holds text that is not valid Unicode") from error
