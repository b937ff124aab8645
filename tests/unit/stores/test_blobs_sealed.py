"""Originals at rest: unreadable without the key, bound to their place, and brought under a new key without a gap."""

from __future__ import annotations

import errno
import os
import shutil
import stat
import subprocess
import threading
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr
from tests.warm import warm_python

from ragstone.core.errors import SettingsError, StoreCorrupt, StoreError, StoreFull
from ragstone.settings.tree import Settings
from ragstone.stores import blobs as module
from ragstone.stores.blobs import Blobs, Rotation
from ragstone.stores.factory import Renewal, Stores, open_stores, rotate_keys
from ragstone.stores.ledger.sqlite.ledger import SqliteLedger
from ragstone.stores.lexical.sqlite import Fts5Writer
from ragstone.stores.vault import MARK, Vault, new_key
from ragstone.testing.builders import make_version, put

OLD, NEW = b"o" * 32, b"n" * 32
DOCUMENT, ANOTHER = "ab" * 16, "cd" * 16


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "documents" / "tenant"


def plain(folder: Path) -> Blobs:
    return Blobs(folder)


def before(folder: Path) -> Blobs:
    return Blobs(folder, Vault(OLD))


def after(folder: Path) -> Blobs:
    return Blobs(folder, Vault(NEW, [OLD]))


def files(folder: Path) -> list[Path]:
    return sorted(file for file in folder.rglob("*") if file.is_file())


def test_nothing_of_a_document_is_on_the_disk(folder: Path) -> None:
    content = b"canary " * 1000
    name = before(folder).put(DOCUMENT, content)
    (file,) = files(folder)
    assert b"canary" not in file.read_bytes()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert before(folder).get(DOCUMENT, name) == content


def test_a_plain_file_is_still_read_when_there_is_a_key(folder: Path) -> None:
    name = plain(folder).put(DOCUMENT, b"from before")
    assert files(folder)[0].read_bytes() == b"from before"
    assert before(folder).get(DOCUMENT, name) == b"from before"


def test_without_its_key_a_file_is_refused_by_the_name_of_the_key(folder: Path) -> None:
    name = before(folder).put(DOCUMENT, b"content")
    for blobs in (plain(folder), Blobs(folder, Vault(NEW))):
        with pytest.raises(StoreError, match=f"document {DOCUMENT} is encrypted with key {Vault(OLD).key_id}"):
            blobs.get(DOCUMENT, name)


def test_files_that_change_places_are_refused(folder: Path) -> None:
    blobs = before(folder)
    first, second, third = blobs.put(DOCUMENT, b"1"), blobs.put(DOCUMENT, b"2"), blobs.put(ANOTHER, b"3")
    for source in (folder / DOCUMENT / second, folder / ANOTHER / third):
        shutil.copy(source, folder / DOCUMENT / first)
        with pytest.raises(StoreCorrupt, match=f"document {DOCUMENT} is damaged, or belongs to something else"):
            blobs.get(DOCUMENT, first)
    assert blobs.get(DOCUMENT, second) == b"2"


def test_a_file_that_comes_from_another_tenant_is_refused(folder: Path) -> None:
    name = before(folder).put(DOCUMENT, b"theirs")
    ours = folder.with_name("ours")
    shutil.copytree(folder, ours)
    with pytest.raises(StoreCorrupt):
        before(ours).get(DOCUMENT, name)
    assert Blobs(ours, Vault(OLD), "tenant").get(DOCUMENT, name) == b"theirs"


@pytest.mark.req("R-TEN-09", "R-SEC-04")
async def test_each_tenant_has_a_folder_and_cannot_name_a_file_of_another(tmp_path: Path) -> None:
    ledger = SqliteLedger(tmp_path, [Fts5Writer()])
    try:
        (mine,) = await ledger.of("mine").keep_originals([(DOCUMENT, b"mine")])
        (theirs,) = await ledger.of("theirs").keep_originals([(DOCUMENT, b"theirs")])
        assert len({file.parents[1] for file in files(tmp_path / "documents")}) == 2
        assert await ledger.of("mine").originals([(DOCUMENT, mine), (DOCUMENT, theirs)]) == [b"mine", None]
        await ledger.of("mine").drop_originals([(DOCUMENT, theirs)])
        assert await ledger.of("theirs").originals([(DOCUMENT, theirs)]) == [b"theirs"]
    finally:
        await ledger.close()


