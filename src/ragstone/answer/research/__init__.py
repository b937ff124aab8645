"""Research: topic → search → sub-queries side by side → dedup → enough? → other sub-queries → rank."""

from ragstone.answer.research.pipeline import Researcher

__all__ = ["Researcher"]
