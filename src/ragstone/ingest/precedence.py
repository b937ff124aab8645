"""Whose word holds when several read the same document at once: that of who read it last."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from ragstone.core.clock import Reading, reading_now
from ragstone.core.types import Failure, Item, LiveContent
from ragstone.ingest.task import Task

Live = Mapping[str, LiveContent]


def just_read(item: Item) -> Item:
    """The item of somebody who has just come by it, unless it says when it was read."""
    return item if item.read else replace(item, read=reading_now())


def related(task: Task) -> list[str]:
    """A document and what it came in with."""
    return [one for one in (task.document_id, task.parent_id) if one]


def is_overtaken(task: Task, content_hash: str, live: Live) -> bool:
    """Whether something else is live that was read after this: of the document, or of what it came in with."""
    return _is_other_since(live.get(task.document_id), content_hash, task.read) or _is_other_since(
        live.get(task.parent_id), task.parent_hash, task.read
    )


def overtaken(task: Task) -> Failure:
    """What is said of it."""
    uri = task.item.uri
    return Failure(uri, "overtaken", f"{uri} was read again since, and that is what is live")


def outdated_jobs(late: Iterable[Task]) -> dict[str, Reading | None]:
    """Jobs of documents that were read again since; the others of an archive are still its job's business."""
    tickets = [task.group.ticket for task in late if not task.parent_id]
    return {ticket.job_id: None for ticket in tickets if ticket}


def is_later(task: Task, live: Live) -> bool:
    """Whether the document is live as it was read before this."""
    return task.document_id in live and live[task.document_id].read.precedes(task.read)


def _is_other_since(live: LiveContent | None, content_hash: str, read: Reading) -> bool:
    return live is not None and live.content_hash != content_hash and read.precedes(live.read)