def test_rotation_brings_everything_under_the_present_key(folder: Path) -> None:
    contents = [b"from before", b"", MARK + b" looks sealed", b"x" * 100_000]
    kept = {(DOCUMENT, plain(folder).put(DOCUMENT, content)): content for content in contents}
    kept |= {(ANOTHER, before(folder).put(ANOTHER, content)): content for content in contents}
    kept[DOCUMENT, after(folder).put(DOCUMENT, b"new")] = b"new"
    assert after(folder).rotate() == Rotation(renewed=8, current=1, failed=())
    assert {(file.parent.name, file.name) for file in files(folder)} == set(kept)
    assert {stat.S_IMODE(file.stat().st_mode) for file in files(folder)} == {0o600}
    only_new = Blobs(folder, Vault(NEW))
    assert {key: only_new.get(*key) for key in kept} == kept
    untouched = [(file, file.stat().st_ino) for file in files(folder)]
    assert only_new.rotate() == Rotation(renewed=0, current=9, failed=())
    assert [(file, file.stat().st_ino) for file in files(folder)] == untouched


def test_rotation_needs_a_key_and_not_a_folder(folder: Path) -> None:
    with pytest.raises(SettingsError, match="no key to encrypt with"):
        plain(folder).rotate()
    assert after(folder).rotate() == Rotation(0, 0, ())


def test_what_cannot_be_opened_is_named_and_left_and_the_rest_goes_on(folder: Path) -> None:
    foreign = Blobs(folder, Vault(b"f" * 32)).put(DOCUMENT, b"foreign")
    damaged = before(folder).put(ANOTHER, b"damaged")
    place = folder / ANOTHER / damaged
    place.write_bytes(place.read_bytes()[:-1])
    good = {before(folder).put(document, b"good"): document for document in (DOCUMENT, ANOTHER)}
    left = {file: file.read_bytes() for file in (folder / DOCUMENT / foreign, place)}
    rotation = after(folder).rotate()
    assert (rotation.renewed, rotation.current) == (2, 0)
    assert sorted(rotation.failed) == sorted(
        [
            f"document {DOCUMENT} is encrypted with key {Vault(b'f' * 32).key_id}, which is not configured",
            f"what is stored for document {ANOTHER} is damaged, or belongs to something else",
        ]
    )
    assert {file: file.read_bytes() for file in left} == left
    assert [after(folder).get(document, name) for name, document in good.items()] == [b"good", b"good"]
    assert len(files(folder)) == 4


def test_things_of_the_file_system_are_passed_over(folder: Path) -> None:
    name = before(folder).put(DOCUMENT, b"content")
    (folder / DOCUMENT / ".nfs0001").write_bytes(b"")
    (folder / "lost+found").mkdir()
    (folder / "ffff").write_bytes(b"not a folder")
    os.utime(folder / DOCUMENT / ".nfs0001", (0, 0))
    blobs = after(folder)
    assert blobs.names(DOCUMENT) == [name]
    assert blobs.rotate() == Rotation(1, 0, ())
    assert DOCUMENT not in blobs.list_old()


