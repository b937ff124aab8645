"""Hypothesis without a stopwatch: a slow machine is no failure.

`RAGSTONE_EXAMPLES=1000 pytest tests/unit` looks longer than the 50 examples of each property that are usual here.
"""

from __future__ import annotations

from hypothesis import HealthCheck, settings
from tests.long_runs import take_rounds

settings.register_profile(
    "ragstone",
    max_examples=take_rounds("RAGSTONE_EXAMPLES", 50),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("ragstone")
