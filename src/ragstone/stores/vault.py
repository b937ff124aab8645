"""Keys and what they seal: original files and stored secrets, so that a copied disk tells nothing of them.

A sealed file is `mark, kind, key id, nonce, checksum`, then AES-256-GCM over the content, then the mark again. What it
belongs to is sealed with it. A file that is marked at neither end is plain: it was written before there was a key.
"""

from __future__ import annotations

import base64
import hashlib
import os
import struct
import zlib
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import SecretStr

from ragstone.core.errors import InputError, SettingsError, StoreCorrupt, StoreError
from ragstone.core.remedies import Action, Remedy
from ragstone.core.types import Json, Metadata

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

MARK = bytes.fromhex("f5d2e9a0b7c3fe91")
"""At both ends, so that damage to one of them does not make a sealed file pass for a plain one."""
SEALED = "sealed:"
KEY_BYTES = 32
LARGEST = 2**31 - 1 - 16
"""The bytes that AES-GCM takes in one piece here."""

_HEAD = struct.Struct(">8sB8s12s")
_CHECKSUM = struct.Struct(">I")
HEADER_BYTES = _HEAD.size + _CHECKSUM.size
_PLAIN, _AES_256_GCM = 0, 1
_KEY_ID_BYTES, _NONCE_BYTES, _TAG_BYTES = 8, 12, 16
_NEW_KEY = Remedy(Action.CREATE_KEY)


@dataclass(frozen=True, slots=True)
class Owner:
    """The owner of sealed content: opened as anything else, the content is refused."""

    tenant_id: str
    thing: str
    id: str
    part: str = ""

    def __str__(self) -> str:
        return f"{self.thing} {self.id}"

    def encode(self, form: str) -> bytes:
        """Return bytes that no other owner and no other form of content has."""
        parts = [part.encode() for part in (form, self.tenant_id, self.thing, self.id, self.part)]
        return b"".join(len(part).to_bytes(4, "big") + part for part in parts)


