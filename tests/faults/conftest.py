"""Engines share models and idle parser children, except where those are what is attacked."""

from __future__ import annotations

from tests import sharing

shared_models = sharing.shared_models
shared_parsers = sharing.shared_parsers
