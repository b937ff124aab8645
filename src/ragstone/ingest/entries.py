"""What a run is fed with: items become tasks, archives become the tasks of what is in them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ragstone.core.types import Failure, Item
from ragstone.ingest.precedence import just_read
from ragstone.ingest.sources.files.archives import expand
from ragstone.ingest.task import Group, Task, Watch
from ragstone.settings.tree import LimitSettings

Entry = Task | Failure | Group
"""A group stands behind the last of its tasks."""
LOOK_UP = 32
LOOK_UP_BYTES = 64 * 1024 * 1024


def opened(
    items: Iterable[Item | Failure | Task], limits: LimitSettings, watch: Watch | None = None
) -> Iterator[Entry]:
    """Tasks in order, each group closed behind its last."""
    for one in items:
        if isinstance(one, Failure):
            yield one
            continue
        task = one if isinstance(one, Task) else Task(just_read(one), Group(watch=watch))
        yield from _members(task, limits)
        yield task.group


def _members(task: Task, limits: LimitSettings) -> Iterator[Entry]:
    for member in expand(task.item, limits):
        if member is task.item:
            yield task
        elif isinstance(member, Failure):
            task.group.fail(member)
            yield member
        else:
            yield Task(member, task.group, parent_id=task.document_id)


def some(entries: Iterable[Entry]) -> list[Entry]:
    """A few entries, fewer when they are large: all of them are in memory at once."""
    batch: list[Entry] = []
    size = 0
    for entry in entries:
        batch.append(entry)
        size += len(entry.item.content) if isinstance(entry, Task) else 0
        if len(batch) == LOOK_UP or size >= LOOK_UP_BYTES:
            break
    return batch
