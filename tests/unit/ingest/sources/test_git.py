from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from pydantic import ValidationError
from tests.unit.ingest.sources.source_kit import context, failures, items, pages, pages_before_error, write

from ragstone.core.errors import SourceError
from ragstone.core.types import SKIPPED, Failure, Item, Json, Page
from ragstone.ingest.sources.git.source import GitConfig, GitSource
from ragstone.settings.tree import LimitSettings

IDENTITY = {
    "GIT_AUTHOR_NAME": "A",
    "GIT_AUTHOR_EMAIL": "a@example.org",
    "GIT_COMMITTER_NAME": "A",
    "GIT_COMMITTER_EMAIL": "a@example.org",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
}


def git(folder: Path, *arguments: str) -> str:
    done = subprocess.run(
        ["git", "-C", str(folder), *arguments],
        env={**os.environ, **IDENTITY},
        check=True,
        capture_output=True,
        text=True,
    )
    return done.stdout.strip()


def commit(folder: Path) -> str:
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--allow-empty", "--message", "change")
    return git(folder, "rev-parse", "HEAD")


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    folder = tmp_path / "manual"
    folder.mkdir()
    git(folder, "init", "--quiet", "--initial-branch", "main")
    write(folder / "README.md", "# Manual")
    write(folder / "docs" / "setup.md", "# Setup")
    write(folder / "docs" / "deep" / "tune.md", "# Tune")
    commit(folder)
    return folder


def source(path: Path, limits: LimitSettings | None = None, **config: object) -> GitSource:
    return GitSource(GitConfig.model_validate({"path": path, **config}), "manual", context(limits))


async def reach(source: GitSource, cursor: Json = None) -> tuple[list[Page], Json]:
    found = await pages(source, cursor)
    return found, found[-1].cursor


@pytest.mark.req("R-ING-46")
async def test_committed_files_are_documents_known_by_their_path(checkout: Path) -> None:
    write(checkout / "docs" / "draft.md", "not committed")
    first, second, last = await pages(source(checkout, subfolder="docs"))
    assert first.listed == {"docs/setup.md", "docs/deep/tune.md"}
    assert (first.items, first.cursor) == ((), None)
    assert second.cursor is None
    tune, setup = second.items
    assert isinstance(setup, Item)
    assert setup == Item(
        source="manual",
        external_id="docs/setup.md",
        uri="manual/docs/setup.md",
        content=b"# Setup",
        metadata={"source_type": "git", "source": "docs/setup.md", "filename": "setup.md"},
    )
    assert isinstance(tune, Item)
    assert (last.items, last.removed) == ((), ())
    assert last.cursor["commit"] == git(checkout, "rev-parse", "HEAD")


@pytest.mark.req("R-ING-09")
async def test_after_that_only_what_changed_is_read(checkout: Path) -> None:
    _, cursor = await reach(source(checkout))
    write(checkout / "README.md", "# Manual, second edition")
    write(checkout / "new.md", "# New")
    (checkout / "docs" / "setup.md").unlink()
    head = commit(checkout)
    found, reached = await reach(source(checkout), cursor)
    assert items(found) == {"README.md": b"# Manual, second edition", "new.md": b"# New"}
    assert found[-1].removed == ("docs/setup.md",)
    assert all(page.listed is None for page in found)
    assert [page.cursor for page in found[:-1]] == [cursor]
    assert reached["commit"] == head


async def test_a_file_that_was_moved_goes_and_comes(checkout: Path) -> None:
    _, cursor = await reach(source(checkout))
    git(checkout, "mv", "docs/setup.md", "docs/install.md")
    commit(checkout)
    found, _ = await reach(source(checkout), cursor)
    assert items(found) == {"docs/install.md": b"# Setup"}
    assert found[0].leaving == found[-1].removed == ("docs/setup.md",)


async def test_an_unchanged_commit_costs_nothing(checkout: Path) -> None:
    _, cursor = await reach(source(checkout))
    assert await pages(source(checkout), cursor) == []


async def test_a_commit_without_changes_for_us_only_moves_the_cursor(checkout: Path) -> None:
    _, cursor = await reach(source(checkout, subfolder="docs"))
    write(checkout / "README.md", "other")
    head = commit(checkout)
    (only,) = await pages(source(checkout, subfolder="docs"), cursor)
    assert (only.items, only.removed, only.cursor["commit"]) == ((), (), head)


@pytest.mark.parametrize(
    "config", [{"glob": "docs/**"}, {"exclude": "README.md"}, {"subfolder": "docs"}], ids=lambda c: next(iter(c))
)
async def test_another_selection_reads_and_lists_everything_again(checkout: Path, config: dict[str, object]) -> None:
    _, cursor = await reach(source(checkout))
    found, _ = await reach(source(checkout, **config), cursor)
    assert sorted(items(found)) == ["docs/deep/tune.md", "docs/setup.md"]
    assert found[0].listed == {"docs/deep/tune.md", "docs/setup.md"}


