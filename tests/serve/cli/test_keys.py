"""`keys`: what is stored is under the key of the settings, and under a new one after a rotation."""

from __future__ import annotations

import asyncio
import socket
import sqlite3
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pydantic import SecretStr

from ragstone import open_engine
from ragstone.settings.load import load_settings
from ragstone.stores.vault import Vault
from ragstone.testing.workspaces import workspace_of

if TYPE_CHECKING:
    from tests.serve.cli.conftest import Cli

SECRET = "canary-of-the-mailbox"
WORDS = b"The canary sings in the engine room."


def _upload() -> None:
    async def work() -> None:
        async with open_engine(load_settings()) as engine:
            await workspace_of(engine).documents.upload(WORDS, "canary.txt")
            await engine.worker().run(until_idle=True)

    asyncio.run(work())


def _files(data: Path) -> list[bytes]:
    return [path.read_bytes() for path in (data / "documents").rglob("*") if path.is_file()]


def _stored_configs(data: Path) -> str:
    (ledger,) = (data / "tenants").glob("*/ledger.db")
    with sqlite3.connect(ledger) as db:
        return str(db.execute("SELECT config FROM sources").fetchall())


def _add_mailbox(cli: Cli) -> None:
    settings = ("host=mail.example", "user=ada", f"password={SECRET}")
    assert cli("sources", "add", "imap", "mail", *settings).code == 0


def test_a_key_is_made_and_kept_nowhere(cli: Cli, tmp_path: Path) -> None:
    first, second = (cli("keys", "encryption", "--json").json["key"] for _ in range(2))
    assert first != second
    assert not list(tmp_path.iterdir())


def test_without_a_key_files_stay_as_they_are(cli: Cli, tmp_path: Path) -> None:
    _upload()
    assert _files(tmp_path / "ragstone-data") == [WORDS]
    refused = cli("keys", "rotate-encryption")
    assert refused.code == 2
    assert "security.key" in refused.err


