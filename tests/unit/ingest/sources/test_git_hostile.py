"""Repositories that were made to harm: small ones that list billions of files, and doors into others."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from tests.unit.ingest.sources.source_kit import items, pages, write
from tests.unit.ingest.sources.test_git import checkout, commit, git, reach, source

from ragstone.core.errors import SourceError
from ragstone.ingest.sources.git import objects as git_home
from ragstone.ingest.sources.git import objects as git_objects

__all__ = ["checkout"]


def nested(folder: Path, levels: int) -> None:
    """A commit whose tree names ten times the same subtree, and so on: ten to the power of `levels` files."""
    blob = git(folder, "rev-parse", "HEAD:README.md")
    entries = "".join(f"100644 blob {blob}\tf{n}.md\n" for n in range(10))
    for _ in range(levels):
        command = ["git", "-C", str(folder), "mktree"]
        made = subprocess.run(command, input=entries, check=True, capture_output=True, text=True)
        tree = made.stdout.strip()
        entries = "".join(f"040000 tree {tree}\td{n}\n" for n in range(10))
    git(folder, "update-ref", "HEAD", git(folder, "commit-tree", tree, "-m", "many"))


@pytest.mark.timeout(60)
@pytest.mark.parametrize("known", [False, True], ids=["all", "changes"])
async def test_a_few_objects_that_list_a_billion_files_are_refused(
    checkout: Path, monkeypatch: pytest.MonkeyPatch, known: bool
) -> None:
    cursor = (await reach(source(checkout)))[1] if known else None
    nested(checkout, 9)
    monkeypatch.setattr(git_objects, "MAX_ENTRIES", 5_000)
    with pytest.raises(SourceError, match="lists more than 5,000 files"):
        await pages(source(checkout), cursor)


@pytest.mark.parametrize("bound", ["MAX_BYTES", "_MAX_RECORD"])
async def test_paths_are_bounded_too(checkout: Path, monkeypatch: pytest.MonkeyPatch, bound: str) -> None:
    nested(checkout, 4)
    monkeypatch.setattr(git_objects, bound, 0)
    with pytest.raises(SourceError, match="or paths of more than"):
        await pages(source(checkout))


async def test_as_many_files_as_may_be_are_read(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nested(checkout, 3)
    monkeypatch.setattr(git_objects, "MAX_ENTRIES", 1_000)
    assert len(items(await pages(source(checkout)))) == 1_000


@pytest.fixture
def door(tmp_path: Path) -> Path:
    """A folder of somebody who may not read `checkout`."""
    folder = tmp_path / "door"
    folder.mkdir()
    return folder


async def refused(folder: Path, place: Path) -> None:
    with pytest.raises(SourceError, match="takes content from outside of it") as caught:
        await pages(source(folder))
    assert str(place) in str(caught.value)
    assert caught.value.hint


async def test_a_git_file_that_names_another_repository_is_refused(checkout: Path, door: Path) -> None:
    write(door / ".git", f"gitdir: {checkout}/.git\n")
    await refused(door, checkout)


async def test_a_git_file_is_followed_once(checkout: Path, door: Path) -> None:
    write(door / "inside", f"gitdir: {checkout}/.git\n")
    write(door / ".git", "gitdir: inside\n")
    with pytest.raises(SourceError, match="is not a Git repository"):
        await pages(source(door))


async def test_a_link_to_another_repository_is_refused(checkout: Path, door: Path) -> None:
    (door / ".git").symlink_to(checkout / ".git")
    await refused(door, checkout)


async def test_a_shared_repository_elsewhere_is_refused(checkout: Path, door: Path) -> None:
    write(door / ".git" / "HEAD", "ref: refs/heads/main\n")
    write(door / ".git" / "commondir", f"{checkout}/.git\n")
    await refused(door, checkout)


async def test_a_working_tree_that_its_repository_does_not_know_is_refused(
    checkout: Path, door: Path, tmp_path: Path
) -> None:
    git(checkout, "worktree", "add", "--quiet", str(tmp_path / "second"), "-b", "second")
    write(door / ".git", (tmp_path / "second" / ".git").read_bytes())
    await refused(door, checkout)
    # Nor may a folder outside vouch for a repository that it is no part of.
    own = tmp_path / "own" / "worktrees" / "x"
    write(own / "HEAD", "ref: refs/heads/main\n")
    write(own / "gitdir", f"{door}/.git\n")
    write(own / "commondir", f"{checkout}/.git\n")
    write(door / ".git", f"gitdir: {own}\n")
    await refused(door, checkout)


@pytest.mark.parametrize("padding", ["", "# words\n" * 5_000])
async def test_objects_that_are_borrowed_from_another_repository_are_refused(
    checkout: Path, door: Path, padding: str
) -> None:
    git(door, "init", "--quiet", "--initial-branch", "main")
    objects = door / ".git" / "objects"
    write(objects / "info" / "alternates", f"{padding}{checkout}/.git/objects\n")
    write(door / ".git" / "refs" / "heads" / "main", git(checkout, "rev-parse", "HEAD"))
    await refused(door, checkout)
    write(objects / "info" / "alternates", f'"{checkout}/.git/objects"\n')
    await refused(door, checkout)
    # Nor by a second step.
    write(door / "near" / "info" / "alternates", f"{checkout}/.git/objects\n")
    write(objects / "info" / "alternates", "../../near\n")
    await refused(door, checkout)


async def test_a_list_of_lenders_that_is_too_long_to_read_is_refused(
    checkout: Path, door: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    git(door, "init", "--quiet")
    write(door / ".git" / "objects" / "info" / "alternates", "#" * 200 + f"\n{checkout}/.git/objects\n")
    monkeypatch.setattr(git_home, "MAX_POINTER", 100)
    with pytest.raises(SourceError, match="is not what it is in a Git repository"):
        await pages(source(door))


@pytest.mark.parametrize("link", ["objects", "objects/pack", "objects/aa"])
async def test_links_among_the_objects_are_refused(checkout: Path, door: Path, link: str) -> None:
    git(door, "init", "--quiet")
    place = door / ".git" / link
    if place.exists():
        place.rename(door / "aside")
    place.symlink_to(checkout / ".git" / "objects")
    await refused(door, checkout)


async def test_objects_borrowed_from_inside_the_folder_are_read(checkout: Path, tmp_path: Path) -> None:
    inner = checkout / "inner"
    git(tmp_path, "clone", "--quiet", "--shared", str(checkout), str(inner))
    inner.rename(tmp_path / "moved")
    (tmp_path / "moved").rename(inner)
    await refused(inner, checkout)
    whole = tmp_path / "both"
    whole.mkdir()
    git(tmp_path, "clone", "--quiet", "--bare", str(checkout), str(whole / "lender.git"))
    git(tmp_path, "clone", "--quiet", "--shared", str(whole / "lender.git"), str(whole / "x"))
    (whole / "x" / ".git").rename(whole / ".git")
    assert len(items(await pages(source(whole)))) == 3


async def test_a_submodule_is_a_checkout_of_its_own(checkout: Path, tmp_path: Path) -> None:
    above = tmp_path / "above"
    above.mkdir()
    git(above, "init", "--quiet")
    git(above, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(checkout), "manual")
    commit(above)
    assert (above / "manual" / ".git").is_file()
    assert len(items(await pages(source(above / "manual")))) == 3


async def test_a_folder_never_passes_for_the_inside_of_an_archive(checkout: Path) -> None:
    _, cursor = await reach(source(checkout))
    place = write(checkout / "book.zip!" / "policy.md", "forged")
    commit(checkout)
    found, cursor = await reach(source(checkout), cursor)
    assert items(found) == {"book.zip//policy.md": b"forged"}
    assert "book.zip//policy.md" in ((await pages(source(checkout)))[0].listed or ())
    place.unlink()
    commit(checkout)
    found, _ = await reach(source(checkout), cursor)
    assert found[-1].removed == ("book.zip//policy.md",)
