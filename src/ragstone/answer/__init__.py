"""Hits become an answer: pack → prompt → compose → check support, or quote the sentences; then cite and write."""

from __future__ import annotations

from ragstone.answer.ask import Answerer
from ragstone.answer.styles import cited_sources, dangling_marks, extract_marks

__all__ = ["Answerer", "cited_sources", "dangling_marks", "extract_marks"]
