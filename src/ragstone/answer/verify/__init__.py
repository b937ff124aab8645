"""A claim becomes a verdict: split → search → read sentences beside it → judge → weigh."""

from __future__ import annotations

from ragstone.answer.verify.pipeline import ClaimVerifier

__all__ = ["ClaimVerifier"]
