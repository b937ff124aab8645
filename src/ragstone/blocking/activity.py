"""`Activity` without async, for the loop of a `Ragstone`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from ragstone.blocking.run import Run
from ragstone.core.activity import (
    Conversation,
    Feedback,
    Gap,
    GoldenQuery,
    LoggedSearch,
    SearchReport,
    Turn,
    Vote,
)

if TYPE_CHECKING:
    from ragstone.activity import Activity
    from ragstone.evaluate.dataset import Dataset

T = TypeVar("T")


class BlockingActivity:
    """Searches that were made, votes on what they brought, and golden queries."""

    def __init__(self, activity: Activity, run: Run) -> None:
        self._activity = activity
        self._run = run

    def vote(self, query: str, chunk_ids: Sequence[str], vote: Vote = "used", **options: Any) -> int:
        return self._run(self._activity.vote(query, chunk_ids, vote, **options))

    def votes(self, **options: Any) -> list[Feedback]:
        return self._run(self._activity.votes(**options))

    def searches(self, **options: Any) -> list[LoggedSearch]:
        return self._run(self._activity.searches(**options))

    def list_conversations(self, **options: Any) -> list[Conversation]:
        return self._run(self._activity.list_conversations(**options))

    def turns(self, conversation: str, **options: Any) -> tuple[Turn, ...]:
        return self._run(self._activity.turns(conversation, **options))

    def forget_conversation(self, conversation: str, **options: Any) -> int:
        return self._run(self._activity.forget_conversation(conversation, **options))

    def report(self, **options: Any) -> SearchReport:
        return self._run(self._activity.report(**options))

    def gaps(self, **options: Any) -> list[Gap]:
        return self._run(self._activity.gaps(**options))

    def judged(self, **options: Any) -> Dataset | None:
        return self._run(self._activity.judged(**options))

    def learnt_terms(self, **options: Any) -> dict[str, list[str]]:
        return self._run(self._activity.learnt_terms(**options))

    def golden(self, **options: Any) -> list[GoldenQuery]:
        return self._run(self._activity.golden(**options))

    def golden_dataset(self, **options: Any) -> Dataset | None:
        return self._run(self._activity.golden_dataset(**options))

    def make_golden(self, count: int = 50, **options: Any) -> list[GoldenQuery]:
        return self._run(self._activity.make_golden(count, **options))

    def add_golden(self, query: str, document_ids: Sequence[str], **options: Any) -> None:
        self._run(self._activity.add_golden(query, document_ids, **options))

    def remove_golden(self, query: str | None = None, **options: Any) -> int:
        return self._run(self._activity.remove_golden(query, **options))