@pytest.mark.parametrize("lost", ["0" * 40, "--help", "HEAD", "", None])
async def test_a_commit_that_is_gone_means_reading_everything(checkout: Path, lost: str | None) -> None:
    _, cursor = await reach(source(checkout))
    found, reached = await reach(source(checkout), {**cursor, "commit": lost})
    assert len(items(found)) == 3
    assert found[0].listed is not None
    assert reached == cursor


async def test_a_bare_repository_and_a_branch_can_be_named(checkout: Path, tmp_path: Path) -> None:
    git(checkout, "checkout", "--quiet", "-b", "next/one")
    write(checkout / "next.md", "# Next")
    commit(checkout)
    git(checkout, "checkout", "--quiet", "main")
    bare = tmp_path / "copy.git"
    git(tmp_path, "clone", "--quiet", "--bare", str(checkout), str(bare))
    assert "next.md" not in items(await pages(source(bare)))
    found = await pages(source(bare, branch="next/one", glob="next.md"))
    assert items(found) == {"next.md": b"# Next"}
    assert found[1].items[0].uri == "copy/next.md"
    clone = tmp_path / "clone"
    git(tmp_path, "clone", "--quiet", str(checkout), str(clone))
    assert "next.md" in items(await pages(source(clone, branch="next/one")))


async def test_a_second_working_tree_is_a_checkout_too(checkout: Path, tmp_path: Path) -> None:
    git(checkout, "worktree", "add", "--quiet", str(tmp_path / "second"), "-b", "second")
    assert len(items(await pages(source(tmp_path / "second")))) == 3


async def test_links_submodules_hidden_files_and_pictures_are_no_documents(checkout: Path) -> None:
    (checkout / "link.md").symlink_to("/etc/passwd")
    write(checkout / ".github" / "flow.md")
    write(checkout / "logo.png")
    git(checkout, "add", "--all")
    git(checkout, "update-index", "--add", "--cacheinfo", f"160000,{git(checkout, 'rev-parse', 'HEAD')},module.md")
    git(checkout, "commit", "--quiet", "--message", "more")
    found = await pages(source(checkout))
    assert sorted(items(found)) == ["README.md", "docs/deep/tune.md", "docs/setup.md"]
    assert [(one.uri, one.code) for one in failures(found)] == [("manual/logo.png", SKIPPED)]


async def test_a_file_that_becomes_a_link_is_gone(checkout: Path) -> None:
    _, cursor = await reach(source(checkout))
    (checkout / "README.md").unlink()
    (checkout / "README.md").symlink_to("docs/setup.md")
    commit(checkout)
    found, _ = await reach(source(checkout), cursor)
    assert found[-1].removed == ("README.md",)
    assert items(found) == {}


async def test_unusual_names_and_contents_come_through(checkout: Path) -> None:
    write(checkout / "a\nb 'c\".md", b"\0\n\r\xff")
    write(checkout / "-rf.md", "dash")
    write(checkout / "empty.md", "")
    with open(os.fsencode(checkout) + b"/caf\xe9.md", "wb") as file:  # noqa: PTH123, ASYNC230
        file.write(b"latin")
    commit(checkout)
    found = items(await pages(source(checkout)))
    assert found["a\nb 'c\".md"] == b"\0\n\r\xff"
    assert found["-rf.md"] == b"dash"
    assert found["empty.md"] == b""
    assert found["caf\\xe9.md"] == b"latin"


async def test_a_file_over_the_limit_is_reported_and_the_rest_is_read(checkout: Path) -> None:
    write(checkout / "a-big.md", b"x" * (1024 * 1024 + 1))
    commit(checkout)
    found = await pages(source(checkout, LimitSettings(file_mb=1)))
    message = "manual/a-big.md has 1 MB; limits.file_mb allows 1"
    assert failures(found) == [Failure("manual/a-big.md", "too_large", message)]
    assert found[0].listed is not None
    assert "a-big.md" in found[0].listed
    assert sum(len(page.items) for page in found) == 4


async def test_what_is_kept_elsewhere_is_reported(checkout: Path) -> None:
    pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n"
    write(checkout / "report.pdf", pointer)
    commit(checkout)
    found = await pages(source(checkout, glob="*.pdf"))
    message = "manual/report.pdf is kept in Git LFS and not in the repository"
    assert failures(found) == [Failure("manual/report.pdf", "unreadable", message)]


