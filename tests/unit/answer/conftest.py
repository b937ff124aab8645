from __future__ import annotations

from collections.abc import Callable

import pytest

from ragstone.core.types import Hit


@pytest.fixture
def make_hit() -> Callable[..., Hit]:
    """A hit that is `text` at `start` of its document."""

    def make(
        text: str, document: str = "doc", start: int = 0, score: float = 0.9, **facts: object
    ) -> Hit:
        values: dict[str, object] = {
            "chunk_id": f"{document}:{start}",
            "title": document.title(),
            "uri": f"{document}.md",
            "section": "",
            "page": None,
            "scores": {},
            "metadata": {},
        }
        values.update(facts)
        return Hit(
            document_id=document, text=text, score=score, start=start, end=start + len(text), **values
        )

    return make
