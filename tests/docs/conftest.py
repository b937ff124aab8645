"""Examples share the models that they load."""

from __future__ import annotations

from tests import sharing

shared_models = sharing.shared_models
shared_parsers = sharing.shared_parsers
