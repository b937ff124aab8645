"""What is sealed: opened for its owner with its key, refused otherwise, never taken for what it is not."""

from __future__ import annotations

import base64
import os
import tracemalloc
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pydantic import SecretStr

from ragstone.core.errors import InputError, SettingsError, StoreCorrupt, StoreError
from ragstone.core.remedies import Action, Remedy
from ragstone.stores import vault as module
from ragstone.stores.vault import HEADER_BYTES, MARK, Owner, Vault, new_key

OLD, NEW = b"o" * 32, b"n" * 32
PLAIN, VAULT = Vault(), Vault(NEW, [OLD])
OWNER = Owner("tenant", "document", "ab12", "file")
OTHERS = [
    replace(OWNER, tenant_id="other"),
    replace(OWNER, thing="source"),
    replace(OWNER, id="ab"),
    replace(OWNER, part="other"),
    Owner("tenant", "document", "ab1", "2file"),
]
LOOKS_SEALED = [b"", MARK[:1], MARK[:7], MARK, MARK + b"tail", b"head" + MARK, MARK + bytes(60) + MARK]


def secret(value: str) -> SecretStr:
    return SecretStr(value)


def as_text(key: bytes) -> str:
    return base64.b64encode(key).decode()


@given(content=st.binary(max_size=200))
@example(LOOKS_SEALED[0])
@example(LOOKS_SEALED[-1])
def test_every_content_comes_back(content: bytes) -> None:
    for vault in (PLAIN, VAULT):
        assert vault.open(bytes(vault.seal(content, OWNER)), OWNER) == content


@given(content=st.binary(min_size=8, max_size=100))
def test_what_is_sealed_shows_nothing_and_is_never_the_same_twice(content: bytes) -> None:
    first, second = VAULT.seal(content, OWNER), VAULT.seal(content, OWNER)
    assert content not in first
    assert first[HEADER_BYTES:] != second[HEADER_BYTES:]


def test_without_a_key_content_is_stored_as_it_is() -> None:
    assert PLAIN.seal(b"as it is", OWNER) == b"as it is"
    assert VAULT.open(b"as it is", OWNER) == b"as it is"


@pytest.mark.parametrize("content", LOOKS_SEALED)
def test_plain_content_that_looks_sealed_comes_back_before_and_after_there_is_a_key(content: bytes) -> None:
    stored = bytes(PLAIN.seal(content, OWNER))
    assert stored != content
    assert PLAIN.open(stored, OWNER) == VAULT.open(stored, OWNER) == content
    assert PLAIN.open(bytes(PLAIN.seal(stored, OWNER)), OWNER) == stored