def test_files_and_secrets_are_encrypted_with_the_key_of_the_settings(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RAGSTONE_SECURITY__KEY", cli("keys", "encryption", "--json").json["key"])
    _upload()
    _add_mailbox(cli)
    data = tmp_path / "ragstone-data"
    (stored,) = _files(data)
    assert b"canary" not in stored
    assert SECRET not in _stored_configs(data)
    for path in data.rglob("*"):
        assert not path.is_file() or SECRET.encode() not in path.read_bytes(), path
    assert SECRET not in cli("sources", "list", "--json").out


def test_a_rotation_brings_everything_under_the_new_key(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old, new = (cli("keys", "encryption", "--json").json["key"] for _ in range(2))
    data = tmp_path / "ragstone-data"
    _upload()
    monkeypatch.setenv("RAGSTONE_SECURITY__KEY", old)
    _add_mailbox(cli)
    before = _stored_configs(data)
    monkeypatch.setenv("RAGSTONE_SECURITY__KEY", new)
    monkeypatch.setenv("RAGSTONE_SECURITY__OLD_KEYS", f'["{old}"]')
    done = cli("keys", "rotate-encryption", "--json")
    assert (done.code, done.json) == (0, {"tenants": {"default": {"files": 1, "sources": 1, "failed": []}}})
    assert cli("keys", "rotate-encryption", "--json").json["tenants"]["default"]["files"] == 0
    monkeypatch.delenv("RAGSTONE_SECURITY__OLD_KEYS")
    assert _stored_configs(data) != before
    assert b"canary" not in _files(data)[0]
    (record,) = asyncio.run(_sources())
    assert record == SECRET
    monkeypatch.setenv("RAGSTONE_SECURITY__KEY", old)
    lost = cli("sources", "list")
    assert lost.code == 1
    assert "is not configured" in lost.err


@pytest.mark.parametrize("given", ["another key", "no key"])
def test_the_doctor_says_that_a_key_is_missing(cli: Cli, monkeypatch: pytest.MonkeyPatch, given: str) -> None:
    old, new = (cli("keys", "encryption", "--json").json["key"] for _ in range(2))
    monkeypatch.setenv("RAGSTONE_SECURITY__KEY", old)
    _upload()
    _add_mailbox(cli)
    assert _encryption(cli) == (0, ["everything stored can be opened"])
    monkeypatch.delenv("RAGSTONE_SECURITY__KEY")
    if given == "another key":
        monkeypatch.setenv("RAGSTONE_SECURITY__KEY", new)
    code, (files, secrets) = _encryption(cli)
    key_id = Vault.load(SecretStr(old)).key_id
    assert code == 1
    assert files == (f"tenant 'default': original files under key {key_id}, which is not configured: 1")
    assert secrets.startswith(f"tenant 'default': secrets of source default/mail is encrypted with key {key_id}")


def _encryption(cli: Cli) -> tuple[int, list[str]]:
    ran = cli("doctor", "--json")
    return ran.code, [one["detail"] for one in ran.json["stores"] if one["what"] == "encryption"]


async def _sources() -> list[str]:
    async with open_engine(load_settings()) as engine:
        return [str(record.config["password"]) for record in await workspace_of(engine).sources.list()]


def test_the_old_name_of_the_rotation_works_and_says_so(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    _upload()
    monkeypatch.setenv("RAGSTONE_SECURITY__KEY", cli("keys", "encryption", "--json").json["key"])
    done = cli("keys", "rotate")
    assert done.code == 0
    assert "'keys rotate' without an id is deprecated; use 'keys rotate-encryption'" in done.err
    assert "1 file and 0 sources brought under the present key" in done.out


def test_api_keys_are_made_listed_rotated_and_revoked(cli: Cli) -> None:
    made = cli("keys", "create", "--tenant", "acme", "--scope", "write, read", "--name", "robot", "--json").json
    assert (made["tenant"], made["scopes"], made["name"]) == ("acme", ["read", "write"], "robot")
    assert made["key"].startswith(f"rgs_{made['id']}_")
    assert cli("keys", "--tenant", "globex").code == 4
    rotated = cli("keys", "rotate", made["id"], "--hours", "1", "--json").json
    assert (rotated["scopes"], rotated["expires_at"]) == (made["scopes"], None)
    listed = {key["id"]: key for key in cli("keys", "--tenant", "acme", "--json").json["keys"]}
    assert set(listed) == {made["id"], rotated["id"]}
    assert "key" not in listed[rotated["id"]]
    assert listed[made["id"]]["expires_at"] is not None
    assert cli("keys", "revoke", rotated["id"], "--json").json["revoked_at"] is not None
    shown = cli("keys").out
    assert made["key"] not in shown
    assert "revoked" in shown
    assert cli("keys", "revoke", rotated["id"], "--tenant", "globex").code == 4


def test_a_key_that_could_never_be_used_is_refused(cli: Cli) -> None:
    for wrong, said in (
        (("--scope", "fly"), "there is no scope 'fly'"),
        (("--scope", ","), "a key needs a scope"),
        (("--only-kb", "No Name"), "is not a valid name"),
        (("--operator", "--only-kb", "docs"), "a key without a tenant has the scope admin"),
        (("--days", "36501"), "'--days'"),
        (("--days", "9" * 30), "'--days'"),
    ):
        refused = cli("keys", "create", *wrong)
        assert (refused.code, said in refused.err) == (2, True), wrong


def test_an_old_key_does_not_go_on_for_ever(cli: Cli) -> None:
    refused = cli("keys", "rotate", "0" * 16, "--hours", "876001")
    assert (refused.code, "'--hours'" in refused.err) == (2, True)


def test_no_key_is_made_for_a_service_that_cannot_start(cli: Cli) -> None:
    """The first keys are shown once, when it listens."""
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = str(other.getsockname()[1])
        ran = cli("serve", "--port", port)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.splitlines()[:1] == [f"error: cannot listen on port {port} of 127.0.0.1: it is in use"]
    assert not Path("ragstone-data").exists()