def test_a_full_disk_stops_rotation_and_leaves_every_file_as_it_was(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """FAULTS 11."""
    for _ in range(3):
        before(folder).put(DOCUMENT, b"content")
    there = {file: file.read_bytes() for file in files(folder)}

    def full(handle: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(module.os, "fsync", full)
        with pytest.raises(StoreFull, match="No space left"):
            after(folder).rotate()
    assert {file: file.read_bytes() for file in files(folder)} == there
    assert after(folder).rotate() == Rotation(3, 0, ())


def test_a_rename_that_fails_is_told_and_leaves_the_file(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name = before(folder).put(DOCUMENT, b"content")

    def refused(*places: Any) -> None:
        raise OSError(errno.EROFS, "Read-only file system")

    with monkeypatch.context() as patched:
        patched.setattr(module.os, "replace", refused)
        said = "can be read but not written: its folder takes no new files (Read-only file system)"
        assert after(folder).rotate() == Rotation(0, 0, (f"{folder / DOCUMENT / name} {said}",))
    assert files(folder) == [folder / DOCUMENT / name]
    assert before(folder).get(DOCUMENT, name) == b"content"


KILLED = """
import os, signal, sys
from pathlib import Path
from ragstone.stores.blobs import Blobs
from ragstone.stores.vault import Vault

done, replace = 0, os.replace

def die(*places):
    global done
    if done == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    done += 1
    replace(*places)

os.replace = die
Blobs(Path(sys.argv[1]), Vault(b"n" * 32, [b"o" * 32])).rotate()
"""


def test_killed_before_the_rename_it_goes_on_where_it_was(folder: Path) -> None:
    """FAULTS 16: the half-done file is as it was, and what the dead process left is swept once it has settled."""
    names = [before(folder).put(DOCUMENT, f"content {n}".encode()) for n in range(4)]
    died = subprocess.run([*warm_python(), "-c", KILLED, str(folder)], check=False, timeout=240)
    assert died.returncode == -9
    blobs = after(folder)
    assert sorted(blobs.names(DOCUMENT)) == sorted(names)
    (draft,) = (file for file in files(folder) if file.name not in names)
    assert [blobs.get(DOCUMENT, name) for name in names] == [f"content {n}".encode() for n in range(4)]
    assert blobs.rotate() == Rotation(renewed=3, current=1, failed=())
    assert [Blobs(folder, Vault(NEW)).get(DOCUMENT, name) for name in names] == [
        f"content {n}".encode() for n in range(4)
    ]
    assert blobs.list_old() == {}
    os.utime(draft, (0, 0))
    assert blobs.list_old() == {DOCUMENT: [draft.name]}
    blobs.remove(DOCUMENT, [draft.name])
    assert sorted(file.name for file in files(folder)) == sorted(names)


def test_deleting_takes_what_a_killed_rotation_left_of_the_file(folder: Path) -> None:
    blobs = before(folder)
    gone, kept = blobs.put(DOCUMENT, b"gone"), blobs.put(DOCUMENT, b"kept")
    for name in (gone, kept):
        (folder / DOCUMENT / (name + "0" * 32)).write_bytes(b"draft")
    blobs.remove(DOCUMENT, [gone])
    assert sorted(file.name for file in files(folder)) == [kept, kept + "0" * 32]
    blobs.remove(DOCUMENT, [kept])
    assert not (folder / DOCUMENT).exists()


@pytest.mark.parametrize("step", ["_head", "_open_new", "_write", "sync_folder"])
@pytest.mark.parametrize("first", [True, False])
def test_what_is_deleted_during_rotation_stays_deleted(
    folder: Path, monkeypatch: pytest.MonkeyPatch, step: str, first: bool
) -> None:
    blobs = after(folder)
    name, kept = before(folder).put(DOCUMENT, b"gone"), before(folder).put(DOCUMENT, b"kept")
    real = getattr(module, step)

    def deleting(*arguments: Any) -> Any:
        if first:
            blobs.remove(DOCUMENT, [name])
        done = real(*arguments)
        blobs.remove(DOCUMENT, [name])
        return done

    monkeypatch.setattr(module, step, deleting)
    assert blobs.rotate().failed == ()
    assert files(folder) == [folder / DOCUMENT / kept]
    assert Blobs(folder, Vault(NEW)).get(DOCUMENT, kept) == b"kept"


def test_a_folder_that_a_draft_kept_from_going_goes_after_it(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name = before(folder).put(DOCUMENT, b"gone")
    real = module._open_new

    def meanwhile_deleted(place: Path) -> int:
        handle = real(place)
        (folder / DOCUMENT / name).unlink()
        return handle

    monkeypatch.setattr(module, "_open_new", meanwhile_deleted)
    assert after(folder).rotate() == Rotation(0, 0, ())
    assert list(folder.iterdir()) == []


def test_a_draft_that_takes_the_place_of_a_file_being_deleted_goes_with_it(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rename comes after the file's deletion and before the drafts are looked for."""
    blobs = after(folder)
    name = before(folder).put(DOCUMENT, b"gone")
    written, unlinked = threading.Event(), threading.Event()
    replace, unlink, steps = os.replace, module._unlink, []

    def late_replace(*places: Any) -> None:
        written.set()
        assert unlinked.wait(240)
        replace(*places)
        steps.append("replaced")

    def first_unlink(folder: Path, names: Iterable[str]) -> None:
        unlink(folder, names)
        steps.append("unlinked")
        if not unlinked.is_set():
            unlinked.set()
            rotating.join(240)

    monkeypatch.setattr(module.os, "replace", late_replace)
    monkeypatch.setattr(module, "_unlink", first_unlink)
    rotating = threading.Thread(target=blobs.rotate)
    rotating.start()
    assert written.wait(240)
    blobs.remove(DOCUMENT, [name])
    assert steps == ["unlinked", "replaced", "unlinked", "unlinked"]
    assert not (folder / DOCUMENT).exists()


def open_under(key: str, data_dir: Path, old_keys: Iterable[str] = ()) -> Stores:
    security = {"key": SecretStr(key), "old_keys": [SecretStr(old) for old in old_keys]}
    return open_stores(Settings(data_dir=data_dir, security=security), lambda _: ("password",))


async def test_a_rotation_reaches_tenants_that_are_suspended_and_those_behind_a_broken_one(data_dir: Path) -> None:
    former, present = new_key(), new_key()
    stores = open_under(former, data_dir)
    names = {}
    for tenant in ("acme", "broken", "globex"):
        kb = await put(stores.ledger, make_version(tenant=tenant), tenant=tenant)
        (names[tenant],) = await stores.ledger.of(tenant).keep_originals([(DOCUMENT, b"the contract")])
        await stores.sources.of(tenant).add(kb, "mail", "imap", {"password": "hunter2"}, "manual", None)
    await stores.tenants.suspend("globex")
    broken = data_dir / "tenants" / await stores.identity("broken") / "ledger.db"
    await stores.close()
    broken.unlink()
    stores = open_under(present, data_dir, [former])
    done = await rotate_keys(stores)
    await stores.close()
    assert (done["acme"], done["globex"]) == (Renewal(1, 1, ()), Renewal(1, 1, ()))
    (said,) = done["broken"].failed
    assert "the documents of tenant 'broken' are lost" in said
    stores = open_under(present, data_dir)
    for tenant in ("acme", "globex"):
        assert await stores.ledger.of(tenant).originals([(DOCUMENT, names[tenant])]) == [b"the contract"]
        (source,) = await stores.sources.of(tenant).all()
        assert source.config == {"password": "hunter2"}
    await stores.close()


async def test_a_source_that_cannot_be_opened_is_named_beside_the_files_that_were_renewed(data_dir: Path) -> None:
    former, present = new_key(), new_key()
    stores = open_under(former, data_dir)
    kb = await put(stores.ledger, make_version())
    await stores.ledger.of("default").keep_originals([(DOCUMENT, b"the contract")])
    await stores.sources.of("default").add(kb, "mail", "imap", {"password": "hunter2"}, "manual", None)
    await stores.ledger.write("default", lambda rows, _: rows.execute("UPDATE sources SET name = 'taken'"))
    await stores.close()
    stores = open_under(present, data_dir, [former])
    renewal = (await rotate_keys(stores))["default"]
    await stores.close()
    assert (renewal.files, renewal.sources, len(renewal.failed)) == (1, 0, 1)
    assert "source default/taken" in renewal.failed[0]