@pytest.mark.parametrize("content", [b"", b"content"])
def test_any_flipped_bit_is_refused(content: bytes) -> None:
    stored = VAULT.seal(content, OWNER)
    for position in range(len(stored) * 8):
        damaged = bytearray(stored)
        damaged[position // 8] ^= 1 << position % 8
        with pytest.raises(StoreCorrupt, match="document ab12 is damaged"):
            VAULT.open(bytes(damaged), OWNER)


def test_a_file_cut_short_anywhere_is_refused() -> None:
    stored = bytes(VAULT.seal(b"content", OWNER))
    for length in range(len(stored)):
        for vault in (VAULT, PLAIN):
            with pytest.raises(StoreCorrupt, match="document ab12"):
                vault.open(stored[:length], OWNER)


def test_a_beginning_that_was_wiped_is_refused() -> None:
    stored = bytes(VAULT.seal(bytes(10_000), OWNER))
    with pytest.raises(StoreCorrupt):
        VAULT.open(bytes(4096) + stored[4096:], OWNER)


@pytest.mark.parametrize("other", OTHERS)
def test_what_belongs_to_something_else_is_refused(other: Owner) -> None:
    with pytest.raises(StoreCorrupt, match=f"{other.thing} {other.id} is damaged, or belongs to something else"):
        VAULT.open(bytes(VAULT.seal(b"content", OWNER)), other)
    with pytest.raises(StoreCorrupt, match=f"{other.thing} {other.id}"):
        VAULT.open_text(VAULT.seal_text("content", OWNER), other)


def test_a_file_that_claims_another_key_is_refused() -> None:
    stored = bytes(VAULT.seal(b"content", OWNER))
    nonce = stored[17:29]
    forged = module._header(1, bytes.fromhex(Vault(OLD).key_id), nonce) + stored[HEADER_BYTES:]
    with pytest.raises(StoreCorrupt):
        VAULT.open(forged, OWNER)


def test_a_file_does_not_open_as_a_text() -> None:
    stored = bytes(VAULT.seal(b"content", OWNER))
    text = base64.b64encode(stored[17:29] + stored[HEADER_BYTES : -len(MARK)]).decode()
    with pytest.raises(StoreCorrupt):
        VAULT.open_text(f"sealed:v1:{VAULT.key_id}:{text}", OWNER)


def test_an_old_key_still_opens_and_a_missing_one_is_named() -> None:
    before = Vault(OLD)
    stored, text = bytes(before.seal(b"content", OWNER)), before.seal_text("secret", OWNER)
    assert VAULT.open(stored, OWNER) == b"content"
    assert VAULT.open_text(text, OWNER) == "secret"
    for vault in (Vault(NEW), PLAIN):
        for opened in (lambda v=vault: v.open(stored, OWNER), lambda v=vault: v.open_text(text, OWNER)):
            with pytest.raises(StoreError, match=f"document ab12 is encrypted with key {before.key_id}") as raised:
                opened()
            assert type(raised.value) is StoreError
            assert "security.old_keys" in raised.value.hint


def test_only_what_the_present_key_sealed_is_current() -> None:
    assert VAULT.is_current(bytes(VAULT.seal(b"x", OWNER))[:HEADER_BYTES])
    for stored in (Vault(OLD).seal(b"x", OWNER), PLAIN.seal(MARK, OWNER), b"plain" * 20, b""):
        assert not VAULT.is_current(bytes(stored)[:HEADER_BYTES])
    assert not PLAIN.is_current(bytes(PLAIN.seal(MARK, OWNER))[:HEADER_BYTES])


def test_more_than_the_cipher_takes_is_refused_before_it_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LARGEST", 10)
    assert VAULT.open(bytes(VAULT.seal(b"x" * 10, OWNER)), OWNER) == b"x" * 10
    with pytest.raises(StoreError, match="document ab12 has 11 bytes; at most 10") as raised:
        VAULT.seal(b"x" * 11, OWNER)
    assert "limits.file_mb" in raised.value.hint


def test_a_large_file_is_held_twice_and_not_three_times() -> None:
    size = 20_000_000
    content = os.urandom(size)
    tracemalloc.start()
    try:
        sealed = VAULT.seal(content, OWNER)
        assert tracemalloc.get_traced_memory()[1] < 1.1 * size
        stored = bytes(sealed)
        del sealed
        tracemalloc.reset_peak()
        held = tracemalloc.get_traced_memory()[0]
        assert VAULT.open(stored, OWNER) == content
        assert tracemalloc.get_traced_memory()[1] - held < 1.1 * size
    finally:
        tracemalloc.stop()


@given(text=st.text(st.characters(), max_size=60))
@example("sealed:v1:no")
@example("sealed:plain:")
@example("sealed:")
@example("\ud800")
@example("")
def test_every_secret_comes_back(text: str) -> None:
    for vault in (PLAIN, VAULT):
        assert vault.open_text(vault.seal_text(text, OWNER), OWNER) == text
    assert VAULT.open_text(PLAIN.seal_text(text, OWNER), OWNER) == text


def test_a_sealed_text_says_so_and_shows_nothing() -> None:
    sealed = VAULT.seal_text("sk-live-canary", OWNER)
    assert sealed.startswith(f"sealed:v1:{VAULT.key_id}:")
    assert "canary" not in sealed
    assert "canary" not in base64.b64decode(sealed.rpartition(":")[2]).decode("latin-1")
    assert sealed.isprintable()


def test_a_changed_text_never_opens_as_another() -> None:
    sealed = VAULT.seal_text("short", OWNER)
    assert not sealed.endswith("=")  # so that every bit of every character counts
    for position in range(len("sealed:"), len(sealed)):
        for wrong in ("", "A", "!", "é"):
            changed = sealed[:position] + wrong + sealed[position + 1 :]
            if changed != sealed:
                with pytest.raises(StoreError, match="document ab12"):
                    VAULT.open_text(changed, OWNER)


@pytest.mark.parametrize(
    "text", ["sealed:", "sealed:plain", "sealed:v1", "sealed:v1:", "sealed:v1::", "sealed:v2:00:AAAA", "sealed:v1:é:é"]
)
def test_a_text_that_only_begins_as_sealed_is_refused(text: str) -> None:
    with pytest.raises(StoreCorrupt, match="document ab12"):
        VAULT.open_text(text, OWNER)


CONFIG = {"host": "mail.example", "port": 993, "password": "canary", "token": None, "title": "sealed: a story"}
SECRETS = {"password", "token", "absent"}
SOURCE = Owner("tenant", "source", "inbox")


def test_only_the_secrets_of_a_configuration_are_sealed() -> None:
    stored = VAULT.seal_config(CONFIG, SECRETS, SOURCE)
    assert "canary" not in str(stored)
    assert stored["password"].startswith("sealed:v1:")
    assert {**stored, "password": "canary"} == CONFIG
    assert list(stored) == list(CONFIG)
    assert VAULT.open_config(stored, SECRETS, SOURCE) == CONFIG


def test_a_configuration_from_before_there_was_a_key_is_read() -> None:
    assert PLAIN.seal_config(CONFIG, SECRETS, SOURCE) == CONFIG
    assert VAULT.open_config(CONFIG, SECRETS, SOURCE) == CONFIG


def test_a_secret_cannot_be_moved_to_another_place_of_the_configuration() -> None:
    stored = VAULT.seal_config({"password": "canary"}, SECRETS, SOURCE)
    with pytest.raises(StoreCorrupt, match="source inbox"):
        VAULT.open_config({"token": stored["password"]}, SECRETS, SOURCE)


def test_a_sealed_text_that_a_user_gives_as_a_secret_is_only_text() -> None:
    stolen = VAULT.seal_text("theirs", replace(SOURCE, part="password"))
    stored = VAULT.seal_config({"password": stolen}, SECRETS, SOURCE)
    assert VAULT.open_config(stored, SECRETS, SOURCE) == {"password": stolen}


@pytest.mark.parametrize("value", [12345, ["canary"], {"canary": 1}, True])
@pytest.mark.parametrize("vault", [PLAIN, VAULT])
def test_a_secret_that_would_stay_plain_is_refused(vault: Vault, value: Any) -> None:
    with pytest.raises(InputError, match="password is a secret of source inbox and must be text") as raised:
        vault.seal_config({"password": value}, SECRETS, SOURCE)
    assert "canary" not in str(raised.value)


def test_a_configuration_changes_its_owner_and_what_is_damaged_stays() -> None:
    renamed = replace(SOURCE, id="outbox")
    damaged = VAULT.seal_text("theirs", replace(SOURCE, id="elsewhere", part="token"))
    stored = {**Vault(OLD).seal_config(CONFIG, SECRETS, SOURCE), "token": damaged}
    moved = VAULT.rebind_config(stored, SOURCE, renamed)
    assert VAULT.open_config(moved, {"password"}, renamed) == {**CONFIG, "token": damaged}
    assert PLAIN.rebind_config(CONFIG, SOURCE, renamed) == CONFIG
    with pytest.raises(StoreError, match="which is not configured"):
        PLAIN.rebind_config(stored, SOURCE, renamed)


def test_a_configuration_is_renewed_once() -> None:
    for stored in (CONFIG, Vault(OLD).seal_config(CONFIG, SECRETS, SOURCE)):
        renewed = VAULT.renew_config(stored, SECRETS, SOURCE)
        assert renewed is not None
        assert Vault(NEW).open_config(renewed, SECRETS, SOURCE) == CONFIG
        assert VAULT.renew_config(renewed, SECRETS, SOURCE) is None
    assert VAULT.renew_config({"host": "no secret"}, SECRETS, SOURCE) is None
    with pytest.raises(SettingsError, match="no key to encrypt with") as raised:
        PLAIN.renew_config(CONFIG, SECRETS, SOURCE)
    assert "security.key" in raised.value.hint


def test_keys_come_from_the_settings_or_from_files_that_they_name(tmp_path: Path) -> None:
    file = tmp_path / "key"
    file.write_text(f"  {as_text(OLD)}\n")
    loaded = Vault.load(secret(as_text(NEW)), [secret(f"file:{file}")])
    assert loaded.key_id == VAULT.key_id != Vault(OLD).key_id
    assert loaded.open(bytes(Vault(OLD).seal(b"content", OWNER)), OWNER) == b"content"
    assert Vault.load(secret(f"file:{file}")).key_id == Vault(OLD).key_id
    assert Vault.load(None).key_id == ""


def test_a_new_key_is_one_that_the_settings_take() -> None:
    first, second = new_key(), new_key()
    assert len(base64.b64decode(first)) == 32
    assert Vault.load(secret(first)).key_id != Vault.load(secret(second)).key_id


@pytest.mark.parametrize("value", ["", " ", "canary", as_text(b"canary"), as_text(b"x" * 33), "é" * 44, "\0", "A" * 43])
def test_what_is_not_a_key_is_refused_and_not_repeated(value: str, tmp_path: Path) -> None:
    """FAULTS 40, and an empty variable does not switch encryption off."""
    file = tmp_path / "key"
    file.write_text(value)
    for key, old, setting in (
        (value, (), "security.key is not a key"),
        (f"file:{file}", (), f"security.key ({file}) is not a key"),
        (as_text(NEW), (secret(as_text(OLD)), secret(value)), "security.old_keys[1] is not a key"),
    ):
        with pytest.raises(SettingsError) as raised:
            Vault.load(secret(key), old)
        assert str(raised.value) == f"{setting}: it must be 32 bytes as base64"
        assert raised.value.remedy == Remedy(Action.CREATE_KEY)


@pytest.mark.parametrize("path", ["missing", "", ".", "a\0b", "~nobody-of-this-name/key"])
def test_a_key_file_that_cannot_be_read_is_named(path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SettingsError) as raised:
        Vault.load(secret(f"file:{path}"))
    assert str(raised.value).startswith(f"the file of security.key cannot be read: {path}: ")
    assert raised.value.hint


def test_old_keys_alone_are_refused() -> None:
    with pytest.raises(SettingsError, match="would be stored plain") as raised:
        Vault.load(None, [secret(as_text(OLD))])
    assert "security.key" in raised.value.hint


def test_a_vault_does_not_show_its_keys() -> None:
    shown = repr(VAULT) + str(vars(VAULT)) + VAULT.key_id
    for key in (OLD, NEW):
        for form in (key.decode(), as_text(key), key.hex()):
            assert form not in shown