class Vault:
    """Seals with one key and opens with that and older ones; without a key, what it is given stays plain."""

    def __init__(self, key: bytes | None = None, old_keys: Sequence[bytes] = ()) -> None:
        keys = old_keys if key is None else (*old_keys, key)
        self._ciphers = {_key_id(known): _cipher(known) for known in keys}
        self._key_id = b"" if key is None else _key_id(key)
        self._text_prefix = f"{SEALED}v1:{self.key_id}:"

    @classmethod
    def load(cls, key: SecretStr | None, old_keys: Sequence[SecretStr] = ()) -> Vault:
        """Return the vault that the settings `security.key` and `security.old_keys` ask for."""
        if key is None and old_keys:
            raise SettingsError(
                "security.old_keys is set and security.key is not: what comes in would be stored plain",
                hint="set security.key",
                remedy=_NEW_KEY,
            )
        older = [_read_key(old, f"security.old_keys[{at}]") for at, old in enumerate(old_keys)]
        return cls(None if key is None else _read_key(key, "security.key"), older)

    @property
    def key_id(self) -> str:
        """Return the name of the sealing key, which reveals nothing about it; empty without a key."""
        return self._key_id.hex()

    def require_key(self) -> None:
        """Raise `SettingsError` when there is no key to seal with."""
        if not self._key_id:
            raise SettingsError("there is no key to encrypt with", hint="set security.key", remedy=_NEW_KEY)

    def seal(self, content: bytes, owner: Owner) -> bytes | bytearray:
        """Return the bytes to store for a content."""
        if not self._key_id:
            # A plain content that looks sealed, by chance or by malice, must come back as it was.
            return _header(_PLAIN) + content + MARK if _is_marked(content) else content
        if len(content) > LARGEST:
            raise StoreError(
                f"{owner} has {len(content)} bytes; at most {LARGEST} can be encrypted",
                hint="set limits.file_mb to 2047 or less",
            )
        nonce = os.urandom(_NONCE_BYTES)
        header = _header(_AES_256_GCM, self._key_id, nonce)
        # Sealed in place: no third copy of a large file.
        stored = bytearray(HEADER_BYTES + len(content) + _TAG_BYTES + len(MARK))
        stored[:HEADER_BYTES] = header
        stored[-len(MARK) :] = MARK
        body = memoryview(stored)[HEADER_BYTES : -len(MARK)]
        self._ciphers[self._key_id].encrypt_into(nonce, content, header + owner.encode("file"), body)
        return stored

    def open(self, stored: bytes, owner: Owner) -> bytes:
        """Return the content of what was stored; `StoreCorrupt` when it is not what was sealed for this owner."""
        if not _is_marked(stored):
            return stored
        header = _parse_header(stored[:HEADER_BYTES])
        if header is None or len(stored) < HEADER_BYTES + len(MARK) or not stored.endswith(MARK):
            raise _damage_error(owner)
        kind, key_id, nonce = header
        body = memoryview(stored)[HEADER_BYTES : -len(MARK)]
        if kind == _PLAIN:
            return bytes(body)
        return self._decrypt(key_id, nonce, body, stored[:HEADER_BYTES] + owner.encode("file"), owner)

    def is_current(self, head: bytes) -> bool:
        """Return whether a file that begins with these `HEADER_BYTES` is sealed with the present key."""
        header = _parse_header(head)
        return header is not None and header[:2] == (_AES_256_GCM, self._key_id)

    def missing_key(self, head: bytes) -> str:
        """Return the missing key that a file beginning with these `HEADER_BYTES` needs; empty when it can be opened."""
        header = _parse_header(head)
        if header is None or header[0] == _PLAIN or header[1] in self._ciphers:
            return ""
        return header[1].hex()

    def seal_text(self, text: str, owner: Owner) -> str:
        """Return the text to store for a secret: it says that it is sealed, and with which key."""
        if not self._key_id:
            return f"{SEALED}plain:{text}" if text.startswith(SEALED) else text
        nonce = os.urandom(_NONCE_BYTES)
        # A lone surrogate is no UTF-8, and still part of what somebody may have typed.
        content = text.encode("utf-8", "surrogatepass")
        sealed = self._ciphers[self._key_id].encrypt(nonce, content, owner.encode(self._text_prefix))
        return f"{self._text_prefix}{base64.b64encode(nonce + sealed).decode()}"

    def open_text(self, stored: str, owner: Owner) -> str:
        """Return the secret of what was stored; a text that is not sealed is the secret itself."""
        if not stored.startswith(SEALED):
            return stored
        kind, colon, rest = stored.removeprefix(SEALED).partition(":")
        if kind == "plain" and colon:
            return rest
        key_id, _, data = rest.partition(":")
        try:
            known, sealed = bytes.fromhex(key_id), base64.b64decode(data, validate=True)
        except ValueError as error:
            raise _damage_error(owner) from error
        if kind != "v1" or len(known) != _KEY_ID_BYTES or len(sealed) < _NONCE_BYTES + _TAG_BYTES:
            raise _damage_error(owner)
        nonce, body = sealed[:_NONCE_BYTES], sealed[_NONCE_BYTES:]
        bound_to = owner.encode(f"{SEALED}{kind}:{key_id}:")
        content = self._decrypt(known, nonce, body, bound_to, owner)
        return content.decode("utf-8", "surrogatepass")

    def seal_config(self, config: Metadata, secret_keys: Collection[str], owner: Owner) -> dict[str, Json]:
        """Return a configuration as it is stored, with its secrets sealed."""
        for key in secret_keys:
            if not isinstance(config.get(key), str | None):
                raise InputError(f"{key} is a secret of {owner} and must be text", hint="put it in quotes")
        secrets = _secrets(config, secret_keys).items()
        return {**config, **{key: self.seal_text(value, replace(owner, part=key)) for key, value in secrets}}

    def open_config(self, stored: Metadata, secret_keys: Collection[str], owner: Owner) -> dict[str, Json]:
        """Return the configuration that `seal_config` was given."""
        secrets = _secrets(stored, secret_keys).items()
        return {**stored, **{key: self.open_text(value, replace(owner, part=key)) for key, value in secrets}}

    def renew_config(self, stored: Metadata, secret_keys: Collection[str], owner: Owner) -> dict[str, Json] | None:
        """Return the same configuration sealed with the present key; None when it is already."""
        self.require_key()
        if all(value.startswith(self._text_prefix) for value in _secrets(stored, secret_keys).values()):
            return None
        return self.seal_config(self.open_config(stored, secret_keys, owner), secret_keys, owner)

    def rebind_config(self, stored: Metadata, owner: Owner, new_owner: Owner) -> dict[str, Json]:
        """Return the same configuration with its secrets sealed for another owner; what is damaged stays as it is."""
        return {
            key: self._rebind(value, replace(owner, part=key), replace(new_owner, part=key))
            for key, value in stored.items()
        }

    def _rebind(self, value: Json, owner: Owner, new_owner: Owner) -> Json:
        if not isinstance(value, str) or not value.startswith(f"{SEALED}v1:"):
            return value
        try:
            return self.seal_text(self.open_text(value, owner), new_owner)
        except StoreCorrupt:
            return value

    def _decrypt(self, key_id: bytes, nonce: bytes, body: bytes | memoryview, bound_to: bytes, owner: Owner) -> bytes:
        if key_id not in self._ciphers:
            raise StoreError(
                f"{owner} is encrypted with key {key_id.hex()}, which is not configured",
                hint="set that key as security.key, or add it to security.old_keys",
            )
        from cryptography.exceptions import InvalidTag

        try:
            return self._ciphers[key_id].decrypt(nonce, body, bound_to)
        except InvalidTag as error:
            raise _damage_error(owner) from error


