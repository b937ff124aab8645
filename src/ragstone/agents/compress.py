"""Long passages in fewer words: the sentences that have to do with the query, word for word."""

from __future__ import annotations

from ragstone.language.analyzer import analyze, analyze_query
from ragstone.language.sentences import sentence_spans

LONG = 2000
"""Characters up to which a passage is passed on whole."""
GAP = " … "


def compressed(text: str, query: str, limit: int = LONG) -> str:
    """The text when it is short; of a long one the sentences nearest to the query, in order, gaps marked."""
    if len(text) <= limit:
        return text
    wanted = set(analyze_query(query))
    spans = sentence_spans(text)
    shared = [len(wanted.intersection(analyze(text[start:end]))) for start, end in spans]
    # Of equals the earlier: openings say what a passage is about.
    best = sorted(range(len(spans)), key=lambda index: (-shared[index], index))
    kept: list[int] = []
    left = limit
    for index in best:
        start, end = spans[index]
        if end - start + len(GAP) <= left:
            kept.append(index)
            left -= end - start + len(GAP)
    if not kept:
        return text[:limit].rstrip() + GAP.rstrip()
    return _joined(text, [spans[index] for index in sorted(kept)])


def _joined(text: str, spans: list[tuple[int, int]]) -> str:
    parts: list[str] = []
    last = 0
    for start, end in spans:
        gap = text[last:start]
        parts.append(gap if parts and not gap.strip() else GAP if start else "")
        parts.append(text[start:end])
        last = end
    return "".join(parts).strip() + (GAP.rstrip() if text[last:].strip() else "")