async def test_what_cannot_be_read_is_reported_until_it_changes(checkout: Path) -> None:
    pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n"
    for name in ("a.md", "b.md", "c.md"):
        write(checkout / name, pointer)
    commit(checkout)
    first, cursor = await reach(source(checkout))
    second, cursor = await reach(source(checkout), cursor)
    assert failures(second) == failures(first)
    assert [len(page.items) for page in second] == [3, 0]
    write(checkout / "a.md", "# A")
    (checkout / "b.md").unlink()
    commit(checkout)
    third, cursor = await reach(source(checkout), cursor)
    assert [entry.uri for page in third for entry in page.items] == ["manual/c.md", "manual/a.md"]
    assert [failure.uri for failure in failures(third)] == ["manual/c.md"]
    git(checkout, "rm", "--quiet", "c.md")
    commit(checkout)
    last, cursor = await reach(source(checkout), cursor)
    assert failures(last) == []
    assert await pages(source(checkout), cursor) == []


async def test_a_partial_clone_fetches_nothing(checkout: Path, tmp_path: Path) -> None:
    git(checkout, "config", "uploadpack.allowFilter", "true")
    clone = tmp_path / "partial"
    address = checkout.as_uri()
    git(tmp_path, "clone", "--quiet", "--no-checkout", "--filter=blob:none", address, str(clone))
    before = git(clone, "count-objects", "-v")
    found, error = await pages_before_error(source(clone, glob="README.md"))
    # Git before 2.45 stops at the first object it may not fetch, later ones call it missing.
    reported = [failure.uri for failure in failures(found)] == ["partial/README.md"]
    assert reported or (error is not None and "partial clone" in error.hint)
    assert git(clone, "count-objects", "-v") == before


async def test_an_object_that_is_not_there_is_reported_and_the_rest_is_read(checkout: Path) -> None:
    blob = git(checkout, "rev-parse", "HEAD:README.md")
    (checkout / ".git" / "objects" / blob[:2] / blob[2:]).unlink()
    found = await pages(source(checkout))
    message = "manual/README.md is not in this clone; fetch the whole repository"
    assert failures(found) == [Failure("manual/README.md", "unreadable", message)]
    assert sum(len(page.items) for page in found) == 3


async def test_settings_of_a_repository_run_nothing(checkout: Path, tmp_path: Path) -> None:
    ran = tmp_path / "ran"
    script = write(tmp_path / "evil.sh", f"#!/bin/sh\ntouch {ran}\ncat\n")
    script.chmod(0o755)
    for key in ("core.fsmonitor", "core.pager", "diff.external", "core.sshCommand", "core.hooksPath"):
        git(checkout, "config", key, str(script if key != "core.hooksPath" else script.parent))
    for key in ("diff.evil.command", "diff.evil.textconv", "filter.evil.clean", "filter.evil.smudge"):
        git(checkout, "config", key, str(script))
    write(checkout / ".git" / "info" / "attributes", "* diff=evil filter=evil")
    _, cursor = await reach(source(checkout))
    tree = git(checkout, "rev-parse", "HEAD^{tree}")
    head = git(checkout, "commit-tree", tree, "-p", "HEAD", "-m", "again")
    git(checkout, "update-ref", "refs/heads/main", head)
    ran.unlink(missing_ok=True)  # what the setup itself set off does not count
    await pages(source(checkout), cursor)
    await pages(source(checkout))
    assert not ran.exists()


async def test_a_repository_in_a_folder_above_is_not_taken(checkout: Path) -> None:
    with pytest.raises(SourceError, match="is not a Git repository"):
        await pages(source(checkout / "docs"))


async def test_a_folder_without_commits_or_branch_is_said_so(checkout: Path, tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    git(empty, "init", "--quiet")
    with pytest.raises(SourceError, match="has no commit yet"):
        await pages(source(empty))
    with pytest.raises(SourceError, match="has no branch 'gone'"):
        await pages(source(checkout, branch="gone"))
    with pytest.raises(SourceError, match="is not a Git repository"):
        await pages(source(tmp_path / "missing"))


async def test_a_machine_without_git_is_told_to_install_it(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda _: None)
    with pytest.raises(SourceError) as caught:
        await pages(source(checkout))
    assert str(caught.value) == "git is not installed"
    assert caught.value.hint.startswith("install git")


async def test_a_damaged_repository_is_an_error_and_no_empty_list(checkout: Path) -> None:
    tree = git(checkout, "rev-parse", "HEAD^{tree}")
    loose = checkout / ".git" / "objects" / tree[:2] / tree[2:]
    loose.chmod(0o644)
    loose.write_bytes(b"damaged")
    with pytest.raises(SourceError, match="git could not read"):
        await pages(source(checkout))


@pytest.mark.parametrize("branch", ["", "a b", "a^", "a~1", "a:b", "a\n", "a*"])
def test_a_branch_that_is_no_name_is_refused(branch: str) -> None:
    with pytest.raises(ValidationError, match="is not a branch name"):
        GitConfig(path=Path(), branch=branch)


def test_a_folder_outside_the_repository_is_refused() -> None:
    with pytest.raises(ValidationError, match="must stay inside the repository"):
        GitConfig(path=Path(), subfolder="docs/../..")