def _cipher(key: bytes) -> AESGCM:
    # Imported when there is a key: without one, no start waits for it.
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    return AESGCM(key)


def new_key() -> str:
    """Return a random key as `security.key` takes it."""
    return base64.b64encode(os.urandom(KEY_BYTES)).decode()


def _read_key(secret: SecretStr, setting: str) -> bytes:
    text = secret.get_secret_value()
    if text.startswith("file:"):
        path = text.removeprefix("file:")
        text, setting = _read_key_file(path, setting), f"{setting} ({path})"
    try:
        key = base64.b64decode(text.strip(), validate=True)
    except ValueError:
        key = b""
    if len(key) != KEY_BYTES:
        raise SettingsError(f"{setting} is not a key: it must be {KEY_BYTES} bytes as base64", remedy=_NEW_KEY)
    return key


def _read_key_file(path: str, setting: str) -> str:
    try:
        with Path(path).expanduser().open("rb") as file:
            return file.read(1024).decode("latin-1")
    except (OSError, ValueError, RuntimeError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise SettingsError(
            f"the file of {setting} cannot be read: {path}: {reason}", hint="check its path and permissions"
        ) from error


def _key_id(key: bytes) -> bytes:
    return hashlib.sha256(b"ragstone key id" + key).digest()[:_KEY_ID_BYTES]


def _header(kind: int, key_id: bytes = b"", nonce: bytes = b"") -> bytes:
    head = _HEAD.pack(MARK, kind, key_id, nonce)
    # With a checksum a damaged key id is not taken for that of a missing key.
    return head + _CHECKSUM.pack(zlib.crc32(head))


def _parse_header(header: bytes) -> tuple[int, bytes, bytes] | None:
    if len(header) < HEADER_BYTES:
        return None
    mark, kind, key_id, nonce = _HEAD.unpack_from(header)
    known = mark == MARK and kind in (_PLAIN, _AES_256_GCM) and header == _header(kind, key_id, nonce)
    return (kind, key_id, nonce) if known else None


def _is_marked(content: bytes) -> bool:
    # One that ends within the mark, even before its first byte, is a sealed one that was cut short.
    return MARK.startswith(content[: len(MARK)]) or content.endswith(MARK)


def _secrets(config: Metadata, secret_keys: Collection[str]) -> dict[str, str]:
    return {key: value for key, value in config.items() if key in secret_keys and isinstance(value, str)}


def _damage_error(owner: Owner) -> StoreCorrupt:
    message = f"what is stored for {owner} is damaged, or belongs to something else"
    return StoreCorrupt(message, hint="restore it from a backup, or take it in again")
